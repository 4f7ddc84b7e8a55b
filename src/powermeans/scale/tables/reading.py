"""Read a table from a file."""

from __future__ import annotations

import contextlib
import importlib
import lzma
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from powermeans.errors import TableError
from powermeans.preparing.number_forms import Dates
from powermeans.scale.tables.checking import (
    check_whole_numbers,
    rows_to_skip,
    wanted_columns,
    warn_of_codes,
    with_declared_missing,
    with_last_as_weights,
    without_missing,
    without_rows,
)
from powermeans.scale.tables.formats import PACKED, format_of, start_of
from powermeans.scale.tables.table import (
    Missing,
    Table,
    is_utf8,
    missing_path,
)
from powermeans.scale.tables.text import Text

# What the modules that unpack files raise of damaged ones.
UNPACKING = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError)


def read_table(
    source: str | os.PathLike[str],
    *,
    columns: Sequence[str | int] | Callable[[Sequence[str]], Sequence[str] | None] | None = None,
    weights: str | None = None,
    missing: Missing = "error",
    delimiter: str | None = None,
    header: bool | None = None,
    array: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    dates: Dates | None = None,
    encoding: str | None = None,
    missing_values: Sequence[str] | None = None,
    skip_rows: Sequence[int] = (),
) -> Table:
    r"""Read a table of numbers from a file, in at most about three times the memory of the table.

    Parameters
    ----------
    source : str or path
        Path of a file; ``-`` is standard input.
    columns : sequence of str or int, or callable, optional
        The columns to read, by name, by number from one, or by ranges of these such as ``"2-4"``
        and ``"age-income"``; or a function that chooses among the names. By default all numbers but
        `weights` and what identifies or counts the rows; a warning says what is left out.
    weights : str, optional
        The column with the weights of the rows.
    missing : {"error", "drop", "observed"}, default="error"
        Raise on a row with a missing value, leave it out, or keep it with NaN if it has any value.
    delimiter, header, decimal, thousands, encoding : optional
        How text is written: the mark between columns, whether the first row has the names, the
        marks before fractions and between thousands, and the encoding of letters. By default the
        text itself decides, and each column as a whole.
    dates : {"days", "day-first", "month-first"}, optional
        Read dates as days since 1970, where one such as 3/4/2024 begins with the day or the month.
        By default they are left out.
    array : str, optional
        The array of an NPZ file to read, if it has several.
    missing_values : sequence of str, optional
        Numbers and words that stand for missing values, such as ``"-999"`` in all columns or
        ``"age=99"`` in one.
    skip_rows : sequence of int, optional
        Rows to leave out, such as one of totals, by number from one.

    Returns
    -------
    Table
        With `points` of shape (n_samples, n_features), `names` of the columns and, if they are
        asked for, `weights`.

    See Also
    --------
    open_data : Opens files that need not fit into memory.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from powermeans import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "people.csv")
    ...     _ = file.write_text("name;height;weight\nAnn;1,70;60\nBob;1,82;75\n")
    ...     table = read_table(file, columns=["height", "weight"])
    >>> table.points
    array([[ 1.7 , 60.  ],
           [ 1.82, 75.  ]])
    """
    with as_file(source) as (path, name):
        reader = format_of(
            path,
            name,
            delimiter=delimiter,
            header=header,
            array=array,
            decimal=decimal,
            thousands=thousands,
            dates=dates,
            encoding=encoding,
            missing_values=missing_values,
        )
        chosen = columns(reader.names) if callable(columns) else columns
        wanted = wanted_columns(reader, chosen, weights)
        points = with_declared_missing(reader.read(wanted), wanted, missing_values, reader)
        if isinstance(reader, Text):
            reader.warn_of_totals(len(points), skip_rows)
    check_whole_numbers(reader, wanted, points)
    names = tuple(reader.names[column] for column in wanted)
    table = Table(points, names, how_read=reader.how_read(wanted), decimal=reader.decimal)
    if skip_rows:
        table = without_rows(table, rows_to_skip(skip_rows, len(points), name))
    warn_of_codes(table, name)
    if weights is not None:
        table = with_last_as_weights(table, name, missing)
    return without_missing(table, missing, name)


@contextlib.contextmanager
def as_file(source: str | os.PathLike[str]) -> Iterator[tuple[Path, str]]:
    """Yield an unpacked file on disk, and its name for errors."""
    with contextlib.ExitStack() as stack:
        if os.fspath(source) == "-":
            name = "standard input"
            path = stack.enter_context(_copied(sys.stdin.buffer))
        else:
            name = os.fspath(source)
            path = path_of_file(Path(source))
            if not path.is_file():  # a pipe can be read only once
                path = stack.enter_context(_copied(stack.enter_context(open(path, "rb"))))
            elif not is_utf8(path):
                path = stack.enter_context(_linked(path))
        if (module := _packed_by(path, name)) is not None:
            path = stack.enter_context(_unpacked(path, module, name))
        yield path, name


@contextlib.contextmanager
def _linked(path: Path) -> Iterator[Path]:
    """Yield a link to a file whose name PyArrow cannot open."""
    with tempfile.TemporaryDirectory() as folder:
        link = Path(folder) / "input"
        link.symlink_to(path.absolute())
        yield link


@contextlib.contextmanager
def _copied(stream: IO[bytes]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "input"
        with open(path, "wb") as file:
            shutil.copyfileobj(stream, file)
        yield path


@contextlib.contextmanager
def _unpacked(path: Path, module: str, name: str) -> Iterator[Path]:
    """Yield an unpacked copy of a packed file."""
    with contextlib.ExitStack() as stack:
        try:
            stream = stack.enter_context(importlib.import_module(module).open(path, "rb"))
            copy = stack.enter_context(_copied(stream))
        except UNPACKING as error:
            raise TableError(f"{name} cannot be unpacked: {error}") from None
        yield copy


def _packed_by(path: Path, name: str) -> str | None:
    """Return the module that unpacks a file; None if it is not packed."""
    try:
        start = start_of(path)
    except OSError as error:
        raise TableError(f"{name} cannot be read: {error.strerror}") from None
    return next((module for mark, module in PACKED.items() if start.startswith(mark)), None)


def path_of_file(path: Path) -> Path:
    """Return the path; raise if there is no file at it."""
    if path.is_dir():
        raise TableError(f"{path} is a directory: name a file in it")
    if not path.exists():
        raise TableError(missing_path(path))
    return path
