"""
Every plot
==========

Each function of `powermeans.plots` draws one picture here. A plot returns its Axes, and draws on
those you pass: ``plots.sizes(model, X, ax=ax)``. Clusters differ in shape, and in colours that
colour-blind people can tell apart (Okabe & Ito).

The data are 178 wines of three growers, with thirteen measurements each, scaled to the same
variance.
"""

from __future__ import annotations

import math

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from powermeans import KMeans, PathRecorder, PowerKMeans, plots

measured = load_wine(as_frame=True).data
wines = (measured - measured.mean()) / measured.std()
model = PowerKMeans(3, random_state=0).fit(wines)

# %%
# Clusters in the plane: two columns as they are, more on their two principal axes. The lines are
# where this plane, through the mean of all points, cuts the clusters.

plots.clusters(model, wines)
plt.show()

# %%
# How sure each point is of its cluster.

plots.uncertainty(model, wines)
plt.show()

# %%
# What makes the clusters different: their centers, and their profiles with the middle half of the
# points.

plots.center_heatmap(model, wines)
plt.show()

# %%

plots.profiles(model, wines)
plt.show()

# %%
# How large the clusters are, and how far apart.

plots.sizes(model, wines)
plt.show()

# %%

plots.silhouettes(model, wines)
plt.show()

# %%
# Shadows need no distances between points: 0 is on a center, 1 halfway to the second nearest.

plots.shadows(model, wines)
plt.show()

# %%
# Which clusters touch: an edge is as wide as the shadows of the points between two centers.

plots.neighbourhood_graph(model, wines)
plt.show()

# %%
# The distances behind it. Left: the points of a cluster. Right: those for which its center is the
# second nearest.

plots.stripes(model, wines)
plt.show()

# %%
# Centers as bars, beside the means of all points (marks), for columns in one unit.

plots.center_bars(model, wines)
plt.show()

# %%
# Which k? The knee of the inertia. `powermeans.choose_k` asks more criteria, and this plot takes
# its result too.

ks = np.arange(1, 11)
plots.knee(ks, [PowerKMeans(k, random_state=0).fit(wines).inertia_ for k in ks])
plt.show()

# %%
# The annealing: where each sweep moved the centers, from random seeds. The power begins near zero,
# which draws the centers to the middle; as it falls, they part.

rng = np.random.default_rng(0)
corners = 5.0 * np.stack(np.meshgrid(np.arange(4), np.arange(4)), axis=-1).reshape(-1, 2)
clouds = np.repeat(corners, 60, axis=0) + rng.normal(size=(960, 2))
seeds = clouds[rng.choice(len(clouds), 16, replace=False)]
path = PathRecorder()
annealed = PowerKMeans(
    16, init=seeds, power=-0.2, growth=1.03, refine=0, max_iter=1000, callback=path
).fit(clouds)
plots.annealing_path(path, clouds)
plt.show()

# %%
# Objective and inertia by sweep; the axis at the right is the power.

plots.convergence(annealed)
plt.show()

# %%
# Several fits to the same points.

lloyd = KMeans(16, init=seeds, n_init=1).fit(clouds)
search = PowerKMeans(16, random_state=0).fit(clouds)
plots.compare_convergence({"Lloyd": lloyd, "one slow descent": annealed, "with a search": search})
plt.show()

# %%
# The objective as two of three centers vary and the third stays where it belongs: Figure 1 of Xu &
# Lange (2019). At minus infinity it is that of k-means, with more valleys than at -0.2.

line = np.concatenate([rng.normal(mean, 0.6, size=(33, 1)) for mean in (0.0, 5.0, 9.0)])
found = np.sort(KMeans(3, random_state=0).fit(line).cluster_centers_, axis=0)
figure = plt.figure(figsize=(10, 8.5), layout="constrained")
for place, power in enumerate((-math.inf, -10, -1, -0.2), start=1):
    ax = figure.add_subplot(2, 2, place, projection="3d")
    plots.objective_surface(line, power, centers=found, ax=ax)
plt.show()
