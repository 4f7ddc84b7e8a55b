"""The loop that every method of the family runs; `algorithm_1` is the paper's shorter one."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from powermeans.engine.fit import Fit
from powermeans.engine.history import History, SweepState
from powermeans.engine.spread import rounding_inertia
from powermeans.engine.stopping import StopRule
from powermeans.engine.updates import Learner, Sweep, Update
from powermeans.errors import ObjectiveRoseWarning, warn_caller
from powermeans.mathematics.rules import Rule, rule_at
from powermeans.points.protocol import Points
from powermeans.types import FloatArray

# How far rounding may lift the objective, in units of the precision of the points.
_ROUNDING_UNITS = 1e3
# A sum of squares below this has lost digits to underflow.
_LEAST_SQUARE = 1e-290


@dataclass(frozen=True, slots=True)
class Stage:
    """Sweep with the powers of a schedule until the stop rule gives a reason."""

    schedule: Iterable[float | Rule]  # of each sweep; Fixed(-math.inf) is Lloyd's algorithm
    stop: StopRule
    max_iter: int
    update: Update = field(default_factory=Update)

    @classmethod
    def of(cls, learner: Learner, max_iter: int) -> Stage:
        """Make the stage of a learner, which is schedule, stop rule and update at once."""
        return cls(learner, learner, max_iter, learner)


@dataclass(frozen=True, slots=True)
class Result:
    """How a stage, a search or a run ended, and with which centers."""

    centers: FloatArray
    reason: str
    power: float = -math.inf  # of the last sweep
    has_converged: bool = True  # False if `max_iter` ended it
    was_stopped: bool = False  # True if the callback, its time or a stop rule ended the fit
    former: tuple[Result, ...] = ()  # how the stages before ended
    # Of a search: the different solutions it left, the first of which was best where it looked, how
    # many starts it makes, and the points where it looked only at the centers near each.
    solutions: Sequence[FloatArray] = ()
    n_starts: int = 1
    nearby: Any = None
    # Once the points have labels.
    labels: Any = None
    inertia: float = math.nan
    loss: float = math.nan  # the run with the lowest is kept
    attributes: dict[str, Any] = field(default_factory=dict)  # further ones of the estimator

    def after(self, *former: Result) -> Result:
        """Return the result with the stages that came before."""
        stages = [stage for one in former for stage in (*one.former, one)]
        return replace(self, former=(*stages, *self.former))

    def with_attributes(self, **attributes: Any) -> Result:
        """Return the result with further attributes."""
        return replace(self, attributes={**self.attributes, **attributes})


def anneal(points: Points, centers: FloatArray, stages: Sequence[Stage], fit: Fit) -> Result:
    """Run the stages one after another, and return how they ended.

    The history of the fit records each sweep once it is complete, so an interrupt loses nothing.
    Once it is late, only the last stage begins, for one sweep.
    """
    ends: list[Result] = []
    for number, stage in enumerate(stages, 1):
        if number < len(stages) and fit.is_late():
            continue
        ends.append(run_stage(points, centers, stage, fit))
        centers = ends[-1].centers
        if ends[-1].was_stopped:
            break
    return ends[-1].after(*ends[:-1])


def run_stage(points: Points, centers: FloatArray, stage: Stage, fit: Fit) -> Result:
    """Sweep until the stop rule, the fit, the schedule or `max_iter` ends the stage."""
    history, power, n_swept = fit.history, math.nan, 0
    for scheduled in itertools.islice(stage.schedule, stage.max_iter):
        rule = rule_at(scheduled)
        power = rule.power
        state = _swept(points, centers, rule, stage.update, history, is_first=not n_swept)
        # The last sweep of the stage before had another rule: its objective does not compare.
        before = history.last if n_swept else None
        history.append(state)
        if not history.has_risen and points.descends(rule):
            history.has_risen = _warn_if_objective_rose(before, state, points)
        centers, n_swept = state.centers, n_swept + 1
        if why := fit.why_over(state):
            return Result(centers, why, power, was_stopped=True)
        if reason := stage.stop.reason(history.records[-n_swept:]):
            return Result(centers, reason, power)
    if n_swept < stage.max_iter:
        return Result(centers, "the schedule came to its end", power)
    return Result(centers, f"max_iter={stage.max_iter} sweeps", power, has_converged=False)


def _swept(
    rows: Points,
    centers: FloatArray,
    rule: Rule,
    update: Update,
    history: History,
    *,
    is_first: bool,
) -> SweepState:
    """Weigh every point, move the centers to the weighted means, and time both."""
    started = time.perf_counter()
    sweep = Sweep(rows, centers, rule.power, rule=rule)
    sweep.centers = update.before(sweep)
    sums = rows.sweep(sweep.centers, rule)
    updated = update.after(sweep, sums)
    moved = updated.centers(fallback=sweep.centers)
    moved.setflags(write=False)  # callbacks get this array, and the next sweep reads it
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
        changed=_share_changed(sums.n_changed, rows.n_points, is_first=is_first),
    )


def _share_changed(n_changed: int | None, n_points: int, *, is_first: bool) -> float:
    """Return the share of the points that changed their label; all did in a first sweep.

    The last sweep before the stage may have belonged to other centers.
    """
    if n_changed is None:
        return math.nan
    return 1.0 if is_first else n_changed / n_points


def _shift(before: FloatArray, after: FloatArray) -> float:
    """Return the Frobenius norm of the difference, zero only if no entry changed."""
    change = after - before
    sum_of_squares = float(np.add.reduce(np.square(change), axis=None))
    if _LEAST_SQUARE < sum_of_squares < math.inf:
        return math.sqrt(sum_of_squares)
    # Squares of tiny or huge changes leave the range of float64; those of shares do not.
    largest = np.abs(change).max()
    return float(largest * np.linalg.norm(change / largest)) if largest > 0 else 0.0


def _warn_if_objective_rose(before: SweepState | None, now: SweepState, rows: Points) -> bool:
    """Warn of a defect: at equal power only updates may lift the objective, beyond rounding."""
    if before is None or before.power != now.power or before.n_relocated or now.n_separated:
        return False
    rise = now.objective - before.objective
    if rise <= 0:
        return False
    allowed = _ROUNDING_UNITS * float(np.finfo(rows.dtype).eps) * before.objective
    has_risen = rise > allowed and rise > _steepness(now) * rounding_inertia(rows)
    if has_risen:
        divergence = getattr(rows, "divergence", None)
        cause = "please report this with the data, it is a defect"
        if divergence is not None and divergence.is_of_a_user:
            cause = f"check {type(divergence).__name__}, whose slopes are not those of its values"
        warn_caller(
            f"the objective rose from {before.objective!r} to {now.objective!r} in sweep "
            f"{now.sweep} at power={now.power}: {cause}",
            ObjectiveRoseWarning,
        )
    return has_risen


def _steepness(state: SweepState) -> float:
    """Return the largest slope of a power mean in a distance, k^(1/|s|), reached at zero.

    Rounding of a distance near a center may lift the objective by this multiple of its size.
    """
    # Beyond 700 the exponential overflows.
    return math.exp(min(700.0, -math.log(len(state.centers)) / state.power))
