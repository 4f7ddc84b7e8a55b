"""Columns from CSV, TSV and similar text."""

from __future__ import annotations

import codecs
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from powermeans.errors import Argument, TableError, counted, warn_caller
from powermeans.scale.tables.arrow import matrix_of
from powermeans.scale.tables.checking import declared_missing, identifiers
from powermeans.scale.tables.table import FileFormat, NoRowsError, from_row
from powermeans.scale.tables.text_form import (
    Layout,
    first_bytes,
    in_other_encoding,
    sample_lines,
    without_blanks,
)
from powermeans.system.arrow import pyarrow_part
from powermeans.types import Points
from powermeans_tables.preparing.number_forms import (
    NO_VALUE,
    Dates,
    Form,
    Marks,
    NotInForm,
    chosen,
    described,
    form_of,
    is_number,
    is_word,
    settled,
    values_of,
    words_for_missing,
)

_BLOCK_BYTES = 2**20
_MOST_COLUMNS = 100_000
# What PyArrow says of a cell that it cannot convert.
_INVALID = re.compile(r"column #(\d+).*invalid value '(.*)'", re.DOTALL)


class Text(FileFormat):
    """CSV and similar text, which is read from its start each time.

    The options say how it is written, as far as that is given; `open_data` explains them.
    """

    index: frozenset[int] = frozenset()
    n_rows = None
    can_skip = False

    def __init__(
        self,
        path: Path,
        name: str,
        *,
        delimiter: str | None = None,
        header: bool | None = None,
        decimal: str | None = None,
        thousands: str | None = None,
        dates: Dates | None = None,
        encoding: str | None = None,
        missing_values: Sequence[str] | None = None,
    ) -> None:
        self.path, self.name, self._told = path, name, set[str]()
        self._marks_given, self._is_encoding_given = (decimal, thousands), encoding is not None
        with open(path, "rb") as file:
            start = first_bytes(file)
        is_cut = len(start) < path.stat().st_size
        lines, self.encoding = sample_lines(start, name, encoding, is_cut=is_cut)
        self.layout = Layout.of(lines, name, delimiter, header, decimal or "")
        self.names = self.layout.names
        if len(self.names) > _MOST_COLUMNS:
            raise TableError(
                f"{name} has {len(self.names):,} columns, and of a text at most {_MOST_COLUMNS:,} "
                "are read: if its rows are columns, transpose it, or pass a file of NumPy"
            )
        self._declared = _declared_words(missing_values, self.names, name)
        longest = max(map(len, lines[self.layout.n_skipped :]), default=0)
        self._block_bytes = max(_BLOCK_BYTES, 4 * longest)
        self._describe(dates)

    def _describe(self, dates: Dates | None) -> None:
        columns = [
            [cell for cell in cells if cell not in words]
            for cells, words in zip(self.layout.columns(), self._declared, strict=True)
        ]
        forms = [form_of(cells, *self._marks_given) for cells in columns]
        forms = [
            replace(form, words=(*form.words, *words), is_whole=form.is_whole and not words)
            for form, words in zip(forms, self._declared, strict=True)
        ]
        forms = [_dated(form, dates) for form in settled(forms)]
        self.forms = settled([_assumed(form, self.layout.delimiter) for form in forms])
        self.whole = frozenset(j for j, form in enumerate(self.forms) if form.is_whole)
        kinds = [(j, form.kind) for j, form in enumerate(self.forms)]
        self.texts = {j: f"text ({forms[j].sample[:40]!r})" for j, kind in kinds if kind == "text"}
        self.beside = {j: "empty" for j, kind in kinds if kind == "empty"}
        if dates is None:
            self.beside |= {j: "dates" for j, kind in kinds if kind == "date"}
        self.beside |= identifiers(self.names, {j: columns[j] for j in self.whole}, columns)
        sure = [form for form in self.forms if form.kind == "number" and not form.choices]
        known = {form.marks.decimal for form in sure} - {""}
        self.decimal = "".join(known) if len(known) == 1 else ""

    def how_read(self, wanted: Sequence[int]) -> str:
        """Return how numbers of these columns are written, where that is not plain."""
        forms = described((self.names[j], self.forms[j]) for j in wanted)
        return "; ".join(filter(None, [*forms, *self.how_divided(), self.layout.doubt]))

    def unit(self, number: int) -> str | None:
        """Return the currency or percent sign of a column, None if its first rows are empty."""
        form = self.forms[number]
        return None if form.kind == "empty" else form.currency or "%" * form.has_percent

    def how_divided(self) -> list[str]:
        """Return what of the text is left out, and its encoding if that had to be found."""
        is_found = self.encoding != "utf8" and not self._is_encoding_given
        return self.layout.left_out + [f"encoding {self.encoding}"] * is_found

    def as_table(self) -> Any:
        """Return all columns as they are written, a table of Arrow strings."""
        pa, csv_of = pyarrow_part(), pyarrow_part("csv")
        wanted: dict[int, Form | None] = dict.fromkeys(range(len(self.names)))
        problem, below, end = "", list[str](), self._end()

        def leave_out(row: Any) -> str:
            _, found, after = end.rpartition(row.text)
            is_last = bool(found) and self.layout.delimiter not in after
            is_below = row.actual_columns == 1 and is_last and not is_number(row.text)
            below.extend([row.text] * is_below)
            return "skip" if is_below else "error"

        for has_long_cells in (False, True):
            options = self._options(wanted, has_long_cells=has_long_cells)
            options["convert_options"].strings_can_be_null = False
            options["parse_options"].invalid_row_handler = leave_out
            below.clear()
            try:
                table = csv_of.read_csv(self._stream(), **options)
            except UnicodeError as error:
                raise in_other_encoding(self.name, self.encoding, error) from None
            except pa.ArrowInvalid as error:
                problem = str(error)
                continue
            if not table.num_rows:
                raise NoRowsError(f"{self.name} has a header and no rows")
            said = f"{counted(len(below), 'line')} below the table left out"
            self.layout.left_out.extend([said] * bool(below))
            columns = [column.cast(pa.string(), safe=False) for column in table.columns]
            return pa.table(columns, names=list(self.names))
        raise self._explained(problem)

    def _end(self) -> str:
        with open(self.path, "rb") as file:
            file.seek(max(self.path.stat().st_size - 2**11, 0))
            return file.read().decode(self.encoding, errors="replace")

    def fits_float32(self, wanted: Sequence[int]) -> bool:
        """Return False: text has no precision of its own."""
        return False

    def blocks(
        self,
        wanted: Sequence[int],
        dtype: np.dtype[np.floating[Any]],
        first_row: int = 0,
        at_once: int | None = None,
    ) -> Iterator[Points]:
        """Yield these columns from a row on, some rows at a time."""
        for block in from_row(first_row, self._all_blocks(wanted)):
            yield block.astype(dtype, copy=False)

    def _all_blocks(self, wanted: Sequence[int]) -> Iterator[Points]:
        n_given, forms, has_long_cells = 0, self._forms_of(wanted), False
        while True:
            try:
                blocks = self._blocks(wanted, forms, has_long_cells=has_long_cells)
                for block in from_row(n_given, blocks):
                    n_given += len(block)
                    yield block
                self._tell_words(forms)
                return
            except NotInForm as error:
                forms = self._with_words(error, forms)
            except UnicodeError as error:
                raise in_other_encoding(self.name, self.encoding, error) from None
            except pyarrow_part().ArrowInvalid as error:
                # Try without cells of several lines first: they are rare, and slow to look for.
                if forms != (forms := self._with_later_cells(str(error), forms, wanted)):
                    continue
                if has_long_cells:
                    raise self._explained(str(error)) from None
                has_long_cells = True

    def _forms_of(self, wanted: Sequence[int]) -> dict[int, Form]:
        """Return the forms of these columns; raise if one of them is in doubt."""
        forms = {number: self.forms[number] for number in wanted}
        for number, form in forms.items():
            if form.choices:
                raise self._in_doubt(number, form.sample, form.choices)
            if form.kind == "date" and not form.order:
                raise TableError(
                    f'{self.name}: column "{self.names[number]}" has {form.sample!r}, which may '
                    "begin with the day or the month",
                    *("pass ", Argument("dates", "day-first")),
                    *(" or ", Argument("dates", "month-first")),
                )
        return forms

    def _in_doubt(self, number: int, cell: str, choices: Sequence[Marks]) -> TableError:
        readings = " or ".join(f"{marks.value(cell):.12g}" for marks in choices)
        mark = next(each for each in cell if each in ".,")
        return TableError(
            f'{self.name}: column "{self.names[number]}" has {cell!r}, which may be {readings}',
            *("pass ", Argument("decimal", mark), " or ", Argument("thousands", mark)),
        )

    def _with_later_cells(
        self, problem: str, forms: dict[int, Form], wanted: Sequence[int]
    ) -> dict[int, Form]:
        """Return the forms after words for missing values, or a fraction after whole numbers."""
        if not (found := _INVALID.search(problem)):
            return forms
        number, form = int(found[1]), forms[int(found[1])]
        if is_word(found[2]):
            words = words_for_missing(self._words_in(number))
            later = replace(form, words=words, is_whole=False)
            return forms | {number: later} if words else forms
        if not _is_int64(form):
            return forms
        cell = self._place_of(found[2], number)[0].strip()
        form = form_of([cell], *self._marks_given)
        if form.choices:
            raise self._in_doubt(number, cell, form.choices)
        if form.kind != "number" or not form.is_plain:
            return forms
        fraction = Form("number", Marks(form.marks.decimal or "."))
        return dict(zip(wanted, settled([*(forms[j] for j in wanted), fraction]), strict=False))

    def _blocks(
        self, wanted: Sequence[int], forms: dict[int, Form], *, has_long_cells: bool
    ) -> Iterator[Points]:
        options = self._options(forms, has_long_cells=has_long_cells)
        first_row, converted = 1, self._converted(forms)
        with self._opened(options) as batches:
            for batch in batches:
                columns = dict(zip(forms, batch.columns, strict=True))
                for number in converted:
                    columns[number] = values_of(columns[number], forms[number], number, first_row)
                yield matrix_of([columns[number] for number in wanted], np.dtype(np.float64))
                first_row += batch.num_rows

    def _converted(self, forms: dict[int, Form]) -> list[int]:
        """Return the columns that PyArrow cannot convert, which knows one decimal mark at once."""
        point = _decimal_of(forms.values())
        return [
            number
            for number, form in forms.items()
            if form.kind not in ("number", "empty")
            or not form.is_plain
            or form.words
            or form.marks.decimal not in ("", point)
        ]

    def _with_words(self, error: NotInForm, forms: dict[int, Form]) -> dict[int, Form]:
        """Return the forms with words for missing values that the first rows lack, or raise."""
        form = forms[error.number]
        words = words_for_missing(self._words_in(error.number)) if is_word(error.value) else ()
        if form.kind != "number" or set(words) <= set(form.words):
            raise self._in_other_form(error, error.number, form) from None
        return forms | {error.number: replace(form, words=words)}

    def _words_in(self, number: int) -> Counter[str]:
        """Count the words in a column of numbers."""
        pc, found = pyarrow_part("compute"), Counter[str]()
        for chunk in self._column(number):
            words = pc.filter(chunk, pc.invert(pc.match_substring_regex(chunk, r"[0-9]")))
            for each in pc.value_counts(words).to_pylist():
                word = each["values"].decode(errors="replace").strip()
                found[word] += each["counts"] * (word not in NO_VALUE)
        return +found

    def _tell_words(self, forms: dict[int, Form]) -> None:
        """Warn once of words that were taken for missing values."""
        said = []
        for number, form in forms.items():
            if words := set(form.words) - self._declared[number]:
                counts = self._words_in(number)
                said += [
                    f'"{word}" in "{self.names[number]}" ({counted(counts[word], "row")})'
                    for word in form.words
                    if word in words
                ]
        if said and not self._told:
            self._told.update(said)
            warn_caller(f"{self.name}: taken for missing values: {', '.join(said)}")

    def _in_other_form(self, error: NotInForm, number: int, form: Form) -> TableError:
        said = f" {form}" if str(form) else ""
        return TableError(
            f'{self.name}: column "{self.names[number]}" has {error.value[:40]!r} in row '
            f"{error.row} of the data, where the first rows are read{said}",
            *("correct it, pass ", Argument("decimal"), " or ", Argument("thousands")),
            *(", or leave the column out with ", Argument("columns")),
        )

    def _opened(self, options: dict[str, Any]) -> Any:
        return pyarrow_part("csv").open_csv(self._stream(), **options)

    def _stream(self) -> Any:
        if self.layout.has_blanks:
            return _OneBlank(self.path, self.encoding)
        # PyArrow would unpack a path that ends in .gz, whatever the file holds.
        return pyarrow_part().input_stream(self.path, compression=None)

    def _column(self, number: int) -> Iterator[Any]:
        """Yield one column as bytes, in order, so that a fault is found at its row."""
        with self._opened(self._options({number: None}, in_order=True)) as read:
            for batch in read:
                yield batch.column(0)

    def _options(
        self,
        forms: Mapping[int, Form | None],
        *,
        has_long_cells: bool = False,
        in_order: bool = False,
    ) -> dict[str, Any]:
        csv_of, pa = pyarrow_part("csv"), pyarrow_part()
        known = {number: form for number, form in forms.items() if form is not None}
        types = dict.fromkeys(map(str, forms), pa.binary())
        for number, form in known.items():
            types[str(number)] = pa.int64() if _is_int64(form) else pa.float64()
        types |= {str(j): pa.string() for j in self._converted(known)}
        return {
            "read_options": csv_of.ReadOptions(
                column_names=[str(number) for number in range(len(self.names))],
                skip_rows=self.layout.n_skipped,
                encoding="utf8" if self.layout.has_blanks else self.encoding,
                use_threads=not in_order,
                block_size=self._block_bytes,
            ),
            "parse_options": csv_of.ParseOptions(
                delimiter=self.layout.delimiter, newlines_in_values=has_long_cells
            ),
            "convert_options": csv_of.ConvertOptions(
                column_types=types,
                include_columns=list(types),
                null_values=NO_VALUE,
                strings_can_be_null=not in_order,
                decimal_point=_decimal_of(known.values()),
                check_utf8=False,
            ),
        }

    def _place_of(self, value: str, number: int) -> tuple[str, int]:
        """Return a value of an error of PyArrow as the file has it, and its row."""
        row = 1
        for chunk in self._column(number):
            for cell in chunk.to_pylist():
                if cell is not None and cell.decode(errors="replace").strip() == value.strip():
                    return cell.decode("latin-1" if "\ufffd" in value else "utf8"), row
                row += 1
        return value, 0

    def _explained(self, problem: str) -> TableError:
        """Return an error with the place of a problem of PyArrow, found by a second reading."""
        if found := _INVALID.search(problem):
            number = int(found[1])
            value, row = self._place_of(found[2], number)
            code = Argument("missing_values", [f"{self.names[number]}={value}"])
            as_missing = ("; ", code, " reads it as missing") if "\ufffd" not in found[2] else ()
            return TableError(
                f'{self.name}: column "{self.names[number]}" has {value[:40]!r} in row {row} of '
                f"the data, which is no number{self._mark_of_others(value, number)}",
                *("correct it, or leave the column out with ", Argument("columns"), *as_missing),
            )
        try:
            for _ in self._column(0):
                pass
        except ValueError as error:
            problem = str(error)
        if found := re.search(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)", problem):
            row = int(found[1]) if found[1] else 0
            cells = counted(int(found[3]), "cell")
            where = f"row {row - self.layout.n_skipped} of the data" if row else "a row"
            return TableError(
                f"{self.name}: {where} has {cells} where {found[2]} are expected",
                *("correct it, or pass the right ", Argument("delimiter")),
            )
        return TableError(f"{self.name} cannot be read: {problem.splitlines()[0][:200]}")

    def _mark_of_others(self, value: str, number: int) -> str:
        marks = self.forms[number].marks
        if not is_number(value.strip()) or not marks.decimal:
            return ""
        return f' with the decimal mark "{marks.decimal}" of the first rows'


def _declared_words(given: Sequence[str] | None, names: Sequence[str], name: str) -> list[set[str]]:
    """Return the words that were declared missing in each column."""
    found: list[set[str]] = [set() for _ in names]
    for columns, value in declared_missing(given, names, name):
        if not is_number(value) or value in NO_VALUE:
            for number in columns:
                found[number].add(value)
    return found


def _is_int64(form: Form) -> bool:
    """Return whether a column is read as whole numbers, since no fraction shows its mark."""
    return form.kind == "number" and form.is_whole and not form.marks.decimal


def _decimal_of(forms: Iterable[Form]) -> str:
    plain = [form.marks.decimal for form in forms if form.kind == "number" and form.is_plain]
    return "," if "," in plain else "."


def _dated(form: Form, dates: Dates | None) -> Form:
    is_open = form.kind == "date" and form.order != "year-first"
    return replace(form, order=dates) if is_open and dates in ("day-first", "month-first") else form


def _assumed(form: Form, delimiter: str) -> Form:
    """Settle a mark in doubt by the delimiter: semicolons come with decimal commas."""
    likely = "," if delimiter == ";" else "."
    mark = next((each for each in form.sample if each in ".,"), "")
    fitting = [marks for marks in form.choices if marks.decimal == likely == mark]
    return chosen(form, fitting[0], is_assumed=True) if fitting and not form.likely else form


class _OneBlank(io.RawIOBase):
    """A text whose columns are separated by blanks, read as if by one blank each."""

    def __init__(self, path: Path, encoding: str) -> None:
        file = io.BufferedReader(io.FileIO(path))
        is_utf8 = encoding == "utf8"
        self._file: Any = file if is_utf8 else codecs.EncodedFile(file, "utf8", encoding)
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, place: Any) -> int:
        while not self._left and (lines := self._file.read(_BLOCK_BYTES)):
            self._left = without_blanks(lines + self._file.readline())
        part, self._left = self._left[: len(place)], self._left[len(place) :]
        place[: len(part)] = part
        return len(part)

    def close(self) -> None:
        self._file.close()
        super().close()
