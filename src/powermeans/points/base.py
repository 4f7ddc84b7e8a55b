"""Base of rows: derive the rest of the protocol from sweeps and distances.

A new kind of rows implements the abstract methods of `powermeans.points.protocol` and `_middle`,
and overrides what it computes faster. Rows whose points lie in a single memory extend `MemoryRows`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from powermeans.mathematics.rules import Hard, Rule
from powermeans.mathematics.sums import ColumnMoments, mean_over_columns
from powermeans.points.by_definition import PricedByDefinition, farthest
from powermeans.points.protocol import (
    Elsewhere,
    FarPoint,
    Moves,
    Parts,
    PricedPoints,
    Rows,
    Sampler,
)
from powermeans.types import FloatArray, IndexArray, Points, SparsePoints


class BaseRows(Rows):
    """Derive the methods that the protocol leaves open, for Euclidean units."""

    # Found once, and by no property that holds a lock while it waits for parts.
    _mean: FloatArray | None = None
    _inertia_about_mean: float | None = None

    @property
    def holds_labels(self) -> bool:
        return False

    @property
    def n_columns(self) -> int:
        return self.n_features

    @property
    def n_places(self) -> int:
        return self.n_points

    @property
    def n_stored(self) -> int:
        return self.n_points * self.n_features

    @property
    def n_observed(self) -> int | FloatArray:
        return self.n_features

    def mean(self) -> FloatArray:
        if self._mean is None:
            self._mean = self._find_mean()
        return self._mean

    def inertia_about_mean(self) -> float:
        if self._inertia_about_mean is None:
            self._inertia_about_mean = self._find_inertia_about_mean()
        return self._inertia_about_mean

    def unit_steps(self) -> float | FloatArray:
        return 1.0

    def spread_of_features(self) -> float | FloatArray:
        return math.sqrt(self.inertia_about_mean() / self.total_weight) * self.unit_steps()

    def rounding(self) -> float:
        return 0.0

    def descends(self, rule: Rule) -> bool:
        return rule.descends

    def farthest(self, centers: FloatArray, n_wanted: int) -> Iterator[FarPoint]:
        return farthest(self, centers, n_wanted)

    @property
    def moves(self) -> Moves | None:
        return None

    @property
    def elsewhere(self) -> Elsewhere | None:
        return None

    @property
    def priced(self) -> PricedPoints | None:
        return PricedByDefinition(self, self._distances_of)

    @property
    def sampler(self) -> Sampler | None:
        return None

    @property
    def cells(self) -> Any | None:
        return None

    @property
    def parts(self) -> Parts | None:
        return None

    def _distances_of(self, indices: IndexArray, centers: FloatArray) -> FloatArray:
        """Return the squared distances of some points from all centers."""
        return self.sq_distances(centers)[indices].astype(np.float64)

    @abstractmethod
    def _middle(self) -> FloatArray:
        """Return a place near the mean, (n_features,)."""

    def _find_mean(self) -> FloatArray:
        return self._mean_of_sweep()

    def _find_inertia_about_mean(self) -> float:
        return self._inertia_of_sweep()

    def _mean_of_sweep(self) -> FloatArray:
        """Return the mean: the center of all points after one sweep from any place."""
        middle = self._middle()[None, :]
        mean: FloatArray = self.sweep(middle, Hard()).centers(fallback=middle)[0]
        return mean

    def _inertia_of_sweep(self) -> float:
        return self.sweep(self.mean()[None, :], Hard()).inertia

    def _forget_what_follows_from_weights(self) -> None:
        self._mean = self._inertia_about_mean = None


class RowsOfRows(BaseRows):
    """Sweep over the points of other rows in another way, which a subclass defines.

    The subclass has `sweep`, `spread`, `assign`, `nearness` and `_middle`. Points, weights and
    distances are those of the other rows; a subclass with others overrides what they follow from:
    `take`, `sample`, `sample_weight` and `n_places`, or `sq_distances` and `critical_power`. Seeds
    are what `take` returns for points that `nearness` draws. `farthest` takes single points; a
    subclass that moves points together overrides it. No ability of the other rows is passed on.
    """

    _rows: Rows

    @property
    def holds_labels(self) -> bool:
        return self._rows.holds_labels

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
    def n_stored(self) -> int:
        return self._rows.n_stored

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

    @property
    def priced(self) -> PricedPoints | None:
        return None

    def take(self, indices: IndexArray) -> FloatArray:
        return self._rows.take(indices)

    def sample(self, indices: IndexArray) -> Points | SparsePoints:
        return self._rows.sample(indices)

    def sample_weight(self, indices: IndexArray) -> FloatArray:
        """Return the weights that these points have now."""
        return self._rows.sample_weight(indices)


class MemoryRows(BaseRows):
    """Hold points in one memory, of this process or of a device.

    A subclass sets weights by `in_unit`, and the unweighted mean and variance of each column.
    """

    _weights: FloatArray | None = None
    _weight_unit: float = 1.0
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

    def mean_variance(self) -> float:
        return mean_over_columns(self._column_variance, self.n_columns)

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
        return self._column_mean if self._weights is None else self._mean_of_sweep()


def in_unit(sample_weight: FloatArray) -> tuple[FloatArray, float]:
    """Divide weights by a power of two, which is exact, so that the largest is in [1/2, 1)."""
    largest = float(np.max(sample_weight, initial=0.0))
    unit = 2.0 ** np.clip(np.frexp(largest)[1], -1022, 1022) if largest > 0 else 1.0
    return np.ascontiguousarray(sample_weight / unit, dtype=np.float64), float(unit)
