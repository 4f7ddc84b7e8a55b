"""What a stream leaves behind: sums in which every point counts by when it came."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kinds_of_rows import KINDS
from scipy.spatial.distance import cdist

from powermeans.engine.updates import Sweep
from powermeans.estimators.streams.running_sums import FADING, RunningSums, leaders_of
from powermeans.mathematics.power_mean import power_mean
from powermeans.mathematics.rules import Hard, Power
from powermeans.mathematics.sums import Sums


def shown(chunks, **options):
    """What is left of all chunks of one feature, shown one after another to a center at zero."""
    center = np.zeros((1, 1))
    left = RunningSums(Sums(center, np.zeros(1), 0.0, 0.0), 0.0)
    for chunk in chunks:
        rows = KINDS["native"](chunk, None)
        left = RunningSums(left.sums, left.weight, **options)
        left.after(Sweep(rows, center, -math.inf), rows.sweep(center, Hard()))
    return left


def test_a_point_counts_in_proportion_to_those_before_it():
    """Of chunks of one point each, the one after W others keeps (W / n)^FADING of its weight."""
    points = np.random.default_rng(0).uniform(-1, 1, size=(50, 1))
    running = shown(points[:, None, :])
    counts = (np.arange(1, 51) / 50) ** FADING
    assert running.weight == 50
    np.testing.assert_allclose(running.sums.weights, [counts.sum()])
    np.testing.assert_allclose(running.sums.points, [counts @ points])


@pytest.mark.parametrize("memory", [10.0, 100.0])
def test_a_memory_weighs_about_as_much_as_it_says(memory):
    """In the long run W / (W + 1) to the power of FADING is the ratio of a geometric series."""
    running = shown(np.ones((3000, 1, 1)), memory=memory)
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
        squares = cdist(points, centers, "sqeuclidean")
        weights = 4 ** (1 / power) * gradient(squares, power)
        np.testing.assert_allclose(weights.sum(axis=0), sums.weights)
        return float((weights * cdist(points, at, "sqeuclidean")).sum())

    def unit_mean(at):
        squares = cdist(points, at, "sqeuclidean")
        return 4 ** (1 / power) * power_mean(squares, power).sum()

    assert surrogate(centers) == pytest.approx(unit_mean(centers))
    assert unit_mean(centers) < rows.assign(centers)[1]
    for _ in range(20):
        elsewhere = centers + 0.5 * rng.normal(size=centers.shape)
        assert surrogate(elsewhere) >= unit_mean(elsewhere)


def gradient(squares, power):
    """Equation 5 of Xu & Lange, as it stands."""
    means = (squares**power).mean(axis=1, keepdims=True)
    return squares ** (power - 1) / squares.shape[1] * means ** (1 / power - 1)


def found(chunk, centers, weights, kind="native", **options):
    """Where centers of these weights begin the sweep of a chunk, and what is left of their sums."""
    before = Sums(centers * weights[:, None], weights, 0.0, 0.0)
    running = RunningSums(before, float(weights.sum()), **options)
    return running.before(Sweep(KINDS[kind](chunk, None), centers, -1.0)), running.sums


@pytest.mark.parametrize("kind", KINDS)
def test_lost_centers_begin_anew(kind):
    """At the middle of the error: of 0, 1, 81, 4 half is passed at the third point."""
    centers = np.array([[0.0], [1000.0]])
    for share, before, chunk, place, after in (
        (0.0, [5.0, 0.0], [0.0, 1.0, 9.0, 2.0], 9.0, [5.0, 0.0]),
        (0.0, [5.0, 0.0], [0.0, 0.0, 0.0], 1000.0, [5.0, 0.0]),  # every point is at a center
        (0.12, [9.0, 1.0], [0.0, 7.0], 7.0, [9.0, 0.0]),  # a ninth is less than this share
        (0.1, [9.0, 1.0], [0.0, 7.0], 1000.0, [9.0, 1.0]),
    ):
        points = np.array(chunk)[:, None]
        moved, sums = found(points, centers, np.array(before), kind, least_share=share)
        np.testing.assert_array_equal(moved, [[0.0], [place]])
        np.testing.assert_array_equal(sums.weights, after)


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
    stay, sums = found(np.full((5, 1), 3.0), np.full((2, 1), 3.0), np.array([1.0, 2.0]), kind)
    np.testing.assert_array_equal(stay, [[3.0], [3.0]])  # where no point is elsewhere
    np.testing.assert_array_equal(sums.weights, [1.0, 2.0])


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
