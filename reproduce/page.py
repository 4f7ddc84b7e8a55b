"""The pages of the docs about what was reproduced, from the results of full runs."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, get_args

from benchmarks.pages import Page, as_markdown
from reproduce import catalog
from reproduce.as_text import comparison_rows, count_of, table_rows
from reproduce.item import LIMITED_DATA, Aside, Claim, Verdict
from reproduce.results import Report, read_report
from reproduce.running import RESULTS

PAGE = Page("reproduction", "python -m reproduce.page")
EXCEPTIONS = "claims-that-do-not-plainly-hold"
NAMES = {"the paper": "Xu & Lange 2019", "the presentation": "Class presentation of power k-means"}
"""What the items call two sources in short."""
_START = re.compile(r" \(power, s0 = (-\d+)\)$")
# No initial of a name ends a sentence.
_END_OF_SENTENCE = re.compile(r"(?<=[a-z0-9)%]\.) (?=[A-Z])")
_YEAR = re.compile(r"\b(19|20)[0-9][0-9]\b")


VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


class Headline(NamedTuple):
    """A claim that the front page names, by how its text begins, and what it says in short."""

    item: str
    begins: str
    in_short: str


HEADLINES = (
    Headline("claims-of-power-k-means", "Each step lowers f_s", "the objective falls in each step"),
    Headline("figure1", "Moving along the smoothed", "annealing guides towards the global minimum"),
    Headline("table1-and-2", "KHM is worse than Lloyd in high", "KHM is worse than Lloyd in 10 "
             "dimensions and more"),
    Headline("table1-and-2", "Power k-means adds to", "annealing adds to good seeds"),
    Headline("table3", "By quantization error", "the order of the errors in Table 3"),
    Headline("claims-of-power-k-means", "Each step lowers the k-means", "each step lowers the "
             "k-means objective"),
    Headline("claims-of-power-means", "Memberships and weighing", "weights and memberships are "
             "those of KHM with p = -2s"),
    Headline("table1-and-2", "The tables were made with", "Tables 1 and 2 have k-means++ seeds"),
    Headline("table1-and-2", "Table 1 has the root", "Table 1 has squared distances"),
    Headline("table1-and-2", "KHM is slightly worse", "KHM is worse than Lloyd in the plane"),
    Headline("table1-and-2", "Both KHM and Lloyd", "Lloyd and KHM break down as "
             "the dimension grows"),
    Headline("birch-and-mnist", "Power k-means converges", "40 iterations on MNIST"),
    Headline("birch-and-mnist", "On MNIST it takes", "half of Lloyd's time on MNIST"),
    Headline("geometric-acceleration", "Geometric acceleration", "bounds make sweeps faster"),
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pages; items without results are not tested."""
    parser = argparse.ArgumentParser(prog="python -m reproduce.page", description=__doc__)
    parser.add_argument("--results", type=Path, metavar="DIR", default=RESULTS)
    folder = parser.parse_args(arguments).results
    names = catalog.names()
    reports = [read_report(path) for name in names if (path := folder / f"{name}.json").is_file()]
    missing = [name for name in names if name not in {report.name for report in reports}]
    write_pages(reports, missing, folder)
    print(f"{len(reports)} items in {PAGE.path} and beside it")
    if missing:
        print(f"not tested, without results: {', '.join(missing)}", file=sys.stderr)
    return 0


def write_pages(reports: Sequence[Report], missing: Sequence[str], folder: Path) -> None:
    """Write the front page, one of exceptions and one for each item; remove all others there."""
    PAGE.write(front_page(reports, missing))
    of_items = PAGE.path.with_suffix("")
    of_items.mkdir(exist_ok=True)
    for path in of_items.glob("*.md"):
        path.unlink()
    (of_items / f"{EXCEPTIONS}.md").write_text(exceptions(reports), encoding="utf-8")
    for report in reports:
        (of_items / f"{report.name}.md").write_text(item_page(report, folder), encoding="utf-8")


def front_page(reports: Sequence[Report], missing: Sequence[str]) -> str:
    """Return all that a command writes of the front page."""
    blocks = [in_short(reports), all_items(reports, missing)]
    names = [EXCEPTIONS, *(report.name for report in reports)]
    pages = "\n".join(f"reproduction/{name}" for name in names)
    blocks.append(f"```{{toctree}}\n:hidden:\n\n{pages}\n```")
    return "\n\n".join(block for block in blocks if block)


def in_short(reports: Sequence[Report]) -> str:
    """Return what holds, what does not, what is ours to blame and how long it all took."""
    claims = [claim for report in reports for claim in report.findings.claims]
    counts = {verdict: sum(claim.verdict == verdict for claim in claims) for verdict in VERDICTS}
    n_open = counts["not decidable"] + counts["not tested"]
    lines = [
        f"- **Holds**: {counts['holds']} of {len(claims)} claims, such as: "
        f"{headlines(reports, 'holds')}.",
        f"- **Does not hold**: {counts['does not hold']}, such as: "
        f"{headlines(reports, 'does not hold')}.",
        f"- **No difference** where one was published: {counts['no difference']}. "
        f"{capital(headlines(reports, 'no difference'))}.",
        f"- **Depends**: {counts['depends']}, such as: {headlines(reports, 'depends')}.",
        f"- **Open**: {n_open}. {blame(reports)}",
    ]
    lines += [f"- {report.findings.in_short}" for report in reports if report.findings.in_short]
    if reports:
        lines.append(f"- **All of it** took {computing(reports)}")
    return "\n".join(lines)


def computing(reports: Sequence[Report]) -> str:
    """Return how long the cells of all items took together, and when they were computed."""
    hours = sum(report.seconds for report in reports) / 3600
    days = sorted(day for report in reports for day in report.dates_of_cells)
    dates = " to ".join(dict.fromkeys([days[0], days[-1]]))
    processors = " or ".join(sorted({str(report.n_processors) for report in reports}))
    return (
        f"{hours:.1f} hours, from {dates}, on {processors} processors that other work shared. "
        f"[Every claim that does not plainly hold]({link(EXCEPTIONS)}) is listed with its verdict."
    )


def headlines(reports: Sequence[Report], verdict: Verdict) -> str:
    """Return the claims with this verdict that the front page names, with links."""
    said = []
    for item, begins, words in HEADLINES:
        for report in reports:
            found = [c for c in report.findings.claims if c.text.startswith(begins)]
            if report.name == item and found and found[0].verdict == verdict:
                on = f" (on {found[0].on})" if verdict == "depends" else ""
                said.append(f"[{words}]({link(item)}){escaped_text(on)}")
    return "; ".join(said) or "none of those named here"


def blame(reports: Sequence[Report]) -> str:
    """Return how many claims have data that are less than those of the source, or other ones."""
    limited = [
        (report.name, claim.data)
        for report in reports
        for claim in report.findings.claims
        if claim.data.partition(":")[0] in LIMITED_DATA
    ]
    if not limited:
        return ""
    said = (
        f"[{name}]({link(name)}) has {with_article(data)}" for name, data in dict(limited).items()
    )
    return (
        f"Of these, {len(limited)} are ours to blame, as our data cannot decide: "
        f"{'; '.join(said)}. The others are too close to call, or were not tested."
    )


def with_article(data: str) -> str:
    """Return a kind of data as part of a sentence.

    Examples
    --------
    >>> with_article("part: 5 of 7 rows"), with_article("our layout: no means are named")
    ('a part (5 of 7 rows)', 'a layout of ours (no means are named)')
    """
    kind, _, more = data.partition(": ")
    words = {"part": "a part", "stand-in": "stand-ins", "our layout": "a layout of ours"}[kind]
    return f"{words} ({more})" if more else words


def data_in_words(data: str) -> str:
    """Return which data were used, and more about them in parentheses.

    Examples
    --------
    >>> data_in_words("real"), data_in_words("real: two photographs")
    ('real', 'real (two photographs)')
    """
    kind, _, more = data.partition(": ")
    return f"{kind} ({more})" if more else kind


def capital(text: str) -> str:
    """Return the text as a sentence begins, also within the brackets of a link."""
    place = 1 if text.startswith("[") else 0
    if not text[place + 1 : place + 2].isalpha():  # a formula, such as d = 2
        return text
    return text[:place] + text[place : place + 1].upper() + text[place + 1 :]


def all_items(reports: Sequence[Report], missing: Sequence[str]) -> str:
    """Return a line for each item."""
    rows = [["item", "data", "numbers within noise", "claims", "minutes", "computed"]]
    for report in reports:
        found = report.findings.comparisons
        n_within = sum(comparison.is_within_noise for comparison in found)
        rows.append(
            [
                f"[{report.name}]({link(report.name)})"
                + " (of an earlier run)" * bool(report.left_over),
                escaped_text(data_in_words(report.data)),
                f"{n_within} of {len(found)}" if found else "",
                verdicts(report),
                f"{report.seconds / 60:.1f}",
                computed_on(report),
            ]
        )
    text = f"## All items\n\n{as_markdown(rows, are_numbers=False)}"
    if missing:
        text += f"\n\nNot tested, as they have no results so far: {', '.join(missing)}."
    return text


def verdicts(report: Report) -> str:
    """Return how often each verdict was reached."""
    reached = [claim.verdict for claim in report.findings.claims]
    return ", ".join(f"{n} {verdict}" for verdict in VERDICTS if (n := reached.count(verdict)))


def exceptions(reports: Iterable[Report]) -> str:
    """Return the page of every claim that does not plainly hold, by verdict, without figures."""
    reports = list(reports)
    sections = [
        f"## {capital(verdict)}\n\n{as_markdown(rows, are_numbers=False)}"
        for verdict in VERDICTS
        if verdict != "holds" and len(rows := rows_of(reports, verdict)) > 1
    ]
    return (
        f"<!-- written by: {PAGE.command} -->\n\n# Claims that do not plainly hold\n\n"
        "The figures are on the pages of the items, and the "
        "[front page](../reproduction.md#how-to-read-it) says what each verdict means.\n\n"
        + "\n\n".join(sections)
        + "\n"
    )


def rows_of(reports: Iterable[Report], verdict: Verdict) -> list[list[str]]:
    """Return a line for each claim with this verdict, one for those that differ by the start."""
    starts: dict[tuple[str, ...], list[str]] = {}
    for report in reports:
        for claim in report.findings.claims:
            if claim.verdict == verdict:
                text, start = without_start(claim.text)
                is_on = verdict == "depends"
                rests_on = claim.in_words.removeprefix("depends on ") if is_on else claim.sample
                source = named_source(claim.source, report.source)
                cells = [escaped_text(part) for part in (text, source, rests_on)]
                line = *cells, f"[{report.name}]({report.name}.md)"
                starts.setdefault(line, []).append(start)
    head = ["claim", "source", "depends on" if verdict == "depends" else "rests on", "item"]
    rows = [head]
    for (text, *others), of_line in starts.items():
        of_starts = f" (power, s0 = {', '.join(of_line)})" if of_line[0] else ""
        rows.append([f"{text}{of_starts}", *others])
    if not any(row[2] for row in rows[1:]):
        rows = [[*row[:2], row[3]] for row in rows]
    return rows


def without_start(text: str) -> tuple[str, str]:
    """Return a claim without the first power in parentheses at its end, and that power.

    Examples
    --------
    >>> without_start("It is better (power, s0 = -3)."), without_start("It is best.")
    (('It is better', '-3'), ('It is best', ''))
    """
    text = text.rstrip(".")
    found = _START.search(text)
    return (text[: found.start()], found[1]) if found else (text, "")


def link(name: str) -> str:
    """Return the address of an item's page, seen from the front page."""
    return f"reproduction/{name}.md"


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


def item_page(report: Report, folder: Path) -> str:
    """Return the page about one item."""
    found = report.findings
    blocks = [
        f"<!-- written by: {PAGE.command} -->\n\n# {report.title}",
        f"{escaped_text(report.source)}. Data: {escaped_text(data_in_words(report.data))}.",
    ]
    if report.left_over:
        blocks.append(
            f"**Of an earlier run, as in the last one {escaped_text(report.left_over)}.**"
        )
    blocks += list_of("Claims", (claim_line(claim, report) for claim in found.claims))
    blocks += list_of("Questions, and what is not judged", map(aside_line, found.asides))
    blocks += list_of("Remarks", (escaped_text(remark) for remark in found.remarks))
    if report.pictures or found.tables or found.comparisons:
        blocks.append("## Figures and tables")
    blocks += [f"![{report.title}]({picture(folder / name)})" for name in report.pictures]
    for table in found.tables:
        note = f"\n\n{escaped_text(table.note)}" if table.note else ""
        blocks.append(
            f"**{escaped_text(table.title)}**\n\n{as_markdown(escaped(table_rows(table)))}{note}"
        )
    if found.comparisons:
        rows = comparison_rows(found.comparisons)
        blocks.append(f"**{count_of(found.comparisons)}**\n\n{as_markdown(escaped(rows))}")
    blocks.append(f"## How it was computed\n\n{origin(report)}")
    return "\n\n".join(blocks) + "\n"


def list_of(title: str, lines: Iterable[str]) -> list[str]:
    """Return a heading and a list under it, or nothing."""
    listed = [f"- {line}" for line in lines]
    return [f"## {title}", "\n".join(listed)] if listed else []


def claim_line(claim: Claim, report: Report) -> str:
    """Return a claim with its verdict first, and below it a line for each sentence on figures."""
    is_other = claim.data and claim.data != report.data
    other = f" Data: {data_in_words(claim.data)}." if is_other else ""
    text = claim.text.rstrip(".")
    sample = f" ({claim.sample})" if claim.sample else ""
    verdict = capital(escaped_text(claim.in_words.removesuffix(sample)))
    figures = _END_OF_SENTENCE.split(capital(claim.figure).removesuffix("."))
    return (
        f"**{verdict}**{escaped_text(sample)}: {escaped_text(text)} "
        f"(*{escaped_text(claim.source)}*).{escaped_text(other)}"
        + "".join(
            f"\n  - {escaped_text(sentence).removesuffix('.')}." for sentence in figures if sentence
        )
    )


def aside_line(aside: Aside) -> str:
    """Return a sentence that has no verdict, and what there is to say of it."""
    kind = "" if aside.kind == "question" else "Not judged: "
    return (
        f"{kind}{escaped_text(aside.text)} (*{escaped_text(aside.source)}*) "
        f"{escaped_text(aside.said)}"
    )


def origin(report: Report) -> str:
    """Command, dates, machine and versions."""
    many = len(report.packages) > 1
    part = f" of {report.n_wanted}" if report.n_wanted > report.n_cells else ""
    load = ""
    if report.loads and min(report.loads) >= 0:
        load = f", on which {' to '.join(f'{n:.1f}' for n in report.loads)} processes were at work"
    changed = f" The code of {report.changed} changed on disk meanwhile." if report.changed else ""
    code = f"code{'s' if many else ''} {', '.join(report.packages)} of powermeans"
    return (
        f"`{report.command}`: {report.n_cells} cells{part} computed on {computed_on(report)} in "
        f"{report.seconds / 60:.1f} minutes, put together on {report.date}, on {report.processor} "
        f"with {report.n_processors} processors{load}; {code} "
        f"{report.versions['powermeans']}, "
        f"Python {report.versions['python']}, NumPy {report.versions['numpy']}, "
        f"scikit-learn {report.versions['scikit-learn']}.{changed}"
    )


def computed_on(report: Report) -> str:
    """Return the dates on which its cells were computed, which presenting again does not change."""
    return " and ".join(report.dates_of_cells)


def picture(path: Path) -> str:
    """The path of a picture as seen from the page of an item."""
    return Path(os.path.relpath(path, PAGE.path.with_suffix(""))).as_posix()


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
