"""What a fit holds in memory, by the formula of the page, beside the rows themselves."""

import numpy as np
from drawing import panels

from powermeans.plots.canvas import BLUE, GREY

n_features, n_clusters, n_threads, n_bytes = 50, 100, 8, 4
n_rows = np.geomspace(1e5, 1e9, 60)
rows = n_rows * n_features * n_bytes
of_part = np.minimum(2**24, rows)
n_parts = rows / of_part
sums = 8 * n_clusters * n_features * (np.log2(n_parts) + n_threads)
held = 6 * of_part + sums + 24 * n_features * n_parts
(ax,) = panels("50 float32 columns, 100 clusters, parts of 16 MiB", height=3.2)
ax.loglog(n_rows, rows / 2**20, "--", color=GREY, label="all rows in one array")
ax.loglog(n_rows, held / 2**20, color=BLUE, label="a fit of a file, beyond the program")
ax.set(xlabel="rows", ylabel="memory")
ax.set_yticks([2**5, 2**10, 2**15], ["32 MiB", "1 GiB", "32 GiB"])
ax.minorticks_off()
ax.legend(frameon=False)
