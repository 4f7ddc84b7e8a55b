"""Squared Euclidean distance, by direct differences: it never cancels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from powermeans.divergences import chunks
from powermeans.types import FloatArray, Points, SparsePoints


def pairwise(points: Points | SparsePoints, centers: FloatArray) -> FloatArray:
    """Compute the squared distance of every point to every center, in float64 or long double."""
    precision = np.result_type(points.dtype, centers.dtype, np.float64)
    result = np.empty((points.shape[0], len(centers)), precision)
    for rows, sq_dist in in_chunks(points, centers):
        result[rows] = sq_dist
    return result


def in_chunks(
    points: Points | SparsePoints, centers: FloatArray
) -> Iterator[tuple[slice, FloatArray]]:
    """Yield the rows of `pairwise`, some points at a time, each with its slice of points."""
    return chunks.in_chunks(points, centers, _sq_distances)


def _sq_distances(points: FloatArray, centers: FloatArray) -> FloatArray:
    difference = points[:, None, :] - centers[None, :, :]
    return np.asarray(np.sum(difference * difference, axis=-1))
