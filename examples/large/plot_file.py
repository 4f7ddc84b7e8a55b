"""
A file that is larger than memory
=================================

`PowerKMeans` clusters a file given by its path, and never loads all rows. It reads them part by
part, once for each sweep, and `predict` writes the labels to another file. Here half a million rows
of a made-up night sky stand for a file of any size, and a part has forty thousand of them.

If the rows fit into memory, load them: sweeps are then faster. If a sample answers your question,
read only the sample.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from powermeans import PowerKMeans, open_data

rng = np.random.default_rng(5)
middles = rng.uniform(0, 100, size=(12, 2))
folder = Path(tempfile.mkdtemp())
stars = middles[rng.integers(12, size=500_000)] + rng.normal(0, 4, size=(500_000, 2))
np.save(folder / "stars.npy", stars.astype(np.float32))

# %%
# `open_data` sets how many rows a part has. A fit of a file has no labels; `predict` writes them.

data = open_data(folder / "stars.npy", rows_per_part=40_000)
model = PowerKMeans(12, effort="fast", random_state=0).fit(data)
labels = np.load(model.predict(data, output=folder / "labels.npy"), mmap_mode="r")
sizes = np.bincount(labels)
print(f"{len(labels)} labels; clusters of {sizes.min()} to {sizes.max()} rows")

# %%
# The picture also needs only one part at a time: it adds up counts on a grid.

counts = np.zeros((160, 160))
rows = np.load(folder / "stars.npy", mmap_mode="r")
edges = np.linspace(-15, 115, 161)
for start in range(0, len(rows), 40_000):
    counts += np.histogram2d(*rows[start : start + 40_000].T, bins=(edges, edges))[0]

figure, ax = plt.subplots(figsize=(6, 5.6), layout="constrained")
ax.pcolormesh(edges, edges, np.sqrt(counts).T, cmap="Greys")
ax.scatter(*model.cluster_centers_.T, s=90, marker="X", color="#D55E00", edgecolor="white")
ax.set(
    aspect="equal", xticks=[], yticks=[], title="Rows per cell, and the centers of twelve clusters"
)
ax.spines[:].set_visible(False)
plt.show()
