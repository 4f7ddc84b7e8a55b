"""What a stored run of benchmarks.speed says, for the terminal and for the page on speed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import geometric_mean, mean

from benchmarks.lloyd_peers import OURS
from benchmarks.machine import QUIET
from benchmarks.pages import Page, Rows, as_markdown, as_text, legend

PAGE = Page("project/speed", "python -m benchmarks.speed --page")
# The prefix of the names of figures of a former commit.
FORMER = "former: "
SKLEARN = "sklearn-lloyd"
RUNS_OF_SKLEARN = 10
FITS = {
    "KMeans": "`KMeans`",
    "fast": '`PowerKMeans`, `effort="fast"`',
    "balanced": "`PowerKMeans`",
    "sklearn": "scikit-learn, one start",
}


def cells_of(figures: Mapping, part: str) -> list[dict]:
    return figures["parts"].get(part, {"cells": []})["cells"]


def where(cell: Mapping) -> str:
    return f"{cell['point']['name']}, {cell['dtype']}"


def values_of(cell: Mapping) -> dict[str, float]:
    """Return the seconds, or the megabytes, of each contestant, the former code among them."""
    if "runs" in cell:
        return {name: mean(run["seconds"] for run in runs) for name, runs in cell["runs"].items()}
    if "megabytes" in cell:
        return cell["megabytes"]
    return cell["seconds"]


def of_today(values: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in values.items() if not name.startswith(FORMER)}


def ratios_to_former(cells: list[dict]) -> Iterator[tuple[str, str, float]]:
    """Yield where, what, and what the former code needed divided by what today's needs."""
    for cell in cells:
        values = values_of(cell)
        for name, value in of_today(values).items():
            if FORMER + name in values:
                yield where(cell), name, values[FORMER + name] / value


def former_table(figures: Mapping) -> Rows:
    """Compare the former code with today's, part by part."""
    rows = [["part", "what", "sizes", "former : now, geometric mean", "least", "least at"]]
    for part in figures["parts"]:
        ratios = list(ratios_to_former(cells_of(figures, part)))
        for what in dict.fromkeys(what for _, what, _ in ratios):
            of = [(ratio, place) for place, name, ratio in ratios if name == what]
            average, (least, place) = geometric_mean(ratio for ratio, _ in of), min(of)
            rows.append([part, what, str(len(of)), f"{average:.3f}", f"{least:.3f}", place])
    return rows


def fit_table(figures: Mapping) -> Rows:
    """Return the seconds of whole fits."""
    names = list(FITS)
    head = ["points", "columns", "clusters", *FITS.values()]
    rows = [[*head, f"scikit-learn, {RUNS_OF_SKLEARN} starts"]]
    for cell in cells_of(figures, "fits"):
        took, point = values_of(cell), cell["point"]
        sizes = (f"{point[of]:,}" for of in ("n_points", "n_features", "n_clusters"))
        shown = [in_digits(took[name]) if name in took else "" for name in names]
        rows.append([*sizes, *shown, in_digits(RUNS_OF_SKLEARN * took["sklearn"])])
    return rows


def lloyd_table(figures: Mapping) -> Rows:
    """Return the milliseconds of an iteration, ours and each peer's."""
    cells = cells_of(figures, "lloyd")
    names = dict.fromkeys(name for cell in cells for name in of_today(cell["seconds"]))
    peers = [name for name in names if name != OURS]
    rows = [["points", OURS, *peers, f"{SKLEARN} : {OURS}", "fastest peer : ours"]]
    for cell in cells:
        seconds = of_today(cell["seconds"])
        fastest = min(seconds[name] for name in peers if name in seconds)
        ratios = (f"{other / seconds[OURS]:.2f}" for other in (seconds[SKLEARN], fastest))
        rows.append([where(cell), *milliseconds(seconds, [OURS, *peers]), *ratios])
    return rows


def value_table(figures: Mapping, part: str) -> Rows:
    """Return all figures of a part: milliseconds, or megabytes over the input."""
    cells = cells_of(figures, part)
    names = list(dict.fromkeys(name for cell in cells for name in values_of(cell)))
    scale = 1e-3 if part == "memory" else 1.0
    return [
        ["points", *names],
        *(
            [
                where(cell),
                *milliseconds({n: scale * v for n, v in values_of(cell).items()}, names),
            ]
            for cell in cells
        ),
    ]


def milliseconds(seconds: Mapping[str, float], names: list[str]) -> list[str]:
    return [in_digits(1e3 * seconds[name], 3) if name in seconds else "" for name in names]


def in_digits(number: float, digits: int = 2) -> str:
    """Return so many digits, or the whole number if it has more."""
    return f"{number:.0f}" if number >= 10 ** (digits - 1) else f"{number:.{digits}g}"


def flaws(figures: Mapping) -> list[str]:
    """Say what makes the figures doubtful."""
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
    """Return all of it, for the terminal."""
    parts = [
        ("Whole fits: seconds", fit_table(figures)),
        ("Lloyd: milliseconds of an iteration", lloyd_table(figures)),
        ("Power: milliseconds of a sweep", value_table(figures, "power")),
        ("Seeding: milliseconds", value_table(figures, "seeding")),
        ("Memory: megabytes over the input", value_table(figures, "memory")),
        ("Compared with the former commit", former_table(figures)),
    ]
    text = [f"{title}\n{as_text(rows)}" for title, rows in parts if len(rows) > 1]
    if said := flaws(figures):
        text.append("Flaws\n" + "\n".join(said))
    return "\n\n".join(text)


def as_page(stored: Mapping) -> str:
    """Return the generated part of the page."""
    figures = stored["figures"]
    return "\n\n".join(
        [
            "Seconds for a whole fit in float64, including seeding and checks, averaged over "
            "several random states.",
            as_markdown(fit_table(figures)),
            measured_how(stored),
            "## Compared with other packages",
            "Milliseconds for an iteration of Lloyd's algorithm. A cell is empty if the package "
            "does not accept this dtype, fails at this size, or was too slow to be timed.",
            as_markdown(lloyd_table(figures)),
            legend(of_today(figures["methods"])),
        ]
    )


def measured_how(stored: Mapping) -> str:
    figures, versions = stored["figures"], stored["versions"]
    runs = {(part["date"], part["command"]) for part in figures["parts"].values()}
    commands = " and ".join(f"on {date} by `{command}`" for date, command in sorted(runs))
    return (
        f"Measured {commands} on {stored['processor']}, {figures['settings']['threads']} threads, "
        f"{versions['instruction set']}, Python {versions['python']}, NumPy {versions['numpy']}; "
        f"medians of {figures['settings']['rounds']} rounds."
    )
