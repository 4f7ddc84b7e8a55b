"""
Points that come in chunks
==========================

`MiniBatchPowerKMeans` learns from a stream: it sees each chunk once and keeps only one sum for each
center. After a hundred chunks, the centers are nearly as good as those of a fit to all points.

If all points fit into memory and you have the time, `PowerKMeans` finds lower sums of squares. A
rare cluster that is not among the first points is not found later.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from powermeans import MiniBatchPowerKMeans, PowerKMeans

N_CLUSTERS, N_CHUNKS, CHUNK_SIZE = 20, 100, 400

rng = np.random.default_rng(0)
middles = rng.uniform(-10, 10, size=(N_CLUSTERS, 6))


def next_points(n_points: int) -> NDArray[np.float64]:
    """Points from twenty overlapping clouds."""
    return middles[rng.integers(N_CLUSTERS, size=n_points)] + rng.normal(0, 3, (n_points, 6))


# %%
# After each chunk, measure the mean squared distance of points that are in no chunk.

kept_aside = next_points(10_000)
stream = MiniBatchPowerKMeans(N_CLUSTERS, init_size=2 * CHUNK_SIZE, random_state=0)
chunks, losses = [], []
for _ in range(N_CHUNKS):
    chunks.append(next_points(CHUNK_SIZE))
    stream.partial_fit(chunks[-1])
    losses.append(-stream.score(kept_aside) / len(kept_aside))

# %%
# For comparison, all points at once.

whole = PowerKMeans(N_CLUSTERS, effort="fast", random_state=0).fit(np.concatenate(chunks))
loss_of_whole = -whole.score(kept_aside) / len(kept_aside)

figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
ax.plot(np.arange(1, N_CHUNKS + 1), losses, color="#0072B2", label="the stream so far")
ax.axhline(loss_of_whole, color="#D55E00", linestyle="--", label="all points at once")
ax.set(xlabel=f"chunks of {CHUNK_SIZE} points", ylabel="mean squared distance of new points")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()
