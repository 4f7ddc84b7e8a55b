"""
How hardening makes valleys
===========================

Soft powers smooth the objective, so that it has few local minima; as the power falls, more of them
appear. Points on a line form three clusters, which two centers share. Each panel shows the
objective for every pair of centers, with its local minima as crosses. Each panel is symmetric about
the diagonal, since centers have no order.

At s = −1 and −3 there is one minimum, up to symmetry, and it moves with the power. At −∞, which is
k-means, there are two. Annealing follows the one from −1 on, and here ends in the better of the
two. It need not: a minimum can split so that the better part is not the nearer.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import minimum_filter

from powermeans.mathematics.power_mean import power_mean

rng = np.random.default_rng(1)
groups = ((0.0, 60), (3.0, 50), (6.3, 60))
points = np.concatenate([rng.normal(middle, 0.3, n_points) for middle, n_points in groups])
places = np.linspace(-1.5, 7.5, 121)
sq_dist = np.square(points[:, None] - places)

# %%
# The objective is the sum of the power means of each point's squared distances to both centers.

figure, panels = plt.subplots(1, 4, figsize=(11, 3.2), layout="constrained", sharey=True)
for ax, power in zip(panels, (-0.5, -1.0, -3.0, -np.inf), strict=True):
    objective = np.zeros((len(places), len(places)))
    for of_point in sq_dist:
        pairs = np.stack(np.broadcast_arrays(of_point[:, None], of_point), axis=-1)
        objective += power_mean(pairs.reshape(-1, 2), power).reshape(objective.shape)
    is_minimum = (minimum_filter(objective, size=7) == objective)[3:-3, 3:-3]
    ax.contourf(places, places, np.log(objective), levels=24, cmap="cividis")
    rows, columns = np.nonzero(is_minimum)
    ax.plot(
        places[columns + 3],
        places[rows + 3],
        "X",
        color="white",
        markeredgecolor="black",
        markersize=9,
    )
    ax.set(aspect="equal", xlabel="first center", title=f"s = {power:g}".replace("-inf", "−∞"))
panels[0].set_ylabel("second center")
plt.show()
