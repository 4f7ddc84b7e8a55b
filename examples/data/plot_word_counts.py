"""
Texts by their words
====================

The Poisson divergence groups texts by topic, whereas squared distances group them by length. Each
text is a row of word counts. Squared distances mainly reflect how long texts are, and which words
are frequent in all of them; the Poisson divergence compares a difference with that expected by
chance.

The texts come from four topics, and some are twenty times as long as others. What matters is the
share of each word. So divide each row by its sum, and weight each text by its number of words: the
divergence is then that of the counts, given the length.

If you know only a few words of each text, as in titles, most pairs of texts share none. Vectors
from a language model are then better points, with ``divergence="cosine"``.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from powermeans import PowerKMeans
from powermeans.metrics import adjusted_rand_index

N_TOPICS, N_WORDS, N_TEXTS = 4, 400, 600

rng = np.random.default_rng(0)
usual = 1 / np.arange(1, N_WORDS + 1)
topics = usual * rng.lognormal(0, 0.75, size=(N_TOPICS, N_WORDS))
topics /= topics.sum(axis=1, keepdims=True)
truth = rng.integers(N_TOPICS, size=N_TEXTS)
lengths = np.exp(rng.uniform(np.log(30), np.log(600), size=N_TEXTS)).astype(int)
counts = np.stack([rng.multinomial(n, topics[t]) for n, t in zip(lengths, truth, strict=True)])

# %%
# Three ways to cluster the same counts.

lengths = counts.sum(axis=1)
shares = counts / lengths[:, np.newaxis]
squared, poisson = (
    PowerKMeans(N_TOPICS, divergence=divergence, random_state=0)
    for divergence in ("squared_euclidean", "poisson")
)
found = {
    "Counts,\nsquared distances": squared.fit_predict(counts),
    "Shares,\nsquared distances": squared.fit_predict(shares, sample_weight=lengths),
    "Shares,\nPoisson": poisson.fit_predict(shares, sample_weight=lengths),
}

# %%
# How many texts of each topic are in each cluster. A good clustering has one dark cell in each row
# and each column, in any order. The adjusted Rand index is 1 when clusters and topics are the same,
# and near 0 when they are unrelated.

figure, panels = plt.subplots(1, 3, figsize=(10, 4.2), layout="constrained", sharey=True)
for ax, (name, labels) in zip(panels, found.items(), strict=True):
    table = np.zeros((N_TOPICS, N_TOPICS), dtype=int)
    np.add.at(table, (truth, labels), 1)
    ax.imshow(table, cmap="Blues", vmin=0, vmax=N_TEXTS / N_TOPICS)
    for (topic, cluster), n in np.ndenumerate(table):
        ax.text(cluster, topic, n, ha="center", va="center", color="white" if n > 90 else "black")
    ax.set_title(f"{name}\nindex {adjusted_rand_index(truth, labels):.2f}", fontsize=11)
    ax.set(xlabel="cluster", xticks=range(N_TOPICS), yticks=range(N_TOPICS))
panels[0].set_ylabel("topic")
plt.show()
