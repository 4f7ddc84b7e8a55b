"""Criteria that say how many clusters there are, each formula a function with its source.

The inertia W(k) only falls as centers are added, so that it cannot say by itself how many there
should be. Each criterion sets it, or distances between points, against something else. `counts` are
sample weights as numbers of copies of a point.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.spatial.distance import cdist

from powermeans.types import FloatArray, IndexArray, Labels

# A difference smaller than this share of the whole is rounding.
_ROUNDING = 1e-9


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
    davies_bouldin : Compares widths of clusters with distances between them.

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


def davies_bouldin(mean_distances: ArrayLike, centers: ArrayLike) -> float:
    """Return the index of Davies & Bouldin: how wide clusters are, beside how far apart they are.

    It is the mean over the clusters i of max_j (S_i + S_j) / M_ij (1979), with S_i the mean
    distance of the points of a cluster from its center and M_ij the distance between two centers.
    Smaller is better. It is undefined for one cluster.

    Parameters
    ----------
    mean_distances : (n_centers,)
        S_i.
    centers : (n_centers, n_features)

    Returns
    -------
    float
        NaN where it is undefined; infinite where centers of clusters that have a width coincide.

    See Also
    --------
    calinski_harabasz : Compares variances between and within clusters.

    Examples
    --------
    >>> davies_bouldin([1.0, 1.0], [[0.0], [8.0]])
    0.25
    """
    widths, places = np.asarray(mean_distances), np.asarray(centers)
    if len(widths) == 1:
        return math.nan
    apart = cdist(places, places)
    np.fill_diagonal(apart, math.inf)
    sums = widths[:, None] + widths
    with np.errstate(divide="ignore", invalid="ignore"):
        likeness = np.where(sums == 0, 0.0, sums / apart)
    return float(likeness.max(axis=1).mean())


def silhouette(distances: FloatArray, labels: Labels, counts: FloatArray) -> float:
    """Return the mean silhouette: how much nearer points are to their own cluster than to another.

    It is the mean over the points of (b - a) / max(a, b) (Rousseeuw 1987): a is the mean distance
    to the other points of the same cluster, b the least mean distance to the points of another. The
    only point of a cluster counts as zero. Larger is better, and one is the most. It needs all
    pairs of points, so use it on samples. It is undefined for one cluster.

    Parameters
    ----------
    distances : (n_points, n_points)
    labels : (n_points,)
    counts : (n_points,)

    Returns
    -------
    float
        NaN where it is undefined.

    See Also
    --------
    simplified_silhouette : With distances to centers, for large data.
    powermeans.plots.silhouettes : Draws those of all points.

    Examples
    --------
    >>> x = np.array([0.0, 1.0, 10.0])
    >>> labels, ones = np.array([0, 0, 1], dtype=np.int32), np.ones(3)
    >>> round(silhouette(abs(x[:, None] - x), labels, ones), 4)  # (0.9 + 8/9 + 0) / 3
    0.5963
    """
    present, own = np.unique(labels, return_inverse=True)
    if len(present) == 1:
        return math.nan
    points = np.arange(len(labels))
    members = sparse.csr_array((counts, (points, own)), shape=(len(labels), len(present)))
    in_cluster = np.bincount(own, weights=counts)
    sums = np.asarray(distances @ members)
    others_in_own = in_cluster[own] - 1.0
    a = sums[points, own] / np.where(others_in_own > 0, others_in_own, 1.0)
    means = sums / in_cluster
    means[points, own] = math.inf
    widths = silhouette_widths(a, means.min(axis=1), others_in_own > 0)
    return float(np.average(widths, weights=counts))


def simplified_silhouette(
    own_distances: FloatArray, other_distances: FloatArray, labels: Labels, counts: FloatArray
) -> float:
    """Return the silhouette with distances to centers instead of mean distances to points.

    Hruschka, de Castro & Campello (2004): a is the distance to the nearest center, b that to the
    second nearest. It needs only k distances for each point, so use it on large data.

    Parameters
    ----------
    own_distances, other_distances : (n_points,)
        To the nearest center and to the second nearest.
    labels : (n_points,)
    counts : (n_points,)

    Returns
    -------
    float
        At most one; larger is better.

    See Also
    --------
    silhouette : With distances to points, for samples.

    Examples
    --------
    >>> labels, ones = np.array([0, 0, 1, 1], dtype=np.int32), np.ones(4)
    >>> simplified_silhouette(np.full(4, 1.0), np.full(4, 4.0), labels, ones)
    0.75
    """
    is_shared = np.bincount(labels, weights=counts)[labels] > 1
    widths = silhouette_widths(own_distances, other_distances, is_shared)
    return float(np.average(widths, weights=counts))


def silhouette_widths(a: FloatArray, b: FloatArray, is_shared: np.ndarray) -> FloatArray:
    """Return (b - a) / max(a, b) of each point, or zero for the only point of a cluster.

    The distances to its own cluster and to the next one are a and b.

    >>> silhouette_widths(np.array([1.0, 1.0]), np.array([4.0, 4.0]), np.array([True, False]))
    array([0.75, 0.  ])
    """
    larger = np.maximum(a, b)
    safe = np.where(larger > 0, larger, 1.0)
    return np.asarray(np.where(is_shared, (b - a) / safe, 0.0))


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
    jumps : Also for round clusters of one width.

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


def knee_differences(sizes: ArrayLike, inertias: ArrayLike) -> FloatArray:
    """Return how far W(k) lies below the line between its ends, both axes scaled to [0, 1].

    This is the difference curve of Kneedle (Satopää, Albrecht, Irwin & Raghavan 2011) for a falling
    curve. It depends on where the range of k ends.

    Parameters
    ----------
    sizes, inertias : (n_sizes,)
        The sizes rise, and the inertias are finite.

    Returns
    -------
    (n_sizes,)
        Zero at both ends.

    See Also
    --------
    knee : Where it is largest.

    Examples
    --------
    >>> knee_differences([1, 2, 3, 4, 5], [9.0, 1.0, 1.0, 1.0, 1.0])
    array([0.  , 0.75, 0.5 , 0.25, 0.  ])
    """
    x, y = _curve(sizes, inertias)
    if len(x) < 3 or y[0] == y[-1]:
        return np.zeros(len(x))
    return np.asarray(1 - (y - y[-1]) / (y[0] - y[-1]) - (x - x[0]) / (x[-1] - x[0]))


def knee(sizes: ArrayLike, inertias: ArrayLike) -> int | None:
    """Return the k at which W(k) bends most: the largest maximum of `knee_differences`.

    Kneedle (Satopää and others 2011, section IV) reads a curve as it arrives and takes the first
    maximum after which the differences fall by a threshold; where clusters are many, that one often
    comes long before the true number. Here the whole curve is known.

    Parameters
    ----------
    sizes, inertias : (n_sizes,)

    Returns
    -------
    int or None
        An index; never that of an end. None where the curve is nowhere below the line.

    See Also
    --------
    knee_differences : The curve whose maximum this is.
    powermeans.choose_k : Asks this of log W(k), and other criteria.

    Examples
    --------
    >>> knee([1, 2, 3, 4, 5], [9.0, 4.0, 1.0, 0.9, 0.8])
    2
    """
    differences = knee_differences(sizes, inertias)
    largest = differences.max(initial=0.0)
    if largest <= _ROUNDING:
        return None
    return int(np.argmax(differences >= largest - _ROUNDING))


def _curve(sizes: ArrayLike, inertias: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return both as arrays, if sizes rise and there is a finite inertia for each."""
    x, y = np.asarray(sizes, dtype=np.float64), np.asarray(inertias, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(
            f"inertias has the shape {y.shape}, but sizes has {x.shape}: pass an inertia for each"
        )
    if not (np.diff(x) > 0).all():
        raise ValueError(f"sizes={x.tolist()} do not rise: sort them, and their inertias with them")
    if not np.isfinite(y).all():
        raise ValueError(
            f"inertias={y.tolist()} has an entry that is not finite: leave out its size"
        )
    return x, y


def gaps(
    log_inertias: ArrayLike, reference_log_inertias: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return the gap statistic of each k and its error, from sets drawn without clusters.

    Gap(k) is the mean of log W*(k) - log W(k), and s_k = sd sqrt(1 + 1 / B), where W* are the
    inertias of B such sets (Tibshirani, Walther & Hastie 2001, equations 4 and 5).

    Parameters
    ----------
    log_inertias : (n_sizes,)
    reference_log_inertias : (n_sets, n_sizes)

    Returns
    -------
    gaps, errors : (n_sizes,)

    See Also
    --------
    first_within_one_error : Which k they say.

    Examples
    --------
    >>> gap, error = gaps([2.0, 1.0], [[3.0, 2.5], [3.0, 2.7]])
    >>> gap.round(6), error.round(6)
    (array([1. , 1.6]), array([0.      , 0.122474]))
    """
    references = np.asarray(reference_log_inertias, dtype=np.float64)
    with np.errstate(invalid="ignore"):  # equal points, drawn from a box that is a point
        errors = references.std(axis=0) * math.sqrt(1 + 1 / len(references))
        return references.mean(axis=0) - np.asarray(log_inertias), errors


def first_within_one_error(gap: FloatArray, errors: FloatArray) -> int | None:
    """Return the first k whose gap the next one does not exceed by more than its error.

    That is Gap(k) >= Gap(k + 1) - s_(k + 1) (Tibshirani and others 2001, step 3), where k + 1 is
    the next of the values of k.

    Parameters
    ----------
    gap, errors : (n_sizes,)

    Returns
    -------
    int or None
        An index. None where the gap rises to the end of the range: there may be more clusters.

    See Also
    --------
    gaps : The values and errors that this looks at.

    Examples
    --------
    >>> first_within_one_error(np.array([0.1, 0.5, 0.52, 0.6]), np.full(4, 0.05))
    1
    """
    holds = gap[:-1] >= gap[1:] - errors[1:]
    return int(np.argmax(holds)) if holds.any() else None


def jumps(inertias: ArrayLike, n_features: int) -> FloatArray:
    """Return the jumps of the distortion, largest at the number of clusters if they are normal.

    A jump is D_k^(-d/2) - D_(k-1)^(-d/2), with D_k the distortion, a multiple of W_k (Sugar & James
    2003, with the identity for the covariance). For normal, round clusters of similar spread, the
    powers are near zero below the number of clusters, and then rise in a straight line. The jumps
    are shares of the last power.

    Parameters
    ----------
    inertias : (n_sizes,)
        Falling. The first has none before it.
    n_features : int

    Returns
    -------
    (n_sizes - 1,)
        Those of all but the first.

    See Also
    --------
    bic : Also for round clusters of one width.

    Examples
    --------
    >>> jumps([8.0, 2.0, 1.0], n_features=2)
    array([0.375, 0.5  ])
    """
    distortions = np.asarray(inertias, dtype=np.float64)
    if distortions[-1] == 0:
        powers = (distortions == 0).astype(np.float64)
    else:
        powers = (distortions[-1] / distortions) ** (n_features / 2)
    return np.asarray(np.diff(powers))


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
    powermeans.DPMeans : Clusters at one penalty.

    Examples
    --------
    >>> persistence([1, 2, 3, 4], [100.0, 10.0, 8.0, 7.0]).round(4)  # log(90 / 2), log(2 / 1)
    array([   nan, 3.8067, 0.6931,    nan])
    """
    x, y = np.asarray(sizes, dtype=np.float64), np.asarray(inertias, dtype=np.float64)
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
    sq_dist: FloatArray, labels: Labels, cluster_counts: ArrayLike, centers: ArrayLike
) -> FloatArray:
    """Return where each point lies on the line from its own center, at -1, to each other one, at 1.

    The own center is that of the other points of the cluster, as in the rule of Hartigan (1975).
    Otherwise each point would draw its center towards itself, and in many dimensions any two halves
    of one cluster would seem far apart.

    Parameters
    ----------
    sq_dist : (n_points, n_centers)
    labels : (n_points,)
    cluster_counts : (n_centers,)
        The points that each center is the mean of, with copies.
    centers : (n_centers, n_features)

    Returns
    -------
    (n_points, n_centers)
        NaN toward the own center, and for the only point of a cluster.

    See Also
    --------
    separations : What follows from them.

    Examples
    --------
    >>> x, centers = np.array([[-1.0], [1.0], [8.0], [10.0]]), np.array([[0.0], [9.0]])
    >>> places = places_between((x - centers.T) ** 2, np.array([0, 0, 1, 1]), [2, 2], centers)
    >>> places  # the first is (2² - 10²) / 8², the second (2² - 8²) / 10²
    array([[ nan, -1.5],
           [ nan, -0.6],
           [-0.6,  nan],
           [-1.5,  nan]])
    """
    points, others = np.arange(len(labels)), np.asarray(cluster_counts)[labels] - 1.0
    others = np.where(others > 0, others, math.nan)[:, None]
    all_centers = np.asarray(centers, dtype=np.float64)
    apart = cdist(all_centers, all_centers, "sqeuclidean")[labels]
    own = sq_dist[points, labels][:, None]
    without = own * ((others + 1.0) / others) ** 2
    apart_without = apart + (own + apart - sq_dist) / others + own / others**2
    with np.errstate(divide="ignore", invalid="ignore"):
        places = (without - sq_dist) / apart_without
    places[points, labels] = math.nan
    return np.asarray(places)


def separations(
    places: FloatArray, labels: Labels, counts: FloatArray, *, valley_errors: float = 1.0
) -> tuple[FloatArray, FloatArray]:
    """Return by how many standard deviations each two clusters are apart, and the errors.

    Along the line between the two centers, the deviation is the root of the mean variance of the
    two clusters (Ashman, Bird & Zepf 1994). Two halves of a uniform distribution have √12 = 3.46,
    and of bell-shaped and heavy-tailed ones less. It is zero where no valley lies between the
    means, that is, where the middle quarter of the way has not fewer points, by `valley_errors`
    standard errors, than a quarter about each of the means.

    Parameters
    ----------
    places : (n_points, n_centers)
        See `places_between`.
    labels : (n_points,)
    counts : (n_points,)
    valley_errors : float

    Returns
    -------
    separations, errors : (n_centers, n_centers)
        Infinite on the diagonal.

    See Also
    --------
    places_between : The places on the lines.

    Examples
    --------
    >>> places = np.array([[np.nan, -1.25], [np.nan, -0.75], [-0.75, np.nan], [-1.25, np.nan]])
    >>> found, errors = separations(places, np.array([0, 0, 1, 1]), np.ones(4))
    >>> found[0, 1].item(), round(errors[0, 1].item(), 2)  # 2 / 0.25
    (8.0, 1.79)
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


def weighted_rand_index(labels: Labels, others: Labels, counts: FloatArray) -> float:
    """Return the Rand index, adjusted for chance, of clusterings of points that count as copies.

    Hubert & Arabie (1985). One for equal clusterings, zero on average for random ones.

    Parameters
    ----------
    labels, others : (n_points,)
    counts : (n_points,)

    Returns
    -------
    float

    See Also
    --------
    powermeans.metrics.adjusted_rand_index : Where each point counts once.

    Examples
    --------
    >>> u, v = np.array([0, 0, 1, 1], dtype=np.int32), np.array([1, 1, 0, 2], dtype=np.int32)
    >>> round(weighted_rand_index(u, v, np.ones(4)), 4)
    0.5714
    """
    n_others = int(others.max()) + 1
    table = np.bincount(labels.astype(np.int64) * n_others + others, weights=counts)
    both = _pairs(table)
    one = _pairs(np.bincount(labels, weights=counts))
    other = _pairs(np.bincount(others, weights=counts))
    all_pairs = _pairs(np.array([counts.sum()]))
    if all_pairs == 0:  # of one point: nothing that two clusterings could disagree about
        return 1.0
    chance = one * other / all_pairs
    most = (one + other) / 2
    return 1.0 if most == chance else float((both - chance) / (most - chance))


def _pairs(counts: np.ndarray) -> float:
    return float((counts * (counts - 1)).sum()) / 2
