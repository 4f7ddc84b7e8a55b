"""Centers that no sweep can bring back to life: coincident ones, and those of empty clusters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from powermeans.loop.spread import is_at_center
from powermeans.rows.protocol import Rows
from powermeans.sums import Sums
from powermeans.types import FloatArray, IndexArray

# In units of the spread of the points: what counts as coincident, and how far apart to move.
_COINCIDENT = 1e-8
_HAIR = 1e-6


class Repair(Protocol):
    """What to do about lost centers around each sweep."""

    def before(self, centers: FloatArray, power: float) -> tuple[FloatArray, int]:
        """The centers to sweep with, and how many were moved."""
        ...

    def after(self, rows: Rows, centers: FloatArray, sums: Sums) -> tuple[Sums, int]:
        """The sums to take the next centers from, and how many were changed."""
        ...


@dataclass(frozen=True, slots=True)
class LeaveAlone:
    """No repair: the iterates are those of the algorithm to the letter."""

    def before(self, centers: FloatArray, power: float) -> tuple[FloatArray, int]:
        """The same centers."""
        return centers, 0

    def after(self, rows: Rows, centers: FloatArray, sums: Sums) -> tuple[Sums, int]:
        """The same sums."""
        return sums, 0


@dataclass(frozen=True, slots=True)
class SeparateCoincident:
    """Move coincident centers apart by a hair, since soft weights would keep them together.

    Above the critical power all centers coincide near the mean, and that is left to be; below
    it a hair is enough, since it grows from sweep to sweep.

    Attributes
    ----------
    spread : float or (n_features,)
        Root mean squared distance of the points from their mean, the unit of "coincident"; of each
        feature where they have units of their own.
    """

    critical_power: float
    spread: float | FloatArray
    _rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def before(self, centers: FloatArray, power: float) -> tuple[FloatArray, int]:
        """Give all but one of the coincident centers a push, each in a direction of its own."""
        if power > self.critical_power or not np.all(self.spread):
            return centers, 0
        followers = self._coincident(centers)
        if not len(followers):
            return centers, 0
        pushes = self._rng.standard_normal((len(followers), centers.shape[1]))
        pushes /= np.linalg.norm(pushes, axis=1, keepdims=True)
        resolved = 16 * np.finfo(np.float64).eps * np.abs(centers).max()
        separated = centers.copy()
        separated[followers] += np.maximum(_HAIR * self.spread, resolved) * pushes
        return separated, len(followers)

    def after(self, rows: Rows, centers: FloatArray, sums: Sums) -> tuple[Sums, int]:
        """The same sums."""
        return sums, 0

    def _coincident(self, centers: FloatArray) -> IndexArray:
        """All but the first of centers that coincide with the next along a random direction.

        Their order along it is one of rounding, which may not decide where each is pushed.
        """
        direction = self._rng.standard_normal(centers.shape[1])
        order = (centers @ direction).argsort(kind="stable")
        in_order = centers[order]
        gaps = (in_order[1:] - in_order[:-1]) / self.spread
        goes_on = np.einsum("jf,jf->j", gaps, gaps) <= _COINCIDENT**2
        if not goes_on.any():
            return order[:0]
        group = np.cumsum(np.concatenate([[False], ~goes_on]))
        first = np.full(group[-1] + 1, len(centers))
        np.minimum.at(first, group, order)
        return np.setdiff1d(order, first)


@dataclass(frozen=True, slots=True)
class RelocateEmpty:
    """Move each empty cluster to the point that adds most to the error, as scikit-learn does.

    The point's weight leaves the cluster it was in within the same sweep. Where every point is at
    a center, as with fewer distinct points than centers, an empty cluster stays empty.
    """

    def before(self, centers: FloatArray, power: float) -> tuple[FloatArray, int]:
        """The same centers."""
        return centers, 0

    def after(self, rows: Rows, centers: FloatArray, sums: Sums) -> tuple[Sums, int]:
        """Sums in which the empty clusters have a point each, as far as there are any."""
        if np.minimum.reduce(sums.weights) > 0:
            return sums, 0
        empty = np.flatnonzero(sums.weights <= 0)
        n_relocated = 0
        for cluster, far in zip(empty, rows.farthest(centers, len(empty)), strict=True):
            is_near = far.sq_dist == 0 or is_at_center(far.point, centers[far.label])
            if far.weight == 0 or is_near:
                break
            sums = sums.moved(far.label, int(cluster), far.point, far.weight)
            n_relocated += 1
        return sums, n_relocated
