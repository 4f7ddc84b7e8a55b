"""``powermeans predict``."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from powermeans.command_line import failures
from powermeans.command_line.outputs import (
    check_outputs,
    everywhere,
    interruptible,
    listed,
    write_labels,
)
from powermeans.command_line.screen import Screen, counted, number, seconds
from powermeans.command_line.sources import Source, are_names, rows_left_out
from powermeans.command_line.tallies import labels_and_score
from powermeans.errors import ModelFileError
from powermeans.saving.model_files import load
from powermeans.tables import Table, nearest
from powermeans.types import FloatArray, IndexArray


def predict(path: str, source: Source, output: str | None, screen: Screen) -> None:
    """Labels of new rows, by a model of old ones."""
    check_outputs(reads=[path, source.data], labels=output)
    model = loaded(path)
    table, _ = read_for(model, path, source)
    started = time.perf_counter()
    with failures.refusing():
        labels, score = labels_and_score(model, table.points, table.weights)
    elapsed = time.perf_counter() - started
    with interruptible() as done:
        if output is not None or not screen.as_json:
            write_labels(output or "-", labels, table.is_kept)
            done.append(output or "-")
        n_clusters = n_clusters_of(model)
        sizes = np.bincount(labels, minlength=n_clusters)
        weights = np.bincount(labels, table.weights, minlength=n_clusters).astype(np.float64)
        found = Predicted(sizes, weights, score, elapsed, rows_left_out(table))
        as_list = {} if output else {"labels": everywhere(labels, table.is_kept)}
        tell(found, path, source, output, screen, as_list)


@dataclass(frozen=True, slots=True)
class Predicted:
    """What there is to tell of new rows."""

    sizes: IndexArray
    weights: FloatArray
    score: float
    seconds: float
    left_out: str = ""


def tell(
    found: Predicted,
    path: str,
    source: Source,
    output: str | None,
    screen: Screen,
    for_machines: dict[str, Any],
) -> None:
    """Score and sizes, for people and for machines."""
    n_rows = int(found.sizes.sum())
    screen.say(
        f"{counted(n_rows, 'row')} of {source.name} by {path} in {seconds(found.seconds)}, "
        f"score {number(found.score)}"
    )
    if found.left_out:
        screen.say(found.left_out)
    _show_sizes(screen, found.sizes, found.weights, has_weights=source.weights is not None)
    if written := listed(output):
        screen.say(f"written: {written}")
    screen.tell_machines(
        {
            "model": path,
            "data": source.data,
            "n_rows": n_rows,
            "score": found.score,
            "sizes": found.sizes,
            "weights": found.weights,
            "seconds": {"predicting": found.seconds},
            "written": {"labels": output},
            **for_machines,
        }
    )


def _show_sizes(
    screen: Screen, sizes: IndexArray, weights: FloatArray, *, has_weights: bool
) -> None:
    shares = weights / weights.sum()
    screen.show(
        ["cluster", "size", *(["weight"] if has_weights else []), "share"],
        [
            [
                str(j),
                str(size),
                *([number(weights[j])] if has_weights else []),
                f"{shares[j]:.1%}",
            ]
            for j, size in enumerate(sizes)
        ],
    )
    if has_weights:
        screen.say("size: rows; share: of the weight")


def loaded(path: str) -> Any:
    """The model in a file, one that can predict."""
    try:
        with failures.refusing(ModelFileError):
            model = load(path)
    except OSError as error:
        others = os.listdir(os.path.dirname(path) or ".") if not os.path.isdir(path) else []
        hint = nearest(os.path.basename(path), others)
        raise failures.Failure(
            f"{path} cannot be read: {error.strerror}{hint}", failures.DATA
        ) from error
    if not hasattr(model, "predict"):
        raise failures.Failure(
            f"{path} holds a {type(model).__name__}, which has labels for its own rows only",
            failures.DATA,
        )
    return model


def read_for(model: Any, path: str, source: Source) -> tuple[Table, float]:
    """The columns that a model was fitted to: by name, or all where they have no names."""
    table, elapsed = source.read(lambda there: columns_for(model, path, source, there))
    if source.columns is not None:
        table = _in_order(table, model, path, source)
    check_width(table.points.shape[1], model, path, source)
    return table, elapsed


def columns_for(
    model: Any, path: str, source: Source, there: Sequence[str]
) -> Sequence[str] | None:
    """Those that a model was fitted to; None where it, or the data, has no names."""
    names = _names_of(model)
    if not are_names(names) or not are_names(there):
        return None
    for name in names:
        if name not in there:
            raise failures.Failure(
                f'{source.name} has no column "{name}", to which {path} was fitted'
                f"{nearest(name, there)}",
                failures.DATA,
            )
    return names


def check_width(n_found: int, model: Any, path: str, source: Source) -> None:
    """Refuse more or fewer columns than those of the model."""
    if n_found != model.n_features_in_:
        raise failures.Failure(
            f"{source.name} has {n_found} columns, and {path} was fitted to "
            f"{model.n_features_in_}: choose them with --columns",
            failures.DATA,
        )


def _names_of(model: Any) -> list[str]:
    return [str(name) for name in getattr(model, "feature_names_in_", [])]


def _in_order(table: Table, model: Any, path: str, source: Source) -> Table:
    """Columns that were asked for, in the order of the model; of other names, as they are."""
    order = order_of(list(table.names), model, path, source)
    if order is None:
        return table
    points: Any = np.ascontiguousarray(table.points[:, order])
    return replace(table, points=points, names=tuple(_names_of(model)))


def order_of(found: list[str], model: Any, path: str, source: Source) -> list[int] | None:
    """Where the columns of a model are among those that were asked for; None for as they are."""
    names = _names_of(model)
    if not are_names(names) or found == names or set(found).isdisjoint(names):
        return None
    if sorted(found) != sorted(names):
        raise failures.Failure(
            f"{path} was fitted to the columns {', '.join(names)}, and --columns asks for "
            f"{', '.join(found)} of {source.name}: ask for the same, in any order",
            failures.USAGE,
        )
    return [found.index(name) for name in names]


def n_clusters_of(model: Any) -> int:
    """How many clusters a model tells apart."""
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    centers = last.dual_coef_ if hasattr(last, "dual_coef_") else last.cluster_centers_
    return len(centers)
