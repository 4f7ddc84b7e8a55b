"""Centers of all points, and of those that a robust fit does not leave out."""

import numpy as np
from drawing import draw_centers, draw_clusters, panels

from powermeans import PowerKMeans, RobustPowerKMeans
from powermeans.plots.canvas import VERMILION

rng = np.random.default_rng(2)
middles = np.array([(0.0, 0.0), (7.0, 1.0), (2.5, 6.0), (9.0, 7.5)])
usual = np.repeat(middles, 110, axis=0) + rng.normal(0, 0.8, size=(440, 2))
points = np.concatenate([usual, rng.uniform((-8, -6), (32, 16), size=(40, 2))])

plain = PowerKMeans(4, random_state=0).fit(points)
robust = RobustPowerKMeans(4, trim=0.09, random_state=0).fit(points)
axes = panels("PowerKMeans(4)", "RobustPowerKMeans(4, trim=0.09)", sharex=True, sharey=True)
nothing = np.zeros(len(points), dtype=bool)
for ax, model, out in zip(axes, (plain, robust), (nothing, robust.outliers_), strict=True):
    draw_clusters(ax, points[~out], model.labels_[~out])
    ax.scatter(*points[out].T, s=26, color=VERMILION, marker="x", linewidths=1)
    draw_centers(ax, model.cluster_centers_)
    ax.set(aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
