"""Memory for pieces of the rows that come and go."""

from __future__ import annotations

import mmap
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Rooms:
    """Memory that is used again once nobody looks at what was in it.

    Memory that the system has just given out costs about as much as reading a piece into it.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans.sources.rooms import Rooms
    >>> rooms = Rooms()
    >>> values = rooms.array(3, np.dtype(np.float64))
    >>> values.shape, values.flags.writeable
    ((3,), True)
    """

    def __init__(self) -> None:
        self._free: list[mmap.mmap] = []

    def array(self, n_values: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """An array of so many values, whatever they are.

        Its memory is free again once it is gone, with all its views: NumPy has them hold this
        array and not the memory.
        """
        n_bytes = max(1, n_values * dtype.itemsize)
        room = self._free.pop() if self._free else mmap.mmap(-1, n_bytes)
        if len(room) < n_bytes:
            room = mmap.mmap(-1, n_bytes)
        values: NDArray[Any] = np.frombuffer(room, dtype, n_values)
        weakref.finalize(values, self._free.append, room).atexit = False
        return values
