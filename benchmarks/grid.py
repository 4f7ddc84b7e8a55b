"""The sizes at which speed is measured: few and many points, features and centers."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray

from benchmarks.families import draw
from benchmarks.problems import DATA_VARIABLE, real_points

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
REAL = [
    ("pendigits", 10),
    ("birch1", 100),
    ("skin", 510),
    ("mnist_train", 100),
]
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
