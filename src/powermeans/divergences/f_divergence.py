"""f-divergences (Csiszár 1967), also called phi-divergences: sums of theta f(x / theta).

Their centers are no means of points. Where a center follows from the means of some numbers of each
point, such as its square root, a sweep adds up these. Neither points nor centers need add up to
one.
"""

from __future__ import annotations

import abc
from typing import ClassVar

from powermeans.divergences.domains import Bounded
from powermeans.types import FloatArray


class FDivergence(Bounded):
    """A sum of theta f(x / theta) over the features, with f convex and zero at one.

    A subclass defines `deviance`, `statistics` and `center`, and `curvature_at_one`; it says
    `excludes_lowest` where zeros are not allowed. `deviance` takes arrays, entry by entry, with
    centers that broadcast against points. Distances and centers are in the unit of the points.

    See Also
    --------
    Hellinger : One of them.
    Separable : Divergences whose centers are means.

    Examples
    --------
    Neyman's chi-squared distance, the sum of (x - theta)^2 / x. Its centers are harmonic means:

    >>> import numpy as np
    >>> from powermeans import PowerKMeans
    >>> from powermeans.divergences import FDivergence
    >>> class Neyman(FDivergence):
    ...     excludes_lowest = True
    ...     curvature_at_one = 2.0
    ...     def deviance(self, points, centers):
    ...         return (points - centers) ** 2 / points
    ...     def statistics(self, points):
    ...         return 1 / points
    ...     def center(self, means):
    ...         return 1 / means
    >>> X = np.array([[2.0], [6.0], [40.0], [60.0]])
    >>> model = PowerKMeans(2, divergence=Neyman(), random_state=0).fit(X)
    >>> np.sort(model.cluster_centers_, axis=0)
    array([[ 3.],
           [48.]])
    """

    wanted = "numbers of at least zero, such as counts"
    needs_all_points = "finds its centers, which are no means, on one array in memory"
    takes_sparse = False
    lowest = 0.0
    curvature_at_one: ClassVar[float]
    """The second derivative of f at one: near a center, it is all that matters of f."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not hasattr(cls, "curvature_at_one"):
            raise TypeError(
                f"{cls.__name__} lacks curvature_at_one: say the second derivative of f at one"
            )

    @abc.abstractmethod
    def statistics(self, points: FloatArray) -> FloatArray:
        """Return the numbers of each point whose weighted means tell a center, in any columns."""

    @abc.abstractmethod
    def center(self, means: FloatArray) -> FloatArray:
        """Return the centers of least weighted divergence, given the means, row by row."""
