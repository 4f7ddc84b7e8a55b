"""Check and write the files of results; each is written whole or not at all."""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import itertools
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from powermeans.app.command import failures
from powermeans.app.command.data_files import DataFiles, FitData
from powermeans.scale.parted_data import is_read_with
from powermeans.scale.tables.reading import opened_text
from powermeans.scale.tables.table import distinct
from powermeans.system.atomic_write import atomic_write
from powermeans.system.label_files import write_npy

# What is written of some rows, by the name of the column.
RowColumns = dict[str, NDArray[Any]]

_AT_ONCE = 2**16


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
    _check_kind(rows, (".csv", ".tsv", ".txt"), "rows are written as .csv")
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
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError:
        raise failures.needing("PyArrow", f"writing {suffix}") from None

    def table_of(columns: RowColumns) -> Any:
        is_there = {n: v >= 0 if v.dtype.kind in "iu" else v == v for n, v in columns.items()}
        return pa.table({n: pa.array(v, mask=~is_there[n]) for n, v in columns.items()})

    tables = map(table_of, pieces)
    first = next(tables)
    writer: Any
    if suffix == ".parquet":
        writer = parquet.ParquetWriter(file, first.schema)
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


def write_rows(path: str, files: DataFiles, data: FitData, columns: RowColumns) -> None:
    """Write the rows as the file has them, with these columns after the last.

    Cells of text are copied letter by letter; of other files come the numbers that were read.
    """
    every = with_rows_left_out(columns, data.is_kept)
    cells = zip(*map(_cells, every.values()), strict=True)
    csv.field_size_limit(2**31 - 1)
    with (
        failures.refusing(),
        failures.writing(path),
        opened_text(files.first, **files.reading) as source,
        atomic_write(path) as file,
    ):
        encoding = "utf8" if source is None else source.encoding
        text = io.TextIOWrapper(file, encoding, errors="surrogateescape", newline="")
        rows = _rows_read(data) if source is None else source.rows()
        mark = "," if source is None else source.layout.delimiter
        has_header = source is None or source.has_header
        writer = csv.writer(text, delimiter=mark, lineterminator="\n")
        n_units = 0 if source is None else source.layout.n_units
        if has_header:
            names = next(rows)
            added = distinct([*names, *columns])[len(names) :]
            writer.writerow([*names, *added])
        for _ in range(n_units):
            writer.writerow([*next(rows), *[""] * len(columns)])
        writer.writerows([*row, *found] for row, found in zip(rows, cells, strict=True))
        text.detach()


def _rows_read(data: FitData) -> Iterator[list[str]]:
    yield data.names
    points = data.points if data.scaler is None else data.scaler.inverse_transform(data.points)
    is_kept = np.ones(len(points), dtype=bool) if data.is_kept is None else data.is_kept
    kept = iter(points)
    for is_there in is_kept:
        yield [f"{value:.15g}" for value in next(kept)] if is_there else [""] * len(data.names)


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
