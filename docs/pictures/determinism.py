"""Two random states: clusters that agree, and clusters that do not."""

import numpy as np
from drawing import draw_clusters, panels
from sklearn.datasets import make_blobs

from powermeans import PowerKMeans

apart, _ = make_blobs(600, centers=6, cluster_std=0.6, random_state=4)
cloud = np.random.default_rng(0).normal(size=(600, 2))
titles = [f"{name}, seed {seed}" for name in ("Clusters", "One Gaussian") for seed in (0, 1)]
axes = panels(*titles, height=2.4)
for place, ax in enumerate(axes):
    points = (apart, cloud)[place // 2]
    labels = PowerKMeans(6, random_state=place % 2).fit_predict(points)
    draw_clusters(ax, points, labels, size=7)
    ax.title.set_fontsize(9)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
