"""What is remembered of a stream: sums over all batches, in which later ones count more."""

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
    """Adds the sums of a batch to those before, and gives lost centers points of the batch.

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
    rows : Rows
        The batch.
    sums : Sums
        Of the batches before.
    weight : float
        Of their points.
    memory : float
        W is no more than that in what was said above: older points fade away.
    least_share : float
        A center whose weight is no more than this share of the heaviest one's is lost.

    Attributes
    ----------
    sums, weight
        Those of all batches, once this one has been swept.
    """

    def __init__(
        self,
        rows: Rows,
        sums: Sums,
        weight: float,
        *,
        memory: float = math.inf,
        least_share: float = 0.0,
    ) -> None:
        self.sums, self.weight = sums, weight
        self._rows, self._memory, self._least_share = rows, memory, least_share
        self._n_found = 0

    def before(self, centers: FloatArray, power: float) -> tuple[FloatArray, int]:
        """Lost centers go to where the error of the batch is."""
        weights = self.sums.weights
        lost = np.flatnonzero(weights <= self._least_share * weights.max())
        if self.weight > 0 and len(lost):
            centers = self._found(lost, centers)
        return centers, 0

    def after(self, rows: Rows, centers: FloatArray, sums: Sums) -> tuple[Sums, int]:
        """Points and weights of all batches, and how many lost centers were found."""
        added, remembered = rows.total_weight, min(self.weight, self._memory)
        fading = (remembered / (remembered + added)) ** FADING if added > 0 else 1.0
        self.sums = replace(
            sums,
            points=self.sums.points * fading + sums.points,
            weights=self.sums.weights * fading + sums.weights,
        )
        self.weight += added
        return self.sums, self._n_found

    def _found(self, lost: IndexArray, centers: FloatArray) -> FloatArray:
        """Each goes to the point in the middle of the error, along the batch, and begins anew."""
        found, points, weights = centers.copy(), self.sums.points.copy(), self.sums.weights.copy()
        living = np.delete(centers, lost, axis=0)
        nearness = self._rows.nearness(living)
        for center in lost:
            index = nearness.draw(_MIDDLE)
            point = self._rows.take(index)[0]
            if nearness.sq_dist(index)[0] == 0 or _is_at_one_of(living, point):
                break
            found[center], points[center], weights[center] = point, 0.0, 0.0
            nearness.add(point)
            self._n_found += 1
        self.sums = replace(self.sums, points=points, weights=weights)
        return found


def _is_at_one_of(centers: FloatArray, point: FloatArray) -> bool:
    return any(is_at_center(point, center) for center in centers)
