"""What the columns of a table are taken for, and what they become."""

import datetime
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from powermeans import KMeans, PowerKMeans, Prepare, explain, load, read_frame, save, to_sql
from powermeans.errors import ArgumentError, TableError
from powermeans_tables.cells.ordered_words import levels_of
from powermeans_tables.preparing.points import Use
from powermeans_tables.preparing.prepare import doubts_on_others

N = 60
RNG = np.random.default_rng(0)
WORDS = {
    "number": [f"{value:.3f}" for value in RNG.normal(size=N)],
    "amount": [f"${value:,.2f}" for value in RNG.uniform(900, 5000, N)],
    "count": [str(value) for value in RNG.integers(0, 900, N)],
    "share": [f"{value:.1f}%" for value in RNG.uniform(0, 100, N)],
    "yes/no": ["yes" if value else "no" for value in RNG.integers(2, size=N)],
    "category": [["red", "green", "blue"][value] for value in RNG.integers(3, size=N)],
    "ordered": [["low", "medium", "high"][value] for value in RNG.integers(3, size=N)],
    "identifier": [f"A-{value}" for value in RNG.permutation(N)],
    "text": [f"what was said on the {value}th day, and by whom it was said" for value in range(N)],
    "constant": ["same"] * N,
    "empty": [""] * N,
}
RANGES = ["under 18", "18-24", "25-34", "35-64", "65+"]


def rows_of(prepare, table):
    return prepare.read_again(prepare.as_fitted(table), Use())


def kind_of(values, name="column", **options):
    other = {"other": RNG.normal(size=len(values))}
    (column, _) = Prepare(**options).fit({name: values} | other).columns_
    return column.kind


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("customer_id", RNG.integers(0, 20, N), "identifier"),
        ("order no", RNG.permutation(N), "identifier"),
        ("row", np.arange(N), "identifier"),
        ("ticket", RNG.permutation(N) + 100, "identifier"),
        ("reference", RNG.choice(90_000, N, replace=False) + 10_000, "identifier"),
        ("postcode", RNG.integers(10_000, 99_999, N), "identifier"),
        ("code", [f"{value:05d}" for value in RNG.integers(0, 99, N)], "identifier"),
        ("serial", RNG.integers(2**53, 2**60, N), "identifier"),
        ("region", RNG.integers(1, 5, N), "category"),
        ("sex", RNG.integers(1, 3, N), "category"),
        ("visits", RNG.integers(1, 5, N), "count"),
        ("is_new", RNG.integers(0, 2, N), "yes/no"),
        ("is_new", RNG.integers(0, 2, N).astype(bool), "yes/no"),
        ("age", [RANGES[value] for value in RNG.integers(5, size=N)], "ordered"),
        ("city", [f"place {value}" for value in RNG.integers(0, 30, N)], "text"),
        ("weight", [f"{value:.1f} kg" for value in RNG.uniform(1, 9, N)], "number"),
        ("day", pd.date_range("2024-01-01", periods=N), "ignore"),
        ("lasting", [f"{value}:{value % 60:02d}" for value in RNG.integers(1, 59, N)], "number"),
        ("id", np.arange(N), "identifier"),
        *(("column", cells, kind) for kind, cells in WORDS.items()),
    ],
)
def test_the_kind_of_a_column_is_told_by_its_cells_and_its_name(name, values, kind):
    assert kind_of(values, name) == kind


@pytest.mark.parametrize("tick", ["x", "✓", "1", "yes", 1, "Phone"])
def test_a_blank_beside_ticks_means_no(tick):
    is_so = RNG.integers(0, 2, N).astype(bool)
    table = {"has_phone": [tick if so else None for so in is_so], "age": RNG.normal(40, 9, N)}
    prepare = Prepare(scale="none").fit(table)
    assert prepare.columns_[0].kind == "yes/no"
    np.testing.assert_array_equal(prepare.transform(table)[:, 0], is_so)
    assert Prepare().fit(table | {"has_phone": [tick] * N}).columns_[0].kind == "constant"
    unknown = ["unknown" if tick == "yes" else "NA", *table["has_phone"][1:]]
    assert np.isnan(prepare.transform(table | {"has_phone": unknown})[0, 0])
    assert Prepare().fit(table | {"has_phone": unknown}).columns_[0].kind == "constant"
    if tick == "x":
        mixed = [cell and "xX"[row % 2] for row, cell in enumerate(table["has_phone"])]
        assert Prepare().fit(table | {"has_phone": mixed}).columns_[0].kind == "yes/no"


@pytest.mark.parametrize(
    ("name", "values", "kind", "said"),
    [
        ("answer", ["agree", "disagree", "neutral", "Prefer not to say"] * 9, "ordered", ""),
        ("WEIGHT", RNG.uniform(0.2, 3, N), "ignore", 'rows seem to have weights, "WEIGHT", left'),
        ("lead", ["<0.5", "3.25", ">6", "4"] * 9, "number", 'limits are read, .*: "lead"'),
        ("vote", ["support", "oppose", "No opinion", "Not sure"] * 9, "category", ""),
        ("income", ["<=50K", ">50K"] * 9, "category", ""),
        ("delta", ["<-5", "-6", "-7.5", "-8"] * 9, "number", 'taken for missing.*"<-5"'),
        ("value", RNG.normal(size=N), "number", "each row has one value of a variable: pivot"),
        ("price", [f"{n},345円" for n in RNG.integers(1, 90, N)], "amount", ""),
        ("made", [f"201{n % 9}年{1 + n % 12}月1日" for n in range(N)], "ignore", "dates do not"),
        ("createdAt", 10**9 + RNG.integers(0, 10**9, N), "ignore", "dates do not"),
        ("last seen", 10**12 + RNG.integers(0, 10**12, N), "ignore", "dates do not"),
        ("reads", 10**9 + RNG.integers(0, 10**9, N) // 10**5 * 10**5, "count", ""),
    ],
)
def test_what_a_column_says_of_rows_that_are_no_plain_measurements(name, values, kind, said):
    table = {name: values, "variable": np.arange(len(values)) % 7 + 0.5}
    prepare = Prepare().fit(table)
    assert prepare.columns_[0].kind == kind
    notes = [note.text for note in prepare.notes_]
    assert not said or any(re.match(said, note) for note in notes)
    if name == "vote":
        assert len(prepare.columns_[0].words) == 4
    if name == "lead":
        np.testing.assert_allclose(
            prepare.in_units(prepare.transform(table))[:3, 0], [0.25, 3.25, 6]
        )
        alone = prepare.transform({name: ["<0.5", ">6"], "variable": [1, 2]})
        np.testing.assert_array_equal(alone[:, 0], prepare.transform(table)[[0, 2], 0])
    if name == "WEIGHT":
        assert len(Prepare(as_={name: "number"}).fit(table).used) == 2
        assert len(Prepare(shares={name: 2}).fit(table).used) == 2
        assert len(Prepare().fit({**table, name: 9 * values}).used) == 2  # of bodies or things
        assert len(Prepare().fit({name: values}).used) == 1


@pytest.mark.parametrize("kind", ["number", "category", "ignore", "identifier", "yes/no"])
def test_what_the_user_knows_better_counts(kind):
    values = RNG.integers(0, 2, N)
    assert kind_of(values, as_={"column": kind}) in {kind, "category"}
    with pytest.raises(ArgumentError, match=r'"colum".*"column"'):
        Prepare(as_={"colum": kind}).fit({"column": values})


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("as_", ["x"]), ("as_", {"x": None}), ("order", "a<b"), ("order", ["a<b"]),
        ("order", [1, 2]), ("order", [["a", "b", "A"]]), ("order", np.array(["a", "b"])),
        ("codes", {"x": 5}),
        ("scale", "max"), ("codes", "x"), ("codes", -9), ("decimal", ";"), ("thousands", "x"),
        ("thousands", ","), ("dates", "dayfirst"),
    ],
)  # fmt: skip
def test_parameters_are_checked_where_a_fit_begins(parameter, value):
    prepare = Prepare(**{"decimal": ",", parameter: value})
    with pytest.raises(ValueError, match=f'{parameter}|"None"'):
        prepare.fit({"x": [1, 2.5, 3]})


def test_columns_that_a_fit_has_added_do_not_count_unless_they_are_asked_for():
    given = {name: np.arange(9) % 4 for name in ("distance", "x", "cluster.7", "sure", "name")}
    prepare = Prepare().fit(given)
    assert [one.name for one in prepare.used] == ["distance", "x"]
    (note,) = prepare.notes_
    assert note.text == (
        'columns of a former fit do not count: "cluster.7", "sure", "name" '
        "(as_={'cluster.7': 'category'} would use it)"
    )
    assert len(Prepare(as_={"sure": "number"}).fit(given).used) == 3
    assert len(Prepare().fit({"sure": [1, 5, 2], "name": [4, 7, 9]}).used) == 2
    own = {"cluster": given["x"], "distance": given["x"] % 3, "x": given["x"]}
    assert len(Prepare().fit(own).used) == 3


def test_each_column_has_the_same_share_of_all_distances_or_the_one_it_is_given():
    table = {name: WORDS[name] for name in ("number", "count", "category", "yes/no", "ordered")}
    prepare = Prepare()
    points = prepare.fit_transform(table)
    names = list(prepare.get_feature_names_out())
    assert sorted(names) == ["category: blue", "category: green", "category: red", "count",
                             "number", "ordered", "yes/no"]  # fmt: skip
    for name in ("number", "count", "ordered"):
        values = points[:, names.index(name)]
        assert (values.mean(), values.std()) == pytest.approx((0, 1))
    assert prepare.contributions_ == pytest.approx(dict.fromkeys(table, 1 / 5))
    of_words = [j for j, name in enumerate(names) if name.startswith("category")]
    assert points[:, of_words].var(axis=0).sum() == pytest.approx(1)
    found = Prepare(shares={"category": 2, "count": 0.5}).fit(table).contributions_
    expected = {name: {"category": 2, "count": 0.5}.get(name, 1) / 5.5 for name in table}
    assert found == pytest.approx(expected)
    for share in (0, -1, "2", np.nan, np.inf):
        with pytest.raises(ArgumentError, match="must be numbers above 0"):
            Prepare(shares={"count": share}).fit(table)
    others = {"id": [f"u{row}" for row in range(N)], "lat": RNG.random(N), "lon": RNG.random(N)}
    for names, said in (
        (["coun"], 'did you mean "count"'),
        (["id"], r"\(identifier.*as_={'id'"),
        (["lat", "lon"], "two shares of one place"),
    ):
        with pytest.raises((ArgumentError, TableError), match=said):
            Prepare(shares=dict.fromkeys(names, 2)).fit(table | others)


def test_numbers_come_back_in_their_units_and_words_as_words():
    table = {name: WORDS[name] for name in ("number", "amount", "category", "ordered", "yes/no")}
    prepare = Prepare()
    found = prepare.inverse_transform(prepare.fit_transform(table))
    np.testing.assert_allclose(found["number"], np.array(WORDS["number"], float))
    assert f"${found['amount'][0]:,.2f}" == WORDS["amount"][0]
    for name in ("category", "ordered"):
        assert list(found[name]) == WORDS[name]
    shares = prepare.in_units(prepare.transform(table).mean(axis=0)[None])[0]
    at = list(prepare.get_feature_names_out()).index("category: red")
    assert shares[at] == pytest.approx(np.mean(np.array(WORDS["category"]) == "red"))


def test_weights_count_as_copies():
    weights = RNG.integers(1, 4, N)
    table = {name: WORDS[name] for name in ("number", "category", "count")}
    prepare = Prepare().fit(table, sample_weight=weights)
    copied = Prepare().fit({name: np.repeat(each, weights) for name, each in table.items()})
    for one, two in zip(prepare.columns_, copied.columns_, strict=True):
        assert one.kind == two.kind
        # Words come by how many cells have them.
        np.testing.assert_allclose(sorted(one.scales), sorted(two.scales))
        np.testing.assert_allclose(sorted(one.offsets), sorted(two.offsets))


def test_a_part_of_the_rows_without_a_value_changes_no_scale():
    """Rows are added up 65 536 at a time, some of which have no value in a column."""
    rng, n_rows = np.random.default_rng(0), 140_000
    late = np.where(np.arange(n_rows) < 70_000, np.nan, 1.7e9 + rng.normal(size=n_rows))
    table, weights = {"late": late, "x": rng.normal(size=n_rows)}, rng.uniform(0.1, 3, n_rows)
    prepare = Prepare(as_={"late": "number"}, scale="standard").fit(table, sample_weight=weights)
    expected = np.sqrt(np.cov(late[70_000:], aweights=weights[70_000:]))
    assert prepare.columns_[0].scales[0] == pytest.approx(expected, rel=1e-3)


def test_codes_for_missing_values_are_missing_unless_they_are_kept():
    answers = RNG.integers(1, 6, (N, 3))
    table = {f"q{j}": answers[:, j].copy() for j in range(3)} | {"age": RNG.integers(18, 80, N)}
    for name, code in (("q0", 99), ("q1", -9), ("age", 999)):
        table[name][:5] = code
    table["q2"][7] = 99  # once, but another column has it
    prepare = Prepare()
    is_missing = np.isnan(prepare.fit_transform(table))
    assert is_missing.sum(axis=0).tolist() == [5, 5, 1, 5]
    (note,) = (note for note in prepare.notes_ if note.is_doubt)
    assert all(code in note.text for code in ("99", "-9", "999", '"q0"'))
    np.testing.assert_array_equal(np.isnan(prepare.transform(table)), is_missing)
    assert not np.isnan(Prepare(codes="none").fit_transform(table)).any()
    n_missing = np.isnan(Prepare(codes=["q0-q1=3"]).fit_transform(table)).sum(axis=0).tolist()
    n_told = (np.sum(table[name] == 3) for name in ("q0", "q1"))
    assert n_missing == [*n_told, 0, 5]  # no column has a code 99 then


def test_values_that_only_look_like_codes_stay():
    for values in ([9.99, 19.99, 49.99, 99.99], range(1, 10), [-3, -1, 0, 2, 5, 9], range(100)):
        assert not np.isnan(Prepare().fit_transform({"x": np.tile(values, N)})).any()


def test_nothing_is_transformed_before_a_fit():
    with pytest.raises(NotFittedError):
        Prepare(as_={"x": "number"}).transform({"x": [1, 2]})


@pytest.mark.parametrize("mark", ["; ", ", ", "|"])
def test_each_choice_in_a_cell_is_a_column_and_all_count_as_one(mark):
    chosen = [RNG.permutation(["tea", "milk", "rye bread"])[: 1 + i % 3] for i in range(N)]
    table = {"buys": [mark.join(each) for each in chosen], "age": RNG.normal(size=N)}
    prepare = Prepare()
    points = prepare.fit_transform(table)
    assert prepare.columns_[0].kind == "choices"
    assert prepare.contributions_["buys"] == pytest.approx(0.5)
    assert {*prepare.get_feature_names_out()} == {f"buys: {one}" for one in chosen[2]} | {"age"}
    back = prepare.inverse_transform(points)["buys"]
    assert [{*each.split("; ")} for each in back] == [{*each} for each in chosen]
    other = prepare.transform({"buys": ["rye bread", "", "beer"], "age": [0.0] * 3})
    assert prepare.inverse_transform(other[:1])["buys"] == ["rye bread"]
    assert np.isnan(other[1, :3]).all()
    street = [f"{name}, {place}" for name in "ABC" for place in ("Old Road", "Mill Lane")] * 9
    assert kind_of(street) == "category"


def test_times_of_day_lie_on_a_circle(tmp_path):
    times = ["23:50", "00:10", "12:00", "18:30"] * 9
    prepare = Prepare(scale="none")
    points = prepare.fit_transform({"bed": times, "x": RNG.normal(size=len(times))})[:, :2]
    assert prepare.columns_[0].kind == "clock"
    apart = np.linalg.norm(points[0] - points[1:4], axis=1)
    np.testing.assert_allclose(
        apart, 2 * np.sin(np.pi / 24 * np.array([1 / 3, 11 + 5 / 6, 16 / 3]))
    )
    assert prepare.inverse_transform(np.hstack([points, points[:, :1]]))["bed"] == times
    typed = [datetime.time(*map(int, each.split(":"))) for each in times]
    assert kind_of(typed) == "clock"
    assert kind_of(times, "duration") == "number"
    assert kind_of(["03:12", "00:45", "11:20"] * 9) == "number"
    with pytest.raises(ArgumentError, match="no times of day"):
        Prepare(as_={"x": "clock"}).fit({"x": [1, 2, 3]})
    path = tmp_path / "bed.csv"
    path.write_text("\n".join(["bed", *times]))
    model = KMeans(2, random_state=0).fit(path)
    assert "bed is between 18:00 and 06:00" in str(explain(model, path))
    with pytest.raises(ArgumentError, match="times of day, which queries do not read"):
        to_sql(model)


def test_places_lie_on_the_globe_in_kilometers():
    table = {"lat": [52.52, 48.14, -33.87, 0.0], "lon": [13.40, 11.58, 151.21, 179.9]}
    prepare = Prepare()
    points = prepare.fit_transform(table)
    assert np.linalg.norm(points[0] - points[1]) == pytest.approx(504, abs=3)  # Berlin to Munich
    found = prepare.inverse_transform(points)
    for name, values in table.items():
        np.testing.assert_allclose(found[name], values)
    near = prepare.transform({"lat": [0.0], "lon": [-179.9]})
    assert np.linalg.norm(near - points[3]) < 30


@pytest.mark.parametrize(
    ("words", "levels"),
    [
        (["never", "often", "always"], [1, 4, 6]),
        (["Stimme voll zu", "teils/teils", "stimme gar nicht zu"], [5, 3, 1]),
        (["65+", "18-24", "under 18"], [3, 2, 1]),
        (["2 - good", "1 - bad", "3 - best"], [2, 1, 3]),
        (["$100,000+", "<$25,000", "$25,000-$49,999"], [3, 1, 2]),
        (["red", "blue"], None),
        (["A1", "B2"], None),
    ],
)
def test_words_with_an_order(words, levels):
    found = levels_of(words)
    assert found == (None if levels is None else dict(zip(words, levels, strict=True)))
    assert levels_of(["b", "a"], [["a", "b", "c"]]) == {"a": 1, "b": 2}


def test_what_a_fit_has_not_seen_is_no_word_that_it_knows():
    two = Prepare().fit({"plan": ["a", "b"] * 9})
    assert two.in_units(two.transform({"plan": ["a", "b", "z"]}))[:, 0].tolist() == [1, 0, 0.5]
    prepare = Prepare().fit({"c": ["a", "b", "c"] * 9, "x": RNG.normal(size=27)})
    found = prepare.in_units(prepare.transform({"c": ["a", "z", None], "x": [0.0, 0.0, 0.0]}))
    assert found[:, :3].tolist()[:2] == [[1, 0, 0], [0, 0, 0]]
    assert np.isnan(found[2, :3]).all()
    again = rows_of(prepare, {"c": ["a", "z", "z"], "x": [0.0, 1.0, 2.0]})
    assert again.encoder.unknown["c"] == {"z": 2}
    with pytest.raises(TableError, match='no "x" in 1 column'):
        prepare.transform({"c": ["a"]})


@pytest.mark.parametrize(
    ("fitted", "given", "doubt"),
    [
        ("{} kg", "{} lb", ""),  # which is converted
        ("{} kg", "{} KG", ""),
        ("{} kg", "{} m", '"x" is in m, and is in kg in the model'),
        ("{} kg", "{}", '"x" has no unit, and is in kg in the model'),
        ("{}", "{} kg", '"x" is in kg, and has no unit in the model'),
        ("${}.10", "€{}.10", '"x" is in €, and is in $ in the model'),
        ("€{}.10", "EUR {}.10", ""),
        ("{}.10 eur", "{}.10 EUR", ""),
        ("{} %", "{} %", ""),
    ],
)
def test_a_table_in_another_unit_than_the_fit_is_converted_or_doubted(fitted, given, doubt):
    prepare = Prepare().fit({"x": [fitted.format(n) for n in range(11, 71, 3)]})
    table = {"x": [given.format(n) for n in range(11, 71, 3)]}
    rows = rows_of(prepare, table)
    assert [note.said for note in doubts_on_others(prepare, rows)] == [doubt] * bool(doubt)
    factor = 0.45359237 if "lb" in given else 0.01 if "%" in given else 1.0
    found = prepare.in_units(prepare.transform(table))[:, 0]
    np.testing.assert_allclose(found, (np.arange(11, 71, 3) + 0.1 * (".1" in given)) * factor)


@pytest.mark.parametrize(
    ("forms", "said"),
    [
        (["${},074.20", "€{},910.73", "£{},100.00"], '"x" ($, €, £)'),
        (["EUR {}.1K", "USD {}.1K"], '"x" (EUR, USD)'),
        (["€{}", "${}", "n/a"], '"x" (€, $)'),
    ],
)
def test_amounts_in_several_currencies_are_doubted(forms, said):
    amounts = [form.format(n) for n in range(20, 40) for form in forms]
    prepare = Prepare().fit({"x": amounts, "y": RNG.normal(size=len(amounts))})
    assert [one.kind for one in prepare.columns_] == ["text", "number"]
    told = f"left out, since amounts are in several currencies: {said}"
    assert [note.said for note in prepare.notes_ if note.is_doubt] == [told]


@pytest.mark.parametrize("container", [pd.DataFrame, pa.table, dict])
def test_tables_of_all_kinds_give_the_same_and_a_pipeline_is_saved(container, tmp_path):
    table = {name: WORDS[name] for name in ("number", "category", "ordered", "identifier")}
    model = make_pipeline(Prepare(), PowerKMeans(3, random_state=0)).fit(container(table))
    save(model, tmp_path / "model.pm")
    again = load(tmp_path / "model.pm")
    labels = model.predict(container(table))
    np.testing.assert_array_equal(again.predict(container(table)), labels)
    np.testing.assert_array_equal(model.predict(table), labels)
    assert clone(model[0]).get_params() == model[0].get_params()


def test_ranges_without_gaps_stand_for_words_where_k_is_chosen():
    """An unrelated question does not look like two clusters."""
    answers = RNG.integers(0, 2, 3000)
    prepare = Prepare()
    points = prepare.fit_transform({"x": RNG.normal(size=3000), "asked": answers})
    drawn = np.sort(prepare.in_units(prepare.spread_out(points, 0))[:, 1])
    assert np.diff(drawn).max() < 0.02
    assert drawn[[0, -1]] == pytest.approx([-0.5, 1.5], abs=0.02)
    colors = np.array(["red", "green", "blue"])[RNG.integers(0, 3, 3000)]
    points = prepare.fit_transform({"x": RNG.normal(size=3000), "color": colors})
    drawn = prepare.spread_out(points, 0)[:, 1:]
    np.testing.assert_allclose(drawn.sum(axis=1), points[:, 1:].sum(axis=1), atol=1e-12)
    for word in range(3):
        own = points[:, 1 + word] == points[:, 1 + word].max()
        np.testing.assert_allclose(drawn[own].mean(axis=0), points[own, 1:][0], atol=0.05)


def test_zeros_tails_and_single_values_far_from_all_others_are_doubted():
    rng = np.random.default_rng(1)
    values, tails = rng.normal(100, 5, 200), rng.permutation(np.exp(np.linspace(-6, 6, 200)))
    zeros = np.where(np.arange(200) % 20 == 0, 0, values)
    slip = np.where(np.arange(200) == 17, 1e6, values)
    for name, column, hint in (
        ("zeros", zeros, 'codes=["0"]'),
        ("tails", tails, "'log'"),
        ("slip", slip, "row 18"),
    ):
        prepare = Prepare().fit({name: column, "other": values})
        (note,) = (note for note in prepare.notes_ if note.is_doubt)
        assert hint in note.text
        assert f'"{name}"' in note.text
    children = np.arange(200) % 3  # where zero is where counts begin
    assert Prepare().fit({"x": values, "y": values - 40, "children": children}).notes_ == []
    prepare = Prepare(as_={"tails": "log"})
    points = prepare.fit_transform({"tails": tails, "other": values})
    np.testing.assert_allclose(prepare.inverse_transform(points)["tails"], tails)
    np.testing.assert_allclose(prepare.in_units(points)[:, 0], tails)


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        (["709 EUR", "7.995 EUR", "31.940 EUR"], [709, 7995, 31940]),
        (["£7.995", "£709", "£3.999"], [7995, 709, 3999]),
        (["1 kg", "500 g", "2.5 kg", "3 kg"], [1, 0.5, 2.5, 3]),
        (["1.250 kg", "500 g", "2.500 kg"], [1.25, 0.5, 2.5]),
        (["1.0132e+30", "2e29", "3e28"], [1.0132e30, 2e29, 3e28]),
        (["12", "13", "see note", "15", "9"], [12, 13, np.nan, 15, 9]),
        (["$5.3M", "$800K", "$0", "-$1.2bn", "($2m)"], [5.3e6, 8e5, 0, -1.2e9, -2e6]),
        (["USD 1.5M", "USD 300k", "USD 12"], [1.5e6, 3e5, 12]),
        (["1,5 Mio €", "800 Tsd. €", "2 Mrd. €", "0 €"], [1.5e6, 8e5, 2e9, 0]),
        (["1.234 Mio €", "1.500 Mio €"], [1.234e6, 1.5e6]),
        (["12k", "9k", "1.5k"], [12e3, 9e3, 1500]),
        (["5K", "10K", "800m", "2M"], [5e3, 10e3, np.nan, 2e6]),
        (["12 k", "5 M", "7"], [12e3, 5e6, 7]),
        (["8.1/10", "7/10", "3.5/10"], [8.1, 7, 3.5]),
        (["300 K", "310 K", "290 K"], [300, 310, 290]),  # of temperature
        (["2:21:34", "42:39", "1:00:00"], [8494, 2559, 3600]),
        (["5:42 /km", "4:44 /km", "10:00 /km"], [342, 284, 600]),
        (["0:42 h", "1:44 h", "12:00 h"], [2520, 6240, 43200]),
        (np.array([90_061_000, "NaT", 7], "m8[ms]"), [90_061, np.nan, 0.007]),
    ],
)
def test_numbers_are_read_as_they_are_meant(values, numbers):
    found = Prepare(scale="none").fit_transform({"x": values, "y": np.arange(len(values)) * 1.5})
    np.testing.assert_allclose(found[:, 0], numbers)


@pytest.mark.parametrize(
    ("words", "said", "is_doubt"),
    [
        (["low"] * 40 + ["high"] * 39, '"low" (40 rows), "high" (39 rows) in "x"', True),
        (["low"] * 3, '"low" (3 rows) in "x"', False),
        (["see 3"], '"see 3" (1 row) in "x"', True),
        (["NA", "-", ".", "n/a", "unknown"] * 9, "", False),
    ],
)
def test_words_among_numbers_are_named(words, said, is_doubt):
    numbers = [f"{value:.2f}" for value in RNG.normal(size=200 - len(words))]
    table = {"x": words + numbers, "y": RNG.normal(size=200)}
    found = [(note.said, note.is_doubt) for note in Prepare().fit(table).notes_]
    assert found == [(f"taken for missing, since no numbers: {said}", is_doubt)] * bool(said)


def test_a_percentage_with_words_behind_it_is_no_number():
    shares = ["5% or so", *(f"{value}%" for value in range(30, 60))]
    (note,) = Prepare().fit({"x": shares, "y": RNG.normal(size=31)}).notes_
    assert note.said == 'taken for missing, since no numbers: "5% or so" (1 row) in "x"'


@pytest.mark.parametrize(
    ("text", "numbers", "way_out"),
    [
        ('a,b\n1,585\n2,"1,526"', [585, 1526], 'decimal=","'),
        ("a;b\n1;585\n2;1.526", [585, 1526], 'decimal="."'),
        ("a;b\n1;585\n2;1,526", [585, 1526], 'decimal=","'),
        ("a;b\n1;2.019\n2;8.814", [2019, 8814], 'decimal="."'),
        ("a,b\n1,2.019\n2,8.814", [2.019, 8.814], 'thousands="."'),
        ("a,b\n1,0\n2,8.814", [0, 8.814], 'thousands="."'),
        ("a,b\n1,999\n2,8.814", [999, 8.814], 'thousands="."'),
        ("a;b;c\n1;585;7,25 km\n2;1.526;18,5 km", [585, 1526], ""),
        ("a;b;c\n1;585;7.25 km\n2;1,526;18.5 km", [585, 1526], ""),
        ("a;b;c\n1;585;24,84 %\n2;1.526;8,91 %", [585, 1526], ""),
        ("a;b;c\n1;585;24,84 km\n2;1,526;8,91 km", [585, 1.526], 'thousands=","'),
        ("a;b;c\n1;0.123;4.5\n2;12.345;9", [0.123, 12.345], ""),
    ],
)
def test_a_mark_of_thousands_is_told_by_other_numbers_or_doubted(text, numbers, way_out, tmp_path):
    (tmp_path / "a.csv").write_text(text)
    table = read_frame(tmp_path / "a.csv")
    prepare = Prepare(scale="none")
    np.testing.assert_allclose(prepare.fit_transform(table)[:, 1], numbers)
    doubts = [note.text for note in prepare.notes_ if " is taken for " in note.text]
    assert [way_out in doubt for doubt in doubts] == [True] * bool(way_out)
    assert all(any(f" for {each:.12g} (" in doubt for each in numbers) for doubt in doubts)
    np.testing.assert_allclose(prepare.transform(table.slice(1))[0, 1], numbers[1])


def test_a_unit_is_that_of_the_fit_and_a_suffix_multiplies():
    given = {"mass": ["1 kg", "2.5 kg", "9 kg"], "paid": ["$1.5M", "$2M", "$9M"], "n": [1, 5, 2]}
    prepare = Prepare(scale="none").fit(given)
    later = {"mass": ["500 g", "20 g", "4 g"], "paid": ["$800K", "$20K", "$3K"], "n": [1, 5, 2]}
    np.testing.assert_allclose(
        prepare.transform(later)[:, :2], [[0.5, 8e5], [0.02, 2e4], [0.004, 3e3]]
    )


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["5.3 zillion", "4.1 gazillion", "7.25 squillion", "8.5 dozen"], '"x"'),
        (["120/80", "110 / 70", "131/85"], "two numbers, such as 120/80"),
    ],
)
def test_numbers_that_cannot_be_compared_are_left_out_and_that_is_told(cells, said):
    prepare = Prepare().fit({"x": cells, "age": [20, 40, 61, 70][: len(cells)]})
    assert [one.kind for one in prepare.columns_] == ["text", "count"]
    assert said in prepare.notes_[0].text


def test_columns_are_named_by_text_and_orders_may_be_arrays():
    frame = pd.DataFrame({0: ["low", "high", "mid"], 1: [1, 2, 4]})
    order = np.array([["high", "mid", "low"]])
    columns = Prepare(as_={1: "category"}, order=order).fit(frame).columns_
    assert [one.kind for one in columns] == ["ordered", "category"]
    assert columns[0].words == ["high", "mid", "low"]
    for given, said in (
        ({"as_": {2: "number"}}, r'no column "2": there are 0, 1$'),
        ({"as_": {"0": "ordred"}}, r'did you mean "ordered"\?$'),
        ({"order": [[1, 2]]}, "no column has one of the words 1, 2"),
        ({"order": [["low", "mid", "high", "Low"]]}, "has a word twice"),
    ):
        with pytest.raises(ArgumentError, match=said):
            Prepare(**given).fit(frame)


def test_a_mark_that_is_told_counts_and_orders_have_to_be_of_words_that_are_there():
    table = {"x": ["1.000 km", "2.500 km", "9.750 km"], "y": ["a", "b", "a"], "z": [0.5, 1.5, 3]}
    for decimal, first in ((".", 1.0), (",", 1000.0)):
        found = Prepare(scale="none", decimal=decimal).fit_transform(table)
        assert found[0, 0] == first
    with pytest.raises(ArgumentError, match="no column has one of the words high, low"):
        Prepare(order=[["low", "high"]]).fit(table)
    with pytest.raises(ArgumentError, match='"y" has words that the order lacks: b'):
        Prepare(order=[["a", "c"]]).fit(table)
    with pytest.raises(ArgumentError, match='"x" is no place'):
        Prepare(as_={"x": "place"}).fit(table)


def test_times_have_a_unit_and_it_is_told_how_they_are_read():
    table = {
        "start": ["13:07:05", "9:11:09", "3:09:23"],
        "pace": ["5:42 /km", "4:44 /km", "6:01 /km"],
    }
    prepare = Prepare().fit(table)
    assert [(one.kind, one.unit) for one in prepare.columns_] == [
        ("number", "s"),
        ("number", "s/km"),
    ]
    (note,) = prepare.notes_
    assert '"start" in seconds (13:07:05 taken for 13 h 7 min 5 s)' in note.text
    assert prepare.transform(table)[:, 1].std() == pytest.approx(1)


def test_dates_of_several_forms_are_dates_and_those_in_doubt_are_told():
    given = {"a": ["2024-01-31", "31.01.2024", "01.02.2024"], "b": ["1/2/2024", "3/2/2024", ""]}
    prepare = Prepare(dates="days", scale="none")
    points = prepare.fit_transform(given)
    np.testing.assert_array_equal(points[:, 0] - points[0, 0], [0, 0, 1])
    assert points[1, 1] - points[0, 1] == 2
    assert '1/2/2024 in "b"' in prepare.notes_[0].text
    again = Prepare(dates="month-first", scale="none").fit(given)
    assert again.transform(given)[1, 1] - again.transform(given)[0, 1] == 59 + 1
    told = Prepare().fit({**given, "c": [1, 5, 9]}).notes_
    assert [note.text for note in told] == ['dates do not count: "a", "b" (dates="days" uses them)']


def test_contributions_of_other_points_and_scales_are_those_of_their_variances():
    rng = np.random.default_rng(0)
    given = {"a": rng.normal(size=50), "b (cm)": 3 * rng.normal(size=50)}
    plain = Prepare(scale="none").fit(given)
    variances = np.array([np.var(column) for column in given.values()])
    np.testing.assert_allclose(list(plain.contributions_.values()), variances / variances.sum())
    scaled = Prepare(scale="standard").fit(given)
    assert (plain.scale_, plain.is_scaled, scaled.is_scaled) == ("none", False, True)
    points = scaled.transform({name: column * [1.0] for name, column in given.items()})
    points[:, 1] *= 2
    assert scaled.measure(points).contributions_["b (cm)"] == pytest.approx(0.8)


def test_columns_share_a_unit_by_names_that_say_what_they_are():
    rng, words = np.random.default_rng(0), ["red", "blue"] * 20
    amounts, counts = rng.normal(50, [[9.0], [30.0]], (2, 40)), rng.integers(1, 90, 40)
    for names, scale in {
        ("c1", "c2"): "standard",
        ("1", "2"): "standard",
        ("2019", "2020"): "none",
        ("pixel 1", "pixel 2"): "none",
        ("width (cm)", "height (cm)"): "none",
        ("width (cm)", "mass (kg)"): "standard",
    }.items():
        prepare = Prepare()
        spreads = prepare.fit_transform(dict(zip(names, amounts, strict=True))).std(axis=0)
        assert prepare.scale_ == scale
        assert (spreads == pytest.approx([1, 1])) == (scale == "standard")
    assert Prepare().fit_transform(rng.dirichlet([1, 2, 3], N)).std() < 0.5  # shares
    assert Prepare().fit({"2019": amounts[0], "2020": counts}).scale_ == "standard"
    pixels = {"pixel 1": amounts[0], "pixel 2": amounts[1]}
    beside = Prepare().fit({**pixels, "colour": words})
    assert [*map(beside.done, beside.columns_)][:2] == ["one scale for all numbers"] * 2
    assert len({one.scales[0] for one in beside.columns_[:2]}) == 1
    for shares in ({}, {"pixel 1": 3}, {"pixel 1": 3, "pixel 2": 2}):
        assert Prepare(shares=shares).fit({**pixels, "colour": words}).scale_ == "shared"
        assert Prepare(shares=shares).fit(pixels).scale_ == "none"
