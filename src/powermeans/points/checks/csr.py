"""CSR matrices with valid index arrays in canonical form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from powermeans.types import SparsePoints


def canonical_csr(points: SparsePoints) -> SparsePoints:
    """Return the matrix with sorted indices, no zeros and no entry twice.

    Its indices have 32 bits where these suffice. The user's matrix stays as it is: any change is
    made to a copy.
    """
    # SciPy trusts the index arrays, and reads out of bounds where they are wrong.
    if (fault := _fault_of_csr(points)) is not None:
        raise ValueError(
            f"X is not a valid CSR matrix: {fault}. Build it anew from rows, columns and values, "
            "for example with scipy.sparse.coo_array"
        )
    n_entries = int(points.indptr[-1])
    arrays = points.data[:n_entries], points.indices[:n_entries], points.indptr
    # A matrix remembers that it was canonical even if its arrays have changed; a new one looks.
    fresh = type(points)(arrays, shape=points.shape)
    if not fresh.has_canonical_format or not np.all(fresh.data):
        points = fresh.copy()
        points.sum_duplicates()
        points.eliminate_zeros()
    elif n_entries < max(points.data.size, points.indices.size):
        points = fresh
    index_dtype = sparse.get_index_dtype(maxval=max(points.nnz, points.shape[1]))
    if points.indices.dtype == index_dtype and points.indptr.dtype == index_dtype:
        return points
    indices = points.indices.astype(index_dtype), points.indptr.astype(index_dtype)
    return type(points)((points.data, *indices), shape=points.shape)


def _fault_of_csr(points: SparsePoints) -> str | None:
    """Return why the three arrays are no CSR matrix; None if they are one."""
    (n_points, n_features), indptr, indices = points.shape, points.indptr, points.indices
    n_stored = min(points.data.size, indices.size)
    if indptr.shape != (n_points + 1,):
        return f"indptr has the shape {indptr.shape}, not ({n_points + 1},)"
    if indptr[0] != 0:
        return f"indptr begins with {indptr[0]}, not 0"
    falls = indptr[1:] < indptr[:-1]
    if falls.any():
        row = int(np.argmax(falls))
        return f"indptr falls from {indptr[row]} to {indptr[row + 1]} at row {row}"
    if indptr[-1] > n_stored:
        return f"indptr ends with {indptr[-1]}, but only {n_stored} entries are stored"
    in_rows = indices[: indptr[-1]]
    lowest, highest = in_rows.min(initial=0), in_rows.max(initial=0)
    if lowest < 0 or highest >= max(n_features, 1):
        column = lowest if lowest < 0 else highest
        return f"the column index {column} lies outside its {n_features} columns"
    return None


def stacked(parts: Sequence[Any]) -> Any:
    """Stack arrays or CSR matrices vertically."""
    if len(parts) == 1:
        return parts[0]
    if sparse.issparse(parts[0]):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)
