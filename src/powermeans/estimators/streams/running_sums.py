"""What is remembered of a stream: sums over all batches, in which later ones count more."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from powermeans.loop.spread import is_at_center
from powermeans.loop.updates import Sweep, Update
from powermeans.rows.protocol import Rows
from powermeans.sums import Sums
from powermeans.types import FloatArray, IndexArray

# A point counts in proportion to the weight of all before it, to this power.
FADING = 2.0
# Draws the point at which half of the error is passed.
_MIDDLE = np.array([0.5])
# Worth a closer look at whether two centers coincide, in units of their size.
_NEAR = 1e-9


class RunningSums(Update):
    """Add the sums of a batch to those before, and give lost centers points of the batch.

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
        sums: Sums,
        weight: float,
        *,
        memory: float = math.inf,
        least_share: float = 0.0,
    ) -> None:
        self.sums, self.weight = sums, weight
        self._memory, self._least_share = memory, least_share

    def before(self, sweep: Sweep) -> FloatArray:
        """Send lost centers to where the error of the batch is, to begin anew.

        Of centers that coincide, all but the heaviest are lost: soft weights would keep them
        together, and in a hard sweep one of them would get all of the points.
        """
        centers, points, weights = sweep.centers, self.sums.points, self.sums.weights
        heaviest, leaders = int(np.argmax(weights)), leaders_of(centers, weights)
        is_lost = weights <= self._least_share * weights[heaviest]
        is_lost |= leaders != np.arange(len(centers))
        is_lost[heaviest] = False
        if self.weight > 0 and is_lost.any():
            centers, found = found_anew(sweep.rows, centers, np.flatnonzero(is_lost))
            sweep.n_relocated += len(found)
            self.sums = replace(
                self.sums,
                points=handed_over(points, found, leaders),
                weights=handed_over(weights, found, leaders),
            )
        return centers

    def after(self, sweep: Sweep, sums: Sums) -> Sums:
        """Return points and weights of all batches."""
        added, remembered = sweep.rows.total_weight, min(self.weight, self._memory)
        fading = (remembered / (remembered + added)) ** FADING if added > 0 else 1.0
        self.sums = replace(
            sums,
            points=self.sums.points * fading + sums.points,
            weights=self.sums.weights * fading + sums.weights,
        )
        self.weight += added
        return self.sums


def found_anew(rows: Rows, centers: FloatArray, lost: IndexArray) -> tuple[FloatArray, IndexArray]:
    """Send lost centers to points of a batch, each to the middle of the error along it.

    Parameters
    ----------
    rows : Rows
        The batch.
    lost : (n_lost,)
        Not all of them.

    Returns
    -------
    (n_found,)
        Which have moved; the others stay, as every point is at a center.
    """
    found, living = centers.copy(), np.delete(centers, lost, axis=0)
    nearness = rows.nearness(living)
    for n_found, center in enumerate(lost):
        index = nearness.draw(_MIDDLE)
        point = rows.take(index)[0]
        if nearness.sq_dist(index)[0] == 0 or _is_at_one_of(living, point):
            return found, lost[:n_found]
        found[center] = point
        nearness.add(point)
    return found, lost


def handed_over(values: FloatArray, found: IndexArray, leaders: IndexArray) -> FloatArray:
    """What centers remember after some begin anew, and leave theirs to those they were with."""
    left = values.copy()
    left[found] = 0.0
    for center in found:
        if leaders[center] not in found:
            left[leaders[center]] += values[center]
    return left


def leaders_of(centers: FloatArray, weights: FloatArray) -> IndexArray:
    """For each center the heaviest of those that coincide with it, the first of several."""
    leaders = np.arange(len(centers))
    # In any direction they are next to one another.
    order = (centers @ np.random.default_rng(0).standard_normal(centers.shape[1])).argsort()
    gaps = np.linalg.norm(np.diff(centers[order], axis=0), axis=1)
    sizes = np.linalg.norm(centers[order[1:]], axis=1)
    for place in np.flatnonzero(gaps <= _NEAR * sizes):
        before, center = order[place], order[place + 1]
        if is_at_center(centers[center], centers[before]):
            both = np.flatnonzero((leaders == leaders[before]) | (leaders == leaders[center]))
            leaders[both] = both[np.argmax(weights[both])]
    return leaders


def _is_at_one_of(centers: FloatArray, point: FloatArray) -> bool:
    return any(is_at_center(point, center) for center in centers)
