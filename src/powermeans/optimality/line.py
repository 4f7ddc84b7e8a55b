"""Points on a line, whose best clusters are runs of neighbors that dynamic programming finds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import column_or_1d
from sklearn.utils._param_validation import Interval, validate_parameter_constraints

from powermeans.errors import ArgumentError
from powermeans.points.compiled import divide_line
from powermeans.points.needs import FitNeeds, Needs
from powermeans.points.opening import open_points
from powermeans.types import FloatArray, IndexArray, Matrix

_MOST_VALUES = 2**24  # about 120 bytes each
SECONDS_FOR_EACH_VALUE = 1e-6
_ROUNDING_OF_SUMS = 2.0**-100  # of twice the digits of float64


@dataclass(frozen=True, slots=True)
class Line:
    """Distinct places on a line, in rising order."""

    values: FloatArray
    weights: FloatArray  # positive
    points: FloatArray  # the first point at each place

    def division(self, n_clusters: int) -> IndexArray:
        """Return where the best clusters begin, at most one for each place."""
        starts = np.empty(min(n_clusters, len(self.values)), dtype=np.int64)
        weights = np.maximum(_near_one(self.weights), np.finfo(np.float64).tiny)
        divide_line(_near_one(self.values), weights, starts)
        return starts

    def centers(self, starts: IndexArray) -> FloatArray:
        """Return the weighted means of the points of each cluster."""
        origins, means, _ = self._about_origins(starts)
        return origins + means

    def inertia(self, starts: IndexArray) -> float:
        """Return the inertia of the clusters that begin there."""
        _, means, apart = self._about_origins(starts)
        lengths = np.diff([*starts, len(self.values)])
        residuals = apart - np.repeat(means, lengths, axis=0)
        return float((self.weights * np.square(residuals).sum(axis=1)).sum())

    def least_inertia(self, starts: IndexArray) -> float:
        """Return what any clusters have at least, if none seem better than those that begin there.

        The compiled code compares sums over all values, in twice the usual number of digits.
        """
        rounding = _ROUNDING_OF_SUMS * self.inertia(np.zeros(1, dtype=np.int64))
        return max(0.0, self.inertia(starts) - rounding)

    def _about_origins(self, starts: IndexArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return a point of each cluster, and means and points about it, with all their digits."""
        lengths = np.diff([*starts, len(self.values)])
        origins = self.points[starts + lengths // 2]
        shares = self.weights / np.repeat(np.add.reduceat(self.weights, starts), lengths)
        apart = self.points - np.repeat(origins, lengths, axis=0)
        return origins, np.add.reduceat(shares[:, None] * apart, starts), apart


def _near_one(values: FloatArray) -> FloatArray:
    """Return the values in a unit in which squares stay in range."""
    exponent = math.frexp(float(np.abs(values).max()))[1]
    return np.ldexp(values, -exponent)


def line_through(points: Any, weights: FloatArray | None) -> Line | None:
    """Return the line on which all points of positive weight lie.

    Return None if there is none, or if it would take long to divide it.
    """
    if not isinstance(points, np.ndarray) or len(points) > 64 * _MOST_VALUES:
        return None
    if weights is None and points.shape[1] == 1:
        values = np.sort(points[:, 0]).astype(np.float64)  # much faster than in what order
        firsts, counts = _distinct(values)
        line = Line(values[firsts], counts, values[firsts, None])
    else:
        if weights is not None and (weights == 0).any():
            points, weights = points[weights > 0], weights[weights > 0]
        along = _values_along(points)
        if along is None:
            return None
        order = np.argsort(along, kind="stable")
        firsts, counts = _distinct(along[order])
        if weights is not None:
            counts = np.add.reduceat(weights[order], firsts)
        line = Line(along[order[firsts]], counts, points[order[firsts]].astype(np.float64))
    return line if len(line.values) <= _MOST_VALUES else None


def _distinct(values: FloatArray) -> tuple[IndexArray, FloatArray]:
    """Return where each of some sorted values occurs first, and how often it does."""
    firsts = np.flatnonzero(np.concatenate([[True], values[1:] > values[:-1]]))
    return firsts, np.diff([*firsts, len(values)]).astype(np.float64)


def _values_along(points: Matrix) -> FloatArray | None:
    """Return where each point lies on the line through all, or None if they lie on none."""
    if points.shape[1] == 1:
        return points[:, 0].astype(np.float64)
    few = points[:: max(1, len(points) // 64)]
    if _along(few) is None:
        return None
    return _along(points)


def _along(points: Matrix) -> FloatArray | None:
    exact = points.astype(np.float64)
    # Of each feature alone: beside a large one, such as a date, all others would be rounding.
    rounding = 4 * np.finfo(np.float64).eps * np.abs(exact).max(axis=0)
    apart = exact - exact[0]
    direction = apart[int(np.abs(apart).max(axis=1).argmax())]
    feature = int(np.abs(direction).argmax())
    if direction[feature] == 0:
        return np.zeros(len(points))
    along = apart[:, feature] / direction[feature]
    is_near = np.abs(apart - along[:, None] * direction) <= rounding
    return along if is_near.all() else None


def breaks(values: ArrayLike, n_classes: int, *, sample_weight: ArrayLike | None = None) -> Any:
    """Divide numbers into classes that vary least inside, as mapmakers do (Jenks).

    The classes have the least sum of squared deviations from their means that as many classes can
    have.

    Parameters
    ----------
    values : array-like of shape (n_samples,)
        The numbers.
    n_classes : int
        Number of classes; there are fewer if there are fewer distinct values.
    sample_weight : array-like of shape (n_samples,), optional
        Nonnegative. A weight of three counts like three copies of the value.

    Returns
    -------
    ndarray of shape (n_classes + 1,)
        The smallest value, and the largest of each class.

    See Also
    --------
    PowerKMeans : Finds the same classes in data of one column, with centers and labels.

    Examples
    --------
    >>> from powermeans import breaks
    >>> breaks([1, 2, 3, 20, 22, 70], 3)
    array([ 1.,  3., 22., 70.])
    """
    constraints: dict[str, list[Any]] = {"n_classes": [Interval(Integral, 1, None, closed="left")]}
    validate_parameter_constraints(constraints, {"n_classes": n_classes}, caller_name="breaks")
    shape = np.shape(values)
    if len(shape) > 1 and shape[1:] != (1,):
        raise ArgumentError(f"values has the shape {shape}", "pass one column")
    column = column_or_1d(values)[:, None]
    needs = Needs(name="breaks", fit=FitNeeds(n_points=1))
    given = open_points(column, sample_weight, needs).given
    line = line_through(given.array, given.weights)
    if line is None:
        raise ValueError(
            f"of {len(column)} values more than {_MOST_VALUES} differ, and to divide as many takes "
            "too much memory: round them"
        )
    starts = line.division(n_classes)
    return np.concatenate([line.values[:1], line.values[np.append(starts[1:], 0) - 1]])
