"""How far a run is: a line that is written over at a terminal, a few lines in a file."""

from __future__ import annotations

import sys
import time
from typing import TextIO

_SECONDS_BETWEEN_LINES = 30.0


class Progress:
    """Tells of the cells of one item.

    Parameters
    ----------
    name : str
        Of the item.
    n_cells : int
    n_kept : int
        How many were finished before.
    stream : text file, default=sys.stderr
    """

    def __init__(self, name: str, n_cells: int, n_kept: int, stream: TextIO | None = None) -> None:
        self._name = name
        self._n_cells = n_cells
        self._n_kept = n_kept
        self._n_computed = 0
        self._stream = stream or sys.stderr
        self._begin = self._last_line = time.perf_counter()
        self._is_terminal = self._stream.isatty()
        kept = f", {n_kept} of them kept from before" if n_kept else ""
        print(f"{name}: {n_cells} cells{kept}", file=self._stream, flush=True)

    def cell_done(self) -> None:
        """One more was computed."""
        self._n_computed += 1
        now = time.perf_counter()
        if self._is_terminal:
            print(f"\r\x1b[2K{self._state(now)}", end="", file=self._stream, flush=True)
        elif now - self._last_line >= _SECONDS_BETWEEN_LINES:
            self._last_line = now
            print(self._state(now), file=self._stream, flush=True)

    def close(self) -> None:
        """The last word."""
        if self._is_terminal and self._n_computed:
            print("\r\x1b[2K", end="", file=self._stream)
        elapsed = time.perf_counter() - self._begin
        done = self._n_kept + self._n_computed
        print(
            f"{self._name}: {done} of {self._n_cells} cells done, {self._n_computed} computed "
            f"in {_as_time(elapsed)}",
            file=self._stream,
            flush=True,
        )

    def _state(self, now: float) -> str:
        elapsed = now - self._begin
        done = self._n_kept + self._n_computed
        left = (self._n_cells - done) * elapsed / self._n_computed
        return (
            f"{self._name}: cell {done} of {self._n_cells}, {_as_time(elapsed)}, "
            f"about {_as_time(left)} left"
        )


def _as_time(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"
