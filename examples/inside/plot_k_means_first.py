"""
k-means before a Gaussian mixture
=================================

k-means is often the first step of a costlier model. How much of the work does it do? A mixture of
Gaussians, each with its own covariance, is fitted twice, from random points and from the clusters
of k-means. The log-likelihood is plotted against time, including that of k-means. From good
clusters, few steps of expectation maximization remain.
"""

from __future__ import annotations

import time

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from sklearn.mixture import GaussianMixture

from powermeans import PowerKMeans

Array = NDArray[np.float64]

N_CLUSTERS, N_POINTS, N_FEATURES = 8, 4000, 4

# %%
# The clusters overlap, and each has a shape of its own.

rng = np.random.default_rng(0)
labels = rng.integers(N_CLUSTERS, size=N_POINTS)
shapes = rng.normal(size=(N_CLUSTERS, N_FEATURES, N_FEATURES)) / 2
noise = np.einsum("nij,nj->ni", shapes[labels], rng.normal(size=(N_POINTS, N_FEATURES)))
points = rng.uniform(0, 8, (N_CLUSTERS, N_FEATURES))[labels] + noise


# %%
# `lower_bounds_` contains the log-likelihood of a point before each step of the fit.


def path_of_fit(means: Array, seconds: float) -> tuple[Array, Array]:
    """The seconds and log-likelihoods of a mixture that begins at these means, after some time."""
    started = time.perf_counter()
    precisions = np.tile(np.linalg.inv(np.cov(points.T)), (N_CLUSTERS, 1, 1))
    weights = np.full(N_CLUSTERS, 1 / N_CLUSTERS)
    model = GaussianMixture(N_CLUSTERS, means_init=means, precisions_init=precisions,
                            weights_init=weights, tol=1e-6, max_iter=500).fit(points)  # fmt: skip
    bounds = np.array(model.lower_bounds_)
    return np.linspace(seconds, seconds + time.perf_counter() - started, len(bounds)), bounds


begin = time.perf_counter()
centers = PowerKMeans(N_CLUSTERS, random_state=0).fit(points).cluster_centers_
of_k_means = time.perf_counter() - begin
starts = {
    "from random points": (points[rng.choice(N_POINTS, N_CLUSTERS, replace=False)], 0.0),
    "from k-means": (centers, of_k_means),
}

fig, axes = plt.subplots(layout="constrained")
for name, (means, seconds) in starts.items():
    when, bounds = path_of_fit(means, seconds)
    axes.plot(when, bounds, marker=".", label=f"{name}, {len(bounds)} steps")
axes.set(xlabel="seconds", ylabel="log-likelihood of a point")
axes.legend(frameon=False)
plt.show()
