"""What must hold for rows of every kind, whatever the data; and the comparator can fail."""

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from comparator import Case, compare_rows, varied_cases
from hypothesis import given, settings
from hypothesis import strategies as st
from kinds_of_rows import KINDS, SINGLE_KINDS
from problems import sq_distances
from scipy import sparse

from powermeans.divergences import SquaredEuclidean
from powermeans.mathematics.critical_power import critical_power
from powermeans.mathematics.power_mean import power_mean
from powermeans.mathematics.rules import Hard, Power, rule_at
from powermeans.points.by_definition import NearnessByDefinition
from powermeans.points.reference import ReferencePoints

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


@of_all_kinds
@pytest.mark.parametrize("case", varied_cases(storages=["dense"]), ids=str)
def test_all_quantities_agree_with_the_reference_in_long_double(make_rows, case):
    if make_rows.unit and case.points.dtype == np.float64:
        pytest.skip("the same numbers as in the case of float32")
    rows = make_rows(case.points, case.sample_weight)
    given = rows.sample(np.arange(rows.n_points))
    oracle = ReferencePoints(given, case.sample_weight, precision=np.longdouble)
    compare_rows(rows, oracle, case.centers, tolerance=case.tolerance)


@of_all_kinds
@settings(max_examples=30)
@given(problem=moderate_problems)
def test_any_problem_agrees_with_the_reference_in_long_double(make_rows, problem):
    rows, tolerance = make_rows(problem.points, problem.weights), make_rows.within(1e-11)
    oracle = ReferencePoints(
        rows.sample(np.arange(rows.n_points)), problem.weights, precision=np.longdouble
    )
    powers = [-math.inf, problem.power]
    compare_rows(rows, oracle, problem.centers, tolerance=tolerance, powers=powers)


def rounding_of_objective(make_rows, problem, centers, power):
    """What some ulps of the data in each distance do to the objective."""
    distances = np.sqrt(sq_distances(problem.points, centers))
    ulps = (3e-6 if make_rows.unit else 1e-14) * (
        np.abs(problem.points).max() + np.abs(centers).max()
    )
    highest = power_mean((distances + ulps) ** 2, power)
    lowest = power_mean(np.maximum(distances - ulps, 0) ** 2, power)
    return problem.weights @ (highest - lowest)


@of_all_kinds
@settings(max_examples=30)
@given(problem=problems)
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


CASES = varied_cases()
Points, Nearness, distances = ReferencePoints, NearnessByDefinition, SquaredEuclidean().pairwise


def oracle_of(case: Case) -> ReferencePoints:
    return ReferencePoints(case.points, case.sample_weight, precision=np.longdouble)


def changed(method: str, change: Callable[[Any], Any], kind: type = Points) -> Callable[..., Any]:
    return lambda self, *of, **limits: change(getattr(kind, method)(self, *of, **limits))


def nudged(*fields: str) -> Callable[[Any], Any]:
    """Make a result, or these fields of it, too large by a thousandth."""

    def nudge(right):
        if not fields:
            return right * 1.001
        return replace(right, **{name: 1.001 * getattr(right, name) for name in fields})

    return nudge


def unweighted(method: str) -> Callable[..., Any]:
    return lambda self, *of, **limits: getattr(Points(self._points), method)(*of, **limits)


def at_power(change: Callable[[float], float]) -> Callable[..., Any]:
    def sweep(self, centers, rule):
        return Points.sweep(self, centers, rule if rule == Hard() else rule_at(change(rule.power)))

    return sweep


def expanded(self, y):
    return (self._points**2).sum(1)[:, None] - 2 * self._points @ y.T + (y**2).sum(1)


def last_of_ties(self, centers):
    labels, inertia = Points.assign(self, centers[::-1])
    return (len(centers) - 1 - labels).astype(np.int32), inertia


def last_mislabelled(assigned):
    labels, inertia = assigned
    return np.append(labels[:-1], 1 - np.minimum(labels[-1:], 1)).astype(np.int32), inertia


def other_storage(sample):
    return sample.toarray() if sparse.issparse(sample) else sparse.csr_array(sample)


# A method, how its result is changed, and what the comparator says.
CHANGED: list[tuple[str, Callable[[Any], Any], str]] = [
    ("sample", other_storage, "sample: is sparse"),
    ("sweep", nudged("objective"), "objective"),
    ("sweep", nudged("inertia"), "sweep at power -inf: inertia"),
    ("spread", nudged("error"), "spread: error"),
    ("_utility", nudged(), "spread: utility"),
    (
        "_utility",
        functools.partial(np.nan_to_num, posinf=0.0),
        "spread: utility of a single center",
    ),
    ("assign", last_mislabelled, "assign: labels are those of the nearest"),
    ("assign", lambda found: (found[0].astype(int), found[1]), "assign: dtype of labels"),
    ("sq_distances", np.float16, "sq_distances: dtype"),
]


# A method, what it is replaced by, and what the comparator says.
REPLACED: list[tuple[str, Any, str]] = [
    ("mean", unweighted("mean"), "mean differs"),
    ("sweep", at_power(lambda s: s if s > -100 else -np.inf), "sweep at power -1000.0: weights"),
    ("_sq_dist", expanded, "sweep at power"),
    ("assign", last_of_ties, "assign: labels are the first of several"),
    ("assign", unweighted("assign"), "assign: inertia"),
    (
        "greedy_seeds",
        lambda self, order, first, others: Points.greedy_seeds(self, order, first, others[:, :1]),
        "leaves the least inertia",
    ),
    (
        "greedy_seeds",
        lambda self, order, *of: Points.greedy_seeds(self, np.arange(self.n_points), *of),
        "one of its candidates",
    ),
    ("farthest", lambda self, y, n: n * list(Points.farthest(self, y, 1)), "farthest point 1"),
]


def nearness_of(self, order=None, weight=None):
    """The same distances to the nearest center, with another order or other weights."""
    weight = self._weight if weight is None else np.ones(len(self._points))
    other = Nearness(self._points, weight, [], order, self._pairwise)
    other._nearest = self._nearest
    return other


def replaced(self, center):
    self._nearest = distances(self._points, np.asarray(center)[None])[:, 0]


# The same of the nearness.
BROKEN_NEARNESS: list[tuple[str, Any, str]] = [
    ("draw", lambda self, u, s=2.0: nearness_of(self, self._order, "ones").draw(u, s), "draw"),
    ("draw", lambda self, u, s=2.0: nearness_of(self).draw(u, s), "nearness in an order: draw"),
    ("add", replaced, "sq_dist"),
    (
        "farthest",
        lambda self: int(np.flatnonzero(self._weighted() == self._weighted().max())[-1]),
        "farthest is the first",
    ),
    ("farthest", lambda self: int(np.argmax(self._nearest)), "farthest has the largest"),
    ("inertia", lambda self: float(self._nearest.sum()), "inertia"),
]


def with_nearness(method: str, replacement: Any) -> Callable[..., Any]:
    broken = type("Broken", (Nearness,), {method: replacement})

    def nearness(self, centers, order=None):
        return broken(self._points, self._weight, centers, order, self._pairwise)

    return nearness


ALL_BROKEN = [
    *((method, changed(method, change), says) for method, change, says in CHANGED),
    *REPLACED,
    *(("nearness", with_nearness(method, by), says) for method, by, says in BROKEN_NEARNESS),
]
# One of each peculiarity is enough: weights with zeros, duplicates, a single center, a far origin.
REVEALING = ["one center", "odd sizes", "plane, many centers", "duplicates", "far from the origin"]


def case_named(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


def complaints(method: str, replacement: Any, tolerance: float) -> Iterator[str]:
    kind = type("Broken", (ReferencePoints,), {method: replacement})
    for of in REVEALING:
        case = case_named(f"{of}, float64, dense")
        rows = kind(case.points, case.sample_weight)
        try:
            compare_rows(rows, oracle_of(case), case.centers, tolerance=tolerance)
        except (AssertionError, IndexError) as complaint:  # of labels of a second center
            yield str(complaint)


@pytest.mark.parametrize("tolerance", [1e-12, 1e-5])
@pytest.mark.parametrize(("method", "replacement", "says"), ALL_BROKEN)
def test_broken_rows_are_found_and_the_quantity_named(method, replacement, says, tolerance):
    if tolerance == 1e-12 or replacement is not expanded:  # which float32 does not resolve
        assert any(says in said for said in complaints(method, replacement, tolerance))


@pytest.mark.parametrize("power", [-0.1, -1.0, -3.3, -20.0, -1e3])
def test_a_power_wrong_by_a_thousandth_is_found(power):
    kind = type("Broken", (ReferencePoints,), {"sweep": at_power(lambda s: 1.001 * s)})
    case = case_named("sixty-four features, float64, dense")
    rows, options = kind(case.points, case.sample_weight), {"tolerance": 1e-12, "powers": [power]}
    with pytest.raises(AssertionError, match=f"sweep at power {power}"):
        compare_rows(rows, oracle_of(case), case.centers, **options)
