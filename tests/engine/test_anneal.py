"""The loop takes the steps of the papers, takes them down, and stops when it is told to."""

import itertools
import math
import warnings
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from problems import blobs, sq_distances

from powermeans.engine.anneal import Stage, anneal, run_stage
from powermeans.engine.history import History, SweepRecord, SweepState
from powermeans.engine.stopping import CentersSettled
from powermeans.engine.updates import SeparateCoincident, Update
from powermeans.errors import ObjectiveRoseWarning
from powermeans.mathematics.schedules import Fixed, Geometric
from powermeans.points.opening import open_rows
from powermeans.points.reference import ReferenceRows

LLOYD = Fixed(-math.inf)
NEVER = CentersSettled(0.0)


@pytest.fixture
def points() -> np.ndarray:
    return blobs(200, 3, 8, scale=6.0)


@pytest.fixture
def centers(points) -> np.ndarray:
    return points[:8].copy()


def stage(schedule, max_iter=300, stop=NEVER, update=Update()) -> Stage:  # noqa: B008
    return Stage(schedule, stop, max_iter, update)


class RisingRows(ReferenceRows):
    """Rows that move every center to the wrong side."""

    def sweep(self, centers, rule):
        sums = super().sweep(centers, rule)
        return replace(sums, points=-3 * sums.points)


def test_an_objective_that_rises_at_equal_power_gives_a_warning(points, centers) -> None:
    history = History()
    expected = r"rose from .* in sweep 2 at power=-3\.0"
    with pytest.warns(ObjectiveRoseWarning, match=expected) as told:
        run_stage(RisingRows(points), centers, stage(Fixed(-3.0), max_iter=2), history)
    assert {warning.filename for warning in told} == {__file__}
    assert len(history.records) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # none while the power changes
        run_stage(RisingRows(points), centers, stage([-3.0, -4.0]), History())


def test_each_stage_has_max_iter_sweeps_at_most(points, centers) -> None:
    history = History()
    stages = [stage(Geometric(-1.0, 1.1), max_iter=5), stage(LLOYD, max_iter=2)]
    first, second = anneal(open_rows(points), centers, stages, history)
    assert [record.power == -math.inf for record in history.records] == [False] * 5 + [True] * 2
    assert not first.has_converged
    assert first.reason == "max_iter=5 sweeps"
    assert second.power == -math.inf


def test_a_rule_sees_the_sweeps_of_its_own_stage_only(points, centers) -> None:
    rule = Mock(**{"reason.return_value": None})
    stages = [stage([-1.0, -2.0]), stage([-3.0, -4.0], stop=rule)]
    anneal(open_rows(points), centers, stages, History())
    shown = [[record.power for record in call.args[0]] for call in rule.reason.mock_calls]
    assert shown == [[-3.0], [-3.0, -4.0]]


def test_a_schedule_may_end_and_the_history_is_a_table(points, centers) -> None:
    history = History()
    end = run_stage(open_rows(points), centers, stage([-1.0, -2.0, -9.0]), history)
    assert end.has_converged
    assert end.power == -9.0
    table = pd.DataFrame(history.as_recarray())
    assert list(table.columns) == list(SweepRecord._fields)
    assert table.power.tolist() == [-1.0, -2.0, -9.0]


@pytest.mark.parametrize("answer", [None, False, 1, "yes", [1], np.ones(3)])
def test_any_other_answer_of_a_callback_goes_on(answer: object, points, centers) -> None:
    history = History()
    run_stage(open_rows(points), centers, stage(LLOYD, max_iter=2), history, lambda state: answer)
    assert len(history.records) == 2


def test_a_callback_sees_every_sweep_and_cannot_disturb_it(points, centers) -> None:
    seen: list[SweepState] = []
    history = History(run=3)
    end = run_stage(open_rows(points), centers, stage(LLOYD), history, seen.append)
    assert [state.sweep for state in seen] == list(range(1, len(history.records) + 1))
    assert {state.run for state in seen} == {3}
    with pytest.raises(ValueError, match="read-only"):
        seen[0].centers[0] = 0
    np.testing.assert_array_equal(seen[-1].centers, end.centers)
    inertia = sq_distances(points, seen[0].centers).min(axis=1).sum()
    assert seen[1].inertia == pytest.approx(inertia, rel=1e-12)
    assert seen[1].objective == pytest.approx(seen[1].inertia, rel=1e-12)
    assert seen[0].center_shift == pytest.approx(np.linalg.norm(seen[0].centers - centers))
    assert seen[0].seconds > 0


def test_coincident_centers_part_below_the_critical_power_and_not_above(points) -> None:
    coincident = np.repeat(points[:4], 2, axis=0)
    rows, history = open_rows(points), History()
    update = SeparateCoincident(critical_power=-1.0, spread=3.0)
    schedule = [-0.5] * 3 + [-5.0] * 40
    states: list[SweepState] = []
    run_stage(rows, coincident, stage(schedule, update=update), history, states.append)
    assert [state.n_separated for state in states[:5]] == [0, 0, 0, 4, 0]
    np.testing.assert_array_equal(states[2].centers[0::2], states[2].centers[1::2])
    pairs = states[-1].centers.reshape(4, 2, 3)
    assert np.linalg.norm(pairs[:, 0] - pairs[:, 1], axis=1).max() > 0.5
    assert history.n_separated == 4


def test_unchanged_labels_are_bitwise_unchanged_centers(points, centers) -> None:
    rows = open_rows(points.astype(np.float32))
    states: list[SweepState] = []
    run_stage(rows, centers, stage(LLOYD), History(), states.append)
    labels = [rows.assign(state.centers)[0] for state in states]
    for (before, after), state in zip(itertools.pairwise(labels), states[1:], strict=True):
        if np.array_equal(before, after):
            assert state is states[-1] or states[-1].center_shift == 0
    assert states[-1].center_shift == 0
