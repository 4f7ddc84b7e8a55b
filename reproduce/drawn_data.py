"""Simulated data sets from the literature on power k-means.

The same `random_state` draws the same points. Rows are shuffled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from powermeans.datasets import DataSet
from powermeans.types import FloatArray

RandomState = int | Generator | None
Family = Literal["normal", "poisson", "binomial", "gamma"]

_NORMAL_DEVIATION = 4.0
_N_TRIALS = 50
_GAMMA_SHAPE = 3.0

_DRAWS: dict[str, Callable[[FloatArray, Generator], FloatArray]] = {
    "normal": lambda means, rng: rng.normal(means, _NORMAL_DEVIATION),
    "poisson": lambda means, rng: rng.poisson(means).astype(np.float64),
    "binomial": lambda means, rng: rng.binomial(_N_TRIALS, means / _N_TRIALS).astype(np.float64),
    "gamma": lambda means, rng: rng.gamma(_GAMMA_SHAPE, means / _GAMMA_SHAPE),
}


def make_gaussian_clusters(
    n_points: int = 2500,
    n_clusters: int = 50,
    n_features: int = 2,
    *,
    scale: tuple[float, float] = (30.0, 60.0),
    sizes: Literal["equal", "drawn"] = "equal",
    random_state: RandomState = None,
) -> DataSet:
    """Draw standard normal clusters with centers in a cube: Xu & Lange 2019, Tables 1 and 2.

    The paper draws 2500 points from 50 clusters N(θ_j, I). The coordinates of the centers are r u
    with u uniform in [0, 1), and r, one for each data set, is uniform in [30, 60). The number of
    features is 2, 5, 10, 20, 50, 100 or 200. In the plane this is the simulation of Zhang 2001. The
    paper does not state the sizes of the clusters.
    """
    rng = np.random.default_rng(random_state)
    centers = rng.uniform(*scale) * rng.uniform(size=(n_clusters, n_features))
    drawn = sizes == "drawn"
    labels = rng.integers(n_clusters, size=n_points) if drawn else _equal(n_points, n_clusters, rng)
    points = centers[labels] + rng.standard_normal((n_points, n_features))
    return DataSet(points, labels.astype(np.int32), centers)


def make_exponential_family(
    family: Family = "normal",
    n_points: int = 99,
    n_features: int = 2,
    *,
    centers: ArrayLike = (10.0, 20.0, 40.0),
    random_state: RandomState = None,
) -> DataSet:
    """Draw equal-sized clusters of one exponential family: Vellal, Chakraborty & Xu 2022.

    The paper draws 99 points in the plane from three clusters with means 10, 20 and 40 in each
    coordinate: normal with variance 16, Poisson, binomial with 50 trials, or gamma with shape 3.
    With 600 normal or binomial points and more features this is the simulation of a class
    presentation of that work and of Xu & Lange 2019, which does not state its means.
    """
    means = _means(centers, n_features)
    rng = np.random.default_rng(random_state)
    labels = _equal(n_points, len(means), rng)
    return DataSet(_DRAWS[family](means[labels], rng), labels.astype(np.int32), means)


def make_grid_gaussians(
    n_points: int = 900,
    side: int = 3,
    *,
    spacing: float = 4.0,
    spread: float = 0.5,
    random_state: RandomState = None,
) -> DataSet:
    """Draw round normal clusters of equal size on a square grid in the plane.

    With side 3 these are the nine Gaussians in the comments on L. Wasserman's "The Remarkable
    k-means++" (2012), which say that random starts nearly always fail on them. They give no widths;
    here neighboring centers are eight standard deviations apart.
    """
    rng = np.random.default_rng(random_state)
    centers = spacing * np.indices((side, side)).reshape(2, -1).T.astype(np.float64)
    labels = _equal(n_points, len(centers), rng)
    points = centers[labels] + spread * rng.standard_normal((n_points, 2))
    return DataSet(points, labels.astype(np.int32), centers)


def make_polylines(
    n_points: int = 434_874,
    n_features: int = 3,
    *,
    n_lines: int = 400,
    n_corners: int = 30,
    jitter: float = 1e-3,
    random_state: RandomState = None,
) -> DataSet:
    """Draw points along random polylines, as in a road network.

    By default there are as many points as in the road network of North Jutland (UCI 246, 434 874
    points with longitude, latitude and altitude). A line starts anywhere in the unit square and
    turns a little at each corner; points lie on it at random. Features after the second, such as
    the altitude, change along the line in small steps. There are no true clusters or labels.
    """
    rng = np.random.default_rng(random_state)
    begins, ends = _pieces(n_lines, n_corners, n_features, rng)
    lengths = np.linalg.norm(ends - begins, axis=1)
    piece = rng.choice(len(lengths), n_points, p=lengths / lengths.sum())
    along = rng.uniform(size=(n_points, 1))
    points = (1 - along) * begins[piece] + along * ends[piece]
    return DataSet(points + jitter * rng.standard_normal(points.shape))


def _pieces(
    n_lines: int, n_corners: int, n_features: int, rng: Generator
) -> tuple[FloatArray, FloatArray]:
    """Draw where the pieces of all lines begin and end, (n_lines * n_corners, n_features)."""
    turns = rng.normal(0, 0.4, size=(n_lines, n_corners))
    turns[:, 0] = rng.uniform(0, 2 * np.pi, size=n_lines)
    angles = turns.cumsum(axis=1)
    lengths = rng.exponential(1 / (2 * n_corners), size=(n_lines, n_corners, 1))
    steps = lengths * np.stack([np.cos(angles), np.sin(angles)], axis=2)
    climbs = 0.2 * lengths * rng.standard_normal((n_lines, n_corners, n_features - 2))
    places = rng.uniform(size=(n_lines, 1, n_features))
    places[..., 2:] *= 0.1
    ends = places + np.concatenate([steps, climbs], axis=2).cumsum(axis=1)
    begins = np.concatenate([places, ends[:, :-1]], axis=1)
    return begins.reshape(-1, n_features), ends.reshape(-1, n_features)


def _equal(n_points: int, n_clusters: int, rng: Generator) -> np.ndarray:
    """Draw labels in equal numbers; some appear once more if they do not divide evenly."""
    return rng.permutation(np.arange(n_points) % n_clusters)


def _means(centers: ArrayLike, n_features: int) -> FloatArray:
    means = np.asarray(centers, dtype=np.float64)
    return np.repeat(means[:, None], n_features, axis=1) if means.ndim == 1 else means
