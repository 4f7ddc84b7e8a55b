"""What a stream leaves behind: sums in which every point counts by when it came."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kinds_of_rows import KINDS

from powermeans.engine.updates import Sweep
from powermeans.estimators.streams.running_sums import FADING, RunningSums, leaders_of
from powermeans.mathematics.power_mean import power_mean
from powermeans.mathematics.rules import Hard, Power
from powermeans.mathematics.sums import Sums


def nothing(n_centers=2, n_features=1):
    return Sums(np.zeros((n_centers, n_features)), np.zeros(n_centers), 0.0, 0.0)


def shown(chunks, centers, weights=None, power=-math.inf, kind="native", **options):
    """What is left of all chunks, shown one after another to the same centers."""
    rule = Hard() if power == -math.inf else Power(power)
    left = RunningSums(nothing(*centers.shape), 0.0)
    for number, chunk in enumerate(chunks):
        rows = KINDS[kind](chunk, None if weights is None else weights[number])
        left = RunningSums(left.sums, left.weight, **options)
        left.after(Sweep(rows, centers, power), rows.sweep(centers, rule))
    return left


def test_a_point_counts_in_proportion_to_those_before_it():
    """Of chunks of one point each, the one after W others keeps (W / n)^FADING of its weight."""
    points = np.random.default_rng(0).uniform(-1, 1, size=(50, 1))
    running = shown(points[:, None, :], np.zeros((1, 1)))
    counts = (np.arange(1, 51) / 50) ** FADING
    assert running.weight == 50
    np.testing.assert_allclose(running.sums.weights, [counts.sum()])
    np.testing.assert_allclose(running.sums.points, [counts @ points])


@pytest.mark.parametrize("memory", [10.0, 100.0])
def test_a_memory_weighs_about_as_much_as_it_says(memory):
    """In the long run W / (W + 1) to the power of FADING is the ratio of a geometric series."""
    running = shown(np.ones((3000, 1, 1)), np.zeros((1, 1)), memory=memory)
    ratio = (memory / (memory + 1)) ** FADING
    assert running.weight == 3000
    np.testing.assert_allclose(running.sums.weights, [1 / (1 - ratio)])


@pytest.mark.parametrize("power", [-1.0, -3.0, -30.0])
def test_soft_and_hard_sums_are_in_one_unit(power):
    """The surrogate of a batch touches the sum of k^(1/s) M_s from above, which is no inertia.

    So that of several batches, at several powers, lies above the sum of theirs at any centers.
    """
    rng = np.random.default_rng(0)
    points, centers = rng.normal(size=(200, 2)), rng.normal(size=(4, 2))
    rows = KINDS["reference"](points, None)
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


def found(chunk, centers, weights, kind="native", **options):
    """Where centers of these weights begin the sweep of a chunk, and what is left of their sums."""
    before = Sums(centers * weights[:, None], weights, 0.0, 0.0)
    running = RunningSums(before, float(weights.sum()), **options)
    return running.before(Sweep(KINDS[kind](chunk, None), centers, -1.0)), running.sums


@pytest.mark.parametrize("kind", KINDS)
def test_a_center_without_weight_goes_to_the_middle_of_the_error(kind):
    centers, weights = np.array([[0.0], [1000.0]]), np.array([5.0, 0.0])
    # Squared distances 0, 1, 81, 4: half of their sum is passed at the third point.
    moved, sums = found(np.array([[0.0], [1.0], [9.0], [2.0]]), centers, weights, kind)
    np.testing.assert_array_equal(moved, [[0.0], [9.0]])
    np.testing.assert_array_equal(sums.weights, [5.0, 0.0])


def test_where_every_point_is_at_a_center_lost_ones_stay():
    centers, weights = np.array([[0.0], [1000.0]]), np.array([5.0, 0.0])
    moved, _ = found(np.zeros((3, 1)), centers, weights)
    np.testing.assert_array_equal(moved, centers)


@pytest.mark.parametrize(("share", "is_lost"), [(0.1, False), (0.12, True)])
def test_a_center_below_the_least_share_is_lost_and_begins_anew(share, is_lost):
    """One of weight one beside one of nine, which is a ninth."""
    centers, weights = np.array([[0.0], [1000.0]]), np.array([9.0, 1.0])
    moved, sums = found(np.array([[0.0], [7.0]]), centers, weights, least_share=share)
    assert moved[1, 0] == (7.0 if is_lost else 1000.0)
    np.testing.assert_array_equal(sums.weights, [9.0, 0.0 if is_lost else 1.0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_of_centers_that_coincide_all_but_the_heaviest_are_lost(kind, scale):
    """What they remember goes to the heaviest, so that the sums of all stay the same."""
    centers = scale * np.array([[3.0], [1.0], [3.0], [3.0 * (1 + 1e-15)]])
    weights = np.array([1.0, 9.0, 2.0, 0.5])
    chunk = scale * np.array([[1.0], [8.0], [3.0], [5.0]])
    moved, sums = found(chunk, centers, weights, kind)
    np.testing.assert_allclose(moved / scale, [[8.0], [1.0], [3.0], [5.0]])
    np.testing.assert_array_equal(sums.weights, [0.0, 9.0, 3.5, 0.0])
    np.testing.assert_allclose(sums.points / scale, [[0.0], [9.0], [10.5], [0.0]])


def test_centers_that_coincide_stay_where_no_point_is_elsewhere():
    centers, weights = np.array([[3.0], [3.0]]), np.array([1.0, 2.0])
    moved, sums = found(np.full((5, 1), 3.0), centers, weights)
    np.testing.assert_array_equal(moved, centers)
    np.testing.assert_array_equal(sums.weights, weights)


@given(
    places=st.lists(st.integers(0, 3), min_size=1, max_size=12),
    n_features=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_leaders_are_the_heaviest_at_their_place(places, n_features, seed):
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 3, len(places)).astype(float)
    leaders = leaders_of(rng.normal(size=(4, n_features))[places], weights)
    for center, place in enumerate(places):
        here = [j for j, other in enumerate(places) if other == place]
        assert leaders[center] == max(here, key=lambda j: (weights[j], -j))
