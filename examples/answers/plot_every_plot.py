"""
Every plot
==========

Each function of `powermeans.plots` draws one picture here. A plot returns its Axes, and draws on
those you pass: ``plots.clusters(model, X, ax=ax)``. Clusters have different markers, and colours
that colour-blind people can tell apart (Okabe & Ito).

The data are 178 wines of three growers, with thirteen measurements each, scaled to the same
variance.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from powermeans import KMeans, PowerKMeans, choose_k, plots
from powermeans.engine import PathRecorder

measured = load_wine(as_frame=True).data
wines = (measured - measured.mean()) / measured.std()
model = PowerKMeans(3, random_state=0).fit(wines)

# %%
# Clusters in the plane: two columns as they are, more on their two principal axes. The lines show
# where clusters meet in this plane through the mean of all points.

plots.clusters(model, wines)
plt.show()

# %%
# How sure each point is of its cluster.

plots.uncertainty(model, wines)
plt.show()

# %%
# What makes the clusters different: their profiles, with the middle half of the points, in standard
# deviations from the mean.

plots.profiles(model, wines)
plt.show()

# %%
# Centers as bars, next to the means of all points (marks), for columns in one unit.

plots.center_bars(model, wines)
plt.show()

# %%
# How large the clusters are, and how far apart.

plots.silhouettes(model, wines)
plt.show()

# %%
# Which k? The inertia, and the numbers that the criteria of `powermeans.choose_k` recommend.

choice = choose_k(wines, range(2, 11), random_state=0)
plots.choice_of_k(choice)
plt.show()

# %%
# The annealing: where each sweep moved the centers, from random seeds. The power begins near zero,
# which draws the centers to the middle; as it falls, they separate.

rng = np.random.default_rng(0)
corners = 5.0 * np.stack(np.meshgrid(np.arange(4), np.arange(4)), axis=-1).reshape(-1, 2)
clouds = np.repeat(corners, 60, axis=0) + rng.normal(size=(960, 2))
seeds = clouds[rng.choice(len(clouds), 16, replace=False)]
path = PathRecorder()
annealed = PowerKMeans(
    16, init=seeds, power=-0.2, schedule=1.03, effort="none", max_iter=1000, callback=path
).fit(clouds)
plots.annealing_path(path, clouds)
plt.show()

# %%
# Objective and inertia by sweep; the right axis shows the power.

plots.convergence(annealed)
plt.show()

# %%
# Several fits to the same points.

lloyd = KMeans(16, init=seeds, n_init=1).fit(clouds)
search = PowerKMeans(16, random_state=0).fit(clouds)
plots.convergence({"Lloyd": lloyd, "one slow descent": annealed, "with a search": search})
plt.show()
