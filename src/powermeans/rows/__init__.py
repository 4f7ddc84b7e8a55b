"""Where points can live. Each kind is one file with the same few methods (see `protocol`)."""

from __future__ import annotations

import numpy as np

from powermeans.divergences import Divergence
from powermeans.divergences.bregman import Bregman
from powermeans.rows.bregman import BregmanRows
from powermeans.rows.cosine import CosineRows
from powermeans.rows.manhattan import ManhattanRows
from powermeans.rows.native import NativeRows
from powermeans.rows.observed import ObservedRows
from powermeans.rows.protocol import Nearness, Rows
from powermeans.types import FloatArray, Points, SparsePoints

__all__ = ["Nearness", "Rows", "open_batch", "open_rows"]

_ROWS_OF: dict[str, type[NativeRows]] = {
    "squared_euclidean": NativeRows,
    "cosine": CosineRows,
    "manhattan": ManhattanRows,
}


def open_rows(
    points: Points | SparsePoints,
    sample_weight: FloatArray | None = None,
    *,
    n_threads: int | None = None,
    divergence: Divergence = "squared_euclidean",
    has_missing: bool = False,
) -> Rows:
    """The rows for points of this kind: today those in memory, dense or CSR.

    Parameters
    ----------
    points : (n_points, n_features)
        In the domain of the divergence.
    sample_weight : (n_points,), optional
    n_threads : int, optional
    divergence : Bregman or str
        What a distance is, as `powermeans.divergences.resolve` says it.
    has_missing : bool
        Whether NaN stands for entries that are missing, with squared Euclidean distances alone.

    Returns
    -------
    Rows
    """
    if has_missing and isinstance(points, np.ndarray):
        return ObservedRows(points, sample_weight, n_threads=n_threads)
    if isinstance(divergence, Bregman):
        return BregmanRows(points, sample_weight, divergence=divergence, n_threads=n_threads)
    return _ROWS_OF[divergence](points, sample_weight, n_threads=n_threads)


def open_batch(
    points: Points | SparsePoints,
    sample_weight: FloatArray | None = None,
    *,
    n_threads: int | None = None,
    beside: Rows | None = None,
) -> Rows:
    """Rows with squared Euclidean distances that are to be swept but once or twice.

    Parameters
    ----------
    points : (n_points, n_features)
        Dense or CSR.
    sample_weight : (n_points,), optional
    n_threads : int, optional
    beside : Rows, optional
        Others, whose threads these are to use instead of their own.

    Returns
    -------
    Rows
    """
    team = beside.team if isinstance(beside, NativeRows) else None
    rows = NativeRows(points, sample_weight, n_threads=n_threads, team=team)
    rows.expect_few_sweeps()
    return rows
