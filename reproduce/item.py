"""What a reproduction is made of: cells that are computed one by one, and what their rows show."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol

Value = str | int | float
Row = Mapping[str, Value]
Verdict = Literal[
    "holds", "does not hold", "no difference", "depends", "not decidable", "not tested"
]
LIMITED_DATA = ("part", "stand-in", "our layout")
"""Kinds of data that decide nothing about what a source says of its own."""


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
    """A sentence of a source that a program can check, in our words, and what came of it.

    Attributes
    ----------
    text, source : str
    verdict : str
    figure : str
        What was measured.
    on : str
        What the answer depends on, where that is the verdict.
    data : str
        What was used instead of the source's data, if not what the item names: the kind and, after
        a colon, more about it. The kinds are those of `Item.DATA`.
    sample : str
        What the verdict rests on where that is little, such as `3 seeds`.
    """

    text: str
    source: str
    verdict: Verdict
    figure: str
    on: str = ""
    data: str = ""
    sample: str = ""

    @property
    def in_words(self) -> str:
        """The verdict as it is printed."""
        sample = f" ({self.sample})" if self.sample else ""
        if self.verdict == "depends":
            return f"depends on {self.on}{sample}"
        return f"{self.verdict}{' with these data' * (self.verdict == 'not decidable')}{sample}"

    def on_data(self, data: str) -> Claim:
        """Return the claim as these data, unless it names its own, can decide it."""
        claim = replace(self, data=self.data or data)
        kind = claim.data.partition(":")[0]
        if kind not in LIMITED_DATA or claim.verdict in ("not decidable", "not tested"):
            return claim
        seen = f"On these data: {claim.in_words}. {claim.figure}"
        return replace(claim, verdict="not decidable", figure=seen, on="")


@dataclass(frozen=True, slots=True)
class Aside:
    """Something in a source that is no claim a program can judge, and what there is to say of it.

    `kind` is "question" or "not judged".
    """

    kind: Literal["question", "not judged"]
    text: str
    source: str
    said: str


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
    """What the rows of an item show; `in_short` is what a front page says of it."""

    tables: Sequence[Table] = ()
    comparisons: Sequence[Comparison] = ()
    claims: Sequence[Claim] = ()
    asides: Sequence[Aside] = ()
    remarks: Sequence[str] = field(default_factory=tuple)
    in_short: str = ""


class Item(Protocol):
    """One table, figure or claim of a source: a module of `reproduce.items` with these names."""

    TITLE: str
    SOURCE: str
    """Which source and which part of it, in our words."""
    DATA: str
    """Which data: real, as published (drawn as the source says), random cases, part, stand-in or
    our layout; more about them after a colon."""

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
