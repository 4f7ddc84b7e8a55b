"""The columns of the data as people know them: means and cells in units and words, and phrases."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from powermeans.types import FloatArray
from powermeans_tables.preparing import features
from powermeans_tables.preparing.kinds import Column
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
        return self.column.kind not in ("category", "ordered", "yes/no", "place", "date")

    def mean(self, values: FloatArray) -> str:
        """Say the mean of its features: for words, the largest shares."""
        column, first = self.column, float(values[0])
        if math.isnan(first):
            return "missing"
        match column.kind:
            case "category":
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
            case "date":
                return str(np.datetime64(round(first), "D"))
        return self._number(first, self.decimals)

    def cell(self, values: FloatArray, decimals: int) -> str:
        """Say the value of one row."""
        first = float(values[0])
        if math.isnan(first):
            return "missing"
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
        return [found[0], 1 - found[0]] if len(self.column.words) == 2 else found

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
        if column.kind == "category":
            own, whole = np.array([self.shares(one) for one in own]), np.array(self.shares(whole))
            names = [f"{column.name}: {word}" for word in column.words]
            texts = [[percent(min(max(share, 0), 1)) for share in line] for line in own.T]
        reach = self.deviation
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
        if column.kind == "category":
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
        up, down = ("later", "earlier") if column.kind == "date" else ("higher", "lower")
        return f"{'much ' * bool(score >= 2)}{up if mean[0] > of_all[0] else down} {name}"


_COMPASS = "east", "north-east", "north", "north-west", "west", "south-west", "south", "south-east"


def fields_of(
    names: Sequence[str], columns: Sequence[Column], deviations: FloatArray, means: FloatArray
) -> list[Field]:
    """Return the fields of features: those of the columns that a table has, or one for each."""
    used = [column for column in columns if column.is_used]
    if sum(len(features.names_of(column)) for column in used) != len(names):
        used = [Column(name, "number") for name in names]
    found, start, counts = [], 0, Counter(word for column in used for word in column.words)
    for column in used:
        is_enough = all(counts[word] == 1 and not word[:1].isdigit() for word in column.words)
        end = start + len(features.names_of(column))
        deviation = float(np.sqrt(np.square(deviations[start:end]).sum()))
        decimals = decimals_of(deviation, 2) if deviation > 0 else decimals_of(means[start], 4)
        found.append(Field(column, slice(start, end), deviation, decimals, is_enough))
        start = end
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
