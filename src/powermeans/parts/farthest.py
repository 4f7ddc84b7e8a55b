"""The points of parts that are farthest from all centers, each a center for the next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from powermeans.parts.checkpoint import recorded
from powermeans.parts.executors import Executor, PartOpener
from powermeans.rows import open_batch
from powermeans.rows.by_definition import weighted
from powermeans.rows.observed import filled
from powermeans.rows.protocol import FarPoint, PartRows
from powermeans.types import FloatArray, IndexArray, Labels, Points

# A pass finds this many more than are wanted, since those near a chosen one are not far any more.
_MORE = 16
# Kernels for many points and for few round the same distance differently, by less than this share.
_ROUNDING = 1e-3


def farthest_of_parts(
    executor: Executor, filling: FloatArray | None, centers: FloatArray, n_wanted: int
) -> Iterator[FarPoint]:
    """Find points as `Rows.farthest` does, several in each pass over the parts.

    Another pass follows only if points chosen since may change the next one. `filling` replaces
    missing entries.
    """
    chosen = centers
    candidates: _Candidates | None = None
    for n_left in range(n_wanted, 0, -1):
        place = None if candidates is None else candidates.farthest()
        if candidates is None or place is None:
            has_missing = executor.opener.has_missing
            call = _FindFarthest(chosen, len(centers), 2 * n_left + _MORE, has_missing)
            candidates, place = _Candidates(executor.opener, filling, executor.total(call)), 0
        far = candidates.at(place)
        yield far
        candidates.approach(far.point)
        chosen = np.concatenate([chosen, far.point[None, :]])


class _Candidates:
    """The farthest points of a pass, and their distances as centers are added.

    The distance of a point is exact until a new center is nearer than the old ones. From then on it
    is an upper bound.
    """

    def __init__(self, opener: PartOpener, filling: FloatArray | None, found: Farthest) -> None:
        self._found, self._points = found, filled(found.points, filling)
        self._most, self._is_known = found.sq_dist.copy(), np.ones(len(found.sq_dist), dtype=bool)
        self._rows = open_batch(
            found.points,
            n_threads=1,
            divergence=opener.divergence,
            has_missing=opener.has_missing,
        )

    def farthest(self) -> int | None:
        """Return the place of the farthest of all points; None if bounds leave it open."""
        if not self._is_known.any():
            return None
        values = weighted(self._found.weights, self._most)
        place = int(np.argmax(self._is_known))  # candidates come in falling order
        may_be_farther = ~self._is_known & ~(values < values[place])
        return None if may_be_farther.any() else place

    def at(self, place: int) -> FarPoint:
        """Return a point whose distance is exact."""
        found = self._found
        point = np.ascontiguousarray(self._points[place], dtype=np.float64)
        weight, sq_dist = float(found.weights[place]), float(found.sq_dist[place])
        return FarPoint(point, weight, sq_dist, int(found.labels[place]))

    def approach(self, center: FloatArray) -> None:
        """Take one more center into account."""
        sq_dist = self._rows.nearness(center[None, :]).sq_dist()
        is_beyond = (1 - _ROUNDING) * sq_dist > self._most
        self._is_known &= is_beyond
        most = np.fmin(self._most, (1 + _ROUNDING) * sq_dist)
        self._most = np.where(is_beyond, self._most, most)


@recorded
@dataclass(frozen=True, slots=True)
class Farthest:
    """The farthest points of some parts, at most `n_kept`, which add up over parts.

    Of equally far points the first comes first. Missing entries are NaN.
    """

    n_kept: int
    sq_dist: FloatArray
    weights: FloatArray
    labels: Labels
    points: Points

    def __add__(self, other: Farthest) -> Farthest:
        sq_dist = np.concatenate([self.sq_dist, other.sq_dist])
        weights = np.concatenate([self.weights, other.weights])
        first = _largest(weighted(weights, sq_dist), self.n_kept)
        labels = np.concatenate([self.labels, other.labels])[first]
        points = np.concatenate([self.points, other.points])[first]
        return Farthest(self.n_kept, sq_dist[first], weights[first], labels, points)


@dataclass(frozen=True, slots=True)
class _FindFarthest:
    """Finds the farthest points of a part, labeled by the first centers."""

    centers: FloatArray
    n_labels: int
    n_kept: int
    has_missing: bool

    @property
    def n_bytes_given(self) -> int:
        """Size of the result of a part."""
        return 8 * self.n_kept * (int(self.centers.shape[1]) + 3)

    def __call__(self, rows: PartRows, number: int) -> Farthest:
        sq_dist, weights = rows.nearness(self.centers).sq_dist(), all_weights(rows)
        first = _largest(weighted(weights, sq_dist), self.n_kept)
        labels, _ = rows.assign(self.centers[: self.n_labels])
        return Farthest(
            self.n_kept, sq_dist[first], weights[first], labels[first], self._points(rows, first)
        )

    def _points(self, rows: PartRows, first: IndexArray) -> Points:
        # Keep missing entries: the means of all parts, which fill them, are not known here.
        return np.asarray(rows.sample(first)) if self.has_missing else rows.take(first)


def _largest(values: FloatArray, n_kept: int) -> NDArray[np.intp]:
    """Return the places of the largest values in falling order, the first of equal ones first."""
    candidates = np.arange(len(values))
    if n_kept < len(values):
        least = np.partition(values, len(values) - n_kept)[len(values) - n_kept]
        candidates = np.flatnonzero(~(values < least))
    order = np.argsort(-values[candidates], kind="stable")[:n_kept]
    return candidates[order]


def all_weights(rows: PartRows) -> FloatArray:
    """Return the weights of all points of a part."""
    return rows.sample_weight(np.arange(rows.n_points))
