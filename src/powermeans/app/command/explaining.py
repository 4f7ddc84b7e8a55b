"""What the command does with a saved model besides labels: rules, queries, and the next month."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from powermeans.app.command import failures
from powermeans.app.command.data_files import DataFiles, FitData
from powermeans.app.command.predicting import load_model, read_for
from powermeans.app.command.screen import Screen
from powermeans.explaining.explanation import explain
from powermeans.explaining.following import Change, refit, what_changed
from powermeans.explaining.levels import merge_tree
from powermeans.explaining.sql import Dialect, to_sql
from powermeans.preparing.prepare import Prepare


def explain_model(
    path: str,
    files: DataFiles,
    n_rules: int | None,
    sql: str | None,
    exact: bool,
    dialect: Dialect,
    screen: Screen,
) -> None:
    """Print rules for the clusters of a model, or a query for a table in a database."""
    whole, reading = load_model(path)
    if sql is not None and exact:
        with failures.refusing():
            exactly = to_sql(whole, table=sql, dialect=dialect)
        for line in exactly.splitlines():
            screen.say(line, is_whole=True)
        screen.tell_machines({"model": path, "sql": exactly})
        return
    data = read_for(whole, path, files.as_remembered(reading))
    X = data.points
    if data.frame is not None and data.scaler is not None:  # columns as people wrote them
        X = data.frame.table
        X = X if data.is_kept is None else X.take(np.flatnonzero(data.is_kept))
    with failures.refusing():
        found = explain(whole, X, n_leaves=n_rules or "auto", sample_weight=data.weights)
        levels = _levels(whole, X, data)
        query = None if sql is None else found.to_sql(sql, dialect=dialect)
    lines = [*str(found).splitlines(), "", *levels] if query is None else query.splitlines()
    for line in lines:
        screen.say(line, is_whole=True)
    told = {"model": path, "data": files.first, "kept": found.kept, "price": found.price}
    told |= {"rules": [*map(asdict, found.rules)]}
    told |= {"descriptions": [*map(asdict, found.descriptions)]}
    screen.tell_machines(told | {"sql": query})


def _levels(whole: Any, X: Any, data: FitData) -> Sequence[str]:
    """Name the next level, where centers are means."""
    last = whole.steps[-1][1] if isinstance(whole, Pipeline) else whole
    if not (
        hasattr(last, "cluster_centers_") and last._fitted_needs().measure.divergence.is_squared
    ):
        return []
    tree = merge_tree(whole, X, sample_weight=data.weights)
    return [f"{tree}."] if len(tree.linkage) > 1 else []


def fit_like(path: str, files: DataFiles) -> tuple[FitData, Any, Change, float]:
    """Read rows as a model did, fit it again, and return what has changed."""
    reads = time.perf_counter()
    whole, reading = load_model(path)
    *scalers, last = [step for _, step in whole.steps] if isinstance(whole, Pipeline) else [whole]
    data = read_for(whole, path, files.as_remembered(reading), is_written=True)
    started, points = time.perf_counter(), data.points
    for scaler in scalers if data.scaler is None else ():
        points = scaler.transform(points)
    scaler = scalers[0] if scalers else None
    with failures.refusing():
        model = refit(last, points, sample_weight=data.weights)
        change = what_changed(last, model, points)
    if isinstance(scaler, Prepare):  # a saved one does not have those of its fit
        scaler.contributions_ = scaler._contributions(points, data.weights)
        data = replace(data, scale=scaler.scale)
    data = replace(data, points=points, scaler=scaler, seconds_reading=started - reads)
    return data, model, change, time.perf_counter() - started
