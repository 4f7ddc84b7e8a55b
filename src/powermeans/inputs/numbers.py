"""Real numbers from values of any type."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powermeans.system.host_memory import brought_to_host


def real_numbers(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return values as float64 in C order, copied only if they are not."""
    given: NDArray[Any] = np.asarray(brought_to_host(values, name))
    if given.dtype.kind not in "biufO":
        raise ValueError(f"{name} has the dtype {given.dtype}: pass real numbers")
    try:
        return np.ascontiguousarray(given, dtype=np.float64) if given.ndim else given.astype(float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} holds {error}: pass real numbers") from error
