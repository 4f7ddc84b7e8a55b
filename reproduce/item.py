"""What a reproduction is made of: cells that are computed one by one, and what their rows show."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

Value = str | int | float
Row = Mapping[str, Value]
Verdict = Literal["confirmed", "refuted", "undecided", "not testable here"]


@dataclass(frozen=True, slots=True)
class Cell:
    """A part that is computed by itself and kept, so that an interrupted run goes on after it.

    Attributes
    ----------
    key : mapping
        What tells it from the item's other cells, such as `{"features": 10, "seeding": "D"}`.
        Everything its rows depend on is in it, seeds and sizes included.
    compute : callable
        Gives its rows; a row is a line of the item's tidy CSV, to which the key is added.
    """

    key: Mapping[str, Value]
    compute: Callable[[], Sequence[Row]]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A published number beside ours.

    Attributes
    ----------
    what : str
        Such as `Lloyd, d = 10`.
    quantity : str
        Such as `VI`.
    published : float
    ours : float
    standard_error : float
        Of the difference: of ours and, where it is published, of theirs. Zero where `tolerance`
        alone decides.
    tolerance : float
        How far ours may lie away beside the noise.
    """

    what: str
    quantity: str
    published: float
    ours: float
    standard_error: float = 0.0
    tolerance: float = 0.0

    @property
    def is_within_noise(self) -> bool:
        """Whether ours is as near as two standard errors and the tolerance allow; NaN is not.

        Nor is anything within an infinite error, which is that of a single number.
        """
        allowed = 2 * self.standard_error + self.tolerance
        return math.isfinite(allowed) and abs(self.ours - self.published) <= allowed

    @property
    def in_words(self) -> str:
        """What came of it: a difference can be told only where its error is known."""
        if not math.isfinite(self.standard_error):
            return "NO ERROR KNOWN"
        return "within noise" if self.is_within_noise else "DIFFERS"


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a source that a program can check, in our words, and what came of it."""

    text: str
    source: str
    verdict: Verdict
    figure: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table for people.

    Attributes
    ----------
    title : str
    columns : sequence of str
    rows : sequence of sequences
        Strings stand as they are; floats get three significant digits after the point.
    note : str
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Value]]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Findings:
    """What the rows of an item show."""

    tables: Sequence[Table] = ()
    comparisons: Sequence[Comparison] = ()
    claims: Sequence[Claim] = ()
    remarks: Sequence[str] = field(default_factory=tuple)


class Item(Protocol):
    """One table, figure or claim of a source: a module of `reproduce.items` with these names."""

    TITLE: str
    SOURCE: str
    """Which source and which part of it, in our words."""

    def cells(self, quick: bool) -> Sequence[Cell]:
        """What is to be computed; with `quick` a small part of it, in seconds."""
        ...

    def findings(self, rows: Sequence[Row]) -> Findings:
        """What the rows of all cells show."""
        ...

    def draw(self, rows: Sequence[Row], folder: Path) -> Sequence[Path]:
        """Draw what the source draws; no pictures, no paths."""
        ...


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Mean and its standard error; that of one value alone is infinite."""
    n_values = len(values)
    mean = math.fsum(values) / n_values
    if n_values == 1:
        return mean, math.inf
    variance = math.fsum((value - mean) ** 2 for value in values) / (n_values - 1)
    return mean, math.sqrt(variance / n_values)
