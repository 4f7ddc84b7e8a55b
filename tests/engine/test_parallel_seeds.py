"""Seeds in a few passes, and samples of rows in parts: the same however rows are cut, and fair."""

from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kinds_of_rows import in_parts
from problems import blobs
from scipy import sparse
from scipy.stats import binom

from powermeans import KMeans, MarkovChainSeeds, MaxSeconds, ParallelSeeds, PowerKMeans, open_data
from powermeans.engine.seeds import parallel
from powermeans.engine.seeds.choose import choose_seeds
from powermeans.engine.seeds.parallel import first_of_race
from powermeans.engine.seeds.samples import distinct_places, weighted_sample
from powermeans.points.compiled import EuclideanRows
from powermeans.scale.executors import MemoryExecutor, PartOpener
from powermeans.scale.parted_rows import PartedRows

NOWHERE = np.empty((0, 2))


POINTS = blobs(3000, 2, 12, scale=20.0)


@given(n_rows=st.integers(1, 400), n_drawn=st.integers(1, 300), seed=st.integers(0, 99))
def test_how_rows_are_cut_does_not_change_who_arrives(n_rows, n_drawn, seed):
    rng = np.random.default_rng(seed)
    points, weights = rng.normal(size=(250, 2)), rng.exponential(size=250)
    n_rows = max(n_rows, 25)
    for centers in (NOWHERE, points[:3]):
        found = first_of_race(in_parts(points, weights, n_rows), centers, n_drawn, seed)
        whole = first_of_race(EuclideanRows(points, weights), centers, n_drawn, seed)
        np.testing.assert_array_equal(found, whole)
        n_away = 250 - len(centers)
        assert len(found) == min(n_drawn, n_away)
        assert len(np.unique(found, axis=0)) == len(found)


def test_the_first_arrives_by_weight_times_squared_distance():
    """At distances 0, 1 and 3 with the weights 5, 3 and 1 the chances are 0, 1/4 and 3/4."""
    points, weights = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0]]), np.array([5.0, 3.0, 1.0])
    rows, n_races = EuclideanRows(points, weights, n_threads=1), 2000
    firsts = [first_of_race(rows, points[:1], 1, key)[0, 0] for key in range(n_races)]
    n_near = firsts.count(1.0)
    assert firsts.count(0.0) == 0
    assert binom.cdf(n_near, n_races, 1 / 4) > 1e-6
    assert binom.sf(n_near, n_races, 1 / 4) > 1e-6


def test_candidates_weigh_as_much_as_all_points():
    weights = np.random.default_rng(0).exponential(size=3000)
    rows = in_parts(POINTS, weights, 700)
    found = ParallelSeeds().candidates(rows, 12, np.random.RandomState(0))
    assert len(found.points) == 5 * 24
    assert found.weights.sum() == pytest.approx(weights.sum(), rel=1e-12)


def test_seeds_are_as_good_as_those_of_greedy_k_means_plus_plus():
    rows, whole, ours, theirs = in_parts(POINTS, None, 700), EuclideanRows(POINTS), [], []
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


def test_estimators_take_them_for_arrays_and_for_parts():
    one, many = (open_data(POINTS, rows_per_part=n_rows) for n_rows in (3000, 300))
    for init in (ParallelSeeds(n_rounds=2, oversampling=1.0), "k-means++"):
        model = KMeans(12, init=init, random_state=0)
        found, expected = (model.fit(parts).cluster_centers_ for parts in (many, one))
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    model = PowerKMeans(12, init=ParallelSeeds(), random_state=0)
    assert model.fit(POINTS).inertia_ == pytest.approx(model.fit(many).inertia_, rel=1e-6)


@pytest.mark.parametrize(
    ("kind", "params", "message"),
    [
        (ParallelSeeds, {"n_rounds": 0}, "n_rounds=0 must be at least 1"),
        (ParallelSeeds, {"oversampling": 0.0}, "oversampling=0.0 must be positive"),
        (ParallelSeeds, {"n_rounds": 1, "oversampling": 0.5}, "less than one candidate"),
        (MarkovChainSeeds, {"chain_length": 0}, "chain_length=0 must be"),
        (MarkovChainSeeds, {"chain_length": 2.5}, "chain_length=2.5 must be"),
        (MarkovChainSeeds, {"exponent": -1.0}, "exponent=-1.0 must be"),
        (MarkovChainSeeds, {"exponent": np.nan}, "exponent=nan must be"),
    ],
)
def test_options_that_cannot_be_are_named(kind, params, message):
    with pytest.raises(ValueError, match=message):
        kind(**params)


@pytest.mark.parametrize(("oversampling", "n_rounds"), [(2.0, 1), (0.4, 3)])
def test_a_fit_whose_time_is_up_looks_for_no_more_candidates_than_it_needs(
    monkeypatch, oversampling, n_rounds
):
    points, noted = np.random.default_rng(0).normal(size=(600, 2)), Mock(wraps=first_of_race)
    monkeypatch.setattr(parallel, "first_of_race", noted)
    way = ParallelSeeds(oversampling=oversampling)
    model = PowerKMeans(10, init=way, random_state=0)
    model.set_params(stop=MaxSeconds(1e-9)).fit(points)
    assert noted.call_count == n_rounds
    assert len(np.unique(model.cluster_centers_, axis=0)) == 10
    model.set_params(stop=None).fit(points)
    assert noted.call_count == n_rounds + 5


def drawn(points, weights, n_drawn, seed=0, n_rows=7, **options):
    rows = in_parts(points, weights, n_rows)
    return weighted_sample(rows, n_drawn, np.random.RandomState(seed), **options)


class Listening(MemoryExecutor):
    """Parts that look at what calls say of their results, as places that send them do."""

    def total(self, call):
        for found in self.each(call):
            n_bytes = found.points.nbytes + found.times.nbytes + found.weights.nbytes
            assert n_bytes <= call.n_bytes_given <= 2 * n_bytes + 100
        return super().total(call)


def test_a_part_says_how_much_it_sends_since_a_cluster_adds_by_that():
    points = np.random.default_rng(0).normal(size=(900, 5))
    rows = PartedRows(Listening([(points[:450], None), (points[450:], None)], PartOpener()))
    assert len(weighted_sample(rows, 300, np.random.RandomState(0)).points) == 300


def numbered(n_points):
    return np.arange(n_points, dtype=float)[:, None]


def test_where_all_are_kept_they_have_their_weights():
    weights = np.arange(1.0, 31.0)
    sample = drawn(numbered(30), weights, 30)
    assert sample.is_all
    order = np.argsort(sample.points[:, 0])
    np.testing.assert_array_equal(sample.points[order], numbered(30))
    np.testing.assert_array_equal(sample.weights[order], weights)
    assert not drawn(numbered(30), weights, 29).is_all


@pytest.mark.parametrize("n_rows", [1, 13, 100])
def test_it_does_not_depend_on_where_the_rows_are_cut(n_rows):
    weights = np.random.default_rng(0).uniform(size=100)
    one, other = (drawn(numbered(100), weights, 20, n_rows=n) for n in (7, n_rows))
    np.testing.assert_array_equal(one.points, other.points)
    np.testing.assert_allclose(one.weights, other.weights, rtol=1e-12)


def test_what_it_stands_for_has_no_bias():
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


def test_weights_add_up_to_what_as_many_rows_weigh():
    weights = np.random.default_rng(0).uniform(size=100)
    sample = drawn(numbered(100), weights, 25)
    assert sample.weights.sum() == pytest.approx(25 * weights.mean())
    np.testing.assert_allclose(drawn(numbered(100), None, 25).weights, 1.0)


@pytest.mark.parametrize("n_least", [1, 4])
def test_rows_of_no_weight_come_only_where_there_are_too_few(n_least):
    weights = np.zeros(20)
    weights[[3, 8]] = 1.0
    sample = drawn(numbered(20), weights, 10, n_least=n_least)
    assert sample.is_all
    assert len(sample.points) == max(2, n_least)
    assert set(sample.points[sample.weights > 0, 0]) == {3, 8}


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "CSR"])
def test_points_stay_in_their_kind(make):
    points = make(np.random.default_rng(0).poisson(0.5, size=(50, 4)).astype(np.float32))
    sample = drawn(points, None, 10)
    assert sample.points.dtype == np.float32
    assert sparse.issparse(sample.points) == sparse.issparse(points)
    assert sample.points.shape == (10, 4)
