"""How busy other processes keep the machine meanwhile; times measured beside them mean little."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterable
from pathlib import Path

# In /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal.
_IDLE_COLUMNS = (3, 4)
_COLUMNS = 8


class Bystanders:
    """Processors that others used since this was made, in the mean.

    Counted as ours is what this process and its children used, and what those of `also_ours` did.
    Where there is no /proc, nothing is known.
    """

    def __init__(self, also_ours: Iterable[int] = ()) -> None:
        self._also_ours = list(also_ours)
        self._began = self._now()

    def processors(self) -> float | None:
        now = self._now()
        if now is None or self._began is None:
            return None
        elapsed, busy, ours = (end - start for start, end in zip(self._began, now, strict=True))
        return max(0.0, (busy - ours) / elapsed)

    def _now(self) -> tuple[float, float, float] | None:
        if not Path("/proc/stat").is_file():
            return None
        return time.monotonic(), busy_seconds(), our_seconds(self._also_ours)


def busy_seconds() -> float:
    """Processor seconds that all processes used, and those taken from this machine."""
    first_line = Path("/proc/stat").read_text().partition("\n")[0]
    columns = [int(number) for number in first_line.split()[1 : 1 + _COLUMNS]]
    busy = sum(ticks for i, ticks in enumerate(columns) if i not in _IDLE_COLUMNS)
    return busy / os.sysconf("SC_CLK_TCK")


def our_seconds(also_ours: Iterable[int] = ()) -> float:
    """Processor seconds of this process, of children that have ended and of those that have not."""
    times = os.times()
    ended = times.children_user + times.children_system
    children = [child.pid for child in multiprocessing.active_children() if child.pid]
    alive = sum(map(seconds_of, [*children, *also_ours]))
    return times.user + times.system + ended + alive


def seconds_of(process: int) -> float:
    try:
        after_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    # utime and stime are fields 14 and 15; the state, field 3, comes first after the name.
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")
