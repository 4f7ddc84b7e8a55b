"""Labels, centers, names and points of a fit, as plots and reports need them."""

import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import _num_samples

from powermeans.errors import ArgumentError, listed, printable
from powermeans.points.checks.faults import explain_fault, refuse_dates
from powermeans.system.attributes import forget
from powermeans.system.containers import check_number, is_tensor, to_array
from powermeans.types import FloatArray, IndexArray, Labels, SparseMatrix

PointsLike = ArrayLike | SparseMatrix


def preparation_of(model: Any) -> Any:
    """Return what made points of the rows of a table, at the start of a pipeline or of a fit."""
    first = model.steps[0][1] if isinstance(model, Pipeline) else None
    return first if hasattr(first, "explained") else getattr(model, "preparation_", None)


def as_points(model: Any, X: Any) -> tuple[Any, PointsLike]:
    """Return the points that were made of a table, and the model of these."""
    if (preparation := preparation_of(model)) is None:
        return model, X
    last = model[1:] if isinstance(model, Pipeline) else model
    last = copy.copy(last[0] if isinstance(last, Pipeline) and len(last) == 1 else last)
    forget(last, "preparation_", "feature_names_in_")
    return last, preparation.transform(X)


def opened(model: Any, X: Any) -> tuple[Any, PointsLike, Labels, list[str]]:
    """Return a model and its points, those of a table if one is given, with labels and names."""
    last, points = as_points(model, X)
    labels = labels_of(last, points)
    if (preparation := preparation_of(model)) is None:
        return model, X, labels, names_of(model, X)
    return last, points, labels, [str(name) for name in preparation.get_feature_names_out()]


def labels_of(model: Any, X: PointsLike) -> Labels:
    """Predict the labels of the points, or return those of the fit if the model cannot."""
    if not hasattr(model, "predict") and not hasattr(model, "labels_"):
        swapped = ", and X is one: the model comes first" if hasattr(X, "predict") else ""
        raise TypeError(
            f"model is a {type(model).__name__}, which is no fitted estimator{swapped}: pass "
            "(model, X)"
        )
    if hasattr(model, "predict"):
        try:
            return np.asarray(to_array(model.predict(X)), dtype=np.int32)
        except (TypeError, ValueError) as error:
            # Before the last step of a pipeline, other packages look at the points first.
            _check_columns(model, X)
            refuse_dates(X, "X")
            explain_fault(X, "X", error)
            raise
    labels = np.asarray(to_array(model.labels_), dtype=np.int32)
    if len(labels) != _num_samples(X):
        raise ValueError(
            f"{type(model).__name__} does not predict, and was fitted to {len(labels)} points, "
            f"while X has {_num_samples(X)}: pass the X of its fit"
        )
    return labels


def _check_columns(model: Any, X: PointsLike) -> None:
    """Raise unless a frame has the columns of the fit."""
    names = list(getattr(model, "feature_names_in_", []))
    if names and (found := list(getattr(X, "columns", names))) != names:
        lacking = printable(listed(name for name in names if name not in found))
        fault = f"no {lacking}" if lacking else "other columns than the model, or in another order"
        way_out = "pass a table with the columns of model.feature_names_in_"
        raise ArgumentError(f"X has {fault}", way_out)


def has_centers(model: Any) -> bool:
    """Tell whether the centers are points; those of a kernel or of a graph are not."""
    return hasattr(model, "cluster_centers_")


def centers_of(model: Any) -> FloatArray:
    """Return the centers in float64."""
    if not has_centers(model):
        raise ValueError(
            f"{type(model).__name__} has no cluster_centers_: pass a fitted estimator whose "
            "centers are points, for example PowerKMeans"
        )
    return np.asarray(to_array(model.cluster_centers_), dtype=np.float64)


def distances_of(model: Any, X: PointsLike) -> FloatArray:
    """Return the distance of each point to each center, in float64."""
    if not hasattr(model, "transform"):
        raise ValueError(
            f"{type(model).__name__} has no distances to centers: pass an estimator with "
            "transform, for example PowerKMeans"
        )
    return np.asarray(to_array(model.transform(X)), dtype=np.float64)


def n_clusters_of(model: Any, labels: Labels) -> int:
    """Count the clusters, empty ones too."""
    return len(centers_of(model)) if has_centers(model) else int(labels.max()) + 1


def names_of(model: Any, X: PointsLike) -> list[str]:
    """Return the names of the columns: those of the model, else of the table, else numbers."""
    names: Any = getattr(model, "feature_names_in_", None)
    if names is None:
        names = getattr(X, "columns", None)
    if names is None:
        names = range(np.shape(to_array(X))[1])
    return [f"column {name}" if isinstance(name, int) else str(name) for name in names]


def points_of(model: Any, X: PointsLike, labels: Labels) -> FloatArray | SparseMatrix:
    """Return the points in float64, with missing entries taken from the centers."""
    if sparse.issparse(X):
        return sparse.csr_matrix(X, dtype=np.float64)
    points = np.asarray(to_array(X), dtype=np.float64)
    if points.ndim != 2:
        raise ValueError(f"X has {points.ndim} dimensions instead of 2: pass rows of numbers")
    is_missing = np.isnan(points)
    if is_missing.any():
        points = points.copy()
        points[is_missing] = centers_of(model)[labels][is_missing]
    return points


def most_distinguishing(heights: FloatArray, most: int) -> IndexArray:
    """Return the columns in which the rows differ most, in the order of the columns."""
    check_number(most, "max_features", "[1, inf]", "for example 12")
    return np.sort(np.argsort(-heights.std(axis=0), kind="stable")[:most])


def sample_of(n_points: int, most: int) -> IndexArray:
    """Return the indices of the points to show: all, or a random sample that is always the same."""
    check_number(most, "max_points", "[1, inf]", "for example 20_000")
    if n_points <= most:
        return np.arange(n_points)
    return np.sort(np.random.default_rng(0).choice(n_points, most, replace=False))


def rows_of(X: PointsLike, rows: IndexArray) -> PointsLike:
    """Return some of the points; a table stays a table, and a tensor a tensor."""
    if len(rows) == _num_samples(X):
        return X
    if hasattr(X, "iloc"):
        return X.iloc[rows]  # type: ignore[no-any-return]
    if sparse.issparse(X):
        return sparse.csr_matrix(X)[rows]
    return (X if is_tensor(X) else np.asarray(X))[rows]  # type: ignore[index]
