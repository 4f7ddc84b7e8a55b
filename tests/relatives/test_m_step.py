"""What a mixture learns from a sweep, against the M-step written out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from powermeans.engine.updates import SeparateCoincident, Sweep, Update
from powermeans.mathematics.rules import Gaussian, Hard, UnequalGaussians
from powermeans.points.compiled import EuclideanRows
from powermeans.points.reference import ReferenceRows
from powermeans.relatives.mixture.learning import (
    GaussianLearner,
    log_densities,
    mean_log_likelihood,
)

rng = np.random.default_rng(0)
POINTS = rng.normal(size=(60, 3)) + 3 * rng.integers(2, size=(60, 1))
WEIGHTS = rng.uniform(0.5, 2, size=60)
CENTERS = POINTS[:3].copy()


def learner(first: Gaussian | None, **changes) -> GaussianLearner:
    usual = {
        "learns_variance": True,
        "learns_shares": True,
        "hottest": 0.0,
        "separate": Update(),
        "tolerance": 0.0,
    }
    return GaussianLearner(first=first, **{**usual, **changes})


def sq_distances(points, centers):
    return np.square(points[:, None, :] - centers[None, :, :]).sum(axis=2)


def m_step(responsibilities, points=POINTS, weights=WEIGHTS):
    mass = weights[:, None] * responsibilities
    totals = mass.sum(axis=0)
    centers = mass.T @ points / totals[:, None]
    variance = np.sum(mass * sq_distances(points, centers)) / points.shape[1] / weights.sum()
    return centers, variance, totals / weights.sum()


def learned_from(learn: GaussianLearner, rows, centers=CENTERS):
    rule = next(iter(learn))
    learn.after(Sweep(rows, centers, rule.power), rows.sweep(centers, rule))
    return learn.known


@pytest.mark.parametrize("kind", [ReferenceRows, EuclideanRows])
def test_after_a_soft_sweep_it_has_the_best_variance_and_shares(kind):
    first = Gaussian(2.0, (0.2, 0.5, 0.3))
    model = learned_from(learner(first), kind(POINTS, WEIGHTS))
    _, variance, shares = m_step(first.memberships(sq_distances(POINTS, CENTERS)))
    assert model.variance == pytest.approx(variance, rel=1e-10)
    np.testing.assert_allclose(model.shares, shares, rtol=1e-10)


def test_where_nothing_is_known_the_first_sweep_is_hard():
    learn = learner(None)
    assert next(iter(learn)) == Hard()
    model = learned_from(learn, ReferenceRows(POINTS, WEIGHTS))
    _, variance, shares = m_step(Hard().memberships(sq_distances(POINTS, CENTERS)))
    assert model.variance == pytest.approx(variance, rel=1e-10)
    np.testing.assert_allclose(model.shares, shares, rtol=1e-10)
    assert learn.log_likelihoods == []


def test_coincident_centers_are_separated_until_the_likelihood_is_known():
    learn = learner(Gaussian(2.0), separate=SeparateCoincident(np.inf, 1.0))
    first, second = (Sweep(ReferenceRows(POINTS), np.zeros((3, 3)), np.nan) for _ in range(2))
    assert learn.before(first) is not first.centers
    assert first.n_separated == 2
    learned_from(learn, ReferenceRows(POINTS))
    assert learn.before(second) is second.centers
    assert second.n_separated == 0


UNEQUAL = UnequalGaussians((0.5, 2.0, 7.0), (0.2, 0.5, 0.3), 3)


def log_joint(model, exponent=1.0):
    """Logarithms of (q_j N(x; theta_j, v_j I))^b, written out."""
    is_unequal = isinstance(model, UnequalGaussians)
    variances = np.array(model.variances if is_unequal else 3 * [model.variance])
    shares = np.full(3, 1 / 3) if model.shares is None else np.array(model.shares)
    normals = -sq_distances(POINTS, CENTERS) / (2 * variances) - 1.5 * np.log(2 * np.pi * variances)
    return exponent * (np.log(shares) + normals)


@pytest.mark.parametrize("kind", [ReferenceRows, EuclideanRows])
def test_gaussians_with_variances_of_their_own_learn_each(kind):
    rows = kind(POINTS, WEIGHTS)
    model = learned_from(learner(UNEQUAL, has_own_variances=True), rows)
    joint = log_joint(UNEQUAL)
    mass = WEIGHTS[:, None] * np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    centers = mass.T @ POINTS / mass.sum(axis=0)[:, None]
    scatter = (mass * sq_distances(POINTS, centers)).sum(axis=0)
    np.testing.assert_allclose(model.variances, scatter / mass.sum(axis=0) / 3, rtol=1e-12)
    np.testing.assert_allclose(model.shares, mass.sum(axis=0) / WEIGHTS.sum(), rtol=1e-12)
    found = mean_log_likelihood(rows, UNEQUAL, rows.sweep(CENTERS, UNEQUAL))
    expected = np.average(logsumexp(joint, axis=1), weights=WEIGHTS)
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("shares", [None, (0.2, 0.5, 0.3)])
def test_the_likelihood_is_that_of_the_density(shares):
    model = Gaussian(0.7, shares)
    rows = EuclideanRows(POINTS, WEIGHTS)
    found = mean_log_likelihood(rows, model, rows.sweep(CENTERS, model))
    logs = -sq_distances(POINTS, CENTERS) / 1.4 - 1.5 * np.log(2 * np.pi * 0.7)
    by_point = logsumexp(logs, axis=1, b=np.full(3, 1 / 3) if shares is None else shares)
    assert found == pytest.approx(np.average(by_point, weights=WEIGHTS), rel=1e-12)


def test_a_density_beyond_float64_is_zero():
    assert log_densities(np.array([1e300]), 1e-200, 2)[0] == -np.inf


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("distance", [1e2, 1e4, 1e6])
def test_the_variance_of_small_clusters_far_apart_is_found(dtype, distance):
    points = np.random.default_rng(1).normal(size=(200, 2)).astype(dtype)
    points[100:] += dtype(distance)
    centers = np.array([[0.1, 0.0], [distance, distance + 0.1]])
    halves = [half - half.mean(axis=0, dtype=float) for half in np.split(points.astype(float), 2)]
    model = learned_from(learner(None), EuclideanRows(points, None), centers)
    least = max(1e-12, np.finfo(dtype).eps) * distance**2 / 4
    assert model.variance == pytest.approx(max(np.mean(np.square(halves)), least), rel=0.02)
