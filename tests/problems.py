"""Points that many tests are about, and the definition of their squared distances."""

import functools
import math
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest


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


def output_of(program: str, *arguments: object, **variables: str) -> str:
    """What a program prints in a process of its own, with these variables of the environment."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    how = {"env": os.environ | variables, "capture_output": True, "text": True, "timeout": 120}
    ended = subprocess.run(command, check=False, **how)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def assert_is_complete(model: Any, points: np.ndarray) -> None:
    """As many centers as were asked for, and labels and inertia that belong to them."""
    assert model.cluster_centers_.shape == (model.n_clusters, points.shape[1])
    inertia = sq_distances(points, model.cluster_centers_).min(axis=1).sum()
    assert model.inertia_ == pytest.approx(inertia, rel=1e-5)
    np.testing.assert_array_equal(model.labels_, model.predict(points))
    assert model.spent_.n_sweeps == model.n_iter_ == len(model.history_) > 0


class StopsIn:
    """A callback that ends a fit in the first sweep of a phase."""

    def __init__(self, phase: str) -> None:
        self.wanted, self.last = phase, ""

    def phase(self, name: str, done: int = 0, total: int | None = None) -> None:
        self.last = name

    def __call__(self, state: object) -> bool:
        return self.last.startswith(self.wanted)


@functools.cache
def divisions(n_points: int, n_clusters: int) -> np.ndarray:
    """All divisions of points into at most so many clusters, each once up to names, as rows."""
    rows = np.zeros((1, 1), dtype=np.int8)
    for _ in range(n_points - 1):
        names = np.arange(n_clusters, dtype=np.int8)
        of_rows, labels = np.nonzero(names <= rows.max(axis=1)[:, None] + 1)
        rows = np.column_stack([rows[of_rows], names[labels]])
    return rows


def inertias(points: np.ndarray, weights: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The inertia of each division about the means of its clusters."""
    residuals = points - points.mean(axis=0)
    found = np.full(len(labels), float(weights @ np.square(residuals).sum(axis=1)))
    for cluster in range(labels.max() + 1):
        shares = (labels == cluster) * weights
        totals, sums = shares.sum(axis=1), np.square(shares @ residuals).sum(axis=1)
        found -= np.divide(sums, totals, out=np.zeros_like(sums), where=totals > 0)
    return found
