"""How often each criterion of `choose_k` says the number of clusters that the data was drawn with.

Generated families in 2 and 10 features, 3 to 12 clusters, k from 2 to 20. A criterion that says
nothing, as the gap does where it rises to the end, is not right.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from statistics import mean
from typing import TypedDict

import numpy as np

from benchmarks import machine
from benchmarks.families import Points, draw
from benchmarks.pages import Page, Rows, as_markdown, as_text
from powermeans.choosing_k.choose import DEFAULT, RANKING, choose_k, vote
from powermeans.choosing_k.evaluate import CRITERIA
from powermeans.estimators.power_kmeans import PowerKMeans

NAME = "choosing_k"
PAGE = Page("choosing_k", "python -m benchmarks.choosing_k --page")
FAMILIES = (
    "separated",
    "overlapping",
    "unbalanced",
    "unequal-spread",
    "grid",
    "heavy-tails",
    "noise-features",
)
N_FEATURES = (2, 10)
N_CLUSTERS = (3, 5, 8, 12)
N_POINTS = 1500
K_RANGE = range(2, 21)
# Noise features are so wide, in standard deviations of a cluster, and as many as the others.
NOISE = 3.0
VOTES: dict[str, tuple[str, ...]] = {
    "vote of all": tuple(CRITERIA),
    "vote of the default": DEFAULT,
}

Problem = tuple[str, int, int, int]


class Cell(TypedDict):
    """One set: what each criterion said."""

    family: str
    d: int
    k: int
    seed: int
    said: dict[str, int | None]


def drawn(family: str, n_features: int, n_clusters: int, seed: int) -> Points:
    if family != "noise-features":
        return draw(family, n_features, n_clusters, n_points=N_POINTS, data_seed=seed)
    points = draw("separated", n_features, n_clusters, n_points=N_POINTS, data_seed=seed)
    noise = NOISE * np.random.default_rng(seed).standard_normal(points.shape)
    return np.ascontiguousarray(np.hstack([points, noise]))


def problems(n_seeds: int) -> Iterator[Problem]:
    for family in FAMILIES:
        for n_features in N_FEATURES:
            for n_clusters in N_CLUSTERS:
                for seed in range(n_seeds):
                    yield family, n_features, n_clusters, seed


def measured(problem: Problem) -> Cell:
    family, n_features, n_clusters, seed = problem
    choice = choose_k(drawn(*problem), K_RANGE, criteria="all", random_state=seed)
    said = dict(choice.by_criterion)
    for name, voters in VOTES.items():
        said[name] = vote({v: k for v in voters if (k := choice.by_criterion[v]) is not None})
    return {"family": family, "d": n_features, "k": n_clusters, "seed": seed, "said": said}


def hit_rates(cells: list[Cell]) -> Rows:
    """Percent right, by family and over all, the best criterion first; and percent off by one."""
    names = sorted(cells[0]["said"], key=lambda name: -rate(cells, name))
    head = ["criterion", "right %", "within 1 %", *(f for f in FAMILIES)]
    rows = [head]
    for name in names:
        of_families = [rate([c for c in cells if c["family"] == f], name) for f in FAMILIES]
        figures = [rate(cells, name), rate(cells, name, within=1), *of_families]
        rows.append([name.replace("_", " "), *(f"{100 * figure:.0f}" for figure in figures)])
    return rows


def rate(cells: list[Cell], name: str, within: int = 0) -> float:
    """The share of the sets of which a criterion says the truth, or almost."""

    def miss(cell: Cell) -> float:
        said = cell["said"][name]
        return math.inf if said is None else abs(said - cell["k"])

    return mean(miss(cell) <= within for cell in cells)


def seconds() -> list[dict[str, object]]:
    """How long it takes, beside as many fits that share nothing."""
    points = drawn("overlapping", 10, 8, 0)

    def timed(run: Callable[[], object]) -> float:
        began = time.perf_counter()
        run()
        return time.perf_counter() - began

    ways: dict[str, Callable[[], object]] = {
        "19 fits of PowerKMeans": lambda: [
            PowerKMeans(k, random_state=0).fit(points) for k in K_RANGE
        ],
        **{
            f"choose_k, {name.replace('_', ' ')} alone": lambda name=name: choose_k(
                points, K_RANGE, criteria=name, random_state=0
            )
            for name in ("bic", "silhouette", "stability", "gap")
        },
        "choose_k, default": lambda: choose_k(points, K_RANGE, random_state=0),
        "choose_k, all": lambda: choose_k(points, K_RANGE, criteria="all", random_state=0),
    }
    return [
        {"what": name, "seconds": min(timed(run) for _ in range(3))} for name, run in ways.items()
    ]


def as_page(stored: dict) -> str:
    cells, times = stored["figures"]["cells"], stored["figures"]["seconds"]
    n_seeds = 1 + max(cell["seed"] for cell in cells)
    error = 100 * math.sqrt(0.25 / len(cells))
    measured_on = (
        f"Measured on {stored['date']} by `{stored['command']}` on {stored['processor']}, "
        f"{stored['processors used']} processors: {len(cells)} sets of {N_POINTS} points, "
        f"{len(FAMILIES)} families in {' and '.join(map(str, N_FEATURES))} features with "
        f"{', '.join(map(str, N_CLUSTERS))} clusters, {n_seeds} seeds each; k from {K_RANGE[0]} to "
        f"{K_RANGE[-1]}. The standard error of a percentage over all is at most {error:.1f}. "
        "Families are percent right."
    )
    time_rows = [["", "seconds"], *([row["what"], f"{row['seconds']:.2f}"] for row in times)]
    return (
        f"{measured_on}\n\n{as_markdown(hit_rates(cells))}\n\n"
        f"Time for one of these sets (overlapping, 10 features, 8 clusters):\n\n"
        f"{as_markdown(time_rows)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--page", action="store_true", help="write what is stored into the docs")
    arguments = parser.parse_args()
    if arguments.page:
        PAGE.write(as_page(machine.read(NAME, "choosing_k")))
        return
    cells = [measured(problem) for problem in problems(arguments.seeds)]
    print(as_text(hit_rates(cells)), flush=True)
    print(f"ranking in use: {', '.join(RANKING)}")
    print(machine.store(NAME, {"cells": cells, "seconds": seconds()}))


if __name__ == "__main__":
    main()
