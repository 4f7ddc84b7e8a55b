"""Measure a clustering, compare two, or a solution with a reference; count all there are."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from powermeans.divergences import SquaredEuclidean
from powermeans.divergences.chunks import as_float64
from powermeans.mathematics.arguments import checked
from powermeans.system.containers import check_choice, check_count
from powermeans.types import AnyMatrix, FloatArray


@checked
def variation_of_information(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Return the variation of information H(U|V) + H(V|U) of two clusterings, in nats.

    It is a metric, zero for clusterings that are equal up to the names of labels, at most log n.

    Parameters
    ----------
    labels_true : (n_points,)
    labels_pred : (n_points,)
        The measure is symmetric.

    Returns
    -------
    float

    See Also
    --------
    normalized_mutual_information : Between 0 and 1.
    adjusted_rand_index : Adjusted for chance.

    Examples
    --------
    >>> from powermeans.metrics import variation_of_information
    >>> variation_of_information([0, 0, 1, 1], [1, 1, 0, 0])  # the same, by other names
    0.0
    >>> round(variation_of_information([0, 0, 1, 1], [0, 0, 0, 0]), 4)  # log 2
    0.6931
    """
    u, v = np.asarray(labels_true), np.asarray(labels_pred)
    in_u, in_v = np.bincount(u), np.bincount(v)
    pairs, in_both = np.unique(u.astype(np.int64) * len(in_v) + v, return_counts=True)
    u_of_pair, v_of_pair = np.divmod(pairs, len(in_v))
    # log p(u) + log p(v) - 2 log p(u, v) as logarithms of ratios, so that equal counts give zero.
    surprise = np.log(in_u[u_of_pair] / in_both) + np.log(in_v[v_of_pair] / in_both)
    return float(in_both @ surprise / len(u)) if len(u) else 0.0


@checked
def normalized_mutual_information(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Return the normalized mutual information I(U, V) / sqrt(H(U) H(V)) of two clusterings.

    Parameters
    ----------
    labels_true : (n_points,)
    labels_pred : (n_points,)

    Returns
    -------
    float
        0 for independent clusterings, 1 for equal ones.

    See Also
    --------
    variation_of_information : A metric, in nats.
    adjusted_rand_index : Adjusted for chance, which this is not.

    Examples
    --------
    >>> from powermeans.metrics import normalized_mutual_information
    >>> round(normalized_mutual_information([0, 0, 1, 1], [0, 1, 0, 1]), 6)  # independent
    0.0
    >>> round(normalized_mutual_information([0, 0, 1, 1], [0, 0, 1, 2]), 4)  # 1 / sqrt(1.5)
    0.8165
    """
    # This import takes longer than the rest of the package together.
    from sklearn.metrics import normalized_mutual_info_score

    return float(normalized_mutual_info_score(labels_true, labels_pred, average_method="geometric"))


@checked
def adjusted_rand_index(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Return the Rand index adjusted for chance: 1 for equal clusterings, on average 0 for random.

    Parameters
    ----------
    labels_true : (n_points,)
    labels_pred : (n_points,)

    Returns
    -------
    float

    See Also
    --------
    variation_of_information : A metric, in nats.

    Examples
    --------
    >>> from powermeans.metrics import adjusted_rand_index
    >>> round(adjusted_rand_index([0, 0, 1, 1], [1, 1, 0, 2]), 4)
    0.5714
    """
    # This import takes longer than the rest of the package together.
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(labels_true, labels_pred))


@checked
def centroid_index(centers_a: ArrayLike, centers_b: ArrayLike) -> int:
    """Count the centers in the wrong place (Fränti, Rezaei & Zhao 2014).

    Each center of one set goes to the nearest center of the other; centers to which none goes are
    orphans. The index is the larger number of orphans in the two directions.

    Parameters
    ----------
    centers_a : (n_centers_a, n_features)
    centers_b : (n_centers_b, n_features)

    Returns
    -------
    int
        0 if the two sets have the same structure.

    See Also
    --------
    variation_of_information : Compares labels rather than centers.
    quality_ratio : Compares errors.

    Examples
    --------
    One center between two clusters, and two in a third:

    >>> from powermeans.metrics import centroid_index
    >>> centroid_index([[0.0], [5.0], [50.0]], [[2.5], [49.0], [51.0]])
    1
    """
    sq_dist = SquaredEuclidean().pairwise(np.asarray(centers_a), np.asarray(centers_b))
    n_orphans_of_a = len(sq_dist) - len(np.unique(np.argmin(sq_dist, axis=0)))
    n_orphans_of_b = len(sq_dist.T) - len(np.unique(np.argmin(sq_dist, axis=1)))
    return max(n_orphans_of_a, n_orphans_of_b)


@checked
def quality_ratio(
    points: AnyMatrix,
    centers: FloatArray,
    reference_centers: FloatArray,
    *,
    form: Literal["squared", "unsquared"] = "squared",
    sample_weight: FloatArray | None = None,
) -> float:
    """Return the square root of the error of centers over the error of reference centers.

    The tables of Xu & Lange 2019 agree with the unsquared form.

    Parameters
    ----------
    points : (n_points, n_features)
        Dense or CSR.
    centers : (n_centers, n_features)
    reference_centers : (n_reference_centers, n_features)
    form : {"squared", "unsquared"}
        The error adds up squared distances to the nearest center, or distances.
    sample_weight : (n_points,), optional

    Returns
    -------
    float
        1 if both are equally good, more if the centers are worse; infinite if only the reference
        has no error.

    See Also
    --------
    centroid_index : How many centers are misplaced.
    powermeans.mathematics.power_mean.objective : At the power -inf, the squared error itself.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans.metrics import quality_ratio
    >>> points = np.array([[0.0], [2.0], [10.0], [12.0]])
    >>> best, worse = np.array([[1.0], [11.0]]), np.array([[2.0], [10.0]])
    >>> round(quality_ratio(points, worse, best), 4)  # sqrt(8 / 4)
    1.4142
    """
    check_choice(form, "form", "squared", "unsquared")
    exponent = 1.0 if form == "squared" else 0.5
    error = _error(points, centers, exponent, sample_weight)
    reference_error = _error(points, reference_centers, exponent, sample_weight)
    if reference_error == 0:
        return 1.0 if error == 0 else math.inf
    return math.sqrt(error / reference_error)


@checked
def within_scatter(
    points: AnyMatrix,
    labels: ArrayLike,
    *,
    form: Literal["centers", "pairs"] = "centers",
    sample_weight: FloatArray | None = None,
) -> float:
    """Return W(C), the scatter within the clusters of a clustering C, by either of its two forms.

    About centers it is the sum over the clusters l of the squared distances of their points from
    their mean; by pairs it is ``1/2 sum_l (1 / n_l) sum_(i, j in l) |x_i - x_j|**2``. Both are
    equal (K. Moon, lecture slides on k-means). Labels may have any names. Pairs take time in
    proportion to the squares of the sizes of the clusters.

    Parameters
    ----------
    points : (n_points, n_features)
        Dense or sparse.
    labels : (n_points,)
    form : {"centers", "pairs"}, default="centers"
    sample_weight : (n_points,), optional
        A weight of three counts like three copies of the point.

    Returns
    -------
    float

    See Also
    --------
    number_of_partitions : Among how many clusterings the least W(C) is.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans.metrics import within_scatter
    >>> points, labels = np.array([[0.0], [2.0], [4.0], [10.0]]), [0, 0, 0, 1]
    >>> within_scatter(points, labels)  # 4 + 0 + 4
    8.0
    >>> within_scatter(points, labels, form="pairs")  # (4 + 16 + 4) / 3
    8.0
    """
    check_choice(form, "form", "centers", "pairs")
    names = np.asarray(labels)
    weights = np.ones(len(names)) if sample_weight is None else sample_weight
    scatter_of = _about_center if form == "centers" else _of_pairs
    members = (names == label for label in range(names.max() + 1))
    return math.fsum(scatter_of(points[own], weights[own]) for own in members if weights[own].any())


def _about_center(points: AnyMatrix, weights: FloatArray) -> float:
    center = np.asarray((weights @ points) / weights.sum(), dtype=np.float64)
    return float(weights @ SquaredEuclidean().pairwise(points, center[None, :])[:, 0])


def _of_pairs(points: AnyMatrix, weights: FloatArray) -> float:
    chunks = SquaredEuclidean().in_chunks(points, as_float64(points))
    total = math.fsum(float(weights[rows] @ sq_dist @ weights) for rows, sq_dist in chunks)
    return total / (2 * float(weights.sum()))


def number_of_partitions(n_points: int, n_clusters: int) -> int:
    """Return the number of ways to divide points into clusters, none of them empty.

    It is Stirling's number of the second kind,
    S(n, k) = 1 / k! sum_(l=1)^k (-1)^(k-l) binom(k, l) l^n, in exact integers.

    Parameters
    ----------
    n_points : int
        At least one.
    n_clusters : int
        At least one.

    Returns
    -------
    int
        Zero if there are more clusters than points.

    See Also
    --------
    within_scatter : What k-means makes small among them.

    Examples
    --------
    >>> from powermeans.metrics import number_of_partitions
    >>> number_of_partitions(10, 4)
    34105
    >>> number_of_partitions(19, 4)
    11259666950
    """
    for name, number in {"n_points": n_points, "n_clusters": n_clusters}.items():
        check_count(number, name, 1, "one")
    n, k = int(n_points), int(n_clusters)
    if k > n:
        return 0
    # Python does not hear Ctrl-C within a power, which takes a second for as many bits.
    if (n_bits := n * math.log2(k)) > 2**24:
        raise ValueError(
            f"n_points={n} makes powers of {n_bits:.3g} bits with n_clusters={k}: pass fewer, or "
            "take n_points * log(n_clusters) - log(n_clusters!), about the logarithm of the number"
        )
    terms: list[int] = [
        (-1) ** (k - size) * math.comb(k, size) * size**n for size in range(1, k + 1)
    ]
    return sum(terms) // math.factorial(k)


def _error(
    points: AnyMatrix,
    centers: FloatArray,
    exponent: float,
    sample_weight: FloatArray | None,
) -> float:
    """Add up the squared distances to the nearest center, each raised to the exponent."""
    total = 0.0
    for rows, sq_dist in SquaredEuclidean().in_chunks(points, centers):
        nearest = sq_dist.min(axis=1) ** exponent
        total += float(nearest.sum() if sample_weight is None else sample_weight[rows] @ nearest)
    return total
