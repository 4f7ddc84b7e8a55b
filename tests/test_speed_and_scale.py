"""The benchmarks of speed and scale take turns, ask the right code, and run on a tiny case."""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import apart, former, grid, machine, scale, speed, speed_report, turns
from benchmarks.apart import Answers, Code
from benchmarks.grid import GridPoint
from benchmarks.lloyd_peers import OURS, Runner
from benchmarks.machine import Bystanders
from benchmarks.speed_report import FORMER, SKLEARN
from powermeans import _native
from powermeans.points.opening import open_rows

SMALL = GridPoint("overlapping", 500, 3, 9)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(turns, "PAUSE_SECONDS", 0)


def test_contestants_take_turns_and_the_trial_does_not_count():
    order: list[str] = []

    def named(name: str, values: Iterator[float]) -> float:
        order.append(name)
        return next(values)

    a, b = iter([50.0, 1.0, 3.0, 2.0]), itertools.repeat(9.0)
    found = turns.in_turns({"a": lambda: named("a", a), "b": lambda: named("b", b)}, 3)
    assert order == ["a", "b"] * 4
    assert found["seconds"] == {"a": 2.0, "b": 9.0}


def test_who_is_hopeless_or_fails_is_left_out_with_the_reason():
    def fail() -> float:
        raise ValueError("long story\ntoo few features")

    contestants = {"ours": lambda: 7.0, "slow": lambda: 7.0, "fast": lambda: 1.0, "failing": fail}
    found = turns.in_turns(contestants, 1, may_be_left_out={"slow", "fast", "failing"})
    assert found["seconds"].keys() == {"ours", "fast"}
    assert found["left out"].keys() == {"slow", "failing"}
    assert found["left out"]["failing"] == "ValueError: too few features"


class Here:
    """Answers in this process."""

    def __init__(self) -> None:
        self.answers = Answers()

    def ask(self, question: str, n_threads: int = 1, **options: object) -> object:
        return apart.answer(self.answers, question, n_threads, options)


def settings_with(codes: dict) -> speed.Settings:
    return speed.Settings(n_threads=2, rounds=1, quick=True, codes=codes)


def test_seconds_of_a_fit_are_shared_among_the_iterations_made(monkeypatch):
    clock = itertools.count(step=12.0)
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    peers = [Runner(SKLEARN, "", "", lambda points, seeds, n: 4)]
    code = SimpleNamespace(ask=lambda *question, **options: 7.0)
    found = speed.lloyd_of_all(SMALL, "float32", peers, settings_with({"": code}))
    assert found["seconds"] == {OURS: 7.0, SKLEARN: 3.0}


def test_shortcuts_are_off_for_what_is_timed_without_them_and_on_again():
    answers, seen = Answers(), []
    answers._points = SMALL.load("float64")
    answers._seeds = grid.seeds_among(answers._points, 9)
    rows = open_rows(answers._points)

    class Watched:
        def sweep(self, *arguments: object) -> object:
            seen.append(_native.takes_shortcuts())
            return rows.sweep(*arguments)

    answers._rows = {1: Watched()}
    answers.sweep(-np.inf, shortcuts=False)
    assert set(seen) == {False}
    assert _native.takes_shortcuts()


def test_each_code_answers_about_the_points_that_all_were_given(tmp_path, monkeypatch):
    code = Code()
    try:
        settings = settings_with({"": code, FORMER: Here()})
        points, seeds = settings.give(SMALL, "float32")
        by_code = settings.asked_of_each("seeds", "inertia", centers=seeds)
        expected = open_rows(points).assign(seeds.astype(np.float64))[1]
        assert [ask() for ask in by_code.values()] == [expected] * 2
        assert [*by_code] == ["seeds", f"{FORMER}seeds"]
        with pytest.raises(RuntimeError, match="InvalidParameterError: The 'random_state'"):
            code.ask("seed", random_state="none")
        if sys.platform.startswith("linux"):
            risen = code.ask("memory", estimator="KMeans", shape=(500, 2, 3), dtype="float32")
            assert 0 <= risen < 50
    finally:
        code.end()
    # Another code than the one of the folder is refused.
    monkeypatch.setattr(apart, "environment", lambda folder: dict(os.environ))
    with pytest.raises(RuntimeError, match="was imported, and not"):
        Code(tmp_path)


POINT = SMALL.described()
LLOYD = {
    "point": POINT,
    "dtype": "float32",
    "seconds": {OURS: 1.0, f"{FORMER}{OURS}": 2.0, SKLEARN: 4.0, "faiss": 3.0},
}
FITS = {
    "point": POINT,
    "dtype": "float64",
    "runs": {name: [{"seconds": 2.0}, {"seconds": 4.0}] for name in (*speed.FITS, "former: fast")},
}


def arguments_for(*parts: str) -> argparse.Namespace:
    given = {"name": "tried", "threads": 2, "rounds": 3, "quick": False, "parts": list(parts)}
    return argparse.Namespace(**given, former=None, anew=False)


def test_parts_that_are_not_asked_for_stay_as_they_were(tmp_path, monkeypatch):
    code = SimpleNamespace(made_with="x", pid=1, end=lambda: None)
    monkeypatch.setattr(machine, "RESULTS", tmp_path)
    monkeypatch.setattr(speed, "runners", lambda n_threads: [])
    monkeypatch.setattr(speed, "Code", lambda *folder: code)
    monkeypatch.setattr(former, "installed", lambda commit: Path(commit))
    monkeypatch.setattr(former, "commit_of", lambda ref: f"commit of {ref}")
    monkeypatch.setitem(speed.PARTS, "lloyd", lambda settings: iter([LLOYD]))
    monkeypatch.setitem(speed.PARTS, "fits", lambda settings: iter([FITS]))
    noise = iter([0.0, 1.5, 0.0, 0.0])
    monkeypatch.setattr(Bystanders, "processors", lambda _: next(noise))
    speed.run(arguments_for("lloyd"))
    speed.run(arguments_for("fits"))
    figures = machine.read("tried", "speed")["figures"]
    assert list(figures["parts"]) == ["lloyd", "fits"]
    assert [flaw.split(":")[0] for flaw in speed_report.flaws(figures)] == ["fits"]
    assert speed_report.lloyd_table(figures)[1][1:] == ["1000", "4000", "3000", "4.00", "3.00"]
    assert speed_report.fit_table(figures)[1][3:] == ["3", "3", "3", "3", "30"]
    assert [row[:4] for row in speed_report.former_table(figures)[1:]] == [
        ["lloyd", OURS, "1", "2.000"],
        ["fits", "fast", "1", "1.000"],
    ]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits are those of Linux")
def test_a_file_of_four_times_the_limit_is_fitted_only_part_by_part():
    pytest.importorskip("pyarrow")
    with scale.files(32) as paths:
        limit = paths[0].stat().st_size // scale.TIMES_THE_LIMIT
        at_once, in_parts = (
            scale.in_a_process(scale.Task(str(paths[0]), "KMeans", 4, limit, in_memory=in_memory))
            for in_memory in (True, False)
        )
    assert "refused" in at_once
    assert in_parts["peak"] - in_parts["held before"] < limit
