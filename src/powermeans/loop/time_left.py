"""Between how many seconds the rest of a run takes, from the parts of it that were timed."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Range = tuple[float, float]
"""The least and the most, here of seconds."""
SecondsLeft = Callable[[], Range]
"""Returns between how many seconds the rest of a fit takes, as far as is known by now."""
PhaseTold = Callable[[str, SecondsLeft | None], object]
"""Is called when a phase begins, with its name in plain words."""
UNKNOWN: Range = (math.nan, math.nan)

# Each pair is the least and the most.
_LIKE_OTHERS = np.array([0.6, 1.4])  # a part, in units of the mean of those of its kind
_LIKE_SO_FAR = np.array([1.2, 3.5])  # a part of no timed kind, in units of its time so far
_BY_SHARE = np.array([0.7, 1.5])  # the same with a known share, in units of time by share
_IN_STARTS = {  # parts of no timed kind, in units of a start
    "start": np.array([1.0, 10.0]),  # of a further effort
    "annealed": np.array([1.0, 6.0]),
    "crossing": np.array([0.1, 0.6]),
    "polishing": np.array([0.05, 2.0]),
}
# Starts that agree end the others, so that only this share is sure.
_LEAST_NUMBER = 0.3
# Crossings that gain are followed by more: this share of those planned, and so many.
_MORE_CROSSINGS, _MORE_AT_LEAST = 0.15, 6
_LATE_SWEEP = 0.5  # leaves out more than those before, whose mean is the unit
# The last sweeps, in units of what the shifts of the centers say and of those so far: the end may
# come at once where no label changes any more, and shifts may stop to fall for a while.
_BY_SHIFTS, _BY_NUMBER = np.array([0.4, 2.0]), np.array([0.3, 4.0])
_FEWEST_SHIFTS = 6
_CAUTION = 0.75  # a rest that seems long may end early for a reason that all parts share
_FIRST_SECONDS = 0.5  # of a first part tell nothing


class TimeLeft:
    """Time the parts of a run, and tell between how many seconds the rest takes."""

    def __init__(self) -> None:
        self._kind, self._began, self._share = "", 0.0, 0.0
        self._ahead: Mapping[str, int] = {}
        self._further: Mapping[str, int] = {}
        self._took: defaultdict[str, list[float]] = defaultdict(list)
        self._start = np.zeros(2)
        self._sweeps: list[float] = []
        self._shifts: list[float] = []
        self._n_rows, self._n_compared, self._most_last, self._tolerance = 1.0, 0, 0.0, 0.0

    def expect(self, further: Mapping[str, int], most_last: float) -> None:
        """Begin an effort, after which others have these parts, and at most so many sweeps."""
        if self._kind:
            self.begin("")
        self._took.clear()
        self._further, self._most_last = further, most_last

    def expect_all_rows(self, n_rows: float, n_compared: int) -> None:
        """Expect a comparison of solutions on all rows, so many times as many as there are now."""
        self._n_rows, self._n_compared = n_rows, n_compared

    def begin(self, kind: str, ahead: Mapping[str, int] | None = None) -> None:
        """Begin a part, and expect so many of each kind after it."""
        now = time.perf_counter()
        if self._kind:
            self._took[self._kind].append(now - self._began)
        if self._kind == "start":
            self._start = self._lasts("start")
        self._kind, self._began, self._share, self._ahead = kind, now, 0.0, ahead or {}

    def reach(self, share: float) -> None:
        """Note what share of the part is done."""
        self._share = share

    def begin_comparing(self) -> None:
        """Compare solutions on all rows."""
        self.begin("comparing")
        self._sweeps = [self._n_rows * seconds for seconds in self._sweeps]
        self._further, self._n_rows = {}, 1.0

    def begin_last(self, tolerance: float, max_iter: int) -> None:
        """Begin the last sweeps, which end once centers shift by no more than the tolerance."""
        self.begin("last")
        self._tolerance, self._most_last, self._shifts = tolerance, max_iter, []

    def sweep(self, seconds: float, center_shift: float) -> None:
        """Note a sweep."""
        self._sweeps.append(seconds)
        self._shifts.append(center_shift)

    def seconds(self) -> Range:
        """Return between how many seconds the rest takes; NaN without a plan."""
        if self._kind == "last":
            least, most = self._last_sweeps()
            return float(least), float(most)
        so_far = time.perf_counter() - self._began
        if not self._kind or not (self._took or self._share or so_far > _FIRST_SECONDS):
            return UNKNOWN
        parts = [np.maximum(self._lasts(self._kind) - so_far, [0.0, 0.2 * so_far])]
        unsure: list[Any] = []  # starts that agree leave out all crossings
        for kind in self._ahead:
            is_sure = kind != "crossing" or kind == self._kind
            (parts if is_sure else unsure).append(self._number(kind) * self._lasts(kind))
        for kind, number in self._further.items():
            n_ahead = number - (kind == self._kind == "polishing")
            parts.append(n_ahead * _IN_STARTS[kind] * self._start_so_far())
        parts += self._end_of_run()
        return _sum(parts)[0], _sum(parts + unsure)[1]

    def _number(self, kind: str) -> Any:
        """Return how many parts of a kind are ahead, at least and at most."""
        planned = self._ahead[kind]
        if kind != "crossing" or not planned:
            return np.array([_LEAST_NUMBER * planned, planned])
        return np.array([planned, (1 + _MORE_CROSSINGS) * planned + _MORE_AT_LEAST])

    def _lasts(self, kind: str) -> Any:
        """Return how long a part of this kind takes, at least and at most."""
        if self._took.get(kind):
            return _LIKE_OTHERS * np.mean(self._took[kind])
        if kind == "comparing":
            return np.array([1, 1 + self._n_compared]) * max(self._sweeps, default=0.0)
        if kind != self._kind or kind == "polishing":
            return _IN_STARTS[kind] * self._start_so_far()
        so_far = time.perf_counter() - self._began
        by_share = _BY_SHARE * so_far / self._share if self._share > 0 else math.inf
        return np.maximum(np.minimum(by_share, _LIKE_SO_FAR * so_far), so_far)

    def _start_so_far(self) -> Any:
        return self._lasts("start") if self._kind == "start" else self._start

    def _end_of_run(self) -> list[Any]:
        """Return how long the comparison on all rows and the last sweeps take."""
        if not self._sweeps:
            return []
        of_all = self._n_rows * np.array([np.mean(self._sweeps), max(self._sweeps)])
        compared = np.array([1, 1 + self._n_compared]) if self._n_rows > 1 else np.zeros(2)
        late = np.array([1.0, _LATE_SWEEP * self._most_last])
        return [compared * of_all, late * of_all[0]]

    def _last_sweeps(self) -> Any:
        seconds = np.mean(self._sweeps[-5:]) if self._sweeps else 0.0
        n_left = self._most_last - len(self._shifts)
        shifts = np.array(self._shifts[len(self._shifts) // 2 :])
        if len(self._shifts) < _FEWEST_SHIFTS or self._tolerance <= 0 or min(shifts) <= 0:
            return np.array([0.0, seconds * n_left])
        logs = np.log(shifts)
        falls_by = -float(np.polyfit(np.arange(len(logs)), logs, 1)[0])
        wanted = max(0.0, float(logs[-1]) - 0.5 * math.log(self._tolerance))
        by_shifts = _BY_SHIFTS * (wanted / falls_by if falls_by > 0 else math.inf)
        by_number = _BY_NUMBER * len(self._shifts)
        least, most = min(by_shifts[0], by_number[0]), max(by_shifts[1], by_number[1])
        return seconds * np.minimum([least, most], n_left)


def _sum(parts: list[Any]) -> Range:
    """Add ranges of parts that take long or short for reasons of their own."""
    ranges = np.array(parts)
    middle = ranges.mean(axis=1).sum()
    spread = math.hypot(*(ranges[:, 1] - ranges[:, 0]) / 2)
    least = max(ranges[:, 0].sum(), _CAUTION * (middle - spread))
    return float(least), float(middle + spread)
