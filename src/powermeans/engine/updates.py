"""Updates around a sweep, and two of them: separate coincident centers, relocate empty ones."""

import abc
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from powermeans.engine.history import SweepRecord
from powermeans.engine.spread import is_at_center
from powermeans.engine.stopping import StopRule
from powermeans.mathematics.rules import Rule
from powermeans.mathematics.sums import Sums
from powermeans.points.protocol import Points
from powermeans.types import FloatArray, IndexArray, Labels

# In units of the spread of the points: the distance below which centers coincide, and the push that
# separates them.
_COINCIDENT = 1e-8
_HAIR = 1e-6


@dataclass(slots=True)
class Sweep:
    """A sweep under way, and what updates have done to it."""

    rows: Points
    centers: FloatArray  # to sweep with, (n_centers, n_features)
    power: float
    n_separated: int = 0  # coincident centers that were moved apart before the sweep
    n_relocated: int = 0  # empty clusters that got a point in it
    rule: Rule | None = None  # of its weights; None is that of the power


class Update:
    """Change centers before a sweep or sums after it; this base changes neither."""

    __slots__ = ()

    def before(self, sweep: Sweep) -> FloatArray:
        """Return the centers to sweep with."""
        return sweep.centers

    def after(self, sweep: Sweep, sums: Sums) -> Sums:
        """Return the sums whose quotients are the next centers."""
        return sums


class Learner(Update, StopRule, abc.ABC):
    """Learn from each sweep, choose the rule of the next, and decide when to stop."""

    __slots__ = ()

    @abc.abstractmethod
    def __iter__(self) -> Iterator[float | Rule]:
        """Begin a run, and yield its powers or rules."""


@dataclass(slots=True)
class LabelsStay(Learner):
    """Sweep by a schedule until all labels have stayed for some sweeps, soft ones too.

    That is how the authors' later code stops, which labels the points anew after each sweep.
    """

    schedule: Iterable[float | Rule]
    n_sweeps: int = 5
    _labels: Labels | None = field(default=None, init=False)
    _n_stayed: int = field(default=0, init=False)

    def __iter__(self) -> Iterator[float | Rule]:
        """Begin a run, of which no labels are known."""
        self._labels, self._n_stayed = None, 0
        return iter(self.schedule)

    def after(self, sweep: Sweep, sums: Sums) -> Sums:
        """Count for how many sweeps the labels have been these."""
        labels, _ = sweep.rows.assign(sums.centers(fallback=sweep.centers))
        has_stayed = self._labels is not None and np.array_equal(labels, self._labels)
        self._labels, self._n_stayed = labels, self._n_stayed + 1 if has_stayed else 0
        return sums

    def reason(self, records: Sequence[SweepRecord]) -> str | None:
        """Report that they have stayed for as many sweeps."""
        return (
            f"labels stayed for {self.n_sweeps} sweeps" if self._n_stayed == self.n_sweeps else None
        )


@dataclass(frozen=True, slots=True)
class SeparateCoincident(Update):
    """Move coincident centers apart by a hair, since soft weights would keep them together.

    Above the critical power all centers belong together near the mean, so it leaves them there.
    Below it a hair is enough, since it grows from sweep to sweep.
    """

    critical_power: float
    spread: float | FloatArray  # of the points, or by feature if features have their own units
    _rng: np.random.Generator = field(default_factory=partial(np.random.default_rng, 0))

    def before(self, sweep: Sweep) -> FloatArray:
        """Push all but one of each group of coincident centers, each in its own direction."""
        centers = sweep.centers
        if sweep.power > self.critical_power or not np.all(self.spread):
            return centers
        # Centers that coincide follow one another along a random direction.
        direction = self._rng.standard_normal(centers.shape[1])
        order = (centers @ direction).argsort(kind="stable")
        in_order = centers[order]
        gaps = (in_order[1:] - in_order[:-1]) / self.spread
        goes_on = np.einsum("jf,jf->j", gaps, gaps) <= _COINCIDENT**2
        return self._separated(sweep, order, goes_on) if goes_on.any() else centers

    def _separated(self, sweep: Sweep, order: IndexArray, goes_on: NDArray[np.bool_]) -> FloatArray:
        """Push all but the first of each group, by index, whose centers go on along an order."""
        separated = sweep.centers.copy()
        group = np.cumsum(np.concatenate([[False], ~goes_on]))
        first = np.full(group[-1] + 1, len(separated))
        np.minimum.at(first, group, order)
        # By index, since rounding decides the order in a group, and must not decide the pushes.
        followers = np.setdiff1d(order, first)
        sweep.n_separated += len(followers)
        pushes = self._rng.standard_normal((len(followers), separated.shape[1]))
        pushes /= np.linalg.norm(pushes, axis=1, keepdims=True)
        # Far from the origin a hair may be less than the step to the next float64.
        resolved = 16 * np.finfo(np.float64).eps * np.abs(separated).max()
        separated[followers] += np.maximum(_HAIR * self.spread, resolved) * pushes
        return separated


@dataclass(frozen=True, slots=True)
class RelocateEmpty(Update):
    """Move each empty cluster to the point that adds most to the error, as scikit-learn does.

    The point leaves its former cluster in the same sweep. If every point is at a center, as with
    fewer distinct points than centers, an empty cluster stays empty.
    """

    def after(self, sweep: Sweep, sums: Sums) -> Sums:
        """Give each empty cluster one of the points off all centers, as long as there are any."""
        if np.minimum.reduce(sums.weights) > 0:
            return sums
        centers, empty = sweep.centers, np.flatnonzero(sums.weights <= 0)
        farthest = sweep.rows.farthest(centers, len(empty))
        for cluster, far in zip(empty, farthest, strict=True):
            is_near = far.sq_dist == 0 or is_at_center(far.point, centers[far.label])
            if far.weight == 0 or is_near:
                break
            sums = sums.moved(far.label, int(cluster), far.point, far.weight)
            sweep.n_relocated += 1
        return sums
