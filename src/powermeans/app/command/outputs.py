"""Check and write the files of results; each is written whole or not at all."""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import itertools
import json
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from powermeans.app.command import failures
from powermeans.app.command.data_files import FitData
from powermeans.app.reading import sheets
from powermeans.app.reading.frames import Frame
from powermeans.scale.parted_data import is_read_with
from powermeans.scale.tables.table import distinct
from powermeans.system.arrow import pyarrow_part
from powermeans.system.atomic_write import atomic_write
from powermeans.system.label_files import write_npy

# What is written of some rows, by the name of the column.
RowColumns = dict[str, NDArray[Any]]

_AT_ONCE = 2**16
SUFFIXES_OF_ROWS = (".csv", ".tsv", ".txt", ".xlsx", ".jsonl", ".parquet", ".feather")


def check_outputs(
    *paths: str | None,
    reads: Iterable[str] = (),
    labels: str | None = None,
    page: str | None = None,
    rows: str | None = None,
    picture: str | None = None,
) -> None:
    """Refuse, before anything is computed, outputs that cannot be written or that are inputs."""
    files = [path for path in (*paths, page, rows, picture) if path is not None]
    if "-" in files:
        raise failures.Failure("- is the standard output, which takes only labels: name a file")
    files += [labels] if labels is not None and labels != "-" else []
    for place, path in enumerate(files):
        _check_place(path)
        _refuse_read(path, reads)
        _refuse_same(path, files[:place], "would be written twice: name two files")
    _check_kind(rows, SUFFIXES_OF_ROWS, f"rows are written as {', '.join(SUFFIXES_OF_ROWS)}")
    _check_kind(page, ("", ".html", ".htm"), "the report is a page of HTML: .html")
    _check_kind(picture, (".png", ".svg", ".pdf"), "pictures are .png, .svg, .pdf")
    if labels != "-":
        _check_kind(
            labels, _WRITERS_OF_LABELS, f"labels are written as {', '.join(_WRITERS_OF_LABELS)}"
        )


def _check_kind(path: str | None, kinds: Collection[str], problem: str) -> None:
    if path is not None and Path(path).suffix.lower() not in kinds:
        raise failures.Failure(f"{path}: {problem}")


def _refuse_read(path: str, reads: Iterable[str]) -> None:
    _refuse_same(path, reads, "is read and would be overwritten: name another file to write")
    for folder in reads:
        if os.path.isdir(folder) and is_read_with(path, folder):
            raise failures.Failure(
                f"{path} is in the folder {folder}, and the next command would read it as data: "
                "name a file elsewhere"
            )


def _refuse_same(path: str, others: Iterable[str], problem: str) -> None:
    is_device = os.path.exists(path) and not os.path.isfile(path)
    if not is_device and any(_are_same(path, other) for other in others):
        raise failures.Failure(f"{path} {problem}")


def _are_same(path: str, other: str) -> bool:
    if os.path.exists(path) and os.path.exists(other):
        return os.path.samefile(path, other)
    return os.path.realpath(path) == os.path.realpath(other)


def _check_place(path: str) -> None:
    place = Path(path)
    if place.is_dir():
        raise failures.Failure(f"{path} is a directory: name a file in it", failures.OUTPUT)
    if not place.parent.is_dir():
        raise failures.Failure(
            f"{path} cannot be written: there is no folder {place.parent}", failures.OUTPUT
        )
    may_be_written = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
    if place.is_file() and not place.stat().st_mode & may_be_written:
        raise failures.Failure(
            f"{path} is protected from writing: name another file, or allow it with chmod u+w",
            failures.OUTPUT,
        )
    if not place.exists() or place.is_file():
        with failures.writing(path), tempfile.TemporaryFile(dir=place.parent):
            pass


def write_labels(path: str, pieces: Iterable[RowColumns]) -> None:
    """Write columns of rows as they come; a file is there once all of them are written."""
    if path == "-":
        _print_labels(pieces)
        return
    write = _WRITERS_OF_LABELS[Path(path).suffix.lower()]
    with failures.writing(path), atomic_write(path) as file:
        write(file, pieces)


def _print_labels(pieces: Iterable[RowColumns]) -> None:
    for text in _as_text(pieces, ","):
        for start in range(0, len(text), _AT_ONCE):  # a closed pipe ends this soon
            sys.stdout.buffer.write(text[start : start + _AT_ONCE])
            sys.stdout.buffer.flush()


def with_rows_left_out(columns: RowColumns, is_kept: NDArray[np.bool_] | None) -> RowColumns:
    """Return columns of all rows of the file: -1 or NaN for rows that were left out."""
    if is_kept is None:
        return columns
    found: RowColumns = {}
    for name, values in columns.items():
        nothing = -1 if values.dtype.kind in "iu" else np.nan
        found[name] = np.full(len(is_kept), nothing, dtype=values.dtype)
        found[name][is_kept] = values
    return found


def _as_text(pieces: Iterable[RowColumns], mark: str) -> Iterator[bytes]:
    lines = _lines_up_to(0)
    for number, columns in enumerate(pieces):
        if number == 0:
            yield f"{mark.join(columns)}\n".encode()
        if len(columns) > 1:
            cells = zip(*map(_cells, columns.values()), strict=True)
            yield "".join(f"{mark.join(row)}\n" for row in cells).encode()
            continue
        # A table of lines takes a tenth of the time of formatting each label.
        (labels,) = columns.values()
        for start in range(0, len(labels), _AT_ONCE):
            some = labels[start : start + _AT_ONCE]
            if (largest := int(some.max())) > len(lines) - 2:
                lines = _lines_up_to(2 * largest)
            # NumPy pads each line with zeros to the length of the longest.
            yield lines[some].tobytes().replace(b"\0", b"")


def _cells(values: NDArray[Any]) -> Iterator[str]:
    """Return the text of each value, and none for a row without one."""
    if values.dtype.kind in "iu":
        return ("" if value < 0 else str(value) for value in values.tolist())
    return ("" if value != value else f"{value:.15g}" for value in values.tolist())


def _lines_up_to(label: int) -> NDArray[np.bytes_]:
    """Return a line for each label, and last, at index -1, the empty line of a row without one."""
    return np.array([*(b"%d\n" % number for number in range(label + 1)), b"\n"])


def _write_text(mark: str, file: IO[bytes], pieces: Iterable[RowColumns]) -> None:
    file.writelines(_as_text(pieces, mark))


def _write_clusters(file: IO[bytes], pieces: Iterable[RowColumns]) -> None:
    """Write only the clusters, which an array of NumPy has room for."""
    write_npy(file, (columns["cluster"] for columns in pieces))


def _write_columns(suffix: str, file: IO[bytes], pieces: Iterable[RowColumns]) -> None:
    def table_of(columns: RowColumns) -> Any:
        return pa_table([_arrow_of(values) for values in columns.values()], list(columns))

    _write_tables(suffix, file, map(table_of, pieces))


def _write_tables(suffix: str, file: IO[bytes], tables: Iterable[Any]) -> None:
    """Write tables of one schema, one after the other."""
    pa, tables = pyarrow_part(), iter(tables)
    first = next(tables)
    writer: Any
    if suffix == ".parquet":
        writer = pyarrow_part("parquet").ParquetWriter(file, first.schema)
    else:
        compressed = pa.ipc.IpcWriteOptions(compression="lz4")
        writer = pa.ipc.new_file(file, first.schema, options=compressed)
    with writer:
        for table in itertools.chain([first], tables):
            writer.write_table(table)


# A new format is one line here; `--help` and errors name the suffixes.
_WRITERS_OF_LABELS: dict[str, Callable[[IO[bytes], Iterable[RowColumns]], None]] = {
    ".csv": functools.partial(_write_text, ","),
    ".tsv": functools.partial(_write_text, "\t"),
    ".txt": functools.partial(_write_text, ","),
    ".npy": _write_clusters,
    ".parquet": functools.partial(_write_columns, ".parquet"),
    ".feather": functools.partial(_write_columns, ".feather"),
}


def write_rows(path: str, data: FitData, columns: RowColumns) -> None:
    """Write all columns of the file and these after the last, in the format that `path` names.

    Texts are written as they were; of arrays come the numbers that were read.
    """
    every = with_rows_left_out(columns, data.is_kept)
    frame = data.frame or _frame_of_numbers(data)
    names = list(frame.table.column_names)
    added = distinct([*names, *every])[len(names) :]
    arrays = [_arrow_of(values) for values in every.values()]
    table = pa_table([*frame.table.columns, *arrays], [*names, *added])
    suffix = Path(path).suffix.lower()
    with failures.refusing(), failures.writing(path), atomic_write(path) as file:
        if suffix in (".parquet", ".feather", ".xlsx", ".jsonl"):
            table = pa_table([*map(_typed, table.columns)], table.column_names)
        if suffix in (".parquet", ".feather"):
            _write_tables(suffix, file, [table])
        elif suffix == ".xlsx":
            sheets.write(
                file, table.column_names, [_values_of(column) for column in table.columns], path
            )
        elif suffix == ".jsonl":
            file.writelines(_as_json(table))
        else:
            mark = {".tsv": "\t"}.get(suffix, frame.delimiter if suffix != ".csv" else "")
            is_same = frame.kind == ".csv" and suffix in (".csv", ".txt")
            _write_cells(file, table, mark or (frame.delimiter if is_same else ","), frame)


def _frame_of_numbers(data: FitData) -> Frame:
    """Return the numbers of an array as a frame, all its rows."""
    points = data.points if data.scaler is None else data.scaler.inverse_transform(data.points)
    n_rows = len(points) if data.is_kept is None else len(data.is_kept)
    every = np.full((n_rows, points.shape[1]), np.nan)
    every[slice(None) if data.is_kept is None else data.is_kept] = points
    columns = [_arrow_of(column) for column in every.T]
    return Frame(pa_table(columns, data.names), ".npy")


def pa_table(columns: Sequence[Any], names: Sequence[str]) -> Any:
    """Return a table of Arrow."""
    return pyarrow_part().table(list(columns), names=list(names))


def _arrow_of(values: NDArray[Any]) -> Any:
    is_there = values >= 0 if values.dtype.kind in "iu" else values == values
    return pyarrow_part().array(values, mask=~is_there)


def _typed(column: Any) -> Any:
    """Return a column of texts as numbers where all are plain ones, and null for empty cells."""
    pa, pc = pyarrow_part(), pyarrow_part("compute")
    if column.type != pa.string():
        return column
    there = pc.if_else(pc.equal(column, ""), None, column)
    is_plain = pc.match_substring_regex(there, r"^-?(0|[1-9][0-9]{0,14})([.][0-9]+)?$")
    if not pc.all(is_plain).as_py() or there.null_count == len(there):
        return column
    is_whole = not pc.any(pc.match_substring(there, ".")).as_py()
    return there.cast(pa.int64() if is_whole else pa.float64())


def _as_json(table: Any) -> Iterator[bytes]:
    names = table.column_names
    for batch in table.to_batches(max_chunksize=_AT_ONCE):
        for row in zip(*map(_values_of, batch.columns), strict=True):
            there = {n: value for n, value in zip(names, row, strict=True) if value is not None}
            yield f"{json.dumps(there, ensure_ascii=False, default=str)}\n".encode()


def _values_of(column: Any) -> list[Any]:
    """Return the values of a column, texts for dates that Python does not know."""
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        values = column.cast(pyarrow_part().string()).to_pylist()
    return values


def _write_cells(file: IO[bytes], table: Any, mark: str, frame: Frame) -> None:
    encoding = {"utf8": "utf-8"}.get(frame.encoding, frame.encoding)
    text = io.TextIOWrapper(file, encoding, errors="surrogateescape", newline="")
    writer = csv.writer(text, delimiter=mark, lineterminator="\n")
    writer.writerow(table.column_names)
    text.flush()
    if encoding != "utf-8" or not _are_written_bare(file, table, mark):
        for batch in table.to_batches(max_chunksize=_AT_ONCE):
            writer.writerows(zip(*map(_texts_of, batch.columns), strict=True))
    text.detach()


def _are_written_bare(file: IO[bytes], table: Any, mark: str) -> bool:
    """Write cells by Arrow, ten times as fast, unless one of them needs quotes."""
    start, csv_of = file.tell(), pyarrow_part("csv")
    form = {"include_header": False, "delimiter": mark, "quoting_style": "none"}
    try:
        csv_of.write_csv(table, file, csv_of.WriteOptions(**form))
    except pyarrow_part().ArrowInvalid:
        file.seek(start)
        file.truncate()
        return False
    return True


def _texts_of(column: Any) -> list[str]:
    values = _values_of(column)
    return [
        "" if value is None else f"{value:.15g}" if isinstance(value, float) else str(value)
        for value in values
    ]


@contextlib.contextmanager
def interruptible() -> Iterator[list[str]]:
    """Yield a list for the names of files once written; the message on Ctrl-C names them."""
    written: list[str] = []
    try:
        yield written
    except KeyboardInterrupt:
        if not listed(*written):
            raise
        raise failures.Failure(
            f"interrupted: {listed(*written)} is written, and nothing else", failures.INTERRUPTED
        ) from None


def write_text(path: str, text: str) -> None:
    """Write a file of text."""
    with failures.writing(path), atomic_write(path) as file:
        file.write(text.encode())


def listed(*paths: str | os.PathLike[str] | None) -> str:
    """Return the names of the files that were written."""
    return ", ".join(os.fspath(path) for path in paths if path is not None and path != "-")
