"""The form of a text from its first lines: encoding, delimiter, header, kinds of columns."""

from __future__ import annotations

import codecs
import csv
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

from powermeans.errors import Argument, TableError
from powermeans.preparing.number_forms import NO_VALUE, is_date, is_number, is_unanswered
from powermeans.scale.tables.table import NoRowsError, distinct

_SAMPLE_LINES = 50
_MOST_TITLES = 10
_DELIMITERS = ("\t", ";", "|", ",", " ")


def first_bytes(file: IO[bytes]) -> bytes:
    """Read the start of a text; where its lines are long, at least three of them."""
    start = file.read(2**18)
    while len(start.splitlines()) < 4 and len(start) < 2**26:
        more = file.read(len(start))
        if not more:
            break
        start += more
    return start


def sample_lines(
    start: bytes, name: str, encoding: str | None, *, is_cut: bool
) -> tuple[list[str], str]:
    """Return the complete lines at the start of a text, and its encoding."""
    encoding = encoding or _encoding_of(start, name)
    try:
        "".encode(encoding)  # refuses codecs of bytes, such as zlib
        decode = codecs.getincrementaldecoder("utf-8-sig" if encoding == "utf8" else encoding)()
        text = decode.decode(start)
    except LookupError:
        raise TableError(
            "is not known", "name one such as cp1252", argument="encoding", value=encoding
        ) from None
    except UnicodeError as error:
        raise in_other_encoding(name, encoding, error) from None
    if is_cut:
        text = text[: text.rfind("\n") + 1] or text
    return text.splitlines(keepends=True), encoding


def in_other_encoding(name: str, encoding: str, error: UnicodeError) -> TableError:
    """Return the error for a text that cannot be decoded."""
    return TableError(
        f"{name} is not in {encoding}: {error}", "pass another ", Argument("encoding")
    )


def _encoding_of(start: bytes, name: str) -> str:
    if start.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\0" in start:
        return _utf_16_without_mark(start, name)
    try:
        codecs.getincrementaldecoder("utf8")().decode(start)
    except UnicodeDecodeError:
        # These bytes have no letter in cp1252, which otherwise has all letters of Latin-1.
        return "latin-1" if re.search(rb"[\x81\x8d\x8f\x90\x9d]", start) else "cp1252"
    return "utf8"


def _utf_16_without_mark(start: bytes, name: str) -> str:
    n_pairs = len(start) // 2
    for first, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        n_zeros, n_others = start[first::2].count(0), start[1 - first :: 2].count(0)
        if n_zeros > 0.7 * n_pairs and not n_others:
            return encoding
    raise TableError(
        f"{name} is of an unknown kind: pass CSV, TSV, Parquet, Feather, Arrow, NPY or NPZ"
    )


@dataclass(frozen=True, slots=True)
class Layout:
    """How a text is divided into columns, and its first rows."""

    delimiter: str
    names: tuple[str, ...]
    body: list[list[str]]
    n_skipped: int  # lines before the first row of values
    n_titles: int  # lines before the header
    has_blanks: bool  # runs of blanks stand for one
    n_units: int = 0  # rows of units below the header

    @classmethod
    def of(
        cls, lines: Sequence[str], name: str, delimiter: str | None, header: bool | None, point: str
    ) -> Layout:
        """Find the delimiter and the header; `point` is a decimal mark that is given, or empty."""
        marks = (delimiter,) if delimiter else _DELIMITERS
        mark, n_titles = sniffed(lines, point, marks)
        apart = columns_apart(lines[n_titles:], mark)
        n_titles += 0 if header is False else _titles_as_wide(apart, mark)
        apart = columns_apart(lines[n_titles:], mark)
        rows, n_lines_of_first = cells_of(apart, mark)
        if not rows:
            raise NoRowsError(f"{name} is empty")
        has_header = has_names(rows) if header is None else header
        body = rows[1:] if has_header else rows
        if not body:
            raise NoRowsError(f"{name} has a header and no rows")
        named = [*["row"] * _is_a_name_short(rows), *rows[0]]
        names = distinct(named if has_header else [""] * len(rows[0]))
        n_skipped = n_titles + (n_lines_of_first if has_header else 0)
        n_units = int(has_header and _holds_units(body))
        body, n_skipped = body[n_units:], n_skipped + n_units
        has_blanks = mark == " " and not any('"' in line for line in lines)
        return cls(mark, names, body, n_skipped, n_titles, has_blanks, n_units)

    def columns(self) -> list[list[str]]:
        """Return the values of each column that are there."""
        return [
            [cell for row in self.body if len(row) > j and (cell := row[j].strip()) not in NO_VALUE]
            for j in range(len(self.names))
        ]


def sniffed(
    lines: Sequence[str], decimal: str = "", among: Sequence[str] = _DELIMITERS
) -> tuple[str, int]:
    """Return the delimiter that gives the first lines the most columns, the same number in each.

    With it comes the number of lines above the header, such as a title.
    """
    some = lines[:_SAMPLE_LINES]
    has_quotes = any('"' in line for line in some)
    marks = [mark for mark in among if mark != decimal or has_quotes] or among
    best, most, n_titles = marks[-2:][0], 1, 0
    for may_have_titles in (False, True):
        for mark in marks:
            usual, n_above = _width(some, mark, may_have_titles=may_have_titles)
            if usual > most and not (mark in (",", " ") and most > 1 and best != " "):
                best, most, n_titles = mark, usual, n_above
        # Blanks may divide a title and the rows alike by chance.
        if most > 1 and best != " ":
            break
    return best, n_titles


def _width(lines: Sequence[str], mark: str, *, may_have_titles: bool) -> tuple[int, int]:
    """Return the number of columns and of lines above them; one column if rows differ."""
    try:
        rows, _ = cells_of(columns_apart(lines, mark), mark)
    except TableError:
        return 1, 0
    widths = [len(row) for row in rows] or [1]
    usual = max(set(widths), key=widths.count)
    first = widths.index(usual)
    if widths.count(usual) < 0.8 * (len(widths) - first):
        return 1, 0
    if not first or (first == 1 and _is_a_name_short(rows)):
        return usual, 0
    if not may_have_titles:
        return 1, 0
    is_title = first <= _MOST_TITLES and max(widths[:first]) < usual and has_names(rows[first:])
    line = _line_of(lines, first, mark)
    return (usual, line) if is_title and len(rows) >= first + 3 and line is not None else (1, 0)


def _is_a_name_short(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether a header has no name for the first column, as R writes row names."""
    header, *body = rows
    is_short = bool(body) and all(len(row) == len(header) + 1 for row in body)
    is_named = len(header) > 1 and all(map(_is_text, header))
    return is_short and is_named and not all(map(_is_text, body[0]))


def _line_of(lines: Sequence[str], row: int, mark: str) -> int | None:
    """Return the number of lines above a row; None if the row itself may take several."""
    reader = csv.reader(lines, delimiter=mark)
    for _ in itertools.islice(filter(None, reader), row + 1):
        pass
    line = reader.line_num - 1
    return None if lines[line].count('"') % 2 else line


def _titles_as_wide(lines: Sequence[str], mark: str) -> int:
    """Return the number of lines above the header of a spreadsheet, padded to the same width."""
    rows, _ = cells_of(lines[:_SAMPLE_LINES], mark)
    filled = [sum(bool(cell.strip()) for cell in row) for row in rows]
    width = max(map(len, rows), default=0)
    first = next((row for row, n_cells in enumerate(filled) if 2 * n_cells > width), 0)
    if not 0 < first <= _MOST_TITLES or len(rows) < first + 3 or width < 3:
        return 0
    is_header = all(map(_is_text, filter(str.strip, rows[first]))) and has_names(rows[first:])
    return (_line_of(lines, first, mark) or 0) if is_header else 0


def _holds_units(body: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row has words where all others have numbers."""
    first, others = body[0], body[1:]
    if len(others) < 3:
        return False
    of_numbers = [
        j
        for j in range(len(first))
        if sum(len(row) > j and is_number(row[j].strip()) for row in others) > 0.8 * len(others)
        and any(len(row) > j and row[j].strip() not in NO_VALUE for row in others)
    ]
    cells = [first[j].strip() for j in of_numbers]
    n_words = sum(_is_text(cell) and not is_unanswered(cell) for cell in cells)
    return n_words >= max(1, len(cells) / 2) and all(
        _is_text(cell) or cell in NO_VALUE or cell == "1" for cell in cells
    )


def columns_apart(lines: Sequence[str], delimiter: str) -> Sequence[str]:
    """Return the lines; if the delimiter is a blank, with runs of blanks reduced to one."""
    if delimiter != " " or any('"' in line for line in lines):
        return lines
    return [without_blanks(line.encode()).decode() for line in lines]


def without_blanks(text: bytes) -> bytes:
    """Strip blanks at the ends of lines, and reduce runs of blanks to one."""
    return re.sub(rb"(?m)^ +| +$|(?<= ) +", b"", text.replace(b" \r\n", b"\r\n"))


def cells_of(lines: Sequence[str], delimiter: str) -> tuple[list[list[str]], int]:
    """Return the first rows as cells, and the number of lines of the first row."""
    rows, n_lines_of_first = [], 0
    reader = csv.reader(lines, delimiter=delimiter)
    try:
        for row in reader:
            n_lines_of_first = n_lines_of_first or (reader.line_num if row else 0)
            if row:
                rows.append(row)
            if len(rows) > 200:
                break
    except csv.Error as error:
        raise TableError(f"line {reader.line_num} is no text of columns: {error}") from None
    return rows, n_lines_of_first


def has_names(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row contains names: only texts, or some text above a number."""
    are_names = [_is_text(cell) for cell in rows[0]]
    if len(rows) > 1 and _counts_up(rows[0]) and not _counts_up(rows[1]):
        return True
    if len(rows) == 1 or all(are_names) or not any(are_names):
        return any(are_names)
    below = rows[1]
    return any(
        is_name and len(below) > column and not _is_text(below[column])
        for column, is_name in enumerate(are_names)
    )


def _counts_up(row: Sequence[str]) -> bool:
    """Return whether the numbers of a row are years one after the other, or 1, 2, 3, and so on."""
    numbers = [int(cell) for cell in row if cell.strip().isdecimal()]
    is_run = len(numbers) >= 3 and numbers == [*range(numbers[0], numbers[0] + len(numbers))]
    others = [cell for cell in row if not cell.strip().isdecimal()]
    is_known = is_run and (numbers[0] in (0, 1) or 1800 < numbers[0] <= numbers[-1] < 2200)
    return is_known and all(map(_is_text, others))


def _is_text(cell: str) -> bool:
    """Return whether a cell is neither a number nor a date nor empty."""
    cell = cell.strip()
    return not is_number(cell) and not is_date(cell)
