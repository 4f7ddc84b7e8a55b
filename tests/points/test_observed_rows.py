"""Points with missing entries: by hand, against k-POD, and against whole points."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from powermeans import FuzzyCMeans, KHarmonicMeans, KMeans, PowerKMeans
from powermeans.mathematics.power_mean import power_mean_weights
from powermeans.mathematics.rules import Hard, Power
from powermeans.metrics import adjusted_rand_index
from powermeans.points.compiled import EuclideanRows
from powermeans.points.observed import ObservedRows


def with_gaps(points, share, seed=0):
    rng = np.random.default_rng(seed)
    gaps = rng.uniform(size=points.shape) < share
    gaps[np.arange(len(points)), rng.integers(points.shape[1], size=len(points))] = False
    return np.where(gaps, np.nan, points).astype(points.dtype)


def blobs(n=240, n_features=4, seed=0, gap=6.0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n)
    middles = rng.normal(scale=gap, size=(3, n_features))
    return middles[truth] + rng.normal(size=(n, n_features)), truth


def observed_distances(points, centers):
    return np.nansum(np.square(points[:, None, :] - centers[None, :, :]), axis=2)


@given(
    seed=st.integers(0, 2**32 - 1),
    power=st.sampled_from([-math.inf, -1.0, -4.0]),
    n_features=st.sampled_from([2, 5, 30]),
)
def test_a_sweep_takes_means_over_what_was_observed(seed, power, n_features):
    whole, _ = blobs(60, n_features, seed)
    points, weights = with_gaps(whole, 0.3, seed), np.random.default_rng(seed).uniform(size=60)
    centers = whole[:4] + 0.01
    rule = Hard() if power == -math.inf else Power(power)
    sums = ObservedRows(points, weights, n_threads=2).sweep(centers, rule)
    y = observed_distances(points, centers)
    w = weights[:, None] * (
        np.eye(4)[y.argmin(axis=1)] if power == -math.inf else power_mean_weights(y, power)
    )
    is_there = ~np.isnan(points)
    counts = w.T @ is_there
    means = np.where(counts > 0, w.T @ np.nan_to_num(points) / np.maximum(counts, 1e-300), centers)
    np.testing.assert_allclose(sums.centers(fallback=centers), means, rtol=1e-6, atol=1e-6)
    assert sums.inertia == pytest.approx(float(weights @ y.min(axis=1)), rel=1e-8)


def test_whole_points_give_what_they_give_without_gaps():
    points, _ = blobs()
    centers = points[:3] + 0.1
    for rule in (Hard(), Power(-2.0)):
        ours, plain = (
            ObservedRows(points).sweep(centers, rule),
            EuclideanRows(points).sweep(centers, rule),
        )
        np.testing.assert_allclose(
            ours.centers(fallback=centers), plain.centers(fallback=centers), rtol=1e-9
        )
        assert ours.objective == pytest.approx(plain.objective)
    model = PowerKMeans(3, missing="observed", random_state=0).fit(points)
    plain = PowerKMeans(3, random_state=0).fit(points)
    assert model.inertia_ == pytest.approx(plain.inertia_)


def k_pod(points, centers, n_iter=200):
    """Chi, Chi & Baraniuk: fill what is missing from the centers, and do a step of k-means."""
    for _ in range(n_iter):
        labels = observed_distances(points, centers).argmin(axis=1)
        filled = np.where(np.isnan(points), centers[labels], points)
        centers = np.stack([filled[labels == j].mean(axis=0) for j in range(len(centers))])
    return centers, labels


def test_hard_clustering_ends_where_k_pod_ends():
    whole, _ = blobs(150, 5, seed=4)
    points = with_gaps(whole, 0.25)
    start = whole[:3]
    model = KMeans(3, init=start, missing="observed", tol=0.0).fit(points)
    centers, labels = k_pod(points, start)
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_allclose(model.cluster_centers_, centers, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("estimator", [KMeans, PowerKMeans, KHarmonicMeans, FuzzyCMeans])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_groups_are_found_with_a_third_of_the_entries_missing(estimator, dtype):
    whole, truth = blobs(600, 8, seed=1)
    points = with_gaps(whole.astype(dtype), 0.33)
    model = estimator(3, missing="observed", random_state=0).fit(points)
    assert adjusted_rand_index(truth, model.labels_) > 0.95
    np.testing.assert_array_equal(model.predict(points), model.labels_)
    assert model.cluster_centers_.dtype == dtype
    expected = np.sqrt(observed_distances(points, model.cluster_centers_))
    np.testing.assert_allclose(model.transform(points), expected, rtol=2e-3, atol=2e-3)
    assert model.score(points) == pytest.approx(-model.inertia_, rel=1e-4)


def fuzzy_c_means_of_observed(points, centers, fuzzifier, n_iter):
    """The updates of Hathaway & Bezdek's partial distances, without their constant factors."""
    is_there, values = ~np.isnan(points), np.nan_to_num(points)
    for _ in range(n_iter):
        shares = observed_distances(points, centers) ** (-1 / (fuzzifier - 1))
        weights = (shares / shares.sum(axis=1, keepdims=True)) ** fuzzifier
        centers = (weights.T @ values) / (weights.T @ is_there)
    return centers, shares / shares.sum(axis=1, keepdims=True)


def test_fuzzy_clustering_is_that_by_the_formulas():
    whole, _ = blobs(150, 5, seed=6)
    points, start = with_gaps(whole, 0.25), whole[:3] + 0.1
    model = FuzzyCMeans(3, fuzzifier=1.8, init=start, missing="observed", tol=0, max_iter=30)
    with pytest.warns(ConvergenceWarning):
        model.fit(points)
    centers, shares = fuzzy_c_means_of_observed(points, start, 1.8, 30)
    np.testing.assert_allclose(model.cluster_centers_, centers, rtol=1e-8)
    np.testing.assert_allclose(model.memberships(points), shares, atol=1e-5)


def test_the_objective_falls_and_nothing_is_imputed():
    points = with_gaps(blobs(200, 6, seed=2)[0], 0.4)
    before = points.copy()
    model = KMeans(4, missing="observed", random_state=0).fit(points)
    assert (np.diff(model.history_.objective) <= 1e-9 * model.inertia_).all()
    np.testing.assert_array_equal(points, before)


@pytest.mark.parametrize("unit", [2.0**-140, 2.0**115])
def test_float32_points_of_any_size_have_the_same_labels(unit):
    points = np.rint(64 * with_gaps(blobs(n_features=17)[0], 0.2)).astype(np.float32)
    model = PowerKMeans(5, missing="observed", random_state=0)
    labels = model.fit(points).labels_
    scaled = points * np.float32(unit)
    np.testing.assert_array_equal(model.fit(scaled).labels_, labels)
    exact = scaled.astype(np.longdouble)
    distances = np.nansum((exact[:, None] - model.cluster_centers_[None]) ** 2, axis=2)
    np.testing.assert_array_equal(model.labels_, distances.argmin(axis=1))


def test_more_clusters_than_needed_leave_no_nan():
    points = with_gaps(np.repeat(blobs(8, 3)[0], 3, axis=0), 0.3)
    model = KMeans(6, missing="observed", random_state=0).fit(points)
    assert np.isfinite(model.cluster_centers_).all()
    assert np.isfinite(model.inertia_)


def test_missing_entries_are_an_error_unless_asked_for():
    points = with_gaps(blobs()[0], 0.2)
    with pytest.raises(ValueError, match="contains NaN"):
        PowerKMeans(3).fit(points)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x.__setitem__(5, np.nan), "nothing but NaN in row 5"),
        (lambda x: x.__setitem__((slice(None), 2), np.nan), "nothing but NaN in column 2"),
        (lambda x: x.__setitem__((1, 1), np.inf), "contains infinity"),
    ],
)
def test_what_cannot_be_compared_is_named(change, message):
    points = with_gaps(blobs()[0], 0.1)
    change(points)
    with pytest.raises(ValueError, match=message):
        KMeans(3, missing="observed").fit(points)


def test_a_point_to_predict_may_have_few_entries_but_some():
    points = with_gaps(blobs()[0], 0.1)
    model = KMeans(3, missing="observed", random_state=0).fit(points)
    row = np.full((1, 4), np.nan)
    with pytest.raises(ValueError, match="nothing but NaN in row 0"):
        model.predict(row)
    row[0, 1] = model.cluster_centers_[2, 1]
    assert model.predict(row)[0] == 2


def test_other_divergences_have_no_missing_entries():
    with pytest.raises(ValueError, match="entries may be missing from"):
        PowerKMeans(2, missing="observed", divergence="poisson").fit(np.ones((4, 2)))
