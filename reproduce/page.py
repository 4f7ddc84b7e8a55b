"""The pages of the docs about what was reproduced: fifteen lines and a picture, and the tables.

`python -m reproduce.page` writes them from `reproduce/results`, where full runs put their findings.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from types import ModuleType
from typing import Any

from benchmarks.pages import Page, as_markdown
from powermeans.system.threads import usable_processors
from powermeans.versions import versions
from reproduce.item import VERDICTS, Claim, Comparison, Findings, Table, Value
from reproduce.results import (
    replace_lines,
    store_tables,
    stored,
    stored_claims,
    stored_tables,
)
from reproduce.running import Provenance

FRONT = Page("project/reproduction", "python -m reproduce.page")
TABLES = Page("project/reproduction/tables", FRONT.command)
FIRST_STEP = Page("project/k_means_first", FRONT.command)
N_LINES = 15
NAMES = {"the paper": "Xu & Lange 2019", "the presentation": "Class presentation of power k-means"}
"""What the items call two sources in short."""
_YEAR = re.compile(r"\b(19|20)[0-9][0-9]\b")
_SIGNS = str.maketrans({"|": r"\|", "*": r"\*", "\n": " ", "<": "&lt;", "_": r"\_", "$": r"\$"})

Item = Mapping[str, str]
"""A line of `items.csv`."""
Claims = Mapping[str, Sequence[Claim]]
"""Those of each item."""
Escape = Callable[[str], str]
"""What takes the signs of Markdown as they are, or leaves a text alone, for a terminal."""


def main() -> None:
    """Write all that a command writes of these pages."""
    items, claims = stored("items"), stored_claims()
    FRONT.write("\n".join(f"- {line}" for line in front_lines(items, claims)))
    TABLES.write(all_tables(items, claims, stored_tables()))
    FIRST_STEP.write(first_step())


def store(name: str, module: ModuleType, findings: Findings, provenance: Provenance) -> None:
    """Put what the pages say of an item in place of what an earlier run has said."""
    item = {
        "source": module.SOURCE,
        "data": module.DATA,
        "within": sum(comparison.is_within_noise for comparison in findings.comparisons),
        "compared": len(findings.comparisons),
        "seconds": round(provenance.seconds),
        "dates": " and ".join(provenance.dates),
        "processors": usable_processors(),
        "made_with": ", ".join(f"{what} {version}" for what, version in versions().items()),
        "in_short": findings.in_short,
    }
    replace_lines("items", name, [item])
    replace_lines("claims", name, [asdict(claim) for claim in findings.claims])
    store_tables(name, [table for table in findings.tables if table.is_published])


# The front page.


def front_lines(items: Sequence[Item], claims: Claims) -> list[str]:
    """Return the counts, what items and claims say in short, what is open, and the time."""
    reached = Counter(claim.verdict for of_item in claims.values() for claim in of_item)
    counts = ", ".join(f"{verdict} ({reached[verdict]})" for verdict in VERDICTS)
    lines = [
        f"**{reached.total()} claims** can be checked by a program. Verdicts, with the number of "
        f"claims: {counts}. "
        "[All claims with their figures](reproduction/tables.md#claims).",
        *(item["in_short"] for item in items if item["in_short"]),
        *headlines(claims),
        f"**Open**: {'; '.join(open_ones(claims))}.",
        f"**Everything** took {computing(items)}.",
    ]
    if len(lines) > N_LINES:
        raise ValueError(f"the front page has {len(lines)} lines: keep {N_LINES} of them in short")
    return lines


def headlines(claims: Claims) -> list[str]:
    """Return a line for each claim that the front page names, by verdict."""
    named = [claim for of_item in claims.values() for claim in of_item if claim.in_short]
    named.sort(key=lambda claim: VERDICTS.index(claim.verdict))
    return [f"**{capital(escaped(claim.in_words))}**: {claim.in_short}." for claim in named]


def open_ones(claims: Claims) -> list[str]:
    """Return how many claims of each item are open, and what would decide them."""
    found: Counter[tuple[str, str]] = Counter()
    for item, of_item in claims.items():
        found.update((item, claim.until) for claim in of_item if claim.verdict == "open")
    return [f"{n} of {item}, needing {what}" for (item, what), n in found.items()] or ["none"]


def computing(items: Sequence[Item]) -> str:
    """Return how long the cells of all items took together, and when they were computed."""
    hours = math.fsum(float(item["seconds"]) for item in items) / 3600
    days = sorted(day for item in items for day in item["dates"].split(" and "))
    processors = " or ".join(sorted({item["processors"] for item in items}))
    return (
        f"{hours:.1f} hours, from {' to '.join(dict.fromkeys([days[0], days[-1]]))}, on "
        f"{processors} processors shared with other work"
    )


# The page of tables.


def all_tables(items: Sequence[Item], claims: Claims, tables: Mapping[str, Sequence[Table]]) -> str:
    """Return the published numbers next to ours (those of the paper first), claims and items."""
    numbers = [table for of_item in tables.values() for table in of_item]
    numbers.sort(key=lambda table: not table.title.startswith("Table"))
    blocks = ["## Numbers", *(table_in_markdown(table, under="### {}") for table in numbers)]
    blocks += ["## Claims"]
    sources = {item["item"]: item["source"] for item in items}
    for item, of_item in claims.items():
        head = ["claim", "source", "verdict", "what was measured"]
        rows = [
            [c.text.rstrip("."), named_source(c.source, sources[item]), c.in_words, c.figure]
            for c in of_item
        ]
        texts = [[escaped(cell) for cell in row] for row in rows]
        blocks.append(f"### {item}\n\n{as_markdown([head, *texts], are_numbers=False)}")
    blocks += ["## Items", all_items(items, claims)]
    return "\n\n".join(blocks)


def all_items(items: Sequence[Item], claims: Claims) -> str:
    """Return a line for each item."""
    rows = [["item", "data", "numbers within noise", "claims", "minutes", "computed"]]
    for item in items:
        reached = Counter(claim.verdict for claim in claims.get(item["item"], ()))
        counts = ", ".join(f"{reached[v]} {v}" for v in VERDICTS if reached[v])
        within = f"{item['within']} of {item['compared']}" if item["compared"] != "0" else ""
        minutes = f"{float(item['seconds']) / 60:.1f}"
        rows.append([item["item"], escaped(item["data"]), within, counts, minutes, item["dates"]])
    return as_markdown(rows, are_numbers=False)


def named_source(source: str, of_item: str) -> str:
    """Return where a claim stands, with the name of the source, as it is read far from its item.

    Examples
    --------
    >>> named_source("section 5", "L. Bottou, Y. Bengio, NIPS 7 (1995): sections 3 to 5")
    'L. Bottou, Y. Bengio, NIPS 7 (1995), section 5'
    >>> named_source("the paper, section 4", "The paper, Figure 2")
    'Xu & Lange 2019, section 4'
    """
    for short, name in NAMES.items():
        source = source.replace(short, name)
    is_named = _YEAR.search(source) or any(name in source for name in NAMES.values())
    return source if is_named else f"{of_item.partition(':')[0]}, {source}"


def first_step() -> str:
    """Return the tables of k-means as the first step of costlier models."""
    return "\n\n".join(map(table_in_markdown, stored_tables().get("first-step", [])))


# What a run prints.


def body(module: ModuleType, findings: Findings) -> str:
    """Return all that is found, for a terminal."""
    asides = [
        f"{'Not judged: ' * (aside.kind == 'not judged')}{aside.text} ({aside.source}) {aside.said}"
        for aside in findings.asides
    ]
    claims = [
        f"{capital(c.in_words)}: {c.text.rstrip('.')} ({c.source}).\n  {c.figure}"
        for c in findings.claims
    ]
    sections = {"Claims": claims, "Questions": asides, "Remarks": findings.remarks}
    blocks = [f"{module.SOURCE}. Data: {module.DATA}."]
    for title, lines in sections.items():
        if lines:
            blocks += [f"## {title}", "\n".join(f"- {line}" for line in lines)]
    blocks += [table_in_markdown(table, str) for table in findings.tables]
    blocks += [comparisons_in_markdown(findings.comparisons)] * bool(findings.comparisons)
    return "\n\n".join(blocks)


def comparisons_in_markdown(found: Sequence[Comparison]) -> str:
    """Return published numbers beside ours, and how many of them came out."""
    n_within = sum(comparison.is_within_noise for comparison in found)
    head = ["what", "quantity", "published", "ours", "standard error", "tolerance", "verdict"]
    rows = [
        [c.what, c.quantity, c.published, c.ours, c.standard_error, c.tolerance, c.in_words]
        for c in found
    ]
    title = f"{n_within} of {len(found)} published numbers within noise"
    return in_markdown(title, [head, *rows], str)


def table_in_markdown(table: Table, escape: Escape | None = None, under: str = "**{}**") -> str:
    """Return a table and what is noted below it."""
    escape = escape or escaped
    note = f"\n\n{escape(table.note)}" if table.note else ""
    return in_markdown(table.title, [table.columns, *table.rows], escape, under) + note


def in_markdown(
    title: str, rows: Iterable[Sequence[Any]], escape: Escape, under: str = "**{}**"
) -> str:
    """Return a table under its title."""
    texts = [[escape(as_string(value)) for value in row] for row in rows]
    return f"{under.format(escape(title))}\n\n{as_markdown(texts)}"


def as_string(value: Value) -> str:
    """Return a value in a table: three digits after the point, unless that hides it or is long.

    Examples
    --------
    >>> as_string(1.23456), as_string(7), as_string(0.00001234), as_string(1.5e13)
    ('1.235', '7', '1.234e-05', '1.5e+13')
    """
    if not isinstance(value, float):
        return str(value)
    is_plain = value == 0 or 5e-4 <= abs(value) < 1e6 or not math.isfinite(value)
    return f"{value:.3f}" if is_plain else f"{value:.4g}"


def capital(text: str) -> str:
    """Return the text as a sentence begins."""
    return text[:1].upper() + text[1:]


def escaped(text: str) -> str:
    """Return the text with the signs of Markdown taken as they are."""
    return text.translate(_SIGNS)


if __name__ == "__main__":
    main()
