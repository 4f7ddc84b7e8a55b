"""How far apart the points are, and which distances are no more than rounding."""

from __future__ import annotations

import math

import numpy as np

from powermeans.rows.protocol import Rows
from powermeans.rules import Hard
from powermeans.types import FloatArray

# A mean of equal points may miss them by some units in the last place of a float64, since it is a
# sum of many; a distance is rounded once more, to the precision of the points, after their mean
# has been taken off.
_UNITS_OF_A_MEAN = 1e3
_UNITS_OF_A_DISTANCE = 4


def spread(rows: Rows) -> float:
    """Root of the weighted mean squared distance of the points from their mean."""
    inertia = rows.sweep(rows.mean()[None, :], Hard()).inertia
    return math.sqrt(inertia / rows.total_weight)


def rounding_distance(rows: Rows, from_origin: float, from_mean: float) -> float:
    """How far a point may seem to be from a center that is the mean of copies of it.

    Parameters
    ----------
    rows : Rows
        For the precision in which distances are computed.
    from_origin, from_mean : float
        How far the point is from the origin and from the mean of all points.
    """
    of_a_mean = _UNITS_OF_A_MEAN * float(np.finfo(np.float64).eps) * from_origin
    return of_a_mean + _UNITS_OF_A_DISTANCE * float(np.finfo(rows.dtype).eps) * from_mean


def rounding_inertia(rows: Rows) -> float:
    """What the inertia may seem to be while every point is at a center."""
    from_mean = spread(rows)
    from_origin = math.hypot(float(np.linalg.norm(rows.mean())), from_mean)
    return rows.total_weight * rounding_distance(rows, from_origin, from_mean) ** 2


def is_at_center(rows: Rows, point: FloatArray, mean: FloatArray, sq_dist: float) -> bool:
    """Whether the squared distance from a point to its center is no more than rounding.

    Parameters
    ----------
    rows : Rows
    point, mean : (n_features,)
        The point, and the mean of all points.
    sq_dist : float
    """
    lengths = float(np.linalg.norm(point)), float(np.linalg.norm(point - mean))
    return math.sqrt(sq_dist) <= rounding_distance(rows, *lengths)
