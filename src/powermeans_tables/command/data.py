"""Read the table of a command as points, for a new fit or for a saved model."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from powermeans.errors import EntryError, TableError, counted, nearest, some
from powermeans.scale.parted_data import PartedData
from powermeans.scale.tables import Missing
from powermeans.scale.tables.checking import declared_missing, numbers_of, rows_to_skip
from powermeans.system.arrow import pyarrow_part
from powermeans.types import FloatArray
from powermeans_tables.command import failures
from powermeans_tables.command.sources import DataFiles, Scale
from powermeans_tables.preparing.kinds import OF_A_FIT, has_no_name
from powermeans_tables.preparing.prepare import Note, Prepare, doubts_on_units
from powermeans_tables.reading.frames import Frame, opened

_FAR = 5.0  # standard deviations, in which most rows of a column in another unit lie


@dataclass(frozen=True, slots=True)
class Data:
    """Points in memory, or rows that are read part by part, and what is known of them."""

    points: Any  # an array or PartedData
    prepare: Prepare
    weights: FloatArray | None = None
    is_used: NDArray[np.bool_] | None = None  # for all rows of the file; None if all are
    frame: Any = None  # of the file; None for rows that are read part by part
    missing: Missing = "error"
    notes: Sequence[Note] = ()
    as_read: Any = None  # the points before the scalers that a saved model has after `prepare`
    scalers: Sequence[Any] = ()
    skipped: Sequence[int] = ()  # rows, from 1, that are left out whatever they contain
    lacking: str = ""  # the values, all or any, whose lack leaves a row out; empty if none does

    @property
    def names(self) -> list[str]:
        """The names of the columns of the points."""
        return list(map(str, self.prepare.get_feature_names_out()))

    @property
    def row_numbers(self) -> NDArray[np.intp] | None:
        """The numbers, from 1, of the rows that are used; None if all are."""
        return None if self.is_used is None else np.flatnonzero(self.is_used) + 1

    def number_of(self, row: int | np.intp) -> int:
        """Return the number in the file, from 1, of a row that is used."""
        return int(row) + 1 if self.row_numbers is None else int(self.row_numbers[row])


def read_to_fit(files: DataFiles, scale: Scale, *, takes_missing: bool) -> Data:
    """Read and scale a table; `takes_missing` tells whether distances may rest on what is there."""
    with failures.refusing(name=files.name):
        rows, asked = _Rows.of(files), files.asked_columns
        columns = rows.select(asked)
        told = {"as_": files.kinds, "order": files.orders, "scale": scale, "dates": files.dates}
        prepare = _prepare(files, columns.column_names, **told)
        raw = _understand(prepare, columns, asked)
        data = rows.data(raw, prepare)
    why_whole = "" if takes_missing else "this divergence needs whole rows"
    data = _without_lacking(data, files, why_whole)
    with failures.refusing():
        points = prepare.settle(data.points, data.weights)
    of_columns = [replace(note, way_out=[failures.typed(note.way_out)]) for note in prepare.notes_]
    return replace(data, points=points, notes=[*data.notes, *of_columns])


def read_for(model: Any, path: str, files: DataFiles) -> Data:
    """Read the columns to which a model was fitted, as the points that its last step takes."""
    check_missing(model, path, files)
    with failures.refusing(name=files.name):
        rows = _Rows.of(files)
        found = columns_for(model, path, files, rows.frame.table.column_names)
        columns = rows.select(list(found.values())).rename_columns(list(found))
        prepare = prepare_of(model)
        if prepare is None:
            prepare = _prepare(files, list(found), as_=dict.fromkeys(found, "number"), scale="none")
            points = prepare.settle(prepare.understand(columns))
        else:
            marks = {name: mark for name, mark in files.marks.items() if mark is not None}
            prepare.set_params(**marks, dates=files.dates or prepare.dates)
            prepare.decimal_ = files.decimal or prepare.decimal_
            points = prepare.transform(columns)
        data = rows.data(points, prepare)
    why_whole = "" if takes_missing(model) else "the model was fitted without missing values"
    data = _without_lacking(data, files, why_whole)
    points, scalers = data.points, [step for step in steps_of(model)[:-1] if step is not prepare]
    for scaler in scalers:
        points = scaler.transform(points)
    unknown = [*doubts_on_units(prepare, columns), *_unknown(prepare, columns)]
    in_units = _in_other_units(points, data.names) if scalers or prepare.scale_ != "none" else []
    prepare.measure(data.points, data.weights)
    notes = [*data.notes, *unknown, *in_units]
    return replace(data, points=points, notes=notes, as_read=data.points, scalers=scalers)


def steps_of(model: Any) -> list[Any]:
    """Return the steps of a pipeline, or the model alone."""
    return [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]


def prepare_of(model: Any) -> Prepare | None:
    """Return what prepares the columns of a model, if anything does."""
    first = steps_of(model)[0]
    return first if isinstance(first, Prepare) else None


def takes_missing(model: Any) -> bool:
    """Return whether a model uses the values that are present."""
    return getattr(steps_of(model)[-1], "missing", None) == "observed"


def check_missing(model: Any, path: str, files: DataFiles) -> None:
    """Refuse to use the values that are present where a model does not."""
    if files.missing == "observed" and not takes_missing(model):
        raise failures.Failure(
            f"--missing observed needs a model that was fitted with it, and {path} was not: leave "
            "rows with missing values out by --missing drop"
        )


def columns_for(model: Any, path: str, files: DataFiles, there: Sequence[str]) -> dict[str, str]:
    """Return the columns of a file that are those of a model, by their names in the model.

    Names decide, and places only where the file or the model has no names, or no name is the same.
    """
    prepare, asked = prepare_of(model), files.asked_columns
    if prepare is not None:
        names = [name for one in prepare.used for name in (one.name, one.other) if name]
        every = list(map(str, prepare.feature_names_in_))
    else:
        every = names = list(map(str, getattr(model, "feature_names_in_", [])))
        every = names = names or [f"c{number + 1}" for number in range(model.n_features_in_)]
    found = list(there)
    if asked is not None:
        found = [there[place] for place in numbers_of(asked, there, files.name)]
    if len(same := _by_name(names, found)) == len(names):
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
def naming_entries(data: Data, files: DataFiles, first_row: int | None = None) -> Iterator[None]:
    """Name the file, column and row of an entry that cannot be used; `first_row` is of a part."""
    try:
        yield
    except EntryError as error:
        where, row = error.name, error.row
        if first_row is not None or not isinstance(data.points, PartedData):
            where, row = files.name, data.number_of((first_row or 0) + row)
        column, way_out = data.names[error.column], "".join(map(str, error.way_out))
        said = f'{where}: column "{column}" has {error.value:g} in row {row} of the data: {way_out}'
        raise failures.Failure(said, failures.DATA) from error


def _by_name(names: Sequence[str], there: Sequence[str]) -> dict[str, str]:
    """Return the column of each name, in another case only where no other name or column has it."""
    counts = Counter(name.casefold() for name in [*{*names}, *{*there}])
    alike = {one.casefold(): one for one in there if counts[one.casefold()] == 2}
    found = {one: one for one in there}
    pairs = ((name, found.get(name, alike.get(name.casefold()))) for name in names)
    return {name: one for name, one in pairs if one is not None}


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a file that are not left out beforehand, and their weights."""

    files: DataFiles
    frame: Frame
    is_used: NDArray[np.bool_]
    totals: Sequence[int]  # rows, from 0, that are left out since they sum up others

    @classmethod
    def of(cls, files: DataFiles) -> _Rows:
        query = files.first if files.database is not None else None
        frame = opened(files.database or files.first, query, **files.form)
        is_used = ~rows_to_skip(files.skipped, frame.table.num_rows, files.name)
        totals = [] if files.skip_rows or files.keep_totals else frame.totals
        is_used[totals] = False
        return cls(files, frame, is_used, totals)

    def select(self, asked: Sequence[str] | None) -> Any:
        """Return the columns that are asked for, or all, without the weights."""
        names = self.frame.table.column_names
        places = [*range(len(names))]
        if asked is not None:
            places = numbers_of(asked, names, self.files.name)
        beside = self._place_of_weights()
        table = self.frame.table.select([j for j in dict.fromkeys(places) if j not in beside])
        return table if self.is_used.all() else table.filter(pyarrow_part().array(self.is_used))

    def data(self, points: FloatArray, prepare: Prepare) -> Data:
        """Return the points of these rows with what is known of them."""
        is_used = None if self.is_used.all() else self.is_used
        notes = [Note(text, is_doubt=True) for text in self.frame.doubts]
        if self.frame.how_read:
            notes.append(Note(f"read: {'; '.join(self.frame.how_read)}"))
        notes += [Note(text) for text in self._left_out()]
        skipped = (np.flatnonzero(~self.is_used) + 1).tolist()
        weights = self._weights()
        return Data(points, prepare, weights, is_used, self.frame, notes=notes, skipped=skipped)

    def _left_out(self) -> Iterator[str]:
        if n_skipped := len(set(self.files.skipped)):
            yield f"{counted(n_skipped, 'row')} left out by --skip-rows"
        if self.totals:
            rows = ", ".join(str(row + 1) for row in sorted(self.totals))
            named = f"row{'s' * (len(self.totals) > 1)} {rows} of the data"
            yield f"left out as totals: {named} (--keep-totals uses all rows)"

    def _place_of_weights(self) -> list[int]:
        given, names = self.files.weights, self.frame.table.column_names
        return [] if given is None else numbers_of([given], names, self.files.name)

    def _weights(self) -> FloatArray | None:
        for place in self._place_of_weights():
            name = self.frame.table.column_names[place]
            column = self.frame.table.select([place]).filter(pyarrow_part().array(self.is_used))
            plain = Prepare(as_={name: "number"}, scale="none", codes="none")
            weights: FloatArray = plain.understand(column)[:, 0]
            is_bad = weights < 0
            if is_bad.any():
                row = int(np.flatnonzero(self.is_used)[np.argmax(is_bad)]) + 1
                raise TableError(
                    f'column "{name}" has {weights[is_bad][0]:g} in row {row} of the data, which '
                    "is no weight: weights are finite and not negative"
                )
            return weights
        return None


def _prepare(files: DataFiles, names: Sequence[str], **more: Any) -> Prepare:
    """Return what reads these columns as the options say."""
    codes: Any = "none" if files.keep_codes else "auto"
    if files.codes is not None and not files.keep_codes:
        found = declared_missing(files.codes, names, files.name)
        codes = [f"{names[j]}={value}" for places, value in found for j in places]
    return Prepare(codes=codes, **files.marks, **more)


def _understand(prepare: Prepare, columns: Any, asked: Sequence[str] | None) -> FloatArray:
    """Find what columns contain; identifiers count where they were asked for."""
    try:
        raw = prepare.understand(columns)
    except TableError:
        if asked is None or not hasattr(prepare, "columns_"):
            raise
        raw = None
    if asked is not None and (as_numbers := _asked_by_name(prepare, asked)):
        raw = prepare.set_params(as_={**as_numbers, **(prepare.as_ or {})}).understand(columns)
    return prepare.understand(columns) if raw is None else raw


def _asked_by_name(prepare: Prepare, asked: Sequence[str]) -> dict[str, str]:
    """Return the kinds of columns that would be left out, where they were asked for."""
    left_out = [one for one in prepare.columns_ if not one.is_used]
    for one in left_out:
        if one.kind == "text" and one.name in asked:
            raise TableError(
                f'"{one.name}" has {one.why}, which cannot be compared: leave it out, or pass '
                f"--as {one.name}=category"
            )
    return {
        one.name: "category" if "cluster" in one.name or one.name == "name" else "number"
        for one in left_out
        if one.kind == "identifier" or one.why == OF_A_FIT
    }


def _without_lacking(data: Data, files: DataFiles, why_whole: str) -> Data:
    """Leave out rows that lack a value, or all of them, as is asked for or as the data decide.

    `why_whole` says why rows must be whole; it is empty where distances use what is present.
    """
    is_missing = np.isnan(data.points)
    lacks_weight = np.zeros(len(is_missing), dtype=bool)
    if data.weights is not None:
        lacks_weight = np.isnan(data.weights)
    lacks = is_missing.any(axis=1) | lacks_weight
    if not lacks.any():
        return replace(data, missing="observed" if files.missing == "observed" else "error")
    uses_present = not why_whole if files.is_missing_open else files.missing == "observed"
    is_left_out = is_missing.all(axis=1) if uses_present else lacks
    if files.missing == "error" or is_left_out.all():
        raise _lacking(data, files, is_missing)
    if files.missing != "drop" and lacks_weight.any():
        raise failures.Failure(
            f'{files.name}: column "{files.weights}" has no value in row '
            f"{data.number_of(np.argmax(lacks_weight))} of the data, and rows need weights: "
            "--missing drop leaves such rows out",
            failures.DATA,
        )
    notes = [*data.notes]
    if is_missing.any() and (uses_present or files.is_missing_open):
        most = len(data.names) if files.verbose else 4
        why = "" if uses_present else why_whole
        said = _missing_in_words(data.names, is_missing, most, why)
        notes.append(Note(said, is_doubt=not uses_present))
    if n_left_out := np.count_nonzero(is_left_out):
        what = "without any value" if uses_present else "with missing values"
        notes.append(Note(f"left out: {counted(int(n_left_out), 'row')} {what}"))
        data = replace(_without(data, is_left_out), lacking="all" if uses_present else "any")
    has_missing = bool(np.isnan(data.points).any())
    missing: Missing = "observed" if has_missing else "drop"
    return replace(data, missing=missing if has_missing or n_left_out else "error", notes=notes)


def _without(data: Data, is_left_out: NDArray[np.bool_]) -> Data:
    """Return the data without these of their rows."""
    is_used = np.ones(len(is_left_out), dtype=bool) if data.is_used is None else data.is_used.copy()
    is_used[np.flatnonzero(is_used)[is_left_out]] = False
    weights = None if data.weights is None else data.weights[~is_left_out]
    return replace(data, points=data.points[~is_left_out], weights=weights, is_used=is_used)


def _lacking(data: Data, files: DataFiles, is_missing: NDArray[np.bool_]) -> failures.Failure:
    lacks: Any = is_missing.any(axis=1)
    place = int(np.argmax(lacks))
    name = data.names[int(np.argmax(is_missing[place]))].partition(": ")[0]
    return failures.Failure(
        f'{files.name}: column "{name}" has no value in row {data.number_of(place)} of the data '
        f"({np.count_nonzero(lacks)} of {len(lacks)} rows lack one): --missing drop leaves such "
        "rows out, and --missing observed uses the values that are present",
        failures.DATA,
    )


def _missing_in_words(
    names: Sequence[str], is_missing: NDArray[np.bool_], n_shown: int, why_whole: str
) -> str:
    # The features of one category miss a value together.
    columns = (name.partition(": ")[0] for name in names)
    counts = dict(zip(columns, is_missing.sum(axis=0), strict=True))
    most = sorted(((int(n), name) for name, n in counts.items() if n), key=lambda pair: -pair[0])
    shown = some([f'{n} in "{name}"' for n, name in most], n_shown)
    values = f"missing values: {shown}, of {len(is_missing)} rows"
    if why_whole:
        return f"{values}; such rows are left out, since {why_whole}"
    used = "distances use the values that are present"
    return f"{values}; {used} (--missing drop leaves those rows out)"


def _unknown(prepare: Prepare, columns: Any) -> Iterator[Note]:
    """Yield notes on words that the model does not know, and on cells that are no numbers."""
    for name, words in prepare.unknown_words(columns).items():
        said = ", ".join(f'"{word}" ({counted(n, "row")})' for word, n in list(words.items())[:4])
        yield Note(f'"{name}" has {said}, unknown to the model', is_doubt=True)


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
