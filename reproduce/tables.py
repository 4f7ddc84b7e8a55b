"""Tables with a line for each group of rows, and a column for each statistic of it."""

import math
from collections.abc import Callable

import numpy as np

from reproduce.item import Rows, Table, Value
from reproduce.rows import column, groups, mean_and_error

Statistic = Callable[[Rows], Value]


def mean(name: str) -> Statistic:
    """Return the mean of a column as a statistic; NaN of no rows."""
    return lambda rows: mean_and_error(column(rows, name))[0] if rows else math.nan


def median(name: str, factor: float = 1.0) -> Statistic:
    """Return the median of a column, in a unit, as a statistic."""
    return lambda rows: factor * float(np.median(column(rows, name)))


def with_error(name: str, form: str = "{:.3f} ± {:.3f}") -> Statistic:
    """Return the mean of a column with its error, in words, as a statistic."""
    return lambda rows: form.format(*mean_and_error(column(rows, name)))


def table(title, rows, by, columns, note=""):
    """Return a table with a line for each group of rows.

    `by` has the names whose values make a group, and their heads.

    Examples
    --------
    >>> table("", [{"k": 2, "W": 1.0}, {"k": 2, "W": 3.0}], {"k": "clusters"}, [("W", mean("W"))])
    Table(title='', columns=['clusters', 'W'], rows=[[2, 2.0]], note='', is_published=False)
    """
    lines = [
        [*key, *(statistic(of_line) for _, statistic in columns)]
        for key, of_line in groups(rows, *by).items()
    ]
    return Table(title, [*by.values(), *(head for head, _ in columns)], lines, note)
