"""Functions with the names and signatures of scikit-learn, and `critical_power`."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, validate_parameter_constraints

from powermeans.engine.fit import random_numbers
from powermeans.engine.seeds.choose import choose_seeds, n_greedy_candidates
from powermeans.mathematics.critical_power import critical_power as critical_power_of
from powermeans.methods.kmeans import KMeans
from powermeans.points.needs import FitNeeds, Needs
from powermeans.points.opening import MatrixLike, admit_array, rows_of
from powermeans.system.containers import like_given
from powermeans.types import IndexArray, Labels, Matrix


def k_means(
    X: MatrixLike,
    n_clusters: int,
    *,
    sample_weight: ArrayLike | None = None,
    init: str | ArrayLike | Callable[..., ArrayLike] = "k-means++",
    n_init: int | Literal["auto"] = "auto",
    max_iter: int = 300,
    verbose: bool = False,
    tol: float = 1e-4,
    random_state: int | np.random.RandomState | None = None,
    copy_x: bool = True,
    algorithm: Literal["lloyd", "elkan", "auto"] = "lloyd",
    return_n_iter: bool = False,
) -> tuple[Matrix, Labels, float] | tuple[Matrix, Labels, float, int]:
    """Find centers by Lloyd's algorithm, as `KMeans` does.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The points.
    sample_weight : array-like of shape (n_samples,), optional
        Nonnegative.
    n_clusters, init, n_init, max_iter, verbose, tol, random_state, copy_x, algorithm
        As in `KMeans`.
    return_n_iter : bool, default=False
        Whether to return the number of sweeps too.

    Returns
    -------
    centers : ndarray of shape (n_clusters, n_features)
    labels : ndarray of shape (n_samples,)
    inertia : float
    n_iter : int
        Only with `return_n_iter`.

    See Also
    --------
    KMeans : The estimator, which can predict.
    PowerKMeans : Finds lower sums of squares.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans import k_means
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> centers, labels, inertia = k_means(X, 2, random_state=0)
    >>> inertia
    16.0
    """
    estimator = KMeans(
        n_clusters,
        init=init,
        n_init=n_init,
        max_iter=max_iter,
        verbose=verbose,
        tol=tol,
        random_state=random_state,
        copy_x=copy_x,
        algorithm=algorithm,
    ).fit(X, sample_weight=sample_weight)
    found = estimator.cluster_centers_, estimator.labels_, estimator.inertia_
    return (*found, estimator.n_iter_) if return_n_iter else found


def kmeans_plusplus(
    X: MatrixLike,
    n_clusters: int,
    *,
    sample_weight: ArrayLike | None = None,
    x_squared_norms: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_local_trials: int | None = None,
    exponent: float = 2.0,
) -> tuple[Matrix, IndexArray]:
    """Choose points as initial centers by k-means++.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The points.
    n_clusters : int
        Number of points to choose.
    sample_weight : array-like of shape (n_samples,), optional
        Nonnegative; a point without weight is not chosen.
    x_squared_norms : array-like of shape (n_samples,), optional
        Accepted for compatibility with scikit-learn; not needed.
    random_state : int, RandomState instance or None, default=None
        An int makes the choice reproducible.
    n_local_trials : int, optional
        Number of candidates for each center after the first, of which the one that leaves the least
        inertia is chosen. None is 2 + floor(ln n_clusters). One is plain k-means++. Eight or more
        candidates for very many points are compared on a sample.
    exponent : float, default=2.0
        A point is drawn with probability proportional to its weight times this power of its
        distance to the nearest center so far. One gives the seeds of the power k-means paper.

    Returns
    -------
    centers : ndarray of shape (n_clusters, n_features)
        The chosen points, ``X[indices]``.
    indices : ndarray of shape (n_clusters,)
        Their indices.

    See Also
    --------
    KMeans : Starts from such points.
    moment_estimates : Estimates means of overlapping Gaussians, without randomness.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans import kmeans_plusplus
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> centers, indices = kmeans_plusplus(X, 2, random_state=0)
    >>> bool((X[indices] == centers).all())
    True
    """
    constraints = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "n_local_trials": [Interval(Integral, 1, None, closed="left"), None],
        "exponent": [Interval(Real, 0, None, closed="neither")],
    }
    given = locals()
    validate_parameter_constraints(
        constraints, {name: given[name] for name in constraints}, caller_name="kmeans_plusplus"
    )
    needs = Needs(name="kmeans_plusplus", fit=FitNeeds(n_points=n_clusters))
    data = admit_array(X, sample_weight, needs)
    n_points = data.points.shape[0]
    if x_squared_norms is not None and len(np.asarray(x_squared_norms)) != n_points:
        raise ValueError(
            f"The length of x_squared_norms {len(np.asarray(x_squared_norms))} should be equal to "
            f"the length of n_samples {n_points}: leave it out, it is not needed"
        )
    centers, indices = choose_seeds(
        rows_of(data, needs.measure),
        n_clusters,
        random_numbers(random_state),
        n_candidates=n_local_trials or n_greedy_candidates(n_clusters),
        exponent=exponent,
    )
    return like_given(X, centers.astype(data.points.dtype), of="centers"), indices


def critical_power(
    X: MatrixLike,
    *,
    sample_weight: ArrayLike | None = None,
    random_state: int | np.random.Generator | None = 0,
) -> float:
    """Return the power above which all centers of power k-means collapse to the mean.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The points.
    sample_weight : array-like of shape (n_samples,), optional
        Nonnegative.
    random_state : int, Generator or None, default=0
        Seed of the sample that is drawn if there are many points.

    Returns
    -------
    float
        About 1 - d/2 for data that vary equally in all d directions, and at most 1/2.

    See Also
    --------
    PowerKMeans : Starts below it, at twice this power minus one.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans import critical_power
    >>> corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    >>> round(critical_power(corners), 6)
    -0.5
    """
    seed = [Interval(Integral, 0, None, closed="left"), np.random.Generator, None]
    given = {"random_state": random_state}
    validate_parameter_constraints({"random_state": seed}, given, "critical_power")
    needs = Needs(name="critical_power", fit=FitNeeds(must_differ=True))
    data = admit_array(X, sample_weight, needs)
    return critical_power_of(data.points, data.weights, random_state=random_state)
