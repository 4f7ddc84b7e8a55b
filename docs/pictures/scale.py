"""Seconds and inertia of fits on Dask, from the figures of the benchmark."""

import json
from pathlib import Path

from drawing import panels

from powermeans.plots.canvas import BLUE, GREY, ORANGE

stored = json.loads(Path("../../benchmarks/results/scale.json").read_text())["figures"]["peers"][
    "cells"
]
(ax,) = panels(f"{stored['points']:,} points on Dask, {stored['centers']} centers", height=3.2)
styles = {
    "dask-ml KMeans": (GREY, "D"),
    "powermeans KMeans": (ORANGE, "s"),
    "powermeans PowerKMeans(refine=0)": (BLUE, "o"),
}
for name, (color, marker) in styles.items():
    runs = [run for run in stored["runs"] if run["name"] == name]
    seconds, inertias = zip(*((run["seconds"], run["inertia"] / 1e8) for run in runs), strict=True)
    ax.scatter(seconds, inertias, color=color, marker=marker, label=name)
ax.set(xscale="log", xlabel="seconds of a fit", ylabel="inertia, 10⁸")
ax.set_xticks([30, 100, 300, 600], [30, 100, 300, 600])
ax.minorticks_off()
ax.legend(frameon=False)
