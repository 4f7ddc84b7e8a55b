"""How far a pass over rows in parts is, and about how long the rest takes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

Tell = Callable[[int, int | None], object]
"""Is called with the number of parts done in a pass, and the number of all if known."""

# A shorter pass is not reported.
_LONG_PASS_SECONDS = 1.0
_SECONDS_BETWEEN_LINES = 10.0
_UNITS = ((3600, "h"), (60, "min"), (1, "s"))


class PassTimer:
    """Words for the progress of long passes, counted in some unit."""

    def __init__(self, unit: str = "parts") -> None:
        self._unit = unit
        self._began, self._n_at_first, self._n_before = math.nan, 0, math.inf

    def words(self, n_done: int, n_in_all: int | None) -> str | None:
        """Return the progress of a pass in words, or None as long as the pass is short."""
        now = time.monotonic()
        if n_done <= self._n_before:
            self._began, self._n_at_first = now, n_done
        self._n_before = n_done
        elapsed = now - self._began
        if elapsed < _LONG_PASS_SECONDS:
            return None
        if not n_in_all:
            return f"{n_done} {self._unit} of a pass"
        share = f"{n_done / n_in_all:.0%} of a pass"
        if n_done >= n_in_all:
            return share
        share_timed = (n_done - self._n_at_first) / (n_in_all - self._n_at_first)
        return f"{share}, {time_left(elapsed, share_timed)} of it"


class PassLines:
    """Prints now and then how far a long pass is, besides the line of `verbose` for each sweep."""

    def __init__(self) -> None:
        self._timer, self._printed = PassTimer(), time.monotonic()

    def __call__(self, n_done: int, n_in_all: int | None) -> None:
        """Print a line unless the last one is recent."""
        said, now = self._timer.words(n_done, n_in_all), time.monotonic()
        if said is not None and now - self._printed >= _SECONDS_BETWEEN_LINES:
            self._printed = now
            print(f"So far {said}.")


def time_left(elapsed: float, share_done: float) -> str:
    """Return in words how long the rest takes at the same speed."""
    return f"about {duration(elapsed / share_done - elapsed)} left"


def duration(seconds: float) -> str:
    """Return a time with its unit."""
    if seconds < 0.095:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 119.5:
        return f"{seconds:.0f} s"
    if seconds < 7170:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def range_left(least: float, most: float) -> str:
    """Return in words between how many seconds the rest takes."""
    if most < 1.5:
        return "about to end"
    (low, low_unit), (high, unit) = _rounded(least), _rounded(most)
    if least < 1 or least < most / 20:
        return f"at most about {high} {unit} left"
    if low_unit != unit:
        return f"about {low} {low_unit} to {high} {unit} left"
    return f"about {low} {unit} left" if low == high else f"about {low} to {high} {unit} left"


def _rounded(seconds: float) -> tuple[str, str]:
    """Return a time to one digit, from 10 to 30 to the nearest 5, and its unit."""
    size, unit = next((size, unit) for size, unit in _UNITS if seconds >= 2 * size or size == 1)
    number = seconds / size
    digit = 10 ** max(0, math.floor(math.log10(max(number, 1))))
    step = digit / 2 if digit > 1 and number < 3 * digit else digit
    return f"{round(number / step) * step:.0f}", unit
