"""How columns of a table are scaled, so that each has its share of all distances."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from powermeans.types import FloatArray
from powermeans_tables.cells.number_forms import is_number
from powermeans_tables.preparing import features, kinds
from powermeans_tables.preparing.kinds import NUMBERS, Column
from powermeans_tables.preparing.points import ColumnRange, Spread

Scale = Literal["auto", "standard", "minmax", "none"]
# Columns of one unit are scaled all the same where one spreads so much farther than another.
_UNLIKE = 100.0
_YEAR = re.compile(r"(1[89]|2[01])\d\d")
_UNITS = re.compile(r"[(\[]\s*([^()\[\]]+?)\s*[)\]]\s*$|_(cm|mm|m|km|kg|g|ml|usd|eur|px)$")


def scaled(
    columns: Sequence[Column], spread: Spread, scale: Scale, shares: Mapping[str, float] | None
) -> list[Column]:
    """Return the columns with the offset and scale of each of their features."""
    numbers = [part.start for one, part in features.parts_of(columns) if one.kind in NUMBERS]
    of_all, means_of_all = spread.deviations, spread.means
    spreads = of_all[numbers]
    names = [one for one in columns if one.kind in NUMBERS]
    is_only = len(columns) == len(names) == 1
    shares_unit = scale == "auto" and (is_only or _have_one_unit(names, spread.sums, spreads))
    shapes = [part.start for one, part in features.parts_of(columns) if one.kind == "shape"]
    of_shapes = float(np.sqrt(np.mean(np.square(of_all[shapes])))) if shapes else 1.0
    of_group = float(np.sqrt(np.mean(np.square(spreads)))) if numbers else 1.0
    of_lists = dict.fromkeys((one.of_list for one in columns), 0.0)
    for column, part in features.parts_of(columns):
        of_lists[column.of_list] += float(np.square(of_all[part]).sum())
    scaled = []
    for column, part in features.parts_of(columns):
        means, deviations = means_of_all[part], of_all[part]
        offsets, width = means, len(means)
        if scale == "none":
            scales, offsets = np.ones(width), np.zeros(width)
        elif scale == "minmax":
            offsets = np.nan_to_num(spread.range.lowest[part])
            scales = np.nan_to_num(spread.range.highest[part]) - offsets
        elif shares_unit and column.kind in NUMBERS:
            is_alone = len(numbers) == len(columns)
            scales = np.full(width, 1.0 if is_alone else of_group)
            offsets = np.zeros(width) if is_alone else means
        elif column.of_list and scale == "auto":
            scales = np.full(width, np.sqrt(of_lists[column.of_list]))
        elif column.kind == "shape":
            scales = np.full(width, of_shapes)
        elif column.kind == "place":
            of_place = 1.0 if len(columns) == 1 else np.sqrt(np.square(deviations).sum() / 2)
            scales = np.full(width, of_place)
        else:
            scales = np.full(width, np.sqrt(np.square(deviations).sum()))
        scales = np.where(scales > 0, scales, 1.0) / np.sqrt(share_of(column, shares))
        scaled.append(replace(column, offsets=offsets.tolist(), scales=scales.tolist()))
    return scaled


def share_of(column: Column, shares: Mapping[str, float] | None) -> float:
    """Return how much a column counts, a place by either of its columns, a number by its list."""
    given, names = shares or {}, (column.name, column.other, column.of_list)
    return next((given[name] for name in names if name in given), 1.0)


def _have_one_unit(columns: Sequence[Column], sums: ColumnRange, spreads: FloatArray) -> bool:
    """Return whether all columns of numbers share a unit, so that their spreads mean something."""
    if len(columns) < 2:
        return False
    if spreads.max() > _UNLIKE * max(spreads.min(), np.finfo(float).tiny):
        return False
    units = {one.unit or _unit_in(one.name) for one in columns}
    if len(units) == 1 and "" not in units:
        return True
    stems = {re.sub(r"\d+", "0", one.name.casefold()) for one in columns}
    if len(stems) == 1 and re.search(r"\d", next(iter(stems))) and _say_what_they_are(columns):
        return True
    lowest, highest = float(sums.lowest[0]), float(sums.highest[0])
    return lowest > 0 and highest - lowest <= 4e-3 * lowest


def _say_what_they_are(columns: Sequence[Column]) -> bool:
    """Return whether names are more than numbers, or years above values of one kind."""
    names = [one.name for one in columns]
    if all(map(_YEAR.fullmatch, names)):
        return len({(one.kind, one.unit) for one in columns}) == 1
    return not any(kinds.has_no_name(name) or is_number(name) for name in names)


def _unit_in(name: str) -> str:
    found = _UNITS.search(name.casefold())
    return (found[1] or found[2]) if found else ""


def unscaled(column: Column) -> Column:
    """Return a column whose features are as they are."""
    n_features = len(features.names_of(column)) if column.is_used else 0
    return replace(column, offsets=[0.0] * n_features, scales=[1.0] * n_features)
