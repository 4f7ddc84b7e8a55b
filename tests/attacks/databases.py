"""Queries for tables of every kind of column, in databases: labels as of `predict`, or none."""

import datetime
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline

from powermeans import PowerKMeans, Prepare, explain, to_sql
from tests.attacks.running import REFUSED, RIGHT, Attack, Failure, Try
from tests.explaining.databases import Run, in_duckdb, in_sqlite

FIRST_DAY = datetime.date(2023, 12, 30)


def one_of(*values: Any) -> Callable[[Any, int], list[Any]]:
    return lambda rng, n: [values[j] for j in rng.integers(len(values), size=n)]


def formatted(text: str, least: int = 0) -> Callable[[Any, int], list[Any]]:
    return lambda rng, n: [text.format(j) for j in rng.integers(least, least + 99, size=n)]


def days(rng: Any, n: int) -> list[Any]:
    return [FIRST_DAY + datetime.timedelta(int(j)) for j in rng.integers(400, size=n)]


def times(rng: Any, n: int) -> list[Any]:
    minutes = rng.integers(10**6, size=n)
    return [datetime.datetime(2024, 2, 28) + datetime.timedelta(minutes=int(m)) for m in minutes]


# What is drawn of a column, and whether a query reads its cells instead of refusing them.
READ: dict[str, Callable[[Any, int], list[Any]]] = {
    "numbers": lambda rng, n: rng.normal(0, 9, n).round(2).tolist(),
    "counts": lambda rng, n: rng.poisson(40, n).tolist(),
    "with codes": lambda rng, n: np.where(rng.random(n) < 0.2, -999, rng.poisson(40, n)).tolist(),
    "missing": lambda rng, n: [None if v < -5 else v for v in rng.normal(0, 9, n).tolist()],
    "zero or one": one_of(0, 1),
    "zero or one, or none": one_of(0.0, 1.0, None),
    "truth": one_of(True, False),
    "yn": one_of("y", "n", "Y", " n", None),
    "yes/no": one_of("yes", "No", "YES", "don't know"),
    "ja/nein": one_of("ja", "nein"),
    "true/false": one_of("true", "FALSE"),
    "ticked x": one_of("x", "", None, " "),
    "ticked": one_of(1, None),
    "two words": one_of("it's", "b\\c"),
    "words": one_of("free", " free", "team", "Team", 'a "firm"', "NA", "unknown", None),
    "numeric type": one_of(1, 2, 3),
    "numeric type with gaps": one_of(1.0, 2.0, 30.0, None),
    "class": one_of("1", "2", "2.0"),
    "sure": one_of("low", "medium", "high", None),
    "latitude": lambda rng, n: rng.uniform(-80, 80, n).tolist(),
    "day": days,
    "time": times,
}  # fmt: skip
REFUSED_KINDS: dict[str, Callable[[Any, int], list[Any]]] = {
    "decimal comma": formatted("{},5"),
    "point for thousands": formatted("{}.250", 1),
    "units": formatted("{} kg"),
    "percent": formatted("{} %"),
    "money": formatted("€{}"),
    "limits": one_of("<5", "12", "31.5", "48", ">60"),
    "duration": formatted("{}:30"),
    "plain texts": formatted("{}"),
    "day in words": lambda rng, n: [f"{day:%d.%m.%Y}" for day in days(rng, n)],
    "American day": lambda rng, n: [f"{day:%m/%d/%Y}" for day in days(rng, n)],
    "odd blanks": one_of("free\t", "a\u00a0firm", "team\n", "\u2003x"),
}
COLUMNS = READ | REFUSED_KINDS
NAMES_OF_QUERY = ("pm_d0", "PM_X0", "pm_least", "t", "pm_row", "Pm_1", "pm_unread", "points")


def table_of(names: list[str], rng: np.random.Generator, n: int, new: str = "") -> Any:
    """Draw columns, with a longitude for each latitude, and a word that is new here and there."""
    found = {name: COLUMNS[name](rng, n) for name in names}
    if "latitude" in found:
        found["longitude"] = rng.uniform(-180, 180, n).tolist()
    for name in {"two words", "words", "sure"} & found.keys():
        found[name] = [new if new and rng.random() < 0.2 else word for word in found[name]]
    return found


def framed(table: dict[str, list[Any]]) -> Any:
    return pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in table.items()})


def model_for(table: dict[str, list[Any]], rng: np.random.Generator) -> Any:
    """Return a pipeline that is fitted to a table."""
    scale = str(rng.choice(["auto", "standard", "minmax", "none"]))
    kinds = {"counts": str(rng.choice(["log", "count"])), "class": "category"}
    told = {name: kind for name, kind in kinds.items() if name in table}
    k, how = int(rng.integers(2, 5)), {"missing": "observed", "effort": "none"}
    last = PowerKMeans(k, n_init=1, random_state=0, **how)
    prepare = Prepare(dates="days", scale=scale, as_=told)
    return make_pipeline(prepare, last).fit(framed(table))


def judge(model: Any, table: dict[str, list[Any]], query: str, run: Run) -> int | None:
    """Compare a query with `predict`; return how many rows it refuses, None for all at once."""
    frame = framed(table)
    expected, n = model.predict(frame), len(frame)
    try:
        found = run({"id": np.arange(n), **table}, query)
    except Exception as error:
        if not is_of_database(error):
            raise
        return None
    answered = [i for i in range(n) if found[i] is not None]
    apart = [i for i in answered if found[i] != expected[i]]
    distances = model.transform(frame) if apart and hasattr(model, "transform") else None
    for i in apart:
        rise = np.inf if distances is None else distances[i, found[i]] / distances[i, expected[i]]
        if rise > 1 + 1e-9:  # more than rounding
            cells = {name: values[i] for name, values in table.items()}
            raise Failure(f"{found[i]} instead of {expected[i]} for {cells} by {query}")
    return n - len(answered)


def is_of_database(error: Exception) -> bool:
    """Return whether a database, not `to_sql`, refuses a query."""
    is_process = type(error).__name__ == "CalledProcessError"  # of the client of PostgreSQL
    return is_process or isinstance(error, sqlite3.Error) or "duckdb" in type(error).__module__


def prepare(folder: Path) -> Try:
    def one(draws: random.Random) -> str:
        rng = np.random.default_rng(draws.getrandbits(64))
        names = ["numbers", *draws.sample([*COLUMNS][1:], draws.randint(1, 4))]
        table = table_of(names, rng, 60)
        try:
            model = model_for(table, rng)
            new = table_of(names, rng, 40, "never seen")
            new |= {name: [7] * 40 for name in NAMES_OF_QUERY}
            refused = [
                judge(subject, new, query, run)
                for subject in (model, explain(model, framed(table)))
                for query, run in queries_of(subject)
            ]
        except ValueError:
            return REFUSED
        return REFUSED if None in refused else RIGHT

    return one


def queries_of(subject: Any) -> list[tuple[str, Run]]:
    """Return a query of a model or of rules for each database that runs here."""
    write = getattr(subject, "to_sql", None)
    return [
        (to_sql(subject, dialect=name) if write is None else write("points", dialect=name), run)
        for name, run in (("duckdb", in_duckdb), ("sqlite", in_sqlite))
    ]


ATTACK = Attack(prepare)
