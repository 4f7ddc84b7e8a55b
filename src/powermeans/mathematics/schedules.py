"""Schedules yield the power of each sweep, without end."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from powermeans.mathematics.rules import Power, Rule
from powermeans.system.containers import check_count, check_number, real
from powermeans.system.saved_classes import saved

__all__ = ["AuthorsSchedule", "Fixed", "Geometric"]


@saved
@dataclass(frozen=True, slots=True)
class Geometric:
    """The powers s_0, eta s_0, eta^2 s_0, ... of Xu & Lange 2019, Algorithm 1.

    Parameters
    ----------
    start : float
        The first power s_0, negative and finite.
    growth : float
        The factor eta, greater than one. The powers overflow to -inf, which is Lloyd's rule.

    See Also
    --------
    Fixed : One power for all sweeps.
    AuthorsSchedule : The schedule of the authors' later code.
    powermeans.PowerKMeans : Takes one as `schedule`.

    Examples
    --------
    >>> from itertools import islice
    >>> from powermeans.mathematics.schedules import Geometric
    >>> list(islice(Geometric(start=-1.0, growth=2.0), 4))
    [-1.0, -2.0, -4.0, -8.0]
    """

    start: float
    growth: float

    def __post_init__(self) -> None:
        _check_powers(self.start, self.growth)

    def __iter__(self) -> Iterator[float]:
        power = float(self.start)
        while True:
            yield power
            power *= self.growth


@saved
@dataclass(frozen=True, slots=True)
class Fixed:
    """The same power in every sweep: k-harmonic means at -1, Lloyd's algorithm at -inf.

    Parameters
    ----------
    power : float
        Negative; -inf is Lloyd's rule.

    See Also
    --------
    Geometric : Powers that grow by a factor.
    powermeans.methods.KHarmonicMeans : Power k-means at the fixed power -1, and related methods.
    powermeans.methods.FuzzyCMeans : Power k-means at the fixed power that a fuzzifier gives.

    Examples
    --------
    Fuzzy c-means with the fuzzifier 2:

    >>> from powermeans import PowerKMeans
    >>> from powermeans.mathematics.schedules import Fixed
    >>> fuzzy = PowerKMeans(2, schedule=Fixed(-1.0), polish=False, random_state=0)
    >>> fuzzy.fit([[0.0], [1.0], [9.0], [10.0]]).power_
    -1.0
    """

    power: float

    def __post_init__(self) -> None:
        if not real(self.power) < 0:
            raise ValueError(
                f"power={self.power!r} must be negative: pass for example power=-1.0, "
                "or power=-math.inf for Lloyd's rule"
            )

    def __iter__(self) -> Iterator[float]:
        return itertools.repeat(float(self.power))


@saved
@dataclass(frozen=True, slots=True)
class AuthorsSchedule:
    """The schedule in the code behind the later papers of the authors of power k-means.

    The power changes every second sweep: by -0.2 while it is above -1, then by the factor 1.06,
    until it has reached about -120, where it stays.

    Parameters
    ----------
    start : float
        The first power, negative and finite.
    step : float
        Subtracted from the power while it is above -1.
    growth : float
        The factor after that, greater than one.
    sweeps_per_power : int
        How many sweeps use the same power.
    lowest : float
        The power stays once it is at or below this.

    See Also
    --------
    Geometric : The schedule of the paper.
    powermeans.PowerKMeans : Takes one as `schedule`.

    Examples
    --------
    >>> from itertools import islice
    >>> from powermeans.mathematics.schedules import AuthorsSchedule
    >>> [round(power, 2) for power in islice(AuthorsSchedule(start=-0.9), 6)]
    [-0.9, -0.9, -1.1, -1.1, -1.17, -1.17]
    """

    start: float
    step: float = 0.2
    growth: float = 1.06
    sweeps_per_power: int = 2
    lowest: float = -120.0

    def __post_init__(self) -> None:
        _check_powers(self.start, self.growth)
        check_number(self.step, "step", "(0, inf)", "for example step=0.2")
        check_count(self.sweeps_per_power, "sweeps_per_power", 1, "for example 2")
        check_number(self.lowest, "lowest", "[-inf, 0)", "for example -120.0")

    def __iter__(self) -> Iterator[float]:
        power = float(self.start)
        while True:
            yield from itertools.repeat(power, int(self.sweeps_per_power))
            if power > self.lowest:
                power = power - self.step if power > -1 else power * self.growth


@dataclass(frozen=True, slots=True)
class Whole:
    """Round the powers of another schedule to integers of at most -1, which are cheap."""

    schedule: Iterable[float]

    def __iter__(self) -> Iterator[float]:
        return (min(-1.0, float(np.rint(power))) for power in self.schedule)


def resting_power(schedule: object) -> float:
    """Return the power at or below which a schedule stays; -inf if it never does."""
    if isinstance(schedule, Fixed):
        return schedule.power
    return schedule.lowest if isinstance(schedule, AuthorsSchedule) else -math.inf


def _check_powers(start: float, growth: float) -> None:
    way_out = "for example start=-3.0, or use Fixed(-math.inf) for Lloyd's rule"
    check_number(start, "start", "(-inf, 0)", way_out)
    way_out = "for example growth=1.05, or use Fixed(power) for a fixed power"
    check_number(growth, "growth", "(1, inf)", way_out)


def check_schedule(schedule: Iterable[float | Rule], n_powers: int = 1000) -> None:
    """Raise unless the schedule gives powers or rules each time it is iterated."""
    powers: Iterator[object] = iter(schedule)
    if powers is schedule:
        raise ValueError(
            f"schedule={schedule!r} can be iterated only once: pass a list of powers, "
            "Geometric(start, growth) or Fixed(power)"
        )
    n_checked, numbers = 0, (int, float, np.integer, np.floating)
    for power in itertools.islice(powers, n_powers):
        is_power = isinstance(power, numbers) and power <= Power.highest
        if not is_power and not isinstance(power, Rule):
            raise ValueError(
                f"schedule={schedule!r} has {power!r} at index {n_checked}: pass powers of at most "
                f"{Power.highest}, for example Geometric(-3.0, 1.05), or rules"
            )
        n_checked += 1
    if n_checked == 0:
        raise ValueError(
            f"schedule={schedule!r} is empty: pass powers, for example Geometric(-3.0, 1.05)"
        )
