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

from powermeans.app.report.fields import Field, fields_of, name_clusters
from powermeans.app.report.summaries import NOTABLE, ClusterSummary, Columns, summarize
from powermeans.errors import ArgumentError
from powermeans.plots import fitted
from powermeans.plots.fitted import PointsLike
from powermeans.points.checks.weights import check_sample_weight
from powermeans.preparing.kinds import Column
from powermeans.system.host_memory import on_host
from powermeans.types import FloatArray, IndexArray, Labels, SparsePoints


@dataclass(frozen=True, slots=True)
class FileTable:
    """The file that points came from, as a command knows it."""

    frame: Any = None  # of Arrow, with all rows and columns
    columns: Sequence[Column] = ()
    notes: Sequence[str] = ()  # on what was left out or is in doubt
    how_read: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class About:
    """What the caller of a report says about the fit, besides the model and its points."""

    max_points: int
    sample_weight: ArrayLike | None
    scalers: Sequence[Any]
    names: Mapping[int, str] | None  # of clusters
    row_numbers: ArrayLike | None
    feature_names: Sequence[str] | None
    choice: Any
    optimality: Any
    file: FileTable


@dataclass(frozen=True, slots=True)
class Subject:
    """A model, its points and clusters, and the fields of its data."""

    model: Any
    given: PointsLike
    points: FloatArray | SparsePoints
    labels: Labels
    columns: Columns
    clusters: list[ClusterSummary]
    fields: list[Field]
    scores: FloatArray  # (n_clusters, n_fields), how far a cluster is from all rows in each field
    names: list[str]  # of the clusters
    means: FloatArray  # (n_clusters, n_features), in the units of the data
    of_all: FloatArray  # (n_features,)
    shown: IndexArray
    row_numbers: IndexArray  # of all points
    weights: FloatArray | None
    about: About

    @classmethod
    def of(cls, model: Any, X: PointsLike, about: About) -> Self:
        """Label and summarize the points."""
        labels = fitted.labels_of(model, X)
        points = fitted.points_of(model, X, labels)
        names = _feature_names(about.feature_names, points.shape[1], fitted.names_of(model, X))
        weights = check_sample_weight(about.sample_weight, len(labels))
        n_clusters = fitted.n_clusters_of(model, labels)
        columns, clusters = summarize(points, labels, n_clusters, names, weights)
        of_all, beside, *means = in_own_units(
            np.vstack(
                [columns.means, columns.means + columns.deviations, *[one.mean for one in clusters]]
            ),
            about.scalers,
        )
        known = [list(getattr(one, "columns_", ())) for one in about.scalers]
        known = [one for one in known if one] or [list(about.file.columns)]
        fields = fields_of(names, known[-1], np.abs(beside - of_all), of_all)
        scores = _scores(fields, columns, clusters)
        return cls(
            model=model,
            given=X,
            points=points,
            labels=labels,
            columns=columns,
            clusters=clusters,
            fields=fields,
            scores=scores,
            names=_names(fields, scores, clusters, np.array(means), of_all, about.names or {}),
            means=np.array(means),
            of_all=of_all,
            shown=fitted.sample_of(len(labels), about.max_points),
            row_numbers=_row_numbers(about.row_numbers, len(labels)),
            weights=weights,
            about=about,
        )

    def telling(self, most: int, label: int | None = None) -> list[int]:
        """Return the fields that tell a cluster, or all clusters, apart most."""
        weighing = [one.label for one in self.clusters if one.weight > 0]
        heights = self.scores[weighing].max(axis=0) if label is None else self.scores[label]
        return [int(j) for j in np.argsort(-heights, kind="stable")[:most]]

    def values_of(self, rows: IndexArray) -> FloatArray:
        """Return some rows in their own units, NaN where values are missing."""
        raw: Any = fitted.rows_of(self.given, rows)
        is_thin = sparse.issparse(raw)
        raw = sparse.csr_matrix(raw, dtype=float) if is_thin else np.asarray(on_host(raw), float)
        return fitted.dense(in_own_units(raw, self.about.scalers))

    def distances_of(self, rows: IndexArray) -> FloatArray | None:
        """Return the distances of some rows to all centers, None if the model has none."""
        if not hasattr(self.model, "transform"):
            return None
        with _names_left_out():
            found = self.model.transform(fitted.rows_of(self.given, rows))
        return np.asarray(on_host(found), dtype=np.float64)


def _scores(fields: list[Field], columns: Columns, clusters: list[ClusterSummary]) -> FloatArray:
    """Return distances from the mean of all rows, in standard deviations of each field."""
    apart = np.square([(one.mean - columns.means) for one in clusters])
    starts = [field.places.start for field in fields]
    variances = np.square(columns.deviations)
    variances = np.where(columns.are_constant(), 0.0, variances)
    apart[:, columns.are_constant()] = 0.0
    of_field = np.add.reduceat(variances, starts)
    summed = np.add.reduceat(apart, starts, axis=1)
    scores: FloatArray = np.nan_to_num(np.sqrt(summed / np.where(of_field > 0, of_field, 1.0)))
    return scores


def _names(
    fields: list[Field],
    scores: FloatArray,
    clusters: list[ClusterSummary],
    means: FloatArray,
    of_all: FloatArray,
    given: Mapping[int, str],
) -> list[str]:
    """Name the clusters as the caller does, the others after what sets them apart."""
    for label in given:
        if label not in range(len(clusters)):
            raise ArgumentError(
                f"names has a cluster {label!r}, and there are {len(clusters)}",
                f"give names to clusters 0 to {len(clusters) - 1}",
                argument="names",
                value=label,
            )
    phrases, details = [], []
    for one, heights, mean in zip(clusters, scores, means, strict=True):
        order = np.argsort(-heights, kind="stable")[:3]
        first = fields[int(order[0])]
        details.append(f"{first.name}: {first.mean(mean[first.places])}")
        if one.weight == 0:
            phrases.append(["without weight" if one.size else "empty"])
            continue
        phrases.append(
            [
                fields[j].phrase(mean[fields[j].places], of_all[fields[j].places], heights[j])
                for j in map(int, order)
                if heights[j] >= NOTABLE
            ]
        )
    found = name_clusters(phrases, details)
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


def in_own_units(values: Any, scalers: Sequence[Any]) -> Any:
    """Undo the scaling of rows."""
    with _names_left_out():
        for scaler in reversed(scalers):
            values = getattr(scaler, "in_units", scaler.inverse_transform)(values)
    return values


@contextmanager
def _names_left_out() -> Iterator[None]:
    """Let estimators that know names of columns take arrays, which have none."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield
