"""One fit while it goes on, and who hears of it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from powermeans.divergences import Divergence, SquaredEuclidean
from powermeans.engine.history import History, SweepState
from powermeans.engine.stopping import StopRule, reason_to_end_fit
from powermeans.types import FloatArray

if TYPE_CHECKING:
    from powermeans.engine.anneal import Stage
    from powermeans.engine.seeds.initial import Seeds

Callback = Callable[[SweepState], object]
"""Called after each sweep; if it returns True, the fit stops."""

# A shorter pass over parts is not reported.
_LONG_PASS_SECONDS = 1.0


class Listener(AbstractContextManager["Listener"]):
    """Several callbacks as one, each of which hears what it has a method for; None is no callback.

    `powermeans.methods.progress` says what they hear.
    """

    def __init__(self, *callbacks: Any) -> None:
        self.callbacks = [each for each in callbacks if each is not None]
        self._name, self._pass_began = "", math.nan
        self.n_sweeps = 0

    def __call__(self, state: SweepState) -> bool:
        """Tell all of a sweep, and return whether one of them asks to stop."""
        self.n_sweeps += 1
        answers = [callback(state) for callback in self.callbacks]
        # True itself asks; any other object means go on.
        return any(isinstance(one, bool | np.bool_) and one for one in answers)

    def phase(self, name: str, done: int = 0, total: int | None = None) -> None:
        """Tell in which phase the fit is, and how much of it is done; the total may be unknown."""
        self._name = name
        self._tell("phase", name, done, total)

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

    def kept(self, inertia: float) -> None:
        """Tell of the inertia that the estimator has at the end."""
        self._tell("kept", inertia)

    def fit_ended(self) -> None:
        """Tell of the end."""
        self._tell("fit_ended")

    def _tell(self, what: str, *figures: Any) -> None:
        for callback in self.callbacks:
            if (hears := getattr(callback, what, None)) is not None:
                hears(*figures)

    def __exit__(self, *reason: object) -> None:
        self.fit_ended()


def random_numbers(random_state: Any) -> np.random.RandomState:
    """Return the generator that this is or seeds; for None a new one, seeded by that of NumPy.

    NumPy locks its own as long as it draws, and a child forked meanwhile would wait for ever.
    """
    generator = check_random_state(random_state)
    return np.random.RandomState(generator.randint(2**31)) if random_state is None else generator


@dataclass(slots=True)
class Fit:
    """A fit while it goes on: random numbers, time, who hears of it, and the run it is in."""

    rng: np.random.RandomState = field(default_factory=lambda: np.random.RandomState(0))
    listener: Listener = field(default_factory=Listener)
    end: float = math.inf  # by `MaxSeconds`, on the monotonic clock
    stop: StopRule | None = None  # of the user
    divergence: Divergence = SquaredEuclidean()  # of points from centers
    stop_recording: Callable[[], None] = lambda: None  # called once the fit is over
    may_return: Callable[[SweepState], bool] = lambda state: True  # the centers of a sweep
    # Not while a search looks at a sample, at some axes, or without limits.
    rules_apply: bool = True
    as_searched: Callable[[FloatArray], FloatArray] | None = None  # centers with all features
    as_given: Callable[[FloatArray], FloatArray] | None = None  # and with all columns of the user
    candidates: Any = None  # for seeds of points in parts, found once
    stages: Sequence[Stage] = ()  # of each run
    # Of the present run.
    seeds: Seeds = field(init=False)  # where its starts come from
    history: History = field(default_factory=History)
    critical_power: float = math.nan  # of the points, once it is known
    optimum: float = -math.inf  # the lowest inertia that any centers have, if it is known
    learned: Any = None  # by the method, besides centers

    def best_centers(self) -> FloatArray:
        """Return the best centers of a run that has swept, as every complete run has."""
        assert self.history.centers is not None, "no sweep is complete"
        return self.history.centers

    def seconds_left(self) -> float:
        """Return how long the fit may go on."""
        return self.end - time.monotonic()

    def is_late(self) -> bool:
        """Return whether the fit should end."""
        return time.monotonic() >= self.end

    def why_over(self, state: SweepState) -> str:
        """Tell of a sweep, and return why the fit is over; empty if it goes on."""
        asked = bool(self.listener.callbacks) and self.listener(self._shown(state))
        why = "the callback said stop" * asked or "its time was over" * self.is_late()
        if self.rules_apply and self.may_return(state):
            why = why or reason_to_end_fit(self.stop, self.history.records)
        if why:
            self.stop_recording()
        return why

    def _shown(self, state: SweepState) -> SweepState:
        """Return a sweep with the centers as a user knows them."""
        for wider in (self.as_searched, self.as_given):
            state = state if wider is None else state.widened(wider)
        return state
