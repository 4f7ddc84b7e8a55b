"""Densities of a mixture of spherical Gaussians, how it is fitted, and the method of moments."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import given as for_all
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from powermeans.engine.updates import SeparateCoincident, Sweep, Update
from powermeans.mathematics.critical_power import critical_temperature
from powermeans.mathematics.rules import Gaussian
from powermeans.methods import SphericalMixture, moment_estimates
from powermeans.methods.mixture.learning import GaussianLearner
from powermeans.points.compiled import EuclideanPoints
from powermeans.points.reference import ReferencePoints


def drawn(shares=(0.5, 0.3, 0.2), n=400, seed=0):
    rng = np.random.default_rng(seed)
    means = 3.0 * rng.normal(size=(len(shares), 2))
    return means[rng.choice(len(shares), size=n, p=shares)] + rng.normal(size=(n, 2))


POINTS = drawn()
WEIGHTS = np.random.default_rng(7).uniform(0.3, 2, size=len(POINTS))
START = POINTS[:3] + 0.1


# Gaussians that are no point's first choice are said to be missing.
some_without_labels = pytest.mark.filterwarnings(
    "ignore:Number of distinct:sklearn.exceptions.ConvergenceWarning"
)


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), variance=st.sampled_from(["learned", 0.05, 1.0, 50.0]))
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_likelihood_never_falls(seed, variance):
    rng = np.random.default_rng(seed)
    n_clusters, n_features = int(rng.integers(1, 7)), rng.choice([1, 2, 7])
    shares, dtype = str(rng.choice(["equal", "learned"])), rng.choice([np.float32, np.float64])
    points = rng.normal(size=(40, n_features)) + 4 * rng.integers(3, size=(40, 1))
    given = {"variance": variance, "shares": shares, "max_iter": 25, "tol": 0.0}
    model = SphericalMixture(n_clusters, random_state=0, **given)
    model.fit(points.astype(dtype), sample_weight=rng.exponential(size=40))
    likelihoods = np.append(model.log_likelihoods_, model.log_likelihood_)
    rounding = 1e-10 if dtype == np.float64 else 2e-5
    assert np.all(np.diff(likelihoods) >= -rounding * np.abs(likelihoods).max())


OWN = {"covariance_type": "spherical", "shares": "learned"}


def test_a_gaussian_that_collapses_is_named_and_moments_warn_of_a_contradiction():
    middles = np.array([[0.0, 0], [4, 0], [0, 5]])
    points = sample(middles, [0.5, 0.3, 0.2], [0.4, 1.0, 2.0], 600, 0)
    points = np.concatenate([points, [[30.0, 30.0], [30.0, 30.0]]])
    start = np.array([[0.0, 0], [4, 0], [30, 30]])
    with pytest.warns(ConvergenceWarning, match=r"Gaussians \[2\] collapse"):
        model = SphericalMixture(3, init=start, **OWN).fit(points)
    least = 1e-4 * np.average(model.variances_[:2], weights=model.shares_[:2])
    assert model.variances_[2] == pytest.approx(least, rel=0.01)
    with pytest.raises(ValueError, match=r"variance=2\.0 is one for all"):
        SphericalMixture(3, variance=2.0, **OWN).fit(points)
    with pytest.raises(ValueError, match="is one for all Gaussians"):
        SphericalMixture.from_centers(start, variance=2.0, **OWN)
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


def test_annealing_cools_from_the_critical_temperature_by_the_largest_variance():
    given = {"init": "random", "temperature": 2.0, "effort": None}
    model = SphericalMixture(3, variance=0.5, random_state=0, **given).fit(POINTS)
    critical_variance = np.linalg.eigvalsh(np.cov(POINTS.T, bias=True))[-1]
    n_cooling = math.ceil(math.log(2 * critical_variance / 0.5, 1 / 0.9))
    assert model.n_iter_ == n_cooling + len(model.log_likelihoods_)
    assert model.variance_ == 0.5
    given_centers = SphericalMixture(3, init=START).fit(POINTS)
    cold = SphericalMixture(3, init=START, temperature=None).fit(POINTS)
    warm = SphericalMixture(3, init=START, temperature=0.8).fit(POINTS)
    assert given_centers.n_iter_ == cold.n_iter_ == 1 + len(cold.log_likelihoods_)
    assert warm.n_iter_ > 1 + len(warm.log_likelihoods_)
    cross = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    assert critical_temperature(cross) == pytest.approx(2 * 18 / 4)
    assert critical_temperature(cross + 100, np.array([0.0, 0.0, 5.0, 5.0])) == pytest.approx(2)
    assert critical_temperature(np.full((5, 3), 0.1)) == pytest.approx(0, abs=1e-30)


@some_without_labels
def test_the_most_likely_of_several_runs_is_kept():
    points = drawn(np.full(6, 1 / 6), seed=5)
    options = {"init": "random", "temperature": None, "shares": "learned", "effort": None}
    rng = np.random.RandomState(1)
    alone = [SphericalMixture(6, random_state=rng, **options).fit(points) for _ in range(6)]
    likelihoods = [model.log_likelihood_ for model in alone]
    best = SphericalMixture(6, n_init=6, random_state=1, **options).fit(points)
    assert max(likelihoods) > min(likelihoods) + 1e-3
    assert best.log_likelihood_ == pytest.approx(max(likelihoods), rel=1e-12)
    winner = alone[int(np.argmax(likelihoods))]
    assert best.variance_ == pytest.approx(winner.variance_, rel=1e-12)
    np.testing.assert_allclose(best.shares_, winner.shares_, rtol=1e-12)
    np.testing.assert_allclose(best.log_likelihoods_, winner.log_likelihoods_, rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "n_parameters"),
    [({}, 7), ({"variance": 1.0}, 6), ({"shares": "learned"}, 9), (OWN, 11)],
)
def test_densities_and_criteria_are_those_of_scikit_learn_and_of_what_is_learned(
    options, n_parameters
):
    model = SphericalMixture(3, random_state=0, **options).fit(POINTS)
    theirs, others = model.to_sklearn(), 3 * np.random.default_rng(1).normal(size=(200, 2))
    np.testing.assert_array_equal(theirs.weights_, model.shares_)
    np.testing.assert_array_equal(theirs.means_, model.cluster_centers_)
    variances = model.variances_ if options is OWN else model.variance_
    np.testing.assert_array_equal(theirs.covariances_, variances)
    np.testing.assert_allclose(model.score_samples(others), theirs.score_samples(others))
    found = model.memberships(others)
    np.testing.assert_allclose(found, theirs.predict_proba(others), rtol=1e-7, atol=1e-12)
    np.testing.assert_array_equal(model.predict(others), theirs.predict(others))
    assert model.score(others) == pytest.approx(theirs.score(others))
    total = model.score_samples(POINTS).sum()
    assert model.bic(POINTS) == pytest.approx(n_parameters * math.log(len(POINTS)) - 2 * total)


def test_a_mixture_of_centers_from_elsewhere_separates_coincident_ones_until_it_is_known():
    model = SphericalMixture.from_centers([[0.0], [4.0]], variance=2.0)
    expected = logsumexp([-1 / 4, -9 / 4]) - math.log(2) - 0.5 * math.log(4 * math.pi)
    assert model.score_samples([[1.0]])[0] == pytest.approx(expected)
    assert model.predict([[1.0], [3.0]]).tolist() == [0, 1]
    assert SphericalMixture.from_centers([[0.0]]).variance_ == 1.0
    own = SphericalMixture.from_centers([[0.0], [4.0]], covariance_type="spherical")
    expected = logsumexp([-1 / 2, -9 / 2]) - math.log(2) - 0.5 * math.log(2 * math.pi)
    assert own.score_samples([[1.0]])[0] == pytest.approx(expected)
    assert own.variances_.tolist() == [1.0, 1.0]
    learn = learner(Gaussian(2.0), separate=SeparateCoincident(np.inf, 1.0))
    rows = ReferencePoints(POINTS)
    first, second = (Sweep(rows, np.zeros((3, 2)), np.nan) for _ in range(2))
    assert learn.before(first) is not first.centers
    learned_from(learn, rows)
    assert learn.before(second) is second.centers
    assert (first.n_separated, second.n_separated) == (2, 0)


@some_without_labels
def test_neither_huge_weights_nor_huge_variances_overflow():
    model = SphericalMixture(3, random_state=0).fit(POINTS)
    weights = np.full(len(POINTS), 1e160)
    heavy = SphericalMixture(3, random_state=0).fit(POINTS, sample_weight=weights)
    assert heavy.variance_ == pytest.approx(model.variance_)
    assert heavy.log_likelihood_ == pytest.approx(model.log_likelihood_)
    with pytest.raises(ValueError, match=r"variance=1e\+200 is too large for points that are"):
        SphericalMixture(3, variance=1e200).fit(POINTS)
    wide = SphericalMixture(3, variance=1e290, random_state=0).fit(1e140 * POINTS)
    assert math.isfinite(wide.log_likelihood_)
    assert wide.score(1e140 * POINTS) == pytest.approx(wide.log_likelihood_)


def test_a_far_point_without_weight_changes_no_density():
    points, weights = np.vstack([POINTS, [[1e24, 0.0]]]), np.append(WEIGHTS, 0.0)
    found = SphericalMixture(3, random_state=0).fit(points, sample_weight=weights)
    expected = SphericalMixture(3, random_state=0).fit(POINTS, sample_weight=WEIGHTS)
    np.testing.assert_allclose(found.score_samples(POINTS), expected.score_samples(POINTS))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("covariance_type", ["tied_spherical", "spherical"])
@pytest.mark.parametrize("value", [5e-324, 1e-310])
def test_equal_subnormal_points_have_the_density_at_their_center(value, covariance_type):
    model = SphericalMixture(2, covariance_type=covariance_type, random_state=0)
    model.fit(np.full((6, 2), value))
    density = -math.log(2 * math.pi * model.variance_)  # of two features
    assert model.log_likelihood_ == pytest.approx(density, rel=1e-12)
    # Weighted sums of the least number round to it or to zero.
    np.testing.assert_allclose(model.cluster_centers_, value, rtol=1e-12, atol=5e-324)


def learner(first: Gaussian | None, **changes) -> GaussianLearner:
    usual = {"learns_variance": True, "learns_shares": True, "hottest": 0.0, "tolerance": 0.0}
    return GaussianLearner(first=first, **{"separate": Update(), **usual, **changes})


def learned_from(learn: GaussianLearner, rows, centers=START):
    rule = next(iter(learn))
    learn.after(Sweep(rows, centers, rule.power), rows.sweep(centers, rule))
    return learn.known


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("distance", [1e2, 1e4, 1e6])
def test_the_variance_of_small_clusters_far_apart_is_found(dtype, distance):
    points = np.random.default_rng(1).normal(size=(200, 2)).astype(dtype)
    points[100:] += dtype(distance)
    centers = np.array([[0.1, 0.0], [distance, distance + 0.1]])
    halves = [half - half.mean(axis=0, dtype=float) for half in np.split(points.astype(float), 2)]
    model = learned_from(learner(None), EuclideanPoints(points, None), centers)
    least = max(1e-12, np.finfo(dtype).eps) * distance**2 / 4
    assert model.variance == pytest.approx(max(np.mean(np.square(halves)), least), rel=0.02)


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
    spread = np.broadcast_to(deviation, len(shares))[labels, None]
    return means[labels] + spread * rng.normal(size=(n_points, means.shape[1]))


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
