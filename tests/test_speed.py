"""The benchmark of speed holds the right ratio against the right bound, and hides nothing."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks import grid, machine, speed, speed_parts, speed_report, speed_targets, turns
from benchmarks.bystanders import Bystanders
from benchmarks.grid import GridPoint
from benchmarks.lloyd_peers import OURS, Runner
from benchmarks.speed_targets import HARD, HARDER, HARDER_IN_FULL, SKLEARN, SOFT, Limits, lines
from powermeans import _native
from powermeans.rows import open_rows
from powermeans.rules import Hard

SMALL = GridPoint("overlapping", 1000, 2, 100)
WIDE = GridPoint("overlapping", 1000, 64, 10)
RATES = {
    "multiply-adds a second": {"float32": 2e6, "float64": 1e6},
    "bytes a second by size of array": {"1000": 8e4, "100000": 1e4},
}
CEILINGS = {"1": RATES, "2": RATES}


def cell(point: GridPoint, dtype: str = "float64", **figures: object) -> dict:
    return {"point": point.described(), "dtype": dtype, "bystanders": 0.0, **figures}


def figures_of(**parts: list[dict]) -> dict:
    about = {"date": "2026-01-02", "command": "python -m benchmarks.speed", "made with": "x"}
    return {
        "name": "tried",
        "made with": "x",
        "settings": {"threads": 2, "rounds": 3},
        "parts": {name: {**about, "cells": cells} for name, cells in parts.items()},
        "methods": {OURS: {"label": "ours", "made with": "x"}},
    }


def run_of(seconds: float, inertia: float) -> dict:
    return {"seconds": seconds, "inertia": inertia}


GOOD_LLOYD = cell(SMALL, seconds={OURS: 1.0, SKLEARN: 5.0, "faiss": 1.0})
GOOD_POWER = cell(SMALL, seconds={HARD: 1.0, SOFT: 5.0, HARDER: 1.0, HARDER_IN_FULL: 3.0})
GOOD_SEEDING = cell(SMALL, ours=[run_of(1, 1.03)], sklearn=[run_of(5, 1.0)])
GOOD_RUNS = {
    "sklearn": [run_of(1, value) for value in np.linspace(10, 11, 10)],
    "fast": [run_of(1, 10.5)],
    "balanced": [run_of(3.33, 10.0)],
}
GOOD_FITS = cell(SMALL, runs=GOOD_RUNS)
GOOD_THREADS = cell(SMALL, what="hard", seconds={"1": 1.7, "2": 1.0})
GOOD_TINY = cell(SMALL, what="tiny fit", seconds={"1": 1.0, "2": 1.05})
GOOD_MEMORY = cell(
    SMALL, estimator="KMeans", **{"peak over input MB": 60.0, "allowed MB": 60.0, "input MB": 100.0}
)
GOOD = {
    "ceilings": [{"by threads": CEILINGS, "bystanders": 0.0}],
    "lloyd": [GOOD_LLOYD],
    "power": [GOOD_POWER],
    "seeding": [GOOD_SEEDING],
    "fits": [GOOD_FITS],
    "threads": [GOOD_THREADS, GOOD_TINY],
    "memory": [GOOD_MEMORY],
}


def missed(**parts: list[dict]) -> list[str]:
    return [line.target for line in lines(figures_of(**parts)) if not line.is_met]


# Targets.


def test_good_figures_meet_every_target_at_its_very_bound() -> None:
    all_lines = lines(figures_of(**GOOD))
    assert missed(**GOOD) == []
    assert len({line.target for line in all_lines}) == len(all_lines) == 14


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"faiss": 0.99}, ["Lloyd: as fast as any peer"]),
        ({SKLEARN: 4.99}, ["Lloyd: 5 x scikit-learn, d <= 3, k >= 100"]),
    ],
)
def test_one_faster_peer_misses_a_target_of_lloyd(changed: dict, expected: list[str]) -> None:
    assert missed(lloyd=[{**GOOD_LLOYD, "seconds": GOOD_LLOYD["seconds"] | changed}]) == expected


def test_ratios_to_sklearn_are_averaged_geometrically() -> None:
    slow = cell(WIDE, seconds={OURS: 1.0, SKLEARN: 1.0})
    fast = cell(WIDE, "float32", seconds={OURS: 1.0, SKLEARN: 4.0})
    line = next(x for x in lines(figures_of(lloyd=[slow, fast])) if "geometric" in x.target)
    assert line.measured == pytest.approx(2)
    faster = cell(WIDE, "float32", seconds={OURS: 1.0, SKLEARN: 3.9})
    assert missed(lloyd=[slow, faster]) == ["Lloyd: 2 x scikit-learn, geometric mean"]


@pytest.mark.parametrize(
    ("n_features", "dtype", "bound"),
    [
        (64, "float32", 2.3),
        (63, "float32", 3.0),
        (16, "float64", 3.0),
        (15, "float64", 5.0),
        (15, "float32", 3.5),
    ],
)
def test_a_power_sweep_may_take_longer_in_few_features(
    n_features: int, dtype: str, bound: float
) -> None:
    point = GridPoint("overlapping", 1000, n_features, 10)
    seconds = {HARD: 1.0, HARDER: 1.0, HARDER_IN_FULL: 1.0}
    for ratio, n_missed in ((bound, 0), (bound + 0.01, 1)):
        assert len(missed(power=[cell(point, dtype, seconds={**seconds, SOFT: ratio})])) == n_missed


def test_a_hard_power_is_held_against_itself_in_full_where_centers_are_many() -> None:
    seconds = {**GOOD_POWER["seconds"], HARDER: 1.01}
    assert missed(power=[{**GOOD_POWER, "seconds": seconds}]) == [
        "Power -30: beside itself without shortcuts"
    ]
    assert missed(power=[cell(WIDE, seconds={**seconds, SOFT: 2.0})]) == []


@pytest.mark.parametrize(("n_clusters", "bound"), [(100, 5), (1000, 20)])
def test_seeding_more_centers_is_to_save_more(n_clusters: int, bound: int) -> None:
    point = GridPoint("overlapping", 2000, 2, n_clusters)
    ours, theirs = [run_of(1, 1.0)], [run_of(bound - 0.1, 1.0)]
    assert missed(seeding=[cell(point, ours=ours, sklearn=theirs)]) == [
        f"Seeding: {bound} x scikit-learn"
    ]
    worse = [run_of(0.1, 1.04)]
    assert missed(seeding=[cell(point, ours=worse, sklearn=theirs)]) == ["Seeding: potential"]


@pytest.mark.parametrize(
    ("name", "run", "expected"),
    [
        ("balanced", run_of(1, 10.001), "Default: inertia of ten starts"),
        ("balanced", run_of(3.34, 10), "Default: a third of the time of ten starts"),
        ("fast", run_of(1, 10.51), "Fast: inertia of one start"),
        ("fast", run_of(1.01, 10), "Fast: time of one start, geometric mean"),
    ],
)
def test_a_fit_is_to_be_as_low_and_as_fast(name: str, run: dict, expected: str) -> None:
    assert missed(fits=[cell(SMALL, runs={**GOOD_RUNS, name: [run]})]) == [expected]


def test_fewer_starts_than_ten_count_as_the_time_of_ten_and_are_told() -> None:
    runs = {**GOOD_RUNS, "sklearn": GOOD_RUNS["sklearn"][:4]}
    line = next(x for x in lines(figures_of(fits=[cell(SMALL, runs=runs)])) if "third" in x.target)
    assert line.is_met
    assert line.note == "4 starts of 10"


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        ({"seconds": {"1": 1.69, "2": 1.0}}, "Threads: 1.7 x one thread"),
        (
            {"what": "tiny fit", "seconds": {"1": 1.0, "2": 1.06}},
            "Threads: no loss on tiny input",
        ),
    ],
)
def test_threads_are_to_gain_on_much_and_lose_on_nothing(broken: dict, expected: str) -> None:
    assert missed(threads=[{**GOOD_THREADS, **broken}]) == [expected]


def test_memory_above_what_is_allowed_is_missed() -> None:
    assert len(missed(memory=[{**GOOD_MEMORY, "peak over input MB": 60.1}])) == 1


def test_the_worst_line_is_the_one_that_misses_its_own_bound_by_most() -> None:
    few = cell(GridPoint("overlapping", 9, 2, 3), seconds={HARD: 1, SOFT: 5.5, HARDER: 1})
    many = cell(WIDE, seconds={HARD: 1, SOFT: 4.6, HARDER: 1})
    of = lines(figures_of(power=[few, many]))
    assert speed_targets.worst(of).where.startswith(WIDE.name)


# Limits.


def test_a_limit_is_the_larger_of_arithmetic_and_reading() -> None:
    limits = Limits(CEILINGS, 2)
    # 1000 x 2 x 100 multiply-adds at 1e6 a second; 16 000 bytes at the pace of 1000
    assert limits.seconds(cell(SMALL)) == pytest.approx(max(0.2, 16_000 / 8e4))
    # 512 000 bytes at the pace of 100 000
    assert limits.seconds(cell(WIDE)) == pytest.approx(512_000 / 1e4)
    assert limits.seconds(cell(SMALL, "float32"), passes=4) == pytest.approx(0.4)
    assert limits.fraction(cell(SMALL), 0.8) == pytest.approx(0.25)


def test_arrays_smaller_than_any_that_was_read_are_read_as_the_smallest() -> None:
    assert speed_targets.bandwidth({"1000": 5.0, "4000": 3.0}, 10) == 5.0
    assert speed_targets.bandwidth({"1000": 5.0, "4000": 3.0}, 3999) == 5.0
    assert speed_targets.bandwidth({"1000": 5.0, "4000": 3.0}, 4000) == 3.0


def test_without_ceilings_there_is_no_fraction() -> None:
    assert [line.fraction for line in lines(figures_of(lloyd=[GOOD_LLOYD]))] == [None] * 3


# Measuring.


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PAUSE_SECONDS", 0)


@pytest.mark.usefixtures("no_pause")
def test_contestants_take_turns_and_the_trial_does_not_count() -> None:
    order: list[str] = []

    def named(name: str, values: Iterator[float]) -> float:
        order.append(name)
        return next(values)

    a, b = iter([50.0, 1.0, 3.0, 2.0]), itertools.repeat(9.0)
    found = turns.in_turns({"a": lambda: named("a", a), "b": lambda: named("b", b)}, 3)
    assert order == ["a", "b"] * 4
    assert found["seconds"] == {"a": 2.0, "b": 9.0}
    assert found["rounds"]["a"] == [1.0, 3.0, 2.0]


@pytest.mark.usefixtures("no_pause")
def test_who_is_hopeless_or_fails_is_left_out_with_the_reason() -> None:
    def fail() -> float:
        raise ValueError("long story\ntoo few features")

    contestants = {"ours": lambda: 7.0, "slow": lambda: 7.0, "fast": lambda: 1.0, "failing": fail}
    found = turns.in_turns(contestants, 1, may_be_left_out={"slow", "fast", "failing"})
    assert found["seconds"].keys() == {"ours", "fast"}
    assert found["left out"] == {
        "slow": "7 s in a trial: too slow to be timed further",
        "failing": "ValueError: too few features",
    }


@pytest.mark.usefixtures("no_pause")
def test_a_trial_of_its_own_is_all_that_the_hopeless_are_asked_for() -> None:
    def ask() -> float:
        raise AssertionError("asked in earnest")

    contestants = {"slow": ask, "fast": lambda: 1.0}
    trials = {"slow": lambda: 9.0, "fast": lambda: 1.0}
    found = turns.in_turns(contestants, 2, trials=trials, may_be_left_out={"slow"})
    assert found["seconds"] == {"fast": 1.0}


@pytest.mark.usefixtures("no_pause")
def test_random_states_are_fewer_where_each_takes_long() -> None:
    long = turns.SECONDS_FOR_SEVERAL / 2
    assert len(turns.several(lambda state: run_of(0.0, state), 5)) == 5
    assert [r["inertia"] for r in turns.several(lambda s: run_of(long, s), 5)] == [0, 1]


@pytest.mark.usefixtures("no_pause")
def test_seconds_of_a_fit_are_shared_among_the_iterations_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = itertools.count(step=12.0)
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    able = [Runner(name, "", "", lambda points, seeds, n: 4) for name in (OURS, SKLEARN)]
    found = speed_parts.lloyd_beside_peers(SMALL, "float32", able, 2)
    assert found["seconds"] == {OURS: 3.0, SKLEARN: 3.0}


@pytest.mark.usefixtures("no_pause")
def test_shortcuts_are_off_for_what_is_timed_without_them_and_on_again() -> None:
    points = SMALL.load("float64")
    rows = open_rows(points)
    seen: list[bool] = []

    class Watched:
        def sweep(self, *arguments: object) -> object:
            seen.append(_native.takes_shortcuts())
            return rows.sweep(*arguments)

    speed_parts.sweeping(Watched(), points[:9].copy(), Hard(), shortcuts=False)()
    assert set(seen) == {False}
    assert _native.takes_shortcuts()


def test_seeds_are_different_points_even_among_repeated_ones() -> None:
    points = np.repeat(np.arange(50.0)[:, None], 20, axis=0)
    seeds = grid.seeds_among(points, 30)
    assert len(np.unique(seeds)) == 30


@pytest.mark.usefixtures("no_pause")
def test_our_lloyd_makes_the_iterations_that_it_is_told_to() -> None:
    from benchmarks.lloyd_peers import ours

    points = SMALL.load("float32")
    (runner,) = ours(2)
    assert runner.run(points, grid.seeds_among(points, 5), 3) == 3


# Storing and reporting.


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(machine, "RESULTS", tmp_path)
    monkeypatch.setattr(speed, "runners", lambda n_threads: [])
    monkeypatch.setitem(speed.PARTS, "lloyd", lambda settings: iter([GOOD_LLOYD]))
    monkeypatch.setitem(speed.PARTS, "memory", lambda settings: iter([GOOD_MEMORY]))
    return tmp_path


def arguments_for(*parts: str, **changed: object) -> argparse.Namespace:
    defaults = {"name": "tried", "threads": 2, "rounds": 3, "quick": False, "parts": list(parts)}
    return argparse.Namespace(**{**defaults, **changed})


@pytest.mark.usefixtures("results")
def test_parts_that_are_not_asked_for_stay_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = iter([0.0, 1.5, 0.0, 0.0])
    monkeypatch.setattr(Bystanders, "processors", lambda _: next(noise))
    speed.run(arguments_for("lloyd"))
    speed.run(arguments_for("memory"))
    figures = machine.read("tried", "speed")["figures"]
    assert list(figures["parts"]) == ["lloyd", "memory"]
    assert len(figures["targets"]) == 4
    assert [flaw.split(":")[0] for flaw in speed_report.flaws(figures)] == ["memory"]


@pytest.mark.usefixtures("results")
def test_parts_of_other_settings_are_not_mixed() -> None:
    speed.run(arguments_for("lloyd"))
    with pytest.raises(SystemExit, match="run all parts anew"):
        speed.run(arguments_for("memory", threads=1))


def test_parts_measured_with_other_code_are_flagged() -> None:
    figures = figures_of(lloyd=[GOOD_LLOYD])
    assert speed_report.flaws(figures) == []
    assert "other code: x" in speed_report.flaws({**figures, "made with": "y"})[0]


def stored(**parts: list[dict]) -> dict:
    return {
        "processor": "a processor",
        "versions": {"instruction set": "some", "python": "3", "numpy": "2"},
        "figures": figures_of(**parts),
    }


def test_the_report_says_for_every_target_whether_it_is_met() -> None:
    slow = cell(WIDE, seconds={OURS: 2.0, SKLEARN: 1.0})
    report = speed_report.as_report(figures_of(**{**GOOD, "lloyd": [GOOD_LLOYD, slow]}))
    for line in lines(figures_of(**GOOD)):
        assert line.target in report
    assert " no " in report
    assert "1 of 2" in report


def test_the_page_says_how_it_was_measured_and_where_we_are_slower() -> None:
    slow = cell(WIDE, seconds={OURS: 2.0, SKLEARN: 1.0})
    block = speed_report.as_page(stored(**{**GOOD, "lloyd": [GOOD_LLOYD, slow]}))
    for text in (
        "2026-01-02",
        "`python -m benchmarks.speed`",
        "a processor",
        "Where they are missed",
    ):
        assert text in block
    assert "Where they are missed" not in speed_report.as_page(stored(**GOOD))


def test_the_page_has_a_place_for_the_figures() -> None:
    text = speed_report.PAGE.path.read_text(encoding="utf-8")
    block = (
        speed_report.as_page(machine.read("speed", "speed"))
        if machine.stored_at("speed").is_file()
        else speed_report.as_page(stored(**GOOD))
    )
    filled = speed_report.PAGE.fill(text, block)
    assert block in filled
    if machine.stored_at("speed").is_file():
        assert filled == text
