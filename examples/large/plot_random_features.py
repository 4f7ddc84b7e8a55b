"""
A kernel for a million rows
===========================

A Gaussian kernel finds a ring around a disc, which no center can represent, but its matrix compares
all pairs of rows: for a million rows it would take eight terabytes. Random Fourier features (Rahimi
& Recht 2007) are columns whose products are the kernel up to noise. scikit-learn's ``RBFSampler``
computes them, and `PowerKMeans` on them is kernel power k-means without a matrix, as in RFF-KPKM
(AAAI 2026).

The page is built with forty thousand rows; ``python plot_random_features.py 1000000`` clusters a
million in half a minute and little more than a gigabyte.
"""

from __future__ import annotations

import sys
import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_circles
from sklearn.kernel_approximation import RBFSampler

from powermeans import PowerKMeans
from powermeans.methods import KernelPowerKMeans
from powermeans.metrics import adjusted_rand_index

N_ROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 40_000
GAMMA = 3.0

points, truth = make_circles(N_ROWS, noise=0.06, factor=0.25, random_state=0)
points = points.astype(np.float32)

# %%
# The more features, the less noise: the error of a product falls with the root of their number. The
# exact kernel on a thousand rows shows the limit, and how long it takes.

seconds, indices, numbers = [], [], (4, 8, 16, 32, 64, 128)
for n_features in numbers:
    start = time.perf_counter()
    features = RBFSampler(gamma=GAMMA, n_components=n_features, random_state=0).fit_transform(
        points
    )
    model = PowerKMeans(2, effort="fast", random_state=0).fit(features)
    seconds.append(time.perf_counter() - start)
    indices.append(adjusted_rand_index(truth, model.labels_))
    print(f"{n_features:4} features: index {indices[-1]:z.3f} in {seconds[-1]:.2f} seconds")

start = time.perf_counter()
exact = KernelPowerKMeans(2, gamma=GAMMA, random_state=0).fit(points[:1000])
index = adjusted_rand_index(truth[:1000], exact.labels_)
print(f"exact, on 1000 rows: index {index:.3f} in {time.perf_counter() - start:.2f} seconds")

# %%
# On the left, the labels of the last fit; on the right, the adjusted Rand index by the number of
# features.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for label, color in enumerate(("#0072B2", "#E69F00")):
    some = points[model.labels_ == label][:2000]
    left.scatter(*some.T, s=3, color=color, linewidths=0)
left.set(aspect="equal", xticks=[], yticks=[], title=f"{N_ROWS:,} rows, {numbers[-1]} features")
left.spines[:].set_visible(False)
right.plot(numbers, indices, "o-", color="#0072B2")
right.axhline(index, color="#999999", linestyle="--", linewidth=1)
right.set_xscale("log", base=2)
right.set(xlabel="random features", ylabel="adjusted Rand index", xticks=numbers)
right.set_xticklabels([str(number) for number in numbers])
right.spines[["top", "right"]].set_visible(False)
plt.show()
