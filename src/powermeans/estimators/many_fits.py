"""`fit_many`: k-means of many small data sets in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, validate_parameter_constraints

from powermeans.errors import ArgumentError
from powermeans.inputs.numbers import real_numbers
from powermeans.inputs.points import check_points, wanted_dtype
from powermeans.inputs.weights import check_sample_weight
from powermeans.rows import native
from powermeans.seeds.choose import n_greedy_candidates
from powermeans.types import FloatArray, IndexArray, Labels, Points


@dataclass(frozen=True, slots=True)
class ManyFits:
    """The outcome of `fit_many`.

    Attributes
    ----------
    cluster_centers : ndarray of shape (n_problems, n_clusters, n_features)
        The centers of each problem, in the dtype of the points.
    labels : ndarray of shape (n_problems, n_samples) or list of ndarrays of shape (n_samples,)
        Label of the nearest center of each point: an array if the problems were one, else a list.
    inertia : ndarray of shape (n_problems,)
        Weighted sum of squared distances to the nearest center, of each problem.
    n_iter : ndarray of shape (n_problems,)
        Number of sweeps of the best run of each problem.

    See Also
    --------
    fit_many : Returns it.

    Examples
    --------
    >>> from powermeans import fit_many
    >>> fits = fit_many([[[0.0], [2.0]], [[5.0], [9.0], [10.0]]], 1, random_state=0)
    >>> fits.inertia
    array([ 2., 14.])
    """

    cluster_centers: Points
    labels: Labels | list[Labels]
    inertia: FloatArray
    n_iter: IndexArray


def fit_many(
    problems: ArrayLike | Sequence[ArrayLike],
    n_clusters: int = 8,
    *,
    sample_weight: ArrayLike | Sequence[ArrayLike | None] | None = None,
    n_init: int = 1,
    max_iter: int = 300,
    tol: float = 1e-4,
    random_state: int | np.random.RandomState | None = None,
    n_threads: int | None = None,
) -> ManyFits:
    """Cluster many small data sets by Lloyd's algorithm in one call.

    It does for each problem what `KMeans` does, from seeds by greedy k-means++ to the relocation of
    empty clusters, without the Python code around each fit and each sweep. Threads share the
    problems, and their number does not change the results.

    Parameters
    ----------
    problems : array-like of shape (n_problems, n_samples, n_features) or sequence of array-likes
        The points of each problem, finite. Arrays of a sequence have the shape (n_samples,
        n_features), and may differ in the number of samples.
    n_clusters : int, default=8
        Number of centers of each problem.
    sample_weight : array-like of shape (n_problems, n_samples) or sequence, optional
        Nonnegative weights for each problem. In a sequence, None stands for equal weights.
    n_init : int, default=1
        Number of runs of each problem; the one with the lowest inertia is kept.
    max_iter : int, default=300
        Largest number of sweeps of a run.
    tol : float, default=1e-4
        A run ends when the sum of the squared center shifts is at most `tol` times the mean
        variance of the features of its problem, or when no center moves.
    random_state : int, RandomState instance or None, default=None
        Seed of the initial centers. An int makes the result reproducible.
    n_threads : int, optional
        Number of problems to solve at the same time; by default, as in a fit.

    Returns
    -------
    ManyFits
        Centers, labels, inertia and number of sweeps of each problem.

    See Also
    --------
    KMeans : Clusters one data set, on all threads.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans import fit_many
    >>> low = np.array([[1.0, 2.0], [1.0, 4.0], [9.0, 2.0], [9.0, 4.0]])
    >>> fits = fit_many([low, low + 100], n_clusters=2, random_state=0)
    >>> np.sort(fits.cluster_centers, axis=1)
    array([[[  1.,   3.],
            [  9.,   3.]],
    <BLANKLINE>
           [[101., 103.],
            [109., 103.]]])
    >>> fits.inertia
    array([4., 4.])
    """
    _check_parameters(locals())
    points = _admitted(problems, n_clusters)
    weights = _weights(sample_weight, points)
    return fit_admitted(
        points,
        weights,
        _empty_labels(problems, points),
        n_clusters=n_clusters,
        n_init=n_init,
        max_iter=max_iter,
        tol=tol,
        rng=check_random_state(random_state),
        n_threads=n_threads,
    )


def fit_admitted(
    points: list[Points],
    weights: list[FloatArray | None],
    labels: Labels | list[Labels],
    *,
    n_clusters: int,
    n_init: int = 1,
    max_iter: int,
    tol: float,
    rng: np.random.RandomState,
    n_threads: int | None,
) -> ManyFits:
    """Fit problems that were checked, and fill the labels."""
    n_problems, n_features = len(points), points[0].shape[1]
    n_uniforms = 1 + (n_clusters - 1) * n_greedy_candidates(n_clusters)
    centers = np.empty((n_problems, n_clusters, n_features))
    inertia, n_iter = native.fit_many(
        points,
        weights,
        rng.uniform(size=(n_problems, n_init, n_uniforms)),
        max_iter=max_iter,
        tol=float(tol),
        labels=list(labels),
        centers=centers,
        n_threads=n_threads,
    )
    stored: Points = centers if points[0].dtype == np.float64 else centers.astype(np.float32)
    return ManyFits(stored, labels, inertia, n_iter)


def _check_parameters(arguments: dict[str, Any]) -> None:
    constraints: dict[str, list[Any]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    }
    given = {name: arguments[name] for name in constraints}
    validate_parameter_constraints(constraints, given, caller_name="fit_many")


def _admitted(problems: Any, n_clusters: int) -> list[Points]:
    """Return checked points of each problem, all of one dtype and in C order."""
    if not len(problems):
        raise ArgumentError("problems holds no problem", "pass at least one array of points")
    arrays = [_array(points, f"problems[{i}]") for i, points in enumerate(problems)]
    is_narrow = all(points.dtype == np.float32 for points in arrays)
    dtype = np.float32 if is_narrow else np.float64
    admitted = [np.require(points, dtype, requirements=["C", "A"]) for points in arrays]
    for i, points in enumerate(admitted):
        _check_shape(points, i, n_clusters, admitted[0].shape[1])
        check_points(points, name=f"problems[{i}]", must_differ=True)
    return admitted


def _array(values: Any, name: str) -> NDArray[Any]:
    """Return points of one problem as an array of real numbers of two dimensions."""
    if sparse.issparse(values):
        raise ArgumentError(f"{name} is sparse", "fit_many takes dense points, so pass .toarray()")
    is_narrow = wanted_dtype(values) is np.float32
    points = np.asarray(values, np.float32) if is_narrow else real_numbers(values, name)
    if points.ndim != 2:
        raise ArgumentError(
            f"{name} has the shape {points.shape}",
            "pass a list of arrays of shape (n_samples, n_features), or one array of three "
            "dimensions",
        )
    return points


def _check_shape(points: Points, number: int, n_clusters: int, n_features: int) -> None:
    def refuse(what: str, way_out: str) -> NoReturn:
        raise ArgumentError(f"problems[{number}] has {what}", way_out)

    if len(points) < n_clusters:
        refuse(
            f"{len(points)} rows, fewer than n_clusters={n_clusters}",
            "leave it out, or ask for fewer clusters",
        )
    if points.shape[1] != n_features:
        refuse(
            f"{points.shape[1]} features, but problems[0] has {n_features}",
            "fit problems of other widths in another call",
        )
    if not n_features:
        refuse("no features", "pass at least one column")


def _weights(sample_weight: Any, points: list[Points]) -> list[FloatArray | None]:
    if sample_weight is None:
        return [None] * len(points)
    if len(sample_weight) != len(points):
        raise ArgumentError(
            f"sample_weight has {len(sample_weight)} entries for {len(points)} problems",
            "pass weights, or None, for each problem",
        )
    return [
        check_sample_weight(weights, len(rows), f"sample_weight[{i}]")
        for i, (weights, rows) in enumerate(zip(sample_weight, points, strict=True))
    ]


def _empty_labels(problems: Any, points: list[Points]) -> Labels | list[Labels]:
    """Return an array of labels for an array of problems, else one for each problem."""
    if isinstance(problems, np.ndarray) and problems.ndim == 3:
        return np.empty(problems.shape[:2], dtype=np.int32)
    return [np.empty(len(rows), dtype=np.int32) for rows in points]
