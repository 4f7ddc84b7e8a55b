"""Rows that a report shows one by one: how near they are to their center, and what they contain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from powermeans.app.report.subject import Subject
from powermeans.divergences import resolve
from powermeans.plots import fitted
from powermeans.types import FloatArray, IndexArray, Labels, Points, SparsePoints

# A row is sure to be in its cluster on the first third of the way to any other: where a group is
# cut in two, about 80 % are.
_SURE = 1 / 3
_MOST_LETTERS = 40
MOST_TOLD = 6


@dataclass(frozen=True, slots=True)
class Rows:
    """All rows, or some of each cluster, with the weight of the rows for which each stands."""

    places: IndexArray
    labels: Labels
    weights: FloatArray
    values: dict[int, FloatArray]  # by field, in the units of the data, NaN where missing
    identifiers: dict[str, list[str]]
    away: FloatArray | None  # distance to the own center
    ways: FloatArray | None  # from the own center to the next one, from 0 to 1

    @classmethod
    def of(cls, subject: Subject, max_points: int = 10_000) -> Self:
        """Look at all rows, or at so many of them and more of clusters that have few there."""
        labels, weights = subject.labels, subject.weights
        places = _places(labels, fitted.sample_of(len(labels), max_points), len(subject.clusters))
        mine = labels[places]
        own = np.ones(len(places)) if weights is None else weights[places]
        of_all = np.array([cluster.weight for cluster in subject.clusters])
        of_sample = np.bincount(mine, own, minlength=len(of_all))
        share = np.divide(of_all, of_sample, out=np.zeros_like(of_all), where=of_sample > 0)
        distances = subject.distances_of(places)
        away = None if distances is None else distances[np.arange(len(mine)), mine]
        ways, names = _ways(subject, places, distances), _identifiers(subject, places)
        return cls(places, mine, own * share[mine], _values(subject, places), names, away, ways)

    def cells(
        self, subject: Subject, fields: list[int], shown: Sequence[int] | slice = slice(None)
    ) -> tuple[list[str], list[list[str]]]:
        """Return names and the cells of the rows shown: their identifiers, and these fields."""
        columns = [list(np.array(texts)[shown]) for texts in self.identifiers.values()]
        for field, values in ((subject.fields[j], self.values[j]) for j in fields):
            there = values[:, 0][np.isfinite(values[:, 0])]
            is_whole = np.abs(there - np.round(there)) <= 1e-9 * np.maximum(1, np.abs(there))
            more = 0 if is_whole.all() or field.decimals < 0 else field.decimals + 1
            columns.append(
                [field.cell(each, more or min(0, field.decimals)) for each in values[shown]]
            )
        names = [*self.identifiers, *(subject.fields[j].name for j in fields)]
        return names, [list(row) for row in zip(*columns, strict=True)]

    def sure_share(self, label: int | None = None) -> float | None:
        """Return the share of a cluster, or of all, that is sure to be in its cluster."""
        is_mine = np.full(len(self.labels), True) if label is None else self.labels == label
        total = float(self.weights[is_mine].sum())
        if self.ways is None or total == 0:
            return None
        return float(self.weights[is_mine & (self.ways < _SURE)].sum()) / total

    def nearest(self, label: int, most: int, sign: int = 1) -> list[int]:
        """Return which rows of a cluster are nearest to its center, or farthest, without copies."""
        if self.away is None:
            return []
        mine, found = np.flatnonzero(self.labels == label), dict[bytes, int]()
        for place in mine[np.argsort(sign * self.away[mine], kind="stable")[:60]]:
            key = b"".join(values[place].tobytes() for values in self.values.values())
            found.setdefault(key, int(place))
        return list(found.values())[:most]


def _places(labels: Labels, shown: IndexArray, n_clusters: int) -> IndexArray:
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


def _values(subject: Subject, places: IndexArray) -> dict[int, FloatArray]:
    """Return the fields that tell clusters apart, and places, which the map shows."""
    fields = [j for j, field in enumerate(subject.fields) if field.column.kind == "place"]
    fields = list(dict.fromkeys([*subject.telling(MOST_TOLD), *fields]))
    features = [np.arange(*subject.fields[j].places.indices(2**62)) for j in fields]
    values = subject.values_of(places, np.concatenate(features))
    ends = np.cumsum([len(one) for one in features])[:-1]
    return dict(zip(fields, np.split(values, ends, axis=1), strict=True))


def _ways(subject: Subject, places: IndexArray, distances: FloatArray | None) -> FloatArray | None:
    """Return the ways of rows, each from a center that it has not drawn itself."""
    if len(subject.clusters) == 1 or distances is None:
        return None
    labels, weights = subject.labels[places], subject.weights
    own = np.ones(len(places)) if weights is None else weights[places]
    rest = np.array([cluster.weight for cluster in subject.clusters])[labels] - own
    drawn = np.divide(own, rest, out=np.zeros(len(places)), where=rest > 0)
    return ways_to_others(subject.model, subject.points[places], labels, distances, drawn)


def ways_to_others(
    model: Any,
    points: Points | SparsePoints,
    labels: Labels,
    distances: FloatArray,
    drawn: FloatArray | None = None,
) -> FloatArray:
    """Return how far each row is on the way from its center to that of another cluster.

    Only the way along the line counts: in many columns most of each distance lies beside it, and
    all distances seem alike. `drawn` is the weight of a row as a share of the rest of its cluster,
    by which it has drawn its center.
    """
    kind = resolve(model.get_params(deep=False).get("divergence", "squared_euclidean"))
    if not kind.is_squared or not fitted.has_centers(model):
        return _ways_by_distances(distances, labels)
    centers, each = fitted.centers_of(model), np.arange(len(labels))
    centers = centers - centers.mean(axis=0)
    lines = np.square(cdist(centers, centers))[labels]  # their squared lengths
    is_holed = np.full(len(labels), False)
    if not sparse.issparse(points):
        is_holed = np.isnan(np.asarray(points)).any(axis=1)
    if is_holed.any():  # these go by the columns that they have
        there, own = (
            (~np.isnan(np.asarray(points)[is_holed])).astype(float),
            centers[labels[is_holed]],
        )
        lines[is_holed] = there @ np.square(centers).T - 2 * (there * own) @ centers.T
        lines[is_holed] += (there * np.square(own)).sum(axis=1)[:, None]
    away = np.square(distances[each, labels])[:, None]
    ways = (away + lines - np.square(distances)) / 2
    if drawn is not None:
        pull = drawn[:, None]
        lines = lines + 2 * pull * ways + pull**2 * away
        ways = (1 + pull) * (ways + pull * away)
    ways = np.divide(ways, lines, out=np.ones_like(ways), where=lines > 0)
    ways[each, labels] = -np.inf
    return np.asarray(ways.max(axis=1))


def _ways_by_distances(distances: FloatArray, labels: Labels) -> FloatArray:
    rest, each = distances.copy(), np.arange(len(labels))
    own, rest[each, labels] = distances[each, labels], np.inf
    both = own + rest.min(axis=1)
    ways: FloatArray = np.divide(own, both, out=np.full(len(own), 0.5), where=both > 0)
    return ways


def _identifiers(subject: Subject, places: IndexArray) -> dict[str, list[str]]:
    """Return columns of the file that say which row is which: at most a number and a name."""
    file, found = subject.file, {}
    for kinds in (("identifier",), ("text", "ignore")) if file.frame is not None else ():
        for column in (one for one in file.columns if one.kind in kinds):
            cells = file.frame[column.name].take(subject.row_numbers(places) - 1).to_pylist()
            texts = ["" if cell is None else str(cell) for cell in cells]
            if any(texts) and max(map(len, texts)) <= _MOST_LETTERS:
                found[column.name] = texts
                break
    return found
