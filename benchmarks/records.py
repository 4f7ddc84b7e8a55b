"""Writes the records of the benchmark problems: the lowest sums of squares known, and bounds.

They stand in records.csv beside this file, a line for each problem. This command lowers them by the
stored run of benchmarks.quality, and raises the bounds by that of benchmarks.optimality. `python -m
benchmarks.quality --method module:Class` compares a class with them.
"""

from __future__ import annotations

import csv
import dataclasses
from dataclasses import dataclass
from pathlib import Path

from benchmarks.machine import read
from benchmarks.pages import Page, as_markdown
from benchmarks.quality_report import Record
from powermeans.optimality.gap import CLOSED

FILE = Path(__file__).with_name("records.csv")
PAGE = Page("project/records", "python -m benchmarks.records")
# A fit that is no higher than this above a record has reached it.
SAME = 1e-9
# Shares of the gap for which the page counts the problems.
SHARES = (1e-3, 0.01, 0.05)


@dataclass(frozen=True)
class Known:
    """What is known of a problem: some rows of a set of points, and a number of clusters."""

    data: str
    n_clusters: int
    rows: str
    n_points: int | None
    n_features: int | None
    lowest: float
    reached_by: str
    bound: float | None

    @property
    def problem(self) -> str:
        return f"{self.data}/{self.n_clusters}"

    @property
    def is_drawn(self) -> bool:
        return self.rows == "drawn"

    @property
    def gap(self) -> float | None:
        """How far the lowest is above the bound at most, as a share; never below zero."""
        return None if self.bound is None else max(0.0, self.lowest / self.bound - 1)


def all_known() -> dict[str, Known]:
    """Return the records by problem, in their order."""
    with FILE.open(encoding="utf-8", newline="") as file:
        lines = [*csv.DictReader(file)]
    found = [
        Known(
            line["data"],
            int(line["n_clusters"]),
            line["rows"],
            int(line["n_points"]) if line["n_points"] else None,
            int(line["n_features"]) if line["n_features"] else None,
            float(line["lowest"]),
            line["reached_by"],
            float(line["bound"]) if line["bound"] else None,
        )
        for line in lines
    ]
    return {one.problem: one for one in found}


def updated(known: Known, run: Record, bounds: dict[str, float]) -> Known:
    """Return a record with what the stored runs add to it."""
    about = run.problems.get(known.problem)
    if about is None:
        return known
    lowest = min(known.lowest, run.lowest_found(known.problem))
    reached = [
        method
        for method in run.methods
        if any(cell["inertia"] <= lowest * (1 + SAME) for cell in run.good(known.problem, method))
    ]
    bound = max(known.bound or 0.0, bounds.get(known.problem, 0.0))
    return dataclasses.replace(
        known,
        n_points=about["n_points"],
        n_features=about["n_features"],
        lowest=lowest,
        reached_by=" ".join(sorted(reached)) or known.reached_by,
        bound=min(lowest, bound) or None,
    )


def write(records: list[Known]) -> None:
    with FILE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in dataclasses.fields(Known)])
        writer.writerows(dataclasses.astuple(one) for one in records)


def as_page(records: list[Known]) -> str:
    rows = [["problem", "points", "features", "lowest known", "proved bound", "gap at most"]]
    for one in records:
        gap = "" if one.gap is None else f"{100 * one.gap:.2g} %" if one.gap > CLOSED else "0 %"
        bound = "" if one.bound is None else f"{one.bound:.10g}"
        sizes = [f"{n:,}" if n else "" for n in (one.n_points, one.n_features)]
        rows.append([one.problem, *sizes, f"{one.lowest:.10g}", bound, gap])
    gaps = [one.gap for one in records if one.gap is not None]
    counts = [f"{sum(gap <= CLOSED for gap in gaps)} are proved to be optimal"]
    counts += [f"{sum(gap <= most for gap in gaps)} within {100 * most:g} %" for most in SHARES]
    return f"Of {len(records)} problems, {', '.join(counts)}.\n\n{as_markdown(rows)}"


def main() -> None:
    """Update the file and the page from the stored runs."""
    figures = read("quality", "quality")["figures"]
    run = Record(figures["problems"], figures["cells"])
    bounds: dict[str, float] = {}
    for cell in read("optimality", "optimality")["figures"]["count"]["cells"]:
        bound = cell["inertia"] / (1 + cell["gap"])
        bounds[cell["name"]] = max(bound, bounds.get(cell["name"], 0.0))
    records = [updated(one, run, bounds) for one in all_known().values()]
    write(records)
    PAGE.write(as_page(records))
    print(f"{FILE}\n{PAGE.path}")


if __name__ == "__main__":
    main()
