"""
Moons and rings
===============

Kernels and graphs let power k-means find moons and rings, which no center can represent and which
plain k-means cuts along straight lines. A kernel, or a graph of neighbours, maps the points to a
space where the clusters are groups around centers.

Both depend on a scale, here `gamma`, and neither has a center to show. For roughly round clusters,
plain k-means is faster and more informative.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
from sklearn.datasets import make_circles, make_moons

from powermeans import PowerKMeans
from powermeans.methods import KernelPowerKMeans, SpectralClustering
from powermeans.metrics import adjusted_rand_index

shapes = (
    make_moons(400, noise=0.06, random_state=0),
    make_circles(400, noise=0.05, factor=0.4, random_state=0),
)
methods = {
    "Power k-means": PowerKMeans(2, random_state=0),
    "Kernel, gamma 4": KernelPowerKMeans(2, gamma=4.0, random_state=0),
    "Kernel, gamma 8": KernelPowerKMeans(2, gamma=8.0, random_state=0),
    "Spectral clustering": SpectralClustering(2, gamma=30.0, random_state=0),
}

# %%
# The number is the adjusted Rand index: 1 when the clusters match the shapes. The Gaussian kernel
# finds the rings at one scale and the moons at another, and only the true labels show which to use.
# Spectral clustering looks for connected clusters, and one scale serves both here; it would fail if
# a few points bridged the gap.

figure, panels = plt.subplots(2, 4, figsize=(11, 5), layout="constrained")
for row, (points, truth) in zip(panels, shapes, strict=True):
    for ax, (name, method) in zip(row, methods.items(), strict=True):
        labels = method.fit_predict(points)
        for label, color, marker in ((0, "#0072B2", "o"), (1, "#E69F00", "^")):
            ax.scatter(*points[labels == label].T, s=12, color=color, marker=marker, linewidths=0)
        ax.set_title(f"{name}: {adjusted_rand_index(truth, labels):z.2f}", fontsize=11)
        ax.set(aspect="equal", xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
plt.show()
