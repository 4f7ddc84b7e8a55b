"""The part of a fit that brings clusters to wished sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from powermeans.engine.anneal import Stage, StageEnd
from powermeans.engine.history import SweepRecord
from powermeans.engine.search.effort import THRESHOLDS
from powermeans.engine.search.search import n_values_each
from powermeans.engine.updates import Learner, Sweep
from powermeans.errors import warn_caller
from powermeans.mathematics.rules import Hard, Priced, Rule
from powermeans.mathematics.sums import Sums, relabelled
from powermeans.methods.balanced.borders import MOST_STEPS, with_better_prices
from powermeans.methods.balanced.division import divided
from powermeans.methods.balanced.prices import LearnPrices
from powermeans.methods.balanced.size_limits import SizeLimits
from powermeans.methods.balanced.transport import LabelledRows, assign_roughly, assign_within
from powermeans.methods.base import Run, Start
from powermeans.points.nearby import NearbyRows
from powermeans.points.needs import Measure
from powermeans.points.opening import InMemory, in_memory, rows_for
from powermeans.types import FloatArray, Labels

# While prices are learned, sizes may in the end miss the limits by this share of all weight, and
# the cost may still change by this share: exact assignments mend the rest.
_LEARNED, _MOST_SWEEPS = 5e-3, 60
# The cost of an assignment that nearly keeps the limits is not exact, so that several count.
_PATIENCE = 2
# The relative fall of the cost from one exact assignment to the next that counts as none where
# starts are compared, or only near centers.
_ROUGH = 1e-3


@dataclass(slots=True)
class ExactSizes(Learner):
    """Assign all points at least cost within the limits, and move the centers to their means.

    Prices have nearly all points where they belong, and the sums are mended for the few others.
    """

    rows: LabelledRows  # that the stage sweeps over
    limits: SizeLimits
    prices: FloatArray
    least_fall: float  # relative fall of the cost that counts as none
    _costs: list[float] = field(default_factory=list, init=False)

    def __iter__(self) -> Iterator[float | Rule]:
        """Yield the rule of the prices of the assignment before."""
        while True:
            yield Priced(tuple(self.prices.tolist()))

    def after(self, sweep: Sweep, sums: Sums) -> Sums:
        """Return the sums of an assignment nearly within the limits."""
        priced = self.rows.last
        assert priced is not None, "the sweep had prices"
        priced, self.prices = with_better_prices(
            self.rows,
            sweep.centers,
            priced,
            self.prices,
            self.limits,
            enough=0.02 * self.limits.total,  # of the weight may be missing before an assignment
            n_most=2 if self._costs else MOST_STEPS,  # after each move of the centers
        )
        found = assign_roughly(self.rows, sweep.centers, priced, self.prices, self.limits)
        self.prices = found.prices
        self._costs.append(found.inertia + self.limits.cost(found.sizes))
        mended = relabelled(self.rows, priced.sums, priced.labels, found.labels)
        return replace(mended, objective=self._costs[-1])

    def reason(self, records: Sequence[SweepRecord]) -> str | None:
        """Report that the cost hardly falls."""
        if records[-1].center_shift == 0:
            return "strict convergence"
        *before, now = self._costs[-1 - _PATIENCE :]
        if len(before) == _PATIENCE and before[0] - now <= _PATIENCE * self.least_fall * before[0]:
            return f"the cost fell from {before[0]} to {now}"
        return None

    @property
    def cost(self) -> float:
        """The cost of the last assignment."""
        return self._costs[-1]

    @property
    def best_prices(self) -> FloatArray:
        """The prices of the last assignment."""
        return self.prices


def sample_for_sizes(start: Start, n_centers: int, measure: Measure) -> Start | None:
    """Return points drawn by weight, which then count the same, or None where all points do.

    Unlike the sample of a search, it has no weights: points that are not alike cannot fill a size.
    """
    rows = start.data.rows
    n_drawn = max(
        THRESHOLDS.least_sampled,
        THRESHOLDS.sampled_for_each_center * n_centers,
        int(THRESHOLDS.most_values_swapped / n_values_each(rows)),
    )
    if isinstance(start.data, InMemory) and rows.n_points <= 4 * n_drawn:
        return None
    n_drawn = min(n_drawn, rows.n_points)
    steps = (np.arange(n_drawn) + 0.5) / n_drawn
    if isinstance(start.data, InMemory):
        sums = np.cumsum(rows.sample_weight(np.arange(rows.n_points)))
        drawn = np.searchsorted(sums, steps * sums[-1])
    else:
        drawn = np.sort(rows.nearness(np.empty((0, rows.n_features))).draw(steps))
    points = rows.sample(drawn)
    return replace(start, data=InMemory(points, None, rows_for(measure, points)))


@dataclass(slots=True)
class Sizes:
    """What a run has reached besides centers, which an interrupt leaves; None before."""

    limits: SizeLimits | None = None
    prices: FloatArray | None = None
    nearby: NearbyRows | None = None  # where a search looked only at the centers near each point


@dataclass(frozen=True, slots=True)
class LimitedFit:
    """Bring the clusters of a run to wished sizes."""

    start: Start
    limits: SizeLimits
    sample: Start | None  # of the points, in which starts are compared
    has_means: bool  # whether centers are means of points that can be taken
    max_iter: int  # assignments in the end
    least_fall: float  # from one of these to the next, as a share of the cost
    divides: bool  # whether clusters that are much too large give their points to other centers

    def run(self, found: Sequence[FloatArray]) -> list[StageEnd]:
        """Go on from the best of these centers, and return how that ended."""
        ends, self.start.learned.prices = self._run(found)
        self.start.history.keep(ends[-1].centers)
        return ends

    def _run(self, found: Sequence[FloatArray]) -> tuple[list[StageEnd], FloatArray]:
        """Return how the descents ended, and the prices."""
        is_in_memory = isinstance(self.start.data, InMemory)
        self.start.fit.rules_apply = self.sample is None
        if self.divides:
            found = self._with_divided(found)
        start = self._nearby(self.start, found[0])
        start.history.phase("comparing starts within the limits of size")
        ends, prices = self._best_of_starts(found)
        if ends[-1].was_stopped:
            return ends, prices
        is_mended = is_in_memory and self.has_means
        if not is_mended and (self.sample is not None or not self.has_means):
            start.history.phase("learning prices of the centers")
            learner = self._learner(start, ends[-1].centers, prices)
            ends = _go_on(start, ends[-1].centers, learner, _MOST_SWEEPS)
            prices = learner.best_prices
        if ends[-1].was_stopped:
            return ends, prices
        centers = ends[-1].centers
        start.history.phase("bringing clusters to their sizes")
        start.fit.rules_apply = True
        if not is_mended:
            learner = replace(self._learner(start, centers, prices), holds_centers=True)
            ends = _go_on(start, centers, learner, _MOST_SWEEPS)
            # Whether sizes hold is told when they are known.
            return [replace(end, has_converged=True) for end in ends], learner.best_prices
        least_fall = (
            self.least_fall if start.learned.nearby is None else max(self.least_fall, _ROUGH)
        )
        inner, exact = self._exact(start, prices, least_fall)
        return _go_on(inner, centers, exact, self.max_iter), exact.best_prices

    def _with_divided(self, found: Sequence[FloatArray]) -> Sequence[FloatArray]:
        """Divide the centers of too large clusters, and keep the first as they are too if quick."""
        rows = (self.sample or self.start).data.rows
        most = self.limits.of_part(rows.total_weight).most
        # Clusters that are far too large take long to reach their sizes.
        if rows.n_points * self.limits.n_centers > 3e7:
            return [divided(rows, centers, most) for centers in found]
        first = divided(rows, found[0], most)
        return found if first is found[0] else [first, *found]

    def _exact(
        self, start: Start, prices: FloatArray, least_fall: float
    ) -> tuple[Start, ExactSizes]:
        """Return what descends with assignments nearly within the limits."""
        rows = LabelledRows(start.data.rows)
        limits = self.limits.of_part(rows.total_weight)
        inner = replace(start, data=replace(in_memory(start.data), rows=rows))
        return inner, ExactSizes(rows, limits, prices, least_fall)

    def _best_of_starts(self, found: Sequence[FloatArray]) -> tuple[list[StageEnd], FloatArray]:
        """Return the end with the least cost in the sample, and its prices."""
        start, n_centers = self.sample or self.start, self.limits.n_centers
        if len(found) == 1 and (self.sample is None or self.has_means):
            return [StageEnd(found[0], -math.inf, "there is one start")], np.zeros(n_centers)
        best: tuple[float, StageEnd, FloatArray] | None = None
        was_stopped = False
        for centers in found:
            tried = self._tried(start, centers)
            best = tried if best is None or tried[0] < best[0] else best
            _keep(start, best[1].centers, best[2])
            if was_stopped := tried[1].was_stopped:
                break
        assert best is not None, "there is a start"
        return [replace(best[1], was_stopped=was_stopped)], best[2]

    def _tried(self, start: Start, centers: FloatArray) -> tuple[float, StageEnd, FloatArray]:
        """Return the cost, the end and the prices of a rough descent."""
        none = np.zeros(len(centers))
        if not self.has_means:
            learner = self._learner(start, centers, none)
            end = start.anneal(centers, [Stage.of(learner, _MOST_SWEEPS)])[-1]
            return learner.bound, end, learner.best_prices
        start = self._nearby(start, centers)
        inner, exact = self._exact(start, none, _ROUGH)
        end = inner.anneal(centers, [Stage.of(exact, 20)])[-1]
        return exact.cost, end, exact.best_prices

    def _nearby(self, start: Start, centers: FloatArray) -> Start:
        """Return the start over rows that compare a point only with centers near its own."""
        nearby: NearbyRows | None = start.learned.nearby
        if nearby is None:
            return start
        rows = start.data.rows
        if nearby.n_points != rows.n_points:
            nearby = NearbyRows(rows, centers, rows.assign(centers)[0])
        nearby.sweep(centers, Hard())
        return replace(start, data=replace(in_memory(start.data), rows=nearby))

    def _learner(self, start: Start, centers: FloatArray, prices: FloatArray) -> LearnPrices:
        rows = start.data.rows
        spread = rows.spread(centers)
        mean = float(spread.error.sum() / rows.total_weight)
        with np.errstate(invalid="ignore", divide="ignore"):
            units = np.where(spread.weights > 0, spread.error / spread.weights, mean)
        limits = self.limits.of_part(rows.total_weight)
        return LearnPrices(limits, prices, np.maximum(units, 1e-3 * mean), _LEARNED, _LEARNED)


def _go_on(
    start: Start, centers: FloatArray, learner: ExactSizes | LearnPrices, most: int
) -> list[StageEnd]:
    """Sweep at most so often; after an interrupt, the last complete sweep counts."""
    _keep(start, centers, learner.best_prices)
    before = start.history.last
    try:
        return start.anneal(centers, [Stage.of(learner, most)])
    except BaseException:
        last = start.history.last
        if last is not None and last is not before:
            _keep(start, last.centers, learner.best_prices)
        raise


def _keep(start: Start, centers: FloatArray, prices: FloatArray) -> None:
    """Remember these as the best of the run."""
    start.history.keep(centers)
    start.learned.prices = prices


def keep_divided(start: Start, limits: SizeLimits) -> None:
    """Divide too large clusters of a run that ended before centers moved within the limits."""
    centers = start.history.centers
    assert centers is not None, "every run has a sweep"
    start.learned.nearby = None
    if isinstance(start.data, InMemory):
        start.history.keep(divided(start.data.rows, centers, limits.most))


def _warn_of_missed(missed: float, limits: SizeLimits, why: str) -> None:
    warn_caller(
        f"sizes miss the limits by {missed:.6g} of {limits.total:.6g} in weight, since {why}",
        RuntimeWarning,
    )


def within_limits(
    start: Start,
    ends: Sequence[StageEnd],
    limits: SizeLimits,
    prices: FloatArray,
) -> Run:
    """Return the outcome of a run with the exact assignment to the centers as they are stored."""
    data, history = start.data, start.history
    history.phase("labelling the rows")
    best = start.fit.divergence.within(start.best_centers())
    centers = np.array(best, dtype=data.dtype)
    wide = centers.astype(np.float64)
    labels: Labels | None = None
    if isinstance(data, InMemory):
        nearby = start.learned.nearby
        # Near centers, the cost of the labels is the least but for this share.
        near = () if nearby is None else (nearby, 5e-4)
        found = assign_within(data.rows, wide, prices, limits, *near)
        labels, sizes, prices, inertia = found.labels, found.sizes, found.prices, found.inertia
        gap = found.gap
        missed = found.missed
        if limits.tolerated is not None:
            missed = limits.missed_by_more_than_tolerated(sizes)
        if missed > 0:
            why = "single rows cannot be divided: widen the limits, or split heavy rows"
            _warn_of_missed(missed, limits, why)
    else:
        sums = data.rows.sweep(wide, Priced(tuple(prices.tolist())))
        sizes = sums.weights
        inertia, missed = sums.objective - float(prices @ sizes), limits.missed_by(sizes)
        gap = inertia + limits.cost(sizes) - limits.bound(sums.objective, prices)
        if missed > 0.01 * limits.total:
            why = "points in parts follow prices alone: pass the rows in one array"
            if not ends or ends[-1].was_stopped:
                why = "the fit was stopped before it reached them: let it go on"
            _warn_of_missed(missed, limits, why)
    cost = inertia + limits.cost(sizes)
    attributes: dict[str, Any] = {
        "sizes_": sizes,
        "prices_": prices,
        "assignment_gap_": max(0.0, gap) / cost if cost > 0 else 0.0,
    }
    return Run(centers, labels, inertia, history, ends, loss=cost, attributes=attributes)
