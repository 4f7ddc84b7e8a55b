"""How much memory there is for data."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

_MEMINFO, _OWN_GROUPS = Path("/proc/meminfo"), Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")
# Where a group says how much it may have, how much it has, and which of that are pages of files.
_WORDS = (
    ("memory.max", "memory.current", ("inactive_file", "active_file")),
    (
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        ("total_inactive_file", "total_active_file"),
    ),
)


def free_memory() -> int | None:
    """Bytes that may be used, by the machine and by the group of processes; None where unknown."""
    found: list[int] = []
    with contextlib.suppress(OSError, ValueError, StopIteration, IndexError):
        lines = _MEMINFO.read_text().splitlines()
        available = next(line for line in lines if line.startswith("MemAvailable:"))
        found.append(int(available.split()[1]) * 1024)
    for group in set(_groups()):
        for limit, usage, of_files in _WORDS:
            with contextlib.suppress(OSError, ValueError):
                most = int((group / limit).read_text())
                used = int((group / usage).read_text()) - _given_back(group, of_files)
                found.append(max(0, most - used))
    return min(found, default=None)


def _groups() -> Iterator[Path]:
    """Where groups of this process and those above them may tell of themselves."""
    yield from (_GROUPS, _GROUPS / "memory")
    with contextlib.suppress(OSError):
        for line in _OWN_GROUPS.read_text().splitlines():
            _, _, rest = line.partition(":")
            controllers, _, path = rest.partition(":")
            if controllers not in ("", "memory"):
                continue
            group = _GROUPS / controllers / path.lstrip("/")
            yield from (one for one in (group, *group.parents) if one.is_relative_to(_GROUPS))


def _given_back(group: Path, of_files: tuple[str, ...]) -> int:
    """Bytes of files that the system keeps as long as nobody needs the room."""
    with contextlib.suppress(OSError, ValueError):
        stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        return sum(int(stat.get(name, 0)) for name in of_files)
    return 0
