"""Points in memory by squared Euclidean distances, with all that these allow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from powermeans.divergences import squared_euclidean
from powermeans.mathematics.rules import Hard, Power
from powermeans.mathematics.sums import Spread, Sums
from powermeans.points.by_definition import weighted
from powermeans.points.checks.narrow import widened
from powermeans.points.compiled import FEW_FEATURES, CompiledRows, Labelling
from powermeans.points.farthest import Farthest, farthest_in_passes, largest_first
from powermeans.points.moves import CompiledMoves
from powermeans.points.protocol import FarPoint, NearCenters, Rows
from powermeans.types import FloatArray, IndexArray, Labels, Points, SparsePoints

_ENTRIES_AT_ONCE = 2**20


class EuclideanRows(CompiledRows):
    """Measure by squared Euclidean distances; options as for `CompiledRows`."""

    def _find_inertia_about_mean(self) -> float:
        known = self._inertia_from_moments()
        return super()._find_inertia_about_mean() if known is None else known

    def _inertia_from_moments(self) -> float | None:
        """Return the inertia about the mean where the moments of the columns tell it."""
        is_known = self._weights is None
        return self.n_points * float(np.sum(self._column_variance)) if is_known else None

    @property
    def cells(self) -> EuclideanRows | None:
        # With few features any sweep leaves out the centers far from a point.
        is_dense = not sparse.issparse(self._points)
        return self if is_dense and self.n_features > FEW_FEATURES else None

    def nearest_to_each(
        self, centers: FloatArray, n_listed: int, prices: FloatArray | None = None
    ) -> Labels:
        """List the centers nearest to each, with itself first, (n_centers, n_listed).

        Prices are added to the squared distances.
        """
        points = np.ascontiguousarray(centers, dtype=self.dtype)
        lists: Labels = np.empty((len(centers), min(n_listed, len(centers))), dtype=np.int32)
        alike = self.rows_of(points, np.ones(len(points)))
        alike.native.list_nearby(alike.as_compiled(centers), prices, lists)
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
            swept = self.native.sweep_nearby(taken, nearby, labels)
        elif isinstance(rule, Labelling):
            prices = rule.prices_of(len(centers))
            swept = self.native.priced_nearby(taken, nearby, labels, prices, rule.margins)
        else:
            swept = self.native.power_nearby(taken, nearby, labels, rule.power)
        return self._sums_of(swept, len(centers))

    def spread_nearby(self, centers: FloatArray, nearby: Labels, labels: Labels) -> Spread:
        """Return the spread among the centers that `sweep_nearby` looks at."""
        return self._spread_of(
            *self.native.spread_nearby(self.as_compiled(centers), nearby, labels)
        )

    def distances_to_own(self, centers: FloatArray, labels: Labels) -> FloatArray:
        """Return the squared distance of each point to the center of its label."""
        distances, taken = np.empty(self.n_points), self.as_compiled(centers)
        step = max(1, _ENTRIES_AT_ONCE // self.n_features)
        for start in range(0, self.n_points, step):
            block = slice(start, start + step)
            differences = widened(self._points[block]) - taken[labels[block]]
            distances[block] = np.einsum("if,if->i", differences, differences)
        return distances

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
        return EuclideanRows(self._points[indices], team=self.team, known=self.known).native

    @cached_property
    def n_places(self) -> int:
        key = self._key_of_places()
        weighing = key if self._weights is None else key[self._weights > 0]
        return int(np.count_nonzero(np.diff(np.sort(weighing), prepend=-1.0)))

    @property
    def moves(self) -> CompiledMoves:
        return CompiledMoves(self, self, "squared_euclidean")

    @cached_property
    def order_of_moves(self) -> IndexArray:
        """Sort the points by place, so that the order of the rows makes no difference."""
        return np.argsort(self._key_of_places(), kind="stable")

    def _key_of_places(self) -> FloatArray:
        """Return a number for each point, equal for equal points and for others only by chance."""
        direction = np.random.default_rng(0).standard_normal(self.n_features)
        far = math.sqrt(self.inertia_about_mean() / self.total_weight / self.n_features)
        return self.nearness((self.mean() + far * direction)[None, :]).sq_dist()

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
        n_found = self.native.greedy_seeds(order, first, others, indices, seconds)
        return indices[:n_found]

    @property
    def sampler(self) -> EuclideanRows:
        return self

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
        sample = EuclideanRows(self._points[indices], weights, team=self.team).native
        found, order = np.empty(len(others), dtype=np.int64), np.arange(len(indices))
        n_found = sample.further_seeds(order, nearest, least_share, others, found, seconds)
        return indices[found[:n_found]]

    def rows_of(self, points: Points | SparsePoints, sample_weight: FloatArray) -> EuclideanRows:
        return EuclideanRows(points, sample_weight, team=self.team, n_columns=self._n_columns)

    @property
    def reads_blocks(self) -> bool:
        return not sparse.issparse(self._points)

    def some(self, indices: IndexArray | slice) -> Rows:
        return EuclideanRows(self._points[indices], team=self.team, known=self.known)

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

    def _distances_in_chunks(self, centers: FloatArray) -> Iterable[tuple[slice, FloatArray]]:
        return squared_euclidean.in_chunks(self._points, centers)
