"""The method of moments is exact on exact moments, and its error falls as statistics says."""

import numpy as np
import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from powermeans import moment_estimates


def mixture(seed: int, n_clusters: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Means, and shares none of which is tiny."""
    rng = np.random.default_rng(seed)
    shares = rng.uniform(0.5, 1.5, n_clusters)
    return rng.normal(scale=3, size=(n_clusters, n_features)), shares / shares.sum()


def exact_points(means, shares, deviation) -> tuple[np.ndarray, np.ndarray]:
    """Weighted points that have the first three moments of the mixture to the last digit.

    About each mean, two on each axis: their covariance is that of the Gaussian, and their third
    moments about the mean are zero.
    """
    n_features = means.shape[1]
    steps = np.sqrt(n_features) * np.concatenate([np.eye(n_features)] * 2)
    steps[n_features:] *= -1
    of_each = np.broadcast_to(deviation, shares.size * 2 * n_features).reshape(len(shares), -1, 1)
    points = (means[:, None, :] + of_each * steps).reshape(-1, n_features)
    return points, np.repeat(shares, 2 * n_features)


def sample(means, shares, deviation, n_points, seed) -> np.ndarray:
    rng = np.random.default_rng(seed)
    labels = rng.choice(len(shares), size=n_points, p=shares)
    return means[labels] + deviation * rng.normal(size=(n_points, means.shape[1]))


def matched(estimates, means) -> np.ndarray:
    """In which order the estimates fit the means best."""
    return linear_sum_assignment(cdist(means, estimates))[1]


def error_of(estimates, means) -> float:
    return float(np.linalg.norm(estimates.means[matched(estimates.means, means)] - means))


@pytest.mark.parametrize(
    ("n_clusters", "n_features"), [(1, 1), (1, 4), (2, 2), (2, 9), (3, 3), (4, 6), (6, 6), (6, 40)]
)
@pytest.mark.parametrize("is_shared", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_exact_moments_give_the_mixture(seed, n_clusters, n_features, is_shared) -> None:
    means, shares = mixture(seed, n_clusters, n_features)
    deviations = np.random.default_rng(seed).uniform(0.5, 2.5, 1 if is_shared else n_clusters)
    of_points = np.repeat(np.broadcast_to(deviations, n_clusters), 2 * n_features)
    points, weights = exact_points(means, shares, of_points)
    kind = "tied_spherical" if is_shared else "spherical"
    found = moment_estimates(points, n_clusters, covariance_type=kind, sample_weight=weights)
    order = matched(found.means, means)
    np.testing.assert_allclose(found.means[order], means, atol=1e-8 if is_shared else 1e-7)
    np.testing.assert_allclose(found.shares[order], shares, atol=1e-8)
    variances = np.atleast_1d(found.variance)[[0] if is_shared else order]
    np.testing.assert_allclose(variances, deviations**2, rtol=1e-7)


def test_moments_that_contradict_one_variance_warn_and_others_do_not() -> None:
    means, shares = np.array([[0.0, 0.0], [3.0, 0.0]]), np.array([0.5, 0.5])
    deviations = np.repeat([0.5, 1.5], 5000)[:, None]
    noise = np.random.default_rng(0).normal(size=(10_000, 2))
    points = np.repeat(means, 5000, axis=0) + deviations * noise
    with pytest.warns(UserWarning, match='one shared variance.*pass covariance_type="spherical"'):
        biased = moment_estimates(points, 2)
    assert error_of(biased, means) > 0.5
    found = moment_estimates(points, 2, covariance_type="spherical")
    assert error_of(found, means) < 0.2
    np.testing.assert_allclose(np.sort(found.variance), [0.25, 2.25], atol=0.15)
    for seed in range(20):
        moment_estimates(sample(means, shares, 1.0, 10_000, seed), 2)  # a warning is an error


@for_all(st.integers(0, 2**31), st.integers(1, 4))
@settings(max_examples=25)
def test_mean_and_covariance_of_the_result_are_those_of_the_points(seed, n_clusters) -> None:
    points = np.random.default_rng(seed).gamma(1.0, size=(60, 5))
    found = moment_estimates(points, n_clusters)
    assert found.shares.sum() == pytest.approx(1)
    assert (np.diff(found.shares) <= 0).all()
    np.testing.assert_allclose(found.shares @ found.means, points.mean(axis=0), rtol=1e-8)
    steps = found.means - points.mean(axis=0)
    between = (found.shares[:, None] * steps).T @ steps
    values, vectors = np.linalg.eigh(np.cov(points.T, ddof=0))
    modelled = vectors.T @ (between + found.variance * np.eye(5)) @ vectors
    n_leading = n_clusters - 1
    leading = np.arange(5 - n_leading, 5)
    np.testing.assert_allclose(np.diag(modelled)[leading], values[leading], rtol=1e-7)
    assert np.trace(modelled) == pytest.approx(values.sum())


@pytest.mark.parametrize(
    ("points", "n_clusters", "message"),
    [
        (np.eye(4)[:, :3], 4, "n_clusters=4 is more than the 3 features"),
        (np.eye(5)[:2], 3, "n_samples=2 should be >= n_clusters=3"),
        (np.ones((9, 3)), 2, "vary along no more than 0 axes"),
        (np.eye(5)[[0, 1, 0, 1, 0]], 3, "vary along no more than 1 axes"),
        (np.arange(12.0)[:, None] * np.ones(4), 3, "vary along no more than 1 axes"),
        (np.ones((4, 2)), 0, "'n_clusters' parameter"),
        (np.ones((4, 2)), 1.5, "'n_clusters' parameter"),
        (np.array([[np.nan, 1.0]] * 4), 2, "contains NaN"),
    ],
)
def test_what_cannot_be_is_refused(points, n_clusters, message) -> None:
    with pytest.raises(ValueError, match=message):
        moment_estimates(points, n_clusters)
