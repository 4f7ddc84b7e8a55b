"""Rules against rows, the powers that schedules give, and the centers that sums give."""

import math
from itertools import islice

import numpy as np
import pytest
from comparator import assert_same_sums
from hypothesis import given
from hypothesis import strategies as st
from kinds_of_rows import KINDS
from problems import blobs

from powermeans.mathematics.rules import Gaussian, Hard, Harmonic, Power, Rule, rule_at
from powermeans.mathematics.schedules import AuthorsSchedule, Fixed, Geometric, Whole
from powermeans.mathematics.sums import Sums

RULES: list[Rule] = [Hard(), Power(-1.0), Power(-3.0), Harmonic(), Harmonic(1.0), Harmonic(3.5)]
RULES += [Gaussian(0.7), Gaussian(0.7, (0.1, 0.2, 0.3, 0.4))]


def problem(dtype: type, n_features: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    points, weights = blobs(700, n_features, 6), np.random.default_rng(3).uniform(0.1, 2, size=700)
    return points.astype(dtype), weights, points[:6] + 0.5


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_memberships_add_to_one_and_weights_are_their_product_with_the_weighing(rule):
    sq_dist = np.random.default_rng(0).gamma(1.0, size=(50, 4)) + 1e-3
    shares = rule.memberships(sq_dist)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)
    weights, objectives = rule.weigh(sq_dist)
    product = shares * rule.weighing(sq_dist)[:, None]
    # Those of a power come times k^(1/s), whichever way they are written.
    np.testing.assert_allclose(weights / weights.max(), product / product.max(), rtol=1e-11)
    np.testing.assert_allclose(objectives, rule.objective(sq_dist))


@pytest.mark.parametrize("n_features", [2, 5, 20])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "rule", [*RULES[:-1], Gaussian(0.05), Gaussian(0.7, (0.01, 0.1, 0.2, 0.3, 0.3, 0.09))], ids=str
)
def test_rows_do_what_the_rule_says(rule, dtype, n_features):
    points, weights, centers = problem(dtype, n_features)
    expected = KINDS["reference"](points, weights).sweep(centers, rule)
    for open_kind in KINDS.values():
        found = open_kind(points, weights).sweep(centers, rule)
        assert_same_sums(found, expected, 1e-5 if dtype == np.float32 else 1e-11)


@pytest.mark.parametrize("p", [1.0, 3.5])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_point_at_a_center_leaves_everything_finite(kind, p):
    points, _, centers = problem(np.float64, 3)
    centers[0] = points[0]
    sums = KINDS[kind](points, None).sweep(centers, Harmonic(p))
    moved = sums.centers(fallback=centers)
    assert np.isfinite(moved).all()
    if p < 2:
        np.testing.assert_allclose(moved[0], points[0])


def test_a_power_or_a_rule_is_a_rule_and_powers_end():
    assert rule_at(-math.inf) == Hard()
    assert rule_at(-2.0) == Power(-2.0)
    assert rule_at(Harmonic(3.0)) == Harmonic(3.0)
    assert [*islice(Geometric(start=-1.0, growth=10.0), 400)][-1] == -INF
    powers = [*islice(AuthorsSchedule(start=-3.0), 1000)]
    assert powers[-1] == powers[-500]
    assert -120 * 1.06 < powers[-1] <= -120


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_unit_of_khmp_divides_all_weights_alike(kind):
    points, _, centers = problem(np.float64, 3)
    plain, other = (
        KINDS[kind](points, None).sweep(centers, Harmonic(3.5, unit=unit)) for unit in (1.0, 16.0)
    )
    np.testing.assert_allclose(other.weights, plain.weights / 16**0.75, rtol=1e-12)
    np.testing.assert_allclose(other.points, plain.points / 16**0.75, rtol=1e-12)
    assert other.objective == pytest.approx(plain.objective, rel=1e-12)


INF = math.inf


@pytest.mark.parametrize(
    ("schedule", "powers"),
    [
        (Geometric(start=-3.0, growth=2.0), [-3.0, -6.0, -12.0, -24.0]),
        (Fixed(-1), [-1.0, -1.0, -1.0]),
        (Fixed(-INF), [-INF, -INF]),
        (Whole(Geometric(-0.4, 1.9)), [-1.0, -1.0, -1.0, -3.0, -5.0, -10.0]),
        (Whole(Fixed(-INF)), [-INF, -INF]),
        # It steps to minus one, then grows every second sweep, and takes no step at one itself.
        (AuthorsSchedule(-0.7), [-0.7, -0.7, -0.9, -0.9, -1.1, -1.1, -1.1 * 1.06, -1.1 * 1.06]),
        (AuthorsSchedule(-1.0), [-1.0, -1.0, -1.06]),
        (AuthorsSchedule(-200.0), [-200.0] * 4),  # below its lowest
    ],
    ids=str,
)
def test_powers_are_these_floats_and_iterating_again_starts_again(schedule, powers):
    for _ in range(2):
        found = list(islice(schedule, len(powers)))
        assert found == pytest.approx(powers)
        assert all(isinstance(power, float) for power in found)


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


def test_a_cluster_that_gives_all_its_weight_away_keeps_its_place_and_no_total_changes():
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
    sums = Sums(np.array([[4.0], [0.0]]), np.array([2.0, 0.0]), 1.0, 1.0)
    moved = sums.moved(former=0, cluster=1, point=np.array([3.0]), weight=1.0)
    np.testing.assert_array_equal(moved.points, [[1.0], [3.0]])
    np.testing.assert_array_equal(moved.weights, [1.0, 1.0])
    np.testing.assert_array_equal(sums.points, [[4.0], [0.0]])
