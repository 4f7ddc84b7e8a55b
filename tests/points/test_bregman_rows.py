"""Rows with Bregman divergences, against the readable rows; and power k-means on top of them."""

import itertools
import math
from unittest.mock import Mock

import numpy as np
import pytest
from comparator import assert_same_sums, compare_rows
from divergence_cases import CASES
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

from powermeans import KMeans, PowerKMeans
from powermeans.divergences import Binomial, Gamma, Generated, Mahalanobis, Poisson
from powermeans.engine.anneal import Stage, run_stage
from powermeans.engine.fit import Fit
from powermeans.engine.stopping import StopRule
from powermeans.mathematics.rules import Gaussian, Harmonic
from powermeans.mathematics.schedules import Fixed
from powermeans.metrics import adjusted_rand_index
from powermeans.points.bregman import BregmanPoints
from powermeans.points.reference import ReferencePoints

names = st.sampled_from(sorted(CASES))


def rows_of(name, points, weights=None, n_threads=2):
    divergence = CASES[name].divergence(points.shape[1])
    return BregmanPoints(points, weights, divergence=divergence, n_threads=n_threads)


def some_centers(points, n_centers, seed):
    rng = np.random.default_rng(seed)
    parts = [points[rng.integers(len(points), size=6)].mean(axis=0) for _ in range(n_centers)]
    return np.array(parts, dtype=np.float64)


@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-7), (np.float32, 3e-4)])
@pytest.mark.parametrize("name", sorted(CASES))
@pytest.mark.parametrize(("n_features", "n_centers"), [(1, 2), (20, 9)])
def test_all_quantities_are_those_of_the_definition(
    name, n_features, n_centers, dtype, tolerance, stored
):
    points = CASES[name].points(150, n_features, seed=n_features).astype(dtype)
    if name == "logistic":
        points = np.clip(points, 0, 1)
    weights = np.random.default_rng(0).integers(0, 3, size=150).astype(float)
    weights[0] = 1.0
    divergence = CASES[name].divergence(n_features)
    rows, oracle = (
        kind(stored(points), weights, divergence=divergence)
        for kind in (BregmanPoints, ReferencePoints)
    )
    centers = some_centers(points, n_centers, seed=1)
    compare_rows(rows, oracle, centers, tolerance=tolerance, pairwise=divergence.pairwise)
    for rule in (Harmonic(3.0), Gaussian(2.0)):
        sums, expected = rows.sweep(centers, rule), oracle.sweep(centers, rule)
        assert_same_sums(sums, expected, tolerance)


@given(name=names, seed=st.integers(0, 2**32 - 1), power=st.sampled_from([-0.5, -1, -3, -12]))
@example(name="poisson with many zeros", seed=163480, power=-12)
@settings(max_examples=60)
def test_the_objective_falls_at_equal_power(name, seed, power):
    points = CASES[name].points(50, 3, seed)
    fit, stage = Fit(), Stage(Fixed(float(power)), StopRule(), 15)
    run_stage(rows_of(name, points), some_centers(points, 4, seed), stage, fit)
    objectives = [record.objective for record in fit.history.records]
    assert all(now <= before * (1 + 1e-9) for before, now in itertools.pairwise(objectives))


@pytest.mark.parametrize(
    ("divergence", "row", "message"),
    [
        ("poisson", [1.0, -2.0], r"X has -2.0 in row 3, column 1: Poisson is for numbers of at"),
        ("gamma", [0.0, 2.0], r"X has 0.0 in row 3, column 0: Gamma is for positive numbers"),
        (Binomial(4), [5.0, 2.0], r"X has 5.0 in row 3, column 0: Binomial is for numbers of succ"),
        ("logistic", [0.5, 1.5], r"X has 1.5 in row 3, column 1"),
        ("cosine", [0.0, 0.0], r"X has nothing but zeros in row 3"),
    ],
)
def test_points_outside_of_the_domain_are_named(divergence, row, message):
    inside = np.array([[0.5, 0.25], [0.125, 0.5], [0.75, 0.5]])
    points = np.vstack([inside, row])
    fitted = PowerKMeans(2, divergence=divergence, random_state=0).fit(inside)
    for call, given_ in ((fitted.predict, points), (fitted.fit, sparse.csr_array(points))):
        with pytest.raises(ValueError, match=message):
            call(given_)
    with pytest.raises(ValueError, match=message.replace("X has", "init has").replace("3", "1")):
        PowerKMeans(2, divergence=divergence, init=points[2:]).fit(inside)


CONCAVE = Generated(lambda x: -(x * x).sum(axis=1), lambda x: -2 * x)
SOME, AT_ROW_7 = np.random.default_rng(0).normal(size=(9, 2)), np.eye(9, 2, -7)


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize(
    ("divergence", "points", "weight", "message"),
    [
        (Mahalanobis(np.eye(3)), SOME, 1, "covariance is of 3 features, but X has 2"),
        (CONCAVE, SOME, 1, "not strictly convex at the mean"),
        ("gamma", np.full((3, 1), 2e-259), 1, r"the mean of X, 2e-259 in feature 0, .*: scale X"),
        ("wald", np.full((3, 1), 2e-153), 1, r"the mean of X, 2e-153 in feature 0, .*: scale X"),
        ("wald", np.full((3, 1), 2e-259), 1, r"the mean of X, 2e-259 in feature 0, .*: scale X"),
        (Mahalanobis(np.eye(2) * 1e-250), 1e100 * SOME, 1, "infinitely far from the mean"),
        ("wald", 1e-82 + 1e-82 * AT_ROW_7, 1e276, "infinitely far from the mean .* sample_weight"),
        ("hellinger", 1 - 2 * AT_ROW_7, 1, "row 7, column 0: Hellinger is for numbers of at least"),
        ("pearson", 1 - 2 * AT_ROW_7, 1, "row 7, column 0: ChiSquared is for numbers of at least"),
        ("jeffreys", 1 - AT_ROW_7, 1, "row 7, column 0: Jeffreys is for positive numbers"),
    ],
)
def test_points_that_a_divergence_cannot_measure_are_an_error(divergence, points, weight, message):
    with pytest.raises(ValueError, match=message):
        PowerKMeans(2, divergence=divergence).fit(points, sample_weight=len(points) * [weight])


def test_a_shared_covariance_is_learned_where_clusters_are_thin_and_an_error_before():
    """Long parallel clusters side by side: k-means cuts them across."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, size=600)
    points = rng.normal(size=(600, 2)) * [12.0, 0.4] + np.array([0.0, 4.0]) * truth[:, None]
    turned = points @ np.array([[0.8, 0.6], [-0.6, 0.8]])
    model = PowerKMeans(3, divergence="mahalanobis", random_state=0).fit(turned)
    assert adjusted_rand_index(truth, model.labels_) > 0.99
    assert adjusted_rand_index(truth, KMeans(3, random_state=0).fit(turned).labels_) < 0.2
    assert np.linalg.det(model.covariance_) == pytest.approx(1.0)
    np.testing.assert_array_equal(model.predict(turned), model.labels_)
    deviations = turned - model.cluster_centers_[model.labels_]
    within = deviations.T @ deviations
    determinant = np.linalg.det(within)
    np.testing.assert_allclose(model.covariance_, within / math.sqrt(determinant), rtol=1e-3)
    assert model.inertia_ == pytest.approx(2 * math.sqrt(determinant), rel=1e-3)
    with pytest.raises(ValueError, match="learns its covariance in fit"):
        PowerKMeans.from_centers([[0.0, 0.0], [3.0, 3.0]], divergence="mahalanobis")


@pytest.mark.parametrize("n", [6, 60])  # there may be fewer points than features
def test_a_constant_feature_changes_no_learned_covariance_even_where_its_mean_is_rounded(n):
    rng = np.random.default_rng(0)
    points, weights = rng.normal(size=(n, 10)), rng.integers(0, 4, size=n)
    constant = np.tile([0.1, 1 / 3, 1.26, 1e4 / 7], (n, 1))
    zero, rounded = np.hstack([points, 0 * constant]), np.hstack([points, constant])
    model = PowerKMeans(2, divergence="mahalanobis", random_state=0)
    expected = model.fit(zero, sample_weight=weights).inertia_
    assert model.fit(rounded, sample_weight=weights).inertia_ == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_center_is_at_no_distance_whatever_the_rows_beside_it(name):
    points = CASES[name].points(60, 3, seed=0)
    model = PowerKMeans.from_centers(points[:4], divergence=CASES[name].divergence(3))
    assert np.diag(model.transform(points[:4])).max() < 1e-28
    np.testing.assert_allclose(
        model.memberships(points, power=-1.0)[:4], np.eye(4), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("bound", [0.0, 40.0])
def test_a_feature_at_a_bound_of_its_domain_changes_no_cluster(kind, bound):
    points = CASES["binomial"].points(60, 3, seed=0)
    at_bound = np.column_stack([points, np.full(60, bound)])
    model = PowerKMeans(3, divergence=Binomial(40), random_state=0)
    alone, beside = model.fit(kind(points)).labels_, model.fit(kind(at_bound)).labels_
    assert adjusted_rand_index(alone, beside) == 1
    np.testing.assert_allclose(model.cluster_centers_[:, 3], bound, rtol=1e-14)
    np.testing.assert_array_equal(model.predict(kind(at_bound)), beside)


def test_tiny_rows_have_directions_and_memberships_of_float32_points_do_not_vanish():
    points = np.array([[1e-170, 0.0], [5.0, 0.1], [0.0, 3e150], [0.0, 1e-200]])
    for kind in (np.asarray, sparse.csr_array):
        model = PowerKMeans(2, divergence="cosine", random_state=0).fit(kind(points))
        assert model.labels_[0] == model.labels_[1] != model.labels_[2] == model.labels_[3]
    centers = np.array([[0.0, 0.0], [8.0, 0.0]])
    points = np.array([[0.5, 0.1], [7.0, 1.0]])
    expected = PowerKMeans.from_centers(centers).memberships(points, power=-1.0)
    for scale in (1e-25, 1e25):
        model = PowerKMeans.from_centers((centers * scale).astype(np.float32), missing="observed")
        found = model.memberships((points * scale).astype(np.float32), power=-1.0)
        np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_planes_of_the_same_centers_are_computed_once(monkeypatch):
    counted = Mock(wraps=Poisson().planes)
    monkeypatch.setattr(Poisson, "planes", lambda self, *given: counted(*given))
    points = np.random.default_rng(0).poisson(5, (50, 3)) + 1.0
    rows, centers = rows_of("poisson", points), points[:4].copy()
    rows.sweep(centers, Harmonic(3.0))
    labels, _ = rows.assign(centers.copy())
    assert counted.call_count == 1
    centers[0] += 10  # in place, in the array that was seen
    moved, _ = rows.assign(centers)
    assert counted.call_count == 2
    assert not np.array_equal(labels, moved)
    rows.use(Gamma())
    of_gamma, inertia = rows.assign(centers)
    fresh = BregmanPoints(points, divergence=Gamma(), n_threads=2).assign(centers)
    assert inertia == fresh[1]
    np.testing.assert_array_equal(of_gamma, fresh[0])
