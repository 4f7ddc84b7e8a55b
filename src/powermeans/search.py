"""Search beyond one descent: breathing and breeding, by statistics that rows of every kind give.

Annealing alone cannot move a center from one side of the data to the other. A breath can: it adds
centers where the error is, descends, takes away those of least utility, and descends again
(Fritzke 2020, "The breathing k-means algorithm"); here with a short annealing inside. Breeding
crosses two solutions, matching their centers (Gribel & Vidal 2019, "HG-means").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from powermeans.anneal import Callback, Stage, anneal
from powermeans.extent import rounding_inertia, spread
from powermeans.history import History, SweepRecord
from powermeans.repairs import RelocateEmpty, SeparateCoincident
from powermeans.rows.protocol import Rows
from powermeans.schedules import Fixed, Geometric
from powermeans.seeds import order_by_place
from powermeans.stopping import CentersSettled
from powermeans.sums import Spread
from powermeans.types import FloatArray, IndexArray

# A gain smaller than this share of the inertia is rounding.
_LEAST_GAIN = 1e-9
# How far a new center is put from the one it joins, in units of the root mean squared error.
_JITTER = 0.01
# Centers closer than this many mean nearest-neighbour distances are not taken away together.
_NEIGHBOUR = 1.1
# Inside a search Lloyd ends at this tolerance; the sweeps after that move hardly anything.
_ROUGH_TOLERANCE = 1e-4
_SWEEPS_AFTER_ADDING = 3
_SWEEPS_AFTER_TAKING_AWAY = 6
# Annealing inside a breath starts at 2 s_0 - 1 and hardens quickly.
_BREATH_GROWTH = 1.2
_BREATH_POWERS = 12
# A child gets this many sweeps, and the rest only if its inertia is then within this of the best.
_SWEEPS_OF_A_CHILD = 8
_PROMISING = 1.003
# Matching takes time and memory that grow with the cube and the square of the centers.
MOST_CENTERS_BRED = 1000


@dataclass(frozen=True, slots=True)
class Effort:
    """How much a search may do.

    Attributes
    ----------
    n_starts : int
        Descents from seeds of their own, each improved by breaths with Lloyd's rule.
    n_annealed : int
        How many of the best of these then breathe with annealing inside.
    n_crossings : int
        Breeding ends after so many crossings in a row without a gain; 0 for none.
    sweeps_per_start : float
        How many hard sweeps a start may take before its breaths end.
    """

    n_starts: int
    n_annealed: int
    n_crossings: int
    sweeps_per_start: float = math.inf


EFFORTS = {
    "fast": Effort(n_starts=1, n_annealed=0, n_crossings=0, sweeps_per_start=60),
    "balanced": Effort(n_starts=4, n_annealed=1, n_crossings=20),
    "thorough": Effort(n_starts=8, n_annealed=4, n_crossings=300),
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

    def betters(self, other: Solution) -> bool:
        """Whether the inertia is lower by more than rounding."""
        return self.inertia < other.inertia * (1 - _LEAST_GAIN)


class _SearchStopped(Exception):
    """The callback asked to stop; the best solution so far is in the search."""


class Search:
    """A search for centers of low inertia.

    Parameters
    ----------
    rows : Rows
        The points.
    start_power : float
        The automatic start s_0 of annealing.
    critical_power : float
        Above it all centers collapse.
    depth : int
        How many centers the first breaths add.
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
    ) -> None:
        self.rows, self.depth, self.max_iter, self.rng = rows, depth, max_iter, rng
        self.history, self.callback = history, callback
        self.best: Solution | None = None
        self.was_stopped = False
        size = spread(rows)
        # Weighted, unlike scikit-learn's unit of `tol`: weights are to act as copies of points do.
        mean_variance = size**2 / rows.n_features
        self._settled = CentersSettled(max(tol, _ROUGH_TOLERANCE) * mean_variance)
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
            The annealing of each start.
        effort : Effort
            How much to do.

        Returns
        -------
        Solution
            The best found; if the callback said stop, and `was_stopped` is set, that so far.
        """
        try:
            population = [
                self._start(seeds(), first_stages, effort) for _ in range(effort.n_starts)
            ]
            population.sort(key=_inertia)
            for i in range(min(effort.n_annealed, len(population))):
                population[i] = self.breathe(population[i], annealed=True)
            if len(population) > 1 and len(population[0].centers) <= MOST_CENTERS_BRED:
                self.breed(population, effort.n_crossings)
        except _SearchStopped:
            self.was_stopped = True
        assert self.best is not None, "the first sweep was complete"
        return self.best

    def _start(
        self, centers: FloatArray, first_stages: Sequence[Stage], effort: Effort
    ) -> Solution:
        until_sweep = len(self.history.records) + effort.sweeps_per_start
        solution = self._descend(centers, [*first_stages, self._lloyd(self.max_iter)])
        return self.breathe(solution, annealed=False, until_sweep=until_sweep)

    def breathe(
        self, solution: Solution, *, annealed: bool, until_sweep: float = math.inf
    ) -> Solution:
        """Breaths that add and take away fewer and fewer centers, while they gain nothing.

        Parameters
        ----------
        solution : Solution
            Where to begin.
        annealed : bool
            Whether to anneal inside a breath, or to descend by Lloyd's rule alone.
        until_sweep : float
            No breath begins once the run has had so many sweeps.

        Returns
        -------
        Solution
            Never worse than the one given.
        """
        self._begin(solution)
        n_moved = min(self.depth, len(solution.centers) // 2)
        while n_moved > 0 and not self._is_over(solution, until_sweep):
            breathed = self._breath(solution, n_moved, annealed)
            if breathed.betters(solution):
                solution = breathed
                self._accept(solution)
            else:
                n_moved -= 1
        return solution

    def breed(self, population: list[Solution], n_fruitless: int) -> None:
        """Cross solutions of the population, which children better than its worst enter.

        Parameters
        ----------
        population : list of Solution
            At least two; changed in place, the best first.
        n_fruitless : int
            End after so many crossings in a row that better nothing.
        """
        population.sort(key=_inertia)
        self._begin(population[0])
        order, _ = order_by_place(self.rows, self.rng)
        n_in_vain = 0
        while n_in_vain < n_fruitless and population[0].inertia > self._perfect:
            child = self._child(population, order)
            n_in_vain += 1
            if child.betters(population[0]):
                n_in_vain = 0
                self._accept(child)
            if child.betters(population[-1]) and _is_new(child, population):
                population[-1] = child
                population.sort(key=_inertia)

    # Details, in the order in which they are used.

    def _lloyd(self, max_iter: int) -> Stage:
        max_iter = min(max_iter, self.max_iter)
        return Stage(Fixed(-math.inf), self._settled, max_iter, RelocateEmpty())

    def _annealing(self) -> Stage:
        max_iter = min(_BREATH_POWERS, self.max_iter)
        return Stage(self._breath_schedule, _Never(), max_iter, self._separate)

    def _descend(self, centers: FloatArray, stages: Sequence[Stage]) -> Solution:
        ends = anneal(self.rows, centers, stages, self.history, self.callback)
        solution = Solution(ends[-1].centers, self.rows.spread(ends[-1].centers))
        if ends[-1].was_stopped:
            # The very first descent, cut short, still counts: there is nothing better.
            if self.best is None:
                self._begin(solution)
            raise _SearchStopped
        return solution

    def _begin(self, solution: Solution) -> None:
        """A chain of moves begins, each of which betters the one before."""
        self.history.accepted.append([])
        self._accept(solution)

    def _accept(self, solution: Solution) -> None:
        self.history.accepted[-1].append(solution.inertia)
        if self.best is None or solution.betters(self.best):
            self.best = solution
            self.history.keep(solution.centers)

    def _is_over(self, solution: Solution, until_sweep: float) -> bool:
        return solution.inertia <= self._perfect or len(self.history.records) >= until_sweep

    def _breath(self, solution: Solution, n_moved: int, annealed: bool) -> Solution:
        """Add centers and descend, take as many away and descend."""
        annealing = [self._annealing()] if annealed else []
        added = self._added(solution, n_moved)
        grown = self._descend(added, [*annealing, self._lloyd(_SWEEPS_AFTER_ADDING)])
        kept = np.delete(grown.centers, centers_to_spare(grown, n_moved), axis=0)
        breathed = self._descend(kept, [*annealing, self._lloyd(_SWEEPS_AFTER_TAKING_AWAY)])
        self.history.n_breaths += 1
        return breathed

    def _added(self, solution: Solution, n_added: int) -> FloatArray:
        """New centers close to those of largest error."""
        worst = (-solution.spread.error).argsort(kind="stable")[:n_added]
        pushes = self.rng.standard_normal((n_added, self.rows.n_features))
        pushes /= _row_norms(pushes)[:, None]
        root_mean_square = math.sqrt(solution.inertia / self.rows.total_weight)
        added = solution.centers[worst] + _JITTER * root_mean_square * pushes
        return np.concatenate([solution.centers, added])

    def _child(self, population: Sequence[Solution], order: IndexArray) -> Solution:
        """Of matched centers one parent's or the other's, one relocated; then Lloyd."""
        first, second = self.rng.choice(len(population), 2, replace=False)
        mine, theirs = population[first].centers, population[second].centers
        matched = theirs[match_centers(mine, theirs)]
        centers = np.where(self.rng.uniform(size=(len(mine), 1)) < 0.5, mine, matched)
        centers = self._relocated(centers, order)
        child = self._descend(centers, [self._lloyd(_SWEEPS_OF_A_CHILD)])
        if child.inertia < _PROMISING * population[0].inertia:
            child = self._descend(child.centers, [self._lloyd(self.max_iter)])
        self.history.n_crossings += 1
        return child

    def _relocated(self, centers: FloatArray, order: IndexArray) -> FloatArray:
        """One center less, and one more at a point drawn by its distance."""
        rest = np.delete(centers, self.rng.randint(len(centers)), axis=0)
        drawn = self.rows.nearness(rest, order).draw(self.rng.uniform(size=1), exponent=1.0)
        return np.vstack([rest, self.rows.take(drawn)])


@dataclass(frozen=True, slots=True)
class _Never:
    """A stage that runs through its sweeps."""

    def reason(self, records: Sequence[SweepRecord]) -> str | None:
        return None


def _breath_schedule(start_power: float) -> Fixed | Geometric:
    """Where Lloyd's rule was asked for, it is that in the breaths too."""
    start = 2 * start_power - 1
    return Fixed(start) if start == -math.inf else Geometric(start, _BREATH_GROWTH)


def _inertia(solution: Solution) -> float:
    return solution.inertia


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

    Returns
    -------
    (n_centers,)
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
