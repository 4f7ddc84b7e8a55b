"""Seconds for a whole fit, from the figures of the benchmark."""

import json
from pathlib import Path
from statistics import mean

from drawing import panels

from powermeans.plots.canvas import BLUE, GREY, ORANGE, SKY

figures = json.loads(Path("../../benchmarks/results/speed.json").read_text())["figures"]
cells = figures["parts"]["fits"]["cells"][::-1]
(ax,) = panels("Seconds for a whole fit", height=4.4)
for name, starts, label, color, marker in (
    ("KMeans", 1, "KMeans", SKY, "v"),
    ("fast", 1, 'PowerKMeans, effort="fast"', ORANGE, "s"),
    ("balanced", 1, "PowerKMeans", BLUE, "o"),
    ("sklearn", 10, "scikit-learn, ten starts", GREY, "D"),
):
    seconds = [starts * mean(run["seconds"] for run in cell["runs"][name]) for cell in cells]
    ax.semilogx(seconds, range(len(cells)), marker, color=color, label=label)
sizes = [
    [cell["point"][size] for size in ("n_points", "n_features", "n_clusters")] for cell in cells
]
ax.set_yticks(range(len(cells)), [f"{n:,} × {d}, {k} clusters" for n, d, k in sizes])
ax.grid(color="#e4e7ea")
ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 0.02))
