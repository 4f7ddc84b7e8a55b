"""Read the table of a command as points, for a new fit or for a saved model, which is loaded."""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from powermeans.errors import EntryError, ModelFileError
from powermeans.explaining.features import last_of
from powermeans.methods.streams.base import is_waiting
from powermeans.plots.fitted import preparation_of
from powermeans.points.columns import Columns
from powermeans.scale.checkpoint import is_checkpoint
from powermeans.scale.files import missing_path
from powermeans.scale.parted_data import Checkpoint, PartedData, length_of_parts
from powermeans.system.attributes import forget
from powermeans_tables.command import failures
from powermeans_tables.command.options import DataFiles
from powermeans_tables.opening import PreparedRows, TableRows
from powermeans_tables.preparing.notes import Note
from powermeans_tables.preparing.prepare import Prepare
from powermeans_tables.reading.files import open_table
from powermeans_tables.reading.formats import PACKED, format_of
from powermeans_tables.reading.table import File, Table

# How the file of a fit was read, which its model knows.
_REMEMBERED = ("delimiter", "header", "encoding", "array", "missing")


def opened(files: DataFiles) -> Table:
    """Open the files; most of their rows are read later."""
    with failures.refusing(name=files.name), failures.reading(files.name):
        form: dict[str, Any] = {"keep_totals": files.keep_totals}
        if files.database is not None:
            return open_table(files.database, query=files.first, **form)
        return open_table([*files.paths], **form, **files.form)


def read_to_fit(files: DataFiles, table: Table, prepare: Prepare, why_whole: str) -> PreparedRows:
    """Read and scale a table; `why_whole` says why distances need all values, if they do."""
    with failures.refusing(name=files.name), failures.reading(files.name):
        rows = TableRows(table, files.asked_columns, files.weights, prepare)
        return _in_parts(files, rows.as_new(**_how(files, why_whole)))


def read_for(model: Any, path: str, files: DataFiles, table: Table) -> PreparedRows:
    """Read the columns to which a model was fitted, as the points that its last step takes."""
    takes_missing = getattr(last_of(model), "missing", None) == "observed"
    if files.missing == "observed" and not takes_missing:
        raise failures.Failure(
            f"--missing observed needs a model that was fitted with it, and {path} was not: leave "
            "rows with missing values out by --missing drop"
        )
    how = _how(files, "" if takes_missing else "the model was fitted without missing values")
    names = getattr(model, "feature_names_in_", None)
    named = None if names is None else (*map(str, names),)
    known = Columns(model.n_features_in_, named, preparation_of(model))
    steps: list[Any] = getattr(model, "steps", [])[:-1]
    scalers = [one for _, one in steps if not isinstance(one, Prepare)]
    with failures.refusing(name=files.name), failures.reading(files.name):
        found = TableRows(table, files.asked_columns, files.weights, Prepare(**files.written))
        rows = _in_parts(files, found.as_known(known, path, scalers, **how))
    if not rows.is_in_parts:
        rows.prepare.measure(rows.as_read, rows.weights)
    return rows


def _how(files: DataFiles, why_whole: str) -> dict[str, Any]:
    """Return which rows count, and where they are kept, as `Use` takes it."""
    told = {"why_whole": why_whole, "may_drop": True, "names_all": files.verbose}
    missing = files.missing or "auto"
    return {"skipped": files.skipped, "missing": missing, "in_parts": files.in_parts, **told}


def _in_parts(files: DataFiles, rows: PreparedRows) -> PreparedRows:
    """Cut rows that do not lie in memory into parts, and say in options what notes suggest."""
    rows.preparation = None  # since parts are labelled as arrays
    if rows.is_in_parts:
        where = None if files.checkpoint is None else Checkpoint(files.checkpoint, 60.0)
        length = length_of_parts(None, files.memory_limit, has_weights=rows.rows.has_weights)
        rows.points = PartedData(rows, length, checkpoint=where)
        if files.checkpoint is not None and is_checkpoint(files.checkpoint):
            rows.notes = [Note(f"the fit resumes from {files.checkpoint}"), *rows.notes]
    rows.notes = [replace(one, way_out=[failures.typed(one.way_out)]) for one in rows.notes]
    return rows


def bare(model: Any) -> Any:
    """Return the last step of a model, which takes points."""
    last = copy.copy(last_of(model))
    forget(last, "preparation_")
    return last


@contextlib.contextmanager
def naming_entries(rows: PreparedRows, first_row: int = 0) -> Iterator[None]:
    """Name the file, column and row of an entry that cannot be used; `first_row` is of a part."""
    try:
        yield
    except EntryError as error:
        with failures.refusing():
            rows.explain(error, first_row)


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


def to_remember(files: DataFiles, rows: PreparedRows, names: Sequence[str]) -> dict[str, Any]:
    """Return how to read other files of this form, and the names of the clusters."""
    how = {name: getattr(files, name) for name in _REMEMBERED}
    if files.missing in (None, "auto"):
        how["missing"] = None if rows.missing == "error" else rows.missing
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
