"""Known answers on real data. Where POWERMEANS_DATA names its folder these must hold."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from powermeans import KMeans, PowerKMeans, critical_power
from powermeans.metrics import centroid_index, quality_ratio

pytestmark = pytest.mark.data

# The least sums of squares: published as proved for iris and ruspini, and for s2 the least that any
# method is known to have found.
OPTIMA = [
    ("iris", 3, 78.8514414261),
    ("ruspini", 4, 12881.0512361466),
    ("s2", 15, 13279109490729.508),
]


@pytest.mark.parametrize(("name", "n_clusters", "optimum"), OPTIMA)
def test_the_optimum_is_found(real_data, name, n_clusters, optimum) -> None:
    points = real_data(name).points
    for seed in range(3):
        model = PowerKMeans(n_clusters, random_state=seed).fit(points)
        # Which of two clusters a few points on their border go to is left to more effort.
        assert model.inertia_ == pytest.approx(optimum, rel=1e-4)
    thorough = PowerKMeans(n_clusters, effort="thorough", random_state=0).fit(points)
    assert thorough.inertia_ == pytest.approx(optimum, rel=1e-9)


def test_glass_between_minus_one_and_one_is_solved_from_every_seed(real_data) -> None:
    glass = real_data("glass").points
    low, high = glass.min(axis=0), glass.max(axis=0)
    points = 2 * (glass - low) / (high - low) - 1
    for seed in range(5):
        model = PowerKMeans(6, random_state=seed).fit(points)
        # The proved optimum is published with six digits.
        assert model.inertia_ == pytest.approx(72.9647, abs=5e-5)


def test_the_clusters_of_s2_are_found(real_data) -> None:
    data = real_data("s2")
    points, truth = data.points, data.labels
    centers = np.stack([points[truth == label].mean(axis=0) for label in np.unique(truth)])
    model = PowerKMeans(15, random_state=0).fit(points)
    assert centroid_index(model.cluster_centers_, centers) == 0
    assert quality_ratio(points, model.cluster_centers_, centers) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(("name", "expected"), [("mice_protein", -0.3), ("pendigits", -0.9)])
def test_the_critical_power_of_real_data(real_data, name, expected) -> None:
    points = real_data(name).points
    points = points[np.isfinite(points).all(axis=1)]
    residuals = points - points.mean(axis=0)
    directions = residuals / np.linalg.norm(residuals, axis=1, keepdims=True)
    largest = np.linalg.eigvalsh(directions.T @ directions / len(points))[-1]
    assert critical_power(points) == pytest.approx(1 - 1 / (2 * largest), abs=1e-3)
    assert critical_power(points) == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize("estimator", [KMeans, PowerKMeans])
def test_images_get_the_same_labels_dense_and_sparse(real_data, estimator) -> None:
    images = real_data("mnist_train", dtype=np.float32).points[:5000]
    limits = {} if estimator is KMeans else {"effort": "none", "schedule": 2.0}
    model = estimator(10, init=images[:10], **limits)
    labels = model.fit_predict(images)
    assert model.cluster_centers_.dtype == np.float32
    np.testing.assert_array_equal(model.predict(sparse.csr_matrix(images)), labels)
    np.testing.assert_array_equal(model.fit_predict(sparse.csr_matrix(images)), labels)
