"""What vector search asks k-means for, beside its codes: many small fits, and product quantizers.

Parts: `fits`, where each way of solving the problems gets the same tolerance, one set of seeds for
each problem, and the same number of threads; `quantizers` beside those of faiss, which come from
the folder of real data. A part that is not asked for stays as it was stored.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator

import numpy as np
from sklearn.cluster import KMeans as KMeansOfSklearn
from threadpoolctl import threadpool_limits

from benchmarks import machine
from benchmarks.pages import Page, Rows, as_markdown, as_text
from powermeans import KMeans, ProductQuantizer, datasets, fit_many

NAME = "vector_search"
PAGE = Page("vector_search", "python -m benchmarks.vector_search --page")
TITLES = {
    "fits": "1000 problems of 500 × 8, 16 centers each",
    "quantizers": "Codes of 8 × 8 bits",
}

N_POINTS, N_FEATURES, N_CLUSTERS = 500, 8, 16
N_SUBSPACES, N_BITS = 8, 8
SETS = ["pendigits", "bridge", "mnist_train"]
MOST_ROWS = 10_000


def draw_problems(n_problems: int, seed: int) -> np.ndarray:
    """Gaussian clusters that overlap; each problem has its own centers."""
    rng = np.random.default_rng(seed)
    centers = 2 * rng.normal(size=(n_problems, N_CLUSTERS, N_FEATURES))
    labels = rng.integers(N_CLUSTERS, size=(n_problems, N_POINTS))
    noise = rng.normal(size=(n_problems, N_POINTS, N_FEATURES))
    return centers[np.arange(n_problems)[:, None], labels] + noise


def by_loop(kind: type) -> Callable[[np.ndarray], np.ndarray]:
    """Inertias by an estimator for each problem."""
    return lambda problems: np.array(
        [kind(N_CLUSTERS, n_init=1, random_state=i).fit(x).inertia_ for i, x in enumerate(problems)]
    )


def at_once(problems: np.ndarray) -> np.ndarray:
    return fit_many(problems, N_CLUSTERS, random_state=0).inertia


WAYS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], type]] = {
    "fit_many": (at_once, np.float64),
    "fit_many, float32": (at_once, np.float32),
    "loop over powermeans.KMeans": (by_loop(KMeans), np.float64),
    "loop over scikit-learn's KMeans": (by_loop(KMeansOfSklearn), np.float64),
}


def fits(n_problems: int, n_threads: int) -> list[dict]:
    """Seconds and mean inertia of each way of solving the same problems."""
    problems = draw_problems(n_problems, seed=0)
    cells = []
    for name, (solve, dtype) in WAYS.items():
        given = problems.astype(dtype)
        solve(given[:2])  # threads and imports are no part of the figure
        with threadpool_limits(n_threads):
            began, began_on_cpu = time.perf_counter(), time.process_time()
            inertias = solve(given)
            seconds, on_cpu = time.perf_counter() - began, time.process_time() - began_on_cpu
        cells.append(
            {
                "way": name,
                "problems": n_problems,
                "threads": n_threads,
                "seconds": seconds,
                "cpu seconds": on_cpu,
                "mean inertia": float(np.mean(inertias)),
            }
        )
    return cells


def fit_rows(cells: list[dict]) -> Rows:
    head = ["way", "threads", "seconds", "CPU seconds", "times fit_many", "mean inertia"]
    fastest = {c["threads"]: c["seconds"] for c in cells if c["way"] == "fit_many"}
    return [
        head,
        *(
            [
                cell["way"],
                str(cell["threads"]),
                f"{cell['seconds']:.3g}",
                f"{cell['cpu seconds']:.3g}",
                f"{cell['seconds'] / fastest[cell['threads']]:.1f}",
                f"{cell['mean inertia']:.1f}",
            ]
            for cell in cells
        ),
    ]


Train = Callable[[np.ndarray, int], Callable[[np.ndarray], np.ndarray]]
"""Learns codes from points on so many threads, and returns what decodes the codes of points."""


def ours(rotation: str | None) -> Train:
    def train(points: np.ndarray, n_threads: int) -> Callable[[np.ndarray], np.ndarray]:
        quantizer = ProductQuantizer(
            N_SUBSPACES, N_BITS, rotation=rotation, random_state=0, n_threads=n_threads
        ).fit(points)
        return lambda points: quantizer.decode(quantizer.encode(points))

    return train


def of_faiss(points: np.ndarray, n_threads: int) -> Callable[[np.ndarray], np.ndarray]:
    import faiss

    faiss.omp_set_num_threads(n_threads)
    quantizer = faiss.ProductQuantizer(points.shape[1], N_SUBSPACES, N_BITS)
    quantizer.train(points)
    return lambda points: quantizer.decode(quantizer.compute_codes(points))


def of_faiss_rotated(points: np.ndarray, n_threads: int) -> Callable[[np.ndarray], np.ndarray]:
    import faiss

    faiss.omp_set_num_threads(n_threads)
    rotation = faiss.OPQMatrix(points.shape[1], N_SUBSPACES)
    rotation.train(points)
    decode = of_faiss(rotation.apply(points), n_threads)
    return lambda points: rotation.reverse_transform(decode(rotation.apply(points)))


QUANTIZERS: dict[str, Train] = {
    "ProductQuantizer()": ours(None),
    "faiss ProductQuantizer": of_faiss,
    'ProductQuantizer(rotation="learned")': ours("learned"),
    "faiss OPQMatrix and ProductQuantizer": of_faiss_rotated,
}


def quantizers(n_threads: int, sets: list[str]) -> Iterator[dict]:
    """Error and time of each quantizer on real points, which it learns from."""
    for name in sets:
        values = np.asarray(datasets.load_data_set(name).points[:MOST_ROWS], dtype=np.float32)
        n_columns = values.shape[1] // N_SUBSPACES * N_SUBSPACES
        points = np.ascontiguousarray(values[:, :n_columns])
        for way, train in QUANTIZERS.items():
            began, began_on_cpu = time.perf_counter(), time.process_time()
            decode = train(points, n_threads)
            seconds, on_cpu = time.perf_counter() - began, time.process_time() - began_on_cpu
            lost = ((points - decode(points)).astype(float) ** 2).sum(axis=1).mean()
            yield {
                "set": name,
                "points": len(points),
                "features": n_columns,
                "way": way,
                "threads": n_threads,
                "seconds": seconds,
                "cpu seconds": on_cpu,
                "error": float(lost),
                "share of variance": float(lost / points.astype(float).var(axis=0).sum()),
            }


def quantizer_rows(cells: list[dict]) -> Rows:
    head = ["set", "way", "seconds", "CPU seconds", "error", "share of the variance"]
    return [
        head,
        *(
            [
                f"{cell['set']}, {cell['points']} x {cell['features']}",
                cell["way"],
                f"{cell['seconds']:.3g}",
                f"{cell['cpu seconds']:.3g}",
                f"{cell['error']:.5g}",
                f"{cell['share of variance']:.4f}",
            ]
            for cell in cells
        ),
    ]


def as_page(stored: dict) -> str:
    """What the docs say of a stored run."""
    sections = [
        f"**{TITLES[part]}**\n\n{as_markdown(ROWS[part](of['cells']))}"
        for part, of in stored["figures"].items()
    ]
    measured = f"Measured on {stored['date']}, {stored['processor']}."
    return "\n\n".join([measured, *sections])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--page", action="store_true", help="write what is stored into the docs")
    arguments = parser.parse_args()
    if arguments.page:
        PAGE.write(as_page(machine.read(NAME, NAME)))
        return
    for part in arguments.parts:
        if part == "fits":
            cells = [cell for n in arguments.threads for cell in fits(arguments.problems, n)]
        else:
            cells = []
            for cell in quantizers(max(arguments.threads), arguments.sets):
                cells.append(cell)
                print(cell, flush=True)  # the largest set takes minutes
        is_stored = machine.stored_at(NAME).is_file()
        figures = machine.read(NAME, NAME)["figures"] if is_stored else {}
        figures[part] = {"command": machine.command(), "cells": cells}
        print(f"{as_text(ROWS[part](cells))}\n{machine.store(NAME, figures)}\n", flush=True)


ROWS: dict[str, Callable[[list[dict]], Rows]] = {"fits": fit_rows, "quantizers": quantizer_rows}


if __name__ == "__main__":
    main()
