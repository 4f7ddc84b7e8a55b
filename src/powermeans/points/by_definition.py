"""Sweeps, nearness and greedy seeds by their definitions, for rows without a faster way."""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powermeans.mathematics.rules import Priced, Rule, Scattered
from powermeans.mathematics.sums import Spread, Sums
from powermeans.mathematics.weighted_draws import draw_indices
from powermeans.points.protocol import (
    AskedNear,
    FarPoint,
    NearCenters,
    Nearness,
    Points,
    PricedLabels,
)
from powermeans.types import AnyMatrix, FloatArray, IndexArray, Matrix


def sweep_by_formula(
    points: AnyMatrix,
    sample_weight: FloatArray | None,
    distances: Iterable[tuple[slice, FloatArray]],
    n_centers: int,
    rule: Rule,
) -> Sums:
    """Sweep with a rule that has no kernel, over chunks of points and their distances."""
    sums = Sums(np.zeros((n_centers, points.shape[1])), np.zeros(n_centers), 0.0, 0.0)
    scatter = np.zeros(n_centers)
    for chunk, sq_dist in distances:
        counts = np.ones(len(sq_dist)) if sample_weight is None else sample_weight[chunk]
        weights, objectives = rule.weigh(sq_dist)
        weighted = counts[:, None] * weights
        sums += Sums(
            points=np.asarray((points[chunk].T @ weighted).T, dtype=np.float64),
            weights=weighted.sum(axis=0),
            objective=float(counts @ objectives),
            inertia=float(counts @ sq_dist.min(axis=1)),
        )
        if rule.scatters:
            scatter += np.einsum("ij,ij->j", weighted, sq_dist)
    return Scattered.of(sums, scatter) if rule.scatters else sums


def spread_by_definition(distances: FloatArray, counts: FloatArray) -> Spread:
    """Return error, utility and weight of each center; `counts` are the weights of the points."""
    n_centers = distances.shape[1]
    labels, nearest = distances.argmin(axis=1), distances.min(axis=1)

    def by_label(values: FloatArray) -> FloatArray:
        sums = np.bincount(labels, weights=values, minlength=n_centers)
        return np.asarray(sums, dtype=np.float64)

    if n_centers == 1:
        utility = np.array([np.inf])
    else:
        second = np.partition(distances, 1, axis=1)[:, 1]
        with np.errstate(over="ignore"):  # infinite is more than any other
            utility = by_label(counts * (second - nearest))
    return Spread(by_label(counts * nearest), utility, by_label(counts))


class NearnessByDefinition:
    """Keep nearest distances by a pairwise function, in the dtype of the points and weights."""

    def __init__(
        self,
        points: NDArray[Any],
        sample_weight: NDArray[Any],
        centers: FloatArray,
        order: IndexArray | None,
        pairwise: Callable[[Matrix, FloatArray], FloatArray],
    ) -> None:
        self._points, self._pairwise = points, pairwise
        self._order = np.arange(len(points)) if order is None else order
        self._weight = sample_weight
        self._nearest = np.full(len(points), np.inf, dtype=points.dtype)
        for center in centers:
            self.add(center)

    def draw(self, uniforms: FloatArray, exponent: float = 2.0) -> IndexArray:
        farthest = np.max(self._nearest[self._weight > 0])
        mass = self._weight
        if 0 < farthest < np.inf:
            # Divided by the farthest, so that no exponent overflows.
            mass = self._weight * (self._nearest / farthest) ** (exponent / 2)
        return self._order[draw_indices(_float64(mass[self._order]), uniforms)]

    def potentials(self, candidates: IndexArray) -> FloatArray:
        sq_dist = self._pairwise(self._points, self._points[candidates])
        with np.errstate(over="ignore"):  # infinite is more than any other
            return _float64(self._weight @ np.minimum(sq_dist, self._nearest[:, None]))

    def add(self, center: FloatArray) -> None:
        sq_dist = self._pairwise(self._points, np.asarray(center)[None, :])
        self._nearest = np.minimum(self._nearest, sq_dist[:, 0])

    def lower(self, nearest: FloatArray) -> None:
        """Add centers at these squared distances from the points."""
        self._nearest = np.minimum(self._nearest, nearest.astype(self._nearest.dtype))

    def farthest(self) -> int:
        return int(np.argmax(self._weighted()))

    def inertia(self) -> float:
        return float(self._weighted().sum())

    def sq_dist(self, indices: IndexArray | None = None) -> FloatArray:
        return _float64(self._nearest if indices is None else self._nearest[indices])

    def _weighted(self) -> NDArray[Any]:
        return weighted(self._weight, self._nearest)


def weighted(weights: NDArray[Any], sq_dist: NDArray[Any]) -> NDArray[Any]:
    """Return weight times squared distance; a point of no weight counts zero at any distance."""
    with np.errstate(invalid="ignore"):  # zero times infinity
        return np.where(weights > 0, weights * sq_dist, 0.0)


def _float64(values: NDArray[Any]) -> FloatArray:
    return values.astype(np.float64)


def greedy_seeds_by_definition(
    rows: Points,
    order: IndexArray,
    first: float,
    others: FloatArray,
    exponent: float = 2.0,
    seconds: float = math.inf,
) -> IndexArray:
    """Choose seeds by greedy k-means++; see `Sampler.greedy_seeds`.

    Candidates are drawn by their distance to the power of the exponent.
    """
    nearness = rows.nearness(np.empty((0, rows.n_features)), order)
    chosen = np.empty(1 + len(others), dtype=np.intp)
    end = time.monotonic() + seconds
    for seed in range(len(chosen)):
        if seed and time.monotonic() >= end:
            return chosen[:seed]
        uniforms = others[seed - 1] if seed else np.array([first])
        chosen[seed] = _best(nearness, nearness.draw(uniforms, exponent))
        nearness.add(rows.take(chosen[seed : seed + 1])[0])
    return chosen


def further_seeds(
    nearness: Nearness,
    points: FloatArray,
    others: FloatArray,
    least_share: float,
    seconds: float,
) -> IndexArray:
    """Choose seeds beside earlier ones by greedy k-means++; see `Sampler.further_seeds`."""
    whole, chosen = nearness.inertia(), []
    least, margin = least_share * whole, 1e-9 * whole  # a smaller difference is rounding
    end = time.monotonic() + seconds
    for uniforms in others:
        chosen.append(_best(nearness, nearness.draw(uniforms), margin))
        nearness.add(points[chosen[-1]])
        if nearness.inertia() <= least or time.monotonic() >= end:
            break
    return np.array(chosen, dtype=np.intp)


def _best(nearness: Nearness, candidates: IndexArray, margin: float = 0.0) -> int:
    """Return the candidate that leaves the least inertia, the first of those within a margin."""
    if len(candidates) == 1:
        return int(candidates[0])
    potentials, best = nearness.potentials(candidates), 0
    for candidate in range(1, len(candidates)):
        if potentials[candidate] < potentials[best] - margin:
            best = candidate
    return int(candidates[best])


class PricedByDefinition:
    """Compare distances and prices, of all points at once or of some at a time.

    `distances_of` returns the squared distances of some points from all centers.
    """

    def __init__(
        self, rows: Points, distances_of: Callable[[IndexArray, FloatArray], FloatArray]
    ) -> None:
        self._rows, self._distances_of = rows, distances_of

    def assign(self, centers: FloatArray, prices: FloatArray) -> PricedLabels:
        """Return labels and margins, with the distances of all points in memory."""
        rows = self._rows
        priced = rows.sq_distances(centers) + prices
        labels = priced.argmin(axis=1).astype(np.int32)
        margins = np.full(rows.n_points, np.inf)
        if len(centers) > 1:
            margins = np.partition(priced, 1, axis=1)[:, 1] - priced.min(axis=1)
        return PricedLabels(labels, margins, rows.sweep(centers, Priced(tuple(prices.tolist()))))

    def near(self, asked: AskedNear) -> NearCenters:
        """List the centers near some points; see `PricedPoints.near`."""
        indices, labels, centers, prices, reach, n_most = asked
        found = NearCenters.none(len(indices), n_most)
        step = max(1, 2**20 // len(centers))
        for start in range(0, len(indices), step):
            block = slice(start, start + step)
            distances, own = self._distances_of(indices[block], centers), labels[block, None]
            costs = distances + prices
            costs -= np.take_along_axis(costs, own, axis=1)
            np.put_along_axis(costs, own, -np.inf, axis=1)
            order = np.argsort(costs, axis=1, kind="stable")
            costs = np.take_along_axis(costs, order, axis=1)
            order, is_near = order[:, :n_most], costs[:, :n_most] <= reach
            n_listed = order.shape[1]
            found.centers[block, :n_listed] = np.where(is_near, order, -1)
            near = np.take_along_axis(distances, order, axis=1)
            found.distances[block, :n_listed] = np.where(is_near, near, np.inf)
        return found


def farthest(rows: Points, centers: FloatArray, n_wanted: int) -> Iterator[FarPoint]:
    """Yield the points of largest weighted squared distance, each a center for the next."""
    nearness = rows.nearness(centers)
    labels, _ = rows.assign(centers)
    for _ in range(n_wanted):
        index = np.array([nearness.farthest()])
        point, weight = rows.take(index)[0], float(rows.sample_weight(index)[0])
        yield FarPoint(point, weight, float(nearness.sq_dist(index)[0]), int(labels[index[0]]))
        nearness.add(point)
