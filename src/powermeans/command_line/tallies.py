"""What there is to tell of clusters, from sums over rows that are read part by part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from powermeans.estimators.base import CenterEstimator
from powermeans.parts.executors import read_ahead
from powermeans.reporting.summaries import ClusterSummary, Columns, summaries_of_sums
from powermeans.sources import PartedData
from powermeans.sources.partition import Admission
from powermeans.types import FloatArray, Labels, Points

_VALUES_AT_ONCE = 2**20


class Tally:
    """Sums over the rows of each cluster, about its center so that no digits are lost."""

    def __init__(self, centers: Points) -> None:
        self.centers = np.asarray(centers, dtype=np.float64)
        n_clusters, n_features = self.centers.shape
        self.sizes = np.zeros(n_clusters, dtype=np.int64)
        self.weights = np.zeros(n_clusters)
        self._deviations, self._squares = np.zeros((2, n_clusters, n_features))
        self._lowest, self._highest = np.full((2, n_features), np.nan)
        self.score = 0.0

    @property
    def n_rows(self) -> int:
        """How many rows there were."""
        return int(self.sizes.sum())

    def add(self, points: Points, labels: Labels, weights: FloatArray | None = None) -> None:
        """Some more rows; values that are missing count as those of the center."""
        n_at_once = max(1, _VALUES_AT_ONCE // points.shape[1])
        for start in range(0, len(points), n_at_once):
            rows = slice(start, start + n_at_once)
            of_rows = None if weights is None else weights[rows]
            self._add(points[rows], labels[rows], of_rows)

    def summaries(self, names: list[str]) -> tuple[Columns, list[ClusterSummary]]:
        """All rows, and each cluster; see `powermeans.reporting.summaries.summarize`."""
        means, squares = self._about_means()
        total = float(self.weights.sum())
        overall = self.weights @ means / total
        of_column = squares.sum(axis=0) + self.weights @ np.square(means - overall)
        of_column[self._lowest == self._highest] = 0.0
        columns = Columns(names, overall, np.sqrt(of_column / total))
        of_clusters = squares.sum(axis=1)
        return columns, summaries_of_sums(columns, self.sizes, self.weights, means, of_clusters)

    def spreads_in(self, units: FloatArray) -> list[float]:
        """The spreads that clusters have where one of each column is so many."""
        of_clusters = self._about_means()[1] @ np.square(units)
        divisors = np.where(self.weights > 0, self.weights, 1.0)
        return [float(spread) for spread in np.sqrt(of_clusters / divisors)]

    def _add(self, points: Points, labels: Labels, weights: FloatArray | None) -> None:
        n_clusters = len(self.centers)
        counts = np.ones(len(labels)) if weights is None else weights
        self.sizes += np.bincount(labels, minlength=n_clusters)
        self.weights += np.bincount(labels, counts, minlength=n_clusters)
        deviations = points - self.centers[labels]
        deviations[np.isnan(deviations)] = 0.0
        shape = (n_clusters, len(labels))
        members: Any = sparse.csr_array((counts, (labels, np.arange(len(labels)))), shape=shape)
        self._deviations += members @ deviations
        self._squares += members @ np.square(deviations)
        self._lowest = np.fmin(self._lowest, np.fmin.reduce(points, axis=0))
        self._highest = np.fmax(self._highest, np.fmax.reduce(points, axis=0))

    def _about_means(self) -> tuple[FloatArray, FloatArray]:
        """The means, and by column the sums of squares about them."""
        divisors = np.where(self.weights > 0, self.weights, 1.0)[:, None]
        apart = self._deviations / divisors
        squares = self._squares - self.weights[:, None] * np.square(apart)
        return self.centers + apart, np.maximum(squares, 0.0)


def labelled(model: Any, data: PartedData, tally: Tally) -> Iterator[Labels]:
    """The labels of one part after the other, which are counted as they come."""
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    admission = Admission(has_missing=getattr(last, "missing", "error") == "observed")
    parts: Iterator[Any] = read_ahead(data.partition(admission).read())
    for points, weights in parts:
        labels, score = labels_and_score(model, points, weights)
        tally.add(points, labels, weights)
        tally.score += score
        del points, weights
        yield labels


def labels_and_score(
    model: Any, points: Points, weights: FloatArray | None
) -> tuple[Labels, float]:
    """What a model says of points, from one look at their distances where both are of these."""
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    if not _says_both_by_distances(type(last)):
        return model.predict(points), float(model.score(points, sample_weight=weights))
    if last is not model:
        points = model[:-1].transform(points)
    found: tuple[Labels, float] = last._labels_and_score(points, weights)
    return found


def _says_both_by_distances(kind: type[Any]) -> bool:
    base = CenterEstimator
    return issubclass(kind, base) and (kind.predict, kind.score) == (base.predict, base.score)
