"""A table of numbers, and the error of what is none."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from powermeans.types import FloatArray, Points

Missing = Literal["error", "drop", "observed"]


class TableError(ValueError):
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
    """An open file with columns."""

    @property
    def name(self) -> str:
        """What errors call the file."""
        ...

    @property
    def names(self) -> Sequence[str]:
        """The names of the columns."""
        ...

    @property
    def texts(self) -> dict[int, str]:
        """For each column that holds no numbers, what it holds."""
        ...

    @property
    def whole(self) -> frozenset[int]:
        """The columns that look like whole numbers."""
        ...

    @property
    def index(self) -> frozenset[int]:
        """The columns that only name the rows, and are read where they are asked for."""
        ...

    def read(self, wanted: Sequence[int]) -> Points:
        """The columns of these numbers, in this order."""
        ...


def nearest(name: str, names: Iterable[str]) -> str:
    """Of some names the one most like another, as the end of an error; empty where none is.

    Examples
    --------
    >>> from powermeans.tables import nearest
    >>> nearest("heihgt", ["height", "weight"])
    ': did you mean "height"?'
    """
    by_lower = {other.lower(): other for other in reversed(list(names))}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f': did you mean "{by_lower[found[0]]}"?' if found else ""


def listed(names: Sequence[str], length: int = 200) -> str:
    """Names as an error shows them, in no more letters than this."""
    return shortened(", ".join(f'"{name}"' for name in names), length)


def shortened(text: str, length: int) -> str:
    """Text that is no longer than this, but for dots."""
    return text if len(text) <= length else f"{text[:length]}..."


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Names of columns: those without one are numbered, and of several the later ones as well."""
    found: list[str] = []
    for number, name in enumerate(names, start=1):
        plain = name.strip() or f"c{number}"
        found.append(plain if plain not in found else f"{plain}.{number}")
    return tuple(found)
