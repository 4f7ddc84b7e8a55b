"""The fit that a report is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from powermeans.explaining.summaries import Tally
from powermeans.mathematics.arguments import check_sample_weight
from powermeans.plots import fitted
from powermeans.plots.fitted import PointsLike
from powermeans.system.containers import to_array
from powermeans.types import FloatArray, IndexArray, Labels, SparseMatrix
from powermeans_tables.preparing.kinds import Column
from powermeans_tables.preparing.prepare import Prepare
from powermeans_tables.reading.table import Table
from powermeans_tables.report.profile import Profile

ABOUT_COLUMNS = ("column", "kind", "why", "what is done", "of all distances")


def about_columns(prepare: Prepare, columns: Sequence[Column]) -> list[list[str]]:
    """Return the lines of a table: what columns contain, why, and what is done with them."""
    shares = {one: f"{100 * n:.0f} %" for one, n in getattr(prepare, "contributions_", {}).items()}
    return [
        [one.name, one.kind, one.why, prepare.done(one), shares.get(one.name, "")]
        for one in columns
    ]


@dataclass(frozen=True, slots=True)
class FileTable:
    """The file that points came from, as a command knows it."""

    table: Table | None = None  # with all rows and columns
    notes: Sequence[str] = ()  # on what was left out or is in doubt
    how_read: Sequence[str] = ()
    row_numbers: IndexArray | None = None  # from 1, of the rows that were not left out


@dataclass(frozen=True, slots=True)
class Subject:
    """A model, its points and clusters, and the fields of its data."""

    model: Any
    given: PointsLike
    points: FloatArray | SparseMatrix  # without a copy: NaN where a value is missing
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
        points = sparse.csr_matrix(X) if sparse.issparse(X) else np.asarray(to_array(X))
        points = points if points.dtype.kind == "f" else points.astype(np.float64)
        n_clusters = fitted.n_clusters_of(model, labels)
        weights = check_sample_weight(sample_weight, len(labels))
        if profile is None:
            features = fitted.names_of(model, X)
            tally = Tally(np.zeros((n_clusters, len(features))))
            tally.add(fitted.points_of(model, X, labels), labels, weights)
            profile = Profile.of(tally, features, scalers, names)
        return cls(model, X, points, labels, profile, weights, scalers, file)

    @property
    def prepare(self) -> Prepare | None:
        """What prepared the columns of a table, if anything did."""
        first = self.scalers[0] if self.scalers else None
        return first if isinstance(first, Prepare) else None

    def filled(self, rows: IndexArray) -> FloatArray | SparseMatrix:
        """Return the points of rows, with what is missing taken from the centers."""
        return fitted.points_of(self.model, self.points[rows], self.labels[rows])

    @property
    def columns(self) -> Sequence[Column]:
        """The columns of the table that were prepared."""
        return () if self.prepare is None else self.prepare.columns_

    def row_numbers(self, rows: IndexArray) -> IndexArray:
        """Return the numbers of rows in their file, from 1."""
        return rows + 1 if self.file.row_numbers is None else self.file.row_numbers[rows]
