"""Rules for the number of clusters from the literature, to compare `choose_k` with."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from powermeans.choosing_k.centers_by_k import EFFORTS_FOR_EACH_K, centers_by_k
from powermeans.engine.search.state import Solution
from powermeans.points.opening import open_rows

Array = NDArray[np.float64]

# Tibshirani & Walther take clusters whose pairs of points are predicted as often as this.
_PREDICTED = 0.8


def gap(points: Array, sizes: Sequence[int], rng: Generator, n_references: int = 10) -> int | None:
    """Return the first k whose gap the next one does not exceed by more than its error.

    Tibshirani, Walther & Hastie (2001), with reference sets from a box along the principal axes. It
    returns None if the gap rises to the end of the range.
    """
    centered = points - points.mean(axis=0)
    along = centered @ np.linalg.svd(centered, full_matrices=False)[2].T
    box = along.min(axis=0), along.max(axis=0)
    references = np.log(
        [_inertias(rng.uniform(*box, along.shape), sizes) for _ in range(n_references)]
    )
    gaps = references.mean(axis=0) - np.log(_inertias(points, sizes))
    errors = references.std(axis=0) * math.sqrt(1 + 1 / n_references)
    is_first = gaps[:-1] >= gaps[1:] - errors[1:]
    return sizes[int(np.argmax(is_first))] if is_first.any() else None


def prediction_strength(
    points: Array, sizes: Sequence[int], rng: Generator, n_splits: int = 5
) -> int:
    """Return the largest k whose clusters one half of the points predicts in the other half.

    Tibshirani & Walther (2005): the strength is the share of the pairs of points of a cluster that
    the centers of the other half leave together, in the worst cluster.
    """
    strengths = np.ones((n_splits, len(sizes)))
    for of_split in strengths:
        order = rng.permutation(len(points))
        halves = points[order[::2]], points[order[1::2]]
        one, other = (_solutions(half, sizes) for half in halves)
        rows = open_rows(halves[1])
        for place, k in enumerate(sizes):
            own, predicted = (found[k].labels(rows) for found in (other, one))
            of_split[place] = _strength(own, predicted, k)
    errors = strengths.std(axis=0, ddof=1) / math.sqrt(n_splits)
    are_predicted = np.flatnonzero(strengths.mean(axis=0) + errors >= _PREDICTED)
    return sizes[int(are_predicted[-1])] if len(are_predicted) else 1


def _strength(own: NDArray[np.int32], predicted: NDArray[np.int32], k: int) -> float:
    """Return the least share of the pairs of a cluster that are together in the other labels."""
    table = np.bincount(own * k + predicted, minlength=k * k).reshape(k, k).astype(np.float64)
    pairs = table.sum(axis=1) * (table.sum(axis=1) - 1)
    together = (table * (table - 1)).sum(axis=1)
    return float(np.min(np.divide(together, pairs, out=np.ones(k), where=pairs > 0)))


def _inertias(points: Array, sizes: Sequence[int]) -> Array:
    found = _solutions(points, sizes)
    return np.minimum.accumulate([found[k].inertia for k in sizes])


def _solutions(points: Array, sizes: Sequence[int]) -> dict[int, Solution]:
    """Return what `choose_k` evaluates, without its evaluation."""
    rng = np.random.RandomState(0)
    *_, found = centers_by_k(open_rows(points), sizes, EFFORTS_FOR_EACH_K["fast"], rng)
    return found
