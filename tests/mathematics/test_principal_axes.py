"""Principal axes against NumPy's own."""

import math

import numpy as np
import pytest
from scipy import sparse

from powermeans.mathematics import principal_axes as module
from powermeans.mathematics.principal_axes import (
    axes_above_chance,
    principal_axes,
    without_long_points,
)


def stretched(n_features: int = 6) -> np.ndarray:
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
    points = stretched()
    weights = np.random.default_rng(1).uniform(0, 3, 80) if is_weighted else None
    found = principal_axes(container(points), weights, 3)
    mean, values, vectors = expected(points, np.ones(80) if weights is None else weights)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(found.deviations, np.sqrt(values[:3]), rtol=1e-9)
    np.testing.assert_allclose(np.abs(np.sum(found.axes * vectors[:3], axis=1)), 1, rtol=1e-9)
    np.testing.assert_allclose(found.axes @ found.axes.T, np.eye(3), atol=1e-12)
    assert found.total_deviation == pytest.approx(math.sqrt(values.sum()))
    assert (found.axes.max(axis=1) == np.abs(found.axes).max(axis=1)).all()


def test_single_precision_is_summed_in_double() -> None:
    points = stretched().astype(np.float32)
    found = principal_axes(points, None, 6)
    _, values, _ = expected(points.astype(np.float64), np.ones(80))
    np.testing.assert_allclose(found.deviations, np.sqrt(values), rtol=1e-9)


def test_long_points_come_within_twice_the_median_length() -> None:
    points = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [30.0, 40.0], [-30, -40]])
    expected = points.copy()
    expected[4:] *= 2 / 50
    np.testing.assert_allclose(without_long_points(points, np.ones(6)), expected)
    np.testing.assert_array_equal(
        without_long_points(np.ones((3, 2)), np.ones(3)), np.zeros((3, 2))
    )


def test_as_many_axes_are_above_chance_as_clusters_less_one() -> None:
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((300, 200))
    centers = 6.0 * np.eye(5, 200)[np.arange(300) % 5]
    ones = np.ones(300)
    assert len(axes_above_chance(noise + centers, ones, 100).axes) == 4
    assert len(axes_above_chance(noise + centers, ones, 2).axes) == 2
    assert len(axes_above_chance(noise, ones, 100).deviations) == 1  # none, and one is kept
