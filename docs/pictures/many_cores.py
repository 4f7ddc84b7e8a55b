"""How many times as fast more workers are, by the model."""

import json
from pathlib import Path

from drawing import panels

from powermeans.plots.canvas import OKABE_ITO, PALE

figures = json.loads(Path("../../benchmarks/results/many_cores.json").read_text())["figures"]
axes = panels(*(name.removeprefix("overlapping ") for name in figures), sharey=True)
for ax, parts in zip(axes, figures.values(), strict=True):
    ax.loglog([1, 128], [1, 128], color=PALE)
    for part, color in zip(parts, OKABE_ITO, strict=True):
        workers = [1, *map(int, part["gains"])]
        ax.plot(workers, [1, *part["gains"].values()], "o-", color=color, label=part["part"])
    ax.set_xticks([1, 2, 32, 128], [1, 2, 32, 128], minor=False)
    ax.minorticks_off()
    ax.set(xlabel="workers", yticks=[1, 2, 8, 32, 128], yticklabels=[1, 2, 8, 32, 128])
axes[0].set_ylabel("times as fast")
axes[0].legend(frameon=False, fontsize=8)
