"""
How large a sample is enough
============================

A sample finds common clusters with few rows and rare ones only with many. Ten clusters share most
of sixty thousand rows; six rare ones have one row in a thousand each. `PowerKMeans` searches for
all sixteen in samples of several sizes, and the centers label all rows.

The sample needs about ten rows of a cluster to find it, whatever the total number of rows. Here
that is ten thousand rows for clusters of one in a thousand. Rare clusters also decide the inertia
if, as here, they lie far from the others: compare both panels.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from powermeans import PowerKMeans

SIZES, N_DRAWS = (500, 1_000, 2_000, 5_000, 10_000, 20_000), 5

rng = np.random.default_rng(9)
shares = np.repeat([0.994 / 10, 0.001], [10, 6])
middles = rng.uniform(-20, 20, size=(16, 4))
truth = rng.choice(16, size=60_000, p=shares)
points = middles[truth] + rng.normal(size=(60_000, 4))
rare_middles = middles[10:]

# %%
# A rare cluster counts as found if a center is within one standard deviation of its mean.


def found_of(centers: np.ndarray) -> int:
    """Return how many rare clusters have a center."""
    distances = np.linalg.norm(rare_middles[:, None] - centers[None], axis=2)
    return int(np.sum(distances.min(axis=1) < 1))


excess, found = np.zeros((2, len(SIZES), N_DRAWS))
lowest = PowerKMeans(16, effort="fast", random_state=0).fit(points).inertia_
for place, size in enumerate(SIZES):
    for draw in range(N_DRAWS):
        sample = points[rng.choice(len(points), size, replace=False)]
        model = PowerKMeans(16, effort="fast", random_state=draw).fit(sample)
        excess[place, draw] = -model.score(points) / lowest - 1
        found[place, draw] = found_of(model.cluster_centers_)

# %%
# Means of five samples of each size.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
left.semilogx(SIZES, excess.mean(axis=1), color="#0072B2", marker="o")
left.set(title="Inertia of all rows, above that of a fit to them")
left.yaxis.set_major_formatter("{x:.0%}")
right.semilogx(SIZES, found.mean(axis=1), color="#D55E00", marker="s")
right.set(title="Rare clusters found, of six", ylim=(0, 6.2))
for ax in (left, right):
    ax.set(xlabel="rows in the sample")
    ax.set_xticks(SIZES, [f"{size:,}".replace(",", " ") for size in SIZES])
    ax.minorticks_off()
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
