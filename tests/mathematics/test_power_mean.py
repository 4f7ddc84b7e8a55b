import itertools
import math
import warnings

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import sparse

from powermeans.mathematics.power_mean import (
    hessian_of_k_means,
    log_power_mean,
    memberships,
    objective,
    power_mean,
    power_mean_gradient,
    power_mean_hessian,
    power_mean_weights,
    weighing,
)

POWERS = [-0.05, -0.5, -1.0, -3.3, -20.0, -150.0, -1e4, -1e6]

ordinary_distances = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=6).map(np.array)
any_distance = st.one_of(st.just(0.0), st.floats(5e-324, 1e308), st.sampled_from([1e-300, 1.0]))
any_distances = st.lists(any_distance, min_size=1, max_size=6).map(np.array)
negative_powers = st.one_of(st.floats(-30, -0.05), st.sampled_from([-1e3, -1e6, -1e300]))


def exact(sq_dist, power):
    """Power mean, weights k^(1/s) times its gradient, with 60 digits."""
    with mpmath.workdps(60):
        y, s, k = [mpmath.mpf(float(value)) for value in sq_dist], mpmath.mpf(power), len(sq_dist)
        least = min(y)
        total = sum((value / least) ** s for value in y)
        mean = least * (total / k) ** (1 / s)
        return float(mean), [total ** (1 / s - 1) * (value / least) ** (s - 1) for value in y]


@pytest.mark.parametrize("power", POWERS)
def test_means_and_weights_agree_with_sixty_digits_and_zero_distances_share(power):
    rng = np.random.default_rng(0)
    for spread in (1e-9, 1e-6, 0.1, 10.0, 100.0):
        sq_dist = 3.7 * np.exp(spread * rng.uniform(size=5))
        mean, weights = exact(sq_dist, power)
        np.testing.assert_allclose(power_mean(sq_dist, power), mean, rtol=3e-15)
        # What rounding the exponent, (s - 1) a_j + (1/s - 1) log S, can do.
        exponent = min(745.0, (1 - power) * spread) + (1 - 1 / power) * math.log(5)
        rtol = 1e-15 * (1 + exponent)
        found = power_mean_weights(sq_dist, power)
        np.testing.assert_allclose(found, np.array(weights, dtype=float), rtol, atol=1e-300)
    weights = power_mean_weights(np.array([0.0, 5.0, 0.0, 0.0]), power)
    expected = 3.0 ** (1 / power - 1)
    np.testing.assert_allclose(weights, [expected, 0, expected, expected], rtol=1e-14)
    tiny = power_mean_weights(np.array([1e-300, 1e300, 1e-300, 1e-300]), power)
    np.testing.assert_allclose(tiny, weights, rtol=1e-14, atol=1e-29)
    np.testing.assert_allclose(memberships(np.zeros(4), power), 0.25)


@pytest.mark.parametrize("power", POWERS)
def test_long_double_is_kept_and_is_more_accurate(power):
    if np.finfo(np.longdouble).eps == np.finfo(np.float64).eps:
        pytest.skip("long double is float64 on this platform")
    sq_dist = np.array([1.0, 1.0 + 2**-20, 1.0 + 2**-15])
    _, expected = exact(sq_dist, power)
    weights = power_mean_weights(sq_dist.astype(np.longdouble), power)
    assert weights.dtype == np.longdouble
    with mpmath.workdps(60):
        for got, wanted in zip(weights, expected, strict=True):
            # The shortest digits that tell a long double from its neighbours.
            error = abs(mpmath.mpf(np.format_float_scientific(got, unique=True)) - wanted)
            assert error <= 1e-18 * (50 + 2**-15 * abs(power)) * wanted


def test_the_example_is_that_by_hand_and_the_limits_are_the_maximum_and_the_minimum():
    sq_dist = np.array([1.0, 3.0])
    assert power_mean(sq_dist, -1.0) == pytest.approx(1.5)
    np.testing.assert_allclose(power_mean_gradient(sq_dist, -1.0), [9 / 8, 1 / 8])
    np.testing.assert_allclose(power_mean_weights(sq_dist, -1.0), [9 / 16, 1 / 16])
    np.testing.assert_allclose(memberships(sq_dist, -1.0), [0.9, 0.1])
    assert weighing(sq_dist, -1.0) == pytest.approx(5 / 8)
    points, centers = np.array([[0.0], [1.0]]), np.array([[1.0], [3.0]])
    # Squared distances (1, 9) and (0, 4).
    assert objective(points, centers, -1.0) == pytest.approx(2 / (1 + 1 / 9))
    assert objective(points, centers, -math.inf) == 1
    assert objective(points, centers, 1.0) == pytest.approx(5 + 2)
    assert objective(points, centers, 1.0, np.array([2.0, 3.0])) == pytest.approx(2 * 5 + 3 * 2)
    for power in (0.5, 1.0):
        assert power_mean(np.array([0.0, 4.0]), power) == pytest.approx(4 * 0.5 ** (1 / power))
        assert power_mean(np.zeros(3), power) == 0
    sq_dist = np.array([[2.0, 7.0, 7.0], [1.0, 3.0, 0.5]])
    np.testing.assert_array_equal(power_mean(sq_dist, math.inf), [7.0, 3.0])
    np.testing.assert_allclose(power_mean(sq_dist, 1e6), [7.0, 3.0], rtol=1e-5)
    np.testing.assert_array_equal(power_mean_gradient(sq_dist, math.inf), [[0, 1, 0], [0, 1, 0]])
    np.testing.assert_array_equal(power_mean_hessian(sq_dist, -math.inf), np.zeros((2, 3, 3)))


@pytest.mark.parametrize("power", [5e-324, 1e-310, 1e-200, 1e-149, 1e-30])
@pytest.mark.parametrize("sq_dist", [[1.0, 1.0, 2.0], [5e-324, 1e308], [3.0, 3.0 + 1e-15]])
def test_the_mean_at_powers_next_to_zero_is_the_geometric(sq_dist, power):
    geometric = math.exp(math.fsum(math.log(value) for value in sq_dist) / len(sq_dist))
    for next_to_zero in (power, -power):
        mean = power_mean(np.array(sq_dist), next_to_zero)
        assert mean == pytest.approx(geometric, rel=3e-13)


@given(ordinary_distances, st.floats(-200, 1), st.floats(-200, 1))
@example(np.array([1.0, 1.0, 2.0]), 5e-324, 0.0)
def test_mean_increases_with_the_power(sq_dist, power, other):
    low, high = sorted([power, other])
    assert power_mean(sq_dist, low) <= power_mean(sq_dist, high) * (1 + 1e-13)


@given(ordinary_distances, negative_powers)
def test_weights_are_scaled_gradient_and_memberships_times_weighing(sq_dist, power):
    weights = power_mean_weights(sq_dist, power)
    gradient = power_mean_gradient(sq_dist, power)
    np.testing.assert_allclose(weights, len(sq_dist) ** (1 / power) * gradient, 1e-11, 1e-300)
    h, alpha = memberships(sq_dist, power), weighing(sq_dist, power)
    np.testing.assert_allclose(weights, h * alpha, rtol=1e-11, atol=1e-300)
    assert h.sum() == pytest.approx(1)


@given(any_distances, negative_powers)
def test_any_distances_give_weights_between_zero_and_one(sq_dist, power):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weights = power_mean_weights(sq_dist, power)
        h = memberships(sq_dist, power)
        mean = power_mean(sq_dist, power)
    assert np.all((weights >= 0) & (weights <= 1))
    assert h.sum() == pytest.approx(1)
    assert sq_dist.min() * (1 - 1e-12) <= mean <= sq_dist.max() * (1 + 1e-12)


@pytest.mark.parametrize("function", [power_mean_gradient, power_mean_weights, memberships])
def test_at_minus_infinity_the_first_nearest_takes_all(function):
    sq_dist = np.array([[3.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(function(sq_dist, -math.inf), [[0, 1, 0], [1, 0, 0]])


INF = math.inf


@pytest.mark.parametrize(
    ("sq_dist", "means"),  # at the powers -1, 0, 1e-160 and 1
    [
        ([1.0, INF], [2.0, INF, INF, INF]),
        ([INF, INF], [INF, INF, INF, INF]),
        ([0.0, INF], [0.0, 0.0, INF, INF]),
        ([0.0, 3.0, INF], [0.0, 0.0, INF, INF]),
    ],
)
def test_infinite_distances_have_the_mean_of_the_limit(sq_dist, means):
    found = [power_mean(np.array(sq_dist), power) for power in (-1.0, 0.0, 1e-160, 1.0)]
    np.testing.assert_allclose(found, means, rtol=1e-15)
    logs = [log_power_mean(np.array(sq_dist), power) for power in (-1.0, 0.0, 1e-160, 1.0)]
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(logs, np.log(means))


@pytest.mark.parametrize(
    ("sq_dist", "power", "slopes"),
    [
        ([0.0, 1.0, 4.0], -1.0, [3.0, 0.0, 0.0]),
        ([0.0, 4.0], 0.5, [INF, 0.25]),
        ([0.0, 1.0], 0.0, [INF, 0.0]),
        ([0.0, 1.0, 4.0], 1.0, [1 / 3, 1 / 3, 1 / 3]),
        ([0.0, 3.0, 4.0], 2.0, [0.0, 0.2 * 3**0.5, 0.8 / 3**0.5]),
        ([1.0, INF], -1.0, [2.0, 0.0]),
        ([1.0, INF], 0.0, [INF, 0.0]),  # of sqrt(y z): sqrt(z / y) / 2 and sqrt(y / z) / 2
        ([1.0, INF], 0.5, [INF, 0.25]),
        ([1.0, INF], 1.0, [0.5, 0.5]),
        ([1.0, INF], 2.0, [0.0, 0.5**0.5]),
        ([0.0, INF], 0.0, [INF, 0.0]),
        ([0.0, 3.0, INF], 0.0, [INF, 0.0, 0.0]),  # the mean is zero, whatever the second
        ([INF, INF], 0.0, [0.5, 0.5]),
    ],
)
def test_zero_and_infinite_distances_have_the_slopes_of_the_limit(sq_dist, power, slopes):
    found = power_mean_gradient(np.array(sq_dist), power)
    np.testing.assert_allclose(found, slopes, rtol=1e-15)


# All real powers.

ALL_POWERS = [-7.5, -1.0, -1e-3, 0.0, 1e-3, 0.5, 1.0, 1.5, 2.0, 9.0, 400.0]


def exact_mean(values, power):
    if power == 0:
        return mpmath.exp(sum(mpmath.log(value) for value in values) / len(values))
    return (sum(value ** mpmath.mpf(power) for value in values) / len(values)) ** (
        1 / mpmath.mpf(power)
    )


def exact_derivatives(sq_dist, power):
    """Gradient and Hessian by differences with 90 digits."""
    with mpmath.workdps(90):
        y, step = [mpmath.mpf(float(value)) for value in sq_dist], mpmath.mpf(10) ** -25
        k = len(y)

        def mean(*moves):
            moved = list(y)
            for index, times in moves:
                moved[index] += times * step
            return exact_mean(moved, power)

        gradient = [(mean((i, 1)) - mean((i, -1))) / (2 * step) for i in range(k)]

        def second(i, j):
            signs = itertools.product([1, -1], repeat=2)
            return sum(a * b * mean((i, a), (j, b)) for a, b in signs) / (4 * step**2)

        hessian = [[second(i, j) for j in range(k)] for i in range(k)]
        return np.array(gradient, dtype=float), np.array(hessian, dtype=float)


@pytest.mark.parametrize("power", ALL_POWERS)
def test_mean_and_its_derivatives_agree_with_differences_of_ninety_digits(power):
    rng = np.random.default_rng(5)
    for spread in (0.01, 1.0, 5.0):
        sq_dist = 2.3 * np.exp(spread * rng.uniform(size=4))
        with mpmath.workdps(60):
            mean = float(exact_mean([mpmath.mpf(float(value)) for value in sq_dist], power))
        gradient, hessian = exact_derivatives(sq_dist, power)
        np.testing.assert_allclose(power_mean(sq_dist, power), mean, rtol=1e-14)
        rtol = 1e-13 * (1 + abs(power) * spread)
        np.testing.assert_allclose(power_mean_gradient(sq_dist, power), gradient, rtol, 1e-30)
        np.testing.assert_allclose(power_mean_hessian(sq_dist, power), hessian, 10 * rtol, 1e-30)


def test_the_hessian_and_the_objective_are_those_of_differences_and_of_parts():
    rng = np.random.default_rng(7)
    points, weights = rng.normal(size=(60, 2)), rng.uniform(size=60)
    centers = rng.normal(size=(4, 2))
    found = hessian_of_k_means(points, centers, weights)
    for center in range(4):
        step = np.zeros((4, 2))
        step[center, 0] = 1e-4  # too short for a point to change its center
        around = [objective(points, centers + t * step, -math.inf, weights) for t in (-1, 0, 1)]
        second = (around[0] - 2 * around[1] + around[2]) / 1e-8
        assert found[center] == pytest.approx(second, rel=1e-4)
    np.testing.assert_array_equal(
        hessian_of_k_means(sparse.csr_array(points), centers, weights), found
    )
    rng = np.random.default_rng(3)
    points, centers = rng.normal(size=(5000, 3)), rng.normal(size=(40, 3))
    points[rng.uniform(size=points.shape) < 0.5] = 0
    weights = rng.uniform(size=5000)
    whole = objective(points, centers, -2.0, weights)
    parts = sum(
        objective(points[i : i + 10], centers, -2.0, weights[i : i + 10])
        for i in range(0, 5000, 10)
    )
    assert whole == pytest.approx(parts, rel=1e-12)
    assert objective(sparse.csr_array(points), centers, -2.0, weights) == whole


OF_ANY_POWER = [power_mean, log_power_mean, power_mean_gradient, power_mean_hessian]
OF_NEGATIVE = [power_mean_weights, memberships, weighing]


@pytest.mark.parametrize(
    ("functions", "distance", "power", "says"),
    [
        (OF_ANY_POWER, 1.0, math.nan, "power=nan must be a number"),
        *((OF_NEGATIVE, 1.0, s, f"power={s} must be") for s in (0.0, 0.5, math.nan)),
        *(([power_mean_hessian], y, -1.0, "sq_dist") for y in (0.0, -1.0, math.nan, math.inf)),
    ],
)
def test_what_has_no_mean_or_no_weights_is_refused(functions, distance, power, says):
    for function in functions:
        with pytest.raises(ValueError, match=says):
            function(np.array([distance, 1.0]), power)
