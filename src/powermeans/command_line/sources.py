"""The data of a command."""

from __future__ import annotations

import csv
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from powermeans.command_line import failures
from powermeans.tables import Missing, Table, TableError, read_table

_NO_NAME = re.compile(r"c\d+")

Chooser = Callable[[Sequence[str]], Sequence[str] | None]


@dataclass(frozen=True, slots=True)
class Source:
    """Where data is and how to read it; see `powermeans.tables.read_table`.

    Only what is read part by part may be in several places.
    """

    data: str
    columns: str | None = None
    weights: str | None = None
    missing: Missing = "error"
    delimiter: str | None = None
    header: bool | None = None
    array: str | None = None
    decimal: str | None = None
    others: tuple[str, ...] = ()

    @property
    def paths(self) -> list[str]:
        """All places."""
        return [self.data, *self.others]

    @property
    def reading(self) -> dict[str, Any]:
        """How to read a file, whatever is wanted of it."""
        return {
            "delimiter": self.delimiter,
            "header": self.header,
            "array": self.array,
            "decimal": self.decimal,
        }

    def read(self, choose: Chooser | None = None) -> tuple[Table, float]:
        """The table, and how many seconds it took to read.

        Where no columns were asked for, `choose` may choose them.
        """
        started = time.perf_counter()
        columns = choose if self.columns is None else split_names(self.columns)
        with failures.refusing(TableError):
            table = read_table(
                self.data,
                columns=columns,
                weights=self.weights,
                missing=self.missing,
                **self.reading,
            )
        return table, time.perf_counter() - started

    @property
    def name(self) -> str:
        """What people call it."""
        if self.others:
            return f"{self.data} and {len(self.others)} more"
        return "standard input" if self.data == "-" else self.data


def rows_left_out(table: Table) -> str:
    """What to say of rows that were left out; empty where there are none."""
    if table.is_kept is None:
        return ""
    n_left_out = len(table.is_kept) - len(table.points)
    rows = (
        "1 row with missing values was"
        if n_left_out == 1
        else (f"{n_left_out} rows with missing values were")
    )
    return f"{rows} left out"


def are_names(names: Sequence[str]) -> bool:
    """Whether they were given and are not the numbers of columns without names."""
    return bool(names) and not all(_NO_NAME.fullmatch(name) for name in names)


def split_names(names: str) -> list[str]:
    """Names between commas or on lines; one that has such in itself is quoted."""
    lines = names.splitlines(keepends=True)
    try:
        rows = list(csv.reader(lines, skipinitialspace=True))
    except csv.Error as error:
        raise failures.Failure(f"{names!r} is no list of names: {error}", failures.USAGE) from None
    found = [name.strip() for row in rows for name in row if name.strip()]
    if not found:
        raise failures.Failure(f"{names!r} names nothing: leave it out", failures.USAGE)
    return found


def check_enough_rows(table: Table, source: Source, n_clusters: int, option: str) -> None:
    """Refuse to look for more clusters than there are rows."""
    n_rows = len(table.points)
    if n_clusters > n_rows:
        raise failures.Failure(
            f"{option} {n_clusters} is more than the {n_rows} rows of {source.name}: ask for "
            "fewer clusters",
            failures.USAGE,
        )
