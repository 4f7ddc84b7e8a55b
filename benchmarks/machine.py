"""Where and with what a figure was measured; stored beside every figure."""

from __future__ import annotations

import datetime
import json
import platform
import shlex
import sys
from pathlib import Path

from powermeans.threads import usable_processors
from powermeans.versions import versions

RESULTS = Path(__file__).parent / "results"


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def store(name: str, figures: object) -> Path:
    """Write figures with date, command, machine and versions to results/NAME.json."""
    module = Path(sys.argv[0]).stem
    record = {
        "date": datetime.date.today().isoformat(),
        "command": shlex.join(["python", "-m", f"benchmarks.{module}", *sys.argv[1:]]),
        "processor": processor(),
        "processors used": usable_processors(),
        "versions": versions(),
        "figures": figures,
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(record, indent=1) + "\n")
    return path
