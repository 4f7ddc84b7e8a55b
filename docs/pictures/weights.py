"""Centers where the shops are, and where the sales are."""

import numpy as np
from drawing import draw_centers, panels

from powermeans import PowerKMeans
from powermeans.plots.canvas import BLUE

rng = np.random.default_rng(3)
shops = rng.uniform(0, 10, size=(150, 2))
sales = np.exp(rng.normal(size=150) + 0.45 * (shops[:, 0] - 5))

axes = panels("Every shop counts once", "Shops count by their sales", sharey=True)
for ax, weights in zip(axes, (None, sales), strict=True):
    model = PowerKMeans(4, random_state=0).fit(shops, sample_weight=weights)
    ax.scatter(*shops.T, s=6 * sales, color=BLUE, alpha=0.45, linewidths=0)
    draw_centers(ax, model.cluster_centers_)
    ax.set(aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
