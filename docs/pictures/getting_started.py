"""The clusters of the first fit."""

from drawing import panels
from sklearn.datasets import make_blobs

from powermeans import PowerKMeans, plots

points, _ = make_blobs(n_samples=3000, centers=30, cluster_std=0.6, random_state=3)
model = PowerKMeans(n_clusters=30, random_state=0).fit(points)
plots.clusters(model, points, ax=panels("", height=4.6)[0])
