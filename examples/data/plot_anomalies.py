"""
Points that belong to no cluster
================================

`RobustPowerKMeans` finds clusters although some points belong to none. It leaves out the farthest
points while it looks for centers: `trim` sets their share, and `outliers_` marks them. Here one
point in twelve belongs to no cluster; `PowerKMeans` must assign it to one, whose center it then
moves.

The share is left out even if there are no anomalies: then the clusters lose their edges. A clump
with more anomalies than `trim` allows counts as a cluster, and a true cluster smaller than that can
vanish.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from powermeans import PowerKMeans, RobustPowerKMeans

rng = np.random.default_rng(2)
middles = np.array([(0.0, 0.0), (7.0, 1.0), (2.5, 6.0), (9.0, 7.5)])
usual = np.repeat(middles, 110, axis=0) + rng.normal(0, 0.8, size=(440, 2))
strays = rng.uniform((-8, -6), (32, 16), size=(40, 2))
points = np.concatenate([usual, strays])

# %%
# Four centers each. Points outside the dashed circles are left out.

plain = PowerKMeans(4, random_state=0).fit(points)
robust = RobustPowerKMeans(4, trim=0.09, random_state=0).fit(points)
out = robust.outliers_
print(f"{out.sum()} points left out, {out[len(usual) :].sum()} of them among the {len(strays)}")

figure, panels = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained", sharey=True)
for ax, model, left_out, title in (
    (panels[0], plain, np.zeros_like(out), "All points count"),
    (panels[1], robust, out, "The farthest 9 % left out"),
):
    ax.scatter(*points[~left_out].T, s=8, color="#8793a0", linewidths=0, label="point")
    ax.scatter(*points[left_out].T, s=26, color="#D55E00", marker="x", label="left out")
    ax.scatter(*model.cluster_centers_.T, s=90, color="#0072B2", edgecolor="white", label="center")
    ax.set_title(title, fontsize=11)
    ax.set(aspect="equal", xticks=[], yticks=[])
for center in robust.cluster_centers_:
    panels[1].add_patch(
        plt.Circle(center, robust.radius_, fill=False, linestyle="--", color="#0072B2")
    )
figure.legend(*panels[1].get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()

# %%
# `transform` gives the distances from new points to the centers. A point is an anomaly if the least
# of its distances exceeds `radius_`.

arrivals = np.array([(0.5, 0.3), (5.0, 20.0)])
print(robust.transform(arrivals).min(axis=1) > robust.radius_)
