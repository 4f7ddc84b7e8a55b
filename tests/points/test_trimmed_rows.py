import numpy as np
import pytest
from comparator import assert_same_sums
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from kinds_of_rows import KINDS
from problems import blobs, sq_distances

from powermeans.mathematics.rules import Gaussian, Hard, Power
from powermeans.methods.robust.trimmed import TrimmedPoints, trimmed_weights
from powermeans.points.compiled import EuclideanPoints
from powermeans.points.reference import ReferencePoints

NAMES = ["reference", "native", "native of CSR"]
every_kind = pytest.mark.parametrize("make_rows", [KINDS[name] for name in NAMES], ids=NAMES)
RULES = [Hard(), Power(-1.0), Power(-7.3), Gaussian(2.0)]


def trimmed(make_rows, points, trim, weights=None) -> TrimmedPoints:
    weights = np.ones(len(points)) if weights is None else np.asarray(weights, dtype=float)
    return TrimmedPoints(make_rows(points, weights), weights, trim)


def clusters_and_strays(seed=0, n_points=200, n_features=3):
    points = blobs(n_points, n_features, scale=12.0, seed=seed)
    points[::10] = np.random.default_rng(seed).uniform(-400, 400, size=points[::10].shape)
    return points, points[1:5].copy()


def kept_by_sorting(points, centers, weights, trim):
    """Point by point from the nearest on, until the weight is reached; ties share what is left."""
    distance = sq_distances(points, centers).min(axis=1)
    left, kept = (1 - trim) * weights.sum(), np.zeros(len(points))
    for value in np.unique(distance):
        tied = distance == value
        part = min(1.0, left / max(weights[tied].sum(), 1e-300))
        kept[tied] = part * weights[tied]
        left = max(0.0, left - weights[tied].sum())
    return kept


@settings(max_examples=60)
@given(
    values=arrays.arrays(float, st.integers(1, 40), elements=st.integers(0, 9).map(float)),
    trim=st.floats(0, 0.99),
    repeats=st.sampled_from([1, 300]),
    seed=st.integers(0, 2**32 - 1),
)
def test_weights_are_those_by_sorting(values, trim, repeats, seed):
    """Also where there are too many values to sort."""
    values = np.tile(values, repeats)
    weights = np.random.default_rng(seed).integers(0, 3, size=len(values)).astype(float)
    weights[0] = 1.0
    kept, limit = trimmed_weights(values, weights, (1 - trim) * weights.sum())
    expected = kept_by_sorting(np.sqrt(values)[:, None], np.zeros((1, 1)), weights, trim)
    np.testing.assert_allclose(kept, expected, atol=1e-9 * weights.sum())
    assert not kept[values > limit].any()
    assert kept.sum() == pytest.approx((1 - trim) * weights.sum())


@every_kind
@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("trim", [0.0, 0.1, 0.237, 0.6])
def test_a_sweep_is_that_of_the_points_that_are_kept(make_rows, rule, trim):
    points, centers = clusters_and_strays()
    weights = np.random.default_rng(1).uniform(0.5, 2, size=len(points))
    kept = kept_by_sorting(points, centers, weights, trim)
    rows = trimmed(make_rows, points, trim, weights)
    assert_same_sums(rows.sweep(centers, rule), make_rows(points, kept).sweep(centers, rule), 1e-9)
    assert rows.total_weight == pytest.approx(kept.sum())
    labels, inertia = rows.assign(centers)
    np.testing.assert_array_equal(labels, make_rows(points, weights).assign(centers)[0])
    assert inertia == pytest.approx(make_rows(points, kept).assign(centers)[1], rel=1e-9)
    np.testing.assert_allclose(rows.sample_weight(np.arange(len(points))), kept, atol=1e-12)
    left_out, limit = rows.left_out(centers)
    np.testing.assert_array_equal(left_out, kept == 0)
    nearest = sq_distances(points, centers).min(axis=1)
    np.testing.assert_array_equal(left_out, nearest > limit * (1 + 2e-9))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_rows_remember_of_a_sweep_is_not_weights(dtype):
    points = blobs(6000, 16, 5).astype(dtype)
    weights = np.random.default_rng(3).uniform(0.5, 2, size=6000)
    rows, centers = trimmed(EuclideanPoints, points, 0.2, weights), points[:40].astype(float)
    for sweep in range(12):
        rule = Power(-9.0) if sweep == 5 else Hard()
        kept = rows.sweep(centers, rule)
        expected = kept_by_sorting(points.astype(float), centers, weights, 0.2)
        alone = EuclideanPoints(points, expected).sweep(centers, rule)
        assert kept.inertia == pytest.approx(alone.inertia, rel=1e-5)
        np.testing.assert_allclose(kept.weights, alone.weights, rtol=1e-4)
        centers = kept.centers(fallback=centers)


def test_trimmed_rows_are_rows_that_descend_by_the_hard_rule_only():
    points, _ = clusters_and_strays()
    rows = trimmed(ReferencePoints, points, 0.1)
    assert rows.descends(Hard())
    assert not rows.descends(Power(-1.0))
    assert trimmed(ReferencePoints, points, 0.0).descends(Power(-1.0))
    for found in (rows.take(np.array([3, 1])), rows.sample(np.array([3, 1]))):
        np.testing.assert_array_equal(found, points[[3, 1]])


@every_kind
def test_far_points_move_no_mean_and_centers_on_them_are_of_little_use(make_rows):
    rng = np.random.default_rng(4)
    points = rng.normal(size=(500, 10)) * np.linspace(1, 2, 10)
    far = points.copy()
    far[::12] = 1e5 + rng.normal(size=far[::12].shape)
    clean, dirty = make_rows(points, None), trimmed(make_rows, far, 0.1)
    np.testing.assert_allclose(dirty.mean(), clean.mean(), atol=0.3)
    assert dirty.mean_variance() == pytest.approx(clean.mean_variance(), rel=0.25)
    assert dirty.critical_power() == pytest.approx(clean.critical_power(), rel=0.25)
    plain = make_rows(far, None)
    assert plain.mean_variance() > 1e6
    assert plain.critical_power() > 0
    rng = np.random.default_rng(6)
    points = rng.normal(size=(100, 2))
    points[60:90] += [50, 0]
    points[90:] = [1e6, 0]
    centers = np.array([[0.0, 0], [50, 0], [1e6, 0]])
    rows = trimmed(make_rows, points, 0.1)
    utility = rows.spread(centers).utility
    assert make_rows(points, None).spread(centers).utility.argmin() == 1
    assert utility.argmin() == 2
    # Without it the ten points are left out, and ten others are kept in their place.
    truly = rows.assign(centers[:2])[1] - rows.assign(centers)[1]
    assert utility[2] <= truly < 2 * utility[2] + 10 * rows.left_out(centers)[1]


@every_kind
def test_nearness_is_that_of_what_is_kept(make_rows):
    points = np.array([[0.0], [1.0], [2.0], [3.0], [100.0]])
    rows = trimmed(make_rows, points, 0.2)
    nearness = rows.nearness(np.array([[0.0]]))
    assert nearness.inertia() == pytest.approx(1 + 4 + 9)
    np.testing.assert_allclose(nearness.sq_dist(), [0, 1, 4, 9, 10000])
    assert nearness.draw(np.array([0.0, 0.07, 0.08, 0.999])).tolist() == [1, 1, 2, 3]
    assert nearness.farthest() == 3
    np.testing.assert_allclose(nearness.potentials(np.array([2, 3])), [0 + 1 + 0 + 1, 0 + 1 + 1])
    nearness.add(np.array([100.0]))
    assert nearness.inertia() == pytest.approx(1 + 4)
    # Nothing is chosen yet: what is far from the mean is left out.
    drawn = rows.nearness(np.empty((0, 1))).draw(np.array([0.0, 0.99]))
    assert drawn.tolist() == [0, 3]
