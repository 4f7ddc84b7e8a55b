"""``powermeans predict`` and ``powermeans report``: saved models on data."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from powermeans.app.command import failures
from powermeans.app.command.clusters import (
    Sizes,
    labelled,
    labels_and_score,
    told_of_rows,
)
from powermeans.app.command.data_files import (
    ADDED,
    DataFiles,
    FitData,
    are_names,
    file_table,
    notes_on,
    settle_missing,
)
from powermeans.app.command.outputs import (
    RowColumns,
    check_outputs,
    interruptible,
    listed,
    with_rows_left_out,
    write_labels,
    write_rows,
)
from powermeans.app.command.parts import (
    all_paths,
    names_in,
    note_parts,
    open_parts,
    why_in_parts,
)
from powermeans.app.command.screen import Screen, counted, number, seconds, waiting_for
from powermeans.app.reading.frames import Frame
from powermeans.app.report.report import report
from powermeans.errors import ModelFileError, TableError, nearest, printable, warn_caller
from powermeans.estimators.streams.base import is_waiting
from powermeans.preparing.prepare import Prepare
from powermeans.saving import load, reading_of
from powermeans.scale.parted_data import PartedData
from powermeans.scale.tables import Table
from powermeans.scale.tables.checking import without_missing


def predict(
    path: str,
    files: DataFiles,
    output: str | None,
    screen: Screen,
    *,
    added: Sequence[str] = ADDED,
    labels_only: bool = False,
) -> None:
    """Label new rows by a saved model, all at once or part by part."""
    why = why_in_parts(files)
    labels_only |= why is not None or output in (None, "-") or str(output).endswith(".npy")
    if why is None:
        what = "labels" if labels_only else "rows"
        check_outputs(reads=[path, files.database or files.first], **{what: output})
    else:
        check_outputs(reads=[path, *files.paths, *all_paths(files)], labels=output)
        if output is None and screen.as_json:
            raise failures.Failure(
                "the labels of rows that are read part by part may not fit into one JSON object: "
                "name a file for them with --output"
            )
    whole, reading = load_model(path)
    files = files.as_remembered(reading)
    prepare, model = _apart(whole)
    if why is None:
        data: FitData | PartedData = read_for(whole, path, files, is_written=not labels_only)
    elif prepare is not None:
        raise failures.Failure(
            f"{path} was fitted to words or places, and {files.name} is read part by part: pass "
            "one file that fits into memory, without --memory-limit"
        )
    else:
        data = open_for(model, path, files)
        note_parts(files, why)
    sizes, started = Sizes(_n_clusters_of(model)), time.perf_counter()
    with interruptible() as done:
        with failures.refusing():
            pieces = failures.read_from(files.name, _labels(model, data, sizes, added))
            for_machines = _write(pieces, data, output, screen, labels_only=labels_only)
        done.append(output or "-")
        elapsed = time.perf_counter() - started
        _tell(sizes, data, elapsed, path, files, output, screen, for_machines)


def _write(
    pieces: Iterable[RowColumns],
    data: FitData | PartedData,
    output: str | None,
    screen: Screen,
    *,
    labels_only: bool,
) -> dict[str, Any]:
    """Write the rows with their clusters or these alone; return what goes into JSON instead."""
    if isinstance(data, FitData) and not labels_only and output is not None:
        (columns,) = pieces
        write_rows(output, data, columns)
        return {}
    if isinstance(data, FitData):
        pieces = [with_rows_left_out({"cluster": c["cluster"]}, data.is_kept) for c in pieces]
    if output is None and screen.as_json:
        (columns,) = pieces
        return {"labels": columns["cluster"]}
    write_labels(output or "-", pieces)
    return {}


def _apart(model: Any) -> tuple[Prepare | None, Any]:
    """Return what prepares the columns of a model, if anything does, and the rest of it."""
    if not isinstance(model, Pipeline) or not isinstance(model[0], Prepare):
        return None, model
    return model[0], model[-1]


def _labels(
    model: Any, data: FitData | PartedData, sizes: Sizes, added: Sequence[str]
) -> Iterable[RowColumns]:
    """Return what is written of all rows, part by part."""
    if isinstance(data, PartedData):
        return labelled(model, data, sizes)
    labels, sizes.score = labels_and_score(model, data.points, data.weights)
    sizes.add(data.points, labels, data.weights)
    return [told_of_rows(model, data.points, labels, [*dict.fromkeys(["cluster", *added])])]


def _tell(
    sizes: Sizes,
    data: FitData | PartedData,
    elapsed: float,
    path: str,
    files: DataFiles,
    output: str | None,
    screen: Screen,
    for_machines: dict[str, Any],
) -> None:
    """Print the score and the sizes of the clusters."""
    screen.say(
        f"{counted(sizes.n_rows, 'row')} of {files.name} by {path} in {seconds(elapsed)}, "
        f"score {number(sizes.score)}"
    )
    for note in notes_on(data) if isinstance(data, FitData) else ():
        screen.say(note)
    _show_sizes(screen, sizes, has_weights=files.weights is not None)
    if written := listed(output):
        screen.say(f"written: {written}")
    screen.tell_machines(
        {
            "model": path,
            "data": files.first,
            "n_rows": sizes.n_rows,
            "score": sizes.score,
            "sizes": sizes.sizes,
            "weights": sizes.weights,
            "seconds": {"predicting": elapsed},
            "written": {"labels": output},
            **for_machines,
        }
    )


def _show_sizes(screen: Screen, sizes: Sizes, *, has_weights: bool) -> None:
    shares = sizes.weights / sizes.weights.sum()
    screen.show(
        ["cluster", "size", *(["weight"] if has_weights else []), "share"],
        [
            [
                str(j),
                f"{size:,}",
                *([number(sizes.weights[j])] if has_weights else []),
                f"{shares[j]:.1%}",
            ]
            for j, size in enumerate(sizes.sizes)
        ],
    )
    if has_weights:
        screen.say("size: rows; share: of the weight")


def load_model(path: str) -> tuple[Any, dict[str, Any]]:
    """Load a model that can predict, and how the files of its fit were read."""
    try:
        with failures.refusing(ModelFileError):
            model, reading = load(path), reading_of(path)
    except OSError as error:
        others = os.listdir(os.path.dirname(path) or ".") if not os.path.isdir(path) else []
        hint = nearest(os.path.basename(path), others)
        raise failures.Failure(
            f"{path} cannot be read: {error.strerror}{hint}", failures.DATA
        ) from error
    if not hasattr(model, "predict"):
        raise failures.Failure(
            f"{path} holds a {type(model).__name__}, which has labels only for the rows of its fit",
            failures.DATA,
        )
    if is_waiting(model) and not hasattr(model, "cluster_centers_"):
        raise failures.Failure(
            f"{path} holds a stream that waits for more points and has no centers yet: load it in "
            "Python, give it points by partial_fit, and save it again",
            failures.DATA,
        )
    return model, reading


def read_for(model: Any, path: str, files: DataFiles, *, is_written: bool = False) -> FitData:
    """Read the columns to which a model was fitted, and find how missing values are met.

    All columns of the file come along if they are to be written again.
    """
    takes_missing = _takes_missing(model, path, files)
    _refuse_kinds(files, path)
    prepare, _ = _apart(model)
    with waiting_for(f"reading {files.name}", is_quiet=False):
        frame = files.frame() if prepare is not None or is_written else None
        if prepare is None:
            table, _ = files.read(lambda there: _columns_for(model, path, files, there))
            _check_width(table.points.shape[1], model, path, files)
            if isinstance(model, Pipeline):
                _warn_of_units(model[:-1].transform(table.points), table.names, files)
        elif frame is None:
            raise failures.Failure(
                f"{path} was fitted to columns with words, and {files.name} holds numbers alone",
                failures.DATA,
            )
        else:
            table = _prepared(prepare, frame, files)
    table, missing, _ = settle_missing(table, files, takes_missing=takes_missing)
    return FitData(
        table.points,
        list(table.names),
        table.weights,
        table.is_kept,
        prepare,
        how_read=table.how_read,
        decimal=table.decimal,
        missing=missing,
        frame=frame,
        columns=[] if prepare is None else prepare.columns_,
    )


def _refuse_kinds(files: DataFiles, path: str) -> None:
    """Refuse options that a model has settled."""
    if files.kinds or files.orders:
        option = "--as" if files.kinds else "--order"
        raise failures.Failure(f"{option} is for fit: {path} knows what its columns hold")


def _tell_unknown(prepare: Prepare, frame: Frame, files: DataFiles) -> None:
    """Warn of words that the model does not know."""
    with failures.refusing(KeyError), contextlib.suppress(KeyError):
        for name, words in prepare.unknown_words(frame.table).items():
            said = ", ".join(f'"{word}" ({n} rows)' for word, n in list(words.items())[:4])
            warn_caller(f'check this: {files.name}: "{name}" has {said}, unknown to the model')


def _warn_of_units(points: Any, names: Sequence[str], files: DataFiles) -> None:
    """Warn of columns whose rows are far from those of the fit, such as in another unit."""
    far = [
        f'"{name}"'
        for name, values in zip(names, np.abs(points).T, strict=True)
        if not np.isnan(values).all() and np.nanmedian(values) > 5
    ]
    if far:
        warn_caller(
            f"check this: {files.name}: most rows are far from those of the fit in "
            f"{', '.join(far[:4])}: is it another unit?"
        )


def _prepared(prepare: Prepare, frame: Frame, files: DataFiles) -> Table:
    """Return the columns of a frame as those of a fit."""
    _tell_unknown(prepare, frame, files)
    with failures.refusing(TableError):
        points = prepare.transform(frame.table)
        _warn_of_units(points, list(prepare.get_feature_names_out()), files)
        table = Table(points, tuple(map(str, prepare.get_feature_names_out())))
        return without_missing(table, files.missing_in_table, files.name)


def _takes_missing(model: Any, path: str, files: DataFiles) -> bool:
    """Return whether a model goes by the values that are there; refuse a wish for it if not."""
    takes_missing: bool = getattr(_last(model), "missing", None) == "observed"
    if files.missing == "observed" and not takes_missing:
        raise failures.Failure(
            f"--missing observed needs a model that was fitted with it, and {path} was not: leave "
            "rows with missing values out by --missing drop"
        )
    return takes_missing


def open_for(model: Any, path: str, files: DataFiles) -> PartedData:
    """Open the columns to which a model was fitted, for reading part by part."""
    _takes_missing(model, path, files)
    columns = _columns_for(model, path, files, names_in(files))
    data = open_parts(files, columns)
    _check_width(data.n_features, model, path, files)
    return data


def _columns_for(
    model: Any, path: str, files: DataFiles, there: Sequence[str]
) -> Sequence[str] | None:
    """Return the columns of a model in its order; None if the model or the data has no names."""
    names = [str(name) for name in getattr(model, "feature_names_in_", [])]
    asked = files.asked_columns
    if asked is not None:
        return _in_order(asked, names, path, files, there)
    if not are_names(names) or not are_names(there):
        return None
    for name in names:
        if name not in there:
            raise failures.Failure(
                f'{files.name} has no column "{name}", to which {path} was fitted'
                f"{nearest(name, there)}",
                failures.DATA,
            )
    return names


def _in_order(
    asked: list[str], names: list[str], path: str, files: DataFiles, there: Sequence[str]
) -> list[str]:
    """Return the columns asked for, in the order of the model if it has the same names."""
    by_number = {str(number): name for number, name in enumerate(there, start=1)}
    found = [name if name in there else by_number.get(name, name) for name in asked]
    if not are_names(names) or set(found).isdisjoint(names):
        return asked
    if sorted(found) != sorted(names):
        raise failures.Failure(
            f"{path} was fitted to the columns {', '.join(names)}, and --columns asks for "
            f"{', '.join(found)} of {files.name}: ask for the same, in any order"
        )
    return names


def _check_width(n_found: int, model: Any, path: str, files: DataFiles) -> None:
    """Refuse another number of columns than the model has."""
    if n_found != model.n_features_in_:
        raise failures.Failure(
            f"{files.name} has {n_found} columns, and {path} was fitted to "
            f"{model.n_features_in_}: choose them with --columns",
            failures.DATA,
        )


def _last(model: Any) -> Any:
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def _n_clusters_of(model: Any) -> int:
    last = _last(model)
    centers = last.dual_coef_ if hasattr(last, "dual_coef_") else last.cluster_centers_
    return len(centers)


def write_report(
    path: str, files: DataFiles, output: str, names: dict[int, str], screen: Screen
) -> None:
    """Write a page about a saved model and data."""
    check_outputs(reads=[path, files.first], page=output)
    whole, reading = load_model(path)
    files = files.as_remembered(reading)
    data = read_for(whole, path, files)
    *scalers, model = [step for _, step in whole.steps] if isinstance(whole, Pipeline) else [whole]
    points = data.points
    for scaler in scalers if data.scaler is None else ():
        points = scaler.transform(points)
    with (
        waiting_for(f"writing {output}", is_quiet=False),
        failures.writing(output),
        failures.refusing(),
    ):
        report(
            model,
            points,
            output,
            title=f"Clusters of {printable(os.path.basename(files.name))}",
            source=files.first,
            scalers=scalers,
            reading=files.with_missing(data.missing).reading_of(data),
            model_file=path,
            sample_weight=data.weights,
            names=names,
            file=file_table(data),
        )
    screen.say(f"written: {output}")
    screen.tell_machines({"model": path, "data": files.first, "written": {"report": output}})
