"""Slow and readable rows: every quantity by its formula in NumPy, as a reference for tests."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from powermeans.divergences import Bregman, SquaredEuclidean
from powermeans.mathematics.critical_power import critical_power
from powermeans.mathematics.rules import Online, Reached, Rule, Scattered
from powermeans.mathematics.sums import Spread, Sums
from powermeans.points.base import BasePoints
from powermeans.points.by_definition import (
    NearnessByDefinition,
    further_seeds,
    greedy_seeds_by_definition,
)
from powermeans.points.protocol import Moved
from powermeans.types import AnyMatrix, FloatArray, IndexArray, Labels, Matrix

# A move that gains less than this share of what the point contributes may be rounding.
_LEAST_GAIN = 1e-9


class ReferencePoints(BasePoints):
    """Compute with whole (n_points, n_centers) arrays, in any precision; results are float64.

    Long double gives the truth against which tests measure accuracy. Without a divergence,
    distances are squared Euclidean.
    """

    def __init__(
        self,
        points: AnyMatrix,
        sample_weight: FloatArray | None = None,
        *,
        precision: type[np.floating[Any]] = np.float64,
        divergence: Bregman | None = None,
        moves_points: bool = False,
    ) -> None:
        self._given = points
        self._moves_points = moves_points
        self._divergence = divergence
        self._pairwise = (divergence or SquaredEuclidean()).pairwise
        dense = points.toarray() if sparse.issparse(points) else np.asarray(points)
        self._points: NDArray[Any] = dense.astype(precision)
        weight = np.ones(len(dense)) if sample_weight is None else np.asarray(sample_weight)
        self._weight: NDArray[Any] = weight.astype(precision)

    @property
    def n_points(self) -> int:
        return int(self._points.shape[0])

    @property
    def n_features(self) -> int:
        return int(self._points.shape[1])

    @property
    def dtype(self) -> np.dtype[np.floating[Any]]:
        return self._given.dtype

    @property
    def total_weight(self) -> float:
        return float(self._weight.sum())

    def weigh(self, sample_weight: FloatArray) -> None:
        self._weight[:] = sample_weight

    def mean(self) -> FloatArray:
        return _float64(self._weight @ self._points / self._weight.sum())

    def _middle(self) -> FloatArray:
        return self.mean()

    def inertia_about_mean(self) -> float:
        return float(self._weight @ self._sq_dist(self.mean()[None, :])[:, 0])

    def unit_steps(self) -> float | FloatArray:
        if self._divergence is None:
            return 1.0
        return np.sqrt(2 / self._divergence.curvature(self.mean()))

    def rounding(self) -> float:
        return 0.0 if self._divergence is None else float(np.finfo(self.dtype).eps)

    def critical_power(self) -> float:
        return critical_power(_float64(self._points / self.unit_steps()), _float64(self._weight))

    def mean_variance(self) -> float:
        return float(np.mean(np.var(self._points, axis=0)))

    def sweep(self, centers: FloatArray, rule: Rule) -> Sums:
        if isinstance(rule, Online):
            return self._present(centers, rule)
        sq_dist = self._sq_dist(centers)
        weights, objectives = rule.weigh(sq_dist)
        weighted = self._weight[:, None] * weights
        sums = Sums(
            points=_float64(weighted.T @ self._points),
            weights=_float64(weighted.sum(axis=0)),
            objective=float(self._weight @ objectives),
            inertia=float(self._weight @ sq_dist.min(axis=1)),
        )
        scatter = _float64((weighted * sq_dist).sum(axis=0))
        return Scattered.of(sums, scatter) if rule.scatters else sums

    def _present(self, centers: FloatArray, online: Online) -> Reached:
        moving, counts, inertia = centers.astype(self._points.dtype), online.counts.copy(), 0.0
        order = np.arange(self.n_points) if online.order is None else online.order
        with_weight = order[self._weight[order] > 0]
        for step, i in enumerate(with_weight):
            point, weight = self._points[i], float(self._weight[i])
            sq_dist = np.square(point - moving).sum(axis=1)
            winner = int(np.argmin(sq_dist))
            counts[winner] += weight
            rate = weight / counts[winner]
            if online.rates is not None:
                rate = 1 - (1 - online.rates[step]) ** weight
            moving[winner] += rate * (point - moving[winner])
            inertia += weight * float(sq_dist[winner])
        return Reached.at(_float64(moving), counts, inertia)

    def spread(self, centers: FloatArray) -> Spread:
        sq_dist = self._sq_dist(centers)
        labels = np.argmin(sq_dist, axis=1)
        nearest = sq_dist.min(axis=1)
        return Spread(
            error=self._add_by_label(self._weight * nearest, labels, len(centers)),
            utility=self._utility(sq_dist, labels),
            weights=self._add_by_label(self._weight, labels, len(centers)),
        )

    def assign(self, centers: FloatArray) -> tuple[Labels, float]:
        sq_dist = self._sq_dist(centers)
        labels = np.argmin(sq_dist, axis=1).astype(np.int32)
        return labels, float(self._weight @ sq_dist.min(axis=1))

    @property
    def moves(self) -> Any:
        return self if self._moves_points else None

    def move_points(self, centers: FloatArray, n_passes: int) -> Moved:
        points, weight = self._items()
        labels = self._pairwise(points, centers).argmin(axis=1)
        clusters = Clusters(points, weight, labels, centers, self._pairwise)
        n_moves = 0
        for _ in range(n_passes):
            candidates = [i for i in range(len(points)) if clusters.best_move(i) is not None]
            moves = [i for i in candidates if clusters.moved(i)]
            n_moves += len(moves)
            if not moves:
                break
        return Moved(_float64(clusters.centers()), n_moves)

    def _items(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the points by distance from a place, equal ones as one, and their weights."""
        direction = np.random.default_rng(0).standard_normal(self.n_features)
        squares = np.square(self._points - self.mean()).mean(axis=1)
        far = np.sqrt(self._weight @ squares / self._weight.sum())
        items, item_of = np.unique(self._points, axis=0, return_inverse=True)
        weight = np.zeros(len(items), dtype=self._weight.dtype)
        np.add.at(weight, item_of.ravel(), self._weight)
        key = np.square(items - (self.mean() + far * direction)).sum(axis=1)
        order = np.argsort(np.where(weight > 0, key, np.inf))[: np.count_nonzero(weight)]
        return items[order], weight[order]

    def sq_distances(self, centers: FloatArray) -> Matrix:
        return self._sq_dist(centers).astype(self.dtype)

    def nearness(
        self, centers: FloatArray, order: IndexArray | None = None
    ) -> NearnessByDefinition:
        return NearnessByDefinition(self._points, self._weight, centers, order, self._pairwise)

    @property
    def sampler(self) -> Any:
        return self if self._divergence is None else None

    def greedy_seeds(
        self, order: IndexArray, first: float, others: FloatArray, *, seconds: float = math.inf
    ) -> IndexArray:
        return greedy_seeds_by_definition(self, order, first, others, seconds=seconds)

    def further_seeds(
        self,
        indices: IndexArray,
        nearest: FloatArray,
        others: FloatArray,
        least_share: float,
        *,
        seconds: float = math.inf,
    ) -> IndexArray:
        points, weights = self._points[indices], nearest.min() / nearest
        nearness = NearnessByDefinition(
            points, weights.astype(points.dtype), np.empty((0, 0)), None, self._pairwise
        )
        nearness.lower(nearest)
        found = further_seeds(nearness, _float64(points), others, least_share, seconds)
        return indices[found]

    def some(
        self, indices: IndexArray | slice, sample_weight: FloatArray | None = None
    ) -> ReferencePoints:
        precision, divergence = self._points.dtype.type, self._divergence
        return ReferencePoints(
            self._given[indices], sample_weight, precision=precision, divergence=divergence
        )

    def take(self, indices: IndexArray) -> FloatArray:
        return _float64(self._points[indices])

    def sample_weight(self, indices: IndexArray) -> FloatArray:
        return _float64(self._weight[indices])

    def sample(self, indices: IndexArray) -> AnyMatrix:
        return self._given[indices]

    def _sq_dist(self, centers: FloatArray) -> NDArray[Any]:
        return self._pairwise(self._points, centers)

    def _utility(self, sq_dist: NDArray[Any], labels: NDArray[np.intp]) -> FloatArray:
        n_centers = sq_dist.shape[1]
        if n_centers == 1:
            return np.array([np.inf])
        nearest, second = np.partition(sq_dist, 1, axis=1)[:, :2].T
        return self._add_by_label(self._weight * (second - nearest), labels, n_centers)

    def _add_by_label(
        self, values: NDArray[Any], labels: NDArray[np.intp], n_centers: int
    ) -> FloatArray:
        return _float64(np.array([values[labels == j].sum() for j in range(n_centers)]))


class Clusters:
    """A partition from which single points move (Hartigan 1975, Telgarsky & Vattani 2010)."""

    def __init__(
        self,
        points: NDArray[Any],
        weight: NDArray[Any],
        labels: IndexArray,
        centers: FloatArray,
        pairwise: Any,
    ) -> None:
        self._points, self._weight, self._labels = points, weight, labels.copy()
        self._fallback, self._pairwise = centers, pairwise

    def centers(self) -> NDArray[Any]:
        """Return the means; a cluster without points keeps its center."""
        means = np.array(self._fallback, dtype=self._points.dtype)
        for j in np.unique(self._labels):
            own = self._labels == j
            means[j] = self._weight[own] @ self._points[own] / self._weight[own].sum()
        return means

    def error(self, own: NDArray[np.bool_]) -> float:
        """Return the error of a cluster of these points about their mean."""
        if not own.any():
            return 0.0
        weight, points = self._weight[own], self._points[own]
        mean = weight @ points / weight.sum()
        return float(weight @ self._pairwise(points, mean[None, :])[:, 0])

    def best_move(self, i: int) -> int | None:
        """Return the cluster for which point i had better leave its own."""
        own, is_i = self._labels[i], np.arange(len(self._labels)) == i
        if np.count_nonzero(self._labels == own) == 1:
            return None
        members = [self._labels == j for j in range(len(self._fallback))]
        relief = self.error(members[own]) - self.error(members[own] & ~is_i)
        burden = [self.error(some | is_i) - self.error(some) for some in members]
        burden[own] = math.inf
        best = int(np.argmin(burden))
        return best if relief - burden[best] > _LEAST_GAIN * relief else None

    def moved(self, i: int) -> bool:
        """Move point i if that is better, and return whether it was."""
        best = self.best_move(i)
        if best is not None:
            self._labels[i] = best
        return best is not None


def _float64(values: NDArray[Any]) -> FloatArray:
    return values.astype(np.float64)
