"""Warnings about data and clusters that should not be trusted as they are."""

from __future__ import annotations

import numpy as np

from powermeans.app.report.summaries import ClusterSummary, Columns
from powermeans.app.report.text import some
from powermeans.engine.seeds.orders import row_keys
from powermeans.points.checks.points import unlike_scales
from powermeans.types import FloatArray, Labels, SparsePoints


def find_warnings(
    points: FloatArray | SparsePoints,
    labels: Labels,
    columns: Columns,
    summaries: list[ClusterSummary],
) -> dict[str, str]:
    """Return the kinds of problems of finite points and their summaries, most serious first.

    With each kind comes a text on what is wrong, and the way out.
    """
    mean_size = sum(one.size for one in summaries) / len(summaries)
    empty = [one.label for one in summaries if one.size == 0]
    tiny = [one.label for one in summaries if 0 < one.size < 0.1 * mean_size]
    constant = [f"“{columns.names[f]}”" for f in np.flatnonzero(columns.are_constant())]
    found = {
        "scales": _of_scales(points, columns),
        "empty": empty and f"{_clusters(empty)} no points: ask for fewer clusters.",
        "k too large": _of_touching(points, labels, summaries),
        "tiny": tiny
        and f"{_clusters(tiny)} very few points (less than a tenth of the mean size): they may be "
        "outliers rather than clusters.",
        "duplicates": _of_duplicates(points),
        "constant": constant and f"The same in all rows, and so of no use: {some(constant)}.",
    }
    return {kind: str(text) for kind, text in found.items() if text}


def _of_scales(points: FloatArray | SparsePoints, columns: Columns) -> str:
    found = unlike_scales(points)
    if found is None:
        return ""
    return (
        f"The columns have very different scales: “{columns.names[found.widest]}” varies "
        f"{found.times} times as much as “{columns.names[found.narrowest]}”, which hardly counts "
        "in the distances. Scale the columns first, for example with "
        "sklearn.preprocessing.StandardScaler."
    )


def _of_touching(
    points: FloatArray | SparsePoints, labels: Labels, summaries: list[ClusterSummary]
) -> str:
    """Warn of nearest clusters without a gap between them: many mean that k is too large."""
    pairs = {
        (min(one.label, one.nearest), max(one.label, one.nearest))
        for one in summaries
        if one.nearest is not None and one.size > 0
    }
    touching = [
        pair
        for pair in sorted(pairs)
        if not _are_apart(points, labels, summaries[pair[0]], summaries[pair[1]])
    ]
    if not touching:
        return ""
    named = some([f"{one} and {other}" for one, other in touching])
    return (
        f"There is no gap between the clusters {named}: each pair may be one group cut in "
        "two. Fewer clusters may describe the points as well; see choose_k."
    )


def _are_apart(
    points: FloatArray | SparsePoints, labels: Labels, one: ClusterSummary, other: ClusterSummary
) -> bool:
    if min(one.size, other.size) < 3:
        return True
    first, second = along_the_line(points, labels, one, other)
    # Means of two halves of a Gaussian are 1.33 times the sum of their deviations apart, those of a
    # uniform block 1.73 times.
    return bool(2 * (first.std() + second.std()) < 1.0)


def along_the_line(
    points: FloatArray | SparsePoints, labels: Labels, one: ClusterSummary, other: ClusterSummary
) -> tuple[FloatArray, FloatArray]:
    """Project the points of two clusters to the line through their means, which are 0 and 1."""
    way = other.mean - one.mean
    unit = way / max(float(way @ way), np.finfo(np.float64).tiny)
    from_one, from_other = (
        np.asarray((points[labels == cluster.label] @ unit) - one.mean @ unit)
        for cluster in (one, other)
    )
    return from_one, from_other


def _of_duplicates(points: FloatArray | SparsePoints) -> str:
    n_copies, n_points = count_copies(points), points.shape[0]
    if n_copies == 0 or n_copies < 0.01 * n_points:
        return ""
    return (
        f"{n_copies:,} of {n_points:,} rows ({n_copies / n_points:.0%}) are copies of others in "
        "all columns used. Each counts; drop them if they are mistakes, or keep one of each with a "
        "weight."
    )


def count_copies(points: FloatArray | SparsePoints) -> int:
    """Count the rows that equal an earlier one, by a key of 64 bits for each row."""
    keys = row_keys(points, np.random.RandomState(0))
    return len(keys) - len(np.unique(keys))


def _clusters(labels: list[int]) -> str:
    return (
        f"Cluster {labels[0]} has"
        if len(labels) == 1
        else f"Clusters {some([*map(str, labels)])} have"
    )
