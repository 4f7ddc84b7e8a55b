"""Of many rows a sample is asked, and all rows confirm what it says."""

from __future__ import annotations

import time

import numpy as np
import pytest

import powermeans.choosing_k.choose
from powermeans import SweepState, choose_k, open_data
from powermeans.types import FloatArray


def six_clusters(n_points: int) -> FloatArray:
    rng = np.random.default_rng(0)
    centers = 12.0 * np.indices((3, 2)).reshape(2, 6).T
    return centers[np.arange(n_points) % 6] + rng.normal(size=(n_points, 2))


@pytest.mark.parametrize("in_parts", [False, True])
def test_many_rows_are_asked_by_a_sample_that_the_result_names(in_parts: bool) -> None:
    points = six_clusters(40_000)
    given = open_data(points, rows_per_part=15_000) if in_parts else points
    choice = choose_k(given, range(2, 9), criteria=["separation", "bic"], random_state=0)
    assert (choice.recommended, choice.is_clear, choice.n_sampled) == (6, True, 10_000)
    assert "on a sample of 10,000 rows" in str(choice)
    labels = choice.model().predict(points)
    means = [points[labels == j].mean(axis=0) for j in range(6)]
    np.testing.assert_allclose(choice.centers[6], means, atol=1e-6)  # of all rows, not of a sample
    inertia = np.square(points - choice.centers[6][labels]).sum()
    assert choice.table["inertia"][4] == pytest.approx(inertia)


def test_what_other_rows_do_not_confirm_is_not_clear(monkeypatch) -> None:
    nothing = powermeans.choosing_k.choose.Evaluation(np.zeros(1), None)
    monkeypatch.setattr(powermeans.choosing_k.choose, "by_separation", lambda study: nothing)
    choice = choose_k(six_clusters(40_000), range(2, 9), criteria="separation", random_state=0)
    assert (choice.recommended, choice.is_clear) == (6, False)
    assert "in another sample of the rows" in choice.doubt


def test_little_time_shrinks_the_sample_and_never_the_range(monkeypatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def let_time_pass(state: SweepState) -> None:
        now[0] += 1e-3

    options = {"criteria": ["separation", "bic"], "random_state": 0, "callback": let_time_pass}
    choose_k(six_clusters(1_000), range(2, 9), **options)
    whole, now[0] = now[0], 0.0
    choice = choose_k(six_clusters(8_000), range(2, 9), max_seconds=3 * whole, **options)
    assert list(choice.table["k"]) == list(range(2, 9))
    assert (choice.recommended, choice.n_sampled) == (6, 1_000)


def test_ctrl_c_keeps_what_was_found() -> None:
    def interrupt(state: SweepState) -> None:
        if len(state.centers) > 5:
            raise KeyboardInterrupt

    choice = choose_k(six_clusters(600), range(2, 12), callback=interrupt, random_state=0)
    assert (choice.was_stopped, choice.n_sampled) == (True, 0)
    assert "tried 4 of 10 values of k" in choice.doubt
    assert len(choice.centers) == 4
