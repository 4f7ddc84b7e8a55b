"""Sum of squares against processor seconds, from the figures of the benchmark."""

import json
from pathlib import Path

import matplotlib.pyplot as plt

from powermeans.plots.canvas import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    tidy,
)

stored = json.loads(Path("../../benchmarks/results/many_centers.json").read_text())["figures"]
styles = {
    'PowerKMeans(effort="fast")': (BLUE, "o"),
    "TreeSeeds()": (SKY, "v"),
    "KMeans(init=TreeSeeds(), max_iter=2)": (GREEN, "^"),
    "faiss Kmeans": (ORANGE, "s"),
    "superkmeans": (VERMILION, "D"),
    "sklearn MiniBatchKMeans": (GREY, "P"),
    "sklearn BisectingKMeans": (PURPLE, "X"),
}
figure, axes = plt.subplots(2, 2, figsize=(8.4, 6.4), layout="constrained")
drawn = {}
stored = {name: found for name, found in stored.items() if found["set"]["n_centers"] > 1000}
for ax in axes.flat[len(stored) :]:
    ax.set_axis_off()
for ax, found in zip(axes.flat, stored.values(), strict=False):
    size = found["set"]
    ax.set_title(
        f"{size['n_points']:,} × {size['n_features']}, {size['n_centers']:,} centers", fontsize=11
    )
    tidy(ax)
    for cell in found["cells"]:
        if cell["method"] not in styles or "sum_of_squares" not in cell:
            continue
        color, marker = styles[cell["method"]]
        path = [*cell["path"], [cell["cpu"], cell["sum_of_squares"]]]
        ax.semilogx(*zip(*path, strict=True), color=color, linewidth=1)
        (end,) = ax.plot(*path[-1], marker, color=color, label=cell["method"])
        drawn[cell["method"]] = end
    ax.set_xlabel("processor seconds")
    ax.set_ylabel("sum of squares")
    ax.grid(color="#e4e7ea")
    ax.xaxis.set_minor_formatter("")
order = [name for name in styles if name in drawn]
figure.legend(
    [drawn[name] for name in order], order, loc="outside lower center", ncols=3, frameon=False
)
