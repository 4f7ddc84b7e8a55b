"""The rows of a table as numbers: one pass over its batches, into memory or a temporary file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from powermeans.errors import TableError
from powermeans.mathematics.sums import ColumnMoments, added
from powermeans.points.needs import Tell
from powermeans.scale.spooled import Spool
from powermeans.system.free_memory import fits_into_memory
from powermeans.types import FloatArray, IndexArray
from powermeans_tables.cells.arrow import pa
from powermeans_tables.cells.column import Cells, marks_between, one_array
from powermeans_tables.cells.number_forms import hours_of_day
from powermeans_tables.preparing import features
from powermeans_tables.preparing.kinds import NUMBERS, WORDS, Column
from powermeans_tables.reading.table import Table

# Rows are added up by blocks of this length, so that no bit depends on how they come.
Weighted = tuple[FloatArray, FloatArray | None]  # rows, and their weights
_ROWS_AT_ONCE = 2**16
_MOST_TOLD = 1_000  # different cells of a column that are no numbers
_MOST_IN_DOUBLE = 2**27  # bytes of points in float64, where float32 would do
_MOST_DEVIATIONS = 2**12  # from zero, of which the rounding of float32 is less than a thousandth


@dataclass(frozen=True, slots=True)
class Use:
    """Which rows of a table become points, with which weights, and where they are kept."""

    weights: str | None = None
    skipped: Sequence[range] = ()  # rows, from 1
    missing: Literal["error", "drop", "observed", "auto"] = "error"  # for want of values
    why_whole: str = ""  # why rows without all values cannot be used, if they cannot
    may_drop: bool = False  # whether who reads may choose "drop"
    names_all: bool = False  # whether a note names all columns with gaps
    columns: Sequence[str | int] | None = None  # those asked for
    in_parts: bool | None = False  # whether into a temporary file; None where their size decides
    dtype: Any = None  # by default float32 if all columns are, or many rows lose nothing by it
    tell: Tell | None = None

    @property
    def rule(self) -> str:
        """What is done with rows that lack values, where "auto" uses those that can be used."""
        open_to = "drop" if self.why_whole else "observed"
        return open_to if self.missing == "auto" else self.missing

    def of(self, table: Table) -> Use:
        """Return which rows of a table count: all of one whose rows were made of those here."""
        return replace(self, skipped=()) if table.first.per else self

    def rows_of(self, table: Table) -> NDArray[np.bool_]:
        """Return which rows count, before those that lack values are left out."""
        is_used = np.ones(table.n_rows, dtype=bool)
        is_used[[*table.totals]] = False
        for rows in self.skipped:
            if rows[-1] > table.n_rows:
                raise TableError(
                    f"is not among the {table.n_rows} rows of {table.name}",
                    "pass numbers from 1, which do not count the header",
                    argument="skip_rows",
                    value=max(rows[0], table.n_rows + 1),
                )
            is_used[rows[0] - 1 : rows[-1]] = False
        return is_used


@dataclass
class Encoder:
    """The columns that count, as numbers, batch after batch and always in the same way."""

    columns: Sequence[Column]  # behind the features that of the weights, if there are any
    cells: Mapping[str, Cells]  # of some rows, which tell how all are read
    unread: dict[str, Counter[str]] = field(default_factory=dict)  # cells that are no numbers
    unknown: dict[str, Counter[str]] = field(default_factory=dict)  # words that no fit has seen
    n_flat: int = 0  # rows with the same number in all columns of a series

    def noted(self, batch: Any, row_in_words: Callable[[int], str]) -> dict[str, Cells]:
        """Return the cells of all rows of a batch; note what cannot be read."""
        every = {name: self._cells_of(name, batch) for name in self.cells}
        for name, cells in every.items():
            if cells.type in ("number", "date") and (row := cells.infinite) is not None:
                raise TableError(
                    f'column "{name}" has {cells.texts[row].as_py()} in {row_in_words(row)}',
                    "correct it, or leave the row or the column out",
                )
        for column in self.columns:
            self._note(column, every[column.name])
        return every

    def raw(self, batch: Any, row_in_words: Callable[[int], str]) -> FloatArray:
        """Return the numbers of all rows of a batch."""
        cells = self.noted(batch, row_in_words)
        found = np.column_stack(
            [features.encode(one, cells[one.name], cells.get(one.other)) for one in self.columns]
        )
        parts = features.parts_of(self.columns)
        if series := [part.start for one, part in parts if one.kind == "shape"]:
            found[:, series], n_flat = features.shapes(found[:, series])
            self.n_flat += n_flat
        return found

    @property
    def is_narrow(self) -> bool:
        """Whether float32 tells rows apart: no column is far from zero for how it spreads."""
        cells = self.cells
        some = [features.encode(one, cells[one.name], cells.get(one.other)) for one in self.columns]
        spread = spread_in([(np.hstack(some), None)], self.columns)
        reach = np.maximum(np.abs(spread.range.lowest), np.abs(spread.range.highest))
        return bool((reach <= _MOST_DEVIATIONS * spread.deviations).all())

    def _cells_of(self, name: str, batch: Any) -> Cells:
        some, array = self.cells[name], one_array(batch.column(name))
        if some.array is not None and not some.more and array.equals(some.array):
            return some  # with all that is known of it
        return replace(some, array=array, found=some.reading if some.is_text else None, more=())

    def _note(self, column: Column, cells: Cells) -> None:
        if column.kind in WORDS and column.words:
            are_several = column.kind == "choices"
            counts = cells.choices(marks_between(column.words)) if are_several else cells.counts
            lost = {word: n for word, n in counts.items() if word not in column.words}
            seen = self.unknown.setdefault(column.name, Counter())
        else:
            hours = hours_of_day(cells.texts) if column.kind == "clock" else None
            lost, seen = cells.unread(hours), self.unread.setdefault(column.name, Counter())
        if lost and len(seen) < _MOST_TOLD:
            seen.update(lost)

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
    use: Use
    is_used: NDArray[np.bool_]  # of all rows of the table
    raw: Any  # an array, or a `Spool`, whose last column then has the weights
    dtype: np.dtype[Any]  # of the points
    n_given: int  # rows of the table without those that are skipped, and totals
    n_lacking: Any  # of the values of each feature, in the rows before any was left out
    weights: FloatArray | None = None  # of the rows in memory
    lacking_row: int | None = None  # the first row, from 0, that lacks a value or a weight
    n_rows_lacking: int = 0
    has_missing: bool = False  # whether rows that are used lack values
    weight_lacking: int | None = None  # the first row without a weight
    lines: Encoder | None = None  # how the lines were read of which rows were made

    def blocks(self) -> Iterator[Weighted]:
        """Yield the numbers and weights of some rows at a time."""
        if isinstance(self.raw, np.ndarray):
            yield from blocks_of(self.raw, self.weights)
            return
        for part in gen_batches(self.raw.n_rows, _ROWS_AT_ONCE):
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
            return
        n = len(self.n_lacking)  # features, behind which are the weights
        self.raw.change(lambda rows: np.hstack([change(rows[:, :n]), rows[:, n:]]), _ROWS_AT_ONCE)

    @property
    def has_weights(self) -> bool:
        """Whether the rows have weights."""
        return self.use.weights is not None

    @property
    def n_bytes(self) -> int:
        """The memory that the numbers take or would take."""
        return self.dtype.itemsize * len(self.n_lacking) * int(self.is_used.sum())


def blocks_of(raw: FloatArray, weights: FloatArray | None) -> Iterator[Weighted]:
    """Yield some rows of an array at a time, with their weights."""
    for part in gen_batches(len(raw), _ROWS_AT_ONCE):
        yield raw[part], None if weights is None else weights[part]


def read_rows(table: Table, encoder: Encoder, use: Use) -> RawRows:
    """Read all rows; again where later cells show how columns are to be read."""
    n_numbers = sum(len(features.names_of(column)) for column in encoder.columns)
    n_features = n_numbers - (use.weights is not None)
    dtype = np.dtype(use.dtype or _dtype_of(table, encoder, n_features))
    in_parts = use.in_parts
    if in_parts is None:
        in_parts = not fits_into_memory(dtype.itemsize * table.n_rows * n_features)
    for _ in range(3):
        kept: Spool | _Held = _Held(table.n_rows, n_features, dtype, use)
        if in_parts:
            kept = Spool(n_numbers, np.float64 if use.weights is not None else dtype)
        is_used = use.rows_of(table)
        n_lacking = np.zeros(n_features, dtype=np.intp)
        n_given = int(is_used.sum())
        rows = RawRows(table, encoder, use, is_used, kept, dtype, n_given, n_lacking)
        _pass(rows, kept)
        if (other := encoder.learned()) is None:
            break
        encoder = other
    if isinstance(kept, _Held):
        rows.raw = kept.raw[: kept.n_rows]
        rows.weights = None if use.weights is None else kept.weights[: kept.n_rows]
    return rows


def _dtype_of(table: Table, encoder: Encoder, n_features: int) -> Any:
    """Return float32 where all columns are so, or where many rows lose nothing by it."""
    columns, heads = encoder.columns[:n_features], [head for _, head in table.heads()]
    kinds = {head.column(one.name).type for one in columns for head in heads}
    are_numbers = all(one.kind == "number" for one in columns)
    is_narrow = are_numbers and kinds <= {pa.float32(), pa.float16()}
    is_large = 8 * table.n_rows * n_features > _MOST_IN_DOUBLE
    return np.float32 if is_narrow or (is_large and encoder.is_narrow) else np.float64


class _Held:
    """Rows that are kept in memory, with room for all."""

    def __init__(self, n_rows: int, n_features: int, dtype: Any, use: Use) -> None:
        self.n_rows, self.raw = 0, np.empty((n_rows, n_features), dtype)
        self.weights = np.empty(0 if use.weights is None else n_rows)

    def add(self, block: FloatArray) -> None:
        """Append the numbers of rows, and their weights behind them."""
        part = slice(self.n_rows, self.n_rows + len(block))
        self.raw[part], self.n_rows = block[:, : self.raw.shape[1]], part.stop
        if len(self.weights):
            self.weights[part] = block[:, -1]


def _pass(rows: RawRows, kept_rows: Spool | _Held) -> None:
    """Read all rows once, and keep those that count."""
    table, use, n_features = rows.table, rows.use, len(rows.n_lacking)
    for numbers, batch, say in used_batches(table, rows.is_used, use.tell):
        block = rows.encoder.raw(batch, say)
        is_missing = np.isnan(block)
        of_features, of_weights = is_missing[:, :n_features], is_missing[:, n_features:].any(axis=1)
        lacks, lacks_all = is_missing.any(axis=1), of_features.all(axis=1)
        if use.weights is not None:
            _refuse_weights(block[:, -1], use.weights, say)
        rows.n_lacking += of_features.sum(axis=0)
        rows.n_rows_lacking += int(np.count_nonzero(lacks))
        if rows.lacking_row is None and lacks.any():
            rows.lacking_row = int(numbers[np.argmax(lacks)])
        if rows.weight_lacking is None and of_weights.any():
            rows.weight_lacking = int(numbers[np.argmax(of_weights)])
        kept = ~{"drop": lacks, "observed": lacks_all | of_weights}.get(use.rule, lacks & False)
        rows.is_used[numbers] = kept
        block = block if kept.all() else block[kept]
        rows.has_missing |= bool(of_features[kept].any())
        kept_rows.add(block)


def used_batches(
    table: Table, is_used: NDArray[np.bool_], tell: Tell | None = None
) -> Iterator[tuple[IndexArray, Any, Callable[[int], str]]]:
    """Yield the numbers and the cells of rows that are used, and what says which row one is."""
    start = 0
    for batch in table.batches():
        given = np.flatnonzero(is_used[start : start + batch.num_rows])
        numbers, start = start + given, start + batch.num_rows
        few = batch if len(given) == batch.num_rows else batch.take(pa.array(given))
        yield numbers, few, partial(_row_in_words, table, numbers)
        if tell is not None:
            tell(start, table.n_rows)


def _row_in_words(table: Table, numbers: IndexArray, row: int) -> str:
    return table.row(numbers[row])


def _refuse_weights(weights: FloatArray, name: str, row_in_words: Callable[[int], str]) -> None:
    if (weights < 0).any():
        row = int(np.argmax(weights < 0))
        raise TableError(
            f'column "{name}" has {weights[row]:g} in {row_in_words(row)}, which is no weight: '
            "weights are finite and not negative"
        )


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """The least and the largest entry of each column, NaN if it has none; ranges of parts add."""

    lowest: FloatArray
    highest: FloatArray

    @classmethod
    def of(cls, points: FloatArray) -> Self:
        """Return that of some rows."""
        lowest = np.fmin.reduce(points, axis=0, initial=np.nan)
        return cls(lowest, np.fmax.reduce(points, axis=0, initial=np.nan))

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
        return np.asarray(np.nan_to_num(self.moments.means))

    @property
    def deviations(self) -> FloatArray:
        """The standard deviations."""
        counts = np.where(self.moments.counts > 0, self.moments.counts, 1.0)
        return np.asarray(np.sqrt(np.nan_to_num(self.moments.squares) / counts))


def spread_in(blocks: Iterable[Weighted], columns: Sequence[Column]) -> Spread:
    """Return the spread of all rows, added up block by block."""
    is_number = [column.kind in NUMBERS for column in columns for _ in features.names_of(column)]

    def of_block(rows: FloatArray, weights: FloatArray | None) -> Spread:
        wide = rows.astype(np.float64, copy=False)
        found = ColumnRange.of(wide)
        moments = _moments(wide, weights, origin=np.nan_to_num(found.lowest))
        return Spread(moments, found, ColumnRange.of(rows[:, is_number].sum(axis=1)[:, None]))

    whole: Spread = added(of_block(*block) for block in blocks)
    return whole


def _moments(points: FloatArray, weights: FloatArray | None, origin: FloatArray) -> ColumnMoments:
    # Count from the least entry, so that a constant column has no rounding.
    weights = np.ones(len(points)) if weights is None else weights
    above = points - origin
    is_missing = np.isnan(above)
    above[is_missing] = 0.0
    counts = np.einsum("i,ij->j", weights, ~is_missing)
    means = np.einsum("i,ij->j", weights, above) / np.where(counts > 0, counts, 1.0)
    above -= means
    above[is_missing] = 0.0
    squares = np.einsum("i,ij,ij->j", weights, above, above)
    return ColumnMoments(counts, origin + means, squares)
