"""
What the search adds to a descent
=================================

A search lowers the sum of squares that one descent reaches, and `effort` sets how long it lasts.
`PowerKMeans` clusters the same points from twenty random states: with one descent
(``effort="none"``) and with two higher efforts. The lower a dot, the better the clustering; the
farther right, the longer it took.

On small and well separated data, all of them end at the same value, and the cheapest is enough.
"""

from __future__ import annotations

import time

import matplotlib.pyplot as plt
import numpy as np

from powermeans import PowerKMeans
from powermeans.engine.stopping import MaxSeconds

rng = np.random.default_rng(4)
middles = rng.uniform(0, 10, size=(30, 3))
points = middles[rng.integers(30, size=1_200)] + rng.normal(0, 0.9, size=(1_200, 3))

settings = {
    "one descent": {"effort": "none"},
    'effort="fast"': {"effort": "fast"},
    'effort="balanced"': {"effort": "balanced"},
}

# %%
# Seconds and inertia of each fit, and the lowest inertia of all, which "thorough" finds.

seconds, inertias = {}, {}
for name, setting in settings.items():
    seconds[name], inertias[name] = [], []
    for seed in range(20):
        began = time.perf_counter()
        model = PowerKMeans(30, random_state=seed, **setting).fit(points)
        seconds[name].append(time.perf_counter() - began)
        inertias[name].append(model.inertia_)
thorough = PowerKMeans(30, effort="thorough", stop=MaxSeconds(2), random_state=0).fit(points)
lowest = min(thorough.inertia_, *(min(values) for values in inertias.values()))

figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
for name, color in zip(settings, ("#999999", "#E69F00", "#0072B2"), strict=True):
    milliseconds = 1_000 * np.array(seconds[name])
    ax.scatter(milliseconds, np.array(inertias[name]) / lowest - 1, color=color, label=name)
ax.set(xlim=(0, None), xlabel="milliseconds of a fit", ylabel="inertia above the lowest found")
ax.yaxis.set_major_formatter("{x:.1%}")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()
