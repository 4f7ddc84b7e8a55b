"""DP-means (Kulis & Jordan 2012): k-means with a price for each center."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints

from powermeans.engine.anneal import Result, Stage, anneal
from powermeans.engine.fit import Callback, Fit
from powermeans.engine.search.effort import EFFORTS
from powermeans.engine.search.over_k import Steps, search_over_k
from powermeans.engine.search.state import Search, SearchStopped
from powermeans.engine.seeds.choose import choose_seeds, n_greedy_candidates, order_by_place
from powermeans.engine.spread import rounding_inertia, tolerance_by_weight
from powermeans.engine.stopping import CentersSettled, StopRule, either
from powermeans.engine.updates import RelocateEmpty, Sweep
from powermeans.errors import warn_caller
from powermeans.mathematics.schedules import Fixed
from powermeans.mathematics.sums import Sums
from powermeans.methods.base import CenterEstimator
from powermeans.methods.power_kmeans import PowerKMeans
from powermeans.points.needs import FitNeeds, Measure, Needs
from powermeans.points.opening import MatrixLike, admit_array, rows_of
from powermeans.points.protocol import Points
from powermeans.types import FloatArray, IndexArray

_AS_IN_POWER_K_MEANS = (
    *("effort", "missing", "stop", "max_iter", "tol"),
    *("random_state", "n_threads", "callback", "verbose"),
)


class DPMeans(CenterEstimator):
    """DP-means: k-means that finds the number of clusters, at a price for each.

    It lowers ``inertia + penalty * k`` over the centers and their number k. This is the limit of
    inference in a Dirichlet process mixture as the variance of its components vanishes.

    The algorithm of the paper starts with one center, the mean. Before each Lloyd sweep, points
    whose squared distance to every center exceeds the penalty open clusters, the farthest first,
    and a center is dropped if the inertia would rise by less than the penalty without it. No step
    raises the objective. A point with a weight below one opens a cluster only if that, together
    with all the points that join it, lowers the objective.

    A cluster whose points are all nearer than the penalty is never divided in this way, even if
    that would pay. So a search follows, which opens and closes clusters as long as the objective
    falls, and searches for lower inertia as `PowerKMeans` does. It never ends above the paper's
    algorithm. The order of the points does not matter, and a weight equals copies.

    Use it when you know what a cluster is worth. More points in the same places ask for more
    clusters at the same penalty, since each adds to the inertia. The radius of a cluster is at most
    the square root of the penalty if its points have weights of at least one, so elongated clusters
    are cut into pieces.

    Parameters
    ----------
    penalty : float or "auto", default="auto"
        Price of a center, a squared distance above zero. "auto" derives it from
        `n_clusters_wanted`, between what one center more would save and what one less would cost;
        without a search it is that of `penalty_for`.
    n_clusters_wanted : int, default=8
        Approximate number of clusters for "auto"; unused if `penalty` is a number.
    effort : {"none", "fast", "balanced", "thorough"}, default="balanced"
        How much to search for a lower objective, as in `PowerKMeans`. With "none" there is only the
        paper's algorithm, in which nothing is random.
    missing : {"error", "observed"}, default="error"
        Meaning of NaN: an error, or a missing entry. With "observed", the penalty is compared with
        sums over the observed entries, so that rows with few of them hardly open a cluster.
    stop, max_iter, tol, random_state, n_threads, callback, verbose
        As in `PowerKMeans`.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters_, n_features)
        The centers, in the dtype of the points.
    n_clusters_ : int
        Number of clusters found.
    penalty_ : float
        Price of a center.
    objective_ : float
        ``inertia_ + penalty_ * n_clusters_``.
    history_ : recarray
        One record for each sweep, one descent after another; `objective` includes the price of the
        centers, but not while the search derives it.
    labels_, inertia_, n_iter_, n_features_in_, feature_names_in_
        As in `PowerKMeans`.

    See Also
    --------
    PowerKMeans : Takes the number of clusters.
    choose_k : Compares numbers of clusters by several criteria.

    References
    ----------
    B. Kulis, M. I. Jordan: Revisiting k-means: new algorithms via Bayesian nonparametrics.
    International Conference on Machine Learning, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans.methods import DPMeans
    >>> X = np.array([[0.0], [1.0], [9.0], [10.0], [30.0]])
    >>> model = DPMeans(penalty=16.0, random_state=0).fit(X)
    >>> model.n_clusters_
    3
    >>> np.sort(model.cluster_centers_.ravel())
    array([ 0.5,  9.5, 30. ])
    >>> model.objective_
    49.0
    """

    _state = "penalty_: number objective_: number"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "penalty": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "n_clusters_wanted": [Interval(Integral, 1, None, closed="left")],
        **{name: PowerKMeans._parameter_constraints[name] for name in _AS_IN_POWER_K_MEANS},
    }

    penalty_: float
    objective_: float

    def __init__(
        self,
        penalty: float | Literal["auto"] = "auto",
        *,
        n_clusters_wanted: int = 8,
        effort: Literal["none", "fast", "balanced", "thorough"] = "balanced",
        missing: Literal["error", "observed"] = "error",
        stop: StopRule | None = None,
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.penalty = penalty
        self.n_clusters_wanted = n_clusters_wanted
        self.effort = effort
        self.missing = missing
        self.stop = stop
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_threads = n_threads
        self.callback = callback
        self.verbose = verbose

    @property
    def n_clusters_(self) -> int:
        """Return the number of clusters found."""
        return self._n_features_out

    @staticmethod
    def penalty_for(
        X: MatrixLike,
        n_clusters: int,
        *,
        sample_weight: ArrayLike | None = None,
        missing: Literal["error", "observed"] = "error",
    ) -> float:
        """Return the penalty for about this number of clusters, by farthest-first traversal.

        Kulis and Jordan start with the mean and repeatedly take the point farthest from all taken
        so far. The penalty is the squared distance at which point number `n_clusters` is taken.
        With ``effort="none"`` that is about the number of clusters; a search finds more where
        several points together pay for one.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The points.
        n_clusters : int
            About how many clusters, at most the number of distinct points.
        sample_weight : array-like of shape (n_samples,), optional
            Nonnegative. If the mean weight of distinct points is below one, the penalty is smaller
            by this factor.
        missing : {"error", "observed"}, default="error"
            Meaning of NaN: an error, or a missing entry.

        Returns
        -------
        float

        Examples
        --------
        >>> from powermeans.methods import DPMeans
        >>> DPMeans.penalty_for([[-6.0], [-4.0], [4.0], [5.0]], n_clusters=2)
        27.5625
        """
        validate_parameter_constraints(
            {
                "n_clusters": [Interval(Integral, 1, None, closed="left")],
                "missing": DPMeans._parameter_constraints["missing"],
            },
            {"n_clusters": n_clusters, "missing": missing},
            caller_name="penalty_for",
        )
        needs = Needs(
            name="penalty_for",
            measure=Measure(has_missing=missing == "observed"),
            fit=FitNeeds(n_points=n_clusters, must_differ=True),
        )
        far = _FarPoints.of(rows_of(admit_array(X, sample_weight, needs), needs.measure))
        penalties = far.penalties(n_clusters)
        if len(penalties) < n_clusters:
            raise ValueError(
                f"n_clusters={n_clusters}, but penalties separate no more than {len(penalties)} "
                "distinct points of X: pass fewer clusters, or points that differ"
            )
        return float(penalties[-1]) * far.unit

    def _stages(self, points: Points, fit: Fit) -> list[Stage]:
        far = _FarPoints.of(points)
        is_auto = self.penalty == "auto"
        farthest = self._penalty_by_distance(far) if is_auto else float(self.penalty)
        self.penalty_ = farthest * far.unit if is_auto else farthest
        return [self._stage(far, farthest)]

    def _stage(self, far: _FarPoints, far_from: float) -> Stage:
        """Return the paper's algorithm."""
        settled = CentersSettled(tolerance_by_weight(far.rows, self.tol))
        update = OpenAndDrop(self.penalty_, far, far_from)
        return Stage(Fixed(-math.inf), either(settled, self.stop), self.max_iter, update)

    def _penalty_by_distance(self, far: _FarPoints) -> float:
        """Return the penalty for unit weights; with too few points, one that separates them all."""
        penalties = far.penalties(self.n_clusters_wanted)
        if len(penalties) == self.n_clusters_wanted:
            return float(penalties[-1])
        warn_caller(
            f"Number of distinct clusters can be no more than {max(1, len(penalties))}, since X "
            f"has no more distinct points, but n_clusters_wanted={self.n_clusters_wanted}",
            ConvergenceWarning,
        )
        return float(penalties[-1]) / 2 if len(penalties) else float(np.finfo(np.float64).tiny)

    def _fit(self, points: Points, fit: Fit) -> Result:
        if self.effort == "none":
            fit.history.phase("improving")
            return anneal(points, np.atleast_2d(points.mean()), fit.stages, fit)
        try:
            return self._fit_with_search(points, fit)
        except SearchStopped as stopped:
            return Result(fit.best_centers(), str(stopped), was_stopped=True)

    def _fit_with_search(self, points: Points, fit: Fit) -> Result:
        """Run the paper's algorithm, search from where it ends, and run it again."""
        rng, efforts = fit.rng, EFFORTS[self.effort]
        order, _ = order_by_place(points, rng)
        stages, found = fit.stages, None
        if self.penalty == "auto":
            steps = Steps(self._search(points, fit, price=0.0), order)
            found, price = steps.found_with_price(self.n_clusters_wanted, efforts[0])
            self.penalty_ = price or self.penalty_
            far = _FarPoints.of(points)
            stages = [self._stage(far, self.penalty_ / far.unit)]

        def seeds(n_centers: int) -> FloatArray:
            n_tried, left = n_greedy_candidates(n_centers), fit.seconds_left()
            return choose_seeds(points, n_centers, rng, n_candidates=n_tried, seconds=left)[0]

        search = self._search(points, fit, self.penalty_)
        if found is not None:
            search.begin(found)
        end = anneal(points, np.atleast_2d(points.mean()), stages, fit)
        if end.was_stopped:
            search.begin(search.measured(end.centers))
            raise SearchStopped(end.reason)
        found = search_over_k(Steps(search, order), seeds, efforts, end.centers)
        end = anneal(points, found.centers, stages, fit)
        fit.history.keep(end.centers)
        return end

    def _search(self, points: Points, fit: Fit, price: float) -> Search:
        settled = CentersSettled(tolerance_by_weight(points, self.tol))
        lloyd = Stage(Fixed(-math.inf), settled, self.max_iter, AtPrice(price))
        least_gain = EFFORTS[self.effort][0].least_gain
        return Search(points, [lloyd], fit, least_gain=least_gain, price=price)

    def _attributes(self, points: Points, fit: Fit, result: Result) -> Result:
        result = super()._attributes(points, fit, result)
        objective = result.inertia + self.penalty_ * len(result.centers)
        return result.with_attributes(objective_=objective)


@dataclass(frozen=True, slots=True)
class _FarPoints:
    """Points with a weight, whose distances do not depend on the order of rows or on copies."""

    rows: Points
    places: IndexArray  # in an order that depends only on where the points lie
    weights: FloatArray
    unit: float  # the mean weight of distinct points, at most one

    @classmethod
    def of(cls, rows: Points) -> _FarPoints:
        order, key = order_by_place(rows, np.random.RandomState(0))
        weights = rows.sample_weight(order)
        has_weight = weights > 0
        n_distinct = 1 + np.count_nonzero(np.diff(key[has_weight]))
        unit = min(1.0, rows.total_weight / n_distinct)
        return cls(rows, order[has_weight], weights[has_weight], unit)

    def sq_dist(self, centers: FloatArray) -> FloatArray:
        """Return the squared distance of each point to the nearest of these centers."""
        return self.rows.nearness(centers).sq_dist(self.places)

    def point(self, place: int) -> FloatArray:
        """Return one of the points, (1, n_features)."""
        return self.rows.take(self.places[place : place + 1])

    def rounding(self) -> float:
        """Return the squared distance below which a point may be at a center."""
        return rounding_inertia(self.rows) / self.rows.total_weight

    def penalties(self, n_clusters: int) -> FloatArray:
        """Return the squared distances at which farthest-first takes its distinct points."""
        sq_dist = self.sq_dist(self.rows.mean()[None, :])
        taken_at: list[float] = []
        at_a_point = self.rounding()
        while len(taken_at) < n_clusters and sq_dist.max() > at_a_point:
            taken_at.append(float(sq_dist.max()))
            point = self.point(_first_of_largest(sq_dist))
            sq_dist = np.minimum(sq_dist, self.sq_dist(point))
        return np.array(taken_at)


@dataclass(frozen=True, slots=True)
class AtPrice(RelocateEmpty):
    """Relocate empty clusters, and add the price of the centers to the objective."""

    penalty: float  # the price of a center

    def after(self, sweep: Sweep, sums: Sums) -> Sums:
        """Return the sums with the price of the centers in the objective."""
        relocated = RelocateEmpty.after(self, sweep, sums)
        price = self.penalty * len(sweep.centers)
        return replace(relocated, objective=relocated.objective + price)


@dataclass(frozen=True, slots=True)
class OpenAndDrop(AtPrice):
    """Before a sweep, open clusters where points are far, and drop centers that do not pay."""

    far: _FarPoints
    far_from: float  # a point may open a cluster if its squared distance to all centers is larger

    def before(self, sweep: Sweep) -> FloatArray:
        """Return the centers that pay; each step to them lowers the objective."""
        centers, least = sweep.centers, math.inf
        while (paying := self._without_idle(self._with_far(centers))) is not centers:
            cost = float(self.far.weights @ self.far.sq_dist(paying)) + self.penalty * len(paying)
            if cost >= least:  # by rounding, what is opened would be dropped again and again
                break
            centers, least = paying, cost
        return centers

    def _with_far(self, centers: FloatArray) -> FloatArray:
        """Open a cluster at each point beyond the penalty where that pays, the farthest first."""
        sq_dist = self.far.sq_dist(centers)
        undecided = sq_dist.copy()
        opened = [centers]
        more, at_a_point = self._more_than_rounding(1), self.far.rounding()
        price = more * self.penalty
        while undecided.max() > max(more * self.far_from, at_a_point):
            place = _first_of_largest(undecided)
            point = self.far.point(place)
            from_point = self.far.sq_dist(point)
            if self._gain(place, sq_dist, from_point) > price:
                opened.append(point)
                np.minimum(sq_dist, from_point, out=sq_dist)
                np.minimum(undecided, from_point, out=undecided)
            else:
                undecided[from_point <= at_a_point] = 0.0
            undecided[place] = 0.0
        return np.concatenate(opened) if len(opened) > 1 else centers

    def _gain(self, place: int, sq_dist: FloatArray, from_point: FloatArray) -> float:
        """Return how much a center at this point lowers the inertia, or a part that suffices."""
        by_itself = float(self.far.weights[place] * sq_dist[place])
        if by_itself > self._more_than_rounding(1) * self.penalty:
            return by_itself
        return float(self.far.weights @ np.maximum(sq_dist - from_point, 0.0))

    def _without_idle(self, centers: FloatArray) -> FloatArray:
        """Drop the center of least utility while its utility is below the penalty."""
        while True:
            utility = self.far.rows.spread(centers).utility
            least = _first_of_largest(-utility)
            if utility[least] >= self._more_than_rounding(-1) * self.penalty:
                return centers
            centers = np.delete(centers, least, axis=0)

    def _more_than_rounding(self, sign: int) -> float:
        """Return by what factor gains must exceed costs, or rounding may undo and redo moves."""
        return 1.0 + sign * math.sqrt(float(np.finfo(self.far.rows.dtype).eps))


def _first_of_largest(values: FloatArray) -> int:
    """Return the first of the values that are the largest up to rounding."""
    largest = values.max()
    return int(np.argmax(values >= largest - 1e-9 * abs(largest)))
