"""How figures become verdicts, and claims that are checked by measuring a few of them."""

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from reproduce.item import Aside, Cell, Claim, Findings, Rows, Verdict
from reproduce.rows import Figure, mean_and_error

Figures = Mapping[str, float]
Measure = Callable[[int], Figures]
Holds = Callable[..., bool | Verdict]

ROUNDING = 1e-12
CLEAR = 2.0
"""How many standard errors a figure must be off a limit to decide a sentence."""
MANY = 0.9
"""In such a part of many cases a sentence has to be clear, and clearly wrong in none."""
RARE = 0.05
"""In so few repeats of an experiment something may happen and still be out of the ordinary."""


def exact(holds: bool) -> Verdict:
    """Return the verdict by figures that have no noise, or are far from where it matters."""
    return "holds" if holds else "does not hold"


def above(figure: float, error: float, limit: float = 0.0) -> Verdict:
    """Return the verdict on a sentence that says a figure is above a limit.

    It is undecided within two standard errors, and rounding, of the limit. The error is infinite
    where the figure was measured once.

    Examples
    --------
    >>> above(0.3, 0.1), above(-0.3, 0.1), above(0.1, 0.1), above(0.0, 0.0)
    ('holds', 'does not hold', 'open', 'open')
    """
    if not math.isfinite(error) or math.isnan(figure):
        return "open"
    off = figure - limit
    if abs(off) <= CLEAR * error + ROUNDING * (abs(figure) + abs(limit) + 1):
        return "open"
    return exact(off > 0)


def below(figure: float, error: float, limit: float = 0.0) -> Verdict:
    """Return the verdict on a sentence that says a figure is below a limit; see `above`."""
    return above(-figure, error, -limit)


def no_difference(figure: float, error: float, published: float) -> bool:
    """Return whether a figure is clearly nearer to zero than the published size of the effect.

    This is the equivalence test by two one-sided tests: the published size must be more than two
    standard errors beyond the figure in either direction.

    Examples
    --------
    >>> no_difference(0.001, 0.001, 0.008), no_difference(0.001, 0.004, 0.008)
    (True, False)
    """
    return abs(figure) + CLEAR * error < abs(published)


def together(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on a sentence that holds if all its parts do.

    Examples
    --------
    >>> together(["holds", "open"]), together(["open", "does not hold"])
    ('open', 'does not hold')
    """
    reached = set(verdicts)
    if "does not hold" in reached:
        return "does not hold"
    return "holds" if reached == {"holds"} else "open"


def across(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on a sentence about several cases, which may hold in some and not others.

    Examples
    --------
    >>> across(["holds", "open"]), across(["holds", "does not hold"])
    ('open', 'depends')
    """
    reached = set(verdicts)
    if {"holds", "does not hold"} <= reached or "depends" in reached:
        return "depends"
    return together(reached)


def all_above(figures: Iterable[Figure], limit: float = 0.0, none_below: float = 0.0) -> Verdict:
    """Return the verdict on a sentence that says all these figures are above a limit.

    Of many figures one in ten may be too near to tell: noise alone leaves as many. One that is too
    near to tell and clearly within `none_below` of the limit is none: the sentence fails there.

    Examples
    --------
    >>> all_above([(9.0, 1.0)] * 19 + [(1.0, 1.0)]), all_above([(9.0, 1.0), (1.0, 1.0)])
    ('holds', 'open')
    >>> all_above([(9.0, 1.0), (0.0, 0.1)], none_below=0.5)
    'depends'
    """
    figures = list(figures)
    reached = [above(*figure, limit) for figure in figures]
    for place, (figure, error) in enumerate(figures):
        if reached[place] == "open" and no_difference(figure - limit, error, none_below):
            reached[place] = "does not hold"
    if "does not hold" not in reached and reached.count("holds") >= MANY * len(reached):
        return "holds"
    return across(reached)


def under_settings(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on a sentence whose source does not name its settings, by those tried.

    It fails only where all of them do.

    Examples
    --------
    >>> under_settings(["does not hold", "open"]), under_settings(["does not hold"] * 2)
    ('open', 'does not hold')
    >>> under_settings(["holds", "open"])
    'depends'
    """
    reached = set(verdicts)
    if len(reached) == 1:
        return reached.pop()
    return "depends" if "holds" in reached else "open"


def of_one_experiment(share: float) -> Verdict:
    """Return the verdict on what a source saw once, by how often repeats of it show the same.

    Examples
    --------
    >>> of_one_experiment(0.99), of_one_experiment(0.47), of_one_experiment(0.0)
    ('holds', 'as likely as not', 'does not hold')
    """
    if RARE < share < 1 - RARE:
        return "as likely as not"
    return exact(share >= 1 - RARE)


def share_and_error(hits: Sequence[float]) -> Figure:
    """Return how often something happens and the standard error (Agresti & Coull 1998).

    Two hits and two misses are added, so that neither none nor all is free of error.

    Examples
    --------
    >>> share_and_error([1, 0])
    (0.5, 0.204124145231931...)
    """
    n_counted = len(hits) + 4
    share = (sum(hits) + 2) / n_counted
    return share, math.sqrt(share * (1 - share) / n_counted)


def paired_gain(ours: Iterable[float], theirs: Iterable[float]) -> Figure:
    """Return the mean of ours less theirs, pair by pair, and its standard error.

    Examples
    --------
    >>> paired_gain([3.0, 5.0], [1.0, 3.0])
    (2.0, 0.0)
    """
    return mean_and_error([float(one - other) for one, other in zip(ours, theirs, strict=True)])


def counted(gaps: Sequence[Figure]) -> str:
    """Return in words how many differences are clear, either way.

    Examples
    --------
    >>> counted([(1.0, 0.1), (0.1, 0.1), (-1.0, 0.1)])
    'by more than two standard errors in 1 of 3 cases, the other way in 1'
    """
    verdicts = [above(*gap) for gap in gaps]
    return (
        f"by more than two standard errors in {verdicts.count('holds')} of {len(gaps)} cases, "
        f"the other way in {verdicts.count('does not hold')}"
    )


class Check(NamedTuple):
    """A sentence of a source, what is measured about it, and what figures confirm it."""

    name: str
    text: str
    source: str
    says: str
    holds: Holds
    measure: Measure
    n_cases: int = 200
    n_quick_cases: int = 20
    in_short: str = ""
    on: str = ""

    def cell(self, quick: bool) -> Cell:
        """Return the cell that measures it."""

        @functools.wraps(self.measure)
        def rows(n_cases: int) -> Rows:
            return [dict(self.measure(n_cases))]

        n_cases = self.n_quick_cases if quick else self.n_cases
        return Cell({"part": self.name, "n_cases": n_cases}, rows)

    def claim(self, figures: Figures, n_cases: int) -> Claim:
        """Return what came of it."""
        held = self.holds(**figures)
        verdict = held if isinstance(held, str) else exact(held)
        said = self.says.format(n_cases=n_cases, **figures)
        return Claim(self.text, self.source, verdict, said, self.on, in_short=self.in_short)


class Checks:
    """The sentences of an item, each above the function that measures something about it."""

    def __init__(self) -> None:
        self.by_name: dict[str, Check] = {}

    def claim(self, text, source, says, holds, name="", **more):
        """Add a sentence; the function below it takes how many random cases to try.

        `says` tells of the figures, with their names in braces, and `holds` takes them by name and
        returns whether they confirm the sentence, or the verdict itself; `more` is of `Check`.
        """

        def add(measure: Measure) -> Measure:
            own = name or measure.__name__.removeprefix("_")
            self.by_name[own] = Check(own, text, source, says, holds, measure, **more)
            return measure

        return add

    def cells(self, quick: bool) -> list[Cell]:
        """Return a cell for each sentence."""
        return [check.cell(quick) for check in self.by_name.values()]

    def findings(self, rows: Rows, *asides: Aside) -> Findings:
        """Return a claim for each sentence that has been measured."""
        claims = []
        for row in rows:
            figures = {name: float(row[name]) for name in row if name not in ("part", "n_cases")}
            claims.append(self.by_name[str(row["part"])].claim(figures, int(row["n_cases"])))
        return Findings(claims=claims, asides=asides)
