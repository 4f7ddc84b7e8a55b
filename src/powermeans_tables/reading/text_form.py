"""The form of a text from its first lines: encoding, delimiter, header, kinds of columns."""

from __future__ import annotations

import codecs
import csv
import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from powermeans.errors import Argument, TableError, counted
from powermeans.scale.limits import LONGEST_LINE
from powermeans.types import FloatArray
from powermeans_tables.cells.arrow import pc
from powermeans_tables.cells.column import is_text, values_of
from powermeans_tables.cells.number_forms import (
    NO_VALUE,
    as_number,
    is_date,
    is_number,
    is_unanswered,
)
from powermeans_tables.reading.damage import NoRowsError

_TOTALS = re.compile(
    r"(?:(?:.*\W)?(?:grand|sub|net|overall)[- ]?)?totals?|.*(?:合計|小計|总计|小计|합계)|sum"
    r"|summe|(?:gesamt|end|zwischen)[- ]?summe|gesamt"
    r"|insgesamt|average|mean|mittelwert|durchschnitt|somme|moyenne|totale|suma|media"
    r"|totaal|razem|celkem|summa|toplam|всего|итого(?: \S+){0,3}",
    re.IGNORECASE,
)
_SUBTOTAL = (
    r"(?i)^(?:\S+\s+){0,3}(?:sub[- ]?totals?|zwischensumme|sous-total|\S*小計|\S*小计)[:.]?$"
    r"|^итого(?: \S+){0,3}[:.]?$"
)
_COUNT = re.compile(r"\d[\d.,']* [^\W\d]{4,}(?: [^\W\d]+)*")  # such as 300 activities
_SAMPLE_LINES = 50
_SAMPLE_COLUMNS = 200
_MOST_ROWS = 2_000
_MOST_TITLES = 15
_MOST_NOTES = 5
# What is no ASCII, and of that the euro, quotes, dashes and blanks of cp1252.
_HIGH, _SIGNS = rb"[\x80-\xff]", rb"(?<![\x80-\xff])(?:[\x80\x85\x91-\x97\xa0])+(?![\x80-\xff])"
_OF_TWO_BYTES = ("cp932", "euc_jp", "gb18030", "big5", "cp949")
_OF_OTHER_LETTERS = (*_OF_TWO_BYTES, "cp1251", "koi8_r", "cp1253", "cp1256")
_DELIMITERS = ("\t", ";", "|", ",", " ")


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Return unique names: number the columns whose name is empty or repeated."""
    found: dict[str, None] = {}
    for number, name in enumerate(names, start=1):
        plain = name.strip() or f"c{number}"
        while plain in found:
            plain = f"{plain}.{number}"
        found[plain] = None
    return tuple(found)


def first_bytes(file: IO[bytes]) -> bytes:
    """Read the start of a text; where its lines are long, at least three of them."""
    start = file.read(2**18)
    while (
        len(start.splitlines()) < 4
        and len(start) <= LONGEST_LINE
        and (more := file.read(len(start)))
    ):
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
        if candidates := _other_letters_in(start):
            try:
                from charset_normalizer import from_bytes
            except ImportError:
                way_out = 'pip install "powermeans[cli]", or pass ', Argument("encoding")
                raise TableError(f"{name} is no UTF-8", *way_out) from None
            found = from_bytes(start, threshold=0.5, cp_isolation=candidates).best()
            if found is not None:
                return str(found.encoding)
        # These bytes have no letter in cp1252, which otherwise has all letters of Latin-1.
        return "latin-1" if re.search(rb"[\x81\x8d\x8f\x90\x9d]", start) else "cp1252"
    return "utf8"


def _other_letters_in(start: bytes) -> list[str]:
    """Return the encodings that a text without Latin words may be in, or one of Chinese letters."""
    high = re.findall(_HIGH, start := re.sub(_SIGNS, b" ", start))
    words = re.findall(rb"[A-Za-z\x80-\xff]{2,}", start)
    n_pure = sum(len(word) for word in words if not re.search(rb"[A-Za-z]", word))
    if n_pure > 0.7 * len(high):
        return [*_OF_OTHER_LETTERS]
    # Letters of two bytes, of which the first is a rare sign in cp1252.
    n_leads = len(re.findall(rb"[\x81-\x84\x86-\x90\x98-\x9f]", start))
    n_paired = sum(map(len, re.findall(rb"(?:[\x80-\xff][\x40-\xff]){2,}", start)))
    return [*_OF_TWO_BYTES] if n_leads > 0.1 * len(high) and n_paired > 0.5 * len(high) else []


def _utf_16_without_mark(start: bytes, name: str) -> str:
    n_zeros = start[::2].count(0), start[1::2].count(0)
    if max(n_zeros) > 0.7 * (len(start) // 2) and not min(n_zeros):
        return "utf-16-be" if n_zeros[0] else "utf-16-le"
    raise TableError(
        f"{name} is of an unknown kind: pass CSV, Excel, JSON, SQLite, Parquet, Feather or NPY"
    )


@dataclass(frozen=True, slots=True)
class Layout:
    """How a text is divided into columns, and its first rows."""

    delimiter: str
    names: tuple[str, ...]
    n_skipped: int  # lines before the first row of values
    has_blanks: bool  # runs of blanks stand for one
    left_out: list[str]  # what of the text is no row
    doubts: list[str]  # on whether the first row contains names

    @classmethod
    def of(
        cls, lines: Sequence[str], name: str, delimiter: str | None, header: bool | None
    ) -> Layout:
        """Find the delimiter and the header."""
        marks = (delimiter,) if delimiter else _DELIMITERS
        mark, n_above = sniffed(lines, marks)
        try:
            rows, starts = cells_of(lines[n_above:], mark)
        except TableError as error:
            error.problem = f"{name}: {error.problem}"
            raise
        if not rows:
            raise NoRowsError(f"{name} is empty")
        if _is_a_name_short(rows):
            rows[0].insert(0, "row")
        top, has_header, n_units, doubts = first_rows(rows, header)
        rows, n_titles = rows[top:], n_above + (starts[top] if top else 0)
        if len(rows) == has_header:
            raise NoRowsError(f"{name} has a header and no rows")
        names = distinct(rows[0] if has_header else [""] * len(rows[0]))
        first = has_header + n_units
        n_skipped = n_above + starts[top + first] if top + first else n_above
        has_blanks = mark == " " and not any('"' in line for line in lines)
        said = left_out(n_titles, n_units, "line")
        return cls(mark, names, n_skipped, has_blanks, said, doubts)


def sniffed(lines: Sequence[str], marks: Sequence[str] = _DELIMITERS) -> tuple[str, int]:
    """Return the delimiter that gives most lines the most columns, and how many lines are above."""
    some = lines[:_SAMPLE_LINES]
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
        rows, starts = cells_of(lines, mark)
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
    is_title = first <= _MOST_TITLES and max(widths[:first]) < usual and header_in(rows[first:])[0]
    return (usual, starts[first]) if is_title and len(rows) >= first + 3 else (1, 0)


def _is_a_name_short(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether a header has no name for the first column, as R writes row names."""
    header, *body = rows
    is_short = bool(body) and all(len(row) == len(header) + 1 for row in body)
    is_named = len(header) > 1 and all(map(_is_text, header))
    return is_short and is_named and not all(map(_is_text, body[0]))


def without_blanks(text: bytes) -> bytes:
    """Strip blanks at the ends of lines, and reduce runs of blanks to one."""
    return re.sub(rb"(?m)^ +| +$|(?<= ) +", b"", text.replace(b" \r\n", b"\r\n"))


def cells_of(lines: Sequence[str], delimiter: str) -> tuple[list[list[str]], list[int]]:
    """Return the first rows as cells, and the lines above each of them and below the last one."""
    if delimiter == " " and not any('"' in line for line in lines):
        lines = [without_blanks(line.encode()).decode() for line in lines]
    rows, starts, line = list[list[str]](), list[int](), 0
    reader, usual = csv.reader(lines, delimiter=delimiter), csv.field_size_limit()
    try:
        csv.field_size_limit(max(usual, sum(map(len, lines))))  # a cell may be as long as these
        for row in itertools.islice(reader, _MOST_ROWS):
            if row:
                rows.append(row)
                starts.append(line)
            line = reader.line_num
    except csv.Error as error:
        raise TableError(f"line {reader.line_num} is no text of columns: {error}") from None
    finally:
        csv.field_size_limit(usual)
    return rows, [*starts, line]


def _titles_above(rows: Sequence[Sequence[str]]) -> int:
    """Return the number of rows above the header of a spreadsheet, which are mostly empty."""
    width = max(map(len, rows), default=0)
    sizes = [sum(map(bool, map(str.strip, row))) for row in rows[: _MOST_TITLES + 1]]
    top = next((i for i, size in enumerate(sizes) if 2 * size > width), 0)
    # A title of several cells has fewer than the header, and an empty row below it.
    below = [
        i for i, size in enumerate(sizes) if i > top and size > sizes[top] and not sizes[i - 1]
    ]
    return next((i for i in (*below[:1], top) if _is_header_below_titles(rows[i:], width)), 0)


def _is_header_below_titles(rows: Sequence[Sequence[str]], width: int) -> bool:
    if len(rows) < 3 or not any(map(_is_text, rows[0])):
        return False
    # Two columns of words may begin with half a row.
    is_table = width > 2 or any(map(is_number, filter(None, rows[1])))
    return is_table and header_in(rows)[0]


def names_total(cell: str) -> bool:
    """Return whether a cell is the name of a row that sums up others."""
    return bool(_TOTALS.fullmatch(cell.strip().rstrip(" :.")))


def sums_up(cells: Iterable[str]) -> bool:
    """Return whether cells are of a row that sums up others, or has only a count of them."""
    texts = [cell.strip() for cell in cells]
    is_alone = texts.count("") == len(texts) - 1 > 1
    return any(map(names_total, texts)) or (is_alone and bool(_COUNT.fullmatch("".join(texts))))


def subtotals_in(batch: Any) -> list[int]:
    """Return the rows of which one of the first texts says that they sum up those above."""
    found = np.zeros(batch.num_rows, dtype=bool)
    for texts in itertools.islice((one for one in batch.columns if is_text(one.type)), 3):
        is_one = pc.fill_null(pc.match_substring_regex(texts.cast("string"), _SUBTOTAL), False)
        found |= is_one.to_numpy(zero_copy_only=False)
    return np.flatnonzero(found).tolist()


def notes_below(table: Any) -> int:
    """Return the number of last rows with only a text in a column of numbers, such as a source."""
    last = table.slice(max(table.num_rows - _MOST_NOTES - 1, 0)).columns
    cells = [["" if x is None else str(x) for x in values_of(column)] for column in last]
    rows = [*zip(*cells, strict=True)]
    for n_notes, row in enumerate(reversed(rows)):
        there = [(cell, top) for cell, top in zip(row, rows[0], strict=True) if cell.strip()]
        ((cell, top), *others) = there or [("", "")]
        is_note = re.match(r"\*|[^\W\d]+:? ", cell) and not is_unanswered(cell)
        if others or len(row) < 2 or not (is_note and top and is_number(top)):
            return n_notes
    return 0


def rows_of_units(body: Sequence[Sequence[str]]) -> int:
    """Return the number of first rows with words where all others have numbers."""
    first, others = body[0] if body else [], body[1 : 1 + _SAMPLE_LINES]
    if len(others) < 3:
        return 0
    cells = [
        first[j].strip()
        for j, column in enumerate(_columns_of(others, len(first)))
        if sum(map(is_number, column)) > 0.8 * len(others) and not set(column) <= set(NO_VALUE)
    ]
    n_words = sum(_is_text(cell) and not is_unanswered(cell) for cell in cells)
    is_one = n_words >= max(1, len(cells) / 2) and all(
        _is_text(cell) or cell in NO_VALUE or cell == "1" for cell in cells
    )
    return 1 + rows_of_units(body[1:]) if is_one else 0


def left_out(n_titles: int, n_units: int, noun: str) -> list[str]:
    """Return in words what is above the header and below it."""
    said = [f"{counted(n_titles, noun)} above the header left out"] if n_titles else []
    rows = "a row" if n_units == 1 else f"{n_units} rows"
    return said + [f"{rows} of units below the header left out"] * bool(n_units)


def first_rows(
    rows: Sequence[Sequence[str]], header: bool | None
) -> tuple[int, bool, int, list[str]]:
    """Return the rows of titles, whether names are below, the rows of units, and a doubt on it."""
    top = 0 if header is False else _titles_above(rows)
    rows, n_units = rows[top:], rows_of_units(rows[top + 1 :])
    if header is None:
        found, is_in_doubt = header_in([rows[0], *rows[1 + n_units :]])
        if found and "" in map(str.strip, rows[0]) and len(rows) > 2:
            is_in_doubt |= all(map(_is_text, rows[1])) and header_in(rows[1:])[0]
    else:
        found, is_in_doubt = header, False
    cells = f'the first row, "{", ".join(rows[0][:4]):.50}"'
    taken_for = "names (--no-header, if it is data)" if found else "data (--header, if it is names)"
    doubts = [f"{cells}, is taken for {taken_for}"] if is_in_doubt else []
    return top, found, n_units * found, doubts


def header_in(rows: Sequence[Sequence[str]]) -> tuple[bool, bool]:
    """Return whether the first row contains names, and whether that is in doubt.

    It does if its cells are unlike those below: texts or dates above numbers, words that do not
    come again, or labels such as years.
    """
    first, body = [cell.strip() for cell in rows[0][:_SAMPLE_COLUMNS]], rows[1 : 1 + _SAMPLE_LINES]
    are_names = [_is_text(cell) for cell in first]
    if not body:
        return any(are_names), False
    columns = _columns_of(body, len(first))
    is_above = [*map(_is_above_numbers, first, columns)]
    if any(is_above):  # a header that comes again, where files were joined, is no row
        columns = _columns_of([row for row in body if row != rows[0]], len(first))
    recurs = [*map(_recurs, first, columns)]
    n_data = sum(recurs)
    places = [j for j, cell in enumerate(first) if cell not in NO_VALUE and not are_names[j]]
    some = () if names_total(first[0]) else places
    points = _labels_in([first[j] for j in some], [columns[j] for j in some])
    if n_above := sum(is_above):
        n_like = 0 if points else sum(not is_date(first[j]) for j in places)
        return n_above > n_data, n_data > 0 or n_like >= n_above
    if n_data:
        n_unlike = sum(
            is_name and not again and 2 * len(set(column)) <= len(column)
            for again, is_name, column in zip(recurs, are_names, columns, strict=True)
        )
        return n_unlike > n_data, n_unlike > 0
    if all(are_names):
        return True, False
    points += len(places) < len(first)  # a word, or nothing above names of rows
    return points > 2, 2 <= points <= 3


def _columns_of(rows: Sequence[Sequence[str]], width: int) -> list[list[str]]:
    return [[row[j].strip() for row in rows if len(row) > j] for j in range(width)]


def _is_above_numbers(cell: str, column: Sequence[str]) -> bool:
    """Return whether a text or date is above numbers, or a text above dates."""
    is_name = _is_text(cell) and not is_unanswered(cell)
    there = [each for each in column if each not in NO_VALUE]
    n_alike = sum(is_number(each) or (is_name and is_date(each)) for each in there)
    return (is_name or is_date(cell)) and n_alike > len(there) / 2


def _recurs(cell: str, column: Sequence[str]) -> bool:
    """Return whether a text is one of those below, or a code such as A-17 above others."""
    shape, n_alike = re.sub(r"\d+", "0", cell), 0
    if "0" in shape:
        n_alike = sum(re.sub(r"\d+", "0", each) == shape for each in column)
    return _is_text(cell) and (cell in column or n_alike > len(column) / 2)


def _labels_in(cells: Sequence[str], columns: Sequence[Sequence[str]]) -> int:
    """Return how much numbers look like names of columns: years, equal steps, codes."""
    kind, rows = _kind_of_labels(cells), [*zip(*columns, strict=False)]
    n_unlike = sum(map(_is_unlike, cells, columns)) if kind else 0
    if kind == "codes":
        return 2 * (n_unlike == len(cells) > 1)
    if not kind or sum(_kind_of_labels(row) == kind for row in rows) > len(rows) / 2:
        return 0
    return len(cells) - 2 * (kind == "steps") + n_unlike


def _kind_of_labels(cells: Sequence[str]) -> str:
    values = _plain_numbers(cells)
    steps, are_whole = np.diff(values), not (values % 1).any()
    if not len(values) or not ((steps > 0).all() or (steps < 0).all()):
        return ""
    if are_whole and 1800 < values.min() <= values.max() < 2200:
        return "years"
    if len(steps) > 1 and np.allclose(steps, steps[0], rtol=1e-6, atol=0):
        return "steps"
    return "codes" if are_whole and len(set(map(len, cells))) == 1 < len(cells[0]) else ""


def _is_unlike(cell: str, column: Sequence[str]) -> bool:
    """Return whether a number is far from those of a column, or whole above fractions."""
    (label,), values = _plain_numbers([cell]), _plain_numbers(column)
    there = values[~np.isnan(values)]
    if 2 * len(there) <= len(column) or np.mean(there % 1 > 0) > 0.5 > label % 1:
        return True
    return bool(np.abs(there - label).min() > 2 * np.ptp(there))


def _plain_numbers(cells: Sequence[str]) -> FloatArray:
    """Return the numbers that are written as programs write them, NaN for other cells."""
    numbers = np.array([*map(as_number, cells)], dtype=np.float64)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _is_text(cell: str) -> bool:
    """Return whether a cell is neither a number, a limit such as <0.1, a date nor empty."""
    cell = cell.strip()
    return not (is_number(cell) or is_number(cell.lstrip("<>≤≥~≈ ")) or is_date(cell))
