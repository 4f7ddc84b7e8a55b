"""How far fits are from the optimum at most: the tables of the page.

Parts: `problems`, small sets; `large`, many points; `grid`, time and memory by size; `count`, how
many of the problems on which quality is measured are proved to what share; `published`, sets of the
kind for which other bounds were published. Set POWERMEANS_DATA to the folder of the sets.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
from sklearn.cluster import BisectingKMeans, KMeans, MiniBatchKMeans
from sklearn.mixture import GaussianMixture

from benchmarks import machine
from benchmarks.pages import Page, as_markdown
from benchmarks.problems import Problem, all_problems
from powermeans import KMeans as OurKMeans
from powermeans import PowerKMeans, optimality_gap
from powermeans.datasets import load_data_set
from powermeans.methods import FuzzyCMeans, KHarmonicMeans
from powermeans.metrics import quality_ratio
from powermeans.optimality import proof as search

NAME = "optimality"
SETS = ("ruspini", "mssc_german", "iris", "wine", "glass", "r15")
NUMBERS = (2, 3, 4, 5, 6, 8, 10)
# Points, features and clusters of Gaussian clusters a little apart, and the confidence asked for.
LARGE = ((10_000, 10, 5, None), (100_000, 10, 5, None), (1_000_000, 10, 5, 0.99))
GRID_OF_POINTS, GRID_OF_CLUSTERS = (200, 600, 2_000, 20_000, 200_000), (3, 10, 50, 200)
# Seconds for which the drawn problems are judged, and the shares that count.
COUNTED, SHARES = (1.0, 10.0, 60.0), (0.001, 0.01, 0.05, 0.2)
# Real sets of 1 000 to 11 000 points and up to ten clusters, as in arXiv 2502.08397.
LIKE_PUBLISHED = (
    *("tsp_u1060/10", "tsp_pr2392/5", "tsp_pr2392/10", "tsp_pcb3038/5", "tsp_pcb3038/10"),
    *("segmentation/7", "pendigits/10"),
)
SHOWN = (("ruspini", 4), ("iris", 3), ("iris", 8), ("wine", 3), ("glass", 6), ("glass", 10))


def points_of(name: str) -> np.ndarray:
    """Return the points, with columns of one variance where their units differ."""
    points = np.asarray(load_data_set(name).points, dtype=np.float64)
    return (points - points.mean(axis=0)) / points.std(axis=0) if name == "wine" else points


def judged(name: str, n_clusters: int, max_seconds: float) -> dict[str, Any]:
    """Judge the default fit of one problem."""
    points = points_of(name)
    model = PowerKMeans(n_clusters, random_state=0).fit(points)
    used = time.process_time()
    found = model.optimality_gap(points, max_seconds=max_seconds)
    return {
        "name": name,
        "n_points": len(points),
        "n_features": points.shape[1],
        "n_clusters": n_clusters,
        "inertia": found.inertia,
        "bound": found.bound,
        "seconds": found.seconds,
        "cpu_seconds": time.process_time() - used,
        "ratios": ratios_of(points, model, found.bound) if (name, n_clusters) in SHOWN else {},
    }


def ratios_of(points: np.ndarray, model: PowerKMeans, bound: float) -> dict[str, float]:
    """Return the inertia over the bound of ten methods, one run of each."""
    n_clusters = model.n_clusters
    centers = {
        "PowerKMeans": model.cluster_centers_,
        'PowerKMeans, effort="none"': PowerKMeans(n_clusters, effort="none", random_state=0),
        "KMeans": OurKMeans(n_clusters, random_state=0),
        "KMeans, random": OurKMeans(n_clusters, init="random", n_init=1, random_state=0),
        "KHarmonicMeans": KHarmonicMeans(n_clusters, random_state=0),
        "FuzzyCMeans": FuzzyCMeans(n_clusters, random_state=0),
        "scikit-learn KMeans, 10 runs": KMeans(n_clusters, n_init=10, random_state=0),
        "scikit-learn MiniBatchKMeans": MiniBatchKMeans(n_clusters, n_init=3, random_state=0),
        "scikit-learn BisectingKMeans": BisectingKMeans(n_clusters, random_state=0),
        "scikit-learn GaussianMixture": GaussianMixture(n_clusters, random_state=0),
    }
    found = {}
    for name, one in centers.items():
        if not isinstance(one, np.ndarray):
            one.fit(points)
            one = one.means_ if isinstance(one, GaussianMixture) else one.cluster_centers_
        inertia = quality_ratio(points, one, model.cluster_centers_) ** 2 * model.inertia_
        found[name] = inertia / bound
    return found


def gaussian_clusters(n_points: int, n_features: int, n_clusters: int) -> np.ndarray:
    """Return clusters whose centers are about seven standard deviations apart."""
    rng = np.random.default_rng(n_points)
    centers = rng.normal(scale=5 / math.sqrt(n_features), size=(n_clusters, n_features))
    points = centers[rng.integers(n_clusters, size=n_points)]
    return points + rng.normal(size=points.shape)


def judged_in_process(
    points: np.ndarray, n_clusters: int, confidence: float | None, max_seconds: float
) -> dict[str, Any]:
    """Judge a default fit in a process of its own, and measure the memory that the proof adds."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context) as executor:
        found = executor.submit(_judged_here, points, n_clusters, confidence, max_seconds).result()
    return {
        "n_points": len(points),
        "n_features": points.shape[1],
        "n_clusters": n_clusters,
        **found,
    }


def _judged_here(
    points: np.ndarray, n_clusters: int, confidence: float | None, max_seconds: float
) -> dict[str, Any]:
    model = PowerKMeans(n_clusters, random_state=0, effort="fast").fit(points)
    machine.begin_peak()
    before = machine.held("VmRSS")
    found = model.optimality_gap(points, max_seconds=max_seconds, confidence=confidence)
    return {
        "verdict": found.verdict,
        "gap": found.gap,
        "method": found.method,
        "n_searched": found.n_searched,
        "n_subsets": found.n_subsets,
        "seconds": found.seconds,
        "megabytes": (machine.held("VmHWM") - before) / 2**20,
    }


def large(max_seconds: float) -> Iterator[dict[str, Any]]:
    """Judge fits of many points."""
    mnist = np.asarray(load_data_set("mnist_test").points, dtype=np.float64)
    yield judged_in_process(mnist, 10, None, max_seconds) | {"name": "MNIST, test images"}
    for n_points, n_features, n_clusters, confidence in LARGE:
        points = gaussian_clusters(n_points, n_features, n_clusters)
        one = judged_in_process(points, n_clusters, confidence, max_seconds)
        yield one | {"name": "Gaussian clusters"}


def grid(max_seconds: float) -> Iterator[dict[str, Any]]:
    """Judge fits of several numbers of points and clusters, for a few seconds each."""
    for n_points in GRID_OF_POINTS:
        for n_clusters in GRID_OF_CLUSTERS:
            if n_points >= 3 * n_clusters:
                points = gaussian_clusters(n_points, 10, n_clusters)
                yield judged_in_process(points, n_clusters, None, max_seconds)


def small(max_seconds: float) -> Iterator[dict[str, Any]]:
    """Judge fits of the small sets."""
    for name in SETS:
        for n_clusters in NUMBERS:
            yield judged(name, n_clusters, max_seconds)


def drawn_problems() -> list[Problem]:
    """Return the problems of the quality benchmark in an order drawn once and for all."""
    problems = all_problems(data_seed=0, large=False)
    order = np.random.default_rng(2026).permutation(len(problems))
    return [problems[place] for place in order]


def counted(_: float) -> Iterator[dict[str, Any]]:
    """Judge thorough fits of drawn problems, for several numbers of processor seconds.

    What a shorter time has proved to the smallest share is not judged again.
    """
    for problem in drawn_problems():
        points = np.asarray(problem.load(), dtype=np.float64)
        centers = PowerKMeans(problem.n_clusters, random_state=0, effort="thorough").fit(points)
        one: dict[str, Any] = {"gap": np.inf}
        for seconds in COUNTED:
            if one["gap"] > min(SHARES):
                one = judged_by_processor(points, centers.cluster_centers_, seconds)
            yield {"name": problem.name, "max_seconds": seconds, **one}


def like_published(max_seconds: float) -> Iterator[dict[str, Any]]:
    """Judge thorough fits of sets of the kind of those for which bounds were published."""
    problems = {problem.name: problem for problem in drawn_problems()}
    for name in LIKE_PUBLISHED:
        points = np.asarray(problems[name].load(), dtype=np.float64)
        model = PowerKMeans(problems[name].n_clusters, random_state=0, effort="thorough")
        centers = model.fit(points).cluster_centers_
        yield {"name": name, **judged_by_processor(points, centers, max_seconds)}


def judged_by_processor(points: np.ndarray, centers: np.ndarray, seconds: float) -> dict[str, Any]:
    """Judge centers for some seconds of this process, however busy others keep the machine."""
    used = time.process_time()
    with mock.patch.object(search, "time", SimpleNamespace(monotonic=time.process_time)):
        found = optimality_gap(points, centers, max_seconds=seconds, random_state=0, n_threads=1)
    return {
        "n_points": len(points),
        "n_features": points.shape[1],
        "n_clusters": len(centers),
        "inertia": found.inertia,
        "gap": found.gap,
        "cpu_seconds": time.process_time() - used,
    }


PARTS: dict[str, Callable[[float], Iterator[dict[str, Any]]]] = {
    "problems": small,
    "large": large,
    "grid": grid,
    "count": counted,
    "published": like_published,
}


def table_of_large(found: list[dict[str, Any]]) -> str:
    rows = [["data", "points", "k", "result", "subsets searched", "seconds"]]
    for one in found:
        shape = f"{one['n_points']:,} × {one['n_features']}".replace(",", " ")
        searched = f"{one['n_searched']} of {one['n_subsets']}"
        k, seconds = str(one["n_clusters"]), f"{one['seconds']:.0f}"
        rows.append([one["name"], shape, k, one["verdict"], searched, seconds])
    return as_markdown(rows, are_numbers=False)


def table_of_grid(found: list[dict[str, Any]]) -> str:
    cells = {
        (one["n_points"], one["n_clusters"]): (
            f"{_percent(one['gap'])}, {one['seconds']:.1f} s, {one['megabytes']:.0f} MB"
        )
        for one in found
    }
    rows = [["points", *(f"k = {k}" for k in GRID_OF_CLUSTERS)]]
    for n in GRID_OF_POINTS:
        texts = (cells.get((n, k), "") for k in GRID_OF_CLUSTERS)
        rows.append([f"{n:,}".replace(",", " "), *texts])
    return as_markdown(rows)


def table_of_gaps(found: list[dict[str, Any]]) -> str:
    rows = [["data", "points", "k", "proved to be within", "seconds"]]
    for one in found:
        name, shape = one["name"].split("/")[0], f"{one['n_points']} × {one['n_features']}"
        k, seconds = str(one["n_clusters"]), f"{one['cpu_seconds']:.1f}"
        rows.append([name, shape, k, _percent(one["gap"]), seconds])
    return as_markdown(rows)


def table_of_problems(found: list[dict[str, Any]]) -> str:
    """Return the table of small problems, and what it says."""
    gaps = [one["inertia"] / one["bound"] - 1 for one in found]
    rows = [one | {"gap": gap} for one, gap in zip(found, gaps, strict=True)]
    return (
        f"{table_of_gaps(rows)}\n\nOf these {len(gaps)} default fits, "
        f"{sum(gap <= 1e-3 for gap in gaps)} are proved to be within 0.1 % of the optimum, and "
        f"{sum(gap <= 1e-2 for gap in gaps)} within 1 %."
    )


def table_of_count(found: list[dict[str, Any]]) -> str:
    rows = [["seconds", "problems", *(f"within {100 * share:g} %" for share in SHARES)]]
    for seconds in COUNTED:
        gaps = [one["gap"] for one in found if one["max_seconds"] == seconds]
        n_within = (str(sum(gap <= share for gap in gaps)) for share in SHARES)
        rows.append([f"{seconds:g}", str(len(gaps)), *n_within])
    return as_markdown(rows)


TABLES = {
    "problems": table_of_problems,
    "large": table_of_large,
    "grid": table_of_grid,
    "count": table_of_count,
    "published": table_of_gaps,
}
# How small the gaps are stands where the proof is explained.
PLACES = {"count": "understand/how_far_from_the_optimum"}
PAGES = {
    part: Page(
        PLACES.get(part, "project/certificate"), f"python -m benchmarks.optimality --page ({part})"
    )
    for part in TABLES
}


def as_page(part: str, stored: dict[str, Any]) -> str:
    found = stored["figures"][part]
    return f"{machine.measured(found)}.\n\n{TABLES[part](found['cells'])}"


def _percent(gap: float) -> str:
    """Return a gap in percent with two digits, rounded up."""
    if math.isinf(gap):
        return "nothing"
    percent = 100 * max(gap, 1e-6)
    unit = 10.0 ** (math.floor(math.log10(percent)) - 1)
    rounded = math.ceil(percent / unit - 1e-6) * unit
    return f"{rounded:.0f} %" if rounded >= 100 else f"{rounded:.2g} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--seconds", type=float, default=20.0, help="for each fit")
    parser.add_argument("--page", action="store_true", help="write what is stored into the docs")
    options = parser.parse_args()
    if options.page:
        stored = machine.read(NAME, NAME)
        for part, page in PAGES.items():
            page.write(as_page(part, stored))
        return
    for part in options.parts:
        cells = []
        for cell in PARTS[part](options.seconds):
            cells.append(cell)
            print({key: value for key, value in cell.items() if key != "ratios"}, flush=True)
        print(machine.store_part(NAME, part, cells), flush=True)


if __name__ == "__main__":
    main()
