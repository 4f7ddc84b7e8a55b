"""Squared distances by direct differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from powermeans.divergences import SquaredEuclidean


def test_distances_are_those_of_pythagoras():
    points, centers = np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[0.0, 0.0], [3.0, 0.0]])
    np.testing.assert_array_equal(SquaredEuclidean().pairwise(points, centers), [[0, 9], [25, 16]])


@pytest.mark.parametrize(("n_points", "n_centers", "n_features"), [(3000, 50, 7), (3, 2, 300_000)])
def test_chunks_together_cover_all_points(n_points, n_centers, n_features):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(n_points, n_features))
    centers = rng.normal(size=(n_centers, n_features))
    chunks = list(SquaredEuclidean().in_chunks(points, centers))
    assert len(chunks) > 1
    assert np.concatenate([np.arange(n_points)[rows] for rows, _ in chunks]).tolist() == list(
        range(n_points)
    )
    expected = cdist(points, centers, "sqeuclidean")
    np.testing.assert_allclose(SquaredEuclidean().pairwise(points, centers), expected, rtol=1e-12)


def test_nothing_cancels_far_from_the_origin():
    center = np.array([[1e8, 1e8]])
    point = center + np.array([2.0**-20, 0.0])
    assert SquaredEuclidean().pairwise(point, center)[0, 0] == 2.0**-40


def test_float32_points_are_measured_in_float64():
    points = np.array([[1.0 + 2.0**-20]], dtype=np.float32)
    sq_dist = SquaredEuclidean().pairwise(points, np.array([[1.0 + 2.0**-40]]))
    assert sq_dist.dtype == np.float64
    assert math.sqrt(sq_dist[0, 0]) == pytest.approx(2.0**-20 - 2.0**-40, rel=1e-12)


def test_sparse_points_are_as_far_as_dense_ones():
    rng = np.random.default_rng(1)
    points = rng.normal(size=(500, 30)) * (rng.uniform(size=(500, 30)) < 0.2)
    centers = rng.normal(size=(100, 30))
    of_sparse = SquaredEuclidean().pairwise(sparse.csr_array(points), centers)
    np.testing.assert_array_equal(of_sparse, SquaredEuclidean().pairwise(points, centers))
