"""What a stored run of benchmarks.speed says, for the terminal and for two pages of the docs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import mean, median

from benchmarks.excess import QUIET
from benchmarks.lloyd_peers import OURS
from benchmarks.pages import Page, Rows, as_markdown, as_text
from benchmarks.speed_targets import (
    RUNS_OF_SKLEARN,
    SKLEARN,
    Line,
    by_target,
    fastest_peer,
    lines,
    of_one_code,
    where,
    worst,
)

COMMAND = "python -m benchmarks.speed --page"
PAGE, TARGETS_PAGE = Page("speed", COMMAND), Page("speed_targets", COMMAND)
FITS = {
    "KMeans": "`KMeans`",
    "fast": '`PowerKMeans`, `effort="fast"`',
    "balanced": "`PowerKMeans`",
    "sklearn": "scikit-learn, one start",
}


def ratio_of(line: Line) -> str:
    return f"{line.measured:.6f}" if "inertia" in line.target else f"{line.measured:.3g}"


def bound_of(line: Line) -> str:
    return f"{'<=' if line.at_most else '>='} {line.bound:.3g}"


def percent(fraction: float | None) -> str:
    return "" if fraction is None else f"{100 * fraction:.0f} %"


def before_of(all_lines: list[Line]) -> bool:
    """Whether a former commit was measured too."""
    return any(line.before is not None for line in all_lines)


def line_table(all_lines: list[Line]) -> Rows:
    """Every target at every size."""
    with_before = before_of(all_lines)
    head = ["target", "where", *(["before"] if with_before else []), "ratio", "bound", "met"]
    rows = [[*head, "of the limit", "note"]]
    for line in all_lines:
        before = "" if line.before is None else ratio_of(replace(line, measured=line.before))
        rows.append(
            [
                line.target,
                line.where,
                *([before] if with_before else []),
                ratio_of(line),
                bound_of(line),
                "yes" if line.is_met else "no",
                percent(line.fraction),
                line.note,
            ]
        )
    return rows


def target_table(all_lines: list[Line]) -> Rows:
    """Each target: at how many sizes it is met, and where it is met least."""
    with_before = before_of(all_lines)
    head = ["target", *(["met before", "median before"] if with_before else [])]
    rows = [[*head, "met at", "median", "worst", "bound", "worst where", "of the limit there"]]
    for target, of in by_target(all_lines).items():
        least = worst(of)
        rows.append(
            [
                target,
                *(met_and_median(formerly(of)) if with_before else []),
                *met_and_median(of),
                ratio_of(least),
                bound_of(least),
                least.where,
                percent(least.fraction),
            ]
        )
    return rows


def formerly(of: list[Line]) -> list[Line]:
    return [replace(line, measured=line.before) for line in of if line.before is not None]


def met_and_median(of: list[Line]) -> list[str]:
    if not of:
        return ["", ""]
    met = f"{sum(line.is_met for line in of)} of {len(of)}"
    return [met, f"{median(line.measured for line in of):.3g}"]


def cells_of(figures: Mapping, part: str) -> list[dict]:
    return figures["parts"].get(part, {"cells": []})["cells"]


def fit_table(figures: Mapping) -> Rows:
    """Seconds of whole fits."""
    cells = [of_one_code(cell) for cell in cells_of(figures, "fits")]
    names = [name for name in FITS if any(name in cell["runs"] for cell in cells)]
    head = ["points", "columns", "clusters", *(FITS[name] for name in names)]
    rows = [[*head, f"scikit-learn, {RUNS_OF_SKLEARN} starts"]]
    for cell in cells:
        took = {name: mean(run["seconds"] for run in runs) for name, runs in cell["runs"].items()}
        point = cell["point"]
        sizes = (point["n_points"], point["n_features"], point["n_clusters"])
        shown = [in_digits(took[name]) if name in took else "" for name in names]
        ten = RUNS_OF_SKLEARN * took["sklearn"]
        rows.append([*(f"{size:,}" for size in sizes), *shown, in_digits(ten)])
    return rows


def in_digits(number: float, digits: int = 2) -> str:
    """So many digits, or the whole number where it has more."""
    return f"{number:.0f}" if number >= 10 ** (digits - 1) else f"{number:.{digits}g}"


def lloyd_table(figures: Mapping) -> Rows:
    """Milliseconds for an iteration, ours beside each peer's."""
    cells = [of_one_code(cell) for cell in cells_of(figures, "lloyd")]
    names = list(dict.fromkeys(name for cell in cells for name in cell["seconds"]))
    peers = [name for name in names if name != OURS]
    rows = [["points", OURS, *peers, f"{SKLEARN} : {OURS}", "fastest peer : ours"]]
    for cell in cells:
        seconds = cell["seconds"]
        shown = milliseconds(seconds, [OURS, *peers])
        against = (seconds[SKLEARN], fastest_peer(cell)[1])
        ratios = (f"{other / seconds[OURS]:.2f}" for other in against)
        rows.append([where(cell), *shown, *ratios])
    return rows


def milliseconds(seconds: Mapping[str, float], names: list[str]) -> list[str]:
    return [in_digits(1e3 * seconds[name], 3) if name in seconds else "" for name in names]


def power_table(figures: Mapping) -> Rows:
    """Milliseconds for a sweep at each power, of today's code and of the former."""
    cells = cells_of(figures, "power")
    names = list(dict.fromkeys(name for cell in cells for name in cell["seconds"]))
    return [
        ["points", *names],
        *([where(cell), *milliseconds(cell["seconds"], names)] for cell in cells),
    ]


def share_table(figures: Mapping) -> Rows:
    """Return how many of the distances were computed: in the first sweep, and in a mean one."""
    cells = cells_of(figures, "shares")
    names = list(cells[0]["shares"]) if cells else []
    rows = [["points", *(f"{name}, {of}" for name in names for of in ("first", "fit"))]]
    for cell in cells:
        pairs = ((shares[0], mean(shares)) for shares in cell["shares"].values())
        rows.append([where(cell), *(f"{100 * share:.3g} %" for pair in pairs for share in pair)])
    return rows


def ceiling_table(figures: Mapping) -> Rows:
    rows = [["threads", "float32", "float64", "from the cache", "from memory"]]
    for cell in cells_of(figures, "ceilings"):
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
                f"{name}: other processes kept up to {most:.1f} processors busy during "
                f"{len(busy)} of {len(part['cells'])} measurements"
            )
    others = {part["made with"] for part in figures["parts"].values()} - {figures["made with"]}
    return said + [f"some parts were measured with other code: {other}" for other in others]


def as_report(figures: Mapping) -> str:
    """All of it, for the terminal."""
    all_lines = lines(figures)
    parts = [
        ("Ceilings: 10^9 multiply-adds a second, bandwidth", ceiling_table(figures)),
        ("Whole fits: seconds", fit_table(figures)),
        ("Lloyd: milliseconds for an iteration", lloyd_table(figures)),
        ("Power: milliseconds for a sweep", power_table(figures)),
        ("Shares of the distances that were computed", share_table(figures)),
        ("Every target at every size", line_table(all_lines)),
        ("Targets", target_table(all_lines)),
    ]
    text = [f"{title}\n{as_text(rows)}" for title, rows in parts if len(rows) > 1]
    if said := flaws(figures):
        text.append("Flaws\n" + "\n".join(said))
    return "\n\n".join(text)


def as_page(stored: Mapping) -> str:
    """What users ask: the generated part of the page on speed."""
    figures = stored["figures"]
    return "\n\n".join(
        [
            LEGEND_OF_FITS,
            as_markdown(fit_table(figures)),
            measured_how(stored),
            "## Beside other packages",
            LEGEND_OF_LLOYD,
            as_markdown(lloyd_table(figures)),
            legend(figures["methods"]),
        ]
    )


def as_targets_page(stored: Mapping) -> str:
    """What contributors ask: the generated part of the page on targets."""
    figures = stored["figures"]
    all_lines = lines(figures)
    missed = sorted((x for x in all_lines if not x.is_met), key=lambda x: -x.shortfall)
    parts = [
        ("Targets", "", target_table(all_lines)),
        ("Where they are missed", "", line_table(missed)),
        ("Power sweeps", LEGEND_OF_POWERS, power_table(figures)),
        ("Distances that were computed", LEGEND_OF_SHARES, share_table(figures)),
        ("What the machine can do", LEGEND_OF_CEILINGS, ceiling_table(figures)),
    ]
    blocks = [measured_how(stored)]
    for title, words, rows in parts:
        if len(rows) > 1:
            blocks += [f"## {title}", *([words] if words else []), as_markdown(rows)]
    if said := flaws(figures):
        blocks += ["## Flaws", "\n".join(f"- {text}" for text in said)]
    return "\n\n".join(blocks)


LEGEND_OF_FITS = (
    "Seconds for a whole fit in float64, with seeding and checks: means over the first random "
    "states. `PowerKMeans` has the default effort, scikit-learn's `KMeans` one start or ten."
)
LEGEND_OF_LLOYD = (
    "Milliseconds for an iteration of Lloyd's algorithm. A cell is empty if the package does not "
    "take this dtype, fails at this size, or was too slow to be timed."
)
LEGEND_OF_POWERS = (
    "Milliseconds for a sweep at each power; *hard* is the assignment of Lloyd's algorithm."
)
LEGEND_OF_SHARES = (
    "The share of the distances that were computed exactly: in the first sweep, and on average "
    "over the sweeps of a fit. Bounds showed that the others do not matter."
)
LEGEND_OF_CEILINGS = "Billions of multiply-adds a second, and how fast memory is read."


def legend(methods: Mapping[str, Mapping]) -> str:
    return "\n".join(
        f"- *{name}*: {method['label']} ({method['made with']})" for name, method in methods.items()
    )


def measured_how(stored: Mapping) -> str:
    figures = stored["figures"]
    runs = {(part["date"], part["command"]) for part in figures["parts"].values()}
    commands = " and ".join(f"on {date} by `{command}`" for date, command in sorted(runs))
    former = figures["settings"].get("former")
    beside = f", with commit {former[:12]} for comparison," if former else ""
    return (
        f"Measured {commands}{beside} on {stored['processor']}, "
        f"{figures['settings']['threads']} threads, "
        f"{stored['versions']['instruction set']}, Python {stored['versions']['python']}, NumPy "
        f"{stored['versions']['numpy']}; medians of {figures['settings']['rounds']} rounds."
    )
