"""Measure how far fits are from the optimum at most, and write the page's figure and table.

Run ``POWERMEANS_DATA=... python -m benchmarks.optimality`` for all of it.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import BisectingKMeans, KMeans, MiniBatchKMeans
from sklearn.mixture import GaussianMixture

from powermeans import FuzzyCMeans, KHarmonicMeans, PowerKMeans
from powermeans import KMeans as OurKMeans
from powermeans.datasets import load_data_set
from powermeans.metrics import quality_ratio

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "optimality.json"
PAGE = ROOT / "docs" / "how_far_from_the_optimum.md"
FIGURE = ROOT / "docs" / "_static" / "optimality.svg"
SETS = ("ruspini", "iris", "wine", "glass")
NUMBERS = (2, 3, 4, 5, 6, 8, 10)
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
        "PowerKMeans, refine=0": PowerKMeans(n_clusters, refine=0, random_state=0),
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


def measure(max_seconds: float) -> None:
    """Judge all problems and write the results."""
    problems = []
    for name in SETS:
        for n_clusters in NUMBERS:
            problems.append(judged(name, n_clusters, max_seconds))
            print(
                {key: value for key, value in problems[-1].items() if key != "ratios"}, flush=True
            )
    results = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{platform.machine()}, {platform.system()}",
        "version": version("powermeans"),
        "command": f"python -m benchmarks.optimality --seconds {max_seconds:g}",
        "problems": problems,
    }
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def write_page(results: dict[str, Any]) -> None:
    """Write the table between the marks of the page."""
    head, _, rest = PAGE.read_text(encoding="utf-8").partition("<!-- table -->\n")
    _, _, tail = rest.partition("<!-- end of table -->")
    lines = ["| data | points | k | proved to be within | seconds |", "|---|---|---|---|---|"]
    gaps = [one["inertia"] / one["bound"] - 1 for one in results["problems"]]
    for one, gap in zip(results["problems"], gaps, strict=True):
        shape = f"{one['n_points']} × {one['n_features']}"
        lines.append(
            f"| {one['name']} | {shape} | {one['n_clusters']} | {_percent(gap)} "
            f"| {one['cpu_seconds']:.1f} |"
        )
    n_all = len(gaps)
    lines += [
        "",
        f"Of these {n_all} default fits, {sum(gap <= 1e-3 for gap in gaps)} are proved optimal to "
        f"0.1 %, and {sum(gap <= 1e-2 for gap in gaps)} to 1 %. Seconds are of one processor, "
        f"measured on {results['date']} ({results['machine']}, version {results['version']}) by "
        f"`{results['command']}`.",
        "",
    ]
    PAGE.write_text(
        f"{head}<!-- table -->\n" + "\n".join(lines) + f"<!-- end of table -->{tail}",
        encoding="utf-8",
    )


def _percent(gap: float) -> str:
    """Return a gap in percent with two digits, rounded up."""
    percent = 100 * max(gap, 1e-6)
    unit = 10.0 ** (math.floor(math.log10(percent)) - 1)
    return f"{math.ceil(percent / unit - 1e-6) * unit:.2g} %"


def draw(results: dict[str, Any]) -> None:
    """Draw the inertia of each method over the bound, for the problems shown."""
    from matplotlib.figure import Figure

    shown = [one for one in results["problems"] if one["ratios"]]
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for place, method in enumerate(shown[0]["ratios"]):
        heights = [100 * (one["ratios"][method] - 1) for one in shown]
        marker = "osD^v<>PX*"[place]
        at = np.arange(len(shown)) + (place - 4.5) * 0.07
        axes.plot(at, np.maximum(heights, 1e-4), marker, label=method, markersize=5)
    axes.set_yscale("log")
    axes.set_ylabel("percent above the proved bound")
    names = [f"{one['name']}\nk = {one['n_clusters']}" for one in shown]
    axes.set_xticks(range(len(shown)), names)
    axes.legend(fontsize="x-small", loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(FIGURE, metadata={"Date": None})


def main() -> None:
    """Measure unless told to use what is there, then write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="for each problem")
    parser.add_argument("--only-write", action="store_true", help="from the results that are there")
    options = parser.parse_args()
    if not options.only_write:
        measure(options.seconds)
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    write_page(results)
    draw(results)


if __name__ == "__main__":
    main()
