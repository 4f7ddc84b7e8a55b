"""A table of numbers, what reads one from a file, and the errors of both."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from powermeans.errors import ArgumentError
from powermeans.types import FloatArray, Points

Missing = Literal["error", "drop", "observed"]


class TableError(ArgumentError):
    """A file is no table of numbers, or not the one that was asked for."""


class NoRowsError(TableError):
    """A file is a table, but has no rows: of several, others may have some."""


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers, with the names of their columns.

    Attributes
    ----------
    points : ndarray of shape (n_rows, n_columns)
        Float64; float32 where an array of it was read.
    names : tuple of str
        The names of the columns.
    weights : ndarray of shape (n_rows,), optional
        The column that was asked for as weights.
    is_kept : ndarray of shape (n_rows_read,), optional
        False for the rows that were dropped since a value is missing.
    """

    points: Points
    names: tuple[str, ...]
    weights: FloatArray | None = None
    is_kept: NDArray[np.bool_] | None = None


class Reader(Protocol):
    """An open file with columns, each known by its number from 0."""

    @property
    def name(self) -> str:
        """The name of the file in errors."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the columns."""

    @property
    def texts(self) -> dict[int, str]:
        """For each column that holds no numbers, what it holds."""

    @property
    def whole(self) -> frozenset[int]:
        """The columns that look like whole numbers."""

    @property
    def index(self) -> frozenset[int]:
        """The columns that only name the rows, and are read only where they are asked for."""

    def read(self, wanted: Sequence[int]) -> Points:
        """Return these columns, in this order."""


def nearest(name: str, names: Iterable[str]) -> str:
    """Return the name most like another as the end of an error; empty where none is.

    Examples
    --------
    >>> from powermeans.tables import nearest
    >>> nearest("heihgt", ["height", "weight"])
    ': did you mean "height"?'
    """
    by_lower = {other.lower(): other for other in reversed(list(names))}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f': did you mean "{by_lower[found[0]]}"?' if found else ""


def listed(names: Iterable[str], length: int = 200) -> str:
    """Return names as an error shows them, cut off after this many letters."""
    text = ", ".join(f'"{name}"' for name in names)
    return text if len(text) <= length else f"{text[:length]}..."


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Return names that differ: number columns without a name, and repetitions of a name."""
    found: list[str] = []
    for number, name in enumerate(names, start=1):
        plain = name.strip() or f"c{number}"
        found.append(plain if plain not in found else f"{plain}.{number}")
    return tuple(found)
