"""
Where annealing begins
======================

The power of the first sweep decides what annealing does. Above the critical power, which the data
determine, the centers collapse to the mean, and the seeds matter little. Far below it, the weights
are nearly hard from the start, and centers stay about where they began. A power near the critical
one, lowered slowly, works best.

You seldom need to set it: by default, `PowerKMeans` begins at -1 or below, anneals faster, and
compensates by its search, which ``effort="none"`` leaves out here. `PathRecorder` copies the
centers after each sweep, to draw them.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from powermeans import KMeans, PowerKMeans, plots
from powermeans.engine import PathRecorder

N_CLUSTERS, N_DRAWS = 9, 40

rng = np.random.default_rng(7)
middles = rng.normal(0, 5, size=(N_CLUSTERS, 8))
points = np.repeat(middles, 80, axis=0) + rng.normal(0, 1.5, size=(720, 8))
draws = [points[rng.choice(len(points), N_CLUSTERS, replace=False)] for _ in range(N_DRAWS)]
optimum = KMeans(N_CLUSTERS, init=middles, n_init=1).fit(points).inertia_

# %%
# Two descents from the same seeds, on the two principal axes of the eight features. The path of a
# center begins at an empty circle, where the first sweep moved it, and ends at a filled marker.

figure, panels = plt.subplots(1, 2, figsize=(10, 4.8), layout="constrained", sharey=True)
for ax, power in zip(panels, (-0.5, -30.0), strict=True):
    path = PathRecorder()
    model = PowerKMeans(
        N_CLUSTERS, init=draws[0], power=power, schedule=1.05, effort="none", callback=path
    ).fit(points)
    plots.annealing_path(path, points, ax=ax)
    ax.set_title(f"From {power}: {model.inertia_ / optimum - 1:.0%} above the optimum", fontsize=11)
plt.show()

# %%
# How many of forty sets of seeds lead to the optimum, by the power of the first sweep. Too soft is
# bad, too hard is worse.

powers = np.array([-0.1, -0.2, -0.3, -0.5, -0.7, -1, -2, -3, -10, -30])
found = np.zeros(len(powers))
for place, power in enumerate(powers):
    model = PowerKMeans(N_CLUSTERS, power=power, schedule=1.05, effort="none")
    fits = [model.set_params(init=seeds).fit(points).inertia_ for seeds in draws]
    found[place] = np.mean(np.array(fits) < 1.001 * optimum)

figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
ax.semilogx(-powers, found, color="#0072B2", marker="o")
ax.axvline(-model.critical_power_, color="#999999", linestyle="--", label="critical power")
ax.set(xlabel="−power of the first sweep", ylabel="draws that find the optimum", ylim=(0, 1.03))
ax.xaxis.set_major_formatter("{x:g}")
ax.yaxis.set_major_formatter("{x:.0%}")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()
