"""Cells are computed once, figures become verdicts honestly, and pages say what was found."""

import doctest
import importlib
import math
import re
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from powermeans.errors import MissingDataError
from reproduce import __main__ as command
from reproduce import page, results, running
from reproduce.item import Cell, Claim, Comparison, Findings, Table, grid
from reproduce.rows import mean_and_error, published_rows
from reproduce.verdicts import Checks, above, all_above, below, paired_gain, share_and_error

ROOT = Path(results.__file__).parent


def square(n: int) -> list[dict]:
    COMPUTED.append(n)
    return [{"square": n * n}]


COMPUTED: list[int] = []


def findings(rows) -> Findings:
    total = sum(int(row["square"]) for row in rows)
    return Findings(
        tables=[
            Table("Squares", ["n"], [[r["n"]] for r in rows], "a note", is_published=True),
            Table("Not for the docs", ["n"], []),
        ],
        comparisons=[Comparison("sum", "square", 14.0, total), Comparison("sum", "n", 9.0, total)],
        claims=[Claim("Squares | grow", "section 1", "holds", "<all> of them", in_short="growth")],
        remarks=["nothing more"],
    )


def draw(rows, folder: Path) -> None:
    (folder / "squares.png").write_bytes(b"a picture")


@pytest.fixture
def item(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> types.SimpleNamespace:
    """An item of the test's own, whose results, pages and kept cells are in a folder."""
    for name in ("FRONT", "TABLES", "FIRST_STEP"):
        written = types.SimpleNamespace(write=(tmp_path / f"{name}.md").write_text)
        monkeypatch.setattr(page, name, written)
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(running, "CACHE", tmp_path / "cache")
    squares = types.SimpleNamespace(
        TITLE="Squares", SOURCE="Nobody 1900: section 1", DATA="real", KEEPS_ROWS=False,
        cells=lambda quick: grid(square, part="squares", n=range(2 if quick else 4)),
        findings=findings, draw=draw, front=tmp_path / "FRONT.md", tables=tmp_path / "TABLES.md",
    )  # fmt: skip
    monkeypatch.setattr(command, "item_names", lambda: ["squares"])
    monkeypatch.setattr(command, "module_of", lambda name: squares)
    COMPUTED.clear()
    return squares


# Comparing, and verdicts.


@pytest.mark.parametrize(
    ("ours", "error", "tolerance", "is_within"),
    [
        (1.0, 0.0, 0.0, True),
        (1.1, 0.0, 0.0, False),
        (1.1, 0.06, 0.0, True),
        (1.1, 0.04, 0.0, False),
        (0.9, 0.04, 0.03, True),
        (math.nan, 9.0, 9.0, False),
        (1.0, math.inf, 0.0, False),
    ],
)
def test_a_number_too_far_away_differs(ours, error, tolerance, is_within) -> None:
    assert Comparison("Lloyd", "VI", 1.0, ours, error, tolerance).is_within_noise is is_within


def test_verdicts_need_two_standard_errors_on_their_side() -> None:
    assert [above(x, 1.0, 10.0) for x in (12.1, 11.9, 8.1, 7.9)] == [
        "holds", "open", "open", "does not hold",
    ]  # fmt: skip
    assert [below(x, 1.0, 10.0) for x in (12.1, 7.9)] == ["does not hold", "holds"]
    assert above(5.0, math.inf) == above(math.nan, 0.0) == above(0.0, 0.0) == "open"


def test_means_shares_and_pairs_have_the_errors_of_their_formulas() -> None:
    assert mean_and_error([0.0, 0.0, 3.0, 3.0]) == (1.5, pytest.approx(math.sqrt(3 / 4)))
    assert mean_and_error([5.0]) == (5.0, math.inf)
    # (0 + 2) / (16 + 4), and the root of 0.1 * 0.9 / 20.
    assert share_and_error([0.0] * 16) == (0.1, pytest.approx(math.sqrt(0.0045)))
    # Differences 1, 3: mean 2, deviation the root of 2, over the root of 2.
    assert paired_gain([2.0, 5.0], [1.0, 2.0]) == (2.0, pytest.approx(1.0))


def test_many_cases_hold_together_unless_one_is_against_or_an_effect_is_none() -> None:
    clear, near, against, none = (9.0, 1.0), (1.0, 1.0), (-9.0, 1.0), (0.1, 0.1)
    assert all_above([clear] * 18 + [near] * 2) == "holds"
    assert all_above([clear] * 17 + [near] * 3) == "open"
    assert all_above([clear] * 19 + [against]) == "depends"
    assert [all_above([clear, none], none_below=limit) for limit in (0.2, 0.4)] == [
        "open", "depends",
    ]  # fmt: skip
    assert all_above([(0.1, 0.01)], none_below=0.4) == "holds"


def test_a_check_refutes_what_its_figures_do_not_bear_out() -> None:
    checks = Checks()
    add = checks.claim("It adds up.", "a book", "{sum:g}", lambda sum: sum == 4, n_quick_cases=5)
    add(lambda n_cases: {"sum": n_cases})
    ((cell,), (quick,)) = checks.cells(False), checks.cells(True)
    assert quick.rows() == [{"sum": 5}]
    for total, verdict in ((4, "holds"), (5, "does not hold")):
        (claim,) = checks.findings([{**cell.key, "sum": total}]).claims
        assert (claim.verdict, claim.figure) == (verdict, str(total))


def test_tables_1_and_2_are_those_of_the_paper() -> None:
    first, second = (
        {(row["method"], row["features"]): row for row in published_rows(name)}
        for name in ("table1", "table2")
    )
    assert len(first) == len(second) == 42
    assert first["KHM", 100]["mean"] == 1.586
    assert first["power, s0 = -9", 10]["spread"] == 0.10
    assert (second["power, s0 = -18", 200]["mean"], second["Lloyd", 2]["mean"]) == (0.077, 0.637)


# Cells that are kept.


def test_finished_cells_are_kept_after_an_interruption_and_not_computed_again(tmp_path) -> None:
    def cells(stop_at: int) -> list[Cell]:
        def compute(n: int) -> list[dict]:
            if n == stop_at:
                raise KeyboardInterrupt
            return square(n)

        return grid(compute, n=range(4))

    COMPUTED.clear()
    with pytest.raises(KeyboardInterrupt):
        running.compute_all("squares", cells(2), tmp_path)
    rows, provenance = running.compute_all("squares", cells(9), tmp_path)
    assert COMPUTED == [0, 1, 2, 3]
    assert rows == [{"n": n, "square": n * n} for n in range(4)]
    assert provenance.n_cells == 4
    running.compute_all("squares", cells(9), tmp_path, is_fresh=True)
    assert COMPUTED == [0, 1, 2, 3] * 2


def test_cells_of_a_changed_function_are_computed_again(tmp_path: Path) -> None:
    versions: list[Callable[[int], list[dict]]] = [
        lambda n: [{"square": n * n}],
        lambda n: [{"square": n * n * n}],
    ]
    found = [running.finish(Cell({"n": 3}, version), tmp_path)["rows"] for version in versions]
    assert found == [[{"square": 9}], [{"square": 27}]]


def test_cells_that_cannot_be_told_apart_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"two cells have the key \{'n': 1\}"):
        running.check_keys([Cell({"n": 1}, square)] * 2)


def test_stored_rows_count_as_finished_cells_and_keep_when_they_were_computed(item) -> None:
    item.KEEPS_ROWS = True
    assert command.main(["squares"]) == 0
    line = results.stored("items")[0]
    results.replace_lines("items", "squares", [{**line, "seconds": 7200, "dates": "1901-01-01"}])
    for path in (running.CACHE / "squares" / "full").iterdir():
        path.unlink()
    item.cells = lambda quick: grid(square, part="squares", n=range(5))
    assert command.main(["squares"]) == 0
    assert COMPUTED == [0, 1, 2, 3, 4]
    line = results.stored("items")[0]
    assert line["dates"].startswith("1901-01-01 and 20")
    assert float(line["seconds"]) >= 7200
    assert "from 1901-01-01 to 20" in item.front.read_text()


# The command, and the pages.


def test_a_run_says_and_stores_what_the_pages_show(item, capsys) -> None:
    assert command.main(["all"]) == 0
    said = capsys.readouterr().out
    for part in (
        "Nobody 1900: section 1. Data: real.",
        "- Holds: Squares | grow (section 1).\n  <all> of them",
        "**Not for the docs**",
        "| sum | n | 9.000 | 14 | 0.000 | 0.000 | DIFFERS |",
        "**1 of 2 published numbers within noise**",
        "squares.png",
    ):
        assert part in said
    assert results.stored_claims()["squares"] == findings([]).claims
    tables, front = item.tables.read_text(), item.front.read_text()
    for part in (
        "### Squares\n\n| n |\n| --- |\n| 0 |",
        "a note",
        "| Squares \\| grow | Nobody 1900, section 1 | holds | &lt;all> of them |",
        "| squares | real | 1 of 2 | 1 holds |",
    ):
        assert part in tables
    assert "Not for the docs" not in tables
    assert "- **1 claims** can be checked by a program. Verdicts, with the number of" in front
    assert "claims: holds (1), does not hold (0)" in front
    assert "- **Holds**: growth." in front


def test_the_front_page_says_what_would_decide_an_open_claim_and_keeps_to_fifteen_lines() -> None:
    claims = [Claim("It grows", "section 1", "open", until="more of them")] * 2
    line = {"in_short": "", "seconds": "60", "dates": "1901-01-01", "processors": "2"}
    lines = page.front_lines([line], {"squares": claims})
    assert "**Open**: 2 of squares, needing more of them." in lines
    named = [Claim("It grows", "section 1", "depends", on="n", in_short="growth")] * 13
    with pytest.raises(ValueError, match="has 16 lines"):
        page.front_lines([line], {"squares": named})


@pytest.mark.parametrize(
    ("error", "status"), [(MissingDataError("birch1 is not there"), 0), (ValueError("broken"), 1)]
)
def test_an_item_that_cannot_run_leaves_the_others_running(
    item, monkeypatch, capsys, error, status
) -> None:
    def fail(quick: bool) -> list[Cell]:
        raise error

    broken = types.SimpleNamespace(**{**vars(item), "cells": fail})
    monkeypatch.setattr(command, "item_names", lambda: ["a-broken", "squares"])
    monkeypatch.setattr(command, "module_of", lambda n: item if n == "squares" else broken)
    assert command.main(["all"]) == status
    assert str(error) in capsys.readouterr().err
    assert item.front.exists()


def test_an_unknown_item_is_an_error_with_the_nearest_name(capsys) -> None:
    assert command.main(["table1", "tabel3"]) == 2
    said = capsys.readouterr().err
    assert "no item 'table1': did you mean table1-and-2" in said
    assert "no item 'tabel3': did you mean table3?" in said


MODULES = [
    ".".join(("reproduce", *file.relative_to(ROOT).with_suffix("").parts))
    for file in sorted({*ROOT.rglob("[a-z]*.py")} - {*ROOT.glob("tests/*")})
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_hold(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert failed == 0


def test_what_is_stored_and_what_is_run_are_the_same_items() -> None:
    names = command.item_names()
    assert [line["item"] for line in results.stored("items")] == names
    assert list(results.stored_claims()) == names


def test_the_docs_are_what_is_stored_and_few_claims_are_open() -> None:
    items, claims = results.stored("items"), results.stored_claims()
    lines = page.front_lines(items, claims)
    assert all(f"- {line}\n" in page.FRONT.path.read_text(encoding="utf-8") for line in lines)
    shown = page.TABLES.path.read_text(encoding="utf-8")
    assert page.all_tables(items, claims, results.stored_tables()) in shown
    left = [claim for of_item in claims.values() for claim in of_item if claim.verdict == "open"]
    assert len(left) <= 6
    assert all(claim.until for claim in left)


SOURCES = page.FRONT.path.parent / "from_the_sources_to_the_code.md"
LINES = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in SOURCES.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith(("| ---", "| where"))
]


def linked(verdict: str) -> tuple[str, str]:
    """Return a verdict and the item to whose figures it links."""
    found = re.fullmatch(r"\[(.+)\]\(reproduction/tables\.md#(.+)\)", verdict)
    assert found
    return found[1], found[2]


@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line[0]} {line[3]}")
def test_the_sources_lead_to_names_and_verdicts_that_are_there(line: list[str]) -> None:
    _, _, file, name, verdict = line
    is_ours = file.startswith("reproduce/")
    path = ROOT.parent / file if is_ours else ROOT.parent / "src" / "powermeans" / file
    text = path.read_text(encoding="utf-8")
    assert re.search(rf"^(def|class) {name}\b|^{name}\b.* = ", text, re.MULTILINE)
    reached, item = linked(verdict)
    assert reached in {claim.verdict for claim in results.stored_claims()[item]}


def test_all_five_sources_lead_to_the_code() -> None:
    assert SOURCES.read_text(encoding="utf-8").count("\n## ") == 5
    assert {linked(line[4])[1] for line in LINES} == set(command.item_names())
