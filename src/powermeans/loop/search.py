"""Search beyond one descent: breathing and breeding, by statistics that rows of every kind give.

Annealing alone cannot move a center from one side of the data to the other. A breath can: it adds
centers where the error is, descends, takes away those of least utility, and descends again
(Fritzke 2020, "The breathing k-means algorithm"), with a short annealing inside where that is asked
for. Breeding crosses two solutions, matching their centers (Gribel & Vidal 2019, "HG-means"), and
lets the child take a breath.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from powermeans.loop.anneal import Callback, Stage, anneal
from powermeans.loop.history import History
from powermeans.loop.spread import rounding_inertia, spread_of_features
from powermeans.loop.stopping import InertiaSettled, Never
from powermeans.loop.updates import RelocateEmpty, SeparateCoincident
from powermeans.rows.protocol import Rows
from powermeans.schedules import Fixed, Geometric, Whole
from powermeans.sums import Spread
from powermeans.types import FloatArray, IndexArray

# A gain smaller than this share of the inertia is rounding.
_ROUNDING = 1e-9
# How far a new center is put from the one it joins, in units of the root mean squared error.
_JITTER = 0.01
# Centers closer than this many mean nearest-neighbour distances are not taken away together.
_NEIGHBOUR = 1.1
# Inside a search Lloyd ends at this tolerance; the sweeps after that move hardly anything.
_ROUGH_TOLERANCE = 1e-4
_SWEEPS_AFTER_ADDING = 3
_SWEEPS_AFTER_TAKING_AWAY = 6
# Of so many centers the first breaths move one, or as many as the depth if that is more.
_CENTERS_FOR_EACH_MOVED = 5
# Annealing inside a breath starts at 2 s_0 - 1 and hardens quickly.
_BREATH_GROWTH = 1.2
_BREATH_POWERS = 12
# Matching takes time and memory that grow with the cube and the square of the centers.
MOST_CENTERS_BRED = 1000


@dataclass(frozen=True, slots=True)
class Effort:
    """How much a search may do.

    Attributes
    ----------
    n_starts : int
        Descents from seeds of their own, each improved by breaths with Lloyd's rule; the first of
        them is annealed.
    n_annealed : int
        How many of the best of these then breathe with annealing inside.
    n_crossings : int
        Breeding ends after so many crossings in a row in vain; 0 for none.
    least_gain : float
        Gains of less than this share of the inertia are taken, but are in vain: breaths become
        smaller and crossings end as if there were none. Lloyd's rule ends at such a sweep.
    n_powers : int
        How many powers the annealing of the first start has.
    n_centers_started : int
        Where this allows more starts of so few centers, up to twice `n_starts` are made: they are
        cheap, and with few centers all starts may end in the same place.
    """

    n_starts: int
    n_annealed: int
    n_crossings: int
    least_gain: float = _ROUNDING
    n_powers: int = 12
    n_centers_started: int = 0

    def starts_for(self, n_centers: int) -> int:
        """How many starts to make of so many centers."""
        return max(self.n_starts, min(2 * self.n_starts, self.n_centers_started // n_centers))


EFFORTS = {
    "fast": Effort(n_starts=1, n_annealed=0, n_crossings=0, least_gain=1e-2, n_powers=4),
    "balanced": Effort(
        n_starts=3, n_annealed=0, n_crossings=5, least_gain=1e-3, n_centers_started=80
    ),
    "thorough": Effort(n_starts=12, n_annealed=4, n_crossings=150, least_gain=1e-4),
}


@dataclass(frozen=True, slots=True)
class Solution:
    """Centers, and what a hard sweep at them found."""

    centers: FloatArray
    spread: Spread

    @property
    def inertia(self) -> float:
        """Weighted sum of squared distances to the nearest centers."""
        return float(self.spread.error.sum())

    def betters(self, other: Solution, by: float = _ROUNDING) -> bool:
        """Whether the inertia is lower by more than this share, by default that of rounding."""
        return self.inertia < other.inertia * (1 - by)


@dataclass(frozen=True, slots=True)
class _Descent:
    """Where a descent ended, and the inertia before its last sweep: there it is no larger."""

    centers: FloatArray
    inertia_before: float


class _SearchStopped(Exception):
    """The callback asked to stop; the best solution so far is in the search."""


class Search:
    """A search for centers of low inertia.

    Parameters
    ----------
    rows : Rows
        The points.
    start_power : float
        Where annealing starts, s_0.
    critical_power : float
        Above it all centers collapse.
    depth : int
        How many centers the first breaths add at least, if there are twice as many.
    max_iter : int
        The largest number of sweeps with one power schedule.
    tol : float
        Lloyd's rule need not go on below this, in units of the mean variance of the features.
    rng : RandomState
        For jitter, crossings and relocations.
    history : History
        Takes down every sweep, the moves, and the best centers.
    callback : callable, optional
        Called after each sweep; returning True ends the search.
    least_gain : float
        A move that gains no more than this share of the inertia is in vain.

    Attributes
    ----------
    best : Solution or None
        The best so far.
    was_stopped : bool
        Whether the callback ended it.
    """

    def __init__(
        self,
        rows: Rows,
        *,
        start_power: float,
        critical_power: float,
        depth: int,
        max_iter: int,
        tol: float,
        rng: np.random.RandomState,
        history: History,
        callback: Callback | None = None,
        least_gain: float = _ROUNDING,
    ) -> None:
        self.rows, self.depth, self.max_iter, self.rng = rows, depth, max_iter, rng
        self.history, self.callback, self.least_gain = history, callback, least_gain
        self.best: Solution | None = None
        self.was_stopped = False
        size = spread_of_features(rows)
        # Weighted, unlike scikit-learn's unit of `tol`: weights are to act as copies of points do.
        mean_variance = float(np.mean(size**2)) / rows.n_features
        self._settled = InertiaSettled(max(tol, _ROUGH_TOLERANCE) * mean_variance, least_gain)
        self._separate = SeparateCoincident(critical_power, size)
        self._breath_schedule = _breath_schedule(start_power)
        self._perfect = rounding_inertia(rows)

    # What a search consists of.

    def run(
        self, seeds: Callable[[], FloatArray], first_stages: Sequence[Stage], effort: Effort
    ) -> Solution:
        """Descend from several seeds, breathe, breed; the best is also in `best`.

        Parameters
        ----------
        seeds : callable
            Returns centers to start from, others each time.
        first_stages : sequence of Stage
            The annealing of the first start.
        effort : Effort
            How much to do.

        Returns
        -------
        Solution
            The best found; if the callback said stop, and `was_stopped` is set, that so far.
        """
        try:
            population: list[Solution] = []
            for number in range(effort.n_starts):
                centers = seeds()
                self._plan_start(len(centers), population, effort)
                start = self.descend(centers, first_stages if number == 0 else ())
                population.append(self.breathe(start, annealed=False))
                if population[-1].inertia <= self._perfect:
                    break  # only rounding could tell others from it
            population = sorted(_different(population), key=_inertia)
            n_annealed = min(effort.n_annealed, len(population))
            n_crossings = effort.n_crossings if len(population) > 1 else 0
            for i in range(n_annealed):
                self.history.planned.begin_annealed(n_annealed - i - 1, n_crossings)
                population[i] = self.breathe(population[i], annealed=True)
            population = _different(population)
            # Starts that agree have nothing to breed.
            if len(population) > 1 and len(population[0].centers) <= MOST_CENTERS_BRED:
                self.breed(population, effort.n_crossings)
        except _SearchStopped:
            self.was_stopped = True
        assert self.best is not None, "the first sweep was complete"
        return self.best

    def descend(self, centers: FloatArray, first_stages: Sequence[Stage] = ()) -> Solution:
        """To the end of Lloyd's rule, after other stages.

        Parameters
        ----------
        centers : (n_centers, n_features)
            Where to begin.
        first_stages : sequence of Stage
            For example annealing.
        """
        descent = self._descend(centers, [*first_stages, self._lloyd(self.max_iter)])
        return self._measured(descent.centers)

    def breathe(self, solution: Solution, *, annealed: bool) -> Solution:
        """Breaths, each in vain followed by one that moves two thirds as many centers.

        Parameters
        ----------
        solution : Solution
            Where to begin.
        annealed : bool
            Whether to anneal inside a breath, or to descend by Lloyd's rule alone.

        Returns
        -------
        Solution
            Never worse than the one given.
        """
        self._begin(solution)
        n_moved = self._most_moved(len(solution.centers))
        while n_moved > 0 and solution.inertia > self._perfect:
            self.history.planned.breathe(n_moved)
            breathed = self._breath(solution, n_moved, annealed)
            if breathed is not solution:
                self._accept(breathed)
            if not breathed.betters(solution, by=self.least_gain):
                n_moved = 2 * n_moved // 3
            solution = breathed
        return solution

    def breed(self, population: list[Solution], n_fruitless: int) -> None:
        """Cross solutions of the population, which children better than its worst enter.

        Parameters
        ----------
        population : list of Solution
            At least two; changed in place, the best first.
        n_fruitless : int
            End after so many crossings in a row that are in vain.
        """
        population.sort(key=_inertia)
        self._begin(population[0])
        n_in_vain = 0
        while n_in_vain < n_fruitless and population[0].inertia > self._perfect:
            self.history.planned.begin_crossing(n_fruitless - n_in_vain - 1)
            child = self._child(population)
            n_in_vain = 0 if child.betters(population[0], by=self.least_gain) else n_in_vain + 1
            if child.betters(population[0]):
                self._accept(child)
            if child.betters(population[-1]) and _is_new(child, population):
                population[-1] = child
                population.sort(key=_inertia)

    # Details, in the order in which they are used.

    def _plan_start(self, n_centers: int, population: Sequence[Solution], effort: Effort) -> None:
        """The next start, and what comes after it: little, where starts so far agree."""
        n_left = effort.n_starts - len(population) - 1
        agree = len(population) > 1 and len(_different(population)) == 1
        n_annealed = min(effort.n_annealed, 1 if agree else effort.n_starts)
        n_crossings = 0 if agree else effort.n_crossings
        n_moved = self._most_moved(n_centers)
        self.history.planned.begin_start(n_moved, n_left, n_annealed, n_crossings)

    def _most_moved(self, n_centers: int) -> int:
        return min(max(self.depth, n_centers // _CENTERS_FOR_EACH_MOVED), n_centers // 2)

    def _lloyd(self, max_iter: int) -> Stage:
        max_iter = min(max_iter, self.max_iter)
        return Stage(Fixed(-math.inf), self._settled, max_iter, RelocateEmpty())

    def _annealing(self) -> Stage:
        max_iter = min(_BREATH_POWERS, self.max_iter)
        return Stage(self._breath_schedule, Never(), max_iter, self._separate)

    def _descend(self, centers: FloatArray, stages: Sequence[Stage]) -> _Descent:
        ends = anneal(self.rows, centers, stages, self.history, self.callback)
        if ends[-1].was_stopped:
            # The very first descent, cut short, still counts: there is nothing better.
            if self.best is None:
                self._begin(self._measured(ends[-1].centers))
            raise _SearchStopped
        return _Descent(ends[-1].centers, self.history.records[-1].inertia)

    def _measured(self, centers: FloatArray) -> Solution:
        return Solution(centers, self.rows.spread(centers))

    def _begin(self, solution: Solution) -> None:
        """A chain of moves begins, each of which betters the one before."""
        self.history.accepted.append([])
        self._accept(solution)

    def _accept(self, solution: Solution) -> None:
        self.history.accepted[-1].append(solution.inertia)
        if self.best is None or solution.betters(self.best):
            self.best = solution
            self.history.keep(solution.centers)

    def _breath(self, solution: Solution, n_moved: int, annealed: bool) -> Solution:
        """Add centers and descend, take as many away and descend; if in vain, the one given."""
        annealing = [self._annealing()] if annealed else []
        added = self._added(solution, n_moved)
        descent = self._descend(added, [*annealing, self._lloyd(_SWEEPS_AFTER_ADDING)])
        grown = self._measured(descent.centers)
        kept = np.delete(grown.centers, centers_to_spare(grown, n_moved), axis=0)
        descent = self._descend(kept, [*annealing, self._lloyd(_SWEEPS_AFTER_TAKING_AWAY)])
        self.history.n_breaths += 1
        if descent.inertia_before >= solution.inertia:
            # Most breaths are in vain, and this one is not worth a sweep to measure it.
            return solution
        breathed = self._measured(descent.centers)
        return breathed if breathed.betters(solution) else solution

    def _added(self, solution: Solution, n_added: int) -> FloatArray:
        """New centers close to those of largest error."""
        worst = (-solution.spread.error).argsort(kind="stable")[:n_added]
        pushes = self.rng.standard_normal((n_added, self.rows.n_features))
        pushes /= _row_norms(pushes)[:, None]
        root_mean_square = math.sqrt(solution.inertia / self.rows.total_weight)
        jitter = _JITTER * root_mean_square * self.rows.unit_steps()
        added = solution.centers[worst] + jitter * pushes
        return np.concatenate([solution.centers, added])

    def _child(self, population: Sequence[Solution]) -> Solution:
        """Of matched centers one parent's or the other's; then Lloyd and a breath."""
        first, second = self.rng.choice(len(population), 2, replace=False)
        mine, theirs = population[first].centers, population[second].centers
        matched = theirs[match_centers(mine, theirs)]
        crossed = np.where(self.rng.uniform(size=(len(mine), 1)) < 0.5, mine, matched)
        self.history.n_crossings += 1
        return self._breath(self.descend(crossed), min(self.depth, len(mine) // 2), annealed=False)


def _breath_schedule(start_power: float) -> Fixed | Whole:
    """Where Lloyd's rule was asked for, it is that in the breaths too."""
    start = 2 * start_power - 1
    return Fixed(start) if start == -math.inf else Whole(Geometric(start, _BREATH_GROWTH))


def _inertia(solution: Solution) -> float:
    return solution.inertia


def _different(solutions: Sequence[Solution]) -> list[Solution]:
    """Of those with the same inertia the first, so that rounding does not decide between them."""
    different: list[Solution] = []
    for solution in solutions:
        if _is_new(solution, different):
            different.append(solution)
    return different


def _is_new(child: Solution, population: Sequence[Solution]) -> bool:
    """Whether no solution of the population has the same inertia."""
    return all(child.betters(other) or other.betters(child) for other in population)


def centers_to_spare(solution: Solution, n_spared: int) -> IndexArray:
    """Centers of least utility, no two of them neighbours as far as that is possible.

    Parameters
    ----------
    solution : Solution
        With more than `n_spared` centers.
    n_spared : int
        How many.

    Returns
    -------
    ndarray of shape (n_spared,)
        Their indices.
    """
    centers = solution.centers
    limit = _NEIGHBOUR * float(nearest_neighbour_distances(centers).mean())
    is_frozen = np.zeros(len(centers), dtype=bool)
    spared: list[int] = []
    for least in solution.spread.utility.argsort(kind="stable"):
        if len(spared) == n_spared:
            break
        if is_frozen[least]:
            continue
        spared.append(int(least))
        is_frozen[least] = True
        or_near = is_frozen | (_row_norms(centers - centers[least]) < limit)
        # Enough must stay free to be taken away.
        if len(centers) - np.count_nonzero(or_near) >= n_spared - len(spared):
            is_frozen = or_near
    return np.array(spared)


def _row_norms(rows: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.add.reduce(np.square(rows), axis=1)))


def nearest_neighbour_distances(centers: FloatArray) -> FloatArray:
    """Distance from each center to the nearest other one, some rows at a time.

    Parameters
    ----------
    centers : (n_centers, n_features)
        At least two.
    """
    nearest = np.empty(len(centers))
    step = max(1, 2**20 // len(centers))
    for start in range(0, len(centers), step):
        rows = slice(start, start + step)
        distances = cdist(centers[rows], centers)
        distances[np.arange(len(distances)), np.arange(start, start + len(distances))] = np.inf
        nearest[rows] = distances.min(axis=1)
    return nearest


def match_centers(centers: FloatArray, others: FloatArray) -> IndexArray:
    """For each center one of the others, such that the squared distances add to the least.

    Parameters
    ----------
    centers, others : (n_centers, n_features)

    Returns
    -------
    (n_centers,)
        A permutation.
    """
    _, matched = linear_sum_assignment(cdist(centers, others, "sqeuclidean"))
    return np.asarray(matched)
