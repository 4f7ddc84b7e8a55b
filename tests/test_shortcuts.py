"""Sweeps that pass over distances: the same labels and sums as those that compute every one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from powermeans import PowerKMeans
from powermeans.rows.native import NativeRows
from powermeans.rows.twin import TwinRows
from powermeans.rules import Hard, Power

KINDS = ["clusters", "ties", "duplicates", "heavy tails"]


def points_of(kind, n_points, n_features, rng):
    if kind == "ties":  # whole numbers: many distances are equal, and exactly so
        return rng.integers(0, 4, size=(n_points, n_features)).astype(float)
    if kind == "duplicates":
        return rng.normal(size=(60, n_features))[rng.integers(60, size=n_points)]
    if kind == "heavy tails":
        return rng.standard_t(1.5, size=(n_points, n_features))
    means = 2 * rng.normal(size=(30, n_features))
    return means[rng.integers(30, size=n_points)] + rng.normal(size=(n_points, n_features))


def drawn_centers(kind, points, n_centers, rng):
    centers = points[rng.choice(len(points), n_centers, replace=False)].astype(np.float64)
    return centers if kind == "ties" else centers + 0.1 * rng.normal(size=centers.shape)


def path_of_a_search(rows, kind, centers, points, rng):
    """Lloyd steps, centers added and taken away, one that jumps, and others altogether."""
    for _ in range(4):
        yield centers
        centers = rows.sweep(centers, Hard()).centers(centers)
    centers = np.vstack([centers, centers[:3] + 0.01 * rng.normal(size=(3, centers.shape[1]))])
    for _ in range(2):
        yield centers
        centers = rows.sweep(centers, Hard()).centers(centers)
    centers = np.delete(centers, rng.choice(len(centers), 3, replace=False), axis=0)
    for _ in range(2):
        yield centers
        centers = rows.sweep(centers, Hard()).centers(centers)
    centers = centers.copy()
    centers[0] = points[0]
    yield centers
    yield centers
    yield drawn_centers(kind, points, len(centers), rng)


@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(KINDS),
    n_features=st.integers(1, 24),
    n_centers=st.integers(8, 60),
    dtype=st.sampled_from([np.float32, np.float64]),
    is_weighted=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_what_a_sweep_remembers_changes_no_bit(
    seed, kind, n_features, n_centers, dtype, is_weighted
):
    rng = np.random.default_rng(seed)
    points = points_of(kind, 2500, n_features, rng).astype(dtype)
    weights = rng.integers(0, 3, len(points)).astype(float) if is_weighted else None
    remembering = NativeRows(points, weights)
    start = drawn_centers(kind, points, n_centers, rng)
    for centers in path_of_a_search(remembering, kind, start, points, rng):
        fresh = NativeRows(points, weights)
        found, expected = remembering.sweep(centers, Hard()), fresh.sweep(centers, Hard())
        np.testing.assert_array_equal(found.points, expected.points)
        np.testing.assert_array_equal(found.weights, expected.weights)
        assert found.inertia == expected.inertia
        found_labels, found_inertia = remembering.assign(centers)
        labels, inertia = NativeRows(points, weights).assign(centers)
        np.testing.assert_array_equal(found_labels, labels)
        assert found_inertia == inertia
        spread, fresh_spread = remembering.spread(centers), fresh.spread(centers)
        np.testing.assert_array_equal(spread.utility, fresh_spread.utility)


@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(KINDS),
    n_features=st.integers(1, 18),
    n_centers=st.integers(2, 60),
    dtype=st.sampled_from([np.float32, np.float64]),
    is_weighted=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_centers_passed_over_are_none_of_the_nearest(
    seed, kind, n_features, n_centers, dtype, is_weighted
):
    rng = np.random.default_rng(seed)
    points = points_of(kind, 2500, n_features, rng).astype(dtype)
    weights = rng.uniform(0, 2, len(points)) if is_weighted else None
    centers = drawn_centers(kind, points, n_centers, rng).astype(dtype).astype(np.float64)
    rows, twin = NativeRows(points, weights), TwinRows(points, weights)
    sq_dist = ((points[:, None].astype(np.float64) - centers) ** 2).sum(axis=2)
    labels, _ = rows.assign(centers)
    if kind == "ties":
        np.testing.assert_array_equal(labels, sq_dist.argmin(axis=1))
    nearest = sq_dist[np.arange(len(points)), labels]
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    assert np.all(nearest <= sq_dist.min(axis=1) * (1 + tolerance) + tolerance**2)
    for rule in (Hard(), Power(-30.0), Power(-200.5)):
        found, expected = rows.sweep(centers, rule), twin.sweep(centers, rule)
        assert found.inertia == pytest.approx(expected.inertia, rel=10 * tolerance)
        assert found.objective == pytest.approx(expected.objective, rel=10 * tolerance)
        assert 0 <= found.n_skipped < len(points) * n_centers


@pytest.mark.parametrize("n_features", [2, 3, 12, 40])
def test_most_distances_are_passed_over_where_clusters_lie_apart(n_features):
    rng = np.random.default_rng(0)
    means = 8 * rng.normal(size=(50, n_features))
    points = means[rng.integers(50, size=10_000)] + rng.normal(size=(10_000, n_features))
    rows = NativeRows(points)
    all_distances = float(len(points) * len(means))
    first, second = (rows.sweep(means + shift, Hard()) for shift in (0.0, 0.01))
    assert first.n_skipped >= 0
    assert second.n_skipped > 0.5 * all_distances
    if n_features <= 3:
        assert rows.sweep(means, Power(-100.0)).n_skipped > 0.5 * all_distances
    assert rows.sweep(means, Power(-0.5)).n_skipped == 0


def test_a_center_that_lives_on_negligible_shares_is_moved_all_the_same():
    """Far from every point it weighs next to nothing, but what it weighs says where it goes."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(3000, 2))
    centers = np.vstack([rng.normal(size=(40, 2)), [[1e6, 1e6]]])
    found = NativeRows(points).sweep(centers, Power(-20.0)).centers(centers)
    expected = TwinRows(points).sweep(centers, Power(-20.0)).centers(centers)
    assert np.abs(expected[-1]).max() < 10
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_a_fit_tells_the_share_of_distances_it_skipped():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(5000, 2))
    model = PowerKMeans(50, random_state=0).fit(points)
    assert 0.5 < model.spent_.skipped < 1
    skipped = model.history_.skipped
    assert np.all((skipped >= 0) & (skipped < 1))
    assert skipped[-1] > 0.5
    assert PowerKMeans(2, random_state=0).fit(points[:100]).spent_.skipped == 0
