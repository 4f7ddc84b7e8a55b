"""What all estimators of the package share: the border, restarts, and everything after a fit."""

from __future__ import annotations

import abc
import copy
import functools
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, make_constraint
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from powermeans.estimators.opening import MatrixLike, RowsOpener, TrainingData, opened
from powermeans.inputs.checks import (
    check_centers,
    check_domain,
    check_init,
    divide_by_power_of_two,
    exponent_to_square,
)
from powermeans.loop.anneal import Callback, Stage, StageEnd, anneal, says_stop
from powermeans.loop.history import History, Spent, SweepRecords, SweepState
from powermeans.parts.parted_rows import PartedRows
from powermeans.rows import open_rows
from powermeans.rows.on_device import is_tensor, like, on_host, shares_of, threads_at
from powermeans.rows.protocol import Rows
from powermeans.seeds.choose import choose_seeds, uniform_seeds
from powermeans.seeds.parallel import Candidates, ParallelSeeds, distinct_places
from powermeans.sources import Scaling, is_dask, is_parted
from powermeans.system.label_files import write_labels
from powermeans.types import FloatArray, Labels, Points
from powermeans.weighted_draws import n_greedy_candidates

_BLOCK_ELEMENTS = 2**17


@dataclass(frozen=True, slots=True)
class Run:
    """The outcome of one run, complete or interrupted."""

    centers: Points
    labels: Any
    inertia: float
    history: History
    spent: Spent
    ends: Sequence[StageEnd] = ()

    @property
    def was_stopped(self) -> bool:
        """Whether the callback asked to stop."""
        return any(end.was_stopped for end in self.ends)


class CenterEstimator(
    RowsOpener,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    BaseEstimator,
    metaclass=abc.ABCMeta,
):
    """Base of estimators that describe data by centers.

    A subclass says which stages a fit has; everything else is here.
    """

    n_clusters: int
    init: Any
    random_state: Any
    verbose: Any
    cluster_centers_: Points
    labels_: Labels
    inertia_: float
    scaling_: Scaling | None
    n_iter_: int
    n_relocated_: int
    history_: SweepRecords

    # Where labels are to be written is no metadata to be routed.
    __metadata_request__predict: ClassVar[dict[str, str]] = {"output": UNUSED}

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
        "copy_x": ["boolean"],
    }

    # What a subclass decides.

    @abc.abstractmethod
    def _stages(self, data: TrainingData) -> list[Stage]:
        """The stages of each run."""

    @abc.abstractmethod
    def _wanted_runs(self) -> int:
        """How many runs to make where the initial centers differ from run to run."""

    def _report_end(self, run: Run) -> None:
        """Tell the user how a run ended."""
        end = run.ends[-1]
        if self.verbose:
            print(f"The end: {end.reason}.")
        if not (end.has_converged or end.was_stopped):
            warnings.warn(
                f"not converged after {end.reason}: {self._advice(run)}",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _advice(self, run: Run) -> str:
        """What to do about a run that was cut short."""
        return "raise max_iter or tol"

    def _watcher(self) -> Callback:
        """For one fit, what is called after each sweep; True stops the fit."""

        def watch(state: SweepState) -> object:
            if self.verbose:
                print(f"Iteration {state.sweep - 1}, inertia {state.inertia}.")
            return None

        return watch

    def _run(
        self,
        data: TrainingData,
        stages: list[Stage],
        seeds: Callable[[], FloatArray],
        history: History,
        rng: np.random.RandomState,
        watch: Callback,
    ) -> list[StageEnd]:
        """One run, from seeds that are others at each call."""
        return anneal(data.rows, seeds(), stages, history, watch)

    @classmethod
    def _params_for(cls, n_centers: int) -> dict[str, Any]:
        """The parameters of an estimator with so many centers."""
        return {"n_clusters": n_centers}

    def _after_fit(self) -> None:
        """Forget what only a fit in progress has, also when it failed."""
        return

    def _merit(self, run: Run) -> float:
        """What the best of several runs has least of."""
        return run.inertia

    def _keep(self, run: Run) -> None:
        """Put a run on the estimator."""
        self.cluster_centers_ = run.centers
        if run.labels is None:
            self.__dict__.pop("labels_", None)
        else:
            self.labels_ = run.labels
        self.inertia_ = run.inertia
        self.n_iter_ = len(run.history.records)
        self.n_relocated_ = run.history.n_relocated
        self.history_ = run.history.as_recarray()

    def _validate_params(self) -> None:
        """What scikit-learn does, which takes long, only where it is going to complain."""
        for name, constraints in _constraints_by_parameter(type(self)):
            value = getattr(self, name)
            if not any(constraint.is_satisfied_by(value) for constraint in constraints):
                super()._validate_params()

    def __getattr__(self, name: str) -> Any:
        if name == "labels_" and "scaling_" in self.__dict__:
            raise AttributeError(
                "there is no labels_ since the rows were read part by part and their labels may "
                'not fit into memory: call predict(X, output="labels.npy")'
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_is_fitted__(self) -> bool:
        # A fit that failed has left other attributes.
        return hasattr(self, "cluster_centers_")

    # Fitting.

    def fit(self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the centers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), path, chunks or PartedData
            The points. They are never changed, and are copied only where their dtype is not
            float32 or float64 or their order is not C (CSR, if sparse). float16 becomes float32,
            every other dtype float64. Where an estimator needs no more than sums, a file, a
            folder or a list of them is read part by part and need not fit into memory, as are
            chunks: a list of arrays, an iterable that starts anew each time, or a function that
            returns one. See `powermeans.open_data`, which also says how. Then there is no
            `labels_`. A Dask array or DataFrame is worked on where Dask has it, and `labels_` is a
            Dask array. A tensor of PyTorch is worked on where it is, and centers and labels are
            tensors there; what `placement_` tells is how.
        y : None
            Ignored, here for scikit-learn's convention.
        sample_weight : array-like of shape (n_samples,), optional
            Not negative. A weight of three is the same as three copies of the point, a weight of
            zero the same as none.

        Returns
        -------
        self
        """
        self._validate_params()
        watch, rng = self._watcher(), check_random_state(self.random_state)
        try:
            with threads_at(X, self._device(), self._wanted_threads()):
                data = self._training_data(X, sample_weight)
                former = self.__dict__.get("history_")
                try:
                    self._keep_best_run(data, self._stages(data), rng, self._leaving(watch))
                    n_found = self._n_found(data)
                finally:
                    # Also of a fit that was cut short, but not of one that left nothing.
                    if self.__dict__.get("history_") is not former:
                        self._give_as(X, data.rows)
        finally:
            self.__dict__.pop("_candidates", None)
            self._close_journal()
            self._after_fit()
            # Also where passes were shown, and no sweep came.
            fit_ended = getattr(getattr(self, "callback", None), "fit_ended", None)
            if fit_ended is not None:
                fit_ended()
        n_needed = self._n_needed()
        if n_found < n_needed:
            warnings.warn(
                f"Number of distinct clusters ({n_found}) found smaller than n_clusters "
                f"({n_needed}). Possibly due to duplicate points in X.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _give_as(self, X: MatrixLike, rows: Rows) -> None:
        """Centers and labels as tensors where the points are, if they are a tensor."""
        self.__dict__.pop("placement_", None)
        if (placement := getattr(rows, "placement", None)) is not None:
            self.placement_ = placement
            self.history_.placement = placement
        if is_tensor(X):
            self.cluster_centers_ = like(X, self.cluster_centers_)
            self.labels_ = like(X, self.labels_)

    def _n_found(self, data: TrainingData) -> int:
        """How many clusters have points."""
        if isinstance(data.rows, PartedRows):
            at = np.asarray(self.cluster_centers_, dtype=np.float64)
            return int(np.count_nonzero(data.rows.assignment(at).is_used))
        is_found = np.zeros(len(self.cluster_centers_), dtype=bool)
        is_found[self.labels_] = True  # unlike bincount without a copy of the labels
        return int(np.count_nonzero(is_found))

    def _leaving(self, watch: Callback) -> Callback:
        """The same, and where it says stop nothing more is written down."""

        def leaving(state: SweepState) -> object:
            answer = watch(state)
            if says_stop(answer):
                self._leave_journal()
            return answer

        return leaving

    def _keep_best_run(
        self,
        data: TrainingData,
        stages: list[Stage],
        rng: np.random.RandomState,
        watch: Callback,
    ) -> None:
        """Run, and run again; the run of least inertia is kept, also when this is interrupted."""
        best: Run | None = None

        def seeds() -> FloatArray:
            return self._initial_centers(data, rng)

        for number in range(self._n_runs()):
            history = History(number)
            try:
                ends = self._run(data, stages, seeds, history, rng, watch)
                run = self._finish(data, history, ends)
            except BaseException:
                self._leave_journal()
                if history.centers is not None:
                    best = self._better(best, self._cut_short(data, history))
                if best is not None:
                    self._keep(best)
                raise
            self._report_end(run)
            best = self._better(best, run)
            if run.was_stopped:
                break
        if best is not None:
            self._keep(best)

    def _finish(self, data: TrainingData, history: History, ends: Sequence[StageEnd] = ()) -> Run:
        """Labels and inertia of the centers as they are stored."""
        centers = self._stored(data, history)
        if isinstance(data.rows, PartedRows):
            inertia = data.rows.assignment(centers.astype(np.float64)).inertia
            labels = self._labels_to_come(data, centers)
        else:
            labels, inertia = data.rows.assign(centers.astype(np.float64))
        return Run(centers, labels, inertia, history, history.spent(), ends)

    def _cut_short(self, data: TrainingData, history: History) -> Run:
        """The outcome of a run that an error or an interrupt ended.

        Of points in parts no more is asked: a pass may take long, or fail as the last one did.
        """
        if not isinstance(data.rows, PartedRows):
            return self._finish(data, history)
        centers = self._stored(data, history)
        labels = self._labels_to_come(data, centers)
        return Run(centers, labels, history.known_inertia, history, history.spent())

    def _stored(self, data: TrainingData, history: History) -> Points:
        """The centers in the dtype of the points."""
        assert history.centers is not None, "every run has a sweep"
        is_elsewhere = isinstance(data.rows, PartedRows) or is_tensor(data.points)
        dtype = data.rows.dtype if is_elsewhere else data.points.dtype
        return np.array(history.centers, dtype=dtype)

    def _labels_to_come(self, data: TrainingData, centers: Points) -> Any:
        """Labels of points in parts: a Dask array of those on Dask, and None of others."""
        return None if data.collection is None else self._lazy_labels(data.collection, centers)

    def _better(self, best: Run | None, run: Run) -> Run:
        return run if best is None or self._merit(run) < self._merit(best) else best

    def _n_runs(self) -> int:
        wanted = self._wanted_runs()
        if wanted == 1 or isinstance(self.init, str) or callable(self.init):
            return wanted
        warnings.warn(
            "Explicit initial center position passed: performing only one init in "
            f"{type(self).__name__} instead of n_init={wanted}.",
            RuntimeWarning,
            stacklevel=4,
        )
        return 1

    def _initial_centers(self, data: TrainingData, rng: np.random.RandomState) -> FloatArray:
        rows, n_clusters = data.rows, self.n_clusters
        if isinstance(self.init, ParallelSeeds) or isinstance(rows, PartedRows):
            centers = self._seeds_in_passes(data, rng)
        elif callable(self.init):
            centers = self._checked_init(
                self.init(data.points, n_clusters, random_state=rng), rows.n_features
            )
        elif not isinstance(self.init, str):
            centers = self._checked_init(self.init, rows.n_features)
        elif self.init == "random":
            centers = uniform_seeds(rows, n_clusters, rng)
        else:
            n_candidates = n_greedy_candidates(n_clusters) if self.init == "k-means++" else 1
            centers, _ = choose_seeds(rows, n_clusters, rng, n_candidates=n_candidates)
        if self.verbose:
            print("Initialization complete")
        return centers

    def _seeds_in_passes(self, data: TrainingData, rng: np.random.RandomState) -> FloatArray:
        """Seeds of points that are too many to walk along; candidates are found once for a fit."""
        rows, n_clusters = data.rows, self.n_clusters
        if not isinstance(self.init, str | ParallelSeeds):
            if callable(self.init):
                raise ValueError(
                    "init is a function of all points, and X is read part by part: pass "
                    'init="k-means++", "random", an array or powermeans.ParallelSeeds()'
                )
            return self._checked_init(self.init, rows.n_features)
        if self.init == "random":
            return distinct_places(rows, n_clusters, rng)
        found = self.__dict__.get("_candidates")
        if not isinstance(found, Candidates) or found.origin is not rows:
            way = self.init if isinstance(self.init, ParallelSeeds) else ParallelSeeds()
            found = way.candidates(rows, n_clusters, rng, divergence=self._divergence())
            self._candidates = found
        is_plain = self.init == "plain-k-means++"
        return found.seeds(n_clusters, rng, 1 if is_plain else n_greedy_candidates(n_clusters))

    def _checked_init(self, init: ArrayLike, n_features: int) -> FloatArray:
        centers = check_init(init, self.n_clusters, n_features)
        check_domain(centers, self._divergence(), name="init")
        return centers

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
        _refuse_parted(X, "fit_predict", "call fit(X), then predict(X, output=path)")
        return self.fit(X, sample_weight=sample_weight).labels_

    @overload
    def predict(self, X: MatrixLike) -> Labels: ...

    @overload
    def predict(self, X: MatrixLike, *, output: str | os.PathLike[str]) -> Path: ...

    def predict(
        self, X: MatrixLike, *, output: str | os.PathLike[str] | None = None
    ) -> Labels | Path:
        """Label of the nearest center for each point, the first of several.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), path or PartedData
            The points. A path is read part by part; see `fit`. Labels of a Dask array or DataFrame
            are a Dask array that is not computed yet.
        output : path, optional
            Where to write the labels, as an NPY file of int32, which is there once all of it is
            written. Needed where X is read part by part, since the labels may not fit into memory.

        Returns
        -------
        ndarray of shape (n_samples,) or path
            int32 labels; with `output`, the path.
        """
        if is_dask(X):
            _refuse_output(output)
            lazy: Labels = self._lazy_labels(self._dask_points(X).array, self.cluster_centers_)
            return lazy
        if not is_parted(X):
            rows = self._rows(X)
            labels, _ = rows.assign(self._centers(rows.n_features))
            return like(X, labels) if output is None else write_labels(output, [labels])
        if output is None:
            raise ValueError(
                "the labels of rows that are read part by part may not fit into memory: pass "
                'predict(X, output="labels.npy"), and numpy.load what is written'
            )
        source = opened(X)
        if source.is_read_from(output):
            raise ValueError(
                f"output={os.fspath(output)!r} is a file that X is read from and that would be "
                "lost, or in a folder that is read, so that the next fit would take labels for "
                "rows: write them elsewhere"
            )
        parted = self._parted_rows(source)
        centers = self._centers(self.n_features_in_)
        return write_labels(output, (labels for labels, _ in parted.assigned(centers)))

    def transform(self, X: MatrixLike) -> Points:
        """Distance from each point to each center.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The points.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            Euclidean distances, not squared, dense also for sparse points; other divergences as
            they are.
        """
        if is_tensor(X):
            there: Points = self._distances_of_tensor(X)
            return there
        if is_dask(X):
            lazy: Points = self._lazy_distances(self._dask_points(X).array)
            return lazy
        sq_dist, exponent = self._squared_distances(X, "transform")
        if not self._is_plain():
            is_squared = self._divergence() == "squared_euclidean"
            root: Any = np.ldexp(np.sqrt(sq_dist), exponent) if is_squared else sq_dist
            of_centers: Points = root.astype(self.cluster_centers_.dtype, copy=False)
            return of_centers
        distances = np.sqrt(sq_dist, out=sq_dist)
        return np.ldexp(distances, exponent, out=distances) if exponent else distances

    def _distances_of_tensor(self, X: Any) -> Any:
        """What `transform` returns, never leaving the device unless a table is asked for."""
        rows: Any = self._rows(X)
        is_squared = self._divergence() == "squared_euclidean"
        centers = self._centers(rows.n_features)
        there = rows.put_together(rows.distances_there(centers, is_squared=is_squared))
        wants_table = _get_output_config("transform", self)["dense"] != "default"
        return on_host(there) if wants_table else there

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
        _refuse_parted(X, "fit_transform", "call fit(X), then transform some of the rows")
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def score(
        self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Minus the weighted sum of squared distances to the nearest centers.

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
        rows = self._rows(X, sample_weight)
        if isinstance(rows, PartedRows):
            return -rows.assignment(self._centers(self.n_features_in_)).inertia
        _, inertia = rows.assign(self._centers(rows.n_features))
        return -inertia

    def _labels_and_score(
        self, X: MatrixLike, sample_weight: ArrayLike | None = None
    ) -> tuple[Labels, float]:
        """What `predict` and `score` say of an array, from one look at its distances."""
        rows = self._rows(X, sample_weight)
        labels, inertia = rows.assign(self._centers(rows.n_features))
        return labels, -inertia

    @classmethod
    def from_centers(cls, centers: ArrayLike, **params: Any) -> Self:
        """An estimator that predicts with centers from elsewhere, without a fit.

        Parameters
        ----------
        centers : array-like of shape (n_clusters, n_features)
            The centers. The columns of a DataFrame become the feature names.
        **params
            Parameters of the constructor, but for `n_clusters`.

        Returns
        -------
        estimator
            With `cluster_centers_`, `n_features_in_` and `n_iter_ = 0`; with no `labels_` and no
            `inertia_`, which belong to data.

        Examples
        --------
        >>> from powermeans import KMeans
        >>> KMeans.from_centers([[0.0], [3.0]]).predict([[1.0], [2.0]])
        array([0, 1], dtype=int32)
        """
        centers = on_host(centers)
        estimator = cls(**cls._params_for(_number_of(centers, params)), **params)
        estimator._validate_params()
        points = estimator._admit(centers, reset=True, name="centers", has_missing=False).points
        if sparse.issparse(points):
            raise ValueError("centers are sparse: pass centers.toarray()")
        estimator.cluster_centers_ = points.copy()
        estimator.n_iter_ = 0
        return estimator

    def to_sklearn(self) -> Any:
        """The same centers as a fitted `sklearn.cluster.KMeans`, which predicts the same.

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
        if not self._is_plain():
            raise ValueError(
                f"{self!r} does not compare whole points by squared Euclidean distances, and "
                "scikit-learn's KMeans does nothing else: there is no such KMeans"
            )
        from sklearn.cluster import KMeans as SklearnKMeans

        centers = np.asarray(on_host(self.cluster_centers_))
        theirs = SklearnKMeans(n_clusters=len(centers), init=centers, n_init=1, max_iter=1)
        with warnings.catch_warnings():
            # It complains about centers that coincide.
            warnings.simplefilter("ignore", ConvergenceWarning)
            theirs.fit(centers)
        theirs.cluster_centers_ = centers.copy()
        for attribute in ("labels_", "inertia_", "n_iter_", "feature_names_in_"):
            if hasattr(self, attribute):
                setattr(theirs, attribute, on_host(getattr(self, attribute)))
        return theirs

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse()
        tags.input_tags.allow_nan = self._has_missing()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    # The border.

    def _lazy_labels(self, array: Any, centers: Points) -> Any:
        from powermeans.parts.dask import mapped

        return mapped(array, self._bare(centers).predict, dtype=np.int32)

    def _lazy_distances(self, array: Any) -> Any:
        from powermeans.parts.dask import mapped

        is_narrow = self._is_plain() and array.dtype in (np.float16, np.float32)
        plain = np.float32 if is_narrow else np.float64
        dtype = plain if self._is_plain() else self.cluster_centers_.dtype
        bare = self._bare(self.cluster_centers_)
        return mapped(array, bare.transform, dtype=dtype, n_columns=len(self.cluster_centers_))

    def _bare(self, centers: Points) -> Self:
        """An estimator with these centers and nothing that is not needed to look at points."""
        bare = copy.copy(self)
        kept_for_a_fit = ("_candidates", "_journal", "_claimed")
        for name in ("labels_", "history_", "feature_names_in_", *kept_for_a_fit):
            bare.__dict__.pop(name, None)
        if hasattr(bare, "callback"):
            bare.callback = None
        bare.cluster_centers_ = centers
        bare.__dict__.pop("scaling_", None)  # since it is shown points that are scaled
        bare.set_output(transform="default")
        return bare

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        if is_dask(state.get("labels_")):
            # They belong to the collection, which may be larger than memory.
            state = {name: value for name, value in state.items() if name != "labels_"}
        return state

    def _squared_distances(self, X: MatrixLike, method: str) -> tuple[Points, int]:
        """Squared distances of points and centers divided by a power of two, and its exponent."""
        _refuse_parted(X, method, "call it with some of the rows at a time, as an array")
        check_is_fitted(self)
        data = self._admit(X)
        centers = self._centers(data.points.shape[1])
        if self._device() is not None or is_tensor(X):
            at_device: Any = self._open(data)
            in_view: tuple[Points, int] = at_device.sq_distances_in_view(centers)
            return in_view
        if not self._is_plain():
            # In float64, since they may leave the range of float32.
            wide = replace(data, points=data.points.astype(np.float64, copy=False))
            return self._open(wide).sq_distances(centers), 0
        largest = max(data.largest, float(np.abs(centers).max()))
        exponent = exponent_to_square(largest, data.points.dtype)
        points = divide_by_power_of_two(data.points, exponent)
        rows = open_rows(points, n_threads=self._wanted_threads())
        return rows.sq_distances(np.ldexp(centers, -exponent)), exponent

    def _shares(
        self,
        X: MatrixLike,
        memberships: Callable[[FloatArray], FloatArray],
        exponent: float,
    ) -> FloatArray:
        """Memberships, which do not depend on the unit of distance, some points at a time.

        They are proportional to distances to the exponent, which is all that a device is told.
        """
        if not is_parted(X) and (is_tensor(X) or self._device() is not None):
            return self._shares_at_device(X, exponent)
        sq_dist, _ = self._squared_distances(X, "memberships")
        shares = np.empty(sq_dist.shape)
        n_block = max(1, _BLOCK_ELEMENTS // sq_dist.shape[1])
        for start in range(0, len(sq_dist), n_block):
            block = slice(start, start + n_block)
            shares[block] = memberships(sq_dist[block].astype(np.float64))
        return shares

    def _shares_at_device(self, X: MatrixLike, exponent: float) -> FloatArray:
        check_is_fitted(self)
        rows: Any = self._open(self._admit(X))
        found = rows.distance_blocks(self._centers(rows.n_features))
        blocks = shares_of((block for _, block in found), exponent)
        if is_tensor(X):
            there: FloatArray = rows.put_together(blocks)
            return there
        return np.concatenate([on_host(block) for block in blocks]).astype(np.float64, copy=False)

    def _centers(self, n_features: int) -> FloatArray:
        return check_centers(on_host(self.cluster_centers_), n_features)


def _refuse_output(output: object) -> None:
    if output is not None:
        raise ValueError(
            f"output={output!r} is for rows that are read part by part, and X is a Dask "
            "collection: leave it out, and store the Dask array that predict returns, for example "
            "with to_zarr"
        )


def _refuse_parted(X: MatrixLike, method: str, way_out: str) -> None:
    if is_parted(X):
        raise ValueError(
            f"{method} returns an array with a row for each point, and none is made of points that "
            f"are read part by part, as those of paths and chunks are: {way_out}"
        )


def _number_of(centers: ArrayLike, params: dict[str, Any]) -> int:
    """How many centers there are, where nothing else says how many."""
    shape = np.shape(centers)
    if len(shape) != 2:
        raise ValueError(
            f"centers has the shape {shape}: pass one row for each center, of the shape "
            "(n_clusters, n_features)"
        )
    if "n_clusters" in params:
        raise ValueError(
            f"n_clusters={params['n_clusters']!r} is for the centers to say, of which there are "
            f"{shape[0]}: leave it out"
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
