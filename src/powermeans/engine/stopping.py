"""Stop rules: they end a stage of a fit by the records of its sweeps.

A new rule is a class here. Estimators choose the rule of each stage in `_stages`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from powermeans.engine.history import SweepRecord

# Weights count as hard once the objective times k^(1/s) is within this share of the inertia.
_SOFTNESS = 1e-3


class StopRule:
    """Decide when a stage is over; this base never does."""

    __slots__ = ()

    def reason(self, records: Sequence[SweepRecord]) -> str | None:
        """Return why the stage is over, or None while it goes on."""
        return None


@dataclass(frozen=True, slots=True)
class CentersSettled(StopRule):
    """Stop as scikit-learn's Lloyd does.

    While labels stay the same, sums have the same bits, so that centers do not move at all.
    """

    tolerance: float  # largest sum of squared center shifts that counts as none

    def reason(self, records: Sequence[SweepRecord]) -> str | None:
        """Report centers that do not move, or by no more than the tolerance."""
        shift = records[-1].center_shift
        if shift == 0:
            return "strict convergence"
        # A power would raise where the centers of a damaged checkpoint are too far apart to square.
        if self.tolerance > 0 and shift * shift <= self.tolerance:
            return f"center shift {shift * shift} within tolerance {self.tolerance}"
        return None


@dataclass(frozen=True, slots=True)
class InertiaSettled(StopRule):
    """Stop a descent of a search once centers have settled or the inertia hardly falls."""

    tolerance: float  # as in `CentersSettled`
    least_fall: float  # largest relative decrease of the inertia that counts as none

    def reason(self, records: Sequence[SweepRecord]) -> str | None:
        """Report settled centers, or by how little the inertia fell."""
        settled = CentersSettled(self.tolerance).reason(records)
        return settled or _hardly_falls("inertia", records, self.least_fall)


class Never(StopRule):
    """Let a stage make all its sweeps."""


def are_hard(power: float, n_centers: int, objective: float, inertia: float) -> bool:
    """Return whether the weights of a sweep are hard up to `_SOFTNESS`; see `WeightsHard`."""
    factor = math.exp(math.log(n_centers) / power)
    return factor * objective >= (1 - _SOFTNESS) * inertia


@dataclass(frozen=True, slots=True)
class WeightsHard(StopRule):
    """Anneal until the weights are hard.

    With y the least distance of a point and S in [1, k] as in `power_mean`, the objective is the
    sum of y (S / k)^(1/s). So the objective times k^(1/s) is at most the inertia of the same sweep,
    and equals it when each point gives all its weight to one center. If a schedule stays at a
    power, weights may never be hard; the stage then ends once the centers have settled.
    """

    critical_power: float  # above it all centers collapse to the mean, and nothing has converged
    n_centers: int
    tolerance: float  # as in `CentersSettled`
    # The schedule stays here or below; centers that settle at another power move at the next.
    resting_power: float = -math.inf

    def reason(self, records: Sequence[SweepRecord]) -> str | None:
        """Report hard weights, or centers that have settled at a power that stays."""
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
    """Stop as Algorithm 1 of Xu & Lange 2019 does, once the objective hardly falls.

    The loop of the authors' later code also goes on until the power is low.
    """

    tolerance: float  # largest relative decrease of the objective that counts as none
    highest_power: float = math.inf  # above it nothing has settled

    def reason(self, records: Sequence[SweepRecord]) -> str | None:
        """Report a relative decrease within the tolerance."""
        if records[-1].power > self.highest_power:
            return None
        return _hardly_falls("objective", records, self.tolerance)


def _hardly_falls(name: str, records: Sequence[SweepRecord], tolerance: float) -> str | None:
    """Report that a figure fell by at most this share in the last sweep."""
    if len(records) < 2:
        return None
    before, now = (getattr(record, name) for record in records[-2:])
    if before - now <= tolerance * before:  # false where both are infinite
        return f"the {name} fell from {before} to {now}, within tolerance {tolerance}"
    return None
