"""Points that many tests are about, and the definition of their squared distances."""

import math
from typing import Any

import numpy as np


def labelled_blobs(n_points, n_features=2, n_groups=4, *, scale=3.0, noise=1.0, seed=0):
    """Normal groups about middles so far apart, and the group of each point.

    The noise may differ by group.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_groups, size=n_points)
    middles = scale * rng.normal(size=(n_groups, n_features))
    spread = np.broadcast_to(noise, n_groups)[labels][:, None]
    return middles[labels] + spread * rng.normal(size=(n_points, n_features)), labels


def blobs(*args: int, **options: Any) -> np.ndarray:
    return labelled_blobs(*args, **options)[0]


def sq_distances(points: Any, centers: Any) -> np.ndarray:
    """Squared distances of dense points from centers, by differences."""
    return np.square(np.asarray(points)[:, None, :] - np.asarray(centers)[None]).sum(axis=2)


def on_lattice(n_clusters, n_features=2, n_points=400, apart=12.0):
    """Clusters of unit variance, one point after the other, at places so far from each other."""
    side = math.ceil(n_clusters ** (1 / n_features))
    lattice = np.indices((side,) * n_features).reshape(n_features, -1).T[:n_clusters]
    noise = np.random.default_rng(0).normal(size=(n_points, n_features))
    return apart * lattice[np.arange(n_points) % n_clusters] + noise


def two_pairs_of_groups() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points, their middles, and centers of which one is on the wrong side, where sweeps stay."""
    middles = np.array([[0.0, 0], [10, 0], [200, 0], [210, 0]])
    noise = np.random.default_rng(0).normal(scale=0.5, size=(120, 2))
    stuck = np.array([[0.0, 0.5], [0, -0.5], [10, 0], [205, 0]])
    return np.repeat(middles, 30, axis=0) + noise, middles, stuck
