"""Subsets that resemble all points, so that the sum of their bounds loses little."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from powermeans.types import FloatArray, IndexArray, Labels, Points, SparsePoints

# Residuals in more dimensions than this are balanced along random directions.
_MOST_DIRECTIONS = 32


def residuals_in_blocks(
    points: Points | SparsePoints, centers: FloatArray, labels: Labels
) -> Iterator[tuple[slice, FloatArray]]:
    """Yield what remains of some points at a time without the center of their label, in float64."""
    n_at_once = max(1, 2**18 // max(16, points.shape[1]))
    for start in range(0, points.shape[0], n_at_once):
        rows = slice(start, start + n_at_once)
        block = points[rows]
        dense = block.toarray() if sparse.issparse(block) else block
        yield rows, dense.astype(np.float64, copy=False) - centers[labels[rows]]


def deal(
    residuals: FloatArray,  # (n_points, n_directions), weighted
    sq_dist: FloatArray,  # to the center, (n_points,)
    labels: Labels,
    n_subsets: int,
    rng: np.random.Generator,
) -> list[IndexArray]:
    """Return the points of each subset, each of which has its share of every cluster.

    Points are dealt out from the farthest to the nearest, one to each subset in a round, so that
    the sum of the residuals of each subset and cluster stays near zero. Then the mean of the
    cluster in the subset is near its center, which is what the bound of a subset would lose.
    """
    # The work to balance subsets against each other grows with the square of their number.
    n_groups = -(-n_subsets // 64)
    group_of = np.empty(len(labels), dtype=np.intp)
    subset_of = np.empty(len(labels), dtype=np.intp)
    firsts = np.linspace(0, n_subsets, n_groups + 1).astype(np.intp)
    by_cluster = np.lexsort((-sq_dist, labels))
    # In proportion to the number of subsets in each group.
    places = np.repeat(np.arange(n_groups), np.diff(firsts))
    for members in np.split(by_cluster, np.flatnonzero(np.diff(labels[by_cluster])) + 1):
        turns = np.concatenate(
            [rng.permutation(places) for _ in range(-(-len(members) // n_subsets))]
        )
        group_of[members] = turns[: len(members)]
        for group in range(n_groups):
            mine = members[group_of[members] == group]
            n_here = int(firsts[group + 1] - firsts[group])
            subset_of[mine] = firsts[group] + _dealt(residuals[mine], n_here, rng)
    order = np.argsort(subset_of, kind="stable")
    return np.split(order, np.searchsorted(subset_of[order], np.arange(1, n_subsets)))


def _dealt(residuals: FloatArray, n_subsets: int, rng: np.random.Generator) -> IndexArray:
    """Return the subset of each point of one cluster, given from the farthest to the nearest."""
    sums = np.zeros((n_subsets, residuals.shape[1]))
    found = np.empty(len(residuals), dtype=np.intp)
    for start in range(0, len(residuals), n_subsets):
        block = residuals[start : start + n_subsets]
        # |sum + x|^2 less what does not depend on who gets x.
        costs = 2 * block @ sums.T + np.square(block).sum(axis=1)[:, None]
        if start == 0:
            costs = rng.random(costs.shape)
        _, chosen = linear_sum_assignment(costs)
        sums[chosen] += block
        found[start : start + n_subsets] = chosen
    return found


def directions(n_features: int, rng: np.random.Generator) -> FloatArray | None:
    """Return directions to balance residuals along; None for those of the features."""
    if n_features <= _MOST_DIRECTIONS:
        return None
    found: FloatArray = rng.standard_normal((n_features, _MOST_DIRECTIONS))
    return found


def highest_mean(shares: FloatArray, n_all: int, confidence: float) -> float:
    """Return what the mean of n_all numbers in [0, 1] is at most, at a confidence.

    The shares were drawn without replacement, in this order. If the mean were m, a gambler who bets
    on small shares would not multiply the capital by 1 / (1 - confidence) but with that
    probability, whenever the draws stop (Waudby-Smith & Ramdas 2024, section 5).
    """
    bets = _bets(shares, confidence)
    seen = np.concatenate([[0.0], np.cumsum(shares)[:-1]])
    left = n_all - np.arange(len(shares))

    def is_refuted(mean: float) -> bool:
        gains = 1 + bets * ((n_all * mean - seen) / left - shares)
        with np.errstate(divide="ignore", invalid="ignore"):
            # A capital that is lost once stays lost.
            capital = np.cumsum(np.where(np.minimum.accumulate(gains) > 0, np.log(gains), -np.inf))
        return bool(capital.max(initial=-np.inf) >= -np.log1p(-confidence))

    # What is seen already is certain, and the rest is at most 1 each.
    low, high = 0.0, min(1.0, float(shares.sum() + n_all - len(shares)) / n_all)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if is_refuted(middle) else (middle, high)
    return high


def _bets(shares: FloatArray, confidence: float) -> FloatArray:
    """Return the bet on each draw, from the draws before it."""
    n_before = np.arange(len(shares))
    sums = np.concatenate([[0.0], np.cumsum(shares)[:-1]])
    means = (0.5 + sums) / (n_before + 1)
    squares = np.concatenate([[0.0], np.cumsum(np.square(shares - means))[:-1]])
    variances = (0.25 + squares) / (n_before + 1)
    growth = -2 * np.log1p(-confidence) / (variances * (n_before + 1) * np.log(n_before + 2))
    # Above 1 a share of 1 could cost more than the whole capital.
    bets: FloatArray = np.minimum(np.sqrt(growth), 1.0)
    return bets
