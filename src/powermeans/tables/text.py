"""Columns from CSV, TSV and similar text."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from powermeans.errors import Argument
from powermeans.tables.arrow import matrix_of, pyarrow_part
from powermeans.tables.table import NoRowsError, TableError, distinct
from powermeans.tables.text_form import (
    NO_VALUE,
    are_whole,
    cells_of,
    columns_apart,
    comma_in,
    has_names,
    is_in_doubt,
    sample_lines,
    sniffed,
    text_in,
    without_blanks,
)
from powermeans.types import Points

_BLOCK_BYTES = 2**20
_COUNTED_AT_ONCE = 2**20


@dataclass(frozen=True)
class Text:
    """A reader of a text of columns."""

    name: str
    path: Path
    names: Sequence[str]
    texts: dict[int, str]
    whole: frozenset[int]
    delimiter: str
    n_skipped: int
    commas: dict[int, str]
    decimal: str | None
    encoding: str
    has_blanks: bool
    index: ClassVar[frozenset[int]] = frozenset()

    @classmethod
    def of(
        cls,
        path: Path,
        name: str,
        start: bytes,
        delimiter: str | None = None,
        header: bool | None = None,
        decimal: str | None = None,
    ) -> Text:
        """Find the form of a text from its first lines."""
        lines, encoding = sample_lines(start, name)
        mark = delimiter or sniffed(lines, decimal)
        apart = columns_apart(lines, mark)
        rows, n_lines_of_first = cells_of(apart, mark)
        has_header = has_names(rows) if header is None else header
        body = rows[1:] if has_header else rows
        if not body:
            raise NoRowsError(f"{name} has a header and no rows")
        n_columns = len(rows[0])
        names = distinct(rows[0] if has_header else [""] * n_columns)
        columns = [[row[j].strip() for row in body if len(row) > j] for j in range(n_columns)]
        commas = {j: cell for j, cells in enumerate(columns) if (cell := comma_in(cells))}
        points = [decimal or ("," if j in commas else ".") for j in range(n_columns)]
        return cls(
            name,
            path,
            names,
            {j: text for j, cells in enumerate(columns) if (text := text_in(cells, points[j]))},
            frozenset(j for j, cells in enumerate(columns) if are_whole(cells)),
            mark,
            n_lines_of_first if has_header else 0,
            commas,
            decimal,
            encoding,
            apart is not lines,
        )

    def read(self, wanted: Sequence[int]) -> Points:
        """Return these columns."""
        # There are at most as many rows as lines; rows that are never written take no memory.
        points, end = np.empty((self._most_rows(), len(wanted))), 0
        for block in self.blocks(wanted):
            start, end = end, end + len(block)
            points[start:end] = block
        if not end:
            raise NoRowsError(f"{self.name} has a header and no rows")
        return points[:end]

    def blocks(self, wanted: Sequence[int]) -> Iterator[Points]:
        """Yield these columns, some rows at a time."""
        n_given = 0
        try:
            # Try without cells of several lines first: they are rare, and slow to look for.
            try:
                for block in self._blocks(wanted, has_long_cells=False):
                    n_given += len(block)
                    yield block
            except pyarrow_part().ArrowInvalid:
                n_before = n_given
                for block in self._blocks(wanted, has_long_cells=True):
                    if len(block) > n_before:
                        yield block[n_before:]
                    n_before = max(0, n_before - len(block))
        except pyarrow_part().ArrowInvalid as error:
            raise self._explained(str(error)) from None

    def _blocks(self, wanted: Sequence[int], *, has_long_cells: bool) -> Iterator[Points]:
        options = self._options(wanted, pyarrow_part().float64(), has_long_cells=has_long_cells)
        with self._opened(options) as batches:
            for batch in batches:
                yield matrix_of(batch, range(len(wanted)), np.dtype(np.float64))

    def _opened(self, options: dict[str, Any]) -> Any:
        read = pyarrow_part("csv").open_csv
        return read(_OneBlank(self.path) if self.has_blanks else self.path, **options)

    def _most_rows(self) -> int:
        """Return the number of lines; a row may take several."""
        n_feeds = n_returns = 0
        with open(self.path, "rb") as file:
            while block := file.read(_COUNTED_AT_ONCE):
                n_feeds, n_returns = n_feeds + block.count(b"\n"), n_returns + block.count(b"\r")
        return max(n_feeds, n_returns) + 1

    def _column(self, number: int) -> Iterator[Any]:
        """Yield one column as bytes, in order, so that a fault is found at its row."""
        with self._opened(self._options([number], pyarrow_part().binary(), in_order=True)) as read:
            for batch in read:
                yield batch.column(0)

    def _options(
        self,
        wanted: Sequence[int],
        kind: Any,
        *,
        has_long_cells: bool = False,
        in_order: bool = False,
    ) -> dict[str, Any]:
        csv_of = pyarrow_part("csv")
        keys = [str(number) for number in range(len(self.names))]
        asked = [keys[number] for number in wanted]
        return {
            "read_options": csv_of.ReadOptions(
                column_names=keys,
                skip_rows=self.n_skipped,
                encoding=self.encoding,
                use_threads=not in_order,
                block_size=_BLOCK_BYTES,
            ),
            "parse_options": csv_of.ParseOptions(
                delimiter=self.delimiter, newlines_in_values=has_long_cells
            ),
            "convert_options": csv_of.ConvertOptions(
                column_types=dict.fromkeys(asked, kind),
                include_columns=asked,
                null_values=NO_VALUE,
                decimal_point=self._decimal_of(wanted),
                check_utf8=False,
            ),
        }

    def _decimal_of(self, wanted: Sequence[int]) -> str:
        """Return the decimal mark of these columns."""
        cells = [(self.commas[number], number) for number in wanted if number in self.commas]
        if self.decimal is not None or not cells:
            return self.decimal or "."
        if self.delimiter != ";" and all(is_in_doubt(cell) for cell, _ in cells):
            cell, number = cells[0]
            raise TableError(
                f'{self.name}: column "{self.names[number]}" has {cell!r}, in which the comma may '
                "stand before a fraction or between thousands",
                "pass ",
                Argument("decimal", ","),
                " for fractions, or write the numbers without commas",
            )
        return ","

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
        if found := re.search(r"column #(\d+).*invalid value '(.*)'", problem, re.DOTALL):
            number = int(found[1])
            value, row = self._place_of(found[2], number)
            return TableError(
                f'{self.name}: column "{self.names[number]}" has {value[:40]!r} in row {row}, '
                "which is no number",
                "correct it, or leave the column out with ",
                Argument("columns"),
            )
        try:
            for _ in self._column(0):
                pass
        except ValueError as error:
            problem = str(error)
        if found := re.search(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)", problem):
            row = int(found[1]) if found[1] else 0
            where = f"row {row - bool(self.n_skipped)}" if row else "a row"
            return TableError(
                f"{self.name}: {where} has {found[3]} cells where {found[2]} are expected",
                "correct it, or pass the right ",
                Argument("delimiter"),
            )
        return TableError(f"{self.name} cannot be read: {problem.splitlines()[0][:200]}")


class _OneBlank(io.RawIOBase):
    """A text whose columns are separated by blanks, read as if by one blank each."""

    def __init__(self, path: Path) -> None:
        self._file = io.BufferedReader(io.FileIO(path))
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
