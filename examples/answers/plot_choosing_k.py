"""
How many clusters?
==================

`choose_k` clusters for a range of k and applies several criteria. When clusters are well apart,
most criteria name the same number. When there are no clusters, they disagree; the result then
states that no k is clear, and why, and recommends a guess.

If you know k beforehand, as for the colours of a palette or the number of places to build, do not
choose it this way; the inertia shows what one more gains.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from powermeans import choose_k, plots

apart, _ = make_blobs(600, n_features=4, centers=6, cluster_std=1.0, random_state=0)
cloud = np.random.default_rng(0).uniform(size=(600, 4))
choices = {
    "Six clusters": choose_k(apart, range(2, 13), random_state=0),
    "No clusters": choose_k(cloud, range(2, 13), random_state=0),
}

# %%
# What each criterion recommends, and how many agree with the decision.

for name, choice in choices.items():
    print(f"{name}: {choice.verdict()}, agreement {choice.agreement:.0%}")
    print(f"  {choice.why}")
    print("  " + ", ".join(f"{criterion} {k}" for criterion, k in choice.by_criterion.items()))

# %%
# The inertia, with the k that each criterion names. It falls steeply up to six clusters, then
# slowly. Without clusters there is a bend too, as there is for any data.

figure, panels = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for ax, (name, choice) in zip(panels, choices.items(), strict=True):
    plots.choice_of_k(choice, ax=ax)
    ax.set_title(f"{name}: {choice.verdict()}", fontsize=11)
plt.show()

# %%
# The silhouette is high when points are nearer to their own cluster than to the next. Markers as
# above.

figure, panels = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharey=True)
for ax, (name, choice) in zip(panels, choices.items(), strict=True):
    plots.choice_of_k(choice, "silhouette", ax=ax).get_legend().remove()
    ax.set_title(name, fontsize=11)
plt.show()
