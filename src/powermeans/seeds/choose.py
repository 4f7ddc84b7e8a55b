"""Choosing points as the first centers: k-means++, greedy or plain, and at random.

The draws walk along the points in an order that depends on where they lie, not on which row they
are in. So the seeds do not change when rows are shuffled, and a point of weight three is drawn
just as three copies of it are.
"""

from __future__ import annotations

import math

import numpy as np

from powermeans.loop.spread import spread_of_features
from powermeans.rows.protocol import Rows
from powermeans.types import FloatArray, IndexArray


def choose_seeds(
    rows: Rows,
    n_centers: int,
    rng: np.random.RandomState,
    *,
    n_candidates: int = 1,
    exponent: float = 2.0,
) -> tuple[FloatArray, IndexArray]:
    """k-means++: each seed is drawn by its distance to the nearest one so far.

    Parameters
    ----------
    n_candidates : int
        How many points to draw for each seed but the first; the one that leaves the least inertia
        is kept. One is plain k-means++ (Arthur & Vassilvitskii 2007).
    exponent : float
        The probability is proportional to weight times distance to this power. Two is k-means++.

    Returns
    -------
    indices : (n_centers,)
        Which points they are. Once every point has a seed at distance zero, points repeat.
    """
    order, _ = order_by_place(rows, rng)
    first, others = rng.uniform(), rng.uniform(size=(n_centers - 1, n_candidates))
    chosen = rows.greedy_seeds(order, first, others, exponent)
    return rows.take(chosen), chosen


def uniform_seeds(rows: Rows, n_centers: int, rng: np.random.RandomState) -> FloatArray:
    """Places drawn by the weight of the points there, none twice unless there are too few."""
    order, key = order_by_place(rows, rng)
    weights = rows.sample_weight(order)
    order, key, weights = order[weights > 0], key[weights > 0], weights[weights > 0]
    first_of_place = np.flatnonzero(np.diff(key, prepend=-1.0))
    # The first of exponential clocks to ring: its rate is the chance of being the first.
    rates = np.add.reduceat(weights, first_of_place)
    times = rng.standard_exponential(len(rates)) / rates
    n_drawn = min(n_centers, len(times))
    earliest = np.argpartition(times, n_drawn - 1)[:n_drawn]
    drawn = order[first_of_place[earliest[np.argsort(times[earliest])]]]
    return rows.take(np.resize(drawn, n_centers))


def order_by_place(rows: Rows, rng: np.random.RandomState) -> tuple[IndexArray, FloatArray]:
    """The points sorted by a number that tells where they lie, and this number.

    It is the sum of squared distances from two random places: equal for equal points, and for
    others only by chance.
    """
    one, other = random_places(rows, rng, 2)
    key = rows.nearness(one[None, :]).sq_dist()
    key += rows.nearness(other[None, :]).sq_dist()
    order = np.argsort(key)
    sorted_key = key[order]
    if np.any(sorted_key[1:] == sorted_key[:-1]):
        # Which of equal points comes first may not depend on how the machine sorts.
        order = np.argsort(key, kind="stable")
    return order, sorted_key


def random_places(rows: Rows, rng: np.random.RandomState, n_places: int) -> FloatArray:
    """Places about as far from the mean as the points are, (n_places, n_features)."""
    directions = rng.standard_normal((n_places, rows.n_features)) / math.sqrt(rows.n_features)
    return rows.mean() + spread_of_features(rows) * directions
