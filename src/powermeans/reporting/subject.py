"""The fit that a report is about."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from powermeans.inputs.weights import check_sample_weight
from powermeans.plots import fitted
from powermeans.plots.fitted import PointsLike
from powermeans.plots.plane import Plane
from powermeans.reporting.summaries import ClusterSummary, Columns, summarize
from powermeans.types import FloatArray, IndexArray, Labels, SparsePoints


@dataclass(frozen=True, slots=True)
class Subject:
    """A model, its points and clusters, and the plane in which some of the points are shown."""

    model: Any
    points: FloatArray | SparsePoints
    labels: Labels
    columns: Columns
    clusters: list[ClusterSummary]
    shown: IndexArray
    plane: Plane
    weights: FloatArray | None
    scalers: Sequence[Any]

    @classmethod
    def of(
        cls,
        model: Any,
        X: PointsLike,
        max_points: int,
        sample_weight: ArrayLike | None,
        scalers: Sequence[Any],
    ) -> Self:
        """Label and summarize the points, and project a sample of them."""
        labels = fitted.labels_of(model, X)
        points, names = fitted.points_of(model, X, labels), fitted.names_of(model, X)
        weights = check_sample_weight(sample_weight, len(labels))
        n_clusters = fitted.n_clusters_of(model, labels)
        columns, clusters = summarize(points, labels, n_clusters, names, weights)
        shown = fitted.sample_of(len(labels), max_points)
        plane = Plane.of(points[shown], [f"{name}, scaled" for name in names] if scalers else names)
        return cls(model, points, labels, columns, clusters, shown, plane, weights, scalers)

    @property
    def weighing(self) -> list[ClusterSummary]:
        """Return the clusters whose points weigh anything."""
        return [cluster for cluster in self.clusters if cluster.weight > 0]

    def distinguishing(self, most: int) -> IndexArray:
        """Return the columns in which the clusters differ most, in their order."""
        z_scores = np.stack([cluster.z_scores for cluster in self.weighing])
        return fitted.most_distinguishing(z_scores, most)

    def in_own_units(self, values: Any) -> Any:
        """Undo the scaling of rows."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            for scaler in reversed(self.scalers):
                values = scaler.inverse_transform(values)
        return values

    def own_deviations(self) -> FloatArray:
        """Return the standard deviation of each column in its own units."""
        if not self.scalers:
            return self.columns.deviations
        mean = self.columns.means[None]
        ends = self.in_own_units(np.vstack([mean, mean + self.columns.deviations]))
        deviations: FloatArray = np.abs(ends[1] - ends[0])
        return deviations
