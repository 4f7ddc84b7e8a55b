"""What a reproduction is made of: cells that are computed one by one, and what their rows show.

An item is a module of `reproduce.items`, named after its file, with these names:

- `TITLE`, `SOURCE`: what it is, and which part of which source;
- `DATA`: which data it has: real, as published (drawn as the source says), random cases, a part,
  stand-ins, or a layout of ours; more about them after a colon;
- `cells(quick)`: what is to be computed, with `quick` a small part of it;
- `findings(rows)`: what the rows of all cells show;
- `draw(rows, folder)`, where there are pictures: draws them as `<item>*`;
- `KEEPS_ROWS = True`, where computing takes hours, so that rows are stored with the results.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

Value = str | int | float
Row = Mapping[str, Value]
Rows = Sequence[Row]
Verdict = Literal["holds", "does not hold", "no difference", "depends", "as likely as not", "open"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


class Cell(NamedTuple):
    """A part that is computed by itself and kept, so that an interrupted run goes on after it."""

    key: Mapping[str, Value]
    """What tells it from the item's other cells: all that its rows depend on, seeds included."""
    compute: Callable[..., Sequence[Row]]
    """Takes the key but for `part`, and returns rows, to which the key is added."""

    def rows(self) -> Sequence[Row]:
        """Compute the rows, without the key."""
        return self.compute(**{name: self.key[name] for name in self.key if name != "part"})


def grid(compute: Callable[..., Sequence[Row]], **axes: Any) -> list[Cell]:
    """Return a cell for each combination of the values; a single value need not be in a list.

    Examples
    --------
    >>> [cell.key for cell in grid(lambda k, seed: [], k=(2, 3), seed=0)]
    [{'k': 2, 'seed': 0}, {'k': 3, 'seed': 0}]
    """
    values = [axis if isinstance(axis, Sequence) and not isinstance(axis, str) else [axis]
              for axis in axes.values()]  # fmt: skip
    return [
        Cell(dict(zip(axes, chosen, strict=True)), compute) for chosen in itertools.product(*values)
    ]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A published number beside ours, such as the VI of `Lloyd, d = 10`.

    `standard_error` is that of the difference: of ours and, where it is published, of theirs.
    `tolerance` is how far ours may lie away beside the noise.
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
    """A sentence of a source that a program can check, in our words, and what came of it here."""

    text: str
    source: str
    verdict: Verdict
    figure: str = ""
    """What was measured."""
    on: str = ""
    """What the answer depends on, where that is the verdict."""
    until: str = "more draws"
    """What would decide it, where it is open, as in `open: needs more draws`."""
    sample: str = ""
    """What the verdict rests on where that is little, such as `3 seeds`."""
    in_short: str = ""
    """What the front page says of it, where it names it."""

    @property
    def in_words(self) -> str:
        """The verdict as it is printed."""
        sample = f" ({self.sample})" if self.sample else ""
        if self.verdict == "depends":
            return f"depends on {self.on}{sample}"
        if self.verdict == "open":
            return f"open{sample}: needs {self.until}"
        return f"{self.verdict}{sample}"


class Aside(NamedTuple):
    """Something in a source that no program can judge, and what there is to say of it."""

    kind: Literal["question", "not judged"]
    text: str
    source: str
    said: str


class Table(NamedTuple):
    """A table for people: strings stand as they are, and floats get three digits."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Value]]
    note: str = ""
    is_published: bool = False
    """Whether it is one of the few that the docs show."""


class Findings(NamedTuple):
    """What the rows of an item show; `in_short` is what the front page says of it."""

    tables: Sequence[Table] = ()
    comparisons: Sequence[Comparison] = ()
    claims: Sequence[Claim] = ()
    asides: Sequence[Aside] = ()
    remarks: Sequence[str] = ()
    in_short: str = ""
