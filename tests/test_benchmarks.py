"""The benchmark of quality measures what it says, believes no claims, and loses nothing."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Mapping

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks import families, machine, pages, peers, quality, quality_report
from benchmarks.excess import Record, contest, flaws, inertia, summary
from benchmarks.machine import Bystanders
from benchmarks.problems import Problem, chosen_rows

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
        {str(i): {**about, "best_known": best_known, "bystanders": 0.0} for i in numbers},
        {
            str(i): {name: {"0": cell(of[i])} for name, of in inertias.items() if i < len(of)}
            for i in numbers
        },
    )


def test_points_are_drawn_as_many_as_asked_for_and_rows_read_from_a_phrase():
    for family in families.FAMILIES:
        drawn = families.draw(family, 2, 9)
        assert families.LEAST_POINTS - 9 < len(drawn) <= families.LEAST_POINTS
        assert np.isfinite(drawn).all()
    points = np.array([[1.0], [np.nan], [3.0]])
    assert chosen_rows(points, "the first 1").tolist() == [[1.0]]
    assert chosen_rows(points, "the 2 rows without missing values").tolist() == [[1.0], [3.0]]
    for phrase in ("the 3 rows without missing values", "every other row"):
        with pytest.raises(ValueError, match=r"2 rows are complete|every other row"):
            chosen_rows(points, phrase)


def test_the_inertia_is_that_by_hand_also_far_from_the_origin():
    assert inertia(CORNERS, BEST) == 1 + 1 + 4 + 4
    assert inertia(np.array([[1e8], [1e8 + 1]]), np.array([[1e8 + 0.5]])) == 0.5


@pytest.mark.parametrize(
    ("inertias", "best_known", "excess"),
    [
        ({"a": [10.0], "b": [12.0]}, None, {"a": 0.0, "b": 0.2}),
        ({"a": [10.0]}, 8.0, {"a": 0.25}),
        ({"a": [8.0]}, 10.0, {"a": 0.0}),
    ],
)
def test_excess_is_measured_from_the_lowest_that_is_found_or_known(inertias, best_known, excess):
    found = record_of(inertias, best_known).excess
    assert {name: of["0"] for name, of in found.items()} == pytest.approx(excess)


def test_wins_count_only_beyond_a_draw_and_only_where_both_ran():
    record = record_of({"a": [100.0, 100.0, 102.0, 1.0], "b": [100.005, 101.0, 100.0]})
    assert contest(record, "a", "b") == (1, 1)
    assert contest(record, "b", "a") == (1, 1)


def test_false_claims_and_more_effort_with_a_worse_result_are_flagged():
    cells = {"flattering": {"0": cell(10.0, claimed=9.9)}, "silent": {"0": cell(10.0)}}
    (said,) = flaws(Record({"p": {}}, {"p": cells}))
    assert "flattering on p claims an inertia of 9.9; that of its centers is 10" in said
    (said,) = flaws(record_of({"balanced": [10.0, 10.0], "thorough": [10.0, 11.0]}))
    assert "thorough is worse than balanced on 1" in said


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
    "resume": False, "quick": False, "redo_disturbed": False,
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
    improved = Made("changed", made_with="made up 2.0")
    stored = run_with([same, improved], ["corners/2"], resume=True)
    assert (same.fits, improved.fits) == (1, 1)
    assert stored["figures"]["cells"]["corners/2"]["changed"]["0"]["inertia"] == 10.0
    with pytest.raises(SystemExit, match="would mix threads 2 with 1"):
        run_with([same], ["corners/2"], resume=True, threads=1)


def test_an_interrupt_leaves_the_problems_before_it(run_with):
    method, names = Made("slow"), ["first/2", "second/2"]

    def interrupt():
        if method.fits == 2:
            raise KeyboardInterrupt

    method.trouble = interrupt
    with pytest.raises(KeyboardInterrupt):
        run_with([method], names)
    assert list(machine.read("tried", "quality")["figures"]["cells"]) == ["first/2"]
    resumed = run_with([method], names, resume=True)
    assert list(resumed["figures"]["cells"]) == names
    assert method.fits == 3
    assert len(resumed["figures"]["runs"]) == 2


def test_what_was_disturbed_is_flagged_and_can_be_measured_again(run_with, monkeypatch):
    method, names, noise = Made("sound"), ["first/2", "second/2"], iter([0.0, 1.5, 0.0])
    monkeypatch.setattr(Bystanders, "processors", lambda _: next(noise))
    for again, said in ({}, ["busy during 1 of 2 problems"]), ({"redo_disturbed": True}, []):
        figures = run_with([method], names, resume=bool(again), **again)["figures"]
        found = flaws(Record(figures["problems"], figures["cells"]))
        assert [words in one for words, one in zip(said, found, strict=True)] == [True] * len(said)
    assert method.fits == 3


def test_our_methods_fit_and_claim_the_truth():
    points = families.draw("overlapping", 2, 5)[:300]
    for method in peers.build_methods(["fast", "lloyd", "paper"], 1):
        fit = method.fit(points, 5, 0, {})
        assert fit.centers.shape == (5, 2)
        assert fit.claimed == pytest.approx(inertia(points, fit.centers), rel=1e-10)
        assert fit.seconds > 0


def test_filling_a_page_replaces_what_is_between_the_marks_and_nothing_else():
    page = f"before\n{quality_report.PAGE.begin}\nold\n{pages.END}\nafter\n"
    filled = quality_report.PAGE.fill(page, "new")
    assert filled == f"before\n{quality_report.PAGE.begin}\n\nnew\n\n{pages.END}\nafter\n"
    assert quality_report.PAGE.fill(filled, "new") == filled
    with pytest.raises(SystemExit, match="no place for figures"):
        quality_report.PAGE.fill("before\nafter\n", "new")
