"""What a stored run of benchmarks.quality says: excess, wins, what is doubtful, and the tables.

The excess of a fit is how far its inertia lies above the lowest that is known of the problem,
relative to that: the lower of the value known before and of all that any method found in the run.
A method's figure for a problem is the mean over the seeds.

A record of the benchmark holds "problems" by name, and "cells" by problem, method and seed; a cell
has "inertia", "seconds", and "claimed" where the method claims another inertia; or an "error".
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import mean

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from benchmarks.machine import QUIET, STEADY
from benchmarks.pages import Page, Rows, as_markdown, legend

PAGE = Page("project/quality", "python -m benchmarks.quality --page")
PAGE_OF_STEPS = Page("understand/how_it_searches", "python -m benchmarks.quality --page")
# What a default fit consists of, from the plain descent to the longest search.
STEPS = {
    "lloyd": "Lloyd's descent from greedy k-means++ seeds",
    "paper": "the paper's annealed descent, from plain k-means++ seeds",
    "annealed": "an annealed descent with a first power from the data, from greedy seeds",
    "fast": 'with moves and swaps: `effort="fast"`',
    "balanced": "with more starts, swaps and crossings: the default",
    "thorough": 'with 150 crossings without a gain at the end: `effort="thorough"`',
}
OURS = ("fast", "balanced", "thorough")
RIVALS = ("sklearn-10", "bkmeans", "hgmeans")
# Two inertias that differ by less than this share are a draw.
DRAW = 1e-4
HIGH_EXCESS = 0.02
# So near to the lowest that nothing is left to gain.
AS_GOOD = 1e-3

_CHUNK_ELEMENTS = 2**20


def inertia(points: NDArray, centers: NDArray) -> float:
    """The sum of squared distances to the nearest centers, from differences, in float64."""
    points = np.asarray(points, dtype=np.float64)
    centers = np.asarray(centers, dtype=np.float64)
    n_rows = max(1, _CHUNK_ELEMENTS // len(centers))
    chunks = (points[start : start + n_rows] for start in range(0, len(points), n_rows))
    return float(sum(cdist(chunk, centers, "sqeuclidean").min(axis=1).sum() for chunk in chunks))


@dataclass(frozen=True)
class Record:
    """A stored run, read for its figures."""

    problems: dict[str, dict]
    cells: dict[str, dict[str, dict[str, dict]]]

    @functools.cached_property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(name for cells in self.cells.values() for name in cells))

    def good(self, problem: str, method: str) -> list[dict]:
        """The cells without an error."""
        cells = self.cells.get(problem, {}).get(method, {}).values()
        return [cell for cell in cells if "error" not in cell]

    def lowest_found(self, problem: str) -> float:
        methods = self.cells[problem]
        return min(cell["inertia"] for method in methods for cell in self.good(problem, method))

    @functools.cached_property
    def lowest(self) -> dict[str, float]:
        """The lowest inertia known of each problem, before the run or by it."""
        known = {name: problem.get("best_known") for name, problem in self.problems.items()}
        return {
            name: min(
                value for value in (known[name], self.lowest_found(name)) if value is not None
            )
            for name in self.cells
        }

    @functools.cached_property
    def excess(self) -> dict[str, dict[str, float]]:
        """By method and problem, the mean over the seeds."""
        return {
            method: {
                problem: mean(cell["inertia"] for cell in cells) / self.lowest[problem] - 1
                for problem in self.cells
                if (cells := self.good(problem, method))
            }
            for method in self.methods
        }

    def seconds(self, method: str, problems: Iterable[str]) -> float:
        """The sum over problems of the mean over seeds."""
        return sum(mean(c["seconds"] for c in self.good(problem, method)) for problem in problems)

    def common(self, methods: Iterable[str]) -> list[str]:
        """The problems that all of these methods solved."""
        solved = [self.excess.get(method, {}).keys() for method in methods]
        return [problem for problem in self.cells if all(problem in names for names in solved)]


def contest(record: Record, ours: str, theirs: str) -> tuple[int, int]:
    """On how many problems ours is lower by more than a draw, and on how many higher."""
    wins = losses = 0
    for problem in record.common([ours, theirs]):
        ratio = (1 + record.excess[ours][problem]) / (1 + record.excess[theirs][problem])
        wins += ratio < 1 / (1 + DRAW)
        losses += ratio > 1 + DRAW
    return wins, losses


def summary(record: Record) -> list[dict]:
    """A line for each method; one that did not run on all problems says on how many it did."""
    return [method_summary(record, method) for method in record.methods if record.excess[method]]


def method_summary(record: Record, method: str) -> dict:
    excess = record.excess[method]
    cells = [
        cell for problem in record.cells for cell in record.cells[problem].get(method, {}).values()
    ]
    return {
        "method": method,
        "problems": len(excess),
        "errors": sum("error" in cell for cell in cells),
        "mean excess %": 100 * mean(excess.values()),
        "worst excess %": 100 * max(excess.values()),
        "worst problem": max(excess, key=excess.__getitem__),
        "problems above 2 %": 100 * mean(value > HIGH_EXCESS for value in excess.values()),
        "seconds": record.seconds(method, excess),
        "wins and losses": {
            rival: list(contest(record, method, rival))
            for rival in RIVALS
            if rival != method and record.common([method, rival])
        },
    }


def flaws(record: Record) -> list[str]:
    """What no reader of the figures should miss: false claims, failures, more effort for less."""
    said = [*false_claims(record), *worse_for_more(record)]
    if noisy := disturbed(record):
        said.append(
            f"other processes were busy, or the machine's speed changed, during {len(noisy)} of "
            f"{len(record.problems)} problems, so the times may be too long"
        )
    return said


def disturbed(record: Record) -> list[str]:
    """Return the problems beside which others were busy, or the machine changed its speed."""
    return [
        name
        for name, problem in record.problems.items()
        if (problem["bystanders"] or 0) > QUIET or problem["drift"] > STEADY
    ]


def false_claims(record: Record) -> list[str]:
    return [
        f"{method} on {problem} claims an inertia of {cell['claimed']:.10g}; that of its centers "
        f"is {cell['inertia']:.10g}"
        for problem, methods in record.cells.items()
        for method in methods
        for cell in record.good(problem, method)
        if "claimed" in cell
    ]


def worse_for_more(record: Record) -> list[str]:
    """Problems on which more of our effort gave a higher mean than less of it."""
    said = []
    for less, more in itertools.pairwise(OURS):
        for problem in record.common([less, more]):
            low, high = record.excess[less][problem], record.excess[more][problem]
            if (1 + high) / (1 + low) > 1 + DRAW:
                said.append(
                    f"{more} is worse than {less} on {problem}: {100 * high:.3f} % above the "
                    f"lowest instead of {100 * low:.3f} %"
                )
    return said


# The tables.


@dataclass(frozen=True)
class Regime:
    """Problems of one kind."""

    title: str
    holds: Callable[[dict], bool]


def family(name: str, *n_features: int) -> Callable[[dict], bool]:
    def holds(problem: dict) -> bool:
        begins = problem["group"].startswith(f"{name}-")
        return begins and (not n_features or problem["n_features"] in n_features)

    return holds


def real(least: int, most: float) -> Callable[[dict], bool]:
    return lambda problem: problem["group"] == "real" and least <= problem["n_clusters"] <= most


REGIMES = [
    Regime("real sets, k ≤ 10", real(1, 10)),
    Regime("real sets, k 11 to 30", real(11, 30)),
    Regime("real sets, k > 30", real(31, float("inf"))),
    Regime("overlapping clusters, d = 2", family("overlapping", 2)),
    Regime("overlapping clusters, d = 10", family("overlapping", 10)),
    Regime("overlapping clusters, d = 50 and 200", family("overlapping", 50, 200)),
    Regime("well-separated clusters", family("separated")),
    Regime("clusters on a grid", family("grid")),
    Regime("heavy tails", family("heavy-tails")),
    Regime("unbalanced sizes", family("unbalanced")),
    Regime("unequal spread", family("unequal-spread")),
    Regime("uniform noise", family("noise")),
    Regime("duplicates", family("duplicates")),
    Regime("copies of one cluster", family("copies")),
    Regime("all real sets", real(1, float("inf"))),
    Regime("all generated sets", lambda problem: problem["group"] != "real"),
]


def method_table(record: Record) -> Rows:
    """A line for each method: how near to the lowest, how long, against whom."""
    head = ["method", "problems", "mean %", "worst %", "above 2 %", "seconds"]
    rivals = [rival for rival in RIVALS if rival in record.excess]
    lines = [
        [
            line["method"],
            str(line["problems"]) + (f" (+{line['errors']} errors)" if line["errors"] else ""),
            f"{line['mean excess %']:.3f}",
            f"{line['worst excess %']:.2f}",
            f"{line['problems above 2 %']:.0f} %",
            f"{line['seconds']:.1f}",
            *(" : ".join(map(str, line["wins and losses"].get(rival, []))) for rival in rivals),
        ]
        for line in sorted(summary(record), key=lambda line: line["mean excess %"])
    ]
    return [[*head, *(f"against {rival}" for rival in rivals)], *lines]


def problems_of(record: Record, regime: Regime, methods: list[str]) -> list[str]:
    """Those on which all of the methods ran."""
    return [name for name in record.common(methods) if regime.holds(record.problems[name])]


def annealing_table(record: Record) -> Rows:
    """One run of Lloyd beside one annealed run from the same seeds, by regime."""
    rows = [["kind of problem", "problems", "Lloyd %", "annealed %", "lower : higher", "enough"]]
    for regime in REGIMES:
        names = problems_of(record, regime, ["lloyd", "annealed"])
        if not names:
            continue
        part = Record({name: record.problems[name] for name in names}, restrict(record, names))
        lloyd, annealed = (part.excess[method] for method in ("lloyd", "annealed"))
        n_enough = sum(excess <= AS_GOOD for excess in lloyd.values())
        rows.append(
            [
                regime.title,
                str(len(names)),
                f"{100 * mean(lloyd.values()):.3f}",
                f"{100 * mean(annealed.values()):.3f}",
                "{} : {}".format(*contest(part, "annealed", "lloyd")),
                f"{n_enough} of {len(names)}",
            ]
        )
    return rows


def restrict(record: Record, names: list[str]) -> dict[str, dict]:
    return {name: record.cells[name] for name in names}


def search_table(record: Record) -> Rows:
    """Mean excess by regime, of the methods that ran everywhere."""
    wanted = ["sklearn-1", "sklearn-10", "bkmeans", "hgmeans", "fast", "balanced", "thorough"]
    methods = [name for name in wanted if len(record.excess.get(name, {})) == len(record.cells)]
    rows = [["kind of problem", "problems", *methods]]
    for regime in REGIMES:
        if names := problems_of(record, regime, methods):
            figures = (mean(record.excess[method][name] for name in names) for method in methods)
            rows.append([regime.title, str(len(names)), *(f"{100 * f:.3f}" for f in figures)])
    return rows


def table_of_steps(stored: dict) -> str:
    """The excess and time of each step, over all problems."""
    record = Record(stored["figures"]["problems"], stored["figures"]["cells"])
    lines = {line["method"]: line for line in summary(record)}
    rows = [["a fit", "mean excess %", "worst %", "seconds"]]
    for method, words in STEPS.items():
        if line := lines.get(method):
            excess = (f"{line[f'{kind} excess %']:.3f}" for kind in ("mean", "worst"))
            rows.append([words, *excess, f"{line['seconds']:.1f}"])
    return f"{as_markdown(rows)}\n\nMeasured on {stored['date']} on {stored['processor']}."


def as_page(stored: dict) -> str:
    """The generated part of the page, from a stored run."""
    figures = stored["figures"]
    record = Record(figures["problems"], figures["cells"])
    parts = ["### The methods", as_markdown(method_table(record)), judged_half(record)]
    parts += [legend(figures["methods"]), measured_how(stored, record)]
    if len(rows := annealing_table(record)) > 1:
        parts += ["### One run: Lloyd or annealed", as_markdown(rows), EXPLANATION_OF_ONE_RUN]
    if len(rows := search_table(record)) > 1:
        parts += ["### Search, by kind of problem", "Mean excess in percent.", as_markdown(rows)]
    if complaints := flaws(record):
        parts += ["### Flaws", "\n".join(f"- {text}" for text in complaints)]
    return "\n\n".join(parts)


def judged_half(record: Record) -> str:
    """Say what our efforts leave on the problems that no setting was tuned on."""
    judged = list(record.problems)[1::2]
    means = (
        f"`{effort}` {100 * mean(record.excess[effort][name] for name in judged):.3f} %"
        for effort in OURS
        if all(name in record.excess.get(effort, {}) for name in judged)
    )
    return (
        "The efforts were tuned on every second problem, starting with the first. Mean excess on "
        f"the other {len(judged)}: {', '.join(means)}."
    )


EXPLANATION_OF_ONE_RUN = (
    "*lower : higher*: the problems on which the annealed run ended lower than Lloyd's, and those "
    "on which it ended higher, by more than 0.01 %. *enough*: the problems on which one run of "
    "Lloyd was within 0.1 % of the lowest."
)


def measured_how(stored: dict, record: Record) -> str:
    settings = stored["figures"]["settings"]
    n_real = sum(problem["group"] == "real" for problem in record.problems.values())
    n_seeds = sorted(
        {len(column) for cells in record.cells.values() for column in cells.values() if column}
    )
    seeds = " to ".join(str(n) for n in dict.fromkeys((n_seeds[0], n_seeds[-1])))
    bystanders = [problem["bystanders"] or 0.0 for problem in record.problems.values()]
    drifts = [problem["drift"] for problem in record.problems.values()]
    first, *others = stored["figures"]["runs"]
    more = f" and {len(others)} more runs, listed in the stored file," if others else ""
    return (
        f"Measured on {stored['date']} by `{first}`{more} on {stored['processor']}, "
        f"threads: {settings['threads']}, problems at a time: {settings['jobs']}, "
        f"{stored['versions']['instruction set']}, Python {stored['versions']['python']}; "
        f"{n_real} problems with real data and {len(record.problems) - n_real} with generated "
        f"data, {seeds} seeds. "
        f"Other processes used {mean(bystanders):.2f} processors on average; a calibration loop "
        f"before and after each problem differed by at most {STEADY:.0%} for "
        f"{sum(drift <= STEADY for drift in drifts)} of {len(drifts)} problems."
    )
