import time
from unittest.mock import Mock

import numpy as np
import pytest
from problems import on_lattice
from scipy import sparse

import powermeans.choosing_k.choose
from powermeans import BalancedKMeans, PowerKMeans, choose_k, open_data
from powermeans.choosing_k import ChoiceOfK
from powermeans.choosing_k.centers_by_k import EFFORTS_FOR_EACH_K
from powermeans.choosing_k.counted import CountedPoints
from powermeans.choosing_k.evaluate import CRITERIA, Question, Study
from powermeans.engine import SweepState
from powermeans.engine.search.state import Solution
from powermeans.points.needs import FitNeeds, Measure, Needs
from powermeans.types import FloatArray

SIZES = [1, 2, 3, 4, 5, 6]


def studies(points, weights, *, has_missing=False):
    """Of the same centers, in memory and in parts."""
    measure = Measure(has_missing=has_missing, n_threads=1)
    needs = Needs(name="studies", measure=measure, fit=FitNeeds(n_points=SIZES[-1]))
    whole = CountedPoints.of(points, weights, needs)
    parted = CountedPoints.of(open_data(points, weights=weights, rows_per_part=128), None, needs)
    places = np.random.default_rng(1).choice(len(points), SIZES[-1], replace=False)
    centers = np.where(np.isnan(points[places]), 1.0, points[places])

    def study_of(counted: CountedPoints) -> Study:
        found = {k: Solution(centers[:k], counted.rows.spread(centers[:k])) for k in SIZES}
        search = EFFORTS_FOR_EACH_K["fast"]
        question = Question(SIZES, [], search, 10_000, has_missing=has_missing)
        return Study(counted.rows, counted.n_weighing, found, question, 0)

    one, other = study_of(whole), study_of(parted)
    np.testing.assert_allclose(
        parted.inertias(other.inertias), whole.inertias(one.inertias), rtol=1e-9
    )
    return one, other


COUNTS = np.random.default_rng(2).integers(0, 4, size=900).astype(float)


@pytest.mark.parametrize("weights", [None, COUNTS, COUNTS / COUNTS.sum()])
@pytest.mark.parametrize("name", CRITERIA)
def test_criteria_are_those_in_memory_at_the_same_centers(name: str, weights) -> None:
    points = on_lattice(4, n_points=900)
    one, other = studies(points, weights)
    expected, found = CRITERIA[name].evaluate(one), CRITERIA[name].evaluate(other)
    assert not np.isnan(expected.values).all()
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-9, atol=1e-12)
    assert found.chosen == expected.chosen


def test_parts_have_the_criteria_of_memory_and_refuse_what_they_cannot_give() -> None:
    points = on_lattice(4, n_points=900)
    points[::7, 0] = np.nan
    one, other = studies(points, None, has_missing=True)
    for name in ("separation", "calinski_harabasz"):
        expected, found = CRITERIA[name].evaluate(one), CRITERIA[name].evaluate(other)
        np.testing.assert_allclose(found.values, expected.values, rtol=1e-9)
    many = open_data(on_lattice(4, n_points=3000), rows_per_part=512)
    choice = choose_k(many, range(3, 6), criteria="silhouette", random_state=0)
    assert choice.recommended == 4
    assert 0 < choice.silhouette_sample <= 2000
    copies = open_data(np.repeat([[0.0], [1.0], [5.0]], 50, axis=0), rows_per_part=20)
    with pytest.raises(ValueError, match="more than the 3 distinct rows"):
        choose_k(copies, [2, 4])
    with pytest.raises(ValueError, match=r"1e\+17, whose square is out of range for float32"):
        choose_k(open_data(np.array([[0.0], [1e17]], np.float32)), [1, 2])


@pytest.mark.parametrize("in_parts", [False, True])
def test_many_rows_are_asked_by_a_sample_that_the_result_names(in_parts: bool) -> None:
    points = on_lattice(6, n_points=32_000)
    given = open_data(points, rows_per_part=15_000) if in_parts else points
    choice = choose_k(given, range(4, 8), criteria=["separation", "bic"], random_state=0)
    assert (choice.recommended, choice.is_clear, choice.n_sampled) == (6, True, 10_000)
    assert "on a sample of 10,000 rows" in str(choice)
    labels = choice.model().predict(points)
    means = [points[labels == j].mean(axis=0) for j in range(6)]
    np.testing.assert_allclose(choice.centers[6], means, atol=1e-6)  # of all rows, not of a sample
    inertia = np.square(points - choice.centers[6][labels]).sum()
    assert choice.table["inertia"][2] == pytest.approx(inertia)


def test_what_other_rows_do_not_confirm_is_not_clear(monkeypatch) -> None:
    nothing = powermeans.choosing_k.choose.Evaluation(np.zeros(1), None)
    monkeypatch.setattr(powermeans.choosing_k.choose, "by_separation", lambda study: nothing)
    choice = choose_k(
        on_lattice(6, n_points=32_000), range(5, 8), criteria="separation", random_state=0
    )
    assert (choice.recommended, choice.is_clear) == (6, False)
    assert "in another sample of the rows" in choice.why


def test_little_time_shrinks_the_sample_and_never_the_range(monkeypatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def let_time_pass(state: SweepState) -> None:
        now[0] += 1e-3

    options = {"criteria": ["separation", "bic"], "random_state": 0, "callback": let_time_pass}
    choose_k(on_lattice(6, n_points=1_000), range(2, 9), **options)
    whole, now[0] = now[0], 0.0
    choice = choose_k(on_lattice(6, n_points=8_000), range(2, 9), max_seconds=3 * whole, **options)
    assert list(choice.table["k"]) == list(range(2, 9))
    assert (choice.recommended, choice.n_sampled) == (6, 1_000)


@pytest.mark.parametrize("last", ["mean_jaccards", "_confirmed"])
def test_ctrl_c_at_the_last_step_is_not_lost(last: str, monkeypatch) -> None:
    points = on_lattice(3, n_points=200 if last == "mean_jaccards" else 32_000)
    interrupted = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr(powermeans.choosing_k.choose, last, interrupted)
    choice = choose_k(points, range(2, 5), criteria="dp_means", random_state=0)
    assert choice.was_stopped
    assert choice.recommended == 3


def test_a_callback_that_stops_the_confirmation_leaves_a_doubt() -> None:
    points, options = on_lattice(3, n_points=32_000), {"criteria": "separation", "random_state": 0}
    heard: list[SweepState] = []
    choice = choose_k(points, range(2, 5), callback=heard.append, **options)
    assert (choice.was_stopped, choice.is_clear) == (False, True)
    is_last = iter([False] * (len(heard) - 1) + [True])
    choice = choose_k(points, range(2, 5), callback=lambda state: next(is_last), **options)
    assert (choice.was_stopped, choice.is_clear, choice.recommended) == (True, False, 3)
    assert "before all rows confirmed" in choice.why


def test_ctrl_c_at_the_last_step_leaves_the_larger_sample(monkeypatch) -> None:
    stability_of = powermeans.choosing_k.choose._stability_of

    def interrupted(solution, study):
        if study.rows.n_points > 4_000:
            raise KeyboardInterrupt
        return stability_of(solution, study)

    monkeypatch.setattr(powermeans.choosing_k.choose, "_stability_of", interrupted)
    choice = choose_k(
        on_lattice(3, n_points=4_500), range(2, 5), criteria="dp_means", max_seconds=1e3
    )
    assert (choice.was_stopped, choice.n_sampled, choice.recommended) == (True, 0, 3)


FOUR = [50, 50, 50, 50]


def corners(sizes: list[int]) -> FloatArray:
    """Clusters of unit variance and these sizes at the corners of a square."""
    corners = 12.0 * np.array([[0, 0], [0, 1], [1, 0], [1, 1]])[: len(sizes)]
    noise = np.random.default_rng(0).normal(size=(sum(sizes), 2))
    return np.repeat(corners, sizes, axis=0) + noise


def chosen(points: object, k_range: object = range(2, 8), **options: object) -> ChoiceOfK:
    return choose_k(points, k_range, random_state=0, **options)


@pytest.mark.parametrize(
    ("limits", "possible"),
    [
        ({"size_max": 60}, [4, 5, 6, 7]),
        ({"size_min": 0.2}, [2, 3, 4, 5]),
        ({"balance": 1.0}, [2, 3, 4, 5, 6, 7]),
    ],
)
def test_clusters_within_the_limits_are_counted_among_the_k_that_these_leave(limits, possible):
    choice = chosen(corners(FOUR), **limits)
    assert choice.table["k"].tolist() == possible
    assert choice.verdict() == "4 groups; clear"
    model = choice.model()
    assert type(model) is BalancedKMeans
    assert {name: model.get_params()[name] for name in limits} == limits
    assert model.fit(corners(FOUR)).sizes_.tolist() == FOUR
    np.testing.assert_allclose(choice.stability, np.ones(4), atol=0.15)


def test_inertias_are_those_of_clusters_within_the_limits_which_may_change_nothing() -> None:
    points = corners([300, 100])
    choice = chosen(points, size_max=200)
    free = chosen(points)
    assert (free.recommended, free.is_clear) == (2, True)
    # Two clusters of 200 take a third of the large one away, so that they are not apart.
    assert not choice.is_clear
    assert choice.table["separation"][0] == 0
    for k in (2, 3):
        start = choice.centers[k]
        alone = BalancedKMeans(k, size_max=200, init=start, effort="none").fit(points)
        assert choice.table["inertia"][k - 2] == pytest.approx(alone.inertia_, rel=1e-3)
    assert choice.table["inertia"][0] > 5 * free.table["inertia"][0]
    points = corners(FOUR)
    choice, free = chosen(points, size_min=10), chosen(points)
    assert choice.by_criterion == free.by_criterion
    np.testing.assert_allclose(choice.table["inertia"], free.table["inertia"], rtol=0.01)


@pytest.mark.parametrize("unit", [1.0, 0.04])
def test_sizes_are_sums_of_weights(unit: float) -> None:
    points = np.concatenate([corners([25, 50, 50, 50]), np.full((20, 2), 6.0)])
    weights = unit * np.repeat([2.0, 1.0, 0.0], [25, 150, 20])
    choice = chosen(points, sample_weight=weights, size_min=45 * unit, size_max=55 * unit)
    assert choice.table["k"].tolist() == [4]
    sizes = choice.model().fit(points, sample_weight=weights).sizes_
    np.testing.assert_allclose(sizes, 50 * unit)


def test_a_sample_keeps_the_shares_of_limits_which_sparse_points_and_parts_have_too() -> None:
    points = corners([16_000, 8_000, 8_000])
    choice = chosen(points, [2, 3, 4], size_max=16_000)
    assert choice.n_sampled == 10_000
    assert (choice.recommended, choice.is_clear) == (3, True)
    halves = chosen(points, [2, 4, 5], criteria="bic", size_max=8_400)
    assert halves.table["k"].tolist() == [4, 5]
    whole = PowerKMeans(4, random_state=0).fit(points).inertia_
    assert halves.table["inertia"][0] == pytest.approx(whole, rel=0.05)
    points = corners(FOUR)
    assert chosen(sparse.csr_array(points), size_max=60).recommended == 4
    assert chosen(open_data(points, rows_per_part=64), size_max=60).recommended == 4
    points = np.column_stack([points, points])
    points[::9, 1] = np.nan
    assert chosen(points, size_max=60, missing="observed").recommended == 4
    points = corners(FOUR)
    with pytest.raises(ValueError, match="size_max=20 times 7 clusters makes 140 rows, and X has"):
        chosen(points, size_max=20)
    for limits in ({"size_min": 150}, {"size_min": 150, "size_max": 160}):
        with pytest.raises(ValueError, match=r"times 2 .* at most 100, or .* at most 1 cluster$"):
            chosen(points, **limits)
    with pytest.raises(ValueError, match="The 'balance' parameter of choose_k"):
        chosen(points, balance=2)
