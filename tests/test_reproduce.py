"""Reproductions compare honestly, lose no finished cell, and never take other code's rows."""

from __future__ import annotations

import csv
import doctest
import gzip
import importlib
import io
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import reproduce.items
from benchmarks import machine
from powermeans.datasets.real import DATA_VARIABLE
from reproduce import catalog, cell_store, page, running
from reproduce.__main__ import main
from reproduce.as_text import count_of, findings_as_text
from reproduce.cell_store import CellStore
from reproduce.code_version import code_version
from reproduce.item import Cell, Claim, Comparison, Findings, mean_and_error
from reproduce.progress import Progress
from reproduce.published import published_rows
from reproduce.results import read_report, read_rows, write_rows
from reproduce.running import Folders, check_keys, finish

ROOT = Path(reproduce.__file__).parent
MODULES = [
    f"reproduce.{'.'.join(file.relative_to(ROOT).with_suffix('').parts)}"
    for file in sorted(ROOT.rglob("*.py"))
    if file.name not in ("__init__.py", "__main__.py")
]

ITEM = """
from pathlib import Path
from powermeans.datasets import load_data_set
from reproduce.item import Cell, Claim, Comparison, Findings, Table

TITLE = "Squares"
SOURCE = "Nobody 1900"
DATA = "real"
LOG = Path(__file__).with_suffix(".log")

def square(n):
    with LOG.open("a") as log:
        log.write(f"{n}\\n")
    if n in BROKEN:
        raise BROKEN[n]
    return [{"square": SCALE * n * n}]

SCALE = 1
BROKEN = {}

def cells(quick):
    return [Cell({"n": n}, lambda n=n: square(n)) for n in range(2 if quick else 4)]

def findings(rows):
    total = sum(row["square"] for row in rows)
    return Findings(
        tables=[Table("Squares", ["n", "square"], [[r["n"], r["square"]] for r in rows], "a note")],
        comparisons=[
            Comparison("sum", "square", 14.0, total),
            Comparison("sum", "square", 15.0, total, tolerance=0.5),
        ],
        claims=[Claim("Squares | grow", "Nobody 1900", "holds", "<all> of them")],
        remarks=["nothing more"],
    )

def draw(rows, folder):
    path = folder / "squares.png"
    path.write_bytes(b"a picture")
    return [path]
"""


class Squares:
    """An item of the test's own, with what it computed in a log beside its file."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "items" / "all_squares.py"
        self.cache, self.results = folder / "cache", folder / "results"
        self.file.parent.mkdir()
        self.file.write_text(ITEM)

    def computed(self) -> list[int]:
        log = self.file.with_suffix(".log")
        return [int(line) for line in log.read_text().splitlines()] if log.is_file() else []

    def change(self, old: str, new: str) -> None:
        text = self.file.read_text()
        assert text.count(old) == 1
        self.file.write_text(text.replace(old, new))

    def run(self, *more: str, name: str = "all-squares") -> int:
        # Python would trust its compiled file, which may be of the same second.
        for compiled in self.file.parent.rglob("*.pyc"):
            compiled.unlink()
        importlib.invalidate_caches()
        vars(reproduce.items).pop("all_squares", None)
        sys.modules.pop("reproduce.items.all_squares", None)
        folders = ["--cache", str(self.cache), "--results", str(self.results)]
        return main([name, *more, *folders])

    def cell_files(self) -> list[Path]:
        return sorted((self.cache / "all-squares" / "full").glob("*.json"))


@pytest.fixture
def squares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Squares]:
    item = Squares(tmp_path)
    monkeypatch.setattr(catalog, "ITEMS", item.file.parent)
    monkeypatch.setattr(reproduce.items, "__path__", [str(item.file.parent)])
    # What the code of the package is takes a while to find out, and is another test's business.
    monkeypatch.setattr(running, "digest", lambda package: "0a1b2c3d")
    yield item
    sys.modules.pop("reproduce.items.all_squares", None)


# Comparing.


@pytest.mark.parametrize(
    ("ours", "error", "tolerance", "is_within"),
    [
        (1.0, 0.0, 0.0, True),
        (1.1, 0.0, 0.0, False),
        (1.1, 0.06, 0.0, True),
        (1.1, 0.04, 0.0, False),
        (0.9, 0.04, 0.03, True),
        (0.9, 0.0, 0.09, False),
        (math.nan, 9.0, 9.0, False),
        (math.inf, 0.1, 0.0, False),
    ],
)
def test_a_number_too_far_away_differs(ours, error, tolerance, is_within) -> None:
    comparison = Comparison("Lloyd", "VI", 1.0, ours, error, tolerance)
    assert comparison.is_within_noise is is_within
    said = findings_as_text(Findings(comparisons=[comparison]))
    assert ("DIFFERS" in said) is not is_within
    assert f"{int(is_within)} of 1 published numbers within noise" in said


def test_a_wrong_number_in_the_rows_is_flagged_to_the_end(squares, capsys) -> None:
    assert squares.run() == 0
    assert "2 of 2 published" not in capsys.readouterr().out
    right = read_report(squares.results / "all-squares.json")
    assert [c.is_within_noise for c in right.findings.comparisons] == [True, False]
    squares.change("SCALE = 1", "SCALE = 2")
    assert squares.run() == 0
    assert "0 of 2 published numbers within noise" in capsys.readouterr().out
    assert [c["is_within_noise"] for c in record_of(squares)["findings"]["comparisons"]] == [
        False,
        False,
    ]


def record_of(squares: Squares) -> dict:
    return json.loads((squares.results / "all-squares.json").read_text())


def test_the_mean_has_the_error_of_the_mean_and_a_single_number_has_none() -> None:
    assert mean_and_error([1.0, 3.0]) == (2.0, 1.0)
    assert mean_and_error([5.0]) == (5.0, math.inf)
    mean, error = mean_and_error([0.0, 0.0, 3.0, 3.0])
    assert (mean, error) == (1.5, pytest.approx(math.sqrt(3 / 4)))
    comparison = Comparison("Lloyd", "VI", 99.0, *mean_and_error([1.0]))
    assert not comparison.is_within_noise
    said = findings_as_text(Findings(comparisons=[comparison]))
    assert "NO ERROR KNOWN" in said
    assert "0 of 1 published numbers within noise" in said


def test_tables_1_and_2_are_those_of_the_paper() -> None:
    by_cell = {
        name: {(row["method"], row["features"]): row for row in published_rows(name)}
        for name in ("table1", "table2")
    }
    assert [len(rows) for rows in by_cell.values()] == [42, 42]
    assert by_cell["table1"]["KHM", 100]["mean"] == 1.586
    assert by_cell["table1"]["power, s0 = -9", 10]["spread"] == 0.10
    assert by_cell["table2"]["power, s0 = -18", 200] == {
        "method": "power, s0 = -18",
        "features": 200,
        "mean": 0.077,
        "spread": 0.040,
    }
    # As the paper says, power k-means is ahead everywhere.
    for rows in by_cell.values():
        for (method, features), row in rows.items():
            if method.startswith("power"):
                assert row["mean"] < rows["Lloyd", features]["mean"]


@pytest.mark.parametrize(("table", "measure"), [("table1", "ratio"), ("table2", "VI_nearest")])
@pytest.mark.parametrize("seeding", ["D", "D²"])
def test_a_wrong_number_in_tables_1_and_2_is_flagged(table, measure, seeding: str) -> None:
    """Rows that have the published means, but for one column that is off by three errors."""
    from reproduce.items.table1_and_2 import comparisons_of

    rows = []
    for line in published_rows(table):
        off = 3 * float(line["spread"]) / 5 if line["features"] == 10 else 0.0
        for data_set in range(50):
            spread = float(line["spread"]) * (-1) ** data_set
            value = float(line["mean"]) + spread + off
            key = {"features": line["features"], "seeding": seeding, "method": line["method"]}
            rows.append({**key, "data_set": data_set, measure: value})
    found = comparisons_of(rows, measure, "D")
    if seeding == "D²":
        assert found == []
        return
    assert len(found) == 42
    flagged = {comparison.what for comparison in found if not comparison.is_within_noise}
    assert flagged == {c.what for c in found if c.what.endswith("d = 10")}
    # The published spread and ours are the same here, so the error is sqrt(2) of either's.
    lloyd = next(comparison for comparison in found if comparison.what == "Lloyd, d = 2")
    spread = next(float(line["spread"]) for line in published_rows(table))
    assert lloyd.standard_error == pytest.approx(spread * math.sqrt(1 / 50 + 1 / 49), rel=1e-6)


def test_deviations_are_counted_by_measure_and_not_listed() -> None:
    from reproduce.items.table1_and_2 import _remarks_on_deviations

    gaps = {"ratio": (0.3, -0.2, 0.01), "VI": (-0.4, -0.25, 0.0)}
    comparisons = [
        Comparison(f"KHM, d = {d}", short, 1.0, 1.0 + gap, standard_error=0.02)
        for short, of_measure in gaps.items()
        for d, gap in zip((2, 5, 10), of_measure, strict=True)
    ]
    remark = _remarks_on_deviations(comparisons, "drawn sizes")[-1]
    assert "4 of 6 means differ by more than noise" in remark
    assert "ratio: 2 of 3, ours better in 1; ours less published is -0.200 to +0.300" in remark
    assert "VI: 2 of 3, ours better in 2; ours less published is -0.400 to -0.250" in remark


def rows_of_table_3(wrong: dict[str, float]) -> list[dict]:
    """Ten runs with the published numbers, counts one up and one down; power's in control off."""
    from reproduce.items.table3 import COMPARED

    rows = []
    for line in published_rows("table3"):
        is_wrong = (line["group"], line["method"]) == ("control", "power")
        for run in range(10):
            row = {
                "genotype": line["group"],
                "method": COMPARED[str(line["method"])],
                "seeding": "D²",
                "sse": float(run),
                "error": line["error"],
                "mixed_nodes": int(line["mixed_nodes"]) + (-1) ** run,
                "total_mixed": int(line["total_mixed"]) + (-1) ** run,
            }
            more = wrong if is_wrong else {}
            rows.append(row | {name: row[name] + by for name, by in more.items()})
    return rows


@pytest.mark.parametrize(
    ("measure", "by"), [("error", 0.011), ("mixed_nodes", 3), ("total_mixed", -3)]
)
def test_a_wrong_number_in_table_3_is_flagged(measure: str, by: float) -> None:
    from reproduce.items.table3 import comparisons_of

    right = comparisons_of(rows_of_table_3({}))
    assert len(right) == 18
    assert all(comparison.is_within_noise for comparison in right)
    flagged = [
        comparison
        for comparison in comparisons_of(rows_of_table_3({measure: by}))
        if not comparison.is_within_noise
    ]
    assert [comparison.what for comparison in flagged] == ["power, control"]
    assert flagged[0].quantity.startswith(measure.replace("_", " "))


def test_the_claims_of_table_3_are_those_of_the_numbers() -> None:
    """Errors as published in every run confirm the order; power's at that of the map does not."""
    from reproduce.items.table3 import _claim_of_errors, orders_of

    map_error = {"control": 0.579, "trisomic": 0.698}
    right = rows_of_table_3({})
    tied = [
        row | {"error": map_error[row["genotype"]]} if row["method"].startswith("power") else row
        for row in right
    ]
    assert {order.is_published for order in orders_of(in_all_settings(right))} == {"holds"}
    assert {order.is_published for order in orders_of(in_all_settings(tied))} == {"not decidable"}
    in_all = in_all_settings(right)
    assert _claim_of_errors(in_all, orders_of(in_all)).verdict == "holds"
    from_low = [
        row | {"error": map_error[row["genotype"]]} if row["method"].endswith("-9") else row
        for row in in_all
    ]
    assert _claim_of_errors(from_low, orders_of(from_low)).in_words == (
        "depends on the first power: s0 = -1 holds, s0 = -3 holds, s0 = -9 not decidable"
    )


def in_all_settings(rows: list[dict]) -> list[dict]:
    """The rows under every seeding, and of power k-means from every start."""
    from reproduce.items.table3 import MAP, SEEDINGS, STARTS
    from reproduce.matched_starts import power_from

    found = []
    for row in rows:
        names = [row["method"]]
        if row["method"].startswith("power"):
            names = [power_from(start) for start in STARTS]
        seedings = ["its own"] if row["method"] == MAP else SEEDINGS
        found += [row | {"method": n, "seeding": s} for n in names for s in seedings]
    return found


def rows_of_tables_1_and_2(lift: float = 0.0) -> list[dict]:
    """Twenty data sets with the published means and little noise; power's from -3 lifted."""
    rows = []
    for table, measure in (("table1", "ratio"), ("table2", "VI_nearest")):
        for line in published_rows(table):
            for data_set in range(20):
                more = lift if line["method"] == "power, s0 = -3" else 0.0
                key = {"features": line["features"], "method": line["method"], "seeding": "D"}
                value = float(line["mean"]) + 1e-5 * (-1) ** data_set + more
                rows.append({**key, "data_set": data_set, measure: value})
    by_key: dict[tuple, dict] = {}
    for row in rows:
        key = (row["features"], row["method"], row["data_set"])
        by_key[key] = by_key.get(key, {}) | row
    return list(by_key.values())


def test_the_order_of_the_methods_is_judged_by_paired_errors() -> None:
    from reproduce.items import table1_and_2

    as_published, lifted = rows_of_tables_1_and_2(), rows_of_tables_1_and_2(lift=1.0)
    assert table1_and_2._order(as_published).verdict == "holds"
    assert table1_and_2._power_is_best(as_published, "D").verdict == "holds"
    turned = table1_and_2._order(lifted)
    assert turned.verdict == "does not hold"
    assert "VI, d = 2: Lloyd before power, s0 = -3" in turned.figure
    best = table1_and_2._power_is_best(lifted, "D").in_words
    assert best == "depends on the dimension and the start"


@pytest.mark.parametrize(
    ("gaps", "verdict"),
    [
        ((0.0, 0.0), "no difference"),
        ((0.008, 0.014), "holds"),
        ((-0.02, -0.02), "does not hold"),
        ((0.0, 0.014), "not decidable"),
    ],
)
def test_no_difference_is_what_excludes_the_published_one(gaps, verdict: str) -> None:
    from reproduce.items import table1_and_2

    rows = []
    for n in range(100):
        noise = 0.01 * (-1) ** n
        for method, (ratio, vi) in (("Lloyd", (0, 0)), ("KHM", [gap + noise for gap in gaps])):
            own = {"features": 2, "seeding": "D", "data_set": n, "method": method}
            rows.append({**own, "ratio": 1 + ratio, "VI_nearest": 0.6 + vi})
    found = table1_and_2._khm_in_the_plane(rows)
    assert found.verdict == verdict
    # 100 sets of ours and 50 of theirs: the error of the difference is √3 of our own.
    with_theirs = (0.008 - gaps[0]) / math.sqrt(3) / (0.01 / math.sqrt(99))
    assert f"too: with it, they lie {with_theirs:.1f} and " in found.figure
    assert table1_and_2._khm_in_the_plane(rows[:4]).verdict == "not decidable"


def test_authors_rows_stand_beside_the_published_names_and_other_rows_apart() -> None:
    from reproduce.items.table1_and_2 import ALL_DRAWS, DRAWN, STATED, by_setting, draw_name

    own = {"features": 2, "seeding": "D"}
    drawn = {**own, "sizes": "drawn"}
    start = "power, s0 = -1"
    rows = [
        {**own, "method": start, "ratio": 1},
        {**own, "method": "Lloyd", "sizes": "equal", "ratio": 2},
        {**drawn, "draw": 0, "method": start, "ratio": 3},
        {**drawn, "draw": 1, "method": f"{start}, authors' code", "ratio": 4},
        {**drawn, "draw": 1, "method": "Lloyd", "ratio": 5},
    ]
    found = {
        name: [(row["method"], row["ratio"]) for row in of] for name, of in by_setting(rows).items()
    }
    later = [(start, 4), ("Lloyd", 5)]
    assert found == {
        STATED: [(start, 1)],
        DRAWN: [(start, 3)],
        draw_name(1): later,
        ALL_DRAWS: later,
    }


def test_a_lucky_draw_does_not_stand_for_all_on_the_front_page() -> None:
    from reproduce.items.table1_and_2 import ALL_DRAWS, DRAWN, STATED, draw_name, in_short, shown

    near, far = (
        [Comparison("Lloyd, d = 2", "VI", 1.0, ours, standard_error=0.1)] for ours in (1.0, 2.0)
    )
    beside = {STATED: far, DRAWN: near, draw_name(0): near, draw_name(1): far, ALL_DRAWS: far}
    assert "1 or 0 with drawn sizes and the authors' code, by the draw" in in_short(beside)
    assert "0 with equal sizes and the paper's rule; 1 with drawn sizes" in in_short(beside)
    assert shown(beside) == [STATED, DRAWN, ALL_DRAWS]
    assert shown({STATED: near}) == [STATED]


# Verdicts and data.


@pytest.mark.parametrize("data", ["part: 5 of 7 rows", "stand-in", "our layout: none is named"])
def test_data_other_than_those_of_the_source_decide_nothing(data: str) -> None:
    claim = Claim("It grows", "Nobody 1900", "does not hold", "It falls.")
    limited = claim.on_data(data)
    assert limited.in_words == "not decidable with these data"
    assert limited.figure == "On these data: does not hold. It falls."
    assert claim.on_data("real").verdict == "does not hold"
    assert replace(claim, data="real").on_data(data).verdict == "does not hold"
    depends = replace(claim, verdict="depends", on="the day")
    assert depends.in_words == "depends on the day"
    assert depends.on_data(data).figure == "On these data: depends on the day. It falls."


# Cells that are kept.


def test_finished_cells_are_not_computed_again(squares) -> None:
    assert squares.run() == 0
    first = (squares.results / "all-squares.csv").read_bytes()
    assert squares.run() == 0
    assert squares.computed() == [0, 1, 2, 3]
    assert (squares.results / "all-squares.csv").read_bytes() == first


def test_fresh_computes_them_again(squares) -> None:
    squares.run()
    squares.run("--fresh")
    assert squares.computed() == [0, 1, 2, 3] * 2


@pytest.mark.parametrize("interruption", ["KeyboardInterrupt()", "ValueError('no square')"])
def test_an_interrupted_run_keeps_finished_cells(squares, capsys, interruption) -> None:
    squares.change("BROKEN = {}", f"BROKEN = {{2: {interruption}}}")
    assert squares.run() == (130 if "Keyboard" in interruption else 1)
    assert len(squares.cell_files()) == 2
    assert "2 of 4 cells done" in capsys.readouterr().err
    assert not (squares.results / "all-squares.json").exists()


def numbered(cells: list[Cell]) -> dict[int, Cell]:
    return dict(enumerate(cells))


def test_stored_rows_count_as_finished_cells_and_keep_when_they_were_computed(
    squares, monkeypatch
) -> None:
    squares.run()
    before = read_report(squares.results / "all-squares.json")
    csv_before = (squares.results / "all-squares.csv").read_bytes()
    for file in squares.cell_files():
        file.unlink()
    squares.change("2 if quick else 4", "2 if quick else 5")
    monkeypatch.setattr(running, "digest", lambda package: "ffffffff")
    monkeypatch.setattr(machine, "processor", lambda: "Another")
    assert squares.run("--stored", "--minutes", "0") == 0
    assert squares.computed() == [0, 1, 2, 3]
    part = read_report(squares.results / "all-squares.json")
    assert (part.n_cells, part.n_wanted, part.packages) == (4, 5, before.packages)
    assert part.seconds == before.seconds
    assert "4 cells of 5 computed" in page.origin(part)
    assert (squares.results / "all-squares.csv").read_bytes() == csv_before
    assert squares.run("--stored") == 0
    assert squares.computed() == [0, 1, 2, 3, 4]
    whole = read_report(squares.results / "all-squares.json")
    assert (whole.n_cells, whole.packages) == (5, ["0a1b2c3d", "ffffffff"])
    assert whole.processor == f"{before.processor} and Another"
    assert whole.seconds > before.seconds
    assert [row["square"] for row in read_rows(squares.results, "all-squares")] == [0, 1, 4, 9, 16]


def test_a_run_goes_on_after_the_cells_that_are_there(tmp_path: Path) -> None:
    computed: list[int] = []

    def cells(stop_at: int) -> list[Cell]:
        def compute(n: int) -> list[dict]:
            if n == stop_at:
                raise KeyboardInterrupt
            computed.append(n)
            return [{"square": n * n}]

        return [Cell({"n": n}, lambda n=n: compute(n)) for n in range(4)]

    store = CellStore(tmp_path, "code", "package")
    with pytest.raises(KeyboardInterrupt):
        finish("squares", numbered(cells(stop_at=2)), store)
    assert computed == [0, 1]
    rows = [done.rows for done in finish("squares", numbered(cells(stop_at=9)), store).values()]
    assert computed == [0, 1, 2, 3]
    assert rows == [[{"square": n * n}] for n in range(4)]


TEAR: dict[str, Callable[[str], str]] = {
    "half written": lambda text: text[: len(text) // 2],
    "empty": lambda text: "",
    "another value": lambda text: text.replace('"square": 9', '"square": 8'),
    "no checksum": lambda text: json.dumps({"content": json.loads(text)["content"]}),
    "not an object": lambda text: "[1, 2]",
}


@pytest.mark.parametrize("how", TEAR)
def test_a_damaged_cell_is_computed_again_and_named(squares, how, caplog) -> None:
    squares.run()
    (last,) = [path for path in squares.cell_files() if '"square": 9' in path.read_text()]
    whole = last.read_text()
    last.write_text(TEAR[how](whole))
    assert last.read_text() != whole
    assert squares.run() == 0
    assert squares.computed() == [0, 1, 2, 3, 3]
    assert f"{last} is no whole file of a cell" in caplog.text
    assert json.loads(last.read_text())["content"]["rows"] == [{"square": 9}]
    assert record_of(squares)["findings"]["comparisons"][0]["ours"] == 14


def test_the_file_of_another_cell_is_not_taken_for_this_one(squares, caplog) -> None:
    squares.run()
    one, other, *_ = squares.cell_files()
    one.write_bytes(other.read_bytes())
    squares.run()
    assert len(squares.computed()) == 5
    assert "it is of another cell" in caplog.text


def test_rows_of_changed_code_are_not_used(squares) -> None:
    squares.run()
    squares.change("SCALE = 1", "SCALE = 3")
    squares.run()
    assert squares.computed() == [0, 1, 2, 3] * 2
    assert record_of(squares)["findings"]["comparisons"][0]["ours"] == 42


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"a note"', '"another note"'),
        ("def square(n):", "def square(n):\n    # Why it is so."),
        ('path.write_bytes(b"a picture")', 'path.write_bytes(b"a better one")'),
        ("def square(n):", 'def square(n):\n    """Of a number."""'),
    ],
    ids=["table", "comment", "picture", "docstring"],
)
def test_what_only_shows_the_rows_may_change(squares, old, new) -> None:
    squares.run()
    squares.change(old, new)
    squares.run()
    assert squares.computed() == [0, 1, 2, 3]


def test_code_that_is_edited_while_items_run_is_not_taken_for_what_ran(squares, caplog) -> None:
    """The first item edits the second one's file, which is imported already."""
    second = squares.file.with_name("b_squares.py")
    second.write_text(ITEM)
    squares.change(
        "    if n in BROKEN:",
        f"    file = Path({str(second)!r})\n"
        '    file.write_text(file.read_text().replace("SCALE = 1", "SCALE = 5"))\n'
        "    if n in BROKEN:",
    )
    squares.run("b-squares")
    assert "b-squares: the code of the item changed on disk while this ran" in caplog.text
    sys.modules.pop("reproduce.items.b_squares")
    report = read_report(squares.results / "b-squares.json")
    assert report.changed == "the item"
    assert report.findings.comparisons[0].ours == 14
    squares.run(name="b-squares")
    sys.modules.pop("reproduce.items.b_squares")
    again = read_report(squares.results / "b-squares.json")
    assert (again.changed, again.findings.comparisons[0].ours) == ("", 70)


def test_code_of_another_module_counts_where_cells_use_it(squares) -> None:
    other = squares.file.with_name("helper_of_squares.py")
    other.write_text(
        "def used(n):\n    return deeper(n)\n\ndef deeper(n):\n    return n\n\nspare = 1\n"
    )
    squares.change(
        "def square(n):", "from reproduce.items.helper_of_squares import used\n\ndef square(n):"
    )
    squares.change("SCALE * n * n", "SCALE * used(n) * n")
    before = code_version("reproduce.items.all_squares")
    other.write_text(other.read_text().replace("spare = 1", "spare = 2"))
    assert code_version("reproduce.items.all_squares") == before
    other.write_text(other.read_text().replace("return n\n", "return n + 0\n"))
    assert code_version("reproduce.items.all_squares") != before


def test_cells_that_cannot_be_told_apart_are_an_error() -> None:
    twice = [Cell({"n": 1}, list), Cell({"n": 1}, list)]
    with pytest.raises(ValueError, match=r"two cells have the key \{'n': 1\}"):
        check_keys(twice)


def test_rows_that_are_no_plain_values_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="no string and no number"):
        CellStore(tmp_path, "code", "package").write({"n": 1}, [{"x": object()}], 0.0)
    assert list(tmp_path.iterdir()) == []


# The command.


def test_an_unknown_item_is_an_error_with_the_nearest_name(squares, capsys) -> None:
    assert squares.run(name="all-sqares") == 2
    assert "there is no item 'all-sqares': did you mean all-squares?" in capsys.readouterr().err
    assert squares.run(name="quite-another") == 2
    assert "--list" in capsys.readouterr().err
    assert squares.computed() == []


@pytest.mark.parametrize(
    ("asked", "advice"),
    [
        ("table1", "did you mean table1-and-2?"),
        ("table2", "did you mean table1-and-2?"),
        ("figure", "did you mean figure1 or figure2?"),
        ("tabel3", "did you mean table3?"),
    ],
)
def test_a_part_of_a_name_is_advice_enough(asked: str, advice: str, capsys) -> None:
    assert main([asked]) == 2
    assert f"there is no item {asked!r}: {advice}" in capsys.readouterr().err


def test_all_wrong_names_are_told_at_once(capsys) -> None:
    assert main(["--all", "tabel3", "iris"]) == 2
    said = capsys.readouterr().err
    assert "'tabel3': did you mean table3?" in said
    assert "'iris': did you mean iris-prototypes?" in said


@pytest.mark.parametrize("folder", ["cache", "results"])
def test_a_folder_that_cannot_be_written_is_found_before_the_work(squares, folder, capsys) -> None:
    getattr(squares, folder).write_text("a file")
    assert squares.run() == 2
    assert "error: nothing can be written" in capsys.readouterr().err
    assert squares.computed() == []


def test_the_list_ends_in_silence_when_nobody_reads_it() -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "reproduce", "--list"]
    ended = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False, text=True)
    os.close(write)
    assert (ended.returncode, ended.stderr) == (1, "")


def test_nothing_asked_for_is_an_error(squares, capsys) -> None:
    assert main([]) == 2
    assert "name an item" in capsys.readouterr().err


def test_the_list_has_all_items_whose_names_may_be_written_as_files(squares, capsys) -> None:
    assert main(["--list"]) == 0
    assert capsys.readouterr().out == "all-squares  Squares\n"
    assert squares.run(name="all_squares") == 0
    assert (squares.results / "all-squares.json").is_file()


def test_quick_results_have_a_place_of_their_own(squares) -> None:
    squares.run()
    full = (squares.results / "all-squares.csv").read_bytes()
    assert squares.run("--quick") == 0
    assert squares.computed() == [0, 1, 2, 3, 0, 1]
    assert (squares.results / "all-squares.csv").read_bytes() == full
    quick = read_report(squares.results / "quick" / "all-squares.json")
    assert quick.is_quick
    assert quick.n_cells == 2
    assert quick.command == "python -m reproduce all-squares --quick"
    assert Folders().written(is_quick=True) != Folders().written(is_quick=False)


def test_a_missing_data_set_stops_its_item_alone(squares, capsys, monkeypatch) -> None:
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    other = squares.file.with_name("a_real_set.py")
    other.write_text(ITEM.replace("if n in BROKEN", 'load_data_set("birch1")\n    if n in BROKEN'))
    assert squares.run("all-squares", name="a-real-set") == 0
    said = capsys.readouterr()
    assert "a-real-set is not tested: " in said.err
    assert "birch1" in said.err
    assert "not tested, as data are missing: a-real-set" in said.err
    assert (squares.results / "all-squares.json").is_file()
    assert not (squares.results / "a-real-set.json").exists()


def test_broken_items_are_named_and_leave_the_others_running(squares, capsys) -> None:
    squares.file.with_name("a_torn_file.py").write_text("def cells(")
    assert squares.run(name="a-torn-file") == 1
    assert squares.run("all-squares", name="a-torn-file") == 1
    assert "a-torn-file failed, see above" in capsys.readouterr().err
    assert (squares.results / "all-squares.json").is_file()
    squares.change("TITLE = ", "NAME = ")
    assert squares.run() == 1
    assert "has no TITLE" in capsys.readouterr().err


def test_results_of_an_earlier_run_are_marked_where_the_last_one_failed(squares) -> None:
    squares.run()
    squares.change("BROKEN = {}", "BROKEN = {2: ValueError('no square')}")
    assert squares.run() == 1
    report = read_report(squares.results / "all-squares.json")
    assert report.left_over == "it failed"
    assert "all-squares.md) (of an earlier run) |" in page.front_page([report], [])
    text = page.item_page(report, squares.results)
    assert "**Of an earlier run, as in the last one it failed.**" in text
    squares.change("2: ValueError('no square')", "")
    squares.run()
    report = read_report(squares.results / "all-squares.json")
    assert report.left_over == ""
    assert "earlier run" not in page.front_page([report], [])
    assert "earlier run" not in page.item_page(report, squares.results)


def test_the_csv_is_tidy_and_packed_where_it_is_long(tmp_path: Path) -> None:
    rows = [{"d": 10, "m": "b"}, {"d": 9, "m": "c", "x": 0.1}, {"d": 9, "m": "a", "x": math.nan}]
    path = write_rows(rows, tmp_path, "rows")
    assert list(csv.reader(path.read_text().splitlines())) == [
        ["d", "m", "x"],
        ["10", "b", ""],
        ["9", "c", "0.1"],
        ["9", "a", "nan"],
    ]
    assert str(read_rows(tmp_path, "rows")) == str(rows)
    write_rows([{"i": 0}], tmp_path, "rows")
    path = write_rows([{"i": i} for i in range(200_000)], tmp_path, "rows")
    assert [file.name for file in tmp_path.iterdir()] == ["rows.csv.gz"] == [path.name]
    lines = gzip.decompress(path.read_bytes()).split()
    assert lines == [b"i", *(b"%d" % i for i in range(200_000))]
    write_rows([{"i": 0}], tmp_path, "rows")
    assert [file.name for file in tmp_path.iterdir()] == ["rows.csv"]


def test_progress_is_quiet_in_a_file_and_says_what_is_left_at_a_terminal() -> None:
    quiet, terminal = io.StringIO(), io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    for stream in (quiet, terminal):
        told = Progress("squares", 4, 1, stream)
        told.cell_done()
        told.cell_done()
        told.close()
    assert len(quiet.getvalue().splitlines()) == 2
    assert "cell 3 of 4" in terminal.getvalue()
    assert "left" in terminal.getvalue()
    assert "3 of 4 cells done, 2 computed" in quiet.getvalue()


# The page.


def test_pages_and_report_have_every_table_picture_count_and_claim(squares) -> None:
    squares.run()
    report = read_report(squares.results / "all-squares.json")
    front = page.front_page([report], ["not-run"])
    for part in (
        "- **Holds**: 1 of 1 claims",
        "| [all-squares](reproduction/all-squares.md) | real | 1 of 2 | 1 holds |",
        "Not tested, as they have no results so far: not-run.",
        "\nreproduction/all-squares\n",
        "- **All of it** took 0.0 hours, from ",
        "(reproduction/claims-that-do-not-plainly-hold.md)",
    ):
        assert part in front
    text = page.item_page(report, squares.results)
    for part in (
        "Nobody 1900. Data: real.",
        "- **Holds**: Squares \\| grow (*Nobody 1900*).\n  - &lt;all> of them.",
        "**Squares**\n\n| n | square |",
        "a note",
        "squares.png)",
        "python -m reproduce all-squares",
        report.date,
        "0a1b2c3d",
        "| sum | square | 15.000 | 14 | 0.000 | 0.500 | DIFFERS |",
        "- nothing more",
    ):
        assert part in text
    squares.run()
    report = read_report(squares.results / "all-squares.json")
    claim = Claim("Squares | grow", "Nobody 1900", "holds", "<all> of them", data="real")
    assert report.findings.claims == [claim]
    assert report.findings.tables[0].rows == [[n, n * n] for n in range(4)]
    assert count_of(report.findings.comparisons) == "1 of 2 published numbers within noise"


def test_exceptions_have_a_page_of_their_own_that_names_the_sample_of_a_verdict(squares) -> None:
    squares.run()
    report = read_report(squares.results / "all-squares.json")
    claims = [
        Claim("Squares grow", "Nobody 1900", "holds", ""),
        Claim("Squares end", "Nobody 1900", "does not hold", "", on="n", sample="7 seeds"),
        Claim("Squares jump", "Nobody 1900", "depends", "", on="n", sample="3 seeds"),
        Claim("Squares win (power, s0 = -1).", "Nobody 1900", "not decidable", ""),
        Claim("Squares win (power, s0 = -3).", "Nobody 1900", "not decidable", ""),
    ]
    report = replace(report, findings=replace(report.findings, claims=claims))
    text = page.exceptions([report])
    item = "[all-squares](all-squares.md)"
    row = f"| Squares end | Nobody 1900 | 7 seeds | {item} |"
    rows = [
        "## Does not hold\n\n| claim | source | rests on | item |",
        row,
        f"| Squares jump | Nobody 1900 | n (3 seeds) | {item} |",
        "## Not decidable\n\n| claim | source | item |",
        f"| Squares win (power, s0 = -1, -3) | Nobody 1900 | {item} |",
    ]
    assert all(part in text for part in rows)
    assert "Squares grow" not in text
    assert row not in page.front_page([report], [])


def test_claims_on_data_other_than_those_of_the_source_are_counted_one_by_one(squares) -> None:
    squares.run()
    report = read_report(squares.results / "all-squares.json")
    real, ours = "real", "our layout: the source names no widths"
    claims = [
        Claim(f"{n} grows", "Nobody 1900", "not decidable", "", data=data)
        for n, data in enumerate((real, ours, ours))
    ]
    report = replace(report, findings=replace(report.findings, claims=claims))
    said = page.blame([report])
    assert "Of these, 2 are ours to blame" in said
    assert said.count("has a layout of ours (the source names no widths)") == 1


def test_the_time_of_all_items_is_their_sum(squares) -> None:
    squares.run()
    report = read_report(squares.results / "all-squares.json")
    first = replace(report, seconds=5400.0, dates_of_cells=["1901-01-01"], n_processors=2)
    second = replace(report, seconds=1800.0, dates_of_cells=["1902-02-02"], n_processors=2)
    said = "2.0 hours, from 1901-01-01 to 1902-02-02, on 2 processors"
    assert page.computing([first, second]).startswith(said)


def test_the_page_says_how_busy_the_machine_was(squares, monkeypatch) -> None:
    loads = iter([0.5, 3.25, 2.0, 1.0])
    monkeypatch.setattr(cell_store, "machine_load", lambda: next(loads))
    squares.run()
    report = read_report(squares.results / "all-squares.json")
    assert report.loads == [0.5, 3.25]
    assert "on which 0.5 to 3.2 processes were at work" in page.origin(report)


def test_the_pages_have_the_dates_of_computing_and_not_of_presenting(squares) -> None:
    squares.run()
    computed = read_report(squares.results / "all-squares.json")
    report = replace(computed, date="1903-03-03", dates_of_cells=["1901-01-01", "1902-02-02"])
    assert "| 1901-01-01 and 1902-02-02 |" in page.front_page([report], [])
    assert "1903" not in page.front_page([report], [])
    assert "computed on 1901-01-01 and 1902-02-02" in page.origin(report)


# The items themselves.


@pytest.mark.parametrize("name", catalog.names())
def test_an_item_has_its_parts_and_cells_of_its_own(name: str) -> None:
    module = catalog.module_of(name)
    assert module.TITLE
    assert module.SOURCE
    quick, full = module.cells(True), module.cells(False)
    for cells in (quick, full):
        running.check_keys(cells)
    assert 0 < len(quick) <= len(full)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_hold(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert failed == 0


def test_table_3_in_quick(data_folder: Path, tmp_path: Path, capsys) -> None:
    folders = ["--cache", str(tmp_path / "cache"), "--results", str(tmp_path / "results")]
    assert main(["table3", "--quick", *folders]) == 0
    report = read_report(tmp_path / "results" / "quick" / "table3.json")
    errors = [c for c in report.findings.comparisons if c.quantity.startswith("error")]
    assert len(errors) == 6
    # Two runs are no best of ten: these may be farther away, but not by much.
    for comparison in errors:
        assert replace(comparison, tolerance=0.025).is_within_noise
    ours = {comparison.what: comparison.ours for comparison in errors}
    for mice in ("control", "trisomic"):
        assert ours[f"power, {mice}"] < ours[f"k-means++, {mice}"]
