"""Choose points as the first centers: by k-means++, greedy or plain, and at random.

Draws follow an order of the points that depends on their coordinates, not on their row numbers. So
shuffling the rows does not change the seeds, and a point of weight three is drawn as three copies.

Of many points, greedy k-means++ compares candidates over a sample: points at even steps along the
inertia that the seeds so far leave. Each then stands for as much inertia, wherever it is. When the
seeds are four times as many, or a quarter of the inertia is left in the sample, all points are
measured from all seeds and another sample is taken.

An order of all points takes several times the memory of points with few features. Where they are
many, their keys fall into bins instead, narrow where keys are dense, and only the bins in which a
number falls are sorted. Both ways draw the same points, but for rounding of sums.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from powermeans.mathematics.weighted_draws import draw_indices
from powermeans.points.by_definition import greedy_seeds_by_definition
from powermeans.points.protocol import Points, Sampler, sampler_of
from powermeans.types import FloatArray, IndexArray

# A sample has this many points for each seed, and at least so many in all. It is taken where points
# lie in at least twice as many places, so that a weight of three still acts as three copies do.
_SAMPLED_FOR_EACH_SEED = 32
_LEAST_SAMPLED = 8192
# An order of more points than these takes more memory than the rest of a fit.
_MANY_POINTS = 2**20
_POINTS_AT_ONCE = 2**18
_N_BINS = 2**19
_N_CELLS = 2**12
_SAMPLED_KEYS = 2**16
# Beyond this share of the points in the bins drawn, an order of all takes hardly more memory.
_LARGEST_SHARE_SORTED = 1 / 16


def n_greedy_candidates(n_clusters: int) -> int:
    """Return how many candidates greedy k-means++ tries for each center, 2 + floor(ln k)."""
    return 2 + int(math.log(n_clusters))


def choose_seeds(
    rows: Points,
    n_centers: int,
    rng: np.random.RandomState,
    *,
    n_candidates: int = 1,
    exponent: float = 2.0,
    seconds: float = math.inf,
) -> tuple[FloatArray, IndexArray]:
    """Return seeds by k-means++ (Arthur & Vassilvitskii 2007), and their indices.

    The first is drawn in proportion to the weights w. Candidates for each later seed are drawn in
    proportion to w * d**exponent, where d is the distance to the nearest seed so far; the candidate
    that leaves the least inertia is kept, by an estimate where there are many points. Points repeat
    once every point is at a seed. After so many seconds the seeds that are still missing are drawn
    at once, half by weight and half by w * d**2.
    """
    end = time.monotonic() + seconds
    n_sampled = max(_SAMPLED_FOR_EACH_SEED * n_centers, _LEAST_SAMPLED)
    may_sample = n_candidates > 1 and exponent == 2 and rows.sampler is not None
    places = random_places(rows, rng, 2)
    points: Drawn
    if may_sample and rows.n_points >= _MANY_POINTS:
        points = _opened(rows, places, 2 * n_sampled)
    else:
        points = PointsInOrder(rows, places)
    is_sampled = may_sample and points.n_places >= 2 * n_sampled
    # Eight are compared in the time of one, and make up for what the sample misjudges.
    n_tried = max(n_candidates, 8) if is_sampled else n_candidates
    first, others = rng.uniform(), rng.uniform(size=(n_centers - 1, n_tried))
    if is_sampled:
        try:
            chosen = _seeds_by_samples(points, first, others, n_sampled, end)
            if len(chosen) < n_centers:
                chosen = _completed(points, chosen, n_centers)
        except NeedsOrder:
            points = PointsInOrder(rows, places)
            chosen = _seeds_by_samples(points, first, others, n_sampled, end)
    elif exponent == 2 and rows.sampler is not None:
        left = end - time.monotonic()
        chosen = rows.sampler.greedy_seeds(points.order, first, others, seconds=left)
    else:
        left = end - time.monotonic()
        chosen = greedy_seeds_by_definition(rows, points.order, first, others, exponent, left)
    if len(chosen) < n_centers:
        chosen = _completed(points, chosen, n_centers)
    return rows.take(chosen), chosen


def drawn_sample(
    rows: Points, n_drawn: int, rng: np.random.RandomState
) -> tuple[IndexArray, FloatArray]:
    """Draw points that stand for all, and return them and the weight for which each stands.

    Half of the chance of a point is its share of the weight, and half that of the inertia about the
    mean, so that outliers are not missed (Bachem, Lucic and Krause 2018, "Scalable k-means
    clustering via lightweight coresets"). Steps are even along the order by place.
    """
    from_mean = _Inertia(rows.mean()[None, :])
    total_weight, total = rows.total_weight, rows.inertia_about_mean()

    def chance(some: Points) -> FloatArray:
        return 0.5 / total_weight + 0.5 * from_mean.sq_dist(some) / total

    def mass(some: Points, weights: FloatArray) -> FloatArray:
        return weights * chance(some)

    places, steps = random_places(rows, rng, 2), (np.arange(n_drawn) + rng.uniform()) / n_drawn
    try:
        drawn = _opened(rows, places, 2 * n_drawn).draw(mass, steps)
    except NeedsOrder:
        drawn = PointsInOrder(rows, places).draw(mass, steps)
    return drawn, 1 / (n_drawn * chance(sampler_of(rows).some(drawn)))


def _opened(rows: Points, places: FloatArray, n_needed: int) -> Drawn:
    """Return the points in blocks if there are many at this many places, else in their order."""
    # Blocks of dense points are read without a copy.
    is_dense = rows.n_stored == rows.n_points * rows.n_features
    if is_dense and rows.n_points >= _MANY_POINTS:
        in_blocks = PointsInBlocks(rows, sampler_of(rows), places)
        if in_blocks.n_places >= n_needed:
            return in_blocks
    return PointsInOrder(rows, places)


def _seeds_by_samples(
    points: Drawn, first: float, others: FloatArray, n_sampled: int, end: float
) -> IndexArray:
    """Choose seeds by greedy k-means++, comparing candidates over samples, until the end."""
    rows, sampler = points.rows, sampler_of(points.rows)
    chosen = points.draw(_weight, np.array([first]))
    largest = points.largest(_Inertia(rows.take(chosen)))
    if largest and not 1e-200 < largest < 1e200:  # sums might leave the range of float64
        seconds = end - time.monotonic()
        return sampler.greedy_seeds(points.order, first, others, seconds=seconds)
    while len(left := others[len(chosen) - 1 :]) and end - time.monotonic() > 0:
        inertia = _Inertia(rows.take(chosen))
        sample = points.draw(inertia, _even_steps(n_sampled))
        if not len(sample):  # every point is at a seed
            break
        nearest = inertia.sq_dist(sampler.some(sample))
        numbers = left[: max(3 * len(chosen), 8)]
        seconds = end - time.monotonic()
        found = sampler.further_seeds(sample, nearest, numbers, 0.25, seconds=seconds)
        chosen = np.append(chosen, found)
    return chosen


def _completed(points: Drawn, chosen: IndexArray, n_seeds: int) -> IndexArray:
    """Add points at even steps along their mean share of weight and inertia.

    Shares of the inertia alone would leave the middle of the points without a seed.
    """
    inertia = _Inertia(points.rows.take(chosen))
    mass: Mass = _weight
    if 0 < (total := points.total(inertia)) < math.inf:
        total_away = points.total(inertia.weight_away)

        def mass(rows: Points, weights: FloatArray) -> FloatArray:
            nearest = inertia.sq_dist(rows)
            return np.where(nearest > 0, weights, 0.0) / total_away + weights * nearest / total

    return np.append(chosen, points.draw(mass, _even_steps(n_seeds - len(chosen))))


class _Inertia:
    """Weights times squared distances from the nearest seed; the last distances are kept."""

    def __init__(self, seeds: FloatArray) -> None:
        self._seeds = seeds
        self._last: tuple[Points, FloatArray] | None = None

    def __call__(self, rows: Points, weights: FloatArray) -> FloatArray:
        return weights * self.sq_dist(rows)

    def sq_dist(self, rows: Points) -> FloatArray:
        if self._last is None or self._last[0] is not rows:
            self._last = rows, rows.nearness(self._seeds).sq_dist()
        return self._last[1]

    def weight_away(self, rows: Points, weights: FloatArray) -> FloatArray:
        """Return the weights of the points that are not at a seed, and zero for others."""
        return np.where(self.sq_dist(rows) > 0, weights, 0.0)


def _weight(rows: Points, weights: FloatArray) -> FloatArray:
    return weights


def _even_steps(n_steps: int) -> FloatArray:
    return (np.arange(n_steps) + 0.5) / n_steps


def uniform_seeds(rows: Points, n_centers: int, rng: np.random.RandomState) -> FloatArray:
    """Draw places by the weight of their points, without repeats if there are enough places."""
    order, key = order_by_place(rows, rng)
    weights = rows.sample_weight(order)
    order, key, weights = order[weights > 0], key[weights > 0], weights[weights > 0]
    first_of_place = np.flatnonzero(np.diff(key, prepend=-1.0))
    # The first exponential clocks to ring are a sample without replacement by their rates. Times
    # are in logarithms, since quotients by tiny weights overflow.
    rates = np.add.reduceat(weights, first_of_place)
    times = np.log(rng.standard_exponential(len(rates))) - np.log(rates)
    n_drawn = min(n_centers, len(times))
    earliest = np.argpartition(times, n_drawn - 1)[:n_drawn]
    drawn = order[first_of_place[earliest[np.argsort(times[earliest])]]]
    return rows.take(np.resize(drawn, n_centers))


Mass = Callable[[Points, FloatArray], FloatArray]
"""Returns the mass of each point, given some points and their weights."""


# Orders by place.


def random_places(rows: Points, rng: np.random.RandomState, n_places: int) -> FloatArray:
    """Draw places about as far from the mean as the points are, (n_places, n_features)."""
    directions = rng.standard_normal((n_places, rows.n_features)) / math.sqrt(rows.n_features)
    return rows.mean() + rows.spread_of_features() * directions


def order_by_place(rows: Points, rng: np.random.RandomState) -> tuple[IndexArray, FloatArray]:
    """Sort the points by the sum of squared distances from two random places, and return both.

    Equal points have equal sums; others only by chance.
    """
    key = key_from(rows, random_places(rows, rng, 2))
    order = _stable_order(key)
    return order, key[order]


def key_from(rows: Points, places: FloatArray) -> FloatArray:
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

    rows: Points

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

    def __init__(self, rows: Points, places: FloatArray) -> None:
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

    def __init__(self, rows: Points, sampler: Sampler, places: FloatArray) -> None:
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

    def _blocks(self) -> Iterator[tuple[int, FloatArray, Points]]:
        """Yield the first index of some points at a time, their weights, and the points."""
        n_points = self.rows.n_points
        for start in range(0, n_points, _POINTS_AT_ONCE):
            end = min(start + _POINTS_AT_ONCE, n_points)
            weights = self.rows.sample_weight(np.arange(start, end))
            yield start, weights, self._sampler.some(slice(start, end))
