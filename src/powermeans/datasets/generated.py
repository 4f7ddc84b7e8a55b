"""Simulated data sets from the literature on power k-means.

The same `random_state` draws the same points. Rows are shuffled.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from powermeans.datasets.data_set import DataSet
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

    Parameters
    ----------
    n_points : int, default=2500
    n_clusters : int, default=50
    n_features : int, default=2
    scale : (float, float), default=(30, 60)
        Bounds of the side r of the cube.
    sizes : {"equal", "drawn"}, default="equal"
        Draw clusters whose sizes differ by at most one, or draw a cluster for each point.
    random_state : int, numpy.random.Generator or None, default=None

    Returns
    -------
    DataSet

    See Also
    --------
    make_exponential_family : Counts and other data that are not normal.

    Examples
    --------
    >>> from powermeans.datasets import make_gaussian_clusters
    >>> table = make_gaussian_clusters(n_features=10, random_state=0)
    >>> table.points.shape, table.centers.shape
    ((2500, 10), (50, 10))
    """
    _check_counts(n_points=n_points, n_clusters=n_clusters, n_features=n_features)
    if sizes not in ("equal", "drawn"):
        raise ValueError(f'sizes={sizes!r} is unknown: pass "equal" or "drawn"')
    _check_scale(scale)
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

    Parameters
    ----------
    family : {"normal", "poisson", "binomial", "gamma"}, default="normal"
    n_points : int, default=99
    n_features : int, default=2
    centers : array-like of shape (n_clusters,) or (n_clusters, n_features), default=(10, 20, 40)
        The means; one number stands for all coordinates of a cluster.
    random_state : int, numpy.random.Generator or None, default=None

    Returns
    -------
    DataSet

    See Also
    --------
    powermeans.divergences.Poisson : The divergence for Poisson points.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans.datasets import make_exponential_family
    >>> counts = make_exponential_family("binomial", random_state=0)
    >>> np.bincount(counts.labels), int(counts.points.max()) <= 50
    (array([33, 33, 33]), True)
    """
    _check_counts(n_points=n_points, n_features=n_features)
    if family not in _DRAWS:
        raise ValueError(f"family={family!r} is unknown: pass one of {', '.join(_DRAWS)}")
    means = _means(centers, n_features)
    if family != "normal" and not (means > 0).all():
        raise ValueError(f"centers has {means.min()}, but {family} points have positive means")
    if family == "binomial" and not (means <= _N_TRIALS).all():
        raise ValueError(
            f"centers has {means.max()}: pass at most {_N_TRIALS}, the number of trials"
        )
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

    Parameters
    ----------
    n_points : int, default=900
    side : int, default=3
        Number of clusters in each direction.
    spacing : float, default=4.0
        Distance from one center to the next.
    spread : float, default=0.5
        Standard deviation of a cluster in each direction.
    random_state : int, numpy.random.Generator or None, default=None

    Returns
    -------
    DataSet

    See Also
    --------
    make_gaussian_clusters : Clusters anywhere.

    Examples
    --------
    >>> from powermeans import PowerKMeans
    >>> from powermeans.datasets import make_grid_gaussians
    >>> from powermeans.metrics import centroid_index
    >>> nine = make_grid_gaussians(random_state=0)
    >>> model = PowerKMeans(9, random_state=0).fit(nine.points)
    >>> centroid_index(model.cluster_centers_, nine.centers)
    0
    """
    _check_counts(n_points=n_points, side=side)
    _check_numbers(above_zero=True, spacing=spacing)
    _check_numbers(spread=spread)
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

    Parameters
    ----------
    n_points : int, default=434874
    n_features : int, default=3
        At least two.
    n_lines : int, default=400
    n_corners : int, default=30
        Number of pieces of a line.
    jitter : float, default=0.001
        Standard deviation of a point about its line.
    random_state : int, numpy.random.Generator or None, default=None

    Returns
    -------
    DataSet

    See Also
    --------
    load_data_set : Reads "road3d_subset", some of the places of UCI 246.

    Examples
    --------
    >>> from powermeans.datasets import make_polylines
    >>> make_polylines(1000, random_state=0).points.shape
    (1000, 3)
    """
    _check_counts(n_points=n_points, n_features=n_features, n_lines=n_lines, n_corners=n_corners)
    _check_numbers(jitter=jitter)
    if n_features < 2:
        raise ValueError(f"n_features={n_features!r} must be at least 2: a road lies in the plane")
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
    try:
        means = np.asarray(centers, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"centers={centers!r} must be numbers: pass for example [10, 20]"
        ) from error
    if means.size == 0:
        raise ValueError(f"centers={centers!r} is empty: pass a mean for each cluster")
    if means.ndim == 1:
        means = np.repeat(means[:, None], n_features, axis=1)
    if means.ndim != 2 or means.shape[1] != n_features or not np.isfinite(means).all():
        raise ValueError(
            f"centers has the shape {np.shape(centers)}: pass finite numbers, one for each cluster "
            f"or {n_features} for each, as n_features={n_features}"
        )
    return means


def _check_counts(**counts: Any) -> None:
    for name, count in counts.items():
        is_whole = isinstance(count, int | np.integer) and not isinstance(count, bool)
        if not is_whole or count < 1:
            raise ValueError(
                f"{name}={count!r} must be a whole number of at least 1: pass for example 100"
            )


def _check_numbers(*, above_zero: bool = False, **numbers: Any) -> None:
    """Raise on numbers that are negative or not finite, and with `above_zero` on zero."""
    for name, number in numbers.items():
        is_number = isinstance(number, Real) and not isinstance(number, bool)
        if is_number and 0 <= number < math.inf and (number > 0 or not above_zero):
            continue
        wanted = "be positive" if above_zero else "be at least zero"
        raise ValueError(f"{name}={number!r} must {wanted} and finite: pass a float such as 0.5")


def _check_scale(scale: tuple[float, float]) -> None:
    try:
        low, high = scale
        is_range = bool(0 <= low <= high < math.inf)
    except (TypeError, ValueError):
        is_range = False
    if not is_range:
        raise ValueError(f"scale={scale!r} must be two numbers, 0 <= low <= high: pass (30, 60)")
