"""Clusters within limits of size: compared with k-means-constrained, and a thousand of them.

The part `constrained` needs the environment of `make peers`, and POWERMEANS_DATA.
"""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import parts
from benchmarks.pages import Page
from benchmarks.parts import Part
from powermeans import BalancedKMeans, PowerKMeans
from powermeans.datasets import load_data_set

NAME = "size_limits"
PAGE = Page("project/measurements", "python -m benchmarks.size_limits --page")
N_POINTS, N_FEATURES, N_CENTERS = 23_000, 50, 10
SIZE_MIN, SIZE_MAX = 2000, 2600
N_MANY, MANY_CENTERS = 10**6, 1000


def unequal_blobs() -> NDArray:
    from sklearn.datasets import make_blobs

    sizes = [11_000, 5000, 2500, 1500, 1000, 800, 600, 300, 200, 100]
    points, _ = make_blobs(sizes, N_FEATURES, cluster_std=4.0, random_state=0)
    return points


def many_blobs() -> NDArray:
    """Thirty overlapping groups, so that the limits cut across some of them."""
    from sklearn.datasets import make_blobs

    sizes = np.random.RandomState(1).dirichlet(np.full(30, 1.0))
    counts = np.diff(np.rint(np.append(0, np.cumsum(sizes)) * N_POINTS).astype(int))
    points, _ = make_blobs(counts.tolist(), N_FEATURES, cluster_std=6.0, random_state=1)
    return points


def digits() -> NDArray:
    """Images of digits by their first principal components."""
    from sklearn.decomposition import PCA

    images = np.asarray(load_data_set("mnist_train").points[:N_POINTS], dtype=np.float64)
    return PCA(N_FEATURES, random_state=0).fit_transform(images)


DATA: dict[str, Callable[[], NDArray]] = {
    "blobs of unequal sizes": unequal_blobs,
    "thirty overlapping blobs": many_blobs,
    "MNIST, 50 components": digits,
}


def outcome(points: NDArray, model: Any) -> dict[str, str]:
    """Fit, and return the time, the sum of squares and the sizes of clusters."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels = model.fit(points).labels_
    seconds, sizes = time.process_time() - began, np.bincount(labels)
    means = np.array([points[labels == j].mean(axis=0) for j in range(len(sizes))])
    squares = float(np.square(points - means[labels]).sum(dtype=np.float64))
    return {
        "CPU seconds": f"{seconds:.3g}",
        "sum of squares": f"{squares:.6g}",
        "smallest cluster": f"{sizes.min():,}",
        "largest": f"{sizes.max():,}",
    }


def constrained() -> Iterator[dict[str, Any]]:
    from k_means_constrained import KMeansConstrained

    limits = {"size_min": SIZE_MIN, "size_max": SIZE_MAX, "random_state": 0}
    theirs = f"k-means-constrained {version('k-means-constrained')}"
    models: dict[str, Callable[[], Any]] = {
        "powermeans, fast": lambda: BalancedKMeans(N_CENTERS, effort="fast", **limits),
        "powermeans, balanced": lambda: BalancedKMeans(N_CENTERS, **limits),
        f"{theirs}, n_init=1": lambda: KMeansConstrained(N_CENTERS, n_init=1, **limits),
        f"{theirs}, n_init=10": lambda: KMeansConstrained(N_CENTERS, n_init=10, **limits),
    }
    for name, draw in DATA.items():
        points = np.ascontiguousarray(draw())
        for method, make in models.items():
            yield {"data": name, "method": method, **outcome(points, make())}


def heavy_tails(n_points: int, n_features: int, seed: int = 0) -> NDArray:
    """Draw groups of lognormal shares, each of points with gamma distances from its center."""
    rng = np.random.default_rng(seed)
    n_groups = 400
    centers = 1.5 * rng.normal(size=(n_groups, n_features))
    shares = rng.lognormal(0, 1, n_groups)
    group = rng.choice(n_groups, n_points, p=shares / shares.sum())
    radii = rng.gamma(2, 0.5, size=(n_points, 1))
    return (centers[group] + rng.normal(size=(n_points, n_features)) * radii).astype(np.float32)


def many() -> Iterator[dict[str, Any]]:
    points = heavy_tails(N_MANY, 32)
    most = int(1.2 * N_MANY / MANY_CENTERS)
    for name, limits in {"no limits": {}, f"at most {most}": {"size_max": most}}.items():
        kind = BalancedKMeans if limits else PowerKMeans
        model = kind(MANY_CENTERS, effort="fast", random_state=0, **limits)
        yield {"method": f"fast, {name}", **outcome(points, model)}


PARTS = {
    "constrained": Part(
        "Compared with k-means-constrained",
        f"{N_POINTS:,} × {N_FEATURES} points in {N_CENTERS} clusters of {SIZE_MIN:,} to "
        f"{SIZE_MAX:,} rows.",
        constrained,
    ),
    "many": Part(
        "A thousand clusters",
        f"{N_MANY:,} × 32 points, {MANY_CENTERS:,} clusters, whose sizes are lognormal without "
        "limits.",
        many,
    ),
}
as_page = functools.partial(parts.as_page, PARTS)

if __name__ == "__main__":
    parts.main(NAME, __doc__, PAGE, PARTS)
