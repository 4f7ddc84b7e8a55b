"""What is remembered of a stream: sums over all batches, in which the later ones count more."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from powermeans.extent import is_at_center
from powermeans.rows.protocol import Rows
from powermeans.sums import Sums
from powermeans.types import FloatArray, IndexArray

# A point counts in proportion to the weight of all before it, to this power.
FADING = 2.0
# Draws the point at which half of the error is passed.
_MIDDLE = np.array([0.5])


class RunningSums:
    """Adds the sums of each batch to those before, and gives lost centers points of the batch.

    Sums of soft and of hard sweeps add: theirs are the weights of a surrogate of
    (sum_j y_j^s)^(1/s), k^(1/s) times the power mean, whose unit is the same at every power s. A
    point at a center weighs one, and a power more negative brings the sum nearer to the inertia,
    from below. Without that factor a batch at s = -1 would outweigh k hard ones.

    Sums of centers as they were long ago should not hold back those of today. When the weight W of
    the points so far grows by w, what is remembered is multiplied by (W / (W + w))^FADING. Then a
    point counts in proportion to the weight of those before it to this power, however the stream
    is cut into batches, and the sums never cease to average over more and more points.

    Parameters
    ----------
    sums : Sums
        Of the batches so far.
    weight : float
        Of the points so far.
    memory : float
        W is no more than that in what was said above: older points fade away.
    least_share : float
        A center whose weight is no more than this share of the heaviest one's is lost.
    """

    def __init__(
        self, sums: Sums, weight: float, *, memory: float = math.inf, least_share: float = 0.0
    ) -> None:
        self.sums, self.weight = sums, weight
        self._memory, self._least_share = memory, least_share
        self._is_hard = False

    def before(self, centers: FloatArray, power: float) -> tuple[FloatArray, int]:
        """The same centers."""
        self._is_hard = power == -math.inf
        return centers, 0

    def after(self, rows: Rows, centers: FloatArray, sums: Sums) -> tuple[Sums, int]:
        """Points and weights of all batches, and how many lost centers were given a point."""
        added, remembered = rows.total_weight, min(self.weight, self._memory)
        fading = (remembered / (remembered + added)) ** FADING if added > 0 else 1.0
        self.sums = replace(
            sums,
            points=self.sums.points * fading + sums.points,
            weights=self.sums.weights * fading + sums.weights,
        )
        self.weight += added
        if not self._is_hard:
            return self.sums, 0
        least = self._least_share * float(self.sums.weights.max())
        lost = np.flatnonzero(self.sums.weights <= least)
        n_found = self._find(lost, rows, centers) if len(lost) else 0
        return self.sums, n_found

    def _find(self, lost: IndexArray, rows: Rows, centers: FloatArray) -> int:
        """Give each of these centers a point of the batch, from the middle of its error."""
        points, weights = self.sums.points.copy(), self.sums.weights.copy()
        nearness = rows.nearness(np.delete(centers, lost, axis=0))
        n_found = 0
        for center in lost:
            index = nearness.draw(_MIDDLE)
            point, weight = rows.take(index)[0], rows.sample_weight(index)[0]
            former = int(np.argmin(np.square(centers - point).sum(axis=1)))
            is_near = nearness.sq_dist(index)[0] == 0 or is_at_center(point, centers[former])
            if weight == 0 or is_near:
                break
            if former not in lost:
                points[former] -= weight * point
                weights[former] -= weight
            points[center], weights[center] = weight * point, weight
            nearness.add(point)
            n_found += 1
        self.sums = replace(self.sums, points=points, weights=weights)
        return n_found
