"""
Cells of limited size
=====================

A town in the middle has most of the addresses. Without limits, the few places that serve it have
far more addresses than those in the country. With ``size_max`` no place has more than it can serve:
prices of the centers move the borders, and places move into the town.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from powermeans import BalancedKMeans, PowerKMeans

N_PLACES, N_ADDRESSES, MOST = 24, 6000, 300

rng = np.random.default_rng(3)
in_town = rng.uniform(size=N_ADDRESSES) < 0.6
addresses = np.where(
    in_town[:, None],
    rng.normal(0, 1.2, (N_ADDRESSES, 2)),
    rng.uniform(-10, 10, (N_ADDRESSES, 2)),
)

# %%
# The same fit without limits and with them.

free = PowerKMeans(N_PLACES, random_state=0).fit(addresses)
limited = BalancedKMeans(N_PLACES, size_max=MOST, random_state=0).fit(addresses)
for name, model in (("without limits", free), (f"at most {MOST}", limited)):
    sizes = np.bincount(model.labels_)
    print(f"{name}: {sizes.min()} to {sizes.max()} addresses, inertia {model.inertia_:.0f}")

# %%
# Each cell has its own colour; larger dots have more addresses.

figure, axes = plt.subplots(1, 2, figsize=(10, 5.5), layout="constrained", sharex=True, sharey=True)
colours = plt.get_cmap("tab20")(np.arange(N_PLACES) % 20)
for ax, name, model in (
    (axes[0], "No limits", free),
    (axes[1], f"At most {MOST} addresses", limited),
):
    sizes = np.bincount(model.labels_)
    ax.scatter(*addresses.T, s=2, c=colours[model.labels_])
    ax.scatter(*model.cluster_centers_.T, s=sizes / 4, c="white", edgecolors="black", zorder=3)
    ax.set_title(f"{name}: {sizes.min()} to {sizes.max()}")
    ax.set_aspect("equal")
plt.show()
