"""Power k-means (Xu & Lange 2019) as a scikit-learn estimator."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import HasMethods, Interval, Options
from sklearn.utils.validation import check_is_fitted

from powermeans import divergences
from powermeans.engine.anneal import Result, Stage, anneal
from powermeans.engine.fit import Callback, Fit
from powermeans.engine.history import Spent
from powermeans.engine.search.effort import EFFORTS, Effort
from powermeans.engine.search.search import is_nearby, search
from powermeans.engine.stopping import (
    WITHOUT_LABELS,
    CentersSettled,
    MaxSeconds,
    ObjectiveSettled,
    StopRule,
    WeightsHard,
    either,
    refuse_labels,
)
from powermeans.engine.updates import LabelsStay, RelocateEmpty, SeparateCoincident, Update
from powermeans.errors import Argument, ArgumentError, UnlikeScalesWarning
from powermeans.mathematics.power_mean import memberships
from powermeans.mathematics.rules import Power, Rule
from powermeans.mathematics.schedules import (
    AuthorsSchedule,
    Fixed,
    Geometric,
    Whole,
    check_schedule,
    resting_power,
)
from powermeans.methods.base import CenterEstimator
from powermeans.methods.documented import one_of
from powermeans.methods.shared_covariance import (
    LearningPoints,
    LearnWhileAnnealing,
    learned_attributes,
    learned_divergence,
    needs_of_learning,
    run_with_covariance,
)
from powermeans.optimality.gap import CLOSED
from powermeans.optimality.line import SECONDS_FOR_EACH_VALUE, line_through
from powermeans.points.compiled import EuclideanPoints
from powermeans.points.needs import Needs
from powermeans.points.opening import MatrixLike
from powermeans.points.protocol import Points
from powermeans.system.attributes import forget
from powermeans.types import AnyMatrix, FloatArray

# A single descent anneals slowly. A search repairs what a descent misses, so a few powers suffice.
_GROWTH_WITHOUT_SEARCH = 1.1
# Ratio of the last power of a start in a search to its first.
_GROWTH_IN_A_SEARCH = 20.0


class PowerKMeans(CenterEstimator):
    """Power k-means: anneal from a smooth objective to that of k-means, then search.

    Each sweep weights every point by the gradient of a power mean of its squared distances to the
    centers, and moves the centers to the weighted means. The power s < 0 falls towards minus
    infinity, where the method is Lloyd's algorithm.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of centers. "auto" is the number from 2 to 20 that `choose_k` recommends.
    init : {"k-means++", "plain-k-means++", "d-weighted", "random"}, array-like or callable, \
            default="k-means++"
        Initial centers. In this order, each is the best of 2 + floor(ln k) candidates, or a point
        drawn in proportion to squared distance, distance or weight. Or an array of shape
        (n_clusters, n_features), or a function called as
        ``init(X, n_clusters, random_state=random_state)``.
    n_init : int or "auto", default=1
        Number of runs, of which the best is kept. "auto" is 1: each run makes several starts.
    power : float or "auto", default="auto"
        Negative power of the first sweep; ``-math.inf`` is Lloyd's algorithm. "auto" is one less
        than twice the critical power of the data, and at most -1.
    schedule : float, iterable or "auto", default="auto"
        Factor from one power to the next, above one: "auto" is 1.1, or larger if a search follows.
        Or the powers of all sweeps: a list, or one of `powermeans.mathematics.schedules`; a rule of
        `powermeans.mathematics.rules` can replace a power.
    effort : {"none", "fast", "balanced", "thorough"}, default="balanced"
        How much to search. "none" is one descent; "fast" improves it by swaps of centers; the
        others improve several starts and cross them. "thorough" takes longer than "balanced", and
        its inertia is never higher. See :doc:`/understand/how_it_searches`.
    polish : bool, default=True
        Whether to finish with Lloyd's sweeps, to separate coincident centers, and to move empty
        clusters to where the error is largest. With False, the sweeps are those of the paper,
        and no search follows.
    divergence : str or Bregman, default="squared_euclidean"
        Distance between a point and a center; `inertia_` is its sum. A name, such as "cosine",
        "poisson", "manhattan" or "mahalanobis", whose covariance is learned; or one of
        `powermeans.divergences`, or your own. See :doc:`/how_do_i/which_divergence`.
    missing : {"error", "observed"}, default="error"
        Meaning of NaN: an error, or a missing entry. With "observed", squared Euclidean distances
        and means use the observed entries only. See :doc:`/how_do_i/missing_values`.
    max_iter : int, default=300
        Largest number of sweeps, counted separately for annealing and Lloyd's algorithm; in a
        search, for each descent.
    tol : float, default=1e-6
        Lloyd's algorithm ends when the squared center shifts add up to at most `tol` times the mean
        variance of the features, as in scikit-learn. Without `polish`, a run ends when the
        objective falls by at most ``tol / sqrt(n_features)`` of itself.
    stop : StopRule, optional
        A further rule that ends the sweeps: one of `powermeans.engine.stopping`, your own, or
        several: ``LabelsSettled(1e-3) | MaxSeconds(60)``. `MaxSeconds` limits the whole fit and
        keeps the best centers.
    random_state : int, RandomState instance or None, default=None
        Seed. An int makes the result reproducible.
    n_threads : int, optional
        Number of threads. None follows the limits of threadpoolctl, POWERMEANS_NUM_THREADS,
        OMP_NUM_THREADS, and the number of processors, in this order. It never changes the result.
    callback : callable or "progress", optional
        Called after each sweep with a `SweepState`; returning True ends the fit.
        "progress" is `powermeans.progress()`.
    verbose : int, default=0
        With 1 the fit prints at most a line a second, with phase and inertia; with 2 also each
        sweep.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centers, in the dtype of the points.
    labels_ : ndarray of shape (n_samples,)
        Label of the nearest center of each point, as `predict` gives it.
    inertia_ : float
        Weighted sum of squared distances to the nearest center.
    is_optimal_ : bool
        Whether the inertia is certainly the lowest, as for points on a line.
    n_iter_ : int
        Sweeps of the best run.
    history_ : recarray
        One record for each of these sweeps: `power` (-inf in Lloyd's algorithm), `objective` and
        `inertia` at the centers before the sweep, `center_shift`, `seconds`, and `skipped`, the
        share of distances not computed. In a sample, objective and inertia are estimates.
    power_ : float
        Power at which annealing last ended; -inf if no sweep was annealed.
    critical_power_ : float
        Power above which all centers collapse to the mean of the data.
    n_relocated_ : int
        Number of times an empty cluster was moved.
    n_separated_ : int
        Number of times a coincident center was moved.
    spent_ : Spent
        Cost of the best run.
    covariance_ : ndarray of shape (n_features, n_features)
        Covariance of the clusters, scaled to determinant one; set only with
        ``divergence="mahalanobis"``.
    n_clusters_ : int
        The number chosen; set only with ``n_clusters="auto"``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has any.

    See Also
    --------
    KMeans : Only Lloyd's algorithm, with scikit-learn's signature.
    BalancedKMeans : Clusters of limited or equal sizes.

    Notes
    -----
    `PowerKMeans.as_published` is the paper's Algorithm 1 with its settings. After Ctrl-C, or an
    error raised by the callback, the estimator keeps the last complete state or, in a search, the
    best.

    At a fixed power the method is fuzzy c-means with fuzzifier 1 - 1/s (k-harmonic means at -1):
    ``PowerKMeans(schedule=Fixed(-1.0), polish=False)``.

    References
    ----------
    Xu, J. and Lange, K. "Power k-Means Clustering". ICML 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans import PowerKMeans
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = PowerKMeans(n_clusters=2, random_state=0).fit(X)
    >>> np.sort(model.cluster_centers_, axis=0)
    array([[ 1.,  2.],
           [10.,  2.]])
    >>> model.inertia_
    16.0
    >>> left, right = model.predict([[0, 0], [12, 3]])
    >>> bool(left == right)
    False

    A callback receives the sweeps as they happen, and may end the fit; `history_` records them:

    >>> model = PowerKMeans(2, power=-2.0, schedule=1.1, effort="none", init=X[[1, 5]],
    ...                     callback=lambda state: state.sweep == 3).fit(X)
    >>> model.history_.power
    array([-2. , -2.2, -inf])
    """

    _state = """n_clusters_: count power_: number! critical_power_: number n_separated_: count
        spent_: Spent is_optimal_: flag covariance_: finite[d,d]"""

    _lowers_inertia = True
    _advice = "raise max_iter or tol, or the factor of the schedule"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CenterEstimator._parameter_constraints,
        "n_clusters": [Interval(Integral, 1, None, closed="left"), one_of({"auto"})],
        "init": [
            one_of({"k-means++", "plain-k-means++", "d-weighted", "random"}),
            callable,
            "array-like",
        ],
        "power": [
            Interval(Real, None, Power.highest, closed="right"),
            Options(Real, {-math.inf}),
            one_of({"auto"}),
        ],
        "schedule": [
            Interval(Real, 1, None, closed="neither"),
            one_of({"auto"}),
            HasMethods(["__iter__"]),
        ],
        "polish": ["boolean"],
        "effort": [one_of({"none", *EFFORTS})],
        "stop": [StopRule, None],
        "n_init": [one_of({"auto"}), Interval(Integral, 1, None, closed="left")],
        "divergence": [one_of(divergences.NAMES), divergences.Divergence],
        "missing": [one_of({"error", "observed"})],
        "n_threads": [Integral, None],
        "callback": [callable, one_of({"progress"}), None],
    }

    n_clusters_: int
    spent_: Spent
    covariance_: FloatArray
    power_: float
    critical_power_: float
    n_separated_: int

    def __init__(
        self,
        n_clusters: int | Literal["auto"] = 8,
        *,
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

    @classmethod
    def as_published(cls, n_clusters: int = 8, **params: Any) -> Self:
        """Make an estimator that is Algorithm 1 of the paper and nothing else.

        Each sweep has the next power of a geometric schedule, and a run ends once the objective
        hardly falls. There is no search, no sweep of Lloyd's algorithm, and no other move of a
        center.

        Parameters
        ----------
        n_clusters : int, default=8
            Number of centers.
        **params
            Other parameters of the constructor, which replace ``power=-3.0``, ``schedule=1.05``,
            ``init="plain-k-means++"``, ``polish=False`` and ``tol=1e-6``. The tables of the paper
            use the powers -1, -3, -9 and -18, and are matched by ``init="d-weighted"``: seeds drawn
            by distance, not by its square as in the default.

        Returns
        -------
        PowerKMeans

        See Also
        --------
        as_authors_code : The loop of the authors' later code.

        References
        ----------
        Xu, J. and Lange, K. "Power k-Means Clustering". ICML 2019, Algorithm 1.

        Examples
        --------
        >>> import numpy as np
        >>> from powermeans import PowerKMeans
        >>> X = np.array([[1.0], [2.0], [9.0], [10.0]])
        >>> model = PowerKMeans.as_published(2, random_state=0).fit(X)
        >>> np.sort(model.cluster_centers_.ravel()).round(3)
        array([1.5, 9.5])
        >>> model.history_.power[:3].round(4)
        array([-3.    , -3.15  , -3.3075])
        """
        settings = {"power": -3.0, "schedule": 1.05, "init": "plain-k-means++", "polish": False}
        return cls(n_clusters, **{**settings, **params})

    @classmethod
    def as_authors_code(cls, n_clusters: int = 8, *, power: float = -1.0, **params: Any) -> Self:
        """Make an estimator with the loop in the code behind the authors' later papers.

        It uses their `AuthorsSchedule`, and stops when no label has changed for five sweeps.

        Parameters
        ----------
        n_clusters : int, default=8
            Number of centers.
        power : float, default=-1.0
            The first power, which the schedule multiplies by a factor.
        **params
            Other parameters of the constructor, which replace ``init="plain-k-means++"``,
            ``polish=False`` and ``max_iter=1000``.

        Returns
        -------
        PowerKMeans

        See Also
        --------
        as_published : Algorithm 1 of the paper.

        Examples
        --------
        >>> import numpy as np
        >>> from powermeans import PowerKMeans
        >>> X = np.array([[1.0], [2.0], [9.0], [10.0]])
        >>> model = PowerKMeans.as_authors_code(2, random_state=0).fit(X)
        >>> model.history_.power[:5].round(4)
        array([-1.    , -1.    , -1.06  , -1.06  , -1.1236])
        """
        settings = {"init": "plain-k-means++", "polish": False, "max_iter": 1000}
        return cls(n_clusters, schedule=AuthorsSchedule(power), **{**settings, **params})

    def memberships(self, X: MatrixLike, power: float | None = None) -> FloatArray:
        """Return how strongly each point belongs to each center.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The points.
        power : float, optional
            Negative: near zero the memberships are soft, at ``-math.inf`` they are hard. By
            default `power_`, the power at which annealing ended.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            Each row adds up to one.

        Examples
        --------
        >>> from powermeans import PowerKMeans
        >>> model = PowerKMeans.from_centers([[0.0], [3.0]])
        >>> model.memberships([[1.0], [0.0]], power=-1.0)
        array([[0.94117647, 0.05882353],
               [1.        , 0.        ]])
        """
        check_is_fitted(self)
        at = self.power_ if power is None else power
        return self._shares(X, lambda sq_dist: memberships(sq_dist, at), at - 1)

    def _use_given_centers(self) -> None:
        self._fitted_needs()  # raises if a fit must learn the divergence
        self.power_ = -math.inf if self.power == "auto" else float(self.power)

    def _needs(self) -> Needs:
        self._check_missing()
        needs = super()._needs()
        if self._learns_covariance():
            return needs_of_learning(needs)
        divergence = divergences.resolve(self.divergence)
        if (reason := divergence.needs_all_points) is not None:
            reason = f"divergence={self.divergence!r} {reason}"
        measure = replace(needs.measure, divergence=divergence, takes_narrow=True)
        refusals = replace(needs.refusals, parts=reason, tensors=reason)
        return replace(needs, measure=measure, refusals=refusals)

    def _fitted_needs(self) -> Needs:
        needs = super()._fitted_needs()
        if not self._learns_covariance():
            return needs
        return needs.measured(divergence=learned_divergence(self), opener=None)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse &= divergences.kind_of(self.divergence).takes_sparse
        return tags

    def _check_missing(self) -> None:
        """Raise where entries may be missing and the divergence needs them all."""
        takes_missing = divergences.resolve(self.divergence).takes_missing
        if self.missing == "observed" and not takes_missing:
            raise ArgumentError(
                "takes no missing values",
                "entries may be missing from ",
                Argument("divergence", "squared_euclidean"),
                " only",
                argument="divergence",
                value=self.divergence,
            )

    def _learns_covariance(self) -> bool:
        return divergences.resolve(self.divergence).is_learned

    def _stages(self, points: Points, fit: Fit) -> list[Stage]:
        if (given := self._given_powers()) is not None:
            check_schedule(given, n_powers=self.max_iter)
        if not (self.polish and points.holds_labels):
            refuse_labels(self.stop)
        if self._has_time_for_hard_sweeps_only(points, fit):
            return [self._hard_stage(points)]
        fit.critical_power = critical_power = points.critical_power()
        schedule = self._powers(critical_power, fit)
        if not self.polish and isinstance(self.schedule, AuthorsSchedule):
            return [self._authors_stage(self.schedule, points)]
        if not self.polish:
            learn = self._learning_while_annealing(points, fit, Update())
            settled = ObjectiveSettled(self.tol / math.sqrt(points.given.n_features))
            return [Stage(schedule, either(settled, self.stop), self.max_iter, learn)]
        tolerance = self.tol * points.mean_variance()
        are_hard = WeightsHard(critical_power, self._n_centers, tolerance, resting_power(schedule))
        separate = SeparateCoincident(critical_power, points.spread_of_features())
        n_powers = self.max_iter
        if self._searches() and isinstance(self.schedule, str):
            n_powers = min(n_powers, self._first_effort(fit).n_powers)
        learn = self._learning_while_annealing(points, fit, separate)
        return [Stage(schedule, are_hard, n_powers, learn), self._hard_stage(points)]

    def _hard_stage(self, points: Points) -> Stage:
        settled = CentersSettled(self.tol * points.mean_variance())
        return Stage(Fixed(-math.inf), either(settled, self.stop), self.max_iter, RelocateEmpty())

    def _has_time_for_hard_sweeps_only(self, rows: Points, fit: Fit) -> bool:
        """Return whether it is too late for annealing and for a search among all points."""
        if not (self.polish and fit.is_late()):
            return False
        return not (self._draws_centers() and is_nearby(rows, self._n_centers, self.effort))

    def _learning_while_annealing(self, points: Points, fit: Fit, update: Update) -> Update:
        """Return the update with the joint one of the covariance, where a descent learns it."""
        if isinstance(points, LearningPoints) and not self._searches():
            return LearnWhileAnnealing(points, fit.seconds_left, update)
        return update

    def _authors_stage(self, schedule: AuthorsSchedule, points: Points) -> Stage:
        if self._learns_covariance() or not points.holds_labels:
            raise ArgumentError(
                "ends a fit without polish by the labels of its sweeps, which are not stored with "
                f"a learned covariance, {WITHOUT_LABELS}",
                "pass Geometric(-1.0, 1.06), or polish=True",
                argument="schedule",
                value=schedule,
            )
        learn = LabelsStay(schedule)
        return Stage(learn, either(learn, self.stop), self.max_iter, learn)

    def _searches(self) -> bool:
        return self.polish and self.effort != "none" and self._n_centers > 1

    def _given_powers(self) -> Iterable[float | Rule] | None:
        """Return the powers that the schedule gives, or None if it gives only their factor."""
        given: Any = self.schedule
        is_factor = isinstance(given, Real) or (isinstance(given, str) and given == "auto")
        return None if is_factor else given

    def _first_effort(self, fit: Fit) -> Effort:
        return EFFORTS["fast" if fit.end < math.inf else self.effort][0]

    def _powers(self, critical_power: float, fit: Fit) -> Iterable[float | Rule]:
        if (given := self._given_powers()) is not None:
            return given
        is_auto = self.power == "auto"
        start = min(2 * critical_power - 1, -1.0) if is_auto else float(self.power)
        if start == -math.inf:
            return Fixed(start)
        if self.schedule != "auto":
            return Geometric(start, cast("float", self.schedule))
        if not self._searches():
            return Geometric(start, _GROWTH_WITHOUT_SEARCH)
        schedule = Geometric(start, _GROWTH_IN_A_SEARCH ** (1 / self._first_effort(fit).n_powers))
        return Whole(schedule) if is_auto else schedule

    def _fit(self, points: Points, fit: Fit) -> Result:
        if not self._learns_covariance():
            return self._fit_in_space(points, fit)
        most_learned = 0 if not self.polish else 5 if self._searches() else 1
        return run_with_covariance(points, fit, self._fit_in_space, most_learned)

    def _of_a_sweep(self, centers: FloatArray) -> dict[str, Any] | None:
        return None if self._learns_covariance() else super()._of_a_sweep(centers)

    @property
    def has_means(self) -> bool:
        """Whether moved points change the centers as they change sums."""
        adds_up = divergences.resolve(self.divergence).needs_all_points is None
        return self.missing == "error" and adds_up

    def _fit_in_space(self, points: Points, fit: Fit) -> Result:
        """Make one run with the present divergence."""
        found = self.find_centers(points, fit)
        if found.was_stopped and fit.is_late():
            return self._with_means(points, fit, found)
        # After a search near many centers, which leaves no others, they would take longest.
        if not found.solutions or found.was_stopped:
            return found
        fit.history.phase("final sweeps")
        end = anneal(points, found.centers, fit.stages[-1:], fit)
        fit.history.keep(end.centers)
        return end

    def _with_means(self, points: Points, fit: Fit, found: Result) -> Result:
        """Move the centers of a run whose time is up to the means of their points."""
        is_hard = len(fit.stages) == 1  # from the first sweep on
        if is_hard or is_nearby(points, self._n_centers, self.effort):
            return found
        end = anneal(points, found.centers, [replace(fit.stages[-1], max_iter=1)], fit)
        fit.history.keep(end.centers)
        return end

    def find_centers(self, points: Points, fit: Fit) -> Result:
        """Search, without the final sweeps, or make one descent."""
        if not self._searches() or self._has_time_for_hard_sweeps_only(points, fit):
            return super()._fit(points, fit)
        if (centers := self._best_on_a_line(points, fit)) is not None:
            return anneal(points, centers, fit.stages[-1:], fit)
        return search(points, self.effort, fit)

    def _best_on_a_line(self, points: Points, fit: Fit) -> FloatArray | None:
        """Return the best centers where all points lie on a line, if there is time to find them."""
        if type(points) is not EuclideanPoints:
            return None
        line = line_through(points.given.array, points.given.weights)
        if line is None or len(line.values) < self._n_centers:
            return None
        if len(line.values) * SECONDS_FOR_EACH_VALUE > fit.seconds_left():
            return None
        starts = line.division(self._n_centers)
        fit.optimum = line.least_inertia(starts)
        return line.centers(starts)

    def _attributes(self, points: Points, fit: Fit, result: Result) -> Result:
        result = super()._attributes(points, fit, result)
        learned = learned_attributes(points)
        # Not what rounding of the centers has spoilt.
        is_optimal = result.inertia <= fit.optimum * (1 + CLOSED)
        found = {"is_optimal_": is_optimal, **annealing_attributes(fit), **learned}
        return result.with_attributes(**found)

    def _keep(self, result: Result) -> None:
        # Those of a former fit would describe another divergence.
        forget(self, *{"covariance_", "divergence_"}.difference(result.attributes))
        super()._keep(result)


def as_power_kmeans(estimator: CenterEstimator) -> PowerKMeans:
    """Return `PowerKMeans` with those of its parameters that another estimator has too."""
    given = estimator.get_params(deep=False)
    known = given.keys() & PowerKMeans().get_params(deep=False).keys()
    return PowerKMeans(**{name: given[name] for name in known})


def annealing_attributes(fit: Fit) -> dict[str, Any]:
    """Return the attributes of a run of annealing and search."""
    return {
        "power_": fit.history.last_soft_power(),
        "critical_power_": fit.critical_power,
        "n_separated_": fit.history.n_separated,
        "spent_": fit.history.spent(),
    }


def searched(
    points: AnyMatrix,
    weights: FloatArray | None,
    n_clusters: int,
    *,
    effort: Literal["fast", "balanced", "thorough"],
    rng: np.random.RandomState,
    n_threads: int | None,
    seconds_left: float = math.inf,
    **options: Any,
) -> PowerKMeans:
    """Return a model with the default search, from which another method goes on."""
    model = PowerKMeans(
        n_clusters,
        effort=effort,
        stop=MaxSeconds(max(seconds_left, np.finfo(np.float64).tiny)),
        random_state=rng,
        n_threads=n_threads,
        **options,
    )
    with warnings.catch_warnings():
        # Its end is not that of the fit, which has warned of scales.
        for kind in (ConvergenceWarning, UnlikeScalesWarning):
            warnings.simplefilter("ignore", kind)
        return model.fit(points, sample_weight=weights)
