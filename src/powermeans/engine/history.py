"""The history of a run: the figures of each sweep, and the share of the work that is done."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from powermeans.system.saved_classes import saved
from powermeans.types import FloatArray

Tell = Callable[[str, int, int | None], object]
"""Is called with the name of a phase, how much of it is done, and the total if that is known."""


class SweepRecord(NamedTuple):
    """The figures of one sweep, one row of `history_`."""

    power: float
    objective: float
    inertia: float
    center_shift: float
    seconds: float
    skipped: float = 0.0
    changed: float = math.nan


class SweepState(NamedTuple):  # which takes a fifth of the time that a frozen dataclass takes
    """A complete sweep, which a callback gets.

    Attributes
    ----------
    run : int
        Which of the `n_init` runs this is, from zero.
    sweep : int
        How many sweeps of this run are complete.
    power : float
        The power of this sweep; -inf in a Lloyd sweep.
    objective, inertia : float
        The objective at that power and the k-means objective, at the centers before the sweep.
    center_shift : float
        Root of the summed squared distances by which this sweep moved the centers.
    seconds : float
        How long the sweep took.
    centers : ndarray of shape (n_centers, n_features)
        Where the sweep moved the centers, float64 and read-only. While a search adds and
        removes centers, there are sometimes more than `n_clusters` of them.
    n_relocated : int
        Empty clusters that this sweep moved to where the error is largest.
    n_separated : int
        Coincident centers that were moved apart before this sweep.
    skipped : float
        The share of the distances between points and centers that the sweep did not compute.
    changed : float
        The share of the points whose label is not that of the last hard sweep; NaN where labels are
        not stored, as in soft sweeps and for points in parts.

    See Also
    --------
    PathRecorder : A callback that remembers them.
    progress : A callback that shows them.

    Examples
    --------
    >>> from powermeans import PowerKMeans
    >>> states = []
    >>> X = [[0.0], [1.0], [9.0], [10.0]]
    >>> model = PowerKMeans(2, effort="none", random_state=0, callback=states.append).fit(X)
    >>> states[0].run, states[0].sweep, states[0].centers.shape
    (0, 1, (2, 1))
    >>> states[-1].power  # the last sweep is one of Lloyd's
    -inf
    """

    run: int
    sweep: int
    power: float
    objective: float
    inertia: float
    center_shift: float
    seconds: float
    centers: FloatArray
    n_relocated: int = 0
    n_separated: int = 0
    skipped: float = 0.0
    changed: float = math.nan

    def widened(self, all_of: Callable[[FloatArray], FloatArray]) -> SweepState:
        """Return the state with all columns of the user's points, where some were left out."""
        centers = all_of(self.centers)
        if centers is self.centers:
            return self
        centers.setflags(write=False)
        return self._replace(centers=centers)


@saved
@dataclass(frozen=True, slots=True)
class Spent:
    """The work that a run took."""

    _state = "n_sweeps: count moves: any accepted_inertias: any seconds: number skipped: number"

    n_sweeps: int  # soft and hard
    moves: dict[str, int]  # "swaps", "single_moves", "breathing", "crossings": steps that gained
    # A chain of falling ones for each start, for each solution annealed again, and for all
    # crossings. In a sample, they estimate those of all points.
    accepted_inertias: tuple[tuple[float, ...], ...]
    seconds: float
    skipped: float  # share of the distances between points and centers that no sweep computed


class History:
    """The records of a run so far, and its last complete state, which outlive an interrupt."""

    def __init__(self, run: int = 0, tell: Tell | None = None) -> None:
        self.run = run  # of the `n_init` runs, from zero
        self._tell = tell
        self.records: list[SweepRecord] = []
        self.last: SweepState | None = None
        self.n_relocated = self.n_separated = 0
        self.has_risen = False  # the objective, beyond rounding, of which is warned once
        self.moves = Counter[str]()  # see `Spent`, as are these
        self.accepted: list[list[float]] = []
        self._n_centers_swept = 0
        self._n_centers_skipped = 0.0
        self._kept: FloatArray | None = None
        self._started = time.perf_counter()

    def phase(self, name: str, done: int = 0, total: int | None = None) -> None:
        """Tell who listens in which phase the run is."""
        if self._tell is not None:
            self._tell(f"run {self.run + 1}, {name}" if self.run else name, done, total)

    def append(self, state: SweepState) -> None:
        """Add one complete sweep."""
        # Not by `getattr` in a loop, which takes five times as long.
        figures = SweepRecord(
            state.power,
            state.objective,
            state.inertia,
            state.center_shift,
            state.seconds,
            state.skipped,
            state.changed,
        )
        self.records.append(figures)
        self.n_relocated += state.n_relocated
        self.n_separated += state.n_separated
        # Some sweeps of a search have more centers than others, so shares are weighted by them.
        self._n_centers_swept += len(state.centers)
        self._n_centers_skipped += state.skipped * len(state.centers)
        self.last = state

    def keep(self, centers: FloatArray) -> None:
        """Remember these centers as the best of several descents."""
        self._kept = centers

    def begin_anew(self) -> None:
        """Forget the centers so far, but not the records."""
        self._kept = self.last = None

    def widen(self, lifted: Callable[[FloatArray], FloatArray]) -> None:
        """Give the centers so far all features, where a search left some out."""
        if self._kept is not None:
            self._kept = lifted(self._kept)
        if self.last is not None:
            self.last = self.last.widened(lifted)

    @property
    def centers(self) -> FloatArray | None:
        """The best centers of a search, else the last; None before the first sweep."""
        if self._kept is not None or self.last is None:
            return self._kept
        return self.last.centers

    def last_soft_power(self) -> float:
        """Return the power of the last sweep with soft weights, minus infinity without one."""
        soft = (one.power for one in reversed(self.records) if one.power > -math.inf)
        return next(soft, -math.inf)

    @property
    def known_inertia(self) -> float:
        """The inertia of `centers` if a search accepted them, else before the last sweep."""
        accepted = [chain[-1] for chain in self.accepted if chain]
        if accepted or self.last is None:
            return min(accepted, default=math.inf)
        return self.last.inertia

    def spent(self) -> Spent:
        """Return the work so far."""
        return Spent(
            n_sweeps=len(self.records),
            moves=dict(self.moves),
            accepted_inertias=tuple(tuple(chain) for chain in self.accepted),
            seconds=time.perf_counter() - self._started,
            skipped=self._n_centers_skipped / max(1, self._n_centers_swept),
        )

    def as_recarray(self) -> np.recarray[Any, Any]:
        """Return one record for each sweep, in a form that `pandas.DataFrame` takes."""
        dtype = [(field, np.float64) for field in SweepRecord._fields]
        return np.array(self.records, dtype=dtype).view(np.recarray)
