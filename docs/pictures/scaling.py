"""Clusters of unscaled columns, and of scaled ones."""

import warnings

import numpy as np
from drawing import draw_clusters, panels
from sklearn.preprocessing import StandardScaler

from powermeans import PowerKMeans
from powermeans.errors import UnlikeScalesWarning

rng = np.random.default_rng(0)
truth = rng.integers(3, size=600)
age = np.array([25, 45, 65])[truth] + 4 * rng.normal(size=600)
visits = np.array([8, 2, 8])[truth] + rng.normal(size=600)
income = np.exp(10 + 0.5 * rng.normal(size=600))
customers = np.column_stack([age, visits, income])

raw, scaled = panels("As they are: income decides", "Scaled", sharey=True)
warnings.simplefilter("ignore", UnlikeScalesWarning)
for ax, points in ((raw, customers), (scaled, StandardScaler().fit_transform(customers))):
    draw_clusters(ax, customers[:, :2], PowerKMeans(3, random_state=0).fit_predict(points))
    ax.set(xlabel="age")
raw.set_ylabel("visits")
