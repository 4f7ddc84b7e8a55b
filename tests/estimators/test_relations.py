"""What changes no answer: other rows of the call, a power of two, copies in place of weights."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import powermeans as pm
from powermeans.points.observed import ObservedRows


@pytest.mark.parametrize(
    "kind", [pm.KMeans, pm.KHarmonicMeans, pm.MiniBatchPowerKMeans, pm.RobustPowerKMeans]
)
@pytest.mark.parametrize("n_features", [2, 40])
@pytest.mark.parametrize("far", [1e8, 1e30, 1e-30])
def test_a_distance_does_not_change_with_the_rows_beside_it(kind, n_features, far):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(9, n_features)).astype(np.float32)
    centers = np.vstack([points[:2] + 0.1, np.full((1, n_features), 1e8)]).astype(np.float32)
    model = kind.from_centers(centers)
    among = np.vstack([points, np.full((90, n_features), far, dtype=np.float32)])
    alone = np.vstack([model.transform(points[i : i + 1]) for i in range(9)])
    np.testing.assert_allclose(model.transform(among)[:9], alone, rtol=1e-5)
    np.testing.assert_allclose(alone, cdist(points, centers), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (pm.EntropyWeightedPowerKMeans, {}),
        (pm.PowerKMeans, {"missing": "observed"}),
        (pm.PowerKMeans, {"divergence": "poisson"}),
        (pm.KMeans, {}),
    ],
)
def test_a_label_does_not_change_with_the_rows_beside_it(kind, options, dtype):
    rng = np.random.default_rng(0)
    ties = rng.integers(0, 40, size=(60, 1)) / 10  # many lie as far from two centers
    far = 10.0 ** rng.uniform(-3, 3, size=(60, 1))
    X = np.concatenate([ties, far]).astype(dtype)
    model = kind.from_centers(np.array([[0.1], [0.3], [1.2], [2.0], [3.1]], dtype), **options)
    alone = np.concatenate([model.predict(X[i : i + 1]) for i in range(len(X))])
    np.testing.assert_array_equal(model.predict(X), alone)


@pytest.mark.parametrize(
    "model",
    [pm.OnlineKMeans(6, random_state=0), pm.PowerKMeans(6, divergence="manhattan", random_state=0)],
)
@pytest.mark.parametrize("exponent", [-105, 1, 433])
def test_points_times_a_power_of_two_give_the_same_bits(model, exponent):
    X = np.random.default_rng(0).normal(size=(88, 1))
    centers = model.fit(X).cluster_centers_
    scaled = model.fit(np.ldexp(X, exponent)).cluster_centers_
    np.testing.assert_array_equal(np.ldexp(scaled, -exponent), centers)


@pytest.mark.parametrize("seed", [3, 6, 12, 25])
def test_weights_act_as_copies_where_entries_are_missing(seed):
    rng = np.random.default_rng(seed)
    X, weights = rng.normal(size=(30, 3)), rng.integers(0, 4, size=30)
    X[rng.random(X.shape) < 0.3] = np.nan
    X[:, 0] = rng.normal(size=30)
    model = pm.KHarmonicMeans(3, missing="observed", random_state=0)
    centers = model.fit(X, sample_weight=weights).cluster_centers_
    of_copies = model.fit(np.repeat(X, weights, axis=0)).cluster_centers_
    np.testing.assert_allclose(centers, of_copies, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_points_at_the_mean_have_no_direction_with_weights_or_as_copies(dtype):
    X = np.array([[1001, np.nan], [np.nan, 0.1], [999.1, 0.3], [1001.3, 0.2]], dtype)
    weights = np.array([1, 3, 2, 1])
    of_weights = ObservedRows(X, weights.astype(float)).critical_power()
    of_copies = ObservedRows(np.repeat(X, weights, axis=0)).critical_power()
    assert of_weights == pytest.approx(of_copies, rel=1e-4)


@pytest.mark.parametrize("options", [{"balance": 0.01}, {"balance": 0.3}, {"size_min": 0.1}])
@pytest.mark.parametrize("seed", range(4))
def test_whole_points_reach_sizes_that_copies_reach(options, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 2)) + 3 * rng.normal(size=(4, 2))[rng.integers(4, size=60)]
    weights = rng.integers(1, 8, size=60)
    model = pm.BalancedKMeans(4, effort="fast", random_state=0, **options)
    model.fit(X, sample_weight=weights)
    inertia, sizes, gap = model.inertia_, model.sizes_, model.assignment_gap_
    assert sizes.min() > 0
    assert gap <= 0.05
    assert inertia <= 1.05 * model.fit(np.repeat(X, weights, axis=0)).inertia_
