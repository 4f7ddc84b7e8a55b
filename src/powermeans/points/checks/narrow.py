"""Points of fewer bits than float32: they are kept as they are, and widened where they are read."""

from __future__ import annotations

from typing import Any

import numpy as np

from powermeans.system.host_memory import is_tensor
from powermeans.types import Points, SparsePoints

# By name, since only those who have bfloat16 have the package `ml_dtypes`, which defines it.
_NAMES = ("float16", "bfloat16", "int8", "uint8")


def is_narrow(dtype: object) -> bool:
    """Tell whether points of this dtype are kept as they are, and computed with as float32."""
    return isinstance(dtype, np.dtype) and dtype.isnative and dtype.name in _NAMES


def computed_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the distances of such points."""
    return np.dtype(np.float32) if is_narrow(dtype) else dtype


def dtype_of_centers(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the centers of such points: float64 for integers, as in scikit-learn."""
    return np.dtype(np.float64) if dtype.kind in "iu" else computed_dtype(dtype)


def widened(points: Points | SparsePoints) -> Any:
    """Return the points in the dtype that they are computed with, copied if they are narrow."""
    return points.astype(computed_dtype(points.dtype), copy=False)


def as_floats(points: Points | SparsePoints) -> Any:
    """Return the points in the dtype of their centers, copied if narrow; a tensor as it is."""
    if is_tensor(points):
        return points
    return points.astype(dtype_of_centers(points.dtype), copy=False)
