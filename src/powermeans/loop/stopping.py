"""When a stage of a fit is over. A rule looks at the records so far and says why, or nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from powermeans.loop.history import SweepRecord

# Weights count as hard once the objective, but for its factor, is this near to the inertia.
_SOFTNESS = 1e-3


class StopRule(Protocol):
    """Looks at the records of a run and decides whether its stage is over."""

    def reason(self, records: Sequence[SweepRecord]) -> str | None:
        """Why the stage is over, or None while it goes on."""
        ...


@dataclass(frozen=True, slots=True)
class CentersSettled:
    """The rule of Lloyd's algorithm in scikit-learn.

    The sums are the same bits for the same labels, so that labels that no longer change show as
    centers that no longer change.

    Attributes
    ----------
    tolerance : float
        The largest sum of squared center shifts that counts as none.
    """

    tolerance: float

    def reason(self, records: Sequence[SweepRecord]) -> str | None:
        """Strict convergence, or a shift within the tolerance."""
        shift = records[-1].center_shift
        if shift == 0:
            return "strict convergence"
        if self.tolerance > 0 and shift**2 <= self.tolerance:
            return f"center shift {shift**2} within tolerance {self.tolerance}"
        return None


@dataclass(frozen=True, slots=True)
class InertiaSettled:
    """The rule of descents in a search, which goes on from where they end.

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
        """Settled centers, or a decrease that is small."""
        if reason := CentersSettled(self.tolerance).reason(records):
            return reason
        if len(records) < 2:
            return None
        before, now = records[-2].inertia, records[-1].inertia
        if before - now <= self.least_fall * before:
            return f"the inertia fell from {before} to {now}, a share within {self.least_fall}"
        return None


@dataclass(frozen=True, slots=True)
class Never:
    """A stage that runs through its sweeps."""

    def reason(self, records: Sequence[SweepRecord]) -> str | None:
        """None."""
        return None


def are_hard(power: float, n_centers: int, objective: float, inertia: float) -> bool:
    """Whether the weights of a sweep are as good as hard; see `WeightsHard`."""
    factor = math.exp(math.log(n_centers) / power)
    return factor * objective >= (1 - _SOFTNESS) * inertia


@dataclass(frozen=True, slots=True)
class WeightsHard:
    """The rule of annealing: go on until the weights are as good as hard.

    With y the least distance of a point, S as in `power_mean`, the objective is the sum of
    y (S / k)^(1/s) with S in [1, k]. So the objective times k^(1/s) is at most the inertia, and
    equals it when each point gives all its weight to one center. Comparing these two, both of the
    same sweep, is not misled by the factor k^(1/s), which changes with s. Where the schedule
    holds its power for good, weights may never be hard, and centers that have settled end it.

    Attributes
    ----------
    critical_power : float
        While the power is above it, all centers collapse to the mean and nothing is converged.
    tolerance : float
        The largest sum of squared center shifts that counts as none.
    resting_power : float
        The power at or below which the schedule stays, -inf if there is none. Centers that settle
        at another power only wait for the next.
    """

    critical_power: float
    n_centers: int
    tolerance: float
    resting_power: float = -math.inf

    def reason(self, records: Sequence[SweepRecord]) -> str | None:
        """Hard weights, or settled centers at a power that stays."""
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
class ObjectiveSettled:
    """The rule of Xu & Lange 2019, Algorithm 1: the objective has all but ceased to fall.

    Attributes
    ----------
    tolerance : float
        The largest decrease, relative to the objective before, that counts as none.
    """

    tolerance: float

    def reason(self, records: Sequence[SweepRecord]) -> str | None:
        """A relative decrease within the tolerance."""
        if len(records) < 2:
            return None
        before, now = records[-2].objective, records[-1].objective
        if before - now <= self.tolerance * before:
            return f"the objective fell from {before} to {now}, within tolerance {self.tolerance}"
        return None
