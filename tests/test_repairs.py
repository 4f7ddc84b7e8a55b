"""Lost centers come back to life, and living ones are left alone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from powermeans.repairs import LeaveAlone, RelocateEmpty, SeparateCoincident
from powermeans.rows import open_rows
from powermeans.rules import Hard

SPREAD = 2.0
CENTERS = np.array([[0.0, 1.0], [5.0, 5.0], [0.0, 1.0], [3.0, 3.0], [0.0, 1.0 + 1e-9], [5.0, 5.1]])


def separate(centers, power=-3.0, spread=SPREAD) -> tuple[np.ndarray, int]:
    return SeparateCoincident(critical_power=-1.0, spread=spread).before(centers, power)


def gaps(centers: np.ndarray) -> np.ndarray:
    differences = centers[:, None, :] - centers[None, :, :]
    return np.linalg.norm(differences, axis=2)[np.triu_indices(len(centers), 1)]


def test_coincident_centers_are_moved_apart_by_a_hair() -> None:
    separated, n_separated = separate(CENTERS)
    assert n_separated == 2
    moved = np.linalg.norm(separated - CENTERS, axis=1)
    assert np.count_nonzero(moved) == 2
    np.testing.assert_allclose(moved[moved > 0], 1e-6 * SPREAD, rtol=1e-6)
    assert gaps(separated).min() > 1e-7 * SPREAD


def test_separated_centers_are_not_separated_again() -> None:
    separated, _ = separate(CENTERS)
    again, n_separated = separate(separated)
    assert n_separated == 0
    assert again is separated


def test_above_the_critical_power_coincident_centers_stay() -> None:
    assert separate(CENTERS, power=-0.5) == (CENTERS, 0)


def test_equal_points_have_no_spread_and_nothing_is_separated() -> None:
    assert separate(CENTERS, spread=0.0) == (CENTERS, 0)


def test_separating_is_the_same_each_time() -> None:
    np.testing.assert_array_equal(separate(CENTERS)[0], separate(CENTERS)[0])


@pytest.mark.parametrize("scale", [1e-120, 1e120])
def test_separating_knows_no_scale(scale: float) -> None:
    separated, n_separated = separate(scale * CENTERS, spread=scale * SPREAD)
    assert n_separated == 2
    assert gaps(separated).min() > 1e-7 * scale * SPREAD


def test_centers_far_from_the_origin_are_moved_far_enough_to_differ() -> None:
    separated, n_separated = separate(np.full((3, 2), 1e12))
    assert n_separated == 2
    assert gaps(separated).min() > 0


def test_many_coincident_centers_are_all_moved() -> None:
    separated, n_separated = separate(np.zeros((500, 3)))
    assert n_separated == 499
    assert gaps(separated).min() > 0


POINTS = np.array([[0.0, 0.0], [0.0, 1.0], [4.0, 0.0], [9.0, 9.0], [9.0, 10.0]])


def relocate(points, centers, weights=None):
    rows = open_rows(points, weights)
    sums = rows.sweep(centers, Hard())
    repaired, n_relocated = RelocateEmpty().after(rows, centers, sums)
    return sums, repaired, n_relocated


@pytest.mark.parametrize("container", [np.array, sparse.csr_array])
def test_an_empty_cluster_takes_the_point_of_largest_error_out_of_its_cluster(container) -> None:
    centers = np.array([[0.0, 0.0], [50.0, 50.0], [9.0, 9.0]])
    sums, repaired, n_relocated = relocate(container(POINTS), centers)
    assert n_relocated == 1
    np.testing.assert_allclose(sums.weights, [3, 0, 2])
    np.testing.assert_allclose(repaired.weights, [2, 1, 2])
    np.testing.assert_allclose(
        repaired.centers(fallback=centers), [[0.0, 0.5], [4.0, 0.0], [9.0, 9.5]]
    )
    np.testing.assert_allclose(sums.weights, [3, 0, 2])


def test_the_next_empty_cluster_counts_with_the_one_before() -> None:
    centers = np.array([[0.0, 0.0], [50.0, 50.0], [60.0, 60.0]])
    _, repaired, n_relocated = relocate(POINTS, centers)
    assert n_relocated == 2
    # The farthest is (9, 10); then (9, 9) is near to it, and (4, 0) is the farthest.
    np.testing.assert_allclose(repaired.centers(fallback=centers)[1:], [[9.0, 10.0], [4.0, 0.0]])


def test_weights_count_in_the_error() -> None:
    centers = np.array([[0.0, 0.0], [500.0, 500.0]])
    weights = np.array([1.0, 400.0, 1.0, 1.0, 1.0])
    _, repaired, _ = relocate(POINTS, centers, weights)
    np.testing.assert_allclose(repaired.centers(fallback=centers)[1], [0.0, 1.0])
    np.testing.assert_allclose(repaired.weights, [4, 400])


def test_a_point_without_weight_gets_no_cluster() -> None:
    centers = np.array([[0.0, 0.0], [0.0, 1.0], [500.0, 500.0]])
    weights = np.array([1.0, 1.0, 0.0, 0.0, 0.0])
    sums, repaired, n_relocated = relocate(POINTS, centers, weights)
    assert n_relocated == 0
    np.testing.assert_array_equal(repaired.weights, sums.weights)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_a_center_that_misses_its_points_by_rounding_is_at_them(dtype: type, offset: float):
    places = (np.random.default_rng(0).normal(size=(5, 3)) + offset).astype(dtype)
    points = np.repeat(places, 1000, axis=0)
    centers = np.vstack([points.reshape(5, 1000, 3).mean(axis=1, dtype=np.float64), [[9e3] * 3]])
    centers[:5] *= 1 + 1e-14
    _, _, n_relocated = relocate(points, centers)
    assert n_relocated == 0


def test_where_every_point_is_at_a_center_empty_clusters_stay_empty() -> None:
    points = np.repeat(POINTS[:2], 3, axis=0)
    centers = np.vstack([POINTS[:2], [[7.0, 7.0]]])
    _, repaired, n_relocated = relocate(points, centers)
    assert n_relocated == 0
    np.testing.assert_array_equal(repaired.centers(fallback=centers), centers)


def test_without_empty_clusters_the_sums_are_as_they_were() -> None:
    sums, repaired, n_relocated = relocate(POINTS, POINTS[:2])
    assert repaired is sums
    assert n_relocated == 0


def test_leaving_alone_changes_nothing() -> None:
    rows, centers = open_rows(POINTS), np.zeros((2, 2))
    sums = rows.sweep(centers, Hard())
    assert LeaveAlone().before(centers, -3.0) == (centers, 0)
    assert LeaveAlone().after(rows, centers, sums) == (sums, 0)


def test_rounding_does_not_decide_where_coincident_centers_are_pushed():
    rng = np.random.default_rng(5)
    centers = np.concatenate([np.ones((6, 3)), [[5.0, 5, 5]]])
    pushed = [
        SeparateCoincident(np.inf, 1.0).before(centers + noise, np.nan)
        for noise in 1e-16 * 2 * rng.integers(-2, 3, size=(5, 7, 3))
    ]
    for separated, n_separated in pushed:
        assert n_separated == 5
        np.testing.assert_allclose(separated, pushed[0][0], rtol=0, atol=1e-14)
        np.testing.assert_allclose(separated[[0, 6]], centers[[0, 6]], rtol=0, atol=1e-14)
