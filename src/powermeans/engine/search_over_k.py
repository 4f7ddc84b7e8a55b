"""Search over the number of centers k: steps from one k to another, and a search with a price.

To grow from k to k + 1 centers, draw some points by their squared distance, add the one that leaves
the least inertia (the step of Likas, Vlassis & Verbeek 2003, "The global k-means clustering
algorithm"), and descend. To shrink from k + 1 to k, remove the center of least utility and descend.
Both are halves of a breath of `powermeans.engine.search`, whose swaps then mend the solution.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from powermeans.engine.search import Effort, Search, Solution, centers_to_spare
from powermeans.types import FloatArray, IndexArray

# The number of points tried for each center that is added.
_CANDIDATES = 16
# The first steps of a walk change one in this many centers, and the last steps one in that many.
_CENTERS_FOR_FIRST_STEP = 8
_CENTERS_FOR_LAST_STEP = 64
# A price is at least the root of this share of what one center less costs.
_LEAST_SAVED = 1e-2
# Steps in a row in vain that end a walk.
_PATIENCE = 2


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps from one number of centers to another."""

    search: Search
    order: IndexArray | None  # of the points, in which draws walk along them

    def grown(self, solution: Solution, size: int) -> Solution:
        """Add centers one by one up to this number, and descend."""
        return self._descended(self._added(solution.centers, size))

    def grown_while_it_pays(self, solution: Solution) -> Solution:
        """Add centers while each saves more than its price, and descend."""
        centers = self._added(solution.centers, self.search.rows.n_points, self.search.price)
        return self._descended(centers) if len(centers) > len(solution.centers) else solution

    def shrunk(self, solution: Solution, size: int) -> Solution:
        """Remove the centers of least utility, and descend."""
        spared = centers_to_spare(solution, len(solution.centers) - size)
        return self.search.descend(np.delete(solution.centers, spared, axis=0))

    def improved(self, solution: Solution, effort: Effort) -> Solution:
        """Improve as the search does, where there is something to improve."""
        if len(solution.centers) == 1 or solution.inertia <= self.search.perfect:
            self.search.begin(solution)
            return solution
        return self.search.improve(solution, effort)

    def found_with_price(self, n_centers: int, effort: Effort) -> tuple[Solution, float]:
        """Return so many centers and a price at which about as many cost least; zero if none does.

        It is the geometric mean of what one center more saves and what one less costs.
        """
        mean = self.search.measured(self.search.rows.mean()[None, :])
        found = self.improved(self.grown(mean, n_centers), effort)
        more = self.improved(self.grown(found, n_centers + 1), effort)
        costs = found.inertia  # less than one center leaves nothing
        if n_centers > 1:
            costs = self.improved(self.shrunk(found, n_centers - 1), effort).inertia - found.inertia
        if costs <= self.search.perfect:
            return found, 0.0
        # Where every point is at a center, one more saves nothing.
        saves = max(found.inertia - more.inertia, _LEAST_SAVED * costs)
        return found, math.sqrt(saves) * math.sqrt(costs)

    def _descended(self, centers: FloatArray) -> Solution:
        start = self.search.measured(centers)
        if start.inertia <= self.search.perfect:
            return start
        descended = self.search.descend(centers)
        return descended if descended.inertia <= start.inertia else start

    def _added(self, centers: FloatArray, size: int, least_gain: float = -math.inf) -> FloatArray:
        """Add the best of several candidates until there are `size`, or one gains too little."""
        rows, rng = self.search.rows, self.search.rng
        nearness = rows.nearness(centers, self.order)
        added, before = [centers], nearness.inertia()
        for _ in range(size - len(centers)):
            candidates = nearness.draw(rng.uniform(size=_CANDIDATES))
            potentials = nearness.potentials(candidates)
            best = np.argmin(potentials)
            if before - potentials[best] <= least_gain:
                break
            before = float(potentials[best])
            added.append(rows.take(candidates[best : best + 1]))
            nearness.add(added[-1][0])
        return np.concatenate(added)


@dataclass(frozen=True, slots=True)
class SearchOverK:
    """Look for the k and the centers of least cost: the inertia and a price for each center.

    Walk up and down from k as long as the cost falls, by steps that get shorter. Then search at the
    best k as for a given number of centers, and walk on from there if that changes anything.
    """

    steps: Steps
    seeds: Callable[[int], FloatArray]  # for this number of centers; each call returns others
    efforts: Sequence[Effort]

    def run(self, centers: FloatArray) -> Solution:
        """Start from these centers or the best so far, whichever costs less; return the best."""
        search = self.steps.search
        search.begin(search.measured(centers))
        self._open_while_it_pays()
        searched: set[int] = set()
        while True:
            self._walk()
            n_centers = len(self.best.centers)
            if n_centers in searched:
                return self.best
            searched.add(n_centers)
            self._search_at_best()

    @property
    def best(self) -> Solution:
        """The solution of least cost so far."""
        assert self.steps.search.best is not None, "the search has begun"
        return self.steps.search.best

    def _search_at_best(self) -> None:
        """Search with the number of centers that is best so far."""
        n_centers = len(self.best.centers)
        if n_centers > 1:
            start = self.steps.improved(self.best, self.efforts[0])
            seeds = functools.partial(self.seeds, n_centers)
            self.steps.search.extend([start], seeds, (), *self.efforts)

    def _open_while_it_pays(self) -> None:
        """Open as many centers as pay at once, and repeat while the cost falls."""
        before = None
        while before is not self.best:
            before = self.best
            opened = self.steps.grown_while_it_pays(before)
            if opened is not before:
                self._swapped(opened)

    def _walk(self) -> None:
        """Take steps up and down, first long and then short, until none lowers the cost."""
        step = max(1, len(self.best.centers) // _CENTERS_FOR_FIRST_STEP)
        while True:
            before = self.best
            self._go(step)
            self._go(-step)
            if self.best is before:
                shortest = max(1, len(before.centers) // _CENTERS_FOR_LAST_STEP)
                if step <= shortest:
                    return
                step = max(shortest, step // 2)

    def _go(self, step: int) -> None:
        """Step in one direction until several steps in a row are in vain."""
        solution, n_in_vain = self.best, 0
        while n_in_vain < _PATIENCE:
            size = len(solution.centers) + step
            if size < 1 or (step > 0 and solution.inertia <= self.steps.search.perfect):
                return
            before = self.best
            stepped = (self.steps.grown if step > 0 else self.steps.shrunk)(solution, size)
            solution = self._swapped(stepped)
            n_in_vain = n_in_vain + 1 if self.best is before else 0

    def _swapped(self, solution: Solution) -> Solution:
        """Improve a step where that is cheap, and let the search know the solution."""
        if self.steps.search.moves is not None:
            return self.steps.improved(solution, self.efforts[0])
        self.steps.search.begin(solution)
        return solution
