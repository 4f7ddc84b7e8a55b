"""Benchmarks measure what they say, believe no claims, and lose nothing."""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import operator
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks import (
    apart,
    families,
    former,
    machine,
    one_cluster_sets,
    pages,
    peers,
    quality,
    quality_report,
    records,
    scale,
    speed,
    speed_report,
    turns,
)
from benchmarks.apart import Answers, Code
from benchmarks.lloyd_peers import OURS, Runner
from benchmarks.machine import Bystanders
from benchmarks.problems import GridPoint, Problem, all_problems, chosen_rows
from benchmarks.quality_report import Record, contest, flaws, inertia, summary
from benchmarks.speed_report import FORMER, SKLEARN
from powermeans.points.opening import open_rows

SETTINGS = {"seeds": [0], "threads": 2, "data seed": 0}
CORNERS = np.array([[0.0, 0.0], [0.0, 2.0], [9.0, 0.0], [9.0, 4.0]])
BEST = np.array([[0.0, 1.0], [9.0, 2.0]])


def cell(value: float, seconds: float = 1.0, **claimed: float) -> dict:
    return {"inertia": value, "seconds": seconds, **claimed}


def record_of(inertias: Mapping[str, list[float]], best_known: float | None = None) -> Record:
    """One inertia for each method and problem, the problems numbered from zero."""
    numbers = range(max(map(len, inertias.values())))
    about = {"group": "real", "n_points": 9, "n_features": 2, "n_clusters": 3}
    return Record(
        {
            str(i): {**about, "best_known": best_known, "bystanders": 0.0, "drift": 0.0}
            for i in numbers
        },
        {
            str(i): {name: {"0": cell(of[i])} for name, of in inertias.items() if i < len(of)}
            for i in numbers
        },
    )


def test_inertia_and_excess_are_those_by_hand_and_wins_count_only_beyond_a_draw():
    assert inertia(CORNERS, BEST) == 1 + 1 + 4 + 4
    assert inertia(np.array([[1e8], [1e8 + 1]]), np.array([[1e8 + 0.5]])) == 0.5
    # Excess is measured from the lowest that is found or known.
    for inertias, best_known, excess in (
        ({"a": [10.0], "b": [12.0]}, None, {"a": 0.0, "b": 0.2}),
        ({"a": [10.0]}, 8.0, {"a": 0.25}),
        ({"a": [8.0]}, 10.0, {"a": 0.0}),
    ):
        found = record_of(inertias, best_known).excess
        assert {name: of["0"] for name, of in found.items()} == pytest.approx(excess)
    # Wins count only where both ran.
    record = record_of({"a": [100.0, 100.0, 102.0, 1.0], "b": [100.005, 101.0, 100.0]})
    assert contest(record, "a", "b") == contest(record, "b", "a") == (1, 1)


def test_false_claims_and_more_effort_with_a_worse_result_are_flagged():
    cells = {"flattering": {"0": cell(10.0, claimed=9.9)}, "silent": {"0": cell(10.0)}}
    (said,) = flaws(Record({"p": {"bystanders": 0.0, "drift": 0.0}}, {"p": cells}))
    assert "flattering on p claims an inertia of 9.9; that of its centers is 10" in said
    (said,) = flaws(record_of({"balanced": [10.0, 10.0], "thorough": [10.0, 11.0]}))
    assert "thorough is worse than balanced on 1" in said


@pytest.mark.parametrize("family", families.FAMILIES)
def test_a_family_draws_finite_points_of_the_size_asked_for(family):
    points = families.draw(family, 2, 9)
    assert (points.shape[1], np.isfinite(points).all()) == (2, True)
    assert families.LEAST_POINTS - 9 < len(points) <= families.LEAST_POINTS


def test_sets_of_one_cluster_are_many_and_drawn_twice_the_same_in_the_size_of_their_name():
    sets = [one for shape in one_cluster_sets.SHAPES for one in one_cluster_sets.sets_of(shape)]
    counted = [one for one in sets if one.shape not in one_cluster_sets.ARGUABLE]
    assert len({str(one) for one in sets}) == len(sets)
    assert len(counted) >= 400
    assert sum(one.n_points >= 20_000 for one in counted) >= 30
    assert sum(one.n_features >= 100 for one in counted) >= 40
    smallest = {one.shape: one for one in sorted(sets, key=lambda one: -one.n_points)}
    for one in smallest.values():
        points = one.points()
        assert f", {len(points)} × {points.shape[1]}, seed {one.seed}" in str(one)
        assert (points.dtype, np.isfinite(points).all()) == (np.float64, True)
        assert len(np.unique(points, axis=0)) > 1
        np.testing.assert_array_equal(one.points(), points)


def test_places_are_as_far_from_their_nearest_as_asked():
    for places, distance in (families.spaced, np.min), (families.scattered, np.mean):
        drawn = places(40, 3, 4.0, np.random.default_rng(0))
        distances = np.sort(np.linalg.norm(drawn[:, None] - drawn, axis=2), axis=1)
        assert distance(distances[:, 1]) == pytest.approx(4.0)


def test_the_rows_that_count_are_read_from_a_phrase():
    points = np.array([[1.0], [np.nan], [3.0]])
    phrases = ("all", "the first 1", "the 2 rows without missing values")
    assert [len(chosen_rows(points, phrase)) for phrase in phrases] == [3, 1, 2]
    for wrong in ("the 3 rows without missing values", "every other row"):
        with pytest.raises(ValueError, match=wrong):
            chosen_rows(points, wrong)


def test_a_process_that_died_is_given_up(monkeypatch):
    monkeypatch.setattr(peers, "answer_for_hgmeans", operator.methodcaller("recv"))
    with pytest.raises(peers.Lost, match="died"):
        peers.HgMeansProcess().ask(CORNERS, 2, 1, patience=60)


def test_our_methods_claim_the_truth():
    for method in peers.build_methods(["fast", "lloyd", "paper"], 1):
        fit = method.fit(CORNERS, 2, 0, {})
        assert fit.claimed == pytest.approx(inertia(CORNERS, fit.centers))


@dataclasses.dataclass
class Made:
    """A method that gives what it is told to."""

    name: str
    centers: NDArray = dataclasses.field(default_factory=lambda: BEST)
    claimed: float | None = 10.0
    made_with: str = "made up 1.0"
    label: str = "made up"
    trouble: Callable[[], None] | None = None
    fits: int = 0

    def fit(
        self, points: NDArray, n_clusters: int, seed: int, seconds_of: Mapping[str, float]
    ) -> peers.Fit:
        self.fits += 1
        if self.trouble is not None:
            self.trouble()
        return peers.Fit(self.centers, self.claimed, 0.5)


def problem_named(name: str) -> Problem:
    return Problem(name, "real", 2, lambda: CORNERS, best_known=10.0)


def record_measured(*methods: Made) -> Record:
    figures = quality.new_figures(SETTINGS)
    quality.measure(problem_named("corners/2"), methods, range(1), figures)
    return Record(figures["problems"], figures["cells"])


DEFAULTS = {
    "name": "tried", "methods": None, "threads": 2, "seeds": 1, "data_seed": 0,
    "resume": False, "quick": False, "redo_disturbed": False, "jobs": 1,
}  # fmt: skip


@pytest.fixture
def run_with(monkeypatch, tmp_path):
    """A run of these methods on problems of these names, stored and read again."""

    def run(methods: list[Made], names: list[str], **changed: object) -> dict:
        monkeypatch.setattr(quality, "build_methods", lambda *_: methods)
        monkeypatch.setattr(quality, "choose", lambda _: [problem_named(name) for name in names])
        quality.run(argparse.Namespace(**{**DEFAULTS, **changed}))
        return machine.read("tried", "quality")

    monkeypatch.setattr(machine, "RESULTS", tmp_path)
    monkeypatch.setattr(quality, "warm_up", lambda _: None)
    monkeypatch.setattr(machine, "seconds_of_a_loop", lambda: 1.0)
    return run


def test_an_inertia_is_computed_anew_whatever_is_claimed_and_errors_are_reported():
    def fail():
        raise MemoryError("no room\nat all")

    odd = {
        str(number): np.array(centers)
        for number, centers in enumerate(([[0.0] * 2] * 3, [[0.0]] * 2, [[0.0, 1], [np.nan, 2]]))
    }
    made = (Made(name, centers=centers) for name, centers in odd.items())
    record = record_measured(Made("liar", claimed=1.0), Made("failing", trouble=fail), *made)
    assert record.cells["corners/2"]["liar"]["0"]["inertia"] == 10.0
    assert "liar" in flaws(record)[0]
    assert record.cells["corners/2"]["failing"]["0"] == {"error": "MemoryError: no room"}
    assert all("centers" in record.cells["corners/2"][name]["0"]["error"] for name in odd)
    assert [(line["method"], line["errors"]) for line in summary(record)] == [("liar", 0)]


def test_a_stored_run_is_read_back_and_resuming_measures_again_what_has_changed(run_with, tmp_path):
    with pytest.raises(SystemExit, match=r"run python -m benchmarks\.quality"):
        machine.read("tried", "quality")
    same, changed = Made("same"), Made("changed", centers=BEST + 1)
    stored = run_with([same, changed], ["corners/2"])
    assert [one["method"] for one in stored["figures"]["summary"]] == ["changed", "same"]
    assert {"date", "command", "processor", "versions"} <= stored.keys()
    assert [file.name for file in tmp_path.iterdir()] == ["tried.json"]
    assert '\n    "same": {"0":{"inertia":10.0,' in (tmp_path / "tried.json").read_text()
    improved = Made("changed", made_with="made up 2.0")
    stored = run_with([same, improved], ["corners/2"], resume=True)
    assert (same.fits, improved.fits) == (1, 1)
    assert stored["figures"]["cells"]["corners/2"]["changed"]["0"]["inertia"] == 10.0
    with pytest.raises(SystemExit, match="would mix threads 2 with 1"):
        run_with([same], ["corners/2"], resume=True, threads=1)


def test_an_interrupt_leaves_the_problems_before_it(run_with, monkeypatch):
    method, names, noise = Made("slow"), ["first/2", "second/2"], iter([0.0, 1.5, 0.0])

    def interrupt():
        if method.fits == 2:
            raise KeyboardInterrupt

    method.trouble = interrupt
    monkeypatch.setattr(Bystanders, "processors", lambda _: next(noise))
    with pytest.raises(KeyboardInterrupt):
        run_with([method], names)
    assert list(machine.read("tried", "quality")["figures"]["cells"]) == ["first/2"]
    # What was disturbed is flagged, and can be measured again.
    for again, said in ({}, ["during 1 of 2 problems"]), ({"redo_disturbed": True}, []):
        figures = run_with([method], names, resume=True, **again)["figures"]
        assert list(figures["cells"]) == names
        found = flaws(Record(figures["problems"], figures["cells"]))
        assert [words in one for words, one in zip(said, found, strict=True)] == [True] * len(said)
    assert method.fits == 4
    assert len(figures["runs"]) == 3


def test_filling_a_page_replaces_what_is_between_the_marks_and_nothing_else():
    page = f"before\n{quality_report.PAGE.begin}\nold\n{pages.END}\nafter\n"
    filled = quality_report.PAGE.fill(page, "new")
    assert filled == f"before\n{quality_report.PAGE.begin}\n\nnew\n\n{pages.END}\nafter\n"
    assert quality_report.PAGE.fill(filled, "new") == filled
    with pytest.raises(SystemExit, match="no place for figures"):
        quality_report.PAGE.fill("before\nafter\n", "new")


# Speed and scale.

SMALL = GridPoint("overlapping", 500, 3, 9)


def test_contestants_take_turns_and_who_is_hopeless_or_fails_is_left_out(monkeypatch):
    monkeypatch.setattr(turns, "PAUSE_SECONDS", 0)
    order: list[str] = []

    def named(name: str, values: Iterator[float]) -> float:
        order.append(name)
        return next(values)

    def fail() -> float:
        raise ValueError("long story\ntoo few features")

    # The trial does not count.
    a, b = iter([50.0, 1.0, 3.0, 2.0]), itertools.repeat(9.0)
    found = turns.in_turns({"a": lambda: named("a", a), "b": lambda: named("b", b)}, 3)
    assert order == ["a", "b"] * 4
    assert found["seconds"] == {"a": 2.0, "b": 9.0}
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
    monkeypatch.setattr(turns, "PAUSE_SECONDS", 0)
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    peers = [Runner(SKLEARN, "", "", lambda points, seeds, n: 4)]
    code = SimpleNamespace(ask=lambda *question, **options: 7.0)
    found = speed.lloyd_of_all(SMALL, "float32", peers, settings_with({"": code}))
    assert found["seconds"] == {OURS: 7.0, SKLEARN: 3.0}


def test_each_code_answers_about_the_points_that_all_were_given(tmp_path, monkeypatch):
    code = Code()
    try:
        settings = settings_with({"": code, FORMER: Here()})
        points, seeds = settings.give(SMALL, "float32")
        by_code = settings.asked_of_each("seeds", "inertia", centers=seeds)
        expected = open_rows(points).assign(seeds.astype(np.float64))[1]
        assert [ask() for ask in by_code.values()] == [expected] * 2
        assert [*by_code] == ["seeds", f"{FORMER}seeds"]
        monkeypatch.setattr(apart._native, "take_shortcuts", (taken := []).append)
        settings.codes[FORMER].ask("sweep", power=-np.inf, shortcuts=False)
        assert taken == [False, True]
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


def test_parts_that_are_not_asked_for_stay_as_they_were(tmp_path, monkeypatch):
    code = SimpleNamespace(made_with="x", pid=1, end=lambda: None)
    monkeypatch.setattr(machine, "RESULTS", tmp_path)
    monkeypatch.setattr(speed, "runners", lambda n_threads: [])
    monkeypatch.setattr(speed, "Code", lambda *folder: code)
    monkeypatch.setattr(former, "installed", lambda commit: Path(commit))
    monkeypatch.setattr(former, "commit_of", lambda ref: f"commit of {ref}")
    seconds = {OURS: 1.0, f"{FORMER}{OURS}": 2.0, SKLEARN: 4.0, "faiss": 3.0}
    lloyd = {"point": SMALL.described(), "dtype": "float32", "seconds": seconds}
    runs = {name: [{"seconds": 2.0}, {"seconds": 4.0}] for name in (*speed.FITS, "former: fast")}
    fits = {"point": SMALL.described(), "dtype": "float64", "runs": runs}
    for name, part in ("lloyd", lloyd), ("fits", fits):
        monkeypatch.setitem(speed.PARTS, name, lambda settings, part=part: iter([part]))
    noise = iter([0.0, 1.5, 0.0, 0.0])
    monkeypatch.setattr(Bystanders, "processors", lambda _: next(noise))
    given = {"name": "tried", "threads": 2, "rounds": 3, "quick": False, "former": None}
    for part in ("lloyd", "fits"):
        speed.run(argparse.Namespace(**given, anew=False, parts=[part]))
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


def test_bits_are_compared_with_those_of_a_fit_without_a_limit(monkeypatch):
    def fit(task):
        found = {"centers": task.file[-3:], "inertia": 1.0, "sweeps": 3, "held before": 2e6}
        is_refused = task.in_memory and task.limit
        return {"refused": "MemoryError: no room"} if is_refused else {**found, "peak": 5e6}

    monkeypatch.setattr(scale, "N_BLOCKS", 1)
    monkeypatch.setattr(scale, "in_a_process", fit)
    found = [(line["same bits"], line["rise, MB"]) for line in scale.memory()]
    assert found == [("yes", "3"), ("no", "3")] * 2 + [("", "MemoryError")]


class FirstRows:
    """The first points as centers, with scikit-learn's interface and without a seed."""

    def __init__(self, n_clusters: int) -> None:
        self.n_clusters = n_clusters

    def fit(self, points: NDArray) -> FirstRows:
        self.cluster_centers_ = points[: self.n_clusters]
        return self


def test_any_class_is_compared_with_ours_and_the_records(monkeypatch, capsys) -> None:
    chosen = "duplicates-2d/3,noise-2d/3"
    arguments = ["quality", "--method", f"{__name__}:FirstRows", "--problems", chosen]
    monkeypatch.setitem(sys.modules, __name__, SimpleNamespace(FirstRows=FirstRows))
    monkeypatch.setattr(sys, "argv", arguments)
    monkeypatch.setattr(machine, "store", None)  # nothing is stored
    quality.main()
    *_, first, _, last = capsys.readouterr().out.splitlines()
    assert re.match(r"balanced: mean excess 0\.00\d %, .* for 2 of 2 problems", first)
    assert re.match(r"FirstRows: mean excess \d\d+\.\d+ %, .* for 2 of 2 problems", last)
    monkeypatch.setattr(sys, "argv", [*arguments[:2], "no.such:Class"])
    with pytest.raises(SystemExit, match="write module:Class"):
        quality.main()


def test_records_are_of_the_problems_and_a_bound_is_no_higher_than_its_sum(monkeypatch) -> None:
    monkeypatch.setenv("POWERMEANS_DATA", "anywhere")
    known = records.all_known()
    problems = {problem.name: problem for problem in all_problems(large=True)}
    assert problems.keys() == known.keys()
    assert len(all_problems()) == 179
    assert all(one.gap is None or one.bound <= one.lowest for one in known.values())
    drawn = problems["overlapping-2d/10"]
    assert drawn.load().shape == (known[drawn.name].n_points, known[drawn.name].n_features)
    assert inertia(drawn.load(), drawn.load()[:10]) > drawn.best_known
    assert {problem.best_known for problem in all_problems(data_seed=1)[-59:]} == {None}


def test_a_lower_sum_and_a_higher_bound_replace_those_of_a_record() -> None:
    known = records.Known("x", 2, "all", None, None, 10.0, "published", 8.0)
    run = record_of({"thorough": [9.0], "fast": [9.5]})
    run = Record({"x/2": run.problems["0"]}, {"x/2": run.cells["0"]})
    better = records.updated(known, run, {"x/2": 9.5})
    assert (better.lowest, better.reached_by, better.bound) == (9.0, "thorough", 9.0)
    assert records.updated(known, run, {"x/2": 6.0}).bound == 8.0
    assert records.updated(known, run, {"x/2": 0.0}).bound == 8.0
    assert records.updated(known, Record({}, {}), {}) == known
