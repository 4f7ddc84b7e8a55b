"""What must hold for rows of every kind, whatever the data: the identities of power k-means."""

import math

import numpy as np
import pytest
from comparator import compare_rows, varied_cases
from hypothesis import given, settings
from hypothesis import strategies as st
from kinds_of_rows import KINDS, SINGLE_KINDS
from problems import sq_distances

from powermeans.mathematics.critical_power import critical_power
from powermeans.mathematics.power_mean import power_mean
from powermeans.mathematics.rules import Power
from powermeans.points.reference import ReferenceRows

ALL_KINDS = {**KINDS, **SINGLE_KINDS}
of_all_kinds = pytest.mark.parametrize("make_rows", ALL_KINDS.values(), ids=ALL_KINDS.keys())
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


def tried(**examples):
    """As `given`, with fewer examples than usual."""
    return lambda test: settings(max_examples=30)(given(**examples)(test))


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


@pytest.mark.parametrize("make_rows", [KINDS["reference"], KINDS["native"]])
@pytest.mark.parametrize("power", [-0.5, -2.0, -7.0])
def test_centers_near_the_mean_move_apart_by_the_growth_factor(make_rows, power):
    points = np.random.default_rng(0).normal(size=(200, 4)) * [1.0, 1.2, 1.5, 3.0]
    residuals = points - points.mean(axis=0)
    directions = residuals / np.linalg.norm(residuals, axis=1)[:, None]
    along = np.linalg.eigh(directions.T @ directions)[1][:, -1]
    centers = points.mean(axis=0) + 1e-6 * np.array([along, -along])
    moved = make_rows(points, None).sweep(centers, Power(power)).centers(fallback=centers)
    eigenvalue = 1 / (2 * (1 - critical_power(points)))
    growth = (moved[0] - moved[1]) @ along / 2e-6
    assert growth == pytest.approx(2 * (1 - power) * eigenvalue, rel=1e-5)
