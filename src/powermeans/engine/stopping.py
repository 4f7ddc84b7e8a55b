"""Stop rules: they end a fit, or a stage of it, by the records of its sweeps.

A new rule is a class here with one method, or one of a user anywhere; rules combine by ``|``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from powermeans.engine.history import SweepRecord
from powermeans.errors import ArgumentError
from powermeans.system.containers import check_number
from powermeans.system.saved_classes import saved

__all__ = ["InertiaSettled", "LabelsSettled", "MaxSeconds", "StopRule"]

WITHOUT_LABELS = (
    "of points in parts or tensors, by Manhattan distances, or by a divergence that is computed by "
    "its definition, as Hellinger, chi-squared and Jeffreys are"
)
# Weights count as hard once the objective times k^(1/s) is within this share of the inertia.
_SOFTNESS = 1e-3


class StopRule:
    """Decide when a fit is over; this base never does. A subclass defines `reason`.

    As `stop` of an estimator, a rule is asked after each hard sweep over all points, and ends the
    fit with its search and restarts; ``verbose=1`` shows its reason. If no sweep of the fit is
    hard, since ``polish=False``, it is asked after soft ones. Sweeps over a sample, in which many
    points are searched first, do not ask it. A rule with ``ends_fit = False`` ends only the last
    descent of a fit, as rules do by which sweeps have settled.

    See Also
    --------
    LabelsSettled : By the labels that change.
    MaxSeconds : After some time.

    Examples
    --------
    A rule of your own, combined with a built-in one:

    >>> from powermeans import PowerKMeans
    >>> from powermeans.engine.stopping import MaxSeconds, StopRule
    >>> class InertiaReached(StopRule):
    ...     def __init__(self, inertia):
    ...         self.inertia = inertia
    ...     def reason(self, records):
    ...         return "it is low enough" if records[-1].inertia <= self.inertia else None
    >>> X = [[0.0, 0.0], [1.0, 1.0], [2.0, 0.0], [9.0, 9.0], [10.0, 8.0], [12.0, 9.0]]
    >>> stop = InertiaReached(10.0) | MaxSeconds(60)
    >>> bool(PowerKMeans(2, stop=stop, random_state=0).fit(X).inertia_ <= 10.0)
    True
    """

    __slots__ = ()

    ends_fit: ClassVar[bool] = True
    """Whether it ends the fit, or only a stage of it."""
    needs_labels: ClassVar[bool] = False
    """Whether it reads `changed`, which is not a number where no labels are stored."""

    def reason(self, records: Sequence[SweepRecord]) -> str | None:
        """Return why the sweeps are over, or None while they go on.

        The records are those of the run so far or, if the rule ends a stage, of that stage.
        """
        return None

    def __or__(self, other: StopRule) -> StopRule:
        if not isinstance(other, StopRule):
            return NotImplemented
        return Either((*each_of(self), *each_of(other)))


@saved
@dataclass(frozen=True, slots=True)
class Either(StopRule):
    """Stop as soon as one of several rules does."""

    rules: tuple[StopRule, ...]

    def reason(self, records: Sequence[SweepRecord]) -> str | None:
        """Report the first reason."""
        return next(filter(None, (rule.reason(records) for rule in self.rules)), None)

    def __repr__(self) -> str:
        return " | ".join(map(repr, self.rules))


def each_of(rule: StopRule | None) -> Iterator[StopRule]:
    """Yield the rules of which a rule consists; none of None."""
    if isinstance(rule, Either):
        yield from rule.rules
    elif rule is not None:
        yield rule


def reason_to_end_fit(rule: StopRule | None, records: Sequence[SweepRecord]) -> str:
    """Return the reason of the first of the rules that ends a fit; empty while it goes on."""
    reasons = (one.reason(records) for one in each_of(rule) if one.ends_fit)
    return next(filter(None, reasons), "")


def either(rule: StopRule, other: StopRule | None) -> StopRule:
    """Return the rule of a stage with those of the user's that end a stage, and not the fit."""
    of_stage = [one for one in each_of(other) if not one.ends_fit]
    return Either((*each_of(rule), *of_stage)) if of_stage else rule


@saved
@dataclass(frozen=True, slots=True)
class MaxSeconds(StopRule):
    """Stop after about this time.

    As `stop` of an estimator it limits the whole fit, with its seeds, annealing and search, and
    returns the best centers so far. A sweep is always completed.

    Parameters
    ----------
    seconds : float
        The time. At 0 a fit makes its seeds and the sweep that labels the points by them.

    See Also
    --------
    LabelsSettled : By the labels that change.

    Examples
    --------
    >>> from powermeans import PowerKMeans
    >>> from powermeans.engine.stopping import MaxSeconds
    >>> model = PowerKMeans(2, stop=MaxSeconds(5.0), random_state=0)
    >>> model.fit([[0.0], [1.0], [9.0], [10.0]]).inertia_
    1.0
    """

    seconds: float

    def __post_init__(self) -> None:
        check_number(self.seconds, "seconds", "[0, inf]", "for example MaxSeconds(5.0)")

    def reason(self, records: Sequence[SweepRecord]) -> str | None:
        """Report that these sweeps took as long."""
        taken = math.fsum(record.seconds for record in records)
        return f"{taken:.3g} seconds were over" if taken >= self.seconds else None


def seconds_of(rule: StopRule | None) -> float:
    """Return the least time after which one of the rules ends a fit; infinity without one."""
    limits = (one.seconds for one in each_of(rule) if isinstance(one, MaxSeconds))
    return min(limits, default=math.inf)


@saved
@dataclass(frozen=True, slots=True)
class LabelsSettled(StopRule):
    """Stop once few points change their label from one hard sweep to the next.

    Soft sweeps have no labels, and those of points in parts are not stored: both refuse the rule.

    Parameters
    ----------
    share : float
        The largest share of the points that counts as few, from zero to one.

    See Also
    --------
    InertiaSettled : By the inertia, wherever the points are.

    Examples
    --------
    >>> from powermeans import PowerKMeans
    >>> from powermeans.engine.stopping import LabelsSettled
    >>> X = [[0.0], [1.0], [9.0], [10.0]]
    >>> stop = LabelsSettled(0.01)
    >>> PowerKMeans(2, effort="none", stop=stop, random_state=0).fit(X).inertia_
    1.0
    """

    share: float
    needs_labels = True
    ends_fit = False

    def __post_init__(self) -> None:
        check_number(self.share, "share", "[0, 1]", "for example LabelsSettled(1e-3)")

    def reason(self, records: Sequence[SweepRecord]) -> str | None:
        """Report how few points changed their label."""
        changed = records[-1].changed
        if math.isnan(changed):
            refuse_labels(self)
        return f"{changed:.3g} of the labels changed" if changed <= self.share else None


def refuse_labels(rule: StopRule | None) -> None:
    """Raise if a rule asks for labels where those of the last sweep are not stored."""
    for one in each_of(rule):
        if one.needs_labels:
            raise ArgumentError(
                "asks for the labels of the last sweep, which are not stored in soft sweeps "
                f"(polish=False), {WITHOUT_LABELS}",
                "pass InertiaSettled(1e-6), or another rule",
                argument="stop",
                value=one,
            )


@dataclass(frozen=True, slots=True)
class CentersSettled(StopRule):
    """Stop as scikit-learn's Lloyd does.

    While labels stay the same, sums have the same bits, so that centers do not move at all.
    """

    tolerance: float  # largest sum of squared center shifts that counts as none
    ends_fit = False

    def reason(self, records: Sequence[SweepRecord]) -> str | None:
        """Report centers that do not move, or by no more than the tolerance."""
        shift = records[-1].center_shift
        if shift == 0:
            return "strict convergence"
        # A power would raise where the centers of a damaged checkpoint are too far apart to square.
        if self.tolerance > 0 and shift * shift <= self.tolerance:
            return f"center shift {shift * shift} within tolerance {self.tolerance}"
        return None


@saved
@dataclass(frozen=True, slots=True)
class InertiaSettled(StopRule):
    """Stop once the inertia hardly falls.

    Parameters
    ----------
    share : float
        The largest relative decrease in a sweep that counts as none, from zero to one.

    See Also
    --------
    LabelsSettled : By the labels that change.

    Examples
    --------
    >>> from powermeans import PowerKMeans
    >>> from powermeans.engine.stopping import InertiaSettled
    >>> X = [[0.0], [1.0], [9.0], [10.0]]
    >>> stop = InertiaSettled(1e-3)
    >>> PowerKMeans(2, effort="none", stop=stop, random_state=0).fit(X).inertia_
    1.0
    """

    share: float
    ends_fit = False

    def __post_init__(self) -> None:
        check_number(self.share, "share", "[0, 1]", "for example InertiaSettled(1e-6)")

    def reason(self, records: Sequence[SweepRecord]) -> str | None:
        """Report by how little the inertia fell."""
        return _hardly_falls("inertia", records, self.share)


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
    """Stop as Algorithm 1 of Xu & Lange 2019 does, once the objective hardly falls."""

    tolerance: float  # largest relative decrease of the objective that counts as none

    def reason(self, records: Sequence[SweepRecord]) -> str | None:
        """Report a relative decrease within the tolerance."""
        return _hardly_falls("objective", records, self.tolerance)


def _hardly_falls(name: str, records: Sequence[SweepRecord], tolerance: float) -> str | None:
    """Report that a figure fell by at most this share in the last sweep."""
    if len(records) < 2:
        return None
    before, now = (getattr(record, name) for record in records[-2:])
    if before - now <= tolerance * before:  # false where both are infinite
        return f"the {name} fell from {before} to {now}, within tolerance {tolerance}"
    return None
