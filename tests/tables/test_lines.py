"""What a row is: several lines of a customer, one variable of a patient, or a series."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score
from tables.answers import clusters_in

from powermeans import PowerKMeans, Prepare, load, open_data, save
from powermeans.errors import TableError
from powermeans_tables.command import failures

N = 90
MONTHS = [f"{one}-{year}" for year in (23, 24) for one in ("Jan", "Feb", "Mär", "Okt", "Dez")]
YEARS, WEEKS = [*map(str, range(2001, 2011))], [f"sales week {week}" for week in range(10)]


@pytest.fixture(scope="module")
def orders() -> pd.DataFrame:
    """Lines in no order, of customers of three groups."""
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(N), 2 + rng.poisson(4, N))
    group, n = who % 3, len(who)
    lines = {
        "order_id": np.arange(n) + 5000,
        "Email": [f"user{one}@mail.com" for one in who],
        "Amount": [f"{one:,.2f} €" for one in rng.normal(np.array([900, 3000, 7000])[group], 99)],
        "Items": rng.integers(1, 9, n),
        "Age": 20 + who % 50,
        "Category": np.array(["Shoes", "Books", "Toys"])[(group + (rng.random(n) < 0.2)) % 3],
        "Gift": np.where(rng.random(n) < 0.4, "yes", "no"),
        "Date": [f"2024-{month:02d}-17" for month in rng.integers(1, 13, n)],
        "Rating": np.array(["low", "medium", "high"])[rng.integers(0, 3, n)],
    }
    return pd.DataFrame(lines).sample(frac=1, random_state=1)


def test_customers_are_means_sums_shares_and_what_is_most_frequent_or_last(orders):
    given = pd.concat([orders, orders[:3].assign(Email=[None, "", " "])])
    prepare = Prepare(per="Email", dates="days", order=[["low", "medium", "high"]]).fit(given)
    found = prepare.joined(given).to_pandas()
    lines = orders.assign(
        Amount=orders["Amount"].str.replace("[ €,]", "", regex=True).astype(float),
        Gift=orders["Gift"] == "yes",
        Rating=orders["Rating"].map({"low": 1, "medium": 2, "high": 3}),
        Date=pd.to_datetime(orders["Date"]),
    )
    of_each = lines.groupby("Email", sort=False)
    assert found["Email"].tolist() == list(of_each.groups)
    for name in ("Amount", "Items", "Age", "Gift", "Rating"):
        np.testing.assert_allclose(found[name], of_each[name].mean())
    np.testing.assert_allclose(found["sum of Amount"], of_each["Amount"].sum())
    assert (found["number of rows"] == of_each.size().to_numpy()).all()
    assert (found["Date"] == of_each["Date"].max().to_numpy()).all()
    most = of_each["Category"].agg(lambda words: words.mode()[0])  # of several, by the alphabet
    assert (found["Category"] == most.to_numpy()).all()
    of_lines = f"of {len(lines) / N:.3g} rows"
    columns = {one.name: f"{one.kind} {one.unit} {one.why}" for one in prepare.columns_}
    assert columns["sum of Amount"] == f"amount € sum {of_lines}"
    assert columns["Gift"] == f"share % share {of_lines}"
    assert columns["Age"] == "number  the same in all rows"
    assert columns["order_id"] == "identifier  because of its name"
    assert "sum of Age" not in columns
    notes = " ".join(one.text for one in prepare.notes_)
    assert f'{len(lines)} rows are joined to {N}, one for each "Email"; 3 rows without it' in notes
    frame = Prepare(per="Email").set_output(transform="pandas").fit_transform(orders)
    assert [*frame.index] == [*found["Email"]]


def test_times_and_places_are_means_on_their_circles_and_choices_the_most_frequent():
    lines = pd.DataFrame({"customer": [*"aaabbcc"], "lat": [0, 0, 50, 40, 60, 0, 0]})
    lines["lon"] = [179, -177, None, 20, 20, 90, -90]
    lines["when"] = ["23:30", "00:30", None, "09:00", "11:00", "06:00", "18:00"]
    lines["likes"] = ["x; y", "x; y", "x", "z", None, "x", "x; z"]
    told = {"when": "clock", "lat": "place", "lon": "place", "likes": "choices"}
    prepare = Prepare(per="customer", as_=told).fit(lines)
    found = prepare.joined(lines).drop(["customer", "number of rows"])
    right = {"when": ["00:00", "10:00", None], "likes": ["x; y", "z", "x"]}
    assert right.items() <= found.to_pydict().items()
    places = found.select(["lat", "lon"]).to_pandas()
    np.testing.assert_allclose(places, [[0, -179], [50, 20], [np.nan] * 2], atol=1e-9)
    kinds = sorted((one.name, one.kind) for one in prepare.columns_)
    told |= {"customer": "identifier", "number of rows": "count"}
    assert kinds == sorted(told.items())


@pytest.mark.filterwarnings("ignore:.*left out")
def test_a_fit_per_customer_predicts_those_of_other_lines_alike_in_all_ways(orders, run):
    orders.to_csv("orders.csv", index=False)
    told = run("fit orders.csv -k 3 -q -o lines.csv").out
    assert f'for each of {N} "Email" (--per Email makes one row of each)' in " ".join(told.split())
    told = run("fit orders.csv -q -k 3 --columns Amount,Category --per 2 -o rows.csv -m of.pm").out
    assert "rows.csv has one row for each" in told
    assert "check this: rows" not in told
    assert "already: pass" in run("predict of.pm rows.csv", code=failures.DATA).err
    rows = pd.read_csv("rows.csv")
    groups = rows["Email"].str.extract(r"(\d+)")[0].astype(int) % 3
    assert adjusted_rand_score(groups, rows["cluster"]) > 0.8
    for how in ("", "--memory-limit 1GB"):
        run("predict of.pm orders.csv -o again.csv", *how.split())
        assert clusters_in("again.csv") == clusters_in("rows.csv")
    assert "100 % of 90 rows stay" in run("fit orders.csv -q --like of.pm -o again.csv").out
    for asked in ("orders.csv --sql joined", "--sql joined --exact"):
        assert 'one for each "Email".\nSELECT' in run(f"explain of.pm {asked}").out
    assert "sum of Amount" in run("predict of.pm orders.csv --report page.html").out
    assert load("of.pm").predict(orders).tolist() == rows["cluster"].tolist()
    data = open_data("orders.csv", columns=[3, 6], prepare=Prepare(per="Email"))
    model = PowerKMeans(3, random_state=0).fit(data)
    save(model, "python.pm")
    few = orders[orders["Email"].isin(rows["Email"][:9])]
    assert (load("python.pm").predict(few) == model.labels_[:9]).all()
    assert adjusted_rand_score(model.labels_, rows["cluster"]) == 1


def test_rows_with_one_variable_each_become_rows_with_a_column_for_each(run):
    rng = np.random.default_rng(0)
    wide = {"patient": [f"P{j}" for j in range(40)], "sex": rng.choice(["f", "m"], 40)}
    wide |= {"height": [f"{one:.2f} m" for one in rng.normal(1.7, 0.1, 40)]}
    wide = pd.DataFrame(wide | {"smoker": rng.choice(["now", "once", "never"], 40)})
    long = wide.melt(["patient", "sex"]).sample(frac=1, random_state=0)
    long = long[(long["patient"] != "P3") | (long["variable"] != "smoker")]
    prepare = Prepare(per="patient").fit(pd.concat([long, long[:1].assign(patient=None)]))
    assert "; 1 row without it left out" in prepare.notes_[-1].text
    found = prepare.joined(long).to_pandas().set_index("patient")
    right = wide.set_index("patient").loc[found.index, found.columns]
    right.loc["P3", "smoker"] = None
    pd.testing.assert_frame_equal(found, right, check_dtype=False)
    assert prepare.columns_[0].kind == "identifier"
    long.to_csv("long.csv", index=False)
    assert "(--per patient does so)" in run("fit long.csv -q -k 2 -o lines.csv").out
    run("fit long.csv -q -k 2 --per patient -o rows.csv -m of.pm")
    run("predict of.pm long.csv -o again.csv")
    assert Path("again.csv").read_text() == Path("rows.csv").read_text()
    assert "in memory" in run("predict of.pm long.csv --memory-limit 1GB", code=failures.DATA).err
    with pytest.raises(TableError, match="has several rows of"):
        prepare.transform(pd.concat([long, long[:1]]))


@pytest.mark.parametrize(
    ("names", "word"),
    [(MONTHS, "mark"), (YEARS, "decision_"), (WEEKS, "octave")],
)
def test_shapes_of_a_series_are_clustered_whatever_its_level(names, word, run):
    rng, group = np.random.default_rng(0), np.arange(60) % 3
    shapes = np.array([np.sin(np.arange(10)), np.cos(np.arange(10)), np.arange(10) / 9])
    rows = np.exp(rng.normal(5, 1, (60, 1))) * (3 + shapes[group] + rng.normal(0, 0.1, (60, 10)))
    rows[0], rows[1, 4] = 7, np.nan
    table = pd.DataFrame(rows, columns=names)
    points = Prepare(series="shape", scale="none").fit_transform(table)
    above = rows - np.nanmean(rows, axis=1, keepdims=True)
    above[1:] /= np.nanstd(rows[1:], axis=1, keepdims=True)
    np.testing.assert_allclose(points, above, atol=1e-12)
    table.to_csv("rows.csv", index=False)
    assert "10 columns are a series" in run("fit rows.csv -q -k 3 -o of.csv").out
    told = run("fit rows.csv -q -k 3 --as-series shape -o of.csv -m of.pm").out
    assert "1 row with one value in the whole series" in told
    run("predict of.pm rows.csv -o again.csv --memory-limit 1GB")
    assert clusters_in("again.csv") == clusters_in("of.csv")
    assert adjusted_rand_score(group[1:], clusters_in("of.csv")[1:]) == 1
    for how in ("rows.csv --sql rows", "--sql rows --exact"):
        assert "no query" in run(f"explain of.pm {how}", code=failures.DATA).err
    two = table.join(table.add_prefix("other "))
    notes = [one.said for one in Prepare(series="shape").fit(two).notes_]
    assert any(re.match("other .* another series", note) for note in notes)
    with pytest.raises(TableError, match="no columns are a series"):
        Prepare(series="shape").fit(table.set_axis([f"{word}{j}" for j in range(10)], axis=1))
