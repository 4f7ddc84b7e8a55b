"""What is added up over the points: sums of a sweep, errors and utilities, moments of columns.

Those of parts of the points add up to those of all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from powermeans.types import FloatArray

# Some digits above the least normal number, 2.2e-308.
_LEAST_SHARE = 1e-290
# Weights that are told apart by no more than this share are the same.
_ROUNDING_OF_WEIGHTS = 1e-12
# Above this share of the largest, a weight is safe however small the points are.
_SAFE_SHARE = 1e-10


@dataclass(frozen=True, slots=True)
class Sums:
    """Weighted points and weights of each center, and the objectives, from one sweep.

    Attributes
    ----------
    points : (n_centers, n_features)
        Sum over the points i of `sample_weight_i * w_ij * x_i`.
    weights : (n_centers,)
        Sum over the points of `sample_weight_i * w_ij`.
    objective : float
        Sum over the points of `sample_weight_i * M_s(y_i1, ..., y_ik)`, at the centers swept.
    inertia : float
        Sum over the points of `sample_weight_i * min_j y_ij`, at the centers swept.
    n_skipped : float
        How many distances between points and centers were known not to matter, and not computed.
    """

    points: FloatArray
    weights: FloatArray
    objective: float
    inertia: float
    n_skipped: float = 0.0

    def __add__(self, other: Self) -> Self:
        return type(self)(
            self.points + other.points,
            self.weights + other.weights,
            self.objective + other.objective,
            self.inertia + other.inertia,
            self.n_skipped + other.n_skipped,
        )

    def __mul__(self, unit: float) -> Self:
        """Weigh every point so much more."""
        if unit == 1.0:
            return self
        # Not by `replace`, which takes half as long again.
        return type(self)(
            self.points * unit,
            self.weights * unit,
            self.objective * unit,
            self.inertia * unit,
            self.n_skipped,
        )

    def centers(self, fallback: FloatArray) -> FloatArray:
        """Return the weighted means; a center that no point weighs keeps its row of `fallback`.

        So does one whose weight is too small a part of the largest to keep its digits: the quotient
        of two such sums can lie anywhere.
        """
        weights = self.weights
        if np.minimum.reduce(weights) > _SAFE_SHARE * np.maximum.reduce(weights):
            return self.points / weights[:, None]
        weighed = self.weights > self._least_weight(fallback)
        safe_weights = np.where(weighed, self.weights, 1.0)[:, None]
        return np.where(weighed[:, None], self.points / safe_weights, fallback)

    def moved(self, former: int, cluster: int, point: FloatArray, weight: float) -> Self:
        """Move a point from its former cluster to an empty one."""
        points, weights = self.points.copy(), self.weights.copy()
        points[former] -= weight * point
        weights[former] -= weight
        if weights[former] <= _ROUNDING_OF_WEIGHTS * weight:
            # Nothing but rounding is left, and the quotient of that lies anywhere.
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
        size = max(np.abs(fallback).max(), np.abs(self.points[heaviest] / largest).max())
        return _LEAST_SHARE * largest / (size if 0 < size < 1 else 1.0)


@dataclass(frozen=True, slots=True)
class Spread:
    """Where the error is, and which centers matter, from one hard sweep.

    Attributes
    ----------
    error : (n_centers,)
        Weighted sum of squared distances from a center to its points.
    utility : (n_centers,)
        By how much the inertia would rise without this center: the weighted sum over its points of
        squared distance to the second nearest center minus that to the nearest.
    weights : (n_centers,)
        Sum of the sample weights of its points.
    """

    error: FloatArray
    utility: FloatArray
    weights: FloatArray

    def __add__(self, other: Spread) -> Spread:
        return Spread(
            self.error + other.error, self.utility + other.utility, self.weights + other.weights
        )


def added(results: Iterable[Any]) -> Any:
    """Add up results, at least one, along a tree that depends only on their number.

    Neighbours are added, then the sums of neighbours, and so on; what has no neighbour waits. No
    more results are in memory at a time than the tree is high.

    >>> class Shown(str):
    ...     def __add__(self, other):
    ...         return Shown(f"({self}{other})")
    >>> added(map(Shown, "abcdefg"))
    '(((ab)(cd))((ef)g))'
    """
    waiting: list[tuple[int, Any]] = []
    for result in results:
        height = 0
        while waiting and waiting[-1][0] == height:
            result, height = waiting.pop()[1] + result, height + 1
        waiting.append((height, result))
    _, total = waiting.pop()
    while waiting:
        total = waiting.pop()[1] + total
    return total


@dataclass(frozen=True, slots=True)
class ColumnMoments:
    """Moments of each column.

    Attributes
    ----------
    counts : (n_features,)
        Number of the entries that are there, or the sum of their weights.
    means : (n_features,)
        Zero where no entry is there.
    squares : (n_features,)
        Sum of the squared deviations from the mean.
    """

    counts: FloatArray
    means: FloatArray
    squares: FloatArray

    def __add__(self, other: ColumnMoments) -> ColumnMoments:
        """Return those of both (Chan, Golub & LeVeque 1979), without a difference of squares."""
        counts = self.counts + other.counts
        share = other.counts / np.where(counts > 0, counts, 1.0)
        apart = other.means - self.means
        return ColumnMoments(
            counts,
            self.means + share * apart,
            self.squares + other.squares + self.counts * share * np.square(apart),
        )
