"""``powermeans predict``: a saved model on new rows."""

from __future__ import annotations

import time
from dataclasses import replace

from powermeans.app.command import failures
from powermeans.app.command.clusters import Fitted, labelled, show_clusters
from powermeans.app.command.data import prepare_of, read_for, steps_of
from powermeans.app.command.notes import tell_notes, write_report
from powermeans.app.command.outputs import check_outputs, interruptible, listed, table_of
from powermeans.app.command.parts import all_paths, needing_all_rows, open_for, why_in_parts
from powermeans.app.command.saved import load_model
from powermeans.app.command.screen import Screen, number, seconds, waiting_for
from powermeans.app.command.sources import DataFiles
from powermeans.app.command.wanted import Results
from powermeans.errors import counted
from powermeans.estimators.base import CenterEstimator
from powermeans.optimality.of_points import gap_in_a_moment


def predict(path: str, files: DataFiles, results: Results, screen: Screen) -> None:
    """Label new rows by a saved model, all at once or part by part, and report on them."""
    why = why_in_parts(files)
    shows_rows = screen.as_json and results.output is None
    if results.report is not None:
        needing_all_rows(files, why, "--report", "leave it out, and report on some of the rows")
    if shows_rows:
        way_out = "name a file for the labels with --output"
        needing_all_rows(files, why, "JSON of the labels", way_out)
    results = results.settled(in_parts=why is not None, shows_rows=shows_rows)
    reads = [path, files.database or files.first]
    reads += [] if why is None else [*files.paths, *all_paths(files)]
    check_outputs(results, reads=reads)
    saved = load_model(path)
    files, started = saved.read_like(files), time.perf_counter()
    with interruptible() as done:
        with waiting_for(f"reading {files.name}", is_quiet=results.quiet or why is not None):
            if why is None:
                data = read_for(saved.model, path, files)
            else:
                data = open_for(saved.model, path, files, why)
        # Rows in parts have no other scaling than that of `Prepare`.
        is_bare = why is None or prepare_of(saved.model) is not None
        model = steps_of(saved.model)[-1] if is_bare else saved.model
        fitted = Fitted(data, model, {}, names=saved.names | results.names)
        found = labelled(fitted, files, results, done)
        elapsed = time.perf_counter() - started
        if results.report is not None:
            with failures.refusing():
                gap = gap_in_a_moment(model, data.points, data.weights)
            fitted = replace(fitted, optimality=gap)
            is_quiet = results.quiet
            write_report(results.report, fitted, found, files, is_quiet=is_quiet, model_file=path)
            done.append(results.report)
        tally = found.tally
        is_inertia = getattr(type(model), "score", None) is CenterEstimator.score
        score = (
            f"inertia {number(0 - tally.score)}" if is_inertia else f"score {number(tally.score)}"
        )
        n_rows = counted(tally.n_rows, "row")
        screen.say(f"{n_rows} of {files.name} by {path} in {seconds(elapsed)}, {score}")
        tell_notes(screen, data.notes, is_verbose=results.verbose)
        has_weights = files.weights is not None
        show_clusters(screen, found.profile, has_weights=has_weights, names=fitted.names)
        if written := listed(results.output, results.report):
            screen.say(f"written: {written}")
        columns = table_of(found.columns, data.is_used).to_pydict() if shows_rows else {}
        screen.tell_machines(
            {
                "model": path,
                "data": files.first,
                "n_rows": tally.n_rows,
                "score": tally.score,
                "sizes": tally.sizes,
                "weights": tally.weights,
                "names": fitted.names,
                "seconds": {"predicting": elapsed},
                "written": {"rows": results.output, "report": results.report},
                **{{"cluster": "labels"}.get(name, name): one for name, one in columns.items()},
            }
        )
