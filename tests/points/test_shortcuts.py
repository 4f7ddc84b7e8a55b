"""Sweeps that pass over distances: the same labels and sums as those that compute every one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import blobs, sq_distances

import powermeans._native as native
from powermeans import KMeans
from powermeans.mathematics.rules import Hard, Power
from powermeans.points.compiled import EuclideanPoints
from powermeans.points.reference import ReferencePoints

KINDS = ["clusters", "ties", "duplicates", "heavy tails"]
HARD_KINDS = [*KINDS, "far off", "one huge feature", "constant features", "subnormal", "an outlier"]
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def without_shortcuts(function, *args):
    native.take_shortcuts(False)
    try:
        return function(*args)
    finally:
        native.take_shortcuts(True)


def points_of(kind, n_points, n_features, dtype, rng):
    """Points whose bytes may hold as little as possible of what tells the centers apart."""
    seed = int(rng.integers(2**32))
    points = blobs(n_points, n_features, 30, scale=2.0, seed=seed)
    match kind:
        case "ties":  # whole numbers: many distances are equal, and exactly so
            points = rng.integers(0, 4, size=(n_points, n_features)).astype(float)
        case "duplicates":
            points = points[rng.integers(min(60, n_points), size=n_points)]
        case "heavy tails":
            points = rng.standard_t(1.5, size=(n_points, n_features))
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


def all_of(rows, centers):
    return rows.sweep(centers, Hard()), rows.spread(centers), *rows.assign(centers)


def assert_same_bits(found, expected):
    for one, other in zip(found, expected, strict=True):
        for name in ("points", "weights", "inertia", "error", "utility"):
            if hasattr(one, name):
                np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(found[2], expected[2])
    assert found[3] == expected[3]


CHANGES = ["step", "step", "step", "add", "take away", "far", "swap", "double", "jitter", "others"]


def changed(change, centers, points, rng):
    """Centers as a search, or a user, may change them between two sweeps."""
    centers, size = centers.copy(), float(np.std(points.astype(np.float64)))
    some = rng.integers(len(centers), size=2)
    match change:
        case "add":
            return np.vstack([centers, centers[some] + 0.01 * size])
        case "take away" if len(centers) > 2:
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


seeds = st.integers(0, 2**32 - 1)


@given(seed=seeds)
@settings(max_examples=100)
def test_a_chain_of_sweeps_is_as_if_each_were_the_first_and_computed_all(seed):
    rng = np.random.default_rng(seed)
    n_features = rng.choice([1, 2, 3, 9, 12, 16, 17, 33, 50, 64, 100, 300])
    kind, dtype = rng.choice(HARD_KINDS), rng.choice([np.float32, np.float64])
    points = points_of(kind, rng.choice([512, 700, 1200]), n_features, dtype, rng)
    if (unit := rng.choice([1.0, 1.0, 1e-37, 1e37])) != 1:
        points = (points / np.abs(points).max() * dtype(unit)).astype(dtype)
    weights = rng.integers(0, 3, len(points)).astype(float) if rng.random() < 0.5 else None
    n_centers, changes = rng.choice([8, 16, 33, 60, 200]), rng.choice(CHANGES, rng.integers(3, 9))
    chained = EuclideanPoints(points, weights)
    centers = points[rng.permutation(len(points))[:n_centers]].astype(np.float64)
    for change in changes:
        centers = np.ascontiguousarray(changed(change, centers, points, rng))
        fresh = EuclideanPoints(points, weights)
        found, first = all_of(chained, centers), all_of(fresh, centers)
        assert_same_bits(found, first)
        if n_features > 16:  # else sums are in another order
            assert_same_bits(found, without_shortcuts(all_of, fresh, centers))
        centers = found[0].centers(centers)


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


@given(seed=seeds)
@settings(max_examples=60)
def test_centers_passed_over_are_none_of_the_nearest(seed):
    rng = np.random.default_rng(seed)
    kind, dtype = rng.choice(KINDS), rng.choice([np.float32, np.float64])
    points = points_of(kind, 2500, rng.integers(1, 19), dtype, rng)
    weights = rng.uniform(0, 2, len(points)) if rng.random() < 0.5 else None
    n_centers = rng.integers(2, 61)
    centers = points[rng.choice(len(points), n_centers, replace=False)].astype(np.float64)
    centers += 0 if kind == "ties" else 0.1 * rng.normal(size=centers.shape).astype(dtype)
    rows, reference = EuclideanPoints(points, weights), ReferencePoints(points, weights)
    sq_dist = sq_distances(points.astype(np.float64), centers)
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
    rows = EuclideanPoints(points)
    all_distances = float(len(points) * len(means))
    assert without_shortcuts(rows.sweep, means, Hard()).n_skipped == 0
    # The first sweep judges whether a memory would help, the second makes it, the third has it.
    swept = [rows.sweep(means + shift, Hard()) for shift in (0.0, 0.01, 0.0)]
    assert swept[0].n_skipped >= 0
    assert swept[-1].n_skipped > 0.5 * all_distances
    if n_features <= 3:
        assert rows.sweep(means, Power(-100.0)).n_skipped > 0.5 * all_distances
    assert rows.sweep(means, Power(-0.5)).n_skipped == 0


def test_neither_centers_far_from_all_points_nor_memories_of_many_change_a_sweep():
    """Far from every point it weighs next to nothing, but what it weighs says where it goes."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(3000, 2))
    centers = np.vstack([rng.normal(size=(40, 2)), [[1e6, 1e6]]])
    found = EuclideanPoints(points).sweep(centers, Power(-20.0)).centers(centers)
    expected = ReferencePoints(points).sweep(centers, Power(-20.0)).centers(centers)
    assert np.abs(expected[-1]).max() < 10
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    rng = np.random.default_rng(0)
    points = rng.normal(size=(20_000, 20))
    rows = EuclideanPoints(points, n_threads=2)
    centers = points[:4000].copy()
    for _ in range(4):
        rows.sweep(centers, Hard())
        jumps = rng.random(len(centers)) < 0.15
        centers[jumps] = points[rng.integers(len(points), size=jumps.sum())]
    found, expected = (kind.sweep(centers[:8], Hard()) for kind in (rows, EuclideanPoints(points)))
    np.testing.assert_array_equal(found.points, expected.points)
    assert found.weights.sum() == len(points)


@pytest.mark.parametrize("n_centers", [4, 100])
@every_dtype
@pytest.mark.parametrize("kind", HARD_KINDS)
def test_labels_are_those_of_an_exact_comparison(kind, dtype, n_centers):
    """The first center whose distance in float64 is least, though products lose most digits."""
    rng = np.random.default_rng(5)
    points = points_of(kind, 1000, 100, dtype, rng)
    centers = points[rng.permutation(len(points))[:n_centers]].astype(np.float64)
    half, first, last = n_centers // 2, n_centers * 3 // 5, n_centers * 4 // 5
    centers[half:] = centers[:half]
    centers[first:last] += 1e-7 * (centers[first:last] - centers.mean(axis=0))
    labels, _ = EuclideanPoints(points).assign(centers)
    unit = np.abs(points).max().astype(np.float64)
    sq_dist = sq_distances(points.astype(np.float64) / unit, centers / unit)
    own, nearest = sq_dist[np.arange(len(points)), labels], sq_dist.min(axis=1)
    np.testing.assert_allclose(own, nearest, rtol=1e-12, atol=1e-30)
    assert not np.any((labels >= half) & (labels < first) | (labels >= last))
