"""Choose points as the first centers: by k-means++, greedy or plain, and at random.

Draws follow an order of the points that depends on their coordinates, not on their row numbers. So
shuffling the rows does not change the seeds, and a point of weight three is drawn as three copies.

Of many points, greedy k-means++ compares candidates over a sample: points at even steps along the
inertia that the seeds so far leave. Each then stands for as much inertia, wherever it is. When the
seeds are four times as many, or a quarter of the inertia is left in the sample, all points are
measured from all seeds and another sample is taken.

Where many seeds of many features are chosen without a sample, points are compared by a random
projection to few features (Kane & Nelson 2014). The gain of a candidate is a sum over points, in
which the errors of single distances average out; more candidates make up for the rest.
"""

from __future__ import annotations

import math
import time

import numpy as np
from scipy import sparse

from powermeans.rows.protocol import Rows
from powermeans.seeds.orders import order_by_place
from powermeans.types import FloatArray, IndexArray
from powermeans.weighted_draws import draw_indices

# A sample has this many points for each seed, and at least so many in all. It is taken where points
# lie in at least twice as many places, so that a weight of three still acts as three copies do.
_SAMPLED_FOR_EACH_SEED = 32
_LEAST_SAMPLED = 8192
# These many are compared in the time of one, and make up for what the sample misjudges.
_FEWEST_CANDIDATES = 8
_GROWTH_OF_SEEDS = 4
_SHARE_LEFT = 0.25
_FEWEST_AT_ONCE = 8
# Below these, distances cost little, or the projection more than it saves.
_FEWEST_PROJECTED_FEATURES, _FEWEST_PROJECTED_SEEDS = 512, 64
# Each feature is added to or taken from one of the values in each block, so that rows of few
# features that differ keep different values.
_PROJECTED_BLOCKS, _VALUES_PER_BLOCK = 8, 24
_FEWEST_PROJECTED_CANDIDATES = 16
_ELEMENTS_AT_ONCE = 2**20
# Beyond these, squared distances times weights might leave the range of float64.
_LEAST_MASS, _LARGEST_MASS = 1e-200, 1e200


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
    order, key = order_by_place(rows, rng)
    n_sampled = max(_SAMPLED_FOR_EACH_SEED * n_centers, _LEAST_SAMPLED)
    is_greedy = n_candidates > 1 and exponent == 2 and rows.samples_seeds
    is_sampled = is_greedy and _n_places(key[rows.sample_weight(order) > 0]) >= 2 * n_sampled
    is_projected = is_greedy and not is_sampled and _is_projected(rows, n_centers)
    n_tried = n_candidates
    if is_sampled:
        n_tried = max(n_candidates, _FEWEST_CANDIDATES)
    elif is_projected:
        n_tried = max(2 * n_candidates, _FEWEST_PROJECTED_CANDIDATES)
    first, others = rng.uniform(), rng.uniform(size=(n_centers - 1, n_tried))
    if is_sampled:
        chosen = _seeds_by_samples(rows, order, first, others, n_sampled, end)
    elif is_projected:
        chosen = _seeds_by_projection(rows, order, rng, first, others, end)
    else:
        left = end - time.monotonic()
        chosen = rows.greedy_seeds(order, first, others, exponent, seconds=left)
    if len(chosen) < n_centers:
        chosen = _completed(rows, order, chosen, n_centers)
    return rows.take(chosen), chosen


def _n_places(sorted_key: FloatArray) -> int:
    return int(np.count_nonzero(np.diff(sorted_key, prepend=-1.0)))


def _seeds_by_samples(
    rows: Rows, order: IndexArray, first: float, others: FloatArray, n_sampled: int, end: float
) -> IndexArray:
    """Choose seeds by greedy k-means++, comparing candidates over samples, until the end."""
    weights = rows.sample_weight(order)
    chosen = order[draw_indices(weights, np.array([first]))]
    while len(left := others[len(chosen) - 1 :]) and (seconds := end - time.monotonic()) > 0:
        nearest = rows.nearness(rows.take(chosen)).sq_dist(order)
        mass = weights * nearest
        if len(chosen) == 1 and not _LEAST_MASS < np.max(mass) < _LARGEST_MASS:
            return rows.greedy_seeds(order, first, others, seconds=seconds)
        if not np.any(mass):  # every point is at a seed
            break
        sample = draw_indices(mass, _even_steps(n_sampled))
        numbers = left[: max((_GROWTH_OF_SEEDS - 1) * len(chosen), _FEWEST_AT_ONCE)]
        found = rows.further_seeds(
            order[sample], nearest[sample], numbers, _SHARE_LEFT, seconds=seconds
        )
        chosen = np.append(chosen, found)
    return chosen


def _is_projected(rows: Rows, n_seeds: int) -> bool:
    return rows.n_features >= _FEWEST_PROJECTED_FEATURES and n_seeds >= _FEWEST_PROJECTED_SEEDS


def _seeds_by_projection(
    rows: Rows,
    order: IndexArray,
    rng: np.random.RandomState,
    first: float,
    others: FloatArray,
    end: float,
) -> IndexArray:
    """Choose seeds by greedy k-means++ among projected points, until the end."""
    weights = rows.sample_weight(order)
    drawn = draw_indices(weights, np.array([first]))[0]
    projected = _projected(rows, order, rng)
    # Points near each other keep their digits, wherever the origin is.
    projected -= projected[drawn].copy()
    largest = float(np.max(np.abs(projected)))
    if not math.isfinite(largest):
        return rows.greedy_seeds(order, first, others, seconds=end - time.monotonic())
    projected *= 2.0 ** -math.frexp(largest)[1]
    few = rows.rows_of(projected.astype(rows.dtype, copy=False), weights)
    seconds = end - time.monotonic()
    return order[few.greedy_seeds(np.arange(len(order)), first, others, seconds=seconds)]


def _projected(rows: Rows, order: IndexArray, rng: np.random.RandomState) -> FloatArray:
    """Return signed sums of random features, whose squared distances are right in the mean.

    Sums run along the features in order, so that equal points have equal sums, dense or sparse.
    """
    shape = rows.n_features, _PROJECTED_BLOCKS
    values = rng.randint(_VALUES_PER_BLOCK, size=shape)
    values += _VALUES_PER_BLOCK * np.arange(_PROJECTED_BLOCKS)
    signs = 2.0 * rng.randint(2, size=shape) - 1.0
    features = np.repeat(np.arange(rows.n_features), _PROJECTED_BLOCKS)
    n_values = _VALUES_PER_BLOCK * _PROJECTED_BLOCKS
    matrix = sparse.csr_array(
        (signs.ravel(), (values.ravel(), features)), shape=(n_values, rows.n_features)
    )
    projected = np.empty((len(order), n_values))
    n_at_once = max(1, _ELEMENTS_AT_ONCE // rows.n_features)
    for start in range(0, len(order), n_at_once):
        block = slice(start, start + n_at_once)
        points = rows.sample(order[block]).astype(np.float64)
        sums = matrix @ points.T
        projected[block] = (sums.toarray() if sparse.issparse(sums) else sums).T
    return projected


def _completed(rows: Rows, order: IndexArray, chosen: IndexArray, n_seeds: int) -> IndexArray:
    """Add points at even steps along their mean share of weight and inertia.

    Shares of the inertia alone would leave the middle of the points without a seed.
    """
    nearest = rows.nearness(rows.take(chosen)).sq_dist(order)
    mass = weights = rows.sample_weight(order)
    inertia = float(weights @ nearest)
    if 0 < inertia < math.inf:
        away = np.where(nearest > 0, weights, 0.0)
        mass = away / away.sum() + weights * nearest / inertia
    drawn = draw_indices(mass, _even_steps(n_seeds - len(chosen)))
    return np.append(chosen, order[drawn])


def _even_steps(n_steps: int) -> FloatArray:
    return (np.arange(n_steps) + 0.5) / n_steps


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
