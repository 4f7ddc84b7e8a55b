"""Angles between directions: points of unit length, and centers of unit length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from powermeans.divergences import chunks
from powermeans.types import FloatArray, Points, SparsePoints


def pairwise(points: Points | SparsePoints, centers: FloatArray) -> FloatArray:
    """Compute one minus the cosine of every point to every center, by the definition."""
    return np.concatenate([distances for _, distances in in_chunks(points, centers)])


def in_chunks(
    points: Points | SparsePoints, centers: FloatArray
) -> Iterator[tuple[slice, FloatArray]]:
    """Yield the rows of `pairwise`, some points at a time, each with its slice of points."""
    return chunks.in_chunks(points, centers, _cosine_distances)


def _cosine_distances(points: FloatArray, centers: FloatArray) -> FloatArray:
    # Half the squared difference of unit vectors, which does not cancel.
    difference = directions(points)[:, None, :] - directions(centers)[None, :, :]
    return np.asarray(0.5 * np.sum(difference * difference, axis=-1))


def directions(points: Any) -> Any:
    """Divide points by their lengths, dense or CSR, in their dtype; zeros stay."""
    if not isinstance(points, np.ndarray):
        return _directions_of_sparse(points)
    largest = np.abs(points).max(axis=1, keepdims=True)
    safe = np.where(largest > 0, largest, points.dtype.type(1))
    scaled = points / safe
    lengths = np.sqrt(np.square(scaled, dtype=np.float64).sum(axis=1, keepdims=True))
    scaled /= np.where(lengths > 0, lengths, 1.0).astype(points.dtype)
    return scaled


def _directions_of_sparse(points: SparsePoints) -> SparsePoints:
    scaled = points.copy()
    counts = np.diff(points.indptr)
    # Divide by the largest entries first, so that no square overflows or vanishes.
    for sizes in (largest_of_rows(points), None):
        divisors = row_lengths(scaled) if sizes is None else sizes
        safe = np.repeat(np.where(divisors > 0, divisors, 1.0), counts)
        scaled.data = (scaled.data / safe).astype(points.dtype)
    return scaled


def largest_of_rows(points: Points | SparsePoints) -> FloatArray:
    """Return the largest magnitude in each point, (n_points,)."""
    if isinstance(points, np.ndarray):
        return np.asarray(np.abs(points).max(axis=1))
    largest = np.zeros(points.shape[0])
    np.maximum.at(
        largest, np.repeat(np.arange(len(largest)), np.diff(points.indptr)), np.abs(points.data)
    )
    return largest


def row_lengths(points: SparsePoints) -> FloatArray:
    """Return the Euclidean length of each sparse point, (n_points,)."""
    squares = points.copy()
    squares.data = np.square(points.data, dtype=np.float64)
    return np.asarray(np.sqrt(squares.sum(axis=1))).ravel()
