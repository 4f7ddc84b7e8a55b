"""Positive numbers whose spread is in proportion to their mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from powermeans.divergences.base import Phi
from powermeans.divergences.bregman import Separable
from powermeans.divergences.ratios import log_gap
from powermeans.system.containers import check_number
from powermeans.types import FloatArray


@dataclass(frozen=True)
class Gamma(Separable):
    """The divergence for positive numbers whose spread grows with them, such as sizes and prices.

    It is shape * sum of x / theta - log(x / theta) - 1: half the deviance of gamma variables with
    this shape. With shape 1 it is that of exponential variables, known as the Itakura-Saito
    divergence of power spectra. It does not depend on the unit of a feature.

    Parameters
    ----------
    shape : float, default=1.0
        Positive. It changes only the unit of the divergence, not which centers are best.

    See Also
    --------
    Poisson : Counts, which may be zero.

    Examples
    --------
    Waiting times, about one and about a hundred: in logarithms, these are two tight groups.

    >>> import numpy as np
    >>> from powermeans import PowerKMeans
    >>> from powermeans.divergences import Gamma
    >>> X = np.array([[1.0], [2.0], [60.0], [140.0]])
    >>> model = PowerKMeans(2, divergence=Gamma(), random_state=0).fit(X)
    >>> np.sort(model.cluster_centers_, axis=0)
    array([[  1.5],
           [100. ]])
    """

    shape: float = 1.0
    names = ("gamma", "exponential", "itakura_saito")
    differences = "a share of the value: sizes, prices, waiting times, powers"
    lowest = 0.0
    excludes_lowest = True
    wanted = "positive numbers"
    loses_small_centers = True

    def __post_init__(self) -> None:
        check_number(self.shape, "shape", "(0, inf)", "for example shape=1.0")

    @property
    def moves(self) -> Phi:
        """The negative logarithm, times the shape."""
        return Phi(minus_log=self.shape)

    def deviance(self, points: FloatArray, centers: FloatArray) -> FloatArray:
        """Return the shape times x / theta - log(x / theta) - 1."""
        return self.shape * log_gap(points, centers, (points - centers) / centers)

    def slope(self, centers: FloatArray) -> FloatArray:
        """Return -shape / theta."""
        return np.asarray(-self.shape / centers)

    def slope_from(self, tangent: FloatArray, centers: FloatArray) -> FloatArray:
        """Return the shape times (theta - tangent) / theta / tangent."""
        return np.asarray(self.shape * ((centers - tangent) / centers / tangent))
