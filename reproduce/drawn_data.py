"""Simulated data sets from the literature on power k-means.

The same `random_state` draws the same points. Rows are shuffled.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from powermeans.datasets import DataSet
from powermeans.types import FloatArray

RandomState = int | Generator | None
Family = Literal["normal", "poisson", "binomial", "gamma"]
Sizes = Literal["equal", "uneven", "drawn"]

_NORMAL_DEVIATION = 4.0
_N_TRIALS = 50
_GAMMA_SHAPE = 3.0
_UNEVEN = 0.6, 1.4

_DRAWS: dict[str, Callable[[FloatArray, Generator], FloatArray]] = {
    "normal": lambda means, rng: rng.normal(means, _NORMAL_DEVIATION),
    "poisson": lambda means, rng: rng.poisson(means).astype(np.float64),
    "binomial": lambda means, rng: rng.binomial(_N_TRIALS, means / _N_TRIALS).astype(np.float64),
    "gamma": lambda means, rng: rng.gamma(_GAMMA_SHAPE, means / _GAMMA_SHAPE),
}


def _equal(n_points: int, n_clusters: int, rng: Generator) -> np.ndarray:
    """Draw labels in equal numbers; some appear once more if they do not divide evenly."""
    return rng.permutation(np.arange(n_points) % n_clusters)


def _uneven(n_points: int, n_clusters: int, rng: Generator) -> np.ndarray:
    """Let each point draw its cluster in proportion to weights, which are drawn themselves."""
    weights = rng.uniform(*_UNEVEN, n_clusters)
    return rng.choice(n_clusters, n_points, p=weights / weights.sum())


_LABELS: dict[Sizes, Callable[[int, int, Generator], np.ndarray]] = {
    "equal": _equal,
    "uneven": _uneven,
    "drawn": lambda n_points, n_clusters, rng: rng.integers(n_clusters, size=n_points),
}


def make_gaussian_clusters(
    n_points: int = 2500,
    n_clusters: int = 50,
    n_features: int = 2,
    *,
    scale: tuple[float, float] = (30.0, 60.0),
    sizes: Sizes = "equal",
    random_state: RandomState = None,
) -> DataSet:
    """Draw standard normal clusters with centers in a cube: Xu & Lange 2019, Tables 1 and 2.

    The paper draws 2500 points from 50 clusters N(θ_j, I). The coordinates of the centers are r u
    with u uniform in [0, 1), and r, one for each data set, is uniform in [30, 60). The number of
    features is 2, 5, 10, 20, 50, 100 or 200. In the plane this is the simulation of Zhang 2001. The
    paper does not state the sizes of the clusters. Where they are not equal each point draws its
    cluster: all alike, or unevenly, in proportion to weights drawn from U(0.6, 1.4).
    """
    rng = np.random.default_rng(random_state)
    centers = rng.uniform(*scale) * rng.uniform(size=(n_clusters, n_features))
    labels = _LABELS[sizes](n_points, n_clusters, rng)
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


def make_grid_gaussians(n_points=900, side=3, *, spacing=4.0, spread=0.5, random_state=None):
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


def _means(centers: ArrayLike, n_features: int) -> FloatArray:
    means = np.asarray(centers, dtype=np.float64)
    return np.repeat(means[:, None], n_features, axis=1) if means.ndim == 1 else means
