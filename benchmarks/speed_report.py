"""What a stored run of benchmarks.speed says: tables for the terminal and for the docs."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from benchmarks.excess import QUIET
from benchmarks.lloyd_peers import OURS
from benchmarks.pages import Page, Rows, as_markdown, as_text
from benchmarks.speed_targets import SKLEARN, Line, by_target, fastest_peer, lines, where, worst

PAGE = Page("speed", "python -m benchmarks.speed --page")


def ratio_of(line: Line) -> str:
    return f"{line.measured:.6f}" if "inertia" in line.target else f"{line.measured:.3g}"


def bound_of(line: Line) -> str:
    return f"{'<=' if line.at_most else '>='} {line.bound:.3g}"


def percent(fraction: float | None) -> str:
    return "" if fraction is None else f"{100 * fraction:.0f} %"


def line_table(all_lines: list[Line]) -> Rows:
    """Every target at every size."""
    head = ["target", "where", "ratio", "bound", "met", "of the limit", "note"]
    return [
        head,
        *(
            [
                line.target,
                line.where,
                ratio_of(line),
                bound_of(line),
                "yes" if line.is_met else "no",
                percent(line.fraction),
                line.note,
            ]
            for line in all_lines
        ),
    ]


def target_table(all_lines: list[Line]) -> Rows:
    """Each target: at how many sizes it is met, and where it is met least."""
    rows = [["target", "met at", "median", "worst", "bound", "worst where", "of the limit there"]]
    for target, of in by_target(all_lines).items():
        least = worst(of)
        rows.append(
            [
                target,
                f"{sum(line.is_met for line in of)} of {len(of)}",
                f"{median(line.measured for line in of):.3g}",
                ratio_of(least),
                bound_of(least),
                least.where,
                percent(least.fraction),
            ]
        )
    return rows


def lloyd_table(figures: Mapping) -> Rows:
    """Milliseconds for an iteration, ours beside each peer's."""
    cells = figures["parts"].get("lloyd", {"cells": []})["cells"]
    names = list(dict.fromkeys(name for cell in cells for name in cell["seconds"]))
    peers = [name for name in names if name != OURS]
    rows = [["points", "of the limit", OURS, *peers, f"{SKLEARN} : {OURS}", "fastest peer : ours"]]
    fractions = {
        line.where: line.fraction for line in lines(figures) if line.target.startswith("Lloyd: as")
    }
    for cell in cells:
        seconds = cell["seconds"]
        shown = (f"{1e3 * seconds[name]:.3g}" if name in seconds else "" for name in [OURS, *peers])
        against = (seconds[SKLEARN], fastest_peer(cell)[1])
        ratios = (f"{other / seconds[OURS]:.2f}" for other in against)
        rows.append([where(cell), percent(fractions[where(cell)]), *shown, *ratios])
    return rows


def ceiling_table(figures: Mapping) -> Rows:
    rows = [["threads", "float32", "float64", "from the cache", "from memory"]]
    for cell in figures["parts"].get("ceilings", {"cells": []})["cells"]:
        for n_threads, rates in cell["by threads"].items():
            arithmetic = rates["multiply-adds a second"]
            sizes = sorted(
                rates["bytes a second by size of array"].items(), key=lambda s: int(s[0])
            )
            figures_of_both = (f"{rate / 1e9:.0f}" for rate in arithmetic.values())
            bandwidths = (f"{rate / 1e9:.0f} GB/s" for _, rate in (sizes[0], sizes[-1]))
            rows.append([n_threads, *figures_of_both, *bandwidths])
    return rows


def flaws(figures: Mapping) -> list[str]:
    """What makes the figures doubtful, and who failed."""
    said = []
    for name, part in figures["parts"].items():
        busy = [cell for cell in part["cells"] if (cell["bystanders"] or 0) > QUIET]
        if busy:
            most = max(cell["bystanders"] for cell in busy)
            said.append(
                f"{name}: other processes kept up to {most:.1f} processors busy beside "
                f"{len(busy)} of {len(part['cells'])} measurements"
            )
    others = {part["made with"] for part in figures["parts"].values()} - {figures["made with"]}
    return said + [f"some parts were measured with other code: {other}" for other in others]


def as_report(figures: Mapping) -> str:
    """All of it, for the terminal."""
    all_lines = lines(figures)
    parts = [
        ("Ceilings: 10^9 multiply-adds a second, bandwidth", ceiling_table(figures)),
        ("Lloyd: milliseconds for an iteration", lloyd_table(figures)),
        ("Every target at every size", line_table(all_lines)),
        ("Targets", target_table(all_lines)),
    ]
    text = [f"{title}\n{as_text(rows)}" for title, rows in parts if len(rows) > 1]
    if said := flaws(figures):
        text.append("Flaws\n" + "\n".join(said))
    return "\n\n".join(text)


def as_page(stored: Mapping) -> str:
    """The generated part of the page, from a stored run."""
    figures = stored["figures"]
    all_lines = lines(figures)
    missed = sorted((x for x in all_lines if not x.is_met), key=lambda x: -x.shortfall)
    parts = [measured_how(stored), "### Targets", as_markdown(target_table(all_lines))]
    if missed:
        parts += ["### Where they are missed", as_markdown(line_table(missed))]
    parts += ["### Lloyd's algorithm", LEGEND_OF_LLOYD, as_markdown(lloyd_table(figures))]
    parts.append(legend(figures["methods"]))
    parts += ["### What the machine can do", as_markdown(ceiling_table(figures))]
    if said := flaws(figures):
        parts += ["### Flaws", "\n".join(f"- {text}" for text in said)]
    return "\n\n".join(parts)


LEGEND_OF_LLOYD = (
    "Milliseconds for an iteration. A gap: the package has not this dtype, fails on this size, or "
    "was too slow to be timed. More than 100 % of the limit is reached by looking at fewer centers."
)


def legend(methods: Mapping[str, Mapping]) -> str:
    return "\n".join(
        f"- *{name}*: {method['label']} ({method['made with']})" for name, method in methods.items()
    )


def measured_how(stored: Mapping) -> str:
    figures = stored["figures"]
    runs = {(part["date"], part["command"]) for part in figures["parts"].values()}
    commands = " and ".join(f"on {date} by `{command}`" for date, command in sorted(runs))
    return (
        f"Measured {commands} on {stored['processor']}, {figures['settings']['threads']} threads, "
        f"{stored['versions']['instruction set']}, Python {stored['versions']['python']}, NumPy "
        f"{stored['versions']['numpy']}; medians of {figures['settings']['rounds']} rounds."
    )
