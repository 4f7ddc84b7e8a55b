"""Some points at a time, so that no array is as large as points times centers times features."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy import sparse

from powermeans.types import FloatArray, Points, SparsePoints

_CHUNK_ELEMENTS = 2**18


def dense_chunks(
    points: Points | SparsePoints, elements_per_point: int | None = None
) -> Iterator[tuple[slice, FloatArray]]:
    """Some points at a time, dense, in float64 or wider, each with the slice of points.

    Parameters
    ----------
    points : (n_points, n_features)
        Dense or CSR.
    elements_per_point : int, optional
        How large the arrays are that are made of a point, where they are larger than it.
    """
    precision = np.result_type(points.dtype, np.float64)
    n_rows = max(1, _CHUNK_ELEMENTS // max(1, elements_per_point or points.shape[1]))
    for start in range(0, points.shape[0], n_rows):
        rows = slice(start, min(start + n_rows, points.shape[0]))
        chunk = points[rows].toarray() if sparse.issparse(points) else points[rows]
        yield rows, chunk.astype(precision, copy=False)


def in_chunks(
    points: Points | SparsePoints,
    centers: FloatArray,
    distances: Callable[[FloatArray, FloatArray], FloatArray],
) -> Iterator[tuple[slice, FloatArray]]:
    """Distances of all pairs, some points at a time, each with the slice of points it is for.

    Parameters
    ----------
    points : (n_points, n_features)
        Dense or CSR.
    distances : callable
        From some points and the centers to their distances.
    """
    for rows, chunk in dense_chunks(points, elements_per_point=centers.size):
        yield rows, distances(chunk, centers)
