"""A table: its columns, and its rows in batches of Arrow, which can be read again and again."""

from __future__ import annotations

import contextlib
import copy
import itertools
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powermeans.errors import TableError, counted, warn_caller
from powermeans.points.streams import Stream
from powermeans.scale.files import check_unchanged, state_of
from powermeans.system.attributes import cached_property, forget
from powermeans.types import IndexArray
from powermeans_tables.cells.arrow import pa, pc, types
from powermeans_tables.reading.text_form import distinct, notes_below, subtotals_in, sums_up

# Cells that are looked at to understand columns, and the fewest and most of the first rows.
_CELLS, _FEWEST, _MOST = 2**22, 2**11, 2**17
_N_LAST = 8
_ROWS_OF_A_HEAD = 100


@dataclass(frozen=True)
class File:
    """A file to read: unpacked, and known by its first bytes."""

    path: Path
    name: str  # for messages
    options: dict[str, Any] = field(default_factory=dict)  # how it is written, as far as known

    @property
    def start(self) -> bytes:
        """The first bytes."""
        try:
            with open(self.path, "rb") as file:
                return file.read(2**10)
        except OSError as error:
            raise TableError(f"{self.name} cannot be read: {error.strerror}") from None


@dataclass(frozen=True, kw_only=True)
class Rows:
    """The rows of one file, as its format reads them."""

    name: str  # for messages
    names: tuple[str, ...]
    read: Callable[[], Iterator[Any]]  # batches of Arrow, the same each time
    how_read: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)  # on how they are read, which may be wrong
    units: Mapping[str, str] = field(default_factory=dict)  # of columns, by the format of cells
    likely_decimal: str = ""
    delimiter: str = ","
    encoding: str = "utf-8"
    is_array: bool = False  # numbers of a program, which have no units
    lists: Mapping[str, str] = field(default_factory=dict)  # of which columns have one place
    per: str = ""  # the column of which each value has one row, made of its lines

    @classmethod
    def of(cls, table: Any, name: str, **more: Any) -> Rows:
        """Return the rows of a table of Arrow in memory."""
        names = distinct(table.column_names)
        return cls.widened(name, table.rename_columns(names).to_batches, table.schema, names, more)

    @classmethod
    def widened(
        cls,
        name: str,
        read: Callable[[], Iterator[Any]],
        schema: Any,
        names: Sequence[str],
        more: Mapping[str, Any],
    ) -> Rows:
        """Return rows with a column for each place of lists of numbers that are equally long."""
        kinds = zip(names, schema.types, strict=True)
        lists = {one: kind for one, kind in kinds if _is_list_of_numbers(kind)}
        widths = dict[str, int]()
        for batch in itertools.islice(read(), 1) if lists else ():
            lengths = {one: pc.unique(pc.list_value_length(batch.column(one))) for one in lists}
            known = {one: [n for n in each.to_pylist() if n] for one, each in lengths.items()}
            widths = {one: each[0] for one, each in known.items() if len(each) == 1}
        if not widths:
            return cls(name=name, names=tuple(names), read=read, **more)
        wide = {one: [f"{one}.{place}" for place in range(widths.get(one, 0))] for one in names}
        pairs = [(new, one) for one in names for new in wide[one] or [one]]
        every = distinct([new for new, _ in pairs])

        def read_wide() -> Iterator[Any]:
            for batch in read():
                there = {one: batch.column(one) for one in names}
                for one, width in widths.items():
                    there[one] = _equally_long(name, one, there[one], width)
                columns = [
                    pc.list_element(there[one], place) if wide[one] else there[one]
                    for one in names
                    for place in range(max(len(wide[one]), 1))
                ]
                yield pa.RecordBatch.from_arrays(columns, names=every)

        of_lists = {new: one for new, (_, one) in zip(every, pairs, strict=True) if wide[one]}
        return cls(name=name, names=tuple(every), read=read_wide, **{**more, "lists": of_lists})


def _is_list_of_numbers(kind: Any) -> bool:
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(
        is_list and (types.is_integer(kind.value_type) or types.is_floating(kind.value_type))
    )


def _equally_long(name: str, column: str, lists: Any, width: int) -> Any:
    """Return lists of this length, and null for empty ones; refuse others."""
    lengths = pc.list_value_length(lists)
    others = pc.fill_null(pc.not_equal(lengths, width), False)
    others = pc.and_(others, pc.fill_null(pc.not_equal(lengths, 0), False))
    if pc.any(others).as_py():
        length = len(lists[pc.index(others, True).as_py()])
        raise TableError(
            f'{name}: "{column}" has {counted(length, "number")} in one row and {width} in others',
            "give all rows as many",
        )
    is_empty = pc.equal(lengths, 0)
    if not pc.any(is_empty).as_py():
        return lists
    places = np.arange(len(lists))
    return lists.take(pa.array(places, mask=np.asarray(pc.fill_null(is_empty, True))))


@dataclass(frozen=True)
class Survey:
    """What one pass over all rows finds."""

    lengths: list[int]  # of the files, without notes below the rows
    totals: list[int]  # the last rows of a file, from 0 on, where they sum up others
    sample: Any  # table of Arrow: the first rows, and some of all others
    rows: IndexArray  # the numbers of these, from 0
    n_first: int  # how many of them follow each other
    heads: list[Any]  # the first rows of each file
    how_read: list[str]


class Table(Stream):
    """Rows of one file or of several with the same columns; `open_table` opens it.

    Attributes
    ----------
    name : str
        The file, or what else messages call it.
    names : tuple of str
        The names of the columns.
    """

    def __init__(
        self,
        name: str,
        parts: Sequence[Rows],
        paths: Sequence[Path] = (),
        opened: ExitStack | None = None,
        *,
        keeps_totals: bool = True,
    ) -> None:
        self.name, self.parts, self.paths = name, parts, tuple(paths)
        self.names, self.keeps_totals = parts[0].names, keeps_totals
        self._chosen: Mapping[str, str] = {name: name for name in self.names}
        self._surveys = list[Survey]()
        self._states = {path: state_of(path) for path in self.paths if path.is_file()}
        for part in parts[1:]:
            if part.names != self.names:
                raise TableError(
                    f"{part.name} has the columns {list(part.names)[:20]} where {parts[0].name} "
                    f"has {list(self.names)[:20]}: give all files the same columns in the same "
                    "order"
                )
        if opened is not None:  # files that were unpacked or copied
            weakref.finalize(self.parts[0], opened.close)

    def choosing(self, columns: Mapping[str, str]) -> Table:
        """Return the same rows with some of the columns; `columns` has their names by new ones."""
        found = copy.copy(self)
        found._chosen = {new: self._chosen[old] for new, old in columns.items()}
        found.names = tuple(columns)
        forget(found, "units", "lists")
        return found

    @property
    def first(self) -> Rows:
        """The first file, which tells how all are written."""
        return self.parts[0]

    @cached_property
    def units(self) -> Mapping[str, str]:
        """The units of columns, where the formats of cells tell them."""
        known = self.first.units
        return {new: known[old] for new, old in self._chosen.items() if old in known}

    @cached_property
    def lists(self) -> Mapping[str, str]:
        """The lists of which columns have one place."""
        known = self.first.lists
        return {new: known[old] for new, old in self._chosen.items() if old in known}

    @property
    def survey(self) -> Survey:
        """The number of rows and some of them, found in one pass over all."""
        if not self._surveys:  # which tables of other columns share
            self._surveys.append(_survey(self))
        return self._surveys[0]

    @property
    def n_rows(self) -> int:
        """The number of rows, with those that are totals."""
        return sum(self.survey.lengths)

    @property
    def totals(self) -> list[int]:
        """The rows, from 0, that are left out since they sum up others."""
        return [] if self.keeps_totals else self.survey.totals

    @contextlib.contextmanager
    def naming(self) -> Iterator[None]:
        """Name the file in errors that name its columns alone."""
        try:
            yield
        except TableError as error:
            if self.name not in error.problem and not error.argument and self.paths:
                error.problem = f"{self.name}: {error.problem}"
            raise

    def row(self, number: int | np.intp) -> str:
        """Say which row has this number from 0: that of the data, or of one of several files."""
        ends = np.cumsum(self.survey.lengths)
        place = int(np.searchsorted(ends, number, side="right"))
        of = "the data" if len(self.parts) == 1 else self.parts[place].name
        return f"row {int(number) - int(ends[place] - self.survey.lengths[place]) + 1} of {of}"

    @property
    def said_of_totals(self) -> str:
        """What is left out as totals, in words."""
        rows = ", ".join(str(row + 1) for row in sorted(self.totals))
        return f"left out as totals: row{'s' * (len(self.totals) > 1)} {rows} of the data"

    def warn_of_totals(self) -> None:
        """Warn of rows that are left out as totals, if there are any."""
        if self.totals:
            way_out = "keep_totals=True of `open_table` uses all rows"
            warn_caller(f"{self.name}: {self.said_of_totals} ({way_out})")

    @property
    def how_read(self) -> list[str]:
        """What is worth knowing of how the files are read."""
        of_all = self.survey.how_read  # which may add to those of each file
        return [*dict.fromkeys([*self.first.how_read, *of_all])]

    @property
    def doubts(self) -> list[str]:
        """Doubts on how the files are read."""
        return [*dict.fromkeys(doubt for part in self.parts for doubt in part.doubts)]

    @property
    def sample(self) -> Any:
        """Some rows, as a table of Arrow, whose numbers the survey has."""
        return self._with_chosen(self.survey.sample)

    def heads(self) -> Iterator[tuple[str, Any]]:
        """Yield the names and the first rows of the files."""
        for part, head in zip(self.parts, self.survey.heads, strict=True):
            yield part.name, self._with_chosen(head)

    def batches(self) -> Iterator[Any]:
        """Yield all rows, without notes below them."""
        for path, state in self._states.items():
            check_unchanged(path, state)
        if len(self.survey.rows) == self.n_rows:  # small enough to be kept as a whole
            yield from self.sample.combine_chunks().to_batches()
            return
        for part, length in zip(self.parts, self.survey.lengths, strict=True):
            for batch in part.read():
                rows = batch.slice(0, length)
                length -= rows.num_rows
                if rows.num_rows:
                    yield self._with_chosen(rows)

    def _with_chosen(self, rows: Any) -> Any:
        columns = [rows.column(name) for name in self._chosen.values()]
        return type(rows).from_arrays(columns, names=list(self._chosen))

    def frame(self, is_used: NDArray[np.bool_] | None = None) -> Any:
        """Return the rows as a table of Arrow: those that are used, or all but totals."""
        whole = _together([*self.batches()]).replace_schema_metadata(self._told())
        if is_used is None and self.totals:
            is_used = ~np.isin(np.arange(whole.num_rows), self.totals)
        return whole if is_used is None else whole.filter(pa.array(is_used))

    def _told(self) -> dict[str, str]:
        """Return what cells do not tell, for the schema of a table of Arrow."""
        units = {f"unit of {name}": unit for name, unit in self.units.items()}
        units |= {f"list of {name}": one for name, one in self.lists.items()}
        is_array = {"is array": "yes"} if self.first.is_array else {}
        told = {"likely decimal": self.first.likely_decimal, "one row per": self.first.per}
        return {**units, **is_array, **told}

    def take(self, rows: IndexArray, names: Sequence[str]) -> Any:
        """Return columns of rows, by their numbers from 0 that ascend, as a table of Arrow."""
        found, start = [], 0
        for batch in self.batches():
            low, high = np.searchsorted(rows, [start, start + batch.num_rows])
            if low < high:
                found.append(batch.select(names).take(pa.array(rows[low:high] - start)))
            start += batch.num_rows
        return _together(found)


def _together(batches: Sequence[Any]) -> Any:
    tables = [pa.Table.from_batches([batch]) for batch in batches]
    return pa.concat_tables(tables, promote_options="permissive")


def _check_types(known: Any, there: Any, first: str, name: str) -> Any:
    """Return fields that take those of two schemas; refuse a column that has none."""
    if there.equals(known):
        return known
    fields = []
    for pair in zip(known, there, strict=True):
        try:
            schemas = [pa.schema([one]) for one in pair]
            fields += pa.unify_schemas(schemas, promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            kinds = [one.type for one in pair]
            raise TableError(
                f'{name} has "{pair[1].name}" as {kinds[1]} where {first} has it as {kinds[0]}: '
                "write all files with the same types"
            ) from None
    return pa.schema(fields)


class _Sample:
    """The first rows, and others by the fingerprints of their numbers, in whatever batches."""

    def __init__(self, n_columns: int) -> None:
        self.n_first = min(max(_CELLS // max(n_columns, 1), _FEWEST), _MOST)
        self._most, self._below = self.n_first // 2, 2**64 - 1
        self._firsts: list[Any] = []
        self._others: list[tuple[IndexArray, Any]] = []

    def add(self, batch: Any, start: int) -> None:
        if start < self.n_first:
            self._firsts.append(batch.slice(0, self.n_first - start))
        first = max(start, self.n_first)
        numbers = np.arange(first, max(start + batch.num_rows, first))
        if len(numbers := numbers[_fingerprints(numbers) <= self._below]):
            some = batch.take(pa.array(numbers - start))
            self._others.append((numbers, some))
        while sum(len(numbers) for numbers, _ in self._others) > self._most:
            self._below //= 2
            self._others = [self._thinned(*each) for each in self._others]

    def _thinned(self, numbers: IndexArray, batch: Any) -> tuple[IndexArray, Any]:
        is_kept = _fingerprints(numbers) <= self._below
        return numbers[is_kept], batch.filter(pa.array(is_kept))

    def of_rows(self, is_row: Callable[[IndexArray], NDArray[np.bool_]]) -> tuple[Any, IndexArray]:
        """Return those that are rows, and their numbers."""
        n_first = sum(batch.num_rows for batch in self._firsts)
        rows = np.concatenate([np.arange(n_first), *(numbers for numbers, _ in self._others)])
        whole = _together([*self._firsts, *(batch for _, batch in self._others)])
        kept = is_row(rows)
        return whole if kept.all() else whole.filter(pa.array(kept)), rows[kept]


def _fingerprints(numbers: IndexArray) -> NDArray[np.uint64]:
    return numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def _survey(table: Table) -> Survey:
    sample, start, heads = _Sample(len(table.names)), 0, list[Any]()
    lengths, totals, notes = list[int](), list[int](), list[int]()
    said, schema = list[str](), None
    for part in table.parts:
        first_row, lasts, head = start, list[Any](), None
        for batch in part.read():
            schema = _check_types(schema or batch.schema, batch.schema, table.first.name, part.name)
            sample.add(batch, start)
            totals += [start + row for row in subtotals_in(batch)]
            start += batch.num_rows
            head = batch.slice(0, _ROWS_OF_A_HEAD) if head is None else head
            few = [batch.slice(max(batch.num_rows - _N_LAST, 0))] * bool(batch.num_rows)
            lasts = [*lasts, *few][-_N_LAST:]
        if not lasts:
            raise TableError(f"{part.name} has columns and no rows")
        last = _together(lasts)
        last = last.slice(max(last.num_rows - _N_LAST, 0))
        n_notes = notes_below(last)
        notes += range(start - n_notes, start)
        said += [f"{n_notes} row{'s' * (n_notes > 1)} below the table left out"] * bool(n_notes)
        rows = last.slice(0, last.num_rows - n_notes)
        n_rows = start - first_row - n_notes
        totals += [first_row + n_rows - 1 - n for n in range(_n_totals(rows, n_rows))]
        lengths.append(n_rows)
        heads.append(head)
    # Rows have the numbers that they have without notes.
    places = np.array(notes, dtype=np.intp)
    cells, numbers = sample.of_rows(lambda rows: ~np.isin(rows, places))
    numbers = numbers - np.searchsorted(places, numbers)
    totals = [row - int(np.searchsorted(places, row)) for row in {*totals}]
    n_first = int(np.count_nonzero(numbers < sample.n_first))
    return Survey(lengths, totals, cells, numbers, n_first, heads, said)


def _n_totals(last: Any, n_rows: int) -> int:
    """Return how many of the last rows sum up the others."""
    texts = [one for one in last.columns if one.type == pa.string()][:50]
    places = range(last.num_rows - 1, max(last.num_rows - 4, last.num_rows - n_rows), -1)
    sum_up = (sums_up(each[place].as_py() or "" for each in texts) for place in places)
    return sum(1 for _ in itertools.takewhile(bool, sum_up))
