"""What a stored run of benchmarks.quality says: tables for the terminal and for the docs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import mean

from benchmarks.excess import (
    OURS,
    RIVALS,
    Record,
    below_best_known,
    contest,
    flaws,
    summary,
)
from benchmarks.machine import STEADY
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
# So near to the lowest that nothing is left to gain.
AS_GOOD = 1e-3


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


def below_table(record: Record) -> Rows:
    return [
        ["problem", "known before", "found", "lower by %", "by"],
        *(
            [
                line["problem"],
                f"{line['best known']:.10g}",
                f"{min(line['found'].values()):.10g}",
                f"{100 * (1 - min(line['found'].values()) / line['best known']):.5f}",
                ", ".join(sorted(line["found"], key=line["found"].__getitem__)),
            ]
            for line in below_best_known(record)
        ),
    ]


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
    if len(rows := below_table(record)) > 1:
        parts += ["### Lower than the best known", as_markdown(rows)]
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
