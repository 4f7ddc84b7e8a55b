"""What a report says of clusters and the path of the centers, against sums and tables by hand."""

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
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs
from sklearn.preprocessing import StandardScaler

import powermeans
from powermeans import KMeans, PathRecorder, PowerKMeans, SweepState
from powermeans.app.report.charts import edges_of, line_chart, shares_of
from powermeans.app.report.summaries import name_clusters, summarize
from powermeans.app.report.text import entry, escaped, rounded, visible
from powermeans.app.report.warnings_on_data import along_the_line, count_copies, find_warnings

# Three groups of ten: old and rich, young and rich, young and poor.
AGES = np.repeat([60.0, 20.0, 20.0], 10)
INCOMES = np.repeat([90.0, 90.0, 30.0], 10)
PEOPLE = pd.DataFrame({"age_in_years": AGES, "income": INCOMES})


@pytest.fixture
def text_of(tmp_path):
    def text_of(model, X, **options):
        path = powermeans.report(model, X, tmp_path / "report.html", **options)
        return path.read_text(encoding="utf-8")

    return text_of


def html_of(text, label):
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


def test_a_card_tells_means_in_the_units_of_the_data_and_names_that_are_given(text_of):
    scaler = StandardScaler().fit(PEOPLE)
    scaled = scaler.transform(PEOPLE)
    table = pd.DataFrame(scaled, columns=PEOPLE.columns)
    text = text_of(KMeans(3, init=scaled[[0, 10, 20]]).fit(table), table, scalers=[scaler])
    assert "age_ in_ years 60 on average, 27 above the whole" in card(text, 0)
    assert "income 30 on average, 40 below the whole" in card(text, 2)
    assert "10 rows, 33.3% of all." in card(text, 1)
    assert "The cluster most like it is 1 , “Low age in years, high income”." in card(text, 0)
    model = KMeans(3, init=[[60.0, 90.0], [20.0, 90.0], [20.0, 30.0]]).fit(PEOPLE)
    text = text_of(model, PEOPLE, names={1: "Young & rich\u202e"})
    assert '<a href="#cluster-1">Young &amp; rich\\u202e</a>' in text
    assert "Low income, low age in years" in card(text, 2)
    points = PEOPLE.to_numpy()
    text = text_of(model.fit(points), points, feature_names=["speed", "rain"])
    assert "Low rain, low speed" in card(text, 2)


def test_typical_rows_are_nearest_doubtful_ones_to_another_and_all_have_their_numbers(text_of):
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
        (PowerKMeans.from_centers([[0.0], [4.0]]), "--prove", True),
        (PowerKMeans(2, divergence="poisson").fit([[1.0], [3.0]]), "--prove", False),
    ],
    ids=["soft", "hard", "bound", "no bound"],
)
def test_what_only_some_models_have_is_said_of_these(model, said, is_said, text_of):
    assert (said in text_of(model, np.array([[0.0], [3.0], [3.0]]))) is is_said


def test_bars_hold_the_share_of_the_weight():
    edges = edges_of(np.array([1.0, 2.0, 2.0, np.nan, 3.0]))
    np.testing.assert_array_equal(edges, [0.5, 1.5, 2.5, 3.5])
    shares = shares_of(np.array([1.0, 2.0, np.nan]), np.array([1.0, 3.0, 9.0]), edges)
    np.testing.assert_array_equal(shares, [0.25, 0.75, 0.0])
    # Values far beyond the rest count in the outermost bars.
    values = np.concatenate([np.linspace(0, 1, 999), [1e6]])
    edges = edges_of(values)
    assert edges[-1] < 1.01
    assert shares_of(values, np.ones(1000), edges).sum() == pytest.approx(1.0)


def test_a_mean_has_two_digits_of_the_deviation():
    for value, deviation, expected in (
        (17.96, 6.3, "18.0"),
        (-0.04, 6.3, "0.0"),
        (0.083, 0.26, "0.08"),
        (94.27, 34.0, "94"),
        (1_700_000_060.25, 30.0, "1700000060"),
        (-3.26, 1.0, "−3.3"),
    ):
        assert rounded(value, deviation) == expected
    found = [entry(value, 5.0) for value in (0.07000000000000006, 100.0, 18.43, math.nan)]
    assert found == ["0.07", "100", "18.43", "missing"]


def test_characters_that_deceive_are_shown_as_escapes():
    assert escaped("a<b>\x1b[31m\u202e\u2066\ufeff") == ("a&lt;b&gt;\\x1b[31m\\u202e\\u2066\\ufeff")
    assert visible("\ud800") == "\\ud800"
    assert visible("naïve 名前 👩\u200d🚀") == "naïve 名前 👩\u200d🚀"


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
    said = rf"search, after sweep \d+: the result, inertia {model.inertia_:.6g}"
    assert re.fullmatch(said, last["words"])
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


def test_all_sweeps_of_a_fit_are_recorded_in_their_order_as_one_descent_or_several() -> None:
    path = PathRecorder()
    model = PowerKMeans(3, effort="none", random_state=0, callback=path).fit(PEOPLE)
    assert [one.power for one in path.states] == model.history_.power.tolist()
    np.testing.assert_array_equal(path.centers()[-1], model.cluster_centers_)
    for one in [state(1), state(2), state(1, run=1), state(1), state(2), state(3)]:
        path(one)
    assert [one.sweep for one in path.states] == [1, 2, 3]
    path = PathRecorder()
    powers = [(-1.0, 2), (-2.0, 2), (-1.0, 2), (-2.0, 2), (-2.0, 3), (-3.0, 3)]
    for sweep, (power, n_centers) in enumerate(powers, start=1):
        path(state(sweep, power, n_centers))
    found = [[one.sweep for one in descent] for descent in path.descents()]
    assert found == [[1, 2], [3, 4], [5, 6]]
    assert [centers[0, 0] for centers in path.centers()] == [1.0, 2.0]
    assert PathRecorder().descents() == PathRecorder().centers() == []
    with pytest.raises(ValueError, match="most=1 must be at least 2"):
        PathRecorder(1)


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


def test_higher_values_are_higher_and_numbers_on_axes_are_told_apart() -> None:
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
    far = [100_000.0, 100_400.0]
    chart = line_chart(far, far, x_name="x", y_name="y")
    for anchor in ("middle", "end"):
        texts = re.findall(f'text-anchor="{anchor}">([0-9][^<]*)</text>', chart)
        assert texts == ["100000", "100100", "100200", "100300", "100400"]


POINTS = np.array([[0.0, 1.0], [2.0, 1.0], [10.0, 1.0], [12.0, 5.0]])
LABELS = np.array([0, 0, 1, 1], dtype=np.int32)


def test_sizes_means_and_spreads_are_those_by_hand_where_something_is_set_apart():
    names = ["age", "income"]
    columns, (first, second) = summarize(POINTS, LABELS, 2, names)
    np.testing.assert_allclose(columns.means, [6.0, 2.0])
    np.testing.assert_allclose(columns.deviations, [math.sqrt(26), math.sqrt(3)])
    assert (first.size, first.share, first.nearest) == (2, 0.5, 1)
    assert first.spread == pytest.approx(1.0)
    # (10, 1) and (12, 5) are both 1 and 2 from their mean (11, 3).
    assert second.spread == pytest.approx(math.sqrt(5))
    np.testing.assert_allclose(second.z_scores, [5 / math.sqrt(26), 1 / math.sqrt(3)])
    # Columns that are high and low are told, the most first.
    assert first.distinguishing(names) == [
        ("age", pytest.approx(-5 / math.sqrt(26))),
        ("income", pytest.approx(-1 / math.sqrt(3))),
    ]
    assert second.distinguishing(names, 1) == [("age", pytest.approx(5 / math.sqrt(26)))]
    # Along the line between the means, these are at zero and one.
    of_both = along_the_line(POINTS, LABELS, first, second)
    assert [values.mean() for values in of_both] == [pytest.approx(0.0), pytest.approx(1.0)]
    _, (only,) = summarize(POINTS, np.zeros(4, dtype=np.int32), 1, ["a", "b"])
    assert (only.distinguishing(["a", "b"]), only.nearest) == ([], None)
    with_constant = np.hstack([POINTS, np.full((4, 1), 0.1)])
    _, (first, _) = summarize(with_constant, LABELS, 2, list("abc"))
    assert first.z_scores[2] == pytest.approx(0.0, abs=1e-12)
    _, clusters = summarize(POINTS, LABELS * 2, 3, ["a", "b"])
    assert [(one.size, one.nearest) for one in clusters] == [(2, 2), (0, None), (2, 0)]
    assert np.isnan(clusters[1].mean).all()


def test_nearest_means_are_found_in_blocks_as_by_all_distances(monkeypatch):
    monkeypatch.setattr("powermeans.app.report.summaries._DISTANCES_AT_ONCE", 20)
    points = np.random.default_rng(0).normal(size=(7, 3))
    _, clusters = summarize(points, np.arange(7, dtype=np.int32), 7, list("abc"))
    apart = np.square(points[:, None] - points).sum(axis=2) + np.diag(np.full(7, np.inf))
    assert [one.nearest for one in clusters] == apart.argmin(axis=1).tolist()


@given(seed=st.integers(0, 10_000), n_clusters=st.integers(1, 5))
def test_squares_within_and_between_add_up_dense_and_sparse(seed, n_clusters):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(30, 3)) * (rng.random((30, 3)) < 0.6)
    labels = rng.integers(n_clusters, size=30).astype(np.int32)
    columns, clusters = summarize(points, labels, n_clusters, list("abc"))
    there = [one for one in clusters if one.size]
    within = sum(one.size * one.spread**2 for one in there)
    between = sum(one.size * np.square(one.mean - columns.means).sum() for one in there)
    assert within + between == pytest.approx(30 * np.square(columns.deviations).sum())
    _, thin = summarize(sparse.csr_matrix(points), labels, n_clusters, list("abc"))
    for one, other in zip(clusters, thin, strict=True):
        assert one.spread == pytest.approx(other.spread)
        np.testing.assert_allclose(one.z_scores, other.z_scores, atol=1e-12)


GOOD = np.repeat([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], 50, axis=0)
GOOD += np.random.default_rng(0).normal(size=GOOD.shape)
THREE = np.repeat([0, 1, 2], 50)


def said(points, labels, n_clusters):
    names = [f"c{i}" for i in range(points.shape[1])]
    labels = labels.astype(np.int32)
    return find_warnings(points, labels, *summarize(points, labels, n_clusters, names))


@pytest.mark.parametrize(
    ("ratio", "told"), [(90.0, None), (120.0, "120 times"), (1e60, "1e+60 times")]
)
def test_columns_that_differ_more_than_hundredfold_are_named(ratio, told):
    found = said(GOOD / GOOD.std(axis=0) * [ratio, 1.0], THREE, 3)
    assert ("scales" in found) == (told is not None)
    assert told is None or f"“c0” varies {told} as much as “c1”" in found["scales"]


@pytest.mark.parametrize("n_features", [1, 2, 10, 50])
def test_a_group_cut_in_two_has_no_gap_and_clusters_six_deviations_apart_have_one(n_features):
    rng = np.random.default_rng(0)
    for draw in (rng.normal, rng.random):
        points = draw(size=(600, n_features))
        labels = KMeans(2, random_state=0, n_init=1).fit_predict(points)
        assert "k too large" in said(points, labels, 2)
    if n_features > 1:
        points = rng.normal(size=(600, n_features))
        points[300:, 0] += 6.0
        assert "k too large" not in said(points, np.repeat([0, 1], 300), 2)


@pytest.mark.parametrize(("k", "is_too_large"), [(3, False), (5, True)])
def test_more_centers_than_clouds_are_too_many(k, is_too_large):
    points, _ = make_blobs(600, centers=[[0, 0], [20, 0], [0, 20]], random_state=0)
    labels = PowerKMeans(k, random_state=0).fit(points).labels_
    assert list(said(points, labels, k)) == ["k too large"] * is_too_large


def test_tiny_and_empty_clusters_and_copies_are_told():
    found = said(np.vstack([GOOD, [[100.0, 100.0]]]), np.append(THREE, 4), 5)
    assert found["tiny"].startswith("Cluster 4 has very few points")
    assert found["empty"].startswith("Cluster 3 has no points")
    # A cluster of one is tiny only beside large ones.
    points = np.random.default_rng(0).normal(size=(30, 2))
    assert "tiny" not in said(points[:9], np.repeat([0, 1, 2], [1, 4, 4]), 3)
    found = said(points, np.repeat([0, 1], [1, 29]), 2)
    assert found["tiny"].startswith("Cluster 0 has very few points (less than a tenth of the mean")
    found = said(np.vstack([GOOD, GOOD[:30]]), np.concatenate([THREE, np.zeros(30)]), 3)
    assert found["duplicates"].startswith("30 of 180 rows (17%)")
    grid = np.stack(np.meshgrid(np.arange(300.0), np.arange(300.0)), axis=-1).reshape(-1, 2)
    assert count_copies(grid) == count_copies(grid[:, ::-1].copy() * 1024) == 0


@pytest.mark.parametrize(("value", "is_scaled"), [(0.1, True), (-1.7, False), (1e60, False)])
def test_a_column_of_one_value_has_no_scale(value, is_scaled):
    n = 800_000  # their sum is so far off that they seem to deviate from their mean
    points = np.column_stack([np.random.default_rng(0).normal(size=n), np.full(n, value)])
    if is_scaled:
        points = StandardScaler().fit_transform(points)
    found = said(points, np.repeat([0, 1], n // 2), 2)
    assert ("scales" in found, "“c1”" in found["constant"]) == (False, True)


@given(seed=st.integers(0, 10_000))
def test_copies_are_counted_as_by_comparing_all_rows(seed):
    points = np.random.default_rng(seed).integers(-1, 2, size=(40, 3)).astype(float)
    points[points == 0] *= -1  # some zeros are negative, and equal all the same
    expected = len(points) - len(np.unique(points + 0.0, axis=0))
    thin = sparse.csr_matrix(points)
    thin.eliminate_zeros()
    assert count_copies(points) == count_copies(thin) == expected
