"""Squared Euclidean distance, by direct differences: it never cancels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from powermeans.types import FloatArray, Points, SparsePoints

_CHUNK_ELEMENTS = 2**18


def pairwise(points: Points | SparsePoints, centers: FloatArray) -> FloatArray:
    """Squared distance of every point to every center.

    Parameters
    ----------
    points : (n_points, n_features)
        Dense or CSR.
    centers : (n_centers, n_features)

    Returns
    -------
    (n_points, n_centers)
        In float64, or in long double where points or centers are.
    """
    result = np.empty((points.shape[0], len(centers)), _precision(points, centers))
    for rows, sq_dist in in_chunks(points, centers):
        result[rows] = sq_dist
    return result


def in_chunks(
    points: Points | SparsePoints, centers: FloatArray
) -> Iterator[tuple[slice, FloatArray]]:
    """The rows of `pairwise`, some points at a time, each with the slice of points it is for.

    Parameters
    ----------
    points : (n_points, n_features)
        Dense or CSR.
    centers : (n_centers, n_features)

    Yields
    ------
    (slice, (n_rows, n_centers))
    """
    precision = _precision(points, centers)
    n_rows = max(1, _CHUNK_ELEMENTS // max(1, centers.size))
    for start in range(0, points.shape[0], n_rows):
        rows = slice(start, min(start + n_rows, points.shape[0]))
        chunk = points[rows].toarray() if sparse.issparse(points) else points[rows]
        difference = chunk[:, None, :].astype(precision) - centers[None, :, :]
        yield rows, np.sum(difference * difference, axis=-1)


def _precision(points: Points | SparsePoints, centers: FloatArray) -> np.dtype[np.float64]:
    return np.result_type(points.dtype, centers.dtype, np.float64)
