"""How far the points spread, and which distances are only rounding."""

import math

import numpy as np

from powermeans.points.protocol import Points
from powermeans.types import FloatArray

# A mean of equal points is a sum of many and may miss them by some units in the last place of a
# float64. A distance has the precision of points less their mean.
_ROUNDING_OF_A_MEAN = 1e3 * float(np.finfo(np.float64).eps)
_UNITS_OF_A_DISTANCE = 4


def spread(rows: Points) -> float:
    """Return the root of the weighted mean squared distance of the points from their mean."""
    return math.sqrt(rows.inertia_about_mean() / rows.total_weight)


def tolerance_by_weight(rows: Points, tol: float) -> float:
    """Return what counts as no shift of the centers: `tol` times the weighted mean variance.

    So a weight of three ends a fit where three copies do, unlike with scikit-learn's tolerance.
    """
    return tol * spread(rows) ** 2 / rows.n_columns


def is_at_center(point: FloatArray, center: FloatArray) -> bool:
    """Return whether the center may be the mean of copies of this point."""
    distance, size = np.linalg.norm(point - center), np.linalg.norm(point)
    return bool(distance <= _ROUNDING_OF_A_MEAN * size)


def rounding_inertia(rows: Points) -> float:
    """Return the largest inertia that rounding leaves if every point is at a center.

    It adds up by weight, so that a point far away counts no more than its weight says.
    """
    # Rounding moves a point, so it is measured in the steps whose divergence is known.
    steps = rows.unit_steps()
    if not np.max(steps) > 0:
        return 0.0  # all points are equal
    from_mean = spread(rows)
    from_origin = float(np.linalg.norm(rows.mean() / steps)) + from_mean
    of_a_distance = _UNITS_OF_A_DISTANCE * float(np.finfo(rows.dtype).eps) * from_mean
    of_differences = rows.total_weight * (_ROUNDING_OF_A_MEAN * from_origin + of_a_distance) ** 2
    return of_differences + rows.rounding() * rows.inertia_about_mean()
