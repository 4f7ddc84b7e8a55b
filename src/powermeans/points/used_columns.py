"""Columns of sparse points that have entries; a fit leaves out the others, which are zero."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse

from powermeans.divergences import Divergence
from powermeans.mathematics.arguments import real_numbers
from powermeans.types import AnyMatrix, FloatArray, IndexArray, SparseMatrix


@dataclass(frozen=True, slots=True, eq=False)
class UsedColumns:
    """The columns that a fit works on; in all others, points and centers are zero."""

    indices: IndexArray  # rising
    n_columns: int  # of the points, with those that are left out

    @classmethod
    def of(cls, points: AnyMatrix, divergence: Divergence, init: Any = None) -> Self | None:
        """Return the columns in which points or initial centers have entries, or None for all.

        All columns are used unless most are empty and add nothing to the divergence.
        """
        n_columns = points.shape[1]
        # With fewer columns, or a larger share of them in use, a fit gains little or loses time.
        if not sparse.issparse(points) or n_columns < 4096:
            return None
        if not divergence.adds_nothing_for_zeros:
            return None
        is_used = _has_entry(init, n_columns)
        is_used[points.indices] = True
        indices = np.flatnonzero(is_used)
        if not 0 < len(indices) <= 0.5 * n_columns:
            return None
        return cls(indices, n_columns)

    def of_points(self, points: Any) -> SparseMatrix:
        """Return these columns of sparse points; the values are not copied."""
        place = np.zeros(self.n_columns, dtype=points.indices.dtype)
        place[self.indices] = np.arange(len(self.indices))
        shape = points.shape[0], len(self.indices)
        narrow: SparseMatrix = type(points)(
            (points.data, place[points.indices], points.indptr), shape=shape
        )
        return narrow

    def of_centers(self, centers: FloatArray) -> FloatArray:
        """Return these columns of the centers."""
        return np.ascontiguousarray(centers[:, self.indices])

    def all_of(self, centers: Any) -> Any:
        """Return centers with all columns, in their dtype."""
        every = np.zeros((len(centers), self.n_columns), dtype=centers.dtype)
        every[:, self.indices] = centers
        return every


def _has_entry(init: Any, n_columns: int) -> Any:
    """Return which columns of initial centers have an entry; none unless they fit the points."""
    if init is not None and not isinstance(init, str) and not callable(init):
        given = real_numbers(init, "init")
        if given.ndim == 2 and given.shape[1] == n_columns:
            return (given != 0).any(axis=0)
    return np.zeros(n_columns, dtype=bool)
