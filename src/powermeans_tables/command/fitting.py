"""``powermeans fit``: cluster a table in memory, or rows that are read part by part."""

from __future__ import annotations

import contextlib
import copy
import math
import os
import shlex
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from powermeans.engine.seeds.orders import row_keys
from powermeans.engine.stopping import MaxSeconds
from powermeans.errors import Argument, TableError, counted
from powermeans.methods.balanced.balanced_kmeans import BalancedKMeans
from powermeans.methods.power_kmeans import PowerKMeans
from powermeans.optimality.of_points import gap_in_a_moment
from powermeans.scale.parted_data import PartedData
from powermeans.system.attributes import remember
from powermeans_tables.command import failures
from powermeans_tables.command.clusters import (
    Fitted,
    Labelled,
    clusters_for_machines,
    labelled,
    show_clusters,
)
from powermeans_tables.command.data import (
    bare,
    load_model,
    naming_entries,
    opened,
    read_for,
    read_to_fit,
    to_remember,
)
from powermeans_tables.command.notes import tell_about, write_report
from powermeans_tables.command.options import DataFiles, Scale, Wanted
from powermeans_tables.command.outputs import SUFFIXES_OF_ROWS, check_outputs, interruptible, listed
from powermeans_tables.command.screen import Screen, listening, seconds, waiting_for
from powermeans_tables.opening import PreparedRows
from powermeans_tables.preparing.notes import Note
from powermeans_tables.preparing.prepare import Prepare
from powermeans_tables.reading.files import open_table
from powermeans_tables.reading.table import Table
from powermeans_tables.report.profile import check_names

# What JSON has of the choice of the number of clusters.
_OF_CHOICE = (
    *("recommended", "certainty", "why", "decided_by", "agreement", "by_criterion", "table"),
    "was_stopped",
)


def fit(files: DataFiles, wanted: Wanted, screen: Screen) -> None:
    """Read the data, fit, write the files asked for and print the clusters."""
    table = opened(files)
    is_open = not (wanted.output or wanted.model or wanted.report or screen.as_json)
    if is_open:
        wanted = _with_outputs(files, wanted)
    wanted = wanted.settled()
    _check(files, wanted, table)
    asked = replace(wanted, report=None) if is_open else wanted  # which rows in parts go without
    fitted = _gone_on(files, asked, table) if wanted.like else _fitted_anew(files, asked, table)
    model, is_in_parts = fitted.model, fitted.data.is_in_parts
    if is_open and is_in_parts:
        wanted = replace(wanted, report=None)
    with interruptible() as done:
        labels = None if is_in_parts else model.labels_
        found = labelled(fitted, wanted, done, labels)
        if is_in_parts:  # an interrupted fit knows it only of the centers one sweep earlier
            model.inertia_ = -found.tally.score
        fitted = _with_proof(fitted, wanted)
        if word := len(found.profile.fields) > 1 and found.profile.only_word:
            way_out = failures.typed([Argument("as_", {word: "ignore"}), " shows what others say"])
            note = Note(f'the clusters are the words of "{word}"', True, [way_out])
            fitted = replace(fitted, why_k=[*fitted.why_k, note])
        _write(fitted, found, wanted, done)
        _tell(fitted, found, wanted, screen)
        if screen.as_json:
            screen.tell_machines(_for_machines(fitted, found, wanted))
    _end(fitted, wanted, screen, lacks_report=is_open and is_in_parts)


def _fitted_anew(files: DataFiles, wanted: Wanted, table: Table) -> Fitted:
    """Read the data and fit."""
    is_scale_idle = wanted.scale == "auto" and not wanted.distance.depends_on_scale
    scale: Scale = "none" if is_scale_idle else wanted.scale
    why_whole = "" if wanted.distance.takes_missing else "this divergence needs whole rows"
    began = time.perf_counter()
    with waiting_for(f"reading {files.name}", is_quiet=wanted.quiet):
        prepare = Prepare(scale=scale, **wanted.preparing, **files.written)
        data = read_to_fit(files, table, prepare, why_whole)
    if data.is_in_parts:
        _refuse_in_parts(files, wanted)
    _check_proof(data.missing, wanted)
    taken = {"reading": time.perf_counter() - began}
    chosen = chosen_k(data, wanted, was_asked=files.missing == "observed")
    started = time.perf_counter()
    missing = "observed" if data.missing == "observed" else "error"
    model = _estimator(**chosen.settings, missing=missing)
    was_interrupted = _fit(model, data, files, wanted) or chosen.was_interrupted
    taken["fitting"] = time.perf_counter() - started
    choice, why_k = chosen.choice, chosen.notes
    return Fitted(files, data, model, taken, was_interrupted, choice, why_k, names=wanted.names)


def _gone_on(files: DataFiles, wanted: Wanted, table: Table) -> Fitted:
    """Read the data as those of a model, go on from there, and find what has changed."""
    from powermeans.explaining.following import refit, what_changed

    path, began = str(wanted.like), time.perf_counter()
    saved = load_model(path)
    last = bare(saved.model)
    with waiting_for(f"reading {files.name}", is_quiet=wanted.quiet):
        data = read_for(saved.model, path, files, table)
    _check_proof(data.missing, wanted)
    started = time.perf_counter()
    with failures.refusing(), naming_entries(data):
        model = refit(last, data.points, sample_weight=data.weights)
        change = what_changed(last, model, data.points)
    taken = {"reading": started - began, "fitting": time.perf_counter() - started}
    changes, names = ["", *str(change).splitlines()], saved.names | wanted.names
    return Fitted(files, data, model, taken, changes=changes, names=names)


def _with_outputs(files: DataFiles, wanted: Wanted) -> Wanted:
    """Name a file for the rows and one for the report, beside no other file of that name."""
    source = Path(files.database or files.first)
    is_packed = source.suffix.lower() in (".gz", ".bz2", ".xz", ".zip")
    inner = Path(source.stem) if is_packed else source
    stem, suffix = f"{inner.stem}-" if source.is_file() else "", inner.suffix.lower()
    rows = f"{stem}clusters{suffix if suffix in SUFFIXES_OF_ROWS else '.csv'}"
    page = f"{stem}report.html"
    for path, option in ((rows, "--output"), (page, "--report")):
        if os.path.isfile(path) and not _is_of_a_fit(path):
            raise failures.Failure(
                f"{path} exists and was not written here: name another file with {option}"
            )
    return replace(wanted, output=rows, report=None if files.in_parts else page)


def _is_of_a_fit(path: str) -> bool:
    """Return whether a file looks as if a fit had written it."""
    if path.endswith(".html"):
        with failures.reading(path), open(path, "rb") as file:
            return b"powermeans" in file.read(2**16)
    with contextlib.suppress(TableError):
        return "cluster" in open_table(path).names
    return False


def _check(files: DataFiles, wanted: Wanted, table: Table) -> None:
    """Refuse, before rows are read, what cannot be done or written."""
    if files.in_parts:
        _refuse_in_parts(files, wanted)
    distance = wanted.distance
    n_clusters = wanted.n_clusters
    if n_clusters is None and not distance.is_squared:
        raise failures.Failure(
            f"-k {wanted.clusters} is for squared Euclidean distances: pass a number, or leave out "
            "--divergence"
        )
    if n_clusters is not None:
        with failures.refusing():
            check_names(wanted.names, n_clusters)
    check_outputs(wanted, wanted.model, files.checkpoint, reads=map(str, table.paths))


def _refuse_in_parts(files: DataFiles, wanted: Wanted) -> None:
    """Refuse what looks at all rows at once, each with a way out."""
    in_memory = "pass rows that fit into memory, without --memory-limit and --checkpoint"
    for what, is_asked, way_out in (
        ("--report", wanted.report, "leave it out, and report on some of the rows"),
        ("--prove", wanted.prove, "leave it out, or prove it for some of the rows"),
        ("--like", wanted.like, "pass fewer rows, and no limits"),
        ("--size-min", wanted.size_min, in_memory),
        ("--size-max", wanted.size_max, in_memory),
        (f"--divergence {wanted.divergence}", wanted.distance.needs_all_points, in_memory),
    ):
        if is_asked is not None:
            raise failures.Failure(
                f"{what} needs all rows at once, not part by part as in {files.name}: {way_out}"
            )


def _check_proof(missing: str | None, wanted: Wanted) -> None:
    kind = "squared Euclidean distances: leave it out, or leave out --divergence"
    if wanted.distance.is_squared:
        kind = "rows without gaps: leave it out, or pass --missing drop"
    if wanted.prove is not None and (missing == "observed" or not wanted.distance.is_squared):
        raise failures.Failure(f"--prove is for {kind}")


def _estimator(
    *, max_seconds: float | None, size_min: Any, size_max: Any, **settings: Any
) -> PowerKMeans | BalancedKMeans:
    """Return the estimator with these settings: another one where sizes are limited."""
    stop = None if max_seconds is None else MaxSeconds(max_seconds)
    if size_min is None and size_max is None:
        return PowerKMeans(**settings, stop=stop)
    return BalancedKMeans(**settings, stop=stop, size_min=size_min, size_max=size_max)


def _fit(
    model: PowerKMeans | BalancedKMeans, data: PreparedRows, files: DataFiles, wanted: Wanted
) -> bool:
    """Fit; Ctrl-C ends the fit and keeps the centers it has reached, and is returned."""
    shown = listening(is_quiet=wanted.quiet, details=wanted.verbose)
    was_interrupted, writes = False, files.checkpoint
    try:
        with (
            failures.reading(files.name, writes=writes),
            failures.refusing(),
            naming_entries(data, -1 if data.is_in_parts else 0),  # there they count from 1
        ):
            model.set_params(callback=shown)
            model.fit(data.points, sample_weight=data.weights)
    except KeyboardInterrupt:
        if not hasattr(model, "cluster_centers_"):
            raise
        was_interrupted = True
    model.set_params(callback=None)
    return was_interrupted


def _with_proof(fitted: Fitted, wanted: Wanted) -> Fitted:
    """Search for a proof of how far the fit is from the optimum, if asked for or easy."""
    data, model, searching = fitted.data, fitted.model, "searching for a proof"
    if fitted.was_interrupted:
        return fitted
    with contextlib.suppress(KeyboardInterrupt):  # before anything is proved
        if wanted.prove is None:
            return replace(fitted, optimality=gap_in_a_moment(model, data.points, data.weights))
        with listening(is_quiet=wanted.quiet) as shown:
            shown.phase(searching)
            found = model.optimality_gap(
                data.points,
                sample_weight=data.weights,
                max_seconds=wanted.prove,
                random_state=model.random_state,
                n_threads=model.n_threads,
                callback=lambda found: shown.phase(found.verdict if found.bound > 0 else searching),
            )
        return replace(fitted, optimality=found)
    return fitted


def _write(fitted: Fitted, found: Labelled, wanted: Wanted, done: list[str]) -> None:
    """Write the model and the report that are asked for."""
    if wanted.model is not None:
        from powermeans.saving import save

        whole, prepare = copy.copy(fitted.model), fitted.data.prepare
        names = prepare.get_feature_names_out()
        remember(whole, {"preparation_": prepare, "feature_names_in_": names})
        reading = to_remember(fitted.files, fitted.data, found.profile.names)
        with failures.writing(wanted.model):
            save(whole, wanted.model, reading=reading)
        done.append(wanted.model)
    if wanted.report is not None:
        file = wanted.model if fitted.was_interrupted else None
        write_report(replace(fitted, file=file), found, wanted, done)


def _tell(fitted: Fitted, found: Labelled, wanted: Wanted, screen: Screen) -> None:
    """Print the clusters as a table."""
    data, model, profile, is_verbose = fitted.data, fitted.model, found.profile, wanted.verbose
    n_columns = sum(1 + bool(column.other) for column in data.prepare.used)
    reading = fitted.seconds["reading"]
    screen.say(
        f"✓ {counted(len(profile.clusters), 'cluster')} of {counted(found.tally.n_rows, 'row')} "
        f"and {counted(n_columns, 'column')} of {fitted.files.name}, "
        f"read {'part by part ' * data.is_in_parts}in {seconds(reading or 0.0)}, "
        f"fitted in {seconds(fitted.seconds['fitting'] or 0.0)}"
    )
    tell_about(screen, data, fitted.why_k, is_verbose=is_verbose)
    if fitted.choice is not None and is_verbose:
        show_choice(screen, fitted.choice, data)
    screen.say()
    show_clusters(screen, profile, has_weights=fitted.files.weights is not None)
    screen.say()
    sweeps = f" after {counted(model.n_iter_, 'sweep')}" if model.n_iter_ else ""
    screen.say(f"inertia {model.inertia_:.6g}{sweeps}")
    if fitted.optimality is not None:
        screen.say(fitted.optimality.verdict)
    for line in fitted.changes:
        screen.say(line)


def _for_machines(fitted: Fitted, found: Labelled, wanted: Wanted) -> dict[str, Any]:
    """Return the clusters, and all that is known of the fit, for JSON."""
    data, model, tally, choice = fitted.data, fitted.model, found.tally, fitted.choice
    prepare, proved = data.prepare, {}
    if wanted.prove is not None:  # another run may not prove the same in a moment
        names = ("bound", "gap", "method")
        proved = {"optimality": {name: getattr(fitted.optimality, name, None) for name in names}}
    unit, known = "scaled" if prepare.is_scaled else "data", model.get_params(deep=False)
    settings = {name: known.get(name, value) for name, value in wanted.settings.items()}
    settings["n_clusters"] = len(model.cluster_centers_)
    kinds = [
        {"column": one.name, "kind": one.kind, "why": one.why, "done": prepare.done(one)}
        for one in prepare.columns_
    ]
    return {
        "data": fitted.files.first,
        "n_rows": tally.n_rows,
        "columns": [one.name for one in prepare.used],
        "kinds": kinds,
        "doubts": [note.text for note in data.notes if note.is_doubt],
        "weights": fitted.files.weights,
        "scale": prepare.scale_,
        "units": {"center": "data", "spread": "data", "inertia": unit},
        "settings": settings,
        "choice": choice and {name: getattr(choice, name) for name in _OF_CHOICE},
        "inertia": model.inertia_,
        "n_sweeps": model.n_iter_,
        **proved,
        "seconds": fitted.seconds,
        "was_interrupted": fitted.was_interrupted,
        "clusters": clusters_for_machines(
            found.profile,
            prepare.in_units(model.cluster_centers_),
            tally.spreads_in(prepare.scaling[1]),
        ),
        "written": {"rows": wanted.output, "model": wanted.model, "report": wanted.report},
    }


def _end(fitted: Fitted, wanted: Wanted, screen: Screen, *, lacks_report: bool) -> None:
    """Name the files written; fail if the fit was interrupted."""
    written = listed(wanted.output, wanted.model, wanted.report)
    if fitted.was_interrupted:
        rest = f", written to {written}" if written else ""
        raise failures.Failure(
            f"interrupted: this is the best result so far{rest}", failures.INTERRUPTED
        )
    if written:
        more = " (--output writes the rows with their cluster)" * (written == wanted.model)
        if wanted.output is not None and (per := fitted.data.prepare.per) is not None:
            more = f'; {wanted.output} has one row for each "{per}"'
        more = "; no report, which needs all rows at once" if lacks_report else more
        screen.say(f"written: {written}{more}")
    if wanted.report is not None:
        opener = {"darwin": "open", "win32": "start"}.get(sys.platform, "xdg-open")
        screen.say(f"open the report: {opener} {shlex.quote(wanted.report)}")


@dataclass(frozen=True, slots=True)
class Chosen:
    """A number of clusters, and what is said of it."""

    settings: dict[str, Any]  # of the fit
    notes: list[Note] = field(default_factory=list)
    choice: Any = None  # what `choose_k` returned; None where nothing was to be chosen
    was_interrupted: bool = False


def chosen_k(data: PreparedRows, wanted: Wanted, *, was_asked: bool) -> Chosen:
    """Choose k in at most half of the time; `was_asked` is for missing values that are to count."""
    from powermeans.methods.functions.choose_k import choose_k

    settings, sizes, began = wanted.settings, wanted.sizes, time.monotonic()
    if len(sizes) == 1:
        return Chosen(settings)
    notes, rows, has_missing = list[Note](), data.points, data.missing == "observed"
    if not data.is_in_parts:
        some = copy.copy(data)
        some.preparation = data.prepare  # of words
        notes = [] if was_asked or not has_missing else _complete(some)
        rows, has_missing = PartedData(some, 1, is_limited=False), bool(np.isnan(some.points).any())
        n_distinct = len(np.unique(row_keys(some.points, np.random.RandomState(0))))
        most = n_distinct - (n_distinct == len(some.points))
        sizes = range(sizes[0], min(sizes[-1], most) + 1)
        if len(sizes) < 2:
            k = max(1, min(sizes.start, most))
            why = Note(f"k = {k}, since there are too few different rows for more")
            return Chosen(settings | {"n_clusters": k}, [why])
    limit = settings["max_seconds"]
    half = None if limit is None else limit / 2
    with failures.refusing():
        choice = choose_k(
            rows,
            sizes,
            callback=listening(is_quiet=wanted.quiet, sweeps=False),
            missing="observed" if has_missing else "error",
            max_seconds=half,
            **{name: settings[name] for name in ("effort", "random_state", "n_threads")},
        )
    settings["n_clusters"], passed = choice.recommended, time.monotonic() - began
    was_interrupted = choice.was_stopped and passed < (half or math.inf)  # by Ctrl-C
    if was_interrupted:  # a quick fit with the k so far is better than nothing
        settings["effort"] = "fast"
    if limit is not None:
        settings["max_seconds"] = max(limit - passed, 1e-3)
    if choice.n_sampled:
        notes.append(Note(f"k was chosen from a sample of {choice.n_sampled:,} rows"))
    said = Note(f"{choice.verdict()}, because {choice.why}", is_doubt=not choice.is_clear)
    return Chosen(settings, [*notes, said], choice, was_interrupted)


def _complete(rows: PreparedRows) -> list[Note]:
    """Keep the complete rows, which all criteria know, if most are, and return a note on that."""
    is_whole = ~np.isnan(rows.points).any(axis=1)
    n_whole = np.count_nonzero(is_whole)
    if not len(rows.points) / 2 <= n_whole < len(rows.points):
        return []
    rows.points = rows.points[is_whole]
    rows.weights = None if rows.weights is None else rows.weights[is_whole]
    return [Note(f"k was chosen from the {n_whole:,} complete rows")]


def show_choice(screen: Screen, choice: Any, data: PreparedRows) -> None:
    """Show each k, its inertia, the fall from the k before, and the criteria that recommend it."""
    inertias, rows = [float(inertia) for inertia in choice.table["inertia"]], []
    for k, inertia, before in zip(choice.table["k"], inertias, [None, *inertias], strict=False):
        fall = f"{100 * (1 - inertia / before):.1f} %" if before else ""
        said_by = [name for name, said in choice.by_criterion.items() if said == k]
        rows.append([str(k), f"{inertia:.6g}", fall, ", ".join(said_by)])
    screen.say()
    screen.show(["k", "inertia", "fall", "said by"], rows, left=[3])
    if data.prepare.has_words:
        screen.say("inertia: with words blurred at random, since words alone look like clusters")
