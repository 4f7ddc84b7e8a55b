"""Draw points in proportion to a mass, along their order by place.

An order of all points takes several times the memory of points with few features. Where they are
many, their keys fall into bins instead, narrow where keys are dense, and only the bins in which a
number falls are sorted. Both ways draw the same points, but for rounding of sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from powermeans.engine.seeds.orders import key_from, order_from
from powermeans.mathematics.weighted_draws import draw_indices
from powermeans.points.protocol import Rows, Sampler
from powermeans.types import FloatArray, IndexArray

_POINTS_AT_ONCE = 2**18
_N_BINS = 2**19
_N_CELLS = 2**12
_SAMPLED_KEYS = 2**16
# Beyond this share of the points in the bins drawn, an order of all takes hardly more memory.
_LARGEST_SHARE_SORTED = 1 / 16

Mass = Callable[[Rows, FloatArray], FloatArray]
"""Returns the mass of each point, given some points and their weights."""


class NeedsOrder(Exception):
    """The points must be drawn in an order of all."""


class Drawn(Protocol):
    """Points to draw from; those that a mass gets have weights of one, beside their own."""

    rows: Rows

    @property
    def order(self) -> IndexArray:
        """The order of all points; it raises `NeedsOrder` where there is none."""
        ...

    @property
    def n_places(self) -> int:
        """At how many places there are points with a weight, at the least."""
        ...

    def largest(self, mass: Mass) -> float:
        """Return the largest mass of a point."""
        ...

    def total(self, mass: Mass) -> float:
        """Return the mass of all points."""
        ...

    def draw(self, mass: Mass, uniforms: FloatArray) -> IndexArray:
        """Return the points that `draw_indices` draws, or none if no point has a mass."""
        ...


class PointsInOrder:
    """Draw points along an order of all."""

    def __init__(self, rows: Rows, places: FloatArray) -> None:
        self.rows = rows
        self.order, key = order_from(rows, places)
        key = key[rows.sample_weight(self.order) > 0]
        self.n_places = int(np.count_nonzero(np.diff(key, prepend=-1.0)))

    def largest(self, mass: Mass) -> float:
        return float(self._masses(mass).max())

    def total(self, mass: Mass) -> float:
        return float(np.sum(self._masses(mass)))

    def draw(self, mass: Mass, uniforms: FloatArray) -> IndexArray:
        masses = self._masses(mass)
        if not np.any(masses):
            return np.empty(0, dtype=np.intp)
        return self.order[draw_indices(masses, uniforms)]

    def _masses(self, mass: Mass) -> FloatArray:
        return mass(self.rows, self.rows.sample_weight(np.arange(self.rows.n_points)))[self.order]


@dataclass(frozen=True, slots=True)
class Bins:
    """Bins of keys: cells of equal width, each divided as finely as it is full."""

    lowest: float
    cells_per_key: float
    first_bin: IndexArray  # of each cell
    n_bins: FloatArray  # of each cell

    @classmethod
    def of(cls, keys: FloatArray) -> Bins:
        """Divide the range of these keys, which are a sample."""
        lowest, highest = float(keys.min()), float(keys.max())
        cells_per_key = _N_CELLS / (highest - lowest) if lowest < highest else 0.0
        whole = cls(lowest, cells_per_key, np.arange(_N_CELLS), np.ones(_N_CELLS))
        counts = np.bincount(whole.bins(keys), minlength=_N_CELLS)
        n_bins = 1 + counts * (_N_BINS - _N_CELLS) // len(keys)
        return cls(lowest, cells_per_key, np.cumsum(n_bins) - n_bins, n_bins.astype(np.float64))

    def bins(self, keys: FloatArray) -> IndexArray:
        """Return the bin of each key, which never falls as keys rise."""
        places = (keys - self.lowest) * self.cells_per_key
        np.clip(places, 0.0, np.nextafter(_N_CELLS, 0.0), out=places)
        cells = places.astype(np.intp)
        places -= cells
        places *= self.n_bins[cells]
        return self.first_bin[cells] + places.astype(np.intp)


class PointsInBlocks:
    """Draw points along the order of their keys without that order, a block at a time."""

    def __init__(self, rows: Rows, sampler: Sampler, places: FloatArray) -> None:
        self.rows, self._sampler, self._places = rows, sampler, places
        step = -(-rows.n_points // _SAMPLED_KEYS)
        self._bins = Bins.of(key_from(sampler.some(np.arange(0, rows.n_points, step)), places))
        self._counts = np.zeros(_N_BINS, dtype=np.int32)
        for _, weights, block in self._blocks():
            bins = self._bins.bins(key_from(block, places))
            self._counts += np.bincount(bins[weights > 0], minlength=_N_BINS)

    @property
    def order(self) -> IndexArray:
        raise NeedsOrder

    @property
    def n_places(self) -> int:
        return int(np.count_nonzero(self._counts))

    def largest(self, mass: Mass) -> float:
        return max(float(mass(block, weights).max()) for _, weights, block in self._blocks())

    def total(self, mass: Mass) -> float:
        return sum(float(np.sum(mass(block, weights))) for _, weights, block in self._blocks())

    def draw(self, mass: Mass, uniforms: FloatArray) -> IndexArray:
        """Raise `NeedsOrder` where too many points have about the same key."""
        up_to_bin = np.zeros(_N_BINS)
        for _, weights, block in self._blocks():
            bins = self._bins.bins(key_from(block, self._places))
            up_to_bin += np.bincount(bins, mass(block, weights), _N_BINS)
        np.cumsum(up_to_bin, out=up_to_bin)
        if not up_to_bin[-1]:
            return np.empty(0, dtype=np.intp)
        numbers = uniforms * up_to_bin[-1]
        last_with_mass = np.searchsorted(up_to_bin, up_to_bin[-1], side="left")
        drawn = np.minimum(np.searchsorted(up_to_bin, numbers, side="right"), last_with_mass)
        numbers -= np.where(drawn > 0, up_to_bin[drawn - 1], 0.0)
        del up_to_bin
        return self._within_bins(mass, drawn, numbers)

    def _within_bins(self, mass: Mass, drawn: IndexArray, numbers: FloatArray) -> IndexArray:
        """Return the point at which the mass of its bin exceeds the number."""
        indices, bins = self._points_of_bins(drawn)
        masses = mass(self._sampler.some(indices), self.rows.sample_weight(indices))
        has_mass = masses > 0  # all bins drawn have some
        indices, bins, masses = indices[has_mass], bins[has_mass], masses[has_mass]
        cumulative = np.cumsum(masses)
        first = np.searchsorted(bins, drawn, side="left")
        last = np.searchsorted(bins, drawn, side="right") - 1
        numbers = numbers + np.where(first > 0, cumulative[first - 1], 0.0)
        found = np.searchsorted(cumulative, numbers, side="right")
        return indices[np.clip(found, first, last)]

    def _points_of_bins(self, drawn: IndexArray) -> tuple[IndexArray, IndexArray]:
        """Return the points of these bins in the order of their keys, and the bin of each."""
        is_drawn = np.zeros(_N_BINS, dtype=bool)
        is_drawn[drawn] = True
        if np.sum(self._counts[is_drawn]) > _LARGEST_SHARE_SORTED * self.rows.n_points:
            raise NeedsOrder
        found = []
        for first, weights, block in self._blocks():
            keys = key_from(block, self._places)
            bins = self._bins.bins(keys)
            wanted = np.flatnonzero(is_drawn[bins] & (weights > 0))
            found.append((first + wanted, bins[wanted], keys[wanted]))
        indices, bins, keys = (np.concatenate(parts) for parts in zip(*found, strict=True))
        order = np.argsort(keys, kind="stable")
        return indices[order], bins[order]

    def _blocks(self) -> Iterator[tuple[int, FloatArray, Rows]]:
        """Yield the first index of some points at a time, their weights, and the points."""
        n_points = self.rows.n_points
        for start in range(0, n_points, _POINTS_AT_ONCE):
            end = min(start + _POINTS_AT_ONCE, n_points)
            weights = self.rows.sample_weight(np.arange(start, end))
            yield start, weights, self._sampler.some(slice(start, end))
