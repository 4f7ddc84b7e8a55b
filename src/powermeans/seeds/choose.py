"""Choose points as the first centers: by k-means++, greedy or plain, and at random.

Draws follow an order of the points that depends on their coordinates, not on their row numbers. So
shuffling the rows does not change the seeds, and a point of weight three is drawn as three copies.
"""

from __future__ import annotations

import math

import numpy as np

from powermeans.rows.protocol import Rows
from powermeans.seeds.orders import order_by_place
from powermeans.types import FloatArray, IndexArray


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
) -> tuple[FloatArray, IndexArray]:
    """Return seeds by k-means++ (Arthur & Vassilvitskii 2007), and their indices.

    The first is drawn in proportion to the weights w. Candidates for each later seed are drawn in
    proportion to w * d**exponent, where d is the distance to the nearest seed so far; the candidate
    that leaves the least inertia is kept. Points repeat once every point is at a seed.
    """
    order, _ = order_by_place(rows, rng)
    first, others = rng.uniform(), rng.uniform(size=(n_centers - 1, n_candidates))
    chosen = rows.greedy_seeds(order, first, others, exponent)
    return rows.take(chosen), chosen


def uniform_seeds(rows: Rows, n_centers: int, rng: np.random.RandomState) -> FloatArray:
    """Draw places by the weight of their points, without repeats if there are enough places."""
    order, key = order_by_place(rows, rng)
    weights = rows.sample_weight(order)
    order, key, weights = order[weights > 0], key[weights > 0], weights[weights > 0]
    first_of_place = np.flatnonzero(np.diff(key, prepend=-1.0))
    # The first exponential clocks to ring are a sample without replacement by their rates.
    rates = np.add.reduceat(weights, first_of_place)
    times = rng.standard_exponential(len(rates)) / rates
    n_drawn = min(n_centers, len(times))
    earliest = np.argpartition(times, n_drawn - 1)[:n_drawn]
    drawn = order[first_of_place[earliest[np.argsort(times[earliest])]]]
    return rows.take(np.resize(drawn, n_centers))
