"""What the search finds, and what it costs.

Parts: `recovery` of clusters whose centers are known, compared with scikit-learn, and `costs` of
the efforts on large data, in fits of one start.
"""

from __future__ import annotations

import functools
import os
import time
import warnings
from collections.abc import Callable, Iterator
from statistics import mean
from typing import Any

import numpy as np
import sklearn.cluster
import threadpoolctl
from sklearn.exceptions import ConvergenceWarning

from benchmarks import parts
from benchmarks.families import Matrix, draw
from benchmarks.pages import Page
from benchmarks.parts import Part
from benchmarks.problems import DATA_VARIABLE
from powermeans import KMeans, PowerKMeans
from powermeans.datasets import load_data_set
from powermeans.metrics import centroid_index

NAME = "search"
PAGE = Page("project/quality", "python -m benchmarks.search --page")
# Family, points, features, centers; there are more groups than centers.
LARGE = [
    ("overlapping", 10**6, 50, 8),
    ("overlapping", 10**6, 8, 100),
    ("overlapping", 300_000, 100, 30),
    ("overlapping", 10**5, 784, 10),
    ("overlapping", 10**5, 20, 500),
    ("noise", 2 * 10**6, 4, 20),
    ("heavy-tails", 200_000, 50, 60),
    ("unbalanced", 50_000, 8, 1000),
    ("noise", 20_000, 1000, 50),
    ("unequal-spread", 500_000, 20, 20),
]
DATA_SEED = 11
N_SEEDS = 20
METHODS: dict[str, Callable[[int, int], Any]] = {
    "PowerKMeans()": lambda k, seed: PowerKMeans(k, random_state=seed),
    'PowerKMeans(effort="fast")': lambda k, seed: PowerKMeans(k, effort="fast", random_state=seed),
    "scikit-learn, n_init=1": lambda k, seed: sklearn.cluster.KMeans(k, random_state=seed),
    "scikit-learn, n_init=10": lambda k, seed: sklearn.cluster.KMeans(
        k, n_init=10, random_state=seed
    ),
}


def known_centers() -> Iterator[tuple[str, Matrix, Matrix]]:
    """Yield clusters on a 3 x 3 grid, and BIRCH 1 and 2 if there is a folder of data."""
    rng = np.random.default_rng(DATA_SEED)
    grid = 4.0 * np.indices((3, 3)).reshape(2, -1).T
    yield "3 x 3 grid", grid[rng.integers(9, size=900)] + 0.5 * rng.normal(size=(900, 2)), grid
    for number in (1, 2) if os.environ.get(DATA_VARIABLE) else ():
        birch = load_data_set(f"birch{number}")
        yield f"birch{number}", birch.points, birch.centers


def recovery() -> Iterator[dict]:
    """Count the seeds that find every known center, which is a centroid index of 0."""
    for name, points, known in known_centers():
        for label, model in METHODS.items():
            began = time.perf_counter()
            indices = [
                centroid_index(model(len(known), seed).fit(points).cluster_centers_, known)
                for seed in range(N_SEEDS)
            ]
            yield {
                "set": name,
                "method": label,
                "all found": f"{indices.count(0)} of {N_SEEDS}",
                "mean index": mean(indices),
                "seconds a fit": (time.perf_counter() - began) / N_SEEDS,
            }


def costs() -> Iterator[dict]:
    """Measure CPU seconds on one thread, and the inertia compared with the best of ten starts."""
    for family, n_points, n_features, n_clusters in LARGE:
        n_groups = n_clusters + n_clusters // 5
        points = draw(family, n_features, n_groups, n_points=n_points, data_seed=DATA_SEED)
        starts = [cost_of(KMeans(n_clusters, random_state=seed), points) for seed in range(10)]
        row: dict[str, Any] = {"points": n_points, "columns": n_features, "data": family}
        row |= {"k": n_clusters, "one start, s": mean(seconds for seconds, _ in starts)}
        lowest = min(inertia for _, inertia in starts)
        for effort in ("fast", "balanced"):
            seconds, inertia = cost_of(
                PowerKMeans(n_clusters, effort=effort, random_state=0), points
            )
            row[f"{effort}, starts"] = seconds / row["one start, s"]
            row[f"{effort}, %"] = 100 * (inertia / lowest - 1)
        yield row


@threadpoolctl.threadpool_limits.wrap(limits=1)
def cost_of(model: KMeans | PowerKMeans, points: Matrix) -> tuple[float, float]:
    began = time.process_time()
    inertia = float(model.fit(points).inertia_)
    return time.process_time() - began, inertia


PARTS = {
    "recovery": Part(
        "Known centers found",
        "Seeds with which all centers were found, the mean number of centers missed, and seconds.",
        recovery,
    ),
    "costs": Part(
        "What the efforts cost on large data",
        "CPU time of one thread. One start is the mean of ten fits of `KMeans`; the times of the "
        "efforts are multiples of it. The percentages compare the inertia with the best of the "
        "ten.",
        costs,
    ),
}
as_page = functools.partial(parts.as_page, PARTS)

if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    parts.main(NAME, __doc__, PAGE, PARTS)
