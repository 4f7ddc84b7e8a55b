"""Slow and readable rows: every quantity by its formula in NumPy, as a reference for tests."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from powermeans.divergences import Bregman, SquaredEuclidean
from powermeans.mathematics.critical_power import critical_power
from powermeans.mathematics.rules import Rule, Scattered
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

        def mean(own: NDArray[np.bool_]) -> NDArray[Any]:
            return np.asarray(weight[own] @ points[own] / weight[own].sum())

        def error(own: NDArray[np.bool_]) -> float:
            if not own.any():
                return 0.0
            return float(weight[own] @ self._pairwise(points[own], mean(own)[None, :])[:, 0])

        n_moves = 0
        for _ in range(n_passes):
            before = n_moves
            wishes = [_best_cluster(i, labels, len(centers), error) for i in range(len(points))]
            for i in map(int, np.flatnonzero(wishes != labels)):
                best = _best_cluster(i, labels, len(centers), error)
                n_moves += int(best != labels[i])
                labels[i] = best
            if n_moves == before:
                break
        means = np.array(centers, dtype=points.dtype)  # a cluster without points keeps its center
        for j in np.unique(labels):
            means[j] = mean(labels == j)
        return Moved(_float64(means), n_moves)

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


def _best_cluster(
    i: int, labels: IndexArray, n_clusters: int, error: Callable[[NDArray[np.bool_]], float]
) -> int:
    """Return where point i had better be (Hartigan 1975, Telgarsky & Vattani 2010)."""
    own, is_i = int(labels[i]), np.arange(len(labels)) == i
    members = [labels == j for j in range(n_clusters)]
    relief = error(members[own]) - error(members[own] & ~is_i)
    burden = [error(some | is_i) - error(some) for some in members]
    burden[own] = math.inf
    best = int(np.argmin(burden))
    gains = relief - burden[best] > _LEAST_GAIN * relief
    return best if gains and np.count_nonzero(members[own]) > 1 else own


def _float64(values: NDArray[Any]) -> FloatArray:
    return values.astype(np.float64)
