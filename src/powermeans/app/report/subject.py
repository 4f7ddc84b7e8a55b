"""The fit that a report is about."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from powermeans.app.report.fields import Field, fields_of, name_clusters
from powermeans.errors import ArgumentError
from powermeans.explaining.summaries import NOTABLE, ClusterSummary, Columns, Tally
from powermeans.plots import fitted
from powermeans.plots.fitted import PointsLike
from powermeans.points.checks.weights import check_sample_weight
from powermeans.preparing.kinds import Column
from powermeans.types import FloatArray, IndexArray, Labels, SparsePoints

ABOUT_COLUMNS = ("column", "kind", "why", "what is done", "of all distances")


@dataclass(frozen=True, slots=True)
class FileTable:
    """The file that points came from, as a command knows it."""

    frame: Any = None  # of Arrow, with all rows and columns
    columns: Sequence[Column] = ()
    notes: Sequence[str] = ()  # on what was left out or is in doubt
    how_read: Sequence[str] = ()
    row_numbers: IndexArray | None = None  # from 1, of the rows that were not left out
    names: Sequence[str] | None = None  # of the features
    told: Sequence[Sequence[str]] = ()  # of each column, as in ABOUT_COLUMNS


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
    weights: FloatArray | None
    scalers: Sequence[Any]
    file: FileTable

    @classmethod
    def of(
        cls,
        model: Any,
        X: PointsLike,
        *,
        sample_weight: ArrayLike | None = None,
        scalers: Sequence[Any] = (),
        names: Mapping[int, str] | None = None,
        file: FileTable | None = None,
    ) -> Self:
        """Label and summarize the points."""
        file, labels = file or FileTable(), fitted.labels_of(model, X)
        points, n_clusters = fitted.points_of(model, X, labels), fitted.n_clusters_of(model, labels)
        weights = check_sample_weight(sample_weight, len(labels))
        features = list(file.names or fitted.names_of(model, X))
        tally = Tally(np.zeros((n_clusters, len(features))))
        tally.add(points, labels, weights)
        columns, clusters = tally.summaries(features)
        rows = [columns.means, columns.means + columns.deviations, *(one.mean for one in clusters)]
        of_all, beside, *own_means = in_own_units(np.vstack(rows), scalers)
        known = [one.columns_ for one in scalers if hasattr(one, "columns_")] or [file.columns]
        fields = fields_of(features, known[-1], np.abs(beside - of_all), of_all)
        scores, means = _scores(fields, columns, clusters), np.array(own_means)
        named = _names(fields, scores, clusters, means, of_all, names or {})
        own = (points, labels, columns, clusters, fields, scores, named, means, of_all)
        return cls(model, X, *own, weights, scalers, file)

    @property
    def weighing(self) -> list[int]:
        """Return the clusters whose rows weigh anything."""
        return [one.label for one in self.clusters if one.weight > 0]

    def row_numbers(self, rows: IndexArray) -> IndexArray:
        """Return the numbers of rows in their file, from 1."""
        return rows + 1 if self.file.row_numbers is None else self.file.row_numbers[rows]

    def telling(self, most: int, label: int | None = None) -> list[int]:
        """Return the fields that tell a cluster, or all clusters, apart most."""
        heights = self.scores[self.weighing].max(axis=0) if label is None else self.scores[label]
        return [int(j) for j in np.argsort(-heights, kind="stable")[:most]]

    def values_of(self, rows: IndexArray, features: IndexArray) -> FloatArray:
        """Return some features of rows in their own units, NaN where values are missing."""
        raw: Any = fitted.rows_of(self.given, rows)
        is_thin = sparse.issparse(raw)
        raw = sparse.csr_matrix(raw, dtype=float) if is_thin else np.asarray(raw, float)
        return fitted.dense(in_own_units(raw, self.scalers)[:, features])

    def are_whole(self, rows: IndexArray) -> NDArray[np.bool_]:
        """Return which of some rows have all values."""
        if sparse.issparse(self.given):
            return np.ones(len(rows), dtype=bool)
        given = np.asarray(fitted.rows_of(self.given, rows), dtype=np.float64)
        return np.asarray(~np.isnan(given).any(axis=1))

    def distances_of(self, rows: IndexArray) -> FloatArray | None:
        """Return the distances of some rows to all centers, None if the model has none."""
        if not hasattr(self.model, "transform"):
            return None
        with _names_left_out():
            found = self.model.transform(fitted.rows_of(self.given, rows))
        return np.asarray(found, dtype=np.float64)


def _scores(fields: list[Field], columns: Columns, clusters: list[ClusterSummary]) -> FloatArray:
    """Return distances from the mean of all rows, in standard deviations of each field."""
    varies, starts = ~columns.are_constant(), [field.places.start for field in fields]
    apart = np.square([one.mean - columns.means for one in clusters]) * varies
    of_field = np.add.reduceat(np.square(columns.deviations) * varies, starts)
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
                f"is no cluster: there are {len(clusters)}",
                f"give names to clusters 0 to {len(clusters) - 1}",
                argument="names",
                value=label,
            )
    phrases, details = [], []
    for one, heights, mean in zip(clusters, scores, means, strict=True):
        order = [int(j) for j in np.argsort(-heights, kind="stable")[:3]]
        first = fields[order[0]]
        details.append(f"{first.name}: {first.mean(mean[first.places])}")
        told = [(fields[j], heights[j]) for j in order if heights[j] >= NOTABLE]
        said = [each.phrase(mean[each.places], of_all[each.places], score) for each, score in told]
        near = ["in the middle" if first.column.kind == "place" else "near the average"]
        empty = ["without weight" if one.size else "empty"]
        phrases.append((said or near) if one.weight > 0 else empty)
    found = name_clusters(phrases, details)
    return [given.get(label, name) for label, name in enumerate(found)]


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
