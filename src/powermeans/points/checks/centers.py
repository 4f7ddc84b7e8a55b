"""Initial centers, and the centers of a fitted estimator."""

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from powermeans.mathematics.arguments import real_numbers
from powermeans.points.checks.points import check_points
from powermeans.types import FloatArray, SparseMatrix


def check_init(init: ArrayLike | SparseMatrix, n_clusters: int, n_features: int) -> FloatArray:
    """Return initial centers as a new float64 array of shape (n_clusters, n_features)."""
    given = init.toarray() if sparse.issparse(init) else init
    centers = np.array(real_numbers(given, "init"), order="C")
    if centers.ndim != 2:
        raise ValueError(
            f"init has the shape {centers.shape}: "
            f'pass {n_clusters} rows of {n_features} numbers or init="k-means++"'
        )
    if len(centers) != n_clusters:
        raise ValueError(
            f"The shape of the initial centers {centers.shape} does not match the number of "
            f"clusters {n_clusters}. init has {len(centers)} rows but n_clusters={n_clusters}: "
            f'pass {n_clusters} rows or init="k-means++"'
        )
    if centers.shape[1] != n_features:
        raise ValueError(
            f"The shape of the initial centers {centers.shape} does not match the number of "
            f"features of the data {n_features}. init has {centers.shape[1]} columns but X has "
            f'{n_features}: pass {n_features} columns or init="k-means++"'
        )
    check_points(centers, name="init")
    return centers


def check_centers(centers: ArrayLike, n_features: int) -> FloatArray:
    """Return the centers of a fitted estimator as float64; the user may have assigned others."""
    checked = real_numbers(centers, "cluster_centers_")
    if checked.ndim != 2 or checked.shape[1] != n_features or len(checked) == 0:
        raise ValueError(
            f"cluster_centers_ has the shape {checked.shape}: assign one row of {n_features} "
            "numbers for each center, as X has features"
        )
    check_points(checked, name="cluster_centers_")
    return checked
