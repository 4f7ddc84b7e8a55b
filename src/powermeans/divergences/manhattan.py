"""Manhattan distance, the sum of absolute differences, also called L1 or city block."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.spatial.distance import cdist

from powermeans.divergences.chunks import dense_chunks
from powermeans.types import FloatArray, Points


def pairwise(points: Points, centers: FloatArray) -> FloatArray:
    """Compute the distance of every point to every center, y = sum_f |x_f - theta_f|."""
    result = np.empty((len(points), len(centers)))
    for rows, distances in in_chunks(points, centers):
        result[rows] = distances
    return result


def in_chunks(points: Points, centers: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
    """Yield the rows of `pairwise`, some points at a time, each with its slice of points."""
    for rows, chunk in dense_chunks(points, max(points.shape[1], len(centers))):
        yield rows, np.asarray(cdist(chunk, centers, "cityblock"))
