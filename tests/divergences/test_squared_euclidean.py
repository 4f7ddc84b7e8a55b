"""Squared distances by direct differences, and chunks of all distances."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from powermeans.divergences import Manhattan, SquaredEuclidean


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(9000, 50, 7), (3, 2, 300_000)], ids=str)
@pytest.mark.parametrize(
    ("divergence", "metric"), [(SquaredEuclidean(), "sqeuclidean"), (Manhattan(), "cityblock")]
)
def test_chunks_together_cover_all_points(divergence, metric, shape, dtype):
    n_points, n_centers, n_features = shape
    rng = np.random.default_rng(0)
    points = rng.normal(size=(n_points, n_features)).astype(dtype)
    centers = rng.normal(size=(n_centers, n_features))
    chunks = list(divergence.in_chunks(points, centers))
    assert len(chunks) > 1
    covered = np.concatenate([np.arange(n_points)[rows] for rows, _ in chunks])
    np.testing.assert_array_equal(covered, np.arange(n_points))
    found = divergence.pairwise(points, centers)
    np.testing.assert_allclose(found, cdist(points, centers, metric), rtol=1e-12)


def test_nothing_cancels_far_from_the_origin_and_in_float32():
    center = np.array([[1e8, 1e8]])
    point = center + np.array([2.0**-20, 0.0])
    assert SquaredEuclidean().pairwise(point, center)[0, 0] == 2.0**-40
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
