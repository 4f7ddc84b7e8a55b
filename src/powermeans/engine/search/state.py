"""What the moves of one search share: descents from centers, and the best solution so far."""

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Self

import numpy as np

from powermeans.engine.anneal import Stage, anneal
from powermeans.engine.fit import Fit
from powermeans.engine.search.effort import THRESHOLDS
from powermeans.engine.spread import rounding_inertia
from powermeans.engine.stopping import CentersSettled, InertiaSettled, StopRule
from powermeans.mathematics.rules import rule_at
from powermeans.mathematics.schedules import Fixed, Geometric, Whole
from powermeans.mathematics.sums import Spread, mean_over_columns
from powermeans.points.protocol import Moves, Points
from powermeans.types import FloatArray, Labels

# A gain smaller than this share of the inertia is rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Solution:
    """Centers, with their errors and utilities."""

    centers: FloatArray
    spread: Spread
    prices: FloatArray | float = 0.0  # added to squared distances, where sizes are limited

    @property
    def inertia(self) -> float:
        """Weighted sum of squared distances to the nearest centers."""
        return float(self.spread.error.sum())

    def labels(self, rows: Points) -> Labels:
        """Return the center of least squared distance and price of each point."""
        if not np.any(self.prices):
            return rows.assign(self.centers)[0]
        priced = rows.sq_distances(self.centers) + self.prices
        return np.asarray(np.argmin(priced, axis=1), dtype=np.int32)

    def betters(self, other: Self, by: float = _ROUNDING) -> bool:
        """Return whether the inertia is lower by more than this share, by default by rounding."""
        return self.inertia < other.inertia * (1 - by)

    def is_new_among(self, others: Sequence[Self]) -> bool:
        """Return whether none of the others has this inertia, up to rounding."""
        return all(self.betters(other) or other.betters(self) for other in others)


def different(solutions: Sequence[Solution]) -> list[Solution]:
    """Keep the first of the solutions with equal inertia, whose order rounding would decide."""
    different: list[Solution] = []
    for solution in solutions:
        if solution.is_new_among(different):
            different.append(solution)
    return different


class SearchStopped(Exception):
    """Why the fit is over; the best solution so far is in the search."""


@dataclass(eq=False)
class Search:
    """A search for centers of low inertia, which keeps the best so far."""

    rows: Points
    stages: Sequence[Stage]  # of the fit: the last is Lloyd's rule, and one before it anneals
    fit: Fit
    _: KW_ONLY
    least_gain: float = _ROUNDING  # see `Effort`, of the first
    price: float = 0.0  # of each center, by which solutions of different sizes compare
    # Lists the centers near each, with itself first, where nobody is to look at all pairs.
    lists: Callable[[FloatArray], Labels] | None = None
    # Of single points and centers, or None where the search adds and removes centers instead.
    moves: Moves | None = field(init=False)
    population: list[Solution] = field(default_factory=list, init=False)  # to cross
    has_agreed: bool = field(default=False, init=False)  # its starts, so that crossing is no use
    _best: Solution | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        size, n_columns = self.rows.spread_of_features(), self.rows.n_columns
        # Weighted, unlike scikit-learn's unit of `tol`: a weight of three acts as three copies do.
        mean_variance = mean_over_columns(size**2, n_columns) / n_columns
        # Further sweeps hardly change the inertia.
        settled = CentersSettled(1e-4 * mean_variance) | InertiaSettled(self.least_gain)
        self.lloyd = replace(self.stages[-1], schedule=Fixed(-math.inf), stop=settled)
        self.perfect = rounding_inertia(self.rows)
        self.move_up_to(THRESHOLDS.most_values_swapped)

    @property
    def best(self) -> Solution:
        """The solution of least cost so far."""
        assert self._best is not None, "the search has begun"
        return self._best

    def move_up_to(self, most_values: int) -> None:
        """Move single points and centers, unless the points have more values."""
        n_values = self.rows.n_distinct * self.rows.n_features
        self.moves = self.rows.moves if n_values <= most_values else None

    def descend(
        self, centers: FloatArray, first_stages: Sequence[Stage] = (), last: Stage | None = None
    ) -> FloatArray:
        """Go through the first stages, unless it is late, and the last, by default Lloyd's rule."""
        n_before = len(self.fit.history.records)
        try:
            end = anneal(self.rows, centers, [*first_stages, last or self.lloyd], self.fit)
        except BaseException:
            if len(self.fit.history.records) > n_before:
                self._keep_last_sweep()
            raise
        if end.was_stopped:
            if self._competes(end.centers):
                self.begin(self.measured(end.centers))
            raise SearchStopped(end.reason)
        return end.centers

    def short_lloyd(self, max_iter: int) -> Stage:
        """Return a stage of at most this many sweeps by Lloyd's rule."""
        return replace(self.lloyd, max_iter=min(max_iter, self.lloyd.max_iter))

    def annealing(self, n_powers: int, growth: float) -> list[Stage]:
        """Return a stage that anneals centers that are nearly right, or none if the fit has none.

        From the first power s_0 of the fit, it begins at 2 s_0 - 1.
        """
        stages = []
        for stage in self.stages[:-1]:
            start = 2 * rule_at(next(iter(stage.schedule))).power - 1
            if start > -math.inf:
                powers, most = Whole(Geometric(start, growth)), min(n_powers, stage.max_iter)
                stages.append(replace(stage, schedule=powers, stop=StopRule(), max_iter=most))
        return stages

    def measured(self, centers: FloatArray) -> Solution:
        """Return these centers with the error and utility of each; none moves."""
        return Solution(centers, self.rows.spread(centers))

    def cost(self, solution: Solution) -> float:
        """Return the inertia and the price of the centers."""
        return solution.inertia + self.price * len(solution.centers)

    def begin(self, solution: Solution) -> None:
        """Begin a chain of solutions, each better than the one before."""
        self.fit.history.accepted.append([solution.inertia])
        self._keep_if_best(solution)

    def accept(self, solution: Solution) -> None:
        """Go on from this solution in the chain, where it is better."""
        chain = self.fit.history.accepted[-1]
        if solution is not self._best and solution.inertia < chain[-1]:
            chain.append(solution.inertia)
        self._keep_if_best(solution)

    def count(self, move: Callable[..., object], n_steps: int = 1) -> None:
        """Count steps of a move, which `spent_` tells by its name."""
        self.fit.history.moves[move.__name__] += n_steps

    def is_cheap(self, n_centers: int) -> bool:
        """Return whether nobody notices a sweep."""
        work = self.rows.n_distinct * n_centers * (self.rows.n_features + THRESHOLDS.feature_cost)
        return work <= THRESHOLDS.work_not_noticed

    def _keep_if_best(self, solution: Solution) -> None:
        if self._best is None or self.cost(solution) < self.cost(self._best) * (1 - _ROUNDING):
            self._best = solution
            self.fit.history.keep(solution.centers)

    def _keep_last_sweep(self) -> None:
        """Keep the centers of a descent that was interrupted, if its last sweep tells enough."""
        last = self.fit.history.last
        assert last is not None, "a sweep was complete"
        if not self._competes(last.centers) or last.power != -math.inf:
            return
        # Of the centers before the sweep, which cost no less.
        if last.inertia + self.price * len(last.centers) < self.cost(self.best):
            self.fit.history.accepted.append([last.inertia])
            self.fit.history.keep(last.centers)

    def _competes(self, centers: FloatArray) -> bool:
        """Return whether these centers may better the best: without a price, not with another k."""
        if self._best is None:
            return False
        return self.price > 0 or len(centers) == len(self._best.centers)
