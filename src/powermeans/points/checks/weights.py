"""Real numbers from values of any type, and sample weights: not negative, not all zero."""

from __future__ import annotations

import math
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powermeans.system.containers import to_array
from powermeans.types import FloatArray


def real_numbers(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return values as float64 in C order, copied only if they are not."""
    given: NDArray[Any] = np.asarray(to_array(values, name))
    if given.dtype.kind not in "biufO" and given.dtype.name != "bfloat16":
        raise ValueError(f"{name} has the dtype {given.dtype}: pass real numbers")
    try:
        return np.ascontiguousarray(given, dtype=np.float64) if given.ndim else given.astype(float)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} holds {error}: pass real numbers") from error


def check_sample_weight(
    sample_weight: ArrayLike | None, n_points: int, name: str = "sample_weight"
) -> FloatArray | None:
    """Return the weights as float64, one number for each point; None stays None."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Number):
        sample_weight = np.full(n_points, sample_weight)
    weights = real_numbers(sample_weight, name)
    if weights.shape != (n_points,):
        raise ValueError(
            f"{name} has the shape {weights.shape}: "
            f"pass one weight for each of the {n_points} rows, shape ({n_points},)"
        )
    refuse_weights(weights, name)
    with np.errstate(over="ignore"):
        refuse_total(float(weights.sum()), float(weights.max()), name)
    return weights


def refuse_weights(weights: FloatArray, name: str = "sample_weight", first_row: int = 0) -> None:
    """Raise on the first weight that is not finite, or else on the first that is negative."""
    for is_bad, way_out in (
        (~np.isfinite(weights), "pass finite weights"),
        (weights < 0, "pass weights of at least zero; zero leaves a row out"),
    ):
        if is_bad.any():
            first = int(np.argmax(is_bad))
            value = "NaN" if math.isnan(weights[first]) else str(weights[first])
            raise ValueError(f"{name} contains {value} at index {first_row + first}: {way_out}")


def refuse_total(total_weight: float, largest_weight: float, name: str = "sample_weight") -> None:
    """Raise if all weights are zero, or add up to more than float64 holds."""
    if largest_weight == 0:
        raise ValueError(f"{name} is zero for every row: give some row a positive weight")
    if largest_weight < np.finfo(np.float64).tiny:
        raise ValueError(
            f"{name} is at most {largest_weight:.3g}, which float64 stores with few digits: "
            f"divide it by {largest_weight:.0e}"
        )
    if not math.isfinite(total_weight):
        raise ValueError(
            f"{name} adds up to more than float64 can store: "
            f"divide it by its largest, {largest_weight:.3g}"
        )
