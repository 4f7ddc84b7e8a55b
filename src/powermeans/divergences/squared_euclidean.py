"""Squared Euclidean distance, by direct differences: it never cancels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from powermeans.divergences import chunks
from powermeans.divergences.base import Divergence, Phi
from powermeans.types import AnyMatrix, Chunks, FloatArray


@dataclass(frozen=True)
class SquaredEuclidean(Divergence):
    """The squared distance, for numbers that vary by the same amount everywhere.

    It is the sum of (x - theta)^2. A center is the mean of its points.

    See Also
    --------
    Mahalanobis : Features that are correlated, or in different units.

    Examples
    --------
    >>> from powermeans.divergences import SquaredEuclidean
    >>> SquaredEuclidean().pairwise([[0.0, 0.0]], [[3.0, 4.0]])
    array([[25.]])
    """

    names = ("squared_euclidean",)
    differences = "the same amount for large and small values"
    moves = Phi(square=1.0)
    adds_nothing_for_zeros = True
    takes_missing = True
    depends_on_scale = True
    is_squared = True

    def in_chunks(self, points: AnyMatrix, centers: FloatArray) -> Chunks:
        """Yield the rows of `pairwise`, some points at a time, each with its slice of points."""
        return chunks.in_chunks(points, centers, _sq_distances)


def _sq_distances(points: FloatArray, centers: FloatArray) -> FloatArray:
    difference = points[:, None, :] - centers[None, :, :]
    return np.asarray(np.sum(difference * difference, axis=-1))
