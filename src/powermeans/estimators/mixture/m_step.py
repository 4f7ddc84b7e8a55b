"""The M-step of a mixture of spherical Gaussians, and when its likelihood has settled."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from powermeans.loop.history import SweepRecord
from powermeans.loop.spread import rounding_inertia
from powermeans.loop.updates import Learner, Sweep, Update
from powermeans.rows.protocol import Rows
from powermeans.rules import Gaussian, Hard, Rule
from powermeans.sums import Sums
from powermeans.types import FloatArray

# The least variance, as a share of that of all points; the precision of the points may raise it.
_LEAST_SHARE_OF_VARIANCE = 1e-12
# The error of a center, in units in the last place.
_UNITS_OF_A_CENTER = 10
# If all points are zero, the likelihood has no maximum: a smaller variance is always likelier.
_VARIANCE_OF_ZEROS = 1e-20
# Weights count as hard if softness changes the mean log density of a point by at most this.
_SOFTNESS = 1e-6
_ROUNDING_OF_SUMS = 1e-12
# The share of a Gaussian without points, whose logarithm must be finite.
_LEAST_SHARE = float(np.finfo(np.float64).eps)


@dataclass(slots=True, kw_only=True)
class GaussianLearner(Learner):
    """Expectation maximisation for spherical Gaussians of one variance.

    Each sweep weights the points by the model so far (the E-step). With the responsibilities
    r_ij of its rule, W_j = sum_i r_ij, W = sum_j W_j, d features and the new centers
    theta_j = sum_i r_ij x_i / W_j, the M-step is

        variance = (sum_i |x_i - mean|^2 - sum_j W_j |theta_j - mean|^2) / (d W)
        shares   = W_j / W,

    since the responsibilities of a point add up to one. Annealing lowers the variance geometrically
    from the hottest to that of the model, and learns nothing meanwhile. It ends early once the
    responsibilities are practically hard, since lower variances do not change them.
    """

    first: Gaussian | None  # if None, only centers are known, and the first sweep is hard
    learns_variance: bool
    learns_shares: bool
    hottest: float
    cooling: float  # the factor from one variance to the next, below one
    separate: Update  # moves coincident centers, which would otherwise stay together
    tolerance: float  # the largest gain in the mean log-likelihood that counts as none
    model: Gaussian | None = None  # the latest
    log_likelihoods: list[float] = field(default_factory=list)  # the means before each sweep
    _hot: Gaussian | None = None  # the rule while it anneals
    _is_hard: bool = False

    def __iter__(self) -> Iterator[Rule]:
        """Begin a run, and yield its endless rules."""
        self.model, self._hot = self.first, None
        self.log_likelihoods.clear()
        if self.model is None:
            yield Hard()
        yield from self._cooled()
        while True:
            yield self.known

    @property
    def known(self) -> Gaussian:
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
            self._hot = replace(self.known, variance=variance)
            yield self._hot
            variance *= self.cooling
        self._hot = None

    def _learned(self, rows: Rows, centers: FloatArray, sums: Sums) -> Gaussian:
        """Return the model of the M-step."""
        model = self.model or Gaussian()
        if self.learns_variance:
            model = replace(model, variance=_best_variance(rows, centers, sums))
        if self.learns_shares:
            shares = np.maximum(sums.weights / sums.weights.sum(), _LEAST_SHARE)
            model = replace(model, shares=tuple(np.minimum(shares, 1.0).tolist()))
        return model


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
    least = max(_LEAST_SHARE_OF_VARIANCE, float(np.finfo(rows.dtype).eps)) * about_mean
    least = max(least, rounding_inertia(rows), _rounding_of_difference(rows))
    return max(within, least) / values or _VARIANCE_OF_ZEROS


def _rounding_of_difference(rows: Rows) -> float:
    """Return the rounding error in the difference of the two sums, for points far from zero."""
    of_centers = _UNITS_OF_A_CENTER * float(np.finfo(np.float64).eps) * np.linalg.norm(rows.mean())
    # The product of the two may overflow.
    of_weight = math.sqrt(rows.inertia_about_mean()) * math.sqrt(rows.total_weight)
    return float(of_centers) * of_weight


def mean_log_likelihood(rows: Rows, model: Gaussian, sums: Sums) -> float:
    """Return the mean of log sum_j q_j N(x; theta_j, v I) over the points of a sweep."""
    energy = np.float64(sums.objective) / rows.total_weight
    return float(log_densities(energy, model.variance, rows.n_features))


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
