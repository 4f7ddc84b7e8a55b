"""Moves of single points and swaps by divergences: against the definition, and by brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from divergence_cases import CASES
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse

from powermeans import PowerKMeans
from powermeans.divergences import Cosine, Phi, Poisson, cosine
from powermeans.errors import ArgumentError
from powermeans.points.opening import open_rows
from powermeans.points.reference import ReferenceRows

MOVED = [name for name, case in CASES.items() if case.divergence(2).moves is not None]
OF_FEATURES = ["poisson", "poisson with many zeros", "gamma", "inverse gaussian", "of two terms"]
UNTIL_IN_VAIN = 1000


class Problem:
    """Points of a domain, the first three twice, with weights, some of them zero, and centers."""

    def __init__(self, name, n_points, n_features, n_centers, is_weighted, seed):
        rng = np.random.default_rng(seed)
        self.given = name, n_points, n_features, n_centers, is_weighted, seed
        if name == "cosine":
            self.divergence = Cosine()
            self.points = rng.normal(size=(n_points, n_features)) + rng.normal(size=n_features)
        else:
            self.divergence = CASES[name].divergence(n_features)
            self.points = CASES[name].points(n_points, n_features, seed)
        self.points = np.vstack([self.points, self.points[:3]])
        n_rows = len(self.points)
        weights = rng.integers(0, 4, n_rows) * rng.uniform(0.5, 2, n_rows)
        self.weights = weights + (np.arange(n_rows) == 0) if is_weighted else np.ones(n_rows)
        self.centers = self.points[rng.integers(n_rows, size=n_centers)]

    def __repr__(self):
        return f"Problem{self.given}"

    def rows(self, points=None, weights=None, **options):
        points = self.points if points is None else points
        weights = self.weights if weights is None else weights
        return open_rows(points, weights, divergence=self.divergence, **options)

    def error(self, points, weights) -> float:
        """The error of one cluster by the definition: at the mean direction, or at the mean."""
        if not weights.any():
            return 0.0
        if isinstance(self.divergence, Cosine):
            units = cosine.directions(points)
            return float(weights.sum() - np.linalg.norm(weights @ units))
        mean = np.average(points, axis=0, weights=weights)
        return float(weights @ self.divergence.pairwise(points, mean[None, :])[:, 0])

    def error_of_partition(self, points, weights, labels) -> float:
        return sum(self.error(points[labels == j], weights[labels == j]) for j in np.unique(labels))


problems = st.builds(
    Problem,
    name=st.sampled_from([*MOVED, "cosine"]),
    n_points=st.integers(3, 25),
    n_features=st.sampled_from([2, 3, 8, 17]),
    n_centers=st.integers(1, 6),
    is_weighted=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)


def some_problem(name, **options):
    given = {"n_points": 200, "n_features": 5, "n_centers": 9, "is_weighted": True, "seed": 3}
    return Problem(name, **{**given, **options})


@settings(max_examples=100, deadline=None)
@given(problem=problems)
def test_no_single_move_is_left_that_gains(problem) -> None:
    """Whole groups of equal points are tried, since they move as one."""
    rows = problem.rows()
    moved = rows.moves.move_points(problem.centers, UNTIL_IN_VAIN).centers
    points, first, item_of = np.unique(
        problem.points, axis=0, return_index=True, return_inverse=True
    )
    weights = np.bincount(item_of.ravel(), problem.weights, len(points))
    labels = rows.assign(moved)[0][first]
    reached = problem.error_of_partition(points, weights, labels)
    for i in np.flatnonzero(weights):
        for j in range(len(moved)):
            tried = np.where(np.arange(len(points)) == i, j, labels)
            after = problem.error_of_partition(points, weights, tried)
            assert after >= reached - 1e-8 * (reached + 1e-6)


@settings(max_examples=100, deadline=None)
@given(problem=problems, n_passes=st.integers(1, 5))
def test_neither_moves_nor_swaps_raise_the_inertia(problem, n_passes) -> None:
    rows = problem.rows()
    before = rows.assign(problem.centers)[1]
    moved = rows.moves.move_points(problem.centers, n_passes).centers
    swapped = rows.moves.swap_centers(moved, 20, math.inf, 0.0).centers
    after, at_last = (rows.assign(centers)[1] for centers in (moved, swapped))
    assert after <= before * (1 + 1e-9) + 1e-9
    assert at_last <= after * (1 + 1e-9) + 1e-9
    assert np.isfinite(swapped).all()


@settings(max_examples=40, deadline=None)
@given(
    name=st.sampled_from(OF_FEATURES),
    n_features=st.sampled_from([3, 8, 17]),
    seed=st.integers(0, 2**32 - 1),
    n_passes=st.integers(1, 3),
)
def test_moves_are_those_of_the_reference(name, n_features, seed, n_passes) -> None:
    problem = Problem(name, 20, n_features, 4, True, seed)
    reference = ReferenceRows(problem.points, problem.weights, divergence=problem.divergence)
    nearest, second = np.sort(reference.sq_distances(problem.centers), axis=1)[:, :2].T
    assume(np.all(second - nearest > 1e-12 * second))  # from a tie, rounding may start elsewhere
    expected = reference.move_points(problem.centers, n_passes)
    moved = problem.rows().moves.move_points(problem.centers, n_passes)
    assert moved.n_moves == expected.n_moves
    np.testing.assert_allclose(moved.centers, expected.centers, atol=1e-9)


@pytest.mark.parametrize("name", [*OF_FEATURES, "itakura-saito"])
def test_distances_to_own_centers_are_those_of_the_definition(name) -> None:
    problem = some_problem(name)
    for points in (problem.points, sparse.csr_array(problem.points)):
        labels, inertia = problem.rows(points).assign(problem.centers + 0.5)
        distances = problem.divergence.pairwise(problem.points, problem.centers + 0.5)
        own = distances[np.arange(len(labels)), labels]
        assert inertia == pytest.approx(problem.weights @ own, rel=1e-12)


@pytest.mark.parametrize("phi", [(0.0,) * 5, (1.0, 0, 0, 0, 1.0), (2.0, -1.0, 0, 0, 0)])
def test_no_convex_function_with_moves_is_an_error(phi) -> None:
    rows = some_problem("poisson").rows()
    order, labels = np.arange(rows.n_points), np.zeros(rows.n_points, dtype=np.int32)
    with pytest.raises(ValueError, match="phi"):
        rows.moves.rows.native.move_points(phi, order, 1, labels, np.ones((1, 5)))


def test_a_point_moves_to_a_center_from_which_it_is_infinitely_far() -> None:
    """Their error is then log 2, of the count that one of the two lacks."""
    points = np.array([[8.0, 0.0], [8.0, 1.0], [0.0, 8.0]])
    stuck = np.array([[8.0, 0.0], [4.0, 4.5]])
    rows = open_rows(points, divergence=Poisson())
    assert rows.assign(stuck)[0].tolist() == [0, 1, 1]
    moved = rows.moves.move_points(stuck, UNTIL_IN_VAIN)
    assert moved.n_moves == 1
    assert rows.assign(moved.centers)[1] == pytest.approx(math.log(2), rel=1e-12)


@pytest.mark.parametrize("factor", [1e-100, 1e100])
@pytest.mark.parametrize("name", ["poisson", "gamma", "inverse gaussian", "cosine"])
def test_tiny_and_huge_points_move_alike(name, factor) -> None:
    problem = some_problem(name)
    moved = problem.rows().moves.move_points(problem.centers, 5)
    unit = 1.0 if name == "cosine" else factor
    scaled = problem.rows(factor * problem.points).moves.move_points(factor * problem.centers, 5)
    assert scaled.n_moves == moved.n_moves > 0
    np.testing.assert_allclose(scaled.centers / unit, moved.centers, rtol=1e-9)


def test_weighing_the_points_anew_changes_the_moves() -> None:
    problem = some_problem("poisson", is_weighted=False)
    changed = 1.0 - 0.9 * (np.arange(len(problem.points)) % 2)
    rows = problem.rows()
    rows.moves.move_points(problem.centers, 5)
    rows.weigh(changed)
    moved = rows.moves.move_points(problem.centers, 5).centers
    expected = problem.rows(weights=changed).moves.move_points(problem.centers, 5).centers
    np.testing.assert_allclose(moved, expected, rtol=1e-9)


def test_a_fit_records_whether_points_moved() -> None:
    class Mine(Poisson):
        """Poisson's divergence, as a user may derive one."""

    points = some_problem("poisson").points
    known, derived = (
        PowerKMeans(9, divergence=divergence, random_state=0).fit(points).spent_.moves
        for divergence in (Poisson(), Mine())
    )
    assert known["single_moves"] > 0 == known["breathing"]
    assert derived["single_moves"] == derived["swaps"] == 0 < derived["breathing"]


class Misjudged(Poisson):
    """Counts, by whatever function points are to move."""

    def __init__(self, moves) -> None:
        object.__setattr__(self, "as_said", moves)

    @property
    def moves(self):
        return self.as_said


@pytest.mark.parametrize(
    "moves",
    [
        *(Phi(x_log_x=2.0), Phi(square=1.0), Phi(length=1.0), Phi(), Phi(-1.0, 1.0)),
        *(Phi(x_log_x=1.0, length=1.0), Phi(x_log_x=np.inf), Phi(x_log_x=1.0, length=np.nan)),
        *((0, 1.0, 0, 0, 0), "x_log_x", Phi(x_log_x="1")),
    ],
)
def test_moves_that_are_not_the_function_of_the_divergence_are_refused(moves) -> None:
    X = np.random.default_rng(0).poisson(5.0, (30, 2))
    with pytest.raises(ArgumentError) as refused:
        PowerKMeans(3, divergence=Misjudged(moves), effort="none").fit(X)
    assert refused.value.argument == "moves"
