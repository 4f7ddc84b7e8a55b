"""Lines of a table as fewer rows: one for each customer, made of all lines of this customer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powermeans.errors import Argument, TableError, counted
from powermeans_tables.cells.arrow import pa, pc, types
from powermeans_tables.cells.column import Cells, is_text, one_array
from powermeans_tables.preparing import features
from powermeans_tables.preparing.kinds import SHARES, Column
from powermeans_tables.preparing.points import Encoder, Use, used_batches
from powermeans_tables.reading.table import Rows, Table
from powermeans_tables.reading.text_form import distinct

# What is added up of the numbers of lines, and how.
_HOW = {"sum": "sum", "count": "sum", "min": "min", "max": "max"}
COUNT = "number of rows"  # the column that joined rows have besides
_MOST = 2**18  # rows that wait to be added up
_SAID = {"ordered": "mean place in the order,", "yes/no": "share", "date": "last"}


def joined(table: Table, per: str, encoder: Encoder, use: Use) -> tuple[Any, list[Column], Encoder]:
    """Return one row for each value of the column `per`, its columns, and how lines were read."""
    is_line = _lines_of(table, use)
    for _ in range(3):
        lines = _Lines(per, encoder)
        for _, batch, say in used_batches(table, is_line):
            lines.add(batch, encoder.noted(batch, say))
        if (other := encoder.learned()) is None:
            break
        encoder = other
    rows, columns = lines.rows(table.name)
    return Table(table.name, [rows], table.paths), columns, encoder


def long_form(names: Iterable[str]) -> tuple[str, str] | None:
    """Return the columns of variables and of their values, if each row has one of these."""
    there = {name.casefold(): name for name in names}
    return (there["variable"], there["value"]) if {"variable", "value"} <= {*there} else None


def pivoted(table: Table, per: str, long: Sequence[str], use: Use) -> Table:
    """Return one row for each value of `per`, in which each variable has a column."""
    if use.in_parts:
        problem = f'rows with one "{long[0]}" each are pivoted in memory'
        raise TableError(problem, "leave out ", Argument("memory_limit"))
    variable, value = long[:2]
    lines = table.frame(_lines_of(table, use))
    lines = lines.set_column(lines.column_names.index(per), per, _keys(per, lines))
    n_given, lines = len(lines), lines.filter(pc.is_valid(lines[per]))
    keys, words = one_array(lines[per]).dictionary_encode(), one_array(lines[variable])
    codes, n_rows = keys.indices.to_numpy(), len(keys.dictionary)
    firsts = pa.array(np.unique(codes, return_index=True)[1])
    others = [per, *(name for name in lines.column_names if name not in (per, *long[:2]))]
    columns = [lines[name].take(firsts) for name in others]
    there = words.unique().drop_null()
    for word in there:
        mine = np.flatnonzero(pc.equal(words, word).fill_null(False))
        places = np.full(n_rows, -1)
        places[codes[mine]] = mine
        if np.count_nonzero(places >= 0) < len(mine):
            raise TableError(f'a "{per}" has several rows of "{word}"', "keep one of them")
        columns.append(lines[value].take(pa.array(places, mask=places < 0)))
    names = distinct([*others, *map(str, there.to_pylist())])
    said = _said("pivoted", n_given, len(lines), n_rows, per)
    rows = Rows.of(pa.table(columns, names), table.name, per=per, how_read=[said])
    return Table(table.name, [rows], table.paths)


def _said(done: str, n_given: int, n_lines: int, n_rows: int, per: str) -> str:
    left_out = f"; {counted(n_given - n_lines, 'row')} without it left out"
    said = f'{n_lines:,} rows are {done} to {n_rows:,}, one for each "{per}"'
    return said + left_out * (n_lines < n_given)


def _lines_of(table: Table, use: Use) -> NDArray[np.bool_]:
    if use.weights is not None:
        problem = f'"{use.weights}" has weights of rows, which are joined'
        raise TableError(problem, "leave out ", Argument("weights"))
    return use.rows_of(table)


def _keys(per: str, batch: Any) -> Any:
    """Return the values by which lines are joined, null where there is none."""
    array = one_array(batch.column(per))
    if types.is_nested(array.type):
        raise TableError(f'"{per}" contains {array.type}', "choose another column")
    if is_text(array.type):
        return Cells(per, array).texts
    return pc.if_else(pc.is_null(array, nan_is_null=True), None, array)


class _Sums:
    """Lines that are added up by their keys, whenever many of them wait."""

    def __init__(self, keys: Sequence[str], how: Mapping[str, str]) -> None:
        self._keys, self._how, self._most = [*keys], how, _MOST
        self._parts = list[Any]()

    def add(self, lines: Mapping[str, Any]) -> None:
        self._parts.append(self._added(pa.table(dict(lines))))
        if (n_rows := sum(part.num_rows for part in self._parts)) > self._most:
            self._parts, self._most = [self.whole], 2 * n_rows

    @property
    def whole(self) -> Any:
        return self._added(pa.concat_tables(self._parts, promote_options="permissive"))

    def _added(self, rows: Any) -> Any:
        rows = rows.filter(pc.is_valid(rows[self._keys[-1]]))
        # Threads would add in another order each time.
        found = rows.group_by(self._keys, use_threads=False).aggregate([*self._how.items()])
        sums = {name: found[f"{name}_{how}"] for name, how in self._how.items()}
        return pa.table({key: found[key] for key in self._keys} | sums)


class _Lines:
    """Lines that are joined by a column, batch after batch."""

    def __init__(self, per: str, encoder: Encoder) -> None:
        self._per, self._encoder, self._n_lines = per, encoder, 0
        self._words = {one.name: _Sums(["key", "word"], {"rows": "sum"}) for one in encoder.columns}
        numbers = [one for one in encoder.columns if one.kind not in SHARES]
        self._numbers = [(one, features.names_of(one)) for one in numbers]
        names = [name for _, names in self._numbers for name in names]
        how = {f"{what} {name}": _HOW[what] for name in names for what in _HOW}
        self._sums = _Sums(["key"], {"rows": "sum", "line": "min"} | how)

    def add(self, batch: Any, cells: Mapping[str, Cells]) -> None:
        keys = _keys(self._per, batch)
        lines = {"key": keys, "rows": pa.array(np.ones(len(keys), dtype=np.int64))}
        for one in self._encoder.columns:
            if one.kind in SHARES:
                is_word = pa.array(cells[one.name].codes_of(one.words) != -2)
                words = {"word": pc.if_else(is_word, cells[one.name].texts, None)}
                self._words[one.name].add(lines | words)
        for one, names in self._numbers:
            every = features.encode(one, cells[one.name], cells.get(one.other))
            every = np.where(np.isnan(every).any(axis=1), np.nan, every.T)  # no half of a place
            for name, values in zip(names, every, strict=True):
                lines |= {f"{what} {name}": pa.array(values, from_pandas=True) for what in _HOW}
                lines[f"count {name}"] = pa.array(np.isfinite(values)).cast("int64")
        lines["line"] = pa.array(np.arange(self._n_lines, self._n_lines + len(keys)))
        self._n_lines += len(keys)
        self._sums.add(lines)

    def rows(self, name: str) -> tuple[Rows, list[Column]]:
        """Return one row for each key, in the order in which keys occur, and what columns are."""
        sums = self._sums.whole.sort_by("line")
        if not sums.num_rows:
            raise TableError(f'{name}: no row has a "{self._per}"', "choose another column")
        n_lines = pc.sum(sums["rows"]).as_py()
        of_lines = f"of {n_lines / sums.num_rows:.3g} rows"
        found = [(Column(self._per, "identifier", "one row for each"), sums["key"])]
        for one in self._encoder.columns:
            if one.kind in SHARES:
                words = _most_frequent(self._words[one.name].whole, sums["key"])
                found.append((replace(one, why=f"most frequent {of_lines}"), words))
            else:
                is_round = one.kind in ("clock", "place")
                found += (_means_around if is_round else self._of_numbers)(one, sums, of_lines)
        found.append((Column(COUNT, "count", of_lines[3:]), sums["rows"]))
        rows = pa.table([values for _, values in found], distinct([one.name for one, _ in found]))
        columns = [replace(one, name=rows.column_names[j]) for j, (one, _) in enumerate(found)]
        for j, one in enumerate(columns):
            if one.kind != "place" and pc.count_distinct(rows[one.name]).as_py() < 2:
                columns[j] = Column(one.name, "constant", "has one value")
        said = _said("joined", self._n_lines, n_lines, len(rows), self._per)
        units = {one.name: one.unit for one in columns if one.unit}
        return Rows.of(rows, name, units=units, per=self._per, how_read=[said]), columns

    def _of_numbers(self, column: Column, sums: Any, of_lines: str) -> Iterator[tuple[Column, Any]]:
        """Yield what becomes of numbers, and its values; a sum of what is the same is ignored."""
        name = column.name
        total, count, least, most = (sums[f"{what} {name}"] for what in _HOW)
        varies = pc.any(pc.not_equal(least, most)).as_py()
        kind = {"ordered": "number", "count": "number"}.get(column.kind, column.kind)
        kind = "share" if kind == "yes/no" and varies else kind
        unit = "%" if kind == "share" else self._encoder.cells[name].unit
        why = f"{_SAID.get(column.kind, 'mean')} {of_lines}" if varies else "the same in all rows"
        values = pc.divide(total, count)
        if kind == "date":
            since_1970 = pc.multiply(most, 86400e6).cast("int64", safe=False)
            values = since_1970.cast(pa.timestamp("us"))
        yield Column(name, kind, why, unit=unit), values
        if column.kind in ("amount", "count"):
            kind = column.kind if varies else "ignore"
            yield Column(f"sum of {name}", kind, f"sum {of_lines}", unit=unit), total


def _means_around(column: Column, sums: Any, of_lines: str) -> Iterator[tuple[Column, Any]]:
    """Yield the mean times of day or places; opposite ones have none."""
    names = features.names_of(column)
    means = [pc.divide(sums[f"sum {name}"], sums[f"count {name}"]) for name in names]
    points = np.column_stack(means)
    is_there = np.linalg.norm(points, axis=1) > 1e-6
    rows = pa.array(np.cumsum(is_there) - 1, mask=~is_there)
    for name, values in features.decode(column, points[is_there]):
        other = column.other * (name == column.name)
        one = replace(column, name=name, why=f"mean {of_lines}", other=other)
        yield one, pa.array(values).take(rows)


def _most_frequent(counts: Any, keys: Any) -> Any:
    """Return the most frequent word of each key, of several the first in the alphabet."""
    ordered = counts.sort_by([("rows", "descending"), ("word", "ascending")])
    first = ordered.group_by("key", use_threads=False).aggregate([("word", "first")])
    return first["word_first"].take(pc.index_in(keys, value_set=first["key"].combine_chunks()))
