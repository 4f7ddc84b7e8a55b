"""What all estimators of the package share: the border, restarts, and everything after a fit."""

from __future__ import annotations

import abc
import functools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

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
from sklearn.utils.validation import check_is_fitted, validate_data

from powermeans.anneal import Callback, Stage, StageEnd, anneal
from powermeans.divergences import Divergence
from powermeans.history import History, Spent, SweepState
from powermeans.input_checks import (
    Admitted,
    admit,
    check_centers,
    check_domain,
    check_init,
    divide_by_power_of_two,
    exponent_to_square,
    wanted_form,
)
from powermeans.rows import open_rows
from powermeans.rows.native import NativeRows
from powermeans.rows.protocol import Rows
from powermeans.seeding import n_greedy_candidates
from powermeans.seeds import choose_seeds, uniform_seeds
from powermeans.types import FloatArray, Labels, Points, SparsePoints

MatrixLike = ArrayLike | SparsePoints

_BLOCK_ELEMENTS = 2**17


@dataclass(frozen=True, slots=True)
class TrainingData:
    """What a fit works on, as it left the border."""

    points: Points | SparsePoints
    weights: FloatArray | None
    rows: Rows


@dataclass(frozen=True, slots=True)
class Run:
    """The outcome of one run, complete or interrupted."""

    centers: Points
    labels: Labels
    inertia: float
    history: History
    spent: Spent
    ends: Sequence[StageEnd] = ()

    @property
    def was_stopped(self) -> bool:
        """Whether the callback asked to stop."""
        return any(end.was_stopped for end in self.ends)


class CenterEstimator(
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
    n_iter_: int
    n_relocated_: int
    history_: np.recarray[Any, Any]

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

    def _n_needed(self) -> int:
        """How many points a fit needs at least, and how many of its clusters are to have some."""
        return self.n_clusters

    @classmethod
    def _params_for(cls, n_centers: int) -> dict[str, Any]:
        """The parameters of an estimator with so many centers."""
        return {"n_clusters": n_centers}

    def _wanted_threads(self) -> int | None:
        """How many threads the user asks for; None leaves it to limits and environment."""
        return None

    def _divergence(self) -> Divergence:
        """What a distance is."""
        return "squared_euclidean"

    def _has_missing(self) -> bool:
        """Whether NaN stands for an entry that is missing."""
        return False

    def _takes_sparse(self) -> bool:
        """Whether points may be sparse."""
        return not self._has_missing()

    def _is_plain(self) -> bool:
        """Whether whole points are compared by squared Euclidean distances."""
        return not self._has_missing() and self._divergence() == "squared_euclidean"

    def _after_fit(self) -> None:
        """Forget what only a fit in progress has, also when it failed."""
        return

    def _merit(self, run: Run) -> float:
        """What the best of several runs has least of."""
        return run.inertia

    def _keep(self, run: Run) -> None:
        """Put a run on the estimator."""
        self.cluster_centers_ = run.centers
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

    def __sklearn_is_fitted__(self) -> bool:
        # A fit that failed has left other attributes.
        return hasattr(self, "cluster_centers_")

    # Fitting.

    def fit(self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the centers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The points. They are never changed, and are copied only where their dtype is not
            float32 or float64 or their order is not C (CSR, if sparse). float16 becomes float32,
            every other dtype float64.
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
            data = self._training_data(X, sample_weight)
            self._keep_best_run(data, self._stages(data), rng, watch)
        finally:
            self._after_fit()
        n_needed = self._n_needed()
        is_found = np.zeros(len(self.cluster_centers_), dtype=bool)
        is_found[self.labels_] = True  # unlike bincount without a copy of the labels
        n_found = int(np.count_nonzero(is_found))
        if n_found < n_needed:
            warnings.warn(
                f"Number of distinct clusters ({n_found}) found smaller than n_clusters "
                f"({n_needed}). Possibly due to duplicate points in X.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _training_data(self, X: MatrixLike, sample_weight: ArrayLike | None) -> TrainingData:
        data = self._admit(
            X, sample_weight, reset=True, n_clusters=self._n_needed(), must_differ=True
        )
        return TrainingData(data.points, data.weights, self._open(data))

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
                if history.centers is not None:
                    best = self._better(best, self._finish(data, history))
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
        assert history.centers is not None, "every run has a sweep"
        centers = np.array(history.centers, dtype=data.points.dtype)
        labels, inertia = data.rows.assign(centers.astype(np.float64))
        return Run(centers, labels, inertia, history, history.spent(), ends)

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
        if callable(self.init):
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
        return self.fit(X, sample_weight=sample_weight).labels_

    def predict(self, X: MatrixLike) -> Labels:
        """Label of the nearest center for each point, the first of several.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The points.

        Returns
        -------
        ndarray of shape (n_samples,)
            int32 labels.
        """
        rows = self._rows(X)
        labels, _ = rows.assign(self._centers(rows.n_features))
        return labels

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
        sq_dist, exponent = self._squared_distances(X)
        if not self._is_plain():
            root: Any = np.sqrt(sq_dist) if self._divergence() == "squared_euclidean" else sq_dist
            of_centers: Points = root.astype(self.cluster_centers_.dtype, copy=False)
            return of_centers
        distances = np.sqrt(sq_dist, out=sq_dist)
        return np.ldexp(distances, exponent, out=distances) if exponent else distances

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
            Higher is better; zero is the most there is.
        """
        rows = self._rows(X, sample_weight)
        _, inertia = rows.assign(self._centers(rows.n_features))
        return -inertia

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

        centers = np.asarray(self.cluster_centers_)
        theirs = SklearnKMeans(n_clusters=len(centers), init=centers, n_init=1, max_iter=1)
        with warnings.catch_warnings():
            # It complains about centers that coincide.
            warnings.simplefilter("ignore", ConvergenceWarning)
            theirs.fit(centers)
        theirs.cluster_centers_ = centers.copy()
        for attribute in ("labels_", "inertia_", "n_iter_", "feature_names_in_"):
            if hasattr(self, attribute):
                setattr(theirs, attribute, getattr(self, attribute))
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

    def _admit(
        self,
        X: MatrixLike,
        sample_weight: ArrayLike | None = None,
        *,
        reset: bool = False,
        **requirements: Any,
    ) -> Admitted:
        points = validate_data(self, X, reset=reset, **wanted_form(X))
        names = getattr(self, "feature_names_in_", None)
        admitted = admit(
            points,
            sample_weight,
            feature_names=names,
            **{"has_missing": self._has_missing(), **requirements},
        )
        check_domain(admitted.points, self._divergence(), name=requirements.get("name", "X"))
        return admitted

    def _open(self, data: Admitted | TrainingData) -> Rows:
        return open_rows(
            data.points,
            data.weights,
            n_threads=self._wanted_threads(),
            divergence=self._divergence(),
            has_missing=self._has_missing(),
        )

    def _rows(self, X: MatrixLike, sample_weight: ArrayLike | None = None) -> Rows:
        """New points, for a fitted estimator."""
        check_is_fitted(self)
        rows = self._open(self._admit(X, sample_weight))
        if isinstance(rows, NativeRows):
            rows.expect_few_sweeps()
        return rows

    def _squared_distances(self, X: MatrixLike) -> tuple[Points, int]:
        """Squared distances of points and centers divided by a power of two, and its exponent."""
        check_is_fitted(self)
        data = self._admit(X)
        centers = self._centers(data.points.shape[1])
        if not self._is_plain():
            # In float64, since they may leave the range of float32.
            wide = replace(data, points=data.points.astype(np.float64, copy=False))
            return self._open(wide).sq_distances(centers), 0
        largest = max(data.largest, float(np.abs(centers).max()))
        exponent = exponent_to_square(largest, data.points.dtype)
        points = divide_by_power_of_two(data.points, exponent)
        rows = open_rows(points, n_threads=self._wanted_threads())
        return rows.sq_distances(np.ldexp(centers, -exponent)), exponent

    def _shares(self, X: MatrixLike, memberships: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Memberships, which do not depend on the unit of distance, some points at a time."""
        sq_dist, _ = self._squared_distances(X)
        shares = np.empty(sq_dist.shape)
        n_block = max(1, _BLOCK_ELEMENTS // sq_dist.shape[1])
        for start in range(0, len(sq_dist), n_block):
            block = slice(start, start + n_block)
            shares[block] = memberships(sq_dist[block].astype(np.float64))
        return shares

    def _centers(self, n_features: int) -> FloatArray:
        return check_centers(self.cluster_centers_, n_features)


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
