"""Read a file of any kind that people have as a table of Arrow."""

from __future__ import annotations

import contextlib
import os
import zipfile
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from powermeans.errors import Argument, TableError, counted
from powermeans.scale.tables.formats import format_of, start_of
from powermeans.scale.tables.reading import as_file, unpacked
from powermeans.scale.tables.table import listed, refusing_damage
from powermeans.scale.tables.text import Text
from powermeans.scale.tables.text_form import notes_below
from powermeans.system.arrow import pyarrow_part
from powermeans_tables.preparing.kinds import sums_up
from powermeans_tables.reading import databases, json_lines, sheets

_PICTURES_AND_MORE = {
    **dict.fromkeys((b"\x89PNG", b"\xff\xd8\xff", b"GIF8"), "a picture"),
    **dict.fromkeys((b"RIFF", b"ID3"), "sound or video"),
    **dict.fromkeys((b"\x7fELF", b"MZ"), "a program"),
    **dict.fromkeys((b"<!DOCTYPE", b"<html"), "a page of HTML"),
    b"%PDF": "a PDF document",
    b"<?xml": "XML",
    b"7z\xbc\xaf": "a 7z archive",
    b"Rar!": "a RAR archive",
    b"\x28\xb5\x2f\xfd": "packed by Zstandard",
}
# A small archive that unpacks to much more is likely made to fill a disk.
_MOST_TIMES, _LARGE = 200, 10**9


@dataclass(frozen=True)
class Frame:
    """A table, and what is known of the file that it came from."""

    table: Any  # of Arrow
    how_read: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)  # on how it was read, which may be wrong
    delimiter: str = ","
    encoding: str = "utf-8"

    @cached_property
    def totals(self) -> list[int]:
        """The last rows, from 0, where they sum up the others."""
        pa, n_rows = pyarrow_part(), self.table.num_rows
        texts = [one for one in self.table.columns if one.type == pa.string()][:50]
        last = range(n_rows - 1, max(n_rows - 4, 0), -1)
        sum_up = [sums_up(each[row].as_py() or "" for each in texts) for row in last]
        return [*last[: [*sum_up, False].index(False)]]


def read_frame(source: str | os.PathLike[str], **options: Any) -> Any:
    r"""Read a file of columns of any kinds as a table of Arrow, texts as they are written.

    Parameters
    ----------
    source : str or path
        CSV and other text, Excel, OpenDocument, JSON lines, Parquet, Feather, Arrow, SQLite, or one
        of them in a zip, gzip, bzip2 or xz; ``-`` is standard input.
    **options
        How text is written: `delimiter`, `header`, `encoding`; for other
        files `array`, the name of a sheet or table.

    Returns
    -------
    pyarrow.Table
        With all columns of the file.

    See Also
    --------
    Prepare : Turns the columns into points.

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
    return opened(source, **options).table


def opened(source: str | os.PathLike[str], query: str | None = None, **options: Any) -> Frame:
    """Return the table of a file and how it was read; `query` selects from a database."""
    given = {name: value for name, value in options.items() if value is not None}
    if query is not None:
        return Frame(databases.selected(os.fspath(source), query))
    with as_file(source) as (path, name), _unzipped(path, name, given) as (file, called):
        frame = _read(file, called, given)
        n_notes = notes_below(frame.table)
        said = [f"{counted(n_notes, 'row')} below the table left out"] * bool(n_notes)
        table = frame.table.slice(0, frame.table.num_rows - n_notes)
        return replace(frame, table=table, how_read=frame.how_read + said)


def _read(path: Path, name: str, options: dict[str, Any]) -> Frame:
    start = start_of(path, name)
    for mark, what in _PICTURES_AND_MORE.items():
        if start.lstrip().startswith(mark):
            raise TableError(f"{name} is {what}, and no table: export it as CSV or Excel")
    sheet = options.get("array")
    if sheets.is_workbook(path, start):
        table, said, doubt, doubts = sheets.read(path, name, sheet, options.get("header"))
        return Frame(table, said, _on_header(doubt) + doubts)
    if databases.is_database(start):
        return Frame(databases.read(path, name, sheet))
    if json_lines.is_json(start):
        table, doubts = json_lines.read(path, name)
        return Frame(table, doubts=doubts)
    reader = format_of(path, name, **options)
    if isinstance(reader, Text):
        layout = reader.layout
        likely = b"," if layout.delimiter == ";" else b""
        table = reader.as_table().replace_schema_metadata({b"likely decimal": likely})
        encoding = "utf-8-sig" if start.startswith(BOM_UTF8) else reader.encoding
        how, doubts = reader.how_divided(), _on_header(layout.doubt)
        return Frame(table, how, doubts, layout.delimiter, encoding)
    return Frame(reader.as_table())


def _on_header(doubt: str) -> list[str]:
    """Return a doubt on the first row with the option that settles it."""
    option, other = ("no-header", "data") if doubt.endswith("names") else ("header", "names")
    return [f"{doubt} (--{option}, if it is {other})"] if doubt else []


@contextlib.contextmanager
def _unzipped(path: Path, name: str, options: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield the one file of data in a zip; other files as they are."""
    start = start_of(path, name)
    if not start.startswith(b"PK") or sheets.is_workbook(path, start):
        yield path, name
        return
    with contextlib.ExitStack() as stack:
        with refusing_damage(name, "archive"):
            archive = stack.enter_context(zipfile.ZipFile(path))
        members = [each for each in archive.infolist() if _is_data(each)]
        if members and all(each.filename.endswith(".npy") for each in members):
            yield path, name
            return
        member = _one_of(members, name, options)
        if member.file_size > max(_LARGE, _MOST_TIMES * max(member.compress_size, 1)):
            raise TableError(
                f"{name} unpacks from {member.compress_size:,} to {member.file_size:,} bytes: "
                "unpack it yourself if you trust it"
            )
        inside = f"{name}: {member.filename}"
        yield stack.enter_context(unpacked(lambda: archive.open(member), inside)), inside


def _is_data(member: zipfile.ZipInfo) -> bool:
    parts = member.filename.split("/")
    is_hidden = any(each.startswith((".", "__MACOSX")) for each in parts)
    return bool(parts[-1]) and not is_hidden  # that of a folder is empty


def _one_of(
    members: Sequence[zipfile.ZipInfo], name: str, options: dict[str, Any]
) -> zipfile.ZipInfo:
    names = [each.filename for each in members]
    wanted = options.pop("array", None)
    if not members or names[0].lower().endswith(".zip"):
        what = "another archive" if members else "no files"
        raise TableError(f"{name} contains {what}: unpack it, and pass a table that is in it")
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
