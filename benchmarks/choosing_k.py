"""How often each criterion of `choose_k` says the number of clusters that the data was drawn with.

Generated families in 2 and 10 features, 3 to 12 clusters, k from 2 to 20. A criterion that says
nothing, as the gap does where it rises to the end, is not right.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from statistics import mean

import numpy as np

from benchmarks import machine
from benchmarks.families import Points, draw
from benchmarks.pages import Page, Rows, as_markdown, as_text
from powermeans.choosing_k import choose_k, vote

NAME = "choosing_k"
PAGE = Page("choosing_k", "python -m benchmarks.choosing_k --page")
FAMILIES = (
    "separated",
    "overlapping",
    "unbalanced",
    "unequal-spread",
    "grid",
    "heavy-tails",
    "noise-features",
)
N_FEATURES = (2, 10)
N_CLUSTERS = (3, 5, 8, 12)
N_POINTS = 1500
K_RANGE = range(2, 21)
# Noise features are so wide, in standard deviations of a cluster, and as many as the others.
NOISE = 3.0

Cell = dict[str, object]


def drawn(family: str, n_features: int, n_clusters: int, seed: int) -> Points:
    if family != "noise-features":
        return draw(family, n_features, n_clusters, n_points=N_POINTS, data_seed=seed)
    points = draw("separated", n_features, n_clusters, n_points=N_POINTS, data_seed=seed)
    noise = NOISE * np.random.default_rng(seed).standard_normal(points.shape)
    return np.ascontiguousarray(np.hstack([points, noise]))


def problems(seeds: range) -> Iterator[tuple[str, int, int, int]]:
    for family in FAMILIES:
        for n_features in N_FEATURES:
            for n_clusters in N_CLUSTERS:
                for seed in seeds:
                    yield family, n_features, n_clusters, seed


def measured(problem: tuple[str, int, int, int]) -> Cell:
    """What each criterion says of one set."""
    points = drawn(*problem)
    choice = choose_k(points, K_RANGE, criteria="all", random_state=problem[-1])
    cell: Cell = dict(zip(("family", "d", "k", "seed"), problem, strict=True))
    return {**cell, "said": choice.by_criterion}
