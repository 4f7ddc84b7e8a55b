"""Where a descent ends, and where the search takes its centers."""

import numpy as np
from drawing import draw_centers, draw_clusters, panels
from sklearn.datasets import make_blobs

from powermeans import KMeans, PowerKMeans

points, _ = make_blobs(600, centers=12, cluster_std=0.55, random_state=7)
seeds = points[np.random.default_rng(4).choice(len(points), 12, replace=False)]
descent = KMeans(12, init=seeds).fit(points)
search = PowerKMeans(12, init=seeds, random_state=0).fit(points)

titles = ("One descent: inertia", "After the search: inertia")
models = (descent, search)
names = [f"{title} {model.inertia_:.0f}" for title, model in zip(titles, models, strict=True)]
for ax, model in zip(panels(*names, height=4.0, sharey=True), models, strict=True):
    draw_clusters(ax, points, model.labels_, size=10)
    draw_centers(ax, model.cluster_centers_)
    ax.set(aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
