"""How far apart the two nearest clusters are, by k: of six clusters, and of one cloud."""

import math

import numpy as np
from drawing import panels
from sklearn.datasets import make_blobs

from powermeans import choose_k
from powermeans.plots.canvas import BLUE

clusters, _ = make_blobs(n_samples=600, centers=6, cluster_std=0.6, random_state=7)
cloud = np.random.default_rng(0).uniform(size=(600, 4))

for ax, points in zip(
    panels("Six clusters", "One cloud", sharey=True), (clusters, cloud), strict=True
):
    choice = choose_k(points, range(2, 16), criteria="separation", random_state=0)
    separation = choice.table["separation"]
    ax.errorbar(
        choice.table["k"], separation, choice.table["separation_error"], color=BLUE, marker="."
    )
    ax.axhline(math.sqrt(12), color="0.5", linestyle="--", linewidth=1)
    ax.set(xlabel="k", xticks=range(2, 16, 2))
    if choice.is_clear:
        ax.annotate(choice.verdict(), (choice.recommended, separation[choice.recommended - 2]),
                    xytext=(10, 0), textcoords="offset points")  # fmt: skip
ax.figure.axes[0].set_ylabel("least separation")
