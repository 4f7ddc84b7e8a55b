"""Fuzzy c-means and k-harmonic means against the algorithms as their authors write them."""

import numpy as np
import pytest
from problems import blobs
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

from powermeans import FuzzyCMeans, KHarmonicMeans, PowerKMeans
from powermeans.mathematics.rules import Gaussian, Hard, Harmonic

POINTS = blobs(300, scale=5.0, noise=0.6)
START = POINTS[:4] + 0.05


def bezdek(
    points: np.ndarray, weights: np.ndarray, centers: np.ndarray, m: float, n_iter: int
) -> tuple[np.ndarray, np.ndarray]:
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


@pytest.mark.parametrize(
    "model", [KHarmonicMeans(4), FuzzyCMeans(4), FuzzyCMeans(4, fuzzifier=1.3)]
)
def test_the_objective_falls(model):
    model.set_params(init=START, tol=1e-12).fit(POINTS)
    objectives = model.history_.objective
    assert np.all(np.diff(objectives) <= 1e-9 * objectives[0])
    assert len(objectives) > 3


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
