"""Tables as points of a fit, for the door of `powermeans`, which registers what is here."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from powermeans.errors import Argument, EntryError, TableError, counted, some, warn_caller
from powermeans.points.columns import Columns
from powermeans.points.needs import Needs
from powermeans.scale.block import Block
from powermeans.scale.named_columns import numbers_of, places_of
from powermeans.types import FloatArray
from powermeans_tables.cells.column import as_frame
from powermeans_tables.preparing.kinds import OF_A_FIT, OF_WEIGHTS
from powermeans_tables.preparing.notes import DOUBTED, Note
from powermeans_tables.preparing.points import Encoder, RawRows, Use
from powermeans_tables.preparing.prepare import Prepare, doubts_on_others
from powermeans_tables.reading.files import open_table
from powermeans_tables.reading.table import Table

_FAR = 5.0  # standard deviations, in which most rows of a column in another unit lie


class TableRows:
    """The rows of a table, which become points once it is known for which fit they are."""

    def __init__(
        self,
        source: Any,
        columns: Sequence[str | int] | None,
        weights: str | None,
        prepare: Prepare | None = None,
        dtype: Any = None,
    ) -> None:
        self._whole = open_table(source)
        self.name, self.paths, names = self._whole.name, self._whole.paths, self._whole.names
        self._prepare = Prepare() if prepare is None else prepare
        places, per = places_of(columns, weights, names, self.name), self._prepare.per
        weights = None if weights is None else names[places[-1]]
        self._use = Use(weights, columns=columns, dtype=dtype)
        if per is not None and not (self._is_fitted and per not in names):
            places += numbers_of([per], names, self.name)
            per = names[places[-1]]
        self._per = per
        self._table = self._whole.choosing({names[place]: names[place] for place in places})
        self._found = dict[Any, PreparedRows]()  # the last that was asked for

    @property
    def _is_fitted(self) -> bool:
        return hasattr(self._prepare, "columns_")

    def points_for(self, needs: Needs, *, in_parts: bool) -> PreparedRows:
        """Return the rows as points, as many times as asked from one pass over them."""
        known = needs.known
        of_fit = None if known is None else known.preparation or known.names or known.n_features
        key = of_fit, in_parts, needs.measure.has_missing
        if key not in self._found:
            how: dict[str, Any] = {"in_parts": in_parts or None, "tell": needs.fit.tell}
            how["missing"] = "observed" if needs.measure.has_missing else "error"
            if known is None and self._is_fitted:
                known = Columns(None, None, self._prepare)
            found = self.as_new(**how) if known is None else self.as_known(known, **how)
            self._found = {key: found}
            _warn_of(found, is_new=known is None)
        return self._found[key]

    def as_new(self, **how: Any) -> PreparedRows:
        """Understand the columns that were asked for, even identifiers, or all, and scale them."""
        prepare, table, rows = clone(self._prepare).set_params(per=self._per), self._table, None
        use = replace(self._use, **how)
        try:
            rows = prepare.read(table, use)
        except TableError:
            if use.columns is None or not hasattr(prepare, "columns_"):
                raise
        if use.columns and (as_numbers := _asked_by_name(prepare, use.columns)):
            prepare.set_params(as_={**as_numbers, **(prepare.as_ or {})})
            rows = None
        rows = prepare.read(table, use) if rows is None else rows
        _refuse_lacking(prepare, rows)
        prepare.finish(rows)
        prepare.notes_ = [*_notes_on_rows(self._whole, prepare, rows), *prepare.notes_]
        return PreparedRows(self._whole, prepare, rows, prepare.notes_, prepare)

    def as_known(
        self, known: Columns, model: str = "the model", scalers: Sequence[Any] = (), **how: Any
    ) -> PreparedRows:
        """Read the columns to which a model was fitted, as points that its last step takes."""
        prepare, use = copy.copy(known.preparation), replace(self._use, **how)
        if prepare is None:
            given = [name for name in self._table.names if name != use.weights]
            n_features = known.n_features or len(given)
            numbered = [f"c{number + 1}" for number in range(n_features)]
            names = known.names or (given if n_features == len(given) else numbered)
            prepare = Prepare.of_numbers(names)
        table = prepare.as_fitted(self._table, use, model)
        if not self._is_fitted:
            _read_as_written(prepare, self._prepare, table)
        rows = prepare.read_again(table, use)
        _refuse_lacking(prepare, rows)
        rows.scale(*prepare.scaling)
        as_read = rows.raw
        for scaler in scalers:
            rows.change(scaler.transform)
        notes = [*_notes_on_rows(self._whole, prepare, rows), *doubts_on_others(prepare, rows)]
        if self.paths and isinstance(as_read, np.ndarray) and (scalers or prepare.scale_ != "none"):
            notes += _in_other_units(rows.raw, prepare.get_feature_names_out())
        return PreparedRows(self._whole, prepare, rows, notes, known.preparation, as_read, scalers)


class PreparedRows:
    """Points of the rows of a table, in memory or in a temporary file."""

    can_skip = True

    def __init__(
        self,
        table: Table,
        prepare: Prepare,
        rows: RawRows,
        notes: Sequence[Note],
        preparation: Any = None,
        as_read: Any = None,
        scalers: Sequence[Any] = (),
    ) -> None:
        self.name, self.paths, self.weights = table.name, rows.table.paths, rows.weights
        self.table = rows.table if prepare.per is not None else table  # with all columns
        self.prepare, self.rows, self.notes, self.preparation = prepare, rows, notes, preparation
        self.as_read, self.scalers = as_read, scalers  # points before the scalers behind `prepare`
        self.feature_names = tuple(map(str, prepare.get_feature_names_out()))
        self.n_features, self.dtype = len(self.feature_names), rows.dtype
        self.n_rows = int(rows.is_used.sum())
        self.is_used = None if rows.is_used.all() else rows.is_used
        self._spooled: Any = None
        self.points: Any = rows.raw  # in memory; otherwise who cuts them into parts sets these
        if not isinstance(rows.raw, np.ndarray):
            weights = "" if rows.has_weights else None  # a name that no feature has
            names = [*self.feature_names, *[""] * rows.has_weights]
            self._spooled = rows.raw.source(
                self.name, weights=weights, names=names, dtype=rows.dtype
            )

    @property
    def is_in_parts(self) -> bool:
        """Whether rows are read part by part."""
        return self._spooled is not None

    @property
    def missing(self) -> Literal["error", "drop", "observed"]:
        """What was done with rows that lack values, if some do or were to be used."""
        if self.rows.has_missing or self.rows.use.missing == "observed":
            return "observed"
        return "error" if self.rows.lacking_row is None else "drop"

    def whole(self) -> tuple[FloatArray, FloatArray | None] | None:
        """Return points and weights, if they are in memory."""
        return None if self.is_in_parts else (self.points, self.weights)

    def explain(self, error: EntryError, first_row: int = 0) -> None:
        """Raise the error of an entry by its file and column; its rows count from `first_row`."""
        row = self.rows.table.row(np.flatnonzero(self.rows.is_used)[first_row + error.row])
        column, way_out = self.feature_names[error.column], "".join(map(str, error.way_out))
        raise TableError(
            f'{self.name}: column "{column}" has {error.value:g} in {row}', way_out
        ) from error

    def fingerprint(self) -> str:
        """Return a text that differs for different points."""
        return str(self._spooled.fingerprint())

    def blocks(self, first_row: int = 0, at_once: int | None = None) -> Iterator[Block]:
        """Yield the points from a row on."""
        if self.is_in_parts:
            yield from self._spooled.blocks(first_row, at_once)
            return
        weights = None if self.weights is None else self.weights[first_row:]
        yield Block(self.rows.raw[first_row:], weights, self.name, first_row + 1)


def partitions(
    frames: Callable[[], Iterator[Any]], prepare: Prepare | None
) -> tuple[Callable[[Any], FloatArray], Prepare]:
    """Return what makes points of a frame, and the `Prepare`, which understands all if unfitted."""
    table = open_table(frames)
    if prepare is not None and prepare.per is not None:
        raise TableError("per= joins rows, which may be in several partitions", "join them first")
    if prepare is not None and hasattr(prepare, "columns_"):
        return partial(_points_of, prepare, prepare.encoder_for(prepare.as_fitted(table))), prepare
    found = clone(prepare) if prepare is not None else Prepare()
    encoder = found.understand_columns(table, Use())
    blocks = ((encoder.raw(batch, _row_of_part), None) for batch in table.batches())
    found.settle_by(table, blocks)
    return partial(_points_of, found, encoder), found


def _row_of_part(row: int) -> str:
    return f"row {row + 1} of a partition"


def _points_of(prepare: Prepare, encoder: Encoder, frame: Any) -> FloatArray:
    offsets, scales = prepare.scaling
    blocks = [encoder.raw(batch, _row_of_part) for batch in as_frame(frame).to_batches()]
    raw = np.concatenate(blocks) if blocks else np.empty((0, len(scales)))
    return (raw - offsets) / scales


def _read_as_written(prepare: Prepare, told: Prepare, table: Table) -> None:
    """Let a copy of what was fitted read codes and marks as they were told for this table."""
    reader, names = prepare.reader_of(table)
    if reader is not prepare:
        prepare.lines_ = reader = copy.copy(reader)
    every = [*dict.fromkeys([*names, *map(str, reader.feature_names_in_)])]
    is_new = [*told.codes] != [*reader.codes]  # those of the fit are known by its columns
    codes = told.codes_of(every, table.name) if is_new else {}
    reader.columns_ = [
        replace(one, codes=[*one.codes, *codes.get(one.name, ())]) for one in reader.columns_
    ]
    marks = {name: getattr(told, name) for name in ("decimal", "thousands", "dates")}
    reader.set_params(**{name: mark for name, mark in marks.items() if mark is not None})
    reader.decimal_ = told.decimal or reader.decimal_


def _asked_by_name(prepare: Prepare, asked: Sequence[str | int]) -> dict[str, str]:
    """Return the kinds of columns that would be left out, where they were asked for."""
    left_out = [one for one in prepare.columns_ if not one.is_used and one.name != prepare.per]
    for one in left_out:
        if one.kind == "text" and one.name in asked:
            raise TableError(
                f'"{one.name}" has {one.why}, which cannot be compared: leave it out, or pass ',
                Argument("as_", {one.name: "category"}),
            )
    return {
        one.name: "category" if "cluster" in one.name or one.name == "name" else "number"
        for one in left_out
        if one.kind == "identifier" or one.why in (OF_A_FIT, OF_WEIGHTS)
    }


def _refuse_lacking(prepare: Prepare, rows: RawRows) -> None:
    """Raise where rows that should count lack values."""
    use, table, row = rows.use, rows.table, rows.weight_lacking
    if not rows.n_given:
        raise TableError(f"{table.name}: no row is left", "skip fewer rows")
    leave_out: list[str | Argument] = ["leave such rows out"]
    if use.may_drop:
        leave_out = [Argument("missing", "drop"), " leaves such rows out"]
    if use.rule != "drop" and row is not None:
        said = f'column "{use.weights}" has no value in {table.row(row)}, and rows need weights'
        raise TableError(f"{table.name}: {said}", *leave_out)
    if rows.lacking_row is None or (use.rule != "error" and rows.is_used.any()):
        return
    lacking = [f'"{name}"' for name in _lacking_columns(prepare, rows)]
    lacking += [f'"{use.weights}"'] * (row is not None)
    said = f"values are missing in {some(lacking)}, first in {table.row(rows.lacking_row)}"
    said += f" ({rows.n_rows_lacking} of {rows.n_given} rows lack one)"
    if use.rule != "error":
        raise TableError(f"{table.name}: {said}, so that no row is left", "choose other columns")
    if not use.why_whole:
        leave_out += ["; ", Argument("missing", "observed"), " uses what is present"]
    raise TableError(f"{table.name}: {said}", *leave_out)


def _lacking_columns(prepare: Prepare, rows: RawRows) -> dict[str, int]:
    """Return the columns that lack values, and in how many rows: all features of one together."""
    names = (str(name).partition(": ")[0] for name in prepare.get_feature_names_out())
    return {name: int(n) for name, n in zip(names, rows.n_lacking, strict=True) if n}


def _notes_on_rows(table: Table, prepare: Prepare, rows: RawRows) -> Iterator[Note]:
    """Yield notes on how a table was read, and on rows that are left out or lack values."""
    use = rows.use
    if not isinstance(rows.raw, np.ndarray) and use.in_parts is None:
        size = f"{rows.n_bytes / 1e9:.3g} GB in memory"
        yield Note(f"read part by part, since its points would take {size}")
    for text in table.doubts:
        yield Note(text, is_doubt=True)
    if table.how_read:
        yield Note(f"read: {'; '.join(table.how_read)}")
    if n_skipped := int((~use.rows_of(table)).sum()) - len(table.totals):
        yield Note(f"{counted(n_skipped, 'row')} left out", False, [Argument("skip_rows")], True)
    if table.totals:
        yield Note(table.said_of_totals, False, (Argument("keep_totals"), " uses all rows"), True)
    lacking, is_dropped = _lacking_columns(prepare, rows), use.rule == "drop"
    if lacking and (not is_dropped or use.missing == "auto"):
        most_first = sorted(lacking.items(), key=lambda pair: -pair[1])
        listed = [f'{n} in "{name}"' for name, n in most_first]
        told = some(listed, len(listed) if use.names_all else 4)
        said = f"missing values: {told}, of {rows.n_given} rows; "
        then, leave_out = "distances use the values that are present", list[str | Argument]()
        if is_dropped:
            then = f"such rows are left out, since {use.why_whole}"
        elif use.may_drop:
            leave_out = [Argument("missing", "drop"), " leaves those rows out"]
        yield Note(said + then, is_dropped, leave_out)
    if n_left_out := rows.n_given - int(rows.is_used.sum()):
        what = "with missing values" if is_dropped else "without any value"
        yield Note(f"left out: {counted(n_left_out, 'row')} {what}", is_of_rows=True)


def _in_other_units(points: FloatArray, names: Sequence[str]) -> Iterator[Note]:
    """Yield a note on columns whose rows are far from those of the fit."""
    far = [
        f'"{name}"'
        for name, values in zip(names, np.abs(points).T, strict=True)
        if not np.isnan(values).all() and np.nanmedian(values) > _FAR
    ]
    if far:
        said = f"most rows are far from those of the fit in {', '.join(far[:4])}"
        yield Note(f"{said}: is it another unit?", is_doubt=True)


def _warn_of(rows: PreparedRows, *, is_new: bool) -> None:
    """Warn once of what is in doubt, and of what a fit left out of a table."""
    said = [one.text for one in rows.notes if one.is_doubt or (one.is_of_rows and is_new)]
    lost = [
        f'"{one.name}" ({one.kind}: {one.why})'
        for one in rows.prepare.columns_
        if not one.is_used and one.kind != "place" and one.why not in DOUBTED  # which notes tell
    ]
    said += [f"left out {some(lost, 8)}"] * bool(lost and is_new)
    if said:
        where = " (model.preparation_ tells all of it)" * is_new
        warn_caller(f"{rows.name}: {'; '.join(said)}{where}")
