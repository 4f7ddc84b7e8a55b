"""Read the table of a command as points, for a new fit or for a saved model, which is loaded."""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from powermeans.errors import EntryError, ModelFileError, TableError, counted, nearest, some
from powermeans.explaining.features import last_of, preparation_of
from powermeans.methods.streams.base import is_waiting
from powermeans.scale.checkpoint import is_checkpoint
from powermeans.scale.files import missing_path
from powermeans.scale.named_columns import numbers_of
from powermeans.scale.parted_data import Checkpoint, PartedData, length_of_parts
from powermeans.system.attributes import forget
from powermeans.types import FloatArray
from powermeans_tables.command import failures
from powermeans_tables.command.options import DataFiles, Scale
from powermeans_tables.opening import (
    PreparedRows,
    chosen_of,
    lacking_columns,
    read_as_fitted,
    read_as_new,
)
from powermeans_tables.preparing.kinds import has_no_name
from powermeans_tables.preparing.notes import Note
from powermeans_tables.preparing.points import RawRows, Use
from powermeans_tables.preparing.prepare import Prepare, columns_in, doubts_on_others
from powermeans_tables.reading.files import open_table
from powermeans_tables.reading.formats import PACKED, format_of
from powermeans_tables.reading.table import File, Table

Missing = Literal["error", "drop", "observed"]
_FAR = 5.0  # standard deviations, in which most rows of a column in another unit lie
# How the file of a fit was read, which its model knows.
_REMEMBERED = ("delimiter", "header", "encoding", "array", "missing")


@dataclass(frozen=True, slots=True)
class Data:
    """Points in memory, or rows that are read part by part, and what is known of them."""

    files: DataFiles
    points: Any  # an array or PartedData
    prepare: Prepare
    table: Table  # with all columns
    source: PreparedRows
    missing: Missing = "error"
    notes: Sequence[Note] = ()
    as_read: Any = None  # the points before the scalers that a saved model has after `prepare`
    scalers: Sequence[Any] = ()

    @property
    def weights(self) -> FloatArray | None:
        """The weights of points in memory."""
        return self.source.rows.weights

    @property
    def is_in_parts(self) -> bool:
        """Whether rows are read part by part."""
        return isinstance(self.points, PartedData)


def opened(files: DataFiles) -> Table:
    """Open the files; most of their rows are read later."""
    with failures.refusing(name=files.name), failures.reading(files.name):
        form: dict[str, Any] = {"keep_totals": files.keep_totals}
        if files.database is not None:
            return open_table(files.database, query=files.first, **form)
        return open_table([*files.paths], **form, **files.form)


def read_to_fit(files: DataFiles, table: Table, scale: Scale, *, takes_missing: bool) -> Data:
    """Read and scale a table; `takes_missing` tells whether distances may rest on what is there."""
    why_whole = "" if takes_missing else "this divergence needs whole rows"
    with failures.refusing(name=files.name), failures.reading(files.name):
        per = files.per and table.names[numbers_of([files.per], table.names, files.name)[0]]
        chosen, weights = chosen_of(table, files.asked_columns, files.weights, per)
        use = _use(files, table, weights, why_whole)
        codes = _codes(files, [name for name in chosen.names if name != use.weights])
        prepare = Prepare(
            as_=files.kinds,
            order=files.orders,
            scale=scale,
            shares=files.shares or None,
            codes="none" if files.keep_codes else codes or "auto",
            dates=files.dates,
            per=per,
            series=files.as_series,
            **files.marks,
        )
        rows = read_as_new(prepare, chosen, use, files.asked_columns, in_parts=files.in_parts)
    of_columns = [replace(note, way_out=[failures.typed(note.way_out)]) for note in prepare.notes_]
    return _data(files, table, prepare, rows, of_columns, why_whole)


def read_for(model: Any, path: str, files: DataFiles, table: Table) -> Data:
    """Read the columns to which a model was fitted, as the points that its last step takes."""
    takes_missing = getattr(last_of(model), "missing", None) == "observed"
    if files.missing == "observed" and not takes_missing:
        raise failures.Failure(
            f"--missing observed needs a model that was fitted with it, and {path} was not: leave "
            "rows with missing values out by --missing drop"
        )
    why_whole = "" if takes_missing else "the model was fitted without missing values"
    with failures.refusing(name=files.name), failures.reading(files.name):
        prepare = copy.copy(preparation_of(model))
        if prepare is None:
            names = getattr(model, "feature_names_in_", None)
            numbered = [f"c{number + 1}" for number in range(model.n_features_in_)]
            prepare = Prepare.of_numbers(numbered if names is None else [*map(str, names)])
        _, weights = chosen_of(table, None, files.weights, None)
        found = columns_for(prepare, path, files, table.names)
        use = _use(files, table, weights, why_whole)
        chosen = table.choosing(found | ({} if weights is None else {weights: weights}))
        if (fit := prepare.of_table) is not prepare:
            prepare.lines_ = fit = copy.copy(fit)
        given = [each.rpartition("=") for each in _codes(files, list(found))]
        fit.columns_ = [
            replace(one, codes=[*one.codes, *(c for name, _, c in given if name in ("", one.name))])
            for one in fit.columns_
        ]
        marks = {name: mark for name, mark in files.marks.items() if mark is not None}
        fit.set_params(**marks, dates=files.dates or fit.dates)
        fit.decimal_ = files.decimal or fit.decimal_
        rows = read_as_fitted(prepare, chosen, use, in_parts=files.in_parts)
        as_read, steps = rows.raw, [step for _, step in getattr(model, "steps", [])[:-1]]
        scalers = [one for one in steps if not isinstance(one, Prepare)]
        for scaler in scalers:
            rows.change(scaler.transform)
    doubts = [*doubts_on_others(prepare, rows)]
    if isinstance(rows.raw, np.ndarray):
        if scalers or prepare.scale_ != "none":
            doubts += _in_other_units(rows.raw, prepare.get_feature_names_out())
        prepare.measure(as_read, rows.weights)
    return _data(files, table, prepare, rows, doubts, why_whole, as_read=as_read, scalers=scalers)


def _data(
    files: DataFiles,
    table: Table,
    prepare: Prepare,
    rows: RawRows,
    notes: Sequence[Note],
    why_whole: str,
    **more: Any,
) -> Data:
    """Return points in memory, or in parts; `why_whole` says why rows must be whole, if so."""
    points, source = rows.raw, PreparedRows(files.name, prepare, rows, None)
    notes = [*_notes_on(table, rows), *_on_lacking(files, prepare, rows, why_whole), *notes]
    more["missing"] = "drop" if rows.lacking_row is not None else "error"
    if rows.has_missing or files.missing == "observed":
        more["missing"] = "observed"
    if not isinstance(points, np.ndarray):
        where = None if files.checkpoint is None else Checkpoint(files.checkpoint, 60.0)
        with failures.refusing():
            length = length_of_parts(None, files.memory_limit, has_weights=rows.has_weights)
            points = PartedData(source, length, checkpoint=where)
        if files.checkpoint is not None and is_checkpoint(files.checkpoint):
            notes = [Note(f"the fit resumes from {files.checkpoint}"), *notes]
        if not files.in_parts:
            size = f"{rows.n_bytes / 1e9:.3g} GB in memory"
            notes = [Note(f"read part by part, since its points would take {size}"), *notes]
    table = rows.table if prepare.per is not None else table
    return Data(files, points, prepare, table, source, notes=notes, **more)


def _use(files: DataFiles, table: Table, weights: str | None, why_whole: str) -> Use:
    """Return which rows count; those that lack values do as is asked for or possible."""
    for rows in files.skipped:
        if rows[-1] > table.n_rows:
            raise TableError(
                f"is not among the {table.n_rows} rows of {files.name}",
                "pass numbers from 1, which do not count the header",
                argument="skip_rows",
                value=max(rows[0], table.n_rows + 1),
            )
    uses_present = not why_whole if files.is_missing_open else files.missing == "observed"
    lacking = "keep" if files.missing == "error" else "all" if uses_present else "any"
    ways_out = ("drop",) if why_whole else ("drop", "observed")
    skipped = [slice(rows[0] - 1, rows[-1]) for rows in files.skipped]
    return Use(weights, skipped, lacking, ways_out)  # type: ignore[arg-type]


def _notes_on(table: Table, rows: RawRows) -> Iterator[Note]:
    """Yield notes on how the files were read, and on rows that are left out beforehand."""
    for text in table.doubts:
        yield Note(text, is_doubt=True)
    if table.how_read:
        yield Note(f"read: {'; '.join(table.how_read)}")
    if n_skipped := int((~rows.use.rows_of(table)).sum()) - len(table.totals):
        yield Note(f"{counted(n_skipped, 'row')} left out by --skip-rows")
    if table.totals:
        yield Note(f"{table.said_of_totals} (--keep-totals uses all rows)")


def bare(model: Any) -> Any:
    """Return the last step of a model, which takes points."""
    last = copy.copy(last_of(model))
    forget(last, "preparation_")
    return last


def columns_for(
    prepare: Prepare, path: str, files: DataFiles, there: Sequence[str]
) -> dict[str, str]:
    """Return the columns of a file that are those of a model, by their names in the model.

    Names decide, and places only where the file or the model has no names, or no name is the same.
    """
    asked, every = files.asked_columns, [*map(str, prepare.of_table.feature_names_in_)]
    names = prepare.names_read
    found = list(there)
    if asked is not None:
        found = [there[place] for place in numbers_of(asked, there, files.name)]
    if len(same := columns_in(names, found)) == len(names):
        return same
    goes_by_place = any(all(map(has_no_name, these)) for these in (names, there))
    if asked is not None:
        goes_by_place = set(found).isdisjoint(names)
    for by_place in (names, every):
        if goes_by_place and len(by_place) == len(found):
            places = dict(zip(by_place, found, strict=True))
            return {name: places[name] for name in names}
    lacking, n_free = next(name for name in names if name not in same), len({*there} - {*names})
    may_choose = asked is None and n_free >= len(names)
    way_out = "choose them with --columns" if may_choose else "add that column, or rename one"
    raise failures.Failure(
        f'{files.name} has no "{lacking}" in {counted(len(found), "column")}, and {path} was '
        f"fitted to {len(names)}{nearest(lacking, there) or f': {way_out}'}",
        failures.DATA,
    )


@contextlib.contextmanager
def naming_entries(data: Data, first_row: int = 0) -> Iterator[None]:
    """Name the file, column and row of an entry that cannot be used; `first_row` is of a part."""
    try:
        yield
    except EntryError as error:
        with failures.refusing():
            data.source.explain(error, first_row)


def _codes(files: DataFiles, names: Sequence[str]) -> list[str]:
    """Return the values that were given for missing ones, each with its column."""
    found = []
    for each in () if files.keep_codes else files.codes or ():
        columns, is_of_some, value = each.rpartition("=")
        places = numbers_of([columns], names, files.name) if is_of_some else ()
        found += [f"{names[place]}={value.strip()}" for place in places] or [value.strip()]
    return found


def _on_lacking(
    files: DataFiles, prepare: Prepare, rows: RawRows, why_whole: str
) -> Iterator[Note]:
    """Yield notes on values that rows lack, and on rows that are left out for it."""
    uses_present, lacking = rows.use.lacking != "any", lacking_columns(prepare, rows)
    if lacking and (uses_present or files.is_missing_open):
        most_first = sorted(lacking.items(), key=lambda pair: -pair[1])
        listed = [f'{n} in "{name}"' for name, n in most_first]
        said = f"{some(listed, len(listed) if files.verbose else 4)}, of {rows.n_given} rows"
        then = "distances use the values that are present (--missing drop leaves those rows out)"
        if not uses_present:
            then = f"such rows are left out, since {why_whole}"
        yield Note(f"missing values: {said}; {then}", is_doubt=not uses_present)
    if n_left_out := rows.n_given - int(rows.is_used.sum()):
        what = "without any value" if uses_present else "with missing values"
        yield Note(f"left out: {counted(n_left_out, 'row')} {what}")


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


@dataclass(frozen=True, slots=True)
class Saved:
    """A model from a file."""

    model: Any
    reading: Mapping[str, Any]

    def read_like(self, files: DataFiles) -> DataFiles:
        """Return the data with options that were not given as they were in the fit."""
        path, options = Path(files.first), tuple[str, ...](_REMEMBERED)
        with failures.refusing():
            if path.is_file() and not File(path, files.name).start.startswith(tuple(PACKED)):
                options = ("missing", *format_of(File(path, files.name)).options.split())
        not_given = {
            name: self.reading[name]
            for name in _REMEMBERED
            if name in options and name in self.reading and getattr(files, name) is None
        }
        return replace(files, **not_given)

    @property
    def names(self) -> dict[int, str]:
        """The names of the clusters, as far as they are known."""
        names = self.reading.get("names")
        return {} if names is None else dict(enumerate(names.split("\n")))


def to_remember(data: Data, names: Sequence[str]) -> dict[str, Any]:
    """Return how to read other files of this form, and the names of the clusters."""
    how = {name: getattr(data.files, name) for name in _REMEMBERED}
    if data.files.is_missing_open:
        how["missing"] = None if data.missing == "error" else data.missing
    how["names"] = "\n".join(" ".join(name.split()) for name in names)
    return {name: value for name, value in how.items() if value is not None}


def load_model(path: str) -> Saved:
    """Load a model that can predict."""
    from powermeans.saving import load, reading_of

    if not os.path.exists(path):
        raise failures.Failure(missing_path(Path(path)), failures.DATA)
    with failures.refusing(ModelFileError), failures.reading(path):
        model, reading = load(path), reading_of(path)
    if not hasattr(model, "predict"):
        raise failures.Failure(
            f"{path} is a {type(model).__name__}, which has labels only for the rows of its fit",
            failures.DATA,
        )
    if is_waiting(model) and not hasattr(model, "cluster_centers_"):
        raise failures.Failure(
            f"{path} is a stream that waits for more points and has no centers yet: load it in "
            "Python, give it points by partial_fit, and save it again",
            failures.DATA,
        )
    return Saved(model, reading)
