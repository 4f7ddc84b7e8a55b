"""Callbacks show phases, sweeps and inertia, and stop a fit; scikit-learn's own work too."""

import re
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import powermeans
from powermeans import KMeans, PowerKMeans
from powermeans.engine import SweepState, fit
from powermeans.engine.fit import Listener
from powermeans.methods import (
    DPMeans,
    EntropyWeightedPowerKMeans,
    FuzzyCMeans,
    SphericalMixture,
    progress,
)

POINTS = np.random.default_rng(0).normal(size=(300, 2)) + 8 * np.arange(3).repeat(100)[:, None]


class Heard:
    def __init__(self, stops_after: int | None = None) -> None:
        self.phases: list[str] = []
        self.shares: list[tuple[int, int | None]] = []
        self.n_sweeps = self.n_ended = 0
        self._stops_after = stops_after

    def __call__(self, state: SweepState) -> bool:
        self.n_sweeps += 1
        return self.n_sweeps == self._stops_after

    def phase(self, name: str, done: int, total: int | None) -> None:
        self.phases.append(name)
        self.shares.append((done, total))

    def fit_ended(self) -> None:
        self.n_ended += 1


def test_a_callback_hears_of_phases_in_order_and_several_hear_all(capfd):
    heard = Heard()
    model = PowerKMeans(3, callback=heard, random_state=0).fit(POINTS)
    assert capfd.readouterr() == ("", "")  # nothing is printed unless it is asked for
    assert heard.n_ended == 1
    assert heard.n_sweeps == model.n_iter_
    assert heard.phases[0] == "checking the rows"
    assert heard.shares[heard.phases.index("improving, start 2 of 6")] == (1, 6)
    assert heard.phases[-1] == "labelling the rows"
    assert heard.phases.index("choosing seeds") < heard.phases.index("final sweeps")
    first, second = Heard(), Heard(stops_after=4)
    PowerKMeans(3, callback=Listener(first, None, second), random_state=0).fit(POINTS)
    assert first.n_sweeps == second.n_sweeps == 4
    assert first.phases == second.phases
    assert first.n_ended == second.n_ended == 1


@pytest.fixture
def now(monkeypatch) -> list[float]:
    """A clock that stands still unless a test moves it."""
    seconds = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: seconds[0])
    return seconds


def test_verbose_prints_at_most_one_line_a_second_with_phase_and_inertia(capsys, now):
    def tick(state: Any) -> None:
        now[0] += 0.3

    model = PowerKMeans(3, callback=tick, verbose=1, random_state=0).fit(POINTS)
    printed = capsys.readouterr().out.splitlines()
    *during, end = [line for line in printed if not line.startswith("The end ")]
    times = [float(re.search(r"(\d+\.\d) s$", line)[1]) for line in during]
    assert len(during) >= 4
    assert min(np.diff(times)) >= 1
    assert all(re.match(r"[a-z, 0-9]+, \d+ sweeps?, inertia \d", line) for line in during)
    assert end.startswith(f"ended, {model.n_iter_} sweeps, inertia {model.inertia_:.6g}, ")


VERBOSE = [
    *(PowerKMeans(3), FuzzyCMeans(3), powermeans.BalancedKMeans(2), powermeans.LinkedKMeans(2)),
    *(DPMeans(2000.0), EntropyWeightedPowerKMeans(3), SphericalMixture(3, shares="learned")),
]


@pytest.mark.parametrize("model", VERBOSE, ids=repr)
def test_verbose_2_prints_a_line_for_each_sweep_and_ends_with_the_inertia(model, capsys):
    links = {"must_link": [[0, 250]]} if isinstance(model, powermeans.LinkedKMeans) else {}
    model.set_params(verbose=2, random_state=0).fit(POINTS, **links)
    printed = capsys.readouterr().out
    for number in range(1, model.n_iter_ + 1):
        assert re.search(rf", {number} sweeps?, power \S+, inertia \S", printed)
    assert re.search(rf"^ended, .* inertia {model.inertia_:.6g}, least", printed, re.MULTILINE)
    assert re.search("^The end.*: .*", printed, re.MULTILINE)


@pytest.mark.parametrize("details", [False, True])
def test_progress_shows_phase_sweeps_and_inertia_by_tqdm(details, capsys):
    pytest.importorskip("tqdm")
    tell = powermeans.progress(details=details)
    model = PowerKMeans(3, callback=tell, random_state=0).fit(POINTS)
    text = capsys.readouterr().err
    assert f"{model.n_iter_} sweeps" in text
    assert "ended" in text
    assert ("power" in text) == details


@pytest.mark.parametrize("total", [4, None])
def test_only_a_long_pass_over_parts_says_how_far_it_is(total, now):
    listener = Listener(heard := Heard())
    listener.phase("improving")
    for done, seconds in [(1, 0.0), (2, 0.9), (3, 1.1), (4, 1.2), (1, 9.0), (2, 9.9)]:
        now[0] = seconds
        listener.part(done, total)
    if total:
        assert heard.phases == ["improving", "improving, 75 % of a pass", "improving"]
        assert heard.shares == [(0, None), (3, 4), (0, None)]
    else:
        assert heard.phases[1:] == [f"improving, {n} parts of a pass" for n in (3, 4)]


@pytest.mark.parametrize("kind", ["kept", "file"])
def test_a_fit_tells_of_its_passes(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(fit, "_LONG_PASS_SECONDS", 0.0)
    np.save(tmp_path / "points.npy", POINTS)
    data = {"kept": POINTS, "file": tmp_path / "points.npy"}[kind]
    PowerKMeans(3, effort="none", callback=(heard := Heard()), random_state=0).fit(
        powermeans.open_data(data, rows_per_part=100)
    )
    assert "checking the rows, 33 % of a pass" in heard.phases
    at = heard.phases.index("improving, 67 % of a pass")
    assert heard.shares[at] == (2, 3)
    assert heard.phases[at + 1] == "improving"


class Tasks:
    """Follows scikit-learn's protocol for callbacks, and stops after so many sweeps."""

    def __init__(self, n_most: int = 10**9) -> None:
        self.told: list[str] = []
        self.scores: list[float | None] = []
        self.n_most = n_most

    def setup(self, estimator, context) -> None:
        self.told.append("setup")

    def teardown(self, estimator, context) -> None:
        self.told.append("teardown")

    def on_fit_task_begin(self, estimator, context) -> None:
        self.told.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator) -> bool:
        self.told.append(f"end {context.task_name}")
        if fitted_estimator is not None:
            self.scores.append(fitted_estimator.score(X, y, **(metadata or {})))
        return self.told.count("end sweep") >= self.n_most


needs_callbacks = pytest.mark.skipif(
    progress.sklearn_callback is None, reason="this scikit-learn has no callbacks"
)


@needs_callbacks
@pytest.mark.parametrize("kind", [KMeans, PowerKMeans, FuzzyCMeans])
def test_scikit_learns_callbacks_hear_of_the_fit_and_each_sweep_and_can_stop_it(kind):
    tasks, weights = Tasks(), np.arange(300.0)
    model = kind(3, random_state=0).set_callbacks(tasks).fit(POINTS, sample_weight=weights)
    assert tasks.told[:2] == ["setup", "begin fit"]
    assert tasks.told[-2:] == ["end fit", "teardown"]
    assert tasks.told.count("begin sweep") == tasks.told.count("end sweep") == model.n_iter_ > 0
    # Each sweep leaves centers that predict, and the last those of the fit.
    assert len(tasks.scores) == model.n_iter_ + 1
    assert tasks.scores[-1] == model.score(POINTS, sample_weight=weights)
    assert clone(model).get_params() == model.get_params()
    assert model.set_callbacks(Tasks(n_most=2)).fit(POINTS).n_iter_ == 2
    tasks = Tasks()
    with pytest.raises(ValueError, match="NaN"):
        model.set_callbacks(tasks).fit(np.full((5, 2), np.nan))
    assert tasks.told == ["setup", "begin fit", "teardown"]


@needs_callbacks
@pytest.mark.parametrize(
    "model",
    [
        PowerKMeans(3, divergence="mahalanobis", effort="fast"),
        EntropyWeightedPowerKMeans(3, penalty=30.0),
        SphericalMixture(3),
    ],
)
def test_centers_of_a_sweep_are_not_passed_off_as_a_model_that_has_more(model):
    tasks = Tasks()
    model.set_params(random_state=0).set_callbacks(tasks).fit(POINTS)
    assert tasks.told.count("end sweep") > 0
    assert len(tasks.scores) == 1  # of the whole fit


@needs_callbacks
def test_scikit_learns_own_callbacks_work_also_through_a_pipeline(capfd):
    from sklearn.callback import ProgressBar, ScoringMonitor

    pytest.importorskip("rich")
    monitor = ScoringMonitor(scoring="adjusted_rand_score")
    steps = make_pipeline(StandardScaler(), PowerKMeans(3, random_state=0).set_callbacks(monitor))
    steps.set_callbacks(ProgressBar()).fit(POINTS, np.arange(3).repeat(100))
    assert "PowerKMeans - fit" in capfd.readouterr().out
    scores = [entry["adjusted_rand_score"] for entry in monitor.get_logs().data]
    assert len(scores) == steps[-1].n_iter_ + 1
    assert scores[-1] == 1.0
