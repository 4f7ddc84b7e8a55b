"""Prices that bring clusters to wished sizes, learned while the centers move."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from powermeans.engine.history import SweepRecord
from powermeans.engine.updates import Learner, Sweep
from powermeans.mathematics.rules import Priced, Rule
from powermeans.mathematics.sums import Sums
from powermeans.methods.balanced.size_limits import SizeLimits
from powermeans.types import FloatArray

# Centers move once sizes miss the wish by no more than this share of all weight.
_MISSED_WHEN_MOVING = 0.02
# Sweeps without progress after which sizes do not come nearer to the limits.
_PATIENCE = 15


class HeldSums(Sums):
    """Sums that leave the centers where they are."""

    __slots__ = ()

    def centers(self, fallback: FloatArray) -> FloatArray:
        """Return the centers of the sweep."""
        return fallback


@dataclass(slots=True)
class LearnPrices(Learner):
    """Sweep with a price for each center, raised where a cluster is too large.

    The stage ends once the sizes hold up to a share of all weight and the cost hardly changes.
    """

    limits: SizeLimits
    prices: FloatArray
    units: FloatArray  # of the prices: the mean squared distance within each cluster
    least_missed: float  # of the total weight
    least_change: float  # of the cost
    holds_centers: bool = False  # until the end, else while sizes are far from the wish
    bound: float = -math.inf  # the dual value at the last sweep, before the prices moved
    missed: float = math.inf  # by how much weight the last sizes missed the limits
    best_prices: FloatArray = field(init=False)  # those whose sizes came nearest to the limits
    _gains: FloatArray = field(init=False)
    _n_turns: FloatArray = field(init=False)
    _before: tuple[FloatArray, FloatArray] = field(init=False)  # prices and excess
    _change: float = field(default=math.inf, init=False)
    _least_so_far: float = field(default=math.inf, init=False)
    _n_fruitless: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.best_prices = self.prices
        self._gains = np.full(len(self.prices), 0.5)
        self._n_turns = np.zeros(len(self.prices))
        self._before = self.prices, np.zeros(len(self.prices))

    def __iter__(self) -> Iterator[float | Rule]:
        """Yield the rule of the prices learned so far."""
        while True:
            yield Priced(tuple(self.prices.tolist()))

    def after(self, sweep: Sweep, sums: Sums) -> Sums:
        """Move the prices by the sizes; the sums stay as they are."""
        limits, sizes = self.limits, sums.weights
        before, self.bound = self.bound, limits.bound(sums.objective, self.prices)
        self._change = abs(self.bound - before) / max(abs(self.bound), np.finfo(float).tiny)
        self.missed = limits.far_from_wish(self.prices, sizes)
        self._n_fruitless += 1
        if self.missed < self._least_so_far:
            if self.missed < 0.95 * self._least_so_far:
                self._n_fruitless = 0
            self._least_so_far, self.best_prices = self.missed, self.prices
        self.prices = self.moved(sizes)
        # Centers that move before prices have taken effect run away: where a cluster loses points,
        # its center leaves, and it loses more.
        if not self.holds_centers and self.missed <= _MISSED_WHEN_MOVING * limits.total:
            self._least_so_far, self._n_fruitless = math.inf, 0
            return replace(sums, objective=self.bound)
        return HeldSums(sums.points, sizes, self.bound, sums.inertia, sums.n_skipped)

    def reason(self, records: Sequence[SweepRecord]) -> str | None:
        """Report sizes that hold while the cost hardly changes, or that come no nearer."""
        if self.missed <= self.least_missed * self.limits.total:
            if self._change <= self.least_change:
                return f"sizes miss the limits by {self.missed}, and the cost hardly changes"
            return None
        if self._n_fruitless >= _PATIENCE:
            return f"sizes came no nearer to the limits than {self._least_so_far}"
        return None

    def moved(self, sizes: FloatArray) -> FloatArray:
        """Return the next prices, as a damped Newton step for each center alone would have them.

        A price first changes by half its unit for each natural logarithm of size over wish, and by
        more, up to eight units, while the size stays on one side of the wish. Each time it turns to
        the other side, the step is halved, and grows more slowly.

        Between two prices of which one makes a cluster too large and the other too small, the next
        price is in the middle as they miss.
        """
        prices, curvature = self.prices, self.limits.curvature
        wanted = self.limits.wanted(prices, sizes)
        excess = self._excess(sizes, wanted)
        former_prices, former = self._before
        turned, goes_on = excess * former < 0, excess * former > 0
        self._n_turns += turned
        growth = 1 + 0.5 / (1 + self._n_turns)
        grown = np.where(goes_on, np.minimum(growth * self._gains, 8.0), self._gains)
        self._gains = np.where(turned, 0.5 * self._gains, grown)
        self._before = prices, excess
        step = self._gains * self.units  # about how prices rise as sizes fall by the mean
        if curvature > 0:
            is_between = (wanted > self.limits.least) & (wanted < self.limits.most)
            step = step / np.where(is_between, 1 + step / (curvature * self.limits.mean), 1.0)
        share = former / np.where(turned, former - excess, 1.0)
        middle = former_prices + share * (prices - former_prices)
        moved: FloatArray = np.where(turned, middle, prices + excess * step)
        if curvature == 0:
            # Where the price is zero, all sizes within the limits are as good.
            moved = np.where(np.sign(moved) * np.sign(prices) < 0, 0.0, moved)
        return moved

    def _excess(self, sizes: FloatArray, wanted: FloatArray) -> FloatArray:
        """Return the logarithms of sizes over wishes, of one at most."""
        least = 0.02 * self.limits.mean  # empty clusters have logarithms too
        logarithms = np.log((sizes + least) / (wanted + least))
        excess: FloatArray = np.clip(logarithms, -1.0, 1.0)
        return excess
