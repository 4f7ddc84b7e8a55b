"""The base of all estimators: restarts of a fit, and predictions after it."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import (
    ClusterMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import (
    Interval,
    InvalidParameterError,
    make_constraint,
)

from powermeans.engine.anneal import Result, Stage, anneal
from powermeans.engine.fit import Fit, Listener, random_numbers
from powermeans.engine.history import History, SweepState
from powermeans.engine.seeds.initial import Seeds, asks_for_centers
from powermeans.engine.stopping import StopRule, seconds_of
from powermeans.errors import ArgumentError, nearest, warn_caller
from powermeans.methods.documented import one_of
from powermeans.methods.predictions import Predictions, of_rows
from powermeans.methods.progress import (
    CallbackSupportMixin,
    FitTasks,
    Lines,
    progress,
    with_callbacks,
)
from powermeans.points.needs import FitNeeds, Measure, Needs, Refusals
from powermeans.points.opening import MatrixLike, open_points
from powermeans.points.predictions import assigned, n_found
from powermeans.points.protocol import Points
from powermeans.system.attributes import forget, references, remember
from powermeans.system.containers import like_given
from powermeans.types import FloatArray, Labels, Matrix

# Not at once, so that `verbose` prints what follows the check of the rows, which may take long.
_FIRST_LINE = 1e-3


class CenterEstimator(
    CallbackSupportMixin,
    ClusterMixin,
    Predictions,
):
    """Base of estimators that describe data by centers.

    A subclass says what a fit asks of its points (`_needs`; `_fitted_needs` of new ones;
    `_why_whole` entries must not be missing), what else opens with them (`_open`), of which stages
    a run consists (`_stages`) or how it is made (`_fit`), how many there are (`_n_runs`), and what
    it tells besides centers (`_attributes`, which `_keep` sets, and `_state` describes for files).
    A few have another `_use_given_centers`, `_of_a_sweep`, `_lines`, `_report_end` or `_advice`.
    Where the inertia is the aim, `_lowers_inertia` is true.
    """

    _state = """cluster_centers_: finite[k,d]! labels_: label[n] inertia_: number
        n_iter_: count n_relocated_: count history_: records[sweeps]
        preparation_: Prepare?"""

    n_clusters: Any
    # What an estimator without these parameters does.
    init: Any = None
    n_init: Any = 1
    random_state: Any = None
    n_threads: int | None = None
    stop: StopRule | None = None
    polish: bool = True
    callback: Any = None
    verbose: Any = 0
    # What to do about a run that was cut short.
    _advice: str = "raise max_iter or tol"
    # Whether its aim is the inertia, which has a bound.
    _lowers_inertia: bool = False

    n_iter_: int
    n_relocated_: int
    history_: np.recarray[Any, Any]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "init": [one_of({"k-means++", "random"}), callable, "array-like"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "verbose": ["verbose"],
        "missing": [one_of({"error", "observed"})],
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

    def _stages(self, points: Points, fit: Fit) -> list[Stage]:
        """Return the stages of each run."""
        return []

    def _fit(self, points: Points, fit: Fit) -> Result:
        """Make one run, by default through the stages of the fit."""
        centers = fit.seeds.draw(points, fit)
        fit.history.phase("improving")
        return anneal(points, centers, fit.stages, fit)

    def _attributes(self, points: Points, fit: Fit, result: Result) -> Result:
        """Return a result with what becomes an attribute, for the centers as they are stored."""
        centers = stored_centers(points, fit)
        # After an interrupt a further pass over parts may take long, or fail as the last one did.
        known = None if math.isnan(result.inertia) else result.inertia
        labels, inertia = assigned(points, centers.astype(np.float64), known)
        return labelled(result, fit, centers, labels, inertia, loss=inertia)

    def _draws_centers(self) -> bool:
        """Return whether the initial centers are drawn, and not those of an array."""
        return isinstance(self.init, str) or callable(self.init)

    def _report_end(self, result: Result) -> None:
        """Print why each stage of a run ended, and warn of those that were cut short."""
        for end in (*result.former, result):
            where = "" if math.isnan(end.power) else f" at power={end.power:.4g}"
            if self.verbose:
                print(f"The end{where}: {end.reason}.")
            if not (end.has_converged or end.was_stopped):
                told = f"not converged after {end.reason}{where}: {self._advice}"
                warn_caller(told, ConvergenceWarning)

    def _validate_params(self) -> None:
        """Validate parameters; ask scikit-learn, which is slow, only for its error message."""
        for name, constraints in _constraints_by_parameter(type(self)):
            value = getattr(self, name)
            if isinstance(value, int) and abs(value) >= 2**63:  # no loop counts as far
                raise ArgumentError(
                    "is beyond 2**63", "pass less, or a float", argument=name, value=value
                )
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
            estimator needs only sums, the rows of a file, a folder, a list of them, or chunks (a
            list of arrays, an iterable that starts anew each time, or a function that returns one)
            need not fit into memory. Chunks, and files that do not fit, are read part by part, and
            there is no `labels_` then; see `powermeans.open_data`. A Dask array or DataFrame is
            processed where Dask stores it, and `labels_` is a Dask array. A PyTorch tensor is
            processed where it is, and centers and labels are tensors there.
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
            fit = Fit(random_numbers(self.random_state), listener, end, self.stop)
            if getattr(self, "n_clusters", None) == "auto":
                forget(self, "n_clusters_")
                remember(self, {"n_clusters_": self._chosen_k(X, sample_weight, fit)})
            listener.phase("checking the rows")
            with self._open(X, sample_weight, fit) as points:
                former = getattr(self, "history_", None)
                try:
                    self._keep_best_run(points, fit)
                    self._remember_given(references(X, sample_weight))
                    centers = np.asarray(self.cluster_centers_, dtype=np.float64)
                    n_distinct = n_found(points, centers, getattr(self, "labels_", None))
                finally:
                    # Also after a fit that was cut short, unless it left nothing.
                    if getattr(self, "history_", None) is not former:
                        remember(self, self._at_home(vars(self), X, points))
                        listener.kept(self.inertia_)
        if tasks is not None:
            tasks.complete()
        n_needed = self._n_centers
        if n_distinct < n_needed:
            warn_caller(
                f"Number of distinct clusters ({n_distinct}) found smaller than n_clusters "
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

    def _open(self, X: MatrixLike, sample_weight: ArrayLike | None, fit: Fit) -> Points:
        """Open the points of a fit and note their columns."""
        needs = self._needs()
        fit.divergence = needs.measure.divergence
        if fit.listener.callbacks:
            needs = needs.of_a_fit(tell=fit.listener.part)
        points = open_points(X, sample_weight, needs)
        fit.as_given, fit.stop_recording = points.given.of_all_columns, points.stop_recording
        fit.may_return = self._may_return
        forget(self, "preparation_")
        if (noted := points.given.noted) is not None:
            forget(self, "feature_names_in_")
            remember(self, noted)
        return points

    def _keep_best_run(self, points: Points, fit: Fit) -> None:
        """Make all runs and keep the best, even if the last one is interrupted."""
        fit.stages = self._stages(points, fit)
        best: Result | None = None
        for number in range(self._n_runs()):
            fit.history, fit.learned = History(number, fit.listener.phase), None
            fit.seeds = Seeds(self.init, self._n_centers)
            try:
                result = self._attributes(points, fit, self._fit(points, fit))
            except BaseException:
                points.stop_recording()
                if fit.history.centers is not None:
                    left = cut_short(fit)
                    best = _better(self._attributes(points, fit, left), best)
                if best is not None:
                    self._keep(best)
                raise
            self._report_end(result)
            best = _better(result, best)
            if any(stage.was_stopped for stage in (*result.former, result)):
                break
        if best is not None:
            self._keep(best)

    def _n_runs(self) -> int:
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
        if self.verbose > 1:
            return Lines(details=True, seconds=0.0)
        return Lines(first=_FIRST_LINE)

    def _of_a_sweep(self, centers: FloatArray) -> dict[str, Any] | None:
        """Return what a copy that scikit-learn's callbacks get after a sweep needs to predict.

        None is returned where centers are not enough.
        """
        return {"cluster_centers_": self._needs().measure.divergence.within(centers)}

    def _may_return(self, state: SweepState) -> bool:
        """Return whether the centers of a sweep are such as the fit returns."""
        is_hard = state.power == -math.inf or not self.polish
        has_all = not hasattr(self, "n_clusters") or len(state.centers) == self._n_centers
        return is_hard and has_all

    def _keep(self, result: Result) -> None:
        self.cluster_centers_ = result.centers
        if result.labels is None:
            forget(self, "labels_")
        else:
            self.labels_ = result.labels
        self.inertia_ = result.inertia
        remember(self, result.attributes)

    def _at_home(self, found: Mapping[str, Any], X: MatrixLike, points: Points) -> dict[str, Any]:
        """Return centers with all columns, and labels, in the form in which the points came."""
        centers = points.given.of_all_columns(found["cluster_centers_"])
        home = {"cluster_centers_": like_given(X, centers, of="centers")}
        if "labels_" in found:
            home["labels_"] = of_rows(X, points, found["labels_"])
        return home

    def fit_predict(
        self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> Labels:
        """Find the centers and return the label of each point; the same as `fit(X).labels_`.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        ndarray of shape (n_samples,)
            int32 labels.
        """
        return self.fit(X, sample_weight=sample_weight).labels_

    def fit_transform(
        self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> Matrix:
        """Find the centers and return the distances to them.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            As from `transform`.
        """
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "observed"
        tags.input_tags.sparse = not tags.input_tags.allow_nan
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def cut_short(fit: Fit) -> Result:
    """Return what a run has reached that was interrupted."""
    known = fit.history.known_inertia
    return Result(fit.best_centers(), "it was interrupted", was_stopped=True, inertia=known)


def stored_centers(points: Points, fit: Fit) -> Any:
    """Return the best centers of a run, in the dtype in which they are stored."""
    fit.history.phase("labelling the rows")
    return np.array(fit.divergence.within(fit.best_centers()), dtype=points.given.dtype)


def labelled(
    result: Result, fit: Fit, centers: Any, labels: Any, inertia: float, *, loss: float
) -> Result:
    """Return the result of a run for these stored centers."""
    history = fit.history
    attributes = {
        "n_iter_": len(history.records),
        "n_relocated_": history.n_relocated,
        "history_": history.as_recarray(),
    }
    found = replace(result, centers=centers, labels=labels, inertia=inertia, loss=loss)
    return found.with_attributes(**attributes)


def _better(result: Result, best: Result | None) -> Result:
    return result if best is None or result.loss < best.loss else best


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
