"""Real numbers from values of any type."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powermeans.errors import ArgumentError
from powermeans.points.checks.narrow import widened
from powermeans.system.host_memory import brought_to_host


def real_numbers(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return values as float64 in C order, copied only if they are not."""
    given: NDArray[Any] = widened(np.asarray(brought_to_host(values, name)))
    if given.dtype.kind not in "biufO":
        raise ValueError(f"{name} has the dtype {given.dtype}: pass real numbers")
    try:
        return np.ascontiguousarray(given, dtype=np.float64) if given.ndim else given.astype(float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} holds {error}: pass real numbers") from error
    except OverflowError as error:
        refuse_long_integer(given, name, error)
        raise


def refuse_long_integer(values: Any, name: str, error: OverflowError) -> None:
    """Raise if an integer beyond float64 caused this error of a conversion, and say where it is."""
    entries = np.asarray(values, dtype=object)
    for index, entry in np.ndenumerate(entries):
        if isinstance(entry, int) and entry.bit_length() > np.finfo(np.float64).maxexp:
            is_matrix = len(index) == 2
            place = "in row {}, column {}" if is_matrix else "at index {}"
            raise ArgumentError(
                f"{name} has an integer above 1.8e308 {place.format(*index)}, beyond what float64 "
                "holds",
                "divide by a power of ten, or take logarithms",
            ) from error
