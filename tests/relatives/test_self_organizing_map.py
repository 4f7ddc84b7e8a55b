"""The map takes the steps of Kohonen's batch rule, written out here."""

import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from powermeans import KMeans, SelfOrganizingMap
from powermeans.relatives.self_organizing_map import Grid
from reproduce.matlab_map import MatlabMap


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


def hexagonal_steps(shape) -> np.ndarray:
    """Steps between nodes, found by going from neighbour to neighbour."""
    nodes = [(row, column) for row in range(shape[0]) for column in range(shape[1])]
    steps = np.full((len(nodes), len(nodes)), np.inf)
    np.fill_diagonal(steps, 0)
    for a, (row, column) in enumerate(nodes):
        side = 1 if row % 2 else -1
        beside = {(row, column - 1), (row, column + 1)}
        beside |= {(row + up, column + across) for up in (-1, 1) for across in (0, side)}
        for b, other in enumerate(nodes):
            if other in beside:
                steps[a, b] = 1
    for through in range(len(nodes)):
        steps = np.minimum(steps, steps[:, [through]] + steps[[through]])
    return steps


def test_the_map_of_matlab_leaves_out_points_and_shares_by_steps() -> None:
    points, start = cloud(), cloud(n=12, seed=1)
    model = MatlabMap((3, 4), init=start, random_state=7).fit(points)
    rng, steps, centers = np.random.RandomState(7), hexagonal_steps((3, 4)), start.copy()
    for epoch in range(200):
        reach = 3 - epoch / 50
        won = np.zeros((12, len(points)))
        nearest = cdist(points, centers, "sqeuclidean").argmin(axis=1)
        won[nearest, np.arange(len(points))] = rng.random_sample(len(points)) >= 0.1
        shares = (steps <= reach + 1e-9) @ won + won
        totals = shares.sum(axis=1)
        has_points = totals > 0
        centers[has_points] = (shares[has_points] @ points) / totals[has_points, None]
    np.testing.assert_allclose(model.cluster_centers_, centers, rtol=1e-9, atol=1e-12)
    assert model.n_iter_ == 200


TINY = {"radius": 1e-3, "final_radius": 1e-3}


def test_with_no_radius_left_an_epoch_is_a_sweep_of_lloyd() -> None:
    points, start = cloud(), cloud()[:6] + 0.1
    for n_sweeps in (1, 5):
        model = SelfOrganizingMap((2, 3), init=start, n_epochs=n_sweeps, **TINY).fit(points)
        lloyd = KMeans(6, init=start, max_iter=n_sweeps, tol=0).fit(points)
        np.testing.assert_array_equal(model.cluster_centers_, lloyd.cluster_centers_)


def test_the_first_radius_is_half_of_the_longer_side() -> None:
    maps = [SelfOrganizingMap((3, 4), radius=radius, n_epochs=3) for radius in (None, 2.0)]
    by_itself, given = (model.fit(cloud()).cluster_centers_ for model in maps)
    np.testing.assert_array_equal(by_itself, given)


def test_the_errors_are_those_of_their_definitions() -> None:
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


def test_a_node_has_eight_neighbours_on_squares_and_six_among_hexagons() -> None:
    nodes = np.arange(25)
    for topology, expected in (("rectangular", 8), ("hexagonal", 6)):
        grid = Grid((5, 5), topology)
        beside = grid.are_neighbours(np.full(25, 12), nodes) & (nodes != 12)
        assert beside.sum() == expected


def test_a_map_can_be_made_from_a_codebook() -> None:
    model = SelfOrganizingMap((3, 4), n_epochs=5).fit(cloud())
    made = SelfOrganizingMap.from_centers(model.cluster_centers_, shape=(3, 4))
    np.testing.assert_array_equal(made.predict(cloud()), model.labels_)
    np.testing.assert_array_equal(made.grid_positions_, model.grid_positions_)
    with pytest.raises(ValueError, match=r"centers has 12 rows but shape=\(7, 7\)"):
        SelfOrganizingMap.from_centers(model.cluster_centers_)
