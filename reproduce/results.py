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
from types import ModuleType
from typing import Any

from benchmarks import machine
from powermeans.app.report.versions import versions
from powermeans.system.atomic_write import atomic_write
from powermeans.system.threads import usable_processors
from reproduce.cell_store import FinishedCell
from reproduce.item import Aside, Claim, Comparison, Findings, Row, Table
from reproduce.published import value_of

_MOST_BYTES = 1_000_000
# Columns whose texts may look like numbers.
_TEXTS = ("method",)


@dataclass(frozen=True, slots=True)
class Report:
    """All that is said about an item: what its rows show, and how they came to be.

    `loads` are the least and the most of the machine while cells were computed; `changed` says
    which code changed on disk meanwhile; `left_over` why a later run has not replaced this;
    `n_wanted` how many cells a whole run has, if this one was ended before.
    """

    name: str
    title: str
    source: str
    data: str
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
    n_wanted: int = 0


@dataclass(frozen=True, slots=True)
class Provenance:
    """When, where, in how long and by which code of the package cells were computed."""

    dates_of_cells: Sequence[str]
    packages: Sequence[str]
    seconds: float
    processor: str
    n_processors: int
    versions: dict[str, str]
    loads: Sequence[float]

    @classmethod
    def of(cls, cells: Sequence[FinishedCell], earlier: Provenance | None) -> Provenance:
        """Return that of cells computed on this machine, and of those that an earlier run left."""
        if earlier is not None and not cells:
            return earlier
        here = cls(
            dates_of_cells=sorted({cell.date for cell in cells}),
            packages=sorted({cell.package for cell in cells}),
            seconds=sum(cell.seconds for cell in cells),
            processor=machine.processor(),
            n_processors=usable_processors(),
            versions=versions(),
            loads=[min(cell.load for cell in cells), max(cell.load for cell in cells)],
        )
        if earlier is None:
            return here
        loads = [*here.loads, *earlier.loads]
        return dataclasses.replace(
            here,
            dates_of_cells=sorted({*here.dates_of_cells, *earlier.dates_of_cells}),
            packages=sorted({*here.packages, *earlier.packages}),
            processor=_listed_once(earlier.processor, here.processor),
            seconds=here.seconds + earlier.seconds,
            loads=[min(loads), max(loads)],
        )

    @classmethod
    def read(cls, path: Path) -> Provenance | None:
        """Return that of a written report, or None where there is none."""
        if not path.is_file():
            return None
        record = json.loads(path.read_text(encoding="utf-8"))
        return cls(**{name: record[name] for name in cls.__slots__})


def _listed_once(earlier: str, here: str) -> str:
    """Return the names of processors in a sentence, each once."""
    return " and ".join(dict.fromkeys([*earlier.split(" and "), here]))


def report_of(
    name: str,
    module: ModuleType,
    provenance: Provenance,
    findings: Findings,
    pictures: Sequence[Path],
    *,
    n_cells: int,
    n_wanted: int,
    is_quick: bool,
    changed: str = "",
) -> Report:
    """Return the report of a run that has just ended."""
    return Report(
        name=name,
        title=module.TITLE,
        source=module.SOURCE,
        data=module.DATA,
        command=f"python -m reproduce {name}{' --quick' if is_quick else ''}",
        is_quick=is_quick,
        date=datetime.date.today().isoformat(),
        n_cells=n_cells,
        n_wanted=n_wanted,
        pictures=[picture.name for picture in pictures],
        findings=dataclasses.replace(
            findings, claims=[claim.on_data(module.DATA) for claim in findings.claims]
        ),
        changed=changed,
        **{part: getattr(provenance, part) for part in Provenance.__slots__},
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
    """Write rows as CSV in the order of the cells; a long one is packed, as `<name>.csv.gz`."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    written = text.getvalue().encode()
    kinds = folder / f"{name}.csv", folder / f"{name}.csv.gz"
    is_long = len(written) > _MOST_BYTES
    kinds[not is_long].unlink(missing_ok=True)
    return _write(kinds[is_long], gzip.compress(written, mtime=0) if is_long else written)


def read_rows(folder: Path, name: str) -> list[Row]:
    """Return the rows that `write_rows` wrote, without what a row lacks; none without a file."""
    plain, packed = folder / f"{name}.csv", folder / f"{name}.csv.gz"
    if plain.is_file():
        text = plain.read_text(encoding="utf-8")
    elif packed.is_file():
        text = gzip.decompress(packed.read_bytes()).decode()
    else:
        return []
    lines = csv.DictReader(io.StringIO(text, newline=""))
    return [
        {key: text if key in _TEXTS else value_of(text) for key, text in line.items() if text}
        for line in lines
    ]


def _as_findings(record: dict[str, Any]) -> Findings:
    comparisons = [
        Comparison(**{key: value for key, value in written.items() if key != "is_within_noise"})
        for written in record["comparisons"]
    ]
    return Findings(
        tables=[Table(**written) for written in record["tables"]],
        comparisons=comparisons,
        claims=[Claim(**written) for written in record["claims"]],
        asides=[Aside(**written) for written in record["asides"]],
        remarks=record["remarks"],
        in_short=record["in_short"],
    )


def _write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(content)
    return path
