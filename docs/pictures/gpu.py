"""What a sweep needs on the card, and what of it crosses to the host."""

import numpy as np
from drawing import panels

from powermeans.plots.canvas import BLUE, ORANGE

n_features, n_bytes = 64, 4
n_points = np.geomspace(1e4, 1e7, 50)
(ax,) = panels("float32 points with 64 features: bytes of one sweep", height=3.0)
ax.loglog(n_points, n_points * n_features * n_bytes, color=BLUE, label="points, on the card")
for n_clusters, style in ((10, ":"), (100, "--"), (1_000, "-")):
    sums = np.full_like(n_points, 8 * n_clusters * (n_features + 2))
    ax.loglog(
        n_points, sums, style, color=ORANGE, label=f"sums of {n_clusters} centers, to the host"
    )
ax.set(xlabel="points")
ax.set_yticks([1e4, 1e6, 1e8], ["10 kB", "1 MB", "100 MB"])
ax.minorticks_off()
ax.legend(frameon=False, bbox_to_anchor=(1, 0.5), loc="center left")
