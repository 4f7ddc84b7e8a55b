"""Mean excess against total time, from the figures of the benchmark."""

import json
from pathlib import Path

from drawing import panels

from powermeans.plots.canvas import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY

# What differs in effort alone is joined by a line.
PACKAGES = [
    (BLUE, "o", ["fast", "balanced", "thorough"]),
    (SKY, "v", ["lloyd", "annealed"]),
    (GREY, "P", ["paper"]),
    (ORANGE, "s", ["sklearn-1", "sklearn-10"]),
    (GREEN, "^", ["bkmeans"]),
    (PURPLE, "h", ["faiss", "faiss-plusplus"]),
]
# Offsets in points of labels that would cover others.
OFFSETS = {"sklearn-1": (-48, -12), "lloyd": (-30, -3)}

stored = json.loads(Path("../../benchmarks/results/quality.json").read_text())["figures"]
of = {line["method"]: (line["seconds"], line["mean excess %"]) for line in stored["summary"]}
(ax,) = panels(f"{len(stored['problems'])} problems, one seed each", height=4.6)
for color, marker, names in PACKAGES:
    ax.plot(*zip(*(of[name] for name in names), strict=True), marker=marker, color=color)
    for name in names:
        offset = OFFSETS.get(name, (7, 5))
        ax.annotate(name, of[name], xytext=offset, textcoords="offset points", fontsize=8)
ax.set(
    xscale="log", xlabel="seconds for all problems", ylabel="mean excess over the lowest known, %"
)
ax.set_yscale("symlog", linthresh=0.01, linscale=0.4)
ax.set_ylim(0, 200)
ax.margins(x=0.18)
ax.xaxis.set_major_formatter("{x:g}")
ax.yaxis.set_major_formatter("{x:g}")
ax.grid(color="#e4e7ea")
