"""What a report says of clusters, rows and the path of the centers, against tables made by hand."""

from __future__ import annotations

import json
import math
import re
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.preprocessing import StandardScaler

import powermeans
from powermeans import KMeans, PathRecorder, PowerKMeans, SweepState
from powermeans.app.report.charts import edges_of, line_chart, shares_of
from powermeans.app.report.summaries import name_clusters, summarize
from powermeans.app.report.text import entry, escaped, rounded, visible

# Three groups of ten: old and rich, young and rich, young and poor.
AGES = np.repeat([60.0, 20.0, 20.0], 10)
INCOMES = np.repeat([90.0, 90.0, 30.0], 10)
PEOPLE = pd.DataFrame({"age_in_years": AGES, "income": INCOMES})


@pytest.fixture
def text_of(tmp_path):
    """A function that writes a report and reads its text."""

    def text_of(model, X, **options):
        path = powermeans.report(model, X, tmp_path / "report.html", **options)
        return path.read_text(encoding="utf-8")

    return text_of


def html_of(text, label):
    """The card of a cluster."""
    start = text.index(f'<details class="cluster" id="cluster-{label}"')
    return text[start : text.index("</details>", start)]


def card(text, label):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html_of(text, label)))


def examples(text, label):
    """The rows of the table of a card, cell by cell, below each heading."""
    table = html_of(text, label).partition('<table class="rows">')[2]
    found = {}
    for body in table.split("<tbody>")[1:]:
        title, *rows = re.findall(r"<tr>(.*?)</tr>", body)
        cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]
        found[re.sub("<[^>]*>", "", title).partition(":")[0]] = cells
    return found


def steps_of(text):
    data = text.partition('id="data">')[2].partition("</script>")[0]
    return json.loads(data)["annealing"]["steps"]


def inertia_at(points, centers):
    return float((cdist(points, np.array(centers)) ** 2).min(axis=1).sum())


def names_of(points, labels, columns):
    points = np.asarray(points, dtype=float).reshape(len(labels), -1)
    labels = np.asarray(labels, dtype=np.int32)
    _, clusters = summarize(points, labels, max(labels) + 1, columns)
    return name_clusters(clusters, columns, lambda one, f: f"{one.mean[f]:.0f}")


@pytest.mark.parametrize(
    ("points", "labels", "columns", "names"),
    [
        # Mean and sd of age: 33.3 and 18.9; of income: 70 and 28.3.
        (PEOPLE, np.repeat([0, 1, 2], 10), ["age_in_years", "income"],
         ["High age in years, high income", "Low age in years, high income",
          "Low income, low age in years"]),
        ([0, 1, 20, 22, 24, 26, 60, 61], [0, 1, 2, 2, 2, 2, 3, 3], ["price"],
         ["Low price (price: 0)", "Low price (price: 1)", "Near the average", "High price"]),
        ([0, 0, 1], [0, 1, 2], ["x"], ["Low x (cluster 0)", "Low x (cluster 1)", "High x"]),
        ([[9, 9, 6], [9, 9, 2], [0, 0, 0], [0, 0, 8]], [0, 1, 2, 2], ["x", "y", "z"],
         ["High x, high y, high z", "High x, high y, low z", "Low x, low y"]),
    ],
    ids=["columns", "means", "numbers", "a third column"],
)  # fmt: skip
def test_a_cluster_is_named_after_what_tells_it_apart(points, labels, columns, names):
    assert names_of(points, labels, columns) == names


@given(seed=st.integers(0, 5000), n_clusters=st.integers(1, 12), n_features=st.integers(1, 4))
def test_no_two_clusters_have_the_same_name(seed, n_clusters, n_features):
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 3, size=(15, n_features))
    labels = np.append(rng.integers(n_clusters, size=14), n_clusters - 1)
    found = names_of(points, labels, [f"c{number}" for number in range(n_features)])
    assert len(set(found)) == n_clusters


def test_names_that_are_given_stand_in_the_place_of_others(text_of):
    model = KMeans(3, init=[[60.0, 90.0], [20.0, 90.0], [20.0, 30.0]]).fit(PEOPLE)
    text = text_of(model, PEOPLE, names={1: "Young & rich\u202e"})
    assert '<a href="#cluster-1">Young &amp; rich\\u202e</a>' in text
    assert "Low income, low age in years" in card(text, 2)
    points = PEOPLE.to_numpy()
    text = text_of(model.fit(points), points, feature_names=["speed", "rain"])
    assert "Low rain, low speed" in card(text, 2)


def test_characters_that_deceive_are_shown_as_escapes():
    assert escaped("a<b>\x1b[31m\u202e\u2066\ufeff") == ("a&lt;b&gt;\\x1b[31m\\u202e\\u2066\\ufeff")
    assert visible("\ud800") == "\\ud800"
    assert visible("naïve 名前 👩\u200d🚀") == "naïve 名前 👩\u200d🚀"


def test_the_answer_says_how_many_of_what_how_good_and_how_sure(text_of):
    points = np.array([[0.0], [2.0], [10.0], [12.0]])
    model = PowerKMeans.from_centers([[1.0], [11.0]])
    optimality = powermeans.optimality_gap(points, model)
    text = text_of(model, points, source="folder/shops.csv", optimality=optimality)
    answer = re.sub(r"<[^>]*>", "", text.partition('class="answer">')[2].partition("</div>")[0])
    # The variance is 26, of which 1 is left within clusters.
    assert answer == (
        "The 4 rows of shops.csv form 2 clusters, which differ most in column 0."
        "The clusters explain 96% of the variance of the rows; the largest holds 50% of the rows, "
        "the smallest 50%."
        "100% of the rows are clearly nearer to the center of their cluster than to any other; "
        "as a whole they are proved to be optimal."
    )


def test_a_card_tells_means_in_the_units_of_the_data_beside_the_whole(text_of):
    scaler = StandardScaler().fit(PEOPLE)
    scaled = scaler.transform(PEOPLE)
    table = pd.DataFrame(scaled, columns=PEOPLE.columns)
    text = text_of(KMeans(3, init=scaled[[0, 10, 20]]).fit(table), table, scalers=[scaler])
    assert "age_ in_ years 60 on average, 27 above the whole" in card(text, 0)
    assert "income 30 on average, 40 below the whole" in card(text, 2)
    assert "10 rows, 33.3% of all." in card(text, 1)
    assert "The cluster most like it is 1 , “Low age in years, high income”." in card(text, 0)


def test_typical_rows_are_nearest_to_the_center_and_doubtful_ones_to_another(text_of):
    points = np.array([0.5, 4.0, 0.0, -2.0, 0.0, 4.5, 3.0, 10.0, 7.0])[:, None]
    text = text_of(PowerKMeans.from_centers([[0.0], [10.0]]), points)
    found = examples(text, 0)
    # Row 5 is a copy of row 3.
    assert [row[:2] for row in found["Typical"]] == [["3", "0"], ["1", "0.5"], ["4", "−2"]]
    assert [row[0] for row in found["Doubtful"]] == ["6", "2", "7"]
    assert found["Doubtful"][0] == ["6", "4.5", "1", "1.22 times as far"]
    # Of seven rows only that of 4.5 is less than 1.25 times as far from 10.
    assert "86% of its rows are clearly nearer" in card(text, 0)
    assert "<strong>89%</strong> of the rows are clearly nearer" in text


def test_rows_have_the_numbers_that_were_given_and_missing_values_are_said(text_of):
    points = np.array([[1.0, np.nan], [2.0, 3.0], [50.0, 60.0], [51.0, np.nan]])
    model = PowerKMeans(2, missing="observed", random_state=0).fit(points)
    text = text_of(model, points, row_numbers=[10, 20, 30, 40])
    rows = [*examples(text, 0)["Typical"], *examples(text, 1)["Typical"]]
    lacking = sorted((row[0], "missing" in row) for row in rows)
    assert lacking == [("10", True), ("20", False), ("30", False), ("40", True)]


@pytest.mark.parametrize(
    ("model", "said", "is_said"),
    [
        # With m = 2 memberships are inverse to squared distances: 1, and 9/10 of both others.
        (powermeans.FuzzyCMeans.from_centers([[0.0], [4.0]]), "a row is 93% in its own", True),
        (PowerKMeans.from_centers([[0.0], [4.0]]), "memberships of the model", False),
        (PowerKMeans(2, random_state=0).fit([[1.0], [3.0]]), "--prove", True),
        (PowerKMeans(2, divergence="poisson").fit([[1.0], [3.0]]), "--prove", False),
    ],
    ids=["soft", "hard", "bound", "no bound"],
)
def test_what_only_some_models_have_is_said_of_these(model, said, is_said, text_of):
    assert (said in text_of(model, np.array([[0.0], [3.0], [3.0]]))) is is_said


def test_bars_hold_the_share_of_the_weight_and_leave_out_missing_values():
    edges = edges_of(np.array([1.0, 2.0, 2.0, np.nan, 3.0]))
    np.testing.assert_array_equal(edges, [0.5, 1.5, 2.5, 3.5])
    shares = shares_of(np.array([1.0, 2.0, np.nan]), np.array([1.0, 3.0, 9.0]), edges)
    np.testing.assert_array_equal(shares, [0.25, 0.75, 0.0])
    # Values far beyond the rest count in the outermost bars.
    values = np.concatenate([np.linspace(0, 1, 999), [1e6]])
    edges = edges_of(values)
    assert edges[-1] < 1.01
    assert shares_of(values, np.ones(1000), edges).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("n_rows", [900, 30_000])
def test_small_clusters_have_examples_and_count_as_much_as_they_hold(n_rows, text_of):
    points = np.random.default_rng(0).normal(size=(n_rows, 2))
    points[:60] += 100.0  # 60 rows of a cluster of their own, of which a sample has a few
    points[:30] = [52.0, 52.0]  # in between
    model = PowerKMeans.from_centers([[0.0, 0.0], [100.0, 100.0]])
    text = text_of(model, points, max_points=1000)
    assert len(examples(text, 1)["Typical"]) == 3
    share = int(re.search(r"(\d+)% of its rows are clearly", card(text, 1))[1])
    assert abs(share - 50) <= 8
    assert ("drawn by chance" in text) == (n_rows > 1000)
    clear = re.search(r"<strong>([\d.]+)%</strong> of the rows are clearly", text)
    assert float(clear[1]) == pytest.approx(100 * (1 - 30 / n_rows), abs=0.6)


def test_a_mean_has_two_digits_of_the_deviation_and_an_entry_no_zeros_that_the_data_lacks():
    for value, deviation, expected in (
        (17.96, 6.3, "18.0"), (-0.04, 6.3, "0.0"), (0.083, 0.26, "0.08"), (94.27, 34.0, "94"),
        (1_700_000_060.25, 30.0, "1700000060"), (-3.26, 1.0, "−3.3"),
    ):  # fmt: skip
        assert rounded(value, deviation) == expected
    found = [entry(value, 5.0) for value in (0.07000000000000006, 100.0, 18.43, math.nan)]
    assert found == ["0.07", "100", "18.43", "missing"]


@pytest.mark.parametrize("n_clusters", [1, 12, 13, 100])
def test_many_clusters_are_folded_and_few_are_open(n_clusters, text_of):
    points = np.repeat(np.arange(n_clusters, dtype=float), 2)[:, None] * 10
    text = text_of(PowerKMeans.from_centers(points[::2]), points)
    assert text.count('<details class="cluster"') == n_clusters
    n_open = len(re.findall(r'<details class="cluster" id="cluster-\d+" open>', text))
    assert n_open == (n_clusters if n_clusters <= 12 else 0)


def trapped(most=1000):
    """Points on which the search ends far below the annealing."""
    rng = np.random.default_rng(32)
    places = rng.normal(scale=20, size=(12, 2)) * rng.choice([0.2, 3.0], size=(12, 1))
    points = np.concatenate([place + rng.normal(size=(15, 2)) for place in places])
    recorder = PathRecorder(most)
    return points, recorder, PowerKMeans(9, random_state=1, callback=recorder).fit(points)


@pytest.mark.parametrize("most", [1000, 20])
def test_each_step_says_the_inertia_of_its_centers_and_the_last_is_the_result(most, text_of):
    points, recorder, model = trapped(most)
    text = text_of(model, points, annealing=recorder)
    steps = steps_of(text)
    last = steps[-1]
    assert inertia_at(points, last["centers"]) == pytest.approx(model.inertia_, rel=1e-4)
    assert f"<dt>inertia</dt><dd>{model.inertia_:.6g}</dd>" in text
    assert last["words"] == f"search, after sweep 34: the result, inertia {model.inertia_:.6g}"
    np.testing.assert_allclose(last["centers"], model.cluster_centers_, atol=1e-3)
    first_descent = recorder.descents()[0][-1].centers
    assert inertia_at(points, first_descent) > 1.02 * model.inertia_
    # Centers keep their places from one solution to the next.
    for before, after in pairwise(steps):
        if after["jump"]:
            apart = cdist(before["centers"], after["centers"])
            matched = linear_sum_assignment(apart)
            assert np.trace(apart) == pytest.approx(apart[matched].sum(), rel=1e-3)
    found = [(one, re.search(r"inertia ([\d.]+)", one["words"])) for one in steps]
    said = [(one, float(inertia[1])) for one, inertia in found if inertia]
    # Of sweeps whose next one was not kept it says none.
    assert len(said) == (len(steps) - 1 if most == 1000 else sum(one["jump"] for one in steps))
    for one, inertia in said:
        assert inertia_at(points, one["centers"]) == pytest.approx(inertia, rel=1e-3)
    searched = [inertia for one, inertia in said if one["jump"]]
    assert searched == sorted(searched, reverse=True)


def test_sweeps_with_more_centers_are_not_steps_of_the_path(text_of):
    """They have less inertia; where there are no others, the path is the result."""
    points, recorder, model = trapped()
    more = np.vstack([model.cluster_centers_, [[0.0, 0.0]]])
    for sweep, moved in enumerate((more, more + 0.1), start=len(recorder.states) + 1):
        shift = math.sqrt(more.size) * 0.1
        recorder(SweepState(0, sweep, -math.inf, 12.5, 12.5, shift, 0.0, moved))
    assert {len(state.centers) for state in recorder.states} == {9, 10}
    steps = steps_of(text_of(model, points, annealing=recorder))
    assert {len(one["centers"]) for one in steps} == {9}
    assert not any("12.5" in one["words"] for one in steps)
    recorder, shift = PathRecorder(), math.sqrt(20)
    for sweep, (start, inertia) in enumerate([(0, 9.0), (1, 8.0), (50, 7.0), (51, 6.0)], start=1):
        recorder(SweepState(0, sweep, -1.0, 1.0, inertia, shift, 0.0, more + start))
    assert [one.inertia for one in recorder.improvements] == [6.0]
    (step,) = steps_of(text_of(model, points, annealing=recorder))
    assert step["words"] == f"the result, inertia {model.inertia_:.6g}"


# The recorder of that path, and charts.


def state(sweep: int, power: float = -1.0, n_centers: int = 2, run: int = 0) -> SweepState:
    centers = np.full((n_centers, 1), float(sweep))
    return SweepState(run, sweep, power, 1.0, 1.0, math.sqrt(n_centers), 0.0, centers)


def test_all_sweeps_of_a_fit_are_recorded_in_their_order_without_those_of_others() -> None:
    path = PathRecorder()
    model = PowerKMeans(3, effort="none", random_state=0, callback=path).fit(PEOPLE)
    assert [one.power for one in path.states] == model.history_.power.tolist()
    np.testing.assert_array_equal(path.centers()[-1], model.cluster_centers_)
    for one in [state(1), state(2), state(1, run=1), state(1), state(2), state(3)]:
        path(one)
    assert [one.sweep for one in path.states] == [1, 2, 3]


@given(most=st.integers(2, 9), n_sweeps=st.integers(1, 200))
def test_at_most_so_many_are_kept_evenly_with_the_first_and_the_last(most, n_sweeps) -> None:
    path = PathRecorder(most)
    for sweep in range(1, n_sweeps + 1):
        path(state(sweep))
        assert path.states[-1].sweep == sweep
        assert len(path.states) <= most
    sweeps = [one.sweep for one in path.states]
    assert sweeps[0] == 1
    gaps = np.diff(sweeps[:-1])
    assert len(set(gaps.tolist())) <= 1
    if n_sweeps > 1:
        assert len(sweeps) > min(most, n_sweeps) // 2


def test_a_descent_begins_where_the_power_rises_or_centers_come_or_go() -> None:
    path = PathRecorder()
    powers = [(-1.0, 2), (-2.0, 2), (-1.0, 2), (-2.0, 2), (-2.0, 3), (-3.0, 3)]
    for sweep, (power, n_centers) in enumerate(powers, start=1):
        path(state(sweep, power, n_centers))
    found = [[one.sweep for one in descent] for descent in path.descents()]
    assert found == [[1, 2], [3, 4], [5, 6]]
    assert [centers[0, 0] for centers in path.centers()] == [1.0, 2.0]


def test_nothing_recorded_is_no_descent_and_too_few_cannot_be_kept() -> None:
    assert PathRecorder().descents() == PathRecorder().centers() == []
    with pytest.raises(ValueError, match="most=1 must be at least 2"):
        PathRecorder(1)


@pytest.mark.parametrize("seed", range(3))
def test_a_descent_goes_on_only_from_the_centers_in_which_the_sweep_before_it_ended(seed) -> None:
    """Also where points overlap, so that other starts are no farther than a sweep moves centers."""
    points = np.random.default_rng(seed).normal(size=(120, 6))
    recorder = PathRecorder()
    PowerKMeans(3, random_state=seed, callback=recorder).fit(points)
    descents = recorder.descents()
    assert len(descents) > 4
    for descent in descents:
        for before, after in pairwise(descent):
            moved = np.linalg.norm(after.centers - before.centers)
            assert moved == pytest.approx(after.center_shift, rel=1e-6, abs=1e-9)
    for one, other in pairwise(descents):
        moved = np.linalg.norm(other[0].centers - one[-1].centers)
        assert moved != pytest.approx(other[0].center_shift, rel=1e-6)


def places(chart: str) -> np.ndarray:
    line = re.search(r'class="first" d="M([^"]*)"', chart)
    assert line is not None
    return np.array([pair.split() for pair in line[1].split("L")], dtype=float)


NUMBERS = st.floats(-1e300, 1e300) | st.sampled_from([math.nan, math.inf])


@given(values=st.lists(NUMBERS, min_size=1, max_size=50), is_log=st.booleans())
def test_any_numbers_make_a_chart_within_its_frame(values: list[float], is_log: bool) -> None:
    chart = line_chart(range(len(values)), values, x_name="x", y_name="y", is_log=is_log)
    ElementTree.fromstring(chart)
    if 'class="first"' in chart:
        assert ((places(chart) >= 0) & (places(chart) <= [320, 190])).all()


def test_higher_values_are_higher_and_further_ones_to_the_right() -> None:
    chart = line_chart([1, 2, 3], [5.0, 9.0, 7.0], x_name="<script>", y_name='"&', mark=2)
    assert "<script>" not in chart
    assert ElementTree.fromstring(chart).get("aria-label") == '"& by <script>'
    rights, downs = places(chart).T
    assert (np.diff(rights) > 0).all()
    assert downs[1] < downs[2] < downs[0]
    assert f'class="mark" d="M{rights[1]:.1f} ' in chart
    # Equal ratios are equal heights on a logarithmic scale.
    _, downs = places(line_chart([1, 2, 3], [1, 10, 100], x_name="", y_name="", is_log=True)).T
    assert np.ptp(np.diff(downs)) == pytest.approx(0.0, abs=0.11)


def test_numbers_that_differ_in_late_digits_are_told_apart_on_both_axes() -> None:
    far = [100_000.0, 100_400.0]
    chart = line_chart(far, far, x_name="x", y_name="y")
    for anchor in ("middle", "end"):
        texts = re.findall(f'text-anchor="{anchor}">([0-9][^<]*)</text>', chart)
        assert texts == ["100000", "100100", "100200", "100300", "100400"]


@given(low=st.integers(0, 1000), range_=st.integers(3, 10**6))
def test_an_axis_has_three_to_eight_round_numbers(low: int, range_: int) -> None:
    chart = line_chart([low, low + range_], [1.0, 1.0], x_name="x", y_name="y")
    below = re.findall(r'text-anchor="middle">([^<]*)</text>', chart)
    assert 3 <= len(set(below) - {"x"}) <= 8
