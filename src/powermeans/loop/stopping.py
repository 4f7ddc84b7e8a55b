"""Rules that say when a stage of a fit is over, by the records of its sweeps so far."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from powermeans.loop.history import SweepRecord

# Weights count as hard once the objective times k^(1/s) is this near to the inertia.
_SOFTNESS = 1e-3


class StopRule:
    """What says when a stage is over; by itself it never is."""

    __slots__ = ()

    def reason(self, records: Sequence[SweepRecord]) -> str | None:
        """Return why the stage is over, or None while it goes on."""
        return None


@dataclass(frozen=True, slots=True)
class CentersSettled(StopRule):
    """The rule of Lloyd's algorithm in scikit-learn.

    Where labels do not change, the sums have the same bits, so that centers do not move.

    Attributes
    ----------
    tolerance : float
        The largest sum of squared center shifts that counts as none.
    """

    tolerance: float

    def reason(self, records: Sequence[SweepRecord]) -> str | None:
        """Return that centers do not move, or by no more than the tolerance."""
        shift = records[-1].center_shift
        if shift == 0:
            return "strict convergence"
        if self.tolerance > 0 and shift**2 <= self.tolerance:
            return f"center shift {shift**2} within tolerance {self.tolerance}"
        return None


@dataclass(frozen=True, slots=True)
class InertiaSettled(StopRule):
    """The rule of descents in a search: centers have settled, or the inertia hardly falls.

    Attributes
    ----------
    tolerance : float
        The largest sum of squared center shifts that counts as none.
    least_fall : float
        The largest decrease of the inertia, relative to it, that counts as none.
    """

    tolerance: float
    least_fall: float

    def reason(self, records: Sequence[SweepRecord]) -> str | None:
        """Return that centers have settled, or by how little the inertia fell."""
        if reason := CentersSettled(self.tolerance).reason(records):
            return reason
        return _hardly_falls("inertia", records, self.least_fall)


class Never(StopRule):
    """The rule of a stage that makes all its sweeps."""


def are_hard(power: float, n_centers: int, objective: float, inertia: float) -> bool:
    """Return whether the weights of a sweep are as good as hard; see `WeightsHard`."""
    factor = math.exp(math.log(n_centers) / power)
    return factor * objective >= (1 - _SOFTNESS) * inertia


@dataclass(frozen=True, slots=True)
class WeightsHard(StopRule):
    """The rule of annealing: go on until the weights are as good as hard.

    With y the least distance of a point and S in [1, k] as in `power_mean`, the objective is the
    sum of y (S / k)^(1/s). So the objective times k^(1/s) is at most the inertia, and equals it
    when each point gives all its weight to one center. Both are of the same sweep, so that the
    factor k^(1/s), which changes with s, does not matter. Where a schedule stays at its power,
    weights may never be hard; there the stage ends when the centers have settled.

    Attributes
    ----------
    critical_power : float
        Above it all centers collapse to the mean, and nothing has converged.
    tolerance : float
        The largest sum of squared center shifts that counts as none.
    resting_power : float
        The power at or below which the schedule stays, -inf if there is none. Centers that settle
        at another power move again at the next.
    """

    critical_power: float
    n_centers: int
    tolerance: float
    resting_power: float = -math.inf

    def reason(self, records: Sequence[SweepRecord]) -> str | None:
        """Return that weights are hard, or that centers have settled at a power that stays."""
        last = records[-1]
        if last.inertia == 0:
            return "every point is at a center"
        if last.power > self.critical_power:
            return None
        if are_hard(last.power, self.n_centers, last.objective, last.inertia):
            return f"weights are hard at power {last.power}"
        rests = last.power <= self.resting_power and len(records) > 1
        return CentersSettled(self.tolerance).reason(records) if rests else None


@dataclass(frozen=True, slots=True)
class ObjectiveSettled(StopRule):
    """The rule of Xu & Lange 2019, Algorithm 1: the objective has all but ceased to fall.

    Attributes
    ----------
    tolerance : float
        The largest decrease, relative to the objective before, that counts as none.
    """

    tolerance: float

    def reason(self, records: Sequence[SweepRecord]) -> str | None:
        """Return that the relative decrease is within the tolerance."""
        return _hardly_falls("objective", records, self.tolerance)


def _hardly_falls(name: str, records: Sequence[SweepRecord], tolerance: float) -> str | None:
    """Return that a figure fell by no more than this share in the last sweep."""
    if len(records) < 2:
        return None
    before, now = (getattr(record, name) for record in records[-2:])
    if before - now <= tolerance * before:  # false where both are infinite
        return f"the {name} fell from {before} to {now}, within tolerance {tolerance}"
    return None
