"""Each rule stops when it should, and not before."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import replace

import pytest

from powermeans.engine.history import SweepRecord
from powermeans.engine.stopping import CentersSettled, ObjectiveSettled, WeightsHard
from powermeans.mathematics.schedules import AuthorsSchedule, Fixed, Geometric, resting_power


def record(power=-3.0, objective=1.0, inertia=1.0, center_shift=1.0) -> SweepRecord:
    return SweepRecord(power, objective, inertia, center_shift, seconds=0.0)


@pytest.mark.parametrize(
    ("tolerance", "shift", "reason"),
    [
        (0.0, 0.0, "strict convergence"),
        (1e-3, 0.0, "strict convergence"),
        (1e-4, 0.99e-2, "within tolerance"),  # whose square is
        (1e-4, 1.01e-2, None),
        (0.0, 1e-200, None),
        (1e-4, 1e200, None),  # from a damaged checkpoint; its square overflows
    ],
)
def test_centers_settle_by_their_squared_shift(tolerance, shift, reason) -> None:
    found = CentersSettled(tolerance).reason([record(center_shift=shift)])
    assert found == reason or reason in found


HARD_RULE = WeightsHard(critical_power=-2.0, n_centers=4, tolerance=1e-4)


def at_hardness(hardness: float, power: float) -> SweepRecord:
    """A record whose objective times k^(1/s) is this part of the inertia."""
    return record(power, objective=hardness * 5.0 * 4 ** (-1 / power), inertia=5.0)


@pytest.mark.parametrize("power", [-2.5, -30.0, -1e6])
def test_annealing_ends_once_the_weights_are_hard(power: float) -> None:
    assert "hard" in HARD_RULE.reason([at_hardness(0.9995, power)])
    assert HARD_RULE.reason([at_hardness(0.9985, power)]) is None
    assert "hard" in HARD_RULE.reason([record(-math.inf, objective=5.0, inertia=5.0)])
    assert HARD_RULE.reason([record(objective=0.0, inertia=0.0)]) is not None
    above_critical = [at_hardness(1.0, -1.0)._replace(center_shift=0.0)] * 10
    assert HARD_RULE.reason(above_critical) is None


def test_settled_centers_end_annealing_where_the_schedule_rests() -> None:
    resting = replace(HARD_RULE, resting_power=resting_power(Fixed(-3.0)))
    settled = [at_hardness(0.5, -3.0)._replace(center_shift=1e-3)]
    assert resting.reason(settled) is None
    assert "within tolerance" in resting.reason(settled * 2)


@pytest.mark.parametrize(
    "schedule", [AuthorsSchedule(-3.0, sweeps_per_power=60), Geometric(-3.0, 1.01), [-3.0] * 400]
)
def test_settled_centers_wait_for_the_next_power(schedule: Iterable[float]) -> None:
    pausing = replace(HARD_RULE, resting_power=resting_power(schedule))
    records = []
    for power in itertools.islice(schedule, 120):
        records.append(at_hardness(0.5, power)._replace(center_shift=0.0))
        assert pausing.reason(records) is None


def test_the_papers_rule_looks_at_the_relative_decrease() -> None:
    rule = ObjectiveSettled(1e-3)
    first = record(objective=2.0)
    assert rule.reason([first]) is None
    assert rule.reason([first, record(objective=2.0 - 0.0021)]) is None
    assert "fell from 2.0" in rule.reason([first, record(objective=2.0 - 0.0019)])
