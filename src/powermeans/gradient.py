"""Steps along the gradient of the quantisation error (Bottou & Bengio 1995, equation 3)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from powermeans.extent import rounding_inertia
from powermeans.learning_rates import LearningRate, rates_of
from powermeans.rows.protocol import Rows
from powermeans.rules import Rule, Unguarded
from powermeans.sums import Sums
from powermeans.types import FloatArray

# The inertia may rise for a while, where a step carries a center beyond its points; not by so much.
_HOPELESS = 1e3


@dataclass(frozen=True, slots=True)
class SteppedSums(Sums):
    """Sums whose centers go towards the means, and need not arrive there.

    Attributes
    ----------
    rate : float or (n_centers,)
        At one over the weight of a center, that center goes to its mean: Lloyd's step.
    """

    rate: float | FloatArray = 0.0

    @classmethod
    def of(cls, sums: Sums, rate: float | FloatArray) -> SteppedSums:
        """The same sums, with a rate."""
        return cls(
            sums.points, sums.weights, sums.objective, sums.inertia, sums.n_skipped, rate=rate
        )

    def centers(self, fallback: FloatArray) -> FloatArray:
        """w_j + rate * sum over the points x of j of (x - w_j), from w_j, the fallback."""
        rates = np.reshape(self.rate, (-1, 1))
        moved: FloatArray = fallback + rates * (self.points - self.weights[:, None] * fallback)
        return moved


class GradientSteps:
    """A schedule of hard sweeps, and the repair that makes of each a step of a given rate.

    A step of rate e takes a center of the weight n over the distance to its mean times e n: to the
    mean at e n = 1, and farther away than it was above 2.

    Parameters
    ----------
    learning_rate : LearningRate or "auto"
        "auto" is one over the weight of the heaviest center at each sweep, the largest rate at
        which none goes beyond its mean, so that the inertia never rises.
    """

    def __init__(self, learning_rate: LearningRate | str) -> None:
        self._learning_rate = learning_rate
        self._is_automatic = isinstance(learning_rate, str) and learning_rate == "auto"
        self._begin()

    def _begin(self) -> None:
        self._n_steps, self._highest_inertia = 0, math.inf
        self._rate, self._heaviest = 0.0, 1.0  # of the longest step

    def __iter__(self) -> Iterator[float | Rule]:
        self._begin()
        return itertools.repeat(-math.inf if self._is_automatic else Unguarded())

    def before(self, centers: FloatArray, power: float) -> tuple[FloatArray, int]:
        """The same centers."""
        return centers, 0

    def after(self, rows: Rows, centers: FloatArray, sums: Sums) -> tuple[Sums, int]:
        """Sums whose centers make a step; raises where steps diverge."""
        if self._n_steps == 0:
            self._highest_inertia = _HOPELESS * max(sums.inertia, rounding_inertia(rows))
        self._n_steps += 1
        heaviest = float(sums.weights.max())
        rate = self._next_rate(heaviest)
        if rate >= self._rate * self._heaviest / heaviest:
            self._rate, self._heaviest = rate, heaviest
        stepped = SteppedSums.of(sums, rate)
        with np.errstate(over="ignore", invalid="ignore"):
            sq_step = np.square(stepped.centers(centers) - centers).sum()
        if not (math.isfinite(sq_step) and sums.inertia <= self._highest_inertia):
            raise ValueError(self._divergence())
        return stepped, 0

    def _next_rate(self, heaviest: float) -> float:
        if self._is_automatic:
            return 1 / heaviest
        return float(rates_of(self._learning_rate, self._n_steps, 1, highest=math.inf)[0])

    def _divergence(self) -> str:
        return (
            f"the centers move ever farther away: learning_rate={self._rate:.3g} times "
            f"{self._heaviest:.6g}, the weight of the heaviest cluster, is above 2, where a step "
            f'leads away from the mean. Pass at most {2 / self._heaviest:.2g}, or "auto"'
        )
