"""
When the points change
======================

`drift_` shows that the points of a stream have changed, and `memory` lets the centers follow them.
After sixty chunks, every cluster moves. Both streams show it at once: the mean squared distance of
the next chunk jumps. The stream with ``memory`` returns to the old level within a few chunks; the
one without averages old points with new ones.

A short memory also forgets what did not change: centers of rare clusters become noisy. Without
drift, omit `memory`.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from powermeans import MiniBatchPowerKMeans

N_CLUSTERS, N_CHUNKS, CHUNK_SIZE = 12, 140, 300

rng = np.random.default_rng(3)
before, after = rng.uniform(-10, 10, size=(2, N_CLUSTERS, 5))
after = before + 0.25 * (after - before)
chunks = [
    (before if chunk < 60 else after)[rng.integers(N_CLUSTERS, size=CHUNK_SIZE)]
    + rng.normal(size=(CHUNK_SIZE, 5))
    for chunk in range(N_CHUNKS)
]

# %%
# `drift_` is None until the stream has chosen its centers.

figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
for memory, color, label in ((None, "#D55E00", "memory=None"), (3_000, "#0072B2", "memory=3000")):
    stream = MiniBatchPowerKMeans(N_CLUSTERS, memory=memory, random_state=0)
    drifts = [stream.partial_fit(chunk).drift_ for chunk in chunks]
    known = [(place, drift.mean_sq_dist) for place, drift in enumerate(drifts) if drift]
    ax.plot(*zip(*known, strict=True), color=color, label=label)
ax.axvline(60, color="#999999", linestyle="--", linewidth=1)
ax.set(xlabel="chunk", ylabel="mean squared distance of the chunk")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()
