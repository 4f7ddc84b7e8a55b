"""Search over the number of centers k: steps from one k to another, and a search with a price.

To grow from k to k + 1 centers, draw some points by their squared distance, add the one that leaves
the least inertia (the step of Likas, Vlassis & Verbeek 2003, "The global k-means clustering
algorithm"), and descend. To shrink from k + 1 to k, remove the center of least utility and descend.
Both are halves of breathing in `powermeans.engine.search.moves`. Swaps then mend the solution.
"""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from powermeans.engine.search.effort import Effort
from powermeans.engine.search.moves import improved, least_useful
from powermeans.engine.search.search import extend
from powermeans.engine.search.state import Search, Solution
from powermeans.types import FloatArray, IndexArray

# The number of points tried for each center that is added.
_CANDIDATES = 16


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
        removed = least_useful(solution, len(solution.centers) - size)
        left = np.delete(solution.centers, removed, axis=0)
        return self.search.measured(self.search.descend(left))

    def improved(self, solution: Solution, effort: Effort) -> Solution:
        """Improve as the search does, where there is something to improve."""
        if len(solution.centers) == 1 or solution.inertia <= self.search.perfect:
            self.search.begin(solution)
            return solution
        return improved(self.search, solution, effort)

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
        saves = max(found.inertia - more.inertia, 0.01 * costs)
        return found, math.sqrt(saves) * math.sqrt(costs)

    def _descended(self, centers: FloatArray) -> Solution:
        start = self.search.measured(centers)
        if start.inertia <= self.search.perfect:
            return start
        descended = self.search.measured(self.search.descend(centers))
        return descended if descended.inertia <= start.inertia else start

    def _added(self, centers: FloatArray, size: int, least_gain: float = -math.inf) -> FloatArray:
        """Add the best of several candidates until there are `size`, or one gains too little."""
        rows, rng = self.search.rows, self.search.fit.rng
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


def search_over_k(
    steps: Steps,
    seeds: Callable[[int], FloatArray],
    efforts: Sequence[Effort],
    centers: FloatArray,
) -> Solution:
    """Return the solution of least cost over k: of the inertia and a price for each center.

    Start from these centers or the best so far, whichever costs less. Walk up and down from their
    number as long as the cost falls, by steps that get shorter. Then search at the best k as for a
    given number of centers, and walk on from there if that changes anything. Each call of `seeds`
    gives other centers.
    """
    search = steps.search
    search.begin(search.measured(centers))
    _open_while_it_pays(steps, efforts[0])
    searched: set[int] = set()
    while True:
        _walk(steps, efforts[0])
        n_centers = len(search.best.centers)
        if n_centers in searched:
            return search.best
        searched.add(n_centers)
        if n_centers > 1:
            start = steps.improved(search.best, efforts[0])
            extend(search, [start], functools.partial(seeds, n_centers), efforts)


def _open_while_it_pays(steps: Steps, effort: Effort) -> None:
    """Open as many centers as pay at once, and repeat while the cost falls."""
    before = None
    while before is not steps.search.best:
        before = steps.search.best
        opened = steps.grown_while_it_pays(before)
        if opened is not before:
            _swapped(steps, opened, effort)


def _walk(steps: Steps, effort: Effort) -> None:
    """Take steps up and down, first an eighth of the centers long, until none lowers the cost.

    The last are a 64th long, or one center.
    """
    search = steps.search
    step = max(1, len(search.best.centers) // 8)
    while True:
        before = search.best
        _go(steps, step, effort)
        _go(steps, -step, effort)
        if search.best is before:
            shortest = max(1, len(before.centers) // 64)
            if step <= shortest:
                return
            step = max(shortest, step // 2)


def _go(steps: Steps, step: int, effort: Effort) -> None:
    """Step in one direction until two steps in a row do not lower the cost."""
    search = steps.search
    solution, n_fruitless = search.best, 0
    while n_fruitless < 2:
        size = len(solution.centers) + step
        if size < 1 or (step > 0 and solution.inertia <= search.perfect):
            return
        before = search.best
        stepped = (steps.grown if step > 0 else steps.shrunk)(solution, size)
        solution = _swapped(steps, stepped, effort)
        n_fruitless = n_fruitless + 1 if search.best is before else 0


def _swapped(steps: Steps, solution: Solution, effort: Effort) -> Solution:
    """Improve a step where that is cheap, and let the search know the solution."""
    if steps.search.moves is not None:
        return steps.improved(solution, effort)
    steps.search.begin(solution)
    return solution
