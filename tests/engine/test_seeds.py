"""Seeds are drawn with the right probabilities, wherever the rows are, or in a few passes."""

import math
from collections import Counter
from collections.abc import Callable
from unittest.mock import Mock

import numpy as np
import pytest
from comparator import greedy_seeds
from hypothesis import given
from hypothesis import strategies as st
from kinds_of_rows import in_parts
from problems import blobs
from scipy import sparse
from scipy.stats import binom, chisquare

from powermeans import KMeans, PowerKMeans, open_data
from powermeans.engine.seeds import MarkovChainSeeds, ParallelSeeds, initial, parallel
from powermeans.engine.seeds import choose as choose_module
from powermeans.engine.seeds.choose import (
    PointsInOrder,
    choose_seeds,
    n_greedy_candidates,
    order_by_place,
    uniform_seeds,
)
from powermeans.engine.seeds.orders import order_by_chance
from powermeans.engine.seeds.samples import distinct_places, race, weighted_sample
from powermeans.engine.stopping import MaxSeconds
from powermeans.mathematics.weighted_draws import draw_indices
from powermeans.points.by_definition import greedy_seeds_by_definition
from powermeans.points.compiled import EuclideanPoints
from powermeans.points.opening import open_rows
from powermeans.points.reference import ReferencePoints
from powermeans.scale.executors import MemoryExecutor, PartOpener
from powermeans.scale.parted_rows import PartedPoints

N_DRAWS, FLOATS = 2500, [np.float32, np.float64]


def assert_frequencies(counts: Counter[tuple[int, ...]], expected: dict) -> None:
    """Pairs are counted as often as they are expected, and none that cannot be."""
    possible = {pair: N_DRAWS * chance for pair, chance in expected.items() if chance > 0}
    assert set(counts) <= set(possible)
    assert chisquare([counts[pair] for pair in possible], [*possible.values()]).pvalue > 1e-3


@pytest.mark.parametrize("exponent", [1.0, 2.0, 4.0])
def test_seeds_are_drawn_by_weight_times_a_power_of_the_distance(exponent: float) -> None:
    places, weights = np.array([0.0, 1.0, 3.0]), np.array([1.0, 2.0, 1.0])
    expected = {}
    for first in range(3):
        mass = weights * np.abs(places - places[first]) ** exponent
        for second in range(3):
            expected[first, second] = weights[first] / 4 * mass[second] / mass.sum()
    rows, rng = ReferencePoints(places[:, None], weights), np.random.RandomState(0)
    draws = (choose_seeds(rows, 2, rng, exponent=exponent)[1] for _ in range(N_DRAWS))
    assert_frequencies(Counter(tuple(map(int, pair)) for pair in draws), expected)


def test_uniform_seeds_are_drawn_by_weight_in_any_unit() -> None:
    weights = np.array([1.0, 2.0, 5.0])
    rows, rng = ReferencePoints(np.arange(3.0)[:, None], weights), np.random.RandomState(0)
    draws = (uniform_seeds(rows, 2, rng)[:, 0].astype(int) for _ in range(N_DRAWS))
    expected = {
        (first, second): weights[first] / 8 * weights[second] / (8 - weights[first])
        for first in range(3)
        for second in range(3)
        if first != second
    }
    assert_frequencies(Counter(tuple(draw) for draw in draws), expected)
    points, weights = np.arange(9.0)[:, None], np.arange(1.0, 10.0)
    seeds = [
        uniform_seeds(ReferencePoints(points, unit * weights), 5, np.random.RandomState(0))
        for unit in (1.0, 2e-308, 1e-300, 1e300)
    ]
    np.testing.assert_array_equal(seeds, seeds[:1] * 4)


@given(seed=st.integers(0, 2**32 - 1))
def test_passing_over_points_changes_no_seed(seed):
    rng = np.random.default_rng(seed)
    shape, dtype = (rng.integers(1, 301), rng.choice([1, 2, 5, 31, 32, 45])), rng.choice(FLOATS)
    points = (rng.normal(size=shape) + rng.choice([0.0, 1e3])).astype(dtype)
    share_of_zeros, stored = rng.choice([0.0, 0.5]), rng.choice([np.asarray, sparse.csr_array])
    points[rng.uniform(size=points.shape) < share_of_zeros] = 0
    points = np.repeat(points, rng.integers(1, 4), axis=0)
    weights = rng.exponential(size=len(points)) * (rng.uniform(size=len(points)) > share_of_zeros)
    weights[0] = 1.0
    order, first = rng.permutation(len(points)), rng.uniform()
    others = rng.uniform(size=(rng.integers(30), rng.integers(1, 19)))
    found = greedy_seeds(open_rows(stored(points), weights), order, first, others)
    expected = greedy_seeds(ReferencePoints(points, weights), order, first, others, exponent=2.0)
    # Of equal points, rounding decides which is said to be the seed.
    np.testing.assert_array_equal(points[found], points[expected])


def many_features() -> np.ndarray:
    """More than codes can be added up for."""
    return (np.random.default_rng(0).random((40, 300_000)) < 0.45).astype(np.float32)


def tiny_beside_zeros() -> np.ndarray:
    """Codes cannot be divided by their step."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(2000, 40))
    points[:1200] = 0
    points[np.arange(300), rng.integers(40, size=300)] = 1e-310
    return points


@pytest.mark.parametrize("make", [many_features, tiny_beside_zeros])
def test_points_that_codes_cannot_tell_apart_are_seeded_exactly(make):
    rows, others = open_rows(make()), np.random.default_rng(1).uniform(size=(20, 3))
    given_ = np.arange(rows.n_points), 0.3, others
    np.testing.assert_array_equal(
        greedy_seeds(rows, *given_), greedy_seeds_by_definition(rows, *given_)
    )


@pytest.fixture
def small_samples(monkeypatch):
    """Samples of few points, so that small problems are sampled too."""
    monkeypatch.setattr(choose_module, "_LEAST_SAMPLED", 16)
    monkeypatch.setattr(choose_module, "_SAMPLED_FOR_EACH_SEED", 3)


def sampled_seeds(points, weights=None, rows_of=open_rows, n_seeds=9, random_state=0):
    rng = np.random.RandomState(random_state)
    return choose_seeds(rows_of(points, weights), n_seeds, rng, n_candidates=4)[0]


@pytest.mark.usefixtures("small_samples")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("n_features", [1, 3, 40])
@pytest.mark.parametrize("random_state", range(3))
def test_seeds_by_samples_follow_their_definition(dtype, stored, n_features, random_state) -> None:
    rng = np.random.default_rng(random_state)
    points = np.repeat(rng.standard_t(3, size=(300, n_features)).astype(dtype), 2, axis=0)
    points[points < 0] = 0
    weights = rng.exponential(size=600) * (rng.uniform(size=600) < 0.8)
    options = {"n_seeds": 40, "random_state": random_state}
    np.testing.assert_array_equal(
        sampled_seeds(stored(points), weights, **options),
        sampled_seeds(points, weights, ReferencePoints, **options),
    )


@pytest.fixture
def orders_taken(small_samples, monkeypatch) -> list:
    """Few points count as many, in small blocks and few bins; lists the orders of all points."""
    small = {"_MANY_POINTS": 1000, "_POINTS_AT_ONCE": 700, "_SAMPLED_KEYS": 500, "_N_BINS": 2048}
    for name, value in {**small, "_N_CELLS": 256, "_LARGEST_SHARE_SORTED": 0.3}.items():
        monkeypatch.setattr(choose_module, name, value)
    noted = Mock(wraps=PointsInOrder)
    monkeypatch.setattr(choose_module, "PointsInOrder", noted)
    return noted.mock_calls


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_features", [1, 2, 40])
@pytest.mark.parametrize("random_state", range(4))
def test_seeds_of_many_points_are_those_along_their_order(
    dtype: type, n_features: int, random_state: int, orders_taken: list, monkeypatch
) -> None:
    rng = np.random.default_rng(random_state)
    points = rng.standard_t(2, size=(5000, n_features)).astype(dtype)
    weights = rng.exponential(size=5000) * (rng.uniform(size=5000) < 0.8)
    in_blocks = sampled_seeds(points, weights, random_state=random_state)
    assert not orders_taken
    monkeypatch.setattr(choose_module, "_MANY_POINTS", 10_000)
    np.testing.assert_array_equal(
        in_blocks, sampled_seeds(points, weights, random_state=random_state)
    )
    assert orders_taken


@pytest.mark.parametrize("random_state", range(5))
@pytest.mark.parametrize("n_points", [400, 4000])
def test_weights_are_the_same_as_shuffled_repetitions(n_points, random_state, orders_taken):
    rng = np.random.default_rng(random_state)
    points, weights = rng.normal(size=(n_points, 2)), rng.integers(0, 4, size=n_points)
    repeated = rng.permutation(np.repeat(points, weights, axis=0))
    np.testing.assert_array_equal(
        sampled_seeds(points, weights.astype(float), random_state=random_state),
        sampled_seeds(repeated, random_state=random_state),
    )
    assert bool(orders_taken) == (n_points == 400)


@pytest.mark.parametrize("kind", ["crowded", "few places", "tiny"])
def test_many_points_are_put_in_order_where_blocks_do_not_serve(kind, orders_taken, monkeypatch):
    points = np.random.default_rng(0).normal(size=(5000, 2))
    if kind == "crowded":
        points[:4990] *= 1e-9
    elif kind == "few places":
        points = np.resize(points[:40], (5000, 2))
    else:
        points *= 1e-150
    seeds = sampled_seeds(points)
    assert orders_taken
    monkeypatch.setattr(choose_module, "_MANY_POINTS", 10_000)
    np.testing.assert_array_equal(seeds, sampled_seeds(points))


@pytest.mark.usefixtures("small_samples")
@pytest.mark.parametrize("scale", [1e-150, 1e-90, 1e-40, 1e90, 1e150])
def test_scaling_sampled_points_scales_the_seeds(scale: float) -> None:
    points = np.random.default_rng(0).normal(size=(500, 2))
    expected, rows, rng = sampled_seeds(points), open_rows(points), np.random.RandomState(0)
    if abs(np.log10(scale)) > 100:  # all of them, whose squares are not sampled
        order, _ = order_by_place(rows, rng)
        seeds = greedy_seeds(rows, order, rng.uniform(), rng.uniform(size=(8, 8)))
        expected = rows.take(seeds)
    np.testing.assert_array_equal(sampled_seeds(scale * points), scale * expected)


@pytest.mark.parametrize("rows_of", [ReferencePoints, open_rows])
def test_further_seeds_end_once_little_inertia_is_left_or_time_is_over(rows_of: Callable) -> None:
    points = np.repeat([[0.0], [10.0], [20.0], [40.0]], 5, axis=0)
    rows, others = rows_of(points), np.random.default_rng(0).uniform(size=(9, 3))
    nearest, indices = np.square(points[5:, 0]), np.arange(5, 20)
    found = {
        share: sorted(points[rows.sampler.further_seeds(indices, nearest, others, share), 0])
        for share in (0.0, 0.01, 1.0)
    }
    assert found[0.0] == found[0.01] == [10.0, 20.0, 40.0]
    assert len(found[1.0]) == 1
    points = np.random.default_rng(0).normal(size=(50, 3))
    rows, order, others = rows_of(points), np.arange(50), np.full((9, 3), 0.5)
    first = rows.sampler.greedy_seeds(order, 0.3, others[:0])
    at_once = rows.sampler.greedy_seeds(order, 0.3, others, seconds=0.0)
    np.testing.assert_array_equal(at_once, first)
    nearest = 1 + np.square(points[:, 0])
    assert len(rows.sampler.further_seeds(order, nearest, others, 0.0, seconds=0.0)) == 1
    assert len(rows.sampler.further_seeds(order, nearest, others, 0.0)) == 9


@pytest.mark.parametrize("n_points", [2000, 20_000])
def test_seeds_that_time_does_not_allow_are_drawn_at_once(n_points: int) -> None:
    points = np.random.default_rng(0).normal(size=(n_points, 3))
    rows = open_rows(points)
    limited = choose_seeds(rows, 30, np.random.RandomState(0), n_candidates=4, seconds=0.0)[0]
    greedy = choose_seeds(rows, 30, np.random.RandomState(0), n_candidates=4)[0]
    np.testing.assert_array_equal(limited[0], greedy[0])
    assert len(np.unique(limited, axis=0)) == 30
    assert rows.assign(greedy)[1] < rows.assign(limited)[1] < 1.05 * rows.assign(points[:30])[1]
    # Few points that are far have about half of the seeds.
    rows = open_rows(np.append(points, points[:10] + 1e3, axis=0))
    limited = choose_seeds(rows, 30, np.random.RandomState(0), n_candidates=4, seconds=0.0)[0]
    assert 10 < np.count_nonzero(limited[:, 0] > 500) < 20


def test_a_fit_tells_its_seeding_how_much_time_is_left(monkeypatch) -> None:
    choose = Mock(wraps=choose_seeds)
    monkeypatch.setattr(initial, "choose_seeds", choose)
    points = np.random.default_rng(0).normal(size=(500, 2))
    model = PowerKMeans(20, stop=MaxSeconds(1e-9), random_state=0).fit(points)
    assert model.n_iter_ == 1
    assert len(np.unique(model.labels_)) > 10
    PowerKMeans(20, stop=MaxSeconds(1e6), effort="none", random_state=0).fit(points)
    PowerKMeans(20, effort="none", random_state=0).fit(points)
    late, in_time, always = (call.kwargs["seconds"] for call in choose.mock_calls)
    assert late <= 0 < in_time <= 1e6
    assert always == np.inf


def order_of(points, seed=0):
    return order_by_chance(points, None, np.random.RandomState(seed))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "CSR"])
def test_it_is_a_permutation_that_follows_the_points(make, dtype):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(500, 3)).round(2).astype(dtype)
    points[rng.uniform(size=points.shape) < 0.3] = 0
    points[points == 0] *= -1  # minus zero
    walk = order_of(make(points))
    np.testing.assert_array_equal(np.sort(walk), np.arange(500))
    shuffle = rng.permutation(500)
    np.testing.assert_array_equal(points[shuffle][order_of(make(points[shuffle]))], points[walk])


def test_the_order_by_chance_follows_places_and_each_is_a_seed_before_one_is_so_twice():
    rng = np.random.default_rng(0)
    places = rng.normal(size=(40, 2))
    labels = rng.integers(40, size=1000)
    walked = labels[order_of(places[labels])]
    assert np.count_nonzero(np.diff(walked)) == len(np.unique(labels)) - 1
    rows, rng = open_rows(np.repeat(np.arange(5.0), 10)[:, None]), np.random.RandomState(0)
    for seeds in (choose_seeds(rows, 9, rng, n_candidates=4)[0], uniform_seeds(rows, 9, rng)):
        assert seeds.shape == (9, 1)
        assert set(seeds[:5, 0]) == set(range(5))


WHOLE, FRACTIONS = np.arange(4096.0)[:, None], np.linspace(0, 1, 4096)[:, None]


@pytest.mark.parametrize(
    "points", [WHOLE, FRACTIONS, FRACTIONS.astype(np.float32), WHOLE * np.eye(1, 8)]
)
def test_it_knows_nothing_of_places(points):
    """Neither ranks nor steps of sorted points correlate with where they come in the walk."""
    rank = np.empty(len(points))
    rank[order_of(points)] = np.arange(len(points))
    by_chance = 4 / np.sqrt(len(points))
    assert abs(np.corrcoef(rank, np.arange(len(points)))[0, 1]) < by_chance
    assert abs(np.corrcoef(rank[1:], rank[:-1])[0, 1]) < by_chance
    # Of independent ranks the difference is a third of the number in the mean.
    assert np.abs(np.diff(rank)).mean() == pytest.approx(len(points) / 3, rel=0.05)


@pytest.mark.parametrize("n_places", [1, 3, 400, 3000])
@pytest.mark.parametrize("n_at_once", [7, 2**19])
def test_ties_keep_the_order_of_the_rows(monkeypatch, n_places, n_at_once):
    monkeypatch.setattr(choose_module, "_POINTS_AT_ONCE", n_at_once)
    rng = np.random.default_rng(0)
    points = rng.normal(size=(n_places, 2))[rng.integers(n_places, size=500)]
    rows = open_rows(points)
    order, key = choose_module.order_by_place(rows, np.random.RandomState(0))
    one, other = choose_module.random_places(rows, np.random.RandomState(0), 2)
    unsorted = sum(rows.nearness(place[None, :]).sq_dist() for place in (one, other))
    np.testing.assert_array_equal(order, np.argsort(unsorted, kind="stable"))
    np.testing.assert_array_equal(key, unsorted[order])


FIVE = np.array([[0.0], [1.0], [1.5], [4.0], [9.0]])
OF_FIVE = np.array([1.0, 2.0, 0.5, 3.0, 1.0])


def shares_of_pairs(chain_length: int, exponent: float) -> np.ndarray:
    """Return the chance that a point is first and another second."""
    sq_dist = (FIVE - FIVE.T) ** 2
    shares = OF_FIVE / OF_FIVE.sum()
    chances = np.zeros((5, 5))
    for first in range(5):
        inertia = OF_FIVE * sq_dist[first]
        proposed = 0.5 * shares + 0.5 * inertia / inertia.sum()
        wanted = OF_FIVE * sq_dist[first] ** (exponent / 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            accepted = np.minimum(1, wanted * proposed[:, None] / (wanted[:, None] * proposed))
        accepted[first] = wanted > 0  # where the wanted mass is zero, any with a mass is taken
        step = proposed * accepted
        np.fill_diagonal(step, 0)
        np.fill_diagonal(step, 1 - step.sum(axis=1))
        end = proposed @ np.linalg.matrix_power(step, chain_length - 1)
        chances[first] = shares[first] * end
    return chances


@pytest.mark.parametrize(("chain_length", "exponent"), [(1, 2.0), (3, 2.0), (4, 1.0)])
def test_pairs_of_seeds_come_as_often_as_the_chain_says(chain_length: int, exponent: float) -> None:
    rows, rng = open_rows(FIVE, OF_FIVE), np.random.RandomState(0)
    way = MarkovChainSeeds(chain_length, exponent)
    draws = (np.searchsorted(FIVE[:, 0], way.seeds(rows, 2, rng)[:, 0]) for _ in range(N_DRAWS))
    expected = dict(np.ndenumerate(shares_of_pairs(chain_length, exponent)))
    assert_frequencies(Counter(tuple(map(int, pair)) for pair in draws), expected)


def test_seeds_by_a_chain_repeat_equal_points_and_take_the_farthest_by_large_exponents() -> None:
    seeds = MarkovChainSeeds(5)(np.ones((4, 2)), 3, np.random.RandomState(0))
    np.testing.assert_array_equal(seeds, np.ones((3, 2)))
    parts = open_data(np.random.default_rng(0).normal(size=(50, 2)), rows_per_part=20)
    with pytest.raises(ValueError, match=r"read part by part: pass .*ParallelSeeds"):
        KMeans(3, init=MarkovChainSeeds()).fit(parts)
    points = np.array([[0.0], [1.0], [2.0], [9.0]]) * 1e100
    seeds = MarkovChainSeeds(chain_length=200, exponent=50.0)
    chosen = seeds(points, 2, np.random.RandomState(0))[:, 0]
    assert chosen[1] == points[np.argmax(abs(points[:, 0] - chosen[0])), 0]


BEFORE_ONE = np.nextafter(1.0, 0.0)

masses = st.lists(
    st.one_of(st.just(0.0), st.floats(5e-324, 1e308)), min_size=1, max_size=20
).filter(any)


@pytest.mark.parametrize(
    ("n_clusters", "n_candidates"), [(1, 2), (2, 2), (3, 3), (7, 3), (8, 4), (20, 4), (21, 5)]
)
def test_candidates_are_two_more_than_the_whole_part_of_the_logarithm(n_clusters, n_candidates):
    assert n_greedy_candidates(n_clusters) == n_candidates


@given(masses, st.lists(st.floats(0, BEFORE_ONE), min_size=1, max_size=20))
def test_an_index_without_mass_is_never_drawn(mass, uniforms):
    mass = np.array(mass)
    drawn = draw_indices(mass, np.array([0.0, BEFORE_ONE, *uniforms]))
    assert np.all(mass[drawn] > 0)


@pytest.mark.parametrize("mass", [[], [0.0, 0.0], [1.0, math.inf], [math.nan, 1.0]])
def test_masses_to_which_nothing_is_proportional_are_refused(mass):
    with pytest.raises(ValueError, match="mass has the maximum"):
        draw_indices(np.array(mass), np.array([0.5]))


POINTS = blobs(3000, 2, 12, scale=20.0)


@given(n_rows=st.integers(1, 400), n_drawn=st.integers(1, 300), seed=st.integers(0, 99))
def test_how_rows_are_cut_does_not_change_who_arrives(n_rows, n_drawn, seed):
    rng = np.random.default_rng(seed)
    points, weights = rng.normal(size=(250, 2)), rng.exponential(size=250)
    n_rows = max(n_rows, 25)
    for centers in (points[:0], points[:3]):
        rows = in_parts(points, weights, n_rows), EuclideanPoints(points, weights)
        found, whole = (race(o, n_drawn, seed, centers=centers).with_a_chance() for o in rows)
        np.testing.assert_array_equal(found, whole)
        n_away = 250 - len(centers)
        assert len(found) == min(n_drawn, n_away)
        assert len(np.unique(found, axis=0)) == len(found)


def test_the_first_of_a_race_arrives_by_weight_times_distance_and_indices_by_shares():
    """At distances 0, 1 and 3 with the weights 5, 3 and 1 the chances are 0, 1/4 and 3/4."""
    points, weights = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0]]), np.array([5.0, 3.0, 1.0])
    rows, n_races = EuclideanPoints(points, weights, n_threads=1), 2000
    firsts = [race(rows, 1, key, centers=points[:1]).points[0, 0] for key in range(n_races)]
    n_near = firsts.count(1.0)
    assert firsts.count(0.0) == 0
    assert binom.cdf(n_near, n_races, 1 / 4) > 1e-6
    assert binom.sf(n_near, n_races, 1 / 4) > 1e-6
    mass = np.array([1.0, 0.0, 2.0, 1.0])
    uniforms = np.array([0.0, 0.24, 0.25, 0.5, 0.74, 0.75, BEFORE_ONE])
    np.testing.assert_array_equal(draw_indices(mass, uniforms), [0, 0, 2, 2, 2, 3, 3])


def test_seeds_are_as_good_as_greedy_ones_and_candidates_weigh_as_much_as_all_points():
    rows, whole, ours, theirs = in_parts(POINTS, None, 700), EuclideanPoints(POINTS), [], []
    for seed in range(8):
        rng = np.random.RandomState(seed)
        seeds = ParallelSeeds().candidates(rows, 12, rng).seeds(12, rng, 4)
        ours.append(rows.assign(seeds)[1])
        theirs.append(rows.assign(choose_seeds(whole, 12, rng, n_candidates=4)[0])[1])
    assert np.median(ours) < 1.2 * np.median(theirs)
    uniform = [
        rows.assign(distinct_places(rows, 12, np.random.RandomState(i)))[1] for i in range(8)
    ]
    assert np.median(ours) < 0.5 * np.median(uniform)
    weights = np.random.default_rng(0).exponential(size=3000)
    rows = in_parts(POINTS, weights, 700)
    found = ParallelSeeds().candidates(rows, 12, np.random.RandomState(0))
    assert len(found.points) == 5 * 24
    assert found.weights.sum() == pytest.approx(weights.sum(), rel=1e-12)
    one, many = (open_data(POINTS, rows_per_part=n_rows) for n_rows in (3000, 300))
    for init in (ParallelSeeds(n_rounds=2, oversampling=1.0), "k-means++"):
        model = KMeans(12, init=init, random_state=0)
        found, expected = (model.fit(parts).cluster_centers_ for parts in (many, one))
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    model = PowerKMeans(12, init=ParallelSeeds(), random_state=0)
    assert model.fit(POINTS).inertia_ == pytest.approx(model.fit(many).inertia_, rel=1e-6)


@pytest.mark.parametrize(("oversampling", "n_rounds"), [(2.0, 1), (0.4, 3)])
def test_a_fit_whose_time_is_up_looks_for_no_more_candidates_than_it_needs(
    monkeypatch, oversampling, n_rounds
):
    points, noted = np.random.default_rng(0).normal(size=(600, 2)), Mock(wraps=race)
    monkeypatch.setattr(parallel, "race", noted)
    way = ParallelSeeds(oversampling=oversampling)
    model = PowerKMeans(10, init=way, random_state=0)
    model.set_params(stop=MaxSeconds(1e-9)).fit(points)
    assert noted.call_count == n_rounds
    assert len(np.unique(model.cluster_centers_, axis=0)) == 10
    model.set_params(stop=None).fit(points)
    assert noted.call_count == n_rounds + 5


def drawn_sample(points, weights, n_drawn, seed=0, n_rows=7, **options):
    rows = in_parts(points, weights, n_rows)
    return weighted_sample(rows, n_drawn, np.random.RandomState(seed), **options)


class Listening(MemoryExecutor):
    """Parts that look at what calls say of their results, as places that send them do."""

    def total(self, call):
        for found in self.each(call):
            n_bytes = found.points.nbytes + found.times.nbytes + found.weights.nbytes
            assert n_bytes <= call.n_bytes_given <= 2 * n_bytes + 100
        return super().total(call)


def numbered(n_points):
    return np.arange(n_points, dtype=float)[:, None]


def test_weights_of_a_sample_add_up_to_what_as_many_rows_weigh():
    weights = np.arange(1.0, 31.0)
    sample = drawn_sample(numbered(30), weights, 30)
    assert sample.is_all
    order = np.argsort(sample.points[:, 0])
    np.testing.assert_array_equal(sample.points[order], numbered(30))
    np.testing.assert_array_equal(sample.weights[order], weights)
    assert not drawn_sample(numbered(30), weights, 29).is_all
    weights = np.random.default_rng(0).uniform(size=100)
    sample = drawn_sample(numbered(100), weights, 25)
    assert sample.weights.sum() == pytest.approx(25 * weights.mean())
    np.testing.assert_allclose(drawn_sample(numbered(100), None, 25).weights, 1.0)


def test_samples_stand_for_all_rows_without_bias_and_say_how_much_they_send():
    """Sums over any rows are estimated without bias, also where weights differ widely."""
    rng = np.random.default_rng(0)
    weights, wanted = rng.lognormal(sigma=1.5, size=60), rng.uniform(size=60) < 0.5
    rows, estimates = in_parts(numbered(60), weights, 7), []
    for seed in range(1500):
        sample = weighted_sample(rows, 20, np.random.RandomState(seed))
        is_wanted = wanted[sample.points[:, 0].astype(int)]
        estimates.append(sample.weights[is_wanted].sum() / sample.weights.sum())
    share = weights[wanted].sum() / weights.sum()
    standard_error = np.std(estimates) / np.sqrt(len(estimates))
    assert abs(np.mean(estimates) - share) < 4 * standard_error + 0.005
    points = np.random.default_rng(0).normal(size=(900, 5))
    rows = PartedPoints(Listening([(points[:450], None), (points[450:], None)], PartOpener()))
    assert len(weighted_sample(rows, 300, np.random.RandomState(0)).points) == 300


@pytest.mark.parametrize("n_least", [1, 4])
def test_rows_of_no_weight_come_only_where_there_are_too_few(n_least):
    weights = np.zeros(20)
    weights[[3, 8]] = 1.0
    sample = drawn_sample(numbered(20), weights, 10, n_least=n_least)
    assert sample.is_all
    assert len(sample.points) == max(2, n_least)
    assert set(sample.points[sample.weights > 0, 0]) == {3, 8}
