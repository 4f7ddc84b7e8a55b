"""Rows in the memory of this process, dense or sparse, that the compiled core sweeps over."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

import powermeans._native as _native
from powermeans.divergences import squared_euclidean
from powermeans.mathematics.critical_power import critical_power
from powermeans.mathematics.rules import (
    Gaussian,
    Hard,
    Harmonic,
    Online,
    Power,
    Priced,
    Reached,
    Rule,
)
from powermeans.mathematics.sums import Spread, Sums
from powermeans.points.base import MemoryRows, in_unit
from powermeans.points.by_definition import sweep_by_formula, weighted
from powermeans.points.checks.narrow import computed_dtype, is_narrow, widened
from powermeans.points.farthest import Farthest, farthest_in_passes, largest_first
from powermeans.points.protocol import FarPoint, Moved, NearCenters, PricedLabels, Rows
from powermeans.system.threads import effective_n_threads
from powermeans.types import FloatArray, IndexArray, Labels, Points, SparsePoints

instruction_set = _native.instruction_set
instruction_sets = _native.instruction_sets
thread_limit = _native.thread_limit
Team = _native.Team
Known = _native.Moments
transport = _native.transport

_ENTRIES_AT_ONCE = 2**20


class NativeRows(MemoryRows):
    """Sweep over finite points, C-contiguous or CSR, without a copy.

    They are of float32, of float64, or dense and narrower, and then computed with as float32.

    `team` holds threads to share with other rows; `known` comes from rows of the same dense points.
    `n_columns` counts columns that were left out too, since they are zero.
    """

    def __init__(
        self,
        points: Points | SparsePoints,
        sample_weight: FloatArray | None = None,
        *,
        n_threads: int | None = None,
        team: Team | None = None,
        known: Known | None = None,
        n_columns: int | None = None,
    ) -> None:
        self._points, self._n_columns = points, n_columns
        self._weights, self._weight_unit = in_unit(sample_weight)
        self.team = team or start_team(n_threads)
        self._native, self._column_mean, self._column_variance = (
            _sparse(points, self._weights, self.team)
            if sparse.issparse(points)
            else _dense(points, self._weights, self.team, known)
        )

    @property
    def n_points(self) -> int:
        return int(self._points.shape[0])

    @property
    def n_features(self) -> int:
        return int(self._points.shape[1])

    @property
    def n_columns(self) -> int:
        return self.n_features if self._n_columns is None else self._n_columns

    @property
    def dtype(self) -> np.dtype[np.floating[Any]]:
        return computed_dtype(self._points.dtype)

    @property
    def known(self) -> Known | None:
        dense = (_native.DenseFloat, _native.DenseDouble)
        return self._native.moments() if isinstance(self._native, dense) else None

    @property
    def n_stored(self) -> int:
        return int(self._points.nnz if sparse.issparse(self._points) else self._points.size)

    @property
    def n_values_each(self) -> float:
        if not sparse.issparse(self._points):
            return super().n_values_each
        return min(self.n_features, (self.n_stored + self.n_features) / self.n_points)

    def weigh(self, sample_weight: FloatArray) -> None:
        """Give the points these weights, none above the largest so far.

        The array is changed in place, since the compiled points refer to it.
        """
        assert self._weights is not None, "the rows were opened with weights"
        np.divide(sample_weight, self._weight_unit, out=self._weights)
        self.__dict__.pop("n_places", None)
        self._forget_what_follows_from_weights()

    def _find_inertia_about_mean(self) -> float:
        if self._weights is None:
            return self.n_points * float(np.sum(self._column_variance))
        return super()._find_inertia_about_mean()

    def critical_power(self) -> float:
        return critical_power(self._points, self._weights)

    def sweep(self, centers: FloatArray, rule: Rule) -> Sums:
        if isinstance(rule, Online):
            return self._sweep_in_turn(centers, rule)
        taken = self.as_compiled(centers)
        if isinstance(rule, Hard):
            swept = self._native.sweep_hard(taken)
        elif isinstance(rule, Power):
            swept = self._native.sweep_power(taken, rule.power, 0.0, 1.0)
        elif isinstance(rule, Harmonic):
            swept = self._native.sweep_power(taken, rule.power, rule.p / 2 - 1, rule.unit)
        elif isinstance(rule, Priced):
            wanted = (rule.labels, rule.margins) if isinstance(rule, Labelling) else (None, None)
            swept = self._native.sweep_priced(taken, rule.prices_of(len(centers)), *wanted)
        elif isinstance(rule, Gaussian):
            swept = self._native.sweep_gaussian(taken, rule.variance, rule.shares_of(len(centers)))
        else:
            distances = self._distances_in_chunks(centers)
            sums = sweep_by_formula(self._points, self._weights, distances, len(centers), rule)
            return sums * self._weight_unit
        return self._sums_of(swept, len(centers))

    def _sweep_in_turn(self, centers: FloatArray, online: Online) -> Reached:
        """Present the points one after another; each moves its nearest center."""
        reached, counts = centers.astype(np.float64, order="C"), online.counts.astype(np.float64)
        inertia = self._native.present(
            online.order, online.rates, self._weight_unit, reached, counts
        )
        return Reached.at(reached, counts, inertia)

    def expect_few_sweeps(self) -> None:
        """Skip preparations that only many sweeps repay, such as ordering the points by place."""
        self._native.expect_few_sweeps()

    def spread(self, centers: FloatArray) -> Spread:
        error, utility, weights = self._native.spread(self.as_compiled(centers))
        if len(centers) == 1:
            utility = np.array([np.inf])
        return self._spread_of(error, utility, weights)

    def _spread_of(self, error: FloatArray, utility: FloatArray, weights: FloatArray) -> Spread:
        unit = self._weight_unit
        with np.errstate(over="ignore"):  # what a center is worth may be more than can be told
            return Spread(error * unit, utility * unit, weights * unit)

    @property
    def has_cells(self) -> bool:
        # With few features any sweep leaves out the centers far from a point.
        return not sparse.issparse(self._points) and self.n_features > _native.FEW_FEATURES

    def nearest_to_each(
        self, centers: FloatArray, n_listed: int, prices: FloatArray | None = None
    ) -> Labels:
        """List the centers nearest to each, with itself first, (n_centers, n_listed).

        Prices are added to the squared distances.
        """
        points = np.ascontiguousarray(centers, dtype=self.dtype)
        lists: Labels = np.empty((len(centers), min(n_listed, len(centers))), dtype=np.int32)
        alike = self.rows_of(points, np.ones(len(points)))
        alike._native.list_nearby(alike.as_compiled(centers), prices, lists)
        return lists

    def sweep_nearby(
        self, centers: FloatArray, rule: Hard | Power | Labelling, nearby: Labels, labels: Labels
    ) -> Sums:
        """Sweep, but compare a point only with the centers near its own.

        `nearby` lists centers for each center, with itself first, (n_centers, n_listed), int32.
        Rules that give a point to one center change labels to those of the best in the lists.
        """
        taken = self.as_compiled(centers)
        if isinstance(rule, Hard):
            swept = self._native.sweep_nearby(taken, nearby, labels)
        elif isinstance(rule, Labelling):
            prices = rule.prices_of(len(centers))
            swept = self._native.priced_nearby(taken, nearby, labels, prices, rule.margins)
        else:
            swept = self._native.power_nearby(taken, nearby, labels, rule.power)
        return self._sums_of(swept, len(centers))

    def spread_nearby(self, centers: FloatArray, nearby: Labels, labels: Labels) -> Spread:
        """Return the spread among the centers that `sweep_nearby` looks at."""
        return self._spread_of(
            *self._native.spread_nearby(self.as_compiled(centers), nearby, labels)
        )

    def _sums_of(self, swept: Any, n_centers: int) -> Sums:
        points, weights, objective, inertia, n_distances = swept
        n_skipped = max(0.0, self.n_points * n_centers - n_distances)
        return Sums(points, weights, objective, inertia, n_skipped) * self._weight_unit

    def distances_to_own(self, centers: FloatArray, labels: Labels) -> FloatArray:
        """Return the squared distance of each point to the center of its label."""
        distances, taken = np.empty(self.n_points), self.as_compiled(centers)
        step = max(1, _ENTRIES_AT_ONCE // self.n_features)
        for start in range(0, self.n_points, step):
            block = slice(start, start + step)
            differences = widened(self._points[block]) - taken[labels[block]]
            distances[block] = np.einsum("if,if->i", differences, differences)
        return distances

    def assign(self, centers: FloatArray) -> tuple[Labels, float]:
        labels = np.empty(self.n_points, dtype=np.int32)
        inertia = self._native.assign(self.as_compiled(centers), labels)
        return labels, inertia * self._weight_unit

    def near_centers(
        self,
        indices: IndexArray,
        labels: Labels,
        centers: FloatArray,
        prices: FloatArray,
        *,
        reach: float,
        n_most: int,
    ) -> NearCenters:
        found = NearCenters.none(len(indices), n_most)
        if len(indices):
            some, taken = self._opened(indices), self.as_compiled(centers)
            some.list_near(taken, prices, labels, reach, found.centers, found.distances)
        return found

    def near_of_listed(
        self,
        indices: IndexArray,
        labels: Labels,
        centers: FloatArray,
        prices: FloatArray,
        nearby: Labels,
        *,
        reach: float,
        n_most: int,
    ) -> NearCenters:
        """List as `near_centers` does, of those that `nearby` lists for the center of each."""
        found = NearCenters.none(len(indices), n_most)
        if len(indices):
            some, taken, own = self._opened(indices), self.as_compiled(centers), labels.copy()
            some.near_nearby(taken, nearby, own, prices, reach, found.centers, found.distances)
        return found

    def _opened(self, indices: IndexArray) -> Any:
        """Return these points, as compiled code sweeps over them."""
        return NativeRows(self._points[indices], team=self.team, known=self.known)._native

    def assign_priced(self, centers: FloatArray, prices: FloatArray) -> PricedLabels:
        labels: Labels = np.empty(self.n_points, dtype=np.int32)
        rule = Labelling(tuple(prices.tolist()), labels, np.empty(self.n_points))
        return PricedLabels(labels, rule.margins, self.sweep(centers, rule))

    @property
    def moves_points(self) -> bool:
        return True

    def move_points(self, centers: FloatArray, n_passes: int) -> Moved:
        form = self._form_of_moves
        labels, moved = self._labels_of(centers), form.given(centers)
        n_moves = form.rows._native.move_points(
            form.divergence, form.rows._order_of_moves, n_passes, labels, moved
        )
        return Moved(form.taken(moved, centers), n_moves)

    def swap_centers(
        self,
        centers: FloatArray,
        n_in_vain: int,
        most_distances: float,
        least_gain: float,
        least_distances: float = 0.0,
    ) -> Moved:
        form = self._form_of_moves
        labels, moved = self._labels_of(centers), form.given(centers)
        _, n_kept, n_distances = form.rows._native.swap_centers(
            form.divergence,
            form.rows._order_of_moves,
            n_in_vain,
            most_distances,
            least_distances,
            least_gain,
            labels,
            moved,
        )
        return Moved(form.taken(moved, centers), n_kept, n_distances)

    @property
    def _form_of_moves(self) -> FormOfMoves:
        return FormOfMoves(self, "squared_euclidean")

    def _labels_of(self, centers: FloatArray) -> Labels:
        labels = np.empty(self.n_points, dtype=np.int32)
        self._native.assign(self.as_compiled(centers), labels)
        return labels

    @cached_property
    def n_places(self) -> int:
        key = self._key_of_places()
        weighing = key if self._weights is None else key[self._weights > 0]
        return int(np.count_nonzero(np.diff(np.sort(weighing), prepend=-1.0)))

    @cached_property
    def _order_of_moves(self) -> IndexArray:
        """Sort the points by place, so that the order of the rows makes no difference."""
        return np.argsort(self._key_of_places(), kind="stable")

    def _key_of_places(self) -> FloatArray:
        """Return a number for each point, equal for equal points and for others only by chance."""
        direction = np.random.default_rng(0).standard_normal(self.n_features)
        far = math.sqrt(self.inertia_about_mean() / self.total_weight / self.n_features)
        return self.nearness((self.mean() + far * direction)[None, :]).sq_dist()

    def sq_distances(self, centers: FloatArray) -> Points:
        distances: Points = np.empty((self.n_points, len(centers)), dtype=self._native_dtype)
        self._native.sq_distances(self.as_compiled(centers), distances)
        return distances.astype(self.dtype, copy=False)

    @property
    def _native_dtype(self) -> Any:
        """The type that distances are computed in."""
        return np.float64 if sparse.issparse(self._points) else self.dtype

    def nearness(self, centers: FloatArray, order: IndexArray | None = None) -> NativeNearness:
        return NativeNearness(self._native, self, self._weights, self._weight_unit, centers, order)

    def greedy_seeds(
        self,
        order: IndexArray,
        first: float,
        others: FloatArray,
        exponent: float = 2.0,
        *,
        seconds: float = math.inf,
    ) -> IndexArray:
        if exponent != 2:
            return super().greedy_seeds(order, first, others, exponent, seconds=seconds)
        indices = np.empty(1 + len(others), dtype=np.int64)
        n_found = self._native.greedy_seeds(order, first, others, indices, seconds)
        return indices[:n_found]

    @property
    def samples_seeds(self) -> bool:
        return True

    def further_seeds(
        self,
        indices: IndexArray,
        nearest: FloatArray,
        others: FloatArray,
        least_share: float,
        *,
        seconds: float = math.inf,
    ) -> IndexArray:
        weights = nearest.min() / nearest
        sample = NativeRows(self._points[indices], weights, team=self.team)._native
        found, order = np.empty(len(others), dtype=np.int64), np.arange(len(indices))
        n_found = sample.further_seeds(order, nearest, least_share, others, found, seconds)
        return indices[found[:n_found]]

    def rows_of(self, points: Points | SparsePoints, sample_weight: FloatArray) -> NativeRows:
        return NativeRows(points, sample_weight, team=self.team, n_columns=self._n_columns)

    @property
    def has_blocks(self) -> bool:
        return not sparse.issparse(self._points)

    def some(self, indices: IndexArray | slice) -> Rows:
        return NativeRows(self._points[indices], team=self.team, known=self.known)

    def farthest(self, centers: FloatArray, n_wanted: int) -> Iterator[FarPoint]:
        nearness = self.nearness(centers)
        n_near = len(centers)

        def find(chosen: FloatArray, n_kept: int) -> tuple[Farthest, Rows]:
            nonlocal n_near
            nearness.add_all(chosen[n_near:])
            n_near = len(chosen)
            sq_dist = nearness.sq_dist()
            values = sq_dist if self._weights is None else weighted(self._weights, sq_dist)
            first = np.sort(largest_first(values, n_kept))  # the first of several is taken
            some, weights = self.some(first), self.sample_weight(first)
            labels, _ = some.assign(centers)
            return Farthest(n_kept, sq_dist[first], weights, labels, self.take(first)), some

        return farthest_in_passes(find, centers, n_wanted)

    def take(self, indices: IndexArray) -> FloatArray:
        rows = self._points[indices]
        dense = rows.toarray() if sparse.issparse(rows) else rows
        return np.ascontiguousarray(dense, dtype=np.float64)

    def sample(self, indices: IndexArray) -> Points | SparsePoints:
        return self._points[indices]

    def as_compiled(self, centers: FloatArray) -> FloatArray:
        """Return the centers in the form that the compiled points take."""
        return np.ascontiguousarray(centers)

    def _distances_in_chunks(self, centers: FloatArray) -> Iterable[tuple[slice, FloatArray]]:
        """Yield the distances of some points at a time, for rules that have no kernel."""
        return squared_euclidean.in_chunks(self._points, centers)


@dataclass(frozen=True, slots=True)
class Labelling(Priced):
    """Tell labels and margins too, as `PricedLabels` has them."""

    labels: Labels  # out (n_points,)
    margins: FloatArray  # out (n_points,)


class FormOfMoves:
    """Tell in which form points and centers move, and by which compiled divergence."""

    def __init__(self, rows: NativeRows, divergence: str) -> None:
        self.rows, self.divergence = rows, divergence

    def given(self, centers: FloatArray) -> FloatArray:
        """Return a copy of the centers in this form."""
        return centers.astype(np.float64, order="C")

    def taken(self, moved: FloatArray, before: FloatArray) -> FloatArray:
        """Return the centers that have this form; `before` are those that were given."""
        return moved


class NativeNearness:
    """Keep nearest squared distances in the unit of the compiled points."""

    def __init__(
        self,
        compiled: _native.CompiledPoints,
        rows: NativeRows,
        weights: FloatArray | None,
        weight_unit: float,
        centers: FloatArray,
        order: IndexArray | None,
    ) -> None:
        self._native, self._rows, self._order = compiled, rows, order
        self._weights, self._weight_unit = weights, weight_unit
        self._nearest = np.full(rows.n_points, np.inf)
        self.add_all(centers)

    def draw(self, uniforms: FloatArray, exponent: float = 2.0) -> IndexArray:
        indices = np.empty(len(uniforms), dtype=np.int64)
        numbers = np.ascontiguousarray(uniforms)
        self._native.draw(self._nearest, self._order, numbers, exponent, indices)
        return indices

    def potentials(self, candidates: IndexArray) -> FloatArray:
        taken = self._rows.as_compiled(self._rows.take(candidates))
        left: FloatArray = self._native.potentials(taken, self._nearest)
        return left * self._weight_unit

    def add(self, center: FloatArray) -> None:
        self.add_all(center[None, :])

    def add_all(self, centers: FloatArray) -> None:
        """Add several centers, or none."""
        if len(centers):
            self._native.approach(self._rows.as_compiled(centers), self._nearest)

    def farthest(self) -> int:
        return int(np.argmax(self._weighted()))

    def inertia(self) -> float:
        unscale = 1.0 / self._native.scale
        return float(np.sum(self._weighted())) * unscale * unscale * self._weight_unit

    def sq_dist(self, indices: IndexArray | None = None) -> FloatArray:
        unscale = 1.0 / self._native.scale
        chosen = self._nearest if indices is None else self._nearest[indices]
        sq_dist: FloatArray = chosen * unscale
        sq_dist *= unscale
        return sq_dist

    def _weighted(self) -> FloatArray:
        return self._nearest if self._weights is None else weighted(self._weights, self._nearest)


def start_team(n_threads: int | None) -> Team:
    """Start threads, which several rows may share."""
    return _native.Team(effective_n_threads(n_threads, thread_limit()))


def _dense(
    points: Any, weights: FloatArray | None, team: _native.Team, known: Known | None
) -> tuple[_native.CompiledPoints, FloatArray, FloatArray]:
    compiled: _native.CompiledPoints
    if is_narrow(points.dtype):
        compiled = _native.DenseFloat(
            points.view(np.uint8), points.dtype.name, weights, team, known
        )
    else:
        kind = _native.DenseFloat if points.dtype == np.float32 else _native.DenseDouble
        compiled = kind(points, weights, team, known)
    return compiled, compiled.mean(), compiled.variance()


def _sparse(
    points: Any, weights: FloatArray | None, team: _native.Team
) -> tuple[_native.CompiledPoints, FloatArray, FloatArray]:
    n_features = points.shape[1]
    if points.indices.dtype != np.int32:
        raise ValueError(
            f"X has {points.nnz} stored entries in {n_features} columns, indexed by "
            f"{points.indices.dtype}: sparse points need int32 indices, so pass fewer than 2^31"
        )
    if points.nnz and not 0 <= points.indices.min() <= points.indices.max() < n_features:
        raise ValueError("X is not a valid CSR matrix: a column index lies outside its shape")
    largest = float(max(points.data.max(initial=0.0), -points.data.min(initial=0.0)))
    row_starts = points.indptr.astype(np.int64)
    kind = _native.CsrFloat if points.dtype == np.float32 else _native.CsrDouble
    compiled = kind(points.data, points.indices, row_starts, n_features, largest, weights, team)
    return compiled, *_sparse_moments(points)


def _sparse_moments(points: Any) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of each column; the entries not stored are zeros."""
    n_points, n_features = points.shape
    stored, sums, squares = (np.zeros(n_features) for _ in range(3))
    for columns, values in _entries(points):
        stored += np.bincount(columns, minlength=n_features)
        sums += np.bincount(columns, weights=values, minlength=n_features)
    mean = sums / n_points
    for columns, values in _entries(points):
        deviations = values - mean[columns]
        squares += np.bincount(columns, weights=deviations**2, minlength=n_features)
    return mean, (squares + (n_points - stored) * mean**2) / n_points


def _entries(points: Any) -> Iterator[tuple[Any, FloatArray]]:
    """Yield columns and values of the stored entries, some at a time."""
    step = max(_ENTRIES_AT_ONCE, int(points.shape[1]))
    for start in range(0, points.nnz, step):
        yield points.indices[start : start + step], points.data[start : start + step].astype(float)
