"""Where points can live. Each kind is one file with the same few methods (see `protocol`)."""

from __future__ import annotations

from powermeans.rows.native import NativeRows
from powermeans.rows.protocol import Nearness, Rows
from powermeans.types import FloatArray, Points, SparsePoints

__all__ = ["Nearness", "Rows", "open_rows"]


def open_rows(
    points: Points | SparsePoints,
    sample_weight: FloatArray | None = None,
    *,
    n_threads: int | None = None,
) -> Rows:
    """The rows for points of this kind: today those in memory, dense or CSR."""
    return NativeRows(points, sample_weight, n_threads=n_threads)
