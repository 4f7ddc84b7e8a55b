"""Generated data: families of shapes that k-means meets, each in any size and dimension.

Lengths are in standard deviations of a cluster.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.spatial import KDTree

Matrix = NDArray[np.float64]
Family = Callable[[int, int, int, Generator], Matrix]

LEAST_POINTS, MOST_POINTS, POINTS_PER_CLUSTER = 2_000, 10_000, 50


def n_points_for(n_clusters: int) -> int:
    return min(max(POINTS_PER_CLUSTER * n_clusters, LEAST_POINTS), MOST_POINTS)


def draw(
    family: str,
    n_features: int,
    n_clusters: int,
    *,
    n_points: int | None = None,
    data_seed: int = 0,
) -> Matrix:
    """The points of one problem, in no order; another seed draws another set of the family."""
    rng = np.random.default_rng([data_seed, zlib.crc32(family.encode()), n_features, n_clusters])
    n_points = n_points_for(n_clusters) if n_points is None else n_points
    points = FAMILIES[family](n_points, n_features, n_clusters, rng)
    return np.ascontiguousarray(rng.permutation(points), dtype=np.float64)


def scattered(n_places: int, n_features: int, separation: float, rng: Generator) -> Matrix:
    """Uniform in a cube, their nearest neighbours `separation` away in the mean."""
    places = rng.uniform(size=(n_places, n_features))
    return places * (separation / nearest_neighbours(places).mean())


def spaced(n_places: int, n_features: int, separation: float, rng: Generator) -> Matrix:
    """No two of them closer than `separation`: the farthest first of many that are uniform."""
    candidates = rng.uniform(size=(20 * n_places, n_features))
    chosen = [0]
    sq_dist = ((candidates - candidates[0]) ** 2).sum(axis=1)
    while len(chosen) < n_places:
        chosen.append(int(sq_dist.argmax()))
        np.minimum(sq_dist, ((candidates - candidates[chosen[-1]]) ** 2).sum(axis=1), out=sq_dist)
    places = candidates[chosen]
    return places * (separation / nearest_neighbours(places).min())


def nearest_neighbours(places: Matrix) -> NDArray[np.float64]:
    """The distance of each place to the nearest other one."""
    return KDTree(places).query(places, k=2)[0][:, 1]


def around(places: Matrix, n_points: int, rng: Generator) -> Matrix:
    """Normal clusters of equal share."""
    labels = rng.integers(len(places), size=n_points)
    return places[labels] + rng.standard_normal((n_points, places.shape[1]))


def overlapping(n_points: int, n_features: int, n_clusters: int, rng: Generator) -> Matrix:
    return around(scattered(n_clusters, n_features, 4.0, rng), n_points, rng)


def separated(n_points: int, n_features: int, n_clusters: int, rng: Generator) -> Matrix:
    return around(spaced(n_clusters, n_features, 10.0, rng), n_points, rng)


def grid(n_points: int, n_features: int, n_clusters: int, rng: Generator) -> Matrix:
    """Clusters on the first places of a square lattice."""
    side = math.ceil(round(n_clusters ** (1 / n_features), 9))
    lattice = np.indices((side,) * n_features).reshape(n_features, -1).T[:n_clusters]
    return around(6.0 * lattice, n_points, rng)


def heavy_tails(n_points: int, n_features: int, n_clusters: int, rng: Generator) -> Matrix:
    """Student's t with two degrees of freedom: no variance, and a few points very far out."""
    places = scattered(n_clusters, n_features, 6.0, rng)
    stretch = np.sqrt(2 / rng.chisquare(2, size=(n_points, 1)))
    noise = rng.standard_normal((n_points, n_features)) * stretch
    return places[rng.integers(n_clusters, size=n_points)] + noise


def unbalanced(n_points: int, n_features: int, n_clusters: int, rng: Generator) -> Matrix:
    """The cluster of rank r has a share in proportion to 1 / r."""
    places = scattered(n_clusters, n_features, 6.0, rng)
    shares = 1 / np.arange(1, n_clusters + 1)
    labels = rng.choice(n_clusters, size=n_points, p=shares / shares.sum())
    return places[labels] + rng.standard_normal((n_points, n_features))


def unequal_spread(n_points: int, n_features: int, n_clusters: int, rng: Generator) -> Matrix:
    """Standard deviations from 0.1 to 3, uniform in the logarithm."""
    places = scattered(n_clusters, n_features, 6.0, rng)
    deviations = 10 ** rng.uniform(-1, math.log10(3), size=n_clusters)
    labels = rng.integers(n_clusters, size=n_points)
    return places[labels] + deviations[labels, None] * rng.standard_normal((n_points, n_features))


def noise(n_points: int, n_features: int, n_clusters: int, rng: Generator) -> Matrix:
    """Uniform in a cube: there are no clusters to be found."""
    return rng.uniform(size=(n_points, n_features))


def duplicates(n_points: int, n_features: int, n_clusters: int, rng: Generator) -> Matrix:
    """Few places, each of them many times."""
    n_places = max(4 * n_clusters, 50)
    places = around(scattered(n_clusters, n_features, 4.0, rng), n_places, rng)
    return places[rng.choice(n_places, size=n_points, p=rng.dirichlet(np.ones(n_places)))]


def copies(n_points: int, n_features: int, n_clusters: int, rng: Generator) -> Matrix:
    """One cluster, repeated in other places: many solutions are equally good."""
    places = spaced(n_clusters, n_features, 5.0, rng)
    cluster = rng.standard_normal((n_points // n_clusters, n_features))
    return (places[:, None, :] + cluster[None, :, :]).reshape(-1, n_features)


FAMILIES: dict[str, Family] = {
    "overlapping": overlapping,
    "separated": separated,
    "grid": grid,
    "heavy-tails": heavy_tails,
    "unbalanced": unbalanced,
    "unequal-spread": unequal_spread,
    "noise": noise,
    "duplicates": duplicates,
    "copies": copies,
}
