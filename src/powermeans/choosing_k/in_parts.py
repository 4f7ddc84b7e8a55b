"""What criteria use if rows are in parts: sums over all parts, and samples."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from powermeans import criteria as formulas
from powermeans.choosing_k.evaluate import Sample, Study, two_nearest
from powermeans.errors import ArgumentError
from powermeans.inputs.checks import PartFacts, exponent_to_square
from powermeans.parts.executors import Executor, MemoryExecutor, PartOpener, ReadingExecutor
from powermeans.parts.parted_rows import PartedRows
from powermeans.rows.native import NativeRows
from powermeans.rows.protocol import PartRows
from powermeans.seeds.samples import distinct_places
from powermeans.sources import PartedData, is_dask
from powermeans.sources.block import Block, Source
from powermeans.sources.partition import Admission
from powermeans.system.timer import Tell
from powermeans.types import FloatArray, IndexArray

_VALUES_AT_ONCE = 2**20
# The criteria that need all points at once.
NOT_IN_PARTS = ("gap",)


@dataclass(frozen=True)
class PartedStudy(Study):
    """The same of rows in parts; `points` and `counts` are empty."""

    rows: PartedRows

    @classmethod
    def of(cls, rows: PartedRows, *more: Any) -> PartedStudy:
        """Make the study of these rows."""
        nothing: Any = np.empty((0, rows.n_features))
        return cls(nothing, np.empty(0), rows, *more)

    @cached_property
    def n_counted(self) -> float:
        """Add up the weights of all rows."""
        return self.rows.total_weight

    @cached_property
    def sample(self) -> Sample:
        """Return the rows to compare in pairs: all, or a random sample."""
        size = self.settings.silhouette_size
        if self.rows.n_points > size:
            return self.drawn(size, self.settings.rng("silhouette"))
        counts = self.rows.sample_weight(np.arange(self.rows.n_points))
        weighing = np.flatnonzero(counts > 0)
        return self.sample_of(weighing, counts[weighing])

    @cached_property
    def _order(self) -> IndexArray | None:
        """Return no order, since there are too many rows."""
        return None

    @cached_property
    def widths(self) -> list[tuple[FloatArray, float]]:
        """Return the mean distances from the centers and the simplified silhouette, for each k."""
        centers = [solution.centers for solution in self.found.values()]
        sums: _WidthSums = self.rows.executor.total(_Widths(centers))
        return [of_size.means() for of_size in sums.by_size]


@dataclass(frozen=True, slots=True)
class _OfSize:
    """Sums of counts, distances and silhouettes over the points of each center."""

    counts: FloatArray
    distances: FloatArray
    silhouettes: FloatArray

    def __add__(self, other: _OfSize) -> _OfSize:
        return _OfSize(
            self.counts + other.counts,
            self.distances + other.distances,
            self.silhouettes + other.silhouettes,
        )

    def means(self) -> tuple[FloatArray, float]:
        """Return the mean distances and the mean silhouette."""
        means = self.distances / np.where(self.counts > 0, self.counts, 1.0)
        if len(means) == 1:
            return means, math.nan
        # The silhouette of a point that is alone in its cluster is zero.
        width = float(np.sum(self.silhouettes[self.counts > 1]) / np.sum(self.counts))
        return means, width


@dataclass(frozen=True, slots=True)
class _WidthSums:
    by_size: list[_OfSize]

    def __add__(self, other: _WidthSums) -> _WidthSums:
        pairs = zip(self.by_size, other.by_size, strict=True)
        return _WidthSums([one + more for one, more in pairs])


@dataclass(frozen=True, slots=True)
class _Widths:
    """The sums that a part returns for the centers of several k."""

    by_size: list[FloatArray]

    def __call__(self, rows: PartRows, number: int) -> _WidthSums:
        counts = rows.sample_weight(np.arange(rows.n_points))
        return _WidthSums([_widths_of(rows, counts, centers) for centers in self.by_size])


def _widths_of(rows: PartRows, counts: FloatArray, centers: FloatArray) -> _OfSize:
    n_centers = len(centers)
    labels, nearest, second = two_nearest(_distances(rows, centers), rows.n_points)
    widths = formulas.silhouette_widths(nearest, second, np.ones(len(labels), dtype=bool))
    in_cluster, distances, silhouettes = (
        np.bincount(labels, values, minlength=n_centers).astype(np.float64)
        for values in (counts, counts * nearest, counts * widths)
    )
    return _OfSize(in_cluster, distances, silhouettes)


def _distances(rows: PartRows, centers: FloatArray) -> Iterator[tuple[slice, Any]]:
    step = max(1, _VALUES_AT_ONCE // max(len(centers), rows.n_features))
    if rows.n_points <= step:
        yield slice(None), rows.sq_distances(centers)
        return
    assert isinstance(rows, NativeRows), "studies are the compiled core's"
    for start in range(0, rows.n_points, step):
        block = np.arange(start, min(start + step, rows.n_points))
        some = type(rows)(rows.sample(block), team=rows.team)
        yield slice(start, start + step), some.sq_distances(centers)


def _count_weighing(rows: PartRows, number: int) -> int:
    return int(np.count_nonzero(rows.sample_weight(np.arange(rows.n_points))))


@dataclass(frozen=True, slots=True)
class _Counted:
    """A source whose weights are so many times as large."""

    source: Source
    unit: float

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)

    def blocks(self, first_row: int = 0, at_once: int | None = None) -> Iterator[Block]:
        for block in self.source.blocks(first_row, at_once):
            assert block.weights is not None
            yield replace(block, weights=block.weights * self.unit)


def opened(
    data: Any,
    n_clusters: int,
    *,
    has_missing: bool,
    n_threads: int | None,
    most_counted: float,
    tell: Tell | None = None,
) -> tuple[PartedRows, float]:
    """Rows whose weights are counts of copies, and what the weights were multiplied by.

    Parameters
    ----------
    n_clusters : int
        How many distinct rows there must be.
    most_counted : float
        No sum of weights above this is one of counts.
    tell : callable, optional
        Told how far each pass over all parts is.
    """
    opener, how = PartOpener(has_missing=has_missing), _How(n_clusters, n_threads, tell)
    rows, unit = _rows(data, opener, how), 1.0
    if rows.total_weight != rows.n_points:
        n_weighing = sum(rows.each(_count_weighing))
        if not n_weighing <= rows.total_weight <= most_counted:
            unit = n_weighing / rows.total_weight
            counted = data.weighing(unit) if is_dask(data) else _counted(data, unit)
            rows = _rows(counted, opener, how)
    places = distinct_places(rows, n_clusters, np.random.RandomState(0))
    n_distinct = len(np.unique(places, axis=0))
    if n_distinct < n_clusters:
        raise ArgumentError(
            f"is more than the {n_distinct} distinct rows with a weight",
            f"pass values of k up to {n_distinct}",
            argument="k",
            value=n_clusters,
        )
    return rows, unit


def _counted(data: PartedData, unit: float) -> PartedData:
    source: Any = _Counted(data.source, unit)
    counted = PartedData(source, data.rows_per_part, data.scaling)
    counted.is_in_memory = data.is_in_memory
    return counted


@dataclass(frozen=True, slots=True)
class _How:
    """How rows are opened for a study."""

    n_clusters: int
    n_threads: int | None
    tell: Tell | None


def _rows(data: Any, opener: PartOpener, how: _How) -> PartedRows:
    find = _rows_on_dask if is_dask(data) else _rows_in_turn
    rows, facts = find(data, opener, how)
    largest = 0.0 if facts is None else facts.largest
    if exponent_to_square(largest, data.dtype):
        raise ValueError(
            f"X has {largest:g}, whose square {data.dtype} does not hold to its last digits: pass "
            'open_data(..., scale="standard") or dtype="float64"'
        )
    return rows


def _rows_on_dask(data: Any, opener: PartOpener, how: _How) -> tuple[PartedRows, PartFacts]:
    from powermeans.parts.dask import DaskExecutor

    executor = DaskExecutor(data, opener, n_threads=how.n_threads, tell=how.tell)
    executor.check(how.n_clusters)
    return PartedRows(executor), executor.facts


def _rows_in_turn(
    data: PartedData, opener: PartOpener, how: _How
) -> tuple[PartedRows, PartFacts | None]:
    partition = data.partition(Admission(has_missing=opener.has_missing))
    executor: Executor = (
        MemoryExecutor(partition.read(), opener, n_threads=how.n_threads, tell=how.tell)
        if data.is_in_memory
        else ReadingExecutor(partition, opener, n_threads=how.n_threads, tell=how.tell)
    )
    rows = PartedRows(executor)
    _ = rows.n_points  # the first pass, in which every row is checked
    partition.check(how.n_clusters)
    return rows, partition.facts
