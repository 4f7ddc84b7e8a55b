import math
from unittest.mock import Mock

import numpy as np
import pytest

import powermeans
from powermeans import PowerKMeans
from powermeans.divergences import Mahalanobis
from powermeans.engine.updates import Sweep
from powermeans.mathematics.rules import Hard, Power
from powermeans.methods import shared_covariance
from powermeans.points.bregman import BregmanPoints
from powermeans.points.needs import Measure, Needs
from powermeans.points.opening import open_points


@pytest.mark.parametrize("is_weighted", [False, True])
def test_the_covariance_of_fewer_points_than_features_is_that_of_their_products(is_weighted):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(20, 50)) * np.exp(rng.normal(size=50))
    points[:, 3] = 1.0
    weights = rng.uniform(1, 2, size=20) if is_weighted else None
    data = open_points(points, weights, Needs(name="test"))
    sweep = Sweep(data, points[:3], -math.inf)
    sums = data.sweep(sweep.centers, Hard())
    few, many = shared_covariance.FewPoints.of(data), shared_covariance.ManyPoints.of(data)
    centers = rng.normal(size=(4, 50))
    for learned, expected in (
        (few.divergence_of_all(), many.divergence_of_all()),
        (few.divergence_within(sweep, sums), many.divergence_within(sweep, sums)),
    ):
        largest = np.abs(expected.covariance).max()
        np.testing.assert_allclose(learned.covariance, expected.covariance, atol=1e-13 * largest)
        for name, given in (
            ("pairwise", (points, centers)),
            ("gradient", (centers,)),
            ("curvature", (centers[0],)),
        ):
            one, other = (getattr(metric, name)(*given) for metric in (learned, expected))
            np.testing.assert_allclose(one, other, atol=1e-9 * np.abs(other).max())
        np.testing.assert_allclose(learned.unwhitened(learned.whitened(centers)), centers)


def test_few_points_of_many_features_learn_a_covariance_without_decomposing_it(
    monkeypatch, tmp_path
):
    points = np.random.default_rng(0).normal(size=(30, 800))
    points[:10] += 3
    whole = shared_covariance.unit_covariance
    monkeypatch.setattr(shared_covariance, "unit_covariance", None)
    model = PowerKMeans(2, divergence="mahalanobis", random_state=0).fit(points)
    deviations = points - model.cluster_centers_[model.labels_]
    scales = np.linalg.norm(points - points.mean(axis=0), axis=0)
    expected = whole(deviations.T @ deviations, scales)
    np.testing.assert_allclose(model.covariance_, expected, atol=1e-9 * np.abs(expected).max())
    powermeans.save(model, tmp_path / "model")
    kept = powermeans.load(tmp_path / "model")
    assert kept.score(points) == pytest.approx(-model.inertia_, rel=1e-8)


@pytest.mark.parametrize("smallest", [1.0, 1e-3, 1e-5, 1e-7])
def test_a_covariance_is_that_of_its_eigenvalues_raised_to_the_least(smallest):
    rng = np.random.default_rng(0)
    turned, _ = np.linalg.qr(rng.normal(size=(5, 5)))
    values = np.array([1.0, 0.7, 0.5, 0.2, smallest])
    scatter, scales = 40 * (turned * values) @ turned.T, np.ones(5)
    raised = np.maximum(values, 1e-6)
    expected = (turned * raised / np.prod(raised) ** 0.2) @ turned.T
    np.testing.assert_allclose(
        shared_covariance.unit_covariance(scatter, scales), expected, rtol=1e-8, atol=1e-9
    )


def test_rounding_counts_what_cancels_among_features_that_depend_on_each_other():
    points = np.random.default_rng(0).normal(size=(90, 3))
    points = np.column_stack([points, points.sum(axis=1)])
    scatter = shared_covariance.scatter_of(open_points(points, None, Needs(name="test")))
    rows = BregmanPoints(points, divergence=scatter.divergence_of_all())
    exact = np.array(rows.divergence.covariance, dtype=np.longdouble)
    precision = np.linalg.inv(np.asarray(rows.divergence.covariance)).astype(np.longdouble)
    for _ in range(4):  # Newton's iteration
        precision = precision @ (2 * np.eye(4) - exact @ precision)
    apart = points.astype(np.longdouble)[:, None] - points[:4]
    inertia = np.einsum("ijf,fg,ijg->ij", apart, precision, apart).min(axis=1).sum()
    error = abs(rows.sweep(points[:4], Hard()).inertia - inertia)
    epsilon = np.finfo(np.float64).eps
    assert 64 * epsilon < error / rows.inertia_about_mean() < rows.rounding() < 1e7 * epsilon * 64


def test_an_interrupted_change_of_the_covariance_leaves_the_one_before(monkeypatch):
    points = np.random.default_rng(0).normal(size=(60, 3))
    rows = BregmanPoints(points, divergence=Mahalanobis(np.eye(3)))
    expected = rows.assign(points[:3])[1]
    monkeypatch.setattr(rows, "_distances_to_own", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        rows.use(Mahalanobis(np.diag([1.0, 2.0, 3.0])))
    monkeypatch.undo()
    assert rows.assign(points[:3])[1] == expected


@pytest.mark.parametrize(("of_points", "of_weights"), [(0, -800), (0, 798), (10, 0)])
def test_units_change_nothing_where_a_feature_is_constant(of_points, of_weights):
    rng = np.random.default_rng(0)
    points, weights = 50 * rng.normal(size=(150, 4)), rng.uniform(0.1, 1.0, size=150)
    points[:, 2] = 3.85e9
    model = PowerKMeans(3, divergence="mahalanobis", effort="fast", random_state=0)
    covariance = model.fit(points, sample_weight=weights).covariance_
    labels = model.labels_
    model.fit(np.ldexp(points, of_points), sample_weight=np.ldexp(weights, of_weights))
    np.testing.assert_allclose(model.covariance_, covariance, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(model.labels_, labels)


def test_features_whose_covariance_fits_into_no_memory_are_refused(monkeypatch):
    points = np.random.default_rng(0).normal(size=(10, 100))
    # Three matrices of 100 x 100 numbers of eight bytes.
    monkeypatch.setattr(shared_covariance, "free_memory", lambda: 240_000)
    PowerKMeans(2, divergence="mahalanobis", random_state=0).fit(points)
    monkeypatch.setattr(shared_covariance, "free_memory", lambda: 239_999)
    with pytest.raises(ValueError, match="pass fewer features"):
        PowerKMeans(2, divergence="mahalanobis", random_state=0).fit(points)


def unit(scatter):
    return scatter / np.linalg.det(scatter) ** (1 / len(scatter))


def joint_sweep(points, weights, centers, covariance, power):
    """Move centers and covariance at once: each pair of a point and a center written out."""
    precision = np.linalg.inv(covariance)
    apart = points[:, None, :] - centers
    sq_dist = np.einsum("ijf,fg,ijg->ij", apart, precision, apart)
    slopes = sq_dist ** (power - 1) * np.mean(sq_dist**power, axis=1)[:, None] ** (1 / power - 1)
    slopes *= weights[:, None]
    moved = slopes.T @ points / slopes.sum(axis=0)[:, None]
    apart = points[:, None, :] - moved
    return moved, unit(np.einsum("ij,ijf,ijg->fg", slopes, apart, apart))


def thin_clusters(n_features=3, n_points=120):
    rng = np.random.default_rng(3)
    turned = np.linalg.qr(rng.normal(size=(n_features, n_features)))[0]
    around = rng.normal(size=(n_points, n_features)) * np.geomspace(10, 0.5, n_features)
    return (around + 6.0 * np.eye(n_features)[np.arange(n_points) % 3]) @ turned


@pytest.mark.parametrize("is_weighted", [False, True])
def test_each_soft_sweep_of_the_paper_moves_centers_and_covariance_at_once(is_weighted):
    points = thin_clusters()
    weights = np.random.default_rng(4).uniform(0, 2, len(points)) if is_weighted else None
    counts = np.ones(len(points)) if weights is None else weights
    deviations = points - np.average(points, axis=0, weights=counts)
    seeds = points[:3] + 0.1
    centers, covariance = seeds, unit((counts * deviations.T) @ deviations)
    powers = [-1.0, -2.0, -5.0, -40.0]
    for n_sweeps, power in enumerate(powers, start=1):
        centers, covariance = joint_sweep(points, counts, centers, covariance, power)
        settings = {"schedule": powers[:n_sweeps], "init": seeds, "polish": False, "tol": 0}
        model = PowerKMeans(3, divergence="mahalanobis", **settings)
        model.fit(points, sample_weight=weights)
        np.testing.assert_allclose(model.cluster_centers_, centers, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(model.covariance_, covariance, rtol=1e-8, atol=1e-9)


def test_the_joint_update_never_raises_the_objective_and_is_left_out_if_it_came_too_late():
    settings = {"schedule": [-3.0] * 40, "polish": False, "tol": 0, "random_state": 0}
    model = PowerKMeans(3, divergence="mahalanobis", **settings).fit(thin_clusters())
    objective = model.history_.objective
    assert np.all(np.diff(objective) <= 1e-12 * objective[0])
    assert objective[-1] < 0.9 * objective[0]
    points = np.random.default_rng(0).normal(size=(60, 3)) * [1.0, 2.0, 3.0]
    centers = points[:3]
    for seconds_left, is_learned in ((0.9, False), (1.1, True)):
        rows = shared_covariance.open_learning(points, None, Measure(n_threads=1))
        rows.seconds_to_learn = 1.0
        before = rows.divergence
        update = shared_covariance.LearnCovariance(rows, lambda left=seconds_left: left)
        update.after(Sweep(rows, centers, -math.inf), rows.sweep(centers, Hard()))
        assert (rows.divergence is not before) == is_learned


def test_soft_deviations_of_few_points_are_those_of_their_products():
    points = thin_clusters(n_features=60, n_points=24)
    data = open_points(points, None, Needs(name="test"))
    few, many = shared_covariance.FewPoints.of(data), shared_covariance.ManyPoints.of(data)
    metric = many.divergence_of_all()
    rows = BregmanPoints(points, divergence=metric)
    rule = Power(-2.0)
    sweep, sums = Sweep(rows, points[:3] + 0.1, -2.0), rows.sweep(points[:3] + 0.1, rule)
    parts = list(shared_covariance.soft_deviations(data, metric, sweep, sums))
    weights = rule.weigh(metric.pairwise(points, sweep.centers))[0]
    apart = points[:, None, :] - sums.centers(fallback=sweep.centers)
    expected = np.einsum("ij,ijf,ijg->fg", weights, apart, apart)
    summed = sum(part.T @ part for part in parts)
    np.testing.assert_allclose(summed, expected, atol=1e-9 * np.abs(expected).max())
    learned, whole = few.divergence_of(parts, metric), many.divergence_of(parts, metric)
    largest = np.abs(whole.covariance).max()
    np.testing.assert_allclose(learned.covariance, whole.covariance, atol=1e-9 * largest)


@pytest.mark.parametrize("size", [1e-130, 1e128])
def test_points_whose_squares_leave_the_range_are_refused_with_a_factor(size):
    points = size * np.random.default_rng(0).normal(size=(7, 17))
    with pytest.raises(ValueError, match=r"multiply X by \de[+-]1\d\d"):
        PowerKMeans(2, divergence="mahalanobis", random_state=0).fit(points)
