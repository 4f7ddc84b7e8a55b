"""Which share of a search is done: against sums by hand, and against the clock."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import powermeans
from powermeans import PowerKMeans, SweepState
from powermeans.loop.history import PlannedWork, n_levels
from powermeans.loop.time_left import TimeLeft

POINTS = np.random.default_rng(0).normal(size=(3000, 4))


def shares(model: PowerKMeans, points: Any = POINTS) -> list[float]:
    states: list[SweepState] = []
    model.set_params(callback=states.append).fit(points)
    return [state.share_done for state in states]


@pytest.mark.parametrize(("n_moved", "levels"), [(0, 0), (1, 1), (2, 2), (5, 4), (12, 6)])
def test_breaths_in_vain_move_two_thirds_as_many_each(n_moved: int, levels: int) -> None:
    assert n_levels(n_moved) == levels


def test_parts_of_the_same_kind_count_alike() -> None:
    work, found = PlannedWork(), []
    for number in range(4):
        work.begin_start(n_moved=5, starts=3 - number)
        found.append(work.share_done())
    work.breathe(n_moved=0)
    assert [*found, work.share_done()] == pytest.approx([0, 0.25, 0.5, 0.75, 1])


def test_a_part_is_done_by_levels() -> None:
    work = PlannedWork()
    work.begin_start(n_moved=5)
    found = []
    for n_moved in (5, 3, 2, 1, 0):
        work.breathe(n_moved)
        found.append(work.share_done())
    assert found == pytest.approx([0, 0.25, 0.5, 0.75, 1])


def test_a_crossing_that_gains_puts_the_end_farther_away() -> None:
    work = PlannedWork()
    work.begin_start(n_moved=1)
    for n_left in (4, 3, 2):
        work.begin_crossing(n_left)
    before = work.share_done()
    work.begin_crossing(4)
    assert work.share_done() < before


@given(
    n_starts=st.integers(1, 5),
    n_annealed=st.integers(0, 3),
    n_crossings=st.integers(0, 5),
    n_moved=st.integers(0, 50),
)
def test_without_surprises_the_share_only_rises_from_none_to_all(
    n_starts: int, n_annealed: int, n_crossings: int, n_moved: int
) -> None:
    work, found = PlannedWork(), []
    for number in range(n_starts):
        work.begin_start(n_moved, n_starts - number - 1, n_annealed, n_crossings)
        found.append(work.share_done())
    for number in range(n_annealed):
        work.begin_annealed(n_annealed - number - 1, n_crossings)
        found.append(work.share_done())
    for number in range(n_crossings):
        work.begin_crossing(n_crossings - number - 1)
        found.append(work.share_done())
    work.breathe(0)
    found.append(work.share_done())
    assert found[0] == 0
    assert found == sorted(found)
    assert found[-1] == pytest.approx(1)


@pytest.mark.parametrize("effort", ["fast", "balanced", "thorough"])
def test_a_search_begins_with_nothing_done_and_comes_near_the_end(effort: Any) -> None:
    found = shares(PowerKMeans(8, effort=effort, random_state=0))
    assert found[0] == 0
    assert all(0 <= share <= 1 for share in found)
    assert found[-1] > 0.5


def test_several_runs_are_parts_of_one_fit() -> None:
    states: list[SweepState] = []
    PowerKMeans(6, n_init=2, random_state=0, callback=states.append).fit(POINTS)
    first = [state.share_done for state in states if state.run == 0]
    second = [state.share_done for state in states if state.run == 1]
    assert max(first) <= 0.5 <= min(second)


def test_with_a_limit_of_time_the_share_is_that_of_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = iter(range(10_000))
    monkeypatch.setattr("powermeans.estimators.base.time.monotonic", lambda: float(next(now)))
    found = shares(PowerKMeans(3, refine=0, max_seconds=20, random_state=0))
    # Each sweep looks at the clock twice; opening and seeding look at it before.
    assert 0 < found[0] < 0.5
    assert found[1:3] == pytest.approx([found[0] + 2 / 20, found[0] + 4 / 20])


@pytest.mark.parametrize(
    "settings", [{"refine": 0}, {"n_clusters": 1}, {"divergence": "mahalanobis"}]
)
def test_where_the_end_is_not_known_nothing_is_claimed(settings: dict[str, Any]) -> None:
    model = PowerKMeans(random_state=0).set_params(**{"n_clusters": 4, **settings})
    assert all(math.isnan(share) for share in shares(model))


# Between how many seconds the rest takes, by hand.


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    seconds = [0.0]
    monkeypatch.setattr("powermeans.loop.time_left.time.perf_counter", lambda: seconds[0])
    return seconds


def test_a_first_part_tells_nothing_at_first(now: list[float]) -> None:
    time_left = TimeLeft()
    assert math.isnan(time_left.seconds()[1])
    time_left.begin("start")
    now[0] = 0.4
    assert math.isnan(time_left.seconds()[1])
    now[0] = 10.0
    # Between 1.2 and 3.5 times as long as so far.
    assert time_left.seconds() == pytest.approx((2.0, 25.0))
    time_left.reach(0.8)
    # By its share 12.5 seconds: of that 70 %, which are over, to 150 %.
    assert time_left.seconds() == pytest.approx((0.0, 8.75))


def test_a_part_takes_about_as_long_as_others_of_its_kind(now: list[float]) -> None:
    time_left = TimeLeft()
    for number in range(3):
        now[0] = 10.0 * number
        time_left.begin("start", {"start": 3 - number})
    now[0] = 24.0
    # Of this one 6 to 14 seconds less 4; of the next, which may be left out, 0.3 to 1 times as
    # long. The deviations of 4 and 6.1 from the middles 6 and 7.9 seldom add up.
    middle, deviation = 6 + 7.9, math.hypot(4, 6.1)
    least, most = time_left.seconds()
    assert least == pytest.approx(max(2 + 1.8, 0.75 * (middle - deviation)))
    assert most == pytest.approx(middle + deviation)


def test_the_last_sweeps_go_by_how_fast_shifts_fall(now: list[float]) -> None:
    time_left = TimeLeft()
    time_left.begin_last(tolerance=math.exp(-28), max_iter=300)
    for number in range(10):
        time_left.sweep(2.0, math.exp(-number))
    # Five more by the shifts, and 0.4 to 2 times as many; but up to four times as many as so far.
    assert time_left.seconds() == pytest.approx((2.0 * 2, 2.0 * 40))
    time_left.begin_last(tolerance=0.0, max_iter=30)
    for _ in range(20):
        time_left.sweep(2.0, 1.0)
    assert time_left.seconds() == pytest.approx((0.0, 2.0 * 10))


def test_a_limit_of_time_ends_the_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("powermeans.estimators.base.time.monotonic", lambda: 100.0)
    told: list[Any] = []

    class Listener:
        def __call__(self, state: SweepState) -> None: ...

        def phase_begins(self, words: str, seconds_left: Any) -> None:
            told.append((words, seconds_left()))

    PowerKMeans(3, refine=0, max_seconds=20, random_state=0, callback=Listener()).fit(POINTS)
    assert told[0] == ("checking the rows", (0.0, 20.0))
    assert dict(told)["improving"] == (0.0, 20.0)


def test_the_progress_line_of_a_search_tells_the_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("powermeans.callbacks.progress_bar._LOG_SECONDS", 0.0)
    PowerKMeans(8, random_state=0, callback=powermeans.progress("plain")).fit(POINTS)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].endswith(" so far")
    assert re.fullmatch("labelling the rows, (.* left|about to end) after .* s", lines[-2])
    assert lines[-1].endswith(" in all")
