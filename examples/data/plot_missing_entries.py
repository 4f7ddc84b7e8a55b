"""
Missing entries
===============

This example compares three ways to cluster incomplete rows. With ``missing="observed"``, distances
use the entries that are present, and nothing is filled in. Filling in column means draws points
towards the middle. If you leave out incomplete rows, hardly any rows remain.

Here entries are missing by chance. If they are missing because of their values, as when people do
not report high incomes, all three ways mislead. Leave out rows with few entries: they are near
every center.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_blobs

from powermeans import PowerKMeans
from powermeans.metrics import adjusted_rand_index

Array = NDArray[np.float64]

points, truth = make_blobs(
    500, n_features=10, centers=6, cluster_std=2.0, center_box=(-5, 5), random_state=1
)
model = PowerKMeans(6, effort="fast", missing="observed", random_state=0)


def observed(holed: Array) -> Array:
    """Rows as they are, without those with fewer than three entries."""
    return holed[np.sum(~np.isnan(holed), axis=1) >= 3]


def filled(holed: Array) -> Array:
    """Rows with column means filled in."""
    return np.where(np.isnan(holed), np.nanmean(holed, axis=0), holed)


def complete(holed: Array) -> Array:
    """Only the complete rows."""
    return holed[~np.isnan(holed).any(axis=1)]


# %%
# How well the centers put the complete points into the right clusters. If few entries are missing,
# filling in does nearly as well. The line of complete rows ends where fewer than six remain.

shares = np.linspace(0, 0.6, 9)
chance = np.random.default_rng(0).uniform(size=points.shape)
figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
for treat, color, marker, label in (
    (observed, "#0072B2", "o", 'missing="observed"'),
    (filled, "#E69F00", "s", "means of columns filled in"),
    (complete, "#999999", "^", "complete rows alone"),
):
    sets = [treat(np.where(chance < share, np.nan, points)) for share in shares]
    usable = [(share, rows) for share, rows in zip(shares, sets, strict=True) if len(rows) >= 6]
    indices = [adjusted_rand_index(truth, model.fit(rows).predict(points)) for _, rows in usable]
    ax.plot([share for share, _ in usable], indices, marker=marker, color=color, label=label)
ax.set(xlabel="share of the entries that is missing", ylabel="adjusted Rand index", ylim=(0, 1.02))
ax.xaxis.set_major_formatter("{x:.0%}")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="lower left")
plt.show()
