"""Three kinds of data that k-means does not take, each with the member that does."""

import numpy as np
from drawing import draw_clusters, panels
from sklearn.datasets import make_blobs, make_moons

from powermeans import PowerKMeans, RobustPowerKMeans
from powermeans.plots.canvas import GREY
from powermeans.relatives import KernelPowerKMeans

rng = np.random.default_rng(0)
moons, _ = make_moons(400, noise=0.06, random_state=0)
towns, _ = make_blobs(300, centers=3, cluster_std=0.7, random_state=6)
wide = np.vstack([towns, rng.uniform(towns.min(0) - 8, towns.max(0) + 8, size=(30, 2))])
thin = rng.normal(size=(400, 2)) * [1.0, 6.0] + [[5.0, 0.0]] * (np.arange(400)[:, None] % 2)

trimmed = RobustPowerKMeans(3, trim=0.1, random_state=0).fit(wide)
robust = np.where(trimmed.outliers_, -1, trimmed.labels_)
kernel = KernelPowerKMeans(2, kernel="rbf", gamma=12, random_state=0).fit_predict(moons)
one_shape = PowerKMeans(2, divergence="mahalanobis", random_state=0).fit_predict(thin)
drawn = (
    ("RobustPowerKMeans: outliers", wide, robust),
    ("KernelPowerKMeans: moons", moons, kernel),
    ('divergence="mahalanobis"', thin, one_shape),
)
axes = panels(*(title for title, _, _ in drawn), height=3.0)
for ax, (_, points, labels) in zip(axes, drawn, strict=True):
    ax.scatter(*points[labels < 0].T, s=14, marker="x", color=GREY)
    draw_clusters(ax, points[labels >= 0], labels[labels >= 0], size=8)
    ax.title.set_fontsize(10)
    ax.set(aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
