"""What commands tell of the columns of a file and of how it was read, on a screen and a page."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from powermeans.errors import printable
from powermeans_tables.command import failures
from powermeans_tables.command.clusters import Fitted, Labelled
from powermeans_tables.command.options import Results
from powermeans_tables.command.screen import Screen, waiting_for
from powermeans_tables.opening import PreparedRows
from powermeans_tables.preparing.kinds import NUMBERS, Column
from powermeans_tables.preparing.notes import Note
from powermeans_tables.report.report import write_page
from powermeans_tables.report.subject import ABOUT_COLUMNS, FileTable, Subject, about_columns

_MOST_LINES = 8
_MOST_COLUMNS = 12


def write_report(fitted: Fitted, found: Labelled, results: Results, done: list[str]) -> None:
    """Write the page about a fit and its file: first what may make it worthless."""
    data, why_k, path = fitted.data, fitted.why_k, str(results.report)
    files = fitted.files
    how_read = [note.text for note in data.notes if note.text.startswith("read: ")]
    notes = [*data.notes, *(one for one in why_k if one.is_doubt)]
    with (
        waiting_for(f"writing {path}", is_quiet=results.quiet),
        failures.writing(path),
        failures.refusing(),
    ):
        file = FileTable(
            data.table,
            [note.text for note in _doubts_first(notes) if note.text not in how_read],
            [*how_read, *(note.text for note in why_k)],
            np.flatnonzero(data.rows.is_used) + 1,
        )
        subject = Subject.of(
            fitted.model,
            data.points,
            sample_weight=data.weights,
            scalers=[data.prepare, *data.scalers],
            file=file,
            labels=found.labels,
            profile=found.profile,
        )
        code = f"model = powermeans.load({fitted.file!r})\nlabels = model.predict({files.first!r})"
        code = _code(fitted) if fitted.file is None else f"import powermeans\n\n{code}"
        title = f"Clusters of {printable(os.path.basename(files.name))}"
        write_page(subject, path, title, code, fitted.choice, fitted.optimality)
    done.append(path)


def _code(fitted: Fitted) -> str:
    """Return Python that fits the same rows again, unless some were left out by an option."""
    files, model = fitted.files, fitted.model
    form = [f"{name}={value!r}" for name, value in files.form.items() if value is not None]
    paths = files.first if len(files.paths) < 2 else [*files.paths]
    source = f"open_table({', '.join([repr(paths), *form])})" if form else repr(paths)
    columns, prepare = files.asked_columns, repr(fitted.data.prepare)
    told = {"columns": columns and repr(columns), "weights": files.weights and repr(files.weights)}
    told["prepare"] = prepare if prepare != "Prepare()" else None
    given = [f"{name}={value}" for name, value in told.items() if value is not None]
    data = f"open_data({', '.join([source, *given])})" if given else source
    left_out = "# Rows that --skip-rows or --missing left out count here.\n"
    names = [type(model).__name__, "Prepare", "open_data", "open_table"]
    used = [name for name in names if f"{name}(" in f"{model!r}{data}"]
    return (
        f"from powermeans import {', '.join(used)}\n\n"
        f"{left_out * bool(files.skip_rows or fitted.data.missing == 'drop')}"
        f"model = {model!r}.fit({data})"
    )


def tell_about(
    screen: Screen, data: PreparedRows, more: Sequence[Note], *, is_verbose: bool
) -> None:
    """Show the columns, unless all are numbers that are used as they are, and the notes."""
    columns: Sequence[Column] = data.prepare.columns_
    notes, are_plain = [*data.notes, *more], all(one.kind in NUMBERS for one in columns)
    if is_verbose or not are_plain:
        shown = columns if is_verbose else columns[:_MOST_COLUMNS]
        screen.say()
        screen.show(ABOUT_COLUMNS, about_columns(data.prepare, shown), left=[0, 1, 2, 3])
        if len(shown) < len(columns):
            screen.say(f"... and {len(columns) - len(shown)} more, which --verbose shows")
        if notes:
            screen.say()
    tell_notes(screen, notes, is_verbose=is_verbose)


def tell_notes(screen: Screen, notes: Sequence[Note], *, is_verbose: bool) -> None:
    """Print at most eight lines, first what may make the result worthless."""
    lines = [f"{'check this: ' * note.is_doubt}{note.text}" for note in _doubts_first(notes)]
    for line in lines if is_verbose else lines[:_MOST_LINES]:
        screen.say(line)
    if len(lines) > _MOST_LINES and not is_verbose:
        screen.say(f"... and {len(lines) - _MOST_LINES} more, which --verbose shows")


def _doubts_first(notes: Sequence[Note]) -> list[Note]:
    return sorted(notes, key=lambda note: not note.is_doubt)
