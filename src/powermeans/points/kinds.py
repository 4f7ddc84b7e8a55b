"""Choose the kind of points in memory: one file for each, all with the methods of `protocol`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from powermeans.divergences import Divergence
from powermeans.divergences.bregman import Bregman
from powermeans.points.bregman import open_bregman
from powermeans.points.compiled import CompiledRows, Known, Team
from powermeans.points.cosine import CosineRows
from powermeans.points.euclidean import EuclideanRows
from powermeans.points.manhattan import ManhattanRows
from powermeans.points.observed import ObservedRows
from powermeans.points.protocol import Rows
from powermeans.types import FloatArray, Points, SparsePoints

_ROWS_OF: dict[str, Callable[..., CompiledRows]] = {
    "squared_euclidean": EuclideanRows,
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
    n_columns: int | None = None,
) -> Rows:
    """Open valid points in memory; with `has_missing`, NaN stands for a missing entry.

    Missing entries need squared Euclidean distances. `n_columns` counts columns of zeros that were
    left out of sparse points.
    """
    options: dict[str, Any] = {} if n_columns is None else {"n_columns": n_columns}
    return _open(points, sample_weight, divergence, has_missing, n_threads=n_threads, **options)


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
) -> CompiledRows:
    """Open points as `open_rows` does, for only a sweep or two.

    The rows share the threads of `team`, or of the rows `beside` them.
    """
    if isinstance(beside, CompiledRows):
        team = beside.team
    options: dict[str, Any] = {"n_threads": n_threads} if team is None else {"team": team}
    if known is not None:
        options["known"] = known
    rows = _open(points, sample_weight, divergence, has_missing, **options)
    rows.expect_few_sweeps()
    return rows


def _open(
    points: Points | SparsePoints,
    sample_weight: FloatArray | None,
    divergence: Divergence,
    has_missing: bool,
    **options: Any,
) -> CompiledRows:
    if has_missing and isinstance(points, np.ndarray):
        return ObservedRows(points, sample_weight, **options)
    if isinstance(divergence, Bregman):
        return open_bregman(points, sample_weight, divergence=divergence, **options)
    return _ROWS_OF[divergence](points, sample_weight, **options)
