"""How far a pass over rows in parts is, and about how long the rest of it takes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

Tell = Callable[[int, int | None], object]
"""What is told how many parts of a pass are done, and of how many where that is known."""

# A pass that takes longer than this says where it is.
_LONG_PASS_SECONDS = 1.0
_SECONDS_BETWEEN_LINES = 10.0


class PassClock:
    """What there is to say of passes, once they take long.

    Parameters
    ----------
    unit : str
        What a pass is counted in.

    Examples
    --------
    >>> from powermeans.sources.pass_clock import PassClock
    >>> print(PassClock("rows").words(n_done=50, n_in_all=100))
    None
    """

    def __init__(self, unit: str = "parts") -> None:
        self._unit = unit
        self._began, self._n_at_first, self._n_before = math.nan, 0, math.inf

    def words(self, n_done: int, n_in_all: int | None) -> str | None:
        """Of a pass of which so much is done; None while it is short."""
        now = time.monotonic()
        if n_done <= self._n_before:
            self._began, self._n_at_first = now, n_done
        self._n_before = n_done
        seconds = now - self._began
        if seconds < _LONG_PASS_SECONDS:
            return None
        if not n_in_all:
            return f"{n_done} {self._unit} of a pass"
        share = f"{n_done / n_in_all:.0%} of a pass"
        left = seconds * (n_in_all - n_done) / max(1, n_done - self._n_at_first)
        return f"{share}, about {duration(left)} left of it" if n_done < n_in_all else share


class PassLines:
    """Prints now and then how far a long pass is, beside what `verbose` prints of each sweep."""

    def __init__(self) -> None:
        self._clock, self._printed = PassClock(), time.monotonic()

    def __call__(self, n_done: int, n_in_all: int | None) -> None:
        """So many parts of a pass are done."""
        said, now = self._clock.words(n_done, n_in_all), time.monotonic()
        if said is not None and now - self._printed >= _SECONDS_BETWEEN_LINES:
            self._printed = now
            print(f"So far {said}.")


def duration(seconds: float) -> str:
    """A time in words."""
    if seconds < 0.095:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 119.5:
        return f"{seconds:.0f} s"
    if seconds < 7170:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
