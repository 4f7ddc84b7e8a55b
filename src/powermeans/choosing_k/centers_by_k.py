"""Find centers for many values of k together, each k starting from the one before.

To grow from k to k + 1 centers, draw some points by their squared distance, add the one that leaves
the least inertia (the step of Likas, Vlassis & Verbeek 2003, "The global k-means clustering
algorithm"), and descend. To shrink from k + 1 to k, remove the center of least utility and descend.
No solution is worse than one with fewer centers, since it may start from these and any others, and
no descent raises the inertia.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

import numpy as np

from powermeans.loop.anneal import Callback, Stage, anneal
from powermeans.loop.history import History
from powermeans.loop.search import Search, Solution, centers_to_spare
from powermeans.loop.spread import rounding_inertia, spread
from powermeans.loop.stopping import CentersSettled
from powermeans.loop.updates import RelocateEmpty
from powermeans.rows.protocol import Rows
from powermeans.schedules import Fixed
from powermeans.seeds.choose import choose_seeds, n_greedy_candidates
from powermeans.seeds.orders import order_by_place
from powermeans.seeds.parallel import Candidates, ParallelSeeds
from powermeans.types import FloatArray

_MAX_ITER = 300
# The tolerance of the last descent, in units of the mean variance of the features.
_TOLERANCE = 1e-4
# The least number of centers that breathing adds and removes, if there are twice as many.
_DEPTH = 5
# The number of points tried for each center that is added.
_CANDIDATES = 16


@dataclass(frozen=True, slots=True)
class EffortForEachK:
    """The search besides growing from one k to the next."""

    n_seedings: int  # descents for each k from seeds of its own
    n_breathing: int  # starts of each k, the best first, that are improved by breathing
    n_rounds: int  # passes from the largest k down and up again
    least_gain: float  # as a share of the inertia; smaller gains end a search


EFFORTS_FOR_EACH_K = {
    "fast": EffortForEachK(n_seedings=0, n_breathing=0, n_rounds=1, least_gain=1e-3),
    "balanced": EffortForEachK(n_seedings=1, n_breathing=1, n_rounds=1, least_gain=1e-3),
    "thorough": EffortForEachK(n_seedings=5, n_breathing=6, n_rounds=3, least_gain=1e-4),
}


def centers_by_k(
    rows: Rows,
    sizes: Sequence[int],
    effort: EffortForEachK,
    rng: np.random.RandomState,
    callback: Callback | None = None,
) -> Iterator[dict[int, Solution]]:
    """Yield the best centers so far for each of the rising sizes; the last are the result.

    The first have only some sizes. The callback raises to stop; its answer is ignored.
    """
    path = _Path(rows, effort, rng, callback, sizes[-1])
    found: dict[int, Solution] = {}
    for found in path.upward(sizes):
        yield found
    for _ in range(effort.n_rounds):
        found = path.never_rising(path.downward(found))
        yield found
    yield path.never_rising({size: path.settled(found[size]) for size in sizes})


class _Path:
    """Step from one k to another, with the same rows, search and random numbers."""

    def __init__(
        self,
        rows: Rows,
        effort: EffortForEachK,
        rng: np.random.RandomState,
        callback: Callback | None,
        largest: int = 1,
    ) -> None:
        self.largest = largest
        self.rows, self.effort, self.rng, self.callback = rows, effort, rng, callback
        self.perfect = rounding_inertia(rows)
        # Rows in parts are too many to sort.
        self.order = order_by_place(rows, rng)[0] if rows.has_order else None
        self.search = Search(
            rows,
            start_power=-math.inf,
            critical_power=-math.inf,
            depth=_DEPTH,
            max_iter=_MAX_ITER,
            tol=_TOLERANCE,
            rng=rng,
            history=History(),
            callback=callback,
            least_gain=effort.least_gain,
        )

    def upward(self, sizes: Sequence[int]) -> Iterator[dict[int, Solution]]:
        """Grow from the mean to the largest size, and yield the solutions so far."""
        best = self.search.measured(self.rows.mean()[None, :])
        found: dict[int, Solution] = {}
        for size in sizes:
            if size > 1:
                best = self.best_of([self.grown(best, size), *self.seeded(best, size)])
            found = {**found, size: best}
            yield found

    def downward(self, found: dict[int, Solution]) -> dict[int, Solution]:
        """Remove the least useful centers of the next larger solution wherever that is better."""
        better = dict(found)
        for larger, smaller in itertools.pairwise(sorted(found, reverse=True)):
            if smaller == 1 or better[larger].inertia <= self.perfect:
                continue
            spared = centers_to_spare(better[larger], larger - smaller)
            shrunk = self.search.descend(np.delete(better[larger].centers, spared, axis=0))
            if shrunk.betters(better[smaller]):
                better[smaller] = self.best_of([shrunk])
        return better

    def never_rising(self, found: dict[int, Solution]) -> dict[int, Solution]:
        """Grow from the smaller solution wherever a larger one has more inertia."""
        falling = dict(found)
        for smaller, larger in itertools.pairwise(sorted(found)):
            if falling[larger].inertia > falling[smaller].inertia:
                falling[larger] = self.grown(falling[smaller], larger)
        return falling

    def grown(self, solution: Solution, size: int) -> Solution:
        """Add centers one by one, and descend."""
        start = self.search.measured(self.with_added(solution.centers, size))
        if start.inertia <= self.perfect:
            return start
        descended = self.search.descend(start.centers)
        return descended if descended.inertia <= start.inertia else start

    def with_added(self, centers: FloatArray, size: int) -> FloatArray:
        nearness = self.rows.nearness(centers, self.order)
        added = [centers]
        for _ in range(size - len(centers)):
            candidates = nearness.draw(self.rng.uniform(size=_CANDIDATES))
            best = candidates[np.argmin(nearness.potentials(candidates))]
            added.append(self.rows.take(np.array([best])))
            nearness.add(added[-1][0])
        return np.concatenate(added)

    def seeded(self, before: Solution, size: int) -> list[Solution]:
        """Descend from seeds, unless no inertia is left."""
        if before.inertia <= self.perfect:
            return []
        return [self.search.descend(self.seeds(size)) for _ in range(self.effort.n_seedings)]

    def seeds(self, size: int) -> FloatArray:
        n_candidates = n_greedy_candidates(size)
        if self.rows.has_order:
            return choose_seeds(self.rows, size, self.rng, n_candidates=n_candidates)[0]
        return self.candidates.seeds(size, self.rng, n_candidates)

    @cached_property
    def candidates(self) -> Candidates:
        """Return the candidates for seeds of all sizes, found in a few passes."""
        return ParallelSeeds().candidates(self.rows, self.largest, self.rng)

    def best_of(self, starts: list[Solution]) -> Solution:
        """Improve the best starts by breathing, and return the best of all."""
        starts = sorted(starts, key=attrgetter("inertia"))
        breathing = starts[: self.effort.n_breathing]
        breathed = [self.search.breathe(start, annealed=False) for start in breathing]
        return min([*breathed, starts[0]], key=attrgetter("inertia"))

    def settled(self, solution: Solution) -> Solution:
        """Descend by Lloyd's rule until the centers settle; a search stops earlier."""
        variance = spread(self.rows) ** 2 / self.rows.n_features
        stopping = CentersSettled(_TOLERANCE * variance)
        last = Stage(Fixed(-math.inf), stopping, _MAX_ITER, RelocateEmpty())
        ends = anneal(self.rows, solution.centers, [last], History(), self.callback)
        settled = self.search.measured(ends[-1].centers)
        return settled if settled.inertia <= solution.inertia else solution
