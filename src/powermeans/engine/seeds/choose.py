"""Choose points as the first centers: by k-means++, greedy or plain, and at random.

Draws follow an order of the points that depends on their coordinates, not on their row numbers. So
shuffling the rows does not change the seeds, and a point of weight three is drawn as three copies.

Of many points, greedy k-means++ compares candidates over a sample: points at even steps along the
inertia that the seeds so far leave. Each then stands for as much inertia, wherever it is. When the
seeds are four times as many, or a quarter of the inertia is left in the sample, all points are
measured from all seeds and another sample is taken.
"""

from __future__ import annotations

import math
import time

import numpy as np

from powermeans.engine.seeds.orders import (
    Drawn,
    Mass,
    NeedsOrder,
    PointsInBlocks,
    PointsInOrder,
    order_by_place,
    random_places,
)
from powermeans.points.by_definition import greedy_seeds_by_definition
from powermeans.points.protocol import Rows, sampler_of
from powermeans.types import FloatArray, IndexArray

# A sample has this many points for each seed, and at least so many in all. It is taken where points
# lie in at least twice as many places, so that a weight of three still acts as three copies do.
_SAMPLED_FOR_EACH_SEED = 32
_LEAST_SAMPLED = 8192
# An order of more points than these takes more memory than the rest of a fit.
_MANY_POINTS = 2**20


def n_greedy_candidates(n_clusters: int) -> int:
    """Return how many candidates greedy k-means++ tries for each center, 2 + floor(ln k)."""
    return 2 + int(math.log(n_clusters))


def choose_seeds(
    rows: Rows,
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
    rows: Rows, n_drawn: int, rng: np.random.RandomState
) -> tuple[IndexArray, FloatArray]:
    """Draw points that stand for all, and return them and the weight for which each stands.

    Half of the chance of a point is its share of the weight, and half that of the inertia about the
    mean, so that outliers are not missed (Bachem, Lucic and Krause 2018, "Scalable k-means
    clustering via lightweight coresets"). Steps are even along the order by place.
    """
    from_mean = _Inertia(rows.mean()[None, :])
    total_weight, total = rows.total_weight, rows.inertia_about_mean()

    def chance(some: Rows) -> FloatArray:
        return 0.5 / total_weight + 0.5 * from_mean.sq_dist(some) / total

    def mass(some: Rows, weights: FloatArray) -> FloatArray:
        return weights * chance(some)

    places, steps = random_places(rows, rng, 2), (np.arange(n_drawn) + rng.uniform()) / n_drawn
    try:
        drawn = _opened(rows, places, 2 * n_drawn).draw(mass, steps)
    except NeedsOrder:
        drawn = PointsInOrder(rows, places).draw(mass, steps)
    return drawn, 1 / (n_drawn * chance(sampler_of(rows).some(drawn)))


def _opened(rows: Rows, places: FloatArray, n_needed: int) -> Drawn:
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

        def mass(rows: Rows, weights: FloatArray) -> FloatArray:
            nearest = inertia.sq_dist(rows)
            return np.where(nearest > 0, weights, 0.0) / total_away + weights * nearest / total

    return np.append(chosen, points.draw(mass, _even_steps(n_seeds - len(chosen))))


class _Inertia:
    """Weights times squared distances from the nearest seed; the last distances are kept."""

    def __init__(self, seeds: FloatArray) -> None:
        self._seeds = seeds
        self._last: tuple[Rows, FloatArray] | None = None

    def __call__(self, rows: Rows, weights: FloatArray) -> FloatArray:
        """Return the mass of each point."""
        return weights * self.sq_dist(rows)

    def sq_dist(self, rows: Rows) -> FloatArray:
        """Return the squared distances alone."""
        if self._last is None or self._last[0] is not rows:
            self._last = rows, rows.nearness(self._seeds).sq_dist()
        return self._last[1]

    def weight_away(self, rows: Rows, weights: FloatArray) -> FloatArray:
        """Return the weights of the points that are not at a seed, and zero for others."""
        return np.where(self.sq_dist(rows) > 0, weights, 0.0)


def _weight(rows: Rows, weights: FloatArray) -> FloatArray:
    return weights


def _even_steps(n_steps: int) -> FloatArray:
    return (np.arange(n_steps) + 0.5) / n_steps


def uniform_seeds(rows: Rows, n_centers: int, rng: np.random.RandomState) -> FloatArray:
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
