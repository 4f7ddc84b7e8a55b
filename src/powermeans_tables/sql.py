"""Queries that label the rows of a table in a database: by the model itself, or by rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from powermeans.divergences import Bregman, Cosine, Manhattan
from powermeans.divergences.cosine import directions
from powermeans.errors import ArgumentError, nearest
from powermeans.explaining.features import Feature, last_of, numbers_called, preparation_of
from powermeans.explaining.tree import Node
from powermeans.methods.base import CenterEstimator
from powermeans.plots import fitted
from powermeans.types import FloatArray
from powermeans_tables.cells.number_forms import NO_VALUE, UNANSWERED, as_number
from powermeans_tables.preparing.features import FeatureOfColumn, features_of
from powermeans_tables.preparing.kinds import Column
from powermeans_tables.preparing.prepare import Prepare

Dialect = Literal["duckdb", "sqlite", "postgresql", "bigquery", "snowflake"]
# Databases limit the arguments of a function and the depth of an expression.
_TERMS_AT_ONCE = 90
_EARTH_KM = "6371e0"


@dataclass(frozen=True, slots=True)
class _Words:
    """What databases write differently."""

    number: str  # the type float64
    text: str
    days: str  # since 1970, of a date
    not_nan: str  # a number, null for NaN
    hide: str = ""  # the word that leaves columns out of `*`, if there is one
    quote: str = '"'
    least: str = "LEAST"
    escapes: bool = False  # whether a backslash in a text does

    def name(self, *names: str) -> str:
        """Quote a name, or several with dots."""
        doubled = "\\`" if self.quote == "`" else self.quote * 2
        return ".".join(f"{self.quote}{n.replace(self.quote, doubled)}{self.quote}" for n in names)

    def words(self, texts: Iterable[str]) -> str:
        """Quote texts, with commas."""
        safe = str.maketrans({"'": "\\'", "\\": "\\\\"} if self.escapes else {"'": "''"})
        return ", ".join(f"'{text.translate(safe)}'" for text in texts)


_NAN = "NULLIF({}, CAST('NaN' AS {}))"
_DIALECTS: dict[str, _Words] = {
    "duckdb": _Words(
        "DOUBLE", "VARCHAR", "epoch(CAST({} AS TIMESTAMP)) / 86400e0", _NAN, "EXCLUDE"
    ),
    "sqlite": _Words("REAL", "TEXT", "julianday({}) - 2440587.5e0", "{}", least="MIN"),
    "postgresql": _Words(
        "DOUBLE PRECISION", "TEXT", "EXTRACT(EPOCH FROM CAST({} AS TIMESTAMP)) / 86400e0", _NAN
    ),
    "bigquery": _Words(
        *("FLOAT64", "STRING", "UNIX_MICROS(CAST({} AS TIMESTAMP)) / 86400e6"),
        *("IF(IS_NAN({0}), NULL, {0})", "EXCEPT", "`"),
        escapes=True,
    ),
    "snowflake": _Words(
        *("DOUBLE", "VARCHAR", "DATE_PART(EPOCH_MICROSECOND, CAST({} AS TIMESTAMP)) / 86400e6"),
        *(_NAN, "EXCLUDE"),
        escapes=True,
    ),
}


def to_sql(
    model: Any,
    columns: Sequence[str] | None = None,
    table: str = "points",
    *,
    dialect: Dialect = "duckdb",
    name: str = "cluster",
) -> str:
    """Return a query that labels the rows of a table in a database as `predict` does.

    It returns all columns of the table, and the cluster. Distances are computed in float64, in the
    same units and with the same treatment of missing values as in the model, and the first of
    several nearest centers counts. Labels may differ if two distances differ only by rounding. A
    row that `predict` would refuse, such as one with a missing value, has no cluster.

    Parameters
    ----------
    model : estimator or pipeline
        Fitted, with centers that `predict` compares; alone, or after a `Prepare`, a
        `StandardScaler` or a `MinMaxScaler`.
    columns : sequence of str, optional
        Names of the columns in the database, in the order of those that the model was fitted to. By
        default the names are the same.
    table : str, default="points"
        The name of the table, preceded by its schema and a dot if it has one.
    dialect : {"duckdb", "sqlite", "postgresql", "bigquery", "snowflake"}, default="duckdb"
        The database.
    name : str, default="cluster"
        Name of the column of clusters, which the table must not have.

    Returns
    -------
    str
        One SELECT. ``CREATE TABLE labelled AS`` may precede it.

    See Also
    --------
    explain : Rules that cost little more, as a query of a few lines.

    Notes
    -----
    In the database, columns of numbers must contain finite numbers, dates dates, and words the
    words that `Prepare` has seen; names that begin with ``pm_`` are reserved for the query. SQLite
    needs its mathematical functions for cosine, logarithms and places.

    Examples
    --------
    >>> from powermeans import KMeans, to_sql
    >>> print(to_sql(KMeans.from_centers([[0.5], [9.5]]), ["price"], "shop.orders"))
    SELECT * EXCLUDE (pm_x0, pm_d0, pm_d1, pm_least),
      CASE pm_least WHEN pm_d0 THEN 0 WHEN pm_d1 THEN 1 END AS cluster
    FROM (SELECT *,
      LEAST(pm_d0, pm_d1) AS pm_least
    FROM (SELECT *,
      (pm_x0 - 5e-01)*(pm_x0 - 5e-01) AS pm_d0,
      (pm_x0 - 9.5e+00)*(pm_x0 - 9.5e+00) AS pm_d1
    FROM (SELECT t.*,
      NULLIF(CAST(t."price" AS DOUBLE), CAST('NaN' AS DOUBLE)) AS pm_x0
    FROM "shop"."orders" AS t) AS pm_1) AS pm_2) AS pm_3
    """
    words = _words_of(dialect)
    check_is_fitted(model)
    last = last_of(model)
    if not isinstance(last, CenterEstimator):
        raise _without_query(f"model is a {type(last).__name__} of another package")
    has_nearest = type(last).predict is CenterEstimator.predict
    if not has_nearest or last._fitted_needs().measure.weighs_features:
        raise _without_query(
            f"model is a {type(last).__name__}, whose labels are no nearest center"
        )
    points, centers = _points(model, columns, words), fitted.centers_of(last)
    measure = last._fitted_needs().measure
    xs = [f"pm_x{i}" for i in range(len(points))]
    levels = [dict(zip(xs, points, strict=True))]
    if isinstance(measure.divergence, Cosine):
        length = f"NULLIF(SQRT({_sum(f'{x}*{x}' for x in xs)}), 0e0)"
        levels.append({"pm_length": length})
        levels.append({f"pm_u{i}": f"{x} / pm_length" for i, x in enumerate(xs)})
        xs, centers = [f"pm_u{i}" for i in range(len(xs))], directions(centers)
    distances = _distances(measure, xs, centers)
    ds = [f"pm_d{j}" for j in range(len(distances))]
    levels.append(dict(zip(ds, distances, strict=True)))
    least = _least(ds, words)
    if measure.has_missing:  # a row without any value has no distance
        there = " AND ".join(f"{x} IS NULL" for x in xs)
        least = f"CASE WHEN {there} THEN NULL ELSE {least} END"
    levels.append({"pm_least": least})
    cases = " ".join(f"WHEN {d} THEN {j}" for j, d in enumerate(ds))
    return _query(levels, f"CASE pm_least {cases} END", table, words, _as(name, words))


def rules_to_sql(
    tree: Node,
    features: Sequence[Feature],
    table: str,
    columns: Sequence[str] | None,
    dialect: Dialect,
    name: str,
) -> str:
    """Return a query that labels rows by a tree."""
    words = _words_of(dialect)
    names = _names(features, columns)

    def case(node: Node, indent: str) -> str:
        if node.below is None:
            return str(node.label)
        # NaN compares as larger than numbers, and so goes the way of what is missing.
        value = _value(features[node.feature], names, words, with_nan=not node.missing_left)
        asked = f"{value} <= {node.threshold!r}".removesuffix(".0")
        if node.missing_left:
            asked += f" OR {value} IS NULL"
        left, right = (case(below, f"{indent}  ") for below in node.below)
        return f"CASE WHEN {asked}\n{indent}THEN {left}\n{indent}ELSE {right} END"

    return f"SELECT t.*,\n  {case(tree, '  ')}{_as(name, words)}\nFROM {_table(table, words)} AS t"


def _without_query(why: str) -> ArgumentError:
    return ArgumentError(why, "explain(model, X).to_sql(table) gives a query by rules")


def _words_of(dialect: str) -> _Words:
    if dialect not in _DIALECTS:
        known = f": the dialects are {', '.join(get_args(Dialect))}"
        hint = nearest(str(dialect), _DIALECTS) or known
        raise ArgumentError(f"is not known{hint}", argument="dialect", value=dialect)
    return _DIALECTS[dialect]


def _table(table: str, words: _Words) -> str:
    return words.name(*table.split("."))


def _names(features: Sequence[Feature], columns: Sequence[str] | None) -> dict[str, str]:
    """Return the name in the database of each column."""
    pairs = [(column.name, column.other) for column in map(_column_of, features)]
    known = list(dict.fromkeys(name for pair in pairs for name in pair if name))
    if columns is None:
        return {name: name for name in known}
    if isinstance(columns, str) or len(columns) != len(known):
        given = "one text" if isinstance(columns, str) else f"{len(columns):,} columns"
        raise ArgumentError(
            f"columns is {given} instead of a list of {len(known):,} columns",
            f"pass one name for each of {', '.join(known[:8])}{', ...' * (len(known) > 8)}",
        )
    return dict(zip(known, map(str, columns), strict=True))


def _points(model: Any, columns: Sequence[str] | None, words: _Words) -> list[str]:
    """Return what the points of a model are in the columns of a table."""
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    prepare = preparation_of(model)
    if prepare is not None:
        features = features_of(prepare.columns_)
    else:
        first = steps[0]
        if columns is None and not hasattr(first, "feature_names_in_"):
            raise ArgumentError(
                "the columns that the model was fitted to have no names",
                f"pass columns=, the names of {first.n_features_in_} columns of the table",
            )
        known = fitted.names_of(first, np.empty((1, first.n_features_in_)))
        features = numbers_called(known)
    names = _names(features, columns)
    found = [_value(feature, names, words) for feature in features]
    of_fit = [] if prepare is None or steps[0] is prepare else [prepare]
    for step in [*of_fit, *steps[:-1]]:
        found = _scaled(step, found)
    return found


def _scaled(step: Any, values: list[str]) -> list[str]:
    """Return values after a step of a pipeline."""
    match step:
        case Prepare():
            offsets, units = map(list, step.scaling)
        case StandardScaler():
            offsets = [0.0] * len(values) if step.mean_ is None else list(step.mean_)
            units = [1.0] * len(values) if step.scale_ is None else list(step.scale_)
        case MinMaxScaler(clip=True):
            raise _without_query("the step MinMaxScaler clips values")
        case MinMaxScaler():
            pairs = zip(values, step.scale_, step.min_, strict=True)
            return [f"({v} * {_number(a)} + {_number(b)})" for v, a, b in pairs]
        case _:
            raise _without_query(f"the step {type(step).__name__} has no counterpart in SQL")
    return [
        f"({value} - {_number(offset)}) / {_number(unit)}"
        for value, offset, unit in zip(values, offsets, units, strict=True)
    ]


def _value(
    feature: Feature, names: dict[str, str], words: _Words, *, with_nan: bool = False
) -> str:
    """Return the value of a feature as an expression of the columns of a table."""
    column = _column_of(feature)
    given = f"t.{words.name(names[column.name])}"
    text = f"TRIM(CAST({given} AS {words.text}))"
    number = f"CAST({given} AS {words.number})"
    number = number if with_nan else words.not_nan.format(number, words.number)
    for code in column.codes:
        number = f"NULLIF({number}, {_number(code)})" if as_number(code) is not None else number
    if column.words and isinstance(feature, FeatureOfColumn):
        return _of_words(feature, given, text, words)
    match column.kind:
        case "yes/no":
            return f"CAST(CAST({given} AS INTEGER) AS {words.number})"
        case "date":
            return f"CAST({words.days.format(given)} AS {words.number})"
        case "log":
            return f"LN(1e0 + {number})"
        case "place":
            lat, lon = f"RADIANS({number})", f"RADIANS(t.{words.name(names[column.other])})"
            flat = f"{_EARTH_KM} * COS({lat})"
            axes = f"{flat} * COS({lon})", f"{flat} * SIN({lon})", f"{_EARTH_KM} * SIN({lat})"
            return axes[getattr(feature, "part", 0)]
    return number


def _column_of(feature: Feature) -> Column:
    if isinstance(feature, FeatureOfColumn):
        return feature.column
    return Column(feature.name, "number")


def _of_words(feature: FeatureOfColumn, given: str, text: str, words: _Words) -> str:
    """Return the value of a feature of words as an expression of a cell and of its text."""
    column = feature.column
    missing = words.words([*NO_VALUE, *column.codes])
    unanswered = words.words(sorted(UNANSWERED))
    is_missing = f"{given} IS NULL OR {text} IN ({missing}) OR LOWER({text}) IN ({unanswered})"
    if column.kind == "ordered":
        levels = " ".join(
            f"WHEN {words.words([word])} THEN {_number(level)}"
            for word, level in zip(column.words, column.levels, strict=True)
        )
        return f"CASE {text} {levels} END"
    if column.kind == "yes/no":  # databases write a number that is whole with a fraction too
        ticks = words.words([*column.words, *(f"{word}.0" for word in column.words if word == "1")])
        is_blank = f"{given} IS NULL OR {text} = ''"
        is_ticked = f"WHEN {text} IN ({ticks}) THEN 1e0"
        return f"CASE WHEN {is_blank} THEN 0e0 WHEN {is_missing} THEN NULL {is_ticked} ELSE 0e0 END"
    word, *others = [words.words([word]) for word in column.words[feature.part :]]
    is_one_of_two = len(column.words) == 2
    new = f"WHEN {text} = {others[0]} THEN 0e0 ELSE 0.5e0" if is_one_of_two else "ELSE 0e0"
    return f"CASE WHEN {is_missing} THEN NULL WHEN {text} = {word} THEN 1e0 {new} END"


def _distances(measure: Any, xs: Sequence[str], centers: FloatArray) -> list[str]:
    """Return the distances to centers, up to a term that is the same for all of them."""
    divergence = measure.divergence
    is_squared = divergence.is_squared or isinstance(divergence, Cosine)
    if isinstance(divergence, Bregman) and not is_squared:
        return _planes(divergence, xs, centers)
    found = []
    for center in centers:
        apart = [f"{x} - {_number(value)}" for x, value in zip(xs, center, strict=True)]
        if isinstance(divergence, Manhattan):
            terms = [f"ABS({each})" for each in apart]
        elif is_squared:
            terms = [f"({each})*({each})" for each in apart]
        else:
            raise _without_query(f"the divergence {divergence!r} has no counterpart in SQL")
        terms = [f"COALESCE({term}, 0e0)" for term in terms] if measure.has_missing else terms
        found.append(_sum(terms))
    return found


def _planes(divergence: Bregman, xs: Sequence[str], centers: FloatArray) -> list[str]:
    """Return Bregman divergences less that of the point to the mean of the centers."""
    inner = divergence.inside(centers)
    tangent = inner.mean(axis=0)
    slopes = divergence.gradient_from(tangent, inner)
    lifts = divergence.between(np.broadcast_to(tangent, inner.shape), inner)
    return [
        f"{_number(lift)} - ("
        + _sum(
            f"({x} - {_number(middle)})*{_number(along)}"
            for x, middle, along in zip(xs, tangent, slope, strict=True)
        )
        + ")"
        for lift, slope in zip(lifts, slopes, strict=True)
    ]


def _sum(terms: Iterable[str]) -> str:
    listed = list(terms)
    while len(listed) > _TERMS_AT_ONCE:
        parts = gen_batches(len(listed), _TERMS_AT_ONCE)
        listed = [f"({' + '.join(listed[part])})" for part in parts]
    return " + ".join(listed)


def _least(names: Sequence[str], words: _Words) -> str:
    """Return the least of some columns; of one it is that, since MIN(x) of SQLite adds up rows."""
    listed = list(names)
    while len(listed) > 1:
        parts = [listed[part] for part in gen_batches(len(listed), _TERMS_AT_ONCE)]
        listed = [f"{words.least}({', '.join(each)})" if each[1:] else each[0] for each in parts]
    return listed[0]


def _as(name: str, words: _Words) -> str:
    return f" AS {name if name == 'cluster' else words.name(name)}"


def _query(
    levels: Sequence[dict[str, str]], cluster: str, table: str, words: _Words, named: str
) -> str:
    """Return a query of nested levels, each of which uses the columns of the one below."""
    source = f"{_table(table, words)} AS t"
    query = "" if not words.hide else f"FROM {source}"
    for depth, level in enumerate(levels, 1):
        given = ",\n".join(f"  {value} AS {name}" for name, value in level.items())
        star = "" if not query else "t.*,\n" if depth == 1 else "*,\n"
        query = f"FROM (SELECT {star}{given}\n{query}) AS pm_{depth}"
    if not words.hide:
        # A query within the row, since `*` could not leave out the columns of the levels.
        return f"SELECT t.*,\n  (SELECT {cluster}\n{query}){named}\nFROM {source}"
    hidden = ", ".join(name for level in levels for name in level)
    return f"SELECT * {words.hide} ({hidden}),\n  {cluster}{named}\n{query}"


def _number(value: Any) -> str:
    """Return a number that reads back as the same float64."""
    text = np.format_float_scientific(float(value), trim="-")
    return f"({text})" if text.startswith("-") else text
