"""Columns that are chosen by their names, their numbers, or ranges of these."""

from collections.abc import Mapping, Sequence

from powermeans.errors import TableError, listed, nearest
from powermeans.system.threads import positive_number


def places_of(
    columns: Sequence[str | int] | None, weights: str | None, names: Sequence[str], file: str
) -> list[int]:
    """Return the numbers from 0 of the columns to read, all by default, the weights last."""
    last = [] if weights is None else numbers_of([weights], names, file)
    if isinstance(columns, str):
        raise TableError(
            "is one name", f"pass a list, [{columns!r}]", argument="columns", value=columns
        )
    if columns is None:
        chosen = [place for place in range(len(names)) if place not in last]
    else:
        chosen = numbers_of(columns, names, file)
    if not chosen and columns is not None:
        problem = f"names none of {file}"
        raise TableError(problem, "name some", argument="columns", value=list(columns))
    if not chosen:
        but = "" if weights is None else " but that of the weights"
        raise TableError(f"{file} has no columns{but}")
    return chosen + last


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
    number = positive_number(str(given))
    if number is not None and number <= len(places):
        return number - 1
    return places.get(given.strip()) if isinstance(given, str) else None


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
