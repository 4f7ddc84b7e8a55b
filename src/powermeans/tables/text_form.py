"""The form of a text from its first lines: encoding, delimiter, header, kinds of columns."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

from powermeans.tables.table import TableError

SAMPLE_BYTES = 2**18
_SAMPLE_ROWS = 200
_DELIMITERS = ("\t", ";", "|", ",", " ")
NO_VALUE = ("", "NA", "N/A", "NaN", "nan", "NAN", "null", "NULL", "None", "none", "?", "-", "n/a")
_DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+")
# A comma may be a decimal mark or separate thousands.
_IN_DOUBT = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+")
_BLANKS = re.compile(rb"(?m)^ +| +$|(?<= ) +")
_WHOLE_NUMBER = re.compile(r"[-+]?\d+")


def sample_lines(start: bytes, name: str) -> tuple[list[str], str]:
    """Return the complete lines at the start of a text, and their encoding."""
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise TableError(f"{name} is in UTF-16: save it as UTF-8")
    if b"\0" in start:
        raise TableError(
            f"{name} is of an unknown kind: pass CSV, TSV, Parquet, Feather, Arrow, NPY or NPZ"
        )
    if len(start) == SAMPLE_BYTES:
        start = start[: start.rfind(b"\n") + 1] or start
    try:
        text, encoding = start.decode("utf-8-sig"), "utf8"
    except UnicodeDecodeError:
        text, encoding = start.decode("latin-1"), "latin-1"
    return text.splitlines(keepends=True), encoding


def sniffed(lines: Sequence[str], decimal: str | None = None) -> str:
    """Return the delimiter that gives the first lines the most columns, the same number in each."""
    has_quotes = any('"' in line for line in lines[:50])
    marks = [mark for mark in _DELIMITERS if mark != decimal or has_quotes]
    best, most = marks[-2], 1
    for mark in marks:
        rows, _ = cells_of(columns_apart(lines[:50], mark), mark)
        widths = [len(row) for row in rows]
        usual = max(set(widths), key=widths.count)
        is_regular = widths.count(usual) >= 0.8 * len(widths) and widths[0] == usual
        if is_regular and usual > most and not (mark == "," and most > 1):
            best, most = mark, usual
    return best


def columns_apart(lines: Sequence[str], delimiter: str) -> Sequence[str]:
    """Return the lines; if the delimiter is a blank, with runs of blanks reduced to one."""
    if delimiter != " " or any('"' in line for line in lines):
        return lines
    return [without_blanks(line.encode()).decode() for line in lines]


def without_blanks(text: bytes) -> bytes:
    """Strip blanks at the ends of lines, and reduce runs of blanks to one."""
    return _BLANKS.sub(b"", text.replace(b" \r\n", b"\r\n"))


def cells_of(lines: Sequence[str], delimiter: str) -> tuple[list[list[str]], int]:
    """Return the first rows as cells, and the number of lines of the first row."""
    rows, n_lines_of_first = [], 0
    reader = csv.reader(lines, delimiter=delimiter)
    try:
        for row in reader:
            n_lines_of_first = n_lines_of_first or (reader.line_num if row else 0)
            if row:
                rows.append(row)
            if len(rows) > _SAMPLE_ROWS:
                break
    except csv.Error as error:
        raise TableError(f"line {reader.line_num} is no text of columns: {error}") from None
    return rows, n_lines_of_first


def has_names(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row holds names: only texts, or some text above a number."""
    are_names = [_is_text(cell) for cell in rows[0]]
    if len(rows) == 1 or all(are_names) or not any(are_names):
        return any(are_names)
    below = rows[1]
    return any(
        is_name and len(below) > column and not _is_text(below[column])
        for column, is_name in enumerate(are_names)
    )


def _is_text(cell: str, decimal: str = ".") -> bool:
    """Return whether a cell is neither a number nor empty."""
    cell = cell.strip()
    if cell in NO_VALUE:
        return False
    try:
        float(cell.replace(decimal, ".") if "_" not in cell else "text")
    except ValueError:
        return not _DECIMAL_COMMA.fullmatch(cell)
    return False


def text_in(cells: Sequence[str], decimal: str) -> str | None:
    """Return the first text of a column that is mostly text, for an error; else None."""
    texts = [cell for cell in cells if _is_text(cell, decimal)]
    n_values = sum(cell not in NO_VALUE for cell in cells)
    return f"text ({texts[0][:40]!r})" if texts and len(texts) > 0.5 * n_values else None


def are_whole(cells: Sequence[str]) -> bool:
    """Return whether all values are whole numbers."""
    values = [cell for cell in cells if cell not in NO_VALUE]
    return bool(values) and all(_WHOLE_NUMBER.fullmatch(value) for value in values)


def comma_in(cells: Sequence[str]) -> str | None:
    """Return the first number with a decimal comma, one without doubt if there is any."""
    found = [cell for cell in cells if _DECIMAL_COMMA.fullmatch(cell) or is_in_doubt(cell)]
    return next((cell for cell in found if not is_in_doubt(cell)), found[0] if found else None)


def is_in_doubt(cell: str) -> bool:
    """Return whether the commas of a number may separate thousands."""
    return _IN_DOUBT.fullmatch(cell) is not None
