"""Relative entropy: counts, and proportions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from powermeans.divergences.base import Phi
from powermeans.divergences.bregman import Separable
from powermeans.divergences.ratios import log_ratio, relative_entropy
from powermeans.types import FloatArray


@dataclass(frozen=True)
class Poisson(Separable):
    """The divergence for counts, and for proportions in rows that add up to one.

    It is the sum of x log(x / theta) - x + theta, with 0 log 0 = 0: half the deviance of Poisson
    counts, and on rows that add up to one the Kullback-Leibler divergence (Banerjee et al. 2005).
    Counts and proportions may be zero.

    See Also
    --------
    Binomial : Numbers of successes in N trials.
    Gamma : Positive numbers whose spread is in proportion to them.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans import PowerKMeans
    >>> from powermeans.divergences import Poisson
    >>> X = np.array([[0, 1], [1, 2], [30, 40], [31, 43]])
    >>> model = PowerKMeans(2, divergence=Poisson(), random_state=0).fit(X)
    >>> np.sort(model.cluster_centers_, axis=0)  # divergence="poisson" is the same
    array([[ 0.5,  1.5],
           [30.5, 41.5]])
    """

    names = ("poisson", "kl")
    differences = "about the root of the value: counts"
    moves = Phi(x_log_x=1.0)
    adds_nothing_for_zeros = True
    lowest = 0.0
    wanted = "numbers of at least zero, such as counts"

    def deviance(self, points: FloatArray, centers: FloatArray) -> FloatArray:
        """Return x log(x / theta) - x + theta."""
        return relative_entropy(points, centers, centers - points)

    def slope(self, centers: FloatArray) -> FloatArray:
        """Return the logarithm of theta."""
        return np.log(centers)

    def slope_from(self, tangent: FloatArray, centers: FloatArray) -> FloatArray:
        """Return the logarithm of the ratio."""
        return log_ratio(centers, tangent, centers - tangent)
