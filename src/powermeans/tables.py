"""Tables of numbers from files: CSV, TSV, Parquet, Feather and Arrow, NPY and NPZ.

What is in a file decides how it is read, not its name. Of what cannot be read the error says where
it is and what to do, in one line.
"""

from __future__ import annotations

import contextlib
import csv
import difflib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from powermeans.types import FloatArray, Points

Missing = Literal["error", "drop", "observed"]

_SAMPLE_BYTES = 2**18
_SAMPLE_ROWS = 200
_DELIMITERS = ("\t", ";", "|", ",", " ")
_NO_VALUE = ("", "NA", "N/A", "NaN", "nan", "NAN", "null", "NULL", "None", "none", "?", "-", "n/a")
_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")
_WHOLE_NUMBER = re.compile(r"[-+]?\d+")
# Larger whole numbers are not all to be told apart in float64.
_LARGEST_WHOLE = 2.0**53
_BLOCK_ROWS = 2**16
_BLOCK_BYTES = 2**20
_COUNTED_AT_ONCE = 2**20


class TableError(ValueError):
    """A file is no table of numbers, or not the one that was asked for."""


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


def read_table(
    source: str | os.PathLike[str],
    *,
    columns: Sequence[str] | Callable[[Sequence[str]], Sequence[str] | None] | None = None,
    weights: str | None = None,
    missing: Missing = "error",
    delimiter: str | None = None,
    header: bool | None = None,
    array: str | None = None,
) -> Table:
    r"""Read a table of numbers.

    Memory is at most about three times that of the array: text is read in blocks, and only the
    columns that are wanted.

    Parameters
    ----------
    source : str or path
        A file; ``-`` is standard input.
    columns : sequence of str or callable, optional
        The columns to read, by name or by number from one. None is all of them but `weights`.
        A function chooses from the names there are.
    weights : str, optional
        A column that holds weights of the rows.
    missing : {"error", "drop", "observed"}, default="error"
        Of a row in which a value is missing: that is an error, the row is left out, or the value
        stays and is NaN.
    delimiter : str, optional
        What stands between the columns of text; None finds out.
    header : bool, optional
        Whether the first row of text has the names; None finds out.
    array : str, optional
        Which array of an NPZ file to read; not needed where there is one.

    Returns
    -------
    Table

    Raises
    ------
    TableError
        In one line: which file, where in it, and what to do.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from powermeans.tables import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "people.csv")
    ...     _ = file.write_text("name;height;weight\nAnn;1,70;60\nBob;1,82;75\n")
    ...     table = read_table(file, columns=["height", "weight"])
    >>> table.points
    array([[ 1.7 , 60.  ],
           [ 1.82, 75.  ]])
    """
    with _as_file(source) as (path, name):
        reader = _open(path, name, delimiter=delimiter, header=header, array=array)
        chosen = columns(reader.names) if callable(columns) else columns
        wanted = _wanted(reader, chosen, weights)
        points = reader.read(wanted)
    _check_whole_numbers(reader, wanted, points)
    table = Table(points, tuple(reader.names[column] for column in wanted))
    if weights is not None:
        table = _with_last_as_weights(table, name)
    return _without_missing(table, missing, name)


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


class _Reader(Protocol):
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

    def read(self, wanted: Sequence[int]) -> Points:
        """The columns of these numbers, in this order."""
        ...


# Which file, and which columns of it.


@contextlib.contextmanager
def _as_file(source: str | os.PathLike[str]) -> Iterator[tuple[Path, str]]:
    """A file that can be read more than once, and its name in errors."""
    if os.fspath(source) != "-":
        yield _existing(Path(source)), os.fspath(source)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "input"
        with open(path, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield path, "standard input"


def _existing(path: Path) -> Path:
    if path.is_dir():
        raise TableError(f"{path} is a directory: name a file in it")
    if not path.exists():
        others = [other.name for other in path.parent.glob("*")] if path.parent.is_dir() else []
        raise TableError(f"{path} does not exist{nearest(path.name, others)}")
    return path


def _open(
    path: Path, name: str, *, delimiter: str | None, header: bool | None, array: str | None
) -> _Reader:
    try:
        with open(path, "rb") as file:
            start = file.read(_SAMPLE_BYTES)
    except OSError as error:
        raise TableError(f"{name} cannot be read: {error.strerror}") from None
    if not start.strip():
        raise TableError(f"{name} is empty")
    if start.startswith(b"\x93NUMPY"):
        return _Arrays(name, path, _array_of_npy(path, name))
    if start.startswith(b"PK"):
        return _Arrays(name, path, _array_of_npz(path, name, array))
    if start.startswith(b"PAR1"):
        return _Batches.of_parquet(path, name)
    if start.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return _Batches.of_arrow(path, name, is_stream=start.startswith(b"\xff"))
    return _Text.of(path, name, start, delimiter, header)


def _wanted(reader: _Reader, columns: Sequence[str] | None, weights: str | None) -> list[int]:
    """The numbers of the columns to read, that of the weights last."""
    last = [] if weights is None else [_number_of(weights, reader)]
    if columns is not None:
        wanted = [_number_of(column, reader) for column in columns]
    else:
        wanted = [number for number in range(len(reader.names)) if number not in last]
    if not wanted:
        raise TableError(f"{reader.name} has no columns but that of the weights")
    for number in wanted + last:
        if number in reader.texts:
            _refuse_text(reader, number, last)
    return wanted + last


def _number_of(column: str, reader: _Reader) -> int:
    if column in reader.names:
        return list(reader.names).index(column)
    if column.isdigit() and 1 <= int(column) <= len(reader.names):
        return int(column) - 1
    suggestion = nearest(column, reader.names)
    known = f": there are {_listed(reader.names)}"
    raise TableError(f'{reader.name} has no column "{column}"{suggestion or known}')


def _refuse_text(reader: _Reader, number: int, others: Sequence[int]) -> NoReturn:
    numeric = [
        name
        for column, name in enumerate(reader.names)
        if column not in reader.texts and column not in others
    ]
    way_out = f": leave it out with --columns {','.join(numeric)}" if numeric else ""
    raise TableError(
        f'{reader.name}: column "{reader.names[number]}" is no number but '
        f"{reader.texts[number]}{_shortened(way_out, 300)}"
    )


def _listed(names: Sequence[str]) -> str:
    return _shortened(", ".join(f'"{name}"' for name in names), 200)


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}..."


# What is read, once it is an array.


def _check_whole_numbers(reader: _Reader, wanted: Sequence[int], points: Points) -> None:
    """A whole number that float64 does not hold to its last digit is rather a name."""
    for place, number in enumerate(wanted):
        if number in reader.whole:
            is_huge = np.abs(points[:, place]) >= _LARGEST_WHOLE
            if is_huge.any():
                raise TableError(
                    f'{reader.name}: column "{reader.names[number]}" has in row '
                    f"{int(np.argmax(is_huge)) + 1} a whole number of more than 15 digits, which "
                    "looks like a name: leave the column out with --columns, or write 1.0e17 for "
                    "a number"
                )


def _with_last_as_weights(table: Table, name: str) -> Table:
    weights = np.array(table.points[:, -1], dtype=np.float64)
    is_bad = ~(np.isfinite(weights) & (weights >= 0))
    if is_bad.any():
        row = int(np.argmax(is_bad))
        raise TableError(
            f'{name}: column "{table.names[-1]}" has {weights[row]:g} in row {row + 1}, which is '
            "no weight: weights are finite and not negative"
        )
    points: Any = np.ascontiguousarray(table.points[:, :-1])
    return Table(points, table.names[:-1], weights)


def _without_missing(table: Table, missing: Missing, name: str) -> Table:
    is_kept = np.ones(len(table.points), dtype=bool)
    for start in range(0, len(table.points), _BLOCK_ROWS):
        block = table.points[start : start + _BLOCK_ROWS]
        _refuse_infinite(block, start, table, name)
        is_kept[start : start + _BLOCK_ROWS] = ~np.isnan(block).any(axis=1)
    if missing == "observed" or is_kept.all():
        return table
    if missing == "drop" and is_kept.any():
        weights = None if table.weights is None else table.weights[is_kept]
        return replace(table, points=table.points[is_kept], weights=weights, is_kept=is_kept)
    row = int(np.argmin(is_kept))
    column = int(np.argmax(np.isnan(table.points[row])))
    n_rows = int(np.count_nonzero(~is_kept))
    raise TableError(
        f'{name}: column "{table.names[column]}" has no value in row {row + 1} ({n_rows} of '
        f"{len(is_kept)} rows lack some): --missing drop leaves such rows out, --missing observed "
        "goes by the values that are there"
    )


def _refuse_infinite(block: Points, start: int, table: Table, name: str) -> None:
    is_infinite = np.isinf(block)
    if is_infinite.any():
        row, column = np.argwhere(is_infinite)[0]
        raise TableError(
            f'{name}: column "{table.names[column]}" has {block[row, column]:g} in row '
            f"{start + row + 1}: correct it, or leave the row or the column out"
        )


# Text.


@dataclass(frozen=True)
class _Text:
    """CSV, TSV and their kin."""

    name: str
    path: Path
    names: Sequence[str]
    texts: dict[int, str]
    whole: frozenset[int]
    delimiter: str
    n_skipped: int
    has_decimal_comma: bool
    encoding: str

    @classmethod
    def of(
        cls, path: Path, name: str, start: bytes, delimiter: str | None, header: bool | None
    ) -> _Text:
        """Find out what a file of text has, from its start."""
        lines, encoding = _sample_lines(start, name)
        mark = delimiter or _sniffed(lines)
        rows, n_lines_of_first = _cells(lines, mark)
        has_header = _has_header(rows) if header is None else header
        body = rows[1:] if has_header else rows
        if not body:
            raise TableError(f"{name} has a header and no rows")
        n_columns = len(rows[0])
        names = _distinct(rows[0] if has_header else [""] * n_columns)
        columns = [[row[j].strip() for row in body if len(row) > j] for j in range(n_columns)]
        comma = mark != "," and any(_DECIMAL_COMMA.fullmatch(c) for cells in columns for c in cells)
        point = "," if comma else "."
        return cls(
            name,
            path,
            names,
            {j: text for j, cells in enumerate(columns) if (text := _text_in(cells, point))},
            frozenset(j for j, cells in enumerate(columns) if _are_whole(cells)),
            mark,
            n_lines_of_first if has_header else 0,
            comma,
            encoding,
        )

    def read(self, wanted: Sequence[int]) -> Points:
        try:
            # Cells of several lines are rare, and looking for them takes longer.
            with contextlib.suppress(_pyarrow().ArrowInvalid):
                return self._filled(wanted, has_long_cells=False)
            return self._filled(wanted, has_long_cells=True)
        except _pyarrow().ArrowInvalid as error:
            raise TableError(self._explained(str(error))) from None

    def _filled(self, wanted: Sequence[int], *, has_long_cells: bool) -> FloatArray:
        """Block after block; rows that are not written to take no memory."""
        options = self._options(wanted, _pyarrow().float64(), has_long_cells=has_long_cells)
        points, end = np.empty((self._most_rows(), len(wanted))), 0
        with _pyarrow("csv").open_csv(self.path, **options) as batches:
            for batch in batches:
                start, end = end, end + batch.num_rows
                for place in range(len(wanted)):
                    _fill(points[start:end, place], [batch.column(place)])
        if not end:
            raise TableError(f"{self.name} has a header and no rows")
        return points[:end]

    def _most_rows(self) -> int:
        """As many rows as there are lines, or fewer."""
        n_feeds = n_returns = 0
        with open(self.path, "rb") as file:
            while block := file.read(_COUNTED_AT_ONCE):
                n_feeds, n_returns = n_feeds + block.count(b"\n"), n_returns + block.count(b"\r")
        return max(n_feeds, n_returns) + 1

    def _column(self, number: int, *, in_order: bool = False) -> Any:
        """One column as text, read in order so that a fault is found at its row."""
        options = self._options([number], _pyarrow().string(), in_order=in_order)
        return _pyarrow("csv").read_csv(self.path, **options).column(0)

    def _options(
        self,
        wanted: Sequence[int],
        kind: Any,
        *,
        has_long_cells: bool = False,
        in_order: bool = False,
    ) -> dict[str, Any]:
        csv_of = _pyarrow("csv")
        keys = [str(number) for number in range(len(self.names))]
        asked = [keys[number] for number in wanted]
        return {
            "read_options": csv_of.ReadOptions(
                column_names=keys,
                skip_rows=self.n_skipped,
                encoding=self.encoding,
                use_threads=not in_order,
                block_size=_BLOCK_BYTES,
            ),
            "parse_options": csv_of.ParseOptions(
                delimiter=self.delimiter, newlines_in_values=has_long_cells
            ),
            "convert_options": csv_of.ConvertOptions(
                column_types=dict.fromkeys(asked, kind),
                include_columns=asked,
                null_values=_NO_VALUE,
                decimal_point="," if self.has_decimal_comma else ".",
                check_utf8=False,
            ),
        }

    def _explained(self, problem: str) -> str:
        """Where in the file a problem is, which a second reading finds."""
        if found := re.search(r"column #(\d+).*invalid value '(.*)'", problem, re.DOTALL):
            number, value = int(found[1]), found[2]
            row = self._column(number).index(_pyarrow().scalar(value)).as_py() + 1
            return (
                f'{self.name}: column "{self.names[number]}" has {value[:40]!r} in row {row}, '
                "which is no number: correct it, or leave the column out with --columns"
            )
        try:
            self._column(0, in_order=True)
        except ValueError as error:
            problem = str(error)
        if found := re.search(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)", problem):
            row = int(found[1]) if found[1] else 0
            where = f"row {row - bool(self.n_skipped)}" if row else "a row"
            return (
                f"{self.name}: {where} has {found[3]} cells where {found[2]} are expected: "
                "correct it, or name the right --delimiter"
            )
        return f"{self.name} cannot be read: {problem.splitlines()[0][:200]}"


def _sample_lines(start: bytes, name: str) -> tuple[list[str], str]:
    """The first lines, whole ones, and how they are encoded."""
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise TableError(f"{name} is in UTF-16: save it as UTF-8")
    if b"\0" in start:
        raise TableError(
            f"{name} is of no kind that can be read: pass CSV, TSV, Parquet, Feather, Arrow, NPY "
            "or NPZ"
        )
    if len(start) == _SAMPLE_BYTES:
        start = start[: start.rfind(b"\n") + 1] or start
    try:
        text, encoding = start.decode("utf-8-sig"), "utf8"
    except UnicodeDecodeError:
        text, encoding = start.decode("latin-1"), "latin-1"
    return text.splitlines(keepends=True), encoding


def _sniffed(lines: Sequence[str]) -> str:
    """The mark that cuts the first lines into the same number of columns, the most of them."""
    best, most = ",", 1
    for mark in _DELIMITERS:
        rows, _ = _cells(lines[:50], mark)
        widths = [len(row) for row in rows]
        usual = max(set(widths), key=widths.count)
        is_regular = widths.count(usual) >= 0.8 * len(widths) and widths[0] == usual
        if is_regular and usual > most and not (mark == "," and most > 1):
            best, most = mark, usual
    return best


def _cells(lines: Sequence[str], delimiter: str) -> tuple[list[list[str]], int]:
    """Rows of cells, and how many lines there are up to the end of the first."""
    rows, n_lines_of_first = [], 0
    reader = csv.reader(lines, delimiter=delimiter)
    try:
        for row in reader:
            n_lines_of_first = n_lines_of_first or (reader.line_num if row else 0)
            if row:
                rows.append(row)
            if len(rows) > _SAMPLE_ROWS:
                break
    except csv.Error as error:
        raise TableError(f"line {reader.line_num} is no text of columns: {error}") from None
    return rows, n_lines_of_first


def _has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether there are names where numbers are below; a row of names alone counts."""
    are_names = [_is_text(cell) for cell in rows[0]]
    if len(rows) == 1 or all(are_names) or not any(are_names):
        return any(are_names)
    below = rows[1]
    return any(
        is_name and len(below) > column and not _is_text(below[column])
        for column, is_name in enumerate(are_names)
    )


def _is_text(cell: str, decimal: str = ".") -> bool:
    """Whether a cell is neither a number nor empty."""
    cell = cell.strip()
    if cell in _NO_VALUE:
        return False
    try:
        float(cell.replace(decimal, ".") if "_" not in cell else "text")
    except ValueError:
        return not _DECIMAL_COMMA.fullmatch(cell)
    return False


def _text_in(cells: Sequence[str], decimal: str) -> str | None:
    """The first text in a column that is mostly text, as an error shows it."""
    texts = [cell for cell in cells if _is_text(cell, decimal)]
    n_values = sum(cell not in _NO_VALUE for cell in cells)
    return f"text ({texts[0][:40]!r})" if texts and len(texts) > 0.5 * n_values else None


def _are_whole(cells: Sequence[str]) -> bool:
    values = [cell for cell in cells if cell not in _NO_VALUE]
    return bool(values) and all(_WHOLE_NUMBER.fullmatch(value) for value in values)


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Names of columns: those without one are numbered, and of several the later ones as well."""
    found: list[str] = []
    for number, name in enumerate(names, start=1):
        plain = name.strip() or f"c{number}"
        found.append(plain if plain not in found else f"{plain}.{number}")
    return tuple(found)


# Parquet, Feather and Arrow.


@dataclass(frozen=True)
class _Batches:
    """A file of columns that have types."""

    name: str
    path: Path
    names: Sequence[str]
    texts: dict[int, str]
    whole: frozenset[int]
    keys: Sequence[str]
    n_rows: int
    open_batches: Any

    @classmethod
    def of_parquet(cls, path: Path, name: str) -> _Batches:
        parquet = _pyarrow("parquet")
        with _refusing_damage(name, "Parquet"):
            file = parquet.ParquetFile(path)
        return cls._of(
            path,
            name,
            file.schema_arrow,
            file.metadata.num_rows,
            lambda keys: file.iter_batches(_BLOCK_ROWS, columns=keys),
        )

    @classmethod
    def of_arrow(cls, path: Path, name: str, *, is_stream: bool) -> _Batches:
        ipc = _pyarrow("ipc")
        with _refusing_damage(name, "Feather or Arrow"):
            mapped = _pyarrow().memory_map(os.fspath(path))
            if is_stream:
                table = ipc.open_stream(mapped).read_all()
                batches = table.to_batches()
            else:
                file = ipc.open_file(mapped)
                batches = [file.get_batch(i) for i in range(file.num_record_batches)]
            schema = batches[0].schema if batches else ipc.open_file(mapped).schema
        n_rows = sum(batch.num_rows for batch in batches)
        return cls._of(
            path, name, schema, n_rows, lambda keys: (batch.select(keys) for batch in batches)
        )

    @classmethod
    def _of(cls, path: Path, name: str, schema: Any, n_rows: int, open_batches: Any) -> _Batches:
        if not n_rows:
            raise TableError(f"{name} has columns and no rows")
        texts = {
            number: f"of the type {field.type}"
            for number, field in enumerate(schema)
            if not _is_number_type(field.type)
        }
        whole = frozenset(
            number
            for number, field in enumerate(schema)
            if _pyarrow("types").is_integer(field.type)
        )
        keys = tuple(schema.names)
        return cls(name, path, _distinct(keys), texts, whole, keys, n_rows, open_batches)

    def read(self, wanted: Sequence[int]) -> Points:
        points = np.empty((self.n_rows, len(wanted)))
        start = 0
        with _refusing_damage(self.name, "table"):
            keys = list(dict.fromkeys(self.keys[number] for number in wanted))
            for batch in self.open_batches(keys):
                end = start + batch.num_rows
                for place, number in enumerate(wanted):
                    _fill(points[start:end, place], [batch.column(keys.index(self.keys[number]))])
                start = end
        return points


def _is_number_type(kind: Any) -> bool:
    types = _pyarrow("types")
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
        or types.is_null(kind)
    )


def _fill(column: NDArray[Any], chunks: Iterable[Any]) -> None:
    """Write Arrow's numbers into a column, NaN for those that are missing."""
    start = 0
    for chunk in chunks:
        end = start + len(chunk)
        column[start:end] = chunk.cast(_pyarrow().float64(), safe=False).to_numpy(
            zero_copy_only=False
        )
        start = end


@contextlib.contextmanager
def _refusing_damage(name: str, kind: str) -> Iterator[None]:
    try:
        yield
    except TableError:
        raise
    except (_pyarrow().ArrowException, OSError, ValueError) as error:
        problem = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise TableError(f"{name} is a damaged {kind} file: {problem}") from None


# NumPy's files.


@dataclass(frozen=True)
class _Arrays:
    """An array as NumPy writes it, in one piece or with named fields."""

    name: str
    path: Path
    array: NDArray[Any]

    @property
    def names(self) -> Sequence[str]:
        fields = self.array.dtype.names
        return fields or _distinct([""] * (1 if self.array.ndim == 1 else self.array.shape[1]))

    @property
    def texts(self) -> dict[int, str]:
        dtypes = [dtype for dtype in self._dtypes() if dtype.kind not in "biuf"]
        return {number: f"of dtype {dtype}" for number, dtype in enumerate(dtypes)}

    @property
    def whole(self) -> frozenset[int]:
        dtypes = self._dtypes()
        return frozenset(number for number, dtype in enumerate(dtypes) if dtype.kind in "iu")

    def read(self, wanted: Sequence[int]) -> Points:
        if self.array.dtype.names:
            names = [self.names[number] for number in wanted]
            return np.stack([self.array[name].astype(np.float64) for name in names], axis=1)
        array = self.array.reshape(len(self.array), -1)
        if list(wanted) != list(range(array.shape[1])):
            array = array[:, list(wanted)]
        is_float = array.dtype in (np.float32, np.float64)
        points: Points = np.asarray(array, dtype=array.dtype if is_float else np.float64, order="C")
        return points

    def _dtypes(self) -> list[np.dtype[Any]]:
        dtype = self.array.dtype
        return [dtype[name] for name in self.names] if dtype.names else [dtype] * len(self.names)


def _array_of_npy(path: Path, name: str) -> NDArray[Any]:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise TableError(f"{name} is no array that can be read: {error!s:.200}") from None
    return _checked_array(array, name)


def _array_of_npz(path: Path, name: str, wanted: str | None) -> NDArray[Any]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            key = _key_of(list(arrays.files), wanted, name)
            array = arrays[key]
    except TableError:
        raise
    except Exception as error:
        raise TableError(f"{name} is no archive of arrays: {error!s:.200}") from None
    if not isinstance(array, np.ndarray):
        raise TableError(f"{name} is no archive of arrays")
    return _checked_array(array, f"{name}: {key}")


def _key_of(keys: Sequence[str], wanted: str | None, name: str) -> str:
    if wanted is not None and wanted not in keys:
        suggestion = nearest(wanted, keys) or f": there are {_listed(keys)}"
        raise TableError(f'{name} has no array "{wanted}"{suggestion}')
    if wanted is None and len(keys) != 1:
        raise TableError(
            f"{name} has {len(keys)} arrays: choose with --array one of {_listed(keys)}"
        )
    return wanted or keys[0]


def _checked_array(array: NDArray[Any], name: str) -> NDArray[Any]:
    if array.ndim not in (1, 2) or (array.dtype.names and array.ndim == 2):
        raise TableError(f"{name} has the shape {array.shape}: pass rows and columns")
    if not array.size:
        raise TableError(f"{name} has the shape {array.shape} and is empty")
    return array


def _pyarrow(part: str | None = None) -> Any:
    """PyArrow, or a part of it, when it is needed."""
    import importlib

    try:
        return importlib.import_module("pyarrow" if part is None else f"pyarrow.{part}")
    except ImportError:
        raise TableError(
            'this kind of file is read by PyArrow: pip install "powermeans[cli]"'
        ) from None
