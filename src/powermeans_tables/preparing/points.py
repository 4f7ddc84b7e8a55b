"""The rows of a table as numbers: one pass over its batches, into memory or a temporary file."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from powermeans.errors import TableError
from powermeans.mathematics.sums import ColumnMoments, added
from powermeans.points.needs import Tell
from powermeans.scale.spooled import Spool
from powermeans.system.arrow import pyarrow_part
from powermeans.system.free_memory import fits_into_memory
from powermeans.types import FloatArray, IndexArray
from powermeans_tables.cells.column import Cells, one_array
from powermeans_tables.preparing import features
from powermeans_tables.preparing.kinds import NUMBERS, WORDS, Column
from powermeans_tables.reading.table import Table

# Rows are added up by blocks of this length, so that no bit depends on how they come.
_ROWS_AT_ONCE = 2**16
_MOST_TOLD = 1_000  # different cells of a column that are no numbers


@dataclass(frozen=True, slots=True)
class Use:
    """Which rows of a table become points, and with which weights."""

    weights: str | None = None
    skipped: Sequence[int] = ()  # rows, from 0
    lacking: Literal["keep", "any", "all"] = "keep"  # values, for want of which a row is left out


@dataclass
class Encoder:
    """The columns that count, as numbers, batch after batch and always in the same way."""

    columns: Sequence[Column]
    cells: Mapping[str, Cells]  # of some rows, which tell how all are read
    unread: dict[str, Counter[str]] = field(default_factory=dict)  # cells that are no numbers
    unknown: dict[str, Counter[str]] = field(default_factory=dict)  # words that no fit has seen

    def raw(self, batch: Any, row_in_words: Callable[[int], str]) -> FloatArray:
        """Return the numbers of all rows of a batch; note what cannot be read."""
        every = {name: self._cells_of(name, batch) for name in self.cells}
        for name, cells in every.items():
            if cells.type in ("number", "date") and (row := cells.infinite) is not None:
                raise TableError(
                    f'column "{name}" has {cells.texts[row].as_py()} in {row_in_words(row)}',
                    "correct it, or leave the row or the column out",
                )
        found = []
        for column in self.columns:
            cells = every[column.name]
            found.append(features.encode(column, cells, every.get(column.other)))
            self._note(column, cells)
        return np.column_stack(found)

    def _cells_of(self, name: str, batch: Any) -> Cells:
        some = self.cells[name]
        found = some.reading if some.is_text else None
        return replace(some, array=one_array(batch.column(name)), found=found, more=())

    def _note(self, column: Column, cells: Cells) -> None:
        if column.kind in WORDS and column.words:
            lost = {word: n for word, n in cells.counts.items() if word not in column.words}
            seen = self.unknown.setdefault(column.name, Counter())
        else:
            lost, seen = cells.unread(), self.unread.setdefault(column.name, Counter())
        if lost and len(seen) < _MOST_TOLD:
            seen.update(lost)

    def dtype_in(self, table: Table) -> Any:
        """Return float32 where all columns are numbers of at most that width, else float64."""
        pa = pyarrow_part()
        heads = [head for _, head in table.heads()]
        kinds = {head.column(column.name).type for column in self.columns for head in heads}
        are_numbers = all(column.kind == "number" for column in self.columns)
        return np.float32 if are_numbers and kinds <= {pa.float32(), pa.float16()} else np.float64

    def learned(self) -> Encoder | None:
        """Return another one that reads more of the cells that were no numbers, if one does."""
        cells = dict(self.cells)
        for name, words in self.unread.items():
            some = self.cells[name]
            if words and some.is_text and some.array is not None:
                more = replace(some, more=[*some.more, *words])
                if more.reading != some.reading and more.type == some.type:
                    cells[name] = more
        return None if cells == self.cells else Encoder(self.columns, cells)


@dataclass
class RawRows:
    """Rows of a table as numbers before they are scaled, and what is known of them."""

    table: Table
    encoder: Encoder
    is_used: NDArray[np.bool_]  # of all rows of the table
    has_weights: bool
    raw: Any  # an array, or a `Spool`, whose last column then has the weights
    dtype: np.dtype[Any]  # of the points
    weights: FloatArray | None  # of the rows in memory
    n_lacking: Any  # of the values of each feature, in the rows before any was left out
    lacking_row: int | None = None  # the first row, from 0, that lacks a value or a weight
    lacking_place: int = 0  # the first of the features that it lacks
    n_rows_lacking: int = 0
    has_missing: bool = False  # whether rows that are used lack values
    n_without_value: int = 0  # rows that lack all
    weight_lacking: int | None = None  # the first row without a weight

    def count_lacking(self, lacks: Any, is_missing: NDArray[np.bool_], numbers: IndexArray) -> None:
        """Count rows that lack something, and remember the first."""
        if self.lacking_row is None and lacks.any():
            self.lacking_row = int(numbers[np.argmax(lacks)])
            self.lacking_place = int(np.argmax(is_missing[np.argmax(lacks)]))
        self.n_rows_lacking += int(np.count_nonzero(lacks))

    def blocks(self) -> Iterator[tuple[FloatArray, FloatArray | None]]:
        """Yield the numbers and weights of some rows at a time."""
        if isinstance(self.raw, np.ndarray):
            yield from blocks_of(self.raw, self.weights)
            return
        for start in range(0, self.raw.n_rows, _ROWS_AT_ONCE):
            part = slice(start, min(start + _ROWS_AT_ONCE, self.raw.n_rows))
            rows = self.raw.rows(part)
            yield (rows[:, :-1], rows[:, -1]) if self.has_weights else (rows, None)

    def scale(self, offsets: FloatArray, scales: FloatArray) -> None:
        """Replace the numbers by points."""
        if not isinstance(self.raw, np.ndarray):
            self.change(lambda rows: (rows - offsets) / scales)
            return
        for block, _ in self.blocks():  # in place, with the bits of the temporary file
            block[...] = (block - offsets) / scales

    def change(self, change: Callable[[FloatArray], FloatArray]) -> None:
        """Replace the numbers of some rows at a time."""
        if isinstance(self.raw, np.ndarray):
            self.raw = change(self.raw)
        elif self.has_weights:
            self.raw.change(
                lambda rows: np.column_stack([change(rows[:, :-1]), rows[:, -1]]), _ROWS_AT_ONCE
            )
        else:
            self.raw.change(change, _ROWS_AT_ONCE)

    @property
    def n_bytes(self) -> int:
        """The memory that the numbers take or would take."""
        n_bytes: int = self.dtype.itemsize * len(self.n_lacking) * int(self.is_used.sum())
        return n_bytes


def blocks_of(
    raw: FloatArray, weights: FloatArray | None
) -> Iterator[tuple[FloatArray, FloatArray | None]]:
    """Yield some rows of an array at a time, with their weights."""
    for start in range(0, len(raw), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        yield raw[part], None if weights is None else weights[part]


def read_rows(
    table: Table,
    encoder: Encoder,
    use: Use,
    *,
    weights_of: Encoder | None = None,
    in_parts: bool | None = None,
    dtype: Any = None,
    tell: Tell | None = None,
) -> RawRows:
    """Read all rows; again where later cells show how columns are to be read.

    They are read into memory where they fit, unless `in_parts` says where to; by default in
    float32 if all columns are.
    """
    dtype = np.dtype(dtype or encoder.dtype_in(table))
    if in_parts is None:
        width = sum(len(features.names_of(column)) for column in encoder.columns)
        in_parts = not fits_into_memory(dtype.itemsize * table.n_rows * width)
    for _ in range(3):
        rows = _pass(table, encoder, use, weights_of, dtype, in_parts=in_parts, tell=tell)
        if (other := encoder.learned()) is None:
            break
        encoder = other
    return rows


def _pass(
    table: Table,
    encoder: Encoder,
    use: Use,
    weights_of: Encoder | None,
    dtype: Any,
    *,
    in_parts: bool,
    tell: Tell | None,
) -> RawRows:
    width = sum(len(features.names_of(column)) for column in encoder.columns)
    is_used = np.ones(table.n_rows, dtype=bool)
    is_used[[*use.skipped, *table.totals]] = False
    has_weights, n_all = weights_of is not None, table.n_rows
    raw: Any = np.empty((0 if in_parts else n_all, width), dtype)
    if in_parts:
        raw = Spool(width + has_weights, np.float64 if has_weights else dtype)
    weights = np.empty(n_all) if has_weights and not in_parts else None
    lacking = np.zeros(width, dtype=np.intp)
    found = RawRows(table, encoder, is_used, has_weights, raw, dtype, weights, lacking)
    start, n_kept = 0, 0
    for batch in table.batches():
        rows = slice(start, start + batch.num_rows)
        given = np.flatnonzero(is_used[rows])
        if len(given) < batch.num_rows:
            batch = batch.take(pyarrow_part().array(given))
        say = functools.partial(_row_in_words, table, start + given)
        block = encoder.raw(batch, say)
        is_missing = np.isnan(block)
        lacks, lacks_all = is_missing.any(axis=1), is_missing.all(axis=1)
        found.n_lacking += is_missing.sum(axis=0)
        found.n_without_value += int(np.count_nonzero(lacks_all))
        if weights_of is not None:
            of_rows = weights_of.raw(batch, say)[:, 0]
            _refuse_weights(of_rows, weights_of.columns[0].name, say)
            lacks_weight = np.isnan(of_rows)
            if found.weight_lacking is None and lacks_weight.any():
                found.weight_lacking = start + int(given[np.argmax(lacks_weight)])
            lacks, lacks_all = lacks | lacks_weight, lacks_all | lacks_weight
        found.count_lacking(lacks, is_missing, start + given)
        kept = ~{"keep": np.zeros_like(lacks), "any": lacks, "all": lacks_all}[use.lacking]
        is_used[start + given] = kept
        block = (block if kept.all() else block[kept]).astype(dtype, copy=False)
        found.has_missing |= bool(is_missing[kept].any())
        part = slice(n_kept, n_kept + len(block))
        if in_parts:
            raw.add(np.column_stack([block, of_rows[kept]]) if has_weights else block)
        else:
            raw[part] = block
        if weights is not None:
            weights[part] = of_rows[kept]
        n_kept, start = part.stop, rows.stop
        if tell is not None:
            tell(start, n_all)
    if not in_parts:
        found.raw, found.weights = raw[:n_kept], None if weights is None else weights[:n_kept]
    return found


def _row_in_words(table: Table, numbers: IndexArray, row: int) -> str:
    return table.row(numbers[row])


def _refuse_weights(weights: FloatArray, name: str, row_in_words: Callable[[int], str]) -> None:
    is_bad = weights < 0
    if is_bad.any():
        row = int(np.argmax(is_bad))
        raise TableError(
            f'column "{name}" has {weights[row]:g} in {row_in_words(row)}, which is no weight: '
            "weights are finite and not negative"
        )


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """The least and the largest entry of each column, NaN if it has none; ranges of parts add."""

    lowest: FloatArray
    highest: FloatArray

    def __add__(self, other: ColumnRange) -> ColumnRange:
        return ColumnRange(np.fmin(self.lowest, other.lowest), np.fmax(self.highest, other.highest))


@dataclass(frozen=True, slots=True)
class Spread:
    """How far the numbers of columns spread; the spreads of some rows and of others add."""

    moments: ColumnMoments
    range: ColumnRange
    sums: ColumnRange  # of the numbers of a row

    def __add__(self, other: Spread) -> Spread:
        return Spread(
            self.moments + other.moments, self.range + other.range, self.sums + other.sums
        )

    @property
    def means(self) -> FloatArray:
        """The means over the values that are there; zero where there is none."""
        means: FloatArray = np.nan_to_num(self.moments.means)
        return means

    @property
    def deviations(self) -> FloatArray:
        """The standard deviations."""
        counts = np.where(self.moments.counts > 0, self.moments.counts, 1.0)
        deviations: FloatArray = np.sqrt(np.nan_to_num(self.moments.squares) / counts)
        return deviations


def spread_in(
    blocks: Iterable[tuple[FloatArray, FloatArray | None]], columns: Sequence[Column]
) -> Spread:
    """Return the spread of all rows, added up block by block."""
    is_number = [column.kind in NUMBERS for column in columns for _ in features.names_of(column)]

    def of_block(rows: FloatArray, weights: FloatArray | None) -> Spread:
        sums = rows[:, is_number].sum(axis=1)
        sums = sums[~np.isnan(sums)]
        lowest, highest = (np.array([pick(sums)]) if len(sums) else np.array([np.nan])
                           for pick in (np.min, np.max))  # fmt: skip
        wide = rows.astype(np.float64, copy=False)
        found = _range(wide)
        moments = _moments(wide, weights, origin=np.nan_to_num(found.lowest))
        return Spread(moments, found, ColumnRange(lowest, highest))

    whole: Spread = added(of_block(*block) for block in blocks)
    return whole


def _moments(points: FloatArray, weights: FloatArray | None, origin: FloatArray) -> ColumnMoments:
    # Count from the least entry, so that a constant column has no rounding.
    is_there = ~np.isnan(points)
    shares = is_there * (1.0 if weights is None else weights[:, None])
    counts = shares.sum(axis=0)
    above = np.where(is_there, points - origin, 0.0)
    means = np.sum(shares * above, axis=0) / np.where(counts > 0, counts, 1.0)
    apart = np.where(is_there, above - means, 0.0)
    return ColumnMoments(counts, origin + means, np.sum(shares * apart**2, axis=0))


def _range(points: FloatArray) -> ColumnRange:
    return ColumnRange(
        np.fmin.reduce(points, axis=0, initial=np.nan),
        np.fmax.reduce(points, axis=0, initial=np.nan),
    )
