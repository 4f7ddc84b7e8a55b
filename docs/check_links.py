"""Checks the links of the built documentation, without a network.

Each link to a page of ours must lead to a file, and to a place in it where it names one. Links to
elsewhere are not followed: they must be well formed, and are listed for people to try.

    python docs/check_links.py docs/_build/html [--external]
"""

from __future__ import annotations

import argparse
import functools
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LINKING = {"a": "href", "link": "href", "img": "src", "script": "src", "source": "src"}
_HOST = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)*\.[a-z]{2,}(:\d+)?", re.IGNORECASE)
# What a sentence or a bracket around a link may leave at its end.
_LEFT_OVER = tuple(".,;:'\"<>`]")


@dataclass(frozen=True, slots=True)
class Link:
    """What it says, the page where it stands, and the folder of all pages."""

    target: str
    page: Path
    folder: Path

    @property
    def is_external(self) -> bool:
        """Whether it leaves the folder of the page."""
        parts = urlsplit(self.target)
        return bool(parts.scheme or parts.netloc)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value is not None}
        self.places.update(values[name] for name in ("id", "name") if name in values)
        if _LINKING.get(tag) in values:
            self.targets.append(values[_LINKING[tag]])


@functools.cache
def _read(page: Path) -> _Page:
    parsed = _Page()
    parsed.feed(page.read_text(encoding="utf-8"))
    return parsed


def links_in(folder: Path) -> Iterator[Link]:
    """The links of all pages, once each on a page; what the theme brings are no pages."""
    for page in sorted(folder.rglob("*.html")):
        if "_static" in page.relative_to(folder).parts:
            continue
        for target in dict.fromkeys(_read(page).targets):
            yield Link(target, page, folder)


def fault_of(link: Link) -> str | None:
    """What is wrong with a link, or None."""
    return _fault_of_external(link.target) if link.is_external else _fault_of_internal(link)


def _fault_of_internal(link: Link) -> str | None:
    parts = urlsplit(link.target)
    file = link.page.parent / unquote(parts.path) if parts.path else link.page
    if file.is_dir():
        file = file / "index.html"
    if not file.resolve().is_relative_to(link.folder.resolve()):
        return "it leads out of the folder of the pages"
    if not file.is_file():
        return "there is no such file"
    place = unquote(parts.fragment)
    if place and file.suffix == ".html" and place not in _read(file).places:
        return "there is no such place in the page"
    return None


def _fault_of_external(target: str) -> str | None:
    parts = urlsplit(target)
    if parts.scheme == "data":
        return None
    if parts.scheme not in ("https", "http"):
        return f"it is neither http nor https but {parts.scheme or 'nothing'}"
    if not _HOST.fullmatch(parts.netloc):
        return "it names no host"
    if re.search(r"\s", target) or target.endswith(_LEFT_OVER):
        return "it has a space, or ends in what belongs to the sentence around it"
    return None


def main() -> None:
    """Print what is wrong, and with --external all links to elsewhere; exit 1 if anything is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="the built pages")
    parser.add_argument("--external", action="store_true", help="list the links to elsewhere")
    arguments = parser.parse_args()
    links = list(links_in(arguments.folder))
    if not links:
        sys.exit(f"there are no pages with links in {arguments.folder}: run make docs")
    external = sorted({link.target for link in links if link.is_external})
    if arguments.external:
        print(*external, sep="\n")
    faults = [(link, fault) for link in links if (fault := fault_of(link))]
    for link, fault in faults:
        print(f"{link.page}: {link.target}: {fault}", file=sys.stderr)
    n_pages = len({link.page for link in links})
    print(
        f"{len(links)} links on {n_pages} pages, {len(faults)} of them wrong; "
        f"{len(external)} different ones lead elsewhere and were not followed"
    )
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
