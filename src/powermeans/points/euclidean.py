"""Points in memory by squared Euclidean distances, with all that these allow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from powermeans.divergences import SquaredEuclidean
from powermeans.points.base import in_unit
from powermeans.points.by_definition import weighted
from powermeans.points.cells import Cells
from powermeans.points.compiled import FEW_FEATURES, CompiledPrices, CompiledRows, open_compiled
from powermeans.points.farthest import Farthest, farthest_in_passes, largest_first
from powermeans.points.moves import CompiledMoves
from powermeans.points.protocol import AskedNear, FarPoint, NearCenters, Rows
from powermeans.types import FloatArray, IndexArray


class EuclideanRows(CompiledRows):
    """Measure by squared Euclidean distances; options as for `CompiledRows`."""

    def _find_inertia_about_mean(self) -> float:
        if self._weights is not None:
            return self._inertia_of_sweep()
        return self.n_points * float(np.sum(self._column_variance))

    @cached_property
    def n_places(self) -> int:
        key = self._key_of_places()
        weighing = key if self._weights is None else key[self._weights > 0]
        return int(np.count_nonzero(np.diff(np.sort(weighing), prepend=-1.0)))

    @property
    def moves(self) -> CompiledMoves:
        return CompiledMoves(self, self, SquaredEuclidean())

    @property
    def priced(self) -> EuclideanPrices:
        return EuclideanPrices(self)

    @property
    def sampler(self) -> EuclideanSampler:
        return EuclideanSampler(self)

    @property
    def cells(self) -> Cells | None:
        # With few features any sweep leaves out the centers far from a point.
        is_dense = not sparse.issparse(self._points)
        return Cells(self) if is_dense and self.n_features > FEW_FEATURES else None

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
            some, weights = self.sampler.some(first), self.sample_weight(first)
            labels, _ = some.assign(centers)
            return Farthest(n_kept, sq_dist[first], weights, labels, self.take(first)), some

        return farthest_in_passes(find, centers, n_wanted)

    def _distances_in_chunks(self, centers: FloatArray) -> Iterable[tuple[slice, FloatArray]]:
        return SquaredEuclidean().in_chunks(self._points, centers)


class EuclideanPrices(CompiledPrices):
    """List near centers in compiled code too."""

    def __init__(self, rows: EuclideanRows) -> None:
        super().__init__(rows, rows._distances_of)
        self._euclidean = rows

    def near(self, asked: AskedNear) -> NearCenters:
        rows, found = self._euclidean, NearCenters.none(len(asked.indices), asked.n_most)
        if len(asked.indices):
            some, taken = rows.native_of(asked.indices), rows.as_compiled(asked.centers)
            some.list_near(
                taken, asked.prices, asked.labels, asked.reach, found.centers, found.distances
            )
        return found


@dataclass(frozen=True, slots=True)
class EuclideanSampler:
    """Take samples with the threads of all points; see `powermeans.points.protocol.Sampler`."""

    _rows: EuclideanRows

    def some(
        self, indices: IndexArray | slice, sample_weight: FloatArray | None = None
    ) -> EuclideanRows:
        rows = self._rows
        # A sample that stands for all points has moments of its own.
        known = rows.known if sample_weight is None else None
        return type(rows)(rows._points[indices], sample_weight, team=rows.team, known=known)

    def greedy_seeds(
        self, order: IndexArray, first: float, others: FloatArray, *, seconds: float = math.inf
    ) -> IndexArray:
        indices = np.empty(1 + len(others), dtype=np.int64)
        n_found = self._rows.native.greedy_seeds(order, first, others, indices, seconds)
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
        sample, *_ = open_compiled(self._rows._points[indices], weights, self._rows.team)
        found, order = np.empty(len(others), dtype=np.int64), np.arange(len(indices))
        n_found = sample.further_seeds(order, nearest, least_share, others, found, seconds)
        return indices[found[:n_found]]
