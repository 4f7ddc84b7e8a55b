import math
from unittest.mock import Mock

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from powermeans import KMeans
from powermeans.methods import SelfOrganizingMap
from powermeans.methods.self_organizing_map import Grid, ShareOverGrid


def cloud(n: int = 200, n_features: int = 3, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, n_features)) * np.linspace(3, 1, n_features)


def batch_map(points, weights, centers, positions, radii) -> np.ndarray:
    """Each center the mean of all points, weighted by how near their nodes are on the grid."""
    for radius in radii:
        nearest = cdist(points, centers, "sqeuclidean").argmin(axis=1)
        steps = cdist(positions, positions, "sqeuclidean")[:, nearest]
        shares = weights * np.exp(-steps / (2 * radius**2))
        centers = shares @ points / shares.sum(axis=1, keepdims=True)
    return centers


@pytest.mark.parametrize("topology", ["rectangular", "hexagonal"])
@pytest.mark.parametrize("is_weighted", [True, False])
def test_the_epochs_are_those_of_the_batch_rule(topology, is_weighted) -> None:
    points, start = cloud(), cloud(n=12, seed=1)
    weights = np.random.default_rng(2).uniform(0, 3, len(points)) if is_weighted else None
    model = SelfOrganizingMap((3, 4), topology=topology, init=start, radius=2.0, n_epochs=9)
    model.fit(points, sample_weight=weights)
    radii = 2.0 * 0.25 ** np.linspace(0, 1, 9)
    rows, columns = np.divmod(np.arange(12), 4)
    positions = np.column_stack([rows, columns]).astype(float)
    if topology == "hexagonal":
        positions = np.column_stack([rows * math.sin(math.pi / 3), columns + (rows % 2) / 2])
    np.testing.assert_allclose(model.grid_positions_, positions)
    ones = np.ones(len(points)) if weights is None else weights
    expected = batch_map(points, ones, start, positions, radii)
    np.testing.assert_allclose(model.cluster_centers_, expected, rtol=1e-9, atol=1e-12)
    assert model.n_iter_ == 9


@pytest.mark.parametrize("direction", [[1.0], [1.0, 0.0], [2.0, -0.5, 1.0]])
@pytest.mark.parametrize("topology", ["rectangular", "hexagonal"])
def test_points_on_a_line_have_the_same_map_in_either_precision(topology, direction) -> None:
    points = (cloud(n_features=1) * direction).astype(np.float32)
    model = SelfOrganizingMap((4, 4), topology=topology)
    single, double = (model.fit(points.astype(dtype)).inertia_ for dtype in ("f4", "f8"))
    assert single == pytest.approx(double, rel=1e-5)
    assert len(np.unique(model.labels_)) > 8  # none of the nodes begin at one place


TINY = {"radius": 1e-3, "final_radius": 1e-3}


def test_a_map_is_made_from_a_codebook_with_errors_of_their_definitions() -> None:
    model = SelfOrganizingMap((3, 4), n_epochs=5).fit(cloud())
    made = SelfOrganizingMap.from_centers(model.cluster_centers_, shape=(3, 4))
    np.testing.assert_array_equal(made.predict(cloud()), model.labels_)
    np.testing.assert_array_equal(made.grid_positions_, model.grid_positions_)
    with pytest.raises(ValueError, match=r"centers has 12 rows but shape=\(7, 7\)"):
        SelfOrganizingMap.from_centers(model.cluster_centers_)
    nodes = np.arange(25)
    for topology, expected in (("rectangular", 8), ("hexagonal", 6)):
        grid = Grid((5, 5), topology)
        beside = grid.are_neighbours(np.full(25, 12), nodes) & (nodes != 12)
        assert beside.sum() == expected
    points, weights = cloud(), np.random.default_rng(1).uniform(0, 2, 200)
    model = SelfOrganizingMap((3, 3), n_epochs=3).fit(points, sample_weight=weights)
    sq_dist = cdist(points, model.cluster_centers_, "sqeuclidean")
    shares = weights / weights.sum()
    assert model.quantization_error_ == pytest.approx(shares @ np.sqrt(sq_dist.min(axis=1)))
    assert model.inertia_ == pytest.approx(weights @ sq_dist.min(axis=1))
    nodes = np.argsort(sq_dist, axis=1)[:, :2]
    rows, columns = np.divmod(nodes, 3)
    are_apart = np.maximum(np.abs(np.diff(rows)), np.abs(np.diff(columns))).ravel() > 1
    assert model.topographic_error_ == pytest.approx(shares @ are_apart)
    np.testing.assert_array_equal(model.labels_, nodes[:, 0])
    points, start = cloud(), cloud()[:6] + 0.1
    for n_sweeps in (1, 5):
        model = SelfOrganizingMap((2, 3), init=start, n_epochs=n_sweeps, **TINY).fit(points)
        lloyd = KMeans(6, init=start, max_iter=n_sweeps, tol=0).fit(points)
        np.testing.assert_array_equal(model.cluster_centers_, lloyd.cluster_centers_)
    maps = [SelfOrganizingMap((3, 4), radius=radius, n_epochs=3) for radius in (None, 2.0)]
    by_itself, given = (model.fit(cloud()).cluster_centers_ for model in maps)
    np.testing.assert_array_equal(by_itself, given)


def test_an_interrupt_does_not_wait_for_the_topographic_error(monkeypatch) -> None:
    calls = Mock(side_effect=[None, None, KeyboardInterrupt])
    monkeypatch.setattr(ShareOverGrid, "after", lambda _, sweep, sums: calls() or sums)
    model = SelfOrganizingMap((3, 4))
    with pytest.raises(KeyboardInterrupt):
        model.fit(cloud())
    assert np.isnan(model.topographic_error_)
    assert model.n_iter_ == 2
    assert model.quantization_error_ > 0
