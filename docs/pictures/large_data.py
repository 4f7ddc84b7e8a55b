"""What a sample costs in inertia."""

import numpy as np
from drawing import panels

from powermeans import PowerKMeans
from powermeans.plots.canvas import BLUE

rng = np.random.default_rng(0)
means = 6 * rng.normal(size=(20, 8))
points = (means[rng.integers(20, size=60_000)] + rng.normal(size=(60_000, 8))).astype(np.float32)
lowest = PowerKMeans(20, random_state=0).fit(points).inertia_

sizes = (200, 500, 1_000, 2_000, 6_000, 20_000)
samples = [points[rng.choice(len(points), size, replace=False)] for size in sizes]
fits = [PowerKMeans(20, random_state=0).fit(sample) for sample in samples]
excess = [-model.score(points) / lowest - 1 for model in fits]
(ax,) = panels("60 000 points in 20 clusters", height=3.2)
ax.loglog(sizes, excess, color=BLUE, marker="o")
ax.set(xlabel="points in the sample", ylabel="inertia above that of a fit to all")
ax.yaxis.set_major_formatter(lambda share, _: f"{share:.1%}")
ax.set_xticks(sizes, [f"{size:,}".replace(",", " ") for size in sizes])
ax.minorticks_off()
