"""Points in memory whose distances are affine: height of the point + lift - <point, slope>."""

from __future__ import annotations

import abc
from collections.abc import Iterable
from functools import cached_property

import numpy as np

from powermeans.rows.greedy import greedy_seeds
from powermeans.rows.native import NativeRows
from powermeans.rules import Hard
from powermeans.types import FloatArray, IndexArray

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

    def rounding(self) -> float:
        """Products lose digits in proportion to the distance from the mean."""
        return _ROUNDING_UNITS * float(np.finfo(self.dtype).eps)

    def greedy_seeds(
        self, order: IndexArray, first: float, others: FloatArray, exponent: float = 2.0
    ) -> IndexArray:
        """Which points greedy k-means++ chooses, by its definition."""
        return greedy_seeds(self, order, first, others, exponent)

    @cached_property
    def _inertia_about_mean(self) -> float:
        return self.sweep(self._mean[None, :], Hard()).inertia

    def _by_definition(self, centers: FloatArray) -> Iterable[tuple[slice, FloatArray]]:
        yield slice(0, self.n_points), self.sq_distances(centers).astype(np.float64)
