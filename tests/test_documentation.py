"""What the documentation shows is true: each of its Python blocks runs, as does each doctest."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import runpy
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import powermeans
from powermeans.divergences import KINDS, NAMES

PROJECT = Path(__file__).parent.parent
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```python[^\n]*\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL)


def python_blocks(page: Path) -> Iterator[tuple[int, str]]:
    """The line at which each Python block of a page begins, and its code."""
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        yield text.count("\n", 0, match.start("code")), match["code"]


def run_page(page: Path) -> int:
    """Run the blocks of a page one after another in one namespace, and count them."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    n_blocks = 0
    for first_line, code in python_blocks(page):
        # Empty lines in front, so that a traceback names the line of the page.
        exec(compile("\n" * first_line + code, str(page), "exec"), namespace)
        n_blocks += 1
    return n_blocks


def module_names() -> list[str]:
    """Each module of the package that is written in Python."""
    found = pkgutil.walk_packages(powermeans.__path__, prefix="powermeans.")
    names = ["powermeans", *(module.name for module in found)]
    return [name for name in names if not {"_native", "__main__"} & {*name.split(".")}]


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block may write files; they vanish with the test."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run(page: Path) -> None:
    n_blocks = run_page(page)
    assert n_blocks == page.read_text(encoding="utf-8").count("```python")
    assert n_blocks or page.name != "README.md"


def test_a_false_block_fails_at_its_line(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A page\n\n```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n")
    with pytest.raises(AssertionError) as failure:
        run_page(page)
    assert failure.traceback[-1].lineno == 7


@pytest.mark.parametrize("name", module_names())
def test_doctests_hold(name: str) -> None:
    if ".tensors" in name:
        pytest.importorskip("torch", reason="the extra gpu is not installed")
    module = importlib.import_module(name)
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_the_tables_of_divergences_have_a_line_for_each() -> None:
    tables = runpy.run_path(str(PROJECT / "docs" / "divergence_tables.py"))
    page = (PROJECT / "docs" / "which_divergence.md").read_text(encoding="utf-8")
    for name in ("by_differences", "by_abilities"):
        assert f"{{{{ divergences_{name} }}}}" in page
        head, rule, *lines = tables[name]().splitlines()
        assert len(lines) == len(KINDS)
        assert {line.count("|") for line in lines} == {rule.count("|")} == {head.count("|")}
        assert re.findall(r"`divergences\.(\w+)\(", "".join(lines)) == ["Binomial"]
        found = set(re.findall(r'`"(\w+)"`', "".join(lines)))
        assert found == NAMES - {"binomial"}


def test_the_guide_names_each_of_its_pages_with_a_question() -> None:
    text = (PROJECT / "docs" / "guide.md").read_text(encoding="utf-8")
    table, _, toctree = text.partition(":::{toctree}")
    pages = re.findall(r"^(\w+)$", toctree, re.MULTILINE)
    assert re.findall(r"\? \| \{doc\}`(\w+)` \|", table) == pages
    assert {"choosing_k", "scaling", "determinism"} <= set(pages)


def test_the_version_is_the_same_everywhere() -> None:
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
    assert powermeans.__version__ == version
    assert f"\nversion: {version}\n" in (PROJECT / "CITATION.cff").read_text()
    assert f"\n## {version}" in (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_no_page_has_the_name_of_one_that_sphinx_writes() -> None:
    """Sphinx would overwrite it without a word."""
    of_sphinx = {"search", "genindex", "modindex", "py-modindex", "sg_execution_times"}
    assert not of_sphinx & {page.stem for page in PAGES}
