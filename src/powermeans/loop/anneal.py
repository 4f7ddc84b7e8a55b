"""The loop. Every method of the family, and Lloyd's algorithm, is this one."""

from __future__ import annotations

import itertools
import math
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from powermeans.errors import ObjectiveRoseWarning
from powermeans.loop.history import History, SweepState
from powermeans.loop.spread import rounding_inertia
from powermeans.loop.stopping import StopRule
from powermeans.loop.updates import Learner, Sweep, Update
from powermeans.rows.protocol import Rows
from powermeans.rules import Rule, rule_at
from powermeans.types import FloatArray

Callback = Callable[[SweepState], object]
"""Called after each sweep; returning True stops the fit."""

# How far the objective may rise by rounding, in units of the precision of the points.
_ROUNDING_UNITS = 1e3
# A sum of squares below this has lost digits.
_LEAST_SQUARE = 1e-290


@dataclass(frozen=True, slots=True)
class Stage:
    """One part of a fit: sweeps with the powers of a schedule until the rule says stop.

    Attributes
    ----------
    schedule : iterable of float or Rule
        The power of each sweep, or its rule; `Fixed(-math.inf)` makes it Lloyd's algorithm.
    max_iter : int
        The largest number of sweeps.
    update : Update
        What to do around each sweep.
    """

    schedule: Iterable[float | Rule]
    stop: StopRule
    max_iter: int
    update: Update = field(default_factory=Update)

    @classmethod
    def of(cls, learner: Learner, max_iter: int) -> Stage:
        """Make the stage of a learner, which is its schedule, its stop rule and its update."""
        return cls(learner, learner, max_iter, learner)


@dataclass(frozen=True, slots=True)
class StageEnd:
    """How a stage ended.

    Attributes
    ----------
    power : float
        That of its last sweep.
    reason : str
        Why it ended.
    has_converged : bool
        Whether the rule said so, or the schedule came to its end.
    was_stopped : bool
        Whether the callback asked for it.
    """

    centers: FloatArray
    power: float
    reason: str
    has_converged: bool = True
    was_stopped: bool = False


def anneal(
    rows: Rows,
    centers: FloatArray,
    stages: Sequence[Stage],
    history: History,
    callback: Callback | None = None,
) -> list[StageEnd]:
    """Run the stages one after the other.

    Parameters
    ----------
    rows : Rows
        The points.
    centers : (n_centers, n_features)
        Where the centers start.
    stages : sequence of Stage
        For example annealing, then Lloyd.
    history : History
        Takes down every sweep as soon as it is complete, so that an interrupt loses nothing.
    callback : callable, optional
        Called with the state after each sweep; returning True ends all stages.

    Returns
    -------
    list of StageEnd
        One for each stage that ran; the centers of the last are the result.
    """
    ends: list[StageEnd] = []
    for stage in stages:
        ends.append(run_stage(rows, centers, stage, history, callback))
        centers = ends[-1].centers
        if ends[-1].was_stopped:
            break
    return ends


def run_stage(
    rows: Rows,
    centers: FloatArray,
    stage: Stage,
    history: History,
    callback: Callback | None = None,
) -> StageEnd:
    """Sweep until the stage is over; see `anneal`."""
    power, n_swept = math.nan, 0
    for scheduled in itertools.islice(stage.schedule, stage.max_iter):
        rule = rule_at(scheduled)
        power = rule.power
        state = _swept(rows, centers, rule, stage.update, history)
        before = history.last if n_swept else None
        history.append(state)
        if rows.descends(rule):
            _warn_if_objective_rose(before, state, rows)
        centers, n_swept = state.centers, n_swept + 1
        if callback is not None and says_stop(callback(state)):
            return StageEnd(centers, power, "the callback said stop", was_stopped=True)
        if reason := stage.stop.reason(history.records[-n_swept:]):
            return StageEnd(centers, power, reason)
    if n_swept < stage.max_iter:
        return StageEnd(centers, power, "the schedule came to its end")
    return StageEnd(centers, power, f"max_iter={stage.max_iter} sweeps", has_converged=False)


def _swept(
    rows: Rows, centers: FloatArray, rule: Rule, update: Update, history: History
) -> SweepState:
    """Weigh every point, and move the centers to the weighted means."""
    started = time.perf_counter()
    sweep = Sweep(rows, centers, rule.power)
    sweep.centers = update.before(sweep)
    sums = rows.sweep(sweep.centers, rule)
    updated = update.after(sweep, sums)
    moved = updated.centers(fallback=sweep.centers)
    moved.setflags(write=False)
    return SweepState(
        run=history.run,
        sweep=len(history.records) + 1,
        power=rule.power,
        objective=updated.objective,
        inertia=sums.inertia,
        center_shift=_shift(sweep.centers, moved),
        seconds=time.perf_counter() - started,
        centers=moved,
        n_relocated=sweep.n_relocated,
        n_separated=sweep.n_separated,
        skipped=sums.n_skipped / (rows.n_points * len(sweep.centers)),
        share_done=history.share_done,
    )


def _shift(before: FloatArray, after: FloatArray) -> float:
    """Frobenius norm of the difference, zero only where nothing changed at all."""
    change = after - before
    sum_of_squares = float(np.add.reduce(np.square(change), axis=None))
    if _LEAST_SQUARE < sum_of_squares < math.inf:
        return math.sqrt(sum_of_squares)
    largest = np.abs(change).max()
    return float(largest * np.linalg.norm(change / largest)) if largest > 0 else 0.0


def _warn_if_objective_rose(before: SweepState | None, now: SweepState, rows: Rows) -> None:
    """At equal power every sweep descends; only moved centers may lift it."""
    if before is None or before.power != now.power or before.n_relocated or now.n_separated:
        return
    rise = now.objective - before.objective
    if rise <= 0:
        return
    allowed = _ROUNDING_UNITS * float(np.finfo(rows.dtype).eps) * before.objective
    if rise > allowed and rise > _steepness(now) * rounding_inertia(rows):
        warnings.warn(
            f"the objective rose from {before.objective!r} to {now.objective!r} in sweep "
            f"{now.sweep} at power={now.power}: please report this with the data, it is a defect",
            ObjectiveRoseWarning,
            stacklevel=2,
        )


def _steepness(state: SweepState) -> float:
    """The largest slope of a power mean in a distance, k^(1/|s|), reached where that is zero.

    So near to centers that are points, rounding lifts the objective by more than its own size.
    """
    return math.exp(min(700.0, -math.log(len(state.centers)) / state.power))


def says_stop(answer: object) -> bool:
    """Whether a callback's answer is True: only that stops.

    A plotting callback that hands back what it drew does not.
    """
    return isinstance(answer, (bool, np.bool_)) and bool(answer)
