"""CSV, TSV and similar text, in batches of texts as they are written."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from powermeans.errors import Argument, TableError, counted
from powermeans.scale.limits import refuse_long_line
from powermeans_tables.cells.arrow import csv, pa
from powermeans_tables.cells.number_forms import is_number
from powermeans_tables.reading import text_form
from powermeans_tables.reading.damage import NoRowsError
from powermeans_tables.reading.table import File, Rows

_BLOCK_BYTES = 2**20
_MOST_COLUMNS = 100_000
_MOST_BELOW = 10_000  # lines below the table, of all readings


def read(file: File) -> Rows:
    """Return the rows of a text; its first lines tell how it is divided."""
    text, has_mark = _Text(file), file.start.startswith(codecs.BOM_UTF8)
    layout = text.layout
    return Rows(
        name=file.name,
        names=layout.names,
        read=text.batches,
        how_read=text.how_read,
        doubts=layout.doubts,
        likely_decimal="," if layout.delimiter == ";" else "",
        delimiter=layout.delimiter,
        encoding="utf-8-sig" if has_mark else text.encoding,
    )


class _Text:
    """A text that Arrow divides into columns of strings, from its start each time."""

    def __init__(self, file: File) -> None:
        self.path, self.name = file.path, file.name
        n_bytes = self.path.stat().st_size
        if n_bytes < 2**20 and not self.path.read_bytes().strip():
            # Any other kind of file has at least a header.
            is_table = self.path.suffix.lower() in (".csv", ".tsv", ".txt")
            raise (NoRowsError if is_table else TableError)(f"{self.name} is empty")
        with open(self.path, "rb") as stored:
            start = text_form.first_bytes(stored)
        encoding, is_cut = file.options.get("encoding"), len(start) < n_bytes
        lines, self.encoding = text_form.sample_lines(start, self.name, encoding, is_cut=is_cut)
        refuse_long_line(self.name, max(map(len, lines), default=0))
        delimiter, header = (file.options.get(name) for name in ("delimiter", "header"))
        self.layout = text_form.Layout.of(lines, self.name, delimiter, header)
        if len(self.layout.names) > _MOST_COLUMNS:
            raise TableError(
                f"{self.name} has {len(self.layout.names):,} columns, and of a text at most "
                f"{_MOST_COLUMNS:,} are read: if its rows are columns, transpose it, or pass a "
                "file of NumPy"
            )
        longest = max(map(len, lines[self.layout.n_skipped :]), default=0)
        # Every block costs each column, of which long rows have many.
        self._block_bytes = max(_BLOCK_BYTES, 4 * longest, min(64 * longest, 32 * _BLOCK_BYTES))
        self._has_long_cells = False
        with open(self.path, "rb") as stored:
            stored.seek(max(n_bytes - 2**11, 0))
            self._end = stored.read().decode(self.encoding, errors="replace")
        self._below, self._n_passed = set[str](), 0
        is_found = self.encoding != "utf8" and encoding is None
        said = f"encoding {self.encoding} (--encoding, if letters are wrong)"
        self.how_read = self.layout.left_out + [said] * is_found

    def batches(self) -> Iterator[Any]:
        """Yield all rows; cells of several lines are rare and slow to look for, so not at first."""
        n_given = 0
        while True:
            try:
                for batch in _from_row(n_given, self._batches()):
                    n_given += batch.num_rows
                    yield batch
                break
            except UnicodeError as error:
                raise text_form.in_other_encoding(self.name, self.encoding, error) from None
            except pa.ArrowInvalid as error:
                if "UTF8" in str(error):
                    raise text_form.in_other_encoding(self.name, self.encoding, error) from None
                if self._has_long_cells:
                    raise self._explained(str(error)) from None
                self._has_long_cells = True
        if not n_given:
            raise NoRowsError(f"{self.name} has a header and no rows")
        said = f"{counted(len(self._below), 'line')} below the table left out"
        self.how_read += [said] * (bool(self._below) and said not in self.how_read)

    def _batches(self, *, in_order: bool = False) -> Iterator[Any]:
        names, layout = list(self.layout.names), self.layout
        keys = [str(number) for number in range(len(names))]
        with csv.open_csv(
            self._stream(),
            read_options=csv.ReadOptions(
                column_names=keys,
                skip_rows=layout.n_skipped,
                encoding="utf8" if layout.has_blanks else self.encoding,
                use_threads=not in_order,
                block_size=self._block_bytes,
            ),
            parse_options=csv.ParseOptions(
                delimiter=layout.delimiter,
                newlines_in_values=self._has_long_cells,
                invalid_row_handler=None if in_order else self._passed_over,
            ),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(keys, pa.string()),
                # For texts these do nothing, and every column would have tables of its own of them.
                **dict.fromkeys(("null_values", "true_values", "false_values"), ()),
            ),
        ) as read:
            for batch in read:
                yield pa.RecordBatch.from_arrays(batch.columns, names=names)

    def _passed_over(self, row: Any) -> str:
        """Skip a row of one cell that is a line below the table, such as a source."""
        _, found, after = self._end.rpartition(row.text)
        is_last = bool(found) and self.layout.delimiter not in after
        if row.actual_columns > 1 or not is_last or is_number(row.text):
            return "error"
        self._below.add(row.text)
        self._n_passed += 1
        return "skip" if self._n_passed < _MOST_BELOW else "error"

    def _stream(self) -> Any:
        if self.layout.has_blanks:
            return _OneBlank(self.path, self.encoding)
        # PyArrow would unpack a path that ends in .gz, whatever the file holds.
        return pa.input_stream(self.path, compression=None)

    def _explained(self, problem: str) -> TableError:
        """Return an error with the row of a problem of PyArrow, found by a second reading."""
        try:
            for _ in self._batches(in_order=True):
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


def _from_row(first_row: int, batches: Iterator[Any]) -> Iterator[Any]:
    """Yield batches without the rows before `first_row`."""
    for batch in batches:
        n_passed = min(first_row, batch.num_rows)
        first_row -= n_passed
        if n_passed < batch.num_rows:
            yield batch.slice(n_passed)


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
            self._left = text_form.without_blanks(lines + self._file.readline())
        part, self._left = self._left[: len(place)], self._left[len(place) :]
        place[: len(part)] = part
        return len(part)

    def close(self) -> None:
        self._file.close()
        super().close()
