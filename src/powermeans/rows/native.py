"""Points in this process's memory, dense or sparse, swept over by the compiled core."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

import powermeans._native as _native
from powermeans.critical import critical_power
from powermeans.divergences import squared_euclidean
from powermeans.rows.base import BaseRows
from powermeans.rows.by_definition import sweep_by_formula
from powermeans.rules import Gaussian, Hard, Harmonic, Online, Power, Reached, Rule
from powermeans.sums import ColumnMoments, Spread, Sums
from powermeans.system.threads import effective_n_threads
from powermeans.types import FloatArray, IndexArray, Labels, Points, SparsePoints

instruction_set = _native.instruction_set
instruction_sets = _native.instruction_sets
thread_limit = _native.thread_limit
Team = _native.Team
Known = _native.Moments

_ENTRIES_AT_ONCE = 2**20


class NativeRows(BaseRows):
    """Rows in memory. Points must be C-contiguous or CSR, finite, float32 or float64; never copied.

    Parameters
    ----------
    points : ndarray or CSR of shape (n_points, n_features)
        The points, as the border of the package leaves them.
    sample_weight : ndarray of shape (n_points,), optional
        Float64 weights, none negative.
    n_threads : int, optional
        See `powermeans.system.threads.effective_n_threads`.
    team : Team, optional
        Of other rows, to be shared with them.
    known : Known, optional
        What `known` said of the same points, dense ones, when they were opened before.
    """

    def __init__(
        self,
        points: Points | SparsePoints,
        sample_weight: FloatArray | None = None,
        *,
        n_threads: int | None = None,
        team: Team | None = None,
        known: Known | None = None,
    ) -> None:
        self._points = points
        self._weights, self._weight_unit = _in_unit(sample_weight)
        self.team = team or start_team(n_threads)
        # Mean and variance of the columns count every point once, whatever its weight.
        self._native, self._column_mean, self._column_variance = (
            _sparse(points, self._weights, self.team)
            if sparse.issparse(points)
            else _dense(points, self._weights, self.team, known)
        )

    @property
    def n_points(self) -> int:
        """Number of points."""
        return int(self._points.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self._points.shape[1])

    @property
    def dtype(self) -> np.dtype[np.floating[Any]]:
        """Dtype of the points."""
        return self._points.dtype

    @property
    def known(self) -> Known | None:
        """What need not be found out again where the same points are opened anew."""
        dense = (_native.DenseFloat, _native.DenseDouble)
        return self._native.moments() if isinstance(self._native, dense) else None

    @property
    def placement(self) -> None:
        """There is but one place and way."""
        return None

    @property
    def n_stored(self) -> int:
        """How many values of the points are stored."""
        return int(self._points.nnz if sparse.issparse(self._points) else self._points.size)

    @property
    def total_weight(self) -> float:
        """Sum of the sample weights."""
        if self._weights is None:
            return float(self.n_points)
        return float(np.sum(self._weights)) * self._weight_unit

    def weigh(self, sample_weight: FloatArray) -> None:
        """Give the points these weights, none larger than the largest they were opened with.

        The compiled points look at the same array.
        """
        assert self._weights is not None, "the rows were opened with weights"
        np.divide(sample_weight, self._weight_unit, out=self._weights)
        self._forget_what_follows_from_weights()

    def _middle(self) -> FloatArray:
        return self._column_mean

    def _find_mean(self) -> FloatArray:
        return self._column_mean if self._weights is None else super()._find_mean()

    def _find_inertia_about_mean(self) -> float:
        if self._weights is None:
            return self.n_points * float(np.sum(self._column_variance))
        return super()._find_inertia_about_mean()

    def mean_variance(self) -> float:
        """Mean over the features of the unweighted variance."""
        return float(np.mean(self._column_variance))

    def column_moments(self) -> ColumnMoments:
        """Mean and squared deviations of each column, every point counted once."""
        counts = np.full(self.n_features, float(self.n_points))
        return ColumnMoments(counts, self._column_mean, self.n_points * self._column_variance)

    def critical_power(self) -> float:
        """Above it all centers collapse to the mean; see `powermeans.critical_power`."""
        return critical_power(self._points, self._weights)

    def sweep(self, centers: FloatArray, rule: Rule) -> Sums:
        """Weigh every point by the rule and add up."""
        if isinstance(rule, Online):
            return self._present(centers, rule)
        seen = self.seen(centers)
        if isinstance(rule, Hard):
            swept = self._native.sweep_hard(seen)
        elif isinstance(rule, Power):
            swept = self._native.sweep_power(seen, rule.power, 0.0, 1.0)
        elif isinstance(rule, Harmonic):
            swept = self._native.sweep_power(seen, rule.power, rule.p / 2 - 1, rule.unit)
        elif isinstance(rule, Gaussian):
            swept = self._native.sweep_gaussian(seen, rule.variance, rule.shares_of(len(centers)))
        else:
            distances = self._by_definition(centers)
            sums = sweep_by_formula(self._points, self._weights, distances, len(centers), rule)
            return sums * self._weight_unit
        points, weights, objective, inertia, n_distances = swept
        n_skipped = max(0.0, self.n_points * len(centers) - n_distances)
        return Sums(points, weights, objective, inertia, n_skipped) * self._weight_unit

    def expect_few_sweeps(self) -> None:
        """Leave out what only many sweeps repay, such as an order of the points by place."""
        self._native.expect_few_sweeps()

    def _present(self, centers: FloatArray, online: Online) -> Reached:
        """Show the points to the centers one after another."""
        reached, counts = centers.astype(np.float64, order="C"), online.counts.astype(np.float64)
        inertia = self._native.present(
            online.order, online.rates, self._weight_unit, reached, counts
        )
        return Reached.at(reached, counts, inertia)

    def spread(self, centers: FloatArray) -> Spread:
        """Error and utility of each center under the hard rule."""
        error, utility, weights = self._native.spread(self.seen(centers))
        if len(centers) == 1:
            utility = np.array([np.inf])
        unit = self._weight_unit
        return Spread(error * unit, utility * unit, weights * unit)

    def assign(self, centers: FloatArray) -> tuple[Labels, float]:
        """Label of the nearest center for each point, and the inertia."""
        labels = np.empty(self.n_points, dtype=np.int32)
        return labels, self._native.assign(self.seen(centers), labels) * self._weight_unit

    def sq_distances(self, centers: FloatArray) -> Points:
        """All squared distances, in the points' dtype."""
        computed = np.float64 if sparse.issparse(self._points) else self.dtype
        distances: Points = np.empty((self.n_points, len(centers)), dtype=computed)
        self._native.sq_distances(self.seen(centers), distances)
        return distances.astype(self.dtype, copy=False)

    def nearness(self, centers: FloatArray, order: IndexArray | None = None) -> NativeNearness:
        """Nearness to these centers, of which there may be none."""
        return NativeNearness(self._native, self, self._weights, self._weight_unit, centers, order)

    def greedy_seeds(
        self, order: IndexArray, first: float, others: FloatArray, exponent: float = 2.0
    ) -> IndexArray:
        if exponent != 2:
            return super().greedy_seeds(order, first, others, exponent)
        indices = np.empty(1 + len(others), dtype=np.int64)
        self._native.greedy_seeds(order, first, others, indices)
        return indices

    def take(self, indices: IndexArray) -> FloatArray:
        """These points, dense."""
        rows = self._points[indices]
        dense = rows.toarray() if sparse.issparse(rows) else rows
        return np.ascontiguousarray(dense, dtype=np.float64)

    def sample_weight(self, indices: IndexArray) -> FloatArray:
        """The weights of these points."""
        if self._weights is None:
            return np.ones(len(indices))
        return self._weights[indices] * self._weight_unit

    def sample(self, indices: IndexArray) -> Points | SparsePoints:
        """These points in the kind they live in."""
        return self._points[indices]

    def seen(self, centers: FloatArray) -> FloatArray:
        """The centers as the compiled points take them."""
        return np.ascontiguousarray(centers)

    def _by_definition(self, centers: FloatArray) -> Iterable[tuple[slice, FloatArray]]:
        """Distances for rules that have no kernel."""
        return squared_euclidean.in_chunks(self._points, centers)


class NativeNearness:
    """Squared distances to the nearest center chosen so far, in the unit of the compiled points."""

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
        if len(centers):
            compiled.approach(rows.seen(centers), self._nearest)

    def draw(self, uniforms: FloatArray, exponent: float = 2.0) -> IndexArray:
        """Draw one point for each number, by weight times distance to the exponent."""
        indices = np.empty(len(uniforms), dtype=np.int64)
        numbers = np.ascontiguousarray(uniforms)
        self._native.draw(self._nearest, self._order, numbers, exponent, indices)
        return indices

    def potentials(self, candidates: IndexArray) -> FloatArray:
        """The inertia that adding each of these points as a center would leave."""
        seen = self._rows.seen(self._rows.take(candidates))
        left: FloatArray = self._native.potentials(seen, self._nearest)
        return left * self._weight_unit

    def add(self, center: FloatArray) -> None:
        """Take one more center into account."""
        self._native.approach(self._rows.seen(center[None, :]), self._nearest)

    def farthest(self) -> int:
        """The point with the largest weighted squared distance."""
        return int(np.argmax(self._weighted()))

    def inertia(self) -> float:
        """Weighted sum of the squared distances."""
        unscale = 1.0 / self._native.scale
        return float(np.sum(self._weighted())) * unscale * unscale * self._weight_unit

    def sq_dist(self, indices: IndexArray | None = None) -> FloatArray:
        """The squared distances of these points, or of all."""
        unscale = 1.0 / self._native.scale
        chosen = self._nearest if indices is None else self._nearest[indices]
        sq_dist: FloatArray = chosen * unscale
        sq_dist *= unscale
        return sq_dist

    def _weighted(self) -> FloatArray:
        if self._weights is None:
            return self._nearest
        # A point of no weight counts for nothing, be it infinitely far.
        with np.errstate(invalid="ignore"):
            return np.where(self._weights > 0, self._weights * self._nearest, 0.0)


def start_team(n_threads: int | None) -> Team:
    """Threads, which several rows may share.

    Parameters
    ----------
    n_threads : int or None
        See `powermeans.system.threads.effective_n_threads`.
    """
    return _native.Team(effective_n_threads(n_threads, thread_limit()))


def _in_unit(sample_weight: FloatArray | None) -> tuple[FloatArray | None, float]:
    """Weights divided by a power of two, so that the largest is between 1/2 and 1."""
    if sample_weight is None:
        return None, 1.0
    largest = float(np.max(sample_weight, initial=0.0))
    unit = 2.0 ** np.clip(np.frexp(largest)[1], -1022, 1022) if largest > 0 else 1.0
    return np.ascontiguousarray(sample_weight / unit, dtype=np.float64), float(unit)


def _dense(
    points: Any, weights: FloatArray | None, team: _native.Team, known: Known | None
) -> tuple[_native.CompiledPoints, FloatArray, FloatArray]:
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
    """Mean and variance of each column; the entries not stored are zeros."""
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
    """Columns and values of the stored entries, some at a time."""
    step = max(_ENTRIES_AT_ONCE, int(points.shape[1]))
    for start in range(0, points.nnz, step):
        yield points.indices[start : start + step], points.data[start : start + step].astype(float)
