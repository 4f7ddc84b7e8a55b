"""The methods whose quality is measured: our efforts, and what else there is to install.

Each makes a fit from points, a number of clusters and a seed, and says how long it took. What a
package needs done to the points before (another dtype, say) is not timed. Packages are imported
when their methods are asked for.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import math
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from multiprocessing.connection import Connection
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.families import Matrix
from benchmarks.machine import digest
from benchmarks.turns import seconds

# hgmeans takes at least this much of the time of another method.
ENOUGH = 0.8
# So often it is asked anew when it crashes, hangs or answers for other points.
ATTEMPTS = 3
MOST_ITERATIONS = 1_000_000


@dataclass(frozen=True)
class Fit:
    """Centers, the inertia that the method itself reports for them, if any, and the time taken."""

    centers: NDArray
    claimed: float | None
    seconds: float


class Method(Protocol):
    """What the benchmark asks of a method."""

    name: str
    label: str
    made_with: str

    def fit(
        self, points: Matrix, n_clusters: int, seed: int, seconds_of: Mapping[str, float]
    ) -> Fit:
        """One fit; `seconds_of` is what methods before it took for the same seed."""


@dataclass(frozen=True)
class Estimator:
    """A method with the interface of scikit-learn."""

    name: str
    label: str
    made_with: str
    make: Callable[[int, int], Any]

    def fit(
        self, points: Matrix, n_clusters: int, seed: int, seconds_of: Mapping[str, float]
    ) -> Fit:
        model = self.make(n_clusters, seed)
        elapsed = seconds(lambda: model.fit(points))
        if (centers := getattr(model, "cluster_centers_", None)) is None:
            centers = means_by_label(points, model.labels_)
        claimed = getattr(model, "inertia_", None)
        return Fit(np.asarray(centers), None if claimed is None else float(claimed), elapsed)


@dataclass(frozen=True)
class Faiss:
    """faiss.Kmeans, which reads float32 and does not say the inertia of its last centers."""

    name: str
    label: str
    made_with: str
    options: Mapping[str, Any]

    def fit(
        self, points: Matrix, n_clusters: int, seed: int, seconds_of: Mapping[str, float]
    ) -> Fit:
        import faiss

        single = points.astype(np.float32)
        # Its seed 0 would stand for another one than 0.
        model = faiss.Kmeans(points.shape[1], n_clusters, seed=seed + 1, **self.options)
        elapsed = seconds(lambda: model.train(single))
        return Fit(np.array(model.centroids), None, elapsed)


Answer = tuple[NDArray, float]


class Lost(RuntimeError):
    """No answer, or one that cannot be meant."""


class HgMeansProcess:
    """hgmeans in a process of its own: it prints, and at times it crashes or does not return."""

    def __init__(self) -> None:
        self._process: Any = None
        self._pipe: Any = None

    def ask(
        self, points: Matrix, n_clusters: int, n_iterations: int, patience: float | None
    ) -> Answer:
        """Return labels and seconds of one run."""
        if self._process is None:
            self._start()
        self._pipe.send((points, n_clusters, n_iterations))
        if not self._pipe.poll(patience):
            self.end()
            raise Lost(f"no answer within {patience:.0f} s")
        try:
            labels, elapsed = self._pipe.recv()
        except (EOFError, ConnectionError):
            self.end()
            raise Lost("its process died") from None
        if len(labels) != len(points):
            self.end()
            raise Lost(f"{len(labels)} labels for {len(points)} points")
        return labels, elapsed

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=answer_for_hgmeans, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._process = self._pipe = None


def answer_for_hgmeans(pipe: Connection) -> None:
    """Run hgmeans with a population of ten for whoever asks through the pipe."""
    import hgmeans

    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    with contextlib.suppress(EOFError):
        while True:
            points, n_clusters, n_iterations = pipe.recv()
            no_labels = np.zeros(len(points), dtype=int)
            began = time.perf_counter()
            answer = hgmeans.PyHGMeans().run(
                points, no_labels, 10, n_iterations, 1, [n_clusters], ""
            )
            elapsed = time.perf_counter() - began
            labels = np.asarray(answer, dtype=int).reshape(-1)
            pipe.send((labels, elapsed))


@dataclass
class HgMeans:
    """hgmeans, with twice as many iterations each time until it took as long as another method.

    It has no seed and gives the same answer to the same rows, so each seed shuffles the rows. Its
    answer is labels; the centers are the means of the points that share one.
    """

    name: str
    label: str
    made_with: str
    as_long_as: str = "thorough"
    _process: HgMeansProcess = field(default_factory=HgMeansProcess)
    _points: Matrix | None = None

    def fit(
        self, points: Matrix, n_clusters: int, seed: int, seconds_of: Mapping[str, float]
    ) -> Fit:
        if self._points is not points:
            self._process.end()  # asked about many sets in turn, it loses track of them
            self._points = points
        if self.as_long_as not in seconds_of:
            raise Lost(f"it may run as long as {self.as_long_as}, whose time is unknown")
        shuffled = np.random.default_rng(seed).permutation(points)
        budget = seconds_of[self.as_long_as]
        labels, elapsed = self._ask(shuffled, n_clusters, 1, budget)
        n_iterations = 1
        while elapsed < ENOUGH * budget and n_iterations < MOST_ITERATIONS:
            n_iterations *= 2
            labels, elapsed = self._ask(shuffled, n_clusters, n_iterations, budget)
        return Fit(means_by_label(shuffled, labels), None, elapsed)

    def _ask(self, points: Matrix, n_clusters: int, n_iterations: int, budget: float) -> Answer:
        patience = max(60.0, 20 * budget)
        for _ in range(ATTEMPTS - 1):
            with contextlib.suppress(Lost):
                return self._process.ask(points, n_clusters, n_iterations, patience)
        return self._process.ask(points, n_clusters, n_iterations, patience)


def means_by_label(points: Matrix, labels: NDArray) -> Matrix:
    """The mean of the points of each label that occurs."""
    present, compact = np.unique(labels, return_inverse=True)
    sums = np.zeros((len(present), points.shape[1]))
    np.add.at(sums, compact, points)
    return sums / np.bincount(compact)[:, None]


# What is on offer. A builder imports its package and is given the number of threads.


def our_methods(n_threads: int) -> Iterator[Method]:
    from powermeans import PowerKMeans

    made_with = f"powermeans {version('powermeans')} {digest('powermeans')}"
    settings: dict[str, tuple[str, dict[str, Any]]] = {
        "fast": ('PowerKMeans(effort="fast")', {"effort": "fast"}),
        "balanced": ("PowerKMeans()", {}),
        "thorough": ('PowerKMeans(effort="thorough")', {"effort": "thorough"}),
        "annealed": ('PowerKMeans(effort="none"): annealed once, no search', {"effort": "none"}),
        "lloyd": (
            'PowerKMeans(effort="none", power=-inf): Lloyd from the same seeds',
            {"effort": "none", "power": -math.inf},
        ),
        "paper": (
            'PowerKMeans(power=-3, schedule=1.05, init="plain-k-means++", polish=False)',
            {"power": -3.0, "schedule": 1.05, "init": "plain-k-means++", "polish": False},
        ),
    }
    for name, (label, options) in settings.items():

        def make(n_clusters: int, seed: int, options: dict = options) -> PowerKMeans:
            return PowerKMeans(n_clusters, random_state=seed, n_threads=n_threads, **options)

        yield Estimator(name, label, made_with, make)


def sklearn_methods(n_threads: int) -> Iterator[Method]:
    from sklearn.cluster import KMeans

    for n_init in (1, 10):

        def make(n_clusters: int, seed: int, n_init: int = n_init) -> KMeans:
            return KMeans(n_clusters, n_init=n_init, random_state=seed)

        label, made_with = f"scikit-learn KMeans, n_init={n_init}", "scikit-learn"
        yield Estimator(f"sklearn-{n_init}", label, f"{made_with} {version(made_with)}", make)


def bkmeans_methods(n_threads: int) -> Iterator[Method]:
    from bkmeans import BKMeans

    def make(n_clusters: int, seed: int) -> Any:
        return BKMeans(n_clusters=n_clusters, random_state=seed)

    yield Estimator("bkmeans", "bkmeans (breathing)", f"bkmeans {version('bkmeans')}", make)


def faiss_methods(n_threads: int) -> Iterator[Method]:
    import faiss

    faiss.omp_set_num_threads(n_threads)
    made_with = f"faiss-cpu {version('faiss-cpu')}"
    own = "faiss Kmeans by default: 25 iterations, random seeds, at most 256 points a center"
    # Fewer points a center than this only make it print a warning.
    quiet = {"min_points_per_centroid": 1}
    yield Faiss("faiss", own, made_with, quiet)
    all_points = {
        **quiet,
        "niter": 25,
        "max_points_per_centroid": 2**31 - 1,
        "init_method": faiss.ClusteringInitMethod_KMEANS_PLUS_PLUS,
    }
    label = "faiss Kmeans, 25 iterations, k-means++ seeds, all points"
    yield Faiss("faiss-plusplus", label, made_with, all_points)


def hgmeans_methods(n_threads: int) -> Iterator[Method]:
    if importlib.util.find_spec("hgmeans") is None:
        raise ModuleNotFoundError(name="hgmeans")
    made_with = f"hgmeans {version('hgmeans')}"
    timed_by = f"{made_with}, timed by powermeans {digest('powermeans')}"
    yield HgMeans("hgmeans", "hgmeans, for at least as long as thorough took", timed_by)


BUILDERS: list[tuple[Callable[[int], Iterator[Method]], tuple[str, ...]]] = [
    (our_methods, ("fast", "balanced", "thorough", "annealed", "lloyd", "paper")),
    (sklearn_methods, ("sklearn-1", "sklearn-10")),
    (bkmeans_methods, ("bkmeans",)),
    (faiss_methods, ("faiss", "faiss-plusplus")),
    (hgmeans_methods, ("hgmeans",)),
]
# Measured only if asked for by name.
ON_REQUEST = {"hgmeans"}


def method_names() -> list[str]:
    return [name for _, names in BUILDERS for name in names]


def build_methods(names: list[str], n_threads: int) -> list[Method]:
    """The methods of these names; a package that is not there ends the program."""
    built: list[Method] = []
    for builder, offered in BUILDERS:
        wanted = set(offered) & set(names)
        if not wanted:
            continue
        try:
            built += [method for method in builder(n_threads) if method.name in wanted]
        except ModuleNotFoundError as error:
            raise SystemExit(
                f"{error.name} is not installed: run make peers and use its environment, or "
                f"leave out {', '.join(sorted(wanted))} by --methods"
            ) from error
    return built


def any_class(path: str) -> Estimator:
    """Return the method of a class with scikit-learn's interface, named as module:Class."""
    module, _, name = path.partition(":")
    try:
        kind = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise SystemExit(f"--method {path}: {error}; write module:Class") from error
    takes_seed = "random_state" in inspect.signature(kind).parameters

    def make(n_clusters: int, seed: int) -> Any:
        return kind(n_clusters=n_clusters, **({"random_state": seed} if takes_seed else {}))

    return Estimator(name, path, module, make)
