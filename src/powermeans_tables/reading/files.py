"""Open tables: files of any kind that people have, folders of them, and frames in memory."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, Any

from powermeans.errors import Argument, NoRoomError, TableError, listed, writing_temporarily
from powermeans.points.streams import are_paths, gives_arrow_batches, is_stream
from powermeans.scale import limits
from powermeans.scale.files import files_at, is_utf8, missing_path
from powermeans.scale.spooled import table_of
from powermeans_tables.cells.column import as_frame
from powermeans_tables.reading import databases, sheets
from powermeans_tables.reading.damage import UNPACKING, NoRowsError, refusing_damage
from powermeans_tables.reading.formats import ENDINGS, PACKED, read
from powermeans_tables.reading.table import File, Rows, Table


def read_frame(source: str | os.PathLike[str], **options: Any) -> Any:
    r"""Read a file of columns of any kinds as a table of Arrow, texts as they are written.

    Parameters
    ----------
    source : str or path, or a list of these
        CSV and other text, Excel, OpenDocument, JSON lines, Parquet, Feather, Arrow, SQLite, or one
        of them in a zip, gzip, bzip2 or xz; ``-`` is standard input.
    **options
        How it is written, as `open_table` explains.

    Returns
    -------
    pyarrow.Table
        With all columns of the file.

    See Also
    --------
    Prepare : Turns the columns into points.
    open_table : Opens larger files, and folders.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from powermeans import read_frame
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "people.csv")
    ...     _ = file.write_text("name;height\nAnn;1,70\nBob;1,82\n")
    ...     read_frame(file).column_names
    ['name', 'height']
    """
    table = open_table(source, **options)
    table.warn_of_totals()
    return table.frame()


def open_table(
    source: Any,
    *,
    delimiter: str | None = None,
    header: bool | None = None,
    encoding: str | None = None,
    array: str | None = None,
    query: str | None = None,
    keep_totals: bool = False,
) -> Table:
    r"""Open a table for `Prepare`, `open_data` and `fit`, where a path does not tell enough.

    Parameters
    ----------
    source : path, list of paths, or frame
        A file, a folder of files with the same columns, a list of these, or a frame.
    delimiter : str, optional
        The character between columns of text, if it is not the one that rows suggest.
    header : bool, optional
        Whether the first row of text or of a sheet contains names, if cells do not tell.
    encoding : str, optional
        The encoding of text, such as "cp1252".
    array : str, optional
        The array of an NPZ file, the sheet of a workbook, the table of a database, or the file in
        a zip archive.
    query : str, optional
        What to select, in SQL, if `source` is a database of SQLite or DuckDB.
    keep_totals : bool, default=False
        Whether last rows of a file that sum up others count as rows.

    Returns
    -------
    Table
        With `names`, `n_rows`, `batches()` and `frame()`.

    See Also
    --------
    read_frame : Reads all rows at once.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from powermeans import open_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "points.csv")
    ...     _ = file.write_text("x#y\n1#2\n3#4\n")
    ...     open_table(file, delimiter="#").names
    ('x', 'y')
    """
    if isinstance(source, Table):
        return source
    if not are_paths(source):
        if is_stream(source) and not gives_arrow_batches(source):
            return _of_chunks(source)
        frame = table_of(source) if gives_arrow_batches(source) else as_frame(source)
        return Table("X", [Rows.of(frame, "X", **_of_schema(frame))])
    paths = [source] if isinstance(source, str | os.PathLike) else [*source]
    if query is not None:
        name = os.fspath(paths[0])
        rows = databases.selected(name, query)
        return Table(name, [rows], [Path(name)], keeps_totals=keep_totals)
    options = {"delimiter": delimiter, "header": header, "encoding": encoding, "array": array}
    given = {name: value for name, value in options.items() if value is not None}
    return _opened(paths, given, keeps_totals=keep_totals)


def _opened(
    paths: Sequence[str | os.PathLike[str]], options: dict[str, Any], *, keeps_totals: bool
) -> Table:
    with ExitStack() as on_error:
        parts, read_from, empty = list[Rows](), list[Path](), list[NoRowsError]()
        for path in paths:
            files = [Path(path)] if os.fspath(path) == "-" else files_at(Path(path), ENDINGS)
            read_from += [Path(path), *files] if files != [Path(path)] else files
            for each in files:
                try:
                    parts.append(read(_as_file(each, options, on_error)))
                except NoRowsError as error:  # which programs write for empty partitions
                    empty.append(error)
        if not parts:
            raise empty[0]
        name = "standard input" if os.fspath(paths[0]) == "-" else os.fspath(paths[0])
        name = name if len(paths) == 1 else f"{name} and {len(paths) - 1} more"
        opened = on_error.pop_all()
        return Table(name, parts, read_from, opened, keeps_totals=keeps_totals)


def _of_chunks(chunks: Any) -> Table:
    """Return the rows of arrays or frames that come again each time."""

    def frames() -> Iterator[Any]:
        return map(as_frame, chunks() if callable(chunks) else chunks)

    def batches() -> Iterator[Any]:
        return (batch for frame in frames() for batch in frame.to_batches())

    names = tuple(next(frames()).column_names)
    return Table("X", [Rows(name="X", names=names, read=batches)])


def _of_schema(frame: Any) -> dict[str, Any]:
    told = {key.decode(): value.decode() for key, value in (frame.schema.metadata or {}).items()}
    units, lists = (
        {key[len(what) :]: value for key, value in told.items() if key.startswith(what)}
        for what in ("unit of ", "list of ")
    )
    likely, per = (told.get(name, "") for name in ("likely decimal", "one row per"))
    of_all = {"is_array": "is array" in told, "likely_decimal": likely, "per": per}
    return {"units": units, "lists": lists, **of_all}


def _as_file(path: Path, options: dict[str, Any], opened: ExitStack) -> File:
    """Return an unpacked file on disk; what is copied is removed with the table."""
    name = "standard input" if str(path) == "-" else str(path)
    if str(path) == "-":
        if sys.stdin is None:
            raise TableError("standard input is closed: name a file, or pipe rows into it")
        path = _copied(sys.stdin.buffer, name, None, opened)
    elif path.is_dir():
        raise TableError(f"{path} is a directory: name a file in it")
    elif not path.exists():
        raise TableError(missing_path(path))
    elif not path.is_file() or not is_utf8(path):
        # A pipe can be read only once, and PyArrow opens no other names.
        if path.is_char_device():
            raise TableError(f"{path} is a device: pass a file, or - for standard input")
        with open(path, "rb") as stream:
            size = path.stat().st_size if path.is_file() else None
            path = _copied(stream, name, size, opened)
    file = File(path, name, dict(options))
    for mark, module in PACKED.items():
        if file.start.startswith(mark):
            unpacks = partial(importlib.import_module(module).open, path, "rb")
            return _unpacked(file, unpacks, path.stat().st_size, opened)
    return _unzipped(file, opened)


def _copied(stream: IO[bytes], name: str, n_stored: int | None, opened: ExitStack) -> Path:
    with writing_temporarily():
        path = Path(opened.enter_context(tempfile.TemporaryDirectory())) / "input"
    with open(path, "wb", buffering=0) as file:
        for block in limits.blocks(stream, name, n_stored):
            with writing_temporarily():
                while block := block[file.write(block) :]:
                    pass
    return path


def _unpacked(file: File, unpacks: Callable[[], Any], n_stored: int, opened: ExitStack) -> File:
    try:
        with unpacks() as stream:
            return replace(file, path=_copied(stream, file.name, n_stored, opened))
    except (TableError, NoRoomError):
        raise
    except UNPACKING as error:
        raise TableError(f"{file.name} cannot be unpacked: {error}") from None


def _unzipped(file: File, opened: ExitStack) -> File:
    """Return the one file of data in a zip; other files as they are."""
    if not file.start.startswith(b"PK") or sheets.is_workbook(file.path, file.start):
        return file
    with refusing_damage(file.name, "archive"):
        archive = opened.enter_context(zipfile.ZipFile(file.path))
    members = [each for each in archive.infolist() if _is_data(each)]
    if members and all(each.filename.endswith(".npy") for each in members):
        return file
    member = _one_of(members, file)
    limits.refuse_growth(file.name, member.compress_size, member.file_size)
    options = {name: value for name, value in file.options.items() if name != "array"}
    inside = File(file.path, f"{file.name}: {member.filename}", options)
    return _unpacked(inside, partial(archive.open, member), member.compress_size, opened)


def _is_data(member: zipfile.ZipInfo) -> bool:
    parts = member.filename.split("/")
    is_hidden = any(each.startswith((".", "__MACOSX")) for each in parts)
    return bool(parts[-1]) and not is_hidden  # that of a folder is empty


def _one_of(members: Sequence[zipfile.ZipInfo], file: File) -> zipfile.ZipInfo:
    names, name = [each.filename for each in members], file.name
    wanted = file.options.get("array")
    if not members or names[0].lower().endswith(".zip"):
        what = "another archive" if members else "no files"
        raise TableError(f"{name} contains {what}: unpack it, and pass a table that is in it")
    if "model.json" in names:
        raise TableError(f"{name} is a saved model: powermeans.load reads it, and predict takes it")
    if "[Content_Types].xml" in names:
        raise TableError(f"{name} is of Office, but no workbook: export a table as CSV or Excel")
    if wanted is None and len(members) > 1:
        raise TableError(
            f"{name} contains {len(members)} files",
            *("choose with ", Argument("array"), f" one of {listed(names)}"),
        )
    if wanted is not None and wanted not in names:
        raise TableError(f'{name} contains no file "{wanted}": there are {listed(names)}')
    return next(each for each in members if wanted in (None, each.filename))
