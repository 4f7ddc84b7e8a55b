"""What a search means to do, and which share of it is done."""

from __future__ import annotations

import math

# What parts of a search take, in units of one breath by Lloyd's rule. Breaths that gain are
# repeated, so that moving so many centers, a level, takes more than one.
_DESCENT = 1.5
_LEVEL = 2.0
_ANNEALED_LEVEL = 6.0
_CROSSING = 2.0


class PlannedWork:
    """The parts of a search, one after another: starts, solutions annealed again, crossings.

    Nothing is planned before the first part begins, and then `share_done` is NaN.

    Examples
    --------
    >>> from powermeans.planned_work import PlannedWork
    >>> work = PlannedWork()
    >>> work.share_done()
    nan
    >>> work.begin_start(n_moved=1, starts=1)
    >>> work.share_done()
    0.0
    >>> work.begin_start(n_moved=1)
    >>> work.share_done()
    0.5
    """

    def __init__(self) -> None:
        self._n_levels = self._n_levels_left = 0
        self._done = self._part = self._left = 0.0

    def begin_start(
        self, n_moved: int, starts: int = 0, annealed: int = 0, crossings: int = 0
    ) -> None:
        """A start begins.

        Parameters
        ----------
        n_moved : int
            How many centers its first breath moves.
        starts, annealed, crossings : int
            How many parts of each kind come after it.
        """
        self._n_levels = n_levels(n_moved)
        self._begin(self._of_start(), starts, annealed, crossings)

    def begin_annealed(self, annealed: int = 0, crossings: int = 0) -> None:
        """A solution is annealed again; so many parts of each kind come after it."""
        self._begin(self._of_annealed(), 0, annealed, crossings)

    def begin_crossing(self, crossings: int = 0) -> None:
        """A crossing begins; so many come after it if none gains."""
        self._begin(_CROSSING, 0, 0, crossings)

    def breathe(self, n_moved: int) -> None:
        """Breaths of this part move so many centers now."""
        self._n_levels_left = n_levels(n_moved)

    def share_done(self) -> float:
        """Which share of all is done; NaN where nothing was planned."""
        planned = self._done + self._part + self._left
        if not planned:
            return math.nan
        of_part = 1 - self._n_levels_left / max(1, self._n_levels)
        return (self._done + of_part * self._part) / planned

    def _begin(self, part: float, starts: int, annealed: int, crossings: int) -> None:
        self._done, self._part = self._done + self._part, part
        self._left = (
            starts * self._of_start() + annealed * self._of_annealed() + crossings * _CROSSING
        )
        self._n_levels_left = max(1, self._n_levels)

    def _of_start(self) -> float:
        return _DESCENT + _LEVEL * self._n_levels

    def _of_annealed(self) -> float:
        return _ANNEALED_LEVEL * self._n_levels


def n_levels(n_moved: int) -> int:
    """How many breaths there are if all are in vain, each moving two thirds as many centers."""
    return 0 if n_moved == 0 else 1 + n_levels(2 * n_moved // 3)
