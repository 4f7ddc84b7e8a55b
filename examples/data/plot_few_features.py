"""
Many features, few of which matter
==================================

`EntropyWeightedPowerKMeans` finds the few features that tell groups apart: it learns a weight for
each feature along with the centers. As with genes, only eight of three hundred measured features
differ between the groups here. The others add enough noise to hide them.

If all features matter, it gains nothing, and `PowerKMeans` finds lower sums of squares. Scale the
features first: those with small variance look informative.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from powermeans import PowerKMeans
from powermeans.methods import EntropyWeightedPowerKMeans
from powermeans.metrics import adjusted_rand_index

N_SAMPLES, N_GENES, N_GROUPS = 240, 300, 4

rng = np.random.default_rng(0)
truth = np.repeat(np.arange(N_GROUPS), N_SAMPLES // N_GROUPS)
matter = np.sort(rng.choice(N_GENES, 8, replace=False))
levels = rng.normal(0, 2.5, size=(N_GROUPS, len(matter)))
expression = rng.normal(size=(N_SAMPLES, N_GENES))
expression[:, matter] += levels[truth]
expression = (expression - expression.mean(axis=0)) / expression.std(axis=0)

# %%
# How well each method finds the groups: the adjusted Rand index is 1 when all samples are in the
# right group, and near 0 for random groups.

plain = PowerKMeans(N_GROUPS, random_state=0).fit(expression)
weighted = EntropyWeightedPowerKMeans(N_GROUPS, random_state=0).fit(expression)
for model in (plain, weighted):
    index = adjusted_rand_index(truth, model.labels_)
    print(f"{type(model).__name__:<28}{index:.2f}")

# %%
# Left: the weights, which add up to one. Right: the eight features of largest weight, by cluster.

BLUE, PALE = "#0072B2", "#c3c9d0"
figure, (left, right) = plt.subplots(
    1, 2, figsize=(10, 4), layout="constrained", width_ratios=(3, 2)
)
noise = np.setdiff1d(np.arange(N_GENES), matter)
weights = weighted.feature_weights_
for genes, color, label in ((noise, PALE, "noise"), (matter, BLUE, "matters")):
    left.vlines(genes, 0, weights[genes], color=color)
    left.scatter(genes, weights[genes], s=18, color=color, label=label, zorder=2, clip_on=False)
left.set(xlabel="gene", ylabel="weight", title="The weights it learned", ylim=(0, None))
left.spines[["top", "right"]].set_visible(False)
left.legend(frameon=False)

heaviest = np.argsort(-weights)[: len(matter)]
by_group = expression[np.argsort(weighted.labels_, kind="stable")][:, heaviest]
image = right.imshow(by_group, aspect="auto", cmap="RdBu_r", vmin=-2.5, vmax=2.5)
right.set(title="The eight heaviest genes", ylabel="sample, by cluster", yticks=[])
right.set_xticks(range(len(heaviest)), heaviest)
figure.colorbar(image, ax=right, label="standard deviations")
plt.show()
