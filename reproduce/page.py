"""The page of the docs about what was reproduced, from the results of full runs."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.pages import Page, as_markdown
from reproduce import catalog
from reproduce.as_text import claim_rows, comparison_rows, count_of, table_rows
from reproduce.results import Report, read_report
from reproduce.running import RESULTS

PAGE = Page("reproduction", "python -m reproduce.page")
NAMES = {"the paper": "Xu & Lange 2019", "the presentation": "Class presentation of power k-means"}
"""What the items call two sources in short."""
_YEAR = re.compile(r"\b(19|20)[0-9][0-9]\b")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page; 1 if an item has no results."""
    parser = argparse.ArgumentParser(prog="python -m reproduce.page", description=__doc__)
    parser.add_argument("--results", type=Path, metavar="DIR", default=RESULTS)
    folder = parser.parse_args(arguments).results
    names = catalog.names()
    reports = [read_report(path) for name in names if (path := folder / f"{name}.json").is_file()]
    missing = [name for name in names if name not in {report.name for report in reports}]
    PAGE.write(as_page(reports, missing, folder))
    print(f"{len(reports)} items in {PAGE.path}")
    if missing:
        print(f"error: without results: {', '.join(missing)}", file=sys.stderr)
    return 1 if missing else 0


def as_page(reports: Sequence[Report], missing: Sequence[str], folder: Path) -> str:
    """All that a command writes of the page.

    Parameters
    ----------
    reports : sequence of Report
    missing : sequence of str
        The items that have no results; the page names them.
    folder : Path
        Where the pictures are.

    Returns
    -------
    str
    """
    blocks = [summary(reports, missing), claims(reports)]
    blocks += [section(report, folder) for report in reports]
    return "\n\n".join(block for block in blocks if block)


def summary(reports: Sequence[Report], missing: Sequence[str]) -> str:
    """A line for each item."""
    rows = [["item", "published numbers within noise", "claims", "minutes", "date"]]
    for report in reports:
        found = report.findings
        n_within = sum(comparison.is_within_noise for comparison in found.comparisons)
        counted = f"{n_within} of {len(found.comparisons)}" if found.comparisons else ""
        rows.append(
            [
                f"[{report.name}](#{anchor(report.name)})"
                + " (of an earlier run)" * bool(report.left_over),
                counted,
                verdicts(report),
                f"{report.seconds / 60:.1f}",
                report.date,
            ]
        )
    text = f"### All items\n\n{as_markdown(rows)}"
    if missing:
        text += f"\n\nWithout results so far: {', '.join(missing)}."
    return text


def verdicts(report: Report) -> str:
    """How often each verdict was reached."""
    reached = [claim.verdict for claim in report.findings.claims]
    counts = {verdict: reached.count(verdict) for verdict in dict.fromkeys(sorted(reached))}
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items())


def claims(reports: Iterable[Report]) -> str:
    """Every sentence that was tested, with its verdict."""
    rows: list[list[str]] = [["claim", "source", "verdict", "figure", "item"]]
    for report in reports:
        named = [
            replace(claim, source=named_source(claim.source, report.source))
            for claim in report.findings.claims
        ]
        _, *lines = escaped(claim_rows(named))
        rows += [[*line, f"[{report.name}](#{anchor(report.name)})"] for line in lines]
    return f"### Claims of the sources\n\n{as_markdown(rows, are_numbers=False)}"


def named_source(source: str, of_item: str) -> str:
    """Where a claim stands, with the name of the source, as it is read far from its item.

    Examples
    --------
    >>> from reproduce.page import named_source
    >>> named_source("section 5", "L. Bottou, Y. Bengio, NIPS 7 (1995): sections 3 to 5")
    'L. Bottou, Y. Bengio, NIPS 7 (1995), section 5'
    >>> named_source("the paper, section 4", "The paper, Figure 2")
    'Xu & Lange 2019, section 4'
    """
    for short, name in NAMES.items():
        source = source.replace(short, name)
    is_named = _YEAR.search(source) or any(name in source for name in NAMES.values())
    return source if is_named else f"{of_item.partition(':')[0]}, {source}"


def section(report: Report, folder: Path) -> str:
    """All about one item."""
    found = report.findings
    blocks = [
        f"({anchor(report.name)})=\n### {report.title}",
        f"{report.source}. {origin(report)}",
    ]
    if report.left_over:
        blocks.append(
            f"**Of an earlier run, as in the last one {escaped_text(report.left_over)}.**"
        )
    blocks += [f"![{report.title}]({picture(folder / name)})" for name in report.pictures]
    for table in found.tables:
        note = f"\n\n{table.note}" if table.note else ""
        blocks.append(f"**{table.title}**\n\n{as_markdown(escaped(table_rows(table)))}{note}")
    if found.comparisons:
        rows = comparison_rows(found.comparisons)
        blocks.append(f"**{count_of(found.comparisons)}**\n\n{as_markdown(escaped(rows))}")
    if found.remarks:
        blocks.append("\n".join(f"- {remark}" for remark in found.remarks))
    return "\n\n".join(blocks)


def origin(report: Report) -> str:
    """Command, dates, machine and versions."""
    computed = " and ".join(report.dates_of_cells)
    many = len(report.packages) > 1
    load = ""
    if report.loads and min(report.loads) >= 0:
        load = f", on which {' to '.join(f'{n:.1f}' for n in report.loads)} processes were at work"
    changed = f" The code of {report.changed} changed on disk meanwhile." if report.changed else ""
    code = f"code{'s' if many else ''} {', '.join(report.packages)} of powermeans"
    return (
        f"`{report.command}`: {report.n_cells} cells computed on {computed} in "
        f"{report.seconds / 60:.1f} minutes, put together on {report.date}, on {report.processor} "
        f"with {report.n_processors} processors{load}; {code} "
        f"{report.versions['powermeans']}, "
        f"Python {report.versions['python']}, NumPy {report.versions['numpy']}, "
        f"scikit-learn {report.versions['scikit-learn']}.{changed}"
    )


def anchor(name: str) -> str:
    """Where the section of an item can be linked to."""
    return f"reproduce-{name}"


def picture(path: Path) -> str:
    """The path of a picture as seen from the page."""
    return Path(os.path.relpath(path, PAGE.path.parent)).as_posix()


def escaped(rows: list[list[str]]) -> list[list[str]]:
    """Cells in which Markdown sees no signs of its own."""
    return [[escaped_text(cell) for cell in row] for row in rows]


def escaped_text(text: str) -> str:
    """The text with the signs of Markdown taken as they are."""
    signs: dict[str, str | int | None] = {
        "|": "\\|",
        "*": "\\*",
        "\n": " ",
        "<": "&lt;",
        "_": "\\_",
        "$": "\\$",
    }
    return text.translate(str.maketrans(signs))


if __name__ == "__main__":
    sys.exit(main())
