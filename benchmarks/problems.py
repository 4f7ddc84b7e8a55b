"""The problems on which quality is measured, and the sizes at which speed is.

The problems are those of records.csv, with the lowest inertia that is known. Real sets are looked
for in the folder named by POWERMEANS_DATA.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray

from benchmarks.families import Matrix, draw
from benchmarks.records import Known, all_known
from powermeans.datasets import load_data_set
from powermeans_tables.datasets.real import DATA_VARIABLE

SKLEARN_PREFIX = "sklearn:"

LARGE = {"birch1"}
QUICK = {
    "iris/5",
    "wine/8",
    "tsp_u1060/50",
    "d31/31",
    "sklearn:digits/10",
    "overlapping-2d/50",
    "overlapping-10d/50",
    "separated-2d/50",
    "grid-2d/49",
    "heavy-tails-2d/10",
    "unbalanced-2d/50",
    "duplicates-2d/50",
}


@dataclass(frozen=True)
class Problem:
    """Points, read or drawn when they are needed, and how many centers to find."""

    name: str
    group: str
    n_clusters: int
    load: Callable[[], Matrix]
    best_known: float | None = None


def all_problems(*, data_seed: int = 0, large: bool = False) -> list[Problem]:
    """The real ones if their folder is named, and the generated ones."""
    return [
        problem_of(known, data_seed)
        for known in all_known().values()
        if known.is_drawn or (os.environ.get(DATA_VARIABLE) and (large or known.data not in LARGE))
    ]


def problem_of(known: Known, data_seed: int) -> Problem:
    if not known.is_drawn:
        load = functools.partial(real_points, known.data, known.rows)
        return Problem(known.problem, "real", known.n_clusters, load, known.lowest)
    family, _, n_features = known.data.removesuffix("d").rpartition("-")
    load = functools.partial(draw, family, int(n_features), known.n_clusters, data_seed=data_seed)
    lowest = known.lowest if data_seed == 0 else None
    return Problem(known.problem, known.data, known.n_clusters, load, lowest)


@functools.lru_cache(1)
def real_points(name: str, rows: str) -> Matrix:
    if name.startswith(SKLEARN_PREFIX):
        from sklearn import datasets

        loader = getattr(datasets, f"load_{name.removeprefix(SKLEARN_PREFIX)}")
        return chosen_rows(np.asarray(loader().data, dtype=np.float64), rows)
    return chosen_rows(load_data_set(name).points, rows)


def chosen_rows(points: Matrix, rows: str) -> Matrix:
    """The rows that a phrase of records.csv means."""
    if rows == "all":
        return np.ascontiguousarray(points)
    if match := re.fullmatch(r"the first (\d+)", rows):
        return np.ascontiguousarray(points[: int(match[1])])
    if match := re.fullmatch(r"the (\d+) rows without missing values", rows):
        complete = points[~np.isnan(points).any(axis=1)]
        if len(complete) != int(match[1]):
            raise ValueError(f"{len(complete)} rows are complete, and not {match[1]} as {rows!r}")
        return np.ascontiguousarray(complete)
    raise ValueError(f"rows={rows!r} is not understood: say which rows count in real_points")


# The sizes at which speed is measured: few and many points, features and centers.

SHAPES = [
    (1_000, 4, 3),
    (10_000, 10, 8),
    (100_000, 2, 100),
    (400_000, 3, 510),
    (100_000, 16, 50),
    (200_000, 64, 100),
    (100_000, 64, 256),
    (60_000, 784, 10),
    (60_000, 784, 100),
    (100_000, 128, 1000),
    (20_000, 1536, 1000),
]
QUICK_SHAPES = [(1_000, 4, 3), (10_000, 10, 8), (20_000, 2, 100), (4_000, 64, 100)]
# Uniform noise in few dimensions is where shortcuts gain least.
SHAPES_OF_NOISE = [(100_000, 2, 100), (400_000, 3, 510), (100_000, 16, 50)]
REAL = [("pendigits", 10), ("birch1", 100), ("skin", 510), ("mnist_train", 100)]
CANDIDATES_PER_SEED = 20


@dataclass(frozen=True)
class GridPoint:
    """Points of one kind and size, and how many centers to move among them."""

    kind: str
    n_points: int
    n_features: int
    n_clusters: int

    @property
    def name(self) -> str:
        return f"{self.kind} {self.n_points} x {self.n_features}, k={self.n_clusters}"

    @property
    def work(self) -> int:
        """Multiply-adds of all distances."""
        return self.n_points * self.n_features * self.n_clusters

    def described(self) -> dict:
        return {"name": self.name, **asdict(self)}

    def load(self, dtype: DTypeLike) -> NDArray:
        return points_of(self).astype(dtype)


# The last ones are kept: each is asked for in one dtype after the other.
@functools.lru_cache(1)
def points_of(point: GridPoint) -> NDArray:
    if point.kind in ("overlapping", "noise"):
        sizes = point.n_features, point.n_clusters
        return draw(point.kind, *sizes, n_points=point.n_points)
    return real_points(point.kind, "all")


def seeds_among(points: NDArray, n_clusters: int) -> NDArray:
    """Some of the points, no two of them equal."""
    rng = np.random.default_rng(0)
    n_candidates = min(len(points), CANDIDATES_PER_SEED * n_clusters)
    candidates = points[rng.choice(len(points), n_candidates, replace=False)]
    return rng.permutation(np.unique(candidates, axis=0))[:n_clusters].copy()


def mixtures(*, quick: bool) -> list[GridPoint]:
    return [GridPoint("overlapping", *shape) for shape in (QUICK_SHAPES if quick else SHAPES)]


def all_kinds(*, quick: bool) -> list[GridPoint]:
    if quick:
        return mixtures(quick=True)
    noise = [GridPoint("noise", *shape) for shape in SHAPES_OF_NOISE]
    return [*mixtures(quick=False), *noise, *real_ones()]


def real_ones() -> Iterator[GridPoint]:
    if os.environ.get(DATA_VARIABLE):
        for name, n_clusters in REAL:
            yield GridPoint(name, *real_points(name, "all").shape, n_clusters)
