"""The assignment of least cost whose clusters have wished sizes: a transport problem."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from powermeans.rows.native import transport
from powermeans.rows.protocol import PricedLabels, Rows
from powermeans.size_limits import SizeLimits
from powermeans.types import FloatArray, IndexArray, Labels

# All points are listed with all centers where that makes no more pairs; else points near borders,
# with the nearest centers.
_MOST_PAIRS = 2**16
_CENTERS_FOR_EACH = 16
_DISTANCES_AT_ONCE = 2**20
# So many times the points that have to move are listed, and more where they do not suffice.
_LISTED_FOR_EACH_MISSED, _GROWTH = 8, 4
_LEAST_SHARE_LISTED = 16
_MOST_ROUNDS = 10
# Prices that miss the sizes by more than this share of all weight are forgotten.
_MISSED_BY_USEFUL_PRICES = 0.1


@dataclass(frozen=True, slots=True)
class Assigned:
    """An assignment of all points, and what led to it."""

    labels: Labels
    sizes: FloatArray  # weight of each cluster
    prices: FloatArray
    inertia: float  # weighted sum of distances to the own centers
    missed: float  # by how much weight the sizes miss the limits
    by_prices: Labels  # the centers of least distance and price, at the prices that it began with


@dataclass(frozen=True, slots=True)
class _Lists:
    """Points near borders, with the centers that each may go to."""

    points: IndexArray
    starts: NDArray[np.int64]
    centers: Labels
    distances: FloatArray
    reach: float  # no center that is left out costs less than this more than the own one


def assign_within(
    rows: Rows,
    centers: FloatArray,
    prices: FloatArray,
    limits: SizeLimits,
) -> Assigned:
    """Return the assignment of least cost to these centers, beginning with these prices.

    Points far from all borders stay where the prices have them. If the prices then change so much
    that one of them could move, it begins again with the new prices.
    """
    counts = rows.sample_weight(np.arange(rows.n_points))
    n_listed = max(1, _MOST_PAIRS // len(centers), rows.n_points // _LEAST_SHARE_LISTED)
    n_each = _CENTERS_FOR_EACH
    first: PricedLabels | None = None
    for last_round in range(_MOST_ROUNDS, 0, -1):
        priced = rows.assign_priced(centers, prices)
        first = first or priced
        if last_round == _MOST_ROUNDS and _are_of_no_use(priced, counts, prices, limits):
            prices = np.zeros(len(centers))
            priced = rows.assign_priced(centers, prices)
        sizes = np.bincount(priced.labels, counts, len(centers)).astype(np.float64)
        far = np.abs(sizes - limits.wanted(prices, sizes)).sum() / limits.total
        n_needed = _LISTED_FOR_EACH_MISSED * far * rows.n_points
        n_listed = min(rows.n_points, max(n_listed, int(n_needed)))
        lists = _listed(rows, priced, counts, centers, prices, n_listed, n_each)
        found = _transported(priced, counts, lists, sizes, prices, limits)
        changes = found.prices - prices
        is_sure = lists.reach == np.inf or np.ptp(np.append(changes, 0.0)) <= lists.reach
        if last_round == 1 or (is_sure and (found.missed == 0 or n_listed == rows.n_points)):
            break
        if found.missed > 0:
            # More points first, which cost less than longer lists of all.
            n_each *= 1 if n_listed < rows.n_points else _GROWTH
            n_listed = min(rows.n_points, _GROWTH * n_listed)
        prices = found.prices
    assert first is not None, "there was a round"
    return replace(found, by_prices=first.labels)


def _are_of_no_use(
    priced: PricedLabels, counts: FloatArray, prices: FloatArray, limits: SizeLimits
) -> bool:
    """Return whether prices are so wrong, for centers that moved far, that none are better.

    Without prices most clusters may grow, so that all paths are short.
    """
    sizes = np.bincount(priced.labels, counts, len(prices)).astype(np.float64)
    is_far = limits.far_from_wish(prices, sizes) > _MISSED_BY_USEFUL_PRICES * limits.total
    return is_far and bool(np.any(prices))


def _listed(
    rows: Rows,
    priced: PricedLabels,
    counts: FloatArray,
    centers: FloatArray,
    prices: FloatArray,
    n_listed: int,
    n_each: int,
) -> _Lists:
    """List the points of least margin, with the centers within the largest of these margins."""
    reach = np.inf
    if n_listed < len(priced.labels):
        reach = float(np.partition(priced.margins, n_listed)[n_listed])
    points = np.flatnonzero((priced.margins <= reach) & (counts > 0))
    if len(points) * len(centers) <= _MOST_PAIRS:
        n_each = len(centers)
    n_at_once = max(1, _DISTANCES_AT_ONCE // len(centers))
    lengths, listed, distances, reach_of_each = [], [], [], np.inf
    for start in range(0, len(points), n_at_once):
        some = points[start : start + n_at_once]
        found = rows.distances_of(some, centers)
        costs = found + prices
        own = priced.labels[some]
        costs -= costs[np.arange(len(some)), own][:, None]
        is_near = costs <= reach
        if n_each < len(centers):
            crowded = np.flatnonzero(is_near.sum(axis=1) > n_each)
            farthest = np.partition(costs[crowded], n_each, axis=1)[:, n_each, None]
            is_near[crowded] &= costs[crowded] < farthest
            reach_of_each = min(reach_of_each, float(farthest.min(initial=np.inf)))
        is_near[np.arange(len(some)), own] = True
        lengths.append(is_near.sum(axis=1))
        listed.append(np.nonzero(is_near)[1].astype(np.int32))
        distances.append(found[is_near])
    starts = np.concatenate([[0], *lengths]).cumsum().astype(np.int64)
    none = np.empty(0)
    return _Lists(
        points,
        starts,
        np.concatenate([none.astype(np.int32), *listed]),
        np.concatenate([none, *distances]).astype(np.float64),
        min(reach, reach_of_each),
    )


def _transported(
    priced: PricedLabels,
    counts: FloatArray,
    lists: _Lists,
    sizes: FloatArray,
    prices: FloatArray,
    limits: SizeLimits,
) -> Assigned:
    """Move listed points at least cost until the sizes are as wished."""
    of_points = counts[lists.points]
    is_counted = bool(np.all((counts == 1) | (counts == 0)))
    least, most = limits.of_counts() if is_counted else (limits.least, limits.most)
    former = priced.labels[lists.points]
    labels, new_sizes, new_prices = former.copy(), sizes.copy(), prices.copy()
    inertia = priced.objective - float(prices @ sizes)
    missed = transport(
        lists.starts,
        lists.centers,
        lists.distances,
        None if is_counted else of_points,
        np.full(len(sizes), float(least)),
        np.full(len(sizes), float(most)),
        limits.mean,
        limits.curvature,
        labels,
        new_sizes,
        new_prices,
    )
    is_moved = labels != former
    extra = _own_distances(lists, labels) - _own_distances(lists, former)
    inertia += float(of_points[is_moved] @ extra[is_moved])
    all_labels = priced.labels.copy()
    all_labels[lists.points] = labels
    return Assigned(all_labels, new_sizes, new_prices, inertia, missed, priced.labels)


def _own_distances(lists: _Lists, labels: Labels) -> FloatArray:
    """Return the distance of each listed point to the center of its label."""
    is_own = lists.centers == np.repeat(labels, np.diff(lists.starts))
    distances: FloatArray = lists.distances[is_own]
    return distances
