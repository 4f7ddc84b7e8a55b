"""Tables of SQLite and DuckDB."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent import futures
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

from powermeans.errors import NoRoomError, TableError, listed, writing_temporarily
from powermeans.scale import limits
from powermeans_tables.cells.arrow import ipc, pa
from powermeans_tables.cells.column import as_column, of_parts
from powermeans_tables.reading.damage import NoRowsError
from powermeans_tables.reading.table import File, Rows
from powermeans_tables.reading.typed_files import read_arrow

_SQLITE = b"SQLite format 3\0"
# What a query may return, unless the file is larger: a cell takes at least one byte there, and
# about eight in memory, so that eight bytes of text count as one too.
_MOST_CELLS = 2**22
_CELLS_AT_ONCE = 2**18
_MOST_STEPS = 2 * 10**8  # of the machine of SQLite, or 1000 for each byte of the file
_MAY_DO = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE}
_STEPS_AT_ONCE = 10**5
_MOST_SECONDS, _BYTES_A_SECOND = 15, 10**6  # of DuckDB, which counts no steps
# Connections to one file must not differ in these.
_OF_DUCKDB: dict[str, Any] = {
    "enable_external_access": "false",
    "lock_configuration": "true",
    "memory_limit": "800MiB",
    "temp_directory": "",
}


def is_database(start: bytes) -> bool:
    """Return whether a file is a database."""
    return start.startswith(_SQLITE) or start[8:12] == b"DUCK"


def read(file: File) -> Any:
    """Return the only table of a database, or the one of this name."""
    path, name, wanted = file.path, file.name, file.options.get("array")
    listing = "select name from sqlite_master where type in ('table', 'view')"
    found = [batch.column(0) for batch in selected(str(path), listing, name).read()]
    names = [each for part in found for each in part.to_pylist() if not each.startswith("sqlite_")]
    if wanted is not None and wanted not in names:
        raise TableError(f'{name} has no table "{wanted}": there are {listed(names)}')
    if wanted is None and len(names) != 1:
        what = f"has {len(names)} tables, {listed(names)}" if names else "has no tables"
        raise TableError(
            f'{name} {what}: pass a query, such as "SELECT * FROM {(names or ["people"])[0]}", '
            "and the file by --database"
        )
    quoted = (wanted or names[0]).replace('"', '""')
    return selected(str(path), f'select * from "{quoted}"', name)


def selected(path: str, query: str, name: str = "") -> Rows:
    """Return what a query finds in a database, which is opened for reading only."""
    name = name or path
    if not os.path.isfile(path):
        raise TableError(f"{name} does not exist")
    with open(path, "rb") as file:
        start = file.read(16)
    if not is_database(start):
        raise TableError(f"{name} is no database of SQLite or DuckDB")
    return (_of_sqlite if start.startswith(_SQLITE) else _of_duckdb)(path, query, name)


def _of_sqlite(path: str, query: str, name: str) -> Rows:
    with contextlib.closing(
        sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)
    ) as opened:
        opened.text_factory = lambda text: text.decode(errors="replace")
        opened.set_authorizer(_is_allowed)
        most = max(_MOST_STEPS, 1000 * os.path.getsize(path)) // _STEPS_AT_ONCE
        turns = count()
        # In Python, so that Ctrl-C too ends a query that returns no row.
        opened.set_progress_handler(lambda: next(turns) >= most, _STEPS_AT_ONCE)
        opened.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 8 * _most_cells(path))
        try:
            found = opened.execute(query)
            names = [each[0] for each in found.description or ()]
            parts = [*_limited(name, _batches(found, names), _most_cells(path))]
        except (sqlite3.Error, sqlite3.Warning) as error:
            code = getattr(error, "sqlite_errorcode", None)
            if code == sqlite3.SQLITE_INTERRUPT and next(turns) <= most:
                raise KeyboardInterrupt from None
            why = {
                sqlite3.SQLITE_INTERRUPT: "it takes too many steps: add LIMIT to its parts",
                sqlite3.SQLITE_AUTH: f"{error}: pass one SELECT",
            }.get(code or 0, str(error))
            raise TableError(f"{name}: the query failed: {why}") from None
    if not parts:
        raise NoRowsError(f"{name}: there are no rows to read")
    columns = [of_parts(each) for each in zip(*(part.columns for part in parts), strict=True)]
    return Rows.of(pa.table(columns, names=names), name)


def _is_allowed(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    """Tell SQLite whether a step of a query only reads from its database."""
    is_allowed = action in _MAY_DO
    is_allowed |= action == sqlite3.SQLITE_FUNCTION and second != "load_extension"
    # What an index of texts needs; the file cannot be written.
    is_allowed |= action == sqlite3.SQLITE_PRAGMA and second is None
    is_allowed |= action == sqlite3.SQLITE_UPDATE and first == "sqlite_master"
    return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY


def _batches(found: sqlite3.Cursor, names: Sequence[str]) -> Iterator[Any]:
    """Yield rows as tables of a few megabytes."""
    n_rows = 1
    while rows := found.fetchmany(n_rows):
        columns = [as_column(list(cells)) for cells in zip(*rows, strict=True)]
        table = pa.table(columns, names=names)
        yield table
        n_rows = min(2 * n_rows, max(1, _CELLS_AT_ONCE * n_rows // _n_cells(table)))


def _of_duckdb(path: str, query: str, name: str) -> Rows:
    try:
        import duckdb
    except ImportError:
        raise TableError("databases of DuckDB need duckdb: pip install duckdb") from None
    with ExitStack() as on_error:
        with writing_temporarily():
            folder = on_error.enter_context(tempfile.TemporaryDirectory())
        kept = File(Path(folder) / "rows", name)
        try:
            with duckdb.connect(path, read_only=True, config=_OF_DUCKDB) as opened:
                statements = opened.extract_statements(query)
                if [each.type for each in statements] != [duckdb.StatementType.SELECT]:
                    raise TableError(f"{name}: the query failed: pass one SELECT")
                with futures.ThreadPoolExecutor(1) as beside:
                    work = beside.submit(_keep, opened, query, kept, os.path.getsize(path))
                    seconds = _MOST_SECONDS + os.path.getsize(path) // _BYTES_A_SECOND
                    _in_time(work, opened.interrupt, seconds)
            found = read_arrow(kept)
        except (TimeoutError, duckdb.OutOfMemoryException):
            raise TableError(
                f"{name}: the query takes too long or too much memory: add LIMIT to its parts"
            ) from None
        except NoRoomError:
            raise
        except (duckdb.Error, OSError) as error:  # which Arrow raises of its batches
            raise TableError(f"{name}: the query failed: {str(error).splitlines()[0]}") from None
        weakref.finalize(kept, on_error.pop_all().close)  # once nothing can read it any more
    return found


def _keep(opened: Any, query: str, kept: File, n_stored: int) -> None:
    """Write what a query finds to disk, since it may find it in another order when run again."""
    # A table says how many cells it has, however well the file compresses them; twice as many have
    # room for what tells which are missing.
    cells = "select 2 * sum(estimated_size * column_count) from duckdb_tables()"
    ((n_cells,),) = opened.execute(cells).fetchall()
    most, n_bytes = max(_MOST_CELLS, n_stored, int(n_cells or 0)), 0
    with (
        opened.sql(query).to_arrow_reader(2**14) as found,
        ipc.new_file(str(kept.path), found.schema) as written,
    ):
        for batch in _limited(kept.name, found, most):
            n_bytes += batch.nbytes
            limits.refuse_growth(kept.name, n_stored, n_bytes)
            with writing_temporarily():
                written.write_batch(batch)


def _in_time(work: futures.Future[None], interrupt: Callable[[], None], seconds: float) -> None:
    """Wait for another thread; interrupt it after some seconds, and at Ctrl-C.

    DuckDB does not hear Ctrl-C while it waits for the rows of a query.
    """
    try:
        work.result(seconds)
    finally:
        while not work.done():  # a query that has not begun yet forgets that it is interrupted
            interrupt()
            futures.wait([work], 0.05)


def _most_cells(path: str) -> int:
    return max(_MOST_CELLS, os.path.getsize(path))


def _n_cells(table: Any) -> int:
    return int(max(table.num_rows * table.num_columns, table.nbytes // 8))


def _limited(name: str, batches: Iterable[Any], most: int) -> Iterator[Any]:
    """Yield the rows of a query; refuse more than a file of this size may have."""
    n_cells = 0
    for batch in batches:
        n_cells += _n_cells(batch)
        if n_cells > most:
            raise TableError(
                f"{name}: the query finds more than the {most:,} cells that are read of a file of "
                "this size: add LIMIT to it, or export what it finds as Parquet"
            )
        yield batch
