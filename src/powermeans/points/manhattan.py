"""Rows in memory compared by sums of absolute differences: k-medians and its soft variants.

The squared distance of the protocol is here y = sum_f |x_f - theta_f|, and its mean is a median.
Inertia thus adds up distances, and a draw at the exponent 2 is in proportion to them.

The center that minimises sum_i w_i y_i has a weighted median in each feature: any place between
the lower median, where the cumulative weight reaches half, and the upper one, where it exceeds
half. The rows take the midpoint, which depends neither on the order of the points nor on whether a
weight of two stands for two copies.

At a center that is a point, the power mean of its distances has a kink of the slope k^(1/|s|). With
powers s near zero and few points for each center, centers may thus stay at points for some sweeps.
"""

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from powermeans.divergences import Manhattan
from powermeans.mathematics.rules import Hard, Rule
from powermeans.mathematics.sums import Spread, Sums
from powermeans.points.by_definition import NearnessByDefinition, spread_by_definition
from powermeans.points.compiled import DirectPoints
from powermeans.system.attributes import cached_property
from powermeans.types import FloatArray, IndexArray, Labels, Matrix

Part = TypeVar("Part")
Result = TypeVar("Result")
Order = NDArray[Any]
"""A permutation of the points, in the shortest integers that hold it."""

# A cumulative weight this near to half, as a share, counts as half, so that rounding decides none,
# and the objective changes by at most twice this share.
_ROUNDING = 1e-13
_CHUNK_ELEMENTS = 2**17
# Soft weights in memory at a time; with more, the centers take turns.
_MOST_WEIGHTS_KEPT = 2**26


@dataclass(frozen=True, slots=True)
class MedianSums(Sums):
    """Hold weighted medians, NaN for centers of no weight; `points` are medians times weights.

    These sums do not add: medians of parts do not give the median of all.
    """

    medians: FloatArray = field(default_factory=lambda: np.empty((0, 0)))

    def __add__(self, other: Self) -> Self:
        raise TypeError("sums of medians do not add up: sweep over all points at once")

    def __mul__(self, unit: float) -> Self:
        return replace(Sums.__mul__(self, unit), medians=self.medians)

    def centers(self, fallback: FloatArray) -> FloatArray:
        """Return weighted medians; a center of no weight keeps its row of `fallback`."""
        return np.where(np.isnan(self.medians), fallback, self.medians)

    def moved(self, former: int, cluster: int, point: FloatArray, weight: float) -> Self:
        """Make the point the median of its cluster; the former cluster keeps its median."""
        medians = self.medians.copy()
        medians[cluster] = point
        return replace(Sums.moved(self, former, cluster, point, weight), medians=medians)


class ManhattanPoints(DirectPoints):
    """Measure dense points by sums of absolute differences.

    Each feature is sorted once. A soft sweep then takes time in points times centers times features
    and memory for the weights of all points; a hard one finds its medians in points times features.
    """

    _divergence = Manhattan()
    _points: Matrix

    def sweep(self, centers: FloatArray, rule: Rule) -> MedianSums:
        """Weigh every point by the rule, and find the weighted medians."""
        if isinstance(rule, Hard):
            return self._sweep_hard(centers)
        weights, medians = np.empty(len(centers)), np.empty(centers.shape)
        objective = inertia = 0.0
        for group in self._groups(len(centers)):
            weighted, objective, inertia = self._weigh(centers, rule, group)
            weights[group] = weighted.sum(axis=0)
            medians[group] = self._medians(partial(_soft_medians, weights=weighted))
        return self._sums(weights, medians, objective, inertia)

    def _sweep_hard(self, centers: FloatArray) -> MedianSums:
        labels, nearest = self._nearest(centers)
        weights = np.bincount(labels, weights=self._weights, minlength=len(centers))
        inertia = self._add_weighted(nearest)
        medians = self._medians_by_label(labels, len(centers))
        return self._sums(weights.astype(np.float64), medians, inertia, inertia)

    def _sums(
        self, weights: FloatArray, medians: FloatArray, objective: float, inertia: float
    ) -> MedianSums:
        points = weights[:, None] * np.where(np.isnan(medians), 0.0, medians)
        sums = MedianSums(points, weights, objective, inertia, medians=medians)
        return sums * self._weight_unit

    def spread(self, centers: FloatArray) -> Spread:
        def of_part(rows: slice) -> Spread:
            distances = self._divergence.pairwise(self._points[rows], centers)
            return spread_by_definition(distances, self._counts(rows) * self._weight_unit)

        return reduce(operator.add, self._each(of_part, self._parts(len(centers))))

    def assign(self, centers: FloatArray) -> tuple[Labels, float]:
        labels, nearest = self._nearest(centers)
        return labels, self._add_weighted(nearest) * self._weight_unit

    def sq_distances(self, centers: FloatArray) -> Matrix:
        distances: Matrix = np.empty((self.n_points, len(centers)), dtype=self.dtype)

        def fill(rows: slice) -> None:
            distances[rows] = self._divergence.pairwise(self._points[rows], centers)

        self._each(fill, self._parts(len(centers)))
        return distances

    def nearness(  # type: ignore[override]
        self, centers: FloatArray, order: IndexArray | None = None
    ) -> NearnessByDefinition:
        weights = self.sample_weight(np.arange(self.n_points))
        return NearnessByDefinition(
            self._points, weights, centers, order, self._divergence.pairwise
        )

    def _distances_in_chunks(self, centers: FloatArray) -> Iterable[tuple[slice, FloatArray]]:
        for rows in self._parts(len(centers)):
            yield rows, self._divergence.pairwise(self._points[rows], centers)

    def unit_steps(self) -> float | FloatArray:
        """Return the mean distance from the median, shared evenly among the features."""
        return math.sqrt(self.inertia_about_mean() / self.total_weight / self.n_features)

    def spread_of_features(self) -> float:
        # Without roots, so that points times a power of two have places with the same digits.
        return self.inertia_about_mean() / self.total_weight / math.sqrt(self.n_features)

    def critical_power(self) -> float:
        """Estimate the power above which all centers collapse to the median.

        Let r = x - median, R = sum |r_f|, and p the densities of the features at their medians.
        Each sweep moves centers near the median apart by the factor (1 - s) / 2 times the largest
        eigenvalue of diag(1 / p) E[sign(r) sign(r)^T / R]. For d independent normal features this
        factor is one at about s = 1 - 2 d / pi; for squared distances it is one at s = 1 - d / 2.
        Densities are hard to estimate, so the power for squared distances is scaled by 4 / pi.
        """
        return 1 - 4 / math.pi * (1 - super().critical_power())

    def _find_mean(self) -> FloatArray:
        nowhere = np.zeros(self.n_points, dtype=np.int32)
        return np.asarray(self._medians_by_label(nowhere, 1)[0])

    def _find_inertia_about_mean(self) -> float:
        return self.assign(self.mean()[None, :])[1]

    def _groups(self, n_centers: int) -> list[slice]:
        """Cut the centers into groups whose weights fit into memory together."""
        n_together = max(1, _MOST_WEIGHTS_KEPT // self.n_points)
        return [slice(j, min(j + n_together, n_centers)) for j in range(0, n_centers, n_together)]

    def _weigh(
        self, centers: FloatArray, rule: Rule, group: slice
    ) -> tuple[FloatArray, float, float]:
        """Return the weights of the points for this group of centers, objective and inertia."""
        weighted = np.empty((self.n_points, group.stop - group.start))

        def of_part(rows: slice) -> tuple[float, float]:
            distances = self._divergence.pairwise(self._points[rows], centers)
            weights, objectives = rule.weigh(distances)
            counts = self._counts(rows)
            np.multiply(weights[:, group], counts[:, None], out=weighted[rows])
            return np.sum(counts * objectives), np.sum(counts * distances.min(axis=1))

        added = self._each(of_part, self._parts(len(centers)))
        objective, inertia = np.sum(added, axis=0)
        return weighted, float(objective), float(inertia)

    def _nearest(self, centers: FloatArray) -> tuple[Labels, FloatArray]:
        labels, nearest = np.empty(self.n_points, dtype=np.int32), np.empty(self.n_points)

        def of_part(rows: slice) -> None:
            distances = self._divergence.pairwise(self._points[rows], centers)
            labels[rows], nearest[rows] = distances.argmin(axis=1), distances.min(axis=1)

        self._each(of_part, self._parts(len(centers)))
        return labels, nearest

    def _medians_by_label(self, labels: Labels, n_centers: int) -> FloatArray:
        counts = np.bincount(labels, minlength=n_centers)
        # Short integers are sorted in linear time.
        short = labels.astype(np.uint16) if n_centers <= 2**16 else labels
        return self._medians(
            partial(_hard_medians, labels=short, counts=counts, weights=self._weights)
        )

    def _medians(self, of_features: Callable[[Matrix, Order], FloatArray]) -> FloatArray:
        """Return medians, (n_centers, n_features), by a function of features and their orders."""
        blocks = self._blocks_of_features
        medians = self._each(
            lambda b: of_features(self._points[:, blocks[b]], self._orders[b]), range(len(blocks))
        )
        return np.concatenate(medians, axis=1)

    @cached_property
    def _orders(self) -> list[Order]:
        """The points sorted by each feature, (n_points, n_features) for each block of features."""
        dtype = np.int32 if self.n_points <= np.iinfo(np.int32).max else np.int64
        return self._each(
            lambda block: np.argsort(self._points[:, block], axis=0).astype(dtype),
            self._blocks_of_features,
        )

    @property
    def _blocks_of_features(self) -> list[slice]:
        """Features to sort together: one, if there are many points."""
        n_together = max(1, _CHUNK_ELEMENTS // self.n_points)
        starts = range(0, self.n_features, n_together)
        return [slice(start, min(start + n_together, self.n_features)) for start in starts]

    def _add_weighted(self, values: FloatArray) -> float:
        return float(np.sum(values if self._weights is None else self._weights * values))

    def _counts(self, rows: slice) -> FloatArray:
        """Return the weights of these points, in units of `_weight_unit`."""
        return np.ones(rows.stop - rows.start) if self._weights is None else self._weights[rows]

    def _parts(self, n_centers: int) -> list[slice]:
        """Cut the points into parts that do not depend on the number of threads."""
        n_rows = max(1, _CHUNK_ELEMENTS // max(n_centers, self.n_features))
        starts = range(0, self.n_points, n_rows)
        return [slice(start, min(start + n_rows, self.n_points)) for start in starts]

    def _each(self, work: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
        """Do the work on each part with all threads, and return the results in order."""
        n_threads = min(self.team.n_threads, len(parts))
        if n_threads == 1:
            return [work(part) for part in parts]
        with ThreadPoolExecutor(n_threads) as threads:
            return list(threads.map(work, parts))


def _soft_medians(values: Matrix, orders: Order, weights: FloatArray) -> FloatArray:
    """Return the weighted medians of the features, a row for each column of weights."""
    if weights.size > _CHUNK_ELEMENTS:
        features = zip(values.T, orders.T, strict=True)
        return np.stack([_soft_medians_of_many(*feature, weights) for feature in features], axis=1)
    medians = np.full((weights.shape[1], values.shape[1]), np.nan)
    for j in np.flatnonzero(weights.any(axis=0)):
        medians[j] = _median_along(values, orders, weights[:, j])
    return medians


def _median_along(values: Matrix, orders: Order, weights: FloatArray) -> FloatArray:
    """Return the weighted median of each feature over the points of these orders."""
    columns, reached = np.arange(values.shape[1]), 2 * np.cumsum(weights[orders], axis=0)
    places = [
        np.minimum(np.count_nonzero(reached < target, axis=0), len(reached) - 1)
        for target in _around_half(reached[-1] / 2)
    ]
    return _midpoint(*(values[orders[place, columns], columns] for place in places))


def _soft_medians_of_many(values: Matrix, order: Order, weights: FloatArray) -> FloatArray:
    """Return the weighted medians of a feature of many points, one for each column of weights.

    Weights add up block by block along the order, and point by point only in the block that reaches
    half: a cumulative sum over all points would take as much memory as the weights.
    """
    size = math.isqrt(len(order))
    starts = np.append(np.arange(0, len(order), size), len(order)).astype(order.dtype)
    blocks: Any = sparse.csr_array(
        (np.ones(len(order)), order, starts), shape=(len(starts) - 1, len(order))
    )
    ends = np.cumsum(blocks @ weights, axis=0)
    targets = _around_half(ends[-1])
    lower, upper = (_points_at(target, ends, order, size, weights) for target in targets)
    return np.where(ends[-1] > 0, _midpoint(values[lower], values[upper]), np.nan)


def _around_half(total: Any) -> tuple[Any, Any]:
    """Return what twice the cumulative weight reaches at the lower and the upper median."""
    return total * (1 - _ROUNDING), np.nextafter(total * (1 + _ROUNDING), np.inf)


def _points_at(
    target: FloatArray, ends: FloatArray, order: Order, size: int, weights: FloatArray
) -> Order:
    """Return for each center the first point where twice the cumulative weight reaches a target."""
    centers = np.arange(len(target))
    block = np.count_nonzero(2 * ends < target, axis=0)
    block = np.minimum(block, len(ends) - 1)
    before = np.where(block > 0, ends[block - 1, centers], 0.0)
    places = np.minimum(block[:, None] * size + np.arange(size), len(order) - 1)
    members = order[places]
    reached = before[:, None] + np.cumsum(weights[members, centers[:, None]], axis=1)
    place = np.count_nonzero(2 * reached < target[:, None], axis=1)
    found: Order = members[centers, np.minimum(place, size - 1)]
    return found


def _hard_medians(
    values: Matrix,
    orders: Order,
    labels: NDArray[Any],
    counts: IndexArray,
    weights: FloatArray | None,
) -> FloatArray:
    """Return the weighted medians of the features over the points of each label."""
    by_label = np.argsort(labels[orders], axis=0, kind="stable")
    members = np.take_along_axis(orders, by_label, axis=0)
    columns, ends = np.arange(values.shape[1]), np.cumsum(counts)
    medians = np.full((len(counts), values.shape[1]), np.nan)
    found = np.flatnonzero(counts)
    if weights is None:
        starts, n_members = (ends - counts)[found], counts[found]
        lower, upper = starts + (n_members - 1) // 2, starts + n_members // 2
        medians[found] = _midpoint(values[members[lower], columns], values[members[upper], columns])
        return medians
    for label in found:
        mine = members[ends[label] - counts[label] : ends[label]]
        if weights[mine[:, 0]].any():
            medians[label] = _median_along(values, mine, weights)
    return medians


def _midpoint(lower: Any, upper: Any) -> FloatArray:
    """Return the midpoint in float64, exact where the two are equal."""
    low, high = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
    return np.asarray(low + (high - low) / 2)
