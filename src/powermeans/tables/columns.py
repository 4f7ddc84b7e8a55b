"""Which columns of a file are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from powermeans.tables.names import listed, nearest
from powermeans.tables.reader import Reader
from powermeans.tables.table import TableError


def wanted_columns(
    reader: Reader, columns: Sequence[str | int] | None, weights: str | None
) -> list[int]:
    """The numbers of the columns to read, that of the weights last."""
    if isinstance(columns, str):
        raise TableError(f"columns={columns!r} is one name: pass a list, [{columns!r}]")
    last = [] if weights is None else [_number_of(weights, reader)]
    if columns is not None:
        wanted = [_number_of(column, reader) for column in columns]
    else:
        beside = {*last, *reader.index}
        wanted = [number for number in range(len(reader.names)) if number not in beside]
    if not wanted:
        raise TableError(_nothing_wanted(reader, columns))
    for number in wanted + last:
        if number in reader.texts:
            _refuse_text(reader, number, last)
    return wanted + last


def _nothing_wanted(reader: Reader, columns: Sequence[str | int] | None) -> str:
    if columns is not None:
        return f"columns={list(columns)} names none of {reader.name}: name some"
    if reader.index:
        names = [reader.names[number] for number in sorted(reader.index)]
        return (
            f"{reader.name} has no columns but those of an index, {listed(names)}: name with "
            "columns= what is meant"
        )
    return f"{reader.name} has no columns but that of the weights"


def _number_of(given: str | int, reader: Reader) -> int:
    column = str(given)
    if column in reader.names and isinstance(given, str):
        return list(reader.names).index(column)
    if column.isdigit() and 1 <= int(column) <= len(reader.names):
        return int(column) - 1
    if not isinstance(given, str):
        raise TableError(
            f"{reader.name} has no column {given!r}: pass its name, or its number from 1 to "
            f"{len(reader.names)}"
        )
    suggestion = nearest(column, reader.names)
    known = f": there are {listed(reader.names)}"
    raise TableError(f'{reader.name} has no column "{column}"{suggestion or known}')


def _refuse_text(reader: Reader, number: int, others: Sequence[int]) -> NoReturn:
    numeric = [
        name
        for column, name in enumerate(reader.names)
        if column not in reader.texts and column not in others and column not in reader.index
    ]
    way_out = f": leave it out with columns=[{listed(numeric, 300)}]" if numeric else ""
    raise TableError(
        f'{reader.name}: column "{reader.names[number]}" is no number but '
        f"{reader.texts[number]}{way_out}"
    )
