"""How much memory there is for data."""

from __future__ import annotations

import contextlib
from pathlib import Path

_MEMINFO, _GROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")


def free_memory() -> int | None:
    """Bytes that may be used, by the machine and by the group of processes; None where unknown."""
    found: list[int] = []
    with contextlib.suppress(OSError, ValueError, StopIteration, IndexError):
        lines = _MEMINFO.read_text().splitlines()
        available = next(line for line in lines if line.startswith("MemAvailable:"))
        found.append(int(available.split()[1]) * 1024)
    with contextlib.suppress(OSError, ValueError):
        limit = int((_GROUP / "memory.max").read_text())
        found.append(max(0, limit - int((_GROUP / "memory.current").read_text())))
    return min(found, default=None)
