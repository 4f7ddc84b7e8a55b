"""Manhattan distance, the sum of absolute differences, also called L1 or city block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from powermeans.divergences.base import Divergence
from powermeans.divergences.chunks import dense_chunks
from powermeans.types import AnyMatrix, Chunks, FloatArray


@dataclass(frozen=True)
class Manhattan(Divergence):
    """The sum of absolute differences, for numbers with outliers in single features.

    It is the sum of ``|x - theta|``. A center has the median of its points in each feature.

    See Also
    --------
    SquaredEuclidean : Means, to which outliers matter more.

    Examples
    --------
    >>> from powermeans.divergences import Manhattan
    >>> Manhattan().pairwise([[0.0, 0.0]], [[3.0, 4.0]])
    array([[7.]])
    """

    names = ("manhattan",)
    differences = "little most of the time, but greatly now and then, in one column or another"
    needs_all_points = "has medians for centers, and medians of parts do not add up"
    takes_sparse = False
    depends_on_scale = True

    def in_chunks(self, points: AnyMatrix, centers: FloatArray) -> Chunks:
        """Yield the rows of `pairwise`, some points at a time, each with its slice of points."""
        for rows, chunk in dense_chunks(points, max(points.shape[1], len(centers))):
            yield rows, np.asarray(cdist(chunk, centers, "cityblock"))
