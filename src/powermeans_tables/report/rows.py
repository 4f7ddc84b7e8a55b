"""Rows that a report shows one by one: how near they are to their center, and what they contain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from powermeans.explaining.sureness import ways_to_others
from powermeans.plots import fitted
from powermeans.types import FloatArray, IndexArray, Labels
from powermeans_tables.cells.column import values_of
from powermeans_tables.report.profile import in_own_units
from powermeans_tables.report.subject import Subject

# A row is sure to be in its cluster on the first third of the way to any other: where a group is
# cut in two, about 80 % are.
_SURE = 1 / 3
_MOST_LETTERS, _MOST_TRIED = 40, 4
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
    is_whole: NDArray[np.bool_]

    @classmethod
    def of(cls, subject: Subject, max_points: int = 5_000) -> Self:
        """Look at all rows, or at so many of them and more of clusters that have few there."""
        labels, weights = subject.labels, subject.weights
        sample = fitted.sample_of(len(labels), max_points)
        places = _places(labels, sample, len(subject.profile.clusters))
        mine = labels[places]
        own = np.ones(len(places)) if weights is None else weights[places]
        of_all = np.array([cluster.weight for cluster in subject.profile.clusters])
        of_sample = np.bincount(mine, own, minlength=len(of_all))
        share = np.divide(of_all, of_sample, out=np.zeros_like(of_all), where=of_sample > 0)
        given, distances = fitted.rows_of(subject.given, places), None
        if hasattr(subject.model, "transform"):
            distances = fitted.distances_of(subject.model, given)
        away = None if distances is None else distances[np.arange(len(mine)), mine]
        ways, names = None, _identifiers(subject, places)
        if distances is not None and len(of_all) > 1:
            rest = of_all[mine] - own  # which has not been drawn by the row itself
            drawn = np.divide(own, rest, out=np.zeros_like(own), where=rest > 0)
            ways = ways_to_others(subject.model, subject.filled(places), mine, distances, drawn)
        raw: Any = sparse.csr_matrix(given) if sparse.issparse(given) else np.asarray(given, float)
        values = _values(subject, raw.astype(float))
        is_whole = np.ones(len(places), dtype=bool)
        if not sparse.issparse(raw):
            is_whole = ~np.isnan(raw).any(axis=1)
        return cls(places, mine, own * share[mine], values, names, away, ways, is_whole)

    def cells(
        self, subject: Subject, fields: list[int], shown: Sequence[int] | slice = slice(None)
    ) -> tuple[list[str], list[list[str]]]:
        """Return names and the cells of the rows shown: their identifiers, and these fields."""
        columns = [list(np.array(texts)[shown]) for texts in self.identifiers.values()]
        for field, values in ((subject.profile.fields[j], self.values[j]) for j in fields):
            there = values[:, 0][np.isfinite(values[:, 0])]
            is_whole = np.abs(there - np.round(there)) <= 1e-9 * np.maximum(1, np.abs(there))
            more = 0 if is_whole.all() or field.decimals < 0 else field.decimals + 1
            decimals = more or min(0, field.decimals)
            columns.append([field.cell(each, decimals) for each in values[shown]])
        names = [*self.identifiers, *(subject.profile.fields[j].name for j in fields)]
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
        # A row that lacks values seems near, since only the others are compared.
        if sign > 0 and (is_whole := self.is_whole[mine]).any():
            mine = mine[is_whole]
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


def _values(subject: Subject, raw: Any) -> dict[int, FloatArray]:
    """Return the fields that tell clusters apart, and places, which the map shows."""
    fields = [j for j, field in enumerate(subject.profile.fields) if field.column.kind == "place"]
    fields = list(dict.fromkeys([*subject.profile.telling(MOST_TOLD), *fields]))
    features = [np.arange(*subject.profile.fields[j].places.indices(2**62)) for j in fields]
    given: Any = in_own_units(raw, subject.scalers)[:, np.concatenate(features)]
    values = given.toarray() if hasattr(given, "toarray") else given
    ends = np.cumsum([len(one) for one in features])[:-1]
    return dict(zip(fields, np.split(values, ends, axis=1), strict=True))


def _identifiers(subject: Subject, places: IndexArray) -> dict[str, list[str]]:
    """Return columns of the file that say which row is which: at most a number and a name."""
    table, found = subject.file.table, dict[str, list[str]]()
    if table is None:
        return {}
    there = [one for one in subject.columns if one.name in table.names]  # not those of lines alone
    groups = [
        [one.name for one in there if one.kind in kinds][:_MOST_TRIED]
        for kinds in (("identifier",), ("text", "ignore"))
    ]
    if not any(groups):
        return {}
    cells = table.take(
        subject.row_numbers(places) - 1, [name for names in groups for name in names]
    )
    for names in groups:
        for name in names:
            texts = ["" if cell is None else str(cell) for cell in values_of(cells[name])]
            if any(texts) and max(map(len, texts)) <= _MOST_LETTERS:
                found[name] = texts
                break
    return found
