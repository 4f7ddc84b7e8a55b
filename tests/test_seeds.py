"""Seeds are drawn with the right probabilities, wherever the rows of the points are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from powermeans.rows import open_rows
from powermeans.rows.by_definition import greedy_seeds
from powermeans.rows.reference import ReferenceRows
from powermeans.seeds.choose import choose_seeds, uniform_seeds
from powermeans.seeds.orders import order_by_place

N_DRAWS = 4000
ROWS = pytest.mark.parametrize("rows_of", [ReferenceRows, open_rows])


def chosen_pairs(points, weights=None, **options) -> Counter[tuple[int, ...]]:
    """How often each pair of seeds comes, in N_DRAWS trials."""
    rows, rng = ReferenceRows(points, weights), np.random.RandomState(0)
    draws = (tuple(choose_seeds(rows, 2, rng, **options)[1]) for _ in range(N_DRAWS))
    return Counter((int(first), int(second)) for first, second in draws)


def assert_frequencies(counts: Counter[tuple[int, ...]], expected: dict) -> None:
    """Each count within five standard deviations of its expectation; none where it is zero."""
    assert set(counts) <= {pair for pair, probability in expected.items() if probability > 0}
    for pair, probability in expected.items():
        deviation = np.sqrt(N_DRAWS * probability * (1 - probability))
        assert abs(counts[pair] - N_DRAWS * probability) <= 5 * deviation


@pytest.mark.parametrize("exponent", [1.0, 2.0, 4.0])
def test_seeds_are_drawn_by_weight_times_a_power_of_the_distance(exponent: float) -> None:
    places, weights = np.array([0.0, 1.0, 3.0]), np.array([1.0, 2.0, 1.0])
    expected = {}
    for first in range(3):
        mass = weights * np.abs(places - places[first]) ** exponent
        for second in range(3):
            expected[first, second] = weights[first] / 4 * mass[second] / mass.sum()
    assert_frequencies(chosen_pairs(places[:, None], weights, exponent=exponent), expected)


def test_uniform_seeds_are_drawn_one_after_the_other_by_weight() -> None:
    weights = np.array([1.0, 2.0, 5.0])
    rows, rng = ReferenceRows(np.arange(3.0)[:, None], weights), np.random.RandomState(0)
    draws = (uniform_seeds(rows, 2, rng)[:, 0].astype(int) for _ in range(N_DRAWS))
    expected = {
        (first, second): weights[first] / 8 * weights[second] / (8 - weights[first])
        for first in range(3)
        for second in range(3)
        if first != second
    }
    assert_frequencies(Counter(tuple(draw) for draw in draws), expected)


def test_greedy_seeds_keep_the_candidate_that_leaves_the_least_inertia() -> None:
    # Besides 0, a seed at 8.5 leaves 0.25 + 2.25, at 9 it leaves 0.25 + 1, at 10 2.25 + 1.
    points = np.array([[0.0], [8.5], [9.0], [10.0]])
    counts = chosen_pairs(points, np.array([1e9, 1.0, 1.0, 1.0]), n_candidates=50)
    assert set(counts) == {(0, 2)}


@ROWS
def test_seeds_are_the_points_that_the_indices_name(rows_of: Callable) -> None:
    points = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    centers, indices = choose_seeds(rows_of(points), 7, np.random.RandomState(1), n_candidates=3)
    assert centers.dtype == np.float64
    np.testing.assert_array_equal(centers, points[indices])
    assert len(set(indices)) == 7


def choose(rows, rng) -> np.ndarray:
    return choose_seeds(rows, 9, rng, n_candidates=4)[0]


def choose_uniformly(rows, rng) -> np.ndarray:
    return uniform_seeds(rows, 9, rng)


@ROWS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seeding", [choose, choose_uniformly])
@pytest.mark.parametrize("random_state", range(10))
def test_weights_are_the_same_as_shuffled_repetitions(
    rows_of: Callable, dtype: type, seeding: Callable, random_state: int
) -> None:
    rng = np.random.default_rng(random_state)
    points = rng.normal(size=(80, 3)).astype(dtype)
    weights = rng.integers(0, 4, size=80)
    repeated = rng.permutation(np.repeat(points, weights, axis=0))
    weighted = seeding(rows_of(points, weights.astype(float)), np.random.RandomState(random_state))
    unweighted = seeding(rows_of(repeated), np.random.RandomState(random_state))
    np.testing.assert_array_equal(weighted, unweighted)


@given(
    n_points=st.integers(1, 300),
    n_features=st.sampled_from([1, 2, 5, 31, 32, 45]),
    n_seeds=st.integers(1, 30),
    n_candidates=st.integers(1, 18),
    dtype=st.sampled_from([np.float32, np.float64]),
    kind=st.sampled_from(["dense", "CSR"]),
    share_of_zeros=st.sampled_from([0.0, 0.5]),
    n_copies=st.integers(1, 3),
    shift=st.sampled_from([0.0, 1e3]),
    random_state=st.integers(0, 2**32 - 1),
)
def test_passing_over_points_changes_no_seed(
    n_points,
    n_features,
    n_seeds,
    n_candidates,
    dtype,
    kind,
    share_of_zeros,
    n_copies,
    shift,
    random_state,
):
    rng = np.random.default_rng(random_state)
    points = (rng.normal(size=(n_points, n_features)) + shift).astype(dtype)
    points[rng.uniform(size=points.shape) < share_of_zeros] = 0
    points = np.repeat(points, n_copies, axis=0)
    weights = rng.exponential(size=len(points)) * (rng.uniform(size=len(points)) > share_of_zeros)
    weights[0] = 1.0
    order, first = rng.permutation(len(points)), rng.uniform()
    others = rng.uniform(size=(n_seeds - 1, n_candidates))
    stored = sparse.csr_array(points) if kind == "CSR" else points
    found = open_rows(stored, weights).greedy_seeds(order, first, others)
    expected = greedy_seeds(ReferenceRows(points, weights), order, first, others, exponent=2.0)
    # Of equal points, rounding decides which is said to be the seed.
    np.testing.assert_array_equal(points[found], points[expected])


@ROWS
def test_sparse_points_give_the_same_seeds(rows_of: Callable) -> None:
    points = np.random.default_rng(0).normal(size=(60, 4))
    points[points < 0] = 0
    dense = choose(rows_of(points), np.random.RandomState(0))
    np.testing.assert_array_equal(
        choose(rows_of(sparse.csr_array(points)), np.random.RandomState(0)), dense
    )


@pytest.mark.parametrize("scale", [1e-150, 1e-100, 1e100, 1e150])
def test_scaling_the_points_scales_the_seeds(scale: float) -> None:
    points = np.random.default_rng(0).normal(size=(60, 2))
    seeds = choose(open_rows(points), np.random.RandomState(0))
    scaled = choose(open_rows(scale * points), np.random.RandomState(0))
    np.testing.assert_array_equal(scaled, scale * seeds)


@pytest.mark.parametrize("seeding", [choose, choose_uniformly])
def test_points_without_weight_are_never_seeds(seeding: Callable) -> None:
    points = np.arange(30.0)[:, None]
    weights = np.where(points[:, 0] % 3 == 0, 1.0, 0.0)
    for random_state in range(20):
        seeds = seeding(open_rows(points, weights), np.random.RandomState(random_state))
        assert (seeds % 3 == 0).all()


@pytest.mark.parametrize("seeding", [choose, choose_uniformly])
def test_each_distinct_point_is_a_seed_before_one_is_so_twice(seeding: Callable) -> None:
    points = np.repeat(np.arange(5.0), 10)[:, None]
    seeds = seeding(open_rows(points), np.random.RandomState(0))
    assert seeds.shape == (9, 1)
    assert set(seeds[:5, 0]) == set(range(5))


def test_equal_points_are_neighbours_in_the_order_by_place() -> None:
    rng = np.random.default_rng(0)
    points = rng.permutation(np.repeat(rng.normal(size=(40, 2)), 3, axis=0)).astype(np.float32)
    order, key = order_by_place(open_rows(points), np.random.RandomState(0))
    sorted_points = points[order].reshape(40, 3, 2)
    np.testing.assert_array_equal(sorted_points, sorted_points[:, :1].repeat(3, axis=1))
    assert (np.diff(key) >= 0).all()


def test_more_features_than_codes_can_be_added_up_for_are_seeded_exactly():
    rng = np.random.default_rng(0)
    points = (rng.random((40, 300_000)) < 0.45).astype(np.float32)
    rows, order = open_rows(points), np.arange(len(points))
    others = rng.uniform(size=(15, 3))
    np.testing.assert_array_equal(
        rows.greedy_seeds(order, 0.3, others), greedy_seeds(rows, order, 0.3, others, exponent=2.0)
    )


def test_points_whose_codes_cannot_be_divided_by_their_step_are_seeded_exactly():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(2000, 40))
    points[:1200] = 0
    points[np.arange(300), rng.integers(40, size=300)] = 1e-310
    rows, order = open_rows(points), np.arange(len(points))
    others = rng.uniform(size=(60, 5))
    np.testing.assert_array_equal(
        rows.greedy_seeds(order, 0.3, others), greedy_seeds(rows, order, 0.3, others, exponent=2.0)
    )
