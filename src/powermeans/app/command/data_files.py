"""Read the data files of a command, and scale their columns."""

from __future__ import annotations

import contextlib
import csv
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from powermeans.app.command import failures
from powermeans.app.reading.frames import Frame, is_array, opened
from powermeans.app.report.subject import TOLD_OF_COLUMNS, FileTable
from powermeans.errors import ArgumentError, TableError
from powermeans.points.checks.points import unlike_scales
from powermeans.preparing.cells import Cells, one_array
from powermeans.preparing.kinds import NUMBERS, Column
from powermeans.preparing.number_forms import Dates
from powermeans.preparing.prepare import Note, Prepare, have_one_unit
from powermeans.scale.tables import Missing, Table, read_table
from powermeans.scale.tables.checking import (
    declared_missing,
    has_no_name,
    numbers_of,
    rows_to_skip,
    with_last_as_weights,
    without_missing,
    without_rows,
)
from powermeans.scale.tables.formats import options_of
from powermeans.system.arrow import pyarrow_part
from powermeans.types import FloatArray

# The columns that are added to the rows of a file.
ADDED = ("cluster", "distance", "second_cluster", "sure")
Chooser = Callable[[Sequence[str]], Sequence[str] | None]
Scale = Literal["auto", "standard", "minmax", "none"]


@dataclass(frozen=True, slots=True)
class DataFiles:
    """Paths of data and how to read them, as in `powermeans.read_table`.

    Several files, or a folder, are read part by part, and so is one file with a limit of memory or
    a checkpoint.
    """

    paths: tuple[str, ...]
    columns: str | None = None
    weights: str | None = None
    missing: Missing | Literal["auto"] | None = None
    delimiter: str | None = None
    header: bool | None = None
    array: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    dates: Dates | None = None
    encoding: str | None = None
    missing_values: tuple[str, ...] | None = None
    skip_rows: tuple[int, ...] = ()
    keeps_totals: bool = False
    kinds: tuple[tuple[str, str], ...] = ()  # of columns, as told
    orders: tuple[tuple[str, ...], ...] = ()  # of words, as told
    database: str | None = None
    memory_limit: str | None = None
    checkpoint: str | None = None
    checkpoint_seconds: float | None = None

    @property
    def first(self) -> str:
        """The first path, which stands for all in the JSON output."""
        return self.paths[0]

    @property
    def name(self) -> str:
        """The data, as messages call it."""
        if len(self.paths) > 1:
            return f"{self.first} and {len(self.paths) - 1} more"
        return "standard input" if self.first == "-" else self.first

    @property
    def is_missing_open(self) -> bool:
        """Whether the data are to tell what to do with missing values."""
        return self.missing in (None, "auto")

    def with_missing(self, missing: Missing) -> DataFiles:
        """Return the same with what the data told to do with missing values, if anything."""
        is_told = self.is_missing_open and missing != "error"
        return replace(self, missing=missing) if is_told else self

    @property
    def missing_in_fit(self) -> Literal["error", "observed"]:
        """What an estimator does with missing values, once rows to drop are gone."""
        return "observed" if self.missing == "observed" else "error"

    @property
    def missing_in_table(self) -> Missing:
        """What the reader of a table does with missing values."""
        return "observed" if self.missing is None or self.missing == "auto" else self.missing

    @property
    def asked_columns(self) -> list[str] | None:
        """The columns that were asked for."""
        return None if self.columns is None else split_names(self.columns)

    @property
    def reading(self) -> dict[str, Any]:
        """How to read a file, whichever columns are wanted."""
        form = ("delimiter", "header", "array", "decimal", "thousands", "dates", "encoding")
        names = (*form, "missing_values")
        found = {name: getattr(self, name) for name in names}
        return found | ({"missing_values": None} if self.missing_values == ("none",) else {})

    def frame(self) -> Frame | None:
        """Return the table of a file that people have; None for arrays of numbers alone."""
        query = self.first if self.database is not None else None
        options = {name: getattr(self, name) for name in ("delimiter", "header", "encoding")}
        with failures.refusing(TableError):
            if query is None and is_array(self.first):
                return None
            return opened(self.database or self.first, query, array=self.array, **options)

    def read(self, choose: Chooser | None = None) -> tuple[Table, float]:
        """Return the table and the seconds it took; `choose` overrides the columns asked for."""
        started = time.perf_counter()
        with failures.refusing(TableError):
            table = read_table(
                self.first,
                columns=choose or self.asked_columns,
                weights=self.weights,
                missing=self.missing_in_table,
                skip_rows=self.skip_rows,
                **self.reading,
            )
        return table, time.perf_counter() - started

    def reading_of(self, data: FitData) -> dict[str, Any]:
        """Return the arguments of `read_table`, besides the path, that read these columns again."""
        return {
            "columns": list(data.names) if are_names(data.names) else self.asked_columns,
            "weights": self.weights,
            "missing": "error" if self.is_missing_open else self.missing,
            **self.reading,
            "missing_values": self.reading["missing_values"] or data.codes,
            "skip_rows": self.skip_rows or data.rows_of_totals,
        }

    def to_remember(self, data: FitData) -> dict[str, Any]:
        """Return how to read other files of this form; a point is a decimal mark anyway."""
        how = {"missing": None if self.is_missing_open else self.missing, **self.reading}
        how["decimal"] = self.decimal or ("," if data.decimal == "," else None)
        how["missing_values"] = self.reading["missing_values"] or data.codes or None
        return {name: value for name, value in how.items() if value is not None}

    def as_remembered(self, reading: dict[str, Any]) -> DataFiles:
        """Return the same with options that were not given as they are in `reading`."""
        is_file = os.path.isfile(self.first)
        options = options_of(Path(self.first)) if is_file else tuple(self.reading)
        not_given = {
            name: value
            for name, value in reading.items()
            if name in ("missing", *options) and getattr(self, name) is None
        }
        return replace(self, **not_given)


@dataclass(frozen=True, slots=True)
class FitData:
    """Scaled points in memory, or rows that are read part by part."""

    points: Any  # an array or PartedData
    names: list[str]
    weights: FloatArray | None = None
    is_kept: NDArray[np.bool_] | None = None
    scaler: Any = None  # of scikit-learn, or `Prepare`
    seconds_reading: float | None = None  # None for rows that are read for each sweep
    how_read: str = ""
    scale: Scale = "none"
    why_scaled: str = ""
    decimal: str = ""
    missing: Missing = "error"
    why_missing: Sequence[str] = ()
    n_skipped: int = 0
    frame: Frame | None = None
    columns: Sequence[Column] = ()
    notes: Sequence[Note] = ()
    codes: Sequence[str] = ()  # found, for reading the same columns again

    @property
    def rows_of_totals(self) -> tuple[int, ...]:
        """The rows, from 1, that are left out since they sum up others."""
        if self.frame is None or self.n_skipped or self.is_kept is None:
            return ()
        return tuple(row + 1 for row in self.frame.totals if not self.is_kept[row])

    def contributions(self) -> dict[str, float]:
        """Return the share of each column in all distances."""
        if isinstance(self.scaler, Prepare):
            return self.scaler.contributions_
        variances = np.nanvar(self.points, axis=0)
        total = max(float(variances.sum()), np.finfo(float).tiny)
        return {name: float(v) / total for name, v in zip(self.names, variances, strict=True)}

    def done(self, column: Column) -> str:
        """Return what is done with a column, in words."""
        if column.kind not in NUMBERS or self.scale in ("auto", "standard"):
            return column.done
        return "as it is" if self.scale == "none" else "from 0 to 1"

    def to_choose_k(self, seed: int) -> Any:
        """Return the points by which k is chosen: answers in words lie in ranges without gaps."""
        if not isinstance(self.scaler, Prepare):
            return self.points
        return self.scaler.spread_out(self.points, seed)


def read_scaled(
    files: DataFiles, scale: Scale, n_clusters: int, option: str, *, takes_missing: bool = True
) -> FitData:
    """Read and scale a table; refuse fewer rows than the clusters that the option asks for.

    `takes_missing` tells whether distances go by the values that are there.
    """
    started = time.perf_counter()
    frame = files.frame()
    if frame is None:
        table, _ = files.read()
        data = FitData(table.points, list(table.names), table.weights, table.is_kept)
        data = replace(data, how_read=table.how_read, decimal=table.decimal)
        prepare = None
    else:
        prepare, data, table = _understood(files, frame, scale)
    table, missing, why_missing = settle_missing(table, files, takes_missing=takes_missing)
    data = replace(
        data,
        points=table.points,
        names=list(table.names),
        weights=table.weights,
        is_kept=table.is_kept,
        missing=missing,
        why_missing=why_missing,
        seconds_reading=time.perf_counter() - started,
        n_skipped=len(set(files.skip_rows)),
    )
    if n_clusters > len(data.points):
        raise failures.Failure(
            f"{option} {n_clusters} is more than the {len(data.points)} rows of {files.name}: ask "
            "for fewer clusters"
        )
    if prepare is None or prepare.is_plain:
        return _scaled(data, scale, prepare)
    with failures.refusing():
        points = prepare.settle(data.points, data.weights)
    notes = [*data.notes, *(note for note in prepare.notes_ if note not in data.notes)]
    return replace(data, points=points, scaler=prepare, scale=scale, notes=notes)


def _understood(files: DataFiles, frame: Frame, scale: Scale) -> tuple[Prepare, FitData, Table]:
    """Find what the columns of a frame hold, and return them as numbers without scale."""
    asked, names = files.asked_columns, frame.table.column_names
    with failures.refusing(ArgumentError), _naming(files):
        wanted = list(range(len(names))) if asked is None else numbers_of(asked, names, files.name)
        last = [] if files.weights is None else numbers_of([files.weights], names, files.name)
        own = range(len(names) - 4, len(names)) if names[-4:] == [*ADDED] and asked is None else ()
        used = frame.table.select([j for j in dict.fromkeys(wanted) if j not in (*last, *own)])
        is_left_out = rows_to_skip(files.skip_rows, frame.table.num_rows, files.name)
        if not files.skip_rows and not files.keeps_totals:
            is_left_out[list(frame.totals)] = True
        keep = pyarrow_part().array(~is_left_out)
        prepare = _prepare_as_told(files, used.column_names, scale)
        raw = _understand(prepare, used.filter(keep), asked)
        found = Table(raw, tuple(map(str, prepare.get_feature_names_out())))
        for column in last:
            cells = Cells(names[column], one_array(frame.table[column].filter(keep)))
            if cells.type not in ("number", "empty"):
                raise TableError(f'"{names[column]}" holds no weights, but {cells.type} values')
            weights = cells.numbers
            found = Table(np.column_stack([raw, weights]), (*found.names, names[column]))
            found = with_last_as_weights(found, files.name, files.missing_in_table)
        found = replace(found, is_kept=~is_left_out if is_left_out.any() else None)
        if files.missing_in_table != "observed":
            found = without_missing(found, files.missing_in_table, files.name)
    codes = [f"{one.name}={code}" for one in prepare.columns_ for code in one.codes]
    data = FitData(
        raw,
        list(found.names),
        how_read="; ".join(frame.how_read),
        decimal=prepare.decimal_,
        frame=frame,
        columns=prepare.columns_,
        notes=[
            *(Note(text, is_doubt=True) for text in frame.doubts),
            *[Note(f"the columns {', '.join(ADDED)} of a former fit do not count")] * bool(own),
            *prepare.notes_,
        ],
        codes=() if files.missing_values else codes,
    )
    return prepare, data, found


def _prepare_as_told(files: DataFiles, names: Sequence[str], scale: Scale) -> Prepare:
    return Prepare(
        as_=dict(files.kinds),
        order=files.orders,
        scale=scale,
        codes=_codes(files, names),
        decimal=files.decimal,
        thousands=files.thousands,
        dates=files.dates,
    )


@contextlib.contextmanager
def _naming(files: DataFiles) -> Iterator[None]:
    """Name the file in errors that speak of its columns."""
    try:
        yield
    except TableError as error:
        if error.argument or files.name in error.problem:
            raise
        raise TableError(f"{files.name}: {error.problem}", *error.way_out) from None


def _codes(files: DataFiles, names: Sequence[str]) -> Any:
    """Return the codes for missing values that were given, each for one column."""
    if files.missing_values in (None, ("none",)):
        return "none" if files.missing_values else "auto"
    found = declared_missing(files.missing_values, names, files.name)
    return [f"{names[j]}={value}" for places, value in found for j in places]


def _understand(prepare: Prepare, used: Any, asked: Sequence[str] | None) -> FloatArray:
    """Find what columns hold; identifiers and dates count where they were asked for."""
    if asked is None:
        return prepare.understand(used)
    try:
        raw = prepare.understand(used)
    except TableError:
        if not hasattr(prepare, "columns_"):
            raise
        raw = np.empty((0, 0))
    if told := _told_by_asking(prepare, asked):
        raw = prepare.set_params(as_={**told, **(prepare.as_ or {})}).understand(used)
    elif not raw.size:
        raw = prepare.understand(used)
    return raw


def _told_by_asking(prepare: Prepare, asked: Sequence[str] | None) -> dict[str, str]:
    """Return the kinds of columns that would be left out, where they were asked for by name."""
    left_out = [one for one in prepare.columns_ if asked is not None and not one.is_used]
    for one in left_out:
        if one.kind == "text" and one.name in (asked or ()):
            raise TableError(
                f'"{one.name}" has {one.why}, which cannot be compared: leave it out, or pass '
                f"--as {one.name}=category"
            )
    return {one.name: "number" for one in left_out if one.kind == "identifier"}


def scale_of(
    points: Any, names: list[str], columns: Sequence[Column] | None = None
) -> tuple[Scale, str]:
    """Return how columns of numbers are scaled by default, and why where they have no names."""
    if not are_names(names):
        why = why_scale(points, names)
        return "standard" if why else "none", why
    known = columns or [Column(name, "number") for name in names]
    is_one_unit = len(known) < 2 or have_one_unit(known, list(points.T[:, :, None]))
    return "none" if is_one_unit else "standard", ""


def _scaled(data: FitData, scale: Scale, prepare: Prepare | None) -> FitData:
    """Scale columns of numbers by a scaler of scikit-learn."""
    points, why_scaled = data.points, ""
    if scale == "auto":
        columns = None if prepare is None else [one for one in prepare.columns_ if one.is_used]
        scale, why_scaled = scale_of(points, data.names, columns)
    scaler = None
    if scale != "none":
        # Scaling in place saves the memory of a copy; a memory map, say, is read-only.
        kind = StandardScaler if scale == "standard" else MinMaxScaler
        scaler = kind(copy=not points.flags.writeable)
        weighted = {"sample_weight": data.weights} if scale == "standard" else {}
        with failures.refusing():
            points = scaler.fit_transform(points, **weighted)
        scaler.set_params(copy=True)
    data = replace(data, points=points, scaler=scaler, scale=scale, why_scaled=why_scaled)
    name, share = max(data.contributions().items(), key=lambda pair: pair[1])
    if scale == "none" and share > 0.8 and len(data.names) > 1:
        text = f'"{name}" decides {share:.0%} of all distances (--scale standard evens them out)'
        data = replace(data, notes=[*data.notes, Note(text, is_doubt=True)])
    return data


def settle_missing(
    table: Table, files: DataFiles, *, takes_missing: bool
) -> tuple[Table, Missing, list[str]]:
    """Decide what to do with missing values, and return lines on that."""
    if not files.is_missing_open:
        return table, files.missing_in_table, []
    n_rows, n_missing = len(table.points), np.isnan(table.points).sum(axis=0)
    if not n_missing.any():
        return table, "error", []
    is_missing = np.isnan(table.points)
    is_left_out: Any = is_missing.all(axis=1) if takes_missing else is_missing.any(axis=1)
    if is_left_out.all():
        with failures.refusing(TableError):
            without_missing(table, "error", files.name)
    if is_left_out.any():
        table = without_rows(table, is_left_out)
    said = []
    # The features of one category miss a value together.
    columns = dict(zip((name.partition(": ")[0] for name in table.names), n_missing, strict=True))
    by_column = [(int(n), name) for name, n in columns.items() if n]
    if by_column:
        said.append(_missing_in_words(by_column, n_rows, takes_missing=takes_missing))
    is_whole = not np.isnan(table.points).any()
    missing: Missing = "drop" if is_left_out.any() else "error"
    return table, missing if is_whole else "observed", said


def _missing_in_words(by_column: list[tuple[int, str]], n_rows: int, *, takes_missing: bool) -> str:
    most = sorted(by_column, key=lambda pair: -pair[0])
    shown = ", ".join(f'{n} in "{name}"' for n, name in most[:4])
    n_more = len(most) - 4
    more = f" and more in {n_more} other{'s' * (n_more > 1)}" if n_more > 0 else ""
    values = f"missing values: {shown}{more}, of {n_rows} rows"
    if takes_missing:
        values += "; distances use the values that are there"
        return f"{values} (--missing drop leaves those rows out)"
    return f"{values}; such rows are left out, since this divergence needs whole rows"


def why_scale(points: Any, names: Sequence[str]) -> str:
    """Return a sentence on columns whose scales differ, empty if none do."""
    found = unlike_scales(points)
    if found is None:
        return ""
    widest, narrowest = (
        names[column] if names else f"c{column + 1}" for column in (found.widest, found.narrowest)
    )
    return (
        f'scaled: "{widest}" spreads {found.times} times as far as "{narrowest}" '
        "(--scale none leaves columns as they are)"
    )


def notes_on(data: FitData | Table) -> Iterator[str]:
    """Yield how the numbers were read, if not as they are, and how many rows were left out."""
    if data.how_read:
        yield f"read: {data.how_read}"
    n_known = 0
    if isinstance(data, FitData):
        yield from filter(None, (*data.why_missing, data.why_scaled))
        if data.n_skipped:
            rows = "1 row is" if data.n_skipped == 1 else f"{data.n_skipped} rows are"
            yield f"{rows} left out by --skip-rows"
        if totals := data.rows_of_totals:
            rows = ", ".join(map(str, sorted(totals)))
            is_one = len(totals) == 1
            are = (
                f"row {rows} sums up others and is"
                if is_one
                else f"rows {rows} sum up others and are"
            )
            yield f"{are} left out (--keep-totals keeps {'it' if is_one else 'them'})"
        n_known = data.n_skipped or len(totals)
    n_left_out = 0 if data.is_kept is None else int(np.count_nonzero(~data.is_kept)) - n_known
    if n_left_out:
        what = "without any value" if np.isnan(data.points).any() else "with missing values"
        were = f"row {what} was" if n_left_out == 1 else f"rows {what} were"
        yield f"{n_left_out} {were} left out"


def file_table(data: FitData, how_fitted: Sequence[str] = ()) -> FileTable:
    """Return what a report says of the file: first what may make the result worthless."""
    doubts = [note.text for note in data.notes if note.is_doubt]
    rest = [note.text for note in data.notes if not note.is_doubt]
    how_read = [data.how_read] if data.how_read else []
    return FileTable(
        None if data.frame is None else data.frame.table,
        data.columns,
        [*doubts, *notes_on(replace(data, how_read=""))],
        [*how_read, *how_fitted, *rest],
        row_numbers(data.is_kept),
        data.names,
        told_of_columns(data, data.columns[:200]),
    )


def told_of_columns(data: FitData, columns: Sequence[Column]) -> list[list[str]]:
    """Return the lines of a table: what columns hold, why, and what is done with them."""
    shares = data.contributions()
    return [
        [one.name, one.kind, one.why, data.done(one), _percent(shares.get(one.name))]
        for one in columns
    ]


_MOST_LINES = 8
_MOST_COLUMNS = 12


def tell_columns(screen: Any, data: FitData, *, is_verbose: bool) -> None:
    """Show what each column holds where that is not plain: numbers that are used as they are."""
    if all(one.kind in NUMBERS for one in data.columns) or not data.columns:
        return
    shown = data.columns if is_verbose else data.columns[:_MOST_COLUMNS]
    screen.say()
    screen.show(
        [*TOLD_OF_COLUMNS],
        told_of_columns(data, shown),
        left=[0, 1, 2, 3],
    )
    if len(shown) < len(data.columns):
        screen.say(f"... and {len(data.columns) - len(shown)} more, which --verbose shows")
    screen.say()


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"


def tell_notes(screen: Any, notes: Sequence[str], data: FitData, *, is_verbose: bool) -> None:
    """Print at most eight lines, first what may make the result worthless."""
    doubts = [f"check this: {note.text}" for note in data.notes if note.is_doubt]
    lines = [*doubts, *notes, *(note.text for note in data.notes if not note.is_doubt)]
    for line in lines if is_verbose else lines[:_MOST_LINES]:
        screen.say(line)
    if len(lines) > _MOST_LINES and not is_verbose:
        screen.say(f"... and {len(lines) - _MOST_LINES} more, which --verbose shows")


def row_numbers(is_kept: NDArray[np.bool_] | None) -> NDArray[np.intp] | None:
    """Return the numbers, from 1, of the rows that were kept; None if all were."""
    return None if is_kept is None else np.flatnonzero(is_kept) + 1


def are_names(names: Sequence[str]) -> bool:
    """Return whether the columns have names of their own, and not just c1, c2, …."""
    return bool(names) and not all(map(has_no_name, names))


def split_names(names: str) -> list[str]:
    """Split names at commas and line ends; quotes hold a name together."""
    lines = names.splitlines(keepends=True)
    try:
        rows = list(csv.reader(lines, skipinitialspace=True))
    except csv.Error as error:
        raise failures.Failure(f"{names!r} is not a list of names: {error}") from None
    found = [name.strip() for row in rows for name in row if name.strip()]
    if not found:
        raise failures.Failure(f"{names!r} names nothing: leave it out")
    return found
