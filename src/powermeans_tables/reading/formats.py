"""The register of formats: how the files of each are known, and what reads them.

A new format is a function from a `File` to a table of Arrow, or to `Rows` if it is read batch after
batch, and a line in `FORMATS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from powermeans.errors import TableError
from powermeans.scale.array_files import NPY, NPZ
from powermeans_tables.reading import databases, json_lines, sheets, text, typed_files
from powermeans_tables.reading.table import File, Rows

# The first bytes of packed files, and the modules that unpack them.
PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ\x00": "lzma"}
_ARROW = b"ARROW1", b"\xff\xff\xff\xff"
_NO_TABLES = {
    **dict.fromkeys((b"\x89PNG", b"\xff\xd8\xff", b"GIF8"), "a picture"),
    **dict.fromkeys((b"RIFF", b"ID3"), "sound or video"),
    **dict.fromkeys((b"\x7fELF", b"MZ"), "a program"),
    **dict.fromkeys((b"<!DOCTYPE", b"<html"), "a page of HTML"),
    b"%PDF": "a PDF document",
    b"<?xml": "XML",
    **dict.fromkeys((b"<stata_dta", b"r\x01\x01", b"s\x02\x01", b"q\x02\x01"), "a file of Stata"),
    **dict.fromkeys((b"$FL2", b"$FL3"), "a file of SPSS"),
    bytes(12) + b"\xc2\xea\x81\x60": "a file of SAS",
    **dict.fromkeys((b"RDX", b"X\n\0\0\0"), "a file of R"),
    b"version https://git-lfs": "a pointer of Git LFS, for which `git lfs pull` fetches the file",
    b"7z\xbc\xaf": "a 7z archive",
    b"Rar!": "a RAR archive",
    b"\x28\xb5\x2f\xfd": "packed by Zstandard",
    b"\x89HDF\r\n": "HDF5, of which powermeans.open_data takes a function that yields blocks",
}
_LIBSVM = re.compile(rb"[-+.\deE]+(?: +(?:qid|\d+):[-+.\deE]+)+ *(?:#.*)?\r?\n")


class Format(NamedTuple):
    """A kind of file."""

    kind: str
    endings: str  # by which files in a folder are known
    has: Callable[[Path, bytes], bool]  # whether a file is of this kind, by its first bytes
    read: Callable[[File], Any]
    options: str = ""


def _begins(*marks: bytes) -> Callable[[Path, bytes], bool]:
    return lambda _, start: start.startswith(marks)


FORMATS = (
    Format("Parquet", ".parquet .pq", _begins(b"PAR1"), typed_files.read_parquet),
    Format("Feather or Arrow", ".feather .arrow .ipc", _begins(*_ARROW), typed_files.read_arrow),
    Format("a workbook", ".xlsx .xlsm .xls .ods", sheets.is_workbook, sheets.read, "array header"),
    Format(
        "a database",
        ".db .sqlite .sqlite3 .duckdb",
        lambda _, start: databases.is_database(start),
        databases.read,
        "array",
    ),
    Format("JSON", ".json .jsonl .ndjson", json_lines.is_json, json_lines.read),
    Format("NPY", ".npy", _begins(NPY), typed_files.read_npy),
    Format("NPZ", ".npz", _begins(NPZ), typed_files.read_npz, "array"),
    Format("text", ".csv .tsv .txt", _begins(b""), text.read, "delimiter header encoding"),
)
ENDINGS = tuple(ending for form in FORMATS for ending in form.endings.split())


def format_of(file: File) -> Format:
    """Return the format that a file has by its content."""
    start = file.start
    if _LIBSVM.match(start):
        raise TableError(
            f"{file.name} is a file of libsvm: pass the points of "
            "sklearn.datasets.load_svmlight_file(path)"
        )
    for mark, what in _NO_TABLES.items():
        if start.lstrip().startswith(mark):
            raise TableError(f"{file.name} is {what}, and no table: export it as CSV or Excel")
    if start.startswith(tuple(PACKED)):
        raise TableError(f"{file.name} is packed twice: unpack it first")
    return next(form for form in FORMATS if form.has(file.path, start))


def read(file: File) -> Rows:
    """Return the rows of a file in the format of its content."""
    form = format_of(file)
    for name, value in file.options.items():
        if name not in form.options.split():
            raise TableError(
                f"is no option of {form.kind}, which {file.name} is",
                "leave it out",
                argument=name,
                value=value,
            )
    found = form.read(file)
    return found if isinstance(found, Rows) else Rows.of(found, file.name)
