"""The fit that a report is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from powermeans.app.report.profile import Profile, in_own_units, without_names
from powermeans.explaining.summaries import Tally
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
    profile: Profile
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
        labels: Labels | None = None,
        profile: Profile | None = None,
    ) -> Self:
        """Label and summarize the points, unless labels and profile are known."""
        file = file or FileTable()
        labels = fitted.labels_of(model, X) if labels is None else labels
        points, n_clusters = fitted.points_of(model, X, labels), fitted.n_clusters_of(model, labels)
        weights = check_sample_weight(sample_weight, len(labels))
        if profile is None:
            features = list(file.names or fitted.names_of(model, X))
            tally = Tally(np.zeros((n_clusters, len(features))))
            tally.add(points, labels, weights)
            profile = Profile.of(tally, features, scalers, file.columns, names)
        return cls(model, X, points, labels, profile, weights, scalers, file)

    def row_numbers(self, rows: IndexArray) -> IndexArray:
        """Return the numbers of rows in their file, from 1."""
        return rows + 1 if self.file.row_numbers is None else self.file.row_numbers[rows]

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
        with without_names():
            found = self.model.transform(fitted.rows_of(self.given, rows))
        return np.asarray(found, dtype=np.float64)
