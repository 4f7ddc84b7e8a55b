"""Sheets of Excel and OpenDocument, read by Calamine in a process of its own."""

from __future__ import annotations

import contextlib
import datetime
import functools
import importlib.util
import pickle
import re
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree

from powermeans.errors import Argument, TableError, counted, listed, nearest, some
from powermeans_tables.cells.column import as_frame
from powermeans_tables.reading import calamine, text_form
from powermeans_tables.reading.damage import UNPACKING, NoRowsError, damaged
from powermeans_tables.reading.table import File, Rows

_OLD_EXCEL = b"\xd0\xcf\x11\xe0"
_SAMPLE_ROWS = 80
_LITERAL = re.compile(r'\\.|"[^"$€£¥₹]*"')
_CURRENCY = re.compile(r'"(EUR|USD|GBP|CHF|JPY|CNY|INR|CAD|AUD|SEK|NOK|DKK|PLN|CZK)"')
_UNIT = re.compile(r"(%)|\[\$([^\]-]{1,5})|(?<!\[)([$€£¥₹])")
_PERCENT = {"9": "0%", "10": "0.00%"}  # the formats that are in no list
_RELATIONS = "xl/_rels/workbook.xml.rels"
_N_LOOKED_AT = 2**18
_HIDDEN = re.compile(rb'<(?:\w+:)?row(?=[^>]*\shidden="(?:1|true)")[^>]*?\sr="(\d{1,7})"')
_LONGEST_TAG = 2**10
# What a workbook may take to read, with so much for each byte of the file.
_MEMORY, _MEMORY_FOR_EACH_BYTE = 10**9, 40
_SECONDS, _SECONDS_FOR_EACH_MB = 10, 2
_BROKEN = (*UNPACKING, LookupError, ElementTree.ParseError)


def is_workbook(path: Path, start: bytes) -> bool:
    """Return whether a file is a workbook of Excel or OpenDocument."""
    names = set[str]()
    if start.startswith(b"PK"):
        with contextlib.suppress(*UNPACKING), zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    is_new = any(name.startswith("xl/workbook") for name in names)
    return is_new or {"content.xml", "mimetype"} <= names or start.startswith(_OLD_EXCEL)


def read(file: File) -> Rows:
    """Return the rows of a sheet, how it was found, and doubts on its first row and units."""
    path, name, wanted = file.path, file.name, file.options.get("array")
    sizes, sheet, (first_row, first), cells, merged = _read_apart(path, name, wanted or "")
    if wanted is not None and wanted not in sizes:
        raise TableError(f'{name} has no sheet "{wanted}"{nearest(wanted, list(sizes))}')
    if not sizes.get(sheet):
        raise NoRowsError(f"{name} has no cells with anything in them")
    hidden = {row - first_row for row in _hidden_rows(path, sheet)}
    n_hidden = sum(row in hidden and {*each} != {None} for row, each in enumerate(cells))
    shown = [[None] * len(each) if row in hidden else each for row, each in enumerate(cells)]
    cells = _with_one_header(shown, merged)
    used = [j for j, column in enumerate(zip(*cells, strict=True)) if {*column} - {None}]
    chosen = [[row[j] for j in used] for row in cells]
    table, around, doubts = _table_of(chosen, name, file.options.get("header"))
    found_units = _units(path, sheet)
    of_columns = (found_units.get(first + j) for j in used)
    pairs = zip(table.column_names, of_columns, strict=True)
    counts = {name: each for name, each in pairs if each}
    most = {name: each.most_common(1)[0][0] for name, each in counts.items()}
    units = {name: unit for name, unit in most.items() if unit}
    unlike = [
        f'"{name}" ({" and ".join(filter(None, each))})'
        for name, each in counts.items()
        if len(each.keys() - {""}) > 1
    ]
    if unlike:
        doubts.append(f"cells in several units are read as if in one: {some(unlike)}")
    others = [each for each in sizes if each != sheet and sizes[each]]
    said = [f"{counted(n_hidden, 'hidden row')} left out"] if n_hidden else []
    said += [f'sheet "{sheet}" is read, and not {listed(others)}'] if others else []
    return Rows.of(table, name, how_read=said + around, doubts=doubts, units=units)


def _read_apart(path: Path, name: str, wanted: str) -> Any:
    """Return how many cells each sheet has, and the name, start and rows of the one that is read.

    Behind these is in which of the rows cells are merged from one column to another.
    """
    found, size = importlib.util.find_spec("python_calamine"), path.stat().st_size
    if found is None or found.origin is None:
        raise TableError('this needs python-calamine: pip install "powermeans[cli]"')
    memory = _MEMORY + _MEMORY_FOR_EACH_BYTE * size
    seconds = _SECONDS + _SECONDS_FOR_EACH_MB * size // 10**6
    libraries = str(Path(found.origin).parents[1])
    options = (libraries, str(path), str(memory), str(seconds), wanted)
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", calamine.__file__, *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with process:
        try:
            said = pickle.load(cast("Any", process.stdout))
        except (EOFError, pickle.UnpicklingError):
            raise TableError(
                f"{name} takes more than {memory / 1e9:.1f} GB or {seconds} s to read, as a "
                "workbook does that has a cell far from all others",
                "delete that cell, or export the table as CSV",
            ) from None
        finally:
            process.kill()
    if isinstance(said, str):
        raise damaged(name, "Excel or OpenDocument", said)
    return said


def _with_one_header(
    cells: Sequence[Sequence[Any]], merged: Sequence[tuple[int, int, int]]
) -> Sequence[Sequence[Any]]:
    """Join the name of several columns, in merged cells, and the names of each below it."""
    for top in sorted({row for row, _, _ in merged if row + 2 < len(cells)}):
        names, below = list(cells[top]), [_as_name(each) for each in cells[top + 1]]
        spans = [(left, right) for row, left, right in merged if row == top]
        for left, right in spans:
            names[left : right + 1] = [names[left]] * (right + 1 - left)
        inside = {place for left, right in spans for place in range(left, right + 1)}
        # Elsewhere a name is above or below, if words do not end here; a title has all names below.
        beside = {*range(len(names))} - inside
        is_one = all(names[place] is None or below[place] is None for place in beside)
        is_one |= any(isinstance(cells[top + 2][place], int | float) for place in inside)
        is_one &= all(below[place] for place in inside) and len({*names} - {None}) > 1
        is_one &= not any(len({*above} - {None}) > 1 for above in cells[:top])  # or a row of data
        pairs = list(zip(names, below, strict=True))
        if is_one and all(isinstance(each or "", str) for pair in pairs for each in pair):
            of_two = [": ".join(filter(None, pair)) or None for pair in pairs]
            return [*cells[:top], of_two, *cells[top + 2 :]]
    return cells


def _as_name(cell: Any) -> Any:
    """Return a year as a text, which may name a column."""
    return str(cell) if isinstance(cell, int) and 1900 <= cell <= 2100 else cell


def _units(path: Path, sheet: str) -> Mapping[int, Counter[str]]:
    """Count the percent signs and currencies of columns, by the formats of first cells.

    Calamine knows no formats, and OpenPyXL takes seconds to open a large workbook.
    """
    found = dict[int, Counter[str]]()
    with contextlib.suppress(*_BROKEN), zipfile.ZipFile(path) as archive:
        if "content.xml" in archive.namelist():
            return _units_of_open_document(archive, sheet)
        formats, units, is_of_cells = dict(_PERCENT), list[str](), False
        for tag, each in _tags(archive, "xl/styles.xml"):
            is_of_cells = tag == "cellXfs" or (is_of_cells and tag != "cellStyles")
            if tag == "numFmt":
                formats[each["numFmtId"]] = each["formatCode"]
            elif tag == "xf" and is_of_cells:
                code = formats.get(each.get("numFmtId", ""), "")
                match = _CURRENCY.search(code) or _UNIT.search(_LITERAL.sub("", code))
                units.append(match[match.lastindex or 0].strip() if match else "")
        for _, each in _tags(archive, _place_of(archive, sheet), "r"):
            if letters := re.match("[A-Z]+", each["r"]):
                place = functools.reduce(lambda n, letter: 26 * n + ord(letter) - 64, letters[0], 0)
                found.setdefault(place - 1, Counter())[units[int(each.get("s", 0))]] += 1
    return found


def _place_of(archive: zipfile.ZipFile, sheet: str) -> str:
    """Return the file that has the cells of a sheet."""
    relations = {each["Id"]: each["Target"] for _, each in _tags(archive, _RELATIONS, "Id")}
    sheets = {each["name"]: each for tag, each in _tags(archive, "xl/workbook.xml", "sheetId")}
    (key,) = (value for name, value in sheets[sheet].items() if name.endswith("}id"))
    return f"xl/{relations[key].removeprefix('/xl/')}"


def _hidden_rows(path: Path, sheet: str) -> set[int]:
    """Return the rows that a filter or a person has hidden in a workbook of Excel, from 0."""
    found, kept = set[int](), b""
    with (
        contextlib.suppress(*_BROKEN),
        zipfile.ZipFile(path) as archive,
        archive.open(_place_of(archive, sheet)) as file,
    ):
        while block := file.read(_N_LOOKED_AT):
            text = kept + block
            if b"hidden" in text:  # for which to look takes a tenth of the time
                found |= {int(row) - 1 for row in _HIDDEN.findall(text)}
            kept = text[-_LONGEST_TAG:]
    return found


def _units_of_open_document(archive: zipfile.ZipFile, sheet: str) -> Mapping[int, Counter[str]]:
    found, place, table = dict[int, Counter[str]](), 0, ""
    for tag, given in _tags(archive, "content.xml"):
        each = {name.rpartition("}")[2]: value for name, value in given.items()}
        table = each["name"] if tag == "table" else table
        place = 0 if tag == "table-row" else place
        if tag == "table-cell" and table == sheet:
            unit = "%" if each.get("value-type") == "percentage" else each.get("currency", "")
            found.setdefault(place, Counter())[unit] += bool(unit)
            place += int(each.get("number-columns-repeated", 1))
    return found


def _tags(archive: zipfile.ZipFile, name: str, has: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the tags at the start of XML, and their attributes, of which `has` is one."""
    parser: Any = ElementTree.XMLPullParser(["start"])
    with archive.open(name) as file:
        parser.feed(file.read(_N_LOOKED_AT))
    for _, element in parser.read_events():
        if not has or has in element.attrib:
            yield element.tag.rpartition("}")[2], element.attrib


def _table_of(
    cells: Sequence[Sequence[Any]], name: str, header: bool | None
) -> tuple[Any, list[str], list[str]]:
    """Return the rows below the header, what is left out around it, and a doubt on it."""
    texts = [["" if cell is None else str(cell) for cell in row] for row in cells[:_SAMPLE_ROWS]]
    top, has_header, n_units, doubts = text_form.first_rows(texts, header)
    body = [row for row in cells[top + has_header :] if {*row} - {None}]
    if not body:
        raise NoRowsError(f"{name} has a header and no rows")
    days = [cell for cell in cells[top] if isinstance(cell, datetime.datetime)]
    form = "%Y-%m" if all(day.day == 1 for day in days) else "%Y-%m-%d"
    named = [
        f"{cell:{form}}" if cell in days else text
        for cell, text in zip(cells[top], texts[top], strict=True)
    ]
    names = text_form.distinct(named if has_header else [""] * len(named))
    columns = zip(names, map(list, zip(*body[n_units:], strict=True)), strict=True)
    return as_frame(dict(columns)), text_form.left_out(top, n_units, "row"), doubts


def write(
    path: str | Any, tables: Mapping[str, Mapping[str, Any]], name: str, units: Mapping[str, str]
) -> None:
    """Write columns to sheets of a workbook; a text that begins as a formula stays a text."""
    try:
        import openpyxl
    except ImportError:
        raise TableError(
            f'writing {name} needs openpyxl: pip install "powermeans[cli]", or write .csv with ',
            Argument("output"),
        ) from None
    book = openpyxl.Workbook(write_only=True)
    for title, columns in tables.items():
        if not columns:
            continue
        sheet = book.create_sheet(title)
        known = (units.get(each.removeprefix("mean "), "") for each in columns)
        forms = ["0.0%" if unit == "%" else unit and f'#,##0.00 "{unit}"' for unit in known]
        sheet.append([_cell(sheet, each) for each in columns])
        for row in zip(*columns.values(), strict=True):
            sheet.append([_cell(sheet, *each) for each in zip(row, forms, strict=True)])
    book.save(path)


def _cell(sheet: Any, value: Any, form: str = "") -> Any:
    if isinstance(value, datetime.datetime):
        there = value.replace(tzinfo=None)
        return there if there.time() != datetime.time() else there.date()
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    from openpyxl.cell import WriteOnlyCell

    if not isinstance(value, str | list | dict):
        if not form or not isinstance(value, int | float):
            return value
        cell = WriteOnlyCell(sheet, value)
        cell.number_format = form
        return cell
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    cell = WriteOnlyCell(sheet, ILLEGAL_CHARACTERS_RE.sub("", str(value)))
    cell.data_type = "s"
    return cell
