import math

import numpy as np
import pytest
from divergence_cases import CASES
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from problems import blobs, two_pairs_of_groups
from scipy import sparse

from powermeans import PowerKMeans
from powermeans.divergences import Cosine, Phi, Poisson, SquaredEuclidean, cosine
from powermeans.errors import ArgumentError
from powermeans.points.compiled import EuclideanPoints
from powermeans.points.opening import open_rows
from powermeans.points.reference import ReferencePoints

OF_FEATURES = ["poisson", "poisson with many zeros", "gamma", "inverse gaussian", "of two terms"]
MOVED = [name for name, case in CASES.items() if case.divergence(2).moves is not None]
MOVED += ["squared", "squared, whole", "cosine"]
STORED = [np.asarray, sparse.csr_array]
UNTIL_IN_VAIN = 1000


class Problem:
    """Points of a domain, the first three twice, with weights, some of them zero, and centers."""

    def __init__(self, name, n_points=200, n_features=5, n_centers=9, is_weighted=True, seed=3):
        rng = np.random.default_rng(seed)
        self.given = name, n_points, n_features, n_centers, is_weighted, seed
        if name in CASES:
            self.divergence = CASES[name].divergence(n_features)
            points = CASES[name].points(n_points, n_features, seed)
        else:
            self.divergence = Cosine() if name == "cosine" else SquaredEuclidean()
            points = rng.normal(size=(n_points, n_features)) + rng.normal(size=n_features)
            points = np.round(points) if name == "squared, whole" else points
        self.points = np.vstack([points, points[:3]])
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
            return float(weights.sum() - np.linalg.norm(weights @ cosine.directions(points)))
        mean = np.average(points, axis=0, weights=weights)
        return float(weights @ self.divergence.pairwise(points, mean[None, :])[:, 0])

    def error_of_partition(self, points, weights, labels) -> float:
        return sum(self.error(points[labels == j], weights[labels == j]) for j in np.unique(labels))


problems = st.builds(
    Problem,
    name=st.sampled_from(MOVED),
    n_points=st.integers(3, 25),
    n_features=st.sampled_from([1, 2, 3, 8, 17]),
    n_centers=st.integers(1, 6),
    is_weighted=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
).filter(lambda problem: problem.given[0] != "cosine" or problem.given[2] > 1)


@settings(max_examples=150)
@given(problem=problems, stored=st.sampled_from(STORED))
def test_no_single_move_is_left_that_gains(problem, stored) -> None:
    """Whole groups of equal points are tried, since they move as one."""
    rows = problem.rows(stored(problem.points))
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


@settings(max_examples=100)
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


@settings(max_examples=50)
@given(seed=st.integers(0, 2**32 - 1), stored=st.sampled_from(STORED))
def test_moves_are_those_of_the_reference(seed, stored) -> None:
    rng = np.random.default_rng(seed)
    name = rng.choice([*OF_FEATURES, "squared", "squared"])
    shape = rng.choice([5, 20, 40]), rng.choice([3, 8, 17]), rng.integers(2, 9)
    problem, n_passes = Problem(name, *shape, True, seed), int(rng.integers(1, 6))
    divergence = None if name == "squared" else problem.divergence
    reference = ReferencePoints(problem.points, problem.weights, divergence=divergence)
    nearest, second = np.sort(reference.sq_distances(problem.centers), axis=1)[:, :2].T
    assume(np.all(second - nearest > 1e-12 * second))  # from a tie, rounding may start elsewhere
    expected = reference.move_points(problem.centers, n_passes)
    moved = problem.rows(stored(problem.points)).moves.move_points(problem.centers, n_passes)
    assert moved.n_moves == expected.n_moves
    np.testing.assert_allclose(moved.centers, expected.centers, atol=1e-9)


@pytest.mark.parametrize(
    ("phi", "label", "says"),
    [
        ((0.0,) * 5, 0, "phi"),
        ((1.0, 0, 0, 0, 1.0), 0, "phi"),
        ((2.0, -1.0, 0, 0, 0), 0, "phi"),
        ((1.0, 0, 0, 0, 0), 1, "labels must be numbers of centers"),
    ],
)
def test_no_convex_function_and_labels_of_no_center_are_refused(phi, label, says) -> None:
    rows = Problem("poisson").rows()
    order, labels = np.arange(rows.n_points), np.full(rows.n_points, label, dtype=np.int32)
    with pytest.raises(ValueError, match=says):
        rows.moves.rows.native.move_points(phi, order, 1, labels, np.ones((1, 5)))


def test_moves_reach_far_centers_and_follow_new_weights() -> None:
    """Their error is then log 2, of the count that one of the two lacks."""
    points = np.array([[8.0, 0.0], [8.0, 1.0], [0.0, 8.0]])
    stuck = np.array([[8.0, 0.0], [4.0, 4.5]])
    rows = open_rows(points, divergence=Poisson())
    assert rows.assign(stuck)[0].tolist() == [0, 1, 1]
    moved = rows.moves.move_points(stuck, UNTIL_IN_VAIN)
    assert moved.n_moves == 1
    assert rows.assign(moved.centers)[1] == pytest.approx(math.log(2), rel=1e-12)
    problem = Problem("poisson", is_weighted=False)
    changed = 1.0 - 0.9 * (np.arange(len(problem.points)) % 2)
    rows = problem.rows()
    rows.moves.move_points(problem.centers, 5)
    rows.weigh(changed)
    moved = rows.moves.move_points(problem.centers, 5).centers
    expected = problem.rows(weights=changed).moves.move_points(problem.centers, 5).centers
    np.testing.assert_allclose(moved, expected, rtol=1e-9)


class Mine(Poisson):
    """Poisson's divergence, as a user may derive one."""


def test_a_fit_records_whether_points_moved() -> None:
    points = Problem("poisson").points
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


def test_swaps_mend_two_centers_in_one_cluster_and_end_by_their_distances() -> None:
    points, middles, stuck = two_pairs_of_groups()
    for stored in STORED:
        swapped = EuclideanPoints(stored(points)).moves.swap_centers(stuck, 10, np.inf, 0.0)
        assert swapped.n_moves >= 1
        np.testing.assert_allclose(np.sort(swapped.centers[:, 0]), middles[:, 0], atol=0.5)
    points = blobs(3000, 3, 3)
    centers, swap_centers = points[:20].copy(), EuclideanPoints(points).moves.swap_centers
    few, many = (swap_centers(centers, 1000, most, 0.0) for most in (1.0, np.inf))
    assert few.n_moves == 0 < many.n_moves
    assert few.n_distances < many.n_distances
    ended = swap_centers(centers, 0, np.inf, 0.0)
    floor = 2 * ended.n_distances
    went_on = swap_centers(centers, 0, np.inf, 0.0, floor)
    assert ended.n_moves == 0 < went_on.n_moves
    assert ended.n_distances < floor <= went_on.n_distances
