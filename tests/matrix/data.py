"""Points of the matrix, each kind as a function from a number of them.

They overlap, so that a search has work, and float32 holds them, so that precisions can be compared.
"""

import numpy as np

K = 5


def groups(n: int, n_features: int = 3) -> np.ndarray:
    """Groups with zeros, which float32 holds after a shift, too."""
    rng = np.random.default_rng(4)
    middles = rng.uniform(-12, 12, size=(K, n_features))
    points = middles[np.arange(n) % K] + 2 * rng.normal(size=(n, n_features))
    points[rng.uniform(size=points.shape) < 0.2] = 0
    points[:, 0] += points[:, 0] == 0  # no row of zeros, which has no direction
    return np.round(1024 * points) / 1024


def counts(n: int) -> np.ndarray:
    rng = np.random.default_rng(5)
    means = 1 + rng.gamma(1.0, 8.0, size=(K, 6))
    return np.minimum(rng.poisson(means[np.arange(n) % K]), 60).astype(float)


def shares(n: int) -> np.ndarray:
    rng = np.random.default_rng(6)
    points = rng.beta(*rng.uniform(0.5, 6, size=(2, K, 4))[:, np.arange(n) % K])
    return np.round(1024 * points) / 1024


def sizes(n: int) -> np.ndarray:
    rng = np.random.default_rng(7)
    points = rng.gamma(4.0, np.exp(rng.normal(size=(K, 3)))[np.arange(n) % K])
    return np.ceil(1024 * points) / 1024


def with_gaps(n: int) -> np.ndarray:
    points = groups(n)
    is_missing = np.random.default_rng(8).uniform(size=points.shape) < 0.1
    is_missing[is_missing.all(axis=1)] = False
    return np.where(is_missing, np.nan, points)


def half_circles(n: int) -> np.ndarray:
    rng = np.random.default_rng(9)
    turns = np.pi * rng.uniform(size=n)
    is_lower = np.arange(n) % 2
    points = np.column_stack([np.cos(turns) + is_lower, np.sin(turns) * (1 - 2 * is_lower)])
    return np.round(1024 * (points + rng.normal(0, 0.04, size=points.shape))) / 1024
