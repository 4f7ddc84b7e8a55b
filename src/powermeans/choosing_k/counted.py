"""Points whose weights are numbers of copies, in memory or in parts, for the search over k."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from powermeans.engine.anneal import Callback
from powermeans.engine.search import Solution
from powermeans.engine.seeds.orders import order_by_place
from powermeans.engine.seeds.samples import distinct_places
from powermeans.errors import ArgumentError
from powermeans.points.checks.points import Admitted, divide_by_power_of_two, exponent_to_square
from powermeans.points.opening import (
    InParts,
    OpeningSpec,
    admit_array,
    open_array,
    open_points,
    opened,
)
from powermeans.points.protocol import PartRows, Rows
from powermeans.points.used_columns import UsedColumns
from powermeans.scale.kinds import Kind, kind_of
from powermeans.scale.parted_rows import PartedRows
from powermeans.types import FloatArray

_IN_PARTS = (Kind.PARTS, Kind.DASK)
# Float64 has every integer up to this.
_MOST_COUNTED = 2.0**53


@dataclass(frozen=True, slots=True)
class CountedPoints:
    """Points divided by a power of two, so that squares fit float32, weighted by counts of copies.

    Weights become shares of the number of their points if they add up to less than that number, or
    to more than float64 counts.
    """

    rows: Rows
    n_weighing: int  # points with a weight; all points where they are in parts
    exponent: int
    unit: float
    columns: UsedColumns | None = None  # None for all

    @classmethod
    def of(cls, X: Any, sample_weight: Any, spec: OpeningSpec) -> Self:
        """Open the points, wherever they are, if there are as many distinct ones as needed."""
        if kind_of(X) in _IN_PARTS:
            return cls._of_parts(X, sample_weight, spec)
        return cls._in_memory(admit_array(X, sample_weight, spec), spec)

    @classmethod
    def _in_memory(cls, data: Admitted, spec: OpeningSpec) -> Self:
        exponent = exponent_to_square(data.largest, data.points.dtype)
        points = divide_by_power_of_two(data.points, exponent)
        columns = UsedColumns.of(points, spec.divergence)
        if columns is not None:
            points = columns.of_points(points)
            spec = replace(spec, n_columns=columns.n_columns)
        weights = np.ones(points.shape[0]) if data.weights is None else data.weights
        n_weighing = int(np.count_nonzero(weights))
        unit = _unit_of_counts(float(weights.sum()), n_weighing)
        rows = open_array(points, None if data.weights is None else weights * unit, spec)
        order, key = order_by_place(rows, np.random.RandomState(0))
        _check_distinct(key[rows.sample_weight(order) > 0], spec.n_needed)
        return cls(rows, n_weighing, exponent, unit, columns)

    @classmethod
    def _of_parts(cls, X: Any, sample_weight: Any, spec: OpeningSpec) -> Self:
        rows, unit = _counted_parts(X, sample_weight, spec)
        places = distinct_places(rows, spec.n_needed, np.random.RandomState(0))
        _check_distinct(places, spec.n_needed)
        return cls(rows, rows.n_points, 0, unit)

    def inertias(self, counted: FloatArray) -> FloatArray:
        """Return inertias in the units of the user."""
        return np.ldexp(counted, 2 * self.exponent) / self.unit

    def centers(self, found: dict[int, Solution]) -> dict[int, FloatArray]:
        """Return centers in the units of the user, with all columns."""
        scaled = {k: np.ldexp(solution.centers, self.exponent) for k, solution in found.items()}
        if self.columns is None:
            return scaled
        return {k: self.columns.all_of(centers) for k, centers in scaled.items()}

    def watch(self, callback: Callback | None) -> Callback | None:
        """Return the callback for sweeps over these rows, called with centers with all columns."""
        if callback is None or self.columns is None:
            return callback
        return self.columns.shown_to(callback)


def _check_distinct(places: np.ndarray, n_needed: int) -> None:
    n_distinct = len(np.unique(places, axis=0))
    if n_distinct < n_needed:
        raise ArgumentError(
            f"is more than the {n_distinct} distinct rows with a weight",
            f"pass values of k up to {n_distinct}",
            argument="k",
            value=n_needed,
        )


def _counted_parts(X: Any, sample_weight: Any, spec: OpeningSpec) -> tuple[PartedRows, float]:
    """Return rows in parts weighted by counts, and the factor from the weights to the counts."""
    source = opened(X, sample_weight, spec)
    if source.checkpoint is not None:
        raise ValueError(
            "choose_k writes no checkpoint, and X has one: pass open_data without checkpoint"
        )
    rows = _rows(source, spec)
    if rows.total_weight == rows.n_points:
        return rows, 1.0
    unit = _unit_of_counts(rows.total_weight, sum(rows.each(_count_weighing)))
    return (rows if unit == 1 else _rows(source.weighing(unit), spec)), unit


def _count_weighing(rows: PartRows, number: int) -> int:
    return int(np.count_nonzero(rows.sample_weight(np.arange(rows.n_points))))


def _unit_of_counts(total_weight: float, n_weighing: int) -> float:
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
