"""The pages of the docs about what was reproduced, which full runs write.

`python -m reproduce.page` writes the front page and that of exceptions again, from the items and
the claims in `reproduce/results`. The page of an item is written by its run.
"""

import datetime
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.machine import processor
from benchmarks.pages import Page, as_markdown
from powermeans.app.report.versions import versions
from powermeans.system.threads import usable_processors
from reproduce.item import LIMITED_DATA, VERDICTS, Claim, Comparison, Findings, Value, Verdict
from reproduce.results import replace_lines, store_claims, stored, stored_claims
from reproduce.running import Provenance

PAGE = Page("reproduction", "python -m reproduce.page")
OF_ITEMS = PAGE.path.with_suffix("")
EXCEPTIONS = "claims-that-do-not-plainly-hold"
NAMES = {"the paper": "Xu & Lange 2019", "the presentation": "Class presentation of power k-means"}
"""What the items call two sources in short."""
# No initial of a name ends a sentence.
_END_OF_SENTENCE = re.compile(r"(?<=[a-z0-9)%]\.) (?=[A-Z])")
_YEAR = re.compile(r"\b(19|20)[0-9][0-9]\b")
_SIGNS = str.maketrans({"|": r"\|", "*": r"\*", "\n": " ", "<": "&lt;", "_": r"\_", "$": r"\$"})

Item = Mapping[str, str]
"""A line of `items.csv`."""
Claims = Mapping[str, Sequence[Claim]]
"""Those of each item."""
Escape = Callable[[str], str]
"""What takes the signs of Markdown as they are, or leaves a text alone, for a terminal."""


def main() -> None:
    """Write the front page and that of exceptions."""
    items, claims = stored("items"), stored_claims()
    PAGE.write(front_page(items, claims))
    (OF_ITEMS / f"{EXCEPTIONS}.md").write_text(exceptions(items, claims), encoding="utf-8")


def store(name: str, module: ModuleType, findings: Findings, provenance: Provenance) -> None:
    """Put what the front page says of an item in place of what an earlier run has said."""
    item = {
        "source": module.SOURCE,
        "data": module.DATA,
        "within": sum(comparison.is_within_noise for comparison in findings.comparisons),
        "compared": len(findings.comparisons),
        "seconds": round(provenance.seconds),
        "dates": " and ".join(provenance.dates),
        "processors": usable_processors(),
        "in_short": findings.in_short,
    }
    replace_lines("items", name, [item])
    store_claims(name, findings.claims)


# The front page.


def front_page(items: Sequence[Item], claims: Claims) -> str:
    """Return all that a command writes of the front page."""
    names = "\n".join(f"reproduction/{name}" for name in (EXCEPTIONS, *(i["item"] for i in items)))
    tree = f"```{{toctree}}\n:hidden:\n\n{names}\n```"
    return f"{in_short(items, claims)}\n\n## All items\n\n{all_items(items, claims)}\n\n{tree}"


def in_short(items: Sequence[Item], claims: Claims) -> str:
    """Return what holds, what does not, what is ours to blame and how long it all took."""
    reached = [claim.verdict for of_item in claims.values() for claim in of_item]
    counts = {verdict: reached.count(verdict) for verdict in VERDICTS}
    named = {verdict: headlines(claims, verdict) for verdict in VERDICTS}
    lines = [
        f"**Holds**: {counts['holds']} of {len(reached)} claims, such as: {named['holds']}.",
        f"**Does not hold**: {counts['does not hold']}, such as: {named['does not hold']}.",
        f"**No difference** where one was published: {counts['no difference']}. "
        f"{capital(named['no difference'])}.",
        f"**Depends**: {counts['depends']}, such as: {named['depends']}.",
        f"**Open**: {counts['not decidable'] + counts['not tested']}. {blame(claims)}",
        *(item["in_short"] for item in items if item["in_short"]),
        f"**All of it** took {computing(items)}",
    ]
    return "\n".join(f"- {line}" for line in lines)


def computing(items: Sequence[Item]) -> str:
    """Return how long the cells of all items took together, and when they were computed."""
    hours = math.fsum(float(item["seconds"]) for item in items) / 3600
    days = sorted(day for item in items for day in item["dates"].split(" and "))
    processors = " or ".join(sorted({item["processors"] for item in items}))
    return (
        f"{hours:.1f} hours, from {' to '.join(dict.fromkeys([days[0], days[-1]]))}, on "
        f"{processors} processors that other work shared. "
        f"[Every claim that does not plainly hold]({link(EXCEPTIONS)}) is listed with its verdict."
    )


def headlines(claims: Claims, verdict: Verdict) -> str:
    """Return the claims with this verdict that the front page names, with links."""
    said = [
        f"[{claim.in_short}]({link(item)})"
        + (escaped(f" (on {claim.on})") if verdict == "depends" else "")
        for item, of_item in claims.items()
        for claim in of_item
        if claim.in_short and claim.verdict == verdict
    ]
    return "; ".join(said) or "none of those named here"


def blame(claims: Claims) -> str:
    """Return how many claims have data that are less than those of the source, or other ones."""
    limited = [
        (item, LIMITED_DATA[kind], more)
        for item, of_item in claims.items()
        for claim in of_item
        for kind, _, more in [claim.data.partition(": ")]
        if kind in LIMITED_DATA
    ]
    said = (
        f"[{item}]({link(item)}) has {kind} ({more})" for item, kind, more in dict.fromkeys(limited)
    )
    return (
        f"Of these, {len(limited)} are ours to blame, as our data cannot decide: "
        f"{'; '.join(said)}. The others are too close to call, or were not tested."
    )


def data_in_words(data: str) -> str:
    """Return which data were used, and more about them in parentheses."""
    kind, _, more = data.partition(": ")
    return f"{kind} ({more})" if more else kind


def all_items(items: Sequence[Item], claims: Claims) -> str:
    """Return a line for each item."""
    rows = [["item", "data", "numbers within noise", "claims", "minutes", "computed"]]
    for item in items:
        reached = [claim.verdict for claim in claims.get(item["item"], ())]
        counts = [f"{n} {verdict}" for verdict in VERDICTS if (n := reached.count(verdict))]
        within = f"{item['within']} of {item['compared']}" if item["compared"] != "0" else ""
        minutes = f"{float(item['seconds']) / 60:.1f}"
        name, data = f"[{item['item']}]({link(item['item'])})", data_in_words(item["data"])
        rows.append([name, escaped(data), within, ", ".join(counts), minutes, item["dates"]])
    return as_markdown(rows, are_numbers=False)


# The page of exceptions.


def exceptions(items: Sequence[Item], claims: Claims) -> str:
    """Return the page of every claim that does not plainly hold, by verdict, without figures."""
    sources = {item["item"]: item["source"] for item in items}
    sections = [
        f"## {capital(verdict)}\n\n{as_markdown(rows, are_numbers=False)}"
        for verdict in VERDICTS
        if verdict != "holds" and len(rows := lines_with(sources, claims, verdict)) > 1
    ]
    return "\n\n".join(
        [
            f"<!-- written by: {PAGE.command} -->\n\n# Claims that do not plainly hold",
            "The figures are on the pages of the items, and the [front page]"
            "(../reproduction.md#how-to-read-it) says what each verdict means.",
            *sections,
        ]
    ) + "\n"  # fmt: skip


def lines_with(sources: Mapping[str, str], claims: Claims, verdict: Verdict) -> list[list[str]]:
    """Return a line for each claim with this verdict, and what it depends or rests on."""
    rows = [["claim", "source", "depends on" if verdict == "depends" else "rests on", "item"]]
    for item, of_item in claims.items():
        for claim in of_item:
            if claim.verdict == verdict:
                on_what = claim.in_words.removeprefix("depends on ")
                rests_on = on_what if verdict == "depends" else claim.sample
                parts = claim.text.rstrip("."), named_source(claim.source, sources[item]), rests_on
                rows.append([*map(escaped, parts), f"[{item}]({item}.md)"])
    return rows


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


# The page of an item.


def item_page(name, module, findings, pictures, origin):
    """Return the page of an item."""
    paths = [Path(os.path.relpath(picture, OF_ITEMS)).as_posix() for picture in pictures]
    shown = body(module, findings, [f"![{module.TITLE}]({path})" for path in paths], escaped)
    head = f"<!-- written by: python -m reproduce {name} -->\n\n# {module.TITLE}"
    return f"{head}\n\n{shown}\n\n## How it was computed\n\n{origin}\n"


def body(module, findings, pictures=(), escape=str):
    """Return all that is found."""
    asides = [
        f"{'Not judged: ' * (aside.kind == 'not judged')}{escape(aside.text)} "
        f"(*{escape(aside.source)}*) {escape(aside.said)}"
        for aside in findings.asides
    ]
    claims = [claim_line(claim, module.DATA, escape) for claim in findings.claims]
    remarks = [escape(remark) for remark in findings.remarks]
    sections = {"Claims": claims, "Questions, and what is not judged": asides, "Remarks": remarks}
    blocks = [f"{escape(module.SOURCE)}. Data: {escape(data_in_words(module.DATA))}."]
    for title, lines in sections.items():
        if lines:
            blocks += [f"## {title}", "\n".join(f"- {line}" for line in lines)]
    tables = [
        in_markdown(table.title, [table.columns, *table.rows], escape)
        + (f"\n\n{escape(table.note)}" if table.note else "")
        for table in findings.tables
    ]
    compared = [comparisons_in_markdown(findings.comparisons, escape)] * bool(findings.comparisons)
    if shown := [*pictures, *tables, *compared]:
        blocks += ["## Figures and tables", *shown]
    return "\n\n".join(blocks)


def claim_line(claim: Claim, data: str, escape: Escape) -> str:
    """Return a claim with its verdict first, and below it a line for each sentence on figures."""
    is_other = claim.data and claim.data != data
    other = f" Data: {data_in_words(claim.data)}." if is_other else ""
    sample = f" ({claim.sample})" if claim.sample else ""
    verdict = capital(escape(claim.in_words.removesuffix(sample)))
    figures = _END_OF_SENTENCE.split(capital(claim.figure).removesuffix("."))
    below = [f"\n  - {escape(sentence).removesuffix('.')}." for sentence in figures if sentence]
    text, source = escape(claim.text.rstrip(".")), escape(claim.source)
    return f"**{verdict}**{escape(sample)}: {text} (*{source}*).{escape(other)}{''.join(below)}"


def comparisons_in_markdown(found: Sequence[Comparison], escape: Escape) -> str:
    """Return published numbers beside ours, and how many of them came out."""
    n_within = sum(comparison.is_within_noise for comparison in found)
    head = ["what", "quantity", "published", "ours", "standard error", "tolerance", "verdict"]
    rows = [
        [c.what, c.quantity, c.published, c.ours, c.standard_error, c.tolerance, c.in_words]
        for c in found
    ]
    title = f"{n_within} of {len(found)} published numbers within noise"
    return in_markdown(title, [head, *rows], escape)


def in_markdown(title: str, rows: Iterable[Sequence[Any]], escape: Escape) -> str:
    """Return a table."""
    texts = [[escape(as_string(value)) for value in row] for row in rows]
    return f"**{escape(title)}**\n\n{as_markdown(texts)}"


def origin_of(name: str, provenance: Provenance) -> str:
    """Return command, dates, machine and versions."""
    version = versions()
    loads = " to ".join(f"{load:.1f}" for load in provenance.loads)
    load = f", on which {loads} processes were at work" if loads else ""
    return (
        f"`python -m reproduce {name}`: {provenance.n_cells} cells computed on "
        f"{' and '.join(provenance.dates)} in {provenance.seconds / 60:.1f} minutes, put together "
        f"on {datetime.date.today().isoformat()}, on {processor()} with {usable_processors()} "
        f"processors{load}; powermeans {version['powermeans']}, Python {version['python']}, "
        f"NumPy {version['numpy']}, scikit-learn {version['scikit-learn']}."
    )


# Words.


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
    """Return the text as a sentence begins, also within the brackets of a link."""
    place = 1 if text.startswith("[") else 0
    if not text[place + 1 : place + 2].isalpha():  # a formula, such as d = 2
        return text
    return text[:place] + text[place : place + 1].upper() + text[place + 1 :]


def link(name: str) -> str:
    """Return the address of an item's page, seen from the front page."""
    return f"reproduction/{name}.md"


def escaped(text: str) -> str:
    """Return the text with the signs of Markdown taken as they are."""
    return text.translate(_SIGNS)


if __name__ == "__main__":
    main()
