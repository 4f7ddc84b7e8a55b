"""Numbers as they were published, from the CSV files in `expected/`."""

from __future__ import annotations

import csv
from pathlib import Path

from reproduce.item import Row, Value

EXPECTED = Path(__file__).parent / "expected"


def published_rows(name: str) -> list[Row]:
    """The rows of a file of published numbers, whole numbers as int and others as float.

    Examples
    --------
    >>> from reproduce.published import published_rows
    >>> published_rows("table1")[0]
    {'method': 'Lloyd', 'features': 2, 'mean': 1.036, 'spread': 0.018}
    """
    with (EXPECTED / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return [{key: value_of(text) for key, text in row.items()} for row in csv.DictReader(file)]


def value_of(text: str) -> Value:
    """What a text of a CSV file stands for: a whole number, another number, or itself."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
