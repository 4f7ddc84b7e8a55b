"""Rows with one entry missing: filled with column means, and by the center of their cluster."""

import numpy as np
from drawing import draw_centers, draw_clusters, panels

from powermeans import PowerKMeans

rng = np.random.default_rng(1)
points = np.repeat([(0.0, 0.0), (6.0, 1.0), (3.0, 6.0)], 80, axis=0) + rng.normal(size=(240, 2))
holes = np.zeros(points.shape, dtype=bool)
holes[rng.choice(240, 110, replace=False), rng.integers(2, size=110)] = True
holed = np.where(holes, np.nan, points)

filled = np.where(holes, np.nanmean(holed, axis=0), points)
model = PowerKMeans(3, missing="observed", random_state=0).fit(holed)
guessed = np.where(holes, model.cluster_centers_[model.labels_], points)
of_filled = PowerKMeans(3, random_state=0).fit(filled)
axes = panels("Column means filled in", 'missing="observed"', sharex=True, sharey=True)
for ax, fit, shown in zip(axes, (of_filled, model), (filled, guessed), strict=True):
    draw_clusters(ax, shown, fit.labels_)
    draw_centers(ax, fit.cluster_centers_)
