"""The fit that a report is about."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from powermeans.app.report.summaries import ClusterSummary, Columns, name_clusters, summarize
from powermeans.app.report.text import rounded
from powermeans.engine.callbacks import PathRecorder
from powermeans.errors import ArgumentError
from powermeans.plots import fitted
from powermeans.plots.fitted import PointsLike
from powermeans.plots.plane import Plane
from powermeans.points.checks.weights import check_sample_weight
from powermeans.system.host_memory import on_host
from powermeans.types import FloatArray, IndexArray, Labels, SparsePoints


@dataclass(frozen=True, slots=True)
class Told:
    """What the caller of a report says about the fit, besides the model and its points."""

    max_points: int
    sample_weight: ArrayLike | None
    scalers: Sequence[Any]
    names: Mapping[int, str] | None  # of clusters
    row_numbers: ArrayLike | None
    feature_names: Sequence[str] | None
    annealing: PathRecorder | None
    choice: Any
    source: str | None
    optimality: Any


@dataclass(frozen=True, slots=True)
class Subject:
    """A model, its points and clusters, and the plane in which some of the points are shown."""

    model: Any
    given: PointsLike
    points: FloatArray | SparsePoints
    labels: Labels
    columns: Columns
    clusters: list[ClusterSummary]
    names: list[str]  # of the clusters
    shown: IndexArray
    row_numbers: IndexArray  # of all points
    plane: Plane
    weights: FloatArray | None
    scalers: Sequence[Any]
    told: Told

    @classmethod
    def of(cls, model: Any, X: PointsLike, told: Told) -> Self:
        """Label and summarize the points, and project a sample of them."""
        labels = fitted.labels_of(model, X)
        points = fitted.points_of(model, X, labels)
        names = _feature_names(told.feature_names, points.shape[1], fitted.names_of(model, X))
        weights = check_sample_weight(told.sample_weight, len(labels))
        n_clusters = fitted.n_clusters_of(model, labels)
        columns, clusters = summarize(points, labels, n_clusters, names, weights)
        shown = fitted.sample_of(len(labels), told.max_points)
        scaled = [f"{name}, scaled" for name in names] if told.scalers else names
        return cls(
            model=model,
            given=X,
            points=points,
            labels=labels,
            columns=columns,
            clusters=clusters,
            names=_names(clusters, columns, told),
            shown=shown,
            row_numbers=_row_numbers(told.row_numbers, len(labels)),
            plane=Plane.of(points[shown], scaled),
            weights=weights,
            scalers=told.scalers,
            told=told,
        )

    @property
    def weighing(self) -> list[ClusterSummary]:
        """Return the clusters whose points weigh anything."""
        return [cluster for cluster in self.clusters if cluster.weight > 0]

    def distinguishing(self, most: int) -> IndexArray:
        """Return the columns in which the clusters differ most, in their order."""
        z_scores = np.stack([cluster.z_scores for cluster in self.weighing])
        return fitted.most_distinguishing(z_scores, most)

    def explained(self) -> FloatArray:
        """Return the share of the variance of each column that is between clusters."""
        shares = np.array([cluster.share for cluster in self.weighing])
        z_scores = np.stack([cluster.z_scores for cluster in self.weighing])
        explained: FloatArray = shares @ np.square(z_scores)
        return explained

    def in_own_units(self, values: Any) -> Any:
        """Undo the scaling of rows."""
        return _in_own_units(values, self.scalers)

    def own_deviations(self) -> FloatArray:
        """Return the standard deviation of each column in its own units."""
        return _own_deviations(self.columns, self.scalers)

    def values_of(self, rows: IndexArray, columns: IndexArray) -> FloatArray:
        """Return columns of some rows in their own units, NaN where they are missing."""
        raw: Any = fitted.rows_of(self.given, rows)
        is_thin = sparse.issparse(raw)
        raw = sparse.csr_matrix(raw, dtype=float) if is_thin else np.asarray(on_host(raw), float)
        return fitted.dense(self.in_own_units(raw)[:, columns])

    def distances_of(self, rows: IndexArray) -> FloatArray | None:
        """Return the distances of some rows to all centers, None if the model has none."""
        return self._ask("transform", rows)

    def memberships_of(self, rows: IndexArray) -> FloatArray | None:
        """Return how much some rows belong to each cluster, None if the model has none."""
        return self._ask("memberships", rows)

    def _ask(self, method: str, rows: IndexArray) -> FloatArray | None:
        if not hasattr(self.model, method):
            return None
        with _names_left_out():
            found = getattr(self.model, method)(fitted.rows_of(self.given, rows))
        return np.asarray(on_host(found), dtype=np.float64)


def _names(clusters: list[ClusterSummary], columns: Columns, told: Told) -> list[str]:
    """Name the clusters as the caller does, the others after what sets them apart."""
    given = dict(told.names or {})
    for label in given:
        if label not in range(len(clusters)):
            raise ArgumentError(
                f"names has a cluster {label!r}, and there are {len(clusters)}",
                f"give names to clusters 0 to {len(clusters) - 1}",
                argument="names",
                value=label,
            )
    deviations = _own_deviations(columns, told.scalers)

    def mean_of(cluster: ClusterSummary, feature: int) -> str:
        own = _in_own_units(cluster.mean[None], told.scalers)[0, feature]
        return rounded(float(own), float(deviations[feature]))

    found = name_clusters(clusters, columns.names, mean_of)
    return [given.get(label, name) for label, name in enumerate(found)]


def _feature_names(given: Sequence[str] | None, n_features: int, known: list[str]) -> list[str]:
    if given is not None and len(given) != n_features:
        raise ArgumentError(
            f"feature_names has {len(given)} names, and X has {n_features} columns",
            "pass one name for each column",
            argument="feature_names",
            value=len(given),
        )
    return known if given is None else list(given)


def _row_numbers(given: ArrayLike | None, n_points: int) -> IndexArray:
    numbers = np.arange(1, n_points + 1) if given is None else np.asarray(given)
    if numbers.shape != (n_points,):
        raise ArgumentError(
            f"row_numbers has the shape {numbers.shape}, and X has {n_points} rows",
            "pass one number for each row",
            argument="row_numbers",
            value=numbers.shape,
        )
    return numbers


def _own_deviations(columns: Columns, scalers: Sequence[Any]) -> FloatArray:
    if not scalers:
        return columns.deviations
    mean = columns.means[None]
    ends = _in_own_units(np.vstack([mean, mean + columns.deviations]), scalers)
    deviations: FloatArray = np.abs(ends[1] - ends[0])
    return deviations


def _in_own_units(values: Any, scalers: Sequence[Any]) -> Any:
    with _names_left_out():
        for scaler in reversed(scalers):
            undo = getattr(scaler, "in_units", scaler.inverse_transform)
            values = undo(values)
    return values


@contextmanager
def _names_left_out() -> Iterator[None]:
    """Let estimators that know names of columns take arrays, which have none."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield
