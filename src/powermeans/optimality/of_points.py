"""`optimality_gap`: how far centers are from the optimum at most."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, validate_parameter_constraints
from sklearn.utils.validation import check_is_fitted

from powermeans.optimality.gap import OptimalityGap
from powermeans.optimality.proof import Clustering, Effort, prove
from powermeans.points.checks.centers import check_centers
from powermeans.points.checks.points import divide_by_power_of_two
from powermeans.points.given import Given
from powermeans.points.needs import Measure, Needs
from powermeans.points.opening import MatrixLike, open_points, open_rows
from powermeans.system.containers import is_dask, to_array
from powermeans.system.threads import effective_n_threads
from powermeans.types import FloatArray

# Nobody notices these seconds, in which bounds of more values or clusters get nowhere. What they
# prove is told where it says something: the optimum is at most this share below.
_MOMENT = 0.2
_MOST_VALUES_IN_A_MOMENT, _MOST_CLUSTERS_IN_A_MOMENT = 2**16, 50
_WORTH_TELLING = 0.1


def optimality_gap(
    X: MatrixLike,
    centers_or_model: Any,
    *,
    sample_weight: ArrayLike | None = None,
    max_seconds: float = 10.0,
    confidence: float | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_threads: int | None = None,
    callback: Callable[[OptimalityGap], object] | None = None,
) -> OptimalityGap:
    """Bound how far centers are from the lowest inertia of as many centers.

    It searches for a lower bound on the inertia of every clustering. The bound holds whenever the
    search ends, and Ctrl-C ends it early. A gap may also be due to the bound: centers with a gap of
    2 % may well be optimal.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The points. Up to 600 are processed at once (more for many centers, and up to 20 000 in two
        features); more are divided into subsets that resemble all points, whose bounds add up.
    centers_or_model : array-like of shape (n_clusters, n_features) or fitted estimator
        Centers, or an estimator with `cluster_centers_`, including scikit-learn's. It must compare
        points by squared Euclidean distances. There may be up to 500 centers, and more if their
        clusters lie so far apart that this alone proves them optimal.
    sample_weight : array-like of shape (n_samples,), optional
        Nonnegative, as in the fit. A weight of three counts like three copies of the point.
    max_seconds : float, default=10
        The search ends after about this many seconds, or when nothing is left to gain.
    confidence : float, optional
        A probability such as 0.99. If there are too many subsets to search them all, the bound may
        rest on a random sample of subsets, and is valid with this probability. By default it is
        certain.
    random_state : int, RandomState instance or None, default=None
        Seed of the division into subsets and of the sample.
    n_threads : int, optional
        Number of subsets to process at the same time; by default, as in a fit.
    callback : callable, optional
        Called a few times a second with what is proved so far; returning True ends the search.

    Returns
    -------
    OptimalityGap
        Printing it gives a sentence.

    See Also
    --------
    PowerKMeans : Its search finds centers that often prove to be optimal.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans import KMeans, optimality_gap
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> print(optimality_gap(X, KMeans(2, random_state=0).fit(X)))
    inertia 16, proved to be optimal
    """
    _check_parameters(max_seconds, confidence, random_state)
    needs = _needs(centers_or_model)
    data = open_points(X, sample_weight, needs).given
    given = getattr(centers_or_model, "cluster_centers_", centers_or_model)
    centers = check_centers(to_array(given), data.array.shape[1])
    clustering, exponent = _clustering(data, centers, n_threads)
    tell = None if callback is None else lambda found: callback(_in_unit(found, exponent))
    seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    effort = Effort(max_seconds, confidence, seed, effective_n_threads(n_threads), tell)
    return _in_unit(prove(clustering, effort), exponent)


def gap_in_a_moment(
    model: Any, X: MatrixLike, sample_weight: ArrayLike | None = None
) -> OptimalityGap | None:
    """Return how far a fit is from the optimum if a moment proves that it is near, else None.

    These must be the points and weights of the fit.
    """
    is_judged = getattr(model, "_lowers_inertia", False) and hasattr(model, "inertia_")
    if not is_judged or not model._fitted_needs().measure.is_plain:
        return None
    is_small = _is_small(X) and len(model.cluster_centers_) <= _MOST_CLUSTERS_IN_A_MOMENT
    if not (is_small or getattr(model, "is_optimal_", False)):
        return None
    options: dict[str, Any] = {"max_seconds": _MOMENT, "random_state": 0}
    options["n_threads"] = model.n_threads
    found = optimality_gap(X, model, sample_weight=sample_weight, **options)
    is_same = math.isclose(found.inertia, model.inertia_, rel_tol=1e-5)
    return found if is_same and found.gap <= _WORTH_TELLING else None


def _is_small(X: Any) -> bool:
    if is_dask(X):
        return False
    is_table = isinstance(X, np.ndarray | list) or sparse.issparse(X) or hasattr(X, "iloc")
    shape = np.shape(X) if isinstance(X, list) else getattr(X, "shape", ())
    return is_table and math.prod(shape) <= _MOST_VALUES_IN_A_MOMENT


def _check_parameters(max_seconds: Any, confidence: Any, random_state: Any) -> None:
    constraints: dict[str, list[Any]] = {
        "max_seconds": [Interval(Real, 0, None, closed="neither")],
        "confidence": [Interval(Real, 0, 1, closed="neither"), None],
        "random_state": ["random_state"],
    }
    given = dict(zip(constraints, (max_seconds, confidence, random_state), strict=True))
    validate_parameter_constraints(constraints, given, caller_name="optimality_gap")


def _needs(centers_or_model: Any) -> Needs:
    """Return what is asked of the points; raise where centers are judged by other distances."""
    if hasattr(centers_or_model, "fit"):
        check_is_fitted(centers_or_model)
    fitted_spec = getattr(centers_or_model, "_fitted_needs", None)
    needs = Needs(name="optimality_gap") if fitted_spec is None else fitted_spec()
    if not needs.measure.is_plain or not _has_centers(centers_or_model):
        problem, way_out = _why_not_judged(needs.measure)
        raise ValueError(
            "optimality_gap is for squared Euclidean distances between centers and whole rows, and "
            f"{type(centers_or_model).__name__} {problem}: {way_out}"
        )

    return needs.refusing(
        parts="optimality_gap divides the points into subsets as it needs them",
        tensors="optimality_gap works only on arrays",
    )


def _why_not_judged(measure: Measure) -> tuple[str, str]:
    if measure.has_missing:
        return 'has missing="observed"', "fit rows without gaps, or fill the gaps in"
    if not measure.divergence.is_squared:
        return f"has divergence={measure.divergence!r}", "fit without a divergence"
    return "has others, or no centers", "pass KMeans, PowerKMeans, or an array of centers"


def _has_centers(centers_or_model: Any) -> bool:
    return hasattr(centers_or_model, "cluster_centers_") or not hasattr(centers_or_model, "fit")


def _clustering(data: Given, centers: FloatArray, n_threads: int | None) -> tuple[Clustering, int]:
    """Return the points of positive weight, and the power of two of the unit of inertia."""
    of_length = math.frexp(max(data.largest, float(np.abs(centers).max())))[1]
    if abs(of_length) <= 100:
        of_length = 0  # no other unit is needed
    points = divide_by_power_of_two(data.array, of_length)
    centers = np.ldexp(centers, -of_length)
    weights, of_weight = np.ones(points.shape[0]), 0
    if data.weights is not None:
        of_weight = math.frexp(float(data.weights.max()))[1]
        is_used = data.weights > 0
        points, weights = points[is_used], np.ldexp(data.weights[is_used], -of_weight)
    labels, _ = open_rows(points, n_threads=n_threads).assign(centers)
    return Clustering(points, weights, centers, labels), 2 * of_length + of_weight


def _in_unit(found: OptimalityGap, exponent: int) -> OptimalityGap:
    """Return a result in the unit of the user's points and weights."""
    return replace(
        found,
        inertia=math.ldexp(found.inertia, exponent),
        bound=math.ldexp(found.bound, exponent),
        history=tuple((seconds, math.ldexp(bound, exponent)) for seconds, bound in found.history),
    )
