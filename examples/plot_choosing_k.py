"""
How many clusters
=================

`choose_k` clusters for a range of k and asks several criteria. Where clusters are apart most of
them say the same number. Where there are none they say all kinds of numbers; then the result says
that no k is clear, and why, and recommends a guess.

Do not choose k this way where it is known beforehand, as the number of colours of a palette or of
places to build is; there, the inertia says what one more is worth.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from powermeans import choose_k

apart, _ = make_blobs(600, n_features=4, centers=6, cluster_std=1.0, random_state=0)
cloud = np.random.default_rng(0).uniform(size=(600, 4))
choices = {
    "Six clusters": choose_k(apart, range(2, 13), random_state=0),
    "No clusters": choose_k(cloud, range(2, 13), random_state=0),
}

# %%
# What each criterion says, and how many say what is recommended.

for name, choice in choices.items():
    print(f"{name}: {choice.verdict()}, agreement {choice.agreement:.0%}")
    print(choice.doubt)
    print("  " + ", ".join(f"{criterion} {k}" for criterion, k in choice.by_criterion.items()))

# %%
# The inertia, with the k that the criteria say marked on it. It falls steeply up to six, and then
# slowly; without clusters there is a bend too, but one that is there for any data.

figure, panels = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for ax, (name, choice) in zip(panels, choices.items(), strict=True):
    choice.plot(ax=ax)
    ax.set_title(f"{name}: {choice.verdict()}", fontsize=11)
plt.show()

# %%
# The silhouette, which is high where points are nearer to their own cluster than to the next; the
# shapes are those above.

figure, panels = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharey=True)
for ax, (name, choice) in zip(panels, choices.items(), strict=True):
    choice.plot("silhouette", ax=ax).get_legend().remove()
    ax.set_title(name, fontsize=11)
plt.show()
