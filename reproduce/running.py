"""Computing an item: its cells one by one, then what their rows show."""

from __future__ import annotations

import logging
import math
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.machine import digest
from reproduce import catalog
from reproduce.cell_store import CellStore, FinishedCell
from reproduce.code_version import code_version
from reproduce.item import Cell, Row
from reproduce.progress import Progress
from reproduce.results import (
    Provenance,
    Report,
    read_rows,
    report_of,
    write_report,
    write_rows,
)

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"
CACHE = ROOT / "build" / "reproduce"

_log = logging.getLogger("reproduce")


@dataclass(frozen=True, slots=True)
class Code:
    """Which code a process runs: what was on disk when it began.

    Attributes
    ----------
    item : str
        Of what computes the cells of an item; see `code_version`.
    package : str
        Of powermeans.
    """

    item: str
    package: str

    @classmethod
    def on_disk(cls, name: str) -> Code:
        """What is there now."""
        return cls(code_version(catalog.module_name(name)), digest("powermeans"))

    def changed(self, name: str) -> str:
        """Which of it has been changed on disk since; nothing if none."""
        now = Code.on_disk(name)
        parts = {"the item": now.item != self.item, "powermeans": now.package != self.package}
        return " and ".join(part for part, is_another in parts.items() if is_another)


@dataclass(frozen=True, slots=True)
class Folders:
    """Where finished cells are kept, and where results go.

    Quick results have a folder of their own, so that they never take the place of full ones.
    """

    cache: Path = CACHE
    results: Path | None = None

    def cells(self, name: str, *, is_quick: bool) -> Path:
        """Where the cells of an item are kept."""
        return self.cache / name / ("quick" if is_quick else "full")

    def written(self, *, is_quick: bool) -> Path:
        """Where results go."""
        if not is_quick:
            return self.results or RESULTS
        return self.results / "quick" if self.results else self.cache / "quick-results"

    def check(self, *, is_quick: bool) -> None:
        """Whether both can be written, before hours are spent; OSError if not."""
        for folder in (self.cache, self.written(is_quick=is_quick)):
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass


@dataclass(frozen=True, slots=True)
class Pace:
    """Which finished cells a run takes over, and how long it computes others.

    Attributes
    ----------
    is_fresh : bool
        Whether it computes cells again that are kept in the cache.
    takes_stored : bool
        Whether the rows beside the results count as finished cells.
    seconds : float
        After so many seconds it begins no other cell, and shows what is finished.
    """

    is_fresh: bool = False
    takes_stored: bool = False
    seconds: float = math.inf


def run(
    name: str,
    module: ModuleType,
    code: Code,
    folders: Folders,
    *,
    is_quick: bool,
    pace: Pace = Pace(),
) -> Report:
    """Compute an item and write its results.

    Parameters
    ----------
    name : str
    module : module
        See `reproduce.item.Item`.
    code : Code
        What it is of: as it was on disk before the module was imported.
    folders : Folders
    is_quick : bool
        Whether to compute a small part only.
    pace : Pace

    Returns
    -------
    Report
    """
    kept = folders.cells(name, is_quick=is_quick)
    if pace.is_fresh:
        shutil.rmtree(kept, ignore_errors=True)
    folder = folders.written(is_quick=is_quick)
    cells = module.cells(is_quick)
    check_keys(cells)
    stored = rows_by_cell(cells, read_rows(folder, name)) if pace.takes_stored else {}
    finished = finish(
        name,
        {number: cell for number, cell in enumerate(cells) if number not in stored},
        CellStore(kept, code.item, code.package),
        pace.seconds,
    )
    changed = code.changed(name)
    if changed:
        _log.warning("%s: the code of %s changed on disk while this ran", name, changed)
    earlier = Provenance.read(folder / f"{name}.json") if stored else None
    return present(
        name,
        module,
        merged(cells, stored | {number: cell.rows for number, cell in finished.items()}),
        Provenance.of(list(finished.values()), earlier),
        folder,
        n_cells=len(stored) + len(finished),
        n_wanted=len(cells),
        is_quick=is_quick,
        changed=changed,
    )


def rows_by_cell(cells: Sequence[Cell], rows: Sequence[Row]) -> dict[int, list[Row]]:
    """Return the rows of each cell that has some, by the number of the cell and without its key.

    Texts are compared, since a CSV does not tell the text of a number from the number.
    """
    kinds = sorted({tuple(cell.key) for cell in cells}, key=len, reverse=True)
    found: dict[tuple[tuple[str, str], ...], list[Row]] = {}
    for row in rows:
        kind = next((kind for kind in kinds if all(name in row for name in kind)), ())
        found.setdefault(tuple((name, str(row[name])) for name in kind), []).append(row)
    by_number = {}
    for number, cell in enumerate(cells):
        of_cell = found.get(tuple((name, str(value)) for name, value in cell.key.items()))
        if of_cell:
            by_number[number] = [
                {name: value for name, value in row.items() if name not in cell.key}
                for row in of_cell
            ]
    return by_number


def finish(
    name: str, cells: Mapping[int, Cell], store: CellStore, seconds: float = math.inf
) -> dict[int, FinishedCell]:
    """Return the finished cells, those that were not yet there computed and kept at once.

    After so many seconds no other cell is begun.
    """
    finished = {
        number: done for number, cell in cells.items() if (done := store.read(cell.key)) is not None
    }
    progress = Progress(name, len(cells), len(finished))
    begin = time.perf_counter()
    try:
        for number, cell in cells.items():
            if number not in finished and time.perf_counter() - begin < seconds:
                finished[number] = compute(cell, store, progress)
    finally:
        progress.close()
    return dict(sorted(finished.items()))


def compute(cell: Cell, store: CellStore, progress: Progress) -> FinishedCell:
    """Compute a cell and keep what it gives."""
    begin = time.perf_counter()
    rows = cell.compute()
    done = store.write(cell.key, rows, time.perf_counter() - begin)
    progress.cell_done()
    return done


def merged(cells: Sequence[Cell], rows: Mapping[int, Sequence[Row]]) -> list[Row]:
    """Return the rows of all finished cells, each with the key of its cell before it."""
    return [
        {**cell.key, **row} for number, cell in enumerate(cells) for row in rows.get(number, ())
    ]


def present(
    name: str,
    module: ModuleType,
    rows: Sequence[Row],
    provenance: Provenance,
    folder: Path,
    **of_run: Any,
) -> Report:
    """Write pictures, rows and findings, once all that can fail has been found."""
    folder.mkdir(parents=True, exist_ok=True)
    findings = module.findings(rows)
    pictures = module.draw(rows, folder)
    report = report_of(name, module, provenance, findings, pictures, **of_run)
    write_rows(rows, folder, name)
    write_report(report, folder)
    return report


def check_keys(cells: Sequence[Cell]) -> None:
    """Each cell has a key of its own."""
    keys = [tuple(sorted(cell.key.items())) for cell in cells]
    twice = [key for key in keys if keys.count(key) > 1]
    if twice:
        raise ValueError(f"two cells have the key {dict(twice[0])}: tell them apart")
