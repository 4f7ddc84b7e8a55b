"""Numbers of successes, and proportions of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from powermeans.divergences.base import Phi
from powermeans.divergences.bregman import Separable
from powermeans.divergences.chunks import as_float64
from powermeans.divergences.ratios import log_ratio, relative_entropy
from powermeans.types import AnyMatrix, FloatArray


@dataclass(frozen=True)
class Binomial(Separable):
    """The divergence for successes in N trials, and with N = 1 for proportions of yes and no.

    It is the sum of x log(x / theta) + (N - x) log((N - x) / (N - theta)), with 0 log 0 = 0: half
    the deviance of binomial counts. With N = 1 it is the logistic
    divergence, for proportions.

    Parameters
    ----------
    n_trials : float or array-like of shape (n_features,)
        N, the same for every point.

    See Also
    --------
    Poisson : Counts without a bound.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans import PowerKMeans
    >>> from powermeans.divergences import Binomial
    >>> X = np.array([[0, 1], [1, 1], [9, 10], [10, 10]])  # of ten trials each
    >>> model = PowerKMeans(2, divergence=Binomial(10), random_state=0).fit(X)
    >>> np.sort(model.cluster_centers_, axis=0)
    array([[ 0.5,  1. ],
           [ 9.5, 10. ]])
    """

    n_trials: ArrayLike
    names = ("binomial", "logistic")
    differences = "most in the middle, little near 0 and N: successes out of N"
    moves = Phi(x_log_x=1.0)  # of successes and failures
    lowest = 0.0
    wanted = "numbers of successes from zero to n_trials"

    def __post_init__(self) -> None:
        try:
            trials = np.array(self.n_trials, dtype=np.float64)
        except (TypeError, ValueError):
            trials = np.array([])
        is_good = trials.ndim < 2 and trials.size > 0
        if not is_good or not np.all((trials > 0) & np.isfinite(trials)):
            raise ValueError(
                f"n_trials={self.n_trials!r} must be positive: pass the N of the data, one number "
                "or one for each feature"
            )
        # Numbers, unlike arrays, can be compared and hashed.
        object.__setattr__(
            self, "n_trials", trials.tolist() if not trials.ndim else tuple(trials.tolist())
        )
        if self.n_trials == 1:
            shares = "shares from 0 to 1: divide counts by their trials, one number for all columns"
            object.__setattr__(self, "wanted", shares)

    @classmethod
    def named(cls, name: str) -> Self:
        """Return the divergence for proportions; another number of trials is not in a name."""
        if name == "logistic":
            return cls(1.0)
        raise ValueError(
            'divergence="binomial" needs the number of trials: pass '
            "powermeans.divergences.Binomial(n_trials)"
        )

    @property
    def adds_nothing_for_zeros(self) -> bool:
        """Whether all features have the same N."""
        return np.ndim(self.n_trials) == 0

    @property
    def highest(self) -> FloatArray:  # type: ignore[override]
        """N."""
        return np.asarray(self.n_trials, dtype=np.float64)

    def check_width(self, n_features: int) -> None:
        """Raise unless there is one N, or one for each feature."""
        if self.highest.ndim and len(self.highest) != n_features:
            raise ValueError(
                f"n_trials has {len(self.highest)} numbers, but X has {n_features} features: pass "
                "one for each, or one for all"
            )

    def deviance(self, points: FloatArray, centers: FloatArray) -> FloatArray:
        """Return x log(x / theta) and (N - x) log((N - x) / (N - theta))."""
        trials, rise = self.highest, centers - points
        successes = relative_entropy(points, centers, rise)
        return successes + relative_entropy(trials - points, trials - centers, -rise)

    def slope(self, centers: FloatArray) -> FloatArray:
        """Return the logarithm of theta / (N - theta)."""
        return np.asarray(np.log(centers) - np.log(self.highest - centers))

    def slope_from(self, tangent: FloatArray, centers: FloatArray) -> FloatArray:
        """Return the logarithm of the ratio of successes less that of failures."""
        trials, rise = self.highest, centers - tangent
        failures = log_ratio(trials - centers, trials - tangent, -rise)
        return log_ratio(centers, tangent, rise) - failures

    def as_moved(self, points: AnyMatrix) -> FloatArray:
        """Return successes and failures, each of which moves as counts do."""
        successes = as_float64(points)
        return np.hstack([successes, self.highest - successes])

    def from_moved(self, moved: FloatArray, before: FloatArray) -> FloatArray:
        """Return the successes."""
        return np.ascontiguousarray(moved[:, : before.shape[1]])
