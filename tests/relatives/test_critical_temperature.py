"""The critical temperature against points done by hand, and against what a sweep does."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from powermeans.mathematics.critical_power import critical_temperature
from powermeans.mathematics.rules import Gaussian
from powermeans.points.reference import ReferenceRows


def test_it_is_twice_the_largest_variance_along_a_direction():
    cross = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    assert critical_temperature(cross) == pytest.approx(2 * 18 / 4)
    assert critical_temperature(cross + 100, np.array([0.0, 0.0, 5.0, 5.0])) == pytest.approx(2)
    assert critical_temperature(np.full((5, 3), 0.1)) == pytest.approx(0, abs=1e-30)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_points_have_that_of_dense_ones(dtype):
    points = np.random.default_rng(0).normal(size=(40, 6)).astype(dtype)
    points[points < 0.3] = 0
    expected = 2 * np.linalg.eigvalsh(np.cov(points.T.astype(float), bias=True))[-1]
    for given in (points, sparse.csr_array(points)):
        assert critical_temperature(given) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("share", [0.5, 0.9, 1.0, 1.5])
def test_centers_near_the_mean_move_apart_below_it_and_together_above(share):
    rng = np.random.default_rng(1)
    points = rng.normal(size=(300, 3)) * [1.0, 2.0, 4.0]
    _, _, axes = np.linalg.svd(points - points.mean(axis=0))
    offset = 1e-6 * axes[0]
    centers = points.mean(axis=0) + np.array([offset, -offset])
    variance = share * critical_temperature(points) / 2
    moved = ReferenceRows(points).sweep(centers, Gaussian(variance)).centers(fallback=centers)
    growth = np.linalg.norm(moved[0] - moved[1]) / 2e-6
    assert growth == pytest.approx(1 / share, rel=1e-4)
