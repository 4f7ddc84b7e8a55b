"""Positive numbers whose spread grows faster than they do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from powermeans.divergences.base import Phi
from powermeans.divergences.bregman import Separable
from powermeans.types import FloatArray


@dataclass(frozen=True)
class InverseGaussian(Separable):
    """The divergence for positive numbers with rare large ones, such as times until an event.

    It is the sum of (x - theta)^2 / (x theta^2): the deviance of inverse Gaussian variables, also
    called Wald's, whose variance is in proportion to the third power of their mean.

    See Also
    --------
    Gamma : Positive numbers whose spread is in proportion to them.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans import PowerKMeans
    >>> from powermeans.divergences import InverseGaussian
    >>> X = np.array([[1.0], [1.5], [20.0], [90.0]])
    >>> model = PowerKMeans(2, divergence=InverseGaussian(), random_state=0).fit(X)
    >>> np.sort(model.cluster_centers_, axis=0)  # divergence="inverse_gaussian" is the same
    array([[ 1.25],
           [55.  ]])
    """

    names = ("inverse_gaussian", "wald")
    differences = "more than a share of the value, rarely by far: times until an event"
    wanted = "positive numbers"
    lowest = 0.0
    excludes_lowest = True
    loses_small_centers = True
    moves = Phi(inverse=1.0)

    def deviance(self, points: FloatArray, centers: FloatArray) -> FloatArray:
        """Return (x - theta)^2 / (x theta^2)."""
        return np.asarray(np.square((points - centers) / centers) / points)

    def slope(self, centers: FloatArray) -> FloatArray:
        """Return -1 / theta^2, the derivative of 1 / theta."""
        return np.asarray(-1 / np.square(centers))

    def slope_from(self, tangent: FloatArray, centers: FloatArray) -> FloatArray:
        """Return (theta - tangent) (theta + tangent) / (theta tangent)^2."""
        rise = (centers - tangent) / centers / tangent
        return np.asarray(rise * (1 / centers + 1 / tangent))
