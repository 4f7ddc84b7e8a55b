"""What the design of the search rests on: starts, schedules, breaths and efforts compared.

Parts: `starts` and `schedules` of a single annealed run, `breaths` with Lloyd's rule or annealing
inside, `efforts` beside and between those that there are, and `recovery` of clusters whose centers
are known, beside scikit-learn. The first four run on generated data that no other benchmark draws.
With `--costs`: what the efforts cost on large data, in fits of one start.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict
from statistics import mean

import numpy as np
import sklearn.cluster
import threadpoolctl
from sklearn.exceptions import ConvergenceWarning

import powermeans.loop.search
from benchmarks import machine
from benchmarks.families import Points, draw
from benchmarks.pages import Page, Rows, as_markdown, as_text
from benchmarks.problems import DATA_VARIABLE
from powermeans import KMeans, PowerKMeans
from powermeans.critical import critical_power
from powermeans.datasets import load_data_set
from powermeans.loop.history import History
from powermeans.loop.search import EFFORTS, Effort, Search
from powermeans.metrics import centroid_index
from powermeans.rows import open_rows
from powermeans.seeds.choose import choose_seeds

NAME = "choices"
PAGE = Page("how_it_searches", "python -m benchmarks.choices --page")
COSTS = "search_costs"
PAGE_OF_COSTS = Page("how_it_searches", "python -m benchmarks.choices --costs --page")
# Points, features, centers; there are more groups than centers.
LARGE = [
    ("overlapping", 10**6, 50, 8),
    ("overlapping", 10**6, 8, 100),
    ("overlapping", 300_000, 100, 30),
    ("overlapping", 10**5, 784, 10),
    ("overlapping", 10**5, 20, 500),
    ("noise", 2 * 10**6, 4, 20),
    ("heavy-tails", 200_000, 50, 60),
    ("unbalanced", 50_000, 8, 1000),
    ("noise", 20_000, 1000, 50),
    ("unequal-spread", 500_000, 20, 20),
]
DATA_SEED = 11
SEEDS = (0, 1)
PROBLEMS = [
    (family, n_features, n_clusters)
    for family in (
        "overlapping",
        "unbalanced",
        "unequal-spread",
        "heavy-tails",
        "noise",
        "duplicates",
    )
    for n_features, n_clusters in ((2, 10), (2, 50), (10, 20), (10, 50), (40, 20))
]
SMALL_EFFORTS = {
    **{name: efforts[-1] for name, efforts in EFFORTS.items()},
    "one start, no crossings": Effort(1, 0, 0, least_gain=1e-3),
    "one start, annealed breaths too": Effort(1, 1, 0, least_gain=1e-3),
    "two starts": Effort(2, 0, 5, least_gain=1e-3),
    "five starts": Effort(5, 0, 5, least_gain=1e-3),
    "no crossings": Effort(3, 0, 0, least_gain=1e-3),
    "10 crossings in vain": Effort(3, 0, 10, least_gain=1e-3),
    "one annealed": Effort(3, 1, 5, least_gain=1e-3),
    "every gain counts": Effort(3, 0, 5, least_gain=1e-9),
    "gains count from 1e-2": Effort(3, 0, 5, least_gain=1e-2),
}

Figures = list[dict[str, object]]


def points_of(problem: tuple[str, int, int]) -> Points:
    family, n_features, n_clusters = problem
    return draw(family, n_features, n_clusters, data_seed=DATA_SEED)


def compared(variants: dict[str, Callable[[Points, int, int], dict]]) -> Figures:
    """Mean excess over the lowest that any variant found, sweeps and seconds, of each variant."""
    cells: dict[str, list[dict]] = {name: [] for name in variants}
    for problem in PROBLEMS:
        points = points_of(problem)
        for seed in SEEDS:
            for name, run in variants.items():
                began = time.perf_counter()
                cell = run(points, problem[2], seed)
                cells[name].append({**cell, "seconds": time.perf_counter() - began})
    n_cells = len(PROBLEMS) * len(SEEDS)
    lowest = [
        # Of both seeds, which are neighbours in the list.
        min(cells[name][j]["inertia"] for name in variants for j in (i - i % 2, i - i % 2 + 1))
        for i in range(n_cells)
    ]
    return [
        {
            "variant": name,
            "mean excess %": 100
            * mean(c["inertia"] / low - 1 for c, low in zip(column, lowest, strict=True)),
            "worst %": 100
            * max(c["inertia"] / low - 1 for c, low in zip(column, lowest, strict=True)),
            "sweeps": mean(c["sweeps"] for c in column),
            "seconds": sum(c["seconds"] for c in column) / len(SEEDS),
        }
        for name, column in cells.items()
    ]


def annealed(**parameters: object) -> Callable[[Points, int, int], dict]:
    def run(points: Points, n_clusters: int, seed: int) -> dict:
        model = PowerKMeans(n_clusters, refine=0, random_state=seed, **parameters).fit(points)
        return {"inertia": model.inertia_, "sweeps": model.n_iter_}

    return run


def annealed_from(start: Callable[[float], float]) -> Callable[[Points, int, int], dict]:
    def run(points: Points, n_clusters: int, seed: int) -> dict:
        return annealed(power=min(start(critical_power(points)), -0.02))(points, n_clusters, seed)

    return run


def starts() -> Figures:
    """Where one annealed run begins; s_c is the critical power."""
    return compared(
        {
            "Lloyd": annealed(power=-np.inf),
            "min(2 s_c - 1, -1), as it is": annealed(),
            "min(2 s_c - 1, -0.2)": annealed_from(lambda s: min(2 * s - 1, -0.2)),
            "2 s_c": annealed_from(lambda s: 2 * s),
            "3 s_c - 1": annealed_from(lambda s: 3 * s - 1),
            "s_c - 0.5": annealed_from(lambda s: s - 0.5),
            "s_c": annealed_from(lambda s: s),
            "-3": annealed(power=-3.0),
            "-0.2": annealed(power=-0.2),
        }
    )


def schedules() -> Figures:
    """How fast one annealed run hardens."""
    growths = (1.02, 1.05, 1.1, 1.2, 1.3, 1.6, 2.0)
    return compared({f"growth {growth}": annealed(growth=growth) for growth in growths})


def breaths() -> Figures:
    """The same start, improved by breaths with Lloyd's rule inside, or with annealing."""
    families = ("overlapping", "unbalanced", "unequal-spread", "noise")
    figures: Figures = []
    for n_clusters in (10, 50, 200):
        cells = [
            cell
            for family in families
            for n_features in (2, 10)
            for seed in SEEDS
            for cell in breathed(points_of((family, n_features, n_clusters)), n_clusters, seed)
        ]
        for name in ("before", "Lloyd", "annealed"):
            column = [cell for cell in cells if cell["inside"] == name]
            figures.append(
                {
                    "k": n_clusters,
                    "inside": name,
                    "mean excess %": mean(100 * cell["excess"] for cell in column),
                    "sweeps": mean(cell["sweeps"] for cell in column),
                    "seconds": sum(cell["seconds"] for cell in column),
                }
            )
    return figures


def breathed(points: Points, n_clusters: int, seed: int) -> list[dict]:
    cells = []
    for name in ("before", "Lloyd", "annealed"):
        rng = np.random.RandomState(seed)
        rows, history = open_rows(points), History()
        critical = critical_power(points)
        search = Search(
            rows,
            start_power=min(2 * critical - 1, -1.0),
            critical_power=critical,
            depth=5,
            max_iter=300,
            tol=1e-6,
            rng=rng,
            history=history,
            least_gain=1e-4,
        )
        seeds, _ = choose_seeds(rows, n_clusters, rng, n_candidates=5)
        began = time.perf_counter()
        solution = search.descend(seeds)
        if name != "before":
            solution = search.breathe(solution, annealed=name == "annealed")
        cells.append(
            {
                "inside": name,
                "inertia": solution.inertia,
                "sweeps": len(history.records),
                "seconds": time.perf_counter() - began,
            }
        )
    lowest = min(float(cell["inertia"]) for cell in cells)
    return [{**cell, "excess": float(cell["inertia"]) / lowest - 1} for cell in cells]


def efforts() -> Figures:
    """The efforts, and what lies beside and between them."""

    def with_effort(effort: Effort) -> Callable[[Points, int, int], dict]:
        def run(points: Points, n_clusters: int, seed: int) -> dict:
            kept = powermeans.loop.search.EFFORTS["balanced"]
            powermeans.loop.search.EFFORTS["balanced"] = [effort]
            try:
                model = PowerKMeans(n_clusters, random_state=seed).fit(points)
            finally:
                powermeans.loop.search.EFFORTS["balanced"] = kept
            return {"inertia": model.inertia_, "sweeps": model.spent_.n_sweeps}

        return run

    figures = compared({name: with_effort(effort) for name, effort in SMALL_EFFORTS.items()})
    return [{**row, **asdict(SMALL_EFFORTS[str(row["variant"])])} for row in figures]


def known_centers() -> Iterator[tuple[str, Points, Points]]:
    """Clusters on a 3 x 3 grid, and BIRCH 1 and 2 where there is data."""
    rng = np.random.default_rng(DATA_SEED)
    grid = 4.0 * np.indices((3, 3)).reshape(2, -1).T
    yield "3 x 3 grid", grid[rng.integers(9, size=900)] + 0.5 * rng.normal(size=(900, 2)), grid
    if not os.environ.get(DATA_VARIABLE):
        return
    for number in (1, 2):
        birch = load_data_set(f"birch{number}")
        yield f"birch{number}", birch.points, birch.centers


def recovery() -> Figures:
    """In how many of 20 seeds every known center is found: centroid index 0."""
    figures: Figures = []
    methods = {
        "PowerKMeans()": lambda k, seed: PowerKMeans(k, random_state=seed),
        'PowerKMeans(effort="fast")': lambda k, seed: PowerKMeans(
            k, effort="fast", random_state=seed
        ),
        "scikit-learn, n_init=1": lambda k, seed: sklearn.cluster.KMeans(k, random_state=seed),
        "scikit-learn, n_init=10": lambda k, seed: sklearn.cluster.KMeans(
            k, n_init=10, random_state=seed
        ),
    }
    for name, points, known in known_centers():
        for label, model in methods.items():
            began = time.perf_counter()
            indices = [
                centroid_index(model(len(known), seed).fit(points).cluster_centers_, known)
                for seed in range(20)
            ]
            figures.append(
                {
                    "set": name,
                    "method": label,
                    "all found": f"{indices.count(0)} of 20",
                    "mean index": mean(indices),
                    "seconds a fit": (time.perf_counter() - began) / 20,
                }
            )
    return figures


def costs() -> Figures:
    """CPU seconds on one thread, and how far each ends above or below the best of ten starts."""
    figures: Figures = []
    for family, n_points, n_features, n_clusters in LARGE:
        n_groups = n_clusters + n_clusters // 5
        points = draw(family, n_features, n_groups, n_points=n_points, data_seed=DATA_SEED)
        starts = [cost_of(KMeans(n_clusters, random_state=seed), points) for seed in range(10)]
        row: dict[str, object] = {
            "points": n_points,
            "columns": n_features,
            "data": family,
            "k": n_clusters,
            "one start, s": mean(cost["seconds"] for cost in starts),
        }
        lowest = min(cost["inertia"] for cost in starts)
        for effort in ("fast", "balanced"):
            cost = cost_of(PowerKMeans(n_clusters, effort=effort, random_state=0), points)
            row[f"{effort}, starts"] = cost["seconds"] / row["one start, s"]
            row[f"{effort}, %"] = 100 * (cost["inertia"] / lowest - 1)
        figures.append(row)
        print(as_text(as_rows(figures)), flush=True)
    return figures


def cost_of(model: KMeans | PowerKMeans, points: Points) -> dict:
    began = time.process_time()
    inertia = model.fit(points).inertia_
    return {"inertia": inertia, "seconds": time.process_time() - began}


PARTS: dict[str, Callable[[], Figures]] = {
    part.__name__: part for part in (starts, schedules, breaths, efforts, recovery)
}


TITLES = {
    "starts": "Where one annealed run begins",
    "schedules": "How fast one annealed run hardens",
    "breaths": "Breaths with Lloyd's rule inside, and with annealing",
    "efforts": "What a search consists of",
    "recovery": "Known centers found",
}


def as_rows(figures: Figures) -> Rows:
    def cell(value: object) -> str:
        return f"{value:.3g}" if isinstance(value, float) else str(value)

    return [list(figures[0]), *([cell(value) for value in row.values()] for row in figures)]


def as_page(stored: dict) -> str:
    measured = (
        f"Measured on {stored['date']} by `{stored['command']}` on {stored['processor']}, "
        f"{stored['processors used']} processors. All tables but the last are on {len(PROBLEMS)} "
        "generated problems (2000 or 2500 points, 2 to 40 features, 10 to 50 centers), with "
        f"{len(SEEDS)} seeds each. The excess is that over the lowest inertia that any line of the "
        "same table found."
    )
    sections = (
        f"### {TITLES[part]}\n\n{as_markdown(as_rows(figures))}"
        for part, figures in stored["figures"].items()
    )
    return "\n\n".join([measured, *sections])


def as_page_of_costs(stored: dict) -> str:
    measured = (
        f"Measured on {stored['date']} by `{stored['command']}` on {stored['processor']}, one "
        "thread, CPU time. One start is the mean of ten fits of `KMeans`; the time of an effort "
        "is a multiple of that. The percentage is the inertia above that of the best of the ten."
    )
    return f"{measured}\n\n{as_markdown(as_rows(stored['figures']))}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--page", action="store_true", help="write what is stored into the docs")
    parser.add_argument("--costs", action="store_true", help="only what the efforts cost")
    arguments = parser.parse_args()
    if arguments.costs and arguments.page:
        PAGE_OF_COSTS.write(as_page_of_costs(machine.read(COSTS, "choices --costs")))
        return
    if arguments.costs:
        with threadpoolctl.threadpool_limits(1):
            print(machine.store(COSTS, costs()))
        return
    if arguments.page:
        PAGE.write(as_page(machine.read(NAME, "choices")))
        return
    warnings.simplefilter("ignore", ConvergenceWarning)
    figures = {}
    for part in arguments.parts:
        figures[part] = PARTS[part]()
        print(f"{TITLES[part]}\n{as_text(as_rows(figures[part]))}\n", flush=True)
    print(machine.store(NAME, figures))


if __name__ == "__main__":
    main()
