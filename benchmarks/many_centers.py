"""Many centers over embeddings: sums of squares, time, and what they are worth to a search.

Each method trains on all points with two threads, in a process of its own. Measured are seconds,
the sum of squares of all points about their nearest centers, and the recall of an inverted file:
the share of the ten nearest neighbours of a query that lie in the cells scanned, where cells are
scanned in the order of their centers until a share of all rows is reached. Queries
are rows that no method trains on. POWERMEANS_DATA names the folder of the real sets.

    python -m benchmarks.many_centers                  # the smallest set
    python -m benchmarks.many_centers --sets 1M        # one of SETS
    python -m benchmarks.many_centers --sets 1M --methods superkmeans --limit 300
    python -m benchmarks.many_centers --page           # write the stored figures to the page

A method that takes more processor seconds than the limit is stopped. faiss then keeps the centers
of its last iteration; scikit-learn has none. Methods that are not run keep what is stored of them.
"""

from __future__ import annotations

import argparse
import functools
import math
import multiprocessing
import os
import resource
import statistics
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import machine
from benchmarks.pages import Page, Points, as_markdown, as_text
from powermeans import KMeans, PowerKMeans
from powermeans.datasets import load_data_set
from powermeans.engine import SweepState
from powermeans.engine.seeds import TreeSeeds
from powermeans.points.opening import open_rows

NAME = "many_centers"
PAGE = Page("project/measurements", "python -m benchmarks.many_centers --page")
N_THREADS = 2
N_QUERIES, N_NEIGHBOURS = 500, 10
SHARES = (0.01, 0.02, 0.05, 0.1)

# Of faiss by default.
N_ITERATIONS = 25

Matrix = NDArray[np.float32]


class Clock:
    """The processor seconds of a method, and the sums of squares that it passes on its way."""

    def __init__(self, limit: float) -> None:
        self.limit, self._began = limit, _cpu_seconds()
        self.path: list[tuple[float, float]] = []
        self.stopped = ""

    def note(self, sum_of_squares: float) -> None:
        self.path.append((self.seconds(), float(sum_of_squares)))

    def seconds(self) -> float:
        return _cpu_seconds() - self._began


Train = Callable[[Matrix, int, int, Clock], NDArray]


def embeddings(n_points: int, n_features: int, seed: int) -> Matrix:
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


def power_kmeans(points: Matrix, k: int, seed: int, clock: Clock) -> NDArray:
    model = PowerKMeans(
        k, effort="fast", random_state=seed, n_threads=N_THREADS, callback=_noting(k, clock)
    )
    return model.fit(points).cluster_centers_


def balanced(points: Matrix, k: int, seed: int, clock: Clock) -> NDArray:
    model = PowerKMeans(k, random_state=seed, n_threads=N_THREADS)
    return model.fit(points).cluster_centers_


def tree_and_two_sweeps(points: Matrix, k: int, seed: int, clock: Clock) -> NDArray:
    model = KMeans(k, init=TreeSeeds(), n_init=1, max_iter=2, random_state=seed)
    return model.fit(points).cluster_centers_


def tree_seeds(points: Matrix, k: int, seed: int, clock: Clock) -> NDArray:
    return TreeSeeds()(points, k, np.random.RandomState(seed))


def _noting(k: int, clock: Clock) -> Callable[[SweepState], None]:
    """Note the sum of squares of each sweep of Lloyd's rule, which is that before its last move."""

    def note(state: SweepState) -> None:
        if state.power == -math.inf and len(state.centers) == k:
            clock.note(state.inertia)

    return note


def of_faiss(name: str) -> Train:
    """Return a training of as many times one iteration as faiss iterates, or until the limit."""

    def train(points: Matrix, k: int, seed: int, clock: Clock) -> NDArray:
        import faiss

        faiss.omp_set_num_threads(N_THREADS)
        centers, all_points = None, {"max_points_per_centroid": 2**31 - 1}
        for done in range(N_ITERATIONS):
            if clock.seconds() > clock.limit:
                clock.stopped = f"{done} of {N_ITERATIONS} iterations"
                break
            model = getattr(faiss, name)(points.shape[1], k, niter=1, seed=seed + 1, **all_points)
            model.train(points, init_centroids=centers)
            centers = model.centroids.copy()
            clock.note(model.obj[-1])
        return centers

    return train


def super_kmeans(points: Matrix, k: int, seed: int, clock: Clock) -> NDArray:
    from superkmeans import SuperKMeans

    return SuperKMeans(k, points.shape[1], n_threads=N_THREADS, seed=seed + 1).train(points)


def of_sklearn(name: str, **options: Any) -> Train:
    """Return the training of an estimator of scikit-learn."""

    def train(points: Matrix, k: int, seed: int, clock: Clock) -> NDArray:
        import sklearn.cluster
        from threadpoolctl import threadpool_limits

        with threadpool_limits(N_THREADS):
            model = getattr(sklearn.cluster, name)(k, random_state=seed, **options)
            return model.fit(points).cluster_centers_

    return train


METHODS: dict[str, Train] = {
    'PowerKMeans(effort="fast")': power_kmeans,
    "PowerKMeans()": balanced,
    "KMeans(init=TreeSeeds(), max_iter=2)": tree_and_two_sweeps,
    "TreeSeeds()": tree_seeds,
    "faiss Kmeans": of_faiss("Kmeans"),
    "faiss SuperKmeans": of_faiss("SuperKmeans"),
    "superkmeans": super_kmeans,
    "sklearn KMeans": of_sklearn("KMeans", n_init=1),
    "sklearn MiniBatchKMeans": of_sklearn("MiniBatchKMeans", n_init=1),
    "sklearn BisectingKMeans": of_sklearn("BisectingKMeans"),
}
LOOKING_AT_THE_LIMIT = [METHODS["faiss Kmeans"], METHODS["faiss SuperKmeans"]]
LONG = ["PowerKMeans()", "sklearn KMeans"]
OF_MANY_CENTERS = [name for name in METHODS if name not in LONG]
OF_FEW_CENTERS = ['PowerKMeans(effort="fast")', "PowerKMeans()", "faiss Kmeans", "sklearn KMeans"]


class Set(NamedTuple):
    """What loads the rows, queries among them, how many centers, and which methods."""

    load: Callable[[], Matrix]
    n_centers: int
    methods: list[str]


def drawn(n_points: int, n_features: int, n_centers: int) -> Set:
    load = functools.partial(embeddings, n_points + N_QUERIES, n_features, 1)
    return Set(load, n_centers, OF_MANY_CENTERS)


def real(name: str, n_centers: int) -> Set:
    """Return the rows of a real set, in an order of their own."""

    def load() -> Matrix:
        points = load_data_set(name).points.astype(np.float32)
        return points[np.random.default_rng(0).permutation(len(points))]

    return Set(load, n_centers, OF_FEW_CENTERS)


SETS = {
    "65k": drawn(65_000, 96, 2048),
    "200k": drawn(200_000, 768, 4096),
    "1M": drawn(1_000_000, 128, 4096),
    "1M-16k": drawn(1_000_000, 128, 16_384),
    "bridge": real("bridge", 64),
    "pendigits": real("pendigits", 128),
    "mnist_test": real("mnist_test", 128),
    "million": Set(
        functools.partial(embeddings, 1_000_000 + N_QUERIES, 32, 2), 256, OF_FEW_CENTERS
    ),
}


class Search:
    """The queries of a set, and how many of their neighbours an inverted file finds."""

    def __init__(self, points: Matrix, queries: Matrix) -> None:
        self.points, self.queries = points, queries
        rows = open_rows(points, n_threads=N_THREADS)
        self.neighbours = np.empty((len(queries), N_NEIGHBOURS), dtype=np.intp)
        for start in range(0, len(queries), 25):
            some = slice(start, start + 25)
            for i, sq_dist in enumerate(rows.sq_distances(queries[some].astype(np.float64)).T):
                nearest = np.argpartition(sq_dist, N_NEIGHBOURS)[:N_NEIGHBOURS]
                self.neighbours[start + i] = nearest

    def recall(self, centers: NDArray, labels: NDArray) -> list[float]:
        """Return the share of neighbours found for each share of the rows scanned."""
        sizes = np.bincount(labels, minlength=len(centers))
        sq_dist = open_rows(self.queries, n_threads=N_THREADS).sq_distances(centers)
        order = sq_dist.argsort(axis=1, kind="stable")
        scanned = np.empty(order.shape)
        np.put_along_axis(scanned, order, np.cumsum(sizes[order], axis=1), axis=1)
        at = np.take_along_axis(scanned, labels[self.neighbours], axis=1)
        return [float(np.mean(at <= share * len(self.points))) for share in SHARES]


def measured(name: str, points: Matrix, search: Search, k: int, seed: int, limit: float) -> dict:
    """Train in a process of its own, and judge its centers here."""
    train = METHODS[name]
    fork = multiprocessing.get_context("fork")
    receiving, sending = fork.Pipe(duplex=False)
    process = fork.Process(target=_train, args=(train, points, k, seed, limit, sending))
    process.start()
    sending.close()
    try:
        centers, found = receiving.recv()
    except EOFError:  # killed at its limit
        return {"method": name, "seed": seed, "limit": limit, "stopped": "no centers"}
    finally:
        process.join()
    centers = np.ascontiguousarray(centers, dtype=np.float64)
    labels, sum_of_squares = open_rows(points, n_threads=N_THREADS).assign(centers)
    return {
        "method": name,
        "seed": seed,
        "limit": None if math.isinf(limit) else limit,
        "load": os.getloadavg()[0],
        **found,
        "sum_of_squares": sum_of_squares,
        "recall": search.recall(centers, labels),
    }


def _train(
    train: Train, points: Matrix, k: int, seed: int, limit: float, sending: Connection
) -> None:
    began, clock = time.perf_counter(), Clock(limit)
    if math.isfinite(limit) and train not in LOOKING_AT_THE_LIMIT:
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit), math.ceil(limit)))
    centers = train(points, k, seed, clock)
    seconds, cpu = time.perf_counter() - began, clock.seconds()
    found = {"seconds": seconds, "cpu": cpu, "path": clock.path, "stopped": clock.stopped}
    sending.send((np.asarray(centers), found))


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system


def figures(name: str, stored: list[dict], arguments: argparse.Namespace) -> dict:
    """Measure the methods asked for, and keep what is stored of the others."""
    of_set = SETS[name]
    rows = of_set.load()
    points, queries = rows[:-N_QUERIES], rows[-N_QUERIES:].copy()
    search, k = Search(points, queries), of_set.n_centers
    methods = arguments.methods or of_set.methods
    cells = [cell for cell in stored if cell["method"] not in methods]
    for seed in range(arguments.seeds):
        for method in methods:
            cells.append(measured(method, points, search, k, seed, arguments.limit))
            print(as_text(rows_of({"cells": cells[-1:]})[1:]), flush=True)
    cells.sort(key=lambda cell: (list(METHODS).index(cell["method"]), cell["seed"]))
    size = {"n_points": len(points), "n_features": points.shape[1], "n_centers": k}
    return {"set": size, "cells": cells}


def rows_of(found: dict) -> Points:
    """The table of a set: medians over the seeds."""
    head = ["method", "CPU seconds", "sum of squares"]
    rows = [[*head, *(f"recall at {share:.0%}" for share in SHARES)]]
    for method in dict.fromkeys(cell["method"] for cell in found["cells"]):
        cells = [cell for cell in found["cells"] if cell["method"] == method]
        stopped = {cell["stopped"]: cell["limit"] for cell in cells if cell["stopped"]}
        for how, limit in stopped.items():
            method += f", stopped after {limit:.0f} CPU seconds: {how}"
        cells = [cell for cell in cells if "recall" in cell]
        rows.append([method, *(_medians(cells) if cells else ["-"] * (len(rows[0]) - 1))])
    return rows


def _medians(cells: list[dict]) -> list[str]:
    def middle(key: str) -> float:
        return statistics.median(cell[key] for cell in cells)

    recall = np.median([cell["recall"] for cell in cells], axis=0)
    return [
        f"{middle('cpu'):.1f}",
        f"{middle('sum_of_squares'):.4g}",
        *(f"{value:.3f}" for value in recall),
    ]


def as_page(stored: dict) -> str:
    """One table of the sets with thousands of centers."""
    shown = ["method", "CPU seconds", "sum of squares", "recall at 1%", "recall at 5%"]
    rows: Points = [["rows × columns, centers", *shown]]
    for found in stored["figures"].values():
        size = found["set"]
        if size["n_centers"] <= 1000:
            continue
        head, *measured = rows_of(found)
        name = f"{size['n_points']:,} × {size['n_features']}, {size['n_centers']:,}"
        columns = [head.index(one) for one in shown]
        rows += [[name, *(row[i] for i in columns)] for row in measured]
    return (
        f"Measured on {stored['date']}, {stored['processor']}, {N_THREADS} threads. Other programs "
        f"ran on the machine, so the table shows CPU seconds.\n\n{as_markdown(rows)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=["65k"])
    parser.add_argument("--methods", nargs="+", choices=METHODS, help="those of the set")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--limit", type=float, default=math.inf, help="CPU seconds of a method")
    parser.add_argument("--page", action="store_true", help="write the stored figures to the page")
    arguments = parser.parse_args()
    if arguments.page:
        PAGE.write(as_page(machine.read(NAME, NAME)))
        return
    kept = machine.stored_figures(NAME)
    for name in arguments.sets:
        stored = kept[name]["cells"] if name in kept else []
        kept[name] = figures(name, stored, arguments)
        machine.store(NAME, kept)
        print(as_text(rows_of(kept[name])))


if __name__ == "__main__":
    main()
