"""The base of all estimators: restarts of a fit, and predictions after it."""

from __future__ import annotations

import abc
import contextlib
import functools
import math
import os
import time
import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import metadata
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, estimator_html_repr
from sklearn.utils._param_validation import (
    Interval,
    InvalidParameterError,
    StrOptions,
    make_constraint,
)
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from powermeans.engine.anneal import Callback, Reason, Stage, StageEnd, anneal, reason_to_stop
from powermeans.engine.callbacks import (
    CallbackSupportMixin,
    FitTasks,
    Lines,
    progress,
    with_callbacks,
)
from powermeans.engine.fit import Fit, Listener
from powermeans.engine.history import History, SweepState
from powermeans.engine.seeds.initial import asks_for_centers, initial_centers
from powermeans.engine.stopping import StopRule, reason_to_end_fit, seconds_of
from powermeans.errors import ArgumentError, nearest, warn_caller
from powermeans.methods.notebook import card
from powermeans.optimality.gap import OptimalityGap
from powermeans.points.checks.centers import check_centers
from powermeans.points.columns import Columns
from powermeans.points.needs import FitNeeds, Measure, Needs, Refusals
from powermeans.points.opening import (
    MatrixLike,
    Opened,
    admit_array,
    open_points,
)
from powermeans.system.attributes import forget, public_module, references, remember
from powermeans.system.containers import is_dask, like_given, to_array
from powermeans.system.saved_classes import saved
from powermeans.types import FloatArray, Labels, Points

# Not at once, so that `verbose` prints what follows the check of the rows, which may take long.
_FIRST_LINE = 1e-3


@dataclass(frozen=True, slots=True)
class Start:
    """What one run is given."""

    data: Opened
    stages: list[Stage]
    seeds: Callable[..., FloatArray]  # each call returns others, in a sample if one is passed
    history: History
    fit: Fit
    callback: Callback
    learned: Any  # by the run, besides centers, in the form of `_nothing_learned`

    def anneal(self, centers: FloatArray, stages: Sequence[Stage]) -> list[StageEnd]:
        """Run these stages, one after the other; only the last where it is late."""
        left = stages[-1:] if self.fit.is_late() else stages
        return anneal(self.data.rows, centers, left, self.history, self.callback)

    def best_centers(self) -> FloatArray:
        """Return the best centers of a run that has swept, as every complete run has."""
        assert self.history.centers is not None, "no sweep is complete"
        return self.history.centers

    def stopped(self, reason: str) -> list[StageEnd]:
        """Return the end of a run that was stopped."""
        return [StageEnd(self.best_centers(), -math.inf, reason, was_stopped=True)]


@dataclass(frozen=True, slots=True)
class Run:
    """The outcome of one run, complete or interrupted."""

    centers: Points
    labels: Any
    inertia: float
    history: History
    ends: Sequence[StageEnd]  # none if interrupted
    loss: float  # the run with the lowest is kept
    attributes: dict[str, Any] = field(default_factory=dict)  # further ones of the estimator

    def with_attributes(self, **attributes: Any) -> Run:
        """Return the run with further attributes."""
        return replace(self, attributes={**self.attributes, **attributes})


class Documented(BaseEstimator):
    """Let the picture of an estimator in a notebook link to the page of its class."""

    # The attributes of a saved model, besides those of its base; `powermeans.saving` reads it.
    _state: ClassVar[str] = """n_features_in_: length[d]! feature_names_in_: names[d]
        _sklearn_output_config: any"""

    # Why no entries may be missing, in an estimator that cannot do without them.
    _why_whole: ClassVar[str | None] = None

    _doc_link_module = "powermeans"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls._why_whole is not None and "__init__" in vars(cls):
            cls.__init__ = _refusing_missing(cls.__init__, cls._why_whole)  # type: ignore[method-assign]
        if "__init__" in vars(cls) and cls.__module__.startswith("powermeans."):
            saved(cls)

    @property
    def _doc_link_template(self) -> str:
        urls = metadata("powermeans").get_all("Project-URL") or []
        root = dict(url.split(", ", 1) for url in urls).get("Documentation")
        page = f"api/{public_module(type(self))}.{{estimator_name}}.html"
        return f"{root.rstrip('/')}/{page}" if root else ""

    def _html_repr(self) -> str:
        """Show a fitted estimator in a notebook by its clusters; scikit-learn's diagram unfolds."""
        diagram: str = estimator_html_repr(self)
        if not (hasattr(self, "cluster_centers_") or hasattr(self, "labels_")):
            return diagram
        summary = card(self, self._told_of_the_optimum(), self._get_doc_link())
        return f"{summary}<details><summary>Parameters and attributes</summary>{diagram}</details>"

    def _told_of_the_optimum(self) -> str | None:
        """Return what is proved of the inertia, if anything."""
        return None


def _refusing_missing(init: Callable[..., None], why: str) -> Callable[..., None]:
    """Return a constructor that says why an estimator has no `missing`, which others have."""

    @functools.wraps(init)
    def initialize(self: Any, *given: Any, **named: Any) -> None:
        if "missing" in named:
            raise ArgumentError(
                f"is not for {type(self).__name__}",
                f"{why[0].lower()}{why[1:]}, so leave rows with NaN out, or fill the entries in",
                argument="missing",
                value=named["missing"],
            )
        init(self, *given, **named)

    return initialize


# References to the points and weights of fits, by the identity of the estimator, which may have no
# hash. They are no attributes, since these are copied, pickled and saved.
_given_to: dict[int, list[weakref.ref[Any]]] = {}


class CenterEstimator(
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    Documented,
    metaclass=abc.ABCMeta,
):
    """Base of estimators that describe data by centers. A subclass chooses the stages of a fit."""

    _state = """cluster_centers_: finite[k,d]! labels_: label[n] inertia_: number
        n_iter_: count n_relocated_: count history_: records[sweeps]
        preparation_: Prepare?"""

    n_clusters: Any
    # What an estimator without these parameters does.
    init: Any = None
    n_init: Any = 1
    missing: str = "error"
    random_state: Any = None
    n_threads: int | None = None
    stop: StopRule | None = None
    polish: bool = True
    callback: Any = None
    verbose: Any = 0
    # Whether its aim is the inertia, which has a bound.
    _lowers_inertia: bool = False

    cluster_centers_: Points
    labels_: Labels
    inertia_: float
    n_features_in_: int
    n_iter_: int
    n_relocated_: int
    history_: np.recarray[Any, Any]

    # The path of the labels is no metadata to route.
    __metadata_request__predict: ClassVar[dict[str, str]] = {"output": UNUSED}

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"k-means++", "random"}), callable, "array-like"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "verbose": ["verbose"],
        "missing": [StrOptions({"error", "observed"})],
        "random_state": ["random_state"],
        "n_threads": [Integral, None],
    }

    # What subclasses decide.

    def _needs(self) -> Needs:
        """Return what a fit asks of its points."""
        name = type(self).__name__
        return Needs(
            name=name,
            estimator=self,
            measure=Measure(
                has_missing=self.missing == "observed",
                n_threads=self.n_threads,
            ),
            refusals=Refusals(
                missing=self._why_whole,
                parts=f"{name} looks at all points at once",
                tensors=f"{name} works only on arrays",
            ),
            fit=FitNeeds(
                n_points=self._n_centers,
                must_differ=True,
                warns_of_scales=True,
                leaves_out_columns=not asks_for_centers(self.init),
                init=self.init,
                random_state=self.random_state,
            ),
        )

    @property
    def _n_centers(self) -> int:
        """Number of centers: the one that a fit has chosen, or one before, if it is "auto"."""
        wanted = getattr(self, "n_clusters", 1)  # scikit-learn asks whether it is there
        return int(getattr(self, "n_clusters_", 1)) if wanted == "auto" else wanted

    def _fitted_needs(self) -> Needs:
        """Return what is asked of new points after a fit."""
        return self._needs().for_new(self._columns())

    @abc.abstractmethod
    def _stages(self, data: Opened, fit: Fit) -> list[Stage]:
        """Return the stages of each run."""

    def _draws_centers(self) -> bool:
        """Return whether the initial centers are drawn, and not those of an array."""
        return isinstance(self.init, str) or callable(self.init)

    def _nothing_learned(self) -> Any:
        """Return what a run is to note besides centers, before it has."""
        return {}

    def _run(self, start: Start) -> list[StageEnd]:
        """Make one run."""
        centers = start.seeds()
        start.history.phase("improving")
        return start.anneal(centers, start.stages)

    def _finish(self, start: Start, ends: Sequence[StageEnd] = ()) -> Run:
        """Return the outcome of a run for the centers as they are stored."""
        history = start.history
        history.phase("labelling the rows")
        best = start.fit.divergence.within(start.best_centers())
        centers = np.array(best, dtype=start.data.dtype)
        # After an interrupt a further pass over parts may take long, or fail as the last one did.
        known = None if ends else history.known_inertia
        labels, inertia = start.data.assign(centers.astype(np.float64), known)
        return Run(centers, labels, inertia, history, ends, loss=inertia)

    def _report_end(self, run: Run) -> None:
        """Tell the user how a run ended."""
        report_end(run, self.verbose)

    def _use_given_centers(self) -> None:
        """Set what predictions need besides the centers passed to `from_centers`."""

    def _validate_params(self) -> None:
        """Validate parameters; ask scikit-learn, which is slow, only for its error message."""
        for name, constraints in _constraints_by_parameter(type(self)):
            value = getattr(self, name)
            if any(constraint.is_satisfied_by(value) for constraint in constraints):
                continue
            try:
                super()._validate_params()
            except InvalidParameterError as error:
                hint = _hint(name, value, constraints)
                raise InvalidParameterError(f"{error}{hint}") from None

    def __getattr__(self, name: str) -> Any:
        if name == "labels_" and hasattr(self, "history_"):
            raise AttributeError(
                "there is no labels_ since the rows were read part by part and their labels may "
                'not fit into memory: call predict(X, output="labels.npy")'
            )
        said = f"{type(self).__name__!r} object has no attribute {name!r}"
        if name.endswith("_") and not name.startswith("_") and not self.__sklearn_is_fitted__():
            said += ": it is not fitted, so call fit first"
        # Python suggests an attribute that is spelt alike.
        raise AttributeError(said, name=name, obj=self)

    def __sklearn_is_fitted__(self) -> bool:
        # A failed fit may leave other attributes.
        return "cluster_centers_" in vars(self)

    # Fitting.

    @with_callbacks
    def fit(self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the centers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), path, chunks or PartedData
            The points. They are never changed, and are copied only if their dtype is not float32 or
            float64 or their order is not C (CSR, if sparse). float16 and bfloat16 become float32,
            every other dtype float64. `KMeans` and `PowerKMeans` also keep dense float16, bfloat16,
            int8 and uint8 as they are if they compare whole points by squared Euclidean distances
            on the CPU: they convert a few rows at a time to float32, and sum in float64. If an
            estimator needs only sums, a file, a folder, a list of them, or chunks (a list of
            arrays, an iterable that starts anew each time, or a function that returns one) are read
            part by part and need not fit into memory; see `powermeans.open_data`. Then there is no
            `labels_`. A Dask array or DataFrame is processed where Dask stores it, and `labels_` is
            a Dask array. A PyTorch tensor is processed where it is, and centers and labels are
            tensors there.
        y : None
            Ignored; present for compatibility with scikit-learn.
        sample_weight : array-like of shape (n_samples,), optional
            Nonnegative. A weight of three counts like three copies of the point, a weight of zero
            like no point.

        Returns
        -------
        self
        """
        self._validate_params()
        tasks = FitTasks(self, X, y, sample_weight) if hasattr(self, "_skl_callbacks") else None
        end = time.monotonic() + seconds_of(self.stop)
        with self._new_listener(tasks) as listener:
            fit = Fit(check_random_state(self.random_state), listener, end)
            if getattr(self, "n_clusters", None) == "auto":
                forget(self, "n_clusters_")
                remember(self, {"n_clusters_": self._chosen_k(X, sample_weight, fit)})
            listener.phase("checking the rows")
            with self._open(X, sample_weight, fit) as data:
                former = getattr(self, "history_", None)
                try:
                    self._keep_best_run(data, fit)
                    self._remember_given(references(X, sample_weight))
                    centers = np.asarray(self.cluster_centers_, dtype=np.float64)
                    n_found = data.n_found(centers, getattr(self, "labels_", None))
                finally:
                    # Also after a fit that was cut short, unless it left nothing.
                    if getattr(self, "history_", None) is not former:
                        self._bring_home(X, data)
        if tasks is not None:
            tasks.complete()
        n_needed = self._n_centers
        if n_found < n_needed:
            warn_caller(
                f"Number of distinct clusters ({n_found}) found smaller than n_clusters "
                f"({n_needed}). Possibly due to duplicate points in X.",
                ConvergenceWarning,
            )
        return self

    def _chosen_k(self, X: MatrixLike, sample_weight: ArrayLike | None, fit: Fit) -> int:
        """Return the number of clusters that `choose_k` recommends, in at most half of the time."""
        from powermeans.choosing_k.choose import recommended_k
        from powermeans.choosing_k.counted import CountedPoints

        asked = self._needs().measure
        if not (self._draws_centers() and asked.divergence.is_squared):
            raise ArgumentError(
                "is for squared Euclidean distances and centers that are drawn",
                "pass a number",
                argument="n_clusters",
                value=self.n_clusters,
            )
        fit.listener.phase("choosing the number of clusters")
        measure = Measure(has_missing=asked.has_missing, n_threads=self.n_threads)
        limits = FitNeeds(must_differ=True, leaves_out_columns=True)
        needs = replace(
            self._needs(), estimator=None, offers_missing=True, measure=measure, fit=limits
        )
        now = time.monotonic()
        return recommended_k(
            CountedPoints.of(X, sample_weight, needs),
            asked.has_missing,
            self.n_threads,
            fit.rng,
            now + (fit.end - now) / 2,
        )

    def _open(self, X: MatrixLike, sample_weight: ArrayLike | None, fit: Fit) -> Opened:
        """Open the points of a fit and note their columns."""
        needs = self._needs()
        fit.divergence = needs.measure.divergence
        if fit.listener:
            needs = needs.of_a_fit(tell=fit.listener.part)
        data = open_points(X, sample_weight, needs)
        _ = data.rows  # of points in parts, the first pass
        forget(self, "preparation_")
        if (noted := data.noted) is not None:
            forget(self, "feature_names_in_")
            remember(self, noted)
        return data

    def _keep_best_run(self, data: Opened, fit: Fit) -> None:
        """Make all runs and keep the best, even if the last one is interrupted."""
        stages = self._stages(data, fit)
        seeds = functools.partial(self._initial_centers, data, fit)
        best: Run | None = None
        for number in range(self._n_runs()):
            history = History(number, fit.listener.phase)
            watch = self._watcher(data, fit, history)
            start = Start(data, stages, seeds, history, fit, watch, self._nothing_learned())
            try:
                run = self._finish(start, self._run(start))
            except BaseException:
                data.stop_recording()
                if start.history.centers is not None:
                    best = _better(self._finish(start), best)
                if best is not None:
                    self._keep(best)
                raise
            self._report_end(run)
            best = _better(run, best)
            if any(end.was_stopped for end in run.ends):
                break
        if best is not None:
            self._keep(best)

    def _n_runs(self) -> int:
        """Return how many runs to make."""
        wanted = 1 if self.n_init == "auto" else int(self.n_init)
        if wanted == 1 or self._draws_centers():
            return wanted
        warn_caller(
            "Explicit initial center position passed: performing only one init in "
            f"{type(self).__name__} instead of n_init={wanted}.",
            RuntimeWarning,
        )
        return 1

    def _new_listener(self, *others: Any) -> Listener:
        """Return who hears of a fit: the callback, lines that `verbose` prints, and others."""
        callback = self.callback
        if isinstance(callback, str):
            callback = progress()
        return Listener(callback, self._lines() if self.verbose else None, *others)

    def _lines(self) -> Any:
        """Return what prints the lines of `verbose`."""
        is_each = self.verbose > 1
        return Lines(details=is_each, seconds=float(not is_each), first=_FIRST_LINE)

    def _attributes_at(self, centers: FloatArray) -> dict[str, Any] | None:
        """Return what a copy needs to predict from the centers of a sweep; None if that is more."""
        return {"cluster_centers_": self._needs().measure.divergence.within(centers)}

    def _watcher(self, data: Opened, fit: Fit, history: History) -> Callback:
        """Return what is called after each sweep of a run, and says why the fit is over."""
        listener = fit.listener

        def watch(state: SweepState) -> Reason:
            asks = listener and listener(state.widened(data.of_all_columns))
            why = reason_to_stop(asks) or "its time was over" * fit.is_late()
            if fit.rules_apply and self._may_end_at(state):
                why = why or reason_to_end_fit(self.stop, history.records)
            if why:
                data.stop_recording()
            return Reason(why)

        return watch

    def _may_end_at(self, state: SweepState) -> bool:
        """Return whether the centers of a sweep are such as the fit returns."""
        is_hard = state.power == -math.inf or not self.polish
        has_all = not hasattr(self, "n_clusters") or len(state.centers) == self._n_centers
        return is_hard and has_all

    def _keep(self, run: Run) -> None:
        """Put a run on the estimator."""
        self.cluster_centers_ = run.centers
        if run.labels is None:
            forget(self, "labels_")
        else:
            self.labels_ = run.labels
        self.inertia_ = run.inertia
        self.n_iter_ = len(run.history.records)
        self.n_relocated_ = run.history.n_relocated
        self.history_ = run.history.as_recarray()
        remember(self, run.attributes)

    def _bring_home(self, X: MatrixLike, data: Opened) -> None:
        """Give centers all columns, and results the form in which the points came."""
        centers = data.of_all_columns(self.cluster_centers_)
        self.cluster_centers_ = like_given(X, centers, of="centers")
        if hasattr(self, "labels_"):
            self.labels_ = _of_rows(X, data, self.labels_)

    def _initial_centers(self, data: Opened, fit: Fit) -> FloatArray:
        """Return centers to start from, others at each call if they are drawn."""
        return initial_centers(self.init, self._n_centers, data, fit)

    # After a fit.

    def fit_predict(
        self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> Labels:
        """Find the centers and return the label of each point; the same as `fit(X).labels_`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The points.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            As in `fit`.

        Returns
        -------
        ndarray of shape (n_samples,)
            int32 labels.
        """
        return self.fit(X, sample_weight=sample_weight).labels_

    @overload
    def predict(self, X: MatrixLike) -> Labels: ...

    @overload
    def predict(self, X: MatrixLike, *, output: str | os.PathLike[str]) -> Path: ...

    def predict(
        self, X: MatrixLike, *, output: str | os.PathLike[str] | None = None
    ) -> Labels | Path:
        """Return the label of each point's nearest center, or of the first of equally near ones.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), path or PartedData
            The points. A path is read part by part; see `fit`. Labels of a Dask array or DataFrame
            are a Dask array that is not computed yet.
        output : path, optional
            NPY file for the labels, int32; it appears once it is complete. Needed if X is read part
            by part, since the labels may not fit into memory.

        Returns
        -------
        ndarray of shape (n_samples,) or path
            int32 labels; with `output`, the path.
        """
        with self._new_points(X) as opened:
            labels = opened.predicted(to_array(self.cluster_centers_), output)
            found: Labels | Path = _of_rows(X, opened, labels)
        return found

    def transform(self, X: MatrixLike) -> Points:
        """Return the distance from each point to each center.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The points.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            Euclidean distances, not squared; other divergences as they are. Always dense.
        """
        with self._new_points(X) as opened:
            distances = opened.distances(to_array(self.cluster_centers_))
        found: Points = _of_rows(X, opened, distances)
        wants_table = _get_output_config("transform", self)["dense"] != "default"
        return to_array(found) if wants_table else found

    def fit_transform(
        self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> Points:
        """Find the centers and return the distances to them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The points.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            As in `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            As from `transform`.
        """
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def score(
        self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return minus the weighted sum of squared distances to the nearest centers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The points.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            As in `fit`.

        Returns
        -------
        float
            Higher is better; zero is the highest possible score.
        """
        with self._new_points(X, sample_weight) as opened:
            return -opened.inertia(self._centers(opened.n_features))

    def optimality_gap(
        self, X: MatrixLike, *, sample_weight: ArrayLike | None = None, **options: Any
    ) -> OptimalityGap:
        """Bound how far the centers are from the lowest inertia of as many centers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The points of the fit.
        sample_weight : array-like of shape (n_samples,), optional
            The weights of the fit.
        **options
            As in `powermeans.optimality_gap`.

        Returns
        -------
        OptimalityGap
            Printing it gives a sentence.
        """
        from powermeans.optimality.of_points import optimality_gap

        return optimality_gap(X, self, sample_weight=sample_weight, **options)

    def _told_of_the_optimum(self) -> str | None:
        if getattr(self, "is_optimal_", False):
            return "proved to be optimal"
        given: list[Any] = [reference() for reference in _given_to.get(id(self), ())]
        if not given or any(value is None for value in given):
            return None
        from powermeans.optimality.of_points import gap_in_a_moment

        # What has changed since the fit may no longer fit the model, and nobody asked.
        with contextlib.suppress(Exception):
            found = gap_in_a_moment(self, *given)
            return None if found is None else found.verdict
        return None

    def _remember_given(self, given: list[weakref.ref[Any]]) -> None:
        if id(self) not in _given_to:
            weakref.finalize(self, _given_to.pop, id(self), None).atexit = False
        _given_to[id(self)] = given

    def _labels_and_score(
        self, X: MatrixLike, sample_weight: ArrayLike | None = None
    ) -> tuple[Labels, float]:
        """Return the results of `predict` and `score` for an array from one pass."""
        data = self._new_points(X, sample_weight)
        labels, inertia = data.assign(self._centers(data.n_features))
        return labels, -inertia

    @classmethod
    def from_centers(cls, centers: ArrayLike, **params: Any) -> Self:
        """Make an estimator that predicts with given centers, without a fit.

        Parameters
        ----------
        centers : array-like of shape (n_clusters, n_features)
            The centers. The columns of a DataFrame become the feature names.
        **params
            Parameters of the constructor, except `n_clusters`.

        Returns
        -------
        estimator
            With `cluster_centers_`, `n_features_in_`, `n_iter_ = 0` and whatever else predictions
            need; without `labels_` and `inertia_`, which belong to data.

        Examples
        --------
        >>> from powermeans import KMeans
        >>> KMeans.from_centers([[0.0], [3.0]]).predict([[1.0], [2.0]])
        array([0, 1], dtype=int32)
        """
        centers = to_array(centers)
        n_clusters = _number_of(centers, params)
        if "n_clusters" in cls._get_param_names():
            params["n_clusters"] = n_clusters
        estimator = cls(**params)
        estimator._validate_params()
        needs = replace(estimator._needs().measured(has_missing=False), fit=FitNeeds())
        points = admit_array(centers, None, needs, name="centers").points
        if sparse.issparse(points):
            raise ValueError("centers are sparse: pass centers.toarray()")
        estimator.cluster_centers_ = points.copy()
        estimator.n_iter_ = 0
        estimator._use_given_centers()
        return estimator

    def to_sklearn(self) -> Any:
        """Return a fitted `sklearn.cluster.KMeans` with the same centers and predictions.

        Returns
        -------
        sklearn.cluster.KMeans

        Examples
        --------
        >>> from powermeans import KMeans
        >>> theirs = KMeans.from_centers([[0.0], [3.0]]).to_sklearn()
        >>> theirs.predict([[1.0], [2.0]])
        array([0, 1], dtype=int32)
        """
        check_is_fitted(self)
        if not self._fitted_needs().measure.is_plain:
            raise ValueError(
                f"{self!r} does not compare whole points by squared Euclidean distances, and "
                "scikit-learn's KMeans does nothing else: there is no such KMeans"
            )
        from sklearn.cluster import KMeans as SklearnKMeans

        centers = np.asarray(to_array(self.cluster_centers_))
        theirs = SklearnKMeans(n_clusters=len(centers), init=centers, n_init=1, max_iter=1)
        with warnings.catch_warnings():
            # It warns about centers that coincide.
            warnings.simplefilter("ignore", ConvergenceWarning)
            theirs.fit(centers)
        theirs.cluster_centers_ = centers.copy()
        for attribute in ("labels_", "inertia_", "n_iter_", "feature_names_in_"):
            if hasattr(self, attribute):
                setattr(theirs, attribute, to_array(getattr(self, attribute)))
        return theirs

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "observed"
        tags.input_tags.sparse = not tags.input_tags.allow_nan
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    # New points.

    def _columns(self) -> Columns:
        """Return the columns of the points of the fit."""
        names = getattr(self, "feature_names_in_", None)
        return Columns(
            getattr(self, "n_features_in_", None),
            None if names is None else tuple(names),
            getattr(self, "preparation_", None),
        )

    def _new_points(self, X: MatrixLike, sample_weight: ArrayLike | None = None) -> Opened:
        check_is_fitted(self)
        return open_points(X, sample_weight, self._fitted_needs())

    def _is_plain(self) -> bool:
        """Return whether whole points are compared by squared Euclidean distances."""
        return self._fitted_needs().measure.is_plain

    def _centers(self, n_features: int) -> FloatArray:
        return check_centers(to_array(self.cluster_centers_), n_features)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        if is_dask(state.get("labels_")):
            # The labels belong to a collection, which may be larger than memory.
            state = {name: value for name, value in state.items() if name != "labels_"}
        return state

    def _shares(
        self,
        X: MatrixLike,
        memberships: Callable[[FloatArray], FloatArray],
        exponent: float,
    ) -> FloatArray:
        """Return memberships, which do not depend on the unit of distance, from blocks of points.

        Those of a tensor are in proportion to distances to the power of the exponent.
        """
        with self._new_points(X) as opened:
            centers = to_array(self.cluster_centers_)
            shares: FloatArray = _of_rows(X, opened, opened.shares(centers, memberships, exponent))
        return shares


def _of_rows(X: MatrixLike, data: Opened, found: Any) -> Any:
    """Return an array with a row for each point in the form in which the points came."""
    if not isinstance(found, np.ndarray):  # a file, or results where the points are
        return found
    return like_given(X, data.of_all_rows(found), of="points")


def _better(run: Run, best: Run | None) -> Run:
    return run if best is None or run.loss < best.loss else best


def report_end(run: Run, verbose: Any, advice: str = "raise max_iter or tol") -> None:
    """Print why a run ended, and warn if it was cut short."""
    end = run.ends[-1]
    if verbose:
        print(f"The end: {end.reason}.")
    if not (end.has_converged or end.was_stopped):
        warn_caller(f"not converged after {end.reason}: {advice}", ConvergenceWarning)


def _number_of(centers: ArrayLike, params: dict[str, Any]) -> int:
    """Return the number of centers, which no parameter may repeat."""
    shape = np.shape(centers)
    if len(shape) != 2:
        raise ValueError(
            f"centers has the shape {shape}: pass one row for each center, of the shape "
            "(n_clusters, n_features)"
        )
    if "n_clusters" in params:
        raise ValueError(
            f"n_clusters={params['n_clusters']!r} is not for from_centers, since centers has "
            f"{shape[0]} rows: leave it out"
        )
    return int(shape[0])


@functools.cache
def _constraints_by_parameter(kind: type[CenterEstimator]) -> list[tuple[str, list[Any]]]:
    wanted = kind._parameter_constraints
    return [
        (name, [make_constraint(constraint) for constraint in wanted[name]])
        for name in kind._get_param_names()
        if wanted.get(name, "no_validation") != "no_validation"
    ]


def _hint(name: str, value: Any, constraints: list[Any]) -> str:
    """Return the value that was probably meant, as a sentence, if one can be guessed."""
    if name == "stop" and isinstance(value, Real):
        return f" Pass powermeans.engine.stopping.MaxSeconds({value})."
    if not isinstance(value, str):
        return ""
    if value.isdecimal():
        return f" Pass {name}={value} without quotes."
    options = {option for one in constraints for option in getattr(one, "options", ())}
    found = nearest(value, sorted(option for option in options if isinstance(option, str)))
    return found.replace(": did", " Did")
