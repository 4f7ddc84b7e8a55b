"""CSR matrices with valid index arrays in canonical form."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from powermeans.types import SparseMatrix


def canonical_csr(points: SparseMatrix) -> SparseMatrix:
    """Return the matrix, or a copy, with sorted narrow indices, no zeros and no entry twice."""
    # SciPy trusts the index arrays, and reads out of bounds where they are wrong.
    if not _is_csr(points):
        raise ValueError(
            "X is not a valid CSR matrix, since its indptr or its indices lead beyond its entries "
            "or its columns: build it anew from rows, columns and values, for example with "
            "scipy.sparse.coo_array"
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


def _is_csr(points: SparseMatrix) -> bool:
    """Return whether no index leads out of the three arrays."""
    (n_points, n_features), indptr = points.shape, points.indptr
    if indptr.shape != (n_points + 1,) or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        return False
    in_rows = points.indices[: indptr[-1]]
    are_columns = in_rows.min(initial=0) >= 0 and in_rows.max(initial=0) < max(n_features, 1)
    return bool(are_columns and indptr[-1] <= min(points.data.size, points.indices.size))


def stacked(parts: Sequence[Any]) -> Any:
    """Stack arrays or CSR matrices vertically."""
    if len(parts) == 1:
        return parts[0]
    if sparse.issparse(parts[0]):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)
