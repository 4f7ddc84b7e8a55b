"""
How hard the borders are
========================

`memberships` shows how strongly a point belongs to each cluster, and its `power` sets how hard the
borders are. At a soft power a point between two centers belongs to both; as the power falls, the
shares tend to those of `predict`, all or nothing. Each panel colours the plane by the largest
share.

The shares compare distances to centers, and are not probabilities: far from all centers they tend
to be equal. For probabilities, fit a mixture such as `SphericalMixture`.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from powermeans import PowerKMeans

points, _ = make_blobs(400, centers=5, cluster_std=1.3, random_state=11)
model = PowerKMeans(5, random_state=0).fit(points)

# %%
# The same five centers at three powers.

(left, low), (right, high) = points.min(axis=0) - 2, points.max(axis=0) + 2
plane = np.dstack(np.meshgrid(np.linspace(left, right, 150), np.linspace(low, high, 150)))
figure, panels = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained", sharey=True)
for ax, power in zip(panels, (-1, -4, -30), strict=True):
    shares = model.memberships(plane.reshape(-1, 2), power=power).max(axis=1).reshape(150, 150)
    extent = (left, right, low, high)
    drawn = ax.imshow(shares, origin="lower", extent=extent, vmin=0.2, vmax=1, cmap="cividis")
    ax.scatter(*points.T, s=4, color="white", alpha=0.6, linewidths=0)
    ax.scatter(*model.cluster_centers_.T, s=70, marker="X", color="#D55E00", edgecolor="white")
    ax.set(title=f"power={power}", xticks=[], yticks=[])
figure.colorbar(drawn, ax=panels, label="largest share")
plt.show()
