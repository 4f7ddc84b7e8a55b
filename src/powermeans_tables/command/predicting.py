"""``powermeans predict``: a saved model on new rows."""

from __future__ import annotations

import time
from dataclasses import replace

from powermeans.errors import counted
from powermeans.estimators.base import CenterEstimator
from powermeans.optimality.of_points import gap_in_a_moment
from powermeans_tables.command import failures
from powermeans_tables.command.clusters import Fitted, Labelled, labelled, show_clusters
from powermeans_tables.command.data import bare, opened, read_for
from powermeans_tables.command.notes import tell_notes, write_report
from powermeans_tables.command.outputs import check_outputs, interruptible, listed, table_of
from powermeans_tables.command.saved import load_model
from powermeans_tables.command.screen import Screen, seconds, waiting_for
from powermeans_tables.command.sources import DataFiles
from powermeans_tables.command.wanted import Results


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
        fitted = Fitted(data, model, {}, names=saved.names | results.names, file=path)
        found = labelled(fitted, files, results, done)
        fitted = replace(fitted, seconds={"predicting": time.perf_counter() - started})
        if results.report is not None:
            with failures.refusing():
                gap = gap_in_a_moment(model, data.points, data.weights)
            write_report(replace(fitted, optimality=gap), found, files, results, done)
        _tell(fitted, found, files, results, screen)
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


def _tell(
    fitted: Fitted, found: Labelled, files: DataFiles, results: Results, screen: Screen
) -> None:
    """Print the clusters as a table."""
    tally, kind = found.tally, type(fitted.model)
    is_inertia = getattr(kind, "score", None) is CenterEstimator.score
    score = f"inertia {0 - tally.score:.6g}" if is_inertia else f"score {tally.score:.6g}"
    n_rows, elapsed = counted(tally.n_rows, "row"), seconds(fitted.seconds["predicting"] or 0.0)
    screen.say(f"{n_rows} of {files.name} by {fitted.file} in {elapsed}, {score}")
    tell_notes(screen, fitted.data.notes, is_verbose=results.verbose)
    show_clusters(screen, found.profile, has_weights=files.weights is not None)
    if written := listed(results.output, results.report):
        screen.say(f"written: {written}")
