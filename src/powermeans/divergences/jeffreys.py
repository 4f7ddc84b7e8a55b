"""Jeffreys' J: relative entropy of the row to the center and back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import wrightomega

from powermeans.divergences.f_divergence import FDivergence
from powermeans.types import FloatArray

# Closer to one than this, the difference of two logarithms loses digits of a ratio.
_NEAR = 1 / 64


@dataclass(frozen=True)
class Jeffreys(FDivergence):
    """Relative entropies both ways, for positive numbers of which the small ones matter, too.

    J is the sum of (x - theta) log(x / theta). A center lies between the arithmetic mean A and the
    geometric mean G of its points: A / W(e A / G), with Lambert's W (Nielsen 2013).

    See Also
    --------
    Poisson : Relative entropy one way; zeros are allowed.
    Gamma : Only ratios count.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans import PowerKMeans
    >>> X = np.array([[1.0], [2.0], [50.0], [80.0]])
    >>> model = PowerKMeans(2, divergence="jeffreys", random_state=0).fit(X)
    >>> np.sort(model.cluster_centers_, axis=0).round(2)
    array([[ 1.46],
           [64.12]])
    """

    names = ("jeffreys",)
    differences = "about the root of the value, and values near zero count for much"
    wanted = "positive numbers"
    excludes_lowest = True
    curvature_at_one = 2.0

    def deviance(self, points: FloatArray, centers: FloatArray) -> FloatArray:
        """Return (x - theta) log(x / theta)."""
        rise, logs = points - centers, np.log(points) - np.log(centers)
        near = np.abs(rise) < _NEAR * centers
        logs[near] = np.log1p((rise / centers)[near])
        return np.asarray(rise * logs)

    def statistics(self, points: FloatArray) -> FloatArray:
        """Return the values and their logarithms."""
        return np.hstack([points, np.log(points)])

    def center(self, means: FloatArray) -> FloatArray:
        """Return A / W(e A / G), where omega(z) is W(exp(z)), which does not overflow."""
        arithmetic, log_geometric = np.hsplit(means, 2)
        return np.asarray(arithmetic / wrightomega(1 + np.log(arithmetic) - log_geometric))
