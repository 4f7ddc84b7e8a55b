"""Sets in which a sensible person sees one cluster, to ask `choose_k` about.

Each shape has one center and no gap: its density falls from one place, or is flat on one connected
piece. Shapes of which one could argue (rings, heaps on few values) are counted apart. A set is
drawn from its shape, its size and its seed alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from scipy import ndimage, signal, stats

from benchmarks.families import Matrix

Draw = Callable[[Generator, int, int], Matrix]
# How many sets of each shape there are, and the numbers of points and features they are drawn from.
POOLS = (
    (6, (200, 300, 500, 1_000, 2_000, 5_000), (1, 2, 3, 5, 10, 20, 50)),
    (2, (300, 500, 1_000, 2_000), (100, 200, 500)),
    (1, (20_000, 50_000, 100_000), (1, 2, 3, 5, 10, 20, 50)),
)
MOST_VALUES = 1_000_000


def normal(rng: Generator, n: int, d: int) -> Matrix:
    return rng.standard_normal((n, d))


def equicorrelated(rng: Generator, n: int, d: int) -> Matrix:
    return (normal(rng, n, 1) + normal(rng, n, d)) / np.sqrt(2)


def on_sphere(rng: Generator, n: int, d: int) -> Matrix:
    points = normal(rng, n, d)
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def ball(rng: Generator, n: int, d: int) -> Matrix:
    return on_sphere(rng, n, d) * rng.uniform(size=(n, 1)) ** (1 / d)


def student(rng: Generator, n: int, d: int, df: float) -> Matrix:
    return normal(rng, n, d) * np.sqrt(df / rng.chisquare(df, (n, 1)))


def bent(first: Matrix, bend: float, others: Matrix) -> Matrix:
    """Bend the second column over the first."""
    return np.c_[first, others[:, :1] + bend * first**2, others[:, 1:]]


def wedge(rng: Generator, n: int, d: int) -> Matrix:
    along = rng.uniform(size=(n, 1))
    return np.c_[2 * along, (0.1 + 0.4 * along) * normal(rng, n, d - 1)]


def images(rng: Generator, n: int, d: int) -> Matrix:
    side = int(np.ceil(np.sqrt(d)))
    smooth = ndimage.gaussian_filter(rng.standard_normal((n, side, side)), (0, side / 6, side / 6))
    return smooth.reshape(n, -1)[:, :d]


FROM_ONE_FEATURE: dict[str, Draw] = {
    "normal": normal,
    "equicorrelated": equicorrelated,
    "three factors": lambda rng, n, d: normal(rng, n, 3) @ normal(rng, 3, d) + normal(rng, n, d),
    "Wishart covariance": lambda rng, n, d: normal(rng, n, d + 2) @ normal(rng, d + 2, d),
    "rows drawn again": lambda rng, n, d: normal(rng, n // 2, d)[rng.integers(n // 2, size=n)],
    "limit of detection": lambda rng, n, d: np.maximum(1.5 + normal(rng, n, d), 0),
    "1 % outliers": lambda rng, n, d: np.where(
        rng.uniform(size=(n, 1)) < 0.01, rng.uniform(-10, 10, (n, d)), normal(rng, n, d)
    ),
    "overlapping halves": lambda rng, n, d: (  # less than two deviations apart: one mode
        normal(rng, n, d) + 1.5 * rng.integers(2, size=(n, 1)) * np.eye(1, d)
    ),
    "skew normal": lambda rng, n, d: (
        2 * np.abs(normal(rng, n, 1)) * on_sphere(rng, 1, d) + normal(rng, n, d)
    ),
    "cube": lambda rng, n, d: rng.uniform(size=(n, d)),
    "ball": ball,
    "ellipsoid": lambda rng, n, d: ball(rng, n, d) * np.geomspace(1, 10, d),
    "simplex": lambda rng, n, d: rng.dirichlet(np.ones(d + 1), n)[:, :d],
    "Dirichlet (3)": lambda rng, n, d: rng.dirichlet(np.full(d + 1, 3.0), n)[:, :d],
    "rod": lambda rng, n, d: rng.uniform(-5, 5, (n, 1)) * on_sphere(rng, 1, d) + normal(rng, n, d),
    "beta (2, 5)": lambda rng, n, d: rng.beta(2, 5, (n, d)),
    "student, df 2": lambda rng, n, d: student(rng, n, d, 2),
    "student, df 4": lambda rng, n, d: student(rng, n, d, 4),
    "student columns, df 3": lambda rng, n, d: rng.standard_t(3, (n, d)),
    "laplace columns": lambda rng, n, d: rng.laplace(size=(n, d)),
    "laplace, round": lambda rng, n, d: normal(rng, n, d) * np.sqrt(rng.exponential(size=(n, 1))),
    "lognormal scales": lambda rng, n, d: normal(rng, n, d) * rng.lognormal(0, 0.6, (n, 1)),
    "logistic": lambda rng, n, d: rng.logistic(size=(n, d)),
    "lognormal (0.5)": lambda rng, n, d: rng.lognormal(0, 0.5, (n, d)),
    "lognormal (1)": lambda rng, n, d: rng.lognormal(0, 1, (n, d)),
    "gamma (2)": lambda rng, n, d: rng.gamma(2, size=(n, d)),
    "exponential": lambda rng, n, d: rng.exponential(size=(n, d)),
}
FROM_TWO_FEATURES: dict[str, Draw] = {
    "autoregressive": lambda rng, n, d: signal.lfilter([1], [1, -0.9], normal(rng, n, d)),
    "power-law spectrum": lambda rng, n, d: (
        normal(rng, n, d) / np.arange(1, d + 1) @ normal(rng, d, d)
    ),
    "one long axis": lambda rng, n, d: normal(rng, n, d) * np.r_[10, np.ones(d - 1)],
    "mixed column scales": lambda rng, n, d: normal(rng, n, d) * 10 ** rng.uniform(-1.5, 1.5, d),
    "columns twice": lambda rng, n, d: np.repeat(normal(rng, n, d - d // 2), 2, axis=1)[:, :d],
    "rounded": lambda rng, n, d: np.rint(2 * normal(rng, n, d)) / 2,
    "triangle": lambda rng, n, d: (
        rng.dirichlet(np.ones(3), n) @ normal(rng, 3, d) + 0.05 * normal(rng, n, d)
    ),
    "part of a sphere": lambda rng, n, d: np.abs(on_sphere(rng, n, d)) + normal(rng, n, d) / 20,
    "wedge": wedge,
    "banana": lambda rng, n, d: bent(normal(rng, n, 1), 0.4, 0.6 * normal(rng, n, d - 1)),
    "parabola": lambda rng, n, d: bent(rng.uniform(-1, 1, (n, 1)), 1, 0.1 * normal(rng, n, d - 1)),
    "gamma by copula": lambda rng, n, d: stats.gamma.ppf(
        stats.norm.cdf(equicorrelated(rng, n, d)), 2
    ),
    "Clayton copula": lambda rng, n, d: stats.norm.ppf(
        (1 + rng.exponential(size=(n, d)) / rng.gamma(0.5, size=(n, 1))) ** -0.5
    ),
    "Poisson counts": lambda rng, n, d: rng.poisson(5, (n, d)),
    "binomial counts": lambda rng, n, d: rng.binomial(20, 0.3, (n, d)),
    "logs of counts": lambda rng, n, d: np.log1p(rng.negative_binomial(5, 0.2, (n, d))),
    "random walks": lambda rng, n, d: stats.zscore(normal(rng, n, d).cumsum(axis=1)),
    "ring": lambda rng, n, d: on_sphere(rng, n, d) * rng.normal(1, 0.1, (n, 1)),
}
FROM_FIVE_FEATURES: dict[str, Draw] = {
    "answers of one trait": lambda rng, n, d: np.clip(
        np.rint(3 + 0.4 * normal(rng, 1, d) + equicorrelated(rng, n, d)), 1, 5
    ),
    "words of one subject": lambda rng, n, d: rng.poisson(
        rng.lognormal(2, 0.5, (n, 1)) / np.arange(1, d + 1)
    ),
    "smooth curves": lambda rng, n, d: ndimage.gaussian_filter1d(normal(rng, n, d), d / 6),
    "smooth images": images,
    "skewed among noise": lambda rng, n, d: np.c_[
        2 * rng.gamma(2, size=(n, d // 4)), normal(rng, n, d - d // 4)
    ],
    "cauchy": lambda rng, n, d: student(rng, n, d, 1),
    "two values": lambda rng, n, d: rng.integers(2, size=(n, d)),
    "zeros and gamma": lambda rng, n, d: rng.gamma(2, size=(n, d)) * rng.integers(2, size=(n, d)),
}
SHAPES = FROM_ONE_FEATURE | FROM_TWO_FEATURES | FROM_FIVE_FEATURES
ARGUABLE = ("ring", "cauchy", "two values", "zeros and gamma")


@dataclass(frozen=True, slots=True)
class OneClusterSet:
    """A shape, a size and a seed; points are drawn when they are asked for."""

    shape: str
    n_points: int
    n_features: int
    seed: int

    def __str__(self) -> str:
        return f"{self.shape}, {self.n_points} × {self.n_features}, seed {self.seed}"

    def points(self) -> Matrix:
        rng = np.random.default_rng(self.seed)
        return SHAPES[self.shape](rng, self.n_points, self.n_features).astype(np.float64)


def sets_of(shape: str) -> Iterator[OneClusterSet]:
    """Yield the sets of a shape, which have more points than features."""
    least = 1 + (shape not in FROM_ONE_FEATURE) + 3 * (shape in FROM_FIVE_FEATURES)
    seed = itertools.count(1000 * list(SHAPES).index(shape))
    rng = np.random.default_rng(next(seed))
    for n_sets, *pool in POOLS:
        sizes = [(n, d) for n, d in itertools.product(*pool) if least <= d < n <= MOST_VALUES // d]
        for n_points, n_features in rng.permutation(sizes)[:n_sets].tolist():
            yield OneClusterSet(shape, n_points, n_features, next(seed))
