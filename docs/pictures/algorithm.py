"""The centers of Algorithm 1, sweep by sweep, and the power that falls."""

from itertools import islice

import numpy as np
from drawing import panels
from sklearn.datasets import make_blobs

from powermeans.mathematics.rules import Power
from powermeans.mathematics.schedules import Geometric
from powermeans.plots.canvas import BLUE, PALE, color_of
from powermeans.points.opening import open_rows

points, _ = make_blobs(500, centers=5, cluster_std=0.8, random_state=3)
rows, centers = open_rows(points), points[:5]
powers = list(islice(Geometric(start=-1.0, growth=1.15), 30))
path, objectives = [centers], []
for power in powers:
    sums = rows.sweep(centers, Power(power))
    centers = sums.centers(fallback=centers)
    path.append(centers)
    objectives.append(sums.objective)

plane, curve = panels(
    "The centers, from seeds (rings) to the end", "Power and objective of a sweep"
)
plane.scatter(*points.T, s=8, color=PALE, linewidths=0)
for label, way in enumerate(np.transpose(path, (1, 2, 0))):
    plane.plot(*way, ".-", color=color_of(label), linewidth=1.2, markersize=4)
    plane.plot(*way[:, 0], "o", color=color_of(label), fillstyle="none", markersize=9)
    plane.plot(*way[:, -1], "X", color=color_of(label), markeredgecolor="white", markersize=10)
plane.set(aspect="equal", xticks=[], yticks=[])
plane.spines[:].set_visible(False)
curve.plot(-np.array(powers), objectives, "o-", color=BLUE, markersize=3)
curve.set(xscale="log", xlabel="−s", ylabel="objective before the sweep")
curve.set_xticks([1, 3, 10, 30], [1, 3, 10, 30])
curve.minorticks_off()
