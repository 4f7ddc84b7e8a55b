"""``powermeans predict`` and ``powermeans report``: saved models on data."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from powermeans.app.command import failures
from powermeans.app.command.clusters import (
    about_rows,
    labels_and_score,
    labels_in_parts,
    show_clusters,
)
from powermeans.app.command.data import prepare_of, read_for, steps_of
from powermeans.app.command.notes import subject_of, tell_notes, write_report
from powermeans.app.command.outputs import (
    RowColumns,
    check_outputs,
    interruptible,
    listed,
    with_rows_left_out,
    write_labels,
    write_rows,
)
from powermeans.app.command.parts import all_paths, open_for, why_in_parts
from powermeans.app.command.saved import Saved, load_model
from powermeans.app.command.screen import Screen, number, seconds
from powermeans.app.command.sources import DataFiles
from powermeans.app.command.wanted import added_columns, has_labels_only
from powermeans.app.report.profile import Profile
from powermeans.errors import counted
from powermeans.explaining.summaries import Tally
from powermeans.optimality.of_points import gap_in_a_moment


def predict(
    path: str,
    files: DataFiles,
    output: str | None,
    screen: Screen,
    *,
    add: str | None,
    labels_only: bool,
) -> None:
    """Label new rows by a saved model, all at once or part by part."""
    why = why_in_parts(files)
    labels_only |= why is not None or output in (None, "-") or has_labels_only(output)
    added = added_columns(add, output, labels_only=labels_only)
    reads = [path, files.database or files.first]
    reads += [] if why is None else [*files.paths, *all_paths(files)]
    check_outputs(reads=reads, **{"labels" if labels_only else "rows": output})
    saved = load_model(path)
    files, started = saved.read_like(files), time.perf_counter()
    with interruptible() as done:
        if why is None:
            found = _predicted(saved, path, files, output, screen, added, labels_only)
        else:
            found = _predicted_in_parts(saved, path, files, why, output, screen, added)
        tally, profile, columns = found
        done.append(output or "-")
        elapsed = time.perf_counter() - started
        screen.say(
            f"{counted(tally.n_rows, 'row')} of {files.name} by {path} in {seconds(elapsed)}, "
            f"score {number(tally.score)}"
        )
        has_weights = files.weights is not None
        show_clusters(screen, profile, has_weights=has_weights, names=saved.names)
        if written := listed(output):
            screen.say(f"written: {written}")
        screen.tell_machines(
            {
                "model": path,
                "data": files.first,
                "n_rows": tally.n_rows,
                "score": tally.score,
                "sizes": tally.sizes,
                "weights": tally.weights,
                "names": saved.names,
                "seconds": {"predicting": elapsed},
                "written": {"labels": output},
                **columns,
            }
        )


def _predicted(
    saved: Saved,
    path: str,
    files: DataFiles,
    output: str | None,
    screen: Screen,
    added: Sequence[str],
    labels_only: bool,
) -> tuple[Tally, Profile, RowColumns]:
    """Label rows in memory and write them; return what is added to them for JSON instead."""
    data, last = read_for(saved.model, path, files), steps_of(saved.model)[-1]
    with failures.refusing():
        tally = _tally(saved.model, data.points.shape[1])
        labels, tally.score = labels_and_score(last, data.points, data.weights)
    tally.add(data.points, labels, data.weights)
    profile = Profile.of(tally, data.names, data.transformers, data.columns)
    tell_notes(screen, data.notes)
    with failures.refusing():
        columns = about_rows(last, data.points, labels, added, saved.names)
    if output is None and screen.as_json:
        columns = with_rows_left_out(columns, data.is_used)
        return tally, profile, {"labels": columns.pop("cluster"), **columns}
    write_rows(output or "-", data, columns, labels_only=labels_only)
    return tally, profile, {}


def _predicted_in_parts(
    saved: Saved,
    path: str,
    files: DataFiles,
    why: str,
    output: str | None,
    screen: Screen,
    added: Sequence[str],
) -> tuple[Tally, Profile, RowColumns]:
    """Label rows part by part, and write their labels."""
    if output is None and screen.as_json:
        raise failures.Failure(
            "the labels of rows that are read part by part may not fit into one JSON object: "
            "name a file for them with --output"
        )
    data = open_for(saved.model, path, files, why)
    prepare = prepare_of(saved.model)
    rest = saved.model if prepare is None else steps_of(saved.model)[-1]
    with failures.refusing():
        tally = _tally(saved.model, data.n_features)
        columns = labels_in_parts(rest, data, tally, added, saved.names)
        write_labels(output or "-", failures.read_from(files.name, columns))
    scalers = [] if prepare is None else [prepare]
    return tally, Profile.of(tally, list(data.feature_names or ()), scalers), {}


def _tally(model: Any, n_features: int) -> Tally:
    last = steps_of(model)[-1]
    centers = last.dual_coef_ if hasattr(last, "dual_coef_") else last.cluster_centers_
    return Tally(np.zeros((len(centers), n_features)))


def report(path: str, files: DataFiles, output: str, names: dict[int, str], screen: Screen) -> None:
    """Write a page about a saved model and data."""
    check_outputs(reads=[path, files.first], page=output)
    saved = load_model(path)
    files, last = saved.read_like(files), steps_of(saved.model)[-1]
    data = read_for(saved.model, path, files)
    with failures.refusing():
        gap = gap_in_a_moment(last, data.points, data.weights)
    subject = subject_of(last, data, saved.names | names)
    write_report(output, subject, files, data, model_file=path, optimality=gap)
    screen.say(f"written: {output}")
    screen.tell_machines({"model": path, "data": files.first, "written": {"report": output}})
