"""``powermeans explain``: rules and queries for the clusters of a saved model."""

from __future__ import annotations

from dataclasses import asdict

from powermeans.explaining.explanation import explain
from powermeans.explaining.features import preparation_of
from powermeans_tables.command import failures
from powermeans_tables.command.data import naming_entries, opened, read_for
from powermeans_tables.command.saved import load_model
from powermeans_tables.command.screen import Screen
from powermeans_tables.command.sources import DataFiles
from powermeans_tables.command.wanted import Rules
from powermeans_tables.sql import to_sql


def print_exact_query(path: str, files: DataFiles, asked: Rules, screen: Screen) -> None:
    """Print a query that labels a table of a database as a model does; no file is read."""
    with failures.refusing():
        query = to_sql(load_model(path).model, table=str(asked.sql), dialect=asked.dialect)
    for line in query.splitlines():
        screen.say(line, is_whole=True)
    screen.tell_machines({"model": path, "sql": query})


def explain_model(path: str, files: DataFiles, asked: Rules, screen: Screen) -> None:
    """Print rules for the clusters of a model, or a query by these for a table in a database."""
    saved = load_model(path)
    files = saved.read_like(files)
    data = read_for(saved.model, path, files, opened(files))
    X = data.as_read
    if preparation_of(saved.model) is not None:  # which takes the columns of the file
        X = data.rows.table.frame(data.rows.is_used)
    with failures.refusing(), naming_entries(data, files):
        found = explain(saved.model, X, n_leaves=asked.n_leaves, sample_weight=data.weights)
        query = asked.sql and found.to_sql(asked.sql, dialect=asked.dialect)
    for line in (query or str(found)).splitlines():
        screen.say(line, is_whole=True)
    about = {"model": path, "data": files.first, "kept": found.kept, "price": found.price}
    about |= {"rules": [*map(asdict, found.rules)]}
    about |= {"descriptions": [*map(asdict, found.descriptions)]}
    screen.tell_machines(about | {"sql": query})
