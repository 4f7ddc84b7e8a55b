"""Relative entropy: counts, and proportions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import kl_div

from powermeans.divergences.bregman import Separable
from powermeans.types import FloatArray


@dataclass(frozen=True)
class Poisson(Separable):
    """sum of x log(x / theta) - x + theta, with 0 log 0 = 0.

    Half the deviance of Poisson counts, and on rows that add to one the Kullback-Leibler divergence
    (Banerjee et al. 2005). For counts, and for proportions, zeros among them.
    """

    lowest = 0.0
    wanted = "numbers of at least zero, such as counts"

    def deviance(self, points: FloatArray, centers: FloatArray) -> FloatArray:
        """As x log(x / theta) - x + theta."""
        return np.asarray(kl_div(points, centers))

    def slope(self, centers: FloatArray) -> FloatArray:
        """The logarithm of theta."""
        return np.log(centers)
