"""What a stream leaves behind: sums in which every point counts by when it came."""

from __future__ import annotations

import math

import numpy as np
import pytest
from kinds_of_rows import KINDS

from powermeans.power_mean import power_mean
from powermeans.rules import Hard, Power
from powermeans.running import FADING, RunningSums
from powermeans.sums import Sums


def nothing(n_centers=2, n_features=1):
    return Sums(np.zeros((n_centers, n_features)), np.zeros(n_centers), 0.0, 0.0)


def seen(running, chunks, centers, weights=None, power=-math.inf, kind="native"):
    """Show all chunks to the same centers."""
    rule = Hard() if power == -math.inf else Power(power)
    n_found = 0
    for number, chunk in enumerate(chunks):
        rows = KINDS[kind](chunk, None if weights is None else weights[number])
        running.before(centers, power)
        n_found += running.after(rows, centers, rows.sweep(centers, rule))[1]
    return n_found


def test_a_point_counts_in_proportion_to_those_before_it():
    """Of chunks of one point each, the one after W others keeps (W / n)^FADING of its weight."""
    points = np.random.default_rng(0).uniform(-1, 1, size=(50, 1))
    running = RunningSums(nothing(1), 0.0)
    seen(running, points[:, None, :], np.zeros((1, 1)))
    counts = (np.arange(1, 51) / 50) ** FADING
    assert running.weight == 50
    np.testing.assert_allclose(running.sums.weights, [counts.sum()])
    np.testing.assert_allclose(running.sums.points, [counts @ points])


@pytest.mark.parametrize("sizes", [(5, 45), (10,) * 5, (30, 10, 10)], ids=str)
def test_chunks_keep_what_their_last_point_would(sizes):
    points = np.random.default_rng(0).uniform(-1, 1, size=(50, 1))
    running, ends = RunningSums(nothing(1), 0.0), np.cumsum(sizes)
    seen(running, np.split(points, ends[:-1]), np.zeros((1, 1)))
    counts = np.repeat((ends / 50) ** FADING, sizes)
    np.testing.assert_allclose(running.sums.weights, [counts.sum()])
    np.testing.assert_allclose(running.sums.points, [counts @ points])


def test_weights_are_copies():
    rng = np.random.default_rng(0)
    points = [rng.uniform(-1, 1, size=(20, 1)) for _ in range(3)]
    weights = [rng.integers(0, 4, 20) for _ in range(3)]
    centers = np.array([[-0.5], [0.5]])
    weighted, copied = RunningSums(nothing(), 0.0), RunningSums(nothing(), 0.0)
    seen(weighted, points, centers, [w.astype(float) for w in weights])
    seen(copied, [np.repeat(p, w, axis=0) for p, w in zip(points, weights, strict=True)], centers)
    assert weighted.weight == copied.weight
    np.testing.assert_allclose(weighted.sums.weights, copied.sums.weights)
    np.testing.assert_allclose(weighted.sums.points, copied.sums.points)


@pytest.mark.parametrize("memory", [10.0, 100.0])
def test_a_memory_weighs_about_as_much_as_it_says(memory):
    """In the long run W / (W + 1) to the power of FADING is the ratio of a geometric series."""
    running = RunningSums(nothing(1), 0.0, memory=memory)
    seen(running, np.ones((3000, 1, 1)), np.zeros((1, 1)))
    ratio = (memory / (memory + 1)) ** FADING
    assert running.weight == 3000
    np.testing.assert_allclose(running.sums.weights, [1 / (1 - ratio)])


@pytest.mark.parametrize("power", [-1.0, -3.0, -30.0])
def test_soft_and_hard_sums_are_in_one_unit(power):
    """The surrogate of a batch touches the sum of k^(1/s) M_s from above, which is below the inertia.

    So that of several batches, at several powers, lies above the sum of theirs at any centers.
    """
    rng = np.random.default_rng(0)
    points, centers = rng.normal(size=(200, 2)), rng.normal(size=(4, 2))
    rows = KINDS["twin"](points, None)
    sums = rows.sweep(centers, Power(power))

    def surrogate(at):
        """Sum over points and centers of w |x - at_j|^2, from the sums and from the squares."""
        squares = ((points[:, None] - centers) ** 2).sum(axis=2)
        weights = 4 ** (1 / power) * gradient(squares, power)
        np.testing.assert_allclose(weights.sum(axis=0), sums.weights)
        return float((weights * ((points[:, None] - at) ** 2).sum(axis=2)).sum())

    def unit_mean(at):
        squares = ((points[:, None] - at) ** 2).sum(axis=2)
        return 4 ** (1 / power) * power_mean(squares, power).sum()

    assert surrogate(centers) == pytest.approx(unit_mean(centers))
    assert unit_mean(centers) < rows.assign(centers)[1]
    for _ in range(20):
        elsewhere = centers + 0.5 * rng.normal(size=centers.shape)
        assert surrogate(elsewhere) >= unit_mean(elsewhere)


def gradient(squares, power):
    """Equation 5 of Xu & Lange, as it stands."""
    k = squares.shape[1]
    return (
        squares ** (power - 1) / k * (squares**power).mean(axis=1, keepdims=True) ** (1 / power - 1)
    )


def test_a_point_at_a_center_weighs_one_at_every_power():
    rows = KINDS["native"](np.array([[0.0]]), None)
    centers = np.array([[0.0], [5.0], [7.0]])
    for rule in (Power(-0.5), Power(-1.0), Power(-20.0), Hard()):
        np.testing.assert_allclose(rows.sweep(centers, rule).weights, [1, 0, 0], atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_center_that_no_point_came_to_gets_one_of_the_batch(kind):
    centers = np.array([[0.0], [1000.0]])
    running = RunningSums(nothing(), 0.0)
    n_found = seen(running, [np.array([[0.0], [1.0], [9.0]])], centers, kind=kind)
    assert n_found == 1
    # Squared distances 0, 1, 81: the middle of their sum is at the last point.
    np.testing.assert_allclose(running.sums.centers(centers), [[0.5], [9.0]])
    np.testing.assert_array_equal(running.sums.weights, [2.0, 1.0])


def test_several_lost_centers_get_points_of_their_own():
    centers = np.array([[0.0], [1000.0], [2000.0]])
    running = RunningSums(nothing(3), 0.0)
    n_found = seen(running, [np.array([[0.0], [5.0], [-9.0]])], centers)
    assert n_found == 2
    np.testing.assert_allclose(running.sums.centers(centers), [[0.0], [-9.0], [5.0]])


def test_where_every_point_is_at_a_center_lost_ones_stay():
    centers = np.array([[0.0], [1000.0]])
    running = RunningSums(nothing(), 0.0)
    assert seen(running, [np.zeros((3, 1))], centers) == 0
    np.testing.assert_array_equal(running.sums.centers(centers), centers)


def test_soft_centers_are_never_lost():
    centers = np.array([[0.0], [1e9]])
    running = RunningSums(nothing(), 0.0, least_share=0.5)
    assert seen(running, [np.array([[1.0], [9.0]])], centers, power=-1.0) == 0


def test_a_center_below_the_least_share_is_lost():
    """Nine points at one center, and one at another, which is a ninth of that."""
    chunk = np.array([[0.1 * i] for i in range(9)] + [[100.0]])
    centers = np.array([[0.0], [100.0]])
    for share, n_lost in ((0.1, 0), (0.12, 1)):
        running = RunningSums(nothing(), 0.0, least_share=share)
        assert seen(running, [chunk], centers) == n_lost


def test_without_any_weight_nothing_is_remembered():
    running = RunningSums(nothing(), 0.0)
    rows = KINDS["native"](np.ones((2, 1)), np.zeros(2))
    running.before(np.zeros((2, 1)), -math.inf)
    sums, n_found = running.after(rows, np.zeros((2, 1)), rows.sweep(np.zeros((2, 1)), Hard()))
    assert n_found == 0
    np.testing.assert_array_equal(sums.weights, [0.0, 0.0])
