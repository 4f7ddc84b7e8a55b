"""Points in memory whose distances are affine: height of the point + lift - <point, slope>."""

from __future__ import annotations

import abc
from collections.abc import Iterable

import numpy as np

from powermeans.rows.base import BaseRows
from powermeans.rows.native import NativeRows
from powermeans.types import FloatArray, Labels

_ELEMENTS_AT_ONCE = 2**18
# In units of the precision of the points: what cancellation leaves of a distance.
_ROUNDING_UNITS = 64


class AffineRows(NativeRows, abc.ABC):
    """Base of rows that see a center as a plane. A subclass says `planes`, and sets the heights."""

    @abc.abstractmethod
    def planes(self, centers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Slopes, (n_centers, n_values), and lifts, (n_centers,), of points less the origin."""

    def seen(self, centers: FloatArray) -> FloatArray:
        """The slopes, and the lifts in a last column."""
        slopes, lifts = self.planes(centers)
        return np.ascontiguousarray(np.column_stack([slopes, lifts]))

    @abc.abstractmethod
    def _distances_between(self, rows: slice, centers: FloatArray) -> FloatArray:
        """Distances of these points, each to a center of its own, by the definition."""

    def assign(self, centers: FloatArray) -> tuple[Labels, float]:
        """Labels by products, and the inertia by the definition, which does not cancel."""
        labels, _ = super().assign(centers)
        inertia, n_at_once = 0.0, max(1, _ELEMENTS_AT_ONCE // self.n_features)
        for start in range(0, self.n_points, n_at_once):
            rows = slice(start, min(start + n_at_once, self.n_points))
            distances = self._distances_between(rows, centers[labels[rows]])
            counts = 1.0 if self._weights is None else self._weights[rows]
            inertia += float(np.sum(counts * distances))
        return labels, inertia * self._weight_unit

    def rounding(self) -> float:
        """Products lose digits in proportion to the distance from the mean."""
        return _ROUNDING_UNITS * float(np.finfo(self.dtype).eps)

    # Moments of the columns, which may be pairs, tell neither mean nor inertia of the points, and
    # the compiled seeds are those of squared Euclidean distances.
    _find_mean = BaseRows._find_mean
    _find_inertia_about_mean = BaseRows._find_inertia_about_mean
    greedy_seeds = BaseRows.greedy_seeds

    def _by_definition(self, centers: FloatArray) -> Iterable[tuple[slice, FloatArray]]:
        yield slice(0, self.n_points), self.sq_distances(centers).astype(np.float64)
