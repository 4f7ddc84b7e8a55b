"""``powermeans fit``: cluster a table in memory, or rows that are read part by part."""

from __future__ import annotations

import contextlib
import math
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from powermeans.app.command import failures
from powermeans.app.command.choosing import choice_for, rows_for_k, why_this_k
from powermeans.app.command.clusters import (
    Tally,
    clusters_for_machines,
    labelled,
    show_clusters,
    told_of_rows,
)
from powermeans.app.command.data_files import (
    ADDED,
    DataFiles,
    FitData,
    Scale,
    are_names,
    file_table,
    notes_on,
    tell_columns,
    tell_notes,
)
from powermeans.app.command.explaining import fit_like
from powermeans.app.command.outputs import (
    SUFFIXES_OF_ROWS,
    RowColumns,
    check_outputs,
    interruptible,
    listed,
    with_rows_left_out,
    write_labels,
    write_rows,
)
from powermeans.app.command.parts import all_paths, data_to_fit, why_in_parts
from powermeans.app.command.screen import (
    Screen,
    counted,
    number,
    seconds,
    shown_progress,
    waiting_for,
)
from powermeans.app.report.report import report
from powermeans.app.report.summaries import ClusterSummary
from powermeans.app.report.warnings_on_data import count_copies
from powermeans.divergences import Divergence, resolve
from powermeans.engine.fit import Listener
from powermeans.engine.stopping import MaxSeconds
from powermeans.errors import EntryError, printable
from powermeans.estimators.balanced_kmeans import BalancedKMeans
from powermeans.estimators.power_kmeans import PowerKMeans
from powermeans.optimality.gap import OptimalityGap
from powermeans.optimality.of_points import gap_in_a_moment
from powermeans.points.scaling import Scaling
from powermeans.preparing.prepare import Prepare
from powermeans.saving import save
from powermeans.scale.parted_data import PartedData
from powermeans.system.attributes import forget


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to fit, and where to write it."""

    settings: dict[str, Any]
    scale: Scale = "none"
    output: str | None = None
    model: str | None = None
    report: str | None = None
    is_quiet: bool = False
    is_verbose: bool = field(default=False, kw_only=True)
    shown: dict[str, Any] = field(default_factory=dict)  # replaces settings that JSON cannot hold
    prove: float | None = None  # seconds
    names: dict[int, str] = field(default_factory=dict)  # of clusters, in the report
    added: Sequence[str] = ADDED  # columns of the rows that are written
    labels_only: bool = False
    is_cut_short: bool = False  # by Ctrl-C while k was chosen
    choice: Any = None  # of the number of clusters, by `choose_k`
    why_k: Sequence[str] = ()
    like: str | None = None  # the file of a model to go on from

    @property
    def divergence(self) -> Divergence:
        """The distance between a row and a center."""
        return resolve(self.settings.get("divergence", "squared_euclidean"))

    @property
    def is_whole_job(self) -> bool:
        """Whether no output was asked for, so that all are written."""
        return not any((self.output, self.model, self.report))


@dataclass(frozen=True, slots=True)
class Fitted:
    """A model, how its rows were scaled, and how the fit went."""

    model: PowerKMeans | BalancedKMeans
    scaler: Any
    seconds: float
    was_interrupted: bool
    optimality: OptimalityGap | None = None

    @property
    def whole(self) -> Any:
        """The model together with the scaling before it."""
        if self.scaler is None:
            return self.model
        name = type(self.scaler).__name__.lower()
        return Pipeline([(name, self.scaler), ("powerkmeans", self.model)])


def fit(files: DataFiles, wanted: Wanted, screen: Screen) -> None:
    """Read the data, fit, write the files asked for and print the clusters."""
    why = why_in_parts(files)
    if why is not None or wanted.output == "-" or _is_of_labels(wanted.output):
        wanted = replace(wanted, labels_only=True)
    if wanted.is_whole_job and why is None and not screen.as_json:
        wanted = _with_outputs(files, wanted)
    _check_outputs(files, wanted, why)
    found = _fitted_anew(files, wanted, why) if wanted.like is None else _like(files, wanted, why)
    files, wanted, data, fitted, n_rows, changes = found
    fitted = replace(fitted, was_interrupted=fitted.was_interrupted or wanted.is_cut_short)
    tally = Tally(fitted.model.cluster_centers_)
    with interruptible() as done:
        is_quiet = wanted.is_quiet or screen.as_json or n_rows is None
        with waiting_for("labelling the rows", is_quiet=is_quiet, n_rows=n_rows) as say:
            _write_labels(fitted, data, files, wanted, tally, say, done)
        fitted = _with_proof(fitted, data, wanted)
        name_columns(fitted, data.names)
        if wanted.output is not None and not wanted.labels_only:
            is_quiet = wanted.is_quiet or screen.as_json
            with waiting_for(f"writing {wanted.output}", is_quiet=is_quiet):
                told = told_of_rows(fitted.model, data.points, fitted.model.labels_, wanted.added)
                write_rows(wanted.output, data, told)
            done.append(wanted.output)
        _write_model_and_report(fitted, data, files, wanted, done)
        _tell(fitted, data, tally, files, wanted, screen)
        for line in changes:
            screen.say(line)
    _end(fitted, wanted, screen)


Found = tuple[DataFiles, Wanted, FitData, Fitted, int | None, Sequence[str]]
"""What a fit has settled, what it found, and what it tells besides."""


def _fitted_anew(files: DataFiles, wanted: Wanted, why: str | None) -> Found:
    """Read the data and fit."""
    data = _read(files, wanted, why)
    files = files.with_missing(data.missing)
    wanted = replace(wanted, settings=wanted.settings | {"missing": files.missing_in_fit})
    if wanted.prove is not None:
        _check_proof(files, wanted, why)
    if wanted.settings["n_clusters"] is None:
        wanted = _with_k(data, wanted)
        _check_names(wanted)
    if why is None:
        fitted, n_rows = _fitted(data, files, wanted), None
    else:
        fitted, n_rows = _fitted_in_parts(data, files, wanted)
    return files, wanted, data, fitted, n_rows, []


def _like(files: DataFiles, wanted: Wanted, why: str | None) -> Found:
    """Read the data as those of a model, go on from there, and tell what has changed."""
    if why is not None:
        raise failures.Failure("--like looks at all rows at once: pass one file, and no limits")
    data, model, change, elapsed = fit_like(str(wanted.like), files)
    files = files.with_missing(data.missing)
    known = model.get_params(deep=False) | {"n_clusters": len(model.cluster_centers_)}
    settings = {name: known[name] for name in wanted.settings if name in known}
    shown = {"divergence": str(known.get("divergence", "squared_euclidean"))}
    wanted = replace(wanted, settings=settings, shown=shown)
    _check_names(wanted)
    if wanted.prove is not None:
        _check_proof(files, wanted, why)
    fitted = Fitted(model, data.scaler, elapsed, False)
    return files, wanted, data, fitted, None, ["", *str(change).splitlines()]


def _read(files: DataFiles, wanted: Wanted, why: str | None) -> FitData:
    """Read the data, scaled if that is asked for or the divergence calls for it."""
    is_scale_idle = wanted.scale == "auto" and not wanted.divergence.depends_on_scale
    with waiting_for(f"reading {files.name}", is_quiet=wanted.is_quiet or why is not None):
        return data_to_fit(
            files,
            why,
            "none" if is_scale_idle else wanted.scale,
            wanted.settings["n_clusters"] or 1,
            "--clusters",
            takes_missing=wanted.divergence.takes_missing,
        )


def _is_of_labels(output: str | None) -> bool:
    """Return whether a file can hold labels only."""
    return output is not None and output.lower().endswith(".npy")


def _with_outputs(files: DataFiles, wanted: Wanted) -> Wanted:
    """Name a file for the rows and one for the report, beside no other file of that name."""
    source = Path(files.database or files.first)
    stem = f"{source.name.partition('.')[0]}-" if source.is_file() else ""
    inner = source.suffixes[-1].lower() if source.suffixes else ""
    suffix = inner if inner in SUFFIXES_OF_ROWS else ".tsv" if ".tsv" in source.suffixes else ".csv"
    rows, page = f"{stem}clusters{suffix}", f"{stem}report.html"
    for path, option, mark in ((rows, "--output", b"cluster"), (page, "--report", b"powermeans")):
        if os.path.isfile(path):
            with failures.reading(path), open(path, "rb") as file:
                start = file.read(2**16)
            is_binary = path == rows and suffix in (".xlsx", ".parquet", ".feather")
            start = start if path == page else start.partition(b"\n")[0].replace(b"\0", b"")
            if mark not in start and not is_binary:
                raise failures.Failure(
                    f"{path} exists and was not written here: name another file with {option}"
                )
    return replace(wanted, output=rows, report=page)


def _with_k(data: FitData, wanted: Wanted) -> Wanted:
    """Let the criteria choose the number of clusters."""
    if not wanted.divergence.is_squared:
        raise failures.Failure(
            "-k auto is for squared Euclidean distances: pass a number, or leave out --divergence"
        )
    rows, said = rows_for_k(data, wanted.settings["random_state"])
    most = 20
    if not isinstance(data.points, PartedData):
        n_distinct = len(rows.points) - count_copies(rows.points)
        most = min(most, n_distinct if n_distinct < len(rows.points) else n_distinct - 1)
    if most < 3:
        choice, k = None, max(most, 1)
        why = [f"k = {k}, since there are too few different rows for more"]
    else:
        choice, wanted = _choice_of_k(rows, most, wanted)
        why, k = [*said, *why_this_k(choice)], choice.recommended
    settings = wanted.settings | {"n_clusters": k}
    return replace(wanted, settings=settings, choice=choice, why_k=why)


def _choice_of_k(rows: FitData, most: int, wanted: Wanted) -> tuple[Any, Wanted]:
    """Choose k in at most half of the time, and leave the rest of the time to the fit."""
    names = ("effort", "random_state", "n_threads", "max_seconds")
    settings, began = {name: wanted.settings[name] for name in names}, time.monotonic()
    if (limit := settings["max_seconds"]) is not None:
        settings["max_seconds"] = limit / 2
    choice, was_interrupted = choice_for(
        rows, range(2, most + 1), settings, is_quiet=wanted.is_quiet
    )
    if was_interrupted:  # a quick fit with the k so far is better than nothing
        settings = wanted.settings | {"effort": "fast"}
        wanted = replace(wanted, settings=settings, is_cut_short=True)
    if limit is not None:
        left = max(limit - (time.monotonic() - began), 1e-3)
        wanted = replace(wanted, settings=wanted.settings | {"max_seconds": left})
    return choice, wanted


def _check_outputs(files: DataFiles, wanted: Wanted, why: str | None) -> None:
    if why is not None and wanted.report is not None:
        raise failures.Failure(
            f"--report needs all rows at once, and {files.name} is read part by part: leave it "
            "out, and report on some of the rows"
        )
    limit = next((name for name in ("size_min", "size_max") if wanted.settings.get(name)), None)
    if why is not None and limit is not None:
        raise failures.Failure(
            f"--{limit.replace('_', '-')} needs all rows at once, and {files.name} is read part by "
            "part: pass one file that fits into memory, without --memory-limit and --checkpoint"
        )
    if why is not None and wanted.divergence.needs_all_points is not None:
        raise failures.Failure(
            f"--divergence {wanted.shown['divergence']} needs all rows at once, and {files.name} "
            "is read part by part: pass one file that fits into memory, without --memory-limit "
            "and --checkpoint"
        )
    if wanted.prove is not None:
        _check_proof(files, wanted, why)
    _check_names(wanted)
    reads = files.paths if why is None else [*files.paths, *all_paths(files)]
    outputs = (wanted.model, files.checkpoint)
    what = "labels" if wanted.labels_only else "rows"
    check_outputs(*outputs, reads=reads, page=wanted.report, **{what: wanted.output})


def _check_names(wanted: Wanted) -> None:
    """Refuse, before the fit, names of clusters that nothing would show."""
    if wanted.names and wanted.report is None:
        raise failures.Failure("--name is for the report: add --report, or leave it out")
    n_clusters = wanted.settings["n_clusters"]
    for label in wanted.names:
        if n_clusters is not None and label >= n_clusters:
            raise failures.Failure(
                f"--name has a cluster {label}, and there are {n_clusters}: give names to clusters "
                f"0 to {n_clusters - 1}"
            )


def _check_proof(files: DataFiles, wanted: Wanted, why: str | None) -> None:
    """Refuse, before the fit, what cannot be proved after it."""
    if why is not None:
        raise failures.Failure(
            f"--prove needs all rows at once, and {files.name} is read part by part: leave it out, "
            "or prove it for some of the rows"
        )
    if not wanted.divergence.is_squared or wanted.settings.get("missing") == "observed":
        raise failures.Failure(
            "--prove is for whole rows and squared Euclidean distances: leave it out, or leave out "
            "--divergence and pass --missing drop"
        )


def _with_proof(fitted: Fitted, data: FitData, wanted: Wanted) -> Fitted:
    """Search for a proof of how far the fit is from the optimum, if it is wanted or easy."""
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
    model: PowerKMeans | BalancedKMeans, data: FitData, wanted: Wanted, max_seconds: float
) -> OptimalityGap:
    searching = "searching for a proof"
    with Listener(None if wanted.is_quiet else shown_progress()) as shown:
        shown.phase(searching)
        return model.optimality_gap(
            data.points,
            sample_weight=data.weights,
            max_seconds=max_seconds,
            random_state=wanted.settings.get("random_state"),
            n_threads=wanted.settings.get("n_threads"),
            callback=lambda found: shown.phase(found.verdict if found.bound > 0 else searching),
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
    if others.pop("power", "auto") != "auto":
        raise failures.Failure("--power does not go with limits of size: leave it out")
    return BalancedKMeans(**others, **sizes)


def _fitted(data: FitData, files: DataFiles, wanted: Wanted) -> Fitted:
    """Fit; Ctrl-C ends the fit and keeps the centers it has reached."""
    model = _estimator(wanted.settings)
    shown = None if wanted.is_quiet else shown_progress(details=wanted.is_verbose)
    started, was_interrupted = time.perf_counter(), False
    try:
        with failures.refusing(), _naming_entries(data, files):
            model.set_params(callback=Listener(shown))
            model.fit(data.points, sample_weight=data.weights)
    except KeyboardInterrupt:
        if not hasattr(model, "cluster_centers_"):
            raise
        was_interrupted = True
    model.set_params(callback=None)
    elapsed = time.perf_counter() - started
    return Fitted(model, data.scaler, elapsed, was_interrupted)


@contextlib.contextmanager
def _naming_entries(data: FitData, files: DataFiles) -> Iterator[None]:
    """Name the file, column and row of an entry that cannot be used."""
    try:
        yield
    except EntryError as error:
        where, row = error.name, error.row
        if not isinstance(data.points, PartedData):
            where, is_kept = files.name, data.is_kept
            row = (row if is_kept is None else int(np.flatnonzero(is_kept)[row])) + 1
        raise failures.Failure(
            f'{where}: column "{data.names[error.column]}" has {error.value:g} in row {row}: '
            f"{''.join(map(str, error.way_out))}",
            failures.DATA,
        ) from error


def _fitted_in_parts(data: FitData, files: DataFiles, wanted: Wanted) -> tuple[Fitted, int | None]:
    """Fit to rows that are read part by part, and return their number if known."""
    rows: PartedData = data.points
    with failures.reading(files.name, writes=files.checkpoint):
        fitted = _fitted(data, files, wanted)
    if rows.scaling is None:
        return fitted, rows.n_rows
    # The saved pipeline scales before the model, which must not scale again.
    fitted.model.scaling_ = None
    return replace(fitted, scaler=scaler_of(rows.scaling, data.scale)), rows.n_rows


def scaler_of(scaling: Scaling, scale: Scale) -> Any:
    """Return the scaler of scikit-learn that scales in the same way."""
    scaler: Any
    if scale == "standard":
        scaler = StandardScaler()
        scaler.mean_, scaler.scale_ = scaling.offsets.copy(), scaling.units.copy()
        scaler.var_ = np.square(scaling.units)
    else:
        scaler = MinMaxScaler()
        scaler.scale_, scaler.min_ = 1 / scaling.units, -scaling.offsets / scaling.units
        scaler.data_min_, scaler.data_range_ = scaling.offsets.copy(), scaling.units.copy()
        scaler.data_max_ = scaling.offsets + scaling.units
    scaler.n_features_in_ = len(scaling.offsets)
    return scaler


def _write_labels(
    fitted: Fitted,
    data: FitData,
    files: DataFiles,
    wanted: Wanted,
    tally: Tally,
    say: Callable[[int], object],
    done: list[str],
) -> None:
    """Count the rows of each cluster, and write their labels if wanted."""
    pieces = failures.read_from(files.name, _labels(fitted.model, data, tally, say))
    with failures.refusing():
        if wanted.output is not None and wanted.labels_only:
            write_labels(wanted.output, pieces)
            done.append(wanted.output)
        else:
            for _ in pieces:  # labelling a piece counts its rows
                pass
    if isinstance(data.points, PartedData):
        if fitted.scaler is not None:
            fitted.scaler.n_samples_seen_ = tally.n_rows
        if fitted.was_interrupted:
            # The interrupted fit knows the inertia only of the centers one sweep earlier.
            fitted.model.inertia_ = -tally.score


def _labels(
    model: PowerKMeans | BalancedKMeans, data: FitData, tally: Tally, say: Callable[[int], object]
) -> Iterator[RowColumns]:
    """Yield what is written of all rows."""
    if isinstance(data.points, PartedData):
        for columns in labelled(model, data.points, tally):
            say(tally.n_rows)
            yield columns
    else:
        tally.add(data.points, model.labels_, data.weights)
        told = told_of_rows(model, data.points, model.labels_)
        yield with_rows_left_out(told, data.is_kept)


def name_columns(fitted: Fitted, names: Sequence[str]) -> None:
    """Give the model and the scaler the names of the columns, if there are any."""
    for part in (fitted.model, fitted.scaler):
        if part is not None and not isinstance(part, Prepare):
            forget(part, "feature_names_in_")
            if are_names(names):
                part.feature_names_in_ = np.array(names, dtype=object)


def _write_model_and_report(
    fitted: Fitted, data: FitData, files: DataFiles, wanted: Wanted, done: list[str]
) -> None:
    if wanted.model is not None:
        with failures.writing(wanted.model):
            save(fitted.whole, wanted.model, reading=files.to_remember(data))
        done.append(wanted.model)
    if wanted.report is not None:
        with (
            waiting_for(f"writing {wanted.report}", is_quiet=wanted.is_quiet),
            failures.writing(wanted.report),
            failures.refusing(),
        ):
            report(
                fitted.model,
                data.points,
                wanted.report,
                title=f"Clusters of {printable(os.path.basename(files.name))}",
                choice=wanted.choice,
                source=files.first,
                scalers=[] if fitted.scaler is None else [fitted.scaler],
                reading=files.reading_of(data),
                model_file=wanted.model if fitted.was_interrupted else None,
                sample_weight=data.weights,
                optimality=fitted.optimality,
                names=wanted.names,
                file=file_table(data, wanted.why_k),
            )
        done.append(wanted.report)


def _tell(
    fitted: Fitted, data: FitData, tally: Tally, files: DataFiles, wanted: Wanted, screen: Screen
) -> None:
    """Print the clusters as a table or as JSON."""
    reading, names, model = data.seconds_reading, data.names, fitted.model
    _, clusters = tally.summaries(names)
    how_read = "read part by part" if reading is None else f"read in {seconds(reading)}"
    n_columns = sum(one.is_used for one in data.columns) or len(names)
    screen.say(
        f"✓ {counted(len(clusters), 'cluster')} of {counted(tally.n_rows, 'row')} and "
        f"{counted(n_columns, 'column')} of {files.name}, {how_read}, "
        f"fitted in {seconds(fitted.seconds)}"
    )
    tell_columns(screen, data, is_verbose=wanted.is_verbose)
    tell_notes(screen, [*notes_on(data), *wanted.why_k], data, is_verbose=wanted.is_verbose)
    screen.say()
    show_clusters(screen, clusters, names, has_weights=files.weights is not None)
    screen.say()
    sweeps = f" after {model.n_iter_} sweeps" if model.n_iter_ else ""
    screen.say(f"inertia {number(model.inertia_)}{sweeps}")
    if fitted.optimality is not None:
        screen.say(fitted.optimality.verdict)
    screen.tell_machines(_all_for_machines(fitted, data, tally, clusters, files, wanted))


def _all_for_machines(
    fitted: Fitted,
    data: FitData,
    tally: Tally,
    clusters: list[ClusterSummary],
    files: DataFiles,
    wanted: Wanted,
) -> dict[str, Any]:
    return {
        "data": files.first,
        "n_rows": tally.n_rows,
        "columns": [one.name for one in data.columns if one.is_used] or data.names,
        **({"kinds": _kinds_for_machines(data)} if data.columns else {}),
        "doubts": [note.text for note in data.notes if note.is_doubt],
        "weights": files.weights,
        "scale": data.scale,
        "units": {
            "center": "data",
            "spread": "data",
            "inertia": "data" if fitted.scaler is None else "scaled",
        },
        "settings": wanted.settings | wanted.shown,
        "inertia": fitted.model.inertia_,
        "n_sweeps": fitted.model.n_iter_,
        **_proof_for_machines(fitted.optimality, is_asked=wanted.prove is not None),
        "seconds": {"reading": data.seconds_reading, "fitting": fitted.seconds},
        "was_interrupted": fitted.was_interrupted,
        "clusters": _for_machines(fitted, tally, clusters, data.names),
        "written": {
            "labels" if wanted.labels_only else "rows": wanted.output,
            "model": wanted.model,
            "report": wanted.report,
        },
    }


def _kinds_for_machines(data: FitData) -> list[dict[str, str]]:
    """Return what each column of the file holds, and what is done with it."""
    return [
        {"column": one.name, "kind": one.kind, "why": one.why, "done": data.done(one)}
        for one in data.columns
    ]


def _proof_for_machines(optimality: OptimalityGap | None, *, is_asked: bool) -> dict[str, Any]:
    """Return what is proved, but not what another run may not prove in a moment."""
    if optimality is None or not (is_asked or optimality.method == "line"):
        return {}
    gap = optimality.gap if math.isfinite(optimality.gap) else None
    return {"optimality": {"bound": optimality.bound, "gap": gap, "method": optimality.method}}


def _for_machines(
    fitted: Fitted, tally: Tally, clusters: list[ClusterSummary], names: list[str]
) -> list[dict[str, Any]]:
    """Return the clusters in the units of the data and, if these were scaled, as scaled too."""
    centers, scaler = fitted.model.cluster_centers_, fitted.scaler
    spreads = [cluster.spread for cluster in clusters]
    as_fitted = clusters_for_machines(clusters, centers, spreads, names)
    if scaler is None:
        return as_fitted
    undo = scaler.in_units if isinstance(scaler, Prepare) else scaler.inverse_transform
    zero_and_one = np.repeat([[0.0], [1.0]], len(names), axis=1)
    units = np.ptp(undo(zero_and_one), axis=0)
    of_data = clusters_for_machines(clusters, undo(centers), tally.spreads_in(units), names)
    return [
        {**one, "scaled": {name: scaled[name] for name in ("center", "spread")}}
        for one, scaled in zip(of_data, as_fitted, strict=True)
    ]


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
