"""The M-step of a mixture of spherical Gaussians, and when its likelihood has settled."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import logsumexp

from powermeans.loop.history import SweepRecord
from powermeans.loop.spread import rounding_inertia
from powermeans.loop.updates import Learner, Sweep, Update
from powermeans.rows.protocol import Rows
from powermeans.rules import Gaussian, Hard, Rule, Scattered, UnequalGaussians
from powermeans.sums import Sums
from powermeans.types import FloatArray

# The least variance, as a share of that of all points; the precision of the points may raise it.
_LEAST_SHARE_OF_VARIANCE = 1e-12
# The least variance of a Gaussian with its own, as a share of the mean variance within Gaussians.
# Without it the likelihood has no maximum, since a Gaussian may shrink to a point.
LEAST_SHARE_WITHIN = 1e-4
# The error of a center, in units in the last place.
_UNITS_OF_A_CENTER = 10
# If all points are zero, the likelihood has no maximum: a smaller variance is always likelier.
_VARIANCE_OF_ZEROS = 1e-20
# Of equal points so small that the square of their rounding vanishes.
_LEAST_VARIANCE = float(np.finfo(np.float64).tiny)
# Weights count as hard if softness changes the mean log density of a point by at most this.
_SOFTNESS = 1e-6
_ROUNDING_OF_SUMS = 1e-12
# The share of a Gaussian without points, whose logarithm must be finite.
_LEAST_SHARE = float(np.finfo(np.float64).eps)

Model = Gaussian | UnequalGaussians


@dataclass(slots=True, kw_only=True)
class GaussianLearner(Learner):
    """Expectation maximisation for spherical Gaussians.

    Each sweep weights the points by the model so far (the E-step). With the responsibilities
    r_ij of its rule, W_j = sum_i r_ij, W = sum_j W_j, d features and the new centers
    theta_j = sum_i r_ij x_i / W_j, the M-step is

        variance = (sum_i |x_i - mean|^2 - sum_j W_j |theta_j - mean|^2) / (d W)
        shares   = W_j / W,

    since the responsibilities of a point add up to one. If each Gaussian has its own variance,

        variance_j = (sum_i r_ij |x_i - old theta_j|^2 - W_j |theta_j - old theta_j|^2) / (d W_j).

    Annealing lowers one variance of all geometrically from the hottest to that of the model, and
    learns nothing meanwhile. It ends early once the responsibilities are practically hard, since
    lower variances do not change them. If it learns while hot, it sweeps with posteriors to the
    power of an exponent instead, which rises to one, and learns from each until its likelihood
    settles (Ueda & Nakano 1998).
    """

    first: Model | None  # if None, only centers are known, and the first sweep is hard
    learns_variance: bool
    learns_shares: bool
    hottest: float
    cooling: float  # the factor from one variance to the next, below one
    separate: Update  # moves coincident centers, which would otherwise stay together
    tolerance: float  # the largest gain in the mean log-likelihood that counts as none
    has_own_variances: bool = False  # if not, all Gaussians share one
    lowest_exponent: float = 1.0  # of posteriors, below one if it learns while hot
    model: Model | None = None  # the latest
    collapsed: tuple[int, ...] = ()  # Gaussians whose variance is the least that is allowed
    log_likelihoods: list[float] = field(default_factory=list)  # the means before each sweep
    _hot: Model | None = None  # the rule while it anneals
    _exponent: float = field(default=1.0, init=False)
    _hot_likelihoods: list[float] = field(default_factory=list, init=False)  # at this exponent
    _is_hard: bool = False

    def __iter__(self) -> Iterator[Rule]:
        """Begin a run, and yield its endless rules."""
        self.model, self._hot, self._exponent, self.collapsed = self.first, None, 1.0, ()
        self.log_likelihoods.clear()
        if self.model is None:
            yield Hard()
        yield from self._cooled()
        yield from self._tempered()
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
        if isinstance(self._hot, Gaussian) and self._exponent == 1:
            self._is_hard = _has_hard_weights(self._hot, rows, sums)
            return sums
        if self._hot is not None:
            likelihood = tempered_log_likelihood(rows, self.known, self._exponent, sums)
            self._hot_likelihoods.append(likelihood)
        elif self.model is not None:
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
            variance *= self.cooling
        self._hot = None

    def _tempered(self) -> Iterator[Rule]:
        """Yield posteriors to the power of exponents that rise to one, each until it settles."""
        exponent = self.lowest_exponent
        while exponent < 1:
            self._exponent = exponent
            self._hot_likelihoods.clear()
            while not self._has_settled(self._hot_likelihoods):
                self._hot = tempered(self.known, exponent)
                yield self._hot
            exponent /= self.cooling
        self._hot, self._exponent = None, 1.0

    def _has_settled(self, likelihoods: Sequence[float]) -> bool:
        return len(likelihoods) > 1 and likelihoods[-1] - likelihoods[-2] <= self.tolerance

    def _learned(self, rows: Rows, centers: FloatArray, sums: Sums) -> Model:
        """Return the model of the M-step."""
        model = self.model or Gaussian()
        if self.learns_shares:
            shares = np.maximum(sums.weights / sums.weights.sum(), _LEAST_SHARE)
            model = replace(model, shares=tuple(np.minimum(shares, 1.0).tolist()))
        if isinstance(sums, Scattered) and isinstance(model, UnequalGaussians):
            variances, self.collapsed = _own_variances(rows, centers, sums)
            return replace(model, variances=tuple(variances.tolist()))
        assert isinstance(model, Gaussian), "sweeps with own variances have a scatter"
        if self.learns_variance:
            model = replace(model, variance=_best_variance(rows, centers, sums))
        return unequal(model, *centers.shape) if self.has_own_variances else model


def _has_hard_weights(model: Gaussian, rows: Rows, sums: Sums) -> bool:
    """Return whether the free energy is that of hard weights.

    With equal shares it is less by 2 v times the sum of log sum_l exp(-(y_l - y_min) / (2 v)).
    """
    if model.shares is None:
        of_shares = sums.weights.sum() * math.log(len(sums.weights))
    else:
        of_shares = -float(sums.weights @ np.log(model.shares))
    temperature = 2 * model.variance
    softness = sums.inertia + temperature * of_shares - sums.objective
    allowed = _SOFTNESS * temperature * rows.total_weight + _ROUNDING_OF_SUMS * sums.inertia
    return bool(softness <= allowed)


def _best_variance(rows: Rows, centers: FloatArray, sums: Sums) -> float:
    """Return the mean squared distance of a point from the new centers, in each feature.

    The difference of two sums of squares cancels if clusters are small and far apart. Then the
    inertia is a lower bound, since no point is nearer to its centers than to the nearest of them.
    """
    moved = sums.centers(fallback=centers)
    about_mean, values = rows.inertia_about_mean(), rows.n_features * rows.total_weight
    between = float(sums.weights @ np.square(moved - rows.mean()).sum(axis=1))
    shift = float(sums.weights @ np.square(moved - centers).sum(axis=1))
    within = max(about_mean - between, sums.inertia - shift)
    return max(within, _least_inertia(rows)) / values or _variance_of_equal(rows)


def _own_variances(
    rows: Rows, centers: FloatArray, sums: Scattered
) -> tuple[FloatArray, tuple[int, ...]]:
    """Return the variance of each Gaussian, and the Gaussians that would have less than allowed.

    None is below a share of their mean (Hathaway 1985), since without a bound the likelihood grows
    for ever as a Gaussian shrinks to a point.
    """
    shift = np.square(sums.centers(fallback=centers) - centers).sum(axis=1)
    within = np.maximum(sums.scatter - sums.weights * shift, 0.0)
    has_weight = sums.weights > 0
    n_values = rows.n_features * np.where(has_weight, sums.weights, 1.0)
    mean = float(within.sum()) / (rows.n_features * float(sums.weights.sum()))
    of_rounding = _least_inertia(rows) / (rows.n_features * rows.total_weight)
    least = max(LEAST_SHARE_WITHIN * mean, of_rounding) or _variance_of_equal(rows)
    variances = np.where(has_weight, within / n_values, mean)
    collapsed = tuple(np.flatnonzero(variances < least).tolist())
    return np.maximum(variances, least), collapsed


def _variance_of_equal(rows: Rows) -> float:
    return _LEAST_VARIANCE if rows.mean().any() else _VARIANCE_OF_ZEROS


def _least_inertia(rows: Rows) -> float:
    """Return the inertia below which there is only rounding."""
    about_mean = rows.inertia_about_mean()
    least = max(_LEAST_SHARE_OF_VARIANCE, float(np.finfo(rows.dtype).eps)) * about_mean
    return max(least, rounding_inertia(rows), _rounding_of_difference(rows))


def _rounding_of_difference(rows: Rows) -> float:
    """Return the rounding error in the difference of the two sums, for points far from zero."""
    of_centers = _UNITS_OF_A_CENTER * float(np.finfo(np.float64).eps) * np.linalg.norm(rows.mean())
    # The product of the two may overflow.
    of_weight = math.sqrt(rows.inertia_about_mean()) * math.sqrt(rows.total_weight)
    return float(of_centers) * of_weight


def unequal(model: Gaussian, n_centers: int, n_features: int) -> UnequalGaussians:
    """Return the same mixture as one in which each Gaussian has a variance of its own."""
    shares = (1 / n_centers,) * n_centers if model.shares is None else model.shares
    return UnequalGaussians((model.variance,) * n_centers, shares, n_features)


def tempered(model: Model, exponent: float) -> Model:
    """Return the mixture whose responsibilities are (q_j N_j)^b / sum_l (q_l N_l)^b.

    The power of a Gaussian is one of the variance v_j / b, and its factor goes into the shares:
    they are q_j^b v_j^(d (1-b) / 2), over their sum.
    """
    if isinstance(model, Gaussian):
        of_shares = None if model.shares is None else exponent * np.log(model.shares)
        return Gaussian(model.variance / exponent, _from_logs(of_shares))
    logs = _log_factors(model, exponent)
    variances = tuple((np.array(model.variances) / exponent).tolist())
    shares = _from_logs(logs)
    assert shares is not None
    return UnequalGaussians(variances, shares, model.n_features)


def _log_factors(model: UnequalGaussians, exponent: float) -> FloatArray:
    """Return the logarithms of q_j^b v_j^(d (1-b) / 2)."""
    of_variances = model.n_features * (1 - exponent) / 2 * np.log(model.variances)
    return np.asarray(exponent * np.log(model.shares) + of_variances)


def _from_logs(logs: FloatArray | None) -> tuple[float, ...] | None:
    """Return shares in proportion to the exponentials of these logarithms, none of them zero."""
    if logs is None:
        return None
    shares = np.exp(logs - logsumexp(logs))
    return tuple(np.clip(shares, np.finfo(np.float64).tiny, 1.0).tolist())


def tempered_log_likelihood(rows: Rows, model: Model, exponent: float, sums: Sums) -> float:
    """Return the mean of log sum_j (q_j N_j)^b / b over the points of a sweep with `tempered`.

    It is what a sweep with the exponent b raises: minus the free energy of Ueda & Nakano (1998).
    """
    n_centers, n_features = sums.points.shape
    at_one = model if isinstance(model, UnequalGaussians) else unequal(model, n_centers, n_features)
    log_sum = float(logsumexp(_log_factors(at_one, exponent)))
    log_sum += n_features / 2 * ((1 - exponent) * math.log(2 * math.pi) - math.log(exponent))
    of_rule = mean_log_likelihood(rows, tempered(model, exponent), sums)
    return float((of_rule + log_sum) / exponent)


def mean_log_likelihood(rows: Rows, model: Model, sums: Sums) -> float:
    """Return the mean of log sum_j q_j N(x; theta_j, v_j I) over the points of a sweep."""
    energy = np.float64(sums.objective) / rows.total_weight
    return float(log_densities_of(energy, model, rows.n_features))


def log_densities_of(
    objectives: FloatArray | np.float64, model: Model, n_features: int
) -> FloatArray | np.float64:
    """Return the logarithms of densities from the objectives of the rule of the model."""
    if isinstance(model, UnequalGaussians):
        return -objectives
    return log_densities(objectives, model.variance, n_features)


def log_densities(
    energies: FloatArray | np.float64, variance: float, n_features: int
) -> FloatArray | np.float64:
    """Return -d/2 log(2 pi v) - F / (2 v) of free energies F, the objectives of `Gaussian`.

    With F = -2 v log sum_j q_j exp(-y_j / (2 v)) this is the logarithm of the density. It is minus
    infinity for a point too far away for float64.
    """
    with np.errstate(over="ignore"):
        return (
            -n_features / 2 * (math.log(2 * math.pi) + math.log(variance)) - energies / 2 / variance
        )
