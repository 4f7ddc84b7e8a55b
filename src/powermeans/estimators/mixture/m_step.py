"""What a mixture of spherical Gaussians learns from each sweep besides its centers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from powermeans.loop.history import SweepRecord
from powermeans.loop.spread import rounding_inertia
from powermeans.loop.updates import Repair
from powermeans.rows.protocol import Rows
from powermeans.rules import Gaussian, Hard, Rule
from powermeans.sums import Sums
from powermeans.types import FloatArray

# No variance is less than this share of that of all points; in the precision of the points there
# may be less that can be told from rounding.
_LEAST_SHARE_OF_VARIANCE = 1e-12
# By how many units in its last place a center may be off.
_UNITS_OF_A_CENTER = 10
# Where all points are zero, the less the likelier.
_VARIANCE_OF_ZEROS = 1e-20
# Up to so much of a logarithm of heights per point, weights are as good as hard.
_SOFTNESS = 1e-6
_ROUNDING_OF_SUMS = 1e-12
# A Gaussian without points keeps as much as this, so that its logarithm is finite.
_LEAST_SHARE = float(np.finfo(np.float64).eps)


class GaussianLearner:
    """Expectation maximisation for spherical Gaussians of one variance, around the loop.

    To the loop it is the schedule, since it says by which Gaussians the next sweep weighs, and the
    repair, since it learns from the sums of each: with W_j = sum_i r_ij, W = sum_j W_j, d features
    and the new centers theta_j = sum_i r_ij x_i / W_j,

        variance = (sum_i |x_i - mean|^2 - sum_j W_j |theta_j - mean|^2) / (d W)
        shares   = W_j / W.

    That is the whole M-step, since the responsibilities r_ij of a point add to one.

    Parameters
    ----------
    first : Gaussian or None
        What to begin with; None where nothing is known but centers: then the first sweep is hard.
    learns_variance, learns_shares : bool
        What to learn, besides the centers.
    hottest : float
        The variance to anneal from, geometrically down to that of the model; nothing is learned
        meanwhile. Below that of the model there is no annealing, and once responsibilities are as
        good as hard it is over, since no lower variance changes them.
    cooling : float
        The factor from one variance to the next while annealing, below one.
    separate : Repair
        What to do about coincident centers, which would stay so for ever.

    Attributes
    ----------
    model : Gaussian or None
        What is known so far.
    log_likelihoods : list of float
        Mean log-likelihood of a point before each sweep by the model.
    """

    def __init__(
        self,
        first: Gaussian | None,
        *,
        learns_variance: bool,
        learns_shares: bool,
        hottest: float,
        cooling: float,
        separate: Repair,
    ) -> None:
        self.first, self.learns_variance, self.learns_shares = first, learns_variance, learns_shares
        self.hottest, self.cooling, self.separate = hottest, cooling, separate
        self.model: Gaussian | None = first
        self.log_likelihoods: list[float] = []
        self._is_cooling = self._is_hard = False
        self._hot = Gaussian()

    def __iter__(self) -> Iterator[Rule]:
        """The rules of one run, without end; it forgets the run before."""
        self.model, self._is_cooling = self.first, False
        self.log_likelihoods.clear()
        if self.model is None:
            yield Hard()
        self._is_cooling = True
        yield from self._cooled()
        self._is_cooling = False
        while True:
            yield self.known

    @property
    def known(self) -> Gaussian:
        """The model once there is one, after the first sweep at the latest."""
        assert self.model is not None, "the first sweep is complete"
        return self.model

    def before(self, centers: FloatArray, power: float) -> tuple[FloatArray, int]:
        """Move coincident centers apart, until the likelihood is known, which that might lower."""
        return (centers, 0) if self.log_likelihoods else self.separate.before(centers, power)

    def after(self, rows: Rows, centers: FloatArray, sums: Sums) -> tuple[Sums, int]:
        """The same sums, from which something has been learned."""
        if self._is_cooling:
            self._is_hard = _has_hard_weights(self._hot, rows, sums)
        else:
            if self.model is not None:
                self.log_likelihoods.append(mean_log_likelihood(rows, self.model, sums))
            self.model = self._learned(rows, centers, sums)
        return sums, 0

    def _cooled(self) -> Iterator[Rule]:
        variance, coldest = self.hottest, self.known.variance
        self._is_hard = False
        while variance > coldest and not self._is_hard:
            self._hot = replace(self.known, variance=variance)
            yield self._hot
            variance *= self.cooling

    def _learned(self, rows: Rows, centers: FloatArray, sums: Sums) -> Gaussian:
        """The M-step."""
        model = self.model or Gaussian()
        if self.learns_variance:
            model = replace(model, variance=_best_variance(rows, centers, sums))
        if self.learns_shares:
            shares = np.maximum(sums.weights / sums.weights.sum(), _LEAST_SHARE)
            model = replace(model, shares=tuple(np.minimum(shares, 1.0).tolist()))
        return model


def _has_hard_weights(model: Gaussian, rows: Rows, sums: Sums) -> bool:
    """Whether the free energy of a sweep is what it is with all of a point at its nearest center.

    It is less by 2 v times the mean of log sum_l exp(-(y_l - y_min) / (2 v)), for equal shares.
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
    """The mean squared distance of a point from the new centers, in each feature.

    As the difference of two sums of squares it cancels where clusters are small and far apart. No
    point is nearer to its centers than to the nearest of them, which gives a bound without squares
    of anything far.
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
    """What is left of the two sums of squares when centers are rounded, far from zero."""
    of_centers = _UNITS_OF_A_CENTER * float(np.finfo(np.float64).eps) * np.linalg.norm(rows.mean())
    # The product of the two may overflow.
    of_weight = math.sqrt(rows.inertia_about_mean()) * math.sqrt(rows.total_weight)
    return float(of_centers) * of_weight


def mean_log_likelihood(rows: Rows, model: Gaussian, sums: Sums) -> float:
    """Mean over the points of log sum_j q_j N(x; theta_j, v I), from a sweep by the model."""
    energy = np.float64(sums.objective) / rows.total_weight
    return float(log_densities(energy, model.variance, rows.n_features))


def log_densities(
    energies: FloatArray | np.float64, variance: float, n_features: int
) -> FloatArray | np.float64:
    """-d/2 log(2 pi v) - F / (2 v) from free energies F = -2 v log sum_j q_j exp(-y_j / (2 v)).

    Parameters
    ----------
    energies : (...)
        What each point adds to the objective of `Gaussian`.

    Returns
    -------
    (...)
        Minus infinity where a point is farther away than float64 can tell.
    """
    with np.errstate(over="ignore"):
        return (
            -n_features / 2 * (math.log(2 * math.pi) + math.log(variance)) - energies / 2 / variance
        )


@dataclass(frozen=True, slots=True)
class LikelihoodSettled:
    """The rule of expectation maximisation: the likelihood has all but ceased to rise.

    Attributes
    ----------
    learner : GaussianLearner
        Which knows the likelihoods; there are none while it anneals.
    tolerance : float
        The largest gain in the mean log-likelihood of a point that counts as none.
    """

    learner: GaussianLearner
    tolerance: float

    def reason(self, records: Sequence[SweepRecord]) -> str | None:
        """A gain within the tolerance, or centers that do not move."""
        likelihoods = self.learner.log_likelihoods
        if len(likelihoods) < 2:
            return None
        before, now = likelihoods[-2:]
        if now - before <= self.tolerance:
            return f"log-likelihood rose from {before} to {now}, within tolerance {self.tolerance}"
        return "strict convergence" if records[-1].center_shift == 0 else None
