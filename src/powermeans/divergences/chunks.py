"""Chunks of points, so that no array has points times centers times features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from scipy import sparse

from powermeans.types import AnyMatrix, Chunks, FloatArray, SparseMatrix

_CHUNK_ELEMENTS = 2**18


def as_rows(points: Any) -> AnyMatrix:
    """Return sparse points as they are, and others, also lists, as an array."""
    if sparse.issparse(points):
        return cast(SparseMatrix, points)
    return np.asarray(points)


def as_float64(points: AnyMatrix) -> FloatArray:
    """Return dense float64 points."""
    dense = points.toarray() if sparse.issparse(points) else points
    return np.asarray(dense, dtype=np.float64)


def dense_chunks(points: AnyMatrix, elements_per_point: int | None = None) -> Chunks:
    """Yield dense chunks of points, in float64 or wider, each with its slice of the points.

    `elements_per_point` is the size of the result for a point, if larger than the point.
    """
    points = as_rows(points)
    precision = np.result_type(points.dtype, np.float64)
    n_rows = max(1, _CHUNK_ELEMENTS // max(1, elements_per_point or points.shape[1]))
    for start in range(0, points.shape[0], n_rows):
        rows = slice(start, min(start + n_rows, points.shape[0]))
        chunk = points[rows].toarray() if sparse.issparse(points) else points[rows]
        yield rows, chunk.astype(precision, copy=False)


def in_chunks(
    points: AnyMatrix,
    centers: FloatArray,
    distances: Callable[[FloatArray, FloatArray], FloatArray],
) -> Chunks:
    """Yield the distances of all pairs, some points at a time, each with its slice of points."""
    centers = np.asarray(centers)
    for rows, chunk in dense_chunks(points, elements_per_point=centers.size):
        yield rows, distances(chunk, centers)
