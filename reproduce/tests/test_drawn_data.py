"""Drawn data has the shape that its source says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from reproduce.drawn_data import (
    make_exponential_family,
    make_gaussian_clusters,
    make_grid_gaussians,
)
from reproduce.matlab_map import MatlabMap

MAKERS = {
    "gaussian clusters": lambda seed: make_gaussian_clusters(200, 7, 3, random_state=seed),
    "drawn": lambda seed: make_gaussian_clusters(200, 7, 3, sizes="drawn", random_state=seed),
    "uneven": lambda seed: make_gaussian_clusters(200, 7, 3, sizes="uneven", random_state=seed),
    "normal": lambda seed: make_exponential_family("normal", random_state=seed),
    "poisson": lambda seed: make_exponential_family("poisson", random_state=seed),
    "binomial": lambda seed: make_exponential_family("binomial", random_state=seed),
    "gamma": lambda seed: make_exponential_family("gamma", random_state=seed),
    "grid": lambda seed: make_grid_gaussians(random_state=seed),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_seed_gives_the_same_points_and_another_seed_others(name: str) -> None:
    one, again, other = (MAKERS[name](seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.points, again.points)
    assert not np.array_equal(one.points, other.points)


def test_the_clusters_of_the_tables_are_those_of_the_paper() -> None:
    drawn = make_gaussian_clusters(n_features=10, random_state=1)
    assert drawn.points.shape == (2500, 10)
    assert np.bincount(drawn.labels).tolist() == [50] * 50
    residuals = drawn.points - drawn.centers[drawn.labels]
    # 25 000 standard normal numbers: the errors of mean and variance are 0.006 and 0.009.
    assert abs(residuals.mean()) < 0.03
    assert residuals.var() == pytest.approx(1, abs=0.05)
    assert drawn.centers.min() >= 0
    assert drawn.centers.max() < 60


@given(n_points=st.integers(1, 60), n_clusters=st.integers(1, 9), seed=st.integers(0, 99))
def test_equal_sizes_differ_by_one_at_most(n_points: int, n_clusters: int, seed: int) -> None:
    drawn = make_gaussian_clusters(n_points, n_clusters, random_state=seed)
    counts = np.bincount(drawn.labels, minlength=n_clusters)
    assert counts.sum() == n_points
    assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize(("sizes", "spread"), [("drawn", 0.0), ("uneven", 0.8 / 12**0.5)])
def test_sizes_spread_as_their_weights_and_the_draw_of_points_do(sizes, spread) -> None:
    drawn = make_gaussian_clusters(400_000, 400, 1, sizes=sizes, random_state=0)
    counts = np.bincount(drawn.labels, minlength=400) / 1000
    assert counts.std() == pytest.approx((spread**2 + 1e-3) ** 0.5, rel=0.1)
    assert np.ptp(counts) < (1.0 if spread else 0.25)


@pytest.mark.parametrize(
    ("family", "variance"),
    [
        ("normal", lambda mean: 16.0),
        ("poisson", lambda mean: mean),
        ("binomial", lambda mean: mean * (1 - mean / 50)),
        ("gamma", lambda mean: mean**2 / 3),
    ],
    ids=["normal", "poisson", "binomial", "gamma"],
)
def test_a_family_has_the_means_and_variances_of_its_law(family, variance) -> None:
    drawn = make_exponential_family(family, n_points=30_000, random_state=0)
    for label, mean in enumerate((10.0, 20.0, 40.0)):
        own = drawn.points[drawn.labels == label]
        assert own.mean() == pytest.approx(mean, rel=0.02)
        assert own.var() == pytest.approx(variance(mean), rel=0.06)


def test_nine_gaussians_stand_on_a_grid() -> None:
    drawn = make_grid_gaussians(9000, spacing=10, spread=0.1, random_state=0)
    assert np.abs(drawn.points - drawn.centers[drawn.labels]).max() < 0.6
    assert {tuple(place) for place in np.rint(drawn.points / 10)} == {
        (x, y) for x in (0.0, 1.0, 2.0) for y in (0.0, 1.0, 2.0)
    }


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
    start, points = np.split(np.random.default_rng(0).normal(size=(212, 3)) * [3, 2, 1], [12])
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
