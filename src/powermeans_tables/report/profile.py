"""What clusters contain, in the units and words of the data, and what sets each apart."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from powermeans.errors import ArgumentError
from powermeans.explaining.summaries import NOTABLE, ClusterSummary, Columns, Tally
from powermeans.types import FloatArray
from powermeans_tables.preparing.prepare import Prepare
from powermeans_tables.report.fields import Field, fields_of, name_clusters


@dataclass(frozen=True, slots=True)
class Profile:
    """The clusters of a model, and the fields of its data."""

    columns: Columns
    clusters: list[ClusterSummary]
    fields: list[Field]
    scores: FloatArray  # (n_clusters, n_fields), how far a cluster is from all rows in each field
    names: list[str]  # of the clusters
    means: FloatArray  # (n_clusters, n_features), in the units of the data
    of_all: FloatArray  # (n_features,)

    @classmethod
    def of(
        cls,
        tally: Tally,
        features: list[str],
        scalers: Sequence[Any] = (),
        names: Mapping[int, str] | None = None,
    ) -> Self:
        """Summarize rows that were counted, scaled by these."""
        columns, clusters = tally.summaries(features)
        rows = [columns.means, columns.means + columns.deviations, *(one.mean for one in clusters)]
        of_all, beside, *own_means = in_own_units(np.vstack(rows), scalers)
        known = next((one.columns_ for one in scalers if isinstance(one, Prepare)), [])
        fields = fields_of(features, known, np.abs(beside - of_all), of_all)
        scores, means = _scores(fields, columns, clusters), np.array(own_means)
        named = _names(fields, scores, clusters, means, of_all, names or {})
        return cls(columns, clusters, fields, scores, named, means, of_all)

    @property
    def weighing(self) -> list[int]:
        """Return the clusters whose rows weigh anything."""
        return [one.label for one in self.clusters if one.weight > 0]

    def telling(self, most: int, label: int | None = None) -> list[int]:
        """Return the fields that tell a cluster, or all clusters, apart most."""
        heights = self.scores[self.weighing].max(axis=0) if label is None else self.scores[label]
        return [int(j) for j in np.argsort(-heights, kind="stable")[:most]]

    def facts(self, label: int, least: float = 0.0) -> Iterator[tuple[str, str, str]]:
        """Yield name, mean and that of all in the three fields that set a cluster apart most.

        Each does so by at least so many deviations; the last is empty where words say enough.
        """
        for j in self.telling(3, label):
            field, mean = self.fields[j], self.means[label]
            if self.scores[label, j] < least and field.column.kind != "place":
                continue
            text, of_all = field.mean(mean[field.places]), field.mean(self.of_all[field.places])
            is_compared = field.column.kind not in ("category", "place") and len(self.clusters) > 1
            compared = f"(average {of_all})" if is_compared else ""
            yield field.name, text, compared


def check_names(names: Iterable[int], n_clusters: int) -> None:
    """Refuse names of clusters that are not there."""
    for label in names:
        if label not in range(n_clusters):
            raise ArgumentError(
                f"is no cluster: there are {n_clusters}",
                f"give names to clusters 0 to {n_clusters - 1}",
                argument="names",
                value=label,
            )


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
    check_names(given, len(clusters))
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
    with without_names():
        for scaler in reversed(scalers):
            values = getattr(scaler, "in_units", scaler.inverse_transform)(values)
    return values


@contextmanager
def without_names() -> Iterator[None]:
    """Let estimators that know names of columns take arrays, which have none."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield
