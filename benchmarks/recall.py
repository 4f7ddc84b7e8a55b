"""What centers are worth to an inverted file: recall, and how even the cells are, on real sets.

The lists belong to the clusters of powermeans, faiss and scikit-learn. Recall is the share of the
ten nearest neighbours of a query that lie in the cells scanned until a share of the rows is reached
(`benchmarks.many_centers`). Queries are rows that no method trains on. POWERMEANS_DATA names the
folder of the real sets.

    python -m benchmarks.recall                            # the real sets
    python -m benchmarks.recall --sets million --seeds 1   # one of SETS
    python -m benchmarks.recall --page                     # write the stored figures to the page

Methods that are not run keep what is stored of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks import machine, many_centers
from benchmarks.many_centers import Clock, Points, Search, Set, embeddings, measured, rows_of
from benchmarks.pages import Page, as_markdown, as_text
from powermeans import PowerKMeans
from powermeans.datasets import load_data_set

NAME = "recall"
PAGE = Page("vector_search", "python -m benchmarks.recall --page")
N_QUERIES = 500


def real(name: str) -> Callable[[], Points]:
    """Return what loads the rows of a real set, in an order of their own."""

    def load() -> Points:
        points = load_data_set(name).points.astype(np.float32)
        return points[np.random.default_rng(0).permutation(len(points))]

    return load


LOADED: dict[str, tuple[Callable[[], Points], int]] = {
    "mnist_test": (real("mnist_test"), 128),
    "pendigits": (real("pendigits"), 128),
    "bridge": (real("bridge"), 64),
    "million": (lambda: embeddings(1_000_000 + N_QUERIES, 32, seed=2), 256),
}


def balanced(points: Points, k: int, seed: int, clock: Clock) -> NDArray:
    model = PowerKMeans(k, random_state=seed, n_threads=many_centers.N_THREADS)
    return model.fit(points).cluster_centers_


def sklearn_kmeans(points: Points, k: int, seed: int, clock: Clock) -> NDArray:
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    with threadpool_limits(many_centers.N_THREADS):
        return KMeans(k, n_init=1, random_state=seed).fit(points).cluster_centers_


METHODS = {
    'PowerKMeans(effort="fast")': many_centers.power_kmeans,
    "PowerKMeans()": balanced,
    "faiss Kmeans": many_centers.faiss_kmeans,
    "sklearn KMeans": sklearn_kmeans,
}


def figures(name: str, stored: list[dict], arguments: argparse.Namespace) -> dict:
    load, k = LOADED[name]
    drawn = load()
    points, queries = drawn[:-N_QUERIES], drawn[-N_QUERIES:].copy()
    search = Search(points, queries)
    cells = [cell for cell in stored if cell["method"] not in arguments.methods]
    for method in arguments.methods:
        seeds = range(arguments.seeds)
        found = [measured(method, points, search, k, seed, methods=METHODS) for seed in seeds]
        for cell in found:
            cell["path"] = []  # the page shows only where it ends
        print(as_text(rows_of({"cells": found})), flush=True)
        cells += found
    cells.sort(key=lambda cell: (list(METHODS).index(cell["method"]), cell["seed"]))
    return {"set": Set(*points.shape, k)._asdict(), "cells": cells}


def as_page(stored: dict) -> str:
    parts = [f"Measured on {stored['date']}. Medians over seeds; in brackets, how many."]
    for name, found in stored["figures"].items():
        size = found["set"]
        title = (
            f"**{name}, {size['n_points']:,} × {size['n_features']}, {size['n_centers']} centers**"
        )
        parts += [title, as_markdown(_with_seeds(found))]
    return "\n\n".join(parts)


def _with_seeds(found: dict) -> list[list[str]]:
    head, *rows = rows_of(found)
    of_method = [cell["method"] for cell in found["cells"]]
    return [head, *([f"{row[0]} [{of_method.count(row[0])}]", *row[1:]] for row in rows)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    real_sets = [name for name in LOADED if name != "million"]
    parser.add_argument("--sets", nargs="+", choices=LOADED, default=real_sets)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--page", action="store_true", help="write the stored figures to the page")
    arguments = parser.parse_args()
    if arguments.page:
        PAGE.write(as_page(machine.read(NAME, NAME)))
        return
    kept = machine.stored_figures(NAME)
    for name in arguments.sets:
        kept[name] = figures(name, kept[name]["cells"] if name in kept else [], arguments)
        machine.store(NAME, kept)


if __name__ == "__main__":
    main()
