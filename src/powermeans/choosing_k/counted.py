"""Points whose weights are numbers of copies, in memory or in parts, for the search over k."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from powermeans.engine.fit import Callback
from powermeans.engine.search.state import Solution
from powermeans.engine.seeds.choose import order_by_place
from powermeans.engine.seeds.samples import distinct_places
from powermeans.errors import ArgumentError
from powermeans.points.checks.points import exponent_to_square
from powermeans.points.given import Given
from powermeans.points.needs import Needs
from powermeans.points.opening import (
    open_points,
    open_rows,
    rows_for,
    wide_if_far,
)
from powermeans.points.protocol import Points
from powermeans.points.used_columns import UsedColumns
from powermeans.system.containers import refuse_tensor_elsewhere, to_array
from powermeans.types import FloatArray

# Of more rows than these, choosing k asks a sample.
MOST_ROWS = 30_000


@dataclass(frozen=True, slots=True)
class CountedPoints:
    """Points, in float64 where float32 does not hold their squares, weighted by counts of copies.

    Weights become shares of the number of their points if they add up to less than that number, or
    to more than float64 counts.
    """

    rows: Points
    n_weighing: int  # points with a weight; all points where they are in parts
    unit: float
    columns: UsedColumns | None = None  # None for all
    table: RowsWithWords | None = None  # that the points are of

    @classmethod
    def of(cls, X: Any, sample_weight: Any, needs: Needs) -> Self:
        """Open the points, wherever they are, if there are as many distinct ones as needed."""
        refuse_tensor_elsewhere(X)
        if getattr(X, "checkpoint", None) is not None:
            raise ValueError(
                "choose_k writes no checkpoint, and X has one: pass open_data without checkpoint"
            )
        opened = open_points(to_array(X), sample_weight, needs)
        if opened.parts is not None:
            return cls._in_parts(opened, needs)
        found = cls.of_given(opened.given, needs)
        _check_distinct_in_memory(found.rows, needs.fit.n_points)
        preparation = (opened.given.noted or {}).get("preparation_")
        if preparation is None or not preparation.has_words:
            return found
        return replace(found, table=RowsWithWords(opened.given, needs, preparation))

    @classmethod
    def of_given(cls, given: Given, needs: Needs) -> Self:
        """Return points in memory, as many of them distinct as there may be."""
        points, measure = wide_if_far(given.array, given.largest), needs.measure
        if (columns := given.used_columns) is not None:
            measure = replace(measure, n_columns=columns.n_columns)
        weights = np.ones(points.shape[0]) if given.weights is None else given.weights
        n_weighing = int(np.count_nonzero(weights))
        unit = _unit_of_counts(float(weights.sum()), n_weighing)
        rows = rows_for(measure, points, None if given.weights is None else weights * unit)
        return cls(rows, n_weighing, unit, columns)

    @classmethod
    def _in_parts(cls, opened: Any, needs: Needs) -> Self:
        given = opened.given
        if exponent_to_square(given.largest, given.dtype):
            raise ValueError(
                f"X contains {given.largest:g}, whose square is out of range for {given.dtype}: "
                'pass open_data(..., scale="standard") or dtype="float64"'
            )
        rows, unit = opened, 1.0
        if rows.total_weight != rows.n_points:
            unit = _unit_of_counts(rows.total_weight, sum(rows.each(_count_weighing)))
            rows = rows if unit == 1 else opened.weighing(unit)
        places = distinct_places(rows, needs.fit.n_points, np.random.RandomState(0))
        _check_distinct(places, needs.fit.n_points)
        return cls(rows, rows.n_points, unit)

    def n_distinct(self) -> int:
        """Return the number of different rows with a weight; of many rows, of some."""
        some = np.arange(0, self.rows.n_points, max(1, self.rows.n_points // MOST_ROWS))
        places = self.rows.take(some[self.rows.sample_weight(some) > 0])
        return len(np.unique(places, axis=0))

    def sample(self, size: int, seed: int, question: Any) -> Self:
        """Return rows drawn with replacement, in proportion to their weights."""
        nothing = np.empty((0, self.rows.n_features))
        uniforms = np.random.RandomState(seed).uniform(size=size)
        indices, drawn = np.unique(self.rows.nearness(nothing).draw(uniforms), return_counts=True)
        rows = open_rows(
            self.rows.sample(indices),
            drawn.astype(np.float64),
            n_columns=self.rows.n_columns,
            n_threads=question.n_threads,
            has_missing=question.has_missing,
        )
        unit = self.unit * size / self.rows.total_weight
        return replace(self, rows=rows, n_weighing=len(indices), unit=unit)

    def inertias(self, counted: FloatArray) -> FloatArray:
        """Return inertias by the weights of the user."""
        return counted / self.unit

    def centers(self, found: dict[int, Solution]) -> dict[int, FloatArray]:
        """Return centers with all columns."""
        if self.columns is None:
            return {k: solution.centers for k, solution in found.items()}
        return {k: self.columns.all_of(solution.centers) for k, solution in found.items()}

    def as_searched(self, centers: FloatArray) -> FloatArray:
        """Return centers with the columns that these rows have."""
        return centers if self.columns is None else self.columns.of_centers(centers)

    def watch(self, callback: Callback | None) -> Callback | None:
        """Return the callback for sweeps over these rows, called with centers with all columns."""
        columns = self.columns
        if callback is None or columns is None:
            return callback
        return lambda state: callback(state.widened(columns.all_of))


@dataclass(frozen=True, slots=True)
class RowsWithWords:
    """Rows of a table, whose words alone would look like clusters."""

    given: Given
    needs: Needs
    preparation: Any

    def blurred(
        self, seed: int, most: int | None = None, *, is_shuffled: bool = False
    ) -> CountedPoints:
        """Return all or some rows with words drawn from ranges without gaps.

        Shuffled, each column is in another order, so that columns have nothing to do with others.
        """
        rows = np.sort(np.random.default_rng(seed).permutation(len(self.given.array))[:most])
        points, weights = self.given.array[rows], self.given.weights
        points = self.preparation.shuffled(points, seed) if is_shuffled else points
        given = replace(
            self.given,
            array=self.preparation.spread_out(points, seed),
            weights=None if weights is None else weights[rows],
        )
        return CountedPoints.of_given(given, self.needs)


def _check_distinct_in_memory(rows: Points, n_needed: int) -> None:
    if rows.n_points > MOST_ROWS:  # some are enough where they differ enough
        some = np.arange(0, rows.n_points, rows.n_points // MOST_ROWS)
        places = rows.take(some[rows.sample_weight(some) > 0])
        if len(np.unique(places[:, :8], axis=0)) >= n_needed:
            return
    order, key = order_by_place(rows, np.random.RandomState(0))
    _check_distinct(key[rows.sample_weight(order) > 0], n_needed)


def _check_distinct(places: np.ndarray, n_needed: int) -> None:
    n_distinct = len(np.unique(places, axis=0))
    if n_distinct < n_needed:
        raise ArgumentError(
            f"is more than the {n_distinct} distinct rows with a weight",
            f"pass values of k up to {n_distinct}",
            argument="k",
            value=n_needed,
        )


def _count_weighing(rows: Points, number: int) -> int:
    return int(np.count_nonzero(rows.sample_weight(np.arange(rows.n_points))))


def _unit_of_counts(total_weight: float, n_weighing: int) -> float:
    """Return the factor that makes counts of copies from weights: one if they can be counts."""
    has_all_integers = total_weight <= 2.0**53
    return 1.0 if n_weighing <= total_weight and has_all_integers else n_weighing / total_weight
