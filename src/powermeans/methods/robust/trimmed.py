"""Rows that leave out the points farthest from all centers, chosen again in every sweep.

Trimmed k-means (Cuesta-Albertos, Gordaliza & Matrán 1997) lowers the inertia of the best part of
the points. Here any rows and any rule can be trimmed: each sweep gives the inner rows new weights,
zero for points that are left out.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from powermeans.mathematics.rules import Hard, Rule
from powermeans.mathematics.sums import Spread, Sums, mean_over_columns
from powermeans.mathematics.weighted_draws import draw_indices
from powermeans.points.base import ViewedPoints
from powermeans.points.compiled import CompiledPoints
from powermeans.points.protocol import Nearness
from powermeans.types import FloatArray, IndexArray, Labels

# A sum of weights within this share of the kept weight differs from it only by rounding.
_ROUNDING = 1e-12
# Medians take all points up to this many values.
_MOST_VALUES_SORTED = 2**20


class TrimmedPoints(ViewedPoints):
    """Leave out the share `trim`, in [0, 1), of the weight: the points farthest from all centers.

    Points exactly as far as the last one kept keep the same part of their weight, so that a weight
    of three equals three copies. Seeds are drawn among the points that the seeds before them keep.

    The inner rows are opened with the same points and weights, and nothing else may use them.
    """

    _rows: CompiledPoints

    def __init__(self, rows: CompiledPoints, sample_weight: FloatArray, trim: float) -> None:
        self._rows, self._weights, self.trim = rows, sample_weight, trim
        self._kept_weight = (1 - trim) * float(sample_weight.sum())

    @property
    def total_weight(self) -> float:
        return self._kept_weight

    def descends(self, rule: Rule) -> bool:
        # The point farthest from its nearest center may not add most to a soft objective.
        return rule.descends and (self.trim == 0 or isinstance(rule, Hard))

    def mean_variance(self) -> float:
        """Return the weighted variance of the points kept about the mean."""
        mean_square = self.inertia_about_mean() / self._kept_weight / self.n_columns
        return mean_square * mean_over_columns(np.square(self.unit_steps()), self.n_columns)

    def critical_power(self) -> float:
        """Return the critical power of the points kept about the mean."""
        self.keep_without_centers()
        return self._rows.critical_power()

    def sweep(self, centers: FloatArray, rule: Rule) -> Sums:
        self._keep_near(centers)
        return self._rows.sweep(centers, rule)

    def spread(self, centers: FloatArray) -> Spread:
        """Return the spread of the points kept; no distance counts more than their largest.

        If a center goes, its points may be left out instead of reaching the next center.
        """
        limit = self._keep_near(centers)
        spread = self._rows.spread(centers)
        if not math.isfinite(limit) or len(centers) == 1:
            return spread
        most = np.maximum(limit * spread.weights - spread.error, 0.0)
        return Spread(spread.error, np.minimum(spread.utility, most), spread.weights)

    def assign(self, centers: FloatArray) -> tuple[Labels, float]:
        """Label every point, and add up the inertia of the points kept."""
        self._keep_near(centers)
        return self._rows.assign(centers)

    def left_out(self, centers: FloatArray) -> tuple[NDArray[np.bool_], float]:
        """Return which points are left out fully, and the largest distance kept."""
        sq_dist = self._rows.nearness(centers).sq_dist()
        limit = self._keep(sq_dist)
        return sq_dist > limit, limit

    def nearness(self, centers: FloatArray, order: IndexArray | None = None) -> TrimmedNearness:
        return TrimmedNearness(self, self._rows.nearness(centers, order), len(centers) > 0)

    def keep_without_centers(self) -> None:
        """Leave out the points farthest from the mean."""
        self._keep_near(self.mean()[None, :])

    def keep_nearest(self, nearness: Nearness) -> None:
        """Leave out the points farthest from all centers so far."""
        self._keep(nearness.sq_dist())

    def _keep_near(self, centers: FloatArray) -> float:
        return self._keep(self._rows.nearness(centers).sq_dist()) if self.trim else math.inf

    def _keep(self, sq_dist: FloatArray) -> float:
        """Weigh the points again, and return the largest distance kept."""
        if not self.trim:
            return math.inf
        kept, limit = trimmed_weights(sq_dist, self._weights, self._kept_weight)
        self._rows.weigh(kept)
        return limit

    def _middle(self) -> FloatArray:
        """Return the median of each feature, which outliers move little."""
        if self.n_points * self.n_features <= _MOST_VALUES_SORTED:
            return _weighted_medians(self.take(np.arange(self.n_points)), self._weights)
        n_drawn = max(1, min(1001, _MOST_VALUES_SORTED // self.n_features))
        drawn = draw_indices(self._weights, (np.arange(n_drawn) + 0.5) / n_drawn)
        return _weighted_medians(self.take(drawn), np.ones(n_drawn))


class TrimmedNearness:
    """Draw and compare seeds among the points that are kept."""

    def __init__(self, rows: TrimmedPoints, nearness: Nearness, has_centers: bool) -> None:
        self._rows, self._nearness, self._has_centers = rows, nearness, has_centers

    def draw(self, uniforms: FloatArray, exponent: float = 2.0) -> IndexArray:
        """Leave out the farthest points, and draw from the rest."""
        self._leave_out()
        return self._nearness.draw(uniforms, exponent)

    def potentials(self, candidates: IndexArray) -> FloatArray:
        """Return the potentials over the points of the last draw."""
        return self._nearness.potentials(candidates)

    def add(self, center: FloatArray) -> None:
        self._nearness.add(center)
        self._has_centers = True

    def farthest(self) -> int:
        """Return the farthest of the points that the last sweep kept."""
        return self._nearness.farthest()

    def inertia(self) -> float:
        """Leave out the farthest points, and return the inertia of the rest."""
        self._leave_out()
        return self._nearness.inertia()

    def sq_dist(self, indices: IndexArray | None = None) -> FloatArray:
        return self._nearness.sq_dist(indices)

    def _leave_out(self) -> None:
        if self._has_centers:
            self._rows.keep_nearest(self._nearness)
        else:
            self._rows.keep_without_centers()


def trimmed_weights(
    values: FloatArray, weights: FloatArray, kept_weight: float
) -> tuple[FloatArray, float]:
    """Keep the weights of the smallest values, `kept_weight` in all, and return them and the limit.

    Values below the limit keep all their weight, values at the limit the same share of it each, and
    values above it none.
    """
    limit = _weighted_quantile(values, weights, kept_weight * (1 - _ROUNDING))
    kept = np.where(values < limit, weights, 0.0)
    is_at_limit = values == limit
    at_limit = float(weights[is_at_limit].sum())
    part = (kept_weight - float(kept.sum())) / at_limit if at_limit > 0 else 0.0
    kept[is_at_limit] = min(max(part, 0.0), 1.0) * weights[is_at_limit]
    return kept, limit


def _weighted_medians(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the least value of each column up to which the weights reach half."""
    order = np.argsort(values, axis=0)
    reached = np.cumsum(weights[order], axis=0) >= weights.sum() / 2 * (1 - _ROUNDING)
    first = np.argmax(reached, axis=0)[None, :]
    return np.asarray(np.take_along_axis(values, np.take_along_axis(order, first, 0), 0)[0])


def _weighted_quantile(values: FloatArray, weights: FloatArray, below: float) -> float:
    """Return the least value up to which the weights reach `below`."""
    while len(values) > 1024:  # to halve more takes linear time, and to sort them longer
        order = np.argpartition(values, len(values) // 2)
        halves = np.split(order, [len(values) // 2])
        weight = float(weights[halves[0]].sum())
        chosen = halves[0] if weight >= below else halves[1]
        below -= 0.0 if weight >= below else weight
        values, weights = values[chosen], weights[chosen]
    order = np.argsort(values)
    first = int(np.searchsorted(np.cumsum(weights[order]), below))
    return float(values[order[min(first, len(values) - 1)]])
