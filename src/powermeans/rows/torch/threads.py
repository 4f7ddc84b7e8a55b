"""How many threads PyTorch works with on the CPU, for a while."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import torch


class _Threads:
    """What PyTorch had before the first of those who ask for another number, however many do."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_users, self._before = 0, 1

    def enter(self, n_threads: int) -> None:
        with self._lock:
            if self._n_users == 0:
                self._before = torch.get_num_threads()
            self._n_users += 1
            torch.set_num_threads(n_threads)

    def leave(self) -> None:
        with self._lock:
            self._n_users -= 1
            torch.set_num_threads(self._before)


_THREADS = _Threads()


@contextlib.contextmanager
def threads_of_torch(n_threads: int) -> Iterator[None]:
    """While this is open, what this thread of Python computes on the CPU takes so many threads."""
    _THREADS.enter(n_threads)
    try:
        yield
    finally:
        _THREADS.leave()
