"""Check and write the files of results; each is written whole or not at all."""

from __future__ import annotations

import codecs
import contextlib
import io
import itertools
import json
import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from powermeans.scale.parted_data import is_read_with
from powermeans.system.atomic_write import atomic_write
from powermeans.system.label_files import write_npy
from powermeans.types import FloatArray
from powermeans_tables.cells.arrow import csv, pa, parquet, pc
from powermeans_tables.cells.column import values_of
from powermeans_tables.command import failures
from powermeans_tables.command.options import Results
from powermeans_tables.opening import PreparedRows
from powermeans_tables.reading import sheets
from powermeans_tables.reading.table import Table

# What is written of some rows, by the name of the column.
RowColumns = dict[str, NDArray[Any]]

_AT_ONCE = 2**16
_MARKS = {".csv": "", ".txt": "", ".tsv": "\t"}  # empty for that of the file
SUFFIXES_OF_ROWS = (*_MARKS, ".xlsx", ".jsonl", ".parquet", ".feather")
_SUFFIXES_OF_LABELS = (*_MARKS, ".npy", ".jsonl", ".parquet", ".feather")


def check_outputs(results: Results, *paths: str | None, reads: Iterable[str]) -> None:
    """Refuse, before anything is computed, outputs that cannot be written or that are inputs."""
    output, page = None if results.output == "-" else results.output, results.report
    files, reads = [path for path in (*paths, page, output) if path is not None], [*reads]
    if "-" in files:
        raise failures.Failure("- is the standard output, which takes only labels: name a file")
    for place, path in enumerate(files):
        _check_place(path)
        _refuse_same(path, reads, "is read and would be overwritten: name another file to write")
        _refuse_same(path, files[:place], "would be written twice: name two files")
        folders = [each for each in reads if os.path.isdir(each) and is_read_with(path, each)]
        if folders:
            raise failures.Failure(
                f"{path} is in the folder {folders[0]}, and the next command would read it as "
                "data: name a file elsewhere"
            )
    what, kinds = "rows", SUFFIXES_OF_ROWS
    if results.labels_only:
        what, kinds = "labels", _SUFFIXES_OF_LABELS
    if output is not None and Path(output).suffix.lower() not in kinds:
        raise failures.Failure(f"{output}: {what} are written as {', '.join(kinds)}")
    if page is not None and Path(page).suffix.lower() not in ("", ".html", ".htm"):
        raise failures.Failure(f"{page}: the report is a page of HTML: .html")


def _refuse_same(path: str, others: Iterable[str], problem: str) -> None:
    is_device = os.path.exists(path) and not os.path.isfile(path)
    for other in () if is_device else others:
        are_there = os.path.exists(path) and os.path.exists(other)
        are_same = os.path.realpath(path) == os.path.realpath(other)
        if are_same or (are_there and os.path.samefile(path, other)):
            raise failures.Failure(f"{path} {problem}")


def _check_place(path: str) -> None:
    place = Path(path)
    if place.is_dir():
        raise failures.Failure(f"{path} is a directory: name a file in it", failures.OUTPUT)
    may_be_written = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
    if place.is_file() and not place.stat().st_mode & may_be_written:
        raise failures.Failure(
            f"{path} is protected from writing: name another file, or allow it with chmod u+w",
            failures.OUTPUT,
        )
    if not place.exists() or place.is_file():
        with failures.writing(path), tempfile.TemporaryFile(dir=place.parent):
            pass


def write_rows(
    path: str,
    data: PreparedRows,
    pieces: Iterable[RowColumns],
    groups: Callable[[], dict[str, list[Any]]],
    *,
    labels_only: bool = False,
) -> None:
    """Write all columns of the files as they were, then these, which are of rows that are used.

    A workbook gets a sheet of `groups` too, once all rows are counted.
    """
    table, added = data.table, map(table_of, pieces)
    if labels_only:
        labels = added if data.is_used is None else _of_all_rows(added, data)
        _write(path, labels, ",", "utf-8", {}, dict)
        return
    types = {} if Path(path).suffix.lower() in _MARKS else _types_of(table)
    tables = zip(table.batches(), _of_all_rows(added, data), strict=True)
    whole = (_beside(batch, columns, types) for batch, columns in tables)
    _write(path, whole, table.first.delimiter, table.first.encoding, table.units, groups)


def _of_all_rows(added: Iterator[Any], data: PreparedRows) -> Iterator[Any]:
    """Yield what is added to each batch of the files, without values in rows left out."""
    left, start = [next(added)], 0
    for batch in data.table.batches():
        mine = data.rows.is_used[start : start + batch.num_rows]
        n_used, start = int(mine.sum()), start + batch.num_rows
        while sum(each.num_rows for each in left) < n_used:
            left.append(next(added))
        whole, places = pa.concat_tables(left), np.cumsum(mine) - 1
        left = [whole.slice(n_used)]
        yield whole.slice(0, n_used).take(pa.array(places, mask=~mine))


def _beside(batch: Any, added: Any, types: Mapping[str, Any]) -> Any:
    """Return rows beside what is added, under free names; texts become numbers as `types` says."""
    every, columns = list(batch.schema.names), list(batch.columns)
    for place, (name, texts) in enumerate(zip(every, columns, strict=True)):
        if name in types and texts.type == pa.string():
            columns[place] = pc.if_else(pc.equal(texts, ""), None, texts).cast(types[name])
    for name in added.column_names:
        free = (f"{name}.{number}" for number in itertools.count(2))
        every.append(name if name not in every else next(one for one in free if one not in every))
    return pa.table([*columns, *added.columns], names=every)


def table_of(columns: RowColumns, is_used: NDArray[np.bool_] | None = None) -> Any:
    """Return columns of all rows of the file, without values in those that were left out."""
    table = pa.table([*map(_arrow_of, columns.values())], names=list(columns))
    if is_used is None:
        return table
    return table.take(pa.array(np.cumsum(is_used) - 1, mask=~is_used))


def _arrow_of(values: NDArray[Any]) -> Any:
    if values.dtype.kind == "O":
        return pa.array(values, pa.string())
    if values.dtype.kind == "f":
        return pa.array(_to_six_digits(values), mask=np.isnan(values))
    return pa.array(values, mask=values < 0)


def _to_six_digits(values: FloatArray) -> FloatArray:
    """Round numbers to six digits, more than which nobody reads."""
    values = values.astype(np.float64, copy=False)
    places = 5 - np.floor(np.log10(np.maximum(np.abs(values), 1e-300)))
    up, down = 10.0 ** np.maximum(places, 0), 10.0 ** np.maximum(-places, 0)  # both are whole
    return np.asarray(np.rint(values * up / down) / up * down)


def _write(
    path: str,
    tables: Iterable[Any],
    delimiter: str,
    encoding: str,
    units: Mapping[str, str],
    groups: Callable[[], dict[str, list[Any]]],
) -> None:
    """Write tables of one schema, one after the other; a file appears once it is complete."""
    suffix = Path(path).suffix.lower()
    if path == "-":
        _write_text(sys.stdout.buffer, tables, ",", "utf-8")
        return
    with failures.refusing(), failures.writing(path), atomic_write(path) as file:
        if suffix in _MARKS:
            _write_text(file, tables, _MARKS[suffix] or delimiter, encoding)
        elif suffix == ".npy":
            clusters = (pc.fill_null(table["cluster"], -1) for table in tables)
            write_npy(file, (each.to_numpy() for each in clusters))
        elif suffix == ".xlsx":
            whole = pa.concat_tables(tables)
            rows = dict(zip(whole.column_names, map(values_of, whole.columns), strict=True))
            sheets.write(file, {"clusters": rows, "groups": groups()}, path, units)
        elif suffix == ".jsonl":
            file.writelines(itertools.chain.from_iterable(map(_as_json, tables)))
        else:
            _write_typed(suffix, file, iter(tables))


def _write_typed(suffix: str, file: IO[bytes], tables: Iterator[Any]) -> None:
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


def _types_of(table: Table) -> dict[str, Any]:
    """Return the types of numbers for columns of texts that are all plain ones."""
    found, others = dict[str, Any](), set[str]()
    for batch in table.batches():
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if column.type != pa.string() or name in others:
                continue
            there = pc.if_else(pc.equal(column, ""), None, column)
            is_plain = pc.match_substring_regex(there, r"^-?(0|[1-9][0-9]{0,14})([.][0-9]+)?$")
            if pc.all(is_plain).as_py() is False:
                others.add(name)
            elif there.null_count < len(there):
                is_whole = not pc.any(pc.match_substring(there, ".")).as_py()
                kind = pa.int64() if is_whole else pa.float64()
                found[name] = kind if found.get(name, pa.int64()) == pa.int64() else pa.float64()
    return {name: kind for name, kind in found.items() if name not in others}


def _as_json(table: Any) -> Iterator[bytes]:
    names = table.column_names
    for batch in table.to_batches(max_chunksize=_AT_ONCE):
        for row in zip(*map(values_of, batch.columns), strict=True):
            there = {n: value for n, value in zip(names, row, strict=True) if value is not None}
            yield f"{json.dumps(there, ensure_ascii=False, default=str)}\n".encode()


def _write_text(file: IO[bytes], tables: Iterable[Any], mark: str, encoding: str) -> None:
    encode = codecs.getincrementalencoder(encoding)(errors="surrogateescape").encode
    for number, table in enumerate(tables):
        if number == 0:
            names = [pa.array([name]) for name in table.column_names]
            file.write(encode(_lines(names, mark)))
        for batch in table.to_batches(max_chunksize=_AT_ONCE):
            file.write(encode(_lines(batch.columns, mark)))
            file.flush()  # a closed pipe ends this soon


def _lines(columns: Sequence[Any], mark: str) -> str:
    """Return rows as text; cells that have marks, quotes or ends of lines are in quotes."""
    cells, every, bare = list[Any](), [*map(_texts_of, columns)], io.BytesIO()
    form = csv.WriteOptions(include_header=False, delimiter=mark, quoting_style="none")
    with contextlib.suppress(pa.ArrowInvalid):  # where no cell needs quotes, in a third of the time
        csv.write_csv(pa.table(every, [*map(str, range(len(every)))]), bare, form)
        return bare.getvalue().decode()
    for texts in every:
        quoted = pc.binary_join_element_wise('"', pc.replace_substring(texts, '"', '""'), '"', "")
        needs_quotes = pc.match_substring_regex(texts, f'["\r\n{re.escape(mark)}]')
        cells.append(pc.if_else(needs_quotes, quoted, texts))
    joined = {"null_handling": "replace", "null_replacement": ""}
    rows = pc.binary_join_element_wise(*cells, mark, **joined)
    (text,) = pc.binary_join(pa.ListArray.from_arrays([0, len(rows)], rows), "\n").to_pylist()
    return f"{text}\n"


def _texts_of(column: Any) -> Any:
    try:
        return column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # such as lists
        values = [None if value is None else str(value) for value in values_of(column)]
        return pa.array(values, pa.string())


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


def listed(*paths: str | os.PathLike[str] | None) -> str:
    """Return the names of the files that were written."""
    return ", ".join(os.fspath(path) for path in paths if path is not None and path != "-")
