"""Databases to run queries in: DuckDB, SQLite, and PostgreSQL where its server is installed."""

import contextlib
import io
import os
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np

Run = Callable[[dict[str, Any], str], list[Any]]
"""Puts columns into the table `points`, runs a query, and returns its last column by `id`."""


def in_duckdb(columns: dict[str, Any], query: str) -> list[Any]:
    import duckdb
    import pyarrow as pa

    with duckdb.connect() as connection:
        connection.register("points", pa.table(columns))
        return [row[-1] for row in connection.execute(f"{query} ORDER BY id").fetchall()]


def in_sqlite(columns: dict[str, Any], query: str) -> list[Any]:
    texts = ([str(v) if isinstance(v, date) else v for v in as_list(c)] for c in columns.values())
    rows = zip(*texts, strict=True)
    names = ", ".join(map(quoted, columns))
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE TABLE points ({names})")
        connection.executemany(f"INSERT INTO points VALUES ({', '.join('?' * len(columns))})", rows)
        return [row[-1] for row in connection.execute(f"{query} ORDER BY id")]


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def type_of(values: Any) -> str:
    """Return the type of a column in PostgreSQL."""
    if getattr(values, "dtype", None) == np.float32:
        return "real"
    first = next((value for value in as_list(values) if value is not None), None)
    types = {str: "text", bool: "boolean", datetime: "timestamp", date: "date"}
    return types.get(type(first), "double precision")


def as_list(values: Any) -> list[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


@contextlib.contextmanager
def postgresql() -> Iterator[Run | None]:
    """Start a server that listens on a socket only; None where there is none to start."""
    found = shutil.which("initdb") or next(
        map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))), None
    )
    if found is None:
        yield None
        return
    user: dict[str, Any] = {"user": "postgres", "group": "postgres"} if os.getuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="pm", dir="/tmp"))  # a socket has a short path
    if user:
        shutil.chown(folder, "postgres", "postgres")
    binaries, options = Path(found).resolve().parent, {"check": True, "capture_output": True}

    def call(name: str, *arguments: str, **more: Any) -> Any:
        command = [str(binaries / name), *arguments]
        return subprocess.run(command, cwd=folder, **{**options, **user, **more})

    def run(columns: dict[str, Any], query: str) -> list[Any]:
        types = [type_of(values) for values in columns.values()]
        made = ", ".join(f"{quoted(n)} {t}" for n, t in zip(columns, types, strict=True))
        text = io.StringIO(f"DROP TABLE IF EXISTS points; CREATE TABLE points ({made});\n")
        text.seek(0, io.SEEK_END)
        text.write("COPY points FROM STDIN;\n")
        for row in zip(*(as_list(values) for values in columns.values()), strict=True):
            text.write("\t".join("\\N" if v is None else str(v) for v in row) + "\n")
        text.write("\\.\n")
        text.write(f"COPY (SELECT cluster FROM ({query}) AS q ORDER BY id) TO STDOUT;\n")
        psql = ["-h", str(folder), "-U", "postgres", "-q", "-v", "ON_ERROR_STOP=1"]
        ended = call("psql", *psql, input=text.getvalue(), text=True)
        return [None if line == "\\N" else int(line) for line in ended.stdout.splitlines()]

    call("initdb", "-D", "data", "-U", "postgres", "-A", "trust", "--no-sync")
    # Output to a file: a pipe would stay open with the server.
    server = {"capture_output": False, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    serve = f"-k {folder} -c listen_addresses='' -F"
    call("pg_ctl", "-D", "data", "-w", "-o", serve, "-l", "log", "start", **server)
    try:
        yield run
    finally:
        call("pg_ctl", "-D", "data", "-m", "immediate", "-w", "stop", **server)
        shutil.rmtree(folder, ignore_errors=True)
