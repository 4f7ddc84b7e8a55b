"""Waiting times by squared distances, and by gamma."""

import numpy as np
from drawing import draw_clusters, panels

from powermeans import PowerKMeans

rng = np.random.default_rng(0)
means = np.array([[1.0, 8.0], [8.0, 1.0], [60.0, 60.0]])
waits = rng.gamma(4.0, means[rng.integers(3, size=900)] / 4)

axes = panels("Squared distances", 'divergence="gamma"', sharey=True)
for ax, divergence in zip(axes, ("squared_euclidean", "gamma"), strict=True):
    model = PowerKMeans(3, divergence=divergence, random_state=0)
    draw_clusters(ax, waits, model.fit_predict(waits))
    ax.set(xscale="log", yscale="log", xlabel="minutes at the first counter")
axes[0].set_ylabel("at the second")
