"""Warnings about data and clusters that should not be trusted as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from powermeans.engine.seeds.orders import row_keys
from powermeans.errors import some
from powermeans.explaining.summaries import ClusterSummary
from powermeans.types import FloatArray, SparsePoints


def warnings_on(
    points: FloatArray | SparsePoints, summaries: Sequence[ClusterSummary]
) -> Iterator[str]:
    """Yield what may be wrong with finite points and their clusters."""
    mean_size = sum(one.size for one in summaries) / len(summaries)
    if tiny := [str(one.label) for one in summaries if 0 < one.size < 0.1 * mean_size]:
        yield (
            f"clusters with less than a tenth of the mean size: {some(tiny)}: they may be outliers."
        )
    n_copies, n_points = count_copies(points), points.shape[0]
    if n_copies and n_copies >= 0.01 * n_points:
        yield (
            f"{n_copies:,} of {n_points:,} rows ({100 * n_copies / n_points:.0f} %) are copies of "
            "others in all columns used. Each counts; drop them if they are mistakes, or keep one "
            "of each with a weight."
        )


def count_copies(points: FloatArray | SparsePoints) -> int:
    """Count the rows that equal an earlier one, by a key of 64 bits for each row."""
    keys = row_keys(points, np.random.RandomState(0))
    return len(keys) - len(np.unique(keys))
