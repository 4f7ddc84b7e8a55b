"""Sums of a sweep give centers inside the hull of the points, however little weight there is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powermeans.mathematics.sums import Sums

shares = st.one_of(st.just(0.0), st.floats(0, 1e-280), st.floats(0, 1))


def sums_of(points: np.ndarray, weights: np.ndarray) -> Sums:
    """The sums that these weights of points in centers, (n_points, n_centers), add up to."""
    return Sums(weights.T @ points, weights.sum(axis=0), 0.0, 0.0)


@given(
    st.lists(st.floats(0.5, 1.0), min_size=1, max_size=4),
    st.lists(shares, min_size=4, max_size=4),
    st.sampled_from([1e-150, 1e-100, 1e-10, 1.0, 1e10, 1e150]),
    st.sampled_from([1e-10, 1.0, 1e10]),
)
def test_centers_stay_in_the_hull(coordinates, light, scale, heavy):
    points = scale * np.array(coordinates)[:, None]
    weights = heavy * np.stack([np.ones(len(points)), light[: len(points)]], axis=1)
    fallback = np.full((2, 1), points.mean())
    centers = sums_of(points, weights).centers(fallback)
    assert (centers >= points.min() * (1 - 1e-12)).all()
    assert (centers <= points.max() * (1 + 1e-12)).all()


@pytest.mark.parametrize(
    ("weights", "centers"),
    [
        *(([[1.0, tiny], [1.0, 0.0]], [2.0, 9.0]) for tiny in (0.0, 5e-324, 1e-310)),
        ([[1.0, 1e-250], [1.0, 1e-250]], [2.0, 2.0]),
        (np.zeros((2, 2)), [7.0, 9.0]),
    ],
)
def test_a_center_of_no_weight_to_speak_of_stays_where_it_was(weights, centers):
    sums = sums_of(np.array([[1.0], [3.0]]), np.array(weights))
    found = sums.centers(np.array([[7.0], [9.0]]))
    np.testing.assert_allclose(found[:, 0], centers, rtol=1e-15)


def test_a_cluster_that_gives_all_its_weight_away_keeps_its_place():
    point, weight = np.array([0.1, 0.7]), 0.9
    several = 7 * (weight / 7)
    assert several > weight  # by rounding, which would be all that is left
    sums = Sums(
        np.array([[several * 0.1, several * 0.7], [0.0, 0.0]]), np.array([several, 0.0]), 1.0, 1.0
    )
    moved = sums.moved(former=0, cluster=1, point=point, weight=weight)
    fallback = np.array([[5.0, 6.0], [7.0, 8.0]])
    np.testing.assert_allclose(moved.centers(fallback=fallback), [[5.0, 6.0], point])
    np.testing.assert_array_equal(moved.weights, [0.0, weight])


def test_moving_a_point_changes_no_total():
    sums = Sums(np.array([[4.0], [0.0]]), np.array([2.0, 0.0]), 1.0, 1.0)
    moved = sums.moved(former=0, cluster=1, point=np.array([3.0]), weight=1.0)
    np.testing.assert_array_equal(moved.points, [[1.0], [3.0]])
    np.testing.assert_array_equal(moved.weights, [1.0, 1.0])
    np.testing.assert_array_equal(sums.points, [[4.0], [0.0]])
