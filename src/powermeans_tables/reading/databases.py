"""Tables of SQLite and DuckDB."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

from powermeans.errors import TableError, listed
from powermeans.system.arrow import pyarrow_part
from powermeans_tables.cells.column import as_column
from powermeans_tables.reading.text_form import distinct

if TYPE_CHECKING:
    from powermeans_tables.reading.formats import File

_SQLITE = b"SQLite format 3\0"


def is_database(start: bytes) -> bool:
    """Return whether a file is a database."""
    return start.startswith(_SQLITE) or start[8:12] == b"DUCK"


def read(file: File) -> Any:
    """Return the only table of a database, or the one of this name."""
    path, name, wanted = file.path, file.name, file.options.get("array")
    listing = "select name from sqlite_master where type in ('table', 'view')"
    found = selected(str(path), listing)["name"].to_pylist()
    names = [each for each in found if not each.startswith("sqlite_")]
    if wanted is not None and wanted not in names:
        raise TableError(f'{name} has no table "{wanted}": there are {listed(names)}')
    if wanted is None and len(names) != 1:
        what = f"has {len(names)} tables, {listed(names)}" if names else "has no tables"
        raise TableError(
            f'{name} {what}: pass a query, such as "SELECT * FROM {(names or ["people"])[0]}", '
            "and the file by --database"
        )
    quoted = (wanted or names[0]).replace('"', '""')
    return selected(str(path), f'select * from "{quoted}"')


def selected(path: str, query: str) -> Any:
    """Return what a query finds in a database, which is opened for reading only."""
    if not os.path.isfile(path):
        raise TableError(f"{path} does not exist")
    with open(path, "rb") as file:
        start = file.read(16)
    if not is_database(start):
        raise TableError(f"{path} is no database of SQLite or DuckDB")
    table = _of_sqlite(path, query) if start.startswith(_SQLITE) else _of_duckdb(path, query)
    if table is None or not table.num_rows:
        raise TableError(f"{path}: there are no rows to read")
    return table.rename_columns(list(distinct(table.column_names)))


def _of_sqlite(path: str, query: str) -> Any:
    with contextlib.closing(
        sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)
    ) as opened:
        opened.text_factory = lambda text: text.decode(errors="replace")
        try:
            found = opened.execute(query)
            names = [each[0] for each in found.description or ()]
            rows = found.fetchall()
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise TableError(f"{path}: the query failed: {error}") from None
    columns = [as_column(list(cells)) for cells in zip(*rows, strict=True)]
    return pyarrow_part().table(columns, names=names) if columns else None


def _of_duckdb(path: str, query: str) -> Any:
    try:
        import duckdb
    except ImportError:
        raise TableError("databases of DuckDB need duckdb: pip install duckdb") from None
    try:
        with duckdb.connect(path, read_only=True) as opened:
            opened.execute("set enable_external_access = false")
            found: Any = opened.sql(query)
            return None if found is None else found.to_arrow_table()
    except duckdb.Error as error:
        raise TableError(f"{path}: the query failed: {str(error).splitlines()[0]}") from None
