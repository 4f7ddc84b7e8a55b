"""Relatives with missing entries, against loops over single entries and against whole points."""

import math
from typing import Any

import numpy as np
import pytest
from attacks import oracle
from problems import labelled_blobs
from scipy.special import logsumexp
from sklearn.pipeline import Pipeline

import powermeans as pm
from powermeans.mathematics.power_mean import power_mean, power_mean_gradient
from powermeans.methods import (
    DPMeans,
    EntropyWeightedPowerKMeans,
    FuzzyCMeans,
    GradientKMeans,
    KernelPowerKMeans,
    OnlineKMeans,
    SelfOrganizingMap,
    SpectralClustering,
    SphericalMixture,
)
from powermeans.saving import estimators

N, D, K = 90, 5, 3
WEIGHTS = np.random.default_rng(2).uniform(0.5, 2, size=N)
WEIGHTED = pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])


def whole() -> np.ndarray:
    return labelled_blobs(N, D, K, noise=(1.0, 2.0, 1.5), seed=3)[0] * [1, 1, 1, 7, 1]


def with_gaps() -> np.ndarray:
    gaps = np.random.default_rng(0).uniform(size=(N, D)) < [0.1, 0.3, 0.2, 0.5, 0.05]
    gaps[gaps.all(axis=1)] = False
    return np.where(gaps, np.nan, whole())


def means_of(points: np.ndarray, weights: np.ndarray, before: np.ndarray) -> np.ndarray:
    """The mean of each column over the points that have it, by weights (n_points, n_centers)."""
    means = before.copy()
    for j in range(len(before)):
        for f in range(points.shape[1]):
            pairs = [
                (w, x) for w, x in zip(weights[:, j], points[:, f], strict=True) if not np.isnan(x)
            ]
            if (total := math.fsum(w for w, _ in pairs)) > 0:
                means[j, f] = math.fsum(w * x for w, x in pairs) / total
    return means


def scatter_of(points: np.ndarray, weights: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Weighted squared differences of observed entries, (n_centers, n_features)."""
    scatter = np.zeros_like(centers)
    for i, j, f in np.ndindex(len(points), *centers.shape):
        if not np.isnan(points[i, f]):
            scatter[j, f] += weights[i, j] * (points[i, f] - centers[j, f]) ** 2
    return scatter


def log_densities(points: np.ndarray, centers: np.ndarray, variances: Any, shares: Any) -> Any:
    logs = np.tile(np.log(shares), (len(points), 1))
    for i, j, f in np.ndindex(len(points), *centers.shape):
        if not np.isnan(points[i, f]):
            squared = (points[i, f] - centers[j, f]) ** 2
            logs[i, j] -= (math.log(2 * math.pi * variances[j]) + squared / variances[j]) / 2
    return logs


@WEIGHTED
@pytest.mark.parametrize(
    ("covariance_type", "variance"),
    [("spherical", "learned"), *(("tied_spherical", one) for one in ("learned", 1.0, 3.7))],
)
@pytest.mark.parametrize("shares", ["equal", "learned"])
@pytest.mark.parametrize("drawn", [whole, with_gaps])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_mixture_is_that_of_expectation_maximisation(
    covariance_type, variance, shares, drawn, weights
):
    points, counts = drawn(), np.ones(N) if weights is None else weights
    options = {"temperature": None, "effort": None, "tol": 0.0, "max_iter": 6}
    model = SphericalMixture(
        K, covariance_type=covariance_type, variance=variance, shares=shares, missing="observed",
        init=whole()[:K], **options,
    ).fit(points, sample_weight=weights)  # fmt: skip

    def maximised(parts: np.ndarray, before: np.ndarray, kind: str) -> tuple[np.ndarray, ...]:
        centers = means_of(points, parts, before)
        within = scatter_of(points, parts, centers).sum(axis=1)
        entries = parts.T @ (~np.isnan(points)).sum(axis=1)
        if kind == "tied_spherical":
            within, entries = np.full(K, within.sum()), np.full(K, entries.sum())
        of_all = parts.sum(axis=0) / counts.sum() if shares == "learned" else np.full(K, 1 / K)
        found = within / entries if variance == "learned" else np.full(K, variance)
        return centers, found, of_all

    start = whole()[:K]
    nearest = np.nansum((points[:, None] - start) ** 2, axis=2).argmin(axis=1)
    estimates, likelihoods = (start, np.full(K, variance), np.full(K, 1 / K)), []
    if variance == "learned":
        estimates = maximised(counts[:, None] * np.eye(K)[nearest], start, "tied_spherical")
    for _ in range(5 if variance == "learned" else 6):
        logs = log_densities(points, *estimates)
        of_points = logsumexp(logs, axis=1)
        likelihoods.append(np.average(of_points, weights=counts))
        parts = counts[:, None] * np.exp(logs - of_points[:, None])
        estimates = maximised(parts, estimates[0], covariance_type)
    np.testing.assert_allclose(model.log_likelihoods_, likelihoods, rtol=1e-13)
    for found, expected in zip(
        (model.cluster_centers_, model.variances_, model.shares_), estimates, strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    logs = log_densities(points, *estimates)
    np.testing.assert_allclose(model.score_samples(points), logsumexp(logs, axis=1), rtol=1e-12)
    np.testing.assert_array_equal(model.predict(points), logs.argmax(axis=1))
    np.testing.assert_array_equal(model.labels_, logs.argmax(axis=1))
    assert model.score(points, sample_weight=weights) == pytest.approx(model.log_likelihood_)


@WEIGHTED
@pytest.mark.parametrize("drawn", [whole, with_gaps])
@pytest.mark.parametrize("standardize", [True, False])
def test_feature_weights_are_those_of_the_published_sweeps(standardize, drawn, weights):
    points, counts = drawn(), np.ones(N) if weights is None else weights
    options = {"penalty": 20.0, "power": -3.0, "growth": 1.3, "effort": None, "tol": 1e-12}
    model = EntropyWeightedPowerKMeans(
        K, standardize=standardize, missing="observed", init=whole()[:K] + 0.1, **options
    ).fit(points, sample_weight=weights)
    observed = (counts @ ~np.isnan(points)) / counts.sum()
    scales = np.sqrt(observed)
    if standardize:
        mean = means_of(points, counts[:, None], np.zeros((1, D)))
        scales = np.sqrt(scatter_of(points, counts[:, None], mean)[0] / counts.sum())
    np.testing.assert_allclose(model.feature_scales_, scales, rtol=1e-13)
    centers, v, objectives = whole()[:K] + 0.1, np.full(D, 1 / D), []
    for power in model.history_.power:
        distances = oracle.weighted_euclidean(v / scales**2)
        y = distances(points[:, None], centers[None]).astype(float)
        parts = counts[:, None] * power_mean_gradient(y, power)
        objectives.append(
            counts @ power_mean(y, power) + 20 * np.sum(v * np.log(np.where(v > 0, v, 1)))
        )
        centers = means_of(points, parts, centers)
        scatter = scatter_of(points, parts, centers).sum(axis=0) / scales**2
        v = np.exp((scatter.min() - scatter) / 20)
        v /= v.sum()
    assert len(objectives) > 10
    np.testing.assert_allclose(model.history_.objective, objectives, rtol=1e-11)
    np.testing.assert_allclose(model.cluster_centers_, centers, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(model.feature_weights_, v, rtol=1e-9, atol=1e-13)
    np.testing.assert_array_equal(model.predict(points), model.labels_)


@WEIGHTED
@pytest.mark.parametrize("effort", ["none", "balanced"])
def test_clusters_with_a_price_are_settled(effort, weights):
    points, counts = with_gaps(), np.ones(N) if weights is None else weights
    model = DPMeans(300.0, effort=effort, missing="observed", tol=0.0, random_state=0)
    centers = model.fit(points, sample_weight=weights).cluster_centers_
    y = oracle.squared_euclidean(points[:, None], centers[None])
    labels, n_found = y.argmin(axis=1), len(centers)
    np.testing.assert_array_equal(model.labels_, labels)
    parts = counts[:, None] * np.eye(n_found)[labels]
    np.testing.assert_allclose(centers, means_of(points, parts, centers), rtol=1e-12, atol=1e-13)
    inertia = counts @ y.min(axis=1)
    assert model.objective_ == pytest.approx(inertia + 300 * n_found, rel=1e-13)
    assert 1 < n_found < N / 4
    assert np.all((y.min(axis=1) <= 300) | (counts * y.min(axis=1) <= 300))
    for j in range(n_found):  # none is idle
        assert counts @ np.delete(y, j, axis=1).min(axis=1) - inertia >= 300 * (1 - 1e-6)
    if effort == "none":
        assert np.all(np.diff(model.history_.objective) <= 1e-9)
        assert DPMeans.penalty_for(points, 4, missing="observed") > 0


def test_a_cluster_that_rounding_opens_and_drops_does_not_keep_a_fit_from_ending():
    rng = np.random.default_rng(1829)
    points = rng.normal(size=(40, 16)) + 20 * np.repeat([[1], [0]], 20, axis=0)
    points[0] *= 1e27
    points[rng.random(points.shape) < 0.2] = np.nan
    model = DPMeans(n_clusters_wanted=3, missing="observed", random_state=0).fit(points)
    assert sorted(np.bincount(model.labels_)) == [1, 39]


def test_the_sums_of_light_points_keep_their_digits_beside_a_heavy_one():
    points = np.array([[8.0, 10.0], [-1.0, np.nan], [-0.1, -0.2]])
    weights = np.array([1e-12, 1e-8, 1e18])
    model = pm.PowerKMeans(2, missing="observed", random_state=0)
    model.fit(points, sample_weight=weights)  # no objective rises
    assert model.inertia_ == pytest.approx(1e-12 * (8.1**2 + 10.2**2), rel=1e-9, abs=0)


OF_WHOLE_POINTS = [pm.PowerKMeans(K), FuzzyCMeans(K), EntropyWeightedPowerKMeans(K), DPMeans(300.0)]
OF_WHOLE_POINTS += [DPMeans(n_clusters_wanted=K, effort="fast"), SphericalMixture(K)]
OF_WHOLE_POINTS += [SphericalMixture(K, covariance_type="spherical", shares="learned")]


@pytest.mark.parametrize("model", OF_WHOLE_POINTS, ids=repr)
def test_whole_points_give_the_same_bits(model):
    fits = []
    for missing in ("error", "observed"):
        model.set_params(missing=missing, random_state=0).fit(whole(), sample_weight=WEIGHTS)
        fits.append(
            (model.cluster_centers_, model.labels_, model.inertia_, model.transform(whole()))
        )
    for one, other in zip(*fits, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_column_with_gaps_gets_no_more_weight_than_without():
    """Halves of a column, drawn by chance, weigh as much as all of it, up to noise."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(4000, 3)) + 4 * rng.integers(2, size=(4000, 1))
    points[:, 1] = np.where(rng.uniform(size=4000) < 0.5, np.nan, points[:, 1])
    model = EntropyWeightedPowerKMeans(2, missing="observed", random_state=0).fit(points)
    np.testing.assert_allclose(model.feature_weights_, 1 / 3, atol=0.03)


def test_a_feature_that_only_points_without_weight_have_counts_nothing():
    points = np.column_stack([whole()[:, :2], np.where(np.arange(N) < 5, 9.0, np.nan)])
    weights = np.where(np.arange(N) < 5, 0.0, 1.0)
    for kind in (EntropyWeightedPowerKMeans, SphericalMixture, DPMeans):
        model = kind(missing="observed", random_state=0)
        if kind is not DPMeans:
            model.set_params(n_clusters=K)
        with np.errstate(all="raise", under="ignore"):
            model.fit(points, sample_weight=weights)
        assert np.isfinite(model.cluster_centers_).all()
        if kind is EntropyWeightedPowerKMeans:
            assert model.feature_weights_[2] == 0


REFUSING = (
    *(GradientKMeans, KernelPowerKMeans, pm.LinkedKMeans, pm.MiniBatchKMeans),
    *(pm.MiniBatchPowerKMeans, OnlineKMeans, SelfOrganizingMap, SpectralClustering),
)


@pytest.mark.parametrize("kind", REFUSING)
def test_an_estimator_that_needs_whole_points_says_why(kind):
    message = f"missing='observed' is not for {kind.__name__}: .*, so leave rows with NaN out"
    with pytest.raises(ValueError, match=message):
        kind(missing="observed")
    with pytest.raises(ValueError, match="leave such rows out"):
        kind().fit(with_gaps())


def test_every_other_estimator_takes_missing_entries():
    kinds = estimators() - {Pipeline}
    assert {kind for kind in kinds if "missing" not in kind().get_params()} == {*REFUSING}
