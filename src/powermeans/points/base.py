"""Base of rows: derive the rest of the protocol from sweeps and distances.

A new kind of rows implements the abstract methods of `powermeans.points.protocol` and `_middle`,
and overrides what it computes faster. Rows whose points lie in a single memory extend `MemoryRows`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import numpy as np

from powermeans.mathematics.rules import Hard, Rule
from powermeans.mathematics.sums import ColumnMoments
from powermeans.points.by_definition import assign_priced, farthest, greedy_seeds
from powermeans.points.protocol import (
    FarPoint,
    Moves,
    NearCenters,
    PricedLabels,
    Rows,
    Sampler,
)
from powermeans.system.attributes import forget
from powermeans.types import FloatArray, IndexArray, Labels, Points, SparsePoints

_DISTANCES_AT_ONCE = 2**20

Value = TypeVar("Value")


class kept(Generic[Value]):
    """Compute an attribute once, as `functools.cached_property` does, but without its lock.

    Before Python 3.12 all instances share that lock. Rows in parts would hold it while they wait
    for their parts, and threads that compute these would wait for the lock.
    """

    def __init__(self, find: Callable[[Any], Value]) -> None:
        self._find = find

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, rows: Any, owner: type | None = None) -> Value:
        value = self._find(rows)
        setattr(rows, self._name, value)
        return value


class BaseRows(Rows):
    """Derive the methods that the protocol leaves open, for Euclidean units."""

    @property
    def n_places(self) -> int:
        return self.n_points

    @property
    def n_columns(self) -> int:
        return self.n_features

    def mean_over_columns(self, values: float | FloatArray) -> float:
        return float(np.sum(values) / self.n_columns if np.ndim(values) else values)

    @property
    def n_values_each(self) -> float:
        return self.n_features

    def descends(self, rule: Rule) -> bool:
        return rule.descends

    def mean(self) -> FloatArray:
        return self._mean

    def inertia_about_mean(self) -> float:
        return self._inertia_about_mean

    def unit_steps(self) -> float | FloatArray:
        return 1.0

    def rounding(self) -> float:
        return 0.0

    def greedy_seeds(
        self,
        order: IndexArray,
        first: float,
        others: FloatArray,
        exponent: float = 2.0,
        *,
        seconds: float = math.inf,
    ) -> IndexArray:
        return greedy_seeds(self, order, first, others, exponent, seconds)

    @property
    def sampler(self) -> Sampler | None:
        return None

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
        listed: Labels = np.empty((len(indices), n_most), dtype=np.int32)
        near = np.empty(listed.shape)
        step = max(1, _DISTANCES_AT_ONCE // len(centers))
        for start in range(0, len(indices), step):
            block = slice(start, start + step)
            distances, own = self._distances_of(indices[block], centers), labels[block, None]
            costs = distances + prices
            costs -= np.take_along_axis(costs, own, axis=1)
            np.put_along_axis(costs, own, -np.inf, axis=1)
            order = np.argsort(costs, axis=1, kind="stable")
            costs = np.take_along_axis(costs, order, axis=1)
            order, is_near = order[:, :n_most], costs[:, :n_most] <= reach
            listed[block] = np.where(is_near, order, -1)
            near[block] = np.where(is_near, np.take_along_axis(distances, order, axis=1), np.inf)
        return NearCenters(listed, near)

    def _distances_of(self, indices: IndexArray, centers: FloatArray) -> FloatArray:
        """Return the distances of some points to all centers."""
        return self.sq_distances(centers)[indices].astype(np.float64)

    def assign_priced(self, centers: FloatArray, prices: FloatArray) -> PricedLabels:
        return assign_priced(self, centers, prices)

    def farthest(self, centers: FloatArray, n_wanted: int) -> Iterator[FarPoint]:
        return farthest(self, centers, n_wanted)

    @property
    def moves(self) -> Moves | None:
        return None

    @property
    def cells(self) -> Any | None:
        return None

    @property
    def has_order(self) -> bool:
        return True

    def first_points(self) -> IndexArray:
        return np.zeros(1, dtype=np.intp)

    def total(self, call: Callable[[Any, int], Any]) -> Any:
        return call(self, 0)

    @abstractmethod
    def _middle(self) -> FloatArray:
        """Return a place near the mean, (n_features,)."""

    @kept
    def _mean(self) -> FloatArray:
        return self._find_mean()

    @kept
    def _inertia_about_mean(self) -> float:
        return self._find_inertia_about_mean()

    def _find_mean(self) -> FloatArray:
        """Return the mean: the center of all points after one sweep from any place."""
        middle = self._middle()[None, :]
        mean: FloatArray = self.sweep(middle, Hard()).centers(fallback=middle)[0]
        return mean

    def _find_inertia_about_mean(self) -> float:
        return self.sweep(self._mean[None, :], Hard()).inertia

    def _forget_what_follows_from_weights(self) -> None:
        forget(self, "_mean")
        forget(self, "_inertia_about_mean")


class RowsOfRows(BaseRows):
    """Sweep over the points of other rows in another way, which a subclass defines.

    Distances are those of the other rows: a subclass with others overrides `sq_distances`,
    `near_centers`, `assign_priced` and `critical_power` too.
    """

    _rows: Rows

    @property
    def n_points(self) -> int:
        return self._rows.n_points

    @property
    def n_features(self) -> int:
        return self._rows.n_features

    @property
    def n_columns(self) -> int:
        return self._rows.n_columns

    @property
    def dtype(self) -> np.dtype[np.floating[Any]]:
        return self._rows.dtype

    @property
    def total_weight(self) -> float:
        return self._rows.total_weight

    def mean_variance(self) -> float:
        return self._rows.mean_variance()

    def critical_power(self) -> float:
        return self._rows.critical_power()

    def rounding(self) -> float:
        return self._rows.rounding()

    def unit_steps(self) -> float | FloatArray:
        return self._rows.unit_steps()

    def sq_distances(self, centers: FloatArray) -> Points:
        return self._rows.sq_distances(centers)

    def assign_priced(self, centers: FloatArray, prices: FloatArray) -> PricedLabels:
        return self._rows.assign_priced(centers, prices)

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
        return self._rows.near_centers(indices, labels, centers, prices, reach=reach, n_most=n_most)

    def take(self, indices: IndexArray) -> FloatArray:
        return self._rows.take(indices)

    def sample_weight(self, indices: IndexArray) -> FloatArray:
        """Return the weights that these points have now."""
        return self._rows.sample_weight(indices)

    def sample(self, indices: IndexArray) -> Points | SparsePoints:
        return self._rows.sample(indices)


class MemoryRows(BaseRows):
    """Hold points in one memory, of this process or of a device.

    A subclass sets the weights by `in_unit`, and the unweighted mean and variance of each column.
    """

    _weights: FloatArray | None
    _weight_unit: float
    _column_mean: FloatArray
    _column_variance: FloatArray

    @property
    def total_weight(self) -> float:
        if self._weights is None:
            return float(self.n_points)
        return float(np.sum(self._weights)) * self._weight_unit

    @property
    def n_places(self) -> int:
        return self.n_points if self._weights is None else int(np.count_nonzero(self._weights))

    @property
    def known(self) -> object | None:
        return None

    def mean_variance(self) -> float:
        return self.mean_over_columns(self._column_variance)

    def column_moments(self) -> ColumnMoments:
        counts = np.full(self.n_features, float(self.n_points))
        return ColumnMoments(counts, self._column_mean, self.n_points * self._column_variance)

    def sample_weight(self, indices: IndexArray) -> FloatArray:
        if self._weights is None:
            return np.ones(len(indices))
        return self._weights[indices] * self._weight_unit

    def _middle(self) -> FloatArray:
        return self._column_mean

    def _find_mean(self) -> FloatArray:
        known = self._mean_from_moments()
        return super()._find_mean() if known is None else known

    def _mean_from_moments(self) -> FloatArray | None:
        """Return the mean where the moments of the columns tell it."""
        return self._column_mean if self._weights is None else None


def in_unit(sample_weight: FloatArray | None) -> tuple[FloatArray | None, float]:
    """Divide weights by a power of two, which is exact, so that the largest is in [1/2, 1)."""
    if sample_weight is None:
        return None, 1.0
    largest = float(np.max(sample_weight, initial=0.0))
    unit = 2.0 ** np.clip(np.frexp(largest)[1], -1022, 1022) if largest > 0 else 1.0
    return np.ascontiguousarray(sample_weight / unit, dtype=np.float64), float(unit)
