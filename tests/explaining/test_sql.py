"""Queries label rows as models and rules do, in databases that run here."""

import math
import subprocess

import numpy as np
import pandas as pd
import pytest
from explaining import databases
from sklearn.cluster import KMeans as OtherKMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from powermeans import KMeans, PowerKMeans, Prepare, explain, to_sql
from powermeans.explaining.explanation import _Told
from powermeans.explaining.features import in_units
from powermeans.methods import EntropyWeightedPowerKMeans, SphericalMixture
from tests.attacks import databases as attack


@pytest.fixture(scope="module")
def postgresql():
    with databases.postgresql() as run:
        yield run


@pytest.fixture(params=["duckdb", "sqlite", "postgresql"])
def database(request):
    """The name of a dialect, and a function that runs a query in it."""
    if request.param == "postgresql":
        run = request.getfixturevalue("postgresql")
        if run is None:
            pytest.skip("the server of PostgreSQL is not installed")
        return request.param, run
    if request.param == "duckdb":
        pytest.importorskip("duckdb")
    return request.param, getattr(databases, f"in_{request.param}")


def points_of(rng, n=300, d=4):
    """Clusters on a grid, so that ties occur, and one column in another unit."""
    centers = rng.normal(0, 3, (5, d))
    points = centers[rng.integers(5, size=n)] + rng.normal(0, 1, (n, d))
    return np.round(points * 4) / 4 * np.array([1, 1, 1, 20])[:d]


def fitted(X, k=4, kind=PowerKMeans, before=(), **options):
    options |= {"effort": "fast"} if kind is PowerKMeans else {}
    return make_pipeline(*before, kind(k, random_state=0, **options)).fit(X), X


def plain(rng):
    return fitted(points_of(rng), 5)


def rounded(rng):
    X = np.round(points_of(rng) / [1, 1, 1, 20])  # centers that are given, and many ties
    return KMeans.from_centers(np.round(rng.normal(0, 3, (6, 4)))), X


def standardized(rng):
    return fitted(points_of(rng), before=[StandardScaler()])


def to_range(rng):
    return fitted(points_of(rng), 4, KMeans, [MinMaxScaler((-1, 2))])


def observed(rng):
    X = points_of(rng)
    X[rng.random(X.shape) < 0.2] = np.nan
    return fitted(X[~np.isnan(X).all(axis=1)], missing="observed")


def directions(rng):
    return fitted(points_of(rng) / [1, 1, 1, 20] + 0.125, divergence="cosine")


def single(rng):
    return fitted(points_of(rng).astype(np.float32) + np.float32(0.1), 5)


def medians(rng):
    return fitted(points_of(rng), divergence="manhattan")


def counts(rng):
    X = rng.poisson(rng.gamma(2, 4, (5, 4))[rng.integers(5, size=300)]).astype(float)
    return fitted(X, divergence="poisson")


def correlated(rng):
    return fitted(points_of(rng), divergence="mahalanobis")


KINDS = [plain, rounded, standardized, to_range, observed, directions, single, medians, counts]
KINDS.append(correlated)
NAMES = ["first", 'it\'s "second"', "select", "Größe 4"]


def as_columns(X):
    columns = {"id": np.arange(len(X))}
    for name, values in zip(NAMES, X.T, strict=True):
        columns[name] = [None if math.isnan(v) else v for v in values.tolist()]
        if not any(v is None for v in columns[name]):
            columns[name] = np.ascontiguousarray(values)
    return columns


def is_tied(model, row, label, other):
    """Whether a row is as near to one center as to another, within 4 units in the last place."""
    distances = np.sort(model.transform(row[None])[0][[label, other]].astype(np.float64))
    eps = np.finfo(row.dtype).eps
    return distances[1] - distances[0] <= 4 * eps * max(distances[1], np.abs(row).max())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_labels_in_a_database_are_those_of_predict_and_of_rules(kind, seed, database):
    dialect, run = database
    model, X = kind(np.random.default_rng(seed))
    found = run(as_columns(X), to_sql(model, NAMES, "points", dialect=dialect))
    expected = model.predict(X)
    apart = [i for i in range(len(X)) if found[i] != expected[i]]
    assert all(is_tied(model, X[i], found[i], expected[i]) for i in apart)
    assert len(apart) <= len(X) // 50
    assert len(set(found)) > 2
    rules = explain(model, X)
    query = rules.to_sql("points", columns=NAMES, dialect=dialect)
    assert run(as_columns(X), query) == rules.predict(X).tolist()


@pytest.mark.parametrize("name", attack.COLUMNS)
def test_queries_answer_as_predict_for_every_kind_of_column_or_not_at_all(name, database):
    dialect, run = database
    rng = np.random.default_rng(len(name))
    table = attack.table_of([*{"numbers", name}], rng, 60)
    model = attack.model_for(table, rng)
    new = attack.table_of([*{"numbers", name}], rng, 40, "never seen")
    new |= {each: [7] * 40 for each in attack.NAMES_OF_QUERY}  # of which no query takes its own
    n_refused = attack.judge(model, new, to_sql(model, dialect=dialect), run)
    assert n_refused in ([0] if name in attack.READ else [40, None])
    rules = explain(model, attack.framed(table))
    n_refused = attack.judge(rules, new, rules.to_sql("points", dialect=dialect), run)
    assert n_refused in ([0] if name in attack.READ else [0, 40, None])
    kinds = {column.name: column.kind for column in model[0].columns_}
    assert kinds.keys() == table.keys()
    assert "text" not in kinds.values()


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        (plain, [np.nan, 1, 1, 1]),
        (plain, [1, 1e200, 1, 1]),
        (plain, [1, np.inf, 1, 1]),
        (plain, [1, -np.inf, 1, 1]),
        (standardized, [1, 1, np.inf, 1]),
        (medians, [1, 1, 1e154, 1]),
        (counts, [1, 1, -1, 1]),
        (observed, [np.nan] * 4),
        (observed, [np.nan, np.inf, 1, 1]),
        (directions, [0, 0, 0, 0]),
    ],
)
def test_what_predict_refuses_has_no_cluster(kind, row, database):
    dialect, run = database
    model, X = kind(np.random.default_rng(0))
    X[3] = row
    with pytest.raises(ValueError, match=r"NaN|inf|overflow|of at least zero|nothing but zeros"):
        model.predict(X[[3]])
    query = to_sql(model, NAMES, dialect=dialect)
    try:
        found = run(as_columns(X), query)
    except subprocess.CalledProcessError:  # PostgreSQL does not square numbers that overflow
        assert np.nanmax(np.abs(row)) > 1e150
        return
    assert found[3] is None
    assert None not in found[:3]


def test_rules_give_an_infinite_cell_no_cluster_as_predict_does(database) -> None:
    dialect, run = database
    rules = explain(KMeans(2, random_state=0).fit(np.c_[[1.0, 2, 8, 9]]), np.c_[[1.0, 2, 8, 9]])
    query = rules.to_sql("points", dialect=dialect, columns=["a"])
    found = run({"id": np.arange(3), "a": np.array([2.0, np.inf, -np.inf])}, query)
    assert found[0] is not None
    assert found[1:] == [None, None]


def test_lengths_that_vanish_when_squared_have_directions(database):
    dialect, run = database
    model = PowerKMeans.from_centers([[1.0, 0.0], [0.0, 1.0]], divergence="cosine")
    X = np.array([[5e-324, 0], [0, 5e-324], [-1e-300, 2e-300], [1e150, 0]])
    columns = {"id": np.arange(4), "x": X[:, 0].copy(), "y": X[:, 1].copy()}
    assert run(columns, to_sql(model, ["x", "y"], dialect=dialect)) == model.predict(X).tolist()


def test_names_that_a_database_takes_for_the_same_are_refused():
    X = pd.DataFrame({"Cluster": [0.0, 1, 8, 9], "cluster 2": [0.0, 0, 1, 1]})
    model = KMeans(2, random_state=0).fit(X)
    with pytest.raises(ValueError, match="name='cluster' is a column of the table: pass another"):
        to_sql(model)
    with pytest.raises(ValueError, match="name='CLUSTER 2' is a column"):
        explain(model, X).to_sql("points", name="CLUSTER 2")
    assert "AS cluster" in to_sql(model, ["x", "y"])
    with pytest.raises(ValueError, match='the database takes "x" and "X" for one name'):
        to_sql(model, ["x", "X"], dialect="sqlite")
    assert '"X"' in to_sql(model, ["x", "X"], dialect="postgresql")
    model = make_pipeline(Prepare(as_={"Cluster": "ignore"}), KMeans(2, random_state=0)).fit(X)
    with pytest.raises(ValueError, match="is a column of the table"):
        to_sql(model)


@pytest.mark.parametrize(("k", "d"), [(95, 3), (91, 1), (3, 95), (1, 2)])
def test_many_centers_and_columns_stay_within_the_limits_of_databases(k, d, database):
    dialect, run = database
    rng = np.random.default_rng(0)
    model, X = KMeans.from_centers(rng.normal(size=(k, d))), rng.normal(size=(40, d))
    names = [f"c{i}" for i in range(d)]
    columns = {"id": np.arange(40), **dict(zip(names, map(np.copy, X.T), strict=True))}
    assert run(columns, to_sql(model, names, dialect=dialect)) == model.predict(X).tolist()


def test_dialects_quote_and_hide_as_documented():
    frame = pd.DataFrame({"a`b": ["it's", "b\\c"] * 5, "n": np.arange(10.0) % 4 + 0.5})
    model = make_pipeline(Prepare(as_={"a`b": "category"}), KMeans(2, random_state=0)).fit(frame)
    query = to_sql(model, table="shop.orders", dialect="bigquery")
    assert query.startswith("SELECT * FROM (SELECT pm_row.*,")
    assert "FROM (SELECT t AS pm_row," in query
    assert "FROM `shop`.`orders` AS t" in query
    assert r"t.`a\`b`" in query
    assert r"'it\'s'" in query or r"'b\\c'" in query
    assert "IF(IS_NAN(CAST(t.`n` + 0 AS FLOAT64)), NULL" in query
    query = to_sql(model, table="shop.orders", dialect="snowflake")
    assert query.startswith("SELECT * FROM (SELECT * EXCLUDE (pm_x0")
    assert 'FROM "shop"."orders" AS t' in query


@pytest.mark.parametrize(
    ("model", "arguments", "said"),
    [
        (SphericalMixture(2, random_state=0), {}, "no nearest center: explain"),
        (EntropyWeightedPowerKMeans(2, random_state=0), {}, "no nearest center: explain"),
        (KMeans(2), {"dialect": "postgres"}, 'did you mean "postgresql"'),
        (KMeans(2), {}, "pass columns="),
        (KMeans(2), {"columns": ["a"]}, "is 1 columns instead of a list of 2"),
        (KMeans(2), {"columns": "x"}, "columns is one text"),
        (OtherKMeans(2, n_init=1), {"columns": ["x"]}, "of another package"),
    ],
)
def test_what_has_no_query_is_refused(model, arguments, said):
    X = np.array([[0.0, 0], [1, 0], [8, 1], [9, 2]])
    with pytest.raises(ValueError, match=said):
        to_sql(model.fit(X), **{"table": "points", **arguments})


def test_a_table_that_has_a_cluster_gets_another_name_and_clipped_values_no_query() -> None:
    model = KMeans.from_centers([[0.0], [9.0]])
    rows = pytest.importorskip("duckdb").connect()
    rows.execute("CREATE TABLE t AS SELECT 7 AS cluster, x FROM (VALUES (1.0), (8.0)) v(x)")
    query = to_sql(model, ["x"], "t", name='the "new" one')
    assert rows.execute(f"{query} ORDER BY x").fetchall() == [(7, 1.0, 0), (7, 8.0, 1)]
    rules = explain(model, [[1.0], [8.0]]).to_sql("t", columns=["x"], name="group")
    assert rows.execute(f"{rules} ORDER BY x").fetchall() == [(7, 1.0, 0), (7, 8.0, 1)]
    clipped = make_pipeline(MinMaxScaler(clip=True), KMeans(2, random_state=0))
    with pytest.raises(ValueError, match="MinMaxScaler clips"):
        to_sql(clipped.fit([[0.0], [1.0], [9.0]]), ["x"])


def test_what_is_one_word_is_no_other() -> None:
    X = pd.DataFrame({"color": np.repeat(["red", "green", "blue"], 8), "size": np.arange(24.0)})
    model = make_pipeline(Prepare(), PowerKMeans(3, random_state=0)).fit(X)
    features, values = in_units(model, X)
    told = _Told(features, values, np.zeros(24, dtype=int), np.ones(24))
    places = {feature.phrase(0.5, np.inf): j for j, feature in enumerate(features)}
    no, yes = (-np.inf, 0.5, False), (0.5, np.inf, False)
    for blue, text in ((yes, "color is blue"), (no, "color is not red and color is not blue")):
        box = {places["color is red"]: no, places["color is blue"]: blue}
        assert told.rule(0, box, np.arange(24)).text == text
