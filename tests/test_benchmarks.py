"""The benchmark of quality measures what it says, believes no claims, and loses nothing."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path

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


def cell(value: float, *, seconds: float = 1.0, claimed: float | None = None) -> dict:
    said = {} if claimed is None else {"claimed": claimed}
    return {"inertia": value, "seconds": seconds, **said}


def record_of(
    inertias: Mapping[str, list[float]], *, best_known: float | None = None, **seconds: float
) -> Record:
    """One inertia for each method and problem, the problems numbered from zero."""
    numbers = range(max(map(len, inertias.values())))
    about = {"group": "real", "n_points": 9, "n_features": 2, "n_clusters": 3}
    return Record(
        {str(i): {**about, "best_known": best_known, "bystanders": 0.0} for i in numbers},
        {
            str(i): {
                name: {"0": cell(values[i], seconds=seconds.get(name, 1.0))}
                for name, values in inertias.items()
                if i < len(values)
            }
            for i in numbers
        },
    )


# Families and problems.


@pytest.mark.parametrize("n_features", [2, 10])
@pytest.mark.parametrize("family", families.FAMILIES)
def test_a_family_draws_finite_points_of_the_size_asked_for(family: str, n_features: int) -> None:
    points = families.draw(family, n_features, 9)
    assert points.dtype == np.float64
    assert points.shape[1] == n_features
    assert families.LEAST_POINTS - 9 < len(points) <= families.LEAST_POINTS
    assert np.isfinite(points).all()


@pytest.mark.parametrize(
    ("places", "distance"), [(families.spaced, np.min), (families.scattered, np.mean)]
)
def test_the_least_or_the_mean_distance_to_the_nearest_place_is_as_asked(places, distance):
    drawn = places(40, 3, 4.0, np.random.default_rng(0))
    distances = np.linalg.norm(drawn[:, None] - drawn, axis=2) + np.diag(np.full(40, np.inf))
    assert np.isclose(distance(distances.min(axis=1)), 4)


def test_the_rows_that_count_are_read_from_a_phrase() -> None:
    points = np.array([[1.0], [np.nan], [3.0]])
    assert len(chosen_rows(points, "all")) == 3
    assert chosen_rows(points, "the first 1").tolist() == [[1.0]]
    assert chosen_rows(points, "the 2 rows without missing values").tolist() == [[1.0], [3.0]]
    with pytest.raises(ValueError, match="2 rows are complete, and not 3"):
        chosen_rows(points, "the 3 rows without missing values")
    with pytest.raises(ValueError, match="every other row"):
        chosen_rows(points, "every other row")


# The arithmetic.


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
    found = record_of(inertias, best_known=best_known).excess
    assert {name: of["0"] for name, of in found.items()} == pytest.approx(excess)


def test_wins_count_only_beyond_a_draw_and_only_where_both_ran() -> None:
    record = record_of({"a": [100.0, 100.0, 102.0, 1.0], "b": [100.005, 101.0, 100.0]})
    assert contest(record, "a", "b") == (1, 1)
    assert contest(record, "b", "a") == (1, 1)


def test_false_claims_and_more_effort_with_a_worse_result_are_flagged():
    cells = {
        "flattering": {"0": cell(10.0, claimed=9.9)},
        "silent": {"0": cell(10.0)},
    }
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


def measured(*methods: Made, seeds: int = 1) -> dict:
    figures = quality.new_figures(SETTINGS)
    quality.measure(problem_named("corners/2"), methods, range(seeds), figures)
    return figures


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


def test_an_inertia_is_computed_anew_whatever_is_claimed() -> None:
    figures = measured(Made("liar", claimed=1.0))
    assert figures["cells"]["corners/2"]["liar"]["0"]["inertia"] == 10.0
    assert "liar" in flaws(Record(figures["problems"], figures["cells"]))[0]


@pytest.mark.parametrize(
    "centers", [np.zeros((3, 2)), np.zeros((2, 1)), np.array([[0.0, 1.0], [np.nan, 2.0]])]
)
def test_centers_that_are_no_answer_are_an_error(centers: NDArray) -> None:
    figures = measured(Made("odd", centers=centers))
    assert "centers" in figures["cells"]["corners/2"]["odd"]["0"]["error"]


def test_a_method_that_fails_is_reported_and_the_others_go_on() -> None:
    def fail() -> None:
        raise MemoryError("no room\nat all")

    figures = measured(Made("failing", trouble=fail), Made("sound"))
    assert figures["cells"]["corners/2"]["failing"]["0"] == {"error": "MemoryError: no room"}
    assert figures["cells"]["corners/2"]["sound"]["0"]["inertia"] == 10.0
    lines = summary(Record(figures["problems"], figures["cells"]))
    assert [(line["method"], line["errors"]) for line in lines] == [("sound", 0)]


def test_a_stored_run_is_read_back(run_with, tmp_path):
    with pytest.raises(SystemExit, match=r"run python -m benchmarks\.quality"):
        machine.read("tried", "quality")
    stored = run_with([Made("sound")], ["corners/2"])
    assert stored["figures"]["cells"]["corners/2"]["sound"]["0"]["inertia"] == 10.0
    assert stored["figures"]["summary"][0]["method"] == "sound"
    assert {"date", "command", "processor", "versions"} <= stored.keys()
    assert [file.name for file in tmp_path.iterdir()] == ["tried.json"]


def test_an_interrupt_leaves_the_problems_before_it(run_with):
    method, names = Made("slow"), ["first/2", "second/2"]

    def interrupt() -> None:
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


def test_resuming_measures_again_what_has_changed_and_only_that(run_with):
    same, changed = Made("same"), Made("changed", centers=BEST + 1)
    run_with([same, changed], ["corners/2"])
    improved = Made("changed", made_with="made up 2.0")
    stored = run_with([same, improved], ["corners/2"], resume=True)
    assert (same.fits, improved.fits) == (1, 1)
    assert stored["figures"]["cells"]["corners/2"]["changed"]["0"]["inertia"] == 10.0
    with pytest.raises(SystemExit, match="would mix threads 2 with 1"):
        run_with([same], ["corners/2"], resume=True, threads=1)


def test_what_was_disturbed_is_flagged_and_can_be_measured_again(run_with, monkeypatch):
    method, names, noise = Made("sound"), ["first/2", "second/2"], iter([0.0, 1.5, 0.0])
    monkeypatch.setattr(Bystanders, "processors", lambda _: next(noise))
    stored = run_with([method], names)
    (said,) = flaws(Record(stored["figures"]["problems"], stored["figures"]["cells"]))
    assert "busy during 1 of 2 problems" in said
    stored = run_with([method], names, resume=True, redo_disturbed=True)
    assert method.fits == 3
    assert flaws(Record(stored["figures"]["problems"], stored["figures"]["cells"])) == []


# The methods.


def test_our_methods_fit_and_claim_the_truth() -> None:
    points = families.draw("overlapping", 2, 5)[:300]
    for method in peers.build_methods(["fast", "lloyd", "paper"], 1):
        fit = method.fit(points, 5, 0, {})
        assert fit.centers.shape == (5, 2)
        assert fit.claimed == pytest.approx(inertia(points, fit.centers), rel=1e-10)
        assert fit.seconds > 0


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("import time; time.sleep(60)", "no answer"),
        ("pass", "died"),
        ("pipe.recv(); pipe.send(([0], 1.0)); pipe.recv()", "1 labels for 4 points"),
    ],
)
def test_a_process_that_does_not_answer_is_given_up(
    body: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"answering_{message.split()[0]}"
    (tmp_path / f"{name}.py").write_text(f"def answer(pipe):\n    {body}\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(peers, "answer_for_hgmeans", __import__(name).answer)
    process = peers.HgMeansProcess()
    with pytest.raises(peers.Lost, match=message):
        process.ask(CORNERS, 2, 1, patience=0.2 if "sleep" in body else 30)
    process.end()


# Tables and pages.


def test_filling_a_page_replaces_what_is_between_the_marks_and_nothing_else() -> None:
    page = f"before\n{quality_report.PAGE.begin}\nold\n{pages.END}\nafter\n"
    filled = quality_report.PAGE.fill(page, "new")
    assert filled.startswith(f"before\n{quality_report.PAGE.begin}\n\nnew\n")
    assert filled.endswith(f"{pages.END}\nafter\n")
    assert "old" not in filled
    assert quality_report.PAGE.fill(filled, "new") == filled
    with pytest.raises(SystemExit, match="no place for figures"):
        quality_report.PAGE.fill("before\nafter\n", "new")


def test_stored_files_have_a_line_for_each_item_of_the_outer_levels() -> None:
    value = {"a": {"b": {"c": {"d": {"e": [1, 2]}, "f": []}}}, "g": [1.5, None]}
    lines = machine.as_json(value).splitlines()
    assert '    "d": {"e":[1,2]},' in lines
    assert json.loads("".join(lines)) == value


def test_a_part_keeps_its_origin_when_another_is_stored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(machine, "RESULTS", tmp_path)
    monkeypatch.setattr(machine, "processor", lambda: "first")
    machine.store_part("tried", "a", [1])
    monkeypatch.setattr(machine, "processor", lambda: "second")
    machine.store_part("tried", "b", [2])
    figures = machine.stored_figures("tried")
    assert [(f["processor"], f["cells"]) for f in figures.values()] == [
        ("first", [1]),
        ("second", [2]),
    ]
