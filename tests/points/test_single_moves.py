"""Moves of single points and swaps of centers: against the reference, and by brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from powermeans.points.compiled import EuclideanRows
from powermeans.points.reference import ReferenceRows

OPENED = {
    "dense": EuclideanRows,
    "CSR": lambda points, *args, **options: EuclideanRows(
        sparse.csr_array(points), *args, **options
    ),
}
UNTIL_IN_VAIN = 1000


class Problem:
    """Points, some of them equal, with weights, some of them zero, and centers."""

    def __init__(self, n_points, n_features, n_centers, is_weighted, is_coarse, seed):
        rng = np.random.default_rng(seed)
        self.points = rng.normal(size=(n_points, n_features))
        if is_coarse:
            self.points = np.round(self.points)
        weights = rng.integers(0, 5, n_points) * rng.uniform(0.5, 2, n_points)
        self.weights = weights + (np.arange(n_points) == 0) if is_weighted else np.ones(n_points)
        self.centers = self.points[rng.integers(n_points, size=n_centers)]
        self.given = n_points, n_features, n_centers, is_weighted, is_coarse, seed

    def __repr__(self):
        return f"Problem{self.given}"


problems = st.builds(
    Problem,
    n_points=st.integers(2, 40),
    n_features=st.sampled_from([1, 2, 3, 5, 8, 17]),
    n_centers=st.integers(1, 8),
    is_weighted=st.booleans(),
    is_coarse=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)


def partition_inertia(points, weights, labels, n_clusters) -> float:
    total = 0.0
    for j in range(n_clusters):
        own = (labels == j) & (weights > 0)
        if own.any():
            mean = np.average(points[own], axis=0, weights=weights[own])
            total += float(weights[own] @ np.square(points[own] - mean).sum(axis=1))
    return total


@settings(max_examples=150)
@given(problem=problems, opened=st.sampled_from(sorted(OPENED)))
def test_no_single_move_is_left_that_gains(problem, opened) -> None:
    """Whole groups of equal points are tried, since they move as one."""
    rows = OPENED[opened](problem.points, problem.weights)
    moved = rows.moves.move_points(problem.centers, UNTIL_IN_VAIN)
    points, item_of = np.unique(problem.points, axis=0, return_inverse=True)
    weights = np.bincount(item_of.ravel(), problem.weights, len(points))
    labels = ReferenceRows(points).assign(moved.centers)[0]
    n_clusters = len(moved.centers)
    reached = partition_inertia(points, weights, labels, n_clusters)
    for i in np.flatnonzero(weights):
        for j in range(n_clusters):
            tried = np.where(np.arange(len(points)) == i, j, labels)
            after = partition_inertia(points, weights, tried, n_clusters)
            assert after >= reached - 1e-8 * (reached + 1e-8)


@settings(max_examples=60)
@given(problem=problems, opened=st.sampled_from(sorted(OPENED)), n_passes=st.integers(1, 5))
def test_moves_are_those_of_the_reference(problem, opened, n_passes) -> None:
    if problem.given[4]:
        return  # rounding decides between moves that gain equally
    expected = ReferenceRows(problem.points, problem.weights).move_points(problem.centers, n_passes)
    moved = OPENED[opened](problem.points, problem.weights).moves.move_points(
        problem.centers, n_passes
    )
    assert moved.n_moves == expected.n_moves
    np.testing.assert_allclose(moved.centers, expected.centers, atol=1e-9)


def cloud(n_points=3000, n_features=3, n_centers=20, seed=0):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n_points, n_features)) + 3 * rng.integers(3, size=(n_points, 1))
    return points, points[:n_centers].copy()


@pytest.mark.parametrize("opened", sorted(OPENED))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_features", [2, 20])
def test_threads_change_no_bit(opened, dtype, n_features) -> None:
    points, centers = cloud(20_000, n_features)
    rows = [OPENED[opened](points.astype(dtype), n_threads=n) for n in (1, 3)]
    moved = [several.moves.move_points(centers, 5) for several in rows]
    assert len(rows[1].team.stripes_by_worker) == 3
    assert moved[0].n_moves > 1000
    assert moved[0].centers.tobytes() == moved[1].centers.tobytes()


def test_a_swap_mends_two_centers_in_one_cluster() -> None:
    rng = np.random.default_rng(0)
    middles = np.array([[0.0, 0], [10, 0], [200, 0], [210, 0]])
    points = np.repeat(middles, 30, axis=0) + rng.normal(scale=0.5, size=(120, 2))
    stuck = np.array([[0.0, 0.5], [0, -0.5], [10, 0], [205, 0]])
    for open_points in OPENED.values():
        swapped = open_points(points).moves.swap_centers(stuck, 10, np.inf, 0.0)
        assert swapped.n_moves >= 1
        np.testing.assert_allclose(np.sort(swapped.centers[:, 0]), middles[:, 0], atol=0.5)


def test_no_swap_begins_once_enough_distances_are_computed() -> None:
    points, centers = cloud()
    rows = EuclideanRows(points)
    few = rows.moves.swap_centers(centers, 1000, 1.0, 0.0)
    many = rows.moves.swap_centers(centers, 1000, np.inf, 0.0)
    assert few.n_moves == 0 < many.n_moves
    assert few.n_distances < many.n_distances


def test_swaps_in_vain_end_nothing_before_the_floor_of_distances() -> None:
    points, centers = cloud()
    rows = EuclideanRows(points)
    ended = rows.moves.swap_centers(centers, 0, np.inf, 0.0)
    floor = 2 * ended.n_distances
    went_on = rows.moves.swap_centers(centers, 0, np.inf, 0.0, floor)
    assert ended.n_moves == 0 < went_on.n_moves
    assert ended.n_distances < floor <= went_on.n_distances


@pytest.mark.parametrize("opened", sorted(OPENED))
@pytest.mark.parametrize("factor", [1e-150, 1e150])
def test_tiny_and_huge_points_move_alike(opened, factor) -> None:
    points, centers = cloud(300)
    moved = OPENED[opened](points).moves.move_points(centers, 5)
    scaled = OPENED[opened](factor * points).moves.move_points(factor * centers, 5)
    assert scaled.n_moves == moved.n_moves
    np.testing.assert_allclose(scaled.centers / factor, moved.centers, rtol=1e-9)


def test_labels_of_no_center_are_refused() -> None:
    points, centers = cloud(100)
    rows = EuclideanRows(points)
    labels = np.full(len(points), len(centers), dtype=np.int32)
    order = np.arange(len(points))
    with pytest.raises(ValueError, match="labels must be numbers of centers"):
        rows.native.move_points((1.0, 0.0, 0.0, 0.0, 0.0), order, 1, labels, centers)
