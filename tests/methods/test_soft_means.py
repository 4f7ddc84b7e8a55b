"""Soft k-means and k-means that weighs features, against algorithms as their authors write them."""

import numpy as np
import pytest
from problems import blobs
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

from powermeans import PowerKMeans
from powermeans.mathematics.rules import Gaussian, Hard, Harmonic
from powermeans.methods import EntropyWeightedPowerKMeans, FuzzyCMeans, KHarmonicMeans
from powermeans.metrics import adjusted_rand_index

POINTS = blobs(300, scale=5.0, noise=0.6)
START = POINTS[:4] + 0.05


def bezdek(points, weights, centers, m, n_iter):
    """Alternates between the best memberships and the best centers."""
    for _ in range(n_iter):
        inverse = cdist(points, centers, "sqeuclidean") ** (-1 / (m - 1))
        u = inverse / inverse.sum(axis=1, keepdims=True)
        counts = weights[:, None] * u**m
        centers = counts.T @ points / counts.sum(axis=0)[:, None]
    return centers, u


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("m", [1.2, 2.0, 3.0])
def test_fuzzy_c_means_is_bezdeks_algorithm(m, weighted):
    weights = np.random.default_rng(1).uniform(0.2, 2, len(POINTS)) if weighted else None
    model = FuzzyCMeans(4, fuzzifier=m, init=START, max_iter=20, tol=0.0)
    with pytest.warns(UserWarning, match="not converged"):
        model.fit(POINTS, sample_weight=weights)
    ones = np.ones(len(POINTS)) if weights is None else weights
    before, _ = bezdek(POINTS, ones, START, m, 19)
    centers, u = bezdek(POINTS, ones, START, m, 20)
    np.testing.assert_allclose(model.cluster_centers_, centers, rtol=1e-8)
    y = cdist(POINTS, before, "sqeuclidean")
    assert model.objective_ == pytest.approx(float(ones @ (u**m * y).sum(axis=1)), rel=1e-8)
    inverse = cdist(POINTS, centers, "sqeuclidean") ** (-1 / (m - 1))
    shares = inverse / inverse.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.memberships(POINTS), shares, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("p", [2.0, 3.5])
def test_k_harmonic_means_is_zhangs_algorithm(p):
    centers = START
    for _ in range(15):
        d = np.sqrt(cdist(POINTS, centers, "sqeuclidean")).clip(1e-12)
        weights = d ** (-p - 2) / (d**-p).sum(axis=1, keepdims=True) ** 2
        centers = weights.T @ POINTS / weights.sum(axis=0)[:, None]
    model = KHarmonicMeans(4, p=p, init=START, max_iter=15, tol=0.0)
    with pytest.warns(UserWarning, match="not converged"):
        model.fit(POINTS)
    np.testing.assert_allclose(model.cluster_centers_, centers, rtol=1e-6)


def test_a_schedule_may_hold_rules():
    rules = [Harmonic(2.0)] * 7
    scheduled = PowerKMeans(4, init=START, schedule=rules, polish=False, tol=0.0).fit(POINTS)
    with pytest.warns(ConvergenceWarning):
        model = KHarmonicMeans(4, init=START, max_iter=7, tol=0.0).fit(POINTS)
    np.testing.assert_array_equal(scheduled.cluster_centers_, model.cluster_centers_)
    mixed = PowerKMeans(4, init=START, schedule=[*rules, Gaussian(0.3), -9.0, Hard()])
    assert mixed.fit(POINTS).inertia_ <= scheduled.inertia_
    with pytest.raises(ValueError, match=r"has 'hard' at index 1: pass powers .* or rules"):
        PowerKMeans(4, schedule=[Hard(), "hard"]).fit(POINTS)


@pytest.mark.parametrize("init", ["k-means++", "random"])
@pytest.mark.parametrize("p", [0.5, 1.0, 1.5, 1.9])
def test_below_two_centers_leave_the_points_they_start_at(p, init):
    rng = np.random.default_rng(0)
    places = np.array([[0.0, 0, 0], [8, 0, 0], [0, 8, 0]])
    points = np.concatenate([place + rng.normal(size=(20, 3)) for place in places])
    model = KHarmonicMeans(3, p=p, init=init, random_state=1).fit(points)
    at_two = KHarmonicMeans(3, init=model.cluster_centers_).fit(points)
    assert model.n_iter_ > 3
    assert model.history_.power[:2].tolist() == [-1.0, -p / 2]
    assert model.inertia_ < 1.3 * at_two.inertia_
    assert cdist(places, model.cluster_centers_, "sqeuclidean").min(axis=1).max() < 3


def few_that_matter(seed, n=1000, n_features=20, n_relevant=5, n_clusters=4):
    """Groups that differ along some features; the others are noise of the same spread."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_clusters, size=n)
    points = rng.normal(size=(n, n_features))
    points[:, :n_relevant] = rng.uniform(0, 1, size=(n_clusters, n_relevant))[truth] * 6
    points[:, :n_relevant] += 0.3 * rng.normal(size=(n, n_relevant))
    return (points - points.mean(axis=0)) / points.std(axis=0), truth


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("seed", range(4))
def test_one_feature_of_six_is_found_in_any_unit(seed, scale):
    rng = np.random.default_rng(seed)
    truth, points = rng.integers(3 + seed % 2, size=300), rng.normal(size=(300, 6))
    points[:, 2] = scale * (points[:, 2] + 8.0 * truth)
    points[:, 4] = 1e9 / 3
    model = EntropyWeightedPowerKMeans(3 + seed % 2, random_state=seed).fit(points)
    assert adjusted_rand_index(truth, model.labels_) == 1
    assert model.feature_weights_[2] > 0.99
    assert model.feature_weights_[4] == 0
    distances = ((points[:, None] - model.cluster_centers_) / model.feature_scales_) ** 2
    expected = (distances @ model.feature_weights_).min(axis=1).sum()
    assert model.inertia_ == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("scale", [1e-160, 1e-140, 1e140])
def test_a_feature_of_any_size_counts_as_in_another_unit(scale):
    points, _ = few_that_matter(0, n=300)
    model = EntropyWeightedPowerKMeans(4, random_state=0).fit(points)
    points[:, 0] *= scale
    points[:, -1] *= scale
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        scaled = EntropyWeightedPowerKMeans(4, random_state=0).fit(points)
    np.testing.assert_allclose(scaled.feature_weights_, model.feature_weights_, rtol=1e-6)
    np.testing.assert_array_equal(scaled.labels_, model.labels_)
    np.testing.assert_array_equal(scaled.predict(points), model.labels_)


def test_features_count_alike_at_given_centers_and_the_objective_falls_in_hard_sweeps():
    model = EntropyWeightedPowerKMeans.from_centers([[0.0, 1.0], [3.0, 1.0]])
    np.testing.assert_array_equal(model.feature_weights_, [0.5, 0.5])
    np.testing.assert_allclose(model.transform([[2.0, 3.0]]), np.sqrt([[4.0, 2.5]]), rtol=1e-15)
    assert model.predict([[2.0, 3.0]]) == [1]
    model = EntropyWeightedPowerKMeans.from_centers([[1e-134, 1e-134, 1e-134]])
    close = model.transform([[0.0] * 3, [1e-161] * 3])
    np.testing.assert_allclose(close, 1e-134, rtol=1e-12)
    points = np.column_stack([np.arange(7.0), np.full(7, -0.379)])
    weights = np.array([0.0, 1.0, 2.0, 1.0, 0.0, 0.0, 0.0])
    model = EntropyWeightedPowerKMeans(6, random_state=0)
    with pytest.warns(ConvergenceWarning, match="distinct clusters"):
        model.fit(points, sample_weight=weights)
    np.testing.assert_allclose(model.cluster_centers_[:, 1], -0.379, rtol=1e-9)
    points, _ = few_that_matter(1, n=300)
    model = EntropyWeightedPowerKMeans(6, power=-30.0, growth=5.0, effort=None, random_state=0)
    history = model.fit(points).history_
    hard = history.objective[np.isneginf(history.power)]
    assert len(hard) > 1
    assert (np.diff(hard) <= 1e-9 * np.abs(hard[0])).all()
