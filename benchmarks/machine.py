"""Where and with what a figure was measured, and the file in which it is stored."""

from __future__ import annotations

import datetime
import hashlib
import importlib
import json
import multiprocessing
import os
import platform
import shlex
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
# Other processes that keep more than this many processors busy spoil the times.
QUIET = 0.1
# The same loop before and after a measurement differs by no more than this share.
STEADY = 0.03
# Stored files have a line for each item of these levels.
_LEVELS_WITH_LINES = 4


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def digest(package: str) -> str:
    """Return a few letters that change with the code of an installed package."""
    folder = Path(str(importlib.import_module(package).__file__)).parent
    files = sorted(file for file in folder.rglob("*") if file.suffix in {".py", ".so", ".pyd"})
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]


def begin_peak() -> None:
    """Let the peak of the memory of this process begin anew; needs Linux."""
    Path("/proc/self/clear_refs").write_text("5")


def held(field: str) -> int:
    """Return an entry of the memory of this process in bytes, as VmRSS or VmHWM; needs Linux."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


# Stored results.


def stored_at(name: str) -> Path:
    return RESULTS / f"{name}.json"


def read(name: str, module: str) -> dict:
    """Return what a run of a module stored."""
    path = stored_at(name)
    if not path.is_file():
        raise SystemExit(f"{path} is not there: run python -m benchmarks.{module} first")
    return json.loads(path.read_text(encoding="utf-8"))


def stored_figures(name: str) -> dict:
    """Return the figures stored by earlier runs, none if there was no run."""
    return read(name, name)["figures"] if stored_at(name).is_file() else {}


def command() -> str:
    return shlex.join(["python", "-m", f"benchmarks.{Path(sys.argv[0]).stem}", *sys.argv[1:]])


def store(name: str, figures: object) -> Path:
    """Write figures with date, command, machine and versions, all of it or nothing."""
    # Imported here, because code of a former commit, which may have neither, imports this module.
    from powermeans.system.threads import usable_processors
    from powermeans.versions import versions

    record = {
        "date": datetime.date.today().isoformat(),
        "command": command(),
        "processor": processor(),
        "processors used": usable_processors(),
        "versions": versions(),
        "figures": figures,
    }
    RESULTS.mkdir(exist_ok=True)
    unfinished = stored_at(f"{name}.unfinished")
    unfinished.write_text(as_json(record) + "\n", encoding="utf-8")
    return unfinished.replace(stored_at(name))


def store_part(name: str, part: str, cells: object) -> Path:
    """Store a part with its own origin, next to the parts of earlier runs."""
    origin = {"date": datetime.date.today().isoformat(), "command": command()}
    cells_of_part = {**origin, "processor": processor(), "cells": cells}
    return store(name, stored_figures(name) | {part: cells_of_part})


def as_json(value: Any, level: int = 0) -> str:
    """Return JSON with a line for each item of the outer levels."""
    if level == _LEVELS_WITH_LINES or not value or not isinstance(value, dict | list):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    inner = " " * (level + 1)
    if isinstance(value, list):
        lines = [f"{inner}{as_json(item, level + 1)}" for item in value]
        return "[\n" + ",\n".join(lines) + "\n" + " " * level + "]"
    lines = [f"{inner}{json.dumps(str(k))}: {as_json(v, level + 1)}" for k, v in value.items()]
    return "{\n" + ",\n".join(lines) + "\n" + " " * level + "}"


def measured(stored: Mapping[str, Any]) -> str:
    """Say when, by which command and on which processor figures were measured."""
    return f"Measured on {stored['date']} by `{stored['command']}` on {stored['processor']}"


# How busy other processes keep the machine; times measured meanwhile mean little.


class Bystanders:
    """The processors that other processes have used on average since this was made.

    This process, its children and those of `also_ours` do not count. Without /proc, nothing is
    known.
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


class Steadiness:
    """Whether the machine is as fast as when this was made, told by a loop of about a second."""

    def __init__(self) -> None:
        self._before = seconds_of_a_loop()

    def drift(self) -> float:
        return abs(seconds_of_a_loop() / self._before - 1)


def seconds_of_a_loop() -> float:
    began, total = time.perf_counter(), 0
    for number in range(2**24):
        total += number
    return time.perf_counter() - began


def busy_seconds() -> float:
    """Return processor seconds that all processes used, and those taken from this machine."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = (
        int(number) for number in Path("/proc/stat").read_text().split()[1:9]
    )
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def our_seconds(also_ours: Iterable[int] = ()) -> float:
    """Return processor seconds of this process, of its children, and of the others named."""
    times = os.times()
    ended = times.children_user + times.children_system
    children = [child.pid for child in multiprocessing.active_children() if child.pid]
    return times.user + times.system + ended + sum(map(seconds_of, [*children, *also_ours]))


def seconds_of(process: int) -> float:
    try:
        after_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    # utime and stime are fields 14 and 15; the state, field 3, comes first after the name.
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")
