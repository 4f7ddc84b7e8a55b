"""Progress on terminals, in notebooks, and where neither is there."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import io
import itertools
import math
import pickle
import re
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask
import dask.array
import numpy as np
import pytest
from sklearn.base import clone

import powermeans
from powermeans import KMeans, PowerKMeans, open_data
from powermeans.callbacks import progress_bar as fit_progress
from powermeans.loop.history import SweepState
from powermeans.system.timer import PassTimer

POINTS = np.random.default_rng(0).normal(size=(200, 2))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def fit(callback: Any) -> PowerKMeans:
    return PowerKMeans(3, refine=0, random_state=0, callback=callback).fit(POINTS)


def detailed() -> powermeans.FitProgress:
    return powermeans.progress("plain", details=True)


@pytest.fixture(autouse=True)
def no_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tests tick themselves."""
    monkeypatch.setattr(fit_progress, "_TICK_SECONDS", 1e6)


def test_a_terminal_has_one_line_that_is_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    model = fit(detailed())
    text = terminal.getvalue()
    assert text.count("\n") == 1
    assert text.endswith("\n")
    last = text.rpartition("\r")[2]
    assert f"sweep {model.n_iter_}, power -inf, inertia {model.inertia_:.5g}," in last
    assert last.endswith(", 3 centers\x1b[K\n")


def test_elsewhere_only_the_end_of_a_short_fit_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    model = fit(detailed())
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert f"sweep {model.n_iter_}" in err
    assert f"least {model.history_.inertia.min():.5g}, 3 centers" in err


@pytest.mark.parametrize("kind", ["rich", "tqdm"])
def test_rich_and_tqdm_show_the_last_sweep(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(kind)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "200")
    model = fit(powermeans.progress(kind, details=True))  # type: ignore[arg-type]
    assert f"sweep {model.n_iter_}, power" in terminal.getvalue()
    assert kind != "rich" or "✓" in terminal.getvalue()
    assert terminal.getvalue().removesuffix("\x1b[?25h").endswith("\n")


def test_the_result_is_the_same_with_and_without_it() -> None:
    np.testing.assert_array_equal(
        fit(powermeans.progress("plain")).cluster_centers_, fit(None).cluster_centers_
    )


def test_a_second_fit_begins_a_second_line(capsys: pytest.CaptureFixture[str]) -> None:
    tell = powermeans.progress("plain")
    fit(tell)
    fit(tell)
    assert capsys.readouterr().err.count("\n") == 2


def test_as_a_context_it_ends_its_line_on_leaving(capsys: pytest.CaptureFixture[str]) -> None:
    with detailed() as tell:
        tell(SweepState(1, 4, -2.5, 1.0, 0.5, 0.0, 0.0, np.zeros((2, 1))))
    assert "run 2, sweep 4, power -2.5, inertia 0.5," in capsys.readouterr().err


def state_after(seconds: float) -> SweepState:
    return SweepState(0, 1, -2.5, 1.0, 0.5, 0.0, seconds, np.zeros((2, 1)))


@pytest.mark.parametrize(
    ("seconds", "least", "most", "said"),
    [
        (2.0, 5.0, 6.4, "about 5 to 6 s left after 2.0 s"),
        (30.0, 9.0, 41.0, "about 9 to 40 s left after 30 s"),
        (30.0, 9.8, 10.4, "about 10 s left after 30 s"),
        (60.0, 50.0, 290.0, "about 50 s to 5 min left after 60 s"),
        (60.0, 125.0, 290.0, "about 2 to 5 min left after 60 s"),
        (3600.0, 7200.0, 10900.0, "about 2 to 3 h left after 60 min"),
        (30.0, 12.0, 26.0, "about 10 to 25 s left after 30 s"),
        (5.0, 0.2, 8.0, "at most about 8 s left after 5.0 s"),
        (5.0, 2.0, 61.0, "at most about 60 s left after 5.0 s"),
        (201.0, 0.0, 1.2, "about to end after 3 min"),
        (5.0, math.nan, math.nan, "5.0 s so far"),
    ],
)
def test_the_time_left_is_a_range_where_something_is_known_of_it(
    seconds: float,
    least: float,
    most: float,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("powermeans.callbacks.progress_bar.time.monotonic", lambda: 1e6)
    monkeypatch.setattr(fit_progress, "_LOG_SECONDS", 0.0)
    with detailed() as tell:
        tell(state_after(seconds))
        tell.phase_begins("crossing solutions", lambda: (least, most))
    _, during, end = capsys.readouterr().err.splitlines()
    assert during.startswith("crossing solutions, sweep 1, power -2.5, ")
    assert f"inertia 0.5, {said}, least 0.5, 2 centers" in during
    assert "s left" not in end
    assert "in all, least 0.5, 2 centers" in end


def test_the_least_inertia_is_of_no_more_centers_than_are_wanted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with detailed() as tell:
        for sweep, (inertia, n_centers) in enumerate([(5.0, 2), (3.0, 4), (6.0, 2), (2.0, 3)], 1):
            state = replace(state_after(1.0), centers=np.zeros((n_centers, 1)))
            tell(replace(state, sweep=sweep, inertia=inertia))
    assert "inertia 2, " in (err := capsys.readouterr().err)
    assert "least 5, 3 centers" in err


def test_the_least_inertia_of_a_search_is_that_of_its_result(
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = PowerKMeans(3, random_state=0, callback=detailed()).fit(POINTS)
    assert f", least {model.inertia_:.5g}, " in capsys.readouterr().err


def test_the_line_with_the_time_left_fits_a_terminal_of_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("powermeans.callbacks.progress_bar.time.monotonic", lambda: 1e6)
    state = replace(state_after(99.0), sweep=12345, power=-math.inf, inertia=1.23456789e7)
    monkeypatch.setattr(fit_progress, "_LOG_SECONDS", 0.0)
    with powermeans.progress("plain") as tell:
        tell(replace(state, run=99))
        tell.phase_begins("improving, start 123 of about 123", lambda: (25.0, 250.0))
    _, line, _ = capsys.readouterr().err.splitlines()
    assert line.index(" left") + len(" left") < 70


def test_an_error_in_a_fit_ends_the_line_too(capsys: pytest.CaptureFixture[str]) -> None:
    class Stumbling(fit_progress.FitProgress):
        def __call__(self, state: SweepState) -> None:
            super().__call__(state)
            if state.sweep == 3:
                raise RuntimeError("stumbled")

    with pytest.raises(RuntimeError, match="stumbled"):
        fit(Stumbling("plain", details=True))
    assert capsys.readouterr().err.endswith(", 3 centers\n")


def test_an_estimator_with_progress_can_be_cloned_and_pickled() -> None:
    model = fit(detailed())
    for copy in (clone(model), pickle.loads(pickle.dumps(model))):
        assert repr(copy.callback) == "progress('plain', details=True)"


def test_what_is_not_installed_or_not_known_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match='pass "auto", "rich", "tqdm", "plain" or "lines"'):
        powermeans.progress("html")  # type: ignore[arg-type]
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "rich" else find_spec(name)
    )
    with pytest.raises(ImportError, match="pip install rich"):
        powermeans.progress("rich")


@pytest.mark.parametrize(
    ("is_terminal", "in_notebook", "has_widgets", "installed", "kind"),
    [
        (True, False, False, {"rich", "tqdm"}, "rich"),
        (True, False, False, {"tqdm"}, "tqdm"),
        (True, False, False, set(), "plain"),
        (False, False, False, {"rich", "tqdm"}, "plain"),
        (False, True, True, {"rich", "tqdm"}, "tqdm"),
        (False, True, False, {"rich", "tqdm"}, "rich"),
        (False, True, False, {"tqdm"}, "tqdm"),
        (False, True, True, set(), "plain"),
    ],
)
def test_the_best_there_is_is_chosen(
    is_terminal: bool,
    in_notebook: bool,
    has_widgets: bool,
    installed: set[str],
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal() if is_terminal else io.StringIO())
    monkeypatch.setattr(fit_progress, "_in_notebook", lambda: in_notebook)
    monkeypatch.setattr(fit_progress, "_has_widgets", lambda: has_widgets)
    monkeypatch.setattr(fit_progress, "_is_installed", lambda name: name in installed)
    assert powermeans.progress().kind == kind


# What phases tell, and the clock between them.


def sweeps_of(model: PowerKMeans) -> str:
    return f"{model.n_iter_} sweeps"


def test_verbose_prints_the_phases_in_plain_words(capsys: pytest.CaptureFixture[str]) -> None:
    points = np.random.default_rng(0).normal(size=(1500, 6))
    model = PowerKMeans(12, random_state=0, verbose=1).fit(points)
    out, err = capsys.readouterr()
    assert err == ""
    lines = out.splitlines()
    phases = list(dict.fromkeys(re.split(r", (?=\d|about|at most)", line)[0] for line in lines))
    assert phases[:3] == ["checking the rows", "choosing seeds", "improving, start 1 of about 6"]
    assert "improving, start 6 of about 6" in phases
    ends = ["moving single rows", "final sweeps", "labelling the rows", sweeps_of(model)]
    assert [phase for phase in phases if phase in ends] == ends
    assert "power" not in out
    assert "inertia" not in out


def test_powers_and_inertias_are_printed_if_more_is_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    PowerKMeans(3, random_state=0, verbose=2).fit(POINTS)
    out = capsys.readouterr().out
    assert re.search("labelling the rows, sweep .*, power -inf, inertia", out)
    assert "Iteration 0, inertia" in out


def test_nothing_is_printed_unless_it_is_asked_for(capfd: pytest.CaptureFixture[str]) -> None:
    PowerKMeans(3, random_state=0).fit(POINTS)
    assert capfd.readouterr() == ("", "")


def test_the_word_progress_is_a_callback_that_shows_the_fit(
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = PowerKMeans(3, random_state=0, callback="progress").fit(POINTS)
    assert clone(model).callback == "progress"
    assert capsys.readouterr().err.startswith(sweeps_of(model))
    with pytest.raises(ValueError, match="'callback' parameter"):
        PowerKMeans(3, callback="bar").fit(POINTS)


@pytest.mark.parametrize("kind", ["plain", "rich", "tqdm"])
def test_a_slow_phase_shows_the_time_within_two_seconds(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit_progress, "_TICK_SECONDS", 0.02)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setenv("TERM", "xterm-256color")
    shown: list[str] = []

    def slow_seeds(points: Any, n_clusters: int, random_state: Any) -> Any:
        deadline = time.monotonic() + 2.0
        while time.monotonic() < deadline and not shown:
            time.sleep(0.02)
            shown.extend(
                re.findall(r"choosing seeds, (?!0 ms)[\d.]+ m?s so far", terminal.getvalue())
            )
        return points[:n_clusters]

    PowerKMeans(3, init=slow_seeds, callback=powermeans.progress(kind)).fit(POINTS)
    assert shown


def test_a_fit_without_a_sweep_leaves_the_line_to_its_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match="NaN"):
        PowerKMeans(1, callback=powermeans.progress("plain")).fit([[np.nan]])
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with pytest.raises(ValueError, match="NaN"):
        PowerKMeans(1, callback=powermeans.progress("plain")).fit([[np.nan]])
    assert re.fullmatch("\rchecking the rows, .*\r\x1b\\[K", terminal.getvalue())


def clocks() -> list[str]:
    return [thread.name for thread in threading.enumerate() if "powermeans" in thread.name]


@pytest.mark.parametrize("error", [None, RuntimeError, KeyboardInterrupt])
def test_no_clock_outlives_its_fit(
    error: type[BaseException] | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(fit_progress, "_TICK_SECONDS", 0.001)
    during: list[str] = []

    def seeds(points: Any, n_clusters: int, random_state: Any) -> Any:
        during.extend(clocks())
        if error is not None:
            raise error
        return points[:n_clusters]

    model = PowerKMeans(3, init=seeds, refine=0, callback=powermeans.progress("plain"))
    with contextlib.nullcontext() if error is None else pytest.raises(error):
        model.fit(POINTS)
    assert during == ["powermeans progress"]
    assert clocks() == []
    capsys.readouterr()
    time.sleep(0.02)
    assert capsys.readouterr() == ("", "")


def test_a_clock_ends_with_what_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_progress, "_TICK_SECONDS", 0.001)
    monkeypatch.setattr(fit_progress, "_open", lambda kind: Shown())
    tell = powermeans.progress("plain")
    tell.phase_begins("choosing seeds")
    (thread,) = (one for one in threading.enumerate() if "powermeans" in one.name)
    del tell
    gc.collect()
    thread.join(timeout=5)
    assert not thread.is_alive()


def test_callbacks_that_know_no_phases_are_left_alone() -> None:
    states: list[SweepState] = []
    PowerKMeans(3, random_state=0, callback=states.append, verbose=0).fit(POINTS)
    assert states


def test_several_callbacks_hear_the_same_and_each_may_stop_the_fit() -> None:
    heard: list[str] = []

    class Listener:
        def __call__(self, state: SweepState) -> bool:
            heard.append("sweep")
            return state.sweep == 2

        def phase_begins(self, words: str, seconds_left: object) -> None:
            heard.append(words)

        def fit_ended(self) -> None:
            heard.append("ended")

    both = fit_progress.Together(None, Listener(), heard.append)
    PowerKMeans(3, refine=0, random_state=0, callback=both).fit(POINTS)
    words = [one for one in heard if isinstance(one, str)]
    phases = ["checking the rows", "choosing seeds", "improving"]
    assert words == [*phases, "sweep", "sweep", "labelling the rows", "ended"]


def test_estimators_show_themselves_in_notebooks() -> None:
    page = PowerKMeans(n_clusters=5, power=-3.0).fit(POINTS)._repr_html_()
    assert "PowerKMeans" in page
    assert "n_clusters" in page


# Rows in parts, where passes may take long.


@pytest.fixture
def passing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock on which every look at it takes a second, so that each pass is a long one."""
    seconds = itertools.count()
    monkeypatch.setattr("powermeans.system.timer.time.monotonic", lambda: float(next(seconds)))


def parts_of(tmp_path: Path) -> dict[str, Any]:
    """Rows in eight parts: kept, in a file, and on Dask."""
    points = np.random.default_rng(0).normal(size=(2048, 2))
    np.save(tmp_path / "points.npy", points)
    return {
        "kept": open_data(points, rows_per_part=256),
        "file": open_data(tmp_path / "points.npy", rows_per_part=256),
        "dask": dask.array.from_array(points, chunks=(256, 2)),
    }


class Shown:
    """A display that keeps what it was to show."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def show(self, text: Any, n_sweeps: int, *, is_new: bool = False) -> None:
        self.texts.append(text())

    def close(self, text: str, n_sweeps: int) -> None:
        self.texts.append(f"closed: {text}")


@pytest.mark.usefixtures("passing")
@pytest.mark.parametrize("kind", ["kept", "file", "dask"])
def test_passes_over_parts_are_shown_with_the_time_left(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit_progress, "_open", lambda kind: shown)
    shown, tell = Shown(), detailed()
    model = PowerKMeans(3, refine=0, random_state=0, callback=tell)
    with dask.config.set(scheduler="threads"):
        model.fit(parts_of(tmp_path)[kind])
    assert shown.texts[0].startswith("checking the rows, ")
    first = next(text for text in shown.texts if "of a pass" in text)
    assert re.match("checking the rows, .*25% of a pass, about .* left of it", first)
    ahead = [text for text in shown.texts if re.search("sweep 2, .*88% of a pass, ab", text)]
    assert len(ahead) == 1
    assert shown.texts[-1].startswith("closed: ")


@pytest.mark.usefixtures("passing")
def test_passes_of_a_fit_that_fails_before_its_first_sweep_end_the_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fit_progress, "_open", lambda kind: shown)
    shown = Shown()
    points = np.ones((2048, 2))
    points[-1] = np.nan
    model = PowerKMeans(3, callback=powermeans.progress("plain"))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(open_data(lambda: iter(np.split(points, 8)), rows_per_part=256))
    assert shown.texts[-1] == "closed: ended before the first sweep"


@pytest.mark.parametrize("kind", ["kept", "file", "dask"])
def test_verbose_fits_print_how_far_long_passes_are(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = itertools.count(step=3)
    monkeypatch.setattr("powermeans.system.timer.time.monotonic", lambda: float(next(seconds)))
    with dask.config.set(scheduler="threads"):
        KMeans(3, random_state=0, verbose=1).fit(parts_of(tmp_path)[kind])
    printed = capsys.readouterr().out
    assert re.search(r"So far \d\d% of a pass, about \d.* left of it\.", printed)
    assert "Iteration 1, inertia" in printed
    KMeans(3, random_state=0).fit(parts_of(tmp_path)["kept"])
    assert capsys.readouterr().out == ""


@pytest.mark.usefixtures("passing")
def test_choosing_k_shows_its_passes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_progress, "_open", lambda kind: shown)
    shown = Shown()
    with powermeans.progress("plain") as tell:
        data = parts_of(tmp_path)["file"]
        powermeans.choose_k(data, [2, 3], criteria="bic", effort="fast", callback=tell)
    assert any("% of a pass, about" in text for text in shown.texts)


def test_a_clock_tells_nothing_of_short_passes_and_of_each_pass_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr("powermeans.system.timer.time.monotonic", lambda: now[0])
    timer = PassTimer()
    now[0] = 500.0  # long after it was made
    assert timer.words(1, 10) is None
    now[0] = 503.0
    assert timer.words(4, 10) == "40% of a pass, about 6.0 s left of it"
    assert timer.words(10, 10) == "100% of a pass"
    assert timer.words(1, 10) is None
    now[0] = 504.0
    assert timer.words(2, None) == "2 parts of a pass"
