"""The scaling of columns: an offset and a unit for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from powermeans.types import FloatArray, Points

__all__ = ["Scaling"]


@dataclass(frozen=True)
class Scaling:
    """An offset to subtract from each column, and a unit to divide it by.

    Attributes
    ----------
    offsets : (n_features,)
    units : (n_features,)
        One for a constant column.

    See Also
    --------
    open_data : Scales columns with ``scale="standard"`` or ``"minmax"``, or with one of these.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans.points.scaling import Scaling
    >>> scaling = Scaling(np.array([1.0, 0.0]), np.array([2.0, 1.0]))
    >>> scaling.transform(np.array([[3.0, 5.0]]))
    array([[1., 5.]])
    >>> scaling.inverse_transform(np.array([[1.0, 5.0]]))
    array([[3., 5.]])
    """

    _state = "offsets: finite[d] units: finite[d]"

    offsets: FloatArray
    units: FloatArray

    def transform(self, points: Any) -> Points:
        """Return scaled points in their floating-point dtype; in float64 for other dtypes."""
        given = _as_floats(points)
        scaled = given - self.offsets
        scaled /= self.units
        kept: Points = scaled.astype(given.dtype, copy=False)
        return kept

    def inverse_transform(self, points: Any) -> Points:
        """Return points or centers in the original units of the columns."""
        given = _as_floats(points)
        unscaled = given * self.units + self.offsets
        kept: Points = unscaled.astype(given.dtype, copy=False)
        return kept

    def equals(self, other: Scaling | None) -> bool:
        """Return whether the other scaling is the same."""
        return (
            other is not None
            and np.array_equal(self.offsets, other.offsets)
            and np.array_equal(self.units, other.units)
        )


def _as_floats(points: Any) -> FloatArray:
    if sparse.issparse(points):
        raise ValueError("points are sparse, and scaling would fill them: pass points.toarray()")
    array = np.asarray(points)
    return array if array.dtype.kind == "f" else array.astype(np.float64)
