"""Lloyd's algorithm from given seeds for some iterations, by each other package that has it.

A package whose face takes no seeds is given them where its own would be drawn; one that cannot be
given any draws them at random, which its time includes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

OURS = "powermeans"
ANY_DTYPE = ("float32", "float64")


@dataclass(frozen=True)
class Runner:
    """One way to run Lloyd's algorithm."""

    name: str
    label: str
    made_with: str
    run: Callable[[NDArray, NDArray, int], int]
    """From points, seeds and a number of iterations to how many were made."""
    dtypes: tuple[str, ...] = ANY_DTYPE


def fitting(kind: type, **options: Any) -> Callable[[NDArray, NDArray, int], int]:
    def run(points: NDArray, seeds: NDArray, n_iterations: int) -> int:
        model = kind(len(seeds), init=seeds, n_init=1, max_iter=n_iterations, tol=0, **options)
        return int(model.fit(points).n_iter_)

    return run


def of_sklearn(n_threads: int) -> Iterator[Runner]:
    from sklearn.cluster import KMeans

    made_with = f"scikit-learn {version('scikit-learn')}"
    for algorithm in ("lloyd", "elkan"):
        label = f'scikit-learn KMeans(algorithm="{algorithm}")'
        run = fitting(KMeans, algorithm=algorithm)
        yield Runner(f"sklearn-{algorithm}", label, made_with, run)


def of_sklearnex(n_threads: int) -> Iterator[Runner]:
    import daal4py
    from sklearnex.cluster import KMeans

    daal4py.daalinit(n_threads)
    made_with = f"scikit-learn-intelex {version('scikit-learn-intelex')}"
    yield Runner("sklearnex", "scikit-learn-intelex KMeans", made_with, fitting(KMeans))


def of_faiss(n_threads: int) -> Iterator[Runner]:
    import faiss

    faiss.omp_set_num_threads(n_threads)
    made_with = f"faiss-cpu {version('faiss-cpu')}"
    all_points = {"min_points_per_centroid": 1, "max_points_per_centroid": 2**31 - 1}

    def kmeans(points: NDArray, seeds: NDArray, n_iterations: int) -> int:
        model = faiss.Kmeans(points.shape[1], len(seeds), niter=n_iterations, **all_points)
        model.train(points, init_centroids=seeds)
        return n_iterations

    def super_kmeans(points: NDArray, seeds: NDArray, n_iterations: int) -> int:
        model = faiss.SuperKmeans(points.shape[1], len(seeds), niter=n_iterations, **all_points)
        model.train(points)
        return len(model.iteration_stats)

    single = ("float32",)
    yield Runner("faiss", "faiss Kmeans with all points", made_with, kmeans, single)
    label = "faiss SuperKmeans with all points, from seeds of its own"
    yield Runner("faiss-super", label, made_with, super_kmeans, single)


def of_fastkmeanspp(n_threads: int) -> Iterator[Runner]:
    from fastkmeanspp import KMeans

    class Seeded(KMeans):
        def _init_centroids(self, points: NDArray) -> NDArray:
            return self.seeds.copy()

    def run(points: NDArray, seeds: NDArray, n_iterations: int) -> int:
        model = Seeded(len(seeds), n_iter=n_iterations, n_jobs=n_threads)
        model.seeds = np.ascontiguousarray(seeds, dtype=np.float32)
        model.fit(points)
        return n_iterations

    made_with = f"fastkmeanspp {version('fastkmeanspp')}"
    yield Runner("fastkmeanspp", "fastkmeanspp KMeans", made_with, run, ("float32",))


BUILDERS = [of_sklearn, of_sklearnex, of_faiss, of_fastkmeanspp]


def runners(n_threads: int) -> list[Runner]:
    try:
        return [runner for builder in BUILDERS for runner in builder(n_threads)]
    except ModuleNotFoundError as error:
        raise SystemExit(
            f"{error.name} is not installed: run make bench-speed, or python -m benchmarks.speed "
            "in the environment that make peers sets up"
        ) from error
