"""Sums over points: those of a sweep, errors and utilities, moments of columns.

The sums of parts add up to the sums of all points.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar

import numpy as np
from scipy import sparse

from powermeans.system.saved_classes import saved
from powermeans.types import FloatArray, Labels

Recorded = TypeVar("Recorded")

RECORDED: dict[str, type[Any]] = {}
"""What parts of the points may return, by the name of the class."""

# Some digits above the least normal number, 2.2e-308.
_LEAST_SHARE = 1e-290
# Weights that differ by no more than this share are the same.
_ROUNDING_OF_WEIGHTS = 1e-12
# Points that are taken at a time to mend sums.
_POINTS_AT_ONCE = 2**14
# Above this share of the largest, a weight is safe however small the points are.
_SAFE_SHARE = 1e-10


def recorded(kind: type[Recorded]) -> type[Recorded]:
    """Let a checkpoint hold values of a dataclass (a decorator)."""
    known = RECORDED.setdefault(kind.__name__, kind)
    assert known.__module__ == kind.__module__, f"{known} and {kind} have one name"
    RECORDED[kind.__name__] = kind
    return kind


@saved
@recorded
@dataclass(frozen=True, slots=True)
class Sums:
    """Add up a sweep over points x_i of sample weight c_i, at distances y_ij, with weights w_ij."""

    _state = """points: finite[k,d] weights: weight[k] objective: number
        inertia: number n_skipped: number n_changed: count?"""

    points: FloatArray  # sum_i c_i w_ij x_i, (n_centers, n_features)
    weights: FloatArray  # sum_i c_i w_ij, (n_centers,)
    objective: float  # sum_i c_i M_s(y_i1, ..., y_ik)
    inertia: float  # sum_i c_i min_j y_ij
    n_skipped: float = 0.0  # distances that bounds showed not to matter
    # Points whose label is not that of the last hard sweep; None where nobody holds the labels, as
    # in soft sweeps and in sums of parts.
    n_changed: int | None = field(default=None, kw_only=True)

    def __add__(self, other: Self) -> Self:
        return type(self)(
            self.points + other.points,
            self.weights + other.weights,
            self.objective + other.objective,
            self.inertia + other.inertia,
            self.n_skipped + other.n_skipped,
        )

    def __mul__(self, unit: float) -> Self:
        """Multiply the weight of every point."""
        if unit == 1.0:
            return self
        # Not by `replace`, which takes half as long again.
        return type(self)(
            self.points * unit,
            self.weights * unit,
            self.objective * unit,
            self.inertia * unit,
            self.n_skipped,
            n_changed=self.n_changed,
        )

    def centers(self, fallback: FloatArray) -> FloatArray:
        """Return the weighted means; a center without weight keeps its row of `fallback`.

        A center whose weight is too small a share of the largest keeps it too: the digits of its
        sums are lost, and their quotient can lie anywhere.
        """
        weights = self.weights
        if np.minimum.reduce(weights) > _SAFE_SHARE * np.maximum.reduce(weights):
            return self.points / weights[:, None]
        weighed = weights > self._least_weight(fallback)
        safe_weights = np.where(weighed, weights, 1.0)[:, None]
        return np.where(weighed[:, None], self.points / safe_weights, fallback)

    def moved(self, former: int, cluster: int, point: FloatArray, weight: float) -> Self:
        """Move a point from its former cluster to an empty one."""
        points, weights = self.points.copy(), self.weights.copy()
        points[former] -= weight * point
        weights[former] -= weight
        if weights[former] <= _ROUNDING_OF_WEIGHTS * weight:
            # Only rounding is left, and its quotient can lie anywhere.
            points[former], weights[former] = 0.0, 0.0
        points[cluster] = weight * point
        weights[cluster] = weight
        return replace(self, points=points, weights=weights)

    def _least_weight(self, fallback: FloatArray) -> float:
        """Return the weight above which weights and products with points are normal numbers."""
        heaviest = int(np.argmax(self.weights))
        largest = float(self.weights[heaviest])
        if largest == 0:
            return 0.0
        # Products with coordinates below one are smaller than the weights themselves.
        size = max(np.abs(fallback).max(), np.abs(self.points[heaviest] / largest).max())
        return _LEAST_SHARE * largest / (size if 0 < size < 1 else 1.0)


@recorded
@dataclass(frozen=True, slots=True)
class Spread:
    """Add up, for each center, a hard sweep over the points nearest to it, (n_centers,) each.

    The utility is the rise of the inertia if the center went: the weighted sum of squared distances
    to the second nearest center less the squared distances to it.
    """

    error: FloatArray  # weighted sum of squared distances
    utility: FloatArray
    weights: FloatArray  # sum of the sample weights

    def __add__(self, other: Spread) -> Spread:
        return Spread(
            self.error + other.error, self.utility + other.utility, self.weights + other.weights
        )


def added(results: Iterable[Any]) -> Any:
    """Add up results, at least one, along a tree that depends only on their number.

    It adds neighbours, then sums of neighbours, and so on, as soon as both are there. So rounding
    does not depend on timing, and memory holds no more results than the tree is high.

    >>> class Shown(str):
    ...     def __add__(self, other):
    ...         return Shown(f"({self}{other})")
    >>> added(map(Shown, "abcdefg"))
    '(((ab)(cd))((ef)g))'
    """
    waiting: list[tuple[int, Any]] = []  # sums without a neighbour, and their heights
    for result in results:
        height = 0
        while waiting and waiting[-1][0] == height:
            result, height = waiting.pop()[1] + result, height + 1
        waiting.append((height, result))
    _, total = waiting.pop()
    while waiting:
        total = waiting.pop()[1] + total
    return total


@recorded
@dataclass(frozen=True, slots=True)
class ColumnMoments:
    """Moments of the entries of each column that are not missing, (n_features,) each."""

    counts: FloatArray  # of entries, or the sums of their weights
    means: FloatArray  # zero for a column without entries
    squares: FloatArray  # sums of squared deviations from the mean

    def __add__(self, other: ColumnMoments) -> ColumnMoments:
        """Merge moments by Chan, Golub & LeVeque (1979), without a difference of squares."""
        counts = self.counts + other.counts
        share = other.counts / np.where(counts > 0, counts, 1.0)
        apart = other.means - self.means
        return ColumnMoments(
            counts,
            self.means + share * apart,
            self.squares + other.squares + self.counts * share * np.square(apart),
        )


def relabelled(points: Any, sums: Sums, before: Labels, labels: Labels) -> Sums:
    """Return hard sums with each point at its label, where it was elsewhere before.

    Points of any kind are taken by their indices, with their weights.
    """
    moved = np.flatnonzero(labels != before)
    totals, weights = sums.points.copy(), sums.weights.copy()
    for start in range(0, len(moved), _POINTS_AT_ONCE):
        some = moved[start : start + _POINTS_AT_ONCE]
        counts, n = points.sample_weight(some), np.arange(len(some))
        shape = (len(weights), len(some))
        added = sparse.csr_array((counts, (labels[some], n)), shape=shape)
        taken = sparse.csr_array((counts, (before[some], n)), shape=shape)
        change = added - taken
        totals += np.asarray(change @ points.take(some))
        weights += np.asarray(change.sum(axis=1))
    return replace(sums, points=totals, weights=weights)


def mean_over_columns(values: float | FloatArray, n_columns: int) -> float:
    """Return the mean over all columns of values of the features; those left out add zero.

    A number is the value of every column.
    """
    return float(np.sum(values) / n_columns if np.ndim(values) else values)
