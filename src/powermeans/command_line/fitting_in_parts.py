"""``powermeans fit`` of what is read part by part, since it need not fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from powermeans.command_line import failures
from powermeans.command_line.fitting import (
    Fitted,
    Told,
    Wanted,
    end,
    fitted_to,
    name_columns,
    tell,
    write_model,
)
from powermeans.command_line.outputs import check_outputs, interruptible, write_label_pieces
from powermeans.command_line.parts import Limits, ProgressInParts, files_of, note_parts, opened
from powermeans.command_line.screen import Screen, waiting_for
from powermeans.command_line.sources import Source
from powermeans.command_line.tallies import Tally, labelled
from powermeans.sources import PartedData, Scaling
from powermeans.types import Labels


def fit_in_parts(source: Source, wanted: Wanted, limits: Limits, why: str, screen: Screen) -> None:
    """Fit, label, write and tell, a part at a time.

    Parameters
    ----------
    why : str
        Why rows are read part by part; empty where that was asked for.
    """
    if wanted.report is not None:
        raise failures.Failure(
            f"--report looks at all rows at once, and {source.name} is read part by part: leave "
            "it out, and report on some of the rows",
            failures.USAGE,
        )
    outputs, reads = [wanted.model, limits.checkpoint], [*source.paths, *files_of(source)]
    check_outputs(*outputs, reads=reads, labels=wanted.output)
    data = opened(source, limits, scale=wanted.scale)
    note_parts(source, why)
    watch = None if wanted.is_quiet else ProgressInParts()
    fitted = _fitted(data, source, wanted, limits, watch)
    n_rows, is_quiet = data.n_rows if watch is None else watch.n_rows, wanted.is_quiet
    with interruptible() as done:
        tally = Tally(fitted.model.cluster_centers_)
        is_quiet |= screen.as_json
        with waiting_for("labelling the rows", is_quiet=is_quiet, n_rows=n_rows) as say:
            _label(fitted, data, source, tally, wanted, done, say)
        name_columns(fitted, data.feature_names or ())
        if fitted.scaler is not None:
            fitted.scaler.n_samples_seen_ = tally.n_rows
        write_model(fitted, wanted, done)
        names = list(data.feature_names or ())
        told = Told(tally.n_rows, names, *tally.summaries(names), tally.spreads_in)
        tell(fitted, told, source, wanted, screen)
    end(fitted, wanted, screen)


def _fitted(
    data: PartedData,
    source: Source,
    wanted: Wanted,
    limits: Limits,
    watch: ProgressInParts | None,
) -> Fitted:
    if watch is not None:
        watch.watch(data)
    with failures.reading(source.name, writes=limits.checkpoint):
        fitted = fitted_to(data, None, None, wanted, watch)
    ProgressInParts.leave(data)
    scaler = None if data.scaling is None else scaler_of(data.scaling, wanted.scale)
    if scaler is not None:
        fitted.model.scaling_ = None  # since the scaler does it
    return Fitted(fitted.model, scaler, fitted.seconds, fitted.was_interrupted)


def _label(
    fitted: Fitted,
    data: PartedData,
    source: Source,
    tally: Tally,
    wanted: Wanted,
    done: list[str],
    say: Callable[[int], object],
) -> None:
    """A last pass, which counts the rows and writes their labels where that is wanted."""
    read = failures.read_from(source.name, labelled(fitted.model, data, tally))
    pieces = counting(read, tally, say)
    with failures.refusing():
        if wanted.output is None:
            for _ in pieces:
                pass
        else:
            write_label_pieces(wanted.output, pieces)
            done.append(wanted.output)
    if fitted.was_interrupted:
        fitted.model.inertia_ = -tally.score  # of the centers as they are, not a sweep before


def counting(
    pieces: Iterable[Labels], tally: Tally, say: Callable[[int], object]
) -> Iterator[Labels]:
    """The same labels, and after each piece how many rows there were is said.

    Parameters
    ----------
    pieces : iterable of (n_rows,)
    tally : Tally
        Which counts them.
    """
    for labels in pieces:
        say(tally.n_rows)
        yield labels


def scaler_of(scaling: Scaling, scale: str) -> Any:
    """What scikit-learn scales with in the same way."""
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
