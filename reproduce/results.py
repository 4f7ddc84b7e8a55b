"""What a run leaves: a tidy CSV, pictures, and the findings as JSON; and the way back."""

from __future__ import annotations

import csv
import dataclasses
import datetime
import gzip
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import machine
from powermeans.reporting.versions import versions
from powermeans.system.atomic_write import atomic_write
from powermeans.system.threads import usable_processors
from reproduce.cell_store import FinishedCell
from reproduce.item import Claim, Comparison, Findings, Row, Table

_MOST_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Report:
    """All that is said about an item: what its rows show, and how they came to be.

    `loads` are the least and the most of the machine while cells were computed; `changed` says
    which code changed on disk meanwhile; `left_over` why a later run has not replaced this.
    """

    name: str
    title: str
    source: str
    command: str
    is_quick: bool
    date: str
    dates_of_cells: Sequence[str]
    packages: Sequence[str]
    n_cells: int
    seconds: float
    processor: str
    n_processors: int
    versions: dict[str, str]
    pictures: Sequence[str]
    findings: Findings
    loads: Sequence[float] = ()
    changed: str = ""
    left_over: str = ""


def report_of(
    name: str,
    title: str,
    source: str,
    cells: Sequence[FinishedCell],
    findings: Findings,
    pictures: Sequence[Path],
    *,
    is_quick: bool,
    changed: str = "",
) -> Report:
    """The report of a run that has just ended on this machine."""
    return Report(
        name=name,
        title=title,
        source=source,
        command=f"python -m reproduce {name}{' --quick' if is_quick else ''}",
        is_quick=is_quick,
        date=datetime.date.today().isoformat(),
        dates_of_cells=sorted({cell.date for cell in cells}),
        packages=sorted({cell.package for cell in cells}),
        n_cells=len(cells),
        seconds=sum(cell.seconds for cell in cells),
        processor=machine.processor(),
        n_processors=usable_processors(),
        versions=versions(),
        pictures=[picture.name for picture in pictures],
        findings=findings,
        loads=[min(cell.load for cell in cells), max(cell.load for cell in cells)],
        changed=changed,
    )


def write_report(report: Report, folder: Path) -> Path:
    """Write the findings as `<name>.json`, all of it or nothing."""
    record = dataclasses.asdict(report)
    for written, comparison in zip(
        record["findings"]["comparisons"], report.findings.comparisons, strict=True
    ):
        written["is_within_noise"] = comparison.is_within_noise
    text = json.dumps(record, indent=1, default=float) + "\n"
    return _write(folder / f"{report.name}.json", text.encode())


def read_report(path: Path) -> Report:
    """What `write_report` wrote."""
    record = json.loads(path.read_text(encoding="utf-8"))
    findings = record.pop("findings")
    return Report(**record, findings=_as_findings(findings))


def mark_left_over(path: Path, why: str) -> None:
    """Say in a report of an earlier run, if there is one, why the last run has not replaced it."""
    if not path.is_file():
        return
    try:
        report = read_report(path)
    except (ValueError, KeyError, TypeError):
        path.unlink()
        return
    write_report(dataclasses.replace(report, left_over=why), path.parent)


def write_rows(rows: Sequence[Row], folder: Path, name: str) -> Path:
    """Write rows as CSV, in an order that does not depend on when they were computed.

    A long one is packed, as `<name>.csv.gz`.
    """
    columns = list(dict.fromkeys(column for row in rows for column in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(sorted(rows, key=lambda row: [_rank(row.get(column)) for column in columns]))
    written = text.getvalue().encode()
    kinds = folder / f"{name}.csv", folder / f"{name}.csv.gz"
    is_long = len(written) > _MOST_BYTES
    kinds[not is_long].unlink(missing_ok=True)
    return _write(kinds[is_long], gzip.compress(written, mtime=0) if is_long else written)


def _as_findings(record: dict[str, Any]) -> Findings:
    comparisons = [
        Comparison(**{key: value for key, value in written.items() if key != "is_within_noise"})
        for written in record["comparisons"]
    ]
    return Findings(
        tables=[Table(**written) for written in record["tables"]],
        comparisons=comparisons,
        claims=[Claim(**written) for written in record["claims"]],
        remarks=record["remarks"],
    )


def _rank(value: object) -> tuple[int, float, str]:
    """Numbers by size, then texts, then what is not there."""
    if isinstance(value, int | float):
        return 0, float(value), ""
    return (2, 0.0, "") if value is None else (1, 0.0, str(value))


def _write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(content)
    return path
