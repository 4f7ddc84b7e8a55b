"""Vectors of three directions and many lengths, by squared distances and by cosine."""

import numpy as np
from drawing import draw_clusters, panels

from powermeans import PowerKMeans

rng = np.random.default_rng(1)
angles = np.radians(np.array([12.0, 45.0, 78.0])[rng.integers(3, size=500)])
angles += rng.normal(0, 0.06, size=500)
lengths = rng.lognormal(0.0, 0.7, size=500)
points = (lengths * np.array([np.cos(angles), np.sin(angles)])).T
points = points[lengths < 5]

axes = panels("Squared distances", 'divergence="cosine"', sharex=True, sharey=True)
for ax, divergence in zip(axes, ("squared_euclidean", "cosine"), strict=True):
    model = PowerKMeans(3, divergence=divergence, random_state=0)
    draw_clusters(ax, points, model.fit_predict(points))
    ax.set(aspect="equal", xlabel="football", xlim=(0, 4.5), ylim=(0, 4.5))
axes[0].set_ylabel("cooking")
