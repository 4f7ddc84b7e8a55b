"""The search only improves, is repeatable, can be ended, and takes a sample of many points."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kinds_of_rows import KINDS
from problems import StopsIn, assert_is_complete, blobs, sq_distances, two_pairs_of_groups
from scipy import sparse
from sklearn.datasets import load_iris

from powermeans import KMeans, PowerKMeans, divergences
from powermeans.engine import SweepState
from powermeans.engine.anneal import Stage
from powermeans.engine.fit import Fit
from powermeans.engine.search import moves as search_moves
from powermeans.engine.search import search as searching
from powermeans.engine.search.effort import EFFORTS, THRESHOLDS
from powermeans.engine.search.over_k import Steps, search_over_k
from powermeans.engine.search.search import extend, n_sampled
from powermeans.engine.search.state import Search, Solution
from powermeans.engine.seeds.choose import choose_seeds, drawn_sample
from powermeans.engine.stopping import CentersSettled, MaxSeconds, WeightsHard
from powermeans.engine.updates import RelocateEmpty, SeparateCoincident
from powermeans.mathematics.schedules import Fixed, Geometric
from powermeans.mathematics.sums import Spread
from powermeans.metrics import centroid_index
from powermeans.points.bregman import BregmanPoints
from powermeans.points.compiled import EuclideanPoints
from powermeans.points.opening import open_rows
from powermeans.points.reference import ReferencePoints

(BALANCED,) = EFFORTS["balanced"]


def hard_problem(n_points=300, n_features=3, n_clusters=12, seed=0) -> np.ndarray:
    """Clusters of different spread that overlap, so that there are many local minima."""
    noise = np.random.default_rng(seed).uniform(0.2, 1.5, size=n_clusters)
    return blobs(n_points, n_features, n_clusters, scale=2.0, noise=noise, seed=seed)


@pytest.fixture
def points() -> np.ndarray:
    return hard_problem()


def search_on(rows, price: float | None = None) -> Search:
    """A search that anneals, or one by Lloyd's sweeps where centers have a price."""
    separate = SeparateCoincident(-0.5, rows.spread_of_features())
    annealing = Stage(Geometric(-2.0, 1.3), WeightsHard(-0.5, 5, 0.0), 300, separate)
    lloyd = Stage(Fixed(-math.inf), CentersSettled(1e-6), 300, RelocateEmpty())
    stages = [annealing, lloyd] if price is None else [lloyd]
    return Search(rows, stages, Fit(np.random.RandomState(0)), price=price or 0.0)


def crossed(rows, population: list[Solution], n_fruitless: int) -> Search:
    search = search_on(rows)
    search.population = population
    search.begin(min(population, key=lambda solution: solution.inertia))
    search_moves.crossings(
        search, search.best, replace(BALANCED, n_starts=len(population), n_crossings=n_fruitless)
    )
    return search


def drawn_solutions(rows, points, n_solutions, n_centers) -> list[Solution]:
    rng = np.random.default_rng(1)
    drawn = (rng.choice(len(points), n_centers, replace=False) for _ in range(n_solutions))
    return [solution_at(rows, points[chosen]) for chosen in drawn]


def solution_at(rows, centers) -> Solution:
    return Solution(centers, rows.spread(centers))


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), kind=st.sampled_from(sorted(KINDS)))
def test_breathing_never_returns_worse_than_it_was_given(seed, kind) -> None:
    rng = np.random.default_rng(seed)
    n_points, share, annealed = rng.integers(2, 61), rng.random(), rng.random() < 0.5
    points = rng.normal(size=(n_points, rng.integers(1, 5)))
    if rng.random() < 0.5:
        points = np.round(points)
    n_centers = 2 + round(share * (n_points - 2))
    rows = KINDS[kind](points, rng.integers(0, 4, size=n_points) + (np.arange(n_points) == 0.0))
    given_ = solution_at(rows, points[rng.integers(n_points, size=n_centers)])
    search = search_on(rows)
    search.begin(given_)
    found = search_moves.breathed(search, given_, annealed=annealed)
    assert found.inertia <= given_.inertia
    assert found.centers.shape == given_.centers.shape


@pytest.mark.parametrize("annealed", [True, False])
def test_breathing_mends_a_center_on_the_wrong_side(annealed: bool) -> None:
    points, middles, stuck = two_pairs_of_groups()
    rows = open_rows(points)
    search, start = search_on(rows), solution_at(rows, stuck)
    search.begin(start)
    found = search_moves.breathed(search, start, annealed=annealed)
    assert centroid_index(found.centers, middles) == 0


def test_crossing_makes_the_population_neither_worse_nor_two_of_it_the_same(points) -> None:
    rows = open_rows(points)
    population = drawn_solutions(rows, points, 4, 12)
    before = sorted(solution.inertia for solution in population)
    search = crossed(rows, population, n_fruitless=5)
    after = [solution.inertia for solution in population]
    assert after == sorted(after)
    assert all(now <= then for now, then in zip(after, before, strict=True))
    assert search.best is population[0]
    assert search.fit.history.accepted[0][0] == before[0]
    assert after[0] < before[0]
    population = drawn_solutions(rows, points, 5, 3)
    crossed(rows, population, n_fruitless=30)
    inertias = np.array([solution.inertia for solution in population])
    assert (np.diff(inertias) > 1e-9 * inertias[:-1]).all()


@pytest.mark.parametrize("effort", EFFORTS)
def test_every_accepted_move_lowers_the_inertia_until_none_of_a_point_gains(effort: str) -> None:
    n_accepted = 0
    for seed in range(2):
        points = hard_problem(seed=seed)
        model = PowerKMeans(12, effort=effort, random_state=seed).fit(points)
        moved = EuclideanPoints(points).moves.move_points(model.cluster_centers_, n_passes=1)
        assert moved.n_moves == 0
        chains = model.spent_.accepted_inertias
        n_accepted += sum(len(chain) - 1 for chain in chains)
        for before, after in itertools.chain.from_iterable(map(itertools.pairwise, chains)):
            assert after < before
        # Lloyd's last sweeps come after all moves.
        least = min(chain[-1] for chain in chains)
        assert 0.99 * least < model.inertia_ <= least * (1 + 1e-9)
    assert n_accepted > 0


def test_what_was_spent_is_counted_also_where_a_callback_ends_it_while_crossing(points) -> None:
    fast, balanced, thorough = (
        PowerKMeans(12, effort=effort, random_state=0).fit(points) for effort in EFFORTS
    )
    assert len(fast.spent_.accepted_inertias) == 1
    assert fast.spent_.moves["crossings"] == 0
    assert 5 + 1 <= len(balanced.spent_.accepted_inertias) <= 16 + 1
    assert (
        BALANCED.n_crossings
        <= balanced.spent_.moves["crossings"]
        < thorough.spent_.moves["crossings"]
    )
    assert 0 < fast.spent_.seconds < 60
    for move in ("single_moves", "swaps"):
        assert 0 < fast.spent_.moves[move] < balanced.spent_.moves[move]
    assert fast.spent_.moves["breathing"] == balanced.spent_.moves["breathing"] == 0
    model = PowerKMeans(12, random_state=0, callback=StopsIn("crossing solutions")).fit(points)
    assert model.spent_.moves["crossings"] == 1
    assert_is_complete(model, points)


# Proved optima of iris.
OPTIMA = {2: 152.3479517604, 4: 57.2284732143, 6: 39.0399872461, 10: 25.83405482}


@pytest.mark.parametrize("n_clusters", OPTIMA)
def test_small_data_is_solved_from_every_seed(n_clusters: int) -> None:
    points = load_iris().data
    for seed in range(10):
        inertia = PowerKMeans(n_clusters, random_state=seed).fit(points).inertia_
        assert inertia == pytest.approx(OPTIMA[n_clusters], rel=1e-8)


@pytest.mark.parametrize(("n_points", "n_starts"), [(200, 6), (20_000, 3)])
def test_starts_that_agree_are_enough_unless_they_cost_next_to_nothing(n_points, n_starts) -> None:
    points = np.random.default_rng(0).normal(size=(n_points, 3)) + 20 * np.arange(3)
    points[::2] *= -1
    model = PowerKMeans(2, random_state=0).fit(points)
    assert len(model.spent_.accepted_inertias) == n_starts


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_rows_of_every_kind_are_searched_alike(kind: str, points) -> None:
    def found(rows) -> Solution:
        rng = np.random.default_rng(0)
        effort = replace(BALANCED, n_annealed=1, n_crossings=3, least_gain=1e-9)
        search = search_on(rows)
        extend(search, [], lambda: points[rng.choice(300, 6)], [effort])
        return search.best

    rows = KINDS[kind](points, None)
    # The reference breathes; rows that move points are compared with one another.
    reference = EuclideanPoints(points) if rows.moves else ReferencePoints(points)
    solution, expected = found(rows), found(reference)
    assert solution.inertia == pytest.approx(expected.inertia, rel=1e-6)
    np.testing.assert_allclose(solution.centers, expected.centers, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "name", ["squared_euclidean", "cosine", "manhattan", "poisson", "jeffreys"]
)
def test_rows_of_no_weight_and_copies_count_as_no_work(name: str) -> None:
    points, divergence = np.abs(hard_problem(n_points=70)) + 1, divergences.resolve(name)
    rows = open_rows(points, np.repeat([2.0, 0], [40, 30]), divergence=divergence)
    assert rows.n_distinct == 40
    for container in (np.array, sparse.csr_array):
        assert EuclideanPoints(container(np.repeat(points, 5, axis=0))).n_distinct == 70


@pytest.mark.parametrize(
    "option",
    [{"effort": "none"}, {"polish": False, "tol": 1e-3}, {"polish": False, "effort": "fast"}],
)
def test_without_effort_or_polish_there_is_one_descent(points, option) -> None:
    model = PowerKMeans(12, random_state=0, **option).fit(points)
    assert model.spent_.moves == {}
    assert model.spent_.accepted_inertias == ()
    powers = model.history_.power
    assert (powers[1:] <= powers[:-1]).all()
    assert model.spent_.n_sweeps == len(powers)


def test_a_callable_is_asked_for_every_start(points) -> None:
    calls = []

    def choose(X, n_clusters, random_state):
        calls.append(n_clusters)
        return X[random_state.permutation(len(X))[:n_clusters]]

    assert_is_complete(PowerKMeans(12, init=choose, random_state=0).fit(points), points)
    # Small data are cheap to start more often.
    assert set(calls) == {12}
    assert 6 <= len(calls) <= 16
    calls.clear()
    PowerKMeans(40, init=choose, random_state=0).fit(hard_problem(n_points=900))
    assert calls == [40] * 3


@pytest.mark.parametrize("n_clusters", [2, 19, 20])
@pytest.mark.parametrize("effort", EFFORTS)
def test_any_number_of_centers_can_be_searched_for(n_clusters: int, effort: str) -> None:
    points = hard_problem(n_points=20)
    model = PowerKMeans(n_clusters, effort=effort, random_state=0).fit(points)
    assert_is_complete(model, points)
    if n_clusters >= 19:
        pairs = sq_distances(points, points)[np.triu_indices(20, 1)]
        least = pairs.min() / 2 if n_clusters == 19 else 0
        assert model.inertia_ == pytest.approx(least, abs=1e-20)


@pytest.mark.parametrize("divergence", ["squared_euclidean", "mahalanobis"])
def test_a_fit_whose_time_is_up_finds_no_critical_power_and_prepares_no_search(
    points, divergence, monkeypatch
) -> None:
    monkeypatch.setattr(BregmanPoints, "moves", property(lambda rows: pytest.fail("too late")))
    monkeypatch.setattr(EuclideanPoints, "critical_power", None)
    monkeypatch.setattr(BregmanPoints, "critical_power", None)
    model = PowerKMeans(12, divergence=divergence, stop=MaxSeconds(1e-9), random_state=0)
    model.fit(points)
    np.testing.assert_array_equal(model.labels_, model.predict(points))
    assert math.isnan(model.critical_power_)
    assert model.history_.power.tolist() == [-math.inf]


def test_time_may_be_up_while_there_are_more_centers(points, monkeypatch) -> None:
    monkeypatch.setattr(EuclideanPoints, "moves", None)  # so that it breathes
    now = [0.0]
    monkeypatch.setattr("powermeans.engine.fit.time.monotonic", lambda: now[0])

    def let_time_pass(state: SweepState) -> None:
        now[0] += len(state.centers) > 12

    stop = MaxSeconds(1.0)
    model = PowerKMeans(12, stop=stop, random_state=0, callback=let_time_pass).fit(points)
    assert now[0] == 1
    assert len(model.cluster_centers_) == 12
    assert_is_complete(model, points)


@pytest.mark.parametrize("last", [1, 5, 40])
@pytest.mark.parametrize("effort", ["none", "balanced"])
def test_time_that_is_up_leaves_means_of_points(points, last, effort, monkeypatch) -> None:
    now, before = [0.0], []
    monkeypatch.setattr("powermeans.engine.fit.time.monotonic", lambda: now[0])

    def let_time_pass(state: SweepState) -> None:
        now[0] = float(state.sweep >= last)
        before.append(state.centers)

    stop = MaxSeconds(0.5)
    model = PowerKMeans(12, effort=effort, stop=stop, random_state=0, callback=let_time_pass).fit(
        points
    )
    labels = sq_distances(points, before[-2]).argmin(axis=1)
    means = [points[labels == label].mean(axis=0) for label in range(12)]
    if effort == "none":
        np.testing.assert_allclose(model.cluster_centers_, means)
    assert model.history_.power[-1] == -math.inf
    assert model.inertia_ <= model.history_.inertia[-1] * (1 + 1e-12)


@pytest.mark.parametrize("more_sweeps", [0, 20, 400])
@pytest.mark.parametrize("n_points", [300, 40_000])  # of which a sample is searched
def test_a_thorough_search_ends_no_higher_than_a_fast_one_in_its_time(
    n_points, more_sweeps, monkeypatch
):
    points, now = hard_problem(n_points, n_features=30), [0.0]
    monkeypatch.setattr("powermeans.engine.fit.time.monotonic", lambda: now[0])
    fast = PowerKMeans(12, effort="fast", stop=MaxSeconds(1.0), random_state=0).fit(points)

    def let_time_pass(state: SweepState) -> None:
        now[0] += 1 / (fast.n_iter_ + more_sweeps)

    model = PowerKMeans(12, effort="thorough", stop=MaxSeconds(1.0), random_state=0)
    model.set_params(callback=let_time_pass).fit(points)
    assert model.inertia_ <= fast.inertia_ * (1 + 1e-9)
    assert_is_complete(model, points)


def solution_with(centers, utility) -> Solution:
    utility = np.asarray(utility, dtype=float)
    return Solution(np.asarray(centers, dtype=float), Spread(utility, utility, utility))


@pytest.mark.parametrize(
    ("places", "utility", "removed"),
    [
        # All neighbours are at the mean distance, so 1 protects 0 and 2; 3 is no neighbour of 1.
        ([0, 10, 20, 30, 40], [5, 1, 2, 3, 4], [1, 3]),
        ([0, 1, 100, 200, 300, 400, 500], [1, 2, 9, 8, 3, 7, 6], [0, 4]),
    ],
)
def test_the_centers_of_least_utility_are_removed_but_no_neighbours(places, utility, removed):
    solution = solution_with(np.array(places)[:, None], utility)
    assert sorted(search_moves.least_useful(solution, 2)) == removed


@settings(max_examples=100)
@given(seed=st.integers(0, 2**32 - 1), n_centers=st.integers(2, 30), share=st.floats(0, 1))
def test_exactly_as_many_different_centers_are_removed(seed, n_centers, share) -> None:
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(n_centers, 2)) * 10.0 ** rng.integers(-3, 3, size=(n_centers, 1))
    n_removed = 1 + round(share * (n_centers - 2))
    utility = rng.exponential(size=n_centers)
    removed = search_moves.least_useful(solution_with(centers, utility), n_removed)
    assert len(removed) == len(set(removed.tolist())) == n_removed
    assert removed[0] == np.argmin(utility)


@pytest.mark.parametrize("n_centers", [2, 7, 1025, 1500])
def test_nearest_neighbours_are_those_of_brute_force(n_centers: int) -> None:
    centers = np.random.default_rng(0).normal(size=(n_centers, 2))
    distances = np.sqrt(sq_distances(centers, centers))
    np.fill_diagonal(distances, math.inf)
    np.testing.assert_allclose(
        search_moves.nearest_neighbour_distances(centers), distances.min(axis=1)
    )


@pytest.mark.parametrize("seed", range(5))
def test_matching_has_the_least_sum_of_all_permutations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    centers, others = rng.normal(size=(2, 6, 2))
    sums = {
        order: np.square(centers - others[list(order)]).sum()
        for order in itertools.permutations(range(6))
    }
    assert tuple(search_moves.match_centers(centers, others)) == min(sums, key=sums.__getitem__)


def ten_groups() -> np.ndarray:
    return np.repeat(np.random.default_rng(0).uniform(0, 100, (10, 2)), 40, 0) + blobs(
        400, 2, 1, scale=0, noise=0.1
    )


def test_centers_are_added_as_long_as_they_pay_and_given_ones_never_left_for_worse(points) -> None:
    rows = open_rows(ten_groups())
    for price, n_expected in ((1e9, 1), (50.0, 10)):
        search = search_on(rows, price)
        steps, mean = Steps(search, None), search.measured(rows.mean()[None, :])
        grown = steps.grown_while_it_pays(mean)
        # The mean is a center too, and may keep a few points.
        assert n_expected <= len(grown.centers) <= n_expected + (n_expected > 1)
        assert (grown is mean) == (n_expected == 1)
    lloyd = KMeans(12, init=points[:12]).fit(points)
    best = [PowerKMeans(12, effort="thorough", random_state=s).fit(points[s:]) for s in range(3)]
    for effort in EFFORTS:
        model = PowerKMeans(12, init=points[:12], effort=effort, random_state=0)
        assert model.fit(points).inertia_ < lloyd.inertia_
        for seed, given_ in enumerate(best):
            model.set_params(init=given_.cluster_centers_, random_state=seed)
            assert model.fit(points[seed:]).inertia_ <= given_.inertia_ * (1 + 1e-12)


@pytest.mark.parametrize("n_started", [1, 3, 30])
@pytest.mark.parametrize("effort", ["fast", "balanced"])
@pytest.mark.parametrize("knows_swaps", [True, False])
def test_the_number_is_found_from_too_few_and_from_too_many(n_started, effort, knows_swaps):
    rows, rng = open_rows(ten_groups()), np.random.RandomState(1)
    search = search_on(rows, price=50.0)
    if not knows_swaps:
        search.moves = None
    start = rows.take(np.arange(n_started) * (rows.n_points // n_started))

    def seeds(n_centers: int) -> np.ndarray:
        return choose_seeds(rows, n_centers, rng)[0]

    best = search_over_k(Steps(search, None), seeds, EFFORTS[effort], start)
    assert len(best.centers) == 10
    groups = np.split(ten_groups(), 10)
    within = sum(open_rows(group).inertia_about_mean() for group in groups)
    assert search.cost(best) == pytest.approx(within + 10 * 50.0)


def mixture(n_points: int = 4000, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    middles = rng.normal(scale=2.0, size=(15, 3))
    return middles[rng.integers(15, size=n_points)] + 0.7 * rng.normal(size=(n_points, 3))


@pytest.fixture
def sampling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search in a sample of 1000 points."""
    small = THRESHOLDS._replace(least_sampled=1000, sampled_for_each_center=1)
    monkeypatch.setattr(searching, "THRESHOLDS", small)
    efforts = {
        name: [replace(effort, most_values=100) for effort in several]
        for name, several in EFFORTS.items()
    }
    monkeypatch.setattr(searching, "EFFORTS", efforts)


def n_points_swept(model: PowerKMeans, monkeypatch, points, weights=None) -> set[int]:
    """Of how many points the sweeps over all centers were."""
    counts = set()
    sweep = EuclideanPoints.sweep

    def counted(rows, centers, rule):
        if len(centers) >= model.n_clusters:
            counts.add(rows.n_points)
        return sweep(rows, centers, rule)

    monkeypatch.setattr(EuclideanPoints, "sweep", counted)
    model.fit(points, sample_weight=weights)
    return counts


def test_as_many_values_are_sampled_as_swaps_take_of_sparse_points_those_stored() -> None:
    points = np.random.default_rng(0).normal(size=(2**16, 17))
    rows, fewer = open_rows(points), replace(BALANCED, most_values=17 * 9000)
    assert n_sampled(rows, 5, BALANCED) == 2**20 // 17
    assert n_sampled(rows, 621, BALANCED) == 621 * 25  # a costly sweep
    assert [n_sampled(rows, n, fewer) for n in (5, 200)] == [9000, 20_000]
    assert n_sampled(rows, 5, replace(BALANCED, most_values=17)) == 8192
    # All of few values are searched, and copies are no reason to sample.
    assert n_sampled(open_rows(points[:1000, :3].copy()), 5, BALANCED) == 0
    assert n_sampled(open_rows(np.repeat(points[: 2**15], 4, axis=0)), 5, BALANCED) == 0
    points = sparse.random_array(
        (2**15, 100), density=0.02, format="csr", rng=np.random.default_rng(0)
    )
    assert n_sampled(open_rows(points.toarray()), 5, BALANCED) == 2**20 // 100
    # Each row stores two entries in the mean; the centers beside them are read once in a sweep.
    assert n_sampled(open_rows(points), 5, BALANCED) == 0
    few = replace(BALANCED, most_values=20_000)
    each = (points.nnz + 100) / 2**15
    assert n_sampled(open_rows(points), 5, few) == int(20_000 / each)


@pytest.mark.parametrize("container", [np.array, sparse.csr_array])
def test_sums_over_a_sample_are_right_in_the_mean(container) -> None:
    rng = np.random.default_rng(0)
    points, weights = mixture(2000), rng.integers(0, 4, size=2000).astype(float)
    rows, found = open_rows(container(points), weights), []
    for seed in range(200):
        drawn, stands_for = drawn_sample(rows, 50, np.random.RandomState(seed))
        assert (weights[drawn] > 0).all()
        found.append([stands_for.sum(), *(stands_for @ points[drawn])])
    expected = [weights.sum(), *(weights @ points)]
    error = np.std(found, axis=0) / math.sqrt(200)
    np.testing.assert_array_less(np.abs(np.mean(found, axis=0) - expected), 4 * error)


def test_an_outlier_with_most_of_the_inertia_is_in_every_sample() -> None:
    points = mixture(5000)
    points[7] = 1e4
    for seed in range(5):
        drawn, weights = drawn_sample(open_rows(points), 100, np.random.RandomState(seed))
        assert weights[drawn == 7].sum() == pytest.approx(1, rel=0.05)


@pytest.mark.usefixtures("sampling")
@pytest.mark.parametrize("effort", ["fast", "balanced"])
def test_it_ends_below_the_best_of_ten_starts(effort: str) -> None:
    for seed in range(4):
        points = mixture(seed=seed)
        ten = KMeans(15, n_init=10, random_state=seed).fit(points)
        model = PowerKMeans(15, effort=effort, random_state=seed).fit(points)
        assert model.inertia_ <= ten.inertia_ * 1.001
        assert_is_complete(model, points)


@pytest.mark.usefixtures("sampling")
def test_a_sample_is_searched_then_all_points_and_all_where_some_outweigh_all_others(monkeypatch):
    weights = np.full(4000, 1e-9)
    weights[:100] = 1
    model = PowerKMeans(15, random_state=0)
    assert n_points_swept(model, monkeypatch, mixture(), weights) == {4000}
    assert n_points_swept(model, monkeypatch, mixture()) == {1000, 4000}


@pytest.mark.usefixtures("sampling")
@pytest.mark.parametrize("effort", ["balanced", "thorough"])
def test_a_callback_that_stops_it_leaves_the_best_for_all_points(effort: str) -> None:
    points = mixture()
    for last in (1, 20, 60, 150):
        model = PowerKMeans(
            15, effort=effort, random_state=0, callback=lambda state, last=last: state.sweep >= last
        ).fit(points)
        assert_is_complete(model, points)
        assert model.n_iter_ <= last
