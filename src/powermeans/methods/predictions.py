"""What an estimator with centers tells of points after a fit."""

from __future__ import annotations

import abc
import contextlib
import os
import warnings
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from powermeans.methods.documented import Documented
from powermeans.optimality.gap import OptimalityGap
from powermeans.points.checks.centers import check_centers
from powermeans.points.columns import Columns
from powermeans.points.needs import FitNeeds, Needs
from powermeans.points.opening import MatrixLike, admit_array, open_points
from powermeans.points.predictions import assigned, distances, predicted, shares
from powermeans.points.protocol import Points
from powermeans.system.attributes import forget
from powermeans.system.containers import is_dask, like_given, to_array
from powermeans.types import FloatArray, Labels, Matrix

# References to the points and weights of fits, by the identity of the estimator, which may have no
# hash. They are no attributes, since these are copied, pickled and saved.
_given_to: dict[int, list[weakref.ref[Any]]] = {}


class Predictions(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, Documented, metaclass=abc.ABCMeta
):
    """Labels, distances and scores by fitted centers, and other forms of the estimator."""

    missing: str = "error"

    cluster_centers_: Matrix
    labels_: Labels
    inertia_: float
    n_features_in_: int

    # The path of the labels is no metadata to route.
    __metadata_request__predict: ClassVar[dict[str, str]] = {"output": UNUSED}

    @abc.abstractmethod
    def _needs(self) -> Needs:
        """Return what a fit asks of its points."""

    def _use_given_centers(self) -> None:
        """Set what predictions need besides the centers passed to `from_centers`."""

    def _fitted_needs(self) -> Needs:
        """Return what is asked of new points after a fit."""
        return self._needs().for_new(self._columns())

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
            The points. A file that does not fit into memory is read part by part; see `fit`. Labels
            of a Dask array or DataFrame are a Dask array that is not computed yet.
        output : path, optional
            NPY file for the labels, int32; it appears once it is complete. Needed if X is read part
            by part, since the labels may not fit into memory.

        Returns
        -------
        ndarray of shape (n_samples,) or path
            int32 labels; with `output`, the path.
        """
        with self._new_points(X) as points:
            labels = predicted(points, to_array(self.cluster_centers_), output)
            found: Labels | Path = of_rows(X, points, labels)
        return found

    def transform(self, X: MatrixLike) -> Matrix:
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
        with self._new_points(X) as points:
            found: Matrix = of_rows(X, points, distances(points, to_array(self.cluster_centers_)))
            return for_table(self, found)

    def score(
        self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return minus the weighted sum of squared distances to the nearest centers.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        float
            Higher is better; zero is the highest possible score.
        """
        with self._new_points(X, sample_weight) as points:
            return -assigned(points, self._centers(points.given.n_features))[1]

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
        points = self._new_points(X, sample_weight)
        labels, inertia = assigned(points, self._centers(points.given.n_features))
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
        self._refuse_unprepared()
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
        forget(theirs, "labels_", "inertia_")  # of the centers
        for attribute in ("labels_", "inertia_", "n_iter_", "feature_names_in_"):
            if hasattr(self, attribute):
                setattr(theirs, attribute, getattr(self, attribute))
        if hasattr(self, "labels_"):
            theirs.labels_ = np.asarray(to_array(self.labels_))
        return theirs

    def _refuse_unprepared(self) -> None:
        """Raise where an estimator of another library would take columns that are not prepared."""
        check_is_fitted(self)
        if hasattr(self, "preparation_"):
            raise ValueError(
                f"{type(self).__name__} was fitted to a table, and an estimator of scikit-learn "
                "does not prepare its columns: fit make_pipeline(Prepare(), model) to the table "
                "as a frame, and convert the last step"
            )

    @property
    def _n_features_out(self) -> int:
        return len(to_array(self.cluster_centers_))

    # New points.

    def _columns(self) -> Columns:
        names = getattr(self, "feature_names_in_", None)
        return Columns(
            getattr(self, "n_features_in_", None),
            None if names is None else tuple(names),
            getattr(self, "preparation_", None),
        )

    def _new_points(self, X: MatrixLike, sample_weight: ArrayLike | None = None) -> Points:
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
        with self._new_points(X) as points:
            found = shares(points, to_array(self.cluster_centers_), memberships, exponent)
            of_all: FloatArray = of_rows(X, points, found)
        return of_all


def for_table(estimator: Any, found: Any) -> Matrix:
    """Return what scikit-learn makes a table of where `set_output` wants one."""
    wants_table = _get_output_config("transform", estimator)["dense"] != "default"
    table: Matrix = np.asarray(to_array(found)) if wants_table else found
    return table


def of_rows(X: MatrixLike, points: Points, found: Any) -> Any:
    """Return an array with a row for each point in the form in which the points came."""
    if not isinstance(found, np.ndarray):  # a file, or results where the points are
        return found
    return like_given(X, points.given.of_all_rows(found), of="points")


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
