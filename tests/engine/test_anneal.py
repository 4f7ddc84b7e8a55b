"""The loop takes the steps of the papers, takes them down, and stops when it is told to."""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from powermeans.engine.anneal import Stage, anneal, run_stage
from powermeans.engine.history import History, SweepRecord, SweepState
from powermeans.engine.stopping import CentersSettled
from powermeans.engine.updates import RelocateEmpty, SeparateCoincident, Update
from powermeans.errors import ObjectiveRoseWarning
from powermeans.mathematics.schedules import Fixed, Geometric
from powermeans.points.opening import open_rows
from powermeans.points.reference import ReferenceRows

LLOYD = Fixed(-math.inf)
NEVER = CentersSettled(0.0)


@pytest.fixture
def points() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(200, 3)) + rng.normal(scale=6, size=(8, 3))[rng.integers(8, size=200)]


@pytest.fixture
def centers(points) -> np.ndarray:
    return points[:8].copy()


def stage(schedule, max_iter=300, stop=NEVER, update=Update()) -> Stage:  # noqa: B008
    return Stage(schedule, stop, max_iter, update)


def power_step(points, centers, power) -> np.ndarray:
    """One iteration of Algorithm 1, written from the paper with plain powers."""
    sq_dist = ((points[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2)
    mean = (sq_dist**power).mean(axis=1)
    weights = mean[:, None] ** (1 / power - 1) * sq_dist ** (power - 1)
    return weights.T @ points / weights.sum(axis=0)[:, None]


def lloyd_step(points, centers) -> np.ndarray:
    labels = ((points[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2).argmin(axis=1)
    return np.array([points[labels == j].mean(axis=0) for j in range(len(centers))])


@pytest.mark.parametrize("rows_of", [ReferenceRows, open_rows])
def test_the_iterates_are_those_of_algorithm_1(rows_of, points) -> None:
    start = points[:8] + 0.1
    expected, seen = start, []
    run_stage(
        rows_of(points),
        start,
        stage(Geometric(-1.5, 1.2), max_iter=12),
        History(),
        lambda state: seen.append(state.centers),
    )
    for power, centers in zip(Geometric(-1.5, 1.2), seen, strict=False):
        expected = power_step(points, expected, power)
        np.testing.assert_allclose(centers, expected, rtol=1e-9)
    assert len(seen) == 12


@pytest.mark.parametrize("rows_of", [ReferenceRows, open_rows])
def test_at_minus_infinity_the_iterates_are_those_of_lloyd(rows_of, points, centers) -> None:
    history = History()
    end = run_stage(rows_of(points), centers, stage(LLOYD), history)
    expected = centers
    for _ in history.records:
        expected = lloyd_step(points, expected)
    np.testing.assert_allclose(end.centers, expected, rtol=1e-12)
    np.testing.assert_allclose(lloyd_step(points, expected), expected, rtol=1e-12)
    assert end.reason == "strict convergence"


@pytest.mark.parametrize("power", [-0.3, -1.0, -4.0, -50.0, -1e6, -math.inf])
def test_the_objective_never_rises_at_equal_power(power: float, points, centers) -> None:
    history = History()
    run_stage(open_rows(points), centers, stage(Fixed(power), max_iter=60), history)
    objective = history.as_recarray().objective
    assert (objective[1:] <= objective[:-1] * (1 + 1e-13)).all()


def test_the_objective_falls_while_the_power_does(points, centers) -> None:
    history = History()
    run_stage(open_rows(points), centers, stage(Geometric(-0.5, 1.1), max_iter=60), history)
    assert (np.diff(history.as_recarray().objective) < 0).all()


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


def test_an_objective_that_rises_while_the_power_changes_gives_none(points, centers) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_stage(RisingRows(points), centers, stage([-3.0, -4.0]), History())


def test_each_stage_has_max_iter_sweeps_at_most(points, centers) -> None:
    history = History()
    stages = [stage(Geometric(-1.0, 1.1), max_iter=5), stage(LLOYD, max_iter=2)]
    first, second = anneal(open_rows(points), centers, stages, history)
    assert [record.power == -math.inf for record in history.records] == [False] * 5 + [True] * 2
    assert not first.has_converged
    assert first.reason == "max_iter=5 sweeps"
    assert second.power == -math.inf


class Onlooker:
    """A rule that never stops a stage and remembers what it was shown."""

    def __init__(self) -> None:
        self.shown: list[list[float]] = []

    def reason(self, records) -> None:
        self.shown.append([record.power for record in records])


def test_a_rule_sees_the_sweeps_of_its_own_stage_only(points, centers) -> None:
    rule = Onlooker()
    stages = [stage([-1.0, -2.0]), stage([-3.0, -4.0], stop=rule)]
    anneal(open_rows(points), centers, stages, History())
    assert rule.shown == [[-3.0], [-3.0, -4.0]]


def test_a_schedule_may_end(points, centers) -> None:
    history = History()
    end = run_stage(open_rows(points), centers, stage([-1.0, -2.0, -9.0]), history)
    assert end.has_converged
    assert end.power == -9.0
    np.testing.assert_array_equal(history.as_recarray().power, [-1.0, -2.0, -9.0])


def test_a_callback_that_returns_true_ends_all_stages(points, centers) -> None:
    history = History()
    stages = [stage(Geometric(-1.0, 1.1)), stage(LLOYD)]
    ends = anneal(open_rows(points), centers, stages, history, lambda state: state.sweep == 4)
    assert len(history.records) == 4
    assert len(ends) == 1
    assert ends[0].was_stopped


@pytest.mark.parametrize("answer", [None, False, 1, "yes", [1], np.ones(3)])
def test_any_other_answer_of_a_callback_goes_on(answer: object, points, centers) -> None:
    history = History()
    run_stage(open_rows(points), centers, stage(LLOYD, max_iter=2), history, lambda state: answer)
    assert len(history.records) == 2


def test_numpys_true_stops_too(points, centers) -> None:
    end = run_stage(
        open_rows(points), centers, stage(LLOYD), History(), lambda state: np.bool_(True)
    )
    assert end.was_stopped


def test_a_callback_sees_every_sweep_and_cannot_disturb_it(points, centers) -> None:
    seen: list[SweepState] = []
    history = History(run=3)
    end = run_stage(open_rows(points), centers, stage(LLOYD), history, seen.append)
    assert [state.sweep for state in seen] == list(range(1, len(history.records) + 1))
    assert {state.run for state in seen} == {3}
    with pytest.raises(ValueError, match="read-only"):
        seen[0].centers[0] = 0
    np.testing.assert_array_equal(seen[-1].centers, end.centers)
    seen: list[SweepState] = []
    run_stage(open_rows(points), centers, stage(LLOYD, max_iter=2), History(), seen.append)
    sq_dist = ((points[:, None, :] - seen[0].centers) ** 2).sum(axis=2)
    assert seen[1].inertia == pytest.approx(sq_dist.min(axis=1).sum(), rel=1e-12)
    assert seen[1].objective == pytest.approx(seen[1].inertia, rel=1e-12)
    assert seen[0].center_shift == pytest.approx(np.linalg.norm(seen[0].centers - centers))
    assert seen[0].seconds > 0


def test_what_was_swept_before_an_error_is_in_the_history(points, centers) -> None:
    def fail(state: SweepState) -> None:
        if state.sweep == 3:
            raise LookupError("mine")

    history = History()
    with pytest.raises(LookupError, match="mine"):
        run_stage(open_rows(points), centers, stage(LLOYD), history, fail)
    assert len(history.records) == 3
    assert history.last is not None
    assert history.last.sweep == 3


def test_the_history_is_a_table(points, centers) -> None:
    history = History()
    run_stage(open_rows(points), centers, stage([-1.0, -2.0]), history)
    table = pd.DataFrame(history.as_recarray())
    assert list(table.columns) == list(SweepRecord._fields)
    assert table.power.tolist() == [-1.0, -2.0]


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


def test_empty_clusters_are_counted_and_filled(points) -> None:
    centers = np.vstack([points[:5], np.full((3, 3), 1e3)])
    history = History()
    end = run_stage(open_rows(points), centers, stage(LLOYD, update=RelocateEmpty()), history)
    assert history.n_relocated >= 3
    assert end.reason == "strict convergence"
    sizes = np.bincount(open_rows(points).assign(end.centers)[0], minlength=8)
    assert sizes.min() > 0


def test_more_centers_than_distinct_points_come_to_an_end(points) -> None:
    few = np.repeat(points[:3], 20, axis=0)
    end = run_stage(
        open_rows(few), few[np.arange(8) * 7], stage(LLOYD, update=RelocateEmpty()), History()
    )
    assert end.reason == "strict convergence"


def test_unchanged_labels_are_bitwise_unchanged_centers(points, centers) -> None:
    rows = open_rows(points.astype(np.float32))
    states: list[SweepState] = []
    run_stage(rows, centers, stage(LLOYD), History(), states.append)
    labels = [rows.assign(state.centers)[0] for state in states]
    for (before, after), state in zip(itertools.pairwise(labels), states[1:], strict=True):
        if np.array_equal(before, after):
            assert state is states[-1] or states[-1].center_shift == 0
    assert states[-1].center_shift == 0


def test_a_shift_whose_square_overflows_settles_nothing() -> None:
    """A damaged checkpoint holds such centers."""
    far, near = (SweepRecord(-1.0, 1.0, 1.0, shift, seconds=0.0) for shift in (1e200, 0.009))
    assert CentersSettled(1e-4).reason([far]) is None
    assert "within tolerance 0.0001" in CentersSettled(1e-4).reason([far, near])
