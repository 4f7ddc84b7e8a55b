"""Sweeps that compare a point only with the centers near its own."""

from typing import Any

import numpy as np

from powermeans.mathematics.rules import Hard, Power
from powermeans.mathematics.sums import Spread, Sums
from powermeans.points.checks.points import widened
from powermeans.points.protocol import AskedNear, Labelling, NearCenters
from powermeans.types import FloatArray, Labels


class Cells:
    """Dense points, each in the cell of the center of its label.

    The points are those of the `EuclideanPoints` that make this. `nearby` lists centers for each
    center, with itself first, (n_centers, n_listed), int32.
    """

    def __init__(self, rows: Any) -> None:
        self._rows = rows

    def nearest_to_each(
        self, centers: FloatArray, n_listed: int, prices: FloatArray | None = None
    ) -> Labels:
        """List the centers nearest to each, with itself first, (n_centers, n_listed).

        Prices are added to the squared distances.
        """
        lists: Labels = np.empty((len(centers), min(n_listed, len(centers))), dtype=np.int32)
        rows = self._beside(centers)
        rows.native.list_nearby(rows.as_compiled(centers), prices, lists)
        return lists

    def nearest_of(self, centers: FloatArray, others: FloatArray) -> Labels:
        """Return the center nearest to each of the others."""
        labels: Labels = self._beside(others).assign(centers)[0]
        return labels

    def sweep(
        self, centers: FloatArray, rule: Hard | Power | Labelling, nearby: Labels, labels: Labels
    ) -> Sums:
        """Sweep over the centers near those of the labels.

        Rules that give a point to one center change labels to those of the best in the lists.
        """
        rows = self._rows
        taken = rows.as_compiled(centers)
        if isinstance(rule, Hard):
            swept = rows.native.sweep_nearby(taken, nearby, labels)
        elif isinstance(rule, Labelling):
            prices = rule.prices_of(len(centers))
            swept = rows.native.priced_nearby(taken, nearby, labels, prices, rule.margins)
        else:
            swept = rows.native.power_nearby(taken, nearby, labels, rule.power)
        sums: Sums = rows.finished(rows.sums_of(swept, len(centers)))
        return sums

    def spread(self, centers: FloatArray, nearby: Labels, labels: Labels) -> Spread:
        """Return the spread among the centers that `sweep` looks at."""
        rows = self._rows
        found = rows.native.spread_nearby(rows.as_compiled(centers), nearby, labels)
        spread: Spread = rows.spread_of(*found)
        return spread

    def distances_to_own(self, centers: FloatArray, labels: Labels) -> FloatArray:
        """Return the squared distance of each point to the center of its label."""
        rows = self._rows
        distances, taken = np.empty(rows.n_points), rows.as_compiled(centers)
        step = max(1, 2**20 // rows.n_features)
        for start in range(0, rows.n_points, step):
            block = slice(start, start + step)
            differences = widened(rows._points[block]) - taken[labels[block]]
            distances[block] = np.einsum("if,if->i", differences, differences)
        return distances

    def near(self, asked: AskedNear, nearby: Labels) -> NearCenters:
        """List as `PricedPoints.near` does, of those that `nearby` lists for the center of each."""
        rows, found = self._rows, NearCenters.none(len(asked.indices), asked.n_most)
        if len(asked.indices):
            some = rows.native_of(asked.indices)
            taken, own, prices = rows.as_compiled(asked.centers), asked.labels.copy(), asked.prices
            some.near_nearby(
                taken, nearby, own, prices, asked.reach, found.centers, found.distances
            )
        return found

    def _beside(self, points: FloatArray) -> Any:
        """Return other points that are compared as these are, with the same threads."""
        rows = self._rows
        return type(rows)(np.ascontiguousarray(points, dtype=rows.dtype), team=rows.team)
