"""Callbacks show phases, sweeps and inertia, and stop a fit; scikit-learn's own work too."""

from __future__ import annotations

import copy
import io
import pickle
import re
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import powermeans
from powermeans import KMeans, PowerKMeans
from powermeans.callbacks import progress as shown
from powermeans.callbacks.progress import Lines, Together

POINTS = np.random.default_rng(0).normal(size=(300, 2)) + 8 * np.arange(3).repeat(100)[:, None]


class Heard:
    """Remembers what a fit tells."""

    def __init__(self, stops_after: int | None = None) -> None:
        self.phases: list[str] = []
        self.n_sweeps = self.n_ended = 0
        self._stops_after = stops_after

    def __call__(self, state: powermeans.SweepState) -> bool:
        self.n_sweeps += 1
        return self.n_sweeps == self._stops_after

    def phase_begins(self, name: str) -> None:
        self.phases.append(name)

    def fit_ended(self) -> None:
        self.n_ended += 1


def test_a_callback_hears_of_phases_in_order_and_once_of_the_end():
    heard = Heard()
    model = PowerKMeans(3, callback=heard, random_state=0).fit(POINTS)
    assert heard.n_ended == 1
    assert heard.n_sweeps == model.n_iter_
    assert heard.phases[0] == "checking the rows"
    assert "improving, start 1 of 6" in heard.phases
    assert heard.phases[-1] == "labelling the rows"
    assert heard.phases.index("choosing seeds") < heard.phases.index("final sweeps")


def test_the_end_is_told_after_an_error_too():
    heard = Heard()
    with pytest.raises(ValueError, match="NaN"):
        PowerKMeans(3, callback=heard).fit(np.full((5, 2), np.nan))
    assert heard.n_ended == 1


def test_together_tells_all_and_stops_if_one_says_so():
    first, second = Heard(), Heard(stops_after=4)
    PowerKMeans(3, callback=Together(first, None, second), random_state=0).fit(POINTS)
    assert first.n_sweeps == second.n_sweeps == 4
    assert first.phases == second.phases
    assert first.n_ended == second.n_ended == 1


def test_verbose_prints_at_most_one_line_a_second_with_phase_and_inertia(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(shown.time, "monotonic", lambda: now[0])
    lines = Lines()

    def tick(state: Any) -> None:
        now[0] += 0.3
        lines(state)

    tick.phase_begins, tick.fit_ended = lines.phase_begins, lines.fit_ended  # type: ignore[attr-defined]
    model = PowerKMeans(3, callback=tick, random_state=0).fit(POINTS)
    printed = capsys.readouterr().out.splitlines()
    times = [int(re.search(r"(\d+) s$", line)[1]) for line in printed[:-1]]
    assert len(printed) > 5
    assert times == sorted(set(times))
    assert printed[0] == "checking the rows, 0 s"
    assert all("inertia" in line for line in printed[2:])
    assert printed[-1].startswith(f"ended, {model.n_iter_} sweeps, inertia")


def test_verbose_2_prints_a_line_for_each_sweep(capsys):
    model = PowerKMeans(3, verbose=2, effort="fast", random_state=0).fit(POINTS)
    printed = capsys.readouterr().out
    assert len(re.findall(r"^Iteration \d+, inertia ", printed, re.MULTILINE)) == model.n_iter_
    assert "power -inf" in printed


def test_lines_go_to_the_stream_that_is_given_once_the_first_seconds_are_over():
    stream = io.StringIO()
    PowerKMeans(3, callback=Lines(stream=stream, first=60.0), random_state=0).fit(POINTS)
    assert re.fullmatch(r"ended, .*inertia.*, \d+ s\n", stream.getvalue())
    stream.truncate(0)
    stream.seek(0)
    PowerKMeans(3, callback=Lines(stream=stream, seconds=60.0), random_state=0).fit(POINTS)
    assert re.fullmatch(r"checking the rows, 0 s\nended, .*inertia.*, \d+ s\n", stream.getvalue())


@pytest.mark.parametrize("details", [False, True])
def test_progress_shows_phase_sweeps_and_inertia_by_tqdm(details, capsys):
    pytest.importorskip("tqdm")
    tell = powermeans.progress(details=details)
    model = PowerKMeans(3, callback=tell, random_state=0).fit(POINTS)
    text = capsys.readouterr().err
    assert f"{model.n_iter_} sweeps" in text
    assert "ended" in text
    assert ("power" in text) == details


def test_progress_shows_how_far_a_pass_over_parts_is(capsys):
    pytest.importorskip("tqdm")
    tell = powermeans.progress()
    tell.phase_begins("reading")
    tell.pass_goes_on(1, 4)
    tell.fit_ended()
    assert "reading" in capsys.readouterr().err
    assert shown.share(1, 4) == "25% of a pass"
    assert shown.share(1000, None) == "1,000 of a pass"


def test_progress_can_be_cloned_copied_and_pickled_with_its_estimator():
    pytest.importorskip("tqdm")
    tell = powermeans.progress(details=True)
    for again in (copy.deepcopy(tell), pickle.loads(pickle.dumps(tell))):
        assert again.details
    assert clone(PowerKMeans(callback=tell)).callback.details
    PowerKMeans(2, callback="progress", random_state=0).fit(POINTS)


# Scikit-learn's own callbacks.


class Tasks:
    """Follows scikit-learn's protocol for callbacks, and stops after so many sweeps."""

    def __init__(self, n_most: int = 10**9) -> None:
        self.told: list[str] = []
        self.n_most = n_most

    def setup(self, estimator, context) -> None:
        self.told.append("setup")

    def teardown(self, estimator, context) -> None:
        self.told.append("teardown")

    def on_fit_task_begin(self, estimator, context, **what) -> None:
        self.told.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, **what) -> bool:
        self.told.append(f"end {context.task_name}")
        return self.told.count("end sweep") >= self.n_most


needs_callbacks = pytest.mark.skipif(
    not hasattr(KMeans, "set_callbacks"), reason="this scikit-learn has no callbacks"
)


@needs_callbacks
@pytest.mark.parametrize("kind", [KMeans, PowerKMeans, powermeans.FuzzyCMeans])
def test_scikit_learns_callbacks_hear_of_the_fit_and_each_sweep(kind):
    tasks = Tasks()
    model = kind(3, random_state=0).set_callbacks(tasks).fit(POINTS)
    assert tasks.told[:2] == ["setup", "begin fit"]
    assert tasks.told[-2:] == ["end fit", "teardown"]
    assert tasks.told.count("end sweep") >= model.n_iter_ > 0
    assert clone(model).get_params() == model.get_params()


@needs_callbacks
def test_a_callback_of_scikit_learn_can_stop_the_fit():
    tasks = Tasks(n_most=2)
    assert PowerKMeans(3, random_state=0).set_callbacks(tasks).fit(POINTS).n_iter_ == 2


@needs_callbacks
def test_scikit_learns_progress_bar_works(capfd):
    from sklearn.callback import ProgressBar

    pytest.importorskip("rich")
    model = PowerKMeans(3, random_state=0).set_callbacks(ProgressBar()).fit(POINTS)
    assert model.n_iter_ > 0
    assert "PowerKMeans" in capfd.readouterr().out
