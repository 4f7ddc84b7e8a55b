"""A table of numbers, what its readers tell of its columns, and their errors."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from powermeans.errors import TableError, nearest
from powermeans.types import Points

Missing = Literal["error", "drop", "observed"]


class NoRowsError(TableError):
    """A file is a table without rows; among several files it may be skipped."""


class FileFormat(abc.ABC):
    """The columns of an open file, each known by its number from 0, and how to read them."""

    name: str  # of the file, for errors
    names: Sequence[str]
    texts: dict[int, str]  # what each column without numbers holds instead
    whole: frozenset[int]  # the columns that look like whole numbers
    index: frozenset[int]  # those that pandas wrote as an index, read only on request
    beside: dict[int, str]  # what each of the others holds that are read only on request
    decimal: str  # the decimal mark of text; empty if it shows none
    n_rows: int | None  # None until all of the file is read
    can_skip: bool  # whether rows can be skipped without reading them
    stored: np.dtype[Any] | None = None  # the dtype of all columns, if the file is one array

    @abc.abstractmethod
    def how_read(self, wanted: Sequence[int]) -> str:
        """Return how text writes the numbers of these columns, where that is not plain."""

    def unit(self, number: int) -> str | None:
        """Return the currency or percent sign of a column, empty for none; None if not known."""
        return None

    @abc.abstractmethod
    def fits_float32(self, wanted: Sequence[int]) -> bool:
        """Return whether no number of these columns needs float64."""

    @abc.abstractmethod
    def as_table(self) -> Any:
        """Return all columns as a table of Arrow, as they are stored."""

    @abc.abstractmethod
    def blocks(
        self,
        wanted: Sequence[int],
        dtype: np.dtype[np.floating[Any]],
        first_row: int = 0,
        at_once: int | None = None,
    ) -> Iterator[Points]:
        """Yield these columns from a row on, `at_once` rows at a time if the format can choose."""


def from_row(first_row: int, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield batches without the rows before `first_row`."""
    for batch in batches:
        n_passed = min(first_row, len(batch))
        first_row -= n_passed
        if n_passed < len(batch):
            yield batch[n_passed:]


def is_utf8(path: Path) -> bool:
    """Return whether the name of a file is UTF-8, as PyArrow needs it."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def missing_path(path: Path) -> str:
    """Return the error for a path that does not exist, with the nearest name beside it."""
    others = [other.name for other in path.parent.glob("*")] if path.parent.is_dir() else []
    return f"{path} does not exist{nearest(path.name, others)}"


@contextlib.contextmanager
def refusing_damage(name: str, kind: str) -> Iterator[None]:
    """Turn an error of a library that reads a file into a table error of one line."""
    try:
        yield
    except (TableError, MemoryError):
        raise
    except Exception as error:
        problem = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise TableError(f"{name} is a damaged {kind} file: {problem}") from None


def listed(names: Iterable[str], length: int = 200) -> str:
    """Return names for an error, cut off after `length` characters."""
    text = ", ".join(f'"{name}"' for name in names)
    return text if len(text) <= length else f"{text[:length]}..."


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Return unique names: number the columns whose name is empty or repeated."""
    found: dict[str, None] = {}
    for number, name in enumerate(names, start=1):
        plain = name.strip() or f"c{number}"
        found[plain if plain not in found else f"{plain}.{number}"] = None
    return tuple(found)
