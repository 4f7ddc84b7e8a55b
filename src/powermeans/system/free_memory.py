"""How much memory is free, for this process and its control groups."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

_MEMINFO, _OWN_GROUPS = Path("/proc/meminfo"), Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")
# The limit and the use of a control group, version 2 and 1, and the pages of files within its use,
# which the system frees when a process needs the memory.
_FILES_OF_GROUPS = (
    ("memory.max", "memory.current", ("inactive_file", "active_file")),
    (
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        ("total_inactive_file", "total_active_file"),
    ),
)


def fits_into_memory(n_bytes: int) -> bool:
    """Return whether points of this size fit, with what a fit makes of them."""
    free = free_memory()
    return free is None or 4 * n_bytes <= free


def free_memory() -> int | None:
    """Return the bytes that the machine and its control groups leave free; None if unknown."""
    found: list[int] = []
    with contextlib.suppress(OSError, ValueError, StopIteration, IndexError):
        lines = _MEMINFO.read_text().splitlines()
        available = next(line for line in lines if line.startswith("MemAvailable:"))
        found.append(int(available.split()[1]) * 1024)
    for group in set(_groups()):
        for limit, usage, of_files in _FILES_OF_GROUPS:
            with contextlib.suppress(OSError, ValueError):
                most = int((group / limit).read_text())
                used = int((group / usage).read_text()) - _pages_of_files(group, of_files)
                found.append(max(0, most - used))
    return min(found, default=None)


def _groups() -> Iterator[Path]:
    """Yield the folders that may hold the control groups of this process and those above them."""
    yield from (_GROUPS, _GROUPS / "memory")
    with contextlib.suppress(OSError):
        for line in _OWN_GROUPS.read_text().splitlines():
            _, _, rest = line.partition(":")
            controllers, _, path = rest.partition(":")
            if controllers not in ("", "memory"):
                continue
            group = _GROUPS / controllers / path.lstrip("/")
            yield from (one for one in (group, *group.parents) if one.is_relative_to(_GROUPS))


def _pages_of_files(group: Path, names: tuple[str, ...]) -> int:
    with contextlib.suppress(OSError, ValueError):
        stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        return sum(int(stat.get(name, 0)) for name in names)
    return 0
