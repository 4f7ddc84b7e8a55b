"""Computing an item cell by cell; finished cells are kept, so that a run can be interrupted."""

import datetime
import hashlib
import inspect
import json
import math
import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from powermeans.system.atomic_write import atomic_write
from reproduce.item import Cell, Row
from reproduce.results import stored, stored_rows

CACHE = Path(__file__).parents[1] / "build" / "reproduce"

Kept = Mapping[str, Any]
"""What is kept of a finished cell: its rows, seconds, date, and the load of the machine."""


class Provenance(NamedTuple):
    """How many cells there are, when and in how long they were computed, and under which load."""

    n_cells: int
    dates: Sequence[str]
    seconds: float
    loads: Sequence[float]


def compute_all(name, cells, cache, *, is_fresh=False):
    """Return the rows of all cells, computing those that are neither stored nor kept."""
    check_keys(cells)
    if is_fresh:
        shutil.rmtree(cache, ignore_errors=True)
    cache.mkdir(parents=True, exist_ok=True)
    earlier = {} if is_fresh else stored_rows(name, cells)
    rows: list[Row] = []
    finished: list[Kept] = []
    for number, cell in enumerate(cells):
        print(f"\r{name}: cell {number + 1} of {len(cells)}", end="", file=sys.stderr, flush=True)
        key = tuple(map(str, cell.key.values()))
        if key in earlier:
            rows += earlier[key]
        else:
            finished.append(finish(cell, cache))
            rows += [{**cell.key, **row} for row in finished[-1]["rows"]]
    print(file=sys.stderr)
    return rows, provenance_of(name, len(cells), finished)


def provenance_of(name: str, n_cells: int, finished: Sequence[Kept]) -> Provenance:
    """Return that of the cells of this run, and of those that an earlier one has stored."""
    dates = {cell["date"] for cell in finished}
    seconds = math.fsum(cell["seconds"] for cell in finished)
    loads = [cell["load"] for cell in finished]
    if len(finished) < n_cells:
        (line,) = (line for line in stored("items") if line["item"] == name)
        dates |= set(line["dates"].split(" and "))
        seconds += float(line["seconds"])
    return Provenance(n_cells, sorted(dates), seconds, [min(loads), max(loads)] if loads else [])


def check_keys(cells: Sequence[Cell]) -> None:
    """Raise where two cells have the same key."""
    keys = [tuple(sorted(cell.key.items())) for cell in cells]
    if twice := [key for key in keys if keys.count(key) > 1]:
        raise ValueError(f"two cells have the key {dict(twice[0])}: tell them apart")


def finish(cell: Cell, cache: Path) -> Kept:
    """Return what is kept of a cell; compute and keep it where that is nothing.

    A cell is another one once the function that computes it has been changed.
    """
    whole_key = json.dumps([inspect.getsource(cell.compute), dict(cell.key)])
    path = cache / f"{hashlib.sha256(whole_key.encode()).hexdigest()[:24]}.json"
    if not path.is_file():
        begin = time.perf_counter()
        rows = cell.rows()
        record = {
            "rows": [dict(row) for row in rows],
            "seconds": time.perf_counter() - begin,
            "date": datetime.date.today().isoformat(),
            "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else math.nan,
        }
        with atomic_write(path) as file:  # a number of NumPy becomes one of Python
            file.write(json.dumps(record, default=lambda number: number.item()).encode())
    kept: Kept = json.loads(path.read_text(encoding="utf-8"))
    return kept
