"""
Which method for which data
===========================

This picture of eight methods on six kinds of data helps you choose one. The number in the corner of
a panel is the time of the fit. All methods are given the number of clusters.

- **Many clusters**: the search of `PowerKMeans` finds what one start of `KMeans` misses.
- **Unequal sizes**: `BalancedKMeans` cuts the large cluster, as it must, and `RobustPowerKMeans`
  leaves out the smallest one, which is smaller than the share that it trims (crosses).
- **Outliers**: `RobustPowerKMeans` leaves them out; in most other methods they take a center.
- **Elongated clusters**: ``divergence="mahalanobis"`` learns their shape, if all have the same.
- **Half-moons**: a graph of neighbours (`SpectralClustering`) finds them, as does a suitable
  kernel.
- **One cloud**: every method returns as many clusters as it was asked for. Ask `choose_k` first.
"""

from __future__ import annotations

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_blobs, make_moons

from powermeans import BalancedKMeans, KMeans, PowerKMeans, RobustPowerKMeans
from powermeans.methods import KernelPowerKMeans, SpectralClustering
from powermeans.plots.canvas import color_of

Array = NDArray[np.float64]
rng = np.random.default_rng(4)


def scaled(points: Array) -> Array:
    """The points with variance one in all directions together."""
    return (points - points.mean(axis=0)) / points.std()


many = make_blobs(600, centers=20, cluster_std=0.5, random_state=9)[0]
unequal = make_blobs([400, 80, 40], centers=[(0, 0), (5, 0), (2, 5)], random_state=1)[0]
round_ones = make_blobs(400, centers=[(0, 0), (6, 1), (2, 6)], cluster_std=0.8, random_state=0)[0]
with_outliers = np.vstack([round_ones, rng.uniform((-6, -6), (40, 30), (45, 2))])
elongated = np.vstack([rng.normal((0, 2.6 * j), (5, 0.5), (150, 2)) for j in range(3)])
moons = make_moons(400, noise=0.05, random_state=0)[0]
cloud = rng.normal(size=(400, 2))
data_sets = {
    "many clusters": (many, 20),
    "unequal sizes": (unequal, 3),
    "outliers": (with_outliers, 3),
    "elongated": (elongated, 3),
    "half-moons": (moons, 2),
    "one cloud": (cloud, 3),
}
methods = {
    "KMeans": lambda k: KMeans(k, n_init=1, random_state=0),
    "PowerKMeans": lambda k: PowerKMeans(k, random_state=0),
    "manhattan": lambda k: PowerKMeans(k, divergence="manhattan", random_state=0),
    "mahalanobis": lambda k: PowerKMeans(k, divergence="mahalanobis", random_state=0),
    "BalancedKMeans": lambda k: BalancedKMeans(k, random_state=0),
    "RobustPowerKMeans": lambda k: RobustPowerKMeans(k, trim=0.1, random_state=0),
    "KernelPowerKMeans": lambda k: KernelPowerKMeans(k, gamma=4.0, random_state=0),
    "SpectralClustering": lambda k: SpectralClustering(
        k, affinity="nearest_neighbors", n_neighbors=10, random_state=0
    ),
}

figure, panels = plt.subplots(
    len(data_sets), len(methods), figsize=(11.5, 8.8), layout="constrained", squeeze=False
)
for row, (name, (points, k)) in zip(panels, data_sets.items(), strict=True):
    points = scaled(points)
    row[0].set_ylabel(name, fontsize=11)
    for ax, method in zip(row, methods.values(), strict=True):
        start = perf_counter()
        model = method(k).fit(points)
        seconds = perf_counter() - start
        left_out = getattr(model, "outliers_", np.zeros(len(points), dtype=bool))
        colors = np.array([color_of(label) for label in model.labels_])
        ax.scatter(*points[~left_out].T, c=colors[~left_out], s=4, linewidths=0)
        ax.scatter(*points[left_out].T, c="0.4", s=10, marker="x", linewidths=0.8)
        ax.text(
            0.98, 0.03, f"{1000 * seconds:.0f} ms", transform=ax.transAxes, ha="right", fontsize=8,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 1},
        )  # fmt: skip
        ax.set(xticks=[], yticks=[])
for ax, title in zip(panels[0], methods, strict=True):
    ax.set_title(title, fontsize=9)
plt.show()
