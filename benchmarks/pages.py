"""Tables of figures, and the part of a page of the docs that a command writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
END = "<!-- end of what is written by a command -->"

Rows = list[list[str]]


def as_text(rows: Rows) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def as_markdown(rows: Rows, *, are_numbers: bool = True) -> str:
    """A table; numbers stand at the right, but for the first column."""
    head, *body = rows
    rule = "---:" if are_numbers else "---"
    lines = [head, ["---"] + [rule] * (len(head) - 1), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def legend(methods: Mapping[str, Mapping[str, str]]) -> str:
    """A line for each method: what it is, and with which version it was measured."""
    return "\n".join(
        f"- *{name}*: {method['label']} ({method['made with']})" for name, method in methods.items()
    )


@dataclass(frozen=True)
class Page:
    """A page of the docs with a part that a command writes."""

    name: str
    command: str

    @property
    def path(self) -> Path:
        return DOCS / f"{self.name}.md"

    @property
    def begin(self) -> str:
        return f"<!-- what follows is written by: {self.command} -->"

    def write(self, block: str) -> None:
        text = self.path.read_text(encoding="utf-8")
        self.path.write_text(self.fill(text, block), encoding="utf-8")

    def fill(self, text: str, block: str) -> str:
        """The text with what stands between the two marks replaced."""
        before, begin, rest = text.partition(self.begin)
        _, end, after = rest.partition(END)
        if not begin or not end:
            raise SystemExit(
                f"{self.path} has no place for figures: put the lines {self.begin} and {END} in"
            )
        return f"{before}{self.begin}\n\n{block}\n\n{END}{after}"
