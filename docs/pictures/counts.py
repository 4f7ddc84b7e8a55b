"""Counts of calls by squared distances, and by the Poisson divergence."""

import numpy as np
from drawing import draw_clusters, panels

from powermeans import PowerKMeans

rng = np.random.default_rng(0)
means = np.array([[2, 10], [10, 2], [100, 110]])
calls = rng.poisson(means[rng.integers(3, size=900)])
shown = calls + rng.uniform(-0.4, 0.4, calls.shape)

axes = panels("Squared distances", 'divergence="poisson"', sharey=True)
for ax, divergence in zip(axes, ("squared_euclidean", "poisson"), strict=True):
    model = PowerKMeans(3, divergence=divergence, random_state=0)
    draw_clusters(ax, shown, model.fit_predict(calls))
    ax.set(xlabel="calls in the first week")
axes[0].set_ylabel("in the second")
