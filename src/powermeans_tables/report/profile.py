"""What clusters contain, in the units and words of the data, and what sets each apart."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from powermeans.errors import ArgumentError
from powermeans.explaining.summaries import NOTABLE, ClusterSummary, Columns, Tally
from powermeans.types import FloatArray
from powermeans_tables.preparing import features
from powermeans_tables.preparing.kinds import SHARES, WORDS, Column
from powermeans_tables.preparing.prepare import Prepare
from powermeans_tables.report.text import decimals_of, fixed, percent


@dataclass(frozen=True, slots=True)
class Field:
    """One column of the data, which may be several features of the points."""

    column: Column
    places: slice  # of its features
    deviation: float  # of all rows, in its unit
    decimals: int  # of its means
    is_word_enough: bool = True  # to tell a category, whose words no other column has

    @property
    def name(self) -> str:
        """Its name; a place has two."""
        return f"{self.column.name}, {self.column.other}".rstrip(", ")

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers rather than words."""
        return self.column.kind not in (*WORDS, "place", "clock", "date")

    def mean(self, values: FloatArray) -> str:
        """Say the mean of its features: for words, the largest shares."""
        column, first = self.column, float(values[0])
        if math.isnan(first):
            return "missing"
        match column.kind:
            case "category" | "choices":
                shares = zip(column.words, self.shares(values), strict=True)
                found = sorted(shares, key=lambda pair: -pair[1])[:3]
                told = [f"{word} {percent(share)}" for word, share in found if share >= 0.045]
                return ", ".join(told or [f"{found[0][0]} {percent(found[0][1])}"])
            case "yes/no":
                return f"{percent(first)} yes"
            case "ordered":
                return column.words[int(np.argmin(np.abs(first - np.array(column.levels))))]
            case "place":
                (lat, lon), gap = self.coordinates(values), "\u00a0"
                north, east = "N" if lat >= 0 else "S", "E" if lon >= 0 else "W"
                return f"{abs(lat):.2f}°{gap}{north}, {abs(lon):.2f}°{gap}{east}"
            case "clock":
                return str(features.decode(column, values[None, :2])[0][1][0])
            case "date":
                return str(np.datetime64(round(first), "D"))
        return self._number(first, self.decimals)

    def cell(self, values: FloatArray, decimals: int) -> str:
        """Say the value of one row."""
        first = float(values[0])
        if math.isnan(first):
            return "missing"
        if self.column.kind == "choices":
            return str(features.decode(self.column, values[None])[0][1][0]) or "none"
        if self.column.kind == "category":
            shares = self.shares(values)
            return self.column.words[int(np.argmax(shares))] if max(shares) > 0.5 else "other"
        if self.column.kind == "yes/no":
            return "yes" if first > 0.5 else "no"
        return self._number(first, decimals) if self.is_number else self.mean(values)

    def _number(self, value: float, decimals: int) -> str:
        unit = self.column.unit
        if unit == "%":  # 12 % is 0.12
            value, decimals = 100 * value, max(decimals - 2, 0)
        return fixed(value, decimals) + (f"\u00a0{unit}" if unit else "")

    def shares(self, values: FloatArray) -> list[float]:
        """Return the share of each word of a category; of two words one has a feature."""
        found = [float(value) for value in values]
        return [found[0], 1 - found[0]] if len(found) < len(self.column.words) else found

    def coordinates(self, values: FloatArray) -> tuple[float, float]:
        """Return the latitude and longitude of a place."""
        (_, latitudes), (_, longitudes) = features.decode(self.column, values[None, :3])
        return float(latitudes[0]), float(longitudes[0])

    def lines(
        self, means: FloatArray, of_all: FloatArray
    ) -> list[tuple[str, list[str], FloatArray]]:
        """Return the lines of a chart: names, means as text, and how far they are from all rows."""
        column, own, whole = self.column, means[:, self.places], of_all[self.places]
        names, texts = [column.name], [[self.mean(one) for one in own]]
        if column.kind in SHARES:
            own, whole = np.array([self.shares(one) for one in own]), np.array(self.shares(whole))
            names = [f"{column.name}: {word}" for word in column.words]
            texts = [[percent(min(max(share, 0), 1)) for share in line] for line in own.T]
        reach = self.deviation
        if column.kind == "clock":
            hours = features.hours_in(np.vstack([whole, own]))
            own, whole = ((hours - hours[0] + 12) % 24 - 12)[1:, None], np.zeros(1)
            reach = float(np.nanmax(np.abs(own)))
        if column.kind == "place":
            own = np.array([self.coordinates(one) for one in own])
            whole, names = np.array(self.coordinates(whole)), [column.name, column.other]
            texts = [[fixed(value, 2) for value in line] for line in own.T]
            reach = float(np.nanmax(np.abs(own - whole)))
        return [
            (name, text, (line - of_whole) / (reach or 1.0))
            for name, text, line, of_whole in zip(names, texts, own.T, whole, strict=True)
        ]

    def phrase(self, mean: FloatArray, of_all: FloatArray, score: float) -> str:
        """Say in few words how a cluster differs from all rows."""
        column, name = self.column, self.column.name.replace("_", " ").strip()
        if column.kind in SHARES:
            shares, all_shares = self.shares(mean), self.shares(of_all)
            excess = [share - other for share, other in zip(shares, all_shares, strict=True)]
            place = int(np.argmax(excess))
            word = column.words[place]
            said = word if self.is_word_enough and len(word) > 3 else f"{name}: {word}"
            return said if shares[place] >= 0.5 else f"more {said}"
        if column.kind == "place":
            (south, west), (lat, lon) = self.coordinates(of_all), self.coordinates(mean)
            east = (lon - west + 180) % 360 - 180
            angle = math.atan2(lat - south, east * math.cos(math.radians(lat)))
            return _COMPASS[round(angle / (math.pi / 4)) % 8]
        if column.kind == "clock":
            return f"{name} around {self.mean(mean)}"
        up, down = ("later", "earlier") if column.kind == "date" else ("higher", "lower")
        return f"{'much ' * bool(score >= 2)}{up if mean[0] > of_all[0] else down} {name}"


_NEARLY_ALL, _HARDLY = 0.95, 0.1
_COMPASS = "east", "north-east", "north", "north-west", "west", "south-west", "south", "south-east"


def fields_of(
    names: Sequence[str], columns: Sequence[Column], deviations: FloatArray, means: FloatArray
) -> list[Field]:
    """Return the fields of features: those of the columns that a table has, or one for each."""
    used = [column for column in columns if column.is_used]
    if sum(len(features.names_of(column)) for column in used) != len(names):
        used = [Column(name, "number") for name in names]
    found, counts = [], Counter(word for column in used for word in column.words)
    for column, part in features.parts_of(used):
        is_enough = all(counts[word] == 1 and not word[:1].isdigit() for word in column.words)
        deviation = float(np.sqrt(np.square(deviations[part]).sum()))
        decimals = decimals_of(deviation, 2) if deviation > 0 else decimals_of(means[part.start], 4)
        found.append(Field(column, part, deviation, decimals, is_enough))
    return found


def name_clusters(phrases: Sequence[Sequence[str]], details: Sequence[str]) -> list[str]:
    """Join the first phrases on each cluster, more where two names would be alike.

    >>> name_clusters([["higher x", "lower y"], ["higher x", "lower y"]], ["x 3", "x 2"])
    ['Higher x, lower y (x 3)', 'Higher x, lower y (x 2)']
    """
    levels = [0] * len(phrases)
    while True:
        names = [_name(phrases[j], details[j], j, level) for j, level in enumerate(levels)]
        counts = Counter(names)
        alike = [j for j, name in enumerate(names) if counts[name] > 1 and levels[j] < 3]
        if not alike:
            return names
        for j in alike:
            levels[j] += 1


def _name(phrases: Sequence[str], detail: str, label: int, level: int) -> str:
    """Return a name that says more at each level, up to the number of the cluster."""
    text = ", ".join(phrases[: 3 if level == 1 else 2])
    more = ("", "", f" ({detail})", f" (cluster {label})")[level]
    return f"{text[0].upper()}{text[1:]}{more}"


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
        found = cls(columns, clusters, fields, scores, [], means, of_all)
        return replace(found, names=found._named(names or {}))

    def _named(self, given: Mapping[int, str]) -> list[str]:
        """Name the clusters as the caller does, the others after what sets them apart."""
        check_names(given, len(self.clusters))
        phrases, details = [], []
        for label, (one, mean) in enumerate(zip(self.clusters, self.means, strict=True)):
            order = self.telling(3, label)
            first = self.fields[order[0]]
            details.append(f"{first.name}: {first.mean(mean[first.places])}")
            told = [(self.fields[j], self.scores[label, j]) for j in order]
            said = [
                field.phrase(mean[field.places], self.of_all[field.places], score)
                for field, score in told
                if score >= NOTABLE
            ]
            near = "in the middle" if first.column.kind == "place" else "near the average"
            empty = "without weight" if one.size else "empty"
            phrases.append((said or [near]) if one.weight > 0 else [empty])
        return [given.get(j, name) for j, name in enumerate(name_clusters(phrases, details))]

    @property
    def weighing(self) -> list[int]:
        """Return the clusters whose rows weigh anything."""
        return [one.label for one in self.clusters if one.weight > 0]

    def telling(self, most: int, label: int | None = None) -> list[int]:
        """Return the fields that tell a cluster, or all clusters, apart most."""
        heights = self.scores[self.weighing].max(axis=0) if label is None else self.scores[label]
        return [int(j) for j in np.argsort(-heights, kind="stable")[:most]]

    @property
    def only_word(self) -> str | None:
        """Return the column whose words alone are the clusters, if the others hardly differ."""
        shares = np.array([one.share for one in self.clusters])
        told = np.nan_to_num(shares @ np.square(np.nan_to_num(self.scores)))  # of the variance
        most = int(np.argmax(told))
        others = np.delete(told, most)
        is_one = self.fields[most].column.kind in WORDS and told[most] > _NEARLY_ALL
        return self.fields[most].name if is_one and others.mean() < _HARDLY else None

    def facts(self, label: int, least: float = 0.0) -> Iterator[tuple[str, str, str]]:
        """Yield name, mean and that of all in the three fields that set a cluster apart most.

        Each does so by at least so many deviations; the last is empty where words say enough.
        """
        for j in self.telling(3, label):
            field, mean = self.fields[j], self.means[label]
            if self.scores[label, j] < least and field.column.kind != "place":
                continue
            text, of_all = field.mean(mean[field.places]), field.mean(self.of_all[field.places])
            is_compared = field.column.kind not in (*SHARES, "place") and len(self.clusters) > 1
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
    return np.asarray(np.nan_to_num(np.sqrt(summed / np.where(of_field > 0, of_field, 1.0))))


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
