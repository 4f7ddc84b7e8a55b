"""The data of a command."""

from __future__ import annotations

import csv
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from powermeans.command_line import failures
from powermeans.tables import Missing, Table, TableError, read_table

_NO_NAME = re.compile(r"c\d+")

Chooser = Callable[[Sequence[str]], Sequence[str] | None]


@dataclass(frozen=True, slots=True)
class Source:
    """Where data is and how to read it; see `powermeans.tables.read_table`."""

    data: str
    columns: str | None = None
    weights: str | None = None
    missing: Missing = "error"
    delimiter: str | None = None
    header: bool | None = None
    array: str | None = None

    def read(self, choose: Chooser | None = None) -> tuple[Table, float]:
        """The table, and how many seconds it took to read.

        Where no columns were asked for, `choose` may choose them.
        """
        started = time.perf_counter()
        columns = choose if self.columns is None else split_names(self.columns)
        with failures.refusing(failures.DATA, TableError):
            table = read_table(
                self.data,
                columns=columns,
                weights=self.weights,
                missing=self.missing,
                delimiter=self.delimiter,
                header=self.header,
                array=self.array,
            )
        return table, time.perf_counter() - started

    @property
    def name(self) -> str:
        """What people call it."""
        return "standard input" if self.data == "-" else self.data


def are_names(names: Sequence[str]) -> bool:
    """Whether they were given and are not the numbers of columns without names."""
    return bool(names) and not all(_NO_NAME.fullmatch(name) for name in names)


def split_names(names: str) -> list[str]:
    """Names between commas; one that has a comma itself is quoted."""
    (row,) = csv.reader([names], skipinitialspace=True)
    return [name.strip() for name in row if name.strip()]
