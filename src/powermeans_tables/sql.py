"""Queries that label the rows of a table in a database: by the model itself, or by rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from powermeans.divergences import Bregman, Cosine, Manhattan
from powermeans.divergences.cosine import directions
from powermeans.divergences.domains import Bounded
from powermeans.errors import Argument, ArgumentError, nearest
from powermeans.explaining.features import Feature, last_of, numbers_called
from powermeans.explaining.tree import Node
from powermeans.methods.base import CenterEstimator
from powermeans.plots import fitted
from powermeans.plots.fitted import preparation_of
from powermeans.types import FloatArray
from powermeans_tables.cells.number_forms import NO_VALUE, PAIRS, UNANSWERED, as_number
from powermeans_tables.preparing.features import EARTH_KM, FeatureOfColumn, features_of
from powermeans_tables.preparing.kinds import WORDS, Column
from powermeans_tables.preparing.prepare import Prepare

Dialect = Literal["duckdb", "sqlite", "postgresql", "bigquery", "snowflake"]
# Databases limit the arguments of a function and the depth of an expression.
_TERMS_AT_ONCE = 90
# What `Prepare` takes for a blank, besides the one that TRIM removes in every database.
_BLANKS = (
    *((9, 13), (28, 31), (133, 133), (160, 160), (5760, 5760), (8192, 8202), (8232, 8233)),
    *((8239, 8239), (8287, 8287), (12288, 12288)),
)
_IN_RE2 = "".join(rf"\x{{{{{first:x}}}}}-\x{{{{{last:x}}}}}" for first, last in _BLANKS)
_IN_POSTGRESQL = "".join(rf"\u{first:04x}-\u{last:04x}" for first, last in _BLANKS)
_IN_SQLITE = ", ".join(f"{first}, 45, {last}" for first, last in _BLANKS)
_YES, _NO = zip(*map(str.split, PAIRS), strict=True)
_TRUTHS = ("1", "0", "1.0", "0.0")
_INFINITE = ("inf", "-inf", "infinity", "-infinity")


@dataclass(frozen=True, slots=True)
class _Words:
    """What databases write differently, and how they call the columns of the table."""

    number: str  # the type float64
    text: str
    days: str  # since 1970, of a date
    not_nan: str  # a number, null for NaN
    as_word: str  # a number or a truth value, as `Prepare` writes it among words
    has_blanks: str = "FALSE"  # whether a text has one of `_BLANKS`
    # Whether a cell is of another type, where the columns have none.
    is_no_number: str = ""
    is_no_date: str = ""
    is_no_word: str = ""
    # How the innermost query keeps the columns of the table, and the outermost one returns them.
    kept: str = ""
    returned: str = ""
    quote: str = '"'
    least: str = "LEAST"
    most: str = "GREATEST"
    escapes: bool = False  # whether a backslash in a text does
    has_cases: bool = False  # whether quoted names may differ by their case alone
    names: Mapping[str, str] = field(default_factory=dict)  # there, by the names in the model

    def name(self, *names: str) -> str:
        """Quote a name, or several with dots."""
        doubled = "\\`" if self.quote == "`" else self.quote * 2
        return ".".join(f"{self.quote}{n.replace(self.quote, doubled)}{self.quote}" for n in names)

    def cell(self, column: str) -> str:
        """Return what a row has in a column."""
        return f"t.{self.name(self.names[column])}"

    def words(self, texts: Iterable[str]) -> str:
        """Quote texts, with commas."""
        safe = str.maketrans({"'": "\\'", "\\": "\\\\"} if self.escapes else {"'": "''"})
        return ", ".join(f"'{text.translate(safe)}'" for text in texts)


_NAN = "NULLIF({}, CAST('NaN' AS {}))"
_OF_TRUTH = "CASE CAST({{0}} AS {}) WHEN 'true' THEN 'yes' ELSE 'no' END"
_DIALECTS: dict[str, _Words] = {
    "duckdb": _Words(
        *("DOUBLE", "VARCHAR", "EPOCH({}) / 86400e0", _NAN),
        "CASE WHEN TYPEOF({0}) IN ('DOUBLE', 'FLOAT') THEN"
        " PRINTF('%.15g', TRY_CAST({0} AS DOUBLE)) WHEN TYPEOF({0}) = 'BOOLEAN' THEN "
        f"{_OF_TRUTH.format('VARCHAR')} ELSE CAST({{0}} AS VARCHAR) END",
        f"REGEXP_MATCHES({{}}, '[{_IN_RE2}]')",
        # A struct, so that no column is called as one of the query.
        kept="STRUCT_PACK(*COLUMNS(t.*)) AS pm_row",
        returned="pm_row.*",
    ),
    "sqlite": _Words(
        *("REAL", "TEXT", "JULIANDAY({}) - 2440587.5e0", "{}"),
        "CASE TYPEOF({0}) WHEN 'real' THEN PRINTF('%.15g', {0}) ELSE {0} END",
        f"{{}} GLOB '*[' || CHAR({_IN_SQLITE}) || ']*'",
        "TYPEOF({0}) IN ('text', 'blob') OR ABS({0}) = 9e999",
        "DATE(SUBSTR({0}, 1, 10)) IS NOT SUBSTR({0}, 1, 10)",
        "TYPEOF({0}) IN ('integer', 'real')",
        least="MIN",
        most="MAX",
    ),
    "postgresql": _Words(
        *("DOUBLE PRECISION", "TEXT", "EXTRACT(EPOCH FROM {}) / 86400e0", _NAN),
        f"CASE WHEN PG_TYPEOF({{0}}) = CAST('boolean' AS REGTYPE) THEN {_OF_TRUTH.format('TEXT')}"
        " ELSE CAST({0} AS TEXT) END",
        f"{{}} ~ '[{_IN_POSTGRESQL}]'",
        has_cases=True,
    ),
    "bigquery": _Words(
        *("FLOAT64", "STRING", "UNIX_MICROS(CAST({} AS TIMESTAMP)) / 86400e6"),
        "IF(IS_NAN({0}), NULL, {0})",
        r"REGEXP_REPLACE(CAST({} AS STRING), r'^(-?[0-9]+)\.0$', r'\1')",
        f"REGEXP_CONTAINS({{}}, r'[{_IN_RE2}]')",
        kept="t AS pm_row",
        returned="pm_row.*",
        quote="`",
        escapes=True,
    ),
    "snowflake": _Words(
        *("DOUBLE", "VARCHAR", "DATE_PART(EPOCH_MICROSECOND, CAST({} AS TIMESTAMP)) / 86400e6"),
        *(_NAN, "CAST({} AS VARCHAR)"),
        kept="t.*",
        returned="* EXCLUDE ({})",  # other columns of these names are ambiguous, which it refuses
        escapes=True,
        has_cases=True,
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
    several nearest centers counts. Labels may differ if two distances differ only by rounding.

    A row that `predict` would refuse if it were alone has no cluster: one with a missing value, an
    infinite one, or one so large that squares overflow. Some databases refuse the whole query then.

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
        Name of the column of clusters, which the table must not have, in whatever case.

    Returns
    -------
    str
        One SELECT. ``CREATE TABLE labelled AS`` may precede it.

    See Also
    --------
    explain : Rules that cost little more, as a query of a few lines.

    Notes
    -----
    In the database, columns of numbers must contain numbers, and dates must be dates or timestamps;
    ``1,5``, ``<5``, ``12 %`` and ``01.02.2024`` in texts depend on those of other rows, so that the
    query fails. SQLite, where each cell has a type of its own, reads dates from texts such as
    ``2024-02-01``, and gives rows with other texts no cluster. Yes and no may be words, numbers
    or truth values. SQLite needs its mathematical functions for cosine, logarithms and places.

    Examples
    --------
    >>> from powermeans import KMeans, to_sql
    >>> print(to_sql(KMeans.from_centers([[0.5], [9.5]]), ["price"], "shop.orders"))
    SELECT * FROM (SELECT pm_row.*,
      CASE pm_least WHEN pm_d0 THEN 0 WHEN pm_d1 THEN 1 END AS cluster
    FROM (SELECT *,
      CASE WHEN ABS(pm_x0) >= 6.703903964971298e+153
      THEN NULL ELSE LEAST(pm_d0, pm_d1) END AS pm_least
    FROM (SELECT *,
      (pm_x0 - 5e-01)*(pm_x0 - 5e-01) AS pm_d0,
      (pm_x0 - 9.5e+00)*(pm_x0 - 9.5e+00) AS pm_d1
    FROM (SELECT STRUCT_PACK(*COLUMNS(t.*)) AS pm_row,
      NULLIF(CAST(t."price" + 0 AS DOUBLE), CAST('NaN' AS DOUBLE)) AS pm_x0
    FROM "shop"."orders" AS t) AS pm_1) AS pm_2) AS pm_3) AS pm_labelled
    """
    words = _words_of(dialect)
    check_is_fitted(model)
    last = last_of(model)
    kind = type(last)
    if not isinstance(last, CenterEstimator):
        raise _without_query(f"model is a {kind.__name__} of another package")
    if kind.predict is not CenterEstimator.predict or last._fitted_needs().measure.weighs_features:
        raise _without_query(f"model is a {kind.__name__}, whose labels are no nearest center")
    features, words = _features(model, columns, words, name)
    points, centers = _points(model, features, words), fitted.centers_of(last)
    measure = last._fitted_needs().measure
    xs = [f"pm_x{i}" for i in range(len(points))]
    levels = [dict(zip(xs, points, strict=True))]
    refused = _out_of_range(measure.divergence, xs)
    if unread := _unread((each.column for each in features), words):
        levels[0]["pm_unread"] = unread
        refused.append("pm_unread")
    if measure.has_missing:  # a row without any value has no distance
        refused.append(f"({_joined((f'{x} IS NULL' for x in xs), ' AND ')})")
    if isinstance(measure.divergence, Cosine):
        largest = _extreme(words.most, [f"ABS({x})" for x in xs])
        levels.append({"pm_most": f"NULLIF({largest}, 0e0)"})  # so that no square vanishes
        levels.append({f"pm_v{i}": f"{x} / pm_most" for i, x in enumerate(xs)})
        vs, xs = [*levels[-1]], [f"pm_u{i}" for i in range(len(xs))]
        levels.append({"pm_length": f"SQRT({_joined(f'{v}*{v}' for v in vs)})"})
        levels.append({u: f"{v} / pm_length" for u, v in zip(xs, vs, strict=True)})
        centers = directions(centers)
    distances = _distances(measure, xs, centers)
    ds = [f"pm_d{j}" for j in range(len(distances))]
    levels.append(dict(zip(ds, distances, strict=True)))
    least = _extreme(words.least, ds)
    levels.append(
        {"pm_least": f"CASE WHEN {_joined(refused, ' OR ')}\n  THEN NULL ELSE {least} END"}
    )
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
    of_columns, words = _in_database(features, columns, _words_of(dialect), name)
    asked_for = set[int]()

    def case(node: Node, indent: str) -> str:
        if node.below is None:
            return str(node.label)
        asked_for.add(node.feature)
        # NaN compares as larger than numbers, and so goes the way of what is missing.
        value = _value(of_columns[node.feature], words, with_nan=not node.missing_left)
        asked = f"{value} <= {node.threshold!r}".removesuffix(".0")
        if node.missing_left:
            asked += f" OR {value} IS NULL"
        left, right = (case(below, f"{indent}  ") for below in node.below)
        return f"CASE WHEN {asked}\n{indent}THEN {left}\n{indent}ELSE {right} END"

    cluster = case(tree, "  ")
    if not words.is_no_number:  # an infinite one, which compares as any other
        kind = words.number
        is_infinite = f"ABS(CAST({{0}} + 0 AS {kind})) = CAST('Infinity' AS {kind})"
        words = replace(words, is_no_number=is_infinite)
    if unread := _unread((of_columns[each].column for each in sorted(asked_for)), words):
        cluster = f"CASE WHEN {unread}\n  THEN NULL\n  ELSE {cluster} END"
    return f"SELECT t.*,\n  {cluster}{_as(name, words)}\nFROM {words.name(*table.split('.'))} AS t"


def _without_query(why: str) -> ArgumentError:
    return ArgumentError(why, "explain(model, X).to_sql(table) gives a query by rules")


def _words_of(dialect: str) -> _Words:
    if dialect not in _DIALECTS:
        known = f": the dialects are {', '.join(get_args(Dialect))}"
        hint = nearest(str(dialect), _DIALECTS) or known
        raise ArgumentError(f"is not known{hint}", argument="dialect", value=dialect)
    return _DIALECTS[dialect]


def _in_database(
    features: Iterable[Feature],
    columns: Sequence[str] | None,
    words: _Words,
    cluster: str,
    others: Iterable[str] = (),
) -> tuple[list[FeatureOfColumn], _Words]:
    """Give features columns, and these their names in a database, which must differ there."""
    features = [*features]
    if any(isinstance(one, FeatureOfColumn) and one.column.kind == "shape" for one in features):
        raise ArgumentError("shapes of series have no query", "fit without ", Argument("series"))
    found_features = [
        each
        if isinstance(each, FeatureOfColumn)
        else FeatureOfColumn(each.name, Column(each.name, "number"))
        for each in features
    ]
    pairs = [(each.column.name, each.column.other) for each in found_features]
    known = list(dict.fromkeys(name for pair in pairs for name in pair if name))
    if isinstance(columns, str) or (columns is not None and len(columns) != len(known)):
        given = "one text" if isinstance(columns, str) else f"{len(columns):,} columns"
        raise ArgumentError(
            f"columns is {given} instead of a list of {len(known):,} columns",
            f"pass one name for each of {', '.join(known[:8])}{', ...' * (len(known) > 8)}",
        )
    found = dict(zip(known, known if columns is None else map(str, columns), strict=True))
    by_fold = dict[str, str]()
    for each in found.values() if not words.has_cases else ():
        if (other := by_fold.setdefault(each.casefold(), each)) != each:
            raise ArgumentError(
                f'the database takes "{other}" and "{each}" for one name',
                "rename a column there, and pass columns=",
            )
    there = {each.casefold() for each in (*found.values(), *(others if columns is None else ()))}
    if cluster.casefold() in there:
        raise ArgumentError(
            "is a column of the table", "pass another name", argument="name", value=cluster
        )
    return found_features, replace(words, names=found)


def _features(
    model: Any, columns: Sequence[str] | None, words: _Words, cluster: str
) -> tuple[list[FeatureOfColumn], _Words]:
    """Return the features of the rows that a model takes, and what a database calls them."""
    if (prepare := preparation_of(model)) is not None:
        features, others = features_of(prepare.columns_), prepare.feature_names_in_
        return _in_database(features, columns, words, cluster, others)
    first = model.steps[0][1] if isinstance(model, Pipeline) else model
    if columns is None and not hasattr(first, "feature_names_in_"):
        raise ArgumentError(
            "the columns that the model was fitted to have no names",
            f"pass columns=, the names of {first.n_features_in_} columns of the table",
        )
    features = numbers_called(fitted.names_of(first, np.empty((1, first.n_features_in_))))
    return _in_database(features, columns, words, cluster)


def _points(model: Any, features: Sequence[FeatureOfColumn], words: _Words) -> list[str]:
    """Return what the points of a model are in the columns of a table."""
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    prepare, found = preparation_of(model), [_value(each, words) for each in features]
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


def _value(feature: FeatureOfColumn, words: _Words, *, with_nan: bool = False) -> str:
    """Return the value of a feature as an expression of the columns of a table."""
    column = feature.column
    if column.kind in ("choices", "clock"):
        what = {"choices": "several choices in a cell", "clock": "times of day"}[column.kind]
        raise ArgumentError(f'"{column.name}" has {what}, which queries do not read')
    if column.kind in WORDS:
        return _of_words(feature, words.cell(column.name), words)
    if column.kind == "date":
        return f"CAST({words.days.format(words.cell(column.name))} AS {words.number})"
    number, *others = _numbers(column, words, with_nan=with_nan)
    if column.kind == "log":
        return f"LN(1e0 + {number})"
    if column.kind == "place":
        lat, lon = f"RADIANS({number})", f"RADIANS({others[0]})"
        radius = _number(EARTH_KM)
        flat = f"{radius} * COS({lat})"
        axes = f"{flat} * COS({lon})", f"{flat} * SIN({lon})", f"{radius} * SIN({lat})"
        return axes[feature.part]
    return number


def _numbers(column: Column, words: _Words, *, with_nan: bool = False) -> list[str]:
    """Return the number of a column, and of the one of longitudes that belongs to it."""
    found = []
    for name in filter(None, (column.name, column.other)):
        # To add is to refuse texts, which CAST would read whatever their marks mean.
        number = f"CAST({words.cell(name)} + 0 AS {words.number})"
        number = number if with_nan else words.not_nan.format(number, words.number)
        for code in column.codes:
            is_one = as_number(code) is not None
            number = f"NULLIF({number}, {_number(code)})" if is_one else number
        found.append(number)
    return found


def _unread(columns: Iterable[Column], words: _Words) -> str:
    """Return whether a cell is none that a column of its kind can have; empty if all can."""
    found = []
    for column in columns:
        given = words.cell(column.name)
        if column.kind in WORDS:
            text = _text_of(column, given, words)
            found.append(words.has_blanks.format(f"CAST({given} AS {words.text})"))
            if column.kind == "yes/no" and not column.words:
                known = words.words([*_YES, *_NO, *_TRUTHS, *NO_VALUE, *UNANSWERED, *column.codes])
                found.append(f"{text} NOT IN ({known}) AND LOWER({text}) NOT IN ({known})")
            elif _are_as_numbers(column):
                found.append(f"LOWER({text}) IN ({words.words(_INFINITE)})")
            if {"yes", "no"} & {*column.words} and words.is_no_word:
                found.append(words.is_no_word.format(given))
        elif column.kind == "date":
            wrong = [f"{words.days.format(given)} IS NULL"]
            wrong += [words.is_no_date.format(given)] * bool(words.is_no_date)
            found.append(f"{given} IS NOT NULL AND ({' OR '.join(wrong)})")
        else:
            cells = map(words.cell, filter(None, (column.name, column.other)))
            found += [words.is_no_number.format(cell) for cell in cells if words.is_no_number]
            if column.kind == "log":
                found += [f"{number} <= -1e0" for number in _numbers(column, words)]
    return _joined((f"({each})" for each in dict.fromkeys(found) if each != "FALSE"), " OR ")


def _out_of_range(divergence: Any, xs: Sequence[str]) -> list[str]:
    """Return conditions for a point to be one that no model of a divergence takes."""
    largest = np.sqrt(np.finfo(np.float64).max / len(xs)) / 2  # as `refuse_huge` says of one row
    found = [f"ABS({x}) >= {_number(largest)}" for x in xs]  # NaN too, which is the largest
    if isinstance(divergence, Bounded):
        low = "<=" if divergence.excludes_lowest else "<"
        for mark, bound in ((low, divergence.lowest), (">", divergence.highest)):
            bounds = np.broadcast_to(bound, len(xs))
            pairs = zip(xs, bounds, strict=True)
            found += [f"{x} {mark} {_number(each)}" for x, each in pairs if np.isfinite(each)]
    return found


def _are_as_numbers(column: Column) -> bool:
    """Return whether words of a column may be numbers or truth values in the table."""
    return any(as_number(w) is not None or w in ("yes", "no") for w in column.words + column.codes)


def _text_of(column: Column, given: str, words: _Words) -> str:
    """Return the text of a cell, which is needed of numbers only if some are words."""
    cell = words.as_word.format(given) if _are_as_numbers(column) else given
    return f"TRIM(CAST({cell} AS {words.text}))"


def _of_words(feature: FeatureOfColumn, given: str, words: _Words) -> str:
    """Return the value of a feature of words as an expression of a cell."""
    column = feature.column
    text = _text_of(column, given, words)
    missing = words.words([*NO_VALUE, *column.codes])
    unanswered = words.words(sorted(UNANSWERED))
    is_missing = f"{given} IS NULL OR {text} IN ({missing}) OR LOWER({text}) IN ({unanswered})"
    if column.kind == "ordered":
        levels = " ".join(
            f"WHEN {words.words([word])} THEN {_number(level)}"
            for word, level in zip(column.words, column.levels, strict=True)
        )
        return f"CASE {text} {levels} END"
    if column.kind == "yes/no" and not column.words:
        yes, no = (words.words([*each, *_TRUTHS[i::2]]) for i, each in enumerate((_YES, _NO)))
        is_yes = f"WHEN LOWER({text}) IN ({yes}) THEN 1e0 WHEN LOWER({text}) IN ({no}) THEN 0e0"
        return f"CASE WHEN {is_missing} THEN NULL {is_yes} END"
    if column.kind == "yes/no":
        is_blank = f"{given} IS NULL OR {text} = ''"
        is_ticked = f"WHEN {text} IN ({words.words(column.words)}) THEN 1e0"
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
    if not (is_squared or isinstance(divergence, Manhattan)):
        raise _without_query(f"the divergence {divergence!r} has no counterpart in SQL")
    term = "({0})*({0})" if is_squared else "ABS({0})"
    term = f"COALESCE({term}, 0e0)" if measure.has_missing else term
    apart = ([f"{x} - {_number(c)}" for x, c in zip(xs, one, strict=True)] for one in centers)
    return [_joined(map(term.format, each)) for each in apart]


def _planes(divergence: Bregman, xs: Sequence[str], centers: FloatArray) -> list[str]:
    """Return Bregman divergences less that of the point to the mean of the centers."""
    inner = divergence.inside(centers)
    tangent = inner.mean(axis=0)
    slopes = divergence.gradient_from(tangent, inner)
    lifts = divergence.between(np.broadcast_to(tangent, inner.shape), inner)
    return [
        f"{_number(lift)} - ("
        + _joined(
            f"({x} - {_number(middle)})*{_number(along)}"
            for x, middle, along in zip(xs, tangent, slope, strict=True)
        )
        + ")"
        for lift, slope in zip(lifts, slopes, strict=True)
    ]


def _few(terms: Iterable[str], join: Callable[[list[str]], str]) -> list[str]:
    """Return at most so many terms as a database takes at once, some of them joined."""
    listed = list(terms)
    while len(listed) > _TERMS_AT_ONCE:
        listed = [join(listed[part]) for part in gen_batches(len(listed), _TERMS_AT_ONCE)]
    return listed


def _joined(terms: Iterable[str], mark: str = " + ") -> str:
    return mark.join(_few(terms, lambda some: f"({mark.join(some)})"))


def _extreme(which: str, values: Sequence[str]) -> str:
    """Return the least or most of some values; of one that, since MIN(x) of SQLite adds up rows."""

    def of(some: list[str]) -> str:
        return f"{which}({', '.join(some)})" if some[1:] else some[0]

    return of(_few(values, of))


def _as(name: str, words: _Words) -> str:
    return f" AS {name if name == 'cluster' else words.name(name)}"


def _query(
    levels: Sequence[dict[str, str]], cluster: str, table: str, words: _Words, named: str
) -> str:
    """Return a query of nested levels, each of which uses the columns of the one below."""
    source = f"{words.name(*table.split('.'))} AS t"
    query = "" if not words.kept else f"FROM {source}"
    for depth, level in enumerate(levels, 1):
        given = ",\n".join(f"  {value} AS {name}" for name, value in level.items())
        kept = "" if not query else f"{words.kept},\n" if depth == 1 else "*,\n"
        query = f"FROM (SELECT {kept}{given}\n{query}) AS pm_{depth}"
    if not words.kept:
        # A query within the row, where no column of the table is called as one of the levels.
        return f"SELECT t.*,\n  (SELECT {cluster}\n{query}){named}\nFROM {source}"
    hidden = ", ".join(name for level in levels for name in level)
    labelled = f"SELECT {words.returned.format(hidden)},\n  {cluster}{named}\n{query}"
    return f"SELECT * FROM ({labelled}) AS pm_labelled"  # which ORDER BY may follow


def _number(value: Any) -> str:
    """Return a number that reads back as the same float64."""
    text = np.format_float_scientific(float(value), trim="-")
    return f"({text})" if text.startswith("-") else text
