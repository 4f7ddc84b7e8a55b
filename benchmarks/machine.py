"""Where and with what a figure was measured; stored beside every figure."""

from __future__ import annotations

import datetime
import json
import platform
import shlex
import sys
from pathlib import Path

from powermeans.reporting.versions import versions
from powermeans.system.threads import usable_processors

RESULTS = Path(__file__).parent / "results"


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def stored_at(name: str) -> Path:
    return RESULTS / f"{name}.json"


def read(name: str, module: str) -> dict:
    """What a run of a module stored."""
    path = stored_at(name)
    if not path.is_file():
        raise SystemExit(f"{path} is not there: run python -m benchmarks.{module} first")
    return json.loads(path.read_text(encoding="utf-8"))


def command() -> str:
    return shlex.join(["python", "-m", f"benchmarks.{Path(sys.argv[0]).stem}", *sys.argv[1:]])


def store(name: str, figures: object) -> Path:
    """Write figures with date, command, machine and versions, all of it or nothing."""
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
    unfinished.write_text(json.dumps(record, indent=1) + "\n")
    return unfinished.replace(stored_at(name))
