"""
Places along roads
==================

`PowerKMeans` finds one hundred and twenty places that serve fifteen thousand addresses along
made-up roads. With more centers there are more local optima, and a search gains more.

Points are kilometres east and north. Do not use degrees: away from the equator, a degree of
longitude is shorter than one of latitude. Project points to a plane first or, on half of the globe,
use unit vectors with ``divergence="cosine"``. Distances are as the crow flies, which misleads
across a river without a bridge.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from powermeans import KMeans, PowerKMeans

N_PLACES, N_ADDRESSES = 120, 15_000

rng = np.random.default_rng(4)
towns = rng.uniform(0, (60, 36), size=(26, 2))
apart = np.linalg.norm(towns[:, np.newaxis] - towns, axis=2)
roads = np.unique([sorted((a, b)) for a in range(26) for b in np.argsort(apart[a])[1:4]], axis=0)
lengths = apart[roads[:, 0], roads[:, 1]]
which = rng.choice(len(roads), N_ADDRESSES, p=lengths / lengths.sum())
along = rng.beta(0.5, 0.5, N_ADDRESSES)[:, np.newaxis]
ends = towns[roads[which]]
bend = np.sin(np.pi * along) * rng.normal(0, 1.2, (len(roads), 2))[which]
addresses = (1 - along) * ends[:, 0] + along * ends[:, 1] + bend
addresses += rng.normal(0, 0.15, addresses.shape)

# %%
# Lloyd's algorithm from one set of seeds, and power k-means with its quick search.

lloyd = KMeans(N_PLACES, n_init=1, random_state=0).fit(addresses)
model = PowerKMeans(N_PLACES, effort="fast", random_state=0).fit(addresses)
for name, found in (("Lloyd", lloyd), ("power k-means", model)):
    print(f"{name:<15}{np.sqrt(found.inertia_ / N_ADDRESSES):.3f} km, root of the mean square")

# %%
# Larger dots serve more addresses. Places are dense where addresses are, but less so.

sizes = np.bincount(model.labels_, minlength=N_PLACES)
figure, ax = plt.subplots(figsize=(10, 6.2), layout="constrained")
ax.scatter(*addresses.T, s=1.5, color="#8793a0", alpha=0.5, linewidths=0)
ax.scatter(*model.cluster_centers_.T, s=sizes / 2, color="#0072B2", edgecolor="white")
ax.set(aspect="equal", xlabel="km east", ylabel="km north")
ax.spines[["top", "right"]].set_visible(False)
plt.show()
