"""Sets whose number of clusters is known, from many families, dimensions and sizes.

A set is drawn from its index alone. Even indices are to tune on, odd ones to judge by. Points are
`center + A z` with z of zero mean and unit variance, so that the classifier of the true Gaussians
says how well anybody could tell the clusters apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from benchmarks.families import Matrix, scattered, spaced

Labels = NDArray[np.int64]

FAMILIES = (
    "blobs",
    "round",
    "unequal sizes",
    "unequal spread",
    "elongated",
    "skewed",
    "heavy tails",
    "background noise",
    "noise features",
    "scaled features",
)
WITHOUT_CLUSTERS = ("uniform", "normal", "elongated normal", "heavy-tailed", "lognormal")
N_FEATURES = (2, 5, 10, 30, 64, 200, 500)
N_POINTS = (100, 300, 1_000, 3_000, 10_000)
N_CLUSTERS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 30)
SEPARATIONS = (3.0, 4.0, 5.0, 7.0, 10.0)
MOST_VALUES = 400_000
LEAST_PER_CLUSTER = 20
# Every so many-th pair of indices has no clusters.
_EVERY = 5
# A set counts if the classifier of the true Gaussians is right as often as this.
TELLABLE = 0.95


@dataclass(frozen=True, slots=True)
class KnownSet:
    """Points, the number of their clusters, and how often the true Gaussians tell them apart."""

    name: str
    points: Matrix
    n_clusters: int
    tellable: float  # NaN where the Gaussians are unknown
    labels: Labels | None = None  # -1 for background noise

    @property
    def k_range(self) -> range:
        largest = max(20, self.n_clusters + self.n_clusters // 3)
        return range(2, min(largest, len(self.points) // 4) + 1)


def family_of(index: int) -> str:
    """Return the family of the set of an index; those of a pair, even and odd, have the same."""
    n_before, place = divmod(index // 2, _EVERY)
    if place == _EVERY - 1:
        return WITHOUT_CLUSTERS[n_before % len(WITHOUT_CLUSTERS)]
    return FAMILIES[(index // 2 - n_before) % len(FAMILIES)]


def generated(index: int) -> KnownSet:
    """Draw the set of an index."""
    rng = np.random.default_rng([20, index])
    n_features = int(rng.choice(N_FEATURES))
    n_points = int(rng.choice([n for n in N_POINTS if n * n_features <= MOST_VALUES]))
    family = family_of(index)
    if family in WITHOUT_CLUSTERS:
        points = _without_clusters(family, n_points, n_features, rng)
        return KnownSet(_name(family, points), points, 1, float("nan"))
    possible = [k for k in N_CLUSTERS if LEAST_PER_CLUSTER * k <= n_points]
    return _clusters(family, n_points, n_features, int(rng.choice(possible)), rng)


def _name(family: str, points: Matrix) -> str:
    return f"{family}, {len(points)} × {points.shape[1]}"


def _without_clusters(family: str, n_points: int, n_features: int, rng: Generator) -> Matrix:
    shape = (n_points, n_features)
    if family == "uniform":
        return rng.uniform(size=shape)
    points = rng.standard_normal(shape)
    if family == "elongated normal":
        return points * np.geomspace(1.0, 5.0, n_features)
    if family == "heavy-tailed":
        return points * np.sqrt(3 / rng.chisquare(3, size=(n_points, 1)))
    return np.exp(0.6 * points) if family == "lognormal" else points


def _clusters(
    family: str, n_points: int, n_features: int, n_clusters: int, rng: Generator
) -> KnownSet:
    centers = _centers(family, n_features, n_clusters, rng)
    shares = np.full(n_clusters, 1 / n_clusters)
    if family == "unequal sizes":
        shares = 1 / np.arange(1, n_clusters + 1) ** rng.uniform(0.5, 1.2)
        shares /= shares.sum()
    labels = rng.choice(n_clusters, size=n_points, p=shares)
    roots = [_root(family, n_features, rng) for _ in range(n_clusters)]
    points = np.empty((n_points, n_features))
    for j in range(n_clusters):
        own = labels == j
        points[own] = centers[j] + _standard(family, int(own.sum()), n_features, rng) @ roots[j].T
    tellable = _accuracy(points, labels, centers, roots, shares)
    if family == "noise features":
        points = np.hstack([points, rng.standard_normal(points.shape)])
    if family == "scaled features":
        points *= 10 ** rng.uniform(-0.4, 0.4, size=n_features)
    if family == "background noise":
        n_noise = int(n_points * rng.uniform(0.05, 0.1))
        low, high = points.min(axis=0), points.max(axis=0)
        points[:n_noise] = rng.uniform(low, high, size=(n_noise, n_features))
        labels[:n_noise] = -1
    order = rng.permutation(n_points)
    points = np.ascontiguousarray(points[order])
    return KnownSet(_name(family, points), points, n_clusters, tellable, labels[order])


def _centers(family: str, n_features: int, n_clusters: int, rng: Generator) -> Matrix:
    separation = float(rng.choice(SEPARATIONS))
    if family == "blobs":
        return rng.uniform(-10, 10, size=(n_clusters, n_features))
    if n_clusters == 2:  # `scattered` and `spaced` would place them along a diagonal or an edge
        direction = rng.standard_normal(n_features)
        direction *= separation / np.linalg.norm(direction)
        return np.stack([np.zeros(n_features), direction])
    place = scattered if rng.uniform() < 0.5 else spaced
    return place(n_clusters, n_features, separation, rng)


def _root(family: str, n_features: int, rng: Generator) -> Matrix:
    """Return A, whose square is the covariance of a cluster."""
    if family == "unequal spread":
        return np.eye(n_features) * np.exp(rng.uniform(-1, 1) * np.log(2.0))
    if family != "elongated":
        return np.eye(n_features)
    turned, _ = np.linalg.qr(rng.standard_normal((n_features, n_features)))
    return turned * np.exp(rng.uniform(-1, 1, size=n_features) * np.log(2.0))


def _standard(family: str, n_points: int, n_features: int, rng: Generator) -> Matrix:
    """Draw z, of zero mean and unit variance."""
    z = rng.standard_normal((n_points, n_features))
    if family == "skewed":
        variance = 0.6**2
        return (np.exp(0.6 * z) - np.exp(variance / 2)) / np.sqrt(
            np.expm1(variance) * np.exp(variance)
        )
    if family == "heavy tails":
        return z * np.sqrt((4 - 2) / rng.chisquare(4, size=(n_points, 1)))
    return z


def _accuracy(
    points: Matrix, labels: Labels, centers: Matrix, roots: list[Matrix], shares: Matrix
) -> float:
    """Return how often the most likely of the true Gaussians is the one that was drawn from."""
    logs = np.empty((len(points), len(centers)))
    for j, (center, root) in enumerate(zip(centers, roots, strict=True)):
        standard = np.linalg.solve(root, (points - center).T)
        logs[:, j] = np.log(shares[j]) - np.linalg.slogdet(root)[1]
        logs[:, j] -= np.einsum("fp,fp->p", standard, standard) / 2
    return float((logs.argmax(axis=1) == labels).mean())
