"""Rows of results: how they are picked, and what is said of them."""

import csv
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from reproduce.item import Row, Value

EXPECTED = Path(__file__).parent / "expected"

Figure = tuple[float, float]
"""A number and its standard error."""


def where(rows: Iterable[Row], **values: Value) -> list[Row]:
    """Return the rows that have these values.

    Examples
    --------
    >>> where([{"k": 2, "error": 0.5}, {"k": 3, "error": 0.1}], k=3)
    [{'k': 3, 'error': 0.1}]
    """
    return [row for row in rows if all(row.get(name) == value for name, value in values.items())]


def column(rows: Iterable[Row], name: str) -> list[float]:
    """Return the numbers that rows have under a name."""
    return [float(row[name]) for row in rows]


def kinds(rows: Iterable[Row], name: str) -> list[Value]:
    """Return the different values under a name, in the order in which they first come."""
    return list(dict.fromkeys(row[name] for row in rows if name in row))


def groups(rows: Iterable[Row], *names: str) -> dict[tuple[Value, ...], list[Row]]:
    """Return the rows that have the same values under some names, by these values."""
    found: dict[tuple[Value, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


def published_rows(name: str) -> list[Row]:
    """Return the rows of a file of published numbers.

    Examples
    --------
    >>> published_rows("table1")[0]
    {'method': 'Lloyd', 'features': 2, 'mean': 1.036, 'spread': 0.018}
    """
    with (EXPECTED / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return [{key: value_of(text) for key, text in row.items()} for row in csv.DictReader(file)]


def value_of(text: str) -> Value:
    """Return what a text of a CSV file stands for: a whole number, another number, or itself."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def mean_and_error(values: Sequence[float]) -> Figure:
    """Return the mean and its standard error; that of one value alone is infinite."""
    n_values = len(values)
    mean = math.fsum(values) / n_values
    if n_values == 1:
        return mean, math.inf
    variance = math.fsum((value - mean) ** 2 for value in values) / (n_values - 1)
    return mean, math.sqrt(variance / n_values)


def said(figures, form="{} {:+.3f} ± {:.3f}", comma=", "):
    """Return figures in words.

    Examples
    --------
    >>> said({"iris": (0.5, 0.1), "wine": (-0.25, 0.1)}, "{} {:+.2f} ± {:.1f}")
    'iris +0.50 ± 0.1, wine -0.25 ± 0.1'
    """
    return comma.join(form.format(name, *figure) for name, figure in figures.items())
