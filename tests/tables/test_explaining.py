"""`explain`, and `fit --like`: rules, queries, and clusters that keep their numbers."""

import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import pytest
from tables.answers import clusters_in

from powermeans import explain, load, what_changed


def month(seed, n=400):
    rng = np.random.default_rng(seed)
    kind = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    return pd.DataFrame(
        {
            "plan": np.array(["free", "team", "firm"])[kind],
            "visits": rng.poisson(np.array([4, 12, 40])[kind]),
            "spend": np.round(rng.lognormal(np.array([1, 3, 5])[kind], 0.3), 2),
        }
    )


@pytest.fixture
def april(run):
    month(4).to_csv("april.csv", index=False)
    month(5).to_csv("may.csv", index=False)
    run("fit april.csv -k 3 -m april.pm -o april_clusters.csv -q")
    return load("april.pm")


def test_rules_are_those_of_python(april, run):
    found = explain(april, pd.read_csv("april.csv"))
    shown = run("explain april.pm april.csv").out
    assert shown == f"{found}\n"
    told = run("explain april.pm april.csv --json").json
    assert told["price"] == found.price
    assert [rule["text"] for rule in told["rules"]] == [rule.text for rule in found.rules]
    assert run("explain april.pm april.csv --rules auto").out == shown
    assert len(run("explain april.pm april.csv --rules 5 --json").json["rules"]) <= 5


@pytest.mark.parametrize("how", ["", "--exact"])
def test_a_query_labels_a_table_as_predict_writes_it(how, april, run):
    query = run(f"explain april.pm may.csv --sql shop --dialect sqlite {how}").out
    rows = pd.read_csv("may.csv")
    with closing(sqlite3.connect(":memory:")) as connection:
        rows.to_sql("shop", connection, index=False)
        found = pd.read_sql_query(query, connection)
    expected = april.predict(rows) if how else explain(april, rows).predict(rows)
    np.testing.assert_array_equal(found["cluster"], expected)
    pd.testing.assert_frame_equal(found.drop(columns="cluster"), rows)
    if how:
        assert run(f"explain april.pm --sql shop --dialect sqlite {how}").out == query


def test_the_next_month_keeps_the_numbers_and_says_what_changed(april, run):
    shown = run("fit may.csv --like april.pm -m may.pm -o may_clusters.csv").out
    may, rows = load("may.pm"), pd.read_csv("may.csv")
    change = what_changed(april, may, rows)
    assert change.stayed > 0.97
    assert "\n".join(str(change).splitlines()[1:]) in shown
    assert clusters_in("may_clusters.csv") == [str(label) for label in may.predict(rows)]
    assert list(may.feature_names_in_) == list(april.feature_names_in_)
    run("fit may.csv --like april.pm --report may.html -q")


def test_columns_of_numbers_are_followed_in_the_scale_of_the_model(run):
    rows = month(4)[["visits", "spend"]]
    rows.to_csv("april.csv", index=False)
    (rows + 3).to_csv("may.csv", index=False)
    for scale in ("standard", "minmax", "none"):
        run(f"fit april.csv -k 3 --scale {scale} -m april.pm -q --name 0=New --name 1=Old")
        shown = run("fit may.csv --like april.pm -m may.pm -q --name 1=Loyal").out
        assert " New " in shown
        assert " Loyal " in shown
        names = run("predict may.pm may.csv --json").json["names"]
        assert (names["0"], names["1"]) == ("New", "Loyal")
        april, may = load("april.pm"), load("may.pm")
        assert what_changed(april, may, rows + 3).stayed > 0.9
        assert "3 rules keep" in run("explain may.pm may.csv").out
