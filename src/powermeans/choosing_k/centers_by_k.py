"""Find centers for many values of k together, each k starting from the one before.

The steps from one k to another are those of `powermeans.engine.search.over_k`. No solution is worse
than one with fewer centers, since it may start from these and any others, and no descent raises the
inertia.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from powermeans.engine.anneal import Stage, anneal
from powermeans.engine.fit import Callback, Fit, Listener
from powermeans.engine.history import History
from powermeans.engine.search.effort import EFFORTS, Effort
from powermeans.engine.search.moves import PASSES_OF_SINGLE_MOVES, crossings
from powermeans.engine.search.over_k import Steps
from powermeans.engine.search.state import Search, Solution, different
from powermeans.engine.seeds.choose import choose_seeds, n_greedy_candidates, order_by_place
from powermeans.engine.seeds.parallel import Candidates, ParallelSeeds
from powermeans.engine.spread import tolerance_by_weight
from powermeans.engine.stopping import CentersSettled
from powermeans.engine.updates import RelocateEmpty
from powermeans.mathematics.schedules import Fixed
from powermeans.optimality.line import Line, line_through
from powermeans.points.along_axes import along_axes
from powermeans.points.compiled import EuclideanPoints
from powermeans.points.protocol import Points
from powermeans.system.attributes import cached_property
from powermeans.types import FloatArray

_MAX_ITER = 300
# The tolerance of the last descent, in units of the mean variance of the features.
_TOLERANCE = 1e-4
# Of a search along axes, over the largest number of centers.
_SWEEPS_OF_A_SIZE = 60


@dataclass(frozen=True, slots=True)
class EffortForEachK:
    """The search besides growing from one k to the next."""

    n_seedings: int  # descents for each k from seeds of its own, and more for few centers
    n_improved: int  # starts of each k, the best first, that are improved by swaps
    n_breathing: int  # the same by breathing, which takes longer, where rows know no swaps
    search: Effort  # of each improvement, and of crossing these


# A search as thorough as that of a single fit would take ten times as long for each k.
_FAST, _BALANCED = (replace(EFFORTS[name][0], n_swaps=20) for name in ("fast", "balanced"))
EFFORTS_FOR_EACH_K = {
    "fast": EffortForEachK(0, 1, 0, _FAST),
    "balanced": EffortForEachK(1, 2, 1, replace(_BALANCED, n_crossings=1)),
    "thorough": EffortForEachK(8, 6, 6, replace(_BALANCED, n_crossings=8)),
}

FindCenters = Callable[
    [Points, Sequence[int], EffortForEachK, np.random.RandomState, Callback | None],
    Iterator[dict[int, Solution]],
]

Lifted = Callable[[dict[int, Solution]], dict[int, Solution]]


def centers_by_k(
    rows: Points,
    sizes: Sequence[int],
    effort: EffortForEachK,
    rng: np.random.RandomState,
    callback: Callback | None = None,
) -> Iterator[dict[int, Solution]]:
    """Yield the best centers so far for each of the rising sizes; the last are the result.

    The first have only some sizes. The callback raises to stop; its answer is ignored. Points on a
    line have the best centers of each size.
    """
    if (line := _line_of(rows)) is not None and len(line.values) >= sizes[-1]:
        best = (line.centers(line.division(size)) for size in sizes)
        yield {
            k: Solution(centers, rows.spread(centers))
            for k, centers in zip(sizes, best, strict=True)
        }
        return
    whole = _Path(rows, effort, Fit(rng, Listener(callback)), sizes[-1])
    path, lifted = whole.along_axes(sizes)
    found: dict[int, Solution] = {}
    for found in path.upward(sizes):
        yield lifted(found)
    found = lifted(path.never_rising(path.regrown(path.downward(found))))
    yield found
    yield whole.never_rising({size: whole.settled(found[size]) for size in sizes})


def _line_of(rows: Points) -> Line | None:
    """Return the line on which all rows of positive weight lie, if they do."""
    if type(rows) is not EuclideanPoints:
        return None
    every = np.arange(rows.n_points)
    return line_through(rows.sample(every), rows.sample_weight(every))


def settled_on(rows: Points, centers: FloatArray, callback: Callback | None) -> FloatArray:
    """Return centers after a few sweeps of Lloyd's, which start near where they end."""
    lloyd = Stage(Fixed(-math.inf), _settled(rows), 10, RelocateEmpty())
    return anneal(rows, centers, [lloyd], Fit(listener=Listener(callback))).centers


def _settled(rows: Points) -> CentersSettled:
    return CentersSettled(tolerance_by_weight(rows, _TOLERANCE))


class _Path:
    """Step from one k to another, with the same rows, search and random numbers."""

    def __init__(self, rows: Points, effort: EffortForEachK, fit: Fit, largest: int = 1) -> None:
        self.largest = largest
        self.rows, self.effort, self.fit, self.rng = rows, effort, fit, fit.rng
        # Rows in parts are too many to sort.
        self.order = order_by_place(rows, fit.rng)[0] if rows.parts is None else None
        self.lloyd = Stage(Fixed(-math.inf), _settled(rows), _MAX_ITER, RelocateEmpty())
        least_gain = effort.search.least_gain
        self.search = Search(rows, [self.lloyd], fit, least_gain=least_gain)
        self.steps = Steps(self.search, self.order)
        self.n_improved = effort.n_improved if self.search.moves else effort.n_breathing

    def along_axes(self, sizes: Sequence[int]) -> tuple[_Path, Lifted]:
        """Return the path of wide points by their coordinates, and the way back, if that is less.

        Points that are at most half as many as their features lose nothing but rounding.
        """
        is_wide = 2 * self.rows.n_points <= self.rows.n_features
        seen = along_axes(self.rows, sizes[-1], _SWEEPS_OF_A_SIZE * len(sizes)) if is_wide else None
        if seen is None:
            return self, lambda found: found
        known = dict[int, tuple[Solution, Solution]]()  # each with what it is in all features

        def lifted(found: dict[int, Solution]) -> dict[int, Solution]:
            for k, one in found.items():
                if k not in known or known[k][0] is not one:
                    known[k] = one, self.search.measured(seen.lifted(one.centers))
            return {k: known[k][1] for k in found}

        there = replace(self.fit, as_searched=seen.lifted, history=History())
        return _Path(seen.rows, self.effort, there, self.largest), lifted

    def upward(self, sizes: Sequence[int]) -> Iterator[dict[int, Solution]]:
        """Grow from the mean to the largest size, and yield the solutions so far."""
        best = self.search.measured(self.rows.mean()[None, :])
        found: dict[int, Solution] = {}
        for size in sizes:
            if size > 1:
                best = self.best_of([self.steps.grown(best, size), *self.seeded(best, size)])
            found = {**found, size: best}
            yield found

    def downward(self, found: dict[int, Solution]) -> dict[int, Solution]:
        """Remove the least useful centers of the next larger solution wherever that is better."""
        better = dict(found)
        for larger, smaller in itertools.pairwise(sorted(found, reverse=True)):
            if smaller == 1 or better[larger].inertia <= self.search.perfect:
                continue
            shrunk = self.steps.shrunk(better[larger], smaller)
            better[smaller] = self.better_of(better[smaller], shrunk)
        return better

    def regrown(self, found: dict[int, Solution]) -> dict[int, Solution]:
        """Grow from the next smaller solution wherever that is better."""
        if not self.n_improved:
            return found  # they came from there
        better = dict(found)
        for smaller, larger in itertools.pairwise(sorted(found)):
            if better[larger].inertia > self.search.perfect:
                grown = self.steps.grown(better[smaller], larger)
                better[larger] = self.better_of(better[larger], grown)
        return better

    def better_of(self, solution: Solution, other: Solution) -> Solution:
        """Improve the other, and return the better one."""
        may_better = other.inertia < 1.01 * solution.inertia
        if self.n_improved and may_better and len(different([solution, other])) > 1:
            other = self.steps.improved(other, self.effort.search)
        return other if other.betters(solution) else solution

    def never_rising(self, found: dict[int, Solution]) -> dict[int, Solution]:
        """Grow from the smaller solution wherever a larger one has more inertia."""
        falling = dict(found)
        for smaller, larger in itertools.pairwise(sorted(found)):
            if falling[larger].inertia > falling[smaller].inertia:
                falling[larger] = self.steps.grown(falling[smaller], larger)
        return falling

    def seeded(self, before: Solution, size: int) -> list[Solution]:
        """Descend from seeds, unless no inertia is left."""
        search, n_seedings = self.search, self.effort.n_seedings
        if before.inertia <= search.perfect or not n_seedings:
            return []
        if search.moves is not None:
            n_seedings = max(n_seedings, self.effort.search.from_seeds(size).n_starts - 1)
        return [search.measured(search.descend(self.seeds(size))) for _ in range(n_seedings)]

    def seeds(self, size: int) -> FloatArray:
        n_candidates = n_greedy_candidates(size)
        if self.rows.parts is None:
            return choose_seeds(self.rows, size, self.rng, n_candidates=n_candidates)[0]
        return self.candidates.seeds(size, self.rng, n_candidates)

    @cached_property
    def candidates(self) -> Candidates:
        """Return the candidates for seeds of all sizes, found in a few passes."""
        return ParallelSeeds().candidates(self.rows, self.largest, self.rng)

    def best_of(self, starts: list[Solution]) -> Solution:
        """Improve the best starts, and return the best of all."""
        starts = sorted(different(starts), key=attrgetter("inertia"))
        some, others = starts[: self.n_improved], starts[self.n_improved :]
        some = [self.steps.improved(start, self.effort.search) for start in some]
        population = different([*some, *others])
        self.search.population = population
        best = min(population, key=attrgetter("inertia"))
        return crossings(self.search, best, self.effort.search)

    def settled(self, solution: Solution) -> Solution:
        """Descend by Lloyd's rule until the centers settle; a search stops earlier."""
        centers = solution.centers
        if self.n_improved and self.search.moves is not None:
            centers = self.search.moves.move_points(centers, PASSES_OF_SINGLE_MOVES).centers
        fit = replace(self.fit, history=History())
        settled = self.search.measured(anneal(self.rows, centers, [self.lloyd], fit).centers)
        return settled if settled.inertia <= solution.inertia else solution
