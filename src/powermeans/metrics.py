"""How alike two clusterings are, and how near a solution comes to a reference."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from powermeans.divergences import squared_euclidean
from powermeans.system.host_memory import on_host
from powermeans.types import FloatArray, Points, SparsePoints


def variation_of_information(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Variation of information H(U|V) + H(V|U) of two clusterings, in nats.

    A metric: zero for equal clusterings, whatever their labels are called, at most log n.

    Parameters
    ----------
    labels_true : (n_points,)
    labels_pred : (n_points,)
        Exchanging the two changes nothing.

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
    u, in_u = _dense_labels(labels_true)
    v, in_v = _dense_labels(labels_pred)
    if len(u) != len(v):
        raise ValueError(
            f"labels_true has {len(u)} labels but labels_pred has {len(v)}: "
            "pass one label of each kind for every point"
        )
    pairs, in_both = np.unique(u.astype(np.int64) * len(in_v) + v, return_counts=True)
    u_of_pair, v_of_pair = np.divmod(pairs, len(in_v))
    # log p(u) + log p(v) - 2 log p(u, v), each ratio taken whole so that equal counts give zero.
    surprise = np.log(in_u[u_of_pair] / in_both) + np.log(in_v[v_of_pair] / in_both)
    return float(in_both @ surprise / len(u)) if len(u) else 0.0


def normalized_mutual_information(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Mutual information over the geometric mean of the entropies, I(U, V) / sqrt(H(U) H(V)).

    Parameters
    ----------
    labels_true : (n_points,)
    labels_pred : (n_points,)

    Returns
    -------
    float
        Between 0 and 1, which is for equal clusterings.

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
    # Imported when used: it takes longer than the rest of the package together.
    from sklearn.metrics import normalized_mutual_info_score

    pair = on_host(labels_true), on_host(labels_pred)
    return float(normalized_mutual_info_score(*pair, average_method="geometric"))


def adjusted_rand_index(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Rand index adjusted for chance: 1 for equal clusterings, 0 on average for random ones.

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
    powermeans.criteria.weighted_rand_index : Of points that count as copies.

    Examples
    --------
    >>> from powermeans.metrics import adjusted_rand_index
    >>> round(adjusted_rand_index([0, 0, 1, 1], [1, 1, 0, 2]), 4)
    0.5714
    """
    # Imported when used: it takes longer than the rest of the package together.
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(on_host(labels_true), on_host(labels_pred)))


def centroid_index(centers_a: ArrayLike, centers_b: ArrayLike) -> int:
    """How many centers sit in the wrong place (Fränti, Rezaei & Zhao 2014).

    Each center of one set goes to the nearest of the other; those to which none goes are orphans.
    The index is the larger number of orphans of the two directions.

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
    sq_dist = squared_euclidean.pairwise(_as_centers(centers_a), _as_centers(centers_b))
    return max(
        len(targets) - len(np.unique(nearest))
        for targets, nearest in (
            (sq_dist.T, np.argmin(sq_dist, axis=1)),
            (sq_dist, np.argmin(sq_dist, axis=0)),
        )
    )


def quality_ratio(
    points: Points | SparsePoints,
    centers: FloatArray,
    reference_centers: FloatArray,
    *,
    form: Literal["squared", "unsquared"] = "squared",
    sample_weight: FloatArray | None = None,
) -> float:
    """Root of the ratio of the error of the centers to that of reference centers.

    The tables of Xu & Lange 2019 come out with the unsquared form.

    Parameters
    ----------
    points : (n_points, n_features)
        Dense or CSR.
    centers : (n_centers, n_features)
    reference_centers : (n_reference_centers, n_features)
    form : {"squared", "unsquared"}
        What is added over the points: squared distances to the nearest center, or distances.
    sample_weight : (n_points,), optional

    Returns
    -------
    float
        1 where the two are equally good, more where the centers are worse; infinite if only the
        reference has no error.

    See Also
    --------
    centroid_index : How many centers are misplaced.
    powermeans.power_mean.objective : The error itself, at the power -inf.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans.metrics import quality_ratio
    >>> points = np.array([[0.0], [2.0], [10.0], [12.0]])
    >>> best, worse = np.array([[1.0], [11.0]]), np.array([[2.0], [10.0]])
    >>> round(quality_ratio(points, worse, best), 4)  # sqrt(8 / 4)
    1.4142
    """
    if form not in ("squared", "unsquared"):
        raise ValueError(f'form={form!r} is unknown: pass "squared" or "unsquared"')
    exponent = 1.0 if form == "squared" else 0.5
    error = _error(points, centers, exponent, sample_weight)
    reference_error = _error(points, reference_centers, exponent, sample_weight)
    if reference_error == 0:
        return 1.0 if error == 0 else math.inf
    return math.sqrt(error / reference_error)


def _dense_labels(labels: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Labels counted from zero, and how often each occurs."""
    _, dense, counts = np.unique(on_host(labels), return_inverse=True, return_counts=True)
    return dense.ravel(), counts


def _as_centers(centers: ArrayLike) -> FloatArray:
    return np.asarray(on_host(centers), dtype=np.float64)


def _error(
    points: Points | SparsePoints,
    centers: FloatArray,
    exponent: float,
    sample_weight: FloatArray | None,
) -> float:
    """Sum over the points of the squared distance to the nearest center, to the exponent."""
    total = 0.0
    for rows, sq_dist in squared_euclidean.in_chunks(points, centers):
        nearest = sq_dist.min(axis=1) ** exponent
        total += float(nearest.sum() if sample_weight is None else sample_weight[rows] @ nearest)
    return total
