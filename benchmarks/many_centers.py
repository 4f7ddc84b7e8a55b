"""Thousands of centers over embeddings: powermeans beside faiss and scikit-learn, in one run.

Each method trains on all points with two threads. Measured are seconds, the sum of squares of all
points about their nearest centers, how even the cells are, and the recall of an inverted file: the
share of the ten nearest neighbours of a query that lie in the cells scanned, where cells are
scanned in the order of their centers until a share of all rows is reached.

    python -m benchmarks.many_centers                  # the smallest set
    python -m benchmarks.many_centers --sets 1M        # one of SETS
    python -m benchmarks.many_centers --page           # write the stored figures to the page
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import machine
from benchmarks.pages import Page, Rows, as_markdown, as_text
from powermeans import KMeans, PowerKMeans, TreeSeeds
from powermeans.rows import open_rows

NAME = "many_centers"
PAGE = Page("vector_search", "python -m benchmarks.many_centers --page")
N_THREADS = 2
N_QUERIES, N_NEIGHBOURS = 500, 10
SHARES = (0.01, 0.02, 0.05, 0.1)

Points = NDArray[np.float32]
Train = Callable[[Points, int, int], NDArray]


class Set(NamedTuple):
    n_points: int
    n_features: int
    n_centers: int


SETS = {
    "65k": Set(65_000, 96, 2048),
    "200k": Set(200_000, 768, 4096),
    "1M": Set(1_000_000, 128, 4096),
    "1M-16k": Set(1_000_000, 128, 16_384),
}


def embeddings(n_points: int, n_features: int, seed: int) -> Points:
    """Draw points as embeddings lie: topics of unequal sizes with heavy tails, in few directions.

    Topics have Zipf sizes of exponent 0.8 and spreads of their own. Around them lie Student's t of
    three degrees of freedom in 32 directions, and a little noise in all.
    """
    rng = np.random.default_rng(seed)
    n_topics, n_directions = max(64, n_points // 200), min(n_features, 32)
    basis = rng.normal(size=(n_directions, n_features)) / np.sqrt(n_directions)
    topics = rng.normal(size=(n_topics, n_directions))
    shares = np.arange(1, n_topics + 1) ** -0.8
    of_point = rng.choice(n_topics, size=n_points, p=shares / shares.sum())
    spreads = 0.5 * np.exp(0.4 * rng.normal(size=n_topics))
    points = np.empty((n_points, n_features), dtype=np.float32)
    for start in range(0, n_points, 65_536):
        topic = of_point[start : start + 65_536]
        tails = np.sqrt(3 / rng.chisquare(3, size=len(topic)))
        steps = rng.normal(size=(len(topic), n_directions)) * (spreads[topic] * tails)[:, None]
        noise = 0.1 * rng.normal(size=(len(topic), n_features))
        points[start : start + len(topic)] = (topics[topic] + steps) @ basis + noise
    return points


def power_kmeans(points: Points, k: int, seed: int) -> NDArray:
    model = PowerKMeans(k, effort="fast", random_state=seed, n_threads=N_THREADS)
    return model.fit(points).cluster_centers_


def tree_and_two_sweeps(points: Points, k: int, seed: int) -> NDArray:
    model = KMeans(k, init=TreeSeeds(), n_init=1, max_iter=2, random_state=seed)
    return model.fit(points).cluster_centers_


def faiss_kmeans(points: Points, k: int, seed: int) -> NDArray:
    import faiss

    faiss.omp_set_num_threads(N_THREADS)
    model = faiss.Kmeans(points.shape[1], k, seed=seed + 1, max_points_per_centroid=2**31 - 1)
    model.train(points)
    return model.centroids


def faiss_super_kmeans(points: Points, k: int, seed: int) -> NDArray:
    import faiss

    faiss.omp_set_num_threads(N_THREADS)
    model = faiss.SuperKmeans(points.shape[1], k, seed=seed + 1, max_points_per_centroid=2**31 - 1)
    model.train(points)
    return model.centroids


def super_kmeans(points: Points, k: int, seed: int) -> NDArray:
    from superkmeans import SuperKMeans

    return SuperKMeans(k, points.shape[1], n_threads=N_THREADS, seed=seed + 1).train(points)


def mini_batch(points: Points, k: int, seed: int) -> NDArray:
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits

    with threadpool_limits(N_THREADS):
        return MiniBatchKMeans(k, n_init=1, random_state=seed).fit(points).cluster_centers_


def bisecting(points: Points, k: int, seed: int) -> NDArray:
    from sklearn.cluster import BisectingKMeans
    from threadpoolctl import threadpool_limits

    with threadpool_limits(N_THREADS):
        return BisectingKMeans(k, random_state=seed).fit(points).cluster_centers_


METHODS: dict[str, Train] = {
    'PowerKMeans(effort="fast")': power_kmeans,
    "KMeans(init=TreeSeeds(), max_iter=2)": tree_and_two_sweeps,
    "faiss Kmeans": faiss_kmeans,
    "faiss SuperKmeans": faiss_super_kmeans,
    "superkmeans": super_kmeans,
    "sklearn MiniBatchKMeans": mini_batch,
    "sklearn BisectingKMeans": bisecting,
}


class Search:
    """The queries of a set, and how many of their neighbours an inverted file finds."""

    def __init__(self, points: Points, queries: Points) -> None:
        self.points, self.queries = points, queries
        self.neighbours = np.empty((len(queries), N_NEIGHBOURS), dtype=np.intp)
        for i, query in enumerate(queries):
            sq_dist = np.square(points - query).sum(axis=1)
            self.neighbours[i] = np.argpartition(sq_dist, N_NEIGHBOURS)[:N_NEIGHBOURS]

    def recall(self, centers: NDArray, labels: NDArray) -> list[float]:
        """Return the share of neighbours found for each share of the rows scanned."""
        sizes = np.bincount(labels, minlength=len(centers))
        sq_dist = open_rows(self.queries, n_threads=N_THREADS).sq_distances(centers)
        order = sq_dist.argsort(axis=1, kind="stable")
        scanned = np.empty(order.shape)
        np.put_along_axis(scanned, order, np.cumsum(sizes[order], axis=1), axis=1)
        at = np.take_along_axis(scanned, labels[self.neighbours], axis=1)
        return [float(np.mean(at <= share * len(self.points))) for share in SHARES]


def measured(name: str, points: Points, search: Search, k: int, seed: int) -> dict:
    began, cpu = time.perf_counter(), _cpu_seconds()
    centers = METHODS[name](points, k, seed)
    seconds, cpu = time.perf_counter() - began, _cpu_seconds() - cpu
    centers = np.ascontiguousarray(centers, dtype=np.float64)
    labels, sum_of_squares = open_rows(points, n_threads=N_THREADS).assign(centers)
    sizes = np.bincount(labels, minlength=k)
    return {
        "method": name,
        "seed": seed,
        "seconds": seconds,
        "cpu": cpu,
        "sum_of_squares": sum_of_squares,
        "variation": float(sizes.std() / sizes.mean()),
        "recall": search.recall(centers, labels),
    }


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system


def figures(name: str, methods: list[str], seeds: int) -> dict:
    of_set = SETS[name]
    drawn = embeddings(of_set.n_points + N_QUERIES, of_set.n_features, seed=1)
    points, queries = drawn[:-N_QUERIES].copy(), drawn[-N_QUERIES:].copy()
    search, cells = Search(points, queries), []
    for seed in range(seeds):
        for method in methods:
            cells.append(measured(method, points, search, of_set.n_centers, seed))
            print(as_text(rows_of({"set": of_set._asdict(), "cells": cells[-1:]})[1:]), flush=True)
    return {"set": of_set._asdict(), "load": os.getloadavg()[0], "cells": cells}


def rows_of(found: dict) -> Rows:
    """The table of a set: medians over the seeds."""
    head = ["method", "seconds", "CPU seconds", "sum of squares", "sizes vary by"]
    rows = [[*head, *(f"recall at {share:.0%}" for share in SHARES)]]
    for method in dict.fromkeys(cell["method"] for cell in found["cells"]):
        cells = [cell for cell in found["cells"] if cell["method"] == method]

        def middle(key: str, cells: list[dict] = cells) -> float:
            return statistics.median(cell[key] for cell in cells)

        recall = np.median([cell["recall"] for cell in cells], axis=0)
        rows.append(
            [
                method,
                f"{middle('seconds'):.1f}",
                f"{middle('cpu'):.1f}",
                f"{middle('sum_of_squares'):.4g}",
                f"{middle('variation'):.2f}",
                *(f"{value:.3f}" for value in recall),
            ]
        )
    return rows


def block(stored: dict) -> str:
    parts = [f"Measured on {stored['date']}, {stored['processor']}, {N_THREADS} threads."]
    for found in stored["figures"].values():
        size = found["set"]
        parts += [
            f"**{size['n_points']:,} × {size['n_features']}, {size['n_centers']:,} centers** "
            f"(load {found['load']:.0f} while it ran)",
            as_markdown(rows_of(found)),
        ]
    return "\n\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=["65k"])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--page", action="store_true", help="write the stored figures to the page")
    arguments = parser.parse_args()
    if arguments.page:
        PAGE.write(block(machine.read(NAME, NAME)))
        return
    stored = machine.stored_at(NAME)
    kept = machine.read(NAME, NAME)["figures"] if stored.is_file() else {}
    for name in arguments.sets:
        kept[name] = figures(name, arguments.methods, arguments.seeds)
        machine.store(NAME, kept)
        print(as_text(rows_of(kept[name])))


if __name__ == "__main__":
    main()
