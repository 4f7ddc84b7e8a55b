"""Points whose distance to a center is affine: height + lift - <x, slope>.

The height belongs to the point x, lift and slope to the center. A distance that needs a second
number beside each value is affine in pairs.
"""

import abc
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from powermeans.divergences.chunks import dense_chunks
from powermeans.mathematics.critical_power import critical_power
from powermeans.points.by_definition import PricedByDefinition
from powermeans.points.compiled import CompiledPoints, CompiledPrices
from powermeans.types import FloatArray, IndexArray, Labels, Matrix

_ELEMENTS_AT_ONCE = 2**18
_POINTS_FOR_MEDIAN = 255
# Labels are by the definition where rounding may exceed this share of a distance.
_LEAST_DIGITS = 1e-9
_EPSILON = float(np.finfo(np.float64).eps)
# The error that cancellation leaves in a distance, in units of the precision of the points.
_ROUNDING_UNITS = 64


class AffinePoints(CompiledPoints):
    """Derive distances and labels from `planes` and the heights, which a subclass sets."""

    _heights: FloatArray

    @abc.abstractmethod
    def planes(self, centers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return slopes, (n_centers, n_values), and lifts for points less the compiled origin."""

    @abc.abstractmethod
    def _tangent_place(self) -> FloatArray:
        """Return the place where all lifts would be zero as the origin, (n_values,)."""

    @abc.abstractmethod
    def _distances_between(self, rows: slice | IndexArray, centers: FloatArray) -> FloatArray:
        """Return the distance of each of these points to its own center, by the definition."""

    @property
    def priced(self) -> PricedByDefinition:
        return CompiledPrices(self, self._distances_of)

    def _most_cancelled(self) -> float:
        """Return how many times the terms of heights and slopes may exceed what is left of them."""
        return 1.0

    def _use_heights(self, heights: FloatArray) -> None:
        self._heights = heights
        self.native.use_heights(heights)

    def _distances_to_own(self, labels: Labels, centers: FloatArray) -> FloatArray:
        """Return the distance of each point to the center of its label, by the definition."""
        distances, n_at_once = np.empty(self.n_points), max(1, _ELEMENTS_AT_ONCE // self.n_features)
        for start in range(0, self.n_points, n_at_once):
            rows = slice(start, min(start + n_at_once, self.n_points))
            distances[rows] = self._distances_between(rows, centers[labels[rows]])
        return distances

    def _pairs(self, wanted: NDArray[np.bool_]) -> Iterable[tuple[IndexArray, IndexArray]]:
        """Yield points and centers between which a distance is wanted, some pairs at a time."""
        places, centers = np.nonzero(wanted)
        n_at_once = max(1, _ELEMENTS_AT_ONCE // self.n_features)
        for start in range(0, len(places), n_at_once):
            some = slice(start, start + n_at_once)
            yield places[some], centers[some]

    def as_compiled(self, centers: FloatArray) -> FloatArray:
        """Return the slopes, and the lifts in a last column."""
        slopes, lifts = self.planes(centers)
        return np.ascontiguousarray(np.column_stack([slopes, lifts]))

    def assign(self, centers: FloatArray) -> tuple[Labels, float]:
        """Label by products, and where they cancel by the definition; so adds up the inertia.

        So a label does not depend on the origin, which other points of the rows choose.
        """
        planes, labels = self.as_compiled(centers), np.empty(self.n_points, dtype=np.int32)
        margins = np.empty(self.n_points)
        self.native.assign(planes, labels, margins)
        distances = self._distances_to_own(labels, centers)
        with np.errstate(over="ignore", invalid="ignore"):
            rounding = _RoundingOfPlanes(self, planes)
            for rows in rounding.doubtful(distances, margins):
                may_be_nearer = rounding.may_be_nearer(rows, distances[rows])
                may_be_nearer[np.arange(len(rows)), labels[rows]] = False
                for places, others in self._pairs(may_be_nearer):
                    some = rows[places]
                    found = self._distances_between(some, centers[others])
                    nearest = np.lexsort((others, found, places))
                    nearest = nearest[np.diff(places[nearest], prepend=-1) > 0]
                    some, others, found = some[nearest], others[nearest], found[nearest]
                    is_tied = (found == distances[some]) & (others < labels[some])
                    is_nearer = (found < distances[some]) | is_tied
                    labels[some[is_nearer]] = others[is_nearer]
                    distances[some[is_nearer]] = found[is_nearer]
        counts = 1.0 if self._weights is None else self._weights
        return labels, float(np.sum(counts * distances)) * self._weight_unit

    def sq_distances(self, centers: FloatArray) -> Matrix:
        """Return all distances by products, and where they cancel by the definition."""
        distances = super().sq_distances(centers)
        with np.errstate(over="ignore", invalid="ignore"):
            rounding = _RoundingOfPlanes(self, self.as_compiled(centers))
            for rows, lacks_digits in rounding.lacking_digits(distances):
                for places, others in self._pairs(lacks_digits):
                    some = rows[places]
                    distances[some, others] = self._distances_between(some, centers[others])
        return distances

    def rounding(self) -> float:
        return rounding_of_products(self.dtype)


class _RoundingOfPlanes:
    """Bound what products, which cancel, may be off; the definition gives the other digits."""

    def __init__(self, rows: AffinePoints, planes: FloatArray) -> None:
        self._points, self._heights = rows._points, rows._heights
        self._origin = rows.native.origin()
        self._slopes, self._lifts = planes[:, :-1], planes[:, -1]
        self._steepness = np.abs(self._slopes)
        reach = np.abs(rows._tangent_place() - self._origin)
        self._sizes = np.abs(self._lifts) + self._steepness @ reach
        digits = np.finfo(rows._native_dtype)
        n_terms = (planes.shape[1] + 8) * rows._most_cancelled()
        self._unit = _EPSILON * n_terms
        # Points may be rounded too: to the origin and the unit in which they are held.
        self._rounding = 2 * n_terms * float(digits.eps)
        # Products are in a unit in which none exceeds one, so that far smaller ones vanish.
        extent = max(self._points.max(), -self._points.min()) + np.abs(self._origin).max()
        largest = max(self._heights.max(), np.abs(planes).sum(axis=1).max() * max(extent, 1.0))
        self._sizes += largest * float(digits.tiny)
        n_values = len(planes) if sparse.issparse(self._points) else max(planes.shape)
        self._n_at_once = max(1, _ELEMENTS_AT_ONCE // n_values)

    def doubtful(self, distances: FloatArray, margins: FloatArray) -> Iterable[IndexArray]:
        """Yield points, some at a time, that may be nearer to a center than to their own.

        Their distance may lack digits, or another may be larger by no more than rounding.
        """
        found = np.empty(len(distances), dtype=bool)
        for rows, sizes in self._largest_terms():
            found[rows] = ~(self._unit * sizes <= _LEAST_DIGITS * distances[rows])
            found[rows] &= distances[rows] > 0  # nothing is nearer, but others may be as near
            found[rows] |= ~(margins[rows] > self._rounding * sizes)
        doubtful = np.flatnonzero(found)
        for start in range(0, len(doubtful), self._n_at_once):
            yield doubtful[start : start + self._n_at_once]

    def lacking_digits(self, distances: Matrix) -> Iterable[tuple[IndexArray, NDArray[np.bool_]]]:
        """Yield points, some at a time, and from which centers their distance lacks digits."""
        enough = math.sqrt(np.finfo(distances.dtype).eps) / 16
        for rows, sizes in self._largest_terms():
            lacks_digits = ~(self._rounding * sizes[:, None] <= enough * distances[rows])
            yield np.arange(rows.start, rows.start + len(sizes)), lacks_digits

    def _largest_terms(self) -> Iterable[tuple[slice, FloatArray]]:
        """Yield points, some at a time, with what the terms of their distances do not exceed."""
        steepness, size = self._steepness.max(axis=0), self._sizes.max()
        for start in range(0, len(self._heights), self._n_at_once):
            rows = slice(start, start + self._n_at_once)
            yield rows, self._heights[rows] + np.abs(self._deviations(rows)) @ steepness + size

    def may_be_nearer(self, rows: IndexArray, distances: FloatArray) -> NDArray[np.bool_]:
        """Return for each of these points which centers may be nearer than this, (n, n_centers)."""
        deviations, heights = self._deviations(rows), self._heights[rows, None]
        sizes = heights + self._sizes + np.abs(deviations) @ self._steepness.T
        least = heights + self._lifts - deviations @ self._slopes.T - self._rounding * sizes
        return np.asarray(~(least >= distances[:, None]))

    def _deviations(self, rows: slice | IndexArray) -> Any:
        points = self._points[rows]
        return points if sparse.issparse(points) else points - self._origin


class PairedPoints(AffinePoints):
    """Hold values less `_shift`, in a unit, and one more number beside each.

    The unit is a power of two, so that it changes no digit. Without it, the values or the numbers
    beside them would leave the range in which both are summed.
    """

    _given: Matrix
    _shift: FloatArray
    _unit: float | FloatArray
    _has_column_moments = False  # the columns hold pairs

    def __init__(
        self, pairs: FloatArray, sample_weight: FloatArray | None = None, **options: Any
    ) -> None:
        super().__init__(pairs, sample_weight, **options)
        self.n_features = self.n_columns = pairs.shape[1] // 2

    def sq_distances(self, centers: FloatArray) -> Matrix:
        """Return all distances from differences of the values as given, which cancel nothing."""
        distances: Matrix = np.empty((self.n_points, len(centers)), dtype=self.dtype)
        for rows, pairs in dense_chunks(self._points, elements_per_point=centers.size):
            values = self._given[rows].astype(np.float64)
            differences = (values[:, None, :] - centers) / self._unit
            differences[np.isnan(differences)] = 0.0
            distances[rows] = self._from_differences(differences, pairs[:, self.n_features :])
        return distances

    def _distances_in_chunks(self, centers: FloatArray) -> Iterable[tuple[slice, FloatArray]]:
        yield slice(0, self.n_points), self.sq_distances(centers).astype(np.float64)

    def _distances_of(self, indices: IndexArray, centers: FloatArray) -> FloatArray:
        pairs = np.asarray(self._points[indices], dtype=np.float64)
        values, beside = np.hsplit(pairs, 2)
        shifted = self._in_unit(centers)
        distances = np.empty((len(indices), len(centers)))
        for j, center in enumerate(shifted):
            distances[:, j] = self._from_differences(values[:, None, :] - center, beside)[:, 0]
        return distances

    @abc.abstractmethod
    def _from_differences(self, differences: FloatArray, beside: FloatArray) -> FloatArray:
        """Return distances from differences in the unit, (n_points, n_centers, n_features)."""

    def _in_unit(self, places: FloatArray) -> FloatArray:
        return np.asarray((places - self._shift) / self._unit)

    def critical_power(self) -> float:
        return critical_power(self._points[:, : self.n_features], self._weights)

    def take(self, indices: IndexArray) -> FloatArray:
        return np.ascontiguousarray(self._given[indices], dtype=np.float64)

    def _middle(self) -> FloatArray:
        return self._shift

    def _tangent_place(self) -> FloatArray:
        return np.zeros(2 * self.n_features)


def medians_of_some(points: Matrix, sample_weight: FloatArray | None = None) -> FloatArray:
    """Return the median of some entries of each column, NaN where none of them is observed.

    Unlike the mean, it stays with most of the weight however far away a few points are.
    """
    has_none = sample_weight is None or not sample_weight.any()
    weights = np.ones(len(points)) if has_none else np.asarray(sample_weight)
    up_to, n_chosen = np.cumsum(weights), min(int(np.count_nonzero(weights)), _POINTS_FOR_MEDIAN)
    places = (np.arange(n_chosen) + 0.5) / n_chosen * up_to[-1]
    chosen = np.searchsorted(up_to, places, side="right")
    some = np.sort(points[chosen], axis=0)  # NaN come last
    middle = np.count_nonzero(~np.isnan(some), axis=0) // 2
    return np.asarray(np.take_along_axis(some, middle[None], axis=0)[0], dtype=np.float64)


def largest_from(shift: FloatArray, points: Matrix) -> FloatArray:
    """Return how far the farthest observed entry of each column is from the shift."""
    ends = np.stack([np.fmin.reduce(points, axis=0), np.fmax.reduce(points, axis=0)])
    return np.asarray(np.fmax.reduce(np.abs(ends.astype(np.float64) - shift), axis=0))


def power_of_two_above(sizes: float | FloatArray) -> FloatArray:
    """Return the least power of two above each size, and one for zero.

    >>> power_of_two_above(np.array([0.0, 0.7, 1.0, 5e-324])).tolist()
    [1.0, 1.0, 2.0, 1e-323]
    """
    return np.asarray(np.where(np.equal(sizes, 0), 1.0, np.ldexp(1.0, np.frexp(sizes)[1])))


def rounding_of_products(dtype: np.dtype[np.floating]) -> float:
    """Return `Points.rounding` of products, whose error grows with the distance from the mean."""
    return _ROUNDING_UNITS * float(np.finfo(dtype).eps)
