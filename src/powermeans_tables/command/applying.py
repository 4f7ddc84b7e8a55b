"""``powermeans predict`` and ``powermeans explain``: a saved model on rows, or as a query."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from typing import Any

from powermeans.errors import counted
from powermeans.explaining.explanation import explain
from powermeans.methods.base import CenterEstimator
from powermeans.optimality.of_points import gap_in_a_moment
from powermeans.plots.fitted import preparation_of
from powermeans_tables.command import failures
from powermeans_tables.command.clusters import Fitted, Labelled, labelled, show_clusters
from powermeans_tables.command.data import bare, load_model, naming_entries, opened, read_for
from powermeans_tables.command.notes import tell_notes, write_report
from powermeans_tables.command.options import DataFiles, Results, Rules
from powermeans_tables.command.outputs import check_outputs, interruptible, listed, table_of
from powermeans_tables.command.screen import Screen, seconds, waiting_for
from powermeans_tables.sql import to_sql


def predict(path: str, files: DataFiles, results: Results, screen: Screen) -> None:
    """Label new rows by a saved model, all at once or part by part, and report on them."""
    shows_rows = screen.as_json and results.output is None
    saved = load_model(path)
    files, started = saved.read_like(files), time.perf_counter()
    table, results = opened(files), results.settled(shows_rows=shows_rows)
    check_outputs(results, reads=[path, *map(str, table.paths)])
    with interruptible() as done:
        with waiting_for(f"reading {files.name}", is_quiet=results.quiet):
            data = read_for(saved.model, path, files, table)
        if data.is_in_parts and (shows_rows or results.report is not None):
            what = "JSON of the labels" if shows_rows else "--report"
            raise failures.Failure(
                f"{what} needs all rows at once, not part by part as in {files.name}: name a file "
                "for the labels with --output, or pass fewer rows"
            )
        model = bare(saved.model)
        fitted = Fitted(files, data, model, {}, names=saved.names | results.names, file=path)
        found = labelled(fitted, results, done)
        fitted = replace(fitted, seconds={"predicting": time.perf_counter() - started})
        if results.report is not None:
            with failures.refusing():
                gap = gap_in_a_moment(model, data.points, data.weights)
            write_report(replace(fitted, optimality=gap), found, results, done)
        _tell(fitted, found, results, screen)
        columns = table_of(found.columns, data.is_used).to_pydict() if shows_rows else {}
        labels = {{"cluster": "labels"}.get(name, name): one for name, one in columns.items()}
        sums = ("n_rows", "score", "sizes", "weights")
        screen.tell_machines(
            {
                "model": path,
                "data": files.first,
                **{name: getattr(found.tally, name) for name in sums},
                "names": fitted.names,
                "seconds": fitted.seconds,
                "written": {"rows": results.output, "report": results.report},
                **labels,
            }
        )


def _tell(fitted: Fitted, found: Labelled, results: Results, screen: Screen) -> None:
    """Print the clusters as a table."""
    tally, kind, files = found.tally, type(fitted.model), fitted.files
    is_inertia = getattr(kind, "score", None) is CenterEstimator.score
    score = f"inertia {0 - tally.score:.6g}" if is_inertia else f"score {tally.score:.6g}"
    n_rows, elapsed = counted(tally.n_rows, "row"), seconds(fitted.seconds["predicting"] or 0.0)
    screen.say(f"{n_rows} of {files.name} by {fitted.file} in {elapsed}, {score}")
    tell_notes(screen, fitted.data.notes, is_verbose=results.verbose)
    show_clusters(screen, found.profile, has_weights=files.weights is not None)
    if written := listed(results.output, results.report):
        screen.say(f"written: {written}")


def print_exact_query(path: str, files: DataFiles, asked: Rules, screen: Screen) -> None:
    """Print a query that labels a table of a database as a model does; no file is read."""
    with failures.refusing():
        model = load_model(path).model
        query = _of_joined(model, to_sql(model, table=str(asked.sql), dialect=asked.dialect))
    for line in query.splitlines():
        screen.say(line, is_whole=True)
    screen.tell_machines({"model": path, "sql": query})


def _of_joined(model: Any, query: str) -> str:
    """Return a query that says which rows it labels, where a model joins lines."""
    per = getattr(preparation_of(model), "per", None)
    rows = "" if per is None else f'-- The rows that --output writes, one for each "{per}".\n'
    return rows + query


def explain_model(path: str, files: DataFiles, asked: Rules, screen: Screen) -> None:
    """Print rules for the clusters of a model, or a query by these for a table in a database."""
    saved = load_model(path)
    files = saved.read_like(files)
    data = read_for(saved.model, path, files, opened(files))
    X = data.as_read
    if preparation_of(saved.model) is not None:  # which takes the columns of the file
        X = data.rows.table.frame(data.rows.is_used)
    with failures.refusing(), naming_entries(data):
        found = explain(saved.model, X, n_leaves=asked.n_leaves, sample_weight=data.weights)
        query = asked.sql and found.to_sql(asked.sql, dialect=asked.dialect)
        query = query and _of_joined(saved.model, query)
    for line in (query or str(found)).splitlines():
        screen.say(line, is_whole=True)
    about = {"model": path, "data": files.first, "kept": found.kept, "price": found.price}
    about |= {"rules": [*map(asdict, found.rules)]}
    about |= {"descriptions": [*map(asdict, found.descriptions)]}
    screen.tell_machines(about | {"sql": query})
