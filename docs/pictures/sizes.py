"""Clusters without limits, and of even size."""

import numpy as np
from drawing import draw_centers, draw_clusters, panels

from powermeans import BalancedKMeans, PowerKMeans

rng = np.random.default_rng(0)
middles = np.array([(0.0, 0.0), (5.0, 0.5), (0.5, 4.5), (5.0, 5.0)])
points = np.repeat(middles, [500, 250, 150, 100], axis=0) + rng.normal(0, 1, (1000, 2))
axes = panels("PowerKMeans(4)", "BalancedKMeans(4)", sharex=True, sharey=True)
for ax, method in zip(axes, (PowerKMeans, BalancedKMeans), strict=True):
    model = method(4, random_state=0).fit(points)
    draw_clusters(ax, points, model.labels_)
    draw_centers(ax, model.cluster_centers_)
    for center, size in zip(model.cluster_centers_, np.bincount(model.labels_), strict=True):
        ax.annotate(
            f"{size} rows", center, xytext=(0, 9), textcoords="offset points", ha="center",
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1}, zorder=5,
        )  # fmt: skip
    ax.set(aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
