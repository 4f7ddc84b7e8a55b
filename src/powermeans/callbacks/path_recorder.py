"""A callback that records where the centers went."""

from __future__ import annotations

from itertools import pairwise

from powermeans.loop.history import SweepState
from powermeans.types import FloatArray


class PathRecorder:
    """Record the sweeps of a fit; pass it as `callback`.

    It records the first run of a fit, and begins anew with the next fit. Once there are more than
    `most` sweeps it forgets every second one, and from then on skips every second one, and so on.
    It always keeps the last.

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
    >>> from powermeans import PathRecorder, PowerKMeans
    >>> path = PathRecorder()
    >>> model = PowerKMeans(2, power=-1.0, growth=2.0, refine=0, init=[[0.0], [1.0]],
    ...                     callback=path).fit([[0.0], [1.0], [9.0], [10.0]])
    >>> len(path.states) == model.n_iter_
    True
    >>> path.centers()[-1].ravel()
    array([0.5, 9.5])
    """

    def __init__(self, most: int = 1000) -> None:
        if most < 2:
            raise ValueError(f"most={most!r} must be at least 2: pass for example most=1000")
        self.most = most
        self.states: list[SweepState] = []
        self._stride = 1
        self._n_seen = 0

    def __call__(self, state: SweepState) -> None:
        """Record one sweep."""
        if state.run > 0:
            return
        if state.sweep == 1:
            self.states, self._stride, self._n_seen = [], 1, 0
        if self.states and (self._n_seen - 1) % self._stride != 0:
            self.states.pop()  # off the stride, and no longer the last
        self.states.append(state)
        self._n_seen += 1
        if len(self.states) > self.most:
            self._stride *= 2
            last = self.states[-1]
            del self.states[1::2]
            if self.states[-1] is not last:
                self.states.append(last)

    def descents(self) -> list[list[SweepState]]:
        """Split the sweeps where the power rises or the number of centers changes."""
        found = [self.states[:1]] if self.states else []
        for before, state in pairwise(self.states):
            if state.power > before.power or len(state.centers) != len(before.centers):
                found.append([])
            found[-1].append(state)
        return found

    def centers(self) -> list[FloatArray]:
        """Return the centers of the first descent, sweep by sweep."""
        return [state.centers for state in self.descents()[0]] if self.states else []
