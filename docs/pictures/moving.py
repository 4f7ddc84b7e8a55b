"""The inertia of twenty fits, of scikit-learn's KMeans and of PowerKMeans."""

from drawing import panels
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from powermeans import PowerKMeans
from powermeans.plots.canvas import BLUE, GREY, ORANGE

points, _ = make_blobs(3_000, n_features=2, centers=40, cluster_std=0.4, random_state=1)
fits = {
    "scikit-learn, one start": [KMeans(40, n_init=1, random_state=seed) for seed in range(20)],
    "scikit-learn, ten starts": [KMeans(40, n_init=10, random_state=seed) for seed in range(20)],
    "PowerKMeans": [PowerKMeans(40, random_state=seed) for seed in range(20)],
}
inertias = {name: [model.fit(points).inertia_ for model in models] for name, models in fits.items()}
lowest = min(map(min, inertias.values()))
(ax,) = panels("Inertia above the lowest found, twenty random states each", height=2.4)
for place, (name, color) in enumerate(zip(inertias, (GREY, ORANGE, BLUE), strict=True)):
    excess = [100 * (inertia / lowest - 1) for inertia in inertias[name]]
    ax.scatter(excess, [place] * len(excess), color=color, alpha=0.5, s=60, linewidths=0)
ax.set(yticks=range(len(inertias)), yticklabels=list(inertias), ylim=(2.6, -0.6))
ax.xaxis.set_major_formatter("{x:g} %")
ax.grid(axis="x", color="#e4e7ea")
