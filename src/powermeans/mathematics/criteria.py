"""Criteria that say how many clusters there are, each formula a function with its source.

The inertia W(k) only falls as centers are added, so that it cannot say by itself how many there
should be. Each criterion sets it, or distances between points, against something else. `counts` are
sample weights as numbers of copies of a point.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.spatial.distance import cdist

from powermeans.mathematics.arguments import checked
from powermeans.system.threads import blas_on_one_thread
from powermeans.types import FloatArray, IndexArray, Labels

# A difference smaller than this share of the whole is rounding.
_ROUNDING = 1e-9


@checked
def calinski_harabasz(
    inertia: float, inertia_of_one: float, n_points: float, n_centers: int
) -> float:
    """Return the index of Caliński & Harabasz: variance between clusters over variance within them.

    It is ((W_1 - W_k) / (k - 1)) / (W_k / (n - k)) (1974). Larger is better. Use it for round
    clusters of similar size. It is undefined for one cluster, and for as many clusters as points.

    Parameters
    ----------
    inertia, inertia_of_one : float
        W_k, and W_1 about the mean.
    n_points : float
        With copies.
    n_centers : int

    Returns
    -------
    float
        NaN where it is undefined.

    See Also
    --------
    bic : Compares the variance within with the number of parameters.

    Examples
    --------
    >>> calinski_harabasz(inertia=4.0, inertia_of_one=100.0, n_points=8, n_centers=2)
    144.0
    """
    if n_centers == 1 or n_points <= n_centers:
        return math.nan
    if inertia == 0:
        return math.inf
    between = (inertia_of_one - inertia) / (n_centers - 1)
    return between / inertia * (n_points - n_centers)


@checked
def silhouette(distances: FloatArray, labels: Labels, counts: FloatArray | None = None) -> float:
    """Return the mean silhouette: how much nearer points are to their own cluster than to another.

    It is the mean over the points of (b - a) / max(a, b) (Rousseeuw 1987): a is the mean distance
    to the other points of the same cluster, b the least mean distance to the points of another. The
    only point of a cluster counts as zero. Larger is better, and one is the most. It needs all
    pairs of points, so use it on samples. It is undefined for one cluster.

    Parameters
    ----------
    distances : (n_points, n_points)
    labels : (n_points,)
    counts : (n_points,), optional

    Returns
    -------
    float
        NaN where it is undefined.

    See Also
    --------
    powermeans.plots.silhouettes : Draws those of all points.

    Examples
    --------
    >>> x = np.array([0.0, 1.0, 10.0])
    >>> labels, ones = np.array([0, 0, 1], dtype=np.int32), np.ones(3)
    >>> round(silhouette(abs(x[:, None] - x), labels, ones), 4)  # (0.9 + 8/9 + 0) / 3
    0.5963
    """
    if not labels.any():
        return math.nan
    points, counts = np.arange(len(labels)), np.ones(len(labels)) if counts is None else counts
    members = sparse.csr_array((counts, (points, labels)))
    in_cluster = np.bincount(labels, weights=counts)
    sums = np.asarray(distances @ members)
    others_in_own = in_cluster[labels] - 1.0
    a = sums[points, labels] / np.where(others_in_own > 0, others_in_own, 1.0)
    means = sums / in_cluster
    means[points, labels] = math.inf
    b = means.min(axis=1)
    larger = np.maximum(a, b)
    widths = np.where(others_in_own > 0, (b - a) / np.where(larger > 0, larger, 1.0), 0.0)
    return float(np.average(widths, weights=counts))


@checked
def bic(inertia: float, cluster_counts: ArrayLike, n_features: int) -> float:
    """Return the Bayesian information criterion of x-means, log-likelihood - p / 2 log n.

    Pelleg & Moore (2000): clusters are spherical Gaussians with one variance, estimated by
    W / (d (n - k)), and shares n_j / n; p = (k - 1) + k d + 1. (The article leaves d out of the
    variance, which makes the variance in its likelihood too large.) Larger is better. Use it
    for round clusters of similar spread: it cuts others into several.

    Parameters
    ----------
    inertia : float
    cluster_counts : (n_centers,)
        n_j.
    n_features : int

    Returns
    -------
    float
        NaN where there are as many centers as points; infinite where the inertia is zero.

    See Also
    --------
    calinski_harabasz : Also for round clusters of similar spread.

    Examples
    --------
    >>> round(bic(inertia=6.0, cluster_counts=[4, 4], n_features=1), 3)  # variance 1
    -20.056
    """
    counts = np.asarray(cluster_counts, dtype=np.float64)
    n_centers, n_points = len(counts), float(counts.sum())
    if n_points <= n_centers:
        return math.nan
    if inertia == 0:
        return math.inf
    freedom = n_features * (n_points - n_centers)
    counts = counts[counts > 0]
    of_shares = float(counts @ np.log(counts / n_points))
    normalizer = n_points * n_features * math.log(2 * math.pi * inertia / freedom)
    n_parameters = (n_centers - 1) + n_centers * n_features + 1
    return of_shares - (normalizer + freedom + n_parameters * math.log(n_points)) / 2


@checked
def persistence(sizes: ArrayLike, inertias: ArrayLike) -> FloatArray:
    """Return for how many e-folds of the penalty λ each k makes W(k) + λ k least.

    W(k) + λ k is the objective of DP-means (Kulis & Jordan 2012). As λ falls from infinity, the
    best k moves along the corners of the lower convex hull of W; a corner lasts from the slope
    before it to the slope after it. A k that follows from the scale and not from the data is soon
    replaced.

    Parameters
    ----------
    sizes, inertias : (n_sizes,)
        The sizes rise.

    Returns
    -------
    (n_sizes,)
        log(λ_from / λ_to); zero off the hull, NaN at the ends, which last for ever.

    See Also
    --------
    powermeans.methods.DPMeans : Clusters at one penalty.

    Examples
    --------
    >>> persistence([1, 2, 3, 4], [100.0, 10.0, 8.0, 7.0]).round(4)  # log(90 / 2), log(2 / 1)
    array([   nan, 3.8067, 0.6931,    nan])
    """
    x, y = np.asarray(sizes, dtype=np.float64), np.asarray(inertias, dtype=np.float64)
    if not (np.diff(x) > 0).all():
        raise ValueError(f"sizes={x.tolist()!r:.60} must rise: sort sizes, and inertias with them")
    corners = lower_hull(x, y)
    lasting = np.zeros(len(x))
    slopes = -np.diff(y[corners]) / np.diff(x[corners])
    with np.errstate(divide="ignore", invalid="ignore"):
        lasting[corners[1:-1]] = np.nan_to_num(
            np.log(slopes[:-1]) - np.log(slopes[1:]), nan=0.0, posinf=math.inf
        )
    lasting[[0, -1]] = math.nan
    return lasting


def lower_hull(x: FloatArray, y: FloatArray) -> IndexArray:
    """Return the indices of the corners of the lower convex hull, for rising x (Andrew 1979).

    >>> lower_hull(np.array([0.0, 1.0, 2.0, 3.0]), np.array([5.0, 4.0, 1.0, 0.0]))
    array([0, 2, 3])
    """
    corners: list[int] = []
    for i in range(len(x)):
        while len(corners) > 1:
            b, a = corners[-1], corners[-2]
            if (y[b] - y[a]) * (x[i] - x[b]) < (y[i] - y[b]) * (x[b] - x[a]):
                break
            corners.pop()
        corners.append(i)
    return np.array(corners)


def places_between(
    sq_dist: FloatArray,
    labels: Labels,
    cluster_counts: ArrayLike,
    centers: ArrayLike,
    is_observed: FloatArray | None = None,
) -> FloatArray:
    """Return where each point lies on the line from its own center, at -1, to each other one, at 1.

    It is NaN toward the own center, and for the only point of a cluster. Missing entries are zero
    in `is_observed`.
    """
    # The own center is that of the other points of the cluster, as in the rule of Hartigan (1975).
    # Otherwise each point would draw its center towards itself, and in many dimensions any two
    # halves of one cluster would seem far apart.
    points, others = np.arange(len(labels)), np.asarray(cluster_counts)[labels] - 1.0
    others = np.where(others > 0, others, math.nan)[:, None]
    all_centers = np.asarray(centers, dtype=np.float64)
    if is_observed is None:
        apart = cdist(all_centers, all_centers, "sqeuclidean")[labels]
    else:
        from_own = is_observed * all_centers[labels]
        apart = is_observed @ all_centers.T**2 - 2 * from_own @ all_centers.T
        apart += np.square(from_own).sum(axis=1)[:, None]
    own = sq_dist[points, labels][:, None]
    without = own * ((others + 1.0) / others) ** 2
    apart_without = apart + (own + apart - sq_dist) / others + own / others**2
    with np.errstate(divide="ignore", invalid="ignore"):
        places = (without - sq_dist) / apart_without
    places[points, labels] = math.nan
    return np.asarray(places)


def separations(
    places: FloatArray, labels: Labels, counts: FloatArray, valley_errors: float | None = 1.0
) -> tuple[FloatArray, FloatArray]:
    """Return by how many standard deviations each two clusters are apart, and the errors.

    The deviation along the line between the centers is the root of the mean variance of the two
    (Ashman, Bird & Zepf 1994). It is zero where no valley lies between the means: where the middle
    quarter of the way has not fewer points, by `valley_errors` standard errors, than a quarter
    about each mean. Two halves of a uniform distribution have √12 = 3.46, of most others less.
    """
    n_centers = places.shape[1]
    with np.errstate(invalid="ignore"):
        counted = np.where(np.isfinite(places).any(axis=1), counts, 0.0)
    where = np.nan_to_num(places)
    members = sparse.csr_array(
        (counted, (labels, np.arange(len(labels)))), shape=(n_centers, len(labels))
    )
    n_members = np.maximum(np.asarray(members.sum(axis=1)), _ROUNDING)[:, None]
    means = np.asarray(members @ where) / n_members
    variances = np.maximum(np.asarray(members @ where**2) / n_members - means**2, _ROUNDING)

    apart = np.maximum(-means.T - means, 0.0)
    both = variances + variances.T
    values = apart * np.sqrt(2 / both)
    # The variance of a sample of a uniform distribution has the relative variance 0.8 / n.
    spread = 0.8 * variances**2 / n_members
    errors = values * np.sqrt(spread + spread.T) / (2 * both)

    if valley_errors is None:
        np.fill_diagonal(values, math.inf)
        return values, errors

    def counted_about(center: FloatArray) -> FloatArray:
        is_near = np.abs(where - center[labels]) <= (apart / 8)[labels]
        return np.asarray(members @ is_near.astype(np.float64))

    peaks = counted_about(means) + counted_about(-means.T).T
    lower = np.minimum(peaks, peaks.T)
    valley = counted_about((means - means.T) / 2)
    valley = valley + valley.T
    has_valley = (lower > valley) & (lower - valley >= valley_errors * np.sqrt(lower + valley))
    values, errors = np.where(has_valley, values, 0.0), np.where(has_valley, errors, 0.0)
    np.fill_diagonal(values, math.inf)
    return values, errors


def pairs_without_valley(
    sq_dist: FloatArray, labels: Labels, centers: FloatArray, counts: FloatArray
) -> Iterator[tuple[int, int]]:
    """Yield pairs of neighboring centers that have more points between them than about them.

    `separations` counts the points of two clusters alone, which always thin out at the border of
    their cells. Here all points count in a tube around the line between two centers, which is as
    wide as half of the points about the two need it in the space that the centers span: in all
    others a wide cluster is so far from its own center that its tube holds others beside the line.

    >>> x, centers = np.array([[0.0], [1.0], [2.0], [8.0], [9.0], [10.0]]), np.array([[1.0], [9.0]])
    >>> sq_dist, labels = (x - centers.T) ** 2, np.array([0, 0, 0, 1, 1, 1])
    >>> list(pairs_without_valley(sq_dist, labels, centers, np.ones(6)))
    []
    """
    sq_dist = _within_span(sq_dist, centers)
    for i, j in itertools.combinations(range(len(centers)), 2):
        middle = (centers[i] + centers[j]) / 2
        apart = float(np.square(centers[i] - centers[j]).sum())
        nearest = np.square(centers - middle).sum(axis=1).min()
        if nearest < apart / 4 * (1 - _ROUNDING) or apart == 0:
            continue
        place = (sq_dist[:, i] - sq_dist[:, j]) / apart
        sq_width = (sq_dist[:, i] + sq_dist[:, j]) / 2 - apart / 4 * (1 + place**2)
        is_near = np.abs(place[:, None] - [-1.0, 0.0, 1.0]) <= 0.25
        about = (is_near[:, 0] & (labels == i)) | (is_near[:, 2] & (labels == j))
        widest = np.median(sq_width[about]) if about.any() else 0.0
        is_in_tube = sq_width <= widest + _ROUNDING * apart
        one, between, other = (counts * is_in_tube) @ is_near
        if between - min(one, other) > math.sqrt(between + min(one, other)):
            yield i, j


def _within_span(sq_dist: FloatArray, centers: FloatArray) -> FloatArray:
    """Return squared distances to the centers within the space that these span (Gower 1966).

    >>> sq_dist = np.array([[1 + 4.0, 9 + 4.0]])  # 1 and 3 along the line, and 2 beside it
    >>> _within_span(sq_dist, np.array([[0.0, 0.0], [4.0, 0.0]])).round(9)
    array([[1., 9.]])
    """
    about_mean = centers - centers.mean(axis=0)
    with blas_on_one_thread():
        axes, lengths, _ = np.linalg.svd(about_mean, full_matrices=False)
        is_spanned = lengths > _ROUNDING * lengths[0]
        products = (np.square(about_mean).sum(axis=1) - sq_dist) / 2
        products -= products.mean(axis=1)[:, None]
        places = products @ (axes / np.where(is_spanned, lengths, math.inf))
    beside = sq_dist[:, 0] - np.square(places - axes[0] * lengths).sum(axis=1)
    return np.asarray(sq_dist - beside[:, None])
