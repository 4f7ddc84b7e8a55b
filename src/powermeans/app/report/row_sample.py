"""Rows that a report looks at one by one: what they stand for, and how sure their cluster is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from powermeans.app.report.subject import Subject
from powermeans.types import FloatArray, IndexArray, Labels

# A row is clearly in its cluster if the next center is so many times as far.
CLEAR = 1.25


@dataclass(frozen=True, slots=True)
class RowSample:
    """All rows, or some of each cluster, with the weight of the rows for which each stands."""

    rows: IndexArray
    labels: Labels
    weights: FloatArray
    columns: IndexArray  # whose values are known
    values: FloatArray  # (n_rows, n_columns), in the units of the data, NaN where missing
    away: FloatArray | None  # distance to the center of its cluster
    ratios: FloatArray | None  # distance to the next center over that to its own
    others: Labels | None  # whose center is the next one
    memberships: FloatArray | None  # in its cluster

    @classmethod
    def of(cls, subject: Subject, columns: IndexArray) -> Self:
        """Look at the rows that the plot shows, and at more of clusters that have few there."""
        labels, weights = subject.labels, subject.weights
        rows = _rows(labels, subject.shown, len(subject.clusters))
        mine = labels[rows]
        own = np.ones(len(rows)) if weights is None else weights[rows]
        of_all = np.array([cluster.weight for cluster in subject.clusters])
        of_sample = np.bincount(mine, own, minlength=len(of_all))
        share = np.divide(of_all, of_sample, out=np.zeros_like(of_all), where=of_sample > 0)
        away, ratios, others = _nearness(subject.distances_of(rows), mine)
        values = subject.values_of(rows, columns)
        soft = subject.memberships_of(rows)
        belongs = None if soft is None else soft[np.arange(len(rows)), mine]
        return cls(rows, mine, own * share[mine], columns, values, away, ratios, others, belongs)

    def is_clear(self) -> NDArray[np.bool_] | None:
        """Tell which rows are clearly in their cluster; None if distances tell nothing."""
        return None if self.ratios is None else self.ratios >= CLEAR

    def clear_share(self, label: int | None = None) -> float | None:
        """Return the share of the rows of a cluster, or of all, that are clearly in it."""
        is_clear = self.is_clear()
        is_mine = np.full(len(self.rows), True) if label is None else self.labels == label
        total = float(self.weights[is_mine].sum())
        if is_clear is None or total == 0:
            return None
        return float(self.weights[is_mine & is_clear].sum()) / total

    def mean_membership(self) -> float | None:
        """Return how much a row belongs to its cluster on average; None if that is hard."""
        if self.memberships is None or bool((self.memberships > 1 - 1e-9).all()):
            return None
        return float(np.average(self.memberships, weights=self.weights))

    def typical(self, label: int) -> list[int]:
        """Return where the rows nearest to the center of a cluster are, without copies."""
        return [] if self.away is None else self._first(label, self.away)

    def doubtful(self, label: int) -> list[int]:
        """Return where the rows of a cluster are that are most nearly in another."""
        return [] if self.ratios is None else self._first(label, self.ratios)

    def _first(self, label: int, heights: FloatArray) -> list[int]:
        mine = np.flatnonzero(self.labels == label)
        order = mine[np.argsort(heights[mine], kind="stable")[:60]]
        found: dict[bytes, int] = {}
        for place in order:
            found.setdefault(self.values[place].tobytes(), int(place))
        return list(found.values())[:3]


def _rows(labels: Labels, shown: IndexArray, n_clusters: int) -> IndexArray:
    """Add rows of the clusters that have few among those shown, spread over each evenly."""
    if len(shown) == len(labels):
        return shown
    sizes, least = np.bincount(labels, minlength=n_clusters), 50
    few = np.flatnonzero(np.bincount(labels[shown], minlength=n_clusters) < least)
    by_cluster, ends = np.argsort(labels, kind="stable"), np.cumsum(sizes)
    more = [
        by_cluster[np.linspace(ends[label] - sizes[label], ends[label] - 1, n).astype(int)]
        for label in few
        if (n := min(least, sizes[label])) > 0
    ]
    return np.unique(np.concatenate([shown, *more]))


def _nearness(
    distances: FloatArray | None, labels: Labels
) -> tuple[FloatArray | None, FloatArray | None, Labels | None]:
    """Return the distance to the own center, by how much the next is farther, and which it is."""
    if distances is None:
        return None, None, None
    places = np.arange(len(labels))
    away = distances[places, labels]
    if distances.shape[1] == 1:
        return away, None, None
    rest = distances.copy()
    rest[places, labels] = np.inf
    others = rest.argmin(axis=1).astype(np.int32)
    to_next = rest[places, others]
    ratios = np.where(to_next > 0, np.inf, 1.0)
    np.divide(to_next, away, out=ratios, where=away > 0)
    return away, ratios, others
