"""The checker of links finds what is wrong and nothing else; those of the README lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.check_links import Link, fault_of

PROJECT = Path(__file__).parent.parent
CHECKER = PROJECT / "docs" / "check_links.py"
IN_MARKDOWN = re.compile(r"\]\((?P<target>[^()\s]+)\)")


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


def test_the_command_lists_what_leads_elsewhere_and_fails_where_a_link_is_wrong(page):
    def run_checker() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(CHECKER), str(page.parent), "--external"]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    page.write_text('<a href="https://b.org/">b</a><a href="https://a.org/">a</a>')
    good = run_checker()
    assert good.returncode == 0
    assert good.stdout.startswith("https://a.org/\nhttps://b.org/\n3 links on 2 pages, 0 of them")
    page.write_text('<a href="gone.html">')
    wrong = run_checker()
    assert wrong.returncode == 1
    assert wrong.stderr == f"{page}: gone.html: there is no such file\n"


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_in_the_repository_lead_to_files(name: str) -> None:
    targets = IN_MARKDOWN.findall((PROJECT / name).read_text(encoding="utf-8"))
    assert targets
    for target in targets:
        link = Link(target.partition("#")[0] or name, PROJECT / name, PROJECT)
        assert fault_of(link) is None, target
