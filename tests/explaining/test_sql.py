"""Queries label rows as models and rules do, in databases that run here."""

import math

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


def plain(rng):
    X = points_of(rng)
    return PowerKMeans(5, effort="fast", random_state=0).fit(X), X


def rounded(rng):
    X = np.round(points_of(rng) / [1, 1, 1, 20])  # centers that are given, and many ties
    return KMeans.from_centers(np.round(rng.normal(0, 3, (6, 4)))), X


def standardized(rng):
    X = points_of(rng)
    model = make_pipeline(StandardScaler(), PowerKMeans(4, effort="fast", random_state=0))
    return model.fit(X), X


def to_range(rng):
    X = points_of(rng)
    return make_pipeline(MinMaxScaler((-1, 2)), KMeans(4, random_state=0)).fit(X), X


def observed(rng):
    X = points_of(rng)
    X[rng.random(X.shape) < 0.2] = np.nan
    X = X[~np.isnan(X).all(axis=1)]
    return PowerKMeans(4, missing="observed", effort="fast", random_state=0).fit(X), X


def directions(rng):
    X = points_of(rng) / [1, 1, 1, 20] + 0.125
    model = PowerKMeans(4, divergence="cosine", effort="fast", random_state=0)
    return model.fit(X), X


def single(rng):
    X = points_of(rng).astype(np.float32) + np.float32(0.1)
    return PowerKMeans(5, effort="fast", random_state=0).fit(X), X


def medians(rng):
    X = points_of(rng)
    return PowerKMeans(4, divergence="manhattan", effort="fast", random_state=0).fit(X), X


def counts(rng):
    X = rng.poisson(rng.gamma(2, 4, (5, 4))[rng.integers(5, size=300)]).astype(float)
    return PowerKMeans(4, divergence="poisson", effort="fast", random_state=0).fit(X), X


def correlated(rng):
    X = points_of(rng)
    return PowerKMeans(4, divergence="mahalanobis", effort="fast", random_state=0).fit(X), X


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
def test_labels_in_a_database_are_those_of_predict(kind, seed, database):
    dialect, run = database
    model, X = kind(np.random.default_rng(seed))
    found = run(as_columns(X), to_sql(model, NAMES, "points", dialect=dialect))
    expected = model.predict(X)
    apart = [i for i in range(len(X)) if found[i] != expected[i]]
    assert all(is_tied(model, X[i], found[i], expected[i]) for i in apart)
    assert len(apart) <= len(X) // 50
    assert len(set(found)) > 2


def people(rng, n=300):
    kind = rng.integers(3, size=n)
    noisy = np.where(rng.random(n) < 0.8, kind, rng.integers(3, size=n))
    frame = pd.DataFrame(
        {
            "id": np.arange(n),
            "plan": np.array(["free", "team's", "firm"])[noisy],
            "sure": np.array(["low", "medium", "high"])[rng.integers(3, size=n)],
            "two": np.array(["left", "right"])[rng.integers(2, size=n)],
            "active": rng.random(n) < 0.5,
            "vip": np.where(rng.random(n) < 0.5, "x", None),
            "paid": np.where(rng.random(n) < 0.5, 1, None),
            "spend": np.round(rng.lognormal(kind * 2, 0.5, n), 2),
            "seats": rng.poisson(np.array([2, 10, 60])[kind]).astype(float),
            "lat": rng.uniform(40, 60, n),
            "lon": rng.uniform(-10, 20, n),
        }
    )
    frame.loc[::17, "seats"] = -999
    frame.loc[::19, "plan"] = "unknown"
    frame.loc[::23, "spend"] = np.nan
    prepare = Prepare(as_={"spend": "log", "id": "ignore"})
    model = make_pipeline(prepare, PowerKMeans(3, missing="observed", random_state=0)).fit(frame)
    frame.loc[::29, ["plan", "two"]] = "never seen"
    columns = {
        name: [None if v != v else v for v in values.tolist()] for name, values in frame.items()
    }
    return model, frame, columns


def test_columns_of_people_are_understood_as_in_prepare(database):
    dialect, run = database
    model, frame, columns = people(np.random.default_rng(0))
    kinds = {column.kind for column in model[0].columns_ if column.is_used}
    assert kinds == {"category", "ordered", "yes/no", "log", "count", "place"}
    assert run(columns, to_sql(model, dialect=dialect)) == model.predict(frame).tolist()


def test_dates_are_days(database):
    dialect, run = database
    days = np.arange("2024-01-01", "2024-03-01", dtype="datetime64[D]")
    frame = pd.DataFrame({"since": days, "size": np.arange(60.0) % 7})
    model = make_pipeline(Prepare(dates="days"), KMeans(3, random_state=0)).fit(frame)
    columns = {"id": np.arange(60), "since": days.astype(str).tolist(), "size": frame["size"]}
    found = run(columns, to_sql(model, dialect=dialect))
    assert found == model.predict(frame).tolist()
    rules = explain(model, frame)
    found = run(columns, rules.to_sql("points", dialect=dialect))
    assert found == rules.predict(frame).tolist()


def test_rules_in_a_database_are_those_of_the_tree(database):
    dialect, run = database
    model, frame, columns = people(np.random.default_rng(1))
    rules = explain(model, frame)
    found = run(columns, rules.to_sql("points", dialect=dialect))
    assert found == rules.predict(frame).tolist()
    for kind in (observed, single, directions):
        model, X = kind(np.random.default_rng(5))
        rules = explain(model, X)
        query = rules.to_sql("points", columns=NAMES, dialect=dialect)
        assert run(as_columns(X), query) == rules.predict(X).tolist()


def test_what_predict_refuses_has_no_cluster(database):
    dialect, run = database
    model, X = plain(np.random.default_rng(0))
    X[3, 1] = np.nan
    found = run(as_columns(X), to_sql(model, NAMES, dialect=dialect))
    assert found[3] is None
    assert None not in found[:3]
    model, X = observed(np.random.default_rng(0))
    X[3] = np.nan
    assert run(as_columns(X), to_sql(model, NAMES, dialect=dialect))[3] is None
    model, X = directions(np.random.default_rng(0))
    X[3] = 0
    assert run(as_columns(X), to_sql(model, NAMES, dialect=dialect))[3] is None


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
    assert query.startswith("SELECT * EXCEPT (pm_x0, pm_x1, pm_d0, pm_d1, pm_least)")
    assert "FROM `shop`.`orders` AS t" in query
    assert r"t.`a\`b`" in query
    assert r"'it\'s'" in query or r"'b\\c'" in query
    assert "IF(IS_NAN(CAST(t.`n` AS FLOAT64)), NULL" in query
    query = to_sql(model, table="shop.orders", dialect="snowflake")
    assert query.startswith("SELECT * EXCLUDE (pm_x0")
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
