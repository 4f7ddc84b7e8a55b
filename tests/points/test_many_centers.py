"""Thousands of centers: seeds by a tree, and sweeps over the centers near each point."""

import math
from unittest.mock import Mock

import numpy as np
import problems
import pytest
from comparator import assert_same_sums
from problems import sq_distances

from powermeans import KMeans, PowerKMeans
from powermeans.divergences import resolve
from powermeans.engine.search import search as searching
from powermeans.engine.search.effort import THRESHOLDS
from powermeans.engine.search.moves import least_useful
from powermeans.engine.search.state import Solution
from powermeans.engine.seeds import TreeSeeds, tree
from powermeans.engine.seeds.tree import _quotas
from powermeans.engine.stopping import MaxSeconds
from powermeans.mathematics.rules import Hard, Power
from powermeans.points.cells import Cells
from powermeans.points.nearby import NearbyPoints
from powermeans.points.opening import open_rows
from powermeans.points.protocol import AskedNear


def blobs(n_points: int, n_features: int, n_blobs: int, dtype: str = "f4") -> np.ndarray:
    return problems.blobs(n_points, n_features, n_blobs, scale=4.0).astype(dtype)


def with_all_listed(n_centers: int) -> np.ndarray:
    everything = np.arange(n_centers, dtype=np.int32)
    return np.array([np.roll(everything, -j) for j in range(n_centers)])


@pytest.mark.parametrize("divergence", ["squared_euclidean", "cosine"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("rule", [Hard(), Power(-3.0), Power(-7.5)])
def test_a_sweep_and_a_spread_among_all_centers_are_the_usual_ones(divergence, dtype, rule):
    points = blobs(900, 20, 6, dtype)
    weights = np.random.default_rng(1).uniform(0, 3, size=900)
    rows = open_rows(points, weights, divergence=resolve(divergence), n_threads=2)
    centers = rows.take(np.arange(0, 900, 75))
    labels = np.random.default_rng(2).integers(12, size=900).astype(np.int32)
    nearby = Cells(rows).sweep(centers, rule, with_all_listed(12), labels)
    usual = rows.sweep(centers, rule)
    assert_same_sums(nearby, usual, 1e-5 if dtype == "f4" else 1e-11)
    if isinstance(rule, Hard):
        np.testing.assert_array_equal(labels, rows.assign(centers)[0])
    nearby, usual = Cells(rows).spread(centers, with_all_listed(12), labels), rows.spread(centers)
    np.testing.assert_allclose(nearby.error, usual.error, rtol=1e-6)
    np.testing.assert_allclose(nearby.utility, usual.utility, rtol=1e-5)
    np.testing.assert_allclose(nearby.weights, usual.weights, rtol=1e-12)


def test_a_point_is_compared_with_the_centers_beside_its_own_and_lone_ones_keep_theirs():
    points = blobs(300, 17, 4, "f8")
    rows = open_rows(points)
    centers = rows.take(np.arange(0, 300, 60))
    lists = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]], dtype=np.int32)
    before = np.random.default_rng(0).integers(5, size=300).astype(np.int32)
    labels = before.copy()
    Cells(rows).sweep(centers, Hard(), lists, labels)
    sq_dist = sq_distances(points, centers)
    among = np.take_along_axis(sq_dist, lists[before], axis=1).argmin(axis=1)
    np.testing.assert_array_equal(labels, lists[before, among])
    points = blobs(2000, 20, 1, "f8")
    points[:40] += 1000
    rows = open_rows(points)
    centers = np.concatenate([rows.take(np.arange(100, 2000, 19)), rows.take(np.array([0]))])
    labels = np.full(2000, 0, dtype=np.int32)
    nearby = NearbyPoints(rows, centers, labels)
    for _ in range(3):  # the fourth looks at all
        sums = nearby.sweep(centers, Hard())
    assert sums.weights[-1] == 40


@pytest.mark.parametrize("n_threads", [1, 2])
def test_centers_near_a_point_are_sought_only_among_those_listed(n_threads):
    points, rng = blobs(600, 19, 4, "f8"), np.random.default_rng(3)
    rows = open_rows(points, n_threads=n_threads)
    centers, prices = rows.take(np.arange(0, 600, 50)), rng.normal(size=12)
    lists, labels = with_all_listed(12)[:, :5].copy(), rng.integers(12, size=600).astype(np.int32)
    some = rng.permutation(600)[:400]
    asked = AskedNear(some, labels[some], centers, prices, np.inf, n_most=5)
    found = Cells(rows).near(asked, lists)
    distances = sq_distances(points[some], centers)
    for i, own in enumerate(labels[some]):
        others = sorted(lists[own][1:], key=lambda j, i=i: distances[i, j] + prices[j])
        np.testing.assert_array_equal(found.centers[i], [own, *others])
    np.testing.assert_allclose(
        found.distances, np.take_along_axis(distances, found.centers, axis=1), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize(
    ("n_lists", "listed", "message"),
    [(3, 0, "a row for each center"), (4, 4, "numbers of centers")],
)
def test_the_core_refuses_lists_that_name_no_centers(n_lists, listed, message):
    rows, lists = open_rows(blobs(50, 20, 2)), np.full((n_lists, 2), listed, dtype=np.int32)
    with pytest.raises(ValueError, match=message):
        Cells(rows).sweep(rows.take(np.arange(4)), Hard(), lists, np.zeros(50, dtype=np.int32))


@pytest.mark.parametrize("divergence", ["squared_euclidean", "cosine"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n_features", [3, 40])
@pytest.mark.parametrize("is_priced", [False, True])
def test_lists_name_the_centers_nearest_to_or_cheapest_for_each(
    divergence, dtype, n_features, is_priced
):
    rows = open_rows(blobs(400, n_features, 5, dtype), divergence=resolve(divergence), n_threads=2)
    centers = rows.take(np.arange(250))
    if divergence == "cosine":
        centers /= np.linalg.norm(centers, axis=1, keepdims=True)
    costs = sq_distances(centers, centers) / (2 if divergence == "cosine" else 1)
    prices = np.random.default_rng(0).normal(size=250) * costs.mean() if is_priced else None
    costs += 0 if prices is None else prices
    np.fill_diagonal(costs, -np.inf)  # each is the first in its own list, at any price
    lists = Cells(rows).nearest_to_each(centers, 9, prices)
    np.testing.assert_array_equal(lists[:, 0], np.arange(250))
    found, expected = np.take_along_axis(costs, lists, axis=1), np.sort(costs, axis=1)[:, :9]
    np.testing.assert_allclose(found[:, 1:], expected[:, 1:], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n_features", [2, 30])
def test_least_useful_are_the_same_by_lists_of_many_neighbours(n_features):
    points = blobs(3000, n_features, 30, "f8")
    rows = open_rows(points)
    centers = rows.take(np.arange(0, 3000, 25))
    solution = Solution(centers, rows.spread(centers))
    lists = Cells(rows).nearest_to_each(centers, 100)
    spared = least_useful(solution, 20)
    np.testing.assert_array_equal(least_useful(solution, 20, lists), spared)
    assert len(np.unique(spared)) == 20


def test_tree_seeds_leave_less_than_random_ones_by_quotas_that_add_up():
    points = blobs(6000, 20, 300)
    seeds = KMeans(300, init=TreeSeeds(), n_init=1, max_iter=1, random_state=0).fit(points)
    drawn = KMeans(300, init="random", n_init=1, max_iter=4, random_state=0).fit(points)
    assert seeds.cluster_centers_.shape == (300, 20)
    assert seeds.inertia_ < 0.9 * drawn.inertia_
    rng = np.random.default_rng(0)
    for _ in range(200):
        n_points = rng.integers(0, 30, size=rng.integers(1, 12))
        if n_points.sum() < len(n_points):
            continue
        error = rng.exponential(size=len(n_points)) * (n_points > 1) * (rng.random() < 0.8)
        n_wanted = int(rng.integers(np.count_nonzero(n_points), n_points.sum() + 1))
        quotas = _quotas(n_points, error, n_wanted)
        assert quotas.sum() == n_wanted
        assert (quotas[n_points > 0] > 0).all()
        assert (quotas[n_points == 0] == 0).all()


@pytest.mark.parametrize("n_clusters", [1, 2, 3, 50, 199, 200])
def test_tree_seeds_of_any_number(n_clusters):
    points = blobs(200, 3, 7, "f8")
    centers = TreeSeeds()(points, n_clusters, np.random.RandomState(0))
    assert centers.shape == (n_clusters, 3)
    assert np.isfinite(centers).all()


def test_a_thousand_centers_have_exact_labels_and_low_inertia_on_any_threads(monkeypatch):
    monkeypatch.setattr(searching, "THRESHOLDS", THRESHOLDS._replace(least_work_nearby=0))
    embeddings = blobs(12000, 24, 1500)
    one, two, model = (
        PowerKMeans(1000, effort="fast", random_state=0, n_threads=n).fit(embeddings)
        for n in (1, 2, None)
    )
    np.testing.assert_array_equal(model.labels_, model.predict(embeddings))
    assert model.inertia_ == pytest.approx(-model.score(embeddings), rel=1e-12)
    usual = KMeans(1000, n_init=1, random_state=0).fit(embeddings)
    assert model.inertia_ < 1.03 * usual.inertia_
    assert model.spent_.skipped > 0.5
    np.testing.assert_array_equal(one.cluster_centers_, two.cluster_centers_)


def test_seeds_of_cells_hear_how_much_time_is_left_and_descend_only_while_there_is_some(
    monkeypatch,
):
    points = np.random.default_rng(0).normal(size=(900, 3))
    chosen, descended = (Mock(wraps=of) for of in (tree.choose_seeds, tree._descended))
    monkeypatch.setattr(tree, "choose_seeds", chosen)
    monkeypatch.setattr(tree, "_descended", descended)
    model = PowerKMeans(60, init=TreeSeeds(), effort="none", stop=MaxSeconds(1e-9), random_state=0)
    late = model.fit(points)
    assert late.history_.power.tolist() == [-math.inf]
    n_cells = len(chosen.mock_calls)
    assert max(call.kwargs["seconds"] for call in chosen.mock_calls) <= 0
    assert descended.call_count == 1  # the coarse centers
    model.set_params(stop=MaxSeconds(1e6)).fit(points)
    assert 0 < min(call.kwargs["seconds"] for call in chosen.mock_calls[n_cells:]) <= 1e6
    assert descended.call_count == 2 + n_cells
