"""``powermeans fit``."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from powermeans.command_line import failures
from powermeans.command_line.cluster_table import (
    clusters_for_machines,
    hint_at_scale,
    show_clusters,
    summaries_of,
    totals,
)
from powermeans.command_line.outputs import check_outputs, listed, write_labels
from powermeans.command_line.screen import Screen, seconds
from powermeans.command_line.sources import Source, are_names
from powermeans.fit_progress import progress
from powermeans.power_kmeans import PowerKMeans
from powermeans.recording import PathRecorder
from powermeans.report import report
from powermeans.saved_models import save
from powermeans.tables import Table
from powermeans.types import Points

Scale = Literal["standard", "minmax", "none"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to fit, and where to write it."""

    settings: dict[str, Any]
    scale: Scale = "none"
    output: str | None = None
    model: str | None = None
    report: str | None = None
    is_quiet: bool = False


@dataclass(frozen=True, slots=True)
class Fitted:
    """A model, what it was fitted to, and how that went."""

    model: PowerKMeans
    scaler: Any
    points: Points
    seconds: float
    was_interrupted: bool
    recorder: PathRecorder | None

    @property
    def whole(self) -> Any:
        """The model together with the scaling before it."""
        if self.scaler is None:
            return self.model
        name = type(self.scaler).__name__.lower()
        return Pipeline([(name, self.scaler), ("powerkmeans", self.model)])

    @property
    def centers(self) -> Points:
        """In the units of the data."""
        centers: Points = self.model.cluster_centers_
        return centers if self.scaler is None else self.scaler.inverse_transform(centers)


def fit(source: Source, wanted: Wanted, screen: Screen) -> None:
    """Read, fit, write and tell."""
    check_outputs(wanted.model, wanted.report, labels=wanted.output)
    table, seconds_reading = source.read()
    fitted = fitted_to(table, wanted)
    _write(fitted, table, source, wanted)
    _tell(fitted, table, source, wanted, seconds_reading, screen)
    written = listed(wanted.output, wanted.model, wanted.report)
    if fitted.was_interrupted:
        rest = f", written to {written}" if written else ""
        raise failures.Failure(
            f"interrupted: this is the best result so far{rest}", failures.INTERRUPTED
        )
    if written:
        screen.say(f"written: {written}")


def fitted_to(table: Table, wanted: Wanted) -> Fitted:
    """Scale and fit. A Ctrl-C ends it with what there is."""
    points, scaler = scaled(table, wanted.scale)
    recorder = PathRecorder() if wanted.report else None
    model = PowerKMeans(**wanted.settings)
    started, was_interrupted = time.perf_counter(), False
    tell = None if wanted.is_quiet else progress()
    try:
        with failures.refusing(failures.DATA, ValueError):
            model.set_params(callback=_both(tell, recorder))
            model.fit(points, sample_weight=table.weights)
    except KeyboardInterrupt:
        if not hasattr(model, "cluster_centers_"):
            raise
        was_interrupted = True
    finally:
        if tell is not None:
            tell.fit_ended()
    model.set_params(callback=None)
    elapsed = time.perf_counter() - started
    for part in (model, scaler):
        if part is not None and are_names(table.names):
            part.feature_names_in_ = np.array(table.names, dtype=object)
    return Fitted(model, scaler, points, elapsed, was_interrupted, recorder)


def scaled(table: Table, scale: Scale) -> tuple[Points, Any]:
    """The points on the scale that is wanted, in the same memory if it may be written to."""
    if scale == "none":
        return table.points, None
    kind = StandardScaler if scale == "standard" else MinMaxScaler
    scaler = kind(copy=not table.points.flags.writeable)
    weighting = {"sample_weight": table.weights} if scale == "standard" else {}
    with failures.refusing(failures.DATA, ValueError):
        points: Points = scaler.fit_transform(table.points, **weighting)
    return points, scaler.set_params(copy=True)


def _both(tell: Any, recorder: Any) -> Any:
    if tell is None or recorder is None:
        return tell or recorder

    def watch(state: Any) -> object:
        tell(state)
        return recorder(state)

    return watch


def _write(fitted: Fitted, table: Table, source: Source, wanted: Wanted) -> None:
    if wanted.output is not None:
        write_labels(wanted.output, fitted.model.labels_, table.is_kept)
    if wanted.model is not None:
        with failures.writing(wanted.model):
            save(fitted.whole, wanted.model)
    if wanted.report is not None:
        with failures.writing(wanted.report), failures.refusing(failures.DATA, ValueError):
            report(
                fitted.model,
                fitted.points,
                wanted.report,
                title=f"Clusters of {source.name}",
                annealing=fitted.recorder,
                source=None if source.data == "-" else source.data,
                scalers=[] if fitted.scaler is None else [fitted.scaler],
            )


def _tell(
    fitted: Fitted,
    table: Table,
    source: Source,
    wanted: Wanted,
    seconds_reading: float,
    screen: Screen,
) -> None:
    model, names = fitted.model, list(table.names)
    columns, clusters = summaries_of(fitted.points, model.labels_, model.cluster_centers_, names)
    n_rows, n_columns = table.points.shape
    screen.say(
        f"{len(clusters)} clusters of {n_rows} rows and {n_columns} columns of {source.name}, read "
        f"in {seconds(seconds_reading)}, fitted in {seconds(fitted.seconds)}"
    )
    if table.is_kept is not None:
        screen.say(f"{len(table.is_kept) - n_rows} rows with missing values were left out")
    screen.say()
    show_clusters(screen, clusters, names)
    screen.say()
    screen.say(totals(model.inertia_, model.n_iter_))
    if hint := hint_at_scale(columns):
        screen.say(hint)
    screen.tell_machines(
        {
            "data": source.data,
            "n_rows": n_rows,
            "columns": names,
            "scale": wanted.scale,
            "settings": wanted.settings,
            "inertia": model.inertia_,
            "n_sweeps": model.n_iter_,
            "seconds": {"reading": seconds_reading, "fitting": fitted.seconds},
            "was_interrupted": fitted.was_interrupted,
            "clusters": clusters_for_machines(clusters, fitted.centers, names),
            "written": {
                "labels": wanted.output,
                "model": wanted.model,
                "report": wanted.report,
            },
        }
    )


def shown_command(*words: object) -> str:
    """A command as one types it."""
    return shlex.join(["powermeans", *map(str, words)])
