"""Draws the picture that the README opens with.

On the left, scikit-learn's `KMeans` and `PowerKMeans` as they come, on the same points. On the
right, the stored run of benchmarks.quality: how far each method ends above the lowest sum of
squares known, against the time that it takes.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from benchmarks.machine import read
from powermeans import PowerKMeans

N_CLUSTERS = 40
OURS, THEIRS, OTHERS, POINTS = "#0072B2", "#E69F00", "#009E73", "#9AA5B1"
# What each method is called, its colour, and where its label stands, in points.
METHODS = {
    "sklearn-1": ("scikit-learn, one start", THEIRS, (8, 4)),
    "sklearn-10": ("scikit-learn, ten starts", THEIRS, (-6, 9)),
    "bkmeans": ("bkmeans", OTHERS, (8, 4)),
    "fast": ('effort="fast"', OURS, (8, -14)),
    "balanced": ("PowerKMeans()", OURS, (8, -4)),
    "thorough": ('effort="thorough"', OURS, (-12, 10)),
}


def towns() -> np.ndarray:
    """Customers around forty towns of several sizes and densities."""
    rng = np.random.default_rng(4)
    sizes = rng.integers(60, 400, N_CLUSTERS)
    spreads = rng.uniform(0.25, 0.6, N_CLUSTERS)
    places = rng.uniform(0, 20, (N_CLUSTERS, 2))
    points, _ = make_blobs(sizes.tolist(), centers=places, cluster_std=spreads, random_state=0)
    return points


def draw_fit(axes: Axes, points: np.ndarray, model: Any, name: str, best: float) -> None:
    """Draw the points and the centers of one fit."""
    started = time.perf_counter()
    model.fit(points)
    seconds = time.perf_counter() - started
    axes.scatter(*points.T, s=2, color=POINTS, linewidths=0, rasterized=True)
    color = OURS if isinstance(model, PowerKMeans) else THEIRS
    axes.scatter(*model.cluster_centers_.T, s=46, color=color, edgecolors="black", zorder=3)
    excess = 100 * (model.inertia_ / best - 1)
    is_best = excess < 0.05
    said = "the lowest sum of squares known" if is_best else f"{excess:.0f} % above the lowest"
    axes.set_title(f"{name}\n{said}, {seconds:.2f} s", fontsize=11)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_aspect("equal")


def draw_chart(axes: Axes, figures: dict[str, Any]) -> None:
    """Draw mean excess against time, a point for each method."""
    summary = {line["method"]: line for line in figures["summary"]}
    for name, (said, color, offset) in METHODS.items():
        x, y = summary[name]["seconds"], summary[name]["mean excess %"]
        axes.plot(x, y, "o", color=color, markersize=10, markeredgecolor="black")
        align = "left" if offset[0] > 0 else "center"
        label = f"{said}\n{y:.2g} %"
        axes.annotate(label, (x, y), offset, textcoords="offset points", ha=align, fontsize=9)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.margins(x=0.25, y=0.2)
    axes.set_xlabel(f"seconds for {len(figures['problems'])} problems")
    axes.set_ylabel("mean excess over the lowest known, %")
    axes.set_title("Lower is better, left is sooner", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)


def main() -> None:
    """Draw and store the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("docs/_static/hero.png"))
    output = parser.parse_args().output
    points = towns()
    best = PowerKMeans(N_CLUSTERS, effort="thorough", random_state=1).fit(points).inertia_
    figure, (theirs, ours, chart) = plt.subplots(
        1, 3, figsize=(14, 4.8), width_ratios=(1, 1, 1.25), layout="constrained"
    )
    fits = (
        (theirs, KMeans(N_CLUSTERS, random_state=0), f"scikit-learn: KMeans({N_CLUSTERS})"),
        (ours, PowerKMeans(N_CLUSTERS, random_state=0), f"powermeans: PowerKMeans({N_CLUSTERS})"),
    )
    for axes, model, name in fits:
        draw_fit(axes, points, model, name, best)
    draw_chart(chart, read("quality", "quality")["figures"])
    figure.savefig(output, dpi=110)
    print(output)


if __name__ == "__main__":
    main()
