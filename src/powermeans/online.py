"""Online k-means as a rule: points come one by one, and each moves the center nearest to it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np

from powermeans.rules import Hard, Rule
from powermeans.sums import Sums
from powermeans.types import FloatArray, IndexArray


@dataclass(frozen=True, slots=True, eq=False)
class Online(Rule):
    """Of each point in turn the nearest center j moves by w_j += rate (x - w_j).

    With n_j the weight of the points that a center has won so far, this one among them, the rate of
    a point of weight one is 1 / n_j (Bottou & Bengio 1995, equation 7), or given (equation 4). A
    point of weight three moves its center as three copies of it would, one after another.

    Not a function of distances alone: only rows that know this rule can sweep with it.
    """

    counts: FloatArray
    """The n_j before the sweep, (n_centers,)."""
    rates: FloatArray | None = None
    """Those of the steps, one for each point with weight; None for 1 / n_j."""
    order: IndexArray | None = None
    """Which point comes when, (n_points,); None for as they are stored."""
    power: ClassVar[float] = -math.inf  # type: ignore[misc]
    descends: ClassVar[bool] = False

    def memberships(self, sq_dist: FloatArray) -> FloatArray:
        """Those of `Hard`, to the centers as they are when the point comes."""
        return Hard().memberships(sq_dist)

    def weighing(self, sq_dist: FloatArray) -> FloatArray:
        """One."""
        return Hard().weighing(sq_dist)

    def objective(self, sq_dist: FloatArray) -> FloatArray:
        """The least squared distance."""
        return Hard().objective(sq_dist)

    def weigh(self, sq_dist: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Impossible: after the first point the centers are no longer those of the distances."""
        raise TypeError("these rows cannot sweep with the rule Online: they do not take turns")


@dataclass(frozen=True, slots=True)
class Reached(Sums):
    """What the points of an online sweep add up to, and where they have brought the centers.

    Attributes
    ----------
    reached : (n_centers, n_features)
    """

    reached: FloatArray = field(default_factory=lambda: np.empty((0, 0)))

    @classmethod
    def at(cls, reached: FloatArray, counts: FloatArray, inertia: float) -> Self:
        """With the weights n_j, each point's distance taken when it came."""
        return cls(reached * counts[:, None], counts, inertia, inertia, reached=reached)

    def __add__(self, other: Self) -> Self:
        raise TypeError("sums of online sweeps do not add: each begins where the one before ended")

    def centers(self, fallback: FloatArray) -> FloatArray:
        """Where they are."""
        return self.reached
