"""Pearson's chi-squared distance: counts against the counts that are expected."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from powermeans.divergences.f_divergence import FDivergence
from powermeans.types import FloatArray


@dataclass(frozen=True)
class ChiSquared(FDivergence):
    """Pearson's statistic, for counts of which none may exceed its expectation by much.

    It is the sum of (x - theta)^2 / theta: the row is what was observed and the center what was
    expected. A center is the root mean square of its points.

    See Also
    --------
    Poisson : Centers are means, and counts far above them matter less.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans import PowerKMeans
    >>> X = np.array([[1.0, 0.0], [7.0, 0.0], [40.0, 10.0], [40.0, 70.0]])
    >>> model = PowerKMeans(2, divergence="chi_squared", random_state=0).fit(X)
    >>> np.sort(model.cluster_centers_, axis=0)
    array([[ 5.,  0.],
           [40., 50.]])
    """

    names = ("chi_squared", "pearson")
    differences = "about the root of the value, and more would be an alarm"
    curvature_at_one = 2.0

    def deviance(self, points: FloatArray, centers: FloatArray) -> FloatArray:
        """Return (x - theta)^2 / theta."""
        rise = points - centers
        return np.asarray(rise / centers * rise)

    def statistics(self, points: FloatArray) -> FloatArray:
        """Return squares."""
        return np.square(points)

    def center(self, means: FloatArray) -> FloatArray:
        """Return the roots of the mean squares."""
        return np.sqrt(np.maximum(means, 0.0))  # rounding may leave less than nothing
