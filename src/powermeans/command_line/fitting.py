"""``powermeans fit``."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from powermeans.callbacks.path_recorder import PathRecorder
from powermeans.callbacks.progress_bar import FitProgress, progress
from powermeans.command_line import failures
from powermeans.command_line.cluster_table import (
    clusters_for_machines,
    hint_at_scale,
    show_clusters,
    spreads_in,
    summaries_of,
    totals,
)
from powermeans.command_line.outputs import check_outputs, interruptible, listed, write_labels
from powermeans.command_line.reporting import reading_of
from powermeans.command_line.screen import Screen, counted, seconds
from powermeans.command_line.sources import (
    Source,
    are_names,
    check_enough_rows,
    rows_left_out,
)
from powermeans.estimators.power_kmeans import PowerKMeans
from powermeans.reporting.report import report
from powermeans.reporting.summaries import ClusterSummary, Columns
from powermeans.saving.model_files import save
from powermeans.tables import Table
from powermeans.types import FloatArray, Points

Scale = Literal["standard", "minmax", "none"]

# With the others no column counts for more since its numbers are larger, or that is as it should.
_BY_SCALE = ("squared_euclidean", "manhattan")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to fit, and where to write it; settings that are no plain values are shown as these."""

    settings: dict[str, Any]
    scale: Scale = "none"
    output: str | None = None
    model: str | None = None
    report: str | None = None
    is_quiet: bool = False
    shown: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A model, how its rows were scaled, and how the fit went."""

    model: PowerKMeans
    scaler: Any
    seconds: float
    was_interrupted: bool
    recorder: PathRecorder | None = None

    @property
    def whole(self) -> Any:
        """The model together with the scaling before it."""
        if self.scaler is None:
            return self.model
        name = type(self.scaler).__name__.lower()
        return Pipeline([(name, self.scaler), ("powerkmeans", self.model)])

    @property
    def units(self) -> dict[str, str]:
        """Of what is told of the clusters."""
        inertia = "data" if self.scaler is None else "scaled"
        return {"center": "data", "spread": "data", "inertia": inertia}

    def clusters_for_machines(self, told: Told) -> list[dict[str, Any]]:
        """In the units of the data, and where it was scaled, beside that in those."""
        clusters, names = told.clusters, told.names
        centers: Points = self.model.cluster_centers_
        spreads = [cluster.spread for cluster in clusters]
        as_fitted = clusters_for_machines(clusters, centers, spreads, names)
        if self.scaler is None:
            return as_fitted
        centers = self.scaler.inverse_transform(centers)
        zero_and_one = np.repeat([[0.0], [1.0]], len(names), axis=1)
        units = np.ptp(self.scaler.inverse_transform(zero_and_one), axis=0)
        spreads = told.spreads_in(units)
        return [
            {**of_data, "scaled": {name: of_scaled[name] for name in ("center", "spread")}}
            for of_data, of_scaled in zip(
                clusters_for_machines(clusters, centers, spreads, names), as_fitted, strict=True
            )
        ]


@dataclass(frozen=True, slots=True)
class Told:
    """What there is to tell of the rows and their clusters."""

    n_rows: int
    names: list[str]
    columns: Columns
    clusters: list[ClusterSummary]
    spreads_in: Callable[[FloatArray], list[float]]
    seconds_reading: float | None = None  # None where rows are read for each sweep anew
    left_out: str = ""


def fit(source: Source, wanted: Wanted, screen: Screen) -> None:
    """Read, fit, write and tell."""
    check_outputs(wanted.model, reads=[source.data], labels=wanted.output, page=wanted.report)
    table, seconds_reading = source.read()
    check_enough_rows(table, source, wanted.settings["n_clusters"], "--clusters")
    points, scaler = scaled(table, wanted.scale)
    recorder = PathRecorder() if wanted.report else None
    watch = None if wanted.is_quiet else progress()
    fitted = fitted_to(points, table.weights, scaler, wanted, watch, recorder)
    name_columns(fitted, table.names)
    with interruptible() as done:
        _write(fitted, points, table, source, wanted, done)
        told = _told_of(fitted, points, table, seconds_reading)
        tell(fitted, told, source, wanted, screen)
    end(fitted, wanted, screen)


def end(fitted: Fitted, wanted: Wanted, screen: Screen) -> None:
    """What was written, and whether that is of a fit that was interrupted."""
    written = listed(wanted.output, wanted.model, wanted.report)
    if fitted.was_interrupted:
        rest = f", written to {written}" if written else ""
        raise failures.Failure(
            f"interrupted: this is the best result so far{rest}", failures.INTERRUPTED
        )
    if written:
        screen.say(f"written: {written}")


def fitted_to(
    points: Any,
    weights: FloatArray | None,
    scaler: Any,
    wanted: Wanted,
    tell: FitProgress | None,
    recorder: PathRecorder | None = None,
) -> Fitted:
    """A fit. A Ctrl-C ends it with what there is."""
    model = PowerKMeans(**wanted.settings)
    started, was_interrupted = time.perf_counter(), False
    try:
        with failures.refusing():
            model.set_params(callback=_both(tell, recorder))
            model.fit(points, sample_weight=weights)
    except KeyboardInterrupt:
        if not hasattr(model, "cluster_centers_"):
            raise
        was_interrupted = True
    finally:
        if tell is not None:
            tell.fit_ended()
    model.set_params(callback=None)
    elapsed = time.perf_counter() - started
    return Fitted(model, scaler, elapsed, was_interrupted, recorder)


def name_columns(fitted: Fitted, names: Sequence[str]) -> None:
    """Let a model know the names of its columns, if they are such."""
    for part in (fitted.model, fitted.scaler):
        if part is not None:
            part.__dict__.pop("feature_names_in_", None)
        if part is not None and are_names(names):
            part.feature_names_in_ = np.array(names, dtype=object)


def scaled(table: Table, scale: Scale) -> tuple[Points, Any]:
    """The points on the scale that is wanted, in the same memory if it may be written to."""
    if scale == "none":
        return table.points, None
    kind = StandardScaler if scale == "standard" else MinMaxScaler
    scaler = kind(copy=not table.points.flags.writeable)
    weighting = {"sample_weight": table.weights} if scale == "standard" else {}
    with failures.refusing():
        points: Points = scaler.fit_transform(table.points, **weighting)
    return points, scaler.set_params(copy=True)


def _both(tell: Any, recorder: Any) -> Any:
    if tell is None or recorder is None:
        return tell or recorder

    def watch(state: Any) -> object:
        tell(state)
        return recorder(state)

    return watch


def _write(
    fitted: Fitted,
    points: Points,
    table: Table,
    source: Source,
    wanted: Wanted,
    done: list[str],
) -> None:
    """What is wanted; what is written is added to the list."""
    if wanted.output is not None:
        write_labels(wanted.output, fitted.model.labels_, table.is_kept)
        done.append(wanted.output)
    write_model(fitted, wanted, done)
    if wanted.report is not None:
        with failures.writing(wanted.report), failures.refusing():
            report(
                fitted.model,
                points,
                wanted.report,
                title=f"Clusters of {source.name}",
                annealing=fitted.recorder,
                source=source.data,
                scalers=[] if fitted.scaler is None else [fitted.scaler],
                reading=reading_of(source, table),
                model_file=wanted.model if fitted.was_interrupted else None,
                sample_weight=table.weights,
            )
        done.append(wanted.report)


def write_model(fitted: Fitted, wanted: Wanted, done: list[str]) -> None:
    """The model together with its scaling, if it is wanted."""
    if wanted.model is not None:
        with failures.writing(wanted.model):
            save(fitted.whole, wanted.model)
        done.append(wanted.model)


def _told_of(fitted: Fitted, points: Points, table: Table, seconds_reading: float) -> Told:
    model, names, weights = fitted.model, list(table.names), table.weights
    columns, clusters = summaries_of(points, model.labels_, model.cluster_centers_, names, weights)
    return Told(
        len(points),
        names,
        columns,
        clusters,
        lambda units: spreads_in(units, points, model, clusters, weights),
        seconds_reading,
        rows_left_out(table),
    )


def tell(fitted: Fitted, told: Told, source: Source, wanted: Wanted, screen: Screen) -> None:
    """The table of the clusters, and the same for machines."""
    reading = told.seconds_reading
    how_read = "read part by part" if reading is None else f"read in {seconds(reading)}"
    model, names, clusters = fitted.model, told.names, told.clusters
    screen.say(
        f"{counted(len(clusters), 'cluster')} of {counted(told.n_rows, 'row')} and "
        f"{counted(len(names), 'column')} of {source.name}, {how_read}, "
        f"fitted in {seconds(fitted.seconds)}"
    )
    if told.left_out:
        screen.say(told.left_out)
    screen.say()
    show_clusters(screen, clusters, names, has_weights=source.weights is not None)
    screen.say()
    screen.say(totals(model.inertia_, model.n_iter_))
    goes_by_scale = wanted.settings.get("divergence", "squared_euclidean") in _BY_SCALE
    if goes_by_scale and (hint := hint_at_scale(told.columns)):
        screen.say(hint)
    screen.tell_machines(
        {
            "data": source.data,
            "n_rows": told.n_rows,
            "columns": names,
            "weights": source.weights,
            "scale": wanted.scale,
            "units": fitted.units,
            "settings": wanted.settings | wanted.shown,
            "inertia": model.inertia_,
            "n_sweeps": model.n_iter_,
            "seconds": {"reading": reading, "fitting": fitted.seconds},
            "was_interrupted": fitted.was_interrupted,
            "clusters": fitted.clusters_for_machines(told),
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
