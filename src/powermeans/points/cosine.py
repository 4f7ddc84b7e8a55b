"""Rows in memory compared by direction: spherical k-means and its soft variants."""

import math
from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from powermeans.divergences.cosine import Cosine, directions, of_unit_length
from powermeans.mathematics.sums import Sums, recorded
from powermeans.points.by_definition import farthest
from powermeans.points.compiled import EuclideanPoints
from powermeans.points.protocol import FarPoint
from powermeans.types import AnyMatrix, FloatArray, IndexArray

# Squared distances of unit vectors are twice one minus the cosine. Directions of this length halve
# them.
LENGTH = math.sqrt(0.5)


@recorded
class UnitSums(Sums):
    """Add up directions; the centers are means scaled to unit length."""

    __slots__ = ()

    @classmethod
    def of(cls, sums: Sums) -> Self:
        """Return sums of directions from sums of points of `LENGTH`."""
        return cls(
            sums.points / LENGTH,
            sums.weights,
            sums.objective,
            sums.inertia,
            sums.n_skipped,
            n_changed=sums.n_changed,
        )

    def centers(self, fallback: FloatArray) -> FloatArray:
        """Return weighted means of unit length; where points cancel, the row of `fallback`."""
        return of_unit_length(super().centers(fallback), fallback)


class CosinePoints(EuclideanPoints):
    """Measure by one minus the cosine of the angle, on a copy of the points.

    No point is zero, which has no direction; options are as for `EuclideanPoints`.
    """

    _divergence = Cosine()
    _has_column_moments = False  # they do not tell the mean direction

    def __init__(
        self,
        points: AnyMatrix,
        sample_weight: FloatArray | None = None,
        **options: Any,
    ) -> None:
        halved = directions(points)
        halved *= points.dtype.type(LENGTH)
        super().__init__(halved, sample_weight, **options)

    def finished(self, sums: Sums) -> UnitSums:
        return UnitSums.of(sums)

    def as_compiled(self, centers: FloatArray) -> FloatArray:
        return np.ascontiguousarray(directions(np.asarray(centers)) * LENGTH)

    def take(self, indices: IndexArray) -> FloatArray:
        """Return the directions of these points."""
        return super().take(indices) / LENGTH

    def farthest(self, centers: FloatArray, n_wanted: int) -> Iterator[FarPoint]:
        return farthest(self, centers, n_wanted)
