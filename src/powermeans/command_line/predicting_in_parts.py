"""``powermeans predict`` for what is read part by part."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from powermeans.command_line import failures
from powermeans.command_line.outputs import check_outputs, interruptible, write_label_pieces
from powermeans.command_line.parts import Limits, files_of, names_in, note_parts, opened
from powermeans.command_line.predicting import (
    Predicted,
    check_width,
    columns_for,
    loaded,
    n_clusters_of,
    order_of,
    tell,
)
from powermeans.command_line.screen import Screen
from powermeans.command_line.sources import Source
from powermeans.command_line.tallies import Tally, labelled
from powermeans.sources import PartedData


def predict_in_parts(
    path: str, source: Source, output: str | None, limits: Limits, why: str, screen: Screen
) -> None:
    """Labels of new rows, by a model of old ones, a part at a time.

    Parameters
    ----------
    path : str
        Of the model.
    output : str, optional
        Where labels go; by default to the standard output.
    why : str
        Why rows are read part by part; empty where that was asked for.
    """
    check_outputs(reads=[path, *source.paths, *files_of(source)], labels=output)
    if output is None and screen.as_json:
        raise failures.Failure(
            "the labels of rows that are read part by part may not fit into one JSON object: name "
            "a file for them with --output",
            failures.USAGE,
        )
    model = loaded(path)
    data = opened_for(model, path, source, limits)
    note_parts(source, why)
    started = time.perf_counter()
    with interruptible() as done:
        tally = Tally(np.zeros((n_clusters_of(model), data.n_features)))
        with failures.refusing():
            pieces = failures.read_from(source.name, labelled(model, data, tally))
            write_label_pieces(output or "-", pieces)
        done.append(output or "-")
        elapsed = time.perf_counter() - started
        found = Predicted(tally.sizes, tally.weights, tally.score, elapsed)
        tell(found, path, source, output, screen, {})


def opened_for(model: Any, path: str, source: Source, limits: Limits) -> PartedData:
    """The columns that a model was fitted to: by name, or all where they have no names.

    Parameters
    ----------
    path : str
        Of the model.
    """
    columns = None if source.columns else columns_for(model, path, source, names_in(source))
    data = opened(source, limits, columns=columns)
    if source.columns is not None:
        found = list(data.feature_names or ())
        if (order := order_of(found, model, path, source)) is not None:
            data = opened(source, limits, columns=[found[place] for place in order])
    check_width(data.n_features, model, path, source)
    return data
