"""Evaluate criteria on rows in parts, by sums over all parts and by samples."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from powermeans import criteria as formulas
from powermeans.choosing_k.evaluate import Sample, Settings, Study, two_nearest
from powermeans.estimators.opening import InParts, OpeningSpec, open_points, opened
from powermeans.inputs.points import exponent_to_square
from powermeans.loop.search import Solution
from powermeans.parts.parted_rows import PartedRows
from powermeans.rows.native import NativeRows
from powermeans.rows.protocol import PartRows
from powermeans.types import FloatArray, IndexArray

_VALUES_AT_ONCE = 2**20
# Float64 holds every integer up to this.
_MOST_COUNTED = 2.0**53
# The criteria that need all points at once.
NOT_IN_PARTS = ("gap",)


@dataclass(frozen=True)
class PartedStudy(Study):
    """A study of rows in parts; `points` and `counts` are empty."""

    rows: PartedRows

    @classmethod
    def of(
        cls,
        rows: PartedRows,
        found: dict[int, Solution],
        settings: Settings,
        has_missing: bool = False,
    ) -> PartedStudy:
        """Make the study of these rows."""
        nothing: Any = np.empty((0, rows.n_features))
        return cls(nothing, np.empty(0), rows, found, settings, has_missing)

    @cached_property
    def n_counted(self) -> float:
        """Add up the weights of all rows."""
        return self.rows.total_weight

    def sample_for(self, name: str, size: int) -> Sample:
        """Return all rows that weigh, or a random sample of this size for a criterion."""
        if self.rows.n_points > size:
            return self.drawn(size, self.settings.rng(name))
        counts = self.rows.sample_weight(np.arange(self.rows.n_points))
        weighing = np.flatnonzero(counts > 0)
        return self.sample_of(weighing, counts[weighing])

    @cached_property
    def _order(self) -> IndexArray | None:
        """Return no order: there are too many rows to sort."""
        return None

    @cached_property
    def widths(self) -> list[tuple[FloatArray, float]]:
        """Return the mean distances from the centers and the simplified silhouette, for each k."""
        centers = [solution.centers for solution in self.found.values()]
        sums = self.rows.executor.total(_SumsOfWidths(centers))
        ends = np.cumsum([len(some) for some in centers])
        return [_mean_widths(*of_k) for of_k in np.split(sums, ends[:-1], axis=1)]


@dataclass(frozen=True, slots=True)
class _SumsOfWidths:
    """Add up counts, distances and silhouettes of a part, for each center of several k."""

    centers: list[FloatArray]

    def __call__(self, rows: PartRows, number: int) -> FloatArray:
        counts = rows.sample_weight(np.arange(rows.n_points))
        return np.hstack([_sums_of_widths(rows, counts, centers) for centers in self.centers])


def _sums_of_widths(rows: PartRows, counts: FloatArray, centers: FloatArray) -> FloatArray:
    """Return sums of counts, distances and silhouettes, (3, n_centers)."""
    labels, nearest, second = two_nearest(_distances(rows, centers), rows.n_points)
    widths = formulas.silhouette_widths(nearest, second, np.ones(len(labels), dtype=bool))
    added_up = (counts, counts * nearest, counts * widths)
    return np.array([np.bincount(labels, values, minlength=len(centers)) for values in added_up])


def _mean_widths(
    counts: FloatArray, distances: FloatArray, silhouettes: FloatArray
) -> tuple[FloatArray, float]:
    means = distances / np.where(counts > 0, counts, 1.0)
    if len(means) == 1:
        return means, math.nan
    # A point alone in its cluster has the silhouette zero.
    return means, float(np.sum(silhouettes[counts > 1]) / np.sum(counts))


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


def counted(X: Any, sample_weight: Any, spec: OpeningSpec) -> tuple[PartedRows, float]:
    """Return rows in parts weighted by counts, and the factor from the weights to the counts."""
    source = opened(X, sample_weight, spec)
    if source.checkpoint is not None:
        raise ValueError(
            "choose_k writes no checkpoint, and X has one: pass open_data without checkpoint"
        )
    rows = _rows(source, spec)
    if rows.total_weight == rows.n_points:
        return rows, 1.0
    unit = unit_of_counts(rows.total_weight, sum(rows.each(_count_weighing)))
    return (rows if unit == 1 else _rows(source.weighing(unit), spec)), unit


def unit_of_counts(total_weight: float, n_weighing: int) -> float:
    """Return the factor that makes counts of copies from weights: one if they can be counts."""
    return 1.0 if n_weighing <= total_weight <= _MOST_COUNTED else n_weighing / total_weight


def _rows(source: Any, spec: OpeningSpec) -> PartedRows:
    data = open_points(source, None, spec)
    assert isinstance(data, InParts), "the source is read part by part"
    if exponent_to_square(data.largest, source.dtype):
        raise ValueError(
            f"X has {data.largest:g}, whose square {source.dtype} does not hold to its last "
            'digits: pass open_data(..., scale="standard") or dtype="float64"'
        )
    return data.rows
