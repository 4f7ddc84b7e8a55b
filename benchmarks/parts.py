"""A benchmark of several parts, each a table with its own origin on the same page of the docs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks import machine
from benchmarks.pages import Page, Rows, as_markdown, as_text


@dataclass(frozen=True)
class Part:
    """A table: its title, what a reader must know, and what measures its lines."""

    title: str
    note: str
    run: Callable[[], Iterator[dict[str, Any]]]


def as_rows(cells: list[dict[str, Any]]) -> Rows:
    """Return a line for each cell, whose keys are the columns."""

    def text(value: object) -> str:
        return f"{value:.3g}" if isinstance(value, float) else str(value)

    return [list(cells[0]), *([text(value) for value in cell.values()] for cell in cells)]


def as_page(parts: Mapping[str, Part], stored: Mapping[str, Any]) -> str:
    return "\n\n".join(
        f"### {parts[name].title}\n\n{parts[name].note} {machine.measured(part)}.\n\n"
        + as_markdown(as_rows(part["cells"]))
        for name, part in stored["figures"].items()
    )


def main(name: str, description: str, page: Page, parts: Mapping[str, Part]) -> None:
    """Measure the parts asked for and store them, or write what is stored into the docs."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=parts, default=list(parts))
    parser.add_argument("--page", action="store_true", help="write what is stored into the docs")
    arguments = parser.parse_args()
    if arguments.page:
        page.write(as_page(parts, machine.read(name, name)))
        return
    for part in arguments.parts:
        cells = list(parts[part].run())
        print(f"{parts[part].title}\n{as_text(as_rows(cells))}\n", flush=True)
        print(machine.store_part(name, part, cells), flush=True)
