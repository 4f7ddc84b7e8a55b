"""Power k-means that leaves out the farthest points."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval

from powermeans import divergences
from powermeans.engine.anneal import Result, Stage
from powermeans.engine.fit import Callback, Fit
from powermeans.engine.history import Spent
from powermeans.engine.stopping import StopRule
from powermeans.errors import ArgumentError
from powermeans.mathematics.rules import Rule
from powermeans.methods.base import CenterEstimator
from powermeans.methods.power_kmeans import (
    PowerKMeans,
    annealing_attributes,
    as_power_kmeans,
    searched,
)
from powermeans.methods.robust.trimmed import TrimmedPoints
from powermeans.points.compiled import CompiledPoints
from powermeans.points.given import Given
from powermeans.points.needs import Measure, Needs
from powermeans.points.opening import (
    rows_for,
)
from powermeans.points.protocol import Points
from powermeans.types import FloatArray

# Sums of weights that differ by no more than this share count as equal.
_ROUNDING = 1e-12


class RobustPowerKMeans(CenterEstimator):
    """Power k-means for data with outliers: it leaves out the points farthest from all centers.

    It lowers the inertia of the best ``1 - trim`` of the weight (trimmed k-means, Cuesta-Albertos,
    Gordaliza & Matrán 1997) with the annealing and the search of `PowerKMeans`, which starts from
    centers of all points too. Before each sweep, it leaves out the points farthest from their
    nearest center, up to the share `trim` of the total weight. Once the weights are hard, no sweep
    raises this inertia. `score` leaves out the same share of the weight of its points.

    Use it when some points belong to no cluster, with `trim` at least their share. Without outliers
    the result is close to that of `PowerKMeans` if each cluster has more than `trim` of the weight:
    a smaller cluster can be left out completely, and a clump of outliers larger than that counts as
    a cluster. A sweep takes two to four times as long.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of centers.
    trim : float, default=0.1
        Share of the total weight to leave out, at least zero and less than one.
    divergence : str or Bregman, default="squared_euclidean"
        As in `PowerKMeans`, except "manhattan" and a learned Mahalanobis distance.
    init, power, schedule, polish, effort, stop, n_init, max_iter, tol
        As in `PowerKMeans`.
    missing, random_state, n_threads, callback, verbose
        As in `PowerKMeans`.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Label of the nearest center of every point, including those left out.
    outliers_ : ndarray of shape (n_samples,)
        True for the points left out, which are farther than `radius_` from all centers. Together
        they have at most the share `trim` of the total weight.
    radius_ : float
        Largest distance of a point that is not left out from its nearest center, in the unit of
        `transform`; infinite if no point is left out.
    inertia_ : float
        Weighted sum of the squared distances of the other points to the nearest center. The
        farthest of them, at `radius_`, may count partly.
    history_ : recarray
        As in `PowerKMeans`; objective and inertia are those of the points not left out.
    cluster_centers_, n_iter_, power_, critical_power_, n_relocated_, n_separated_, spent_
        As in `PowerKMeans`.
    n_features_in_, feature_names_in_
        As in `PowerKMeans`.

    See Also
    --------
    PowerKMeans : The same method with all points.

    References
    ----------
    J. A. Cuesta-Albertos, A. Gordaliza, C. Matrán: Trimmed k-means: an attempt to robustify
    quantizers. Annals of Statistics 25, 1997.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans import RobustPowerKMeans
    >>> X = np.array([[0.0], [1.0], [2.0], [9.0], [10.0], [11.0], [500.0]])
    >>> model = RobustPowerKMeans(n_clusters=2, trim=0.15, random_state=0).fit(X)
    >>> np.sort(model.cluster_centers_.ravel()).round(1)
    array([ 1., 10.])
    >>> model.outliers_
    array([False, False, False, False, False, False,  True])
    """

    _state = """power_: number critical_power_: number n_separated_: count spent_: Spent
        outliers_: flag[n] radius_: number"""

    _advice = "raise max_iter or tol, or the factor of the schedule"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PowerKMeans._parameter_constraints,
        "n_clusters": CenterEstimator._parameter_constraints["n_clusters"],
        "trim": [Interval(Real, 0, 1, closed="left")],
    }

    outliers_: NDArray[np.bool_]
    radius_: float
    spent_: Spent
    power_: float
    critical_power_: float
    n_separated_: int

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        trim: float = 0.1,
        init: str | ArrayLike | Callable[..., ArrayLike] = "k-means++",
        n_init: int | Literal["auto"] = 1,
        power: float | Literal["auto"] = "auto",
        schedule: float | Iterable[float | Rule] | Literal["auto"] = "auto",
        effort: Literal["none", "fast", "balanced", "thorough"] = "balanced",
        polish: bool = True,
        divergence: str | divergences.Divergence = "squared_euclidean",
        missing: Literal["error", "observed"] = "error",
        max_iter: int = 300,
        tol: float = 1e-6,
        stop: StopRule | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
        callback: Callback | Literal["progress"] | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.trim = trim
        self.init = init
        self.n_init = n_init
        self.power = power
        self.schedule = schedule
        self.effort = effort
        self.polish = polish
        self.divergence = divergence
        self.missing = missing
        self.max_iter = max_iter
        self.tol = tol
        self.stop = stop
        self.random_state = random_state
        self.n_threads = n_threads
        self.callback = callback
        self.verbose = verbose

    def _needs(self) -> Needs:
        if (reason := divergences.resolve(self.divergence).needs_all_points) is not None:
            raise ArgumentError(
                reason, "pass another divergence", argument="divergence", value=self.divergence
            )
        opener = functools.partial(_open_trimmed, trim=self.trim)
        needs = as_power_kmeans(self)._needs().measured(takes_narrow=False, opener=opener)
        reason = "which points are left out is decided by all of them"
        needs = needs.refusing(parts=reason, tensors=reason)
        return replace(needs, name=type(self).__name__, estimator=self)

    def _stages(self, points: Points, fit: Fit) -> list[Stage]:
        n_kept = _most_kept(points.given, self.trim)
        if n_kept < self.n_clusters:
            raise ValueError(
                f"of n_samples={points.n_points} trim={self.trim} leaves at most {n_kept} "
                f"with a weight for n_clusters={self.n_clusters}: pass a smaller trim, fewer "
                "clusters or more points"
            )
        return as_power_kmeans(self)._stages(points, fit)

    def _fit(self, points: Points, fit: Fit) -> Result:
        if self._draws_centers():
            fit.seeds.after_first = self._centers_of_all(points.given, fit)
        return as_power_kmeans(self)._fit(points, fit)

    def _centers_of_all(self, given: Given, fit: Fit) -> Iterator[FloatArray]:
        """Yield centers that a search finds for all points.

        A cluster that is left out adds no error, so a search among the points that are kept may
        never put a center there.
        """
        points, weights = given.array, given.weights
        counts = np.ones(points.shape[0]) if weights is None else weights
        n_most = min(self.n_clusters + 1, int(np.count_nonzero(counts)))
        for n_clusters in range(self.n_clusters, n_most + 1):
            model = searched(
                points,
                weights,
                n_clusters,
                effort="fast",
                rng=fit.rng,
                n_threads=self.n_threads,
                seconds_left=fit.seconds_left(),
                divergence=self.divergence,
                missing=self.missing,
            )
            sizes = np.bincount(model.labels_, counts, minlength=n_clusters)
            largest = np.argsort(-sizes, kind="stable")[: self.n_clusters]
            yield model.cluster_centers_[largest].astype(np.float64)

    def _attributes(self, points: Points, fit: Fit, result: Result) -> Result:
        result = super()._attributes(points, fit, result)
        assert isinstance(points, TrimmedPoints)
        outliers, limit = points.left_out(result.centers.astype(np.float64))
        is_squared = fit.divergence.is_squared
        return result.with_attributes(
            outliers_=outliers,
            radius_=math.sqrt(limit) if is_squared else limit,
            **annealing_attributes(fit),
        )


def _open_trimmed(
    points: Any, weights: FloatArray | None, measure: Measure, *, trim: float
) -> Points:
    """Return rows that leave out a share of the weight; by default each point weighs one."""
    weights = np.ones(points.shape[0]) if weights is None else weights
    rows = rows_for(replace(measure, opener=None), points, weights)
    assert isinstance(rows, CompiledPoints), "weights change between sweeps"
    return TrimmedPoints(rows, weights, trim)


def _most_kept(given: Given, trim: float) -> int:
    """Return the largest number of points within the kept weight, one of them in part."""
    weights = np.ones(given.array.shape[0]) if given.weights is None else given.weights
    lightest_first = np.sort(weights[weights > 0] / weights.max())
    kept = (1 - trim) * lightest_first.sum()
    return 1 + int(np.searchsorted(np.cumsum(lightest_first), kept * (1 - _ROUNDING)))
