"""Base of rows whose distances are affine: height of the point + lift - <point, slope>.

Distances that need a second number beside each value have rows of pairs.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable

import numpy as np

from powermeans.critical import critical_power
from powermeans.divergences.chunks import dense_chunks
from powermeans.rows.base import BaseRows, MemoryRows
from powermeans.rows.native import NativeRows
from powermeans.types import FloatArray, IndexArray, Labels, Points

_ELEMENTS_AT_ONCE = 2**18
# The error that cancellation leaves in a distance, in units of the precision of the points.
_ROUNDING_UNITS = 64


class AffineRows(NativeRows, abc.ABC):
    """See a center as a plane over the points; a subclass has `planes`, and sets the heights."""

    # The columns may hold pairs, whose moments tell neither the mean of the points nor the inertia
    # about it; and the compiled seeds are for squared Euclidean distances.
    _find_mean = BaseRows._find_mean
    _find_inertia_about_mean = BaseRows._find_inertia_about_mean
    greedy_seeds = BaseRows.greedy_seeds
    samples_seeds = BaseRows.samples_seeds
    n_places = MemoryRows.n_places
    moves_points = BaseRows.moves_points
    has_blocks = BaseRows.has_blocks
    some = BaseRows.some
    farthest = BaseRows.farthest

    @abc.abstractmethod
    def planes(self, centers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return slopes, (n_centers, n_values), and lifts for points less the compiled origin."""

    @abc.abstractmethod
    def _distances_between(self, rows: slice, centers: FloatArray) -> FloatArray:
        """Return the distance of each of these points to its own center, by the definition."""

    def _distances_to_own(self, labels: Labels, centers: FloatArray) -> FloatArray:
        """Return the distance of each point to the center of its label, by the definition."""
        distances, n_at_once = np.empty(self.n_points), max(1, _ELEMENTS_AT_ONCE // self.n_features)
        for start in range(0, self.n_points, n_at_once):
            rows = slice(start, min(start + n_at_once, self.n_points))
            distances[rows] = self._distances_between(rows, centers[labels[rows]])
        return distances

    def as_compiled(self, centers: FloatArray) -> FloatArray:
        """Return the slopes, and the lifts in a last column."""
        slopes, lifts = self.planes(centers)
        return np.ascontiguousarray(np.column_stack([slopes, lifts]))

    def assign(self, centers: FloatArray) -> tuple[Labels, float]:
        """Label by products, and add up the inertia by the definition, which does not cancel."""
        labels, _ = super().assign(centers)
        distances = self._distances_to_own(labels, centers)
        counts = 1.0 if self._weights is None else self._weights
        return labels, float(np.sum(counts * distances)) * self._weight_unit

    def rounding(self) -> float:
        return rounding_of_products(self.dtype)

    def _distances_in_chunks(self, centers: FloatArray) -> Iterable[tuple[slice, FloatArray]]:
        yield slice(0, self.n_points), self.sq_distances(centers).astype(np.float64)


class PairedRows(AffineRows):
    """Hold values less `_shift`, and one more number beside each."""

    _n_features: int
    _shift: FloatArray

    @property
    def n_features(self) -> int:
        return self._n_features

    def sq_distances(self, centers: FloatArray) -> Points:
        """Return all distances from differences, which do not cancel as products do."""
        distances: Points = np.empty((self.n_points, len(centers)), dtype=self.dtype)
        shifted = centers - self._shift
        for rows, pairs in dense_chunks(self._points, elements_per_point=shifted.size):
            values, beside = np.hsplit(pairs, 2)
            distances[rows] = self._from_differences(values[:, None, :] - shifted, beside)
        return distances

    @abc.abstractmethod
    def _from_differences(self, differences: FloatArray, beside: FloatArray) -> FloatArray:
        """Return distances from differences, (n_points, n_centers, n_features)."""

    def critical_power(self) -> float:
        return critical_power(self._points[:, : self._n_features], self._weights)

    def take(self, indices: IndexArray) -> FloatArray:
        values: FloatArray = super().take(indices)[:, : self._n_features] + self._shift
        return values

    def _middle(self) -> FloatArray:
        return self._shift


def rounding_of_products(dtype: np.dtype[np.floating]) -> float:
    """Return `Rows.rounding` of products, whose error grows with the distance from the mean."""
    return _ROUNDING_UNITS * float(np.finfo(dtype).eps)
