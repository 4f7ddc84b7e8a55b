"""Computing an item: its cells one by one, then what their rows show."""

from __future__ import annotations

import logging
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from benchmarks.peers import digest
from reproduce import catalog
from reproduce.cell_store import CellStore, FinishedCell
from reproduce.code_version import code_version
from reproduce.item import Cell, Row
from reproduce.progress import Progress
from reproduce.results import Report, report_of, write_report, write_rows

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


def run(
    name: str,
    module: ModuleType,
    code: Code,
    folders: Folders,
    *,
    is_quick: bool,
    is_fresh: bool = False,
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
    is_fresh : bool
        Whether to compute finished cells again.

    Returns
    -------
    Report
    """
    kept = folders.cells(name, is_quick=is_quick)
    if is_fresh:
        shutil.rmtree(kept, ignore_errors=True)
    store = CellStore(kept, code.item, code.package)
    cells = module.cells(is_quick)
    finished = finish(name, cells, store)
    rows = merged(cells, finished)
    changed = code.changed(name)
    if changed:
        _log.warning("%s: the code of %s changed on disk while this ran", name, changed)
    folder = folders.written(is_quick=is_quick)
    return present(name, module, rows, finished, folder, is_quick, changed)


def finish(name: str, cells: Sequence[Cell], store: CellStore) -> list[FinishedCell]:
    """The rows of all cells, those that were not yet there computed and kept at once."""
    check_keys(cells)
    finished = [store.read(cell.key) for cell in cells]
    progress = Progress(name, len(cells), sum(cell is not None for cell in finished))
    try:
        return [
            done if done is not None else compute(cell, store, progress)
            for cell, done in zip(cells, finished, strict=True)
        ]
    finally:
        progress.close()


def compute(cell: Cell, store: CellStore, progress: Progress) -> FinishedCell:
    """Compute a cell and keep what it gives."""
    begin = time.perf_counter()
    rows = cell.compute()
    done = store.write(cell.key, rows, time.perf_counter() - begin)
    progress.cell_done()
    return done


def merged(cells: Sequence[Cell], finished: Sequence[FinishedCell]) -> list[Row]:
    """The rows of all cells, each with the key of its cell before it."""
    return [
        {**cell.key, **row} for cell, done in zip(cells, finished, strict=True) for row in done.rows
    ]


def present(
    name: str,
    module: ModuleType,
    rows: Sequence[Row],
    finished: Sequence[FinishedCell],
    folder: Path,
    is_quick: bool,
    changed: str,
) -> Report:
    """Write pictures, rows and findings, once all that can fail has been found."""
    folder.mkdir(parents=True, exist_ok=True)
    findings = module.findings(rows)
    pictures = module.draw(rows, folder)
    report = report_of(
        name,
        module.TITLE,
        module.SOURCE,
        finished,
        findings,
        pictures,
        is_quick=is_quick,
        changed=changed,
    )
    write_rows(rows, folder, name)
    write_report(report, folder)
    return report


def check_keys(cells: Sequence[Cell]) -> None:
    """Each cell has a key of its own."""
    keys = [tuple(sorted(cell.key.items())) for cell in cells]
    twice = [key for key in keys if keys.count(key) > 1]
    if twice:
        raise ValueError(f"two cells have the key {dict(twice[0])}: tell them apart")
