"""Where points are many, a search in a sample: it is fair, bounded, and repeatable."""

import math
from dataclasses import replace

import numpy as np
import pytest
from problems import sq_distances
from scipy import sparse

from powermeans import KMeans, PowerKMeans
from powermeans.engine.search import search as searching
from powermeans.engine.search.effort import EFFORTS, THRESHOLDS
from powermeans.engine.search.search import n_sampled
from powermeans.engine.seeds.choose import drawn_sample
from powermeans.points.compiled import EuclideanRows
from powermeans.points.opening import open_rows

BALANCED = EFFORTS["balanced"][0]


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
    sweep = EuclideanRows.sweep

    def counted(rows, centers, rule):
        if len(centers) >= model.n_clusters:
            counts.add(rows.n_points)
        return sweep(rows, centers, rule)

    monkeypatch.setattr(EuclideanRows, "sweep", counted)
    model.fit(points, sample_weight=weights)
    return counts


def test_as_many_values_are_sampled_as_swaps_take() -> None:
    points = np.random.default_rng(0).normal(size=(2**16, 17))
    rows, fewer = open_rows(points), replace(BALANCED, most_values=17 * 9000)
    assert n_sampled(rows, 5, BALANCED) == 2**20 // 17
    assert n_sampled(rows, 621, BALANCED) == 621 * 25  # a costly sweep
    assert [n_sampled(rows, n, fewer) for n in (5, 200)] == [9000, 20_000]
    assert n_sampled(rows, 5, replace(BALANCED, most_values=17)) == 8192
    # All of few values are searched, and copies are no reason to sample.
    assert n_sampled(open_rows(points[:1000, :3].copy()), 5, BALANCED) == 0
    assert n_sampled(open_rows(np.repeat(points[: 2**15], 4, axis=0)), 5, BALANCED) == 0


def test_sparse_points_are_sampled_by_what_they_store() -> None:
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


def inertia_of(model: PowerKMeans, points: np.ndarray) -> float:
    return sq_distances(points, model.cluster_centers_).min(axis=1).sum()


@pytest.mark.usefixtures("sampling")
@pytest.mark.parametrize("effort", ["fast", "balanced"])
def test_it_ends_below_the_best_of_ten_starts(effort: str) -> None:
    for seed in range(4):
        points = mixture(seed=seed)
        ten = KMeans(15, n_init=10, random_state=seed).fit(points)
        model = PowerKMeans(15, effort=effort, random_state=seed).fit(points)
        assert model.inertia_ <= ten.inertia_ * 1.001
        assert model.inertia_ == pytest.approx(inertia_of(model, points))


@pytest.mark.usefixtures("sampling")
def test_neither_threads_nor_order_nor_copies_matter() -> None:
    points = mixture()
    counts = np.random.default_rng(1).integers(0, 4, size=4000)
    order = np.random.default_rng(2).permutation(counts.sum())
    weighted, threaded = (
        PowerKMeans(6, random_state=0, n_threads=n).fit(points, sample_weight=counts)
        for n in (1, 3)
    )
    copied = PowerKMeans(6, random_state=0).fit(np.repeat(points, counts, axis=0)[order])
    assert threaded.cluster_centers_.tobytes() == weighted.cluster_centers_.tobytes()
    assert copied.inertia_ == pytest.approx(weighted.inertia_, rel=1e-6)


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
        assert model.inertia_ == pytest.approx(inertia_of(model, points))
        assert model.n_iter_ <= last
