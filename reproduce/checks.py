"""How figures become verdicts, and claims that are checked by measuring a few of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from reproduce.item import Aside, Cell, Claim, Findings, Row, Value, Verdict, mean_and_error

Figures = Mapping[str, float]

ROUNDING = 1e-12
CLEAR = 2.0
"""How many standard errors a figure must be off a limit to decide a sentence."""
RARE = 0.05
"""In so few repeats of an experiment something may happen and still be out of the ordinary."""


def exact(holds: bool) -> Verdict:
    """The verdict on a sentence whose figures have no noise, or are far from where it matters.

    Examples
    --------
    >>> exact(1 + 1 == 2)
    'holds'
    """
    return "holds" if holds else "does not hold"


def above(figure: float, error: float, limit: float = 0.0) -> Verdict:
    """The verdict on a sentence that says a figure is above a limit.

    Parameters
    ----------
    figure, error : float
        The figure and its standard error, which is infinite where it was measured once.
    limit : float

    Returns
    -------
    {"holds", "does not hold", "not decidable"}
        Undecided within two standard errors, and rounding, of the limit.

    Examples
    --------
    >>> above(0.3, 0.1), above(-0.3, 0.1), above(0.1, 0.1), above(0.0, 0.0)
    ('holds', 'does not hold', 'not decidable', 'not decidable')
    """
    if not math.isfinite(error) or math.isnan(figure):
        return "not decidable"
    off = figure - limit
    if abs(off) <= CLEAR * error + ROUNDING * (abs(figure) + abs(limit) + 1):
        return "not decidable"
    return exact(off > 0)


def below(figure: float, error: float, limit: float = 0.0) -> Verdict:
    """The verdict on a sentence that says a figure is below a limit; see `above`.

    Examples
    --------
    >>> below(0.3, 0.1), below(0.3, 0.1, limit=1.0)
    ('does not hold', 'holds')
    """
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
    """The verdict on a sentence that holds if all its parts do.

    Examples
    --------
    >>> together(["holds", "not decidable"]), together(["not decidable", "does not hold"])
    ('not decidable', 'does not hold')
    """
    reached = set(verdicts)
    if "does not hold" in reached:
        return "does not hold"
    return "holds" if reached == {"holds"} else "not decidable"


def across(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on a sentence about several cases, which may hold in some and not in others.

    Examples
    --------
    >>> across(["holds", "not decidable"]), across(["holds", "does not hold"])
    ('not decidable', 'depends')
    >>> across(["does not hold", "does not hold"])
    'does not hold'
    """
    reached = set(verdicts)
    if {"holds", "does not hold"} <= reached or "depends" in reached:
        return "depends"
    return together(reached)


def under_settings(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on a sentence whose source does not name its settings, by those tried.

    It fails only where all of them do.

    Examples
    --------
    >>> under_settings(["does not hold", "not decidable"]), under_settings(["does not hold"] * 2)
    ('not decidable', 'does not hold')
    >>> under_settings(["holds", "not decidable"])
    'depends'
    """
    reached = set(verdicts)
    if len(reached) == 1:
        return reached.pop()
    return "depends" if "holds" in reached else "not decidable"


def of_one_experiment(share: float) -> Verdict:
    """The verdict on what a source saw once, by how often repeats of the experiment show it.

    Examples
    --------
    >>> of_one_experiment(0.99), of_one_experiment(0.47), of_one_experiment(0.0)
    ('holds', 'not decidable', 'does not hold')
    """
    if RARE < share < 1 - RARE:
        return "not decidable"
    return exact(share >= 1 - RARE)


def share_and_error(hits: Sequence[float]) -> tuple[float, float]:
    """How often something happens and the standard error (Agresti & Coull 1998).

    Two hits and two misses are added, so that neither none nor all is free of error.

    Parameters
    ----------
    hits : sequence of 0 and 1

    Returns
    -------
    share, error : float

    Examples
    --------
    >>> share_and_error([1, 0])
    (0.5, 0.204124145231931...)
    """
    n_counted = len(hits) + 4
    share = (sum(hits) + 2) / n_counted
    return share, math.sqrt(share * (1 - share) / n_counted)


def paired_gain(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float]:
    """The mean of ours less theirs, pair by pair, and its standard error.

    Examples
    --------
    >>> paired_gain([3.0, 5.0], [1.0, 3.0])
    (2.0, 0.0)
    """
    return mean_and_error([one - other for one, other in zip(ours, theirs, strict=True)])


def counted(gaps: Sequence[tuple[float, float]]) -> str:
    """How many of some differences are clear, either way.

    Parameters
    ----------
    gaps : sequence of (float, float)
        Differences and their standard errors.

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


@dataclass(frozen=True, slots=True)
class Check:
    """A sentence of a source, what is measured about it, and what figures confirm it.

    Attributes
    ----------
    name : str
        What tells it from others.
    text : str
        The sentence, in our words.
    source : str
        Where it stands.
    measure : callable
        Gives figures; takes how many random cases to try.
    holds : callable
        Whether the figures confirm the sentence, or the verdict itself where they have errors.
    says : str
        What is said about the figures, with their names in braces.
    is_claim : bool
        Whether the sentence is what the source says, and not what is left of its text.
    n_cases, n_quick_cases : int
        How many random cases.
    """

    name: str
    text: str
    source: str
    measure: Callable[[int], Figures]
    holds: Callable[[Figures], bool | Verdict]
    says: str
    n_cases: int = 200
    n_quick_cases: int = 20
    is_claim: bool = True

    def cell(self, quick: bool) -> Cell:
        """The cell that measures it."""
        n_cases = self.n_quick_cases if quick else self.n_cases
        key: dict[str, Value] = {"check": self.name, "n_cases": n_cases}
        return Cell(key, lambda: [dict(self.measure(n_cases))])

    def aside(self, figures: Figures) -> Aside:
        """What is to say of a sentence that is no claim."""
        return Aside("not judged", self.text, self.source, self.says.format(**figures))

    def claim(self, figures: Figures, n_cases: int) -> Claim:
        """What came of it."""
        held = self.holds(figures)
        verdict = held if isinstance(held, str) else exact(held)
        said = self.says.format(n_cases=n_cases, **figures)
        return Claim(self.text, self.source, verdict, said)


def cells_of(checks: Sequence[Check], quick: bool) -> list[Cell]:
    """A cell for each check."""
    return [check.cell(quick) for check in checks]


def findings_of(checks: Sequence[Check], rows: Sequence[Row], *more: Aside) -> Findings:
    """A claim for each check that has been measured, and asides."""
    measured = {str(row["check"]): row for row in rows}
    done = [check for check in checks if check.name in measured]
    claims = [
        check.claim(_figures(measured[check.name]), int(measured[check.name]["n_cases"]))
        for check in done
        if check.is_claim
    ]
    asides = [check.aside(_figures(measured[check.name])) for check in done if not check.is_claim]
    return Findings(claims=claims, asides=[*asides, *more])


def _figures(row: Row) -> dict[str, float]:
    return {name: float(value) for name, value in row.items() if name not in ("check", "n_cases")}
