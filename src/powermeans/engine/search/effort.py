"""How much a search does, and the thresholds at which it changes its ways.

`docs/understand/how_it_searches.md` explains each step, what it gains, and what did not help.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple, Self


class Thresholds(NamedTuple):
    """Where a search changes its ways. Work is counted in distances times features."""

    feature_cost: int = 8  # of a distance beside its features: short points take longer for each
    # Nobody notices this work. Up to it, neither swaps without a gain nor starts that agree end
    # anything, since two starts sometimes agree on a poor optimum.
    work_not_noticed: float = 1e5
    n_starts_of_small: int = 16  # made at most where a sweep takes no more work than that
    n_centers_started: int = 60  # few centers cost little: up to twice as many starts have these
    work_of_swaps: float = 1e7  # may always be done, even if `n_sweeps_of_swaps` are less
    # Swaps run on one thread and jump through memory; with more values, breathing takes less time
    # and in hundreds of features finds more.
    most_values_swapped: int = 2**20
    most_values_swapped_at_end: int = 2**22  # after a search along axes that leave something out
    # A sample has at least these many points, and these for each center. Where a sweep takes more
    # work than `costly_sweep`, so that a fit takes seconds, it is smaller: the search then takes
    # about as long as one descent of all points.
    least_sampled: int = 8192
    sampled_for_each_center: int = 100
    costly_sweep: float = 1e9
    smallest_share_sampled: int = 8
    fewest_for_each_center: int = 25
    most_values_brought: int = 2**24  # to one memory from points in parts or in a tensor
    # Matching takes time cubic in the number of centers, so more are not crossed. From so many on,
    # and where a sweep takes more work, "fast" compares each point only with the centers near it.
    many_centers: int = 1000
    least_work_nearby: float = 4e9
    least_gain_nearby: float = 1e-3  # these sweeps go on for smaller gains than those over all


THRESHOLDS = Thresholds()


@dataclass(frozen=True, slots=True)
class Effort:
    """How much a search may do.

    A gain below `least_gain`, a share of the inertia, is kept but counts as none: breathing moves
    fewer centers, crossings come nearer to their end, and a descent by Lloyd's rule ends.
    """

    n_starts: int  # from seeds of their own; the first is annealed
    n_crossings: int  # in a row without a gain that end them; 0 for none
    least_gain: float
    n_swaps: int  # in a row without a gain that end the swaps of a start; half for a child
    n_powers: int = 4  # of the annealing of the first start
    n_sweeps_of_swaps: float = math.inf  # swaps may compute as many distances as these sweeps
    # So many starts that have found the best, up to `least_gain`, end the starts, and nothing is
    # crossed. Where that may happen, few centers and small data have more starts than `n_starts`.
    n_agreeing: float = math.inf
    n_annealed: int = 0  # of the best solutions that breathe again with annealing, without swaps
    most_values: float = THRESHOLDS.most_values_swapped  # with more, a sample of these is searched

    def from_seeds(self, n_centers: int, are_given: bool = False) -> Self:
        """Return the effort with as many starts as it makes with this many centers.

        Given centers start annealed and not, so that they never get worse.
        """
        if are_given:
            return replace(self, n_starts=2, n_agreeing=math.inf)
        if self.n_agreeing == math.inf:
            return self
        n_cheap = min(2 * self.n_starts, THRESHOLDS.n_centers_started // n_centers)
        return replace(self, n_starts=max(self.n_starts, n_cheap))


# A default fit takes about as long as one to three descents of large data. Two starts that agree
# sometimes agree on a poor optimum, so that three do.
_BALANCED = Effort(
    n_starts=3,
    n_crossings=4,
    least_gain=1e-3,
    n_swaps=150,
    n_sweeps_of_swaps=3,
    n_agreeing=3,
)
# An effort begins with all that those before it in its list do, so that more ends no higher.
EFFORTS = {
    # One start, which a coarse annealing may begin, since swaps repair what it misses.
    "fast": [
        Effort(
            n_starts=1,
            n_crossings=0,
            least_gain=1e-2,
            n_swaps=60,
            n_sweeps_of_swaps=5,
            n_powers=3,
            most_values=2**18,
        )
    ],
    "balanced": [_BALANCED],
    # For the lowest inertia, whatever it takes: starts that agree end nothing.
    "thorough": [
        _BALANCED,
        Effort(n_starts=12, n_crossings=150, least_gain=1e-4, n_swaps=60, n_annealed=4),
    ],
}
