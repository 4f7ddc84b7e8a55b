"""Hellinger's distance: square roots of counts and proportions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from powermeans.divergences.f_divergence import FDivergence
from powermeans.types import FloatArray


@dataclass(frozen=True)
class Hellinger(FDivergence):
    """Half the squared differences of roots, for counts and proportions with some far too large.

    It is the sum of (sqrt(x) - sqrt(theta))^2 / 2, which never exceeds half of what the two rows
    add up to. A center is the square of the mean root. Of rows that add up to one it adds up to at
    most one; divided by its sum it is the best center among such rows.

    See Also
    --------
    Poisson : Centers are means.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans import PowerKMeans
    >>> X = np.array([[0.0, 1.0], [4.0, 9.0], [81.0, 100.0], [121.0, 64.0]])
    >>> model = PowerKMeans(2, divergence="hellinger", random_state=0).fit(X)
    >>> np.sort(model.cluster_centers_, axis=0)
    array([[  1.,   4.],
           [100.,  81.]])
    """

    names = ("hellinger",)
    differences = "about the root of the value, and now and then by far more"
    curvature_at_one = 0.25

    def deviance(self, points: FloatArray, centers: FloatArray) -> FloatArray:
        """Return ((x - theta) / (sqrt(x) + sqrt(theta)))^2 / 2, which does not cancel."""
        rise, roots = points - centers, np.sqrt(points) + np.sqrt(centers)
        roots[roots == 0] = 1.0
        return np.asarray(np.square(rise / roots) / 2)

    def inside(self, centers: FloatArray) -> FloatArray:
        """Return the centers, zero where they are less."""
        return np.maximum(centers, 0.0)

    def statistics(self, points: FloatArray) -> FloatArray:
        """Return square roots."""
        return np.sqrt(points)

    def center(self, means: FloatArray) -> FloatArray:
        """Return the squares of the mean roots."""
        return np.square(means)
