"""What the documentation shows is true: each of its Python blocks runs, as does each doctest."""

import doctest
import importlib
import pkgutil
import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import powermeans
from docs.check_links import Link, fault_of
from powermeans.divergences import KINDS, NAMES
from powermeans.points.opening import open_rows

PROJECT = Path(__file__).parent.parent
PAGES = [
    PROJECT / "README.md",
    *sorted(
        page
        for page in (PROJECT / "docs").rglob("*.md")
        if not {"_build", "api", "auto_examples"} & {*page.relative_to(PROJECT / "docs").parts}
    ),
]
FENCE = re.compile(r"^```python[^\n]*\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL)


def module_names() -> list[str]:
    found = pkgutil.walk_packages(powermeans.__path__, prefix="powermeans.")
    names = ["powermeans", *(module.name for module in found)]
    return [name for name in names if not {"_native", "__main__"} & {*name.split(".")}]


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block may write files; they vanish with the test."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_python_blocks_run(page: Path) -> None:
    text, namespace = page.read_text(encoding="utf-8"), {"__name__": "__main__"}
    blocks = [*FENCE.finditer(text)]
    for block in blocks:
        # Empty lines in front, so that a traceback names the line of the page.
        code = "\n" * text.count("\n", 0, block.start("code")) + block["code"]
        exec(compile(code, str(page), "exec"), namespace)
    assert len(blocks) == text.count("```python")
    assert blocks or page.name != "README.md"


@pytest.mark.parametrize("name", module_names())
def test_doctests_hold(name: str) -> None:
    if ".tensors" in name:
        pytest.importorskip("torch", reason="the extra gpu is not installed")
    module = importlib.import_module(name)
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_the_guide_names_its_pages() -> None:
    text = (PROJECT / "docs" / "how_do_i" / "index.md").read_text(encoding="utf-8")
    table, _, toctree = text.partition(":::{toctree}")
    pages = re.findall(r"^(\w+)$", toctree, re.MULTILINE)
    assert re.findall(r"\? \| \{doc\}`(\w+)` \|", table) == pages
    assert {"choose_k", "scaling", "determinism"} <= set(pages)


@pytest.mark.parametrize(
    "page", sorted((PROJECT / "docs" / "how_do_i").glob("*.md")), ids=lambda page: page.stem
)
def test_a_page_on_a_task_is_short(page: Path) -> None:
    written_by_commands = r"<!-- what follows .*?<!-- end of what is written by a command -->"
    text = re.sub(written_by_commands, "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(text.split()) <= 500


def test_the_tables_of_divergences_have_a_line_for_each() -> None:
    tables = runpy.run_path(str(PROJECT / "docs" / "divergence_tables.py"))
    page = (PROJECT / "docs" / "how_do_i" / "which_divergence.md").read_text(encoding="utf-8")
    for name in ("by_differences", "by_abilities"):
        assert f"{{{{ divergences_{name} }}}}" in page
        head, rule, *lines = tables[name]().splitlines()
        assert len(lines) == len(KINDS)
        assert {line.count("|") for line in lines} == {rule.count("|")} == {head.count("|")}
        assert re.findall(r"`divergences\.(\w+)\(", "".join(lines)) == ["Binomial"]
        found = set(re.findall(r'`"(\w+)"`', "".join(lines)))
        assert found == NAMES - {"binomial"}


def test_the_version_is_the_same_everywhere() -> None:
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
    assert powermeans.__version__ == version
    assert f"\nversion: {version}\n" in (PROJECT / "CITATION.cff").read_text()
    assert f"\n## {version}" in (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_no_page_has_the_name_of_one_that_sphinx_writes() -> None:
    of_sphinx = {"search", "genindex", "modindex", "py-modindex", "sg_execution_times"}
    assert not of_sphinx & {page.stem for page in PAGES}


# Links: the checker finds what is wrong and nothing else.


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A page with two places, beside a folder with an index and a picture."""
    page = tmp_path / "page.html"
    page.write_text('<h1 id="top">A</h1><a name="über uns"></a><a href="sub/">b</a>')
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "index.html").write_text('<p id="here"><img src="../a%20b.png">')
    (tmp_path / "a b.png").touch()
    return page


GOOD = """
    # #top #%C3%BCber%20uns page.html?highlight=a#top sub/ sub/#here sub/index.html#here a%20b.png
    a%20b.png#anything https://proceedings.mlr.press/v97/xu19a.html#abstract
    http://localhost.test:8000/ data:image/png;base64,AAAA
"""
WRONG = {
    "no such place": ["#nowhere", "sub/#top"],
    "no such file": ["pages.html", "sub/page.html", "sub/../pages.html"],
    "out of the folder": ["../page.html", "/page.html"],
    "no host": ["https:///v97/xu19a.html", "https://proceedings/"],
    "neither http nor https": ["htps://example.org/", "file:///home/somebody/page.html"],
    "belongs to the sentence": ["https://example.org/a)."],
    "a space": ["https://example.org/a b"],
}


def test_a_good_link_has_no_fault_and_a_wrong_one_is_told(page):
    for target in GOOD.split():
        assert fault_of(Link(target, page, page.parent)) is None, target
    for fault, targets in WRONG.items():
        for target in targets:
            assert fault in (fault_of(Link(target, page, page.parent)) or ""), target


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_in_the_repository_lead_to_files(name: str) -> None:
    targets = re.findall(r"\]\(([^()\s]+)\)", (PROJECT / name).read_text(encoding="utf-8"))
    assert targets
    for target in targets:
        link = Link(target.partition("#")[0] or name, PROJECT / name, PROJECT)
        assert fault_of(link) is None, target


# What the page on vector search says of an index over our centers holds in faiss.


def nearest_by_cells(made: dict[str, Any], n_cells: int, queries: np.ndarray) -> np.ndarray:
    """Return the nearest ten rows to each query in the cells of the nearest centers."""
    X, centers = made["X"], np.ascontiguousarray(made["centers"], dtype=np.float64)
    labels, _ = open_rows(X).assign(centers)
    cells = open_rows(queries).sq_distances(centers).argsort(axis=1)[:, :n_cells]
    sq_dist = ((queries[:, None, :] - X).astype(np.float64) ** 2).sum(axis=2)
    for of_query, scanned in zip(sq_dist, cells, strict=True):
        of_query[~np.isin(labels, scanned)] = np.inf
    return sq_dist.argsort(axis=1)[:, :10]


@pytest.mark.filterwarnings("ignore:builtin type .* has no __module__")
def test_an_index_over_our_centers_finds_the_nearest_rows_of_the_cells_scanned():
    pytest.importorskip("faiss", reason="faiss is an extra")
    text = (PROJECT / "docs" / "how_do_i" / "many_clusters.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(?:python|\{code-block\} python)\n(.*?)```", text, re.DOTALL)
    made: dict[str, Any] = {}
    for block in blocks[:3]:  # up to the index of codes
        exec(block, made)
    X, index, codes = (made[name] for name in ("X", "index", "codes"))
    queries = X[:20] + np.float32(0.1)
    assert index.ntotal == codes.ntotal == len(X)
    for n_cells in (4, 1000):
        index.nprobe = n_cells
        _, found = index.search(queries, 10)
        np.testing.assert_array_equal(found, nearest_by_cells(made, n_cells, queries))
    # The lists of the index are our clusters.
    sizes = [index.invlists.list_size(j) for j in range(index.nlist)]
    labels = made["model"].labels_
    np.testing.assert_array_equal(sizes, np.bincount(labels, minlength=index.nlist))
    # Codes find the row that is asked for.
    codes.nprobe = 50
    _, found = codes.search(X[:100], 10)
    assert np.mean((found == np.arange(100)[:, None]).any(axis=1)) > 0.9
