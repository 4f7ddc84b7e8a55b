"""Base of points: derive the rest of the protocol from sweeps and distances.

A new kind of points implements the abstract methods of `powermeans.points.protocol` and `_middle`,
and overrides what it computes faster. Points that lie in a single memory extend `MemoryPoints`.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np

from powermeans.mathematics.rules import Hard
from powermeans.mathematics.sums import ColumnMoments, mean_over_columns
from powermeans.points.by_definition import PricedByDefinition, farthest
from powermeans.points.given import Given
from powermeans.points.protocol import Elsewhere, FarPoint, Parts, Points, PricedPoints
from powermeans.types import AnyMatrix, FloatArray, IndexArray, Matrix


class BasePoints(Points):
    """Derive the methods that the protocol leaves open, for Euclidean units."""

    given: Given
    # Found once, and by no property that holds a lock while it waits for parts.
    _mean: FloatArray | None = None
    _inertia_about_mean: float | None = None

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

    def farthest(self, centers: FloatArray, n_wanted: int) -> Iterator[FarPoint]:
        return farthest(self, centers, n_wanted)

    def __enter__(self) -> Self:
        return self

    @property
    def elsewhere(self) -> Elsewhere | None:
        return None

    @property
    def parts(self) -> Parts | None:
        return None

    @property
    def priced(self) -> PricedPoints | None:
        return PricedByDefinition(self, self._distances_of)

    def _distances_of(self, indices: IndexArray, centers: FloatArray) -> FloatArray:
        """Return the squared distances of some points from all centers."""
        return self.sq_distances(centers)[indices].astype(np.float64)

    @abstractmethod
    def _middle(self) -> FloatArray:
        """Return a place near the mean, (n_features,)."""

    def _find_mean(self) -> FloatArray:
        """Return the mean: the center of all points after one sweep from any place."""
        middle = self._middle()[None, :]
        mean: FloatArray = self.sweep(middle, Hard()).centers(fallback=middle)[0]
        return mean

    def _find_inertia_about_mean(self) -> float:
        return self.sweep(self.mean()[None, :], Hard()).inertia

    def _forget_what_follows_from_weights(self) -> None:
        self._mean = self._inertia_about_mean = None


class ViewedPoints(BasePoints):
    """Sweep over the points of other rows in another way, which a subclass defines.

    The subclass has `sweep`, `spread`, `assign`, `nearness` and `_middle`. Points, weights and
    distances are those of the other rows; a subclass with others overrides what they follow from:
    `take`, `sample`, `sample_weight` and `n_distinct`, or `sq_distances` and `critical_power`.
    Seeds are what `take` returns for points that `nearness` draws. `farthest` takes single points;
    a subclass that moves points together overrides it. No ability of the other rows is passed on.
    """

    _rows: Points

    @property
    def given(self) -> Given:
        return self._rows.given

    @given.setter
    def given(self, given: Given) -> None:
        self._rows.given = given

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

    def sq_distances(self, centers: FloatArray) -> Matrix:
        return self._rows.sq_distances(centers)

    @property
    def priced(self) -> PricedPoints | None:
        return None

    def take(self, indices: IndexArray) -> FloatArray:
        return self._rows.take(indices)

    def sample(self, indices: IndexArray) -> AnyMatrix:
        return self._rows.sample(indices)

    def sample_weight(self, indices: IndexArray) -> FloatArray:
        """Return the weights that these points have now."""
        return self._rows.sample_weight(indices)


class MemoryPoints(BasePoints):
    """Hold points in one memory, of this process or of a device.

    A subclass sets weights by `in_unit`, and the unweighted mean and variance of each column.
    """

    _weights: FloatArray | None = None
    _weight_unit: float = 1.0
    _column_mean: FloatArray
    _column_variance: FloatArray
    _has_column_moments: ClassVar[bool] = True  # or columns do not tell mean and inertia of points

    @property
    def total_weight(self) -> float:
        if self._weights is None:
            return float(self.n_points)
        return float(np.sum(self._weights)) * self._weight_unit

    @property
    def n_distinct(self) -> int:
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
        is_of_columns = self._weights is None and self._has_column_moments
        return self._column_mean if is_of_columns else super()._find_mean()


def in_unit(sample_weight: FloatArray) -> tuple[FloatArray, float]:
    """Divide weights by a power of two, which is exact, so that the largest is in [1/2, 1)."""
    largest = float(np.max(sample_weight, initial=0.0))
    unit = 2.0 ** np.clip(np.frexp(largest)[1], -1022, 1022) if largest > 0 else 1.0
    return np.ascontiguousarray(sample_weight / unit, dtype=np.float64), float(unit)
