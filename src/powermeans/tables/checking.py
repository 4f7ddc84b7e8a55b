"""Check the columns that are asked for, the numbers in them, and missing values."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powermeans.errors import Argument, ExplainedWarning
from powermeans.tables.table import Columns, Missing, Table, TableError, listed, nearest
from powermeans.types import Points

# Float64 cannot represent all larger whole numbers.
_LARGEST_WHOLE = 2.0**53
_BLOCK_ROWS = 2**16


def wanted_columns(
    reader: Columns, columns: Sequence[str | int] | None, weights: str | None
) -> list[int]:
    """Return the numbers of the columns to read, the weights last."""
    last = [] if weights is None else [_number_of(weights, reader)]
    if isinstance(columns, str):
        raise TableError(
            "is one name", f"pass a list, [{columns!r}]", argument="columns", value=columns
        )
    if columns is not None:
        wanted = [_number_of(column, reader) for column in columns]
    else:
        beside = {*last, *reader.index}
        wanted = [number for number in range(len(reader.names)) if number not in beside]
    if not wanted:
        raise _nothing_wanted(reader, columns)
    for number in wanted + last:
        if number in reader.texts:
            raise _no_number(reader, number, last)
    return wanted + last


def _number_of(given: str | int, reader: Columns) -> int:
    column = str(given)
    if column in reader.names and isinstance(given, str):
        return list(reader.names).index(column)
    if column.isdigit() and 1 <= int(column) <= len(reader.names):
        return int(column) - 1
    if not isinstance(given, str):
        raise TableError(
            f"{reader.name} has no column {given!r}",
            f"pass its name, or its number from 1 to {len(reader.names)}",
        )
    suggestion = nearest(column, reader.names)
    known = f": there are {listed(reader.names)}"
    raise TableError(f'{reader.name} has no column "{column}"{suggestion or known}')


def _nothing_wanted(reader: Columns, columns: Sequence[str | int] | None) -> TableError:
    if columns is not None:
        problem = f"names none of {reader.name}"
        return TableError(problem, "name some", argument="columns", value=list(columns))
    if reader.index:
        names = listed(reader.names[number] for number in sorted(reader.index))
        return TableError(
            f"{reader.name} has no columns but those of an index, {names}",
            "name with ",
            Argument("columns"),
            " what is meant",
        )
    return TableError(f"{reader.name} has no columns but that of the weights")


def _no_number(reader: Columns, number: int, others: Sequence[int]) -> TableError:
    numeric = [
        name
        for column, name in enumerate(reader.names)
        if column not in reader.texts and column not in others and column not in reader.index
    ]
    return TableError(
        f'{reader.name}: column "{reader.names[number]}" is no number but {reader.texts[number]}',
        *(("leave it out with ", Argument("columns", numeric)) if numeric else ()),
    )


def check_whole_numbers(
    reader: Columns, wanted: Sequence[int], points: Points, first_row: int = 0
) -> None:
    """Raise on whole numbers that float64 cannot represent, which are likely identifiers."""
    for place, number in enumerate(wanted):
        if number in reader.whole:
            is_huge = np.abs(points[:, place]) >= _LARGEST_WHOLE
            if is_huge.any():
                raise TableError(
                    f'{reader.name}: column "{reader.names[number]}" has in row '
                    f"{first_row + int(np.argmax(is_huge)) + 1} a whole number of more than 15 "
                    "digits, which looks like an identifier",
                    "leave the column out with ",
                    Argument("columns"),
                    ", or write 1.0e17 for a number",
                )


def warn_of_index_column(reader: Columns, wanted: Sequence[int], points: Points) -> None:
    """Warn if the first column has no name and counts the rows, as pandas writes its index."""
    names = [reader.names[number] for number in wanted]
    if names[:1] != ["c1"] or names[1:2] in ([], ["c2"]) or len(points) < 2:
        return
    first = points[:, 0]
    if first[0] in (0, 1) and np.array_equal(first, np.arange(len(first)) + first[0]):
        warnings.warn(
            ExplainedWarning(
                f"{reader.name}: the first column has no name and counts the rows, as an index "
                "does",
                "leave it out with ",
                Argument("columns", names[1:]),
            ),
            stacklevel=3,
        )


def with_last_as_weights(table: Table, name: str, missing: Missing) -> Table:
    """Return the table with its last column as weights, missing ones only for rows to drop."""
    column, weights = table.names[-1], np.array(table.points[:, -1], dtype=np.float64)
    is_missing = np.isnan(weights)
    is_bad = ~is_missing & ~(np.isfinite(weights) & (weights >= 0))
    if missing != "drop" and is_missing.any():
        raise TableError(
            f'{name}: column "{column}" has no value in row {int(np.argmax(is_missing)) + 1}, and '
            f"rows need weights ({np.count_nonzero(is_missing)} of {len(weights)} have none)",
            Argument("missing", "drop"),
            " leaves such rows out",
        )
    if is_bad.any():
        row = int(np.argmax(is_bad))
        raise TableError(
            f'{name}: column "{column}" has {weights[row]:g} in row {row + 1}, which is no weight',
            "weights are finite and not negative",
        )
    points: Any = np.ascontiguousarray(table.points[:, :-1])
    return Table(points, table.names[:-1], weights)


def without_missing(table: Table, missing: Missing, name: str) -> Table:
    """Drop, keep or refuse rows with missing values; refuse infinite values."""
    is_whole = _are_whole_rows(table, name)
    if missing == "observed" or is_whole.all():
        return table
    if missing == "drop" and is_whole.any():
        weights = None if table.weights is None else table.weights[is_whole]
        return replace(table, points=table.points[is_whole], weights=weights, is_kept=is_whole)
    raise _lacking(table, is_whole, name)


def _are_whole_rows(table: Table, name: str) -> NDArray[np.bool_]:
    """Return for each row whether all its values and its weight are present."""
    found = np.ones(len(table.points), dtype=bool)
    for start in range(0, len(table.points), _BLOCK_ROWS):
        block = table.points[start : start + _BLOCK_ROWS]
        _refuse_infinite(block, start, table, name)
        found[start : start + _BLOCK_ROWS] = ~np.isnan(block).any(axis=1)
    return found if table.weights is None else found & ~np.isnan(table.weights)


def _refuse_infinite(block: Points, start: int, table: Table, name: str) -> None:
    is_infinite = np.isinf(block)
    if is_infinite.any():
        row, column = np.argwhere(is_infinite)[0]
        raise TableError(
            f'{name}: column "{table.names[column]}" has {block[row, column]:g} in row '
            f"{start + row + 1}",
            "correct it, or leave the row or the column out",
        )


def _lacking(table: Table, is_kept: NDArray[np.bool_], name: str) -> TableError:
    row = int(np.argmin(is_kept))
    is_missing = np.isnan(table.points[row])
    column = f'column "{table.names[int(np.argmax(is_missing))]}"'
    return TableError(
        f"{name}: {column if is_missing.any() else 'the weight'} has no value in row {row + 1} "
        f"({np.count_nonzero(~is_kept)} of {len(is_kept)} rows lack some)",
        Argument("missing", "drop"),
        " leaves such rows out, ",
        Argument("missing", "observed"),
        " goes by the values that are there",
    )
