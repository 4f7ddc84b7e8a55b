"""``powermeans predict``."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from powermeans.command_line import failures
from powermeans.command_line.outputs import check_outputs, everywhere, listed, write_labels
from powermeans.command_line.screen import Screen, number, seconds
from powermeans.command_line.sources import Source, are_names
from powermeans.errors import ModelFileError
from powermeans.saved_models import load
from powermeans.tables import Table, nearest


def predict(path: str, source: Source, output: str | None, screen: Screen) -> None:
    """Labels of new rows, by a model of old ones."""
    check_outputs(labels=output)
    model = loaded(path)
    table, _ = read_for(model, path, source)
    started = time.perf_counter()
    with failures.refusing(failures.DATA, ValueError):
        labels = model.predict(table.points)
        score = model.score(table.points, sample_weight=table.weights)
    elapsed = time.perf_counter() - started
    if output is not None or not screen.as_json:
        write_labels(output or "-", labels, table.is_kept)
    sizes = np.bincount(labels, minlength=n_clusters_of(model)).tolist()
    screen.say(
        f"{len(labels)} rows of {source.name} by {path} in {seconds(elapsed)}, "
        f"score {number(score)}"
    )
    screen.show(
        ["cluster", "size", "share"],
        [[str(j), str(size), f"{size / len(labels):.1%}"] for j, size in enumerate(sizes)],
    )
    if written := listed(output):
        screen.say(f"written: {written}")
    screen.tell_machines(
        {
            "model": path,
            "data": source.data,
            "n_rows": len(labels),
            "score": score,
            "sizes": sizes,
            "seconds": {"predicting": elapsed},
            "written": {"labels": output},
            **({} if output else {"labels": everywhere(labels, table.is_kept)}),
        }
    )


def loaded(path: str) -> Any:
    """The model in a file, one that can predict."""
    try:
        with failures.refusing(failures.DATA, ModelFileError):
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
    names = [str(name) for name in getattr(model, "feature_names_in_", [])]

    def choose(there: Sequence[str]) -> Sequence[str] | None:
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

    table, elapsed = source.read(choose)
    n_wanted, n_found = model.n_features_in_, table.points.shape[1]
    if n_found != n_wanted:
        raise failures.Failure(
            f"{source.name} has {n_found} columns, and {path} was fitted to {n_wanted}: choose "
            "them with --columns",
            failures.DATA,
        )
    return table, elapsed


def n_clusters_of(model: Any) -> int:
    """How many clusters a model tells apart."""
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    centers = last.dual_coef_ if hasattr(last, "dual_coef_") else last.cluster_centers_
    return len(centers)
