"""The powers that schedules give."""

from __future__ import annotations

import math
from itertools import islice

import pytest

from powermeans.mathematics.schedules import AuthorsSchedule, Fixed, Geometric, Whole

INF, NAN = math.inf, math.nan
DOUBLED = Geometric(start=-3.0, growth=2.0)


@pytest.mark.parametrize(
    ("schedule", "powers"),
    [
        (DOUBLED, [-3.0, -6.0, -12.0, -24.0]),
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


def test_powers_end_at_minus_infinity_or_where_the_authors_first_reaches_its_lowest():
    assert [*islice(Geometric(start=-1.0, growth=10.0), 400)][-1] == -INF
    powers = [*islice(AuthorsSchedule(start=-3.0), 1000)]
    assert powers[-1] == powers[-500]
    assert -120 * 1.06 < powers[-1] <= -120


def of_authors(**options):
    return AuthorsSchedule(-1.0, **options)


@pytest.mark.parametrize(
    ("make", "argument", "values"),
    [
        (lambda start: Geometric(start, 1.1), "start", [0.0, 1.0, -INF, NAN]),
        (lambda start: AuthorsSchedule(start), "start", [0.0, 1.0, -INF, NAN]),
        (lambda growth: Geometric(-3.0, growth), "growth", [1.0, 0.5, INF, NAN]),
        (of_authors, "growth", [1.0, 0.5, INF, NAN]),
        (Fixed, "power", [0.0, 1.0, NAN]),
        (of_authors, "step", [0.0, INF]),
        (of_authors, "sweeps_per_power", [0, 1.5]),
        (of_authors, "lowest", [0.0, NAN]),
    ],
)
def test_arguments_that_give_no_schedule_are_named(make, argument, values):
    for value in values:
        with pytest.raises(ValueError, match=f"{argument}={value} must be"):
            make(**{argument: value})
