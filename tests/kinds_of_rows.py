"""Every kind of rows, each as a function from dense points and weights. A new kind is one line."""

from __future__ import annotations

from collections.abc import Callable

from scipy import sparse

from powermeans.rows.native import NativeRows
from powermeans.rows.protocol import Rows
from powermeans.rows.twin import TwinRows
from powermeans.types import FloatArray, Points

KINDS: dict[str, Callable[[Points, FloatArray | None], Rows]] = {
    "twin": TwinRows,
    "twin of CSR": lambda points, weights: TwinRows(sparse.csr_array(points), weights),
    "native": lambda points, weights: NativeRows(points, weights, n_threads=2),
    "native of CSR": lambda points, weights: NativeRows(
        sparse.csr_array(points), weights, n_threads=2
    ),
}
