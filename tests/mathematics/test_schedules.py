"""The powers that schedules give."""

from __future__ import annotations

import math
from itertools import islice

import pytest

from powermeans.mathematics.schedules import AuthorsSchedule, Fixed, Geometric, Whole


def first(n, schedule):
    return list(islice(schedule, n))


def test_geometric_schedule_multiplies_by_its_growth():
    assert first(4, Geometric(start=-3.0, growth=2.0)) == [-3.0, -6.0, -12.0, -24.0]


def test_geometric_schedule_ends_at_minus_infinity_without_error():
    assert first(400, Geometric(start=-1.0, growth=10.0))[-1] == -math.inf


def test_whole_powers_are_those_of_a_schedule_rounded():
    powers = first(6, Whole(Geometric(-0.4, 1.9)))
    assert list(powers) == [-1.0, -1.0, -1.0, -3.0, -5.0, -10.0]
    assert first(2, Whole(Fixed(-math.inf))) == [-math.inf, -math.inf]


def test_fixed_schedule_stays():
    assert first(3, Fixed(-1)) == [-1.0, -1.0, -1.0]
    assert first(2, Fixed(-math.inf)) == [-math.inf, -math.inf]


def test_authors_schedule_steps_to_minus_one_then_grows_every_second_sweep():
    powers = first(12, AuthorsSchedule(start=-0.5))
    expected = [-0.5, -0.7, -0.9, -1.1, -1.1 * 1.06, -1.1 * 1.06**2]
    assert powers[0::2] == pytest.approx(expected)
    assert powers[1::2] == powers[0::2]


def test_authors_schedule_takes_no_step_at_minus_one_itself():
    assert first(3, AuthorsSchedule(start=-1.0)) == pytest.approx([-1.0, -1.0, -1.06])


def test_authors_schedule_stays_where_it_first_reaches_its_lowest():
    powers = first(1000, AuthorsSchedule(start=-3.0))
    assert powers[-1] == powers[-500]
    assert -120 * 1.06 < powers[-1] <= -120


def test_authors_schedule_started_below_its_lowest_stays_there():
    assert first(4, AuthorsSchedule(start=-200.0)) == [-200.0] * 4


@pytest.mark.parametrize(
    "schedule", [Geometric(-3.0, 1.05), Fixed(-1.0), AuthorsSchedule(-1.0), Geometric(-1, 2)]
)
def test_iterating_again_starts_again(schedule):
    assert first(5, schedule) == first(5, schedule)
    assert all(isinstance(power, float) for power in first(5, schedule))


@pytest.mark.parametrize("start", [0.0, 1.0, -math.inf, math.nan])
@pytest.mark.parametrize("schedule", [lambda s: Geometric(s, 1.1), AuthorsSchedule])
def test_a_start_that_is_not_negative_and_finite_is_refused(schedule, start):
    with pytest.raises(ValueError, match=f"start={start} must be negative and finite"):
        schedule(start)


@pytest.mark.parametrize("growth", [1.0, 0.5, math.inf, math.nan])
@pytest.mark.parametrize(
    "schedule", [lambda g: Geometric(-3.0, g), lambda g: AuthorsSchedule(-3.0, growth=g)]
)
def test_a_growth_that_is_not_above_one_is_refused(schedule, growth):
    with pytest.raises(ValueError, match=rf"growth={growth} must be .*Fixed\(power\)"):
        schedule(growth)


@pytest.mark.parametrize("power", [0.0, 1.0, math.nan])
def test_a_fixed_power_that_is_not_negative_is_refused(power):
    with pytest.raises(ValueError, match=f"power={power} must be negative"):
        Fixed(power)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("step", 0.0),
        ("step", math.inf),
        ("sweeps_per_power", 0),
        ("sweeps_per_power", 1.5),
        ("lowest", 0.0),
        ("lowest", math.nan),
    ],
)
def test_authors_schedule_names_the_argument_it_refuses(argument, value):
    with pytest.raises(ValueError, match=f"{argument}={value} must be"):
        AuthorsSchedule(-1.0, **{argument: value})
