"""The points farthest from all centers, each a center for the next, found in few passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from powermeans.points.by_definition import weighted
from powermeans.points.protocol import FarPoint, Points
from powermeans.types import FloatArray, IndexArray, Labels, Matrix


@dataclass(frozen=True, slots=True)
class Farthest:
    """The farthest of some points, at most `n_kept`, which add up.

    Of equally far points the first comes first. Missing entries are NaN.
    """

    n_kept: int
    sq_dist: FloatArray
    weights: FloatArray
    labels: Labels
    points: Matrix

    def __add__(self, other: Farthest) -> Farthest:
        sq_dist = np.concatenate([self.sq_dist, other.sq_dist])
        weights = np.concatenate([self.weights, other.weights])
        first = largest_first(weighted(weights, sq_dist), self.n_kept)
        labels = np.concatenate([self.labels, other.labels])[first]
        points = np.concatenate([self.points, other.points])[first]
        return Farthest(self.n_kept, sq_dist[first], weights[first], labels, points)


Find = Callable[[FloatArray, int], tuple[Farthest, Points]]
"""Makes a pass: given centers and how many points are kept, returns them, and rows of them."""


def farthest_in_passes(
    find: Find, centers: FloatArray, n_wanted: int, *, rounding: float = 0.0
) -> Iterator[FarPoint]:
    """Find points as `Points.farthest` does, several in each pass.

    Another pass follows only if points chosen since may change the next one. Where `rounding` is
    the share by which a pass may round a distance differently from the rows of a few points, each
    distance comes from a pass.
    """
    chosen = centers
    candidates: _Candidates | None = None
    for n_left in range(n_wanted, 0, -1):
        place = None if candidates is None else candidates.farthest()
        if candidates is None or place is None:
            # More than are wanted, since those near a chosen one are not far any more.
            candidates = _Candidates(*find(chosen, 2 * n_left + 16), rounding)
            place = candidates.farthest_found()
        far = candidates.at(place)
        yield far
        candidates.approach(far.point)
        chosen = np.concatenate([chosen, far.point[None, :]])


class _Candidates:
    """The farthest points of a pass, and their distances as centers are added.

    With a rounding, a distance is exact until a new center is nearer than the old ones, and from
    then on it is an upper bound.
    """

    def __init__(self, found: Farthest, rows: Points, rounding: float) -> None:
        self._found, self._rows, self._rounding = found, rows, rounding
        self._most, self._is_known = found.sq_dist.copy(), np.ones(len(found.sq_dist), dtype=bool)
        # No point that was left out is farther than the nearest of these.
        is_full = len(found.sq_dist) >= found.n_kept
        self._least = float(self._values().min()) if is_full and rounding == 0 else -1.0

    def farthest_found(self) -> int:
        """Return the place of the farthest right after the pass, the first of several."""
        return int(np.argmax(self._values()))

    def farthest(self) -> int | None:
        """Return the place of the farthest of all points; None if bounds leave it open."""
        values = self._values()
        known = np.where(self._is_known, values, -np.inf)
        place = int(np.argmax(known))
        is_open = np.any(~self._is_known & ~(values < known[place]))
        # A point as far as that may have been left out, and come first.
        return None if is_open or not known[place] > self._least else place

    def at(self, place: int) -> FarPoint:
        """Return a point whose distance is exact."""
        found = self._found
        point = np.ascontiguousarray(found.points[place], dtype=np.float64)
        weight, sq_dist = float(found.weights[place]), float(self._most[place])
        return FarPoint(point, weight, sq_dist, int(found.labels[place]))

    def approach(self, center: FloatArray) -> None:
        sq_dist = self._rows.nearness(center[None, :]).sq_dist()
        is_beyond = (1 - self._rounding) * sq_dist > self._most
        self._is_known &= is_beyond | (self._rounding == 0)
        most = np.fmin(self._most, (1 + self._rounding) * sq_dist)
        self._most = np.where(is_beyond, self._most, most)

    def _values(self) -> FloatArray:
        return weighted(self._found.weights, self._most)


def largest_first(values: FloatArray, n_kept: int) -> IndexArray:
    """Return the places of the largest values in falling order, the first of equal ones first."""
    candidates = np.arange(len(values))
    if n_kept < len(values):
        least = np.partition(values, len(values) - n_kept)[len(values) - n_kept]
        candidates = np.flatnonzero(~(values < least))
    order = np.argsort(-values[candidates], kind="stable")[:n_kept]
    return candidates[order]
