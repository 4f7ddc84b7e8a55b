"""Points in the memory of this process, dense or sparse, that the compiled core sweeps over."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Self

import numpy as np
from scipy import sparse

import powermeans._native as _native
from powermeans.divergences import Divergence, SquaredEuclidean
from powermeans.divergences.chunks import as_float64
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
from powermeans.points.base import MemoryPoints, in_unit
from powermeans.points.by_definition import (
    NearnessByDefinition,
    PricedByDefinition,
    spread_by_definition,
    sweep_by_formula,
    weighted,
)
from powermeans.points.cells import Cells
from powermeans.points.checks.points import NARROW_DTYPES, computed_dtype
from powermeans.points.farthest import Farthest, farthest_in_passes, largest_first
from powermeans.points.protocol import (
    AskedNear,
    FarPoint,
    Labelling,
    Moved,
    NearCenters,
    Points,
    PricedLabels,
)
from powermeans.system.attributes import cached_property, forget
from powermeans.system.threads import effective_n_threads
from powermeans.types import AnyMatrix, FloatArray, IndexArray, Labels, Matrix

instruction_set = _native.instruction_set
instruction_sets = _native.instruction_sets
thread_limit = _native.thread_limit
Team = _native.Team
Known = _native.Moments
transport = _native.transport
divide_line = _native.divide_line
FEW_FEATURES = _native.FEW_FEATURES


class CompiledPoints(MemoryPoints):
    """Sweep over finite points, C-contiguous or CSR, without a copy.

    They are of float32, of float64, or dense and narrower, and then computed with as float32.

    `team` holds threads to share with other rows; `known` comes from rows of the same dense points.
    `n_columns` counts columns that were left out too, since they are zero.
    """

    # Attributes, since sweeps and searches ask for them often.
    holds_labels: bool = True
    n_points: int = 0
    n_features: int = 0
    n_columns: int = 0
    n_stored: int = 0
    dtype: np.dtype[np.floating[Any]] = np.dtype(np.float64)
    _divergence: Divergence = SquaredEuclidean()

    def __init__(
        self,
        points: AnyMatrix,
        sample_weight: FloatArray | None = None,
        *,
        n_threads: int | None = None,
        team: Team | None = None,
        known: Known | None = None,
        n_columns: int | None = None,
    ) -> None:
        self._points, self.dtype = points, computed_dtype(points.dtype)
        self.n_points, self.n_features = points.shape
        self.n_columns = self.n_features if n_columns is None else n_columns
        self.n_stored = points.nnz if sparse.issparse(points) else points.size
        if sample_weight is not None:
            self._weights, self._weight_unit = in_unit(sample_weight)
        self.team = team or Team(effective_n_threads(n_threads, thread_limit()))
        self.native, self._column_mean, self._column_variance = open_compiled(
            points, self._weights, self.team, known
        )

    @property
    def known(self) -> Known | None:
        """Facts to pass on when the same points are opened again."""
        dense = (_native.DenseFloat, _native.DenseDouble)
        return self.native.moments() if isinstance(self.native, dense) else None

    def weigh(self, sample_weight: FloatArray) -> None:
        """Give the points these weights, none above the largest so far.

        The array is changed in place, since the compiled points refer to it.
        """
        assert self._weights is not None, "the rows were opened with weights"
        np.divide(sample_weight, self._weight_unit, out=self._weights)
        forget(self, "n_distinct")
        self._forget_what_follows_from_weights()

    def critical_power(self) -> float:
        return critical_power(self._points, self._weights)

    def sweep(self, centers: FloatArray, rule: Rule) -> Sums:
        if isinstance(rule, Online):
            return self.finished(self._sweep_in_turn(centers, rule))
        taken = self.as_compiled(centers)
        if isinstance(rule, Hard):
            swept = self.native.sweep_hard(taken)
        elif isinstance(rule, Power):
            swept = self.native.sweep_power(taken, rule.power, 0.0, 1.0)
        elif isinstance(rule, Harmonic):
            swept = self.native.sweep_power(taken, rule.power, rule.p / 2 - 1, rule.unit)
        elif isinstance(rule, Priced):
            wanted = (rule.labels, rule.margins) if isinstance(rule, Labelling) else (None, None)
            swept = self.native.sweep_priced(taken, rule.prices_of(len(centers)), *wanted)
        elif isinstance(rule, Gaussian):
            swept = self.native.sweep_gaussian(taken, rule.variance, rule.shares_of(len(centers)))
        else:
            distances = self._distances_in_chunks(centers)
            sums = sweep_by_formula(self._points, self._weights, distances, len(centers), rule)
            return self.finished(sums * self._weight_unit)
        return self.finished(self.sums_of(swept, len(centers)))

    def _sweep_in_turn(self, centers: FloatArray, online: Online) -> Reached:
        """Present the points one after another; each moves its nearest center."""
        reached, counts = centers.astype(np.float64, order="C"), online.counts.astype(np.float64)
        inertia = self.native.present(
            online.order, online.rates, self._weight_unit, reached, counts
        )
        return Reached.at(reached, counts, inertia)

    def expect_few_sweeps(self) -> None:
        """Skip preparations that only many sweeps repay, such as ordering the points by place."""
        self.native.expect_few_sweeps()

    def spread(self, centers: FloatArray) -> Spread:
        error, utility, weights = self.native.spread(self.as_compiled(centers))
        if len(centers) == 1:
            utility = np.array([np.inf])
        return self.spread_of(error, utility, weights)

    def spread_of(self, error: FloatArray, utility: FloatArray, weights: FloatArray) -> Spread:
        """Return a spread from compiled figures."""
        unit = self._weight_unit
        with np.errstate(over="ignore"):  # what a center is worth may be more than can be told
            return Spread(error * unit, utility * unit, weights * unit)

    def sums_of(self, swept: Any, n_centers: int) -> Sums:
        """Return what a compiled sweep added up."""
        points, weights, objective, inertia, n_distances, n_changed = swept
        n_skipped = max(0.0, self.n_points * n_centers - n_distances)
        sums = Sums(points, weights, objective, inertia, n_skipped, n_changed=n_changed)
        return sums if self._weights is None else sums * self._weight_unit

    def finished(self, sums: Sums) -> Sums:
        """Return sums whose centers are those of these points."""
        return sums

    def assign(self, centers: FloatArray) -> tuple[Labels, float]:
        labels = np.empty(self.n_points, dtype=np.int32)
        inertia = self.native.assign(self.as_compiled(centers), labels)
        return labels, inertia * self._weight_unit

    def labels_of(self, centers: FloatArray) -> Labels:
        """Return the label of the nearest center of each point."""
        labels = np.empty(self.n_points, dtype=np.int32)
        self.native.assign(self.as_compiled(centers), labels)
        return labels

    def sq_distances(self, centers: FloatArray) -> Matrix:
        distances: Matrix = np.empty((self.n_points, len(centers)), dtype=self._native_dtype)
        self.native.sq_distances(self.as_compiled(centers), distances)
        return distances.astype(self.dtype, copy=False)

    @property
    def _native_dtype(self) -> Any:
        """The type that distances are computed in."""
        return np.float64 if sparse.issparse(self._points) else self.dtype

    def nearness(self, centers: FloatArray, order: IndexArray | None = None) -> NativeNearness:
        return NativeNearness(self, centers, order)

    def take(self, indices: IndexArray) -> FloatArray:
        rows = self._points[indices]
        dense = rows.toarray() if sparse.issparse(rows) else rows
        return np.ascontiguousarray(dense, dtype=np.float64)

    def sample(self, indices: IndexArray) -> AnyMatrix:
        return self._points[indices]

    @cached_property
    def order_by_place(self) -> IndexArray:
        """The points sorted by place, so that the order of the rows makes no difference."""
        return np.argsort(self.key_of_places(), kind="stable")

    def key_of_places(self) -> FloatArray:
        """Return a number for each point, equal for equal points and for others only by chance."""
        direction = np.random.default_rng(0).standard_normal(self.n_features)
        far = math.sqrt(self.inertia_about_mean() / self.total_weight / self.n_features)
        return self.nearness((self.mean() + far * direction)[None, :]).sq_dist()

    def native_of(self, indices: IndexArray) -> _native.CompiledPoints:
        """Return some of the points, without weights, in compiled form."""
        return open_compiled(self._points[indices], None, self.team, self.known)[0]

    def as_compiled(self, centers: FloatArray) -> FloatArray:
        """Return the centers in the form that the compiled points take."""
        return np.ascontiguousarray(centers)

    def _distances_in_chunks(self, centers: FloatArray) -> Iterable[tuple[slice, FloatArray]]:
        """Yield the distances of some points at a time, for rules that have no kernel."""
        return self._divergence.in_chunks(self._points, centers)


class CompiledPrices(PricedByDefinition):
    """Label all points in one sweep."""

    def assign(self, centers: FloatArray, prices: FloatArray) -> PricedLabels:
        """Return labels and margins."""
        n_points = self._rows.n_points
        labels: Labels = np.empty(n_points, dtype=np.int32)
        rule = Labelling(tuple(prices.tolist()), labels, np.empty(n_points))
        return PricedLabels(labels, rule.margins, self._rows.sweep(centers, rule))


class EuclideanPoints(CompiledPoints):
    """Measure by squared Euclidean distances; options as for `CompiledPoints`."""

    def _find_inertia_about_mean(self) -> float:
        if self._weights is not None or not self._has_column_moments:
            return super()._find_inertia_about_mean()
        return self.n_points * float(np.sum(self._column_variance))

    @cached_property
    def n_distinct(self) -> int:
        key = self.key_of_places()
        weighing = key if self._weights is None else key[self._weights > 0]
        return int(np.count_nonzero(np.diff(np.sort(weighing), prepend=-1.0)))

    @property
    def moves(self) -> CompiledMoves:
        return CompiledMoves(self, self, self._divergence)

    @property
    def priced(self) -> EuclideanPrices:
        return EuclideanPrices(self, self._distances_of)

    @property
    def sampler(self) -> Self:
        return self  # samples have the threads of all points

    @property
    def cells(self) -> Cells | None:
        # With few features any sweep leaves out the centers far from a point.
        is_dense = not sparse.issparse(self._points)
        return Cells(self) if is_dense and self.n_features > FEW_FEATURES else None

    def farthest(self, centers: FloatArray, n_wanted: int) -> Iterator[FarPoint]:
        nearness = self.nearness(centers)
        n_near = len(centers)

        def find(chosen: FloatArray, n_kept: int) -> tuple[Farthest, Points]:
            nonlocal n_near
            nearness.add_all(chosen[n_near:])
            n_near = len(chosen)
            sq_dist = nearness.sq_dist()
            values = sq_dist if self._weights is None else weighted(self._weights, sq_dist)
            first = np.sort(largest_first(values, n_kept))  # the first of several is taken
            some, weights = self.sampler.some(first), self.sample_weight(first)
            labels, _ = some.assign(centers)
            return Farthest(n_kept, sq_dist[first], weights, labels, self.take(first)), some

        return farthest_in_passes(find, centers, n_wanted)

    def some(
        self, indices: IndexArray | slice, sample_weight: FloatArray | None = None
    ) -> EuclideanPoints:
        # A sample that stands for all points has moments of its own.
        known = self.known if sample_weight is None else None
        return type(self)(self._points[indices], sample_weight, team=self.team, known=known)

    def greedy_seeds(
        self, order: IndexArray, first: float, others: FloatArray, *, seconds: float = math.inf
    ) -> IndexArray:
        indices = np.empty(1 + len(others), dtype=np.int64)
        n_found = self.native.greedy_seeds(order, first, others, indices, seconds)
        return indices[:n_found]

    def further_seeds(
        self,
        indices: IndexArray,
        nearest: FloatArray,
        others: FloatArray,
        least_share: float,
        *,
        seconds: float = math.inf,
    ) -> IndexArray:
        weights, _ = in_unit(nearest.min() / nearest)
        sample, *_ = open_compiled(self._points[indices], weights, self.team)
        found, order = np.empty(len(others), dtype=np.int64), np.arange(len(indices))
        n_found = sample.further_seeds(order, nearest, least_share, others, found, seconds)
        return indices[found[:n_found]]


class EuclideanPrices(CompiledPrices):
    """List near centers in compiled code too."""

    def near(self, asked: AskedNear) -> NearCenters:
        rows: Any = self._rows  # `EuclideanPoints`
        found = NearCenters.none(len(asked.indices), asked.n_most)
        if len(asked.indices):
            some, taken = rows.native_of(asked.indices), rows.as_compiled(asked.centers)
            some.list_near(
                taken, asked.prices, asked.labels, asked.reach, found.centers, found.distances
            )
        return found


class NativeNearness:
    """Keep nearest squared distances in the unit of the compiled points."""

    def __init__(self, rows: CompiledPoints, centers: FloatArray, order: IndexArray | None) -> None:
        self.native, self._rows, self._order = rows.native, rows, order
        self._weights, self._weight_unit = rows._weights, rows._weight_unit
        self._nearest = np.full(rows.n_points, np.inf)
        if len(centers):
            rows.native.approach(rows.as_compiled(centers), self._nearest)

    def draw(self, uniforms: FloatArray, exponent: float = 2.0) -> IndexArray:
        indices = np.empty(len(uniforms), dtype=np.int64)
        numbers = np.ascontiguousarray(uniforms)
        self.native.draw(self._nearest, self._order, numbers, exponent, indices)
        return indices

    def potentials(self, candidates: IndexArray) -> FloatArray:
        taken = self._rows.as_compiled(self._rows.take(candidates))
        left: FloatArray = self.native.potentials(taken, self._nearest)
        return left * self._weight_unit

    def add(self, center: FloatArray) -> None:
        self.add_all(center[None, :])

    def add_all(self, centers: FloatArray) -> None:
        """Add several centers, or none."""
        if len(centers):
            self.native.approach(self._rows.as_compiled(centers), self._nearest)

    def farthest(self) -> int:
        return int(np.argmax(self._weighted()))

    def inertia(self) -> float:
        unscale = 1.0 / self.native.scale
        return float(np.sum(self._weighted())) * unscale * unscale * self._weight_unit

    def sq_dist(self, indices: IndexArray | None = None) -> FloatArray:
        unscale = 1.0 / self.native.scale
        chosen = self._nearest if indices is None else self._nearest[indices]
        sq_dist: FloatArray = chosen * unscale
        sq_dist *= unscale
        return sq_dist

    def _weighted(self) -> FloatArray:
        return self._nearest if self._weights is None else weighted(self._weights, self._nearest)


def open_compiled(
    points: AnyMatrix,
    weights: FloatArray | None,
    team: _native.Team,
    known: Known | None = None,
) -> tuple[_native.CompiledPoints, FloatArray, FloatArray]:
    """Return compiled points, and mean and variance of their columns."""
    if sparse.issparse(points):
        return _sparse(points, weights, team)
    compiled: _native.CompiledPoints
    if str(points.dtype) in NARROW_DTYPES:
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
    if points.indices.dtype != np.int32 and max(points.nnz, n_features) >= 2**31:
        raise ValueError(
            f"X has {points.nnz} stored entries in {n_features} columns: sparse points need int32 "
            "indices, so pass fewer than 2^31 of both"
        )
    if points.nnz and not 0 <= points.indices.min() <= points.indices.max() < n_features:
        raise ValueError("X is not a valid CSR matrix: a column index lies outside its shape")
    columns = points.indices.astype(np.int32, copy=False)
    largest = float(max(points.data.max(initial=0.0), -points.data.min(initial=0.0)))
    row_starts = points.indptr.astype(np.int64)
    kind = _native.CsrFloat if points.dtype == np.float32 else _native.CsrDouble
    compiled = kind(points.data, columns, row_starts, n_features, largest, weights, team)
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
    step = max(2**20, int(points.shape[1]))
    for start in range(0, points.nnz, step):
        yield points.indices[start : start + step], points.data[start : start + step].astype(float)


# Moves of single points and swaps of centers, in the form in which compiled code knows them.


@dataclass(frozen=True, slots=True)
class CompiledMoves:
    """Move points that are `measured` in the form of other rows, which their divergence tells."""

    _measured: Any  # `CompiledPoints`, as is `rows`
    rows: Any
    _divergence: Divergence

    def move_points(self, centers: FloatArray, n_passes: int) -> Moved:
        """Move single points from cluster to cluster; see `powermeans.points.protocol.Moves`."""
        labels, moved = self._measured.labels_of(centers), self._given(centers)
        order = self.rows.order_by_place
        n_moves = self.rows.native.move_points(
            self._divergence.moves, order, n_passes, labels, moved
        )
        return Moved(self._divergence.from_moved(moved, centers), n_moves)

    def swap_centers(
        self,
        centers: FloatArray,
        n_in_vain: int,
        most_distances: float,
        least_gain: float,
        least_distances: float = 0.0,
    ) -> Moved:
        """Dissolve clusters and split others; see `powermeans.points.protocol.Moves`."""
        labels, moved = self._measured.labels_of(centers), self._given(centers)
        _, n_kept, n_distances = self.rows.native.swap_centers(
            self._divergence.moves,
            self.rows.order_by_place,
            n_in_vain,
            most_distances,
            least_distances,
            least_gain,
            labels,
            moved,
        )
        return Moved(self._divergence.from_moved(moved, centers), n_kept, n_distances)

    def _given(self, centers: FloatArray) -> FloatArray:
        """Return a copy of the centers in the form of the rows."""
        copied = centers.astype(np.float64, order="C")
        return np.ascontiguousarray(self._divergence.as_moved(copied))


# Points that compute all distances by the definition.


class DirectPoints(CompiledPoints):
    """Measure by a divergence that a subclass sets, some points at a time."""

    holds_labels = False

    def sweep(self, centers: FloatArray, rule: Rule) -> Sums:
        distances = self._distances_in_chunks(centers)
        sums = sweep_by_formula(self._summed, self._weights, distances, len(centers), rule)
        return self.finished(sums * self._weight_unit)

    @property
    def _summed(self) -> Any:
        """What a sweep adds up."""
        return self._points

    def spread(self, centers: FloatArray) -> Spread:
        counts = self.sample_weight(np.arange(self.n_points))
        parts = self._distances_in_chunks(centers)
        return reduce(add, (spread_by_definition(part, counts[rows]) for rows, part in parts))

    def assign(self, centers: FloatArray) -> tuple[Labels, float]:
        parts = [
            (part.argmin(axis=1), part.min(axis=1))
            for _, part in self._distances_in_chunks(centers)
        ]
        labels, nearest = map(np.concatenate, zip(*parts, strict=True))
        inertia = float(self.sample_weight(np.arange(self.n_points)) @ nearest)
        return labels.astype(np.int32), inertia

    @property
    def priced(self) -> PricedByDefinition:
        return PricedByDefinition(self, self._distances_of)

    def labels_of(self, centers: FloatArray) -> Labels:
        return self.assign(centers)[0]

    def sq_distances(self, centers: FloatArray) -> Matrix:
        return self._divergence.pairwise(self._points, centers).astype(self.dtype)

    def nearness(  # type: ignore[override]
        self, centers: FloatArray, order: IndexArray | None = None
    ) -> NearnessByDefinition:
        weights = self.sample_weight(np.arange(self.n_points))
        points = as_float64(self._points)
        return NearnessByDefinition(points, weights, centers, order, self._divergence.pairwise)

    def rounding(self) -> float:
        return 0.0

    def _distances_of(self, indices: IndexArray, centers: FloatArray) -> FloatArray:
        return self._divergence.pairwise(self._points[indices], centers)
