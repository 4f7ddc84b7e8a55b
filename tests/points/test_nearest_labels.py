"""Labels of float32 points are those of the nearest centers, in extended precision."""

from __future__ import annotations

import numpy as np
import pytest
from problems import sq_distances

from powermeans import KMeans, PowerKMeans
from powermeans.divergences import Mahalanobis

# Of the largest squared distance; the documentation names it.
TOLERANCE = 1e-14


def points_of(rng: np.random.Generator) -> np.ndarray:
    """A few points of few features, mostly with copies, some far from zero."""
    n_points, n_features = rng.integers(20, 300), rng.integers(1, 6)
    points = rng.normal(size=(n_points, n_features)) * rng.choice([0.1, 1.0, 10.0])
    points += rng.choice([0.0, 5.0, 100.0])
    return points[rng.integers(n_points, size=n_points)].astype(np.float32)


def exactly(model: KMeans, points: np.ndarray) -> tuple[np.ndarray, ...]:
    """All squared distances in long double, those to own centers, and to the nearest."""
    centers = model.cluster_centers_.astype(np.longdouble)
    sq_dist = sq_distances(points.astype(np.longdouble), centers)
    return sq_dist, sq_dist[np.arange(len(points)), model.labels_], sq_dist.min(axis=1)


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_no_other_center_is_nearer_than_that_of_the_label(seed: int, init: str) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(15):
        points = points_of(rng)
        n_clusters = int(rng.integers(2, min(40, len(points))))
        weights = rng.uniform(0, 3, size=len(points)) if rng.random() < 0.5 else None
        model = KMeans(n_clusters, init=init, n_init=1, random_state=int(rng.integers(10**6)))
        sq_dist, own, nearest = exactly(model.fit(points, sample_weight=weights), points)
        assert (own - nearest).max() <= TOLERANCE * sq_dist.max()


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.parametrize("n_features", [1, 3, 16])
@pytest.mark.parametrize("far", [1e6, 1e12, 1e25])
def test_far_float32_points_take_no_digits_from_labels_and_inertia(n_features, far) -> None:
    rng = np.random.default_rng(n_features)
    points = rng.normal(size=(300, n_features)).astype(np.float32)
    points[::2] = np.float32(far) * (1 + points[::2] / 64)  # half of them: there may be the origin
    for n_clusters in (2, 20, 60):
        model = KMeans(n_clusters, n_init=1, random_state=0).fit(points)
        _, own, nearest = exactly(model, points)
        assert ((own - nearest) <= 1e-12 * nearest).all()
        assert model.inertia_ == pytest.approx(float(nearest.sum()), rel=1e-12)
        assert np.array_equal(model.predict(points), model.labels_)


@pytest.mark.parametrize("far", [0.0, 1e6, 1e12, 1e20])
@pytest.mark.parametrize("correlation", [0.0, 0.9, 1 - 1e-5])
def test_a_far_point_takes_no_digits_from_mahalanobis_distances(far, correlation) -> None:
    """A point far away, of weight or without, changes no label and no distance of the others."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(60, 2)) * [1, 20] + 100
    points[-1] += far
    metric = Mahalanobis([[1.0, 20 * correlation], [20 * correlation, 400.0]])
    model = PowerKMeans(4, divergence=metric, random_state=0)
    model.fit(points, sample_weight=np.append(np.ones(59), 1e-25))
    distances = np.transpose([metric.generator(points - c) for c in model.cluster_centers_])
    own, nearest = distances[np.arange(60), model.predict(points)], distances.min(axis=1)
    assert (own - nearest <= 1e-9 * nearest).all()
    np.testing.assert_allclose(model.transform(points)[:-1], distances[:-1], rtol=1e-4, atol=1e-8)
