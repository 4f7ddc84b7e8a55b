"""Seconds and inertia of fits on Dask, from the figures of the benchmark."""

import json
from pathlib import Path

from drawing import panels

from powermeans.plots.canvas import BLUE, GREY, ORANGE

runs_of_all = json.loads(Path("../../benchmarks/results/scale.json").read_text())["figures"][
    "peers"
]["cells"]
(ax,) = panels("10,000,000 points on Dask, 50 centers", height=3.2)
styles = {
    "dask-ml KMeans": (GREY, "D"),
    "powermeans KMeans": (ORANGE, "s"),
    'powermeans PowerKMeans(effort="none")': (BLUE, "o"),
}
for name, (color, marker) in styles.items():
    runs = [run for run in runs_of_all if run["fit"] == name]
    seconds = [float(run["seconds"]) for run in runs]
    inertias = [float(run["inertia"].removesuffix(" M")) / 100 for run in runs]
    ax.scatter(seconds, inertias, color=color, marker=marker, label=name)
ax.set(xscale="log", xlabel="seconds of a fit", ylabel="inertia, 10⁸")
ax.set_xticks([30, 100, 300, 600], [30, 100, 300, 600])
ax.minorticks_off()
ax.legend(frameon=False)
