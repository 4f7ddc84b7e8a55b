"""How far a clustering is from the optimum at most: the answer, in numbers and in words."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

CLOSED = 1e-6  # a relative gap that counts as none

Method = Literal["line", "clusters apart", "all points", "subsets", "sample of subsets"]


@dataclass(frozen=True, slots=True)
class OptimalityGap:
    """A proven bound on how far a clustering is from the optimum.

    Attributes
    ----------
    inertia : float
        Sum of squared distances to the nearest of the given centers.
    bound : float
        No clustering into as many clusters has a lower inertia.
    verdict : str
        What is proved, in words.
    gap : float
        ``inertia / bound - 1``: the inertia is at most ``1 + gap`` times the lowest possible.
        Infinite if the bound is zero and the inertia is not.
    method : {"line", "clusters apart", "all points", "subsets", "sample of subsets"}
        What the bound was computed from: "line" is the optimum itself, for points on a line, and
        "clusters apart" what no point can save by moving to another cluster. Bounds of subsets add
        up to a bound of all points.
    confidence : float or None
        Probability that the bound holds, over the random choice of subsets; None if it is certain.
    n_subsets : int
        Number of subsets that the points were divided into, 1 for all points at once.
    n_searched : int
        Number of subsets for which a bound was searched. The others contribute the bound by
        principal components or, with `confidence`, an estimate from the sample.
    seconds : float
        How long the search took.
    was_interrupted : bool
        Whether Ctrl-C ended the search.
    history : tuple of (float, float)
        Seconds and bound, each time the bound rose.

    See Also
    --------
    powermeans.optimality_gap : Returns it.

    Examples
    --------
    >>> from powermeans import optimality_gap
    >>> print(optimality_gap([[0.0], [1.0], [10.0], [11.0]], [[0.5], [10.5]]))
    inertia 1, proved to be optimal
    """

    inertia: float
    bound: float
    method: Method
    confidence: float | None
    n_subsets: int
    n_searched: int
    seconds: float
    was_interrupted: bool = False
    history: tuple[tuple[float, float], ...] = field(default=(), repr=False)

    @property
    def gap(self) -> float:
        """By what share of the bound the inertia exceeds it."""
        if self.inertia <= self.bound:
            return 0.0
        return self.inertia / self.bound - 1 if self.bound > 0 else math.inf

    @property
    def verdict(self) -> str:
        """What is proved, in words."""
        at = f" at a confidence of {self.confidence:.4g}" if self.confidence is not None else ""
        at += " before the search was interrupted" if self.was_interrupted else ""
        if self.gap <= CLOSED:
            return f"proved to be optimal{at}"
        if math.isinf(self.gap):
            return f"not proved to be near the optimum{at}"
        percent = _rounded_up(100 * self.gap)
        return f"proved to be within {percent} % of the optimum{at}"

    def __str__(self) -> str:
        return f"inertia {self.inertia:.6g}, {self.verdict}"


def _rounded_up(value: float) -> str:
    """Return two digits, never less than the value."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return f"{math.ceil(value / unit - 1e-9) * unit:.2g}" if value < 100 else f"{math.ceil(value)}"
