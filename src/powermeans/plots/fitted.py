"""What a plot takes from a fitted estimator and from the points it is shown."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from powermeans.system.host_memory import is_tensor, on_host
from powermeans.types import FloatArray, IndexArray, Labels, SparsePoints

PointsLike = ArrayLike | SparsePoints


def labels_of(model: Any, X: PointsLike) -> Labels:
    """What the model predicts of the points; its own labels where it cannot predict."""
    if hasattr(model, "predict"):
        return np.asarray(on_host(model.predict(X)), dtype=np.int32)
    labels = np.asarray(on_host(model.labels_), dtype=np.int32)
    if len(labels) != n_rows(X):
        raise ValueError(
            f"{type(model).__name__} does not predict, and was fitted to {len(labels)} points, "
            f"while X has {n_rows(X)}: pass the X of its fit"
        )
    return labels


def has_centers(model: Any) -> bool:
    """Whether its centers are points; those of a kernel or of a graph are not."""
    return hasattr(model, "cluster_centers_")


def centers_of(model: Any) -> FloatArray:
    """The centers in float64."""
    if not has_centers(model):
        raise ValueError(
            f"{type(model).__name__} has no cluster_centers_: pass a fitted estimator whose "
            "centers are points, for example PowerKMeans"
        )
    return np.asarray(on_host(model.cluster_centers_), dtype=np.float64)


def n_clusters_of(model: Any, labels: Labels) -> int:
    """How many clusters there are, empty ones counted."""
    return len(model.cluster_centers_) if has_centers(model) else int(labels.max()) + 1


def n_rows(X: PointsLike) -> int:
    """How many points there are."""
    return int(X.shape[0] if hasattr(X, "shape") else np.asarray(X).shape[0])


def names_of(model: Any, X: PointsLike) -> list[str]:
    """Names of the columns: as the model knows them, or the table, or numbers."""
    names: Any = getattr(model, "feature_names_in_", None)
    if names is None:
        names = getattr(X, "columns", None)
    if names is None:
        names = range(np.shape(X)[1])
    return [f"column {name}" if isinstance(name, int) else str(name) for name in names]


def points_of(model: Any, X: PointsLike, labels: Labels) -> FloatArray | SparsePoints:
    """The points in float64; an entry that is missing is that of its center."""
    if sparse.issparse(X):
        return sparse.csr_matrix(X, dtype=np.float64)
    points = np.asarray(on_host(X), dtype=np.float64)
    if points.ndim != 2:
        raise ValueError(f"X has {points.ndim} dimensions instead of 2: pass rows of numbers")
    is_missing = np.isnan(points)
    if is_missing.any():
        points = points.copy()
        points[is_missing] = centers_of(model)[labels][is_missing]
    return points


def sample_of(n_points: int, most: int) -> IndexArray:
    """Which points to show: all, or so many by chance, the same ones each time."""
    if most < 1:
        raise ValueError(f"max_points={most!r} must be at least 1: pass for example 20_000")
    if n_points <= most:
        return np.arange(n_points)
    return np.sort(np.random.default_rng(0).choice(n_points, most, replace=False))


def rows_of(X: PointsLike, rows: IndexArray) -> PointsLike:
    """Some of the points, of the same kind as all: a table stays one, and so does a tensor."""
    if len(rows) == n_rows(X):
        return X
    if hasattr(X, "iloc"):
        return X.iloc[rows]  # type: ignore[no-any-return]
    if sparse.issparse(X):
        return sparse.csr_matrix(X)[rows]
    return (X if is_tensor(X) else np.asarray(X))[rows]  # type: ignore[index]
