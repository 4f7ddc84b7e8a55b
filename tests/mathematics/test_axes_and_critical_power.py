import math

import numpy as np
import pytest
from scipy import sparse

from powermeans.mathematics import principal_axes as module
from powermeans.mathematics.critical_power import critical_power
from powermeans.mathematics.principal_axes import (
    axes_above_chance,
    principal_axes,
    without_long_points,
)


def by_definition(points, weights=None):
    """By the eigenvalues of the mean of r r^T / |r|^2; no point is at the mean."""
    weights = np.ones(len(points)) if weights is None else weights
    residuals = points - np.average(points, axis=0, weights=weights)
    directions = residuals / np.linalg.norm(residuals, axis=1, keepdims=True)
    moments = (directions.T * weights) @ directions / weights.sum()
    return 1 - 1 / (2 * np.linalg.eigvalsh(moments)[-1])


def stretched(n_points, n_features, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_points, n_features)) * np.linspace(1, 2, n_features)


@pytest.mark.parametrize("n_features", [1, 2, 4, 30, 33, 49, 200])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_it_is_what_its_definition_says(kind, n_features):
    """More than 32 features are multiplied in float32, and of more than 48 it iterates."""
    points, rel = stretched(300, n_features), 1e-11 if n_features <= 32 else 1e-5
    found = critical_power(kind(points))
    assert found == pytest.approx(by_definition(points), rel=rel)
    assert critical_power(kind(points + 1e3)) == pytest.approx(found, rel=1e-5)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("n_features", [3, 40])
def test_points_whose_squares_would_vanish_have_directions(kind, n_features):
    points = stretched(200, n_features)
    points[0] *= 1e3
    points[:, 0] *= np.arange(200) % 3 > 0
    for scale in (1e-150, 1e-155, 1e-160, 1e-200):
        scaled = critical_power(kind(points * scale))
        assert scaled == pytest.approx(critical_power(kind(points)), rel=1e-9)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize(("n_points", "n_features"), [(200, 20), (300, 520), (20, 520), (700, 520)])
def test_sparse_points_have_the_same_as_dense_ones(kind, n_points, n_features):
    rng = np.random.default_rng(2)
    points = rng.normal(1, 1, size=(n_points, n_features))
    points *= rng.uniform(size=points.shape) < 0.1
    weights = rng.uniform(size=n_points)
    of_dense = critical_power(points, weights)
    assert critical_power(kind(points), weights) == pytest.approx(of_dense, rel=1e-9)
    assert of_dense == pytest.approx(by_definition(points, weights), rel=1e-2)


@pytest.mark.parametrize("n_features", [3, 100, 700])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_two_and_three_points_are_enough(kind, n_features):
    two = np.zeros((2, n_features))
    two[1, :2] = [1.0, 2.0]
    assert critical_power(kind(two)) == pytest.approx(0.5)
    # The directions from the mean of an equilateral triangle are isotropic in its plane.
    triangle = np.zeros((3, n_features))
    triangle[:, :3] = np.eye(3)
    abs_error = 1e-6 if n_features == 100 else 1e-12
    assert critical_power(kind(triangle)) == pytest.approx(0.0, abs=abs_error)


@pytest.mark.parametrize("n_features", [1, 3, 100, 700])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_equal_points_have_one_half_as_points_on_a_line(kind, n_features):
    assert critical_power(kind(np.full((10, n_features), 0.1))) == 0.5
    assert critical_power(kind(np.full((1, n_features), 3.0))) == 0.5
    one_apart = np.full((10, n_features), 0.1)
    one_apart[3] += 1
    assert critical_power(kind(one_apart)) == pytest.approx(0.5)


def test_points_at_the_mean_count_although_they_have_no_direction():
    # Half of the points at the mean, half on a line: the eigenvalue is 1/2.
    points = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0], [-1.0, -1.0]])
    assert critical_power(points) == pytest.approx(0.0)
    # In decimal fractions the mean of these is not exactly the point in the middle.
    middle = np.array([0.1, 0.2, 0.7])
    away = np.outer([1.0, -1.0, 2.0, -2.0], [0.3, 0.1, 0.2])
    points = np.vstack([np.tile(middle, (12, 1)), middle + away])
    assert np.any(points.mean(axis=0) != middle)
    assert critical_power(points) == pytest.approx(1 - 1 / (2 * 4 / 16))


@pytest.mark.parametrize("weighted", [False, True])
def test_a_sample_of_many_rows_is_nearly_as_good_as_all(weighted):
    rng = np.random.default_rng(4)
    points = stretched(50_000, 3)
    points[:25_000] += [10, 0, 0]
    weights = rng.exponential(size=50_000) ** 3 if weighted else None
    sampled, expected = critical_power(points, weights), by_definition(points, weights)
    assert sampled != expected
    assert 1 - sampled == pytest.approx(1 - expected, rel=0.03)


def test_a_sample_is_drawn_by_the_random_state_and_not_fooled_where_it_is_too_small():
    # 2**22 elements are 10485 rows of 400 features; the largest eigenvalue of a covariance of so
    # few rows is 1.43 times the true one in isotropic data, and 1.12 times where one is threefold.
    rng = np.random.default_rng(5)
    points = rng.standard_normal(size=(42_000, 400), dtype=np.float32)
    assert 1 - critical_power(points) == pytest.approx(200, rel=0.3)
    points[:, 0] *= np.sqrt(3)
    directions = points[:, 0] / np.linalg.norm(points, axis=1)
    expected = 1 / (2 * np.mean(directions**2))
    assert 1 - critical_power(points) == pytest.approx(expected, rel=0.02)
    points = stretched(50_000, 2)
    assert critical_power(points, random_state=3) == critical_power(points, random_state=3)
    assert critical_power(points, random_state=3) != critical_power(points, random_state=4)
    generator = np.random.default_rng(3)
    assert critical_power(points, random_state=generator) == critical_power(points, random_state=3)


def off_center(n_features: int = 6) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(80, n_features)) * np.arange(1, n_features + 1) + 100.0


def expected(points: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, eigenvalues and eigenvectors, falling, from NumPy's covariance."""
    covariance = np.cov(points.T, aweights=weights, ddof=0)
    values, vectors = np.linalg.eigh(np.atleast_2d(covariance))
    return np.average(points, axis=0, weights=weights), values[::-1], vectors.T[::-1]


@pytest.mark.parametrize("is_formed", [True, False])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("is_weighted", [True, False])
def test_axes_are_those_of_the_covariance(container, is_formed, is_weighted, monkeypatch) -> None:
    if not is_formed:
        monkeypatch.setattr(module, "_MOST_FEATURES_FORMED", 1)
    points = off_center()
    weights = np.random.default_rng(1).uniform(0, 3, 80) if is_weighted else None
    found = principal_axes(container(points), weights, 3)
    mean, values, vectors = expected(points, np.ones(80) if weights is None else weights)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(found.deviations, np.sqrt(values[:3]), rtol=1e-9)
    np.testing.assert_allclose(np.abs(np.sum(found.axes * vectors[:3], axis=1)), 1, rtol=1e-9)
    np.testing.assert_allclose(found.axes @ found.axes.T, np.eye(3), atol=1e-12)
    assert found.total_deviation == pytest.approx(math.sqrt(values.sum()))
    assert (found.axes.max(axis=1) == np.abs(found.axes).max(axis=1)).all()


def test_axes_of_fewer_points_than_features_are_those_of_the_covariance() -> None:
    points = np.random.default_rng(0).standard_normal((12, 40)) + 1e3
    weights = np.linspace(0.5, 2, 12)
    found = principal_axes(points, weights, 12)
    _, values, vectors = expected(points, weights)
    np.testing.assert_allclose(found.deviations[:11], np.sqrt(values[:11]), rtol=1e-9)
    np.testing.assert_allclose(np.abs(np.sum(found.axes * vectors[:12], axis=1))[:11], 1, rtol=1e-9)
    np.testing.assert_allclose(found.axes @ found.axes.T, np.eye(12), atol=1e-12)


def test_axes_above_chance_are_those_of_clusters_in_double_and_of_shortened_points() -> None:
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((300, 200))
    centers = 6.0 * np.eye(5, 200)[np.arange(300) % 5]
    ones = np.ones(300)
    assert len(axes_above_chance(noise + centers, ones, 100).axes) == 4
    assert len(axes_above_chance(noise + centers, ones, 2).axes) == 2
    assert len(axes_above_chance(noise, ones, 100).deviations) == 1  # none, and one is kept
    points = off_center().astype(np.float32)
    found = principal_axes(points, None, 6)
    _, values, _ = expected(points.astype(np.float64), np.ones(80))
    np.testing.assert_allclose(found.deviations, np.sqrt(values), rtol=1e-9)
    points = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [30.0, 40.0], [-30, -40]])
    shortened = without_long_points(points, np.ones(6))
    np.testing.assert_allclose(shortened, np.vstack([points[:4], points[4:] * 2 / 50]))
    np.testing.assert_array_equal(
        without_long_points(np.ones((3, 2)), np.ones(3)), np.zeros((3, 2))
    )
