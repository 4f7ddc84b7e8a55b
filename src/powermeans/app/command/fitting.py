"""``powermeans fit``: cluster a table in memory, or rows that are read part by part."""

from __future__ import annotations

import contextlib
import math
import os
import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

from powermeans.app.command import failures
from powermeans.app.command.choosing import choice_for, note_on_k, rows_for_k
from powermeans.app.command.clusters import (
    about_rows,
    clusters_for_machines,
    labels_in_parts,
    show_clusters,
)
from powermeans.app.command.data import Data, read_for, steps_of
from powermeans.app.command.notes import subject_of, tell_columns, tell_notes, write_report
from powermeans.app.command.outputs import (
    SUFFIXES_OF_ROWS,
    check_outputs,
    interruptible,
    listed,
    write_labels,
    write_rows,
)
from powermeans.app.command.parts import all_paths, needing_all_rows, read_or_open, why_in_parts
from powermeans.app.command.saved import load_model, to_remember
from powermeans.app.command.screen import (
    Screen,
    number,
    seconds,
    shown_progress,
    waiting_for,
)
from powermeans.app.command.sources import DataFiles, Scale
from powermeans.app.command.wanted import Wanted, has_labels_only
from powermeans.app.reading.frames import opened
from powermeans.app.report.profile import Profile
from powermeans.app.report.warnings_on_data import count_copies
from powermeans.divergences import resolve
from powermeans.engine.fit import Listener
from powermeans.engine.stopping import MaxSeconds
from powermeans.errors import EntryError, TableError, counted
from powermeans.estimators.balanced_kmeans import BalancedKMeans
from powermeans.estimators.power_kmeans import PowerKMeans
from powermeans.explaining.summaries import ClusterSummary, Tally
from powermeans.optimality.gap import OptimalityGap
from powermeans.optimality.of_points import gap_in_a_moment
from powermeans.preparing.prepare import Note
from powermeans.scale.parted_data import PartedData
from powermeans.system.attributes import forget


@dataclass(frozen=True, slots=True)
class Fitted:
    """A model, and how it was found."""

    model: PowerKMeans | BalancedKMeans
    seconds: float
    was_interrupted: bool = False
    choice: Any = None  # of the number of clusters, by `choose_k`
    why_k: Sequence[Note] = ()  # the number of clusters, where it was chosen
    changes: Sequence[str] = ()  # from the model that the fit goes on from
    optimality: OptimalityGap | None = None


def fit(files: DataFiles, wanted: Wanted, screen: Screen) -> None:
    """Read the data, fit, write the files asked for and print the clusters."""
    why = why_in_parts(files)
    labels_only = why is not None or wanted.output == "-" or has_labels_only(wanted.output)
    wanted = replace(wanted, labels_only=wanted.labels_only or labels_only)
    if not (wanted.output or wanted.model or wanted.report or why is not None or screen.as_json):
        wanted = _with_outputs(files, wanted)
    _check(files, wanted, why)
    if wanted.like is None:
        data, fitted = _fitted_anew(files, wanted, why)
    else:
        data, fitted = _gone_on(files, wanted)
    _check_names(wanted, len(fitted.model.cluster_centers_))
    with interruptible() as done:
        tally = _labelled(fitted.model, data, files, wanted, done)
        fitted = _with_proof(fitted, data, wanted)
        _write(fitted, data, files, wanted, done)
        _tell(fitted, data, tally, files, wanted, screen)
    _end(fitted, wanted, screen)


def _fitted_anew(files: DataFiles, wanted: Wanted, why: str | None) -> tuple[Data, Fitted]:
    """Read the data and fit."""
    is_scale_idle = wanted.scale == "auto" and not wanted.distance.depends_on_scale
    scale: Scale = "none" if is_scale_idle else wanted.scale
    with waiting_for(f"reading {files.name}", is_quiet=wanted.quiet or why is not None):
        n_clusters, takes_missing = wanted.n_clusters or 1, wanted.distance.takes_missing
        data = read_or_open(
            files, why, scale, n_clusters, "--clusters", takes_missing=takes_missing
        )
    _check_proof(data.missing, wanted)
    started = time.perf_counter()
    settings, choice, why_k, is_cut_short = wanted.settings, None, list[Note](), False
    if settings["n_clusters"] is None:
        settings, choice, why_k, is_cut_short = _with_k(data, files, wanted)
        started = time.perf_counter()
    model = _estimator(
        settings | {"missing": "observed" if data.missing == "observed" else "error"}
    )
    was_interrupted = _fit(model, data, files, wanted)
    elapsed = time.perf_counter() - started
    return data, Fitted(model, elapsed, was_interrupted or is_cut_short, choice, why_k)


def _gone_on(files: DataFiles, wanted: Wanted) -> tuple[Data, Fitted]:
    """Read the data as those of a model, go on from there, and find what has changed."""
    from powermeans.explaining.following import refit, what_changed

    path, began = str(wanted.like), time.perf_counter()
    saved = load_model(path)
    last = steps_of(saved.model)[-1]
    data = read_for(saved.model, path, saved.read_like(files))
    _check_proof(data.missing, wanted)
    started = time.perf_counter()
    with failures.refusing():
        model = refit(last, data.points, sample_weight=data.weights)
        change = what_changed(last, model, data.points)
    data = replace(data, seconds_reading=started - began)
    elapsed = time.perf_counter() - started
    return data, Fitted(model, elapsed, changes=["", *str(change).splitlines()])


def _settings_for_machines(model: Any, wanted: Wanted) -> dict[str, Any]:
    known = model.get_params(deep=False) | {"n_clusters": len(model.cluster_centers_)}
    settings = {name: known.get(name, value) for name, value in wanted.settings.items()}
    if wanted.trials is not None:
        settings |= {"divergence": wanted.divergence, "trials": wanted.trials}
    return settings


def _with_outputs(files: DataFiles, wanted: Wanted) -> Wanted:
    """Name a file for the rows and one for the report, beside no other file of that name."""
    source = Path(files.database or files.first)
    inner_name = Path(source.stem)  # of bank.csv.gz: bank.csv
    is_packed = inner_name.suffix.lower() in (".txt", *SUFFIXES_OF_ROWS)
    stem = f"{inner_name.stem if is_packed else inner_name}-" if source.is_file() else ""
    inner = source.suffixes[-1].lower() if source.suffixes else ""
    suffix = inner if inner in SUFFIXES_OF_ROWS else ".tsv" if ".tsv" in source.suffixes else ".csv"
    rows, page = f"{stem}clusters{suffix}", f"{stem}report.html"
    for path, option in ((rows, "--output"), (page, "--report")):
        if os.path.isfile(path) and not _is_of_a_fit(path, is_page=path == page):
            raise failures.Failure(
                f"{path} exists and was not written here: name another file with {option}"
            )
    return replace(wanted, output=rows, report=page)


def _is_of_a_fit(path: str, *, is_page: bool) -> bool:
    """Return whether a file looks as if a fit had written it."""
    if Path(path).suffix in (".xlsx", ".parquet", ".feather"):
        with contextlib.suppress(TableError):
            return "cluster" in opened(path).table.column_names
        return False
    with failures.reading(path), open(path, "rb") as file:
        start = file.read(2**16)
    return (
        b"powermeans" in start
        if is_page
        else b"cluster" in start.partition(b"\n")[0].replace(b"\0", b"")
    )


def _with_k(
    data: Data, files: DataFiles, wanted: Wanted
) -> tuple[dict[str, Any], Any, list[Note], bool]:
    """Choose the number of clusters in at most half of the time; return the settings of the fit.

    With them come the choice, notes on it, and whether Ctrl-C ended it.
    """
    settings, began = wanted.settings, time.monotonic()
    was_asked = files.missing == "observed"
    rows, said = rows_for_k(data, settings["random_state"], was_asked=was_asked)
    most = 20
    if not isinstance(data.points, PartedData):
        n_distinct = len(rows.points) - count_copies(rows.points)
        most = min(most, n_distinct if n_distinct < len(rows.points) else n_distinct - 1)
    if most < 3:
        k = max(most, 1)
        why = [Note(f"k = {k}, since there are too few different rows for more")]
        return settings | {"n_clusters": k}, None, why, False
    names = ("effort", "random_state", "n_threads", "max_seconds")
    of_choice, limit = {name: settings[name] for name in names}, settings["max_seconds"]
    if limit is not None:
        of_choice["max_seconds"] = limit / 2
    choice, was_interrupted = choice_for(rows, range(2, most + 1), of_choice, is_quiet=wanted.quiet)
    settings = settings | {"n_clusters": choice.recommended}
    if was_interrupted:  # a quick fit with the k so far is better than nothing
        settings |= {"effort": "fast"}
    if limit is not None:
        settings |= {"max_seconds": max(limit - (time.monotonic() - began), 1e-3)}
    return settings, choice, [*map(Note, said), note_on_k(choice)], was_interrupted


def _check(files: DataFiles, wanted: Wanted, why: str | None) -> None:
    """Refuse, before anything is read, what cannot be done or written."""
    in_memory = "pass one file that fits into memory, without --memory-limit and --checkpoint"
    for what, is_asked, way_out in (
        ("--report", wanted.report, "leave it out, and report on some of the rows"),
        ("--prove", wanted.prove, "leave it out, or prove it for some of the rows"),
        ("--like", wanted.like, "pass one file, and no limits"),
        ("--size-min", wanted.size_min, in_memory),
        ("--size-max", wanted.size_max, in_memory),
        (
            f"--divergence {wanted.divergence}",
            wanted.distance.needs_all_points is not None,
            in_memory,
        ),
    ):
        if is_asked:
            needing_all_rows(files, why, what, way_out)
    if wanted.n_clusters is None and not wanted.distance.is_squared:
        raise failures.Failure(
            "-k auto is for squared Euclidean distances: pass a number, or leave out --divergence"
        )
    _check_proof(files.missing, wanted)
    _check_names(wanted, wanted.n_clusters)
    reads = [files.database] if files.database is not None else files.paths
    reads = reads if why is None else [*reads, *all_paths(files)]
    what = "labels" if wanted.labels_only else "rows"
    check_outputs(
        wanted.model, files.checkpoint, reads=reads, page=wanted.report, **{what: wanted.output}
    )


def _check_names(wanted: Wanted, n_clusters: int | None) -> None:
    """Refuse names of clusters that nothing would show."""
    writes_names = "name" in wanted.added and wanted.output
    if wanted.names and not (wanted.report or wanted.model or writes_names):
        raise failures.Failure(
            "--name is for the report, the model and --add name: add one, or leave it out"
        )
    for label in wanted.names:
        if n_clusters is not None and label >= n_clusters:
            raise failures.Failure(
                f"--name has a cluster {label}, and there are {n_clusters}: give names to clusters "
                f"0 to {n_clusters - 1}"
            )


def _check_proof(missing: str | None, wanted: Wanted) -> None:
    if wanted.prove is not None and not wanted.distance.is_squared:
        raise failures.Failure(
            "--prove is for squared Euclidean distances: leave it out, or leave out --divergence"
        )
    if wanted.prove is not None and missing == "observed":
        raise failures.Failure(
            "--prove is for rows without gaps: leave it out, or pass --missing drop"
        )


def _estimator(settings: Mapping[str, Any]) -> PowerKMeans | BalancedKMeans:
    """Return the estimator with these settings: another one where sizes are limited."""
    sizes: dict[str, Any] = {name: settings.get(name) for name in ("size_min", "size_max")}
    others = {name: value for name, value in settings.items() if name not in sizes}
    if (limit := others.pop("max_seconds", None)) is not None:
        others["stop"] = MaxSeconds(limit)
    if all(size is None for size in sizes.values()):
        return PowerKMeans(**others)
    if resolve(others["divergence"]).is_learned:
        raise failures.Failure(
            f"--divergence {others['divergence']} learns a covariance, which does not go with "
            "limits of size: leave one of them out"
        )
    return BalancedKMeans(**others, **sizes)


def _fit(model: PowerKMeans | BalancedKMeans, data: Data, files: DataFiles, wanted: Wanted) -> bool:
    """Fit; Ctrl-C ends the fit and keeps the centers it has reached, and is returned."""
    shown = None if wanted.quiet else shown_progress(details=wanted.verbose)
    was_interrupted, writes = False, files.checkpoint
    try:
        with (
            failures.reading(files.name, writes=writes),
            failures.refusing(),
            _naming_entries(data, files),
        ):
            model.set_params(callback=Listener(shown))
            model.fit(data.points, sample_weight=data.weights)
    except KeyboardInterrupt:
        if not hasattr(model, "cluster_centers_"):
            raise
        was_interrupted = True
    model.set_params(callback=None)
    if isinstance(data.points, PartedData):  # `Prepare` scales and names columns before the model
        model.scaling_ = None
        forget(model, "feature_names_in_")
    return was_interrupted


@contextlib.contextmanager
def _naming_entries(data: Data, files: DataFiles) -> Iterator[None]:
    """Name the file, column and row of an entry that cannot be used."""
    try:
        yield
    except EntryError as error:
        where, row = error.name, error.row
        if not isinstance(data.points, PartedData):
            numbers = data.row_numbers
            where, row = files.name, row + 1 if numbers is None else int(numbers[row])
        raise failures.Failure(
            f'{where}: column "{data.names[error.column]}" has {error.value:g} in row {row}: '
            f"{''.join(map(str, error.way_out))}",
            failures.DATA,
        ) from error


def _labelled(model: Any, data: Data, files: DataFiles, wanted: Wanted, done: list[str]) -> Tally:
    """Count the rows of each cluster, and write their clusters if they are read in parts."""
    tally = Tally(model.cluster_centers_)
    if not isinstance(data.points, PartedData):
        tally.add(data.points, model.labels_, data.weights)
        return tally
    n_rows, what = data.points.n_rows, "labelling the rows"
    with waiting_for(what, is_quiet=wanted.quiet, n_rows=n_rows) as say, failures.refusing():
        columns = labels_in_parts(model, data.points, tally, wanted.added, wanted.names, say)
        pieces = failures.read_from(files.name, columns)
        if wanted.output is not None:
            write_labels(wanted.output, pieces)
            done.append(wanted.output)
        else:
            for _ in pieces:  # labelling a piece counts its rows
                pass
    # An interrupted fit knows the inertia only of the centers one sweep earlier.
    model.inertia_ = -tally.score
    return tally


def _with_proof(fitted: Fitted, data: Data, wanted: Wanted) -> Fitted:
    """Search for a proof of how far the fit is from the optimum, if asked for or easy."""
    if fitted.was_interrupted:
        return fitted
    with contextlib.suppress(KeyboardInterrupt):  # before anything is proved
        if wanted.prove is None:
            found = gap_in_a_moment(fitted.model, data.points, data.weights)
        else:
            found = _proof(fitted.model, data, wanted, wanted.prove)
        return replace(fitted, optimality=found)
    return fitted


def _proof(
    model: PowerKMeans | BalancedKMeans, data: Data, wanted: Wanted, max_seconds: float
) -> OptimalityGap:
    searching = "searching for a proof"
    with Listener(None if wanted.quiet else shown_progress()) as shown:
        shown.phase(searching)
        return model.optimality_gap(
            data.points,
            sample_weight=data.weights,
            max_seconds=max_seconds,
            random_state=model.random_state,
            n_threads=model.n_threads,
            callback=lambda found: shown.phase(found.verdict if found.bound > 0 else searching),
        )


def _write(fitted: Fitted, data: Data, files: DataFiles, wanted: Wanted, done: list[str]) -> None:
    """Write the rows, the model and the report that are asked for."""
    model, subject = fitted.model, None
    if not isinstance(data.points, PartedData):
        subject = subject_of(model, data, wanted.names, fitted.why_k)
    names = wanted.names if subject is None else dict(enumerate(subject.profile.names))
    if wanted.output is not None and subject is not None:
        with waiting_for(f"writing {wanted.output}", is_quiet=wanted.quiet):
            added = about_rows(model, data.points, model.labels_, wanted.added, names)
            write_rows(wanted.output, data, added, labels_only=wanted.labels_only)
        done.append(wanted.output)
    if wanted.model is not None:
        from powermeans.saving import save

        whole = Pipeline([("prepare", data.prepare), ("powerkmeans", model)])
        with failures.writing(wanted.model):
            save(whole, wanted.model, reading=to_remember(files, data, names))
        done.append(wanted.model)
    if wanted.report is not None and subject is not None:
        write_report(
            wanted.report,
            subject,
            files,
            data,
            is_quiet=wanted.quiet,
            model_file=wanted.model if fitted.was_interrupted else None,
            choice=fitted.choice,
            optimality=fitted.optimality,
        )
        done.append(wanted.report)


def _tell(
    fitted: Fitted, data: Data, tally: Tally, files: DataFiles, wanted: Wanted, screen: Screen
) -> None:
    """Print the clusters as a table or as JSON."""
    model = fitted.model
    profile = Profile.of(tally, data.names, data.transformers, data.columns)
    n_columns = sum(1 + bool(column.other) for column in data.prepare.used)
    how_read = "read part by part"
    if data.seconds_reading is not None:
        how_read = f"read in {seconds(data.seconds_reading)}"
    screen.say(
        f"✓ {counted(len(profile.clusters), 'cluster')} of {counted(tally.n_rows, 'row')} and "
        f"{counted(n_columns, 'column')} of {files.name}, {how_read}, "
        f"fitted in {seconds(fitted.seconds)}"
    )
    tell_columns(screen, data, is_verbose=wanted.verbose)
    tell_notes(screen, [*data.notes, *fitted.why_k], is_verbose=wanted.verbose)
    screen.say()
    show_clusters(screen, profile, has_weights=files.weights is not None)
    screen.say()
    sweeps = f" after {counted(model.n_iter_, 'sweep')}" if model.n_iter_ else ""
    screen.say(f"inertia {number(model.inertia_)}{sweeps}")
    if fitted.optimality is not None:
        screen.say(fitted.optimality.verdict)
    for line in fitted.changes:
        screen.say(line)
    if screen.as_json:
        told = _all_for_machines(fitted, data, tally, profile.clusters, files, wanted)
        screen.tell_machines(told)


def _all_for_machines(
    fitted: Fitted,
    data: Data,
    tally: Tally,
    clusters: list[ClusterSummary],
    files: DataFiles,
    wanted: Wanted,
) -> dict[str, Any]:
    prepare = data.prepare
    kinds = [
        {"column": one.name, "kind": one.kind, "why": one.why, "done": prepare.done(one)}
        for one in data.columns
    ]
    return {
        "data": files.first,
        "n_rows": tally.n_rows,
        "columns": [one.name for one in prepare.used],
        "kinds": kinds,
        "doubts": [note.text for note in data.notes if note.is_doubt],
        "weights": files.weights,
        "scale": prepare.scale_,
        "units": {
            "center": "data",
            "spread": "data",
            "inertia": "scaled" if prepare.is_scaled else "data",
        },
        "settings": _settings_for_machines(fitted.model, wanted),
        "inertia": fitted.model.inertia_,
        "n_sweeps": fitted.model.n_iter_,
        **_proof_for_machines(fitted.optimality, is_asked=wanted.prove is not None),
        "seconds": {"reading": data.seconds_reading, "fitting": fitted.seconds},
        "was_interrupted": fitted.was_interrupted,
        "clusters": clusters_for_machines(
            clusters,
            prepare.in_units(fitted.model.cluster_centers_),
            tally.spreads_in(prepare.scaling[1]),
            data.names,
        ),
        "written": {
            "labels" if wanted.labels_only else "rows": wanted.output,
            "model": wanted.model,
            "report": wanted.report,
        },
    }


def _proof_for_machines(optimality: OptimalityGap | None, *, is_asked: bool) -> dict[str, Any]:
    """Return what is proved, but not what another run may not prove in a moment."""
    if optimality is None or not (is_asked or optimality.method == "line"):
        return {}
    gap = optimality.gap if math.isfinite(optimality.gap) else None
    return {"optimality": {"bound": optimality.bound, "gap": gap, "method": optimality.method}}


def _end(fitted: Fitted, wanted: Wanted, screen: Screen) -> None:
    """Name the files written; fail if the fit was interrupted."""
    written = listed(wanted.output, wanted.model, wanted.report)
    if fitted.was_interrupted:
        rest = f", written to {written}" if written else ""
        raise failures.Failure(
            f"interrupted: this is the best result so far{rest}", failures.INTERRUPTED
        )
    if written:
        screen.say(f"written: {written}")
    if wanted.report is not None:
        opener = {"darwin": "open", "win32": "start"}.get(sys.platform, "xdg-open")
        screen.say(f"open the report: {opener} {shlex.quote(wanted.report)}")
