"""The data of a command: paths, and the options by which each command reads them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import typer

from powermeans.errors import nearest
from powermeans_tables.command.failures import Failure

Scale = Literal["auto", "standard", "minmax", "none"]


def option(help: str, *names: str, default: Any = None, **more: Any) -> Any:
    """Return a field of a dataclass that is an option of the commands which take this dataclass."""
    return field(default=default, metadata={"option": typer.Option(*names, help=help, **more)})


def flag(help: str, *names: str) -> Any:
    """Return such a field that is True where one of the names is given."""
    return option(help, *names, default=False)


@dataclass(frozen=True, slots=True)
class DataFiles:
    """Paths of data and how to read them.

    Several files, or a folder, are read part by part, and so is one file with a limit of memory or
    a checkpoint.
    """

    paths: Sequence[str] = ()
    memory_limit: str | None = None
    checkpoint: str | None = None
    as_: Sequence[str] | None = None
    order: Sequence[str] | None = None
    verbose: bool = False
    columns: str | None = option(
        "Columns to use, with commas: names, numbers from 1, ranges as 2-4 or a-c."
    )
    weights: str | None = option("Column of weights.", metavar="COLUMN")
    missing: Literal["auto", "error", "drop", "observed"] | None = option(
        "What to do with missing values; auto: use the values that are present; if that is "
        "impossible, drop the row with a note."
    )
    missing_values: str | None = option(
        "Values that mean a missing one, with commas: -999 anywhere, age=99 in a column, q1-q9=99 "
        "in a range of columns.",
        metavar="VALUES",
    )
    keep_codes: bool = flag("Read -9, 99, 999 and the like as numbers.", "--keep-codes")
    skip_rows: str | None = option(
        "Rows to leave out: numbers from 1 below the header, ranges as 5-9.", metavar="ROWS"
    )
    keep_totals: bool = flag("Keep rows that sum up others.", "--keep-totals")
    dates: Literal["days", "day-first", "month-first"] | None = option(
        "Read dates as days; 3/4/2024 begins with the day or the month."
    )
    decimal: Literal[".", ","] | None = option("Decimal mark of text.")
    thousands: Literal[".", ",", "'", "space", "none"] | None = option("Mark between thousands.")
    delimiter: str | None = option("Character between columns of text.")
    header: bool | None = option("Whether the first row contains names.", "--header/--no-header")
    encoding: str | None = option("Encoding of text: cp1252, ...", metavar="NAME")
    array: str | None = option(
        "Array of an NPZ file, sheet, table of a database, or file in a zip.", metavar="NAME"
    )
    database: str | None = option(
        "SQLite or DuckDB, of which DATA is then a query in SQL.", metavar="FILE"
    )

    def __post_init__(self) -> None:
        if self.mark is not None and len(self.mark) != 1:
            raise Failure(f"--delimiter must be one character, not {self.delimiter!r}")
        if self.decimal is not None and self.decimal == self.thousands:
            raise Failure(f"--thousands {self.thousands} is the decimal mark: pass another")

    @property
    def first(self) -> str:
        """The first path, which stands for all in the JSON output."""
        return self.paths[0]

    @property
    def name(self) -> str:
        """The data, as messages call it."""
        if len(self.paths) > 1:
            return f"{self.first} and {len(self.paths) - 1} more"
        return "standard input" if self.first == "-" else self.first

    @property
    def mark(self) -> str | None:
        """The delimiter."""
        return {"tab": "\t", "\\t": "\t"}.get(self.delimiter or "", self.delimiter)

    @property
    def marks(self) -> dict[str, Any]:
        """The marks in numbers; that between thousands is empty for none."""
        thousands = {"space": " ", "none": ""}.get(self.thousands or "", self.thousands)
        return {"decimal": self.decimal, "thousands": thousands}

    @property
    def is_missing_open(self) -> bool:
        """Whether the data decide what to do with missing values."""
        return self.missing in (None, "auto")

    @property
    def asked_columns(self) -> list[str] | None:
        """The columns that were asked for."""
        return None if self.columns is None else split_names(self.columns)

    @property
    def codes(self) -> list[str] | None:
        """The values that were given as codes for missing ones; None if none were."""
        return None if self.missing_values is None else split_names(self.missing_values)

    @property
    def skipped(self) -> list[int]:
        """The rows to leave out, from 1."""
        what = "--skip-rows must be numbers from 1 and ranges such as 5-9"
        texts = [] if self.skip_rows is None else self.skip_rows.split(",")
        return [row for text in texts for row in numbers_in(text, what)]

    @property
    def kinds(self) -> dict[str, str]:
        """The kinds of columns that were given, such as those of plan=category,visits=count."""
        pairs = {}
        for text in [name for each in self.as_ or () for name in split_names(each)]:
            column, has_kind, kind = text.rpartition("=")
            if not has_kind:
                raise Failure(
                    f"--as must be columns and their kinds, such as plan=category, not {text!r}"
                )
            pairs[column.strip()] = kind.strip()
        return pairs

    @property
    def orders(self) -> list[list[str]]:
        """The words that were given with an order, from the lowest on."""
        return [[word.strip() for word in each.split("<")] for each in self.order or ()]

    @property
    def form(self) -> dict[str, Any]:
        """How the file is written, as `read_frame` takes it."""
        given = {name: getattr(self, name) for name in ("header", "encoding", "array")}
        return {"delimiter": self.mark, **given}


def split_names(names: str) -> list[str]:
    """Split names at commas and line ends; quotes join a name with commas."""
    lines = names.splitlines(keepends=True)
    try:
        rows = list(csv.reader(lines, skipinitialspace=True))
    except csv.Error as error:
        raise Failure(f"{names!r} is not a list of names: {error}") from None
    found = [name.strip() for row in rows for name in row if name.strip()]
    if not found:
        raise Failure(f"{names!r} names nothing: leave it out")
    return found


def numbers_in(text: str, what: str) -> range:
    """Return the numbers of a text such as 7 or 5-9; an error begins with what it must be."""
    first, is_range, last = text.strip().partition("-")
    ends = first, last if is_range else first
    if not all(map(str.isdecimal, ends)) or not 1 <= int(ends[0]) <= int(ends[1]):
        raise Failure(f"{what}, not {text!r}")
    return range(int(ends[0]), int(ends[1]) + 1)


def known(asked: Sequence[str], names: Sequence[str], option: str) -> list[str]:
    """Return the names that were asked for; refuse those that an option does not know."""
    for name in asked:
        if name not in names:
            hint = nearest(name, names) or f": there are {', '.join(names)}"
            raise Failure(f"{option} {name!r} is not known{hint}")
    return list(asked)
