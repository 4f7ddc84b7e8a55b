"""Angles between directions: points of unit length, and centers of unit length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from powermeans.divergences import chunks
from powermeans.divergences.base import Divergence, Phi
from powermeans.types import AnyMatrix, Chunks, FloatArray, SparseMatrix


@dataclass(frozen=True)
class Cosine(Divergence):
    """One minus the cosine of the angle, for directions, such as embeddings and texts.

    Only the direction of a point counts. A center is the mean of the directions of its points,
    scaled to unit length.

    See Also
    --------
    SquaredEuclidean : Lengths count, too.

    Examples
    --------
    >>> from powermeans.divergences import Cosine
    >>> Cosine().pairwise([[1.0, 0.0], [2.0, 2.0]], [[0.0, 3.0]]).round(3)
    array([[1.   ],
           [0.293]])
    """

    names = ("cosine",)
    differences = "their length, which means nothing: only the proportions within a row count"
    wanted = "rows with an entry other than zero"
    moves = Phi(length=1.0)
    adds_nothing_for_zeros = True

    def in_chunks(self, points: AnyMatrix, centers: FloatArray) -> Chunks:
        """Yield the rows of `pairwise`, some points at a time, each with its slice of points."""
        return chunks.in_chunks(points, centers, _cosine_distances)

    def check_domain(self, points: AnyMatrix, *, name: str, first_row: int = 0) -> None:
        """Raise on the first point that has no direction."""
        is_zero = largest_of_rows(points) == 0
        if is_zero.any():
            raise ValueError(
                f"{name} has nothing but zeros in row {first_row + int(np.argmax(is_zero))}, "
                'which have no direction for divergence="cosine": leave the row out'
            )

    def in_one_unit(self, centers: FloatArray) -> FloatArray:
        """Return their directions."""
        return np.asarray(directions(centers))

    def from_moved(self, moved: FloatArray, before: FloatArray) -> FloatArray:
        """Return directions; moved means have lengths that tell how much their points agree."""
        return of_unit_length(moved, before)


def of_unit_length(means: FloatArray, fallback: FloatArray) -> FloatArray:
    """Return the means divided by their lengths, or the row of `fallback` where points cancel."""
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    is_lost = lengths < 1e-12
    return np.where(is_lost, fallback, means / np.where(is_lost, 1.0, lengths))


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


def _directions_of_sparse(points: SparseMatrix) -> SparseMatrix:
    scaled = points.copy()
    counts = np.diff(points.indptr)
    # Divide by the largest entries first, so that no square overflows or vanishes.
    for sizes in (largest_of_rows(points), None):
        divisors = row_lengths(scaled) if sizes is None else sizes
        safe = np.repeat(np.where(divisors > 0, divisors, 1.0), counts)
        scaled.data = (scaled.data / safe).astype(points.dtype)
    return scaled


def largest_of_rows(points: AnyMatrix) -> FloatArray:
    """Return the largest magnitude in each point, (n_points,)."""
    if isinstance(points, np.ndarray):
        return np.asarray(np.abs(points).max(axis=1))
    largest = np.zeros(points.shape[0])
    np.maximum.at(
        largest, np.repeat(np.arange(len(largest)), np.diff(points.indptr)), np.abs(points.data)
    )
    return largest


def row_lengths(points: SparseMatrix) -> FloatArray:
    """Return the Euclidean length of each sparse point, (n_points,)."""
    squares = points.copy()
    squares.data = np.square(points.data, dtype=np.float64)
    return np.asarray(np.sqrt(squares.sum(axis=1))).ravel()
