"""One fit while it goes on, and who hears of it."""

from __future__ import annotations

import math
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from powermeans.divergences import Divergence, SquaredEuclidean
from powermeans.engine.anneal import says_stop
from powermeans.engine.history import SweepState

# A shorter pass over parts is not reported.
_LONG_PASS_SECONDS = 1.0


class Listener(AbstractContextManager["Listener"]):
    """Several callbacks as one, each of which hears what it has a method for; None is no callback.

    `powermeans.engine.callbacks` says what they hear.
    """

    def __init__(self, *callbacks: Any) -> None:
        self._callbacks = callbacks
        self._name, self._pass_began = "", math.nan
        self.n_sweeps = 0

    def __bool__(self) -> bool:
        return self._callbacks.count(None) < len(self._callbacks)

    def __call__(self, state: SweepState) -> bool:
        """Tell all of a sweep, and return whether one of them asks to stop."""
        self.n_sweeps += 1
        answers = [callback(state) for callback in self._callbacks if callback is not None]
        return any(map(says_stop, answers))

    def phase(self, name: str, done: int = 0, total: int | None = None) -> None:
        """Tell in which phase the fit is, and how much of it is done; the total may be unknown."""
        self._name = name
        for callback in self._callbacks:
            if (hears := getattr(callback, "phase", None)) is not None:
                hears(name, done, total)

    def part(self, done: int, total: int | None) -> None:
        """Tell how many parts of the points a pass has read, if it takes long."""
        name, now = self._name, time.monotonic()
        if done == 1:
            self._pass_began = now
        if now - self._pass_began < _LONG_PASS_SECONDS:
            return
        if done == total:
            self.phase(name)
        else:
            share = f"{100 * done / total:.0f} %" if total else f"{done:,} parts"
            self.phase(f"{name}, {share} of a pass", done, total)
        self._name = name

    def fit_ended(self) -> None:
        """Tell of the end."""
        for callback in self._callbacks:
            if (hears := getattr(callback, "fit_ended", None)) is not None:
                hears()

    def __exit__(self, *reason: object) -> None:
        self.fit_ended()


@dataclass(slots=True)
class Fit:
    """What the runs of one fit share: random numbers, the time left, and who hears of it."""

    rng: np.random.RandomState
    listener: Listener = field(default_factory=Listener)
    end: float = math.inf  # by `MaxSeconds`, on the monotonic clock
    divergence: Divergence = SquaredEuclidean()  # of points from centers
    critical_power: float = math.nan  # of the points, once it is known
    optimum: float = -math.inf  # the lowest inertia that any centers have, if it is known
    candidates: Any = None  # for seeds of points in parts, found once
    rules_apply: bool = True  # not while a search looks at a sample, some axes, or without limits

    def seconds_left(self) -> float:
        """Return how long the fit may go on."""
        return self.end - time.monotonic()

    def is_late(self) -> bool:
        """Return whether the fit should end."""
        return self.seconds_left() <= 0
