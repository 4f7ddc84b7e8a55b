"""Search beyond one descent: swaps or breathing, and breeding.

Annealing cannot move a center from one side of the data to the other. A swap can: it dissolves a
cluster, splits another, and moves points nearby one by one (Hartigan 1975). Rows that know no such
moves breathe instead: a breath adds centers where the error is largest, descends, removes the
centers of least utility, and descends again (Fritzke 2020, "The breathing k-means algorithm"). It
may anneal for a few sweeps before each descent. Breeding matches and crosses the centers of two
solutions (Gribel & Vidal 2019, "HG-means"), and improves the child in the same way.

A search needs of rows a descent from centers by sweeps, the objective of centers, and the error and
utility of each; swaps are a capability that rows may have (`Rows.moves`). It counts work in
distances and looks at no clock, so that a fit without a time limit gives the same bits on every
machine.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from operator import attrgetter

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from powermeans.engine.anneal import Callback, Stage, anneal
from powermeans.engine.history import History
from powermeans.engine.spread import rounding_inertia, spread_of_features
from powermeans.engine.stopping import InertiaSettled, Never
from powermeans.engine.updates import RelocateEmpty, SeparateCoincident, Update
from powermeans.mathematics.schedules import Fixed, Geometric, Whole
from powermeans.mathematics.sums import Spread, mean_over_columns
from powermeans.points.protocol import Moves, Rows
from powermeans.types import FloatArray, IndexArray, Labels

# A gain smaller than this share of the inertia is rounding.
_ROUNDING = 1e-9
# Distance of a new center from the one it joins, in units of the root mean squared error.
_JITTER = 0.01
# Centers closer than this many mean nearest-neighbour distances are not removed together.
_NEIGHBOUR = 1.1
# In a search Lloyd's rule ends at this tolerance, since further sweeps hardly change the inertia.
_ROUGH_TOLERANCE = 1e-4
# Most breaths are in vain, so both of their descents are short.
_SWEEPS_AFTER_ADDING = 3
_SWEEPS_AFTER_REMOVING = 6
# The first breaths move one in this many centers, or `depth` of them if that is more.
_CENTERS_FOR_EACH_MOVED = 5
# Swaps move points too, but only near the centers that they move.
_PASSES_BEFORE_SWAPS = 2
# At the end of a search they move until none gains, or for this many passes.
PASSES_OF_POLISHING = 10
# Swaps run on one thread and jump through memory: more values are sampled, or their rows breathe.
_MOST_VALUES_SWAPPED = 2**20
# A sample has at least so many points, and so many for each center.
_LEAST_SAMPLED, _SAMPLED_FOR_EACH_CENTER = 8192, 100
# Where a sweep takes more distances times features, a fit takes seconds. The sample is then
# smaller, so that a search in it takes about as long as one descent of all points.
_COSTLY_SWEEP = 1e9
_SMALLEST_SHARE_SAMPLED, _FEWEST_FOR_EACH_CENTER = 8, 25
# After a search with this `least_gain` Lloyd's rule may go on for `max_iter` sweeps.
_COARSE_GAIN = 1e-2
# What a distance costs besides its features, in units of a feature.
_FIXED_COST = 8
# Swaps may always take this many distances times features, even if fewer sweeps are allowed.
_WORK_OF_SWAPS = 1e7
# This many distances times features take no noticeable time. Up to it, neither swaps without a gain
# nor starts that agree end anything.
_WORK_NOT_NOTICED = 3e5
# Annealing inside a breath starts at 2 s_0 - 1, since the centers are nearly right already.
_BREATH_GROWTH = 1.2
_BREATH_POWERS = 12
# Matching takes time cubic and memory quadratic in the number of centers.
MOST_CENTERS_BRED = 1000


@dataclass(frozen=True, slots=True)
class Effort:
    """How much a search may do.

    A gain below `least_gain`, a share of the inertia, is kept but counts as none: the next breath
    is smaller, breeding comes nearer to its end, and a stage of Lloyd's rule ends.
    """

    n_starts: int  # from seeds of their own, improved by breaths of Lloyd's rule; one is annealed
    n_annealed: int  # how many of the best then breathe with annealing, where rows know no swaps
    n_crossings: int  # in a row without a gain that end breeding; 0 for no breeding
    n_swaps: int = 20  # in a row without a gain that end the swaps of a start; half for a child
    # The swaps of a start or child may compute as many distances as this many sweeps.
    n_sweeps_of_swaps: float = math.inf
    # This many starts that have found the best, up to `least_gain`, end the starts and leave out
    # breeding. If a sweep takes no noticeable time, up to `n_starts_of_small` starts are made until
    # this many are equal up to rounding, and breeding follows.
    n_agreeing: float = math.inf
    n_starts_of_small: int = 0
    least_gain: float = _ROUNDING
    n_powers: int = 12  # of the annealing of the first start
    most_values: float = _MOST_VALUES_SWAPPED  # beyond, a search is in a sample of about so many
    # Starts with few centers are cheap and may all end in the same place: make this many divided by
    # k, at least `n_starts` and at most twice as many.
    n_centers_started: int = 0

    def starts_for(self, n_centers: int) -> int:
        """Return how many starts to make with this many centers."""
        return max(self.n_starts, min(2 * self.n_starts, self.n_centers_started // n_centers))


_FAST = Effort(
    n_starts=1,
    n_annealed=0,
    n_crossings=0,
    least_gain=1e-2,
    n_powers=4,
    n_sweeps_of_swaps=5,
    most_values=2**18,
)
_BALANCED = Effort(
    n_starts=3,
    n_annealed=0,
    n_crossings=5,
    least_gain=1e-3,
    n_centers_started=80,
    n_agreeing=3,
    n_starts_of_small=16,
    n_sweeps_of_swaps=3,
)
_THOROUGH = Effort(n_starts=12, n_annealed=4, n_crossings=150, least_gain=1e-4, n_swaps=60)
# Each begins with all that the one before it in its list does, so that it ends no higher.
EFFORTS = {"fast": [_FAST], "balanced": [_BALANCED], "thorough": [_BALANCED, _THOROUGH]}


@dataclass(frozen=True, slots=True)
class Solution:
    """Centers, with their errors and utilities."""

    centers: FloatArray
    spread: Spread

    @property
    def inertia(self) -> float:
        """Weighted sum of squared distances to the nearest centers."""
        return float(self.spread.error.sum())

    def betters(self, other: Solution, by: float = _ROUNDING) -> bool:
        """Return whether the inertia is lower by more than this share, by default by rounding."""
        return self.inertia < other.inertia * (1 - by)


class SearchStopped(Exception):
    """The callback asked to stop; the best solution so far is in the search."""


@dataclass(eq=False)
class Search:
    """A search for centers of low inertia, which keeps the best so far."""

    rows: Rows
    _: KW_ONLY
    start_power: float  # s_0 of annealing
    critical_power: float  # above it all centers collapse
    max_iter: int  # sweeps of one stage
    tol: float  # Lloyd's rule ends at this or before, in units of the mean variance
    rng: np.random.RandomState
    history: History
    callback: Callback | None = None
    is_late: Callable[[], bool] = lambda: False  # whether a descent leaves out its annealing
    least_gain: float = _ROUNDING  # see `Effort`, of the first
    price: float = 0.0  # of each center, by which solutions of different sizes compare
    update: Update = field(default_factory=RelocateEmpty)  # around each sweep of Lloyd's rule
    last_stage: Stage | None = None  # of the fit, from the best solution
    # Lists the centers near each, with itself first, where nobody is to look at all pairs.
    lists: Callable[[FloatArray], Labels] | None = None
    depth: int = 5  # centers that the first breath moves: at least these, at most half of all
    best: Solution | None = field(default=None, init=False)
    # With which `improve` swaps, which takes less than breathing; None if it breathes.
    moves: Moves | None = field(init=False)
    was_stopped: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        size = spread_of_features(self.rows)
        # Weighted, unlike scikit-learn's unit of `tol`: a weight of three acts as three copies do.
        mean_variance = mean_over_columns(size**2, self.rows.n_columns) / self.rows.n_columns
        tolerance = max(self.tol, _ROUGH_TOLERANCE) * mean_variance
        self._settled = InertiaSettled(tolerance, self.least_gain)
        self._separate = SeparateCoincident(self.critical_power, size)
        self._breath_schedule = _breath_schedule(self.start_power)
        self.perfect = rounding_inertia(self.rows)
        n_values = self.rows.n_places * self.rows.n_features
        self.moves = self.rows.moves if n_values <= _MOST_VALUES_SWAPPED else None

    def run(
        self,
        seeds: Callable[[], FloatArray],
        first_stages: Sequence[Stage],
        *efforts: Effort,
    ) -> Solution:
        """Descend from several seeds, improve, breed, and return the best, also if stopped.

        Each call of `seeds` gives other centers. The first start goes through `first_stages`. Each
        effort goes on from the solutions of the one before.
        """
        self.explore(seeds, first_stages, *efforts)
        if self.best is None:
            assert self.history.centers is not None, "the first sweep was complete"
            self.begin(self.measured(self.history.centers))
        assert self.best is not None, "it began"
        return self.best

    def explore(
        self,
        seeds: Callable[[], FloatArray],
        first_stages: Sequence[Stage],
        *efforts: Effort,
    ) -> list[list[Solution]]:
        """Search, and return what `extend` does, or only the best if stopped.

        None is measured if stopped in the first descent; the history then has its last centers.
        """
        try:
            return self.extend([], seeds, first_stages, *efforts)
        except SearchStopped:
            self.was_stopped = True
        return [[] if self.best is None else [self.best]]

    def extend(
        self,
        population: list[Solution],
        seeds: Callable[[], FloatArray],
        first_stages: Sequence[Stage],
        *efforts: Effort,
    ) -> list[list[Solution]]:
        """Do as `run` does with a population of so many starts, or raise if stopped.

        Return the different solutions that are left after each effort, the best first.
        """
        left = []
        for number, effort in enumerate(efforts):
            if number > 0:
                self._settle()
            population = self._go_on(population, seeds, first_stages, effort)
            self._polish()
            assert self.best is not None, "there was a start"
            left.append(different([self.best, *population]))
        return left

    def _go_on(
        self,
        population: list[Solution],
        seeds: Callable[[], FloatArray],
        first_stages: Sequence[Stage],
        effort: Effort,
    ) -> list[Solution]:
        """Start until there are as many solutions as the effort asks for, and breed them."""
        n_before = len(population)
        for number in itertools.count(n_before):
            if population and min(s.inertia for s in population) <= self.perfect:
                break  # others could differ from it only by rounding
            if number >= effort.n_starts and not self._goes_on(population, effort):
                break
            if self._agree(population, effort):
                break
            centers = seeds()
            n_expected = max(effort.n_starts, number + 1)
            self.history.phase(f"improving, start {number + 1} of {n_expected}", number, n_expected)
            start = self.descend(centers, first_stages if number == 0 else ())
            population.append(self.improve(start, effort))
        starts = population
        population = sorted(different(population), key=attrgetter("inertia"))
        if self.moves is None:
            self._anneal_again(population, effort)
            population = different(population)
        # Starts that agree have nothing to breed.
        if self._agree(starts, effort):
            return population
        if len(population) > 1 and len(population[0].centers) <= MOST_CENTERS_BRED:
            self.breed(population, effort.n_crossings, effort)
        return population

    def finish(self, found: Sequence[Sequence[FloatArray]]) -> None:
        """Go on from the best of the centers that each effort found in a sample.

        After several efforts breathe too. More effort ends no higher.
        """
        self.history.phase("comparing solutions on all rows")
        try:
            for centers in found:
                if self.best is not None:
                    self._settle()
                self.begin(min(map(self.measured, centers), key=attrgetter("inertia")))
            if len(found) > 1 and self.best is not None:
                self.breathe(self.best, annealed=False)
        except SearchStopped:
            self.was_stopped = True

    def _goes_on(self, population: Sequence[Solution], effort: Effort) -> bool:
        """Return whether to make more starts than usual, since they are cheap and disagree."""
        if self.moves is None or not self._is_cheap(population):
            return False
        best = min(population, key=attrgetter("inertia"))
        n_found = sum(not best.betters(other) for other in population)
        return n_found < effort.n_agreeing and len(population) < effort.n_starts_of_small

    def _is_cheap(self, population: Sequence[Solution]) -> bool:
        """Return whether nobody notices a sweep."""
        work = self.rows.n_places * len(population[0].centers)
        return work * (self.rows.n_features + _FIXED_COST) <= _WORK_NOT_NOTICED

    def _agree(self, population: Sequence[Solution], effort: Effort) -> bool:
        """Return whether enough starts found the best to end them, and to leave out breeding."""
        if not population or self._is_cheap(population):
            return False
        best = min(population, key=attrgetter("inertia"))
        n_found = sum(not best.betters(other, by=effort.least_gain) for other in population)
        return n_found >= effort.n_agreeing

    def _anneal_again(self, population: list[Solution], effort: Effort) -> None:
        n_annealed = min(effort.n_annealed, len(population))
        for i in range(n_annealed):
            name = f"improving solution {i + 1} of {n_annealed} again"
            self.history.phase(name, i, n_annealed)
            population[i] = self.breathe(population[i], annealed=True)

    def improve(self, solution: Solution, effort: Effort) -> Solution:
        """Swap centers, or breathe if these rows know no swaps, and return what is no worse."""
        if self.moves is None:
            return self.breathe(solution, annealed=False)
        self.begin(solution)
        swapped = self._swapped(solution, self.moves, effort.n_swaps, effort)
        if swapped is not solution:
            self._accept(swapped)
        return swapped

    def _swapped(self, solution: Solution, moves: Moves, n_swaps: int, effort: Effort) -> Solution:
        """Move points near borders, and then centers; return the better solution."""
        moved = moves.move_points(solution.centers, _PASSES_BEFORE_SWAPS)
        n_centers, n_features = moved.centers.shape
        of_sweeps = effort.n_sweeps_of_swaps * self.rows.n_places * n_centers
        most = max(of_sweeps, _WORK_OF_SWAPS / (n_features + _FIXED_COST))
        least = _WORK_NOT_NOTICED / (n_features + _FIXED_COST)
        swaps = moves.swap_centers(moved.centers, n_swaps, most, effort.least_gain, least)
        self.history.n_moves += moved.n_moves
        self.history.n_swaps += swaps.n_moves
        swapped = self.measured(swaps.centers)
        return swapped if swapped.betters(solution) else solution

    def _polish(self) -> None:
        """Move single points of the best solution until none gains, or for some passes."""
        assert self.best is not None, "there was a start"
        if self.moves is None:
            return
        self.history.phase("moving single rows")
        moved = self.moves.move_points(self.best.centers, PASSES_OF_POLISHING)
        self.history.n_moves += moved.n_moves
        polished = self.measured(moved.centers)
        if polished.betters(self.best):
            self._accept(polished)

    def _settle(self) -> None:
        """Descend from the best as a fit does at its end, so that more effort ends no higher."""
        assert self.best is not None, "an effort was made"
        if self.last_stage is None:
            return
        settled = self.measured(self._descend(self.best.centers, [self.last_stage]))
        if settled.betters(self.best, by=0):
            self.begin(settled)

    def settle_from(self, centers: FloatArray, first_stages: Sequence[Stage]) -> None:
        """Descend as `descend` does, and breathe until a breath hardly gains; also if stopped."""
        try:
            solution = self.descend(centers, first_stages)
            self.begin(solution)
            while not self._is_exhaled(solution):
                assert self.best is not None, "it began"
                solution = self.best
        except SearchStopped:
            self.was_stopped = True

    def _is_exhaled(self, solution: Solution) -> bool:
        """Take a breath, and return whether it hardly gained."""
        if solution.inertia <= self.perfect:
            return True
        breathed = self._breath(solution, self._most_moved(len(solution.centers)) // 2, False)
        if breathed is not solution:
            self._accept(breathed)
        return not breathed.betters(solution, by=_COARSE_GAIN)

    def descend(self, centers: FloatArray, first_stages: Sequence[Stage] = ()) -> Solution:
        """Go through the first stages, and descend by Lloyd's rule."""
        return self.measured(self._descend(centers, [*first_stages, self._lloyd(self.max_iter)]))

    def breathe(self, solution: Solution, *, annealed: bool) -> Solution:
        """Take breaths, and return a solution that is no worse.

        After a breath in vain the next moves two thirds as many centers.
        """
        self.begin(solution)
        n_moved = self._most_moved(len(solution.centers))
        while n_moved > 0 and solution.inertia > self.perfect:
            breathed = self._breath(solution, n_moved, annealed)
            if breathed is not solution:
                self._accept(breathed)
            if not breathed.betters(solution, by=self.least_gain):
                n_moved = 2 * n_moved // 3
            solution = breathed
        return solution

    def breed(
        self,
        population: list[Solution],
        n_fruitless: int,
        effort: Effort = _BALANCED,
    ) -> None:
        """Cross two or more solutions in place until `n_fruitless` crossings in a row are in vain.

        A child that betters the worst solution replaces it.
        """
        population.sort(key=attrgetter("inertia"))
        self.begin(population[0])
        n_in_vain = 0
        while n_in_vain < n_fruitless and population[0].inertia > self.perfect:
            self.history.phase("crossing solutions", n_in_vain, n_fruitless)
            child = self._child(population, effort)
            n_in_vain = 0 if child.betters(population[0], by=effort.least_gain) else n_in_vain + 1
            if child.betters(population[0]):
                self._accept(child)
            if child.betters(population[-1]) and _is_new(child, population):
                population[-1] = child
                population.sort(key=attrgetter("inertia"))

    def _most_moved(self, n_centers: int) -> int:
        return min(max(self.depth, n_centers // _CENTERS_FOR_EACH_MOVED), n_centers // 2)

    def _lloyd(self, max_iter: int) -> Stage:
        max_iter = min(max_iter, self.max_iter)
        return Stage(Fixed(-math.inf), self._settled, max_iter, self.update)

    def _annealing(self) -> Stage:
        max_iter = min(_BREATH_POWERS, self.max_iter)
        return Stage(self._breath_schedule, Never(), max_iter, self._separate)

    def _descend(self, centers: FloatArray, stages: Sequence[Stage]) -> FloatArray:
        n_before = len(self.history.records)
        stages = stages[-1:] if self.is_late() else stages
        try:
            ends = anneal(self.rows, centers, stages, self.history, self.callback)
        except BaseException:
            if len(self.history.records) > n_before:
                self._keep_last_sweep()
            raise
        if ends[-1].was_stopped:
            if self.best is not None and self._competes(ends[-1].centers):
                self.begin(self.measured(ends[-1].centers))
            raise SearchStopped
        return ends[-1].centers

    def _keep_last_sweep(self) -> None:
        """Keep the centers of a descent that was interrupted, if its last sweep tells enough."""
        last = self.history.last
        assert last is not None, "a sweep was complete"
        if self.best is None or not self._competes(last.centers) or last.power != -math.inf:
            return
        # Of the centers before the sweep, which cost no less.
        if last.inertia + self.price * len(last.centers) < self.cost(self.best):
            self.history.accepted.append([last.inertia])
            self.history.keep(last.centers)

    def _competes(self, centers: FloatArray) -> bool:
        """Return whether these centers may be the best: without a price, not with another k."""
        return self.best is None or self.price > 0 or len(centers) == len(self.best.centers)

    def measured(self, centers: FloatArray) -> Solution:
        """Return these centers with the error and utility of each; none moves."""
        return Solution(centers, self.rows.spread(centers))

    def cost(self, solution: Solution) -> float:
        """Return the inertia and the price of the centers."""
        return solution.inertia + self.price * len(solution.centers)

    def is_cheaper(self, solution: Solution, other: Solution) -> bool:
        """Return whether the cost is lower by more than rounding."""
        return self.cost(solution) < self.cost(other) * (1 - _ROUNDING)

    def begin(self, solution: Solution) -> None:
        """Begin a chain of solutions, each better than the one before."""
        self.history.accepted.append([])
        self._accept(solution)

    def _accept(self, solution: Solution) -> None:
        self.history.accepted[-1].append(solution.inertia)
        if self.best is None or self.is_cheaper(solution, self.best):
            self.best = solution
            self.history.keep(solution.centers)

    def _breath(self, solution: Solution, n_moved: int, annealed: bool) -> Solution:
        """Add centers and descend, remove as many and descend; return the better solution."""
        annealing = [self._annealing()] if annealed else []
        added = self._added(solution, n_moved)
        added = self._descend(added, [*annealing, self._lloyd(_SWEEPS_AFTER_ADDING)])
        grown = self.measured(added)
        lists = None if self.lists is None else self.lists(added)
        kept = np.delete(added, centers_to_spare(grown, n_moved, lists), axis=0)
        kept = self._descend(kept, [*annealing, self._lloyd(_SWEEPS_AFTER_REMOVING)])
        self.history.n_breaths += 1
        if self.history.records[-1].inertia >= solution.inertia:
            # Most breaths end here: the last sweep tells without another one to measure it.
            return solution
        breathed = self.measured(kept)
        return breathed if breathed.betters(solution) else solution

    def _added(self, solution: Solution, n_added: int) -> FloatArray:
        """Add a new center close to each of those with the largest error."""
        worst = (-solution.spread.error).argsort(kind="stable")[:n_added]
        pushes = self.rng.standard_normal((n_added, self.rows.n_features))
        pushes /= _row_norms(pushes)[:, None]
        root_mean_square = math.sqrt(solution.inertia / self.rows.total_weight)
        jitter = _JITTER * root_mean_square * self.rows.unit_steps()
        added = solution.centers[worst] + jitter * pushes
        return np.concatenate([solution.centers, added])

    def _child(self, population: Sequence[Solution], effort: Effort) -> Solution:
        """Cross two parents, taking each center from either, and improve the child."""
        first, second = self.rng.choice(len(population), 2, replace=False)
        mine, theirs = population[first].centers, population[second].centers
        matched = theirs[match_centers(mine, theirs)]
        crossed = np.where(self.rng.uniform(size=(len(mine), 1)) < 0.5, mine, matched)
        self.history.n_crossings += 1
        child = self.descend(crossed)
        if self.moves is not None:
            return self._swapped(child, self.moves, effort.n_swaps // 2, effort)
        return self._breath(child, min(self.depth, len(mine) // 2), annealed=False)


def n_values_each(rows: Rows) -> float:
    """Return how many values a sweep reads of a point and of the centers beside it, in the mean."""
    return min(rows.n_features, (rows.n_stored + rows.n_features) / rows.n_points)


def n_sampled(rows: Rows, n_centers: int, effort: Effort) -> int:
    """Return how many points to sample and to search among, or none to search among all."""
    n_places, n_values = rows.n_places, n_values_each(rows)
    may_sample = rows.sampler is not None and rows.moves is not None
    if not may_sample or n_places * n_values <= effort.most_values:
        return 0
    wanted = max(
        int(effort.most_values / n_values), _LEAST_SAMPLED, _SAMPLED_FOR_EACH_CENTER * n_centers
    )
    if n_places * n_centers * (n_values + _FIXED_COST) > _COSTLY_SWEEP:
        few = max(n_places // _SMALLEST_SHARE_SAMPLED, _FEWEST_FOR_EACH_CENTER * n_centers)
        wanted = min(wanted, few)
    return wanted if wanted < n_places else 0


def _breath_schedule(start_power: float) -> Fixed | Whole:
    """Return the powers of annealing in a breath, or Lloyd's rule if the fit starts with it."""
    start = 2 * start_power - 1
    return Fixed(start) if start == -math.inf else Whole(Geometric(start, _BREATH_GROWTH))


def different(solutions: Sequence[Solution]) -> list[Solution]:
    """Keep the first of the solutions with equal inertia, whose order rounding would decide."""
    different: list[Solution] = []
    for solution in solutions:
        if _is_new(solution, different):
            different.append(solution)
    return different


def _is_new(child: Solution, population: Sequence[Solution]) -> bool:
    """Return whether no solution of the population has this inertia, up to rounding."""
    return all(child.betters(other) or other.betters(child) for other in population)


def centers_to_spare(solution: Solution, n_spared: int, lists: Labels | None = None) -> IndexArray:
    """Return the centers of least utility, without neighbours of one another if possible.

    Neighbours are those in the lists, which begin with the center itself, or any without lists.
    """
    centers = solution.centers
    if lists is None:
        nearest = nearest_neighbour_distances(centers)
    else:
        nearest = _row_norms(centers - centers[lists[:, 1]])
    # Two neighbours may each be useless only while the other is there.
    limit = _NEIGHBOUR * float(nearest.mean())
    is_frozen = np.zeros(len(centers), dtype=bool)
    spared: list[int] = []
    for least in solution.spread.utility.argsort(kind="stable"):
        if len(spared) == n_spared:
            break
        if is_frozen[least]:
            continue
        spared.append(int(least))
        is_frozen[least] = True
        others = np.arange(len(centers)) if lists is None else lists[least]
        or_near = is_frozen.copy()
        or_near[others[_row_norms(centers[others] - centers[least]) < limit]] = True
        # Freeze neighbours only while enough others can be spared.
        if len(centers) - np.count_nonzero(or_near) >= n_spared - len(spared):
            is_frozen = or_near
    return np.array(spared)


def _row_norms(rows: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.add.reduce(np.square(rows), axis=1)))


def nearest_neighbour_distances(centers: FloatArray) -> FloatArray:
    """Return the distance from each of at least two centers to the nearest other."""
    nearest = np.empty(len(centers))
    step = max(1, 2**20 // len(centers))  # blocks of distances of 8 MiB
    for start in range(0, len(centers), step):
        rows = slice(start, start + step)
        distances = cdist(centers[rows], centers)
        distances[np.arange(len(distances)), np.arange(start, start + len(distances))] = np.inf
        nearest[rows] = distances.min(axis=1)
    return nearest


def match_centers(centers: FloatArray, others: FloatArray) -> IndexArray:
    """Return the permutation of the others that is nearest to the centers, by squared distances."""
    _, matched = linear_sum_assignment(cdist(centers, others, "sqeuclidean"))
    return np.asarray(matched)
