"""How many threads PyTorch works with on the CPU, for a while."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import torch


class _Threads:
    """Which numbers are asked for, and what PyTorch had before the first of those who ask.

    PyTorch has a number for each thread of Python, and a thread that is new to it begins with the
    one that was set last, by whomever.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._here = threading.local()
        self._asked: list[int] = []
        self._at_rest = 1

    def enter(self, n_threads: int) -> int:
        """Set the number, and return the one that this thread is to have afterwards."""
        with self._lock:
            before, depth = torch.get_num_threads(), getattr(self._here, "depth", 0)
            if not self._asked:
                self._at_rest = before
            is_of_others = depth == 0 and before in self._asked
            self._here.depth = depth + 1
            self._asked.append(n_threads)
            torch.set_num_threads(n_threads)
            return self._at_rest if is_of_others else before

    def leave(self, n_threads: int, before: int) -> None:
        with self._lock:
            self._here.depth -= 1
            self._asked.remove(n_threads)
            torch.set_num_threads(before)


_THREADS = _Threads()


@contextlib.contextmanager
def threads_of_torch(n_threads: int) -> Iterator[None]:
    """While this is open, what this thread of Python computes on the CPU takes so many threads."""
    before = _THREADS.enter(n_threads)
    try:
        yield
    finally:
        _THREADS.leave(n_threads, before)
