"""The numbers that a column of each kind becomes, and what such numbers mean in the column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from powermeans.explaining.features import Feature
from powermeans.types import FloatArray
from powermeans_tables.cells.column import Cells
from powermeans_tables.cells.number_forms import hours_of_day
from powermeans_tables.preparing.kinds import SHARES, WORDS, Column

EARTH_KM = 6371.0


@dataclass(frozen=True, slots=True)
class FeatureOfColumn(Feature):
    """A number of each row, in the unit of its column; 1 and 0 for a word."""

    column: Column
    part: int = 0  # of the features of its column

    @property
    def column_name(self) -> str:
        return self.column.name

    @property
    def is_of_words(self) -> bool:
        return self.column.kind in SHARES

    def phrase(self, low: float, high: float) -> str:
        column, is_low = self.column, low == -np.inf
        if column.kind == "clock":
            said = [] if is_low else [f"is between {self._hours_above(low)}"]
            said += [] if high == np.inf else [f"is not between {self._hours_above(high)}"]
            return f"{column.name} {' and '.join(said)}"
        match column.kind:
            case "category":
                return f"{column.name} {'is not' if is_low else 'is'} {column.words[self.part]}"
            case "choices":
                return f"{column.name} {'lacks' if is_low else 'has'} {column.words[self.part]}"
            case "yes/no":
                return f"{column.name} is {'no' if is_low else 'yes'}"
            case "ordered":
                pairs = zip(column.words, column.levels, strict=True)
                inside = [word for word, level in pairs if low < level <= high]
                return f"{column.name} is {' or '.join(inside)}"
        return Feature.phrase(self, low, high)

    def _hours_above(self, value: float) -> str:
        """Say when the sine or cosine of a time of day is above a value."""
        reach = np.arccos(np.clip(value, -1, 1)) * 12 / np.pi
        noon = (6.0, 0.0)[self.part]  # when it is highest
        return f"{time_of_day(noon - reach)} and {time_of_day(noon + reach)}"

    def told(self, value: float) -> str:
        unit = self.column.unit
        if self.column.kind == "date":
            return str(np.datetime64(int(np.floor(value)), "D"))
        if unit == "%":  # 12 % is 0.12
            value = 100 * value
        return f"{value:.10g}{f' {unit}' if unit else ''}"

    def roundest(self, low: float, high: float) -> float:
        if self.column.kind in WORDS:
            return float(low + high) / 2
        return Feature.roundest(self, low, high)


def features_of(columns: Iterable[Column]) -> list[Feature]:
    """Return the features of the columns that are used."""
    return [
        FeatureOfColumn(name, column, part)
        for column in columns
        if column.is_used
        for part, name in enumerate(names_of(column))
    ]


def names_of(column: Column) -> list[str]:
    """Return the names of the features of a column."""
    if column.kind in SHARES:
        return [f"{column.name}: {word}" for word in _told_apart(column)]
    if column.kind == "place":
        axes = ("x km", "y km", "north km")
        return [f"{column.name}, {column.other}: {axis}" for axis in axes]
    if column.kind == "clock":
        return [f"{column.name}: {axis}" for axis in ("sine", "cosine")]
    return [column.name]


def parts_of(columns: Iterable[Column]) -> Iterator[tuple[Column, slice]]:
    """Yield each column with the place of its features."""
    end = 0
    for column in columns:
        start, end = end, end + len(names_of(column))
        yield column, slice(start, end)


def encode(column: Column, cells: Cells, other: Cells | None = None) -> FloatArray:
    """Return the features of a column, (n_rows, n_features), NaN where a value is missing."""
    match column.kind:
        case "category":
            places = cells.codes_of(column.words)
            found: FloatArray = np.asarray(
                places[:, None] == np.arange(len(_told_apart(column))), dtype=np.float64
            )
            if found.shape[1] == 1:
                found[places == -1] = 0.5  # a new word is neither of two
            found[places == -2] = np.nan
            return found
        case "choices":
            return cells.choices_of(column.words)
        case "yes/no" if column.words:  # a tick, or a blank for no
            codes = cells.codes_of(column.words)
            found = np.asarray(codes >= 0, dtype=np.float64)
            found[(codes == -2) & ~cells.are_blank] = np.nan
            return found[:, None]
        case "ordered":
            levels: FloatArray = np.array([*column.levels, np.nan, np.nan])
            return np.asarray(levels[cells.codes_of(column.words)][:, None])
        case "log":
            return np.log1p(cells.numbers)[:, None]
        case "clock":
            angles = hours_of_day(cells.texts) * np.pi / 12
            return np.column_stack([np.sin(angles), np.cos(angles)])
        case "place" if other is not None:
            up, around = np.radians(cells.numbers), np.radians(other.numbers)
            axes = np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up)
            return EARTH_KM * np.column_stack(axes)
    return cells.numbers[:, None]


def time_of_day(hours: float) -> str:
    """Return an hour as a time, such as 08:30 for 8.5 and for 32.5."""
    minutes = round(60 * hours) % 1440
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def hours_in(features: FloatArray) -> FloatArray:
    """Return the hours of the nearest times of day."""
    return np.asarray(np.arctan2(*features.T) * 12 / np.pi)


def shapes(block: FloatArray) -> tuple[FloatArray, int]:
    """Return rows less their mean and in their deviations, and how many rows have none."""
    is_there = ~np.isnan(block)
    n_there = np.maximum(is_there.sum(axis=1, keepdims=True), 1)
    above = block - np.nansum(block, axis=1, keepdims=True) / n_there
    deviations = np.sqrt(np.nansum(np.square(above), axis=1, keepdims=True) / n_there)
    is_flat = deviations <= 1e-12 * np.nanmax(np.abs(block), axis=1, keepdims=True, initial=0.0)
    found = np.where(is_flat & is_there, 0.0, above / np.where(is_flat, 1.0, deviations))
    return found, int((is_flat & is_there.any(axis=1, keepdims=True)).sum())


def decode(column: Column, features: FloatArray) -> list[tuple[str, Any]]:
    """Return what features mean, as columns: numbers, and the nearest words."""
    match column.kind:
        case "category":
            if features.shape[1] == 1:
                features = np.hstack([features, 1 - features])
            return [(column.name, [column.words[j] for j in np.argmax(features, axis=1)])]
        case "choices":
            chosen = [np.flatnonzero(row > 0.5) for row in features]
            return [(column.name, ["; ".join(column.words[j] for j in row) for row in chosen])]
        case "ordered":
            apart = np.abs(features - np.array(column.levels))
            return [(column.name, [column.words[j] for j in np.argmin(apart, axis=1)])]
        case "clock":
            return [(column.name, [time_of_day(hour) for hour in hours_in(features)])]
        case "place":
            x, y, z = features.T
            latitudes = np.degrees(np.arctan2(z, np.hypot(x, y)))
            return [(column.name, latitudes), (column.other, np.degrees(np.arctan2(y, x)))]
    return [(column.name, features[:, 0])]


def _told_apart(column: Column) -> list[str]:
    """Return the words that have a feature: of the two of a category, the first says all."""
    is_pair = column.kind == "category" and len(column.words) == 2
    return column.words[:1] if is_pair else column.words


def noise_of(column: Column, points: FloatArray, random: np.random.RandomState) -> FloatArray:
    """Return what turns the features of words into draws from ranges that touch."""
    n_rows, width = points.shape
    scale = np.array(column.scales)
    if column.kind == "category" and width > 1:
        # The part of a simplex that is nearest to a corner, made so large that its mean is there.
        drawn = random.dirichlet(np.ones(width), n_rows)
        largest, own = np.argmax(drawn, axis=1), np.argmax(points, axis=1)
        rows = np.arange(n_rows)
        drawn[rows, largest], drawn[rows, own] = drawn[rows, own], drawn[rows, largest]
        factor = (width - 1) / (np.sum(1 / np.arange(1, width + 1)) - 1)
        corners = np.zeros_like(drawn)
        corners[rows, own] = 1.0
        return np.asarray((1 / width + factor * (drawn - 1 / width) - corners) / scale)
    if column.kind in WORDS:
        steps = np.diff(column.levels) if len(column.levels) > 1 else np.ones(1)
        half = float(np.mean(steps)) / 2
        return np.asarray(random.uniform(-half, half, points.shape) / scale)
    return np.zeros_like(points)
