"""Sweeps that pass over distances: the same labels and sums as those that compute every one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import powermeans._native as native
from powermeans import KMeans
from powermeans.mathematics.rules import Hard, Power
from powermeans.points.compiled import EuclideanRows
from powermeans.points.reference import ReferenceRows

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


CHANGES = ["step", "step", "step", "add", "take away", "far", "swap", "double", "jitter", "others"]


def changed(change, centers, points, rng):
    """Centers as a search, or a user, may change them between two sweeps."""
    centers, size = centers.copy(), float(np.std(points.astype(np.float64)))
    some = rng.integers(len(centers), size=2)
    match change:
        case "add":
            return np.vstack([centers, centers[some] + 0.01 * size])
        case "take away":
            return np.delete(centers, some, axis=0)
        case "far":
            centers[some[0]] *= 1e4
        case "swap":
            centers[some] = centers[some[::-1]]
        case "double":
            centers[some[0]] = centers[some[1]]
        case "jitter":
            centers += 1e-3 * size * rng.normal(size=centers.shape)
        case "others":
            return points[rng.choice(len(points), len(centers))].astype(np.float64)
    return centers


@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(KINDS),
    n_features=st.sampled_from([1, 2, 3, 9, 12, 16, 17, 33, 40, 300]),
    n_centers=st.integers(8, 60),
    dtype=st.sampled_from([np.float32, np.float64]),
    unit=st.sampled_from([1.0, 1e-37, 1e37]),
    shift=st.sampled_from([0.0, 1e3]),
    is_weighted=st.booleans(),
    changes=st.lists(st.sampled_from(CHANGES), min_size=6, max_size=10),
)
@settings(max_examples=80, deadline=None)
def test_a_chain_of_sweeps_is_as_if_each_were_the_first(
    seed, kind, n_features, n_centers, dtype, unit, shift, is_weighted, changes
):
    rng = np.random.default_rng(seed)
    points = (points_of(kind, 1500, n_features, rng) + shift).astype(np.float64)
    points *= unit / np.abs(points).max()
    points = points.astype(dtype)
    weights = rng.integers(0, 3, len(points)).astype(float) if is_weighted else None
    chained = EuclideanRows(points, weights)
    centers = points[rng.choice(len(points), n_centers)].astype(np.float64)
    for change in changes:
        centers = np.ascontiguousarray(changed(change, centers, points, rng))
        found, expected = (
            chained.sweep(centers, Hard()),
            EuclideanRows(points, weights).sweep(centers, Hard()),
        )
        np.testing.assert_array_equal(found.points, expected.points)
        np.testing.assert_array_equal(found.weights, expected.weights)
        assert found.inertia == expected.inertia
        labels, inertia = EuclideanRows(points, weights).assign(centers)
        np.testing.assert_array_equal(chained.assign(centers)[0], labels)
        assert chained.assign(centers)[1] == inertia
        utility = EuclideanRows(points, weights).spread(centers).utility
        np.testing.assert_array_equal(chained.spread(centers).utility, utility)
        centers = found.centers(centers)


@pytest.mark.parametrize("n_features", [12, 20, 40])
def test_distances_beyond_float32_are_remembered_as_far(n_features):
    """Each coordinate is finite in float32, and the distances are not."""
    rng = np.random.default_rng(1)
    means = rng.uniform(-1, 1, (40, n_features))
    noise = 0.3 * rng.normal(size=(3000, n_features))
    points = (8e37 * (2 * means[rng.integers(40, size=3000)] + noise)).astype(np.float32)
    model = KMeans(40, init=points[:40], max_iter=20).fit(points)
    np.testing.assert_array_equal(model.labels_, model.predict(points))
    smaller = points / np.float32(2.0**60)
    expected = KMeans(40, init=smaller[:40], max_iter=20).fit(smaller)
    np.testing.assert_array_equal(model.labels_, expected.labels_)


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
    rows, reference = EuclideanRows(points, weights), ReferenceRows(points, weights)
    sq_dist = ((points[:, None].astype(np.float64) - centers) ** 2).sum(axis=2)
    labels, _ = rows.assign(centers)
    if kind == "ties":
        np.testing.assert_array_equal(labels, sq_dist.argmin(axis=1))
    nearest = sq_dist[np.arange(len(points)), labels]
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    assert np.all(nearest <= sq_dist.min(axis=1) * (1 + tolerance) + tolerance**2)
    for rule in (Hard(), Power(-30.0), Power(-200.5)):
        found, expected = rows.sweep(centers, rule), reference.sweep(centers, rule)
        assert found.inertia == pytest.approx(expected.inertia, rel=10 * tolerance)
        assert found.objective == pytest.approx(expected.objective, rel=10 * tolerance)
        assert 0 <= found.n_skipped < len(points) * n_centers


@pytest.mark.parametrize("n_features", [2, 3, 12, 40])
def test_most_distances_are_passed_over_where_clusters_lie_apart(n_features):
    rng = np.random.default_rng(0)
    means = 8 * rng.normal(size=(50, n_features))
    points = means[rng.integers(50, size=10_000)] + rng.normal(size=(10_000, n_features))
    rows = EuclideanRows(points)
    all_distances = float(len(points) * len(means))
    # The first sweep judges whether a memory would help, the second makes it, the third has it.
    swept = [rows.sweep(means + shift, Hard()) for shift in (0.0, 0.01, 0.0)]
    assert swept[0].n_skipped >= 0
    assert swept[-1].n_skipped > 0.5 * all_distances
    if n_features <= 3:
        assert rows.sweep(means, Power(-100.0)).n_skipped > 0.5 * all_distances
    assert rows.sweep(means, Power(-0.5)).n_skipped == 0


def test_a_center_that_lives_on_negligible_shares_is_moved_all_the_same():
    """Far from every point it weighs next to nothing, but what it weighs says where it goes."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(3000, 2))
    centers = np.vstack([rng.normal(size=(40, 2)), [[1e6, 1e6]]])
    found = EuclideanRows(points).sweep(centers, Power(-20.0)).centers(centers)
    expected = ReferenceRows(points).sweep(centers, Power(-20.0)).centers(centers)
    assert np.abs(expected[-1]).max() < 10
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_a_memory_of_many_centers_does_not_outlive_them():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(20_000, 20))
    rows = EuclideanRows(points, n_threads=2)
    centers = points[:4000].copy()
    for _ in range(4):
        rows.sweep(centers, Hard())
        jumps = rng.random(len(centers)) < 0.15
        centers[jumps] = points[rng.integers(len(points), size=jumps.sum())]
    found, expected = (kind.sweep(centers[:8], Hard()) for kind in (rows, EuclideanRows(points)))
    np.testing.assert_array_equal(found.points, expected.points)
    assert found.weights.sum() == len(points)


HARD_KINDS = [*KINDS, "far off", "one huge feature", "constant features", "subnormal", "an outlier"]


def hard_points_of(kind, n_points, n_features, dtype, rng):
    """Points whose bytes hold as little as possible of what tells the centers apart."""
    points = points_of(kind if kind in KINDS else "clusters", n_points, n_features, rng)
    match kind:
        case "far off":
            points += 1e6
        case "one huge feature":
            points[:, 0] *= 1e9
        case "constant features":
            points[:, 1:] = rng.normal(size=n_features - 1)
        case "subnormal":
            points *= np.finfo(dtype).smallest_normal / 100
        case "an outlier":
            points[0] = 1e12
    return points.astype(dtype)


@pytest.fixture
def without_shortcuts():
    """A function that calls another with every distance computed."""

    def call(function, *args):
        native.take_shortcuts(False)
        try:
            return function(*args)
        finally:
            native.take_shortcuts(True)

    return call


@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(HARD_KINDS),
    n_points=st.sampled_from([512, 700, 1500]),
    n_features=st.sampled_from([17, 50, 64, 100, 300]),
    n_centers=st.sampled_from([16, 33, 64, 200, None]),
    dtype=st.sampled_from([np.float32, np.float64]),
    is_weighted=st.booleans(),
)
@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_candidates_from_bytes_change_no_bit(
    without_shortcuts, seed, kind, n_points, n_features, n_centers, dtype, is_weighted
):
    rng = np.random.default_rng(seed)
    points = hard_points_of(kind, n_points, n_features, dtype, rng)
    weights = rng.integers(0, 3, len(points)).astype(float) if is_weighted else None
    rows = EuclideanRows(points, weights)
    centers = points[rng.permutation(len(points))[:n_centers]].astype(np.float64)
    for _ in range(3):
        labels, inertia = rows.assign(centers)
        expected_labels, expected_inertia = without_shortcuts(rows.assign, centers)
        np.testing.assert_array_equal(labels, expected_labels)
        assert inertia == expected_inertia
        spread, expected_spread = rows.spread(centers), without_shortcuts(rows.spread, centers)
        np.testing.assert_array_equal(spread.error, expected_spread.error)
        np.testing.assert_array_equal(spread.utility, expected_spread.utility)
        found, expected = (
            rows.sweep(centers, Hard()),
            without_shortcuts(rows.sweep, centers, Hard()),
        )
        np.testing.assert_array_equal(found.points, expected.points)
        np.testing.assert_array_equal(found.weights, expected.weights)
        assert found.inertia == expected.inertia
        centers = found.centers(centers)


@pytest.mark.parametrize("n_centers", [4, 100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", HARD_KINDS)
def test_labels_are_those_of_an_exact_comparison(kind, dtype, n_centers):
    """The first center whose distance in float64 is least, though products lose most digits."""
    rng = np.random.default_rng(5)
    points = hard_points_of(kind, 1000, 100, dtype, rng)
    centers = points[rng.permutation(len(points))[:n_centers]].astype(np.float64)
    half, first, last = n_centers // 2, n_centers * 3 // 5, n_centers * 4 // 5
    centers[half:] = centers[:half]
    centers[first:last] += 1e-7 * (centers[first:last] - centers.mean(axis=0))
    labels, _ = EuclideanRows(points).assign(centers)
    unit = np.abs(points).max().astype(np.float64)
    differences = (points.astype(np.float64) / unit)[:, None] - centers / unit
    sq_dist = np.square(differences).sum(axis=2)
    nearest = sq_dist.min(axis=1)
    np.testing.assert_allclose(
        sq_dist[np.arange(len(points)), labels], nearest, rtol=1e-12, atol=1e-30
    )
    assert not np.any((labels >= half) & (labels < first) | (labels >= last))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("spread_of_means", [0.0, 0.5])
def test_the_first_sweep_computes_few_distances_exactly(dtype, spread_of_means, without_shortcuts):
    rng = np.random.default_rng(0)
    means = spread_of_means * rng.normal(size=(80, 256))
    points = (means[rng.integers(80, size=4000)] + rng.normal(size=(4000, 256))).astype(dtype)
    centers = np.array([part.mean(axis=0) for part in np.array_split(points, 80)], dtype=np.float64)
    rows = EuclideanRows(points)
    assert without_shortcuts(rows.sweep, centers, Hard()).n_skipped == 0
    all_distances = len(points) * len(centers)
    # Sketches have an error of one part in a hundred, and few centers are as near as that.
    assert rows.sweep(centers, Hard()).n_skipped > 0.8 * all_distances
