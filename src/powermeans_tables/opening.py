"""Tables as points of a fit, for the door of `powermeans`, which registers what is here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

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
from powermeans_tables.preparing.points import Encoder, RawRows, Use
from powermeans_tables.preparing.prepare import Prepare, doubts_on_others
from powermeans_tables.reading.files import open_table
from powermeans_tables.reading.table import Table


class TableRows:
    """The rows of a table, which become points once it is known for which fit they are."""

    def __init__(
        self,
        source: Any,
        columns: Sequence[str | int] | None,
        weights: str | None,
        prepare: Any,
        dtype: Any = None,
    ) -> None:
        self._table = open_table(source)
        self.name, self.paths, self._asked = self._table.name, self._table.paths, columns
        self._prepare: Prepare = Prepare() if prepare is None else prepare
        per = self._prepare.per
        self._table, self._weights = chosen_of(self._table, columns, weights, per)
        self._dtype, self._found = dtype, dict[Any, PreparedRows]()  # the last that was asked for

    def points_for(self, needs: Needs, *, in_parts: bool) -> PreparedRows:
        """Return the rows as points, as many times as asked from one pass over them."""
        known = needs.known
        of_fit = None if known is None else known.preparation or known.names or known.n_features
        key = of_fit, in_parts, needs.measure.has_missing
        if key not in self._found:
            self._found = {key: self._read(known, needs, in_parts=True if in_parts else None)}
        return self._found[key]

    def _read(self, known: Columns | None, needs: Needs, in_parts: bool | None) -> PreparedRows:
        use = Use(self._weights, lacking="all" if needs.measure.has_missing else "keep")
        how = {"in_parts": in_parts, "dtype": self._dtype, "tell": needs.fit.tell}
        if known is None and hasattr(self._prepare, "columns_"):  # it is fitted already
            known = Columns(None, None, self._prepare)
        if known is None:
            prepare = clone(self._prepare)
            rows = read_as_new(prepare, self._table, use, self._asked, **how)
            _warn_of(prepare, self._table, rows)
            return PreparedRows(self.name, prepare, rows, prepare)
        prepare = known.preparation or numbers_like(known, self._table)
        table = prepare.as_fitted(self._table, also=[self._weights] if self._weights else ())
        rows = read_as_fitted(prepare, table, use, **how)
        doubts = [note.text for note in doubts_on_others(prepare, rows)]
        if doubts:
            warn_caller(f"{self.name}: {'; '.join(doubts)}")
        return PreparedRows(self.name, prepare, rows, known.preparation)


class PreparedRows:
    """Points of the rows of a table, in memory or in a temporary file."""

    can_skip = True

    def __init__(self, name: str, prepare: Prepare, rows: RawRows, preparation: Any) -> None:
        self.name, self.rows, self.preparation = name, rows, preparation
        self.paths = rows.table.paths
        self.feature_names = tuple(map(str, prepare.get_feature_names_out()))
        self.n_features, self.dtype = len(self.feature_names), rows.dtype
        self.n_rows = int(rows.is_used.sum())
        self.is_used = None if rows.is_used.all() else rows.is_used
        self._spooled: Any = None
        if not isinstance(rows.raw, np.ndarray):
            weights = "" if rows.has_weights else None  # a name that no feature has
            names = [*self.feature_names, *[""] * rows.has_weights]
            self._spooled = rows.raw.source(name, weights=weights, names=names, dtype=rows.dtype)

    def whole(self) -> tuple[FloatArray, FloatArray | None] | None:
        """Return points and weights, if they are in memory."""
        return (self.rows.raw, self.rows.weights) if self._spooled is None else None

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
        if self._spooled is not None:
            yield from self._spooled.blocks(first_row, at_once)
            return
        weights = None if self.rows.weights is None else self.rows.weights[first_row:]
        yield Block(self.rows.raw[first_row:], weights, self.name, first_row + 1)


def chosen_of(
    table: Table, columns: Sequence[str | int] | None, weights: str | None, per: str | None
) -> tuple[Table, str | None]:
    """Return the columns to read, with that by which rows are joined, and that of weights."""
    names, places = table.names, places_of(columns, weights, table.names, table.name)
    last = None if weights is None else names[places[-1]]
    places += [] if per is None else numbers_of([per], names, table.name)
    return table.choosing({names[place]: names[place] for place in places}), last


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


def read_as_new(
    prepare: Prepare, table: Table, use: Use, asked: Sequence[str | int] | None, **how: Any
) -> RawRows:
    """Understand the columns that were asked for, even identifiers, or all; read them as points."""
    try:
        rows = prepare.read(table, use, **how)
    except TableError:
        if asked is None or not hasattr(prepare, "columns_"):
            raise
        rows = None
    if asked and (as_numbers := _asked_by_name(prepare, asked)):
        prepare.set_params(as_={**as_numbers, **(prepare.as_ or {})})
        rows = None
    rows = prepare.read(table, use, **how) if rows is None else rows
    _refuse_lacking(prepare, rows)
    prepare.finish(rows)
    return rows


def read_as_fitted(prepare: Prepare, table: Table, use: Use, **how: Any) -> RawRows:
    """Read the columns of a fit, by their names in the fit, as points."""
    rows = prepare.read_again(table, use, **how)
    _refuse_lacking(prepare, rows)
    rows.scale(*prepare.scaling)
    return rows


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


def numbers_like(known: Columns, table: Table) -> Prepare:
    """Return what reads the columns of points, by name or by place, as they are."""
    names = list(table.names if known.names is None else known.names)
    if known.names is None and known.n_features not in (None, len(names)):
        raise TableError(
            f"{table.name} has {len(names)} columns, and the estimator was fitted to "
            f"{known.n_features}",
            "choose as many with ",
            Argument("columns", names[: known.n_features]),
        )
    return Prepare.of_numbers(names)


def _refuse_lacking(prepare: Prepare, rows: RawRows) -> None:
    """Raise where rows that should count lack values."""
    use, table, row = rows.use, rows.table, rows.weight_lacking
    if not rows.n_given:
        raise TableError(f"{table.name}: no row is left", "skip fewer rows")
    leave_out: list[str | Argument] = ["leave such rows out"]
    if "drop" in use.ways_out:
        leave_out = [Argument("missing", "drop"), " leaves such rows out"]
    if use.lacking != "any" and row is not None:
        said = f'column "{use.weights}" has no value in {table.row(row)}, and rows need weights'
        raise TableError(f"{table.name}: {said}", *leave_out)
    if rows.lacking_row is None or (use.lacking != "keep" and rows.is_used.any()):
        return
    lacking = [f'"{name}"' for name in lacking_columns(prepare, rows)]
    lacking += [f'"{use.weights}"'] * (row is not None)
    said = f"values are missing in {some(lacking)}, first in {table.row(rows.lacking_row)}"
    said += f" ({rows.n_rows_lacking} of {rows.n_given} rows lack one)"
    if use.lacking != "keep":
        raise TableError(f"{table.name}: {said}, so that no row is left", "choose other columns")
    if "observed" in use.ways_out:
        leave_out += ["; ", Argument("missing", "observed"), " uses what is present"]
    raise TableError(f"{table.name}: {said}", *leave_out)


def lacking_columns(prepare: Prepare, rows: RawRows) -> dict[str, int]:
    """Return the columns that lack values, and in how many rows: all features of one together."""
    names = (str(name).partition(": ")[0] for name in prepare.get_feature_names_out())
    return {name: int(n) for name, n in zip(names, rows.n_lacking, strict=True) if n}


def _warn_of(prepare: Prepare, table: Table, rows: RawRows) -> None:
    """Warn once of what was left out of a table, and of what is in doubt."""
    said = [table.said_of_totals] * bool(table.totals) + table.doubts
    left_out = [one for one in prepare.columns_ if not one.is_used and one.kind != "place"]
    lost = [f'"{one.name}" ({one.kind}: {one.why})' for one in left_out]
    said += [f"left out {some(lost, 8)}"] * bool(lost)
    n_empty = rows.n_without_value
    said += [f"{counted(n_empty, 'row')} without any value are in no cluster"] * bool(n_empty)
    said += [note.text for note in prepare.notes_ if note.is_doubt]
    if said:
        warn_caller(f"{table.name}: {'; '.join(said)} (model.preparation_ tells all of it)")
