"""Formats of files, each known by its first bytes.

A new format is a line in `FORMATS`.
"""

from __future__ import annotations

import contextlib
import re
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from powermeans.errors import TableError
from powermeans.scale.tables.array_files import open_hdf5, open_npy, open_npz, open_zarr
from powermeans.scale.tables.arrow import ArrowFile
from powermeans.scale.tables.table import FileFormat, NoRowsError, is_utf8
from powermeans.scale.tables.text import Text

# The first bytes of packed files, and the modules that unpack them.
PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ\x00": "lzma"}

# The first bytes of files that are never read part by part.
_WHOLE = {
    rb"SQLite format 3\0|.{8}DUCK": "a database",
    rb"\xd0\xcf\x11\xe0": "a workbook",
    rb'(\xef\xbb\xbf)?\s*(\{\s*["}]|\[\s*\{)': "JSON",
}
_JSON = re.compile(r"\.(json|jsonl|ndjson)(\.(gz|bz2|xz))?$", re.IGNORECASE)


class Format(NamedTuple):
    """A kind of file."""

    kind: str
    endings: tuple[str, ...]
    marks: tuple[bytes, ...]  # of which the file begins with one
    options: tuple[str, ...]  # besides `missing_values`, which all kinds take
    open: Callable[..., FileFormat]


_TEXT = Format(
    "text",
    (".csv", ".tsv", ".txt"),
    (),
    ("delimiter", "header", "decimal", "thousands", "dates", "encoding", "missing_values"),
    Text,
)
_ZARR = Format("Zarr", (), (), ("array",), open_zarr)
FORMATS = (
    Format("Parquet", (".parquet", ".pq"), (b"PAR1",), ("dates",), partial(ArrowFile, "Parquet")),
    Format(
        "Feather or Arrow",
        (".feather", ".arrow", ".ipc"),
        (b"ARROW1", b"\xff\xff\xff\xff"),
        ("dates",),
        partial(ArrowFile, "Feather or Arrow"),
    ),
    _TEXT,
    Format("NPY", (".npy",), (b"\x93NUMPY",), (), open_npy),
    Format("NPZ", (".npz",), (b"PK",), ("array",), open_npz),
    Format("HDF5", (".h5", ".hdf5"), (b"\x89HDF\r\n\x1a\n",), ("array",), open_hdf5),
    _ZARR,
)
ENDINGS = tuple(ending for form in FORMATS for ending in form.endings)


def format_of(path: Path, name: str | None = None, **options: Any) -> FileFormat:
    """Open a file in the format of its content; `open_data` explains the options."""
    name = str(path) if name is None else name
    if not is_utf8(path):
        raise TableError(f"{name} has a name that is no UTF-8, which Arrow cannot open: rename it")
    form = format_at(path, name)
    if form is _TEXT:
        _refuse_no_text(path, name)
    given = {option: value for option, value in options.items() if value is not None}
    for option, value in given.items():
        if option not in (*form.options, "missing_values"):
            problem = f"is no option of {form.kind}, which {name} is"
            raise TableError(problem, "leave it out", argument=option, value=value)
    return form.open(path, name, **{key: given[key] for key in form.options if key in given})


def read_whole(path: Path) -> str:
    """Return what a file is that is never read part by part; empty for all others."""
    if not path.is_file():
        return ""
    start, names = start_of(path), list[str]()
    if start.startswith(b"PK"):
        with contextlib.suppress(zipfile.BadZipFile, OSError), zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    if not all(name.endswith(".npy") for name in names):
        return "a workbook or a zip archive"
    if _JSON.search(path.name):
        return "JSON"
    return next((what for mark, what in _WHOLE.items() if re.match(mark, start, re.DOTALL)), "")


def options_of(path: Path) -> tuple[str, ...]:
    """Return the options of the format that a file has."""
    return (*format_at(path).options, "missing_values")


def format_at(path: Path, name: str | None = None) -> Format:
    """Return the format that a file has by its first bytes; text if it has no other."""
    if path.is_dir():
        return _ZARR
    start = start_of(path, name)
    return next((form for form in FORMATS if form.marks and start.startswith(form.marks)), _TEXT)


def start_of(path: Path, name: str | None = None) -> bytes:
    """Return the first bytes of a file, none of a folder."""
    if path.is_dir():
        return b""
    try:
        with open(path, "rb") as file:
            return file.read(2**10)
    except OSError as error:
        raise TableError(f"{name or path} cannot be read: {error.strerror}") from None


def _refuse_no_text(path: Path, name: str) -> None:
    start = start_of(path)
    if start.startswith(tuple(PACKED)):
        raise TableError(f"{name} is packed: unpack it first")
    if path.stat().st_size <= len(start) and not start.strip():
        # Any other kind of file has at least a header.
        problem = NoRowsError if path.suffix.lower() in _TEXT.endings else TableError
        raise problem(f"{name} is empty")
