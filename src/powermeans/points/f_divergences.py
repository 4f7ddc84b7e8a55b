"""Rows in memory compared by an f-divergence, whose centers follow from means of statistics."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from powermeans.divergences.chunks import as_float64
from powermeans.divergences.domains import Bounded
from powermeans.divergences.f_divergence import FDivergence
from powermeans.mathematics.sums import Sums
from powermeans.points.bregman import critical_power_in_units
from powermeans.points.compiled import DirectPoints
from powermeans.types import FloatArray, Matrix


@dataclass(frozen=True, slots=True)
class StatisticSums(Sums):
    """Add up the statistics of points; a center is that of their means."""

    divergence: FDivergence = field(kw_only=True)

    def __mul__(self, unit: float) -> Self:
        raise TypeError("sums of statistics are weighed before they are finished")

    def centers(self, fallback: FloatArray) -> FloatArray:
        """Return the centers of the means; one without weight keeps its row of `fallback`."""
        before = self.divergence.statistics(self.divergence.inside(fallback))
        means = Sums.centers(self, before)
        is_kept = (means == before).all(axis=1, keepdims=True)
        return np.where(is_kept, fallback, self.divergence.center(means))

    def moved(self, former: int, cluster: int, point: FloatArray, weight: float) -> Self:
        """Move the statistics of a point from its former cluster to an empty one."""
        of_point = self.divergence.statistics(point[None, :])[0]
        return Sums.moved(self, former, cluster, of_point, weight)


class FDivergencePoints(DirectPoints):
    """Measure dense points by an f-divergence; options are those of `CompiledPoints`."""

    _has_column_moments = False  # the center has the mean of statistics

    def __init__(
        self,
        points: Matrix,
        sample_weight: FloatArray | None = None,
        *,
        divergence: FDivergence,
        **options: Any,
    ) -> None:
        super().__init__(points, sample_weight, **options)
        self._divergence: FDivergence = divergence
        self._statistics = divergence.statistics(as_float64(points))

    @property
    def _summed(self) -> FloatArray:
        return self._statistics

    def finished(self, sums: Sums) -> StatisticSums:
        """Return sums whose centers are those of the divergence."""
        return StatisticSums(
            *(sums.points, sums.weights, sums.objective, sums.inertia, sums.n_skipped),
            divergence=self._divergence,
        )

    def unit_steps(self) -> FloatArray:
        """Return the steps: near theta, a divergence is f''(1) / (2 theta) times a square."""
        off_zero = Bounded.inside(self._divergence, self.mean()[None, :])[0]
        return np.asarray(np.sqrt(2 * off_zero / self._divergence.curvature_at_one))

    def critical_power(self) -> float:
        return critical_power_in_units(self._points, self._weights, self.unit_steps())
