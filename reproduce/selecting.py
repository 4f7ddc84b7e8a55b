"""Picking rows by what is in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reproduce.item import Row, Value


def where(rows: Iterable[Row], **values: Value) -> list[Row]:
    """The rows that have these values.

    Examples
    --------
    >>> where([{"k": 2, "error": 0.5}, {"k": 3, "error": 0.1}], k=3)
    [{'k': 3, 'error': 0.1}]
    """
    return [row for row in rows if all(row.get(name) == value for name, value in values.items())]


def column(rows: Iterable[Row], name: str) -> list[float]:
    """The numbers that rows have under a name.

    Examples
    --------
    >>> column([{"k": 2, "error": 0.5}, {"k": 3, "error": 0.1}], "error")
    [0.5, 0.1]
    """
    return [float(row[name]) for row in rows]


def kinds(rows: Iterable[Row], name: str) -> Sequence[Value]:
    """The different values under a name, in the order in which they first come.

    Examples
    --------
    >>> kinds([{"k": 3}, {"k": 2}, {"k": 3}], "k")
    [3, 2]
    """
    return list(dict.fromkeys(row[name] for row in rows if name in row))
