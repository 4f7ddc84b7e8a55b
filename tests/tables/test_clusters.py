"""What a report says of clusters, against sums and tables by hand; the path of the centers."""

import math
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist

from powermeans import KMeans, PowerKMeans
from powermeans.engine import PathRecorder, SweepState
from powermeans.explaining.summaries import Tally
from powermeans_tables.command.clusters import about_rows
from powermeans_tables.command.options import ADDED
from powermeans_tables.report.overview import warnings_on
from powermeans_tables.report.rows import Rows
from powermeans_tables.report.subject import Subject
from powermeans_tables.report.text import decimals_of, escaped, fixed

# Three groups of ten: old and rich, young and rich, young and poor.
AGES = np.repeat([60.0, 20.0, 20.0], 10)
INCOMES = np.repeat([90.0, 90.0, 30.0], 10)
PEOPLE = pd.DataFrame({"age_in_years": AGES, "income": INCOMES})


def summarize(points, labels, n_clusters, names, weights=None):
    tally = Tally(np.zeros((n_clusters, len(names))))
    tally.add(points, np.asarray(labels, dtype=np.int32), weights)
    return tally.summaries(names)


def subject_of(points, labels, columns, centers=None, **about):
    points = np.asarray(points, dtype=float).reshape(len(labels), -1)
    labels = np.asarray(labels, dtype=np.int32)
    if centers is None:
        centers = [points[labels == label].mean(axis=0) for label in range(max(labels) + 1)]
    model = SimpleNamespace(
        feature_names_in_=columns,
        labels_=labels,
        cluster_centers_=np.array(centers),
        transform=lambda X: cdist(X, centers),
        get_params=lambda deep: {},
    )
    return Subject.of(model, points, **about)


def names_of(points, labels, columns):
    return subject_of(points, labels, columns).profile.names


@pytest.mark.parametrize(
    ("points", "labels", "columns", "names"),
    [
        # Mean and sd of age: 33.3 and 18.9; of income: 70 and 28.3.
        (PEOPLE, np.repeat([0, 1, 2], 10), ["age_in_years", "income"],
         ["Higher age in years, higher income", "Lower age in years, higher income",
          "Lower income, lower age in years"]),
        ([0, 1, 20, 22, 24, 26, 60, 61], [0, 1, 2, 2, 2, 2, 3, 3], ["price"],
         ["Lower price (price: 0)", "Lower price (price: 1)", "Near the average", "Higher price"]),
        # Costs are negative, and the lowest are not low.
        ([-60, -61, -20, -21, -3, -4], [0, 0, 1, 1, 2, 2], ["costs"],
         ["Lower costs", "Near the average", "Higher costs"]),
        ([0, 0, 1], [0, 1, 2], ["x"], ["Lower x (cluster 0)", "Lower x (cluster 1)", "Higher x"]),
        ([[9, 9, 6], [9, 9, 2], [0, 0, 0], [0, 0, 8]], [0, 1, 2, 2], ["x", "y", "z"],
         ["Higher x, higher y, higher z", "Higher x, higher y, lower z", "Lower x, lower y"]),
    ],
    ids=["columns", "means", "signs", "numbers", "a third column"],
)  # fmt: skip
def test_a_cluster_is_named_after_what_tells_it_apart(points, labels, columns, names):
    assert names_of(points, labels, columns) == names


@given(seed=st.integers(0, 5000), n_clusters=st.integers(1, 12), n_features=st.integers(1, 4))
def test_no_two_clusters_have_the_same_name(seed, n_clusters, n_features):
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 3, size=(15, n_features))
    labels = np.append(rng.integers(n_clusters, size=15 - n_clusters), np.arange(n_clusters))
    found = names_of(points, labels, [f"c{number}" for number in range(n_features)])
    assert len(set(found)) == n_clusters


def test_a_row_is_sure_on_the_first_third_of_the_way_to_another_center():
    # With so many rows that none of them draws its own center by much.
    points = np.concatenate([[-9.0, 2.9, 3.1, 5.9, 6.2, 15.0], np.zeros(9999), np.full(9999, 9.0)])
    labels = np.repeat([0, 1, 0, 1], [3, 3, 9999, 9999])
    centers = np.array([[0.0], [9.0]])
    rows = Rows.of(subject_of(points, labels, ["x"], centers), 30_000)
    ways = np.array([-9.0, 2.9, 3.1, 3.1, 2.8, -6.0]) / 9
    np.testing.assert_allclose(rows.ways[:6], ways, atol=1e-3)
    assert rows.sure_share() == pytest.approx(1 - 2 / len(points))
    assert rows.nearest(0, 1) == [6]
    assert rows.nearest(0, 3, -1) == [0, 2, 1]
    assert Rows.of(subject_of([0.0, 1.0, 4.0], [0, 0, 0], ["x"])).sure_share() is None


def test_how_sure_a_row_is_falls_along_the_line_to_the_nearest_other_center():
    centers = np.array([[0.0, 0.0, 0.0], [6.0, 0.0, 0.0], [0.0, 60.0, 0.0]]) + 1e6
    points = centers[0] + np.array([[0.0, 0, 0], [1, 0, 9], [3, 0, 0], [2, -5, 0], [-1, 0, 0]])
    model = KMeans(3, init=centers, max_iter=1).fit(centers)
    told = about_rows(model, points, np.zeros(5, dtype=np.int32), ADDED)
    np.testing.assert_allclose(told["sure"], [1, 2 / 3, 0, 1 / 3, 1], atol=1e-9)
    np.testing.assert_array_equal(told["second_cluster"], 1)
    np.testing.assert_allclose(told["distance"], np.linalg.norm(points - centers[0], axis=1))
    holed = KMeans(3, init=centers, max_iter=1, missing="observed").fit(centers)
    points[1, 2] = np.nan
    sure = about_rows(holed, points, np.zeros(5, dtype=np.int32), ADDED)["sure"]
    np.testing.assert_allclose(sure, [1, 2 / 3, 0, 1 / 3, 1], atol=1e-9)


def test_a_row_that_lacks_values_is_not_typical():
    points = np.array([[0.0, np.nan], [1.0, 1.0], [-1.0, 2.0], [50.0, 50.0]])
    model = PowerKMeans(2, missing="observed", random_state=0).fit(points)
    rows = Rows.of(Subject.of(model, points))
    label = model.labels_[0]
    assert rows.away[0] < rows.away[1]
    assert 0 not in rows.nearest(label, 3)


def test_a_row_that_alone_draws_its_center_is_not_sure_for_that():
    """Between random halves of noise in many columns, a center is near since the row is in it."""
    points = np.random.default_rng(0).normal(size=(40, 5000))
    labels = np.repeat([0, 1], 20)
    assert Rows.of(subject_of(points, labels, None)).sure_share() < 0.1
    points[labels == 1] += 1.0
    assert Rows.of(subject_of(points, labels, None)).sure_share() == 1.0


@pytest.mark.parametrize(
    ("value", "deviation", "expected"),
    [
        (17.96, 6.3, "18.0"),
        (-0.04, 6.3, "0.0"),
        (0.083, 0.26, "0.08"),
        (94.27, 34.0, "94"),
        (2019.2, 5.0, "2019.2"),
        (2019.2, 500.0, "2,019"),
        (-1.388e-17, 0.0, "0"),
        (1_700_000_060.25, 30.0, "1,700,000,060"),
        (-3.26, 1.0, "−3.3"),
        (math.nan, 1.0, "missing"),
        (-2.5e60, 1e59, "−2.5e+60"),
    ],
)
def test_a_mean_has_two_digits_of_the_deviation(value, deviation, expected):
    assert fixed(value, decimals_of(deviation, 2)) == expected


def test_characters_that_deceive_are_shown_as_escapes():
    assert escaped("a<b>\x1b[31m\u202e\u2066\ufeff") == ("a&lt;b&gt;\\x1b[31m\\u202e\\u2066\\ufeff")
    assert escaped("\ud800") == "\\ud800"
    assert escaped("naïve 名前 👩\u200d🚀") == "naïve 名前 👩\u200d🚀"


# The recorder of the path of the centers.


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
    with pytest.raises(ValueError, match="most=1 must be a number in"):
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


POINTS = np.array([[0.0, 1.0], [2.0, 1.0], [10.0, 1.0], [12.0, 5.0]])
LABELS = np.array([0, 0, 1, 1], dtype=np.int32)


def test_sizes_means_and_spreads_are_those_by_hand_where_something_is_set_apart():
    names = ["age", "income"]
    columns, (first, second) = summarize(POINTS, LABELS, 2, names)
    np.testing.assert_allclose(columns.means, [6.0, 2.0])
    np.testing.assert_allclose(columns.deviations, [math.sqrt(26), math.sqrt(3)])
    assert (first.size, first.share) == (2, 0.5)
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
    _, (only,) = summarize(POINTS, np.zeros(4, dtype=np.int32), 1, ["a", "b"])
    assert only.distinguishing(["a", "b"]) == []
    with_constant = np.hstack([POINTS, np.full((4, 1), 0.1)])
    _, (first, _) = summarize(with_constant, LABELS, 2, list("abc"))
    assert first.z_scores[2] == pytest.approx(0.0, abs=1e-12)
    _, clusters = summarize(POINTS, LABELS * 2, 3, ["a", "b"])
    assert [one.size for one in clusters] == [2, 0, 2]
    assert np.isnan(clusters[1].mean).all()


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
    summary = summarize(points, labels.astype(np.int32), n_clusters, names)
    return " ".join(warnings_on(points, summary[1]))


def test_tiny_clusters_and_copies_are_told():
    assert said(GOOD, THREE, 3) == ""
    found = said(np.vstack([GOOD, [[100.0, 100.0]]]), np.append(THREE, 4), 5)
    assert "less than a tenth of the mean size: 4 (" in found
    # A cluster of one is tiny only beside large ones.
    points = np.random.default_rng(0).normal(size=(30, 2))
    assert "tenth" not in said(points[:9], np.repeat([0, 1, 2], [1, 4, 4]), 3)
    assert "mean size: 0 (" in said(points, np.repeat([0, 1], [1, 29]), 2)
    found = said(np.vstack([GOOD, GOOD[:30]]), np.concatenate([THREE, np.zeros(30)]), 3)
    assert found.startswith("30 of 180 rows (17\u00a0%)")
    grid = np.stack(np.meshgrid(np.arange(300.0), np.arange(300.0)), axis=-1).reshape(-1, 2)
    assert said(grid, np.zeros(90_000, np.int32), 1) == ""
