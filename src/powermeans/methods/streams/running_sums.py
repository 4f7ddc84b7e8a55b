"""Sums over all batches of a stream, in which later batches count more."""

import math
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np

from powermeans.engine.spread import is_at_center
from powermeans.engine.updates import Sweep, Update
from powermeans.mathematics.sums import Sums
from powermeans.points.protocol import Points
from powermeans.types import FloatArray, IndexArray

# A point counts in proportion to the weight of all points before it, to this power.
FADING = 2.0


@dataclass(slots=True)
class RunningSums(Update):
    """Add the sums of a batch to those before, and give lost centers points of the batch.

    Sums of soft and of hard sweeps add: their weights are those of a surrogate of
    (sum_j y_j^s)^(1/s), k^(1/s) times the power mean, which has the same unit at every power s. A
    point at a center weighs one, and the sum approaches the inertia from below as s falls. Without
    this factor a batch at s = -1 would outweigh k hard ones.

    Sums at early centers should not hold back later ones. When the weight W of the points so far
    grows by w, the old sums are multiplied by (W / (W + w))^FADING. Then a point counts in
    proportion to the weight before it to this power, however the stream is cut into batches, and
    the sums average over ever more points.
    """

    sums: Sums  # of all batches so far
    weight: float  # of all points so far
    _: KW_ONLY
    memory: float = math.inf  # W is at most this above, so older points fade away
    least_share: float = 0.0  # a center is lost at this share of the heaviest weight, or below

    def before(self, sweep: Sweep) -> FloatArray:
        """Move lost centers to where the error of the batch is.

        Of centers that coincide, all but the heaviest are lost: soft weights would keep them
        together, and in a hard sweep one of them would get all points.
        """
        centers, points, weights = sweep.centers, self.sums.points, self.sums.weights
        heaviest, leaders = int(np.argmax(weights)), leaders_of(centers, weights)
        is_lost = weights <= self.least_share * weights[heaviest]
        is_lost |= leaders != np.arange(len(centers))
        is_lost[heaviest] = False
        has_weight = self.weight > 0 and sweep.rows.total_weight > 0
        if has_weight and is_lost.any():
            centers, found = found_anew(sweep.rows, centers, np.flatnonzero(is_lost))
            sweep.n_relocated += len(found)
            self.sums = replace(
                self.sums,
                points=handed_over(points, found, leaders),
                weights=handed_over(weights, found, leaders),
            )
        return centers

    def after(self, sweep: Sweep, sums: Sums) -> Sums:
        """Return the sums of all batches."""
        added, remembered = sweep.rows.total_weight, min(self.weight, self.memory)
        fading = (remembered / (remembered + added)) ** FADING if added > 0 else 1.0
        self.sums = replace(
            sums,
            points=self.sums.points * fading + sums.points,
            weights=self.sums.weights * fading + sums.weights,
        )
        self.weight += added
        return self.sums


def found_anew(
    rows: Points, centers: FloatArray, lost: IndexArray
) -> tuple[FloatArray, IndexArray]:
    """Move some but not all centers to points of a batch, each to the middle of its error.

    Return the centers and which of them moved; the others stay, since every point is at a center.
    """
    found, living = centers.copy(), np.delete(centers, lost, axis=0)
    nearness = rows.nearness(living)
    for n_found, center in enumerate(lost):
        index = nearness.draw(np.array([0.5]))  # the point at the middle of the error
        point = rows.take(index)[0]
        if nearness.sq_dist(index)[0] == 0 or any(is_at_center(point, one) for one in living):
            return found, lost[:n_found]
        found[center] = point
        nearness.add(point)
    return found, lost


def handed_over(values: FloatArray, found: IndexArray, leaders: IndexArray) -> FloatArray:
    """Move the values of centers that begin anew to the centers that they coincided with."""
    left = values.copy()
    left[found] = 0.0
    for center in found:
        if leaders[center] not in found:
            left[leaders[center]] += values[center]
    return left


def leaders_of(centers: FloatArray, weights: FloatArray) -> IndexArray:
    """Return for each center the first of the heaviest centers that coincide with it."""
    leaders = np.arange(len(centers))
    # Centers that coincide are neighbours along any direction.
    order = (centers @ np.random.default_rng(0).standard_normal(centers.shape[1])).argsort()
    gaps = np.linalg.norm(np.diff(centers[order], axis=0), axis=1)
    sizes = np.linalg.norm(centers[order[1:]], axis=1)
    for place in np.flatnonzero(gaps <= 1e-9 * sizes):
        before, center = order[place], order[place + 1]
        if is_at_center(centers[center], centers[before]):
            both = np.flatnonzero((leaders == leaders[before]) | (leaders == leaders[center]))
            leaders[both] = both[np.argmax(weights[both])]
    return leaders
