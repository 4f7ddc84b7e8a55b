"""Check the columns that are asked for, the numbers in them, and missing values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powermeans.errors import Argument, ExplainedWarning, TableError, nearest, some, warn_caller
from powermeans.scale.tables.table import FileFormat, listed
from powermeans.types import Points
from powermeans_tables.preparing.kinds import OF_A_FIT, added_by_a_fit, has_no_name, why_identifier
from powermeans_tables.preparing.number_forms import as_number

_MOST_TOLD = 8


def wanted_columns(
    reader: FileFormat, columns: Sequence[str | int] | None, weights: str | None
) -> list[int]:
    """Return the numbers of the columns to read, the weights last."""
    last = [] if weights is None else [*numbers_of([weights], reader.names, reader.name)]
    if isinstance(columns, str):
        raise TableError(
            "is one name", f"pass a list, [{columns!r}]", argument="columns", value=columns
        )
    if columns is not None:
        wanted = numbers_of(columns, reader.names, reader.name)
    else:
        wanted = _numbers_by_default(reader, last)
    if not wanted:
        raise _nothing_wanted(reader, columns)
    for number in wanted + last:
        if number in reader.texts:
            raise _no_number(reader, number, last)
    return wanted + last


def _numbers_by_default(reader: FileFormat, weights: Sequence[int]) -> list[int]:
    """Return all columns of numbers but weights, an index and identifiers."""
    others = {*weights, *reader.index}
    there = [number for number in range(len(reader.names)) if number not in others]
    if all(number in reader.texts for number in there):
        return there
    of_a_fit = added_by_a_fit(reader.names)
    left_out = {
        number: OF_A_FIT if reader.names[number] in of_a_fit else _kind_of(reader, number)
        for number in there
    }
    left_out = {number: what for number, what in left_out.items() if what}
    if len(left_out) == len(there):  # identifiers are all there is
        left_out = {
            number: what
            for number, what in left_out.items()
            if number in reader.texts or what == OF_A_FIT
        }
    # A delimiter at the end of each line makes an empty column without a name.
    told = {
        number: what
        for number, what in left_out.items()
        if what != "empty" or not has_no_name(reader.names[number])
    }
    if told:
        _tell_left_out(reader, told)
    return [number for number in there if number not in left_out]


def _kind_of(reader: FileFormat, number: int) -> str:
    """Return what a column that is left out contains, empty for numbers."""
    found = reader.texts.get(number) or reader.beside.get(number, "")
    return found.partition(" (")[0]


def numbers_of(columns: Sequence[str | int], names: Sequence[str], file: str) -> list[int]:
    """Return the numbers from 0 of columns given by name, number from 1, or range of these."""
    places = {name: number for number, name in reversed(list(enumerate(names)))}
    found: list[int] = []
    for given in columns:
        number = _number_in(given, places)
        if number is not None:
            found.append(number)
        elif (numbers := _range_in(str(given), places)) is not None:
            found += numbers
        else:
            raise _unknown(given, names, file)
    return found


def _number_in(given: str | int, places: Mapping[str, int]) -> int | None:
    if isinstance(given, str) and given in places:
        return places[given]
    column = str(given).strip()
    is_number = column.isdecimal() and 1 <= int(column) <= len(places)
    return int(column) - 1 if is_number else places.get(column) if isinstance(given, str) else None


def _range_in(given: str, places: Mapping[str, int]) -> list[int] | None:
    """Return the columns from one to another, with a hyphen between any two names or numbers."""
    hyphens = [place for place, letter in enumerate(given) if letter == "-"]
    ends = [(_number_in(given[:at], places), _number_in(given[at + 1 :], places)) for at in hyphens]
    known = [(first, last) for first, last in ends if first is not None and last is not None]
    if len(known) != 1:
        return None
    first, last = known[0]
    return [*range(first, last + 1)] if first <= last else [*range(first, last - 1, -1)]


def _unknown(given: str | int, names: Sequence[str], file: str) -> TableError:
    if not isinstance(given, str):
        return TableError(
            f"{file} has no column {given!r}",
            f"pass its name, or its number from 1 to {len(names)}",
        )
    suggestion = nearest(given, names)
    known = f": there are {listed(names)}"
    return TableError(f'{file} has no column "{given}"{suggestion or known}')


def _nothing_wanted(reader: FileFormat, columns: Sequence[str | int] | None) -> TableError:
    if columns is not None:
        problem = f"names none of {reader.name}"
        return TableError(problem, "name some", argument="columns", value=list(columns))
    if reader.index:
        names = listed(reader.names[number] for number in sorted(reader.index))
        return TableError(
            f"{reader.name} has no columns but those of an index, {names}",
            *("name with ", Argument("columns"), " what is meant"),
        )
    return TableError(f"{reader.name} has no columns but that of the weights")


def _no_number(reader: FileFormat, number: int, others: Sequence[int]) -> TableError:
    numeric = [
        name
        for column, name in enumerate(reader.names)
        if not {column} & {*reader.texts, *reader.beside, *others, *reader.index}
    ]
    what = reader.texts[number]
    return TableError(
        f'{reader.name}: column "{reader.names[number]}" has no numbers: it is {what}',
        *(("leave it out with ", Argument("columns", numeric)) if numeric else ()),
    )


def check_whole_numbers(
    reader: FileFormat, wanted: Sequence[int], points: Points, first_row: int = 0
) -> None:
    """Raise on whole numbers that float64 cannot represent, which are likely identifiers."""
    whole = reader.whole
    for place, number in enumerate(wanted):
        if number in whole:
            # Float64 cannot represent all larger whole numbers.
            is_huge = np.abs(points[:, place]) >= 2.0**53
            if is_huge.any():
                raise TableError(
                    f'{reader.name}: column "{reader.names[number]}" has in row '
                    f"{first_row + int(np.argmax(is_huge)) + 1} of the data a whole number of more "
                    "than 15 digits, which looks like an identifier",
                    *("leave the column out with ", Argument("columns")),
                    ", or write 1.0e17 for a number",
                )


def identifiers(
    names: Sequence[str], columns: Mapping[int, ArrayLike], texts: Sequence[Sequence[str]] = ()
) -> dict[int, str]:
    """Return the columns of whole numbers that identify or count the rows, by some rows of each."""
    are_named = not all(map(has_no_name, names))
    return {
        j: "identifiers"
        for j, values in columns.items()
        if why_identifier(
            names[j],
            np.asarray(values, dtype=np.float64),
            texts[j] if texts else (),
            is_first=are_named and not j,
        )
    }


def declared_missing(
    given: Sequence[str] | None, names: Sequence[str], file: str
) -> list[tuple[list[int], str]]:
    """Return the values that stand for missing ones, each with the numbers of its columns.

    A value is that of all columns, unless a name or range of columns and "=" stand before it.
    """
    found = []
    for each in given or ():
        columns, is_of_some, value = str(each).rpartition("=")
        places = numbers_of([columns], names, file) if is_of_some else [*range(len(names))]
        found.append((places, value.strip()))
    return found


def with_declared_missing(
    points: Points, wanted: Sequence[int], given: Sequence[str] | None, reader: FileFormat
) -> Points:
    """Return the points with NaN in place of numbers that stand for missing values."""
    declared = declared_missing(given, reader.names, reader.name)
    numbers = [(columns, as_number(value)) for columns, value in declared]
    values = [(columns, value) for columns, value in numbers if value is not None]
    if values and not points.flags.writeable:
        points = points.copy()
    for columns, value in values:
        for place, number in enumerate(wanted):
            if number in columns:
                points[points[:, place] == value, place] = np.nan
    return points


def rows_to_skip(skip_rows: Sequence[int], n_rows: int, name: str) -> NDArray[np.bool_]:
    """Return which rows to leave out, given their numbers from one."""
    found = np.zeros(n_rows, dtype=bool)
    for row in skip_rows:
        if not 1 <= row <= n_rows:
            raise TableError(
                f"is not among the {n_rows} rows of {name}",
                "pass numbers from 1, which do not count the header",
                argument="skip_rows",
                value=row,
            )
        found[row - 1] = True
    return found


def _tell_left_out(reader: FileFormat, left_out: dict[int, str]) -> None:
    """Warn of columns that are left out, and say how to include those of numbers."""
    named = [f'"{reader.names[number]}" ({what})' for number, what in sorted(left_out.items())]
    kinds = set(left_out.values())
    way_out: list[str | Argument] = []
    if "identifiers" in kinds:
        way_out += ["name identifiers with ", Argument("columns"), " to have them"]
    if "dates" in kinds:
        way_out += [", " if way_out else "", Argument("dates", "days"), " reads dates"]
    told = f"{reader.name}: left out {some(named, _MOST_TOLD)}"
    warn_caller(ExplainedWarning(told, *way_out))
