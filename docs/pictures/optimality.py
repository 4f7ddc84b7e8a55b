"""The inertia of ten methods above the proved bound, from the figures of the benchmark."""

import json
from pathlib import Path

import numpy as np
from drawing import panels

figures = json.loads(Path("../../benchmarks/results/optimality.json").read_text())["figures"]
shown = [one for one in figures["problems"]["cells"] if one["ratios"]]
(ax,) = panels("One run of each method", height=4.5)
for place, method in enumerate(shown[0]["ratios"]):
    heights = [100 * (one["ratios"][method] - 1) for one in shown]
    at = np.arange(len(shown)) + (place - 4.5) * 0.07
    ax.plot(at, np.maximum(heights, 1e-4), "osD^v<>PX*"[place], label=method, markersize=5)
ax.set_yscale("log")
ax.set_ylabel("percent above the proved bound")
ax.set_xticks(range(len(shown)), [f"{one['name']}\nk = {one['n_clusters']}" for one in shown])
ax.legend(fontsize="x-small", loc="center left", bbox_to_anchor=(1, 0.5))
