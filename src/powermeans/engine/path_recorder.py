"""A callback that records the path of a fit."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter

import numpy as np

from powermeans.engine.history import SweepState
from powermeans.system.containers import check_number
from powermeans.types import FloatArray

# Rounding of the centers, as a share of the largest.
_ROUNDING = 1e-12
# Shifts are the same if they differ by no more than this share.
_SAME = 1e-6


class PathRecorder:
    """Record the sweeps of a fit; pass it as `callback`.

    It records the first run of a fit, and starts again with the next fit. Once there are more than
    `most` sweeps, it drops every second one, and from then on records only every second one, and so
    on. It always keeps the last one.

    Parameters
    ----------
    most : int, default=1000
        How many sweeps to keep at most, at least 2.

    Attributes
    ----------
    states : list of SweepState
        The sweeps, in their order; `centers` of a state are where the sweep moved them.

    See Also
    --------
    powermeans.plots.annealing_path : Draws it.
    powermeans.report : Shows it with a slider.

    Examples
    --------
    >>> from powermeans import PowerKMeans
    >>> from powermeans.engine import PathRecorder
    >>> path = PathRecorder()
    >>> model = PowerKMeans(2, power=-1.0, schedule=2.0, effort="none", init=[[0.0], [1.0]],
    ...                     callback=path).fit([[0.0], [1.0], [9.0], [10.0]])
    >>> len(path.states) == model.n_iter_
    True
    >>> path.centers()[-1].ravel()
    array([0.5, 9.5])
    """

    def __init__(self, most: int = 1000) -> None:
        check_number(most, "most", "[2, inf]", "for example most=1000")
        self.most = most
        self._forget()

    def _forget(self) -> None:
        self._kept: list[tuple[int, SweepState]] = []  # the number of the descent, and the sweep
        self._descent, self._stride, self._n_seen = 0, 1, 0

    @property
    def states(self) -> list[SweepState]:
        """The recorded sweeps, in order."""
        return [state for _, state in self._kept]

    def __call__(self, state: SweepState) -> None:
        """Record one sweep."""
        if state.run > 0:
            return
        if state.sweep == 1:
            self._forget()
        kept = self._kept
        if kept and not _goes_on(kept[-1][1], state):
            self._descent += 1
        if kept and (self._n_seen - 1) % self._stride != 0:
            kept.pop()  # off the stride, and no longer the last
        kept.append((self._descent, state))
        self._n_seen += 1
        if len(kept) > self.most:
            self._stride *= 2
            last = kept[-1]
            del kept[1::2]
            if kept[-1] is not last:
                kept.append(last)

    def descents(self) -> list[list[SweepState]]:
        """Split the sweeps where the power rises, or centers come, go or are put elsewhere."""
        groups = groupby(self._kept, key=itemgetter(0))
        return [[state for _, state in group] for _, group in groups]

    def centers(self) -> list[FloatArray]:
        """Return the centers of the first descent, sweep by sweep."""
        return [state.centers for state in self.descents()[0]] if self._kept else []


def _goes_on(before: SweepState, state: SweepState) -> bool:
    """Tell whether a sweep began at the centers in which the one before it ended."""
    if state.power > before.power or len(state.centers) != len(before.centers):
        return False
    if state.n_separated > 0:
        return True
    moved = state.centers - before.centers
    unit = float(np.abs(moved).max())
    distance = unit * float(np.linalg.norm(moved / unit)) if unit > 0 else 0.0
    rounding = _ROUNDING * float(np.abs(state.centers).max())
    return abs(distance - state.center_shift) <= _SAME * state.center_shift + rounding
