"""Cells are computed once, figures become verdicts honestly, and pages say what was found."""

import doctest
import importlib
import math
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from powermeans.errors import MissingDataError
from reproduce import __main__ as command
from reproduce import page, results, running
from reproduce.item import Cell, Claim, Comparison, Findings, Table, grid
from reproduce.rows import mean_and_error, published_rows
from reproduce.verdicts import Checks, above, below, paired_gain, share_and_error

ROOT = Path(results.__file__).parent


def square(n: int) -> list[dict]:
    COMPUTED.append(n)
    return [{"square": n * n}]


COMPUTED: list[int] = []


def findings(rows) -> Findings:
    total = sum(int(row["square"]) for row in rows)
    return Findings(
        tables=[Table("Squares", ["n", "square"], [[r["n"], r["square"]] for r in rows], "a note")],
        comparisons=[Comparison("sum", "square", 14.0, total), Comparison("sum", "n", 9.0, total)],
        claims=[Claim("Squares | grow", "section 1", "holds", "<all> of them", in_short="growth")],
        remarks=["nothing more"],
    )


def draw(rows, folder: Path) -> None:
    (folder / "squares.png").write_bytes(b"a picture")


@pytest.fixture
def item(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> types.SimpleNamespace:
    """An item of the test's own, whose results, pages and kept cells are in a folder."""
    front = tmp_path / "reproduction.md"
    front.write_text(f"{page.PAGE.begin}\n<!-- end of what is written by a command -->\n")
    pages = tmp_path / "reproduction"
    pages.mkdir()
    where = types.SimpleNamespace(begin=page.PAGE.begin, command=page.PAGE.command)
    where.write = lambda block: front.write_text(block)
    monkeypatch.setattr(page, "PAGE", where)
    monkeypatch.setattr(page, "OF_ITEMS", pages)
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(running, "CACHE", tmp_path / "cache")
    squares = types.SimpleNamespace(
        TITLE="Squares", SOURCE="Nobody 1900: section 1", DATA="real", KEEPS_ROWS=False,
        cells=lambda quick: grid(square, part="squares", n=range(2 if quick else 4)),
        findings=findings, draw=draw, front=front, page=pages / "squares.md",
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
        "holds", "not decidable", "not decidable", "does not hold",
    ]  # fmt: skip
    assert [below(x, 1.0, 10.0) for x in (12.1, 7.9)] == ["does not hold", "holds"]
    assert above(5.0, math.inf) == above(math.nan, 0.0) == above(0.0, 0.0) == "not decidable"


def test_means_shares_and_pairs_have_the_errors_of_their_formulas() -> None:
    assert mean_and_error([0.0, 0.0, 3.0, 3.0]) == (1.5, pytest.approx(math.sqrt(3 / 4)))
    assert mean_and_error([5.0]) == (5.0, math.inf)
    # (0 + 2) / (16 + 4), and the root of 0.1 * 0.9 / 20.
    assert share_and_error([0.0] * 16) == (0.1, pytest.approx(math.sqrt(0.0045)))
    # Differences 1, 3: mean 2, deviation the root of 2, over the root of 2.
    assert paired_gain([2.0, 5.0], [1.0, 2.0]) == (2.0, pytest.approx(1.0))


@pytest.mark.parametrize("data", ["part: 5 of 7 rows", "stand-in", "our layout: none is named"])
def test_data_other_than_those_of_the_source_decide_nothing(data: str) -> None:
    claim = Claim("It grows", "Nobody 1900", "depends", "It falls.", on="the day")
    limited = claim.on_data(data)
    assert (limited.verdict, limited.figure) == (
        "not decidable", "On these data: depends on the day. It falls.",
    )  # fmt: skip
    assert claim.on_data("real").verdict == "depends"
    assert replace(claim, data="real").on_data(data).verdict == "depends"


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
    text = item.page.read_text()
    assert "5 cells computed on 1901-01-01 and" in text
    assert "in 120.0 minutes" in text


# The command, and the pages.


def test_a_run_writes_its_page_its_claims_and_the_front_page(item, capsys) -> None:
    assert command.main(["all"]) == 0
    assert (
        "- **Holds**: Squares | grow (*section 1*).\n  - <all> of them." in capsys.readouterr().out
    )
    for part in (
        "Nobody 1900: section 1. Data: real.",
        "- **Holds**: Squares \\| grow (*section 1*).\n  - &lt;all> of them.",
        "**Squares**\n\n| n | square |\n| --- | ---: |\n| 0 | 0 |",
        "a note",
        "squares.png)",
        "| sum | n | 9.000 | 14 | 0.000 | 0.000 | DIFFERS |",
        "**1 of 2 published numbers within noise**",
        "`python -m reproduce squares`: 4 cells computed on 20",
    ):
        assert part in item.page.read_text()
    assert results.stored_claims()["squares"][0].verdict == "holds"
    front = item.front.read_text()
    assert "- **Holds**: 1 of 1 claims, such as: [growth](reproduction/squares.md)." in front
    assert "| [squares](reproduction/squares.md) | real | 1 of 2 | 1 holds |" in front


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
    assert item.page.exists()


def test_an_unknown_item_is_an_error_with_the_nearest_name(capsys) -> None:
    assert command.main(["table1", "tabel3"]) == 2
    said = capsys.readouterr().err
    assert "no item 'table1': did you mean table1-and-2" in said
    assert "no item 'tabel3': did you mean table3?" in said


def test_exceptions_have_a_page_of_their_own(item) -> None:
    claims = [
        Claim("Squares grow", "section 1", "holds"),
        Claim("Squares jump", "section 2", "depends", on="n", sample="3 seeds"),
        Claim("Squares end", "Somebody 1901", "not decidable", data="part: 2 of 3"),
    ]
    line = {"item": "squares", "source": "Nobody 1900: section 1"}
    text = page.exceptions([line], {"squares": claims})
    assert "| Squares jump | Nobody 1900, section 2 | n (3 seeds) | [squares](squares.md) |" in text
    assert "| Squares end | Somebody 1901 |  | [squares](squares.md) |" in text
    assert "Squares grow" not in text
    assert "1 are ours to blame" in page.blame({"squares": claims})


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
    assert all((page.OF_ITEMS / f"{name}.md").is_file() for name in names)
