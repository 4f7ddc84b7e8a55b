"""Orders of points that do not depend on the order of their rows, and draws along them.

An order of all points takes several times the memory of points with few features. Where they are
many, their keys fall into bins instead, narrow where keys are dense, and only the bins in which a
number falls are sorted. Both ways draw the same points, but for rounding of sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from powermeans.engine.spread import spread_of_features
from powermeans.mathematics.weighted_draws import draw_indices
from powermeans.points.protocol import Rows, Sampler
from powermeans.types import FloatArray, IndexArray, Points, SparsePoints

_POINTS_AT_ONCE = 2**18
_N_BINS = 2**19
_N_CELLS = 2**12
_SAMPLED_KEYS = 2**16
# Beyond this share of the points in the bins drawn, an order of all takes hardly more memory.
_LARGEST_SHARE_SORTED = 1 / 16

_Keys = NDArray[np.uint64]
Mass = Callable[[Rows, FloatArray], FloatArray]
"""Returns the mass of each point, given some points and their weights."""


# Orders by place.


def random_places(rows: Rows, rng: np.random.RandomState, n_places: int) -> FloatArray:
    """Draw places about as far from the mean as the points are, (n_places, n_features)."""
    directions = rng.standard_normal((n_places, rows.n_features)) / math.sqrt(rows.n_features)
    return rows.mean() + spread_of_features(rows) * directions


def order_by_place(rows: Rows, rng: np.random.RandomState) -> tuple[IndexArray, FloatArray]:
    """Sort the points by the sum of squared distances from two random places, and return both.

    Equal points have equal sums; others only by chance.
    """
    key = key_from(rows, random_places(rows, rng, 2))
    order = _stable_order(key)
    return order, key[order]


def key_from(rows: Rows, places: FloatArray) -> FloatArray:
    """Return the sum of squared distances of each point from two places."""
    one, other = places
    key = rows.nearness(one[None, :]).sq_dist()
    nearness = rows.nearness(other[None, :])
    for start in range(0, len(key), _POINTS_AT_ONCE):
        end = min(start + _POINTS_AT_ONCE, len(key))
        key[start:end] += nearness.sq_dist(np.arange(start, end))
    return key


def _stable_order(key: FloatArray) -> IndexArray:
    """Return the order of a stable sort, which is slower: the machine must not decide ties."""
    order, found = np.argsort(key), []
    for start in range(1, len(order), _POINTS_AT_ONCE):
        some = key[order[start - 1 : start + _POINTS_AT_ONCE]]
        found.append(np.flatnonzero(some[1:] == some[:-1]) + start)
    if not any(map(len, found)):
        return order
    repeats = np.concatenate(found)
    if 8 * len(repeats) > len(key):
        return np.argsort(key, kind="stable")
    tied = np.union1d(repeats - 1, repeats)
    indices = order[tied]
    order[tied] = indices[np.lexsort((indices, key[indices]))]
    return order


# Draws along such an order.


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
        key = key_from(rows, places)
        self.order = _stable_order(key)
        key = key[self.order[rows.sample_weight(self.order) > 0]]
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


# Orders by chance.


def order_by_chance(points: Points | SparsePoints, rng: np.random.RandomState) -> IndexArray:
    """Return a random order that depends on the points, and not on their rows.

    Equal points follow one another. So an online pass does the same if rows are shuffled, or if
    a point of weight three becomes three copies.
    """
    order: IndexArray = np.argsort(_mixed(row_keys(points, rng)))
    return order


def row_keys(points: Points | SparsePoints, rng: np.random.RandomState) -> _Keys:
    """Return a random number for each row, equal for equal rows, dense or canonical CSR."""
    factors = np.asarray(rng.randint(0, 2**64, size=points.shape[1], dtype=np.uint64))
    factors |= np.uint64(1)  # an even factor would lose bits
    return _keys_of_sparse(points, factors) if sparse.issparse(points) else _keys(points, factors)


def _keys(points: Points, factors: _Keys) -> _Keys:
    keys = np.empty(len(points), dtype=np.uint64)
    n_rows = max(1, 2**17 // points.shape[1])
    for start in range(0, len(points), n_rows):
        rows = slice(start, start + n_rows)
        keys[rows] = _bits(points[rows]) @ factors
    return keys


def _keys_of_sparse(points: SparsePoints, factors: _Keys) -> _Keys:
    """Return the same keys: entries that are not stored are zeros, whose bits are zero."""
    totals = np.zeros(points.nnz + 1, dtype=np.uint64)
    np.cumsum(_bits(points.data) * factors[points.indices], out=totals[1:])
    return totals[points.indptr[1:]] - totals[points.indptr[:-1]]


def _bits(values: Points) -> _Keys:
    unsigned = np.dtype(f"u{values.dtype.itemsize}")
    # Minus zero equals zero but has other bits; adding zero makes it zero.
    return _mixed((values + values.dtype.type(0)).view(unsigned).astype(np.uint64, copy=False))


def _mixed(numbers: _Keys) -> _Keys:
    """Permute numbers so that zero stays and the others keep no order."""
    # The golden ratio in units of 2^64: odd, so that products lose nothing, with bits in no order.
    golden = np.uint64(0x9E3779B97F4A7C15)
    mixed = numbers * golden
    mixed ^= mixed >> np.uint64(32)
    mixed *= golden
    mixed ^= mixed >> np.uint64(29)
    return mixed
