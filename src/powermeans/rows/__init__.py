"""Points in memory or on a device, one file for each kind, all with the methods of `protocol`.

This room imports `inputs` and the mathematics. Only `native` imports the compiled core, and only
`torch` imports PyTorch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from powermeans.divergences import Divergence
from powermeans.divergences.bregman import Bregman
from powermeans.rows.bregman import BregmanRows
from powermeans.rows.cosine import CosineRows
from powermeans.rows.manhattan import ManhattanRows
from powermeans.rows.native import Known, NativeRows, Team
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
    divergence : Bregman or str
        What a distance is, as `powermeans.divergences.resolve` says it.
    has_missing : bool
        Whether NaN stands for entries that are missing, with squared Euclidean distances alone.
    """
    return _opened(points, sample_weight, divergence, has_missing, n_threads=n_threads)


def open_batch(
    points: Points | SparsePoints,
    sample_weight: FloatArray | None = None,
    *,
    n_threads: int | None = None,
    beside: Rows | None = None,
    team: Team | None = None,
    known: Known | None = None,
    divergence: Divergence = "squared_euclidean",
    has_missing: bool = False,
) -> NativeRows:
    """Rows that are to be swept but once or twice.

    Parameters
    ----------
    points : (n_points, n_features)
        Dense or CSR.
    beside : Rows, optional
        Others, whose threads these are to use instead of their own.
    team : Team, optional
        Threads to use.
    known : Known, optional
        What rows of the same points have as `known`: it need not be found out again.
    divergence, has_missing
        As in `open_rows`.
    """
    if isinstance(beside, NativeRows):
        team = beside.team
    sharing: dict[str, Any] = {"n_threads": n_threads} if team is None else {"team": team}
    if known is not None:
        sharing["known"] = known
    rows = _opened(points, sample_weight, divergence, has_missing, **sharing)
    rows.expect_few_sweeps()
    return rows


def _opened(
    points: Points | SparsePoints,
    sample_weight: FloatArray | None,
    divergence: Divergence,
    has_missing: bool,
    **threads: Any,
) -> NativeRows:
    if has_missing and isinstance(points, np.ndarray):
        return ObservedRows(points, sample_weight, **threads)
    if isinstance(divergence, Bregman):
        return BregmanRows(points, sample_weight, divergence=divergence, **threads)
    return _ROWS_OF[divergence](points, sample_weight, **threads)
