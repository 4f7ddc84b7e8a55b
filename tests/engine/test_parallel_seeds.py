"""Seeds in a few passes: the same however rows are cut, drawn by the right chances, and good."""

from __future__ import annotations

from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kinds_of_rows import in_parts
from problems import blobs
from scipy.stats import binom

from powermeans import KMeans, MaxSeconds, ParallelSeeds, PowerKMeans, open_data
from powermeans.engine.seeds import parallel
from powermeans.engine.seeds.choose import choose_seeds
from powermeans.engine.seeds.parallel import first_of_race
from powermeans.engine.seeds.samples import distinct_places
from powermeans.points.compiled import EuclideanRows

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


def test_points_without_weight_stay_at_home():
    points, weights = POINTS[:100], np.zeros(100)
    weights[:4] = 1
    found = first_of_race(in_parts(points, weights, 30), NOWHERE, 50, 0)
    assert {tuple(point) for point in found} == {tuple(point) for point in points[:4]}


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
    ("params", "message"),
    [
        ({"n_rounds": 0}, "n_rounds=0 must be at least 1"),
        ({"oversampling": 0.0}, "oversampling=0.0 must be positive"),
        ({"n_rounds": 1, "oversampling": 0.5}, "less than one candidate"),
    ],
)
def test_options_that_cannot_be_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        ParallelSeeds(**params)


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
