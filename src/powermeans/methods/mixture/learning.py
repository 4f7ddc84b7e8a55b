"""How a mixture of spherical Gaussians is learned: the M-step, when it ends, and a search."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from powermeans.engine.anneal import Result, Stage, anneal
from powermeans.engine.fit import Fit
from powermeans.engine.history import SweepRecord
from powermeans.engine.spread import rounding_inertia
from powermeans.engine.updates import Learner, Sweep, Update
from powermeans.mathematics.rules import Gaussian, Hard, Rule, UnequalGaussians
from powermeans.mathematics.sums import Sums
from powermeans.methods.power_kmeans import searched
from powermeans.points.observed import ObservedSums
from powermeans.points.protocol import Points
from powermeans.types import FloatArray

# The least variance of a Gaussian with its own, as a share of the mean variance within Gaussians.
# Without it the likelihood has no maximum, since a Gaussian may shrink to a point.
LEAST_SHARE_WITHIN = 1e-4

Model = Gaussian | UnequalGaussians


@dataclass(slots=True, kw_only=True)
class GaussianLearner(Learner):
    """Expectation maximisation for spherical Gaussians.

    Each sweep weights the points by the model so far (the E-step). With the responsibilities
    r_ij of its rule, W_j = sum_i r_ij, W = sum_j W_j, d features and the new centers
    theta_j = sum_i r_ij x_i / W_j, the M-step is

        variance = (sum_i |x_i - mean|^2 - sum_j W_j |theta_j - mean|^2) / (d W)
        shares   = W_j / W,

    since the responsibilities of a point add up to one. Sums are over the entries that are
    observed, and d W is the weight of these. If each Gaussian has its own variance,

        variance_j = (sum_i r_ij |x_i - old theta_j|^2 - W_j |theta_j - old theta_j|^2) / (d W_j).

    Annealing lowers one variance of all geometrically from the hottest to that of the model, and
    learns nothing meanwhile. It ends early once the responsibilities are practically hard, since
    lower variances do not change them.
    """

    first: Model | None  # if None, only centers are known, and the first sweep is hard
    learns_variance: bool
    learns_shares: bool
    hottest: float
    separate: Update  # moves coincident centers, which would otherwise stay together
    tolerance: float  # the largest gain in the mean log-likelihood that counts as none
    has_own_variances: bool = False  # if not, all Gaussians share one
    model: Model | None = None  # the latest
    collapsed: tuple[int, ...] = ()  # Gaussians whose variance is the least that is allowed
    log_likelihoods: list[float] = field(default_factory=list)  # the means before each sweep
    _hot: Gaussian | None = None  # the rule while it anneals
    _is_hard: bool = False

    def __iter__(self) -> Iterator[Rule]:
        """Begin a run, and yield its endless rules."""
        self.model, self._hot, self.collapsed = self.first, None, ()
        self.log_likelihoods.clear()
        if self.model is None:
            yield Hard()
        yield from self._cooled()
        while True:
            yield self.known

    @property
    def known(self) -> Model:
        """Return the model; it exists after the first sweep."""
        assert self.model is not None, "the first sweep is complete"
        return self.model

    def before(self, sweep: Sweep) -> FloatArray:
        """Separate coincident centers until the likelihood is known, which this might lower."""
        return sweep.centers if self.log_likelihoods else self.separate.before(sweep)

    def after(self, sweep: Sweep, sums: Sums) -> Sums:
        """Learn from the sums, and return them unchanged."""
        rows = sweep.rows
        if self._hot is not None:
            self._is_hard = _has_hard_weights(self._hot, rows, sums)
            return sums
        if self.model is not None:
            self.log_likelihoods.append(mean_log_likelihood(rows, self.model, sums))
        self.model = self._learned(rows, sweep.centers, sums)
        return sums

    def reason(self, records: Sequence[SweepRecord]) -> str | None:
        """Stop once the likelihood gains at most the tolerance, or no center moves."""
        if len(self.log_likelihoods) < 2:
            return None
        before, now = self.log_likelihoods[-2:]
        if now - before <= self.tolerance:
            return f"log-likelihood rose from {before} to {now}, within tolerance {self.tolerance}"
        return "strict convergence" if records[-1].center_shift == 0 else None

    def _cooled(self) -> Iterator[Rule]:
        """Yield hotter Gaussians than the model."""
        variance, self._is_hard = self.hottest, False
        while variance > self.known.variance and not self._is_hard:
            self._hot = Gaussian(variance, self.known.shares)
            yield self._hot
            variance *= 0.9
        self._hot = None

    def _learned(self, rows: Points, centers: FloatArray, sums: Sums) -> Model:
        """Return the model of the M-step."""
        model = self.model or Gaussian()
        if self.learns_shares:
            # The logarithm of the share of a Gaussian without points must be finite.
            shares = np.maximum(sums.weights / sums.weights.sum(), np.finfo(np.float64).eps)
            model = replace(model, shares=tuple(np.minimum(shares, 1.0).tolist()))
        if isinstance(model, UnequalGaussians):
            variances, self.collapsed = _own_variances(rows, centers, sums)
            return replace(model, variances=tuple(variances.tolist()))
        if self.learns_variance:
            model = replace(model, variance=_best_variance(rows, centers, sums))
        return unequal(model, len(centers), rows.n_observed) if self.has_own_variances else model


def _has_hard_weights(model: Gaussian, rows: Points, sums: Sums) -> bool:
    """Return whether the free energy is that of hard weights, within 1e-6 for a mean point.

    With equal shares it is less by 2 v times the sum of log sum_l exp(-(y_l - y_min) / (2 v)).
    """
    if model.shares is None:
        of_shares = sums.weights.sum() * math.log(len(sums.weights))
    else:
        of_shares = -float(sums.weights @ np.log(model.shares))
    temperature = 2 * model.variance
    softness = sums.inertia + temperature * of_shares - sums.objective
    allowed = 1e-6 * temperature * rows.total_weight + 1e-12 * sums.inertia
    return bool(softness <= allowed)


def _best_variance(rows: Points, centers: FloatArray, sums: Sums) -> float:
    """Return the mean squared distance of a point from the new centers, in each feature.

    The difference of two sums of squares cancels if clusters are small and far apart. Then the
    inertia is a lower bound, since no point is nearer to its centers than to the nearest of them.
    """
    moved = sums.centers(fallback=centers)
    about_mean = rows.inertia_about_mean()
    between = float(_weighted_squares(sums, moved - rows.mean()).sum())
    shift = float(_weighted_squares(sums, moved - centers).sum())
    within = max(about_mean - between, sums.inertia - shift)
    return max(within, _least_inertia(rows)) / weight_observed(rows) or _variance_of_equal(rows)


def _weighted_squares(sums: Sums, differences: FloatArray) -> FloatArray:
    """Return the sum of squared differences of each center, weighted as its points are."""
    if isinstance(sums, ObservedSums):
        return np.asarray(np.sum(sums.observed * np.square(differences), axis=1))
    return np.asarray(sums.weights * np.square(differences).sum(axis=1))


def weight_observed(rows: Points) -> float:
    """Return the sum of the weights of all entries that are observed."""
    if isinstance(n_observed := rows.n_observed, int):
        return n_observed * rows.total_weight
    return float(rows.sample_weight(np.arange(rows.n_points)) @ n_observed)


def _own_variances(
    rows: Points, centers: FloatArray, sums: Any
) -> tuple[FloatArray, tuple[int, ...]]:
    """Return the variance of each Gaussian, and the Gaussians that would have less than allowed.

    None is below a share of their mean (Hathaway 1985), since without a bound the likelihood grows
    for ever as a Gaussian shrinks to a point.
    """
    shift = _weighted_squares(sums, sums.centers(fallback=centers) - centers)
    within = np.maximum(sums.scatter - shift, 0.0)
    n_values = _weighted_squares(sums, np.ones_like(centers))
    has_weight = n_values > 0
    mean = float(within.sum()) / float(n_values.sum())
    of_rounding = _least_inertia(rows) / weight_observed(rows)
    least = max(LEAST_SHARE_WITHIN * mean, of_rounding) or _variance_of_equal(rows)
    variances = np.divide(within, n_values, where=has_weight, out=np.full(len(within), mean))
    collapsed = tuple(np.flatnonzero(variances < least).tolist())
    return np.maximum(variances, least), collapsed


def _variance_of_equal(rows: Points) -> float:
    """Return a variance for points so alike that the squares of their rounding vanish.

    For zeros the likelihood has no maximum: a smaller variance is always likelier.
    """
    return float(np.finfo(np.float64).tiny) if rows.mean().any() else 1e-20


def _least_inertia(rows: Points) -> float:
    """Return the inertia below which there is only rounding."""
    about_mean = rows.inertia_about_mean()
    least = max(1e-12, float(np.finfo(rows.dtype).eps)) * about_mean
    return max(least, rounding_inertia(rows), _rounding_of_difference(rows))


def _rounding_of_difference(rows: Points) -> float:
    """Return the rounding error in the difference of the two sums, for points far from zero."""
    of_centers = 10 * float(np.finfo(np.float64).eps) * np.linalg.norm(rows.mean())
    # The product of the two may overflow.
    of_weight = math.sqrt(rows.inertia_about_mean()) * math.sqrt(rows.total_weight)
    return float(of_centers) * of_weight


def unequal(model: Gaussian, n_centers: int, n_features: int | FloatArray) -> UnequalGaussians:
    """Return the same mixture as one in which each Gaussian has a variance of its own."""
    shares = (1 / n_centers,) * n_centers if model.shares is None else model.shares
    return UnequalGaussians((model.variance,) * n_centers, shares, n_features)


def mean_log_likelihood(rows: Points, model: Model, sums: Sums) -> float:
    """Return the mean of log sum_j q_j N(x; theta_j, v_j I) over the points of a sweep."""
    energy = np.float64(sums.objective) / rows.total_weight
    return float(log_densities_of(energy, model, weight_observed(rows) / rows.total_weight))


def log_densities_of(
    objectives: FloatArray | np.float64, model: Model, n_features: float | FloatArray
) -> FloatArray | np.float64:
    """Return the logarithms of densities from the objectives of the rule of the model."""
    if isinstance(model, UnequalGaussians):
        return -objectives
    return log_densities(objectives, model.variance, n_features)


def log_densities(
    energies: FloatArray | np.float64, variance: float, n_features: float | FloatArray
) -> FloatArray | np.float64:
    """Return -d/2 log(2 pi v) - F / (2 v) of free energies F, the objectives of `Gaussian`.

    With F = -2 v log sum_j q_j exp(-y_j / (2 v)) this is the logarithm of the density. It is minus
    infinity for a point too far away for float64.
    """
    with np.errstate(over="ignore"):
        return (
            -n_features / 2 * (math.log(2 * math.pi) + math.log(variance)) - energies / 2 / variance
        )


# Further starts from seeds, and how many Gaussians of least use move to each of as many widest.
EFFORTS = {"fast": (0, 0), "balanced": (0, 2), "thorough": (5, 5)}


@dataclass(slots=True)
class MixtureSearch:
    """A search for a mixture of high likelihood, which keeps the best so far."""

    points: Points
    fit: Fit
    learner: GaussianLearner  # of the run, which has the best model at last
    max_iter: int
    tol: float
    options: Any  # of the search for centers
    best: Result = field(init=False)
    best_learner: GaussianLearner = field(init=False)
    highest: float = field(init=False)  # mean log-likelihood

    def run(self, first: Result, efforts: Sequence[str]) -> Result:
        """Go on from the end of a descent, and return one that is no worse."""
        self.best, self.highest = first, self._log_likelihood(first, self.learner)
        self.best_learner = replace(
            self.learner, log_likelihoods=self.learner.log_likelihoods.copy()
        )
        try:
            for effort in efforts:
                n_annealed, n_moved = EFFORTS[effort]
                self._gains(self._searched_centers(len(first.centers), effort))
                for _ in range(n_annealed):
                    self._gains(self.fit.seeds.draw(self.points, self.fit), anneals=True)
                self._move(n_moved)
        finally:
            found = self.best_learner
            self.learner.model, self.learner.collapsed = found.model, found.collapsed
            self.learner.log_likelihoods[:] = found.log_likelihoods
            self.fit.history.keep(self.best.centers)
        return self.best

    def _searched_centers(self, n_clusters: int, effort: Any) -> FloatArray:
        given, how = self.points.given, {"effort": effort, "rng": self.fit.rng, **self.options}
        model = searched(given.array, given.weights, n_clusters, **how)
        return model.cluster_centers_.astype(np.float64)

    def _move(self, n_moved: int) -> None:
        """Move each of the Gaussians of least use to each of those with the largest error."""
        n_without_gain = 0
        while n_without_gain < n_moved**2:
            worst, least = divmod(n_without_gain, n_moved)
            n_without_gain = 0 if self._gains(self._moved(worst, least)) else n_without_gain + 1

    def _moved(self, worst: int, least: int) -> FloatArray:
        """Return the best centers, one of which splits the Gaussian of another."""
        centers, rows = self.best.centers.copy(), self.points
        of_centers = rows.spread(centers)
        by_error = np.argsort(-of_centers.error, kind="stable")
        by_use = np.argsort(of_centers.utility, kind="stable")
        push = self.fit.rng.standard_normal(rows.n_features)
        split = centers[by_error[worst % len(centers)]]
        split = split + push * math.sqrt(self.best_learner.known.variance)
        centers[by_use[least % len(centers)]] = split
        return centers

    def _gains(self, centers: FloatArray, *, anneals: bool = False) -> bool:
        """Learn from these centers; return whether the likelihood is higher without a collapse."""
        learner = replace(self.learner, model=None, log_likelihoods=[])
        if not anneals:
            learner.hottest = 0.0
        stage = Stage.of(learner, self.max_iter)
        end = anneal(self.points, centers, [stage], self.fit)
        likelihood = self._log_likelihood(end, learner)
        gains = likelihood > self.highest + self.tol
        gains = gains and len(learner.collapsed) <= len(self.best_learner.collapsed)
        if gains:
            self.best, self.best_learner, self.highest = end, learner, likelihood
        return gains

    def _log_likelihood(self, end: Result, learner: GaussianLearner) -> float:
        rows = self.points
        return mean_log_likelihood(rows, learner.known, rows.sweep(end.centers, learner.known))
