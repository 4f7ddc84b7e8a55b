"""Points as the first centers: k-means++, greedy or plain, and at random.

The draws go along the points in an order that depends on where they lie, not on which row they are
in. So shuffling the rows does not change the seeds, and a point of weight three is drawn just as
three copies of it are.
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
    """Return seeds by k-means++ (Arthur & Vassilvitskii 2007), and which points they are.

    The first is drawn by weight, each other by weight times distance to the nearest seed so far,
    to the power of `exponent`. Of `n_candidates` for each the one that leaves the least inertia is
    kept. Points repeat once every point is at a seed.
    """
    order, _ = order_by_place(rows, rng)
    first, others = rng.uniform(), rng.uniform(size=(n_centers - 1, n_candidates))
    chosen = rows.greedy_seeds(order, first, others, exponent)
    return rows.take(chosen), chosen


def uniform_seeds(rows: Rows, n_centers: int, rng: np.random.RandomState) -> FloatArray:
    """Draw places by the weight of the points there, none twice unless there are too few."""
    order, key = order_by_place(rows, rng)
    weights = rows.sample_weight(order)
    order, key, weights = order[weights > 0], key[weights > 0], weights[weights > 0]
    first_of_place = np.flatnonzero(np.diff(key, prepend=-1.0))
    # The first of exponential clocks to ring are a sample without replacement by their rates.
    rates = np.add.reduceat(weights, first_of_place)
    times = rng.standard_exponential(len(rates)) / rates
    n_drawn = min(n_centers, len(times))
    earliest = np.argpartition(times, n_drawn - 1)[:n_drawn]
    drawn = order[first_of_place[earliest[np.argsort(times[earliest])]]]
    return rows.take(np.resize(drawn, n_centers))
