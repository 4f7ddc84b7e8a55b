"""What must hold for rows of every kind, whatever the data: the identities of power k-means."""

from __future__ import annotations

import math

import numpy as np
import pytest
from comparator import compare_rows, varied_cases
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from kinds_of_rows import KINDS, SINGLE_KINDS
from problems import sq_distances

from powermeans.mathematics.critical_power import critical_power
from powermeans.mathematics.power_mean import power_mean
from powermeans.mathematics.rules import Hard, Power, rule_at
from powermeans.points.reference import ReferenceRows
from powermeans.scale.parted_rows import PartedRows

ALL_KINDS = {**KINDS, **SINGLE_KINDS}
of_all_kinds = pytest.mark.parametrize("make_rows", ALL_KINDS.values(), ids=ALL_KINDS.keys())
CORE = {name: KINDS[name] for name in ("reference", "native")}
of_the_core = pytest.mark.parametrize("make_rows", CORE.values(), ids=CORE.keys())

MODERATE_POWERS = [-0.1, -0.5, -1.0, -2.0, -3.3, -9.0, -30.0]


class Problem:
    """Points in clusters, some of them with zeros, with weights and starting centers."""

    def __init__(self, n_points, n_features, n_centers, power, seed):
        rng = np.random.default_rng(seed)
        middles = rng.normal(scale=2, size=(n_centers, n_features))
        self.points = middles[rng.integers(n_centers, size=n_points)]
        self.points += rng.normal(size=self.points.shape)
        self.points[rng.uniform(size=self.points.shape) < 0.1] = 0
        self.points = self.points.astype(np.float32).astype(np.float64)
        self.weights = rng.exponential(size=n_points)
        self.centers = middles + rng.normal(size=middles.shape)
        self.power, self.rng, self.seed = power, rng, seed

    def __repr__(self):
        n_points, n_features = self.points.shape
        return f"Problem({n_points}, {n_features}, {len(self.centers)}, {self.power}, {self.seed})"


def problems_of(powers, least_points=1):
    return st.builds(
        Problem,
        n_points=st.integers(least_points, 60),
        n_features=st.sampled_from([1, 2, 3, 5, 17, 40]),
        n_centers=st.integers(1, 12),
        power=st.sampled_from(powers),
        seed=st.integers(0, 2**32 - 1),
    )


problems = problems_of([*MODERATE_POWERS, -1e3])
# At lower powers the weights of some centers are next to the least float there is.
moderate_problems = problems_of(MODERATE_POWERS, least_points=2)
# Fuzzy c-means as it is written overflows at lower powers.
fuzzy_problems = problems_of(MODERATE_POWERS[:-1], least_points=30)
several_points = problems_of([*MODERATE_POWERS, -1e3], least_points=2)


def tried(**examples):
    """As `given`, with fewer examples than usual."""
    return lambda test: settings(max_examples=30)(given(**examples)(test))


def iterate(rows, centers, power):
    """The centers after one sweep."""
    return rows.sweep(centers, rule_at(power)).centers(fallback=centers)


# Against the reference in extended precision.


@of_all_kinds
@pytest.mark.parametrize("case", varied_cases(storages=["dense"]), ids=str)
def test_all_quantities_agree_with_the_reference_in_long_double(make_rows, case):
    if not make_rows.is_exact and case.points.dtype == np.float64:
        pytest.skip("the same numbers as in the case of float32")
    rows = make_rows(case.points, case.sample_weight)
    given = rows.sample(np.arange(rows.n_points))
    oracle = ReferenceRows(given, case.sample_weight, precision=np.longdouble)
    compare_rows(rows, oracle, case.centers, tolerance=case.tolerance)


@of_all_kinds
@tried(problem=moderate_problems)
def test_any_problem_agrees_with_the_reference_in_long_double(make_rows, problem):
    rows, tolerance = make_rows(problem.points, problem.weights), make_rows.within(1e-11)
    oracle = ReferenceRows(
        rows.sample(np.arange(rows.n_points)), problem.weights, precision=np.longdouble
    )
    powers = [-math.inf, problem.power]
    compare_rows(rows, oracle, problem.centers, tolerance=tolerance, powers=powers)


# Three points on a line, done by hand.

LINE, LINE_WEIGHTS = np.array([[0.0], [1.0], [4.0]]), np.array([1.0, 2.0, 1.0])
TWO_CENTERS = np.array([[0.0], [3.0]])


@of_all_kinds
def test_sweeps_are_those_done_by_hand(make_rows):
    rows = make_rows(LINE, LINE_WEIGHTS)
    hard = rows.sweep(TWO_CENTERS, Hard())
    rtol = make_rows.within(1e-7)
    np.testing.assert_allclose(hard.points, [[2], [4]], rtol=rtol)
    np.testing.assert_allclose(hard.weights, [3, 1], rtol=rtol)
    assert (hard.objective, hard.inertia) == pytest.approx((3, 3), rel=rtol)
    # At power -1 the distances (0, 9), (1, 4), (16, 1) have the harmonic means 0, 8/5 and 32/17,
    # and the weights (1, 0), (16/25, 1/25), (1/289, 256/289).
    harmonic = rows.sweep(TWO_CENTERS, Power(-1.0))
    points = [[32 / 25 + 4 / 289], [2 / 25 + 1024 / 289]]
    weights = [1 + 32 / 25 + 1 / 289, 2 / 25 + 256 / 289]
    np.testing.assert_allclose(harmonic.points, points, rtol=rtol)
    np.testing.assert_allclose(harmonic.weights, weights, rtol=rtol)
    assert (harmonic.objective, harmonic.inertia) == pytest.approx((16 / 5 + 32 / 17, 3), rel=rtol)


@of_all_kinds
def test_spread_and_moments_are_those_done_by_hand(make_rows):
    rows = make_rows(LINE, LINE_WEIGHTS)
    spread = rows.spread(TWO_CENTERS)
    np.testing.assert_allclose(spread.error, [2, 1])
    np.testing.assert_allclose(spread.utility, [9 + 2 * 3, 15])
    np.testing.assert_allclose(spread.weights, [3, 1])
    labels, inertia = rows.assign(TWO_CENTERS)
    assert (labels.tolist(), inertia) == ([0, 0, 1], pytest.approx(3))
    if not isinstance(rows, PartedRows):  # whose points are too many for all distances
        np.testing.assert_allclose(rows.sq_distances(TWO_CENTERS), [[0, 9], [1, 4], [16, 1]])
    assert (rows.total_weight, rows.mean().item()) == pytest.approx((4, 6 / 4))
    assert rows.mean_variance() == pytest.approx(26 / 9)


@of_all_kinds
def test_nearness_is_that_done_by_hand(make_rows):
    rows = make_rows(LINE, LINE_WEIGHTS)
    nearness = rows.nearness(TWO_CENTERS[:0])
    assert nearness.draw(np.array([0.2, 0.26, 0.74, 0.76])).tolist() == [0, 1, 1, 2]
    nearness.add(np.array([0.0]))
    np.testing.assert_allclose(nearness.sq_dist(np.array([2, 1, 0])), [16, 1, 0])
    assert (nearness.inertia(), nearness.farthest()) == (pytest.approx(18), 2)
    np.testing.assert_allclose(nearness.potentials(np.array([1, 2])), [9, 2])
    # Masses 0, 2, 16 and, at exponent one, 0, 2, 4.
    assert nearness.draw(np.array([0.0, 0.11, 0.12])).tolist() == [1, 1, 2]
    assert nearness.draw(np.array([0.0, 0.33, 0.34]), 1.0).tolist() == [1, 1, 2]


# Against other algorithms. That all kinds sweep as the reference does is shown above.


def fuzzy_c_means_step(points, weights, centers, m):
    """Bezdek's algorithm in his own terms: memberships u, centers weighted by u^m."""
    distances = np.sqrt(sq_distances(points, centers))
    # It has no answer at a point on a center, and next to one its ratios are rounding.
    assume(distances.min() > 1e-8)
    ratios = distances[:, :, None] / distances[:, None, :]
    u = 1 / np.sum(ratios ** (2 / (m - 1)), axis=2)
    mass = weights[:, None] * u**m
    return mass.T @ points / mass.sum(axis=0)[:, None]


@of_the_core
@tried(problem=fuzzy_problems)
def test_iterates_are_those_of_fuzzy_c_means(make_rows, problem):
    rows = make_rows(problem.points, problem.weights)
    centers = expected = problem.centers
    extent = np.abs(problem.points).max() + np.abs(problem.centers).max()
    for _ in range(3):
        centers = iterate(rows, centers, problem.power)
        m = 1 - 1 / problem.power
        expected = fuzzy_c_means_step(problem.points, problem.weights, expected, m)
    np.testing.assert_allclose(centers, expected, rtol=0, atol=1e-8 * extent)


@of_the_core
@tried(problem=problems)
def test_a_very_low_power_takes_lloyds_step(make_rows, problem):
    sq_dist = sq_distances(problem.points, problem.centers)
    nearest, labels = np.sort(sq_dist, axis=1), sq_dist.argmin(axis=1)
    # Closer ties than this still share at s = -1e6.
    assume(np.all(nearest[:, 1:2] > nearest[:, :1] * (1 + 1e-4)))
    rows, expected = make_rows(problem.points, problem.weights), problem.centers.copy()
    for j in set(labels):
        mine = labels == j
        expected[j] = np.average(problem.points[mine], axis=0, weights=problem.weights[mine])
    hard = iterate(rows, problem.centers, -math.inf)
    np.testing.assert_allclose(hard, expected, rtol=1e-12, atol=1e-12)
    soft, has_points = iterate(rows, problem.centers, -1e6), np.unique(labels)
    np.testing.assert_allclose(soft[has_points], expected[has_points], rtol=1e-12, atol=1e-12)


# The objective.


def rounding_of_objective(make_rows, problem, centers, power):
    """What some ulps of the data in each distance do to the objective."""
    distances = np.sqrt(sq_distances(problem.points, centers))
    ulps = (1e-14 if make_rows.is_exact else 3e-6) * (
        np.abs(problem.points).max() + np.abs(centers).max()
    )
    highest = power_mean((distances + ulps) ** 2, power)
    lowest = power_mean(np.maximum(distances - ulps, 0) ** 2, power)
    return problem.weights @ (highest - lowest)


@of_all_kinds
@tried(problem=problems)
def test_objective_never_rises_at_equal_power(make_rows, problem):
    rows, centers, highest = make_rows(problem.points, problem.weights), problem.centers, math.inf
    for _ in range(15):
        sums = rows.sweep(centers, Power(problem.power))
        rounding = rounding_of_objective(make_rows, problem, centers, problem.power)
        assert sums.objective <= highest + rounding
        # It lies between the inertia and its multiple.
        most = len(centers) ** (1 / abs(problem.power)) * sums.inertia
        share = make_rows.within(1e-12)
        assert sums.inertia * (1 - share) <= sums.objective <= most * (1 + share)
        centers, highest = sums.centers(fallback=centers), sums.objective + rounding


@of_the_core
@tried(problem=moderate_problems)
def test_weights_are_the_gradient_of_the_objective(make_rows, problem):
    """df/dθ_j = -2 k^(-1/s) (sum_i w_ij x_i - θ_j sum_i w_ij), by finite differences of f."""
    rows, rule = make_rows(problem.points, problem.weights), Power(problem.power)
    centers = problem.centers
    sums = rows.sweep(centers, rule)
    scale = 2 * len(centers) ** (-1 / problem.power)
    gradient = scale * (centers * sums.weights[:, None] - sums.points)
    direction = problem.rng.normal(size=centers.shape)
    after, before = (
        rows.sweep(centers + step * direction, rule).objective for step in (1e-6, -1e-6)
    )
    slope = np.sum(gradient * direction)
    # The second difference bounds what curvature and rounding do to the first.
    size = abs(slope) + np.sum(np.abs(gradient * direction)) + sums.objective
    assert (after - before) / 2e-6 == pytest.approx(slope, abs=1e-5 * size)


@of_the_core
@pytest.mark.parametrize("power", [-0.5, -2.0, -7.0])
def test_centers_near_the_mean_move_apart_by_the_growth_factor(make_rows, power):
    points = np.random.default_rng(0).normal(size=(200, 4)) * [1.0, 1.2, 1.5, 3.0]
    residuals = points - points.mean(axis=0)
    directions = residuals / np.linalg.norm(residuals, axis=1)[:, None]
    along = np.linalg.eigh(directions.T @ directions)[1][:, -1]
    centers = points.mean(axis=0) + 1e-6 * np.array([along, -along])
    moved = iterate(make_rows(points, None), centers, power)
    eigenvalue = 1 / (2 * (1 - critical_power(points)))
    growth = (moved[0] - moved[1]) @ along / 2e-6
    assert growth == pytest.approx(2 * (1 - power) * eigenvalue, rel=1e-5)


@of_all_kinds
@tried(problem=several_points, part=st.floats(0, 1))
def test_sums_of_parts_add_to_the_sums_of_all(make_rows, problem, part):
    n_first = 1 + int(part * (len(problem.points) - 2))
    cut = [slice(None, n_first), slice(n_first, None)]
    first, second = (make_rows(problem.points[s], problem.weights[s]) for s in cut)
    whole, centers = make_rows(problem.points, problem.weights), problem.centers
    # A power multiplies what the places that parts are told from differ by.
    rtol = 1e-12 if make_rows.is_exact else 1e-5 * max(10, abs(problem.power))
    for rule in (Hard(), Power(problem.power)):
        added = first.sweep(centers, rule) + second.sweep(centers, rule)
        expected = whole.sweep(centers, rule)
        np.testing.assert_allclose(added.weights, expected.weights, rtol=rtol)
        np.testing.assert_allclose(
            added.points, expected.points, rtol=rtol, atol=make_rows.within(1e-10)
        )
        assert added.objective == pytest.approx(expected.objective, rel=rtol)
        assert added.inertia == pytest.approx(expected.inertia, rel=rtol)
    added, expected = first.spread(centers) + second.spread(centers), whole.spread(centers)
    for name, digits in (("error", 1e-12), ("utility", 1e-9), ("weights", 1e-12)):
        close = {"rtol": make_rows.within(digits), "atol": make_rows.within(digits)}
        np.testing.assert_allclose(getattr(added, name), getattr(expected, name), **close)
