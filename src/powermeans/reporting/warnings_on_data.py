"""What may be wrong with data or with clusters, said before somebody trusts them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from powermeans.reporting.summaries import ClusterSummary, Columns, along_the_line
from powermeans.types import FloatArray, Labels, SparsePoints

# A cluster is tiny when it has less than this part of the mean size.
_TINY = 0.1
# Clusters touch when their means are nearer than this many times the sum of their deviations along
# the line between them. Two halves of a Gaussian have 1.33, of a uniform block 1.73.
_APART = 2.0
_LEAST_DUPLICATES = 0.01
_MOST_RATIO_OF_SCALES = 100.0
_MOST_DIGITS = 1e9
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Caution:
    """One thing to look at.

    Attributes
    ----------
    kind : str
        For programs.
    text : str
        For people: what it is, and what to do about it.
    """

    kind: str
    text: str


def cautions(
    points: FloatArray | SparsePoints,
    labels: Labels,
    columns: Columns,
    summaries: list[ClusterSummary],
) -> list[Caution]:
    """Everything that seems wrong, the most serious first.

    Parameters
    ----------
    points : (n_points, n_features)
        Dense or CSR, finite.
    columns, summaries
        As from `summarize`.
    """
    return [
        *_of_scales(columns),
        *_of_empty(summaries),
        *_of_touching(points, labels, summaries),
        *_of_tiny(summaries),
        *_of_duplicates(points),
        *_of_constants(columns),
    ]


def _of_scales(columns: Columns) -> list[Caution]:
    found = unlike_scales(columns)
    if found is None:
        return []
    widest, narrowest, times = found
    text = (
        f"The columns have very different scales: “{widest}” varies {times} "
        f"times as much as “{narrowest}”, which hardly counts in the distances. "
        "Scale the columns first, for example with sklearn.preprocessing.StandardScaler."
    )
    return [Caution("scales", text)]


def unlike_scales(columns: Columns) -> tuple[str, str, str] | None:
    """The widest column, the narrowest, and how many times as much the one varies.

    Parameters
    ----------
    columns : Columns
        As from `summarize`.

    Returns
    -------
    tuple of str, or None
        None where they differ by less than a hundred times. What does not vary is no column here.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans.reporting.summaries import Columns
    >>> means, deviations = np.array([5.0, 0.0, 0.1]), np.array([3000.0, 2.0, 1e-17])
    >>> unlike_scales(Columns(["grams", "litres", "always 0.1"], means, deviations))
    ('grams', 'litres', '1,500')
    """
    deviations = np.where(columns.are_constant(), np.nan, columns.deviations)
    if np.isnan(deviations).all():
        return None
    widest, narrowest = int(np.nanargmax(deviations)), int(np.nanargmin(deviations))
    with np.errstate(over="ignore"):
        ratio = float(deviations[widest] / deviations[narrowest])
    if ratio <= _MOST_RATIO_OF_SCALES:
        return None
    times = f"{ratio:,.0f}" if ratio < _MOST_DIGITS else f"{ratio:.0e}"
    return columns.names[widest], columns.names[narrowest], times


def _of_empty(summaries: list[ClusterSummary]) -> list[Caution]:
    empty = [one.label for one in summaries if one.size == 0]
    if not empty:
        return []
    text = f"{_clusters(empty)} no points: ask for fewer clusters."
    return [Caution("empty", text)]


def _of_tiny(summaries: list[ClusterSummary]) -> list[Caution]:
    least = _TINY * sum(one.size for one in summaries) / len(summaries)
    tiny = [one.label for one in summaries if 0 < one.size < least]
    if not tiny:
        return []
    text = (
        f"{_clusters(tiny)} very few points (less than a tenth of the mean size): they may be "
        "outliers rather than clusters."
    )
    return [Caution("tiny", text)]


def _of_touching(
    points: FloatArray | SparsePoints, labels: Labels, summaries: list[ClusterSummary]
) -> list[Caution]:
    """Neighbours between which there is no gap; of many, k is too large."""
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
        return []
    named = ", ".join(f"{one} and {other}" for one, other in touching[:_MOST_NAMED])
    more = f" and {len(touching) - _MOST_NAMED} more pairs" * (len(touching) > _MOST_NAMED)
    text = (
        f"There is no gap between the clusters {named}{more}: each pair may be one group cut in "
        "two. Fewer clusters may describe the points as well; see choose_k."
    )
    return [Caution("k too large", text)]


def _are_apart(
    points: FloatArray | SparsePoints, labels: Labels, one: ClusterSummary, other: ClusterSummary
) -> bool:
    if min(one.size, other.size) < 3:
        return True
    first, second = along_the_line(points, labels, one, other)
    return bool(_APART * (first.std() + second.std()) < 1.0)


def _of_duplicates(points: FloatArray | SparsePoints) -> list[Caution]:
    n_copies = count_copies(points)
    n_points = points.shape[0]
    if n_copies == 0 or n_copies < _LEAST_DUPLICATES * n_points:
        return []
    text = (
        f"{n_copies:,} of {n_points:,} rows ({n_copies / n_points:.0%}) are copies of others. Each "
        "counts; drop them if they are mistakes, or pass them once with a sample_weight."
    )
    return [Caution("duplicates", text)]


def _of_constants(columns: Columns) -> list[Caution]:
    constant = [
        name for name, is_so in zip(columns.names, columns.are_constant(), strict=True) if is_so
    ]
    if not constant:
        return []
    named = ", ".join(f"“{name}”" for name in constant[:_MOST_NAMED])
    more = f" and {len(constant) - _MOST_NAMED} more" * (len(constant) > _MOST_NAMED)
    return [Caution("constant", f"The same in all rows, and so of no use: {named}{more}.")]


def count_copies(points: FloatArray | SparsePoints) -> int:
    """How many rows are equal to one before them, by a hash of 64 bits of each row."""
    if sparse.issparse(points):
        bits = _mixed(points.data.view(np.uint64) ^ _mixed(points.indices.astype(np.uint64)))
        running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(bits, dtype=np.uint64)])
        hashes = running[points.indptr[1:]] - running[points.indptr[:-1]]
    else:
        salts = _mixed(np.arange(points.shape[1], dtype=np.uint64))
        hashes = np.zeros(len(points), np.uint64)
        for column, salt in zip(points.T, salts, strict=True):
            hashes += _mixed((column + 0.0).view(np.uint64) ^ salt)  # -0.0 is 0.0
    return int(len(hashes) - len(np.unique(hashes)))


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Every bit depends on every bit: the finaliser of SplitMix64 (Steele, Lea & Flood 2014)."""
    mixed = bits + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _clusters(labels: list[int]) -> str:
    named = ", ".join(map(str, labels[:_MOST_NAMED]))
    more = f" and {len(labels) - _MOST_NAMED} more" * (len(labels) > _MOST_NAMED)
    return f"Cluster {named} has" if len(labels) == 1 else f"Clusters {named}{more} have"
