"""The recorder of centers."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powermeans import PathRecorder, PowerKMeans, SweepState

POINTS = np.random.default_rng(0).normal(size=(80, 2))


def state(sweep: int, power: float = -1.0, n_centers: int = 2, run: int = 0) -> SweepState:
    centers = np.full((n_centers, 1), float(sweep))
    return SweepState(run, sweep, power, 1.0, 1.0, math.sqrt(n_centers), 0.0, centers)


def test_all_sweeps_of_a_fit_are_recorded_in_their_order() -> None:
    path = PathRecorder()
    model = PowerKMeans(4, effort="none", random_state=0, callback=path).fit(POINTS)
    assert [one.power for one in path.states] == model.history_.power.tolist()
    np.testing.assert_array_equal(path.centers()[-1], model.cluster_centers_)


def test_the_next_fit_begins_anew_and_other_runs_are_left_out() -> None:
    path = PathRecorder()
    for one in [state(1), state(2), state(1, run=1), state(1), state(2), state(3)]:
        path(one)
    assert [one.sweep for one in path.states] == [1, 2, 3]


@given(most=st.integers(2, 9), n_sweeps=st.integers(1, 200))
def test_at_most_so_many_are_kept_evenly_with_the_first_and_the_last(
    most: int, n_sweeps: int
) -> None:
    path = PathRecorder(most)
    for sweep in range(1, n_sweeps + 1):
        path(state(sweep))
        assert path.states[-1].sweep == sweep
        assert len(path.states) <= most
    sweeps = [one.sweep for one in path.states]
    assert sweeps[0] == 1
    gaps = np.diff(sweeps[:-1])
    assert len(set(gaps.tolist())) <= 1
    if n_sweeps > 1:
        assert len(sweeps) > min(most, n_sweeps) // 2


def test_a_descent_begins_where_the_power_rises_or_centers_come_or_go() -> None:
    path = PathRecorder()
    for sweep, (power, n_centers) in enumerate(
        [(-1.0, 2), (-2.0, 2), (-1.0, 2), (-2.0, 2), (-2.0, 3), (-3.0, 3)], start=1
    ):
        path(state(sweep, power, n_centers))
    assert [[one.sweep for one in descent] for descent in path.descents()] == [
        [1, 2],
        [3, 4],
        [5, 6],
    ]
    assert [centers[0, 0] for centers in path.centers()] == [1.0, 2.0]


def test_nothing_recorded_is_no_descent_and_too_few_cannot_be_kept() -> None:
    assert PathRecorder().descents() == []
    assert PathRecorder().centers() == []
    with pytest.raises(ValueError, match="most=1 must be at least 2"):
        PathRecorder(1)


@pytest.mark.parametrize("seed", range(3))
def test_a_descent_goes_on_only_from_the_centers_in_which_the_sweep_before_it_ended(seed) -> None:
    """Also where points overlap, so that other starts are no farther than a sweep moves centers."""
    points = np.random.default_rng(seed).normal(size=(120, 6))
    recorder = PathRecorder()
    PowerKMeans(3, random_state=seed, callback=recorder).fit(points)
    descents = recorder.descents()
    assert len(descents) > 4
    for descent in descents:
        for before, after in pairwise(descent):
            moved = np.linalg.norm(after.centers - before.centers)
            assert moved == pytest.approx(after.center_shift, rel=1e-6, abs=1e-9)
    for one, other in pairwise(descents):
        moved = np.linalg.norm(other[0].centers - one[-1].centers)
        assert moved != pytest.approx(other[0].center_shift, rel=1e-6)
