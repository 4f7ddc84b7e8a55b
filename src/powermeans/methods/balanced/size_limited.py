"""The part of a fit that brings clusters to wished sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from powermeans.engine.anneal import Result, Stage, anneal
from powermeans.engine.fit import Fit
from powermeans.engine.history import SweepRecord
from powermeans.engine.search.effort import THRESHOLDS
from powermeans.engine.search.search import values_per_point
from powermeans.engine.updates import Learner, Sweep
from powermeans.errors import warn_caller
from powermeans.mathematics.rules import Hard, Priced, Reached, Rule
from powermeans.mathematics.sums import Sums, relabelled
from powermeans.methods.balanced.division import divided
from powermeans.methods.balanced.size_limits import SizeLimits
from powermeans.methods.balanced.transport import (
    MOST_STEPS,
    LabelledPoints,
    assign_roughly,
    assign_within,
    with_better_prices,
)
from powermeans.methods.base import labelled, stored_centers
from powermeans.points.nearby import NearbyPoints
from powermeans.points.needs import Measure
from powermeans.points.opening import rows_for
from powermeans.points.protocol import Points
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

    rows: LabelledPoints  # that the stage sweeps over
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


def sample_for_sizes(points: Points, n_centers: int, measure: Measure) -> Points | None:
    """Return points drawn by weight, which then count the same, or None where all points do.

    Unlike the sample of a search, it has no weights: points that are not alike cannot fill a size.
    """
    n_drawn = max(
        THRESHOLDS.least_sampled,
        THRESHOLDS.sampled_for_each_center * n_centers,
        int(THRESHOLDS.most_values_swapped / values_per_point(points)),
    )
    if points.parts is None and points.n_points <= 4 * n_drawn:
        return None
    n_drawn = min(n_drawn, points.n_points)
    steps = (np.arange(n_drawn) + 0.5) / n_drawn
    if points.parts is None:
        sums = np.cumsum(points.sample_weight(np.arange(points.n_points)))
        drawn = np.searchsorted(sums, steps * sums[-1])
    else:
        drawn = np.sort(points.nearness(np.empty((0, points.n_features))).draw(steps))
    return rows_for(measure, points.sample(drawn))


@dataclass(slots=True)
class Sizes:
    """What a run has reached besides centers, which an interrupt leaves; None before."""

    limits: SizeLimits | None = None
    prices: FloatArray | None = None
    nearby: NearbyPoints | None = None  # where a search looked only at the centers near each point


@dataclass(frozen=True, slots=True)
class LimitedFit:
    """Bring the clusters of a run to wished sizes."""

    points: Points
    fit: Fit
    limits: SizeLimits
    sample: Points | None  # of the points, in which starts are compared
    has_means: bool  # whether centers are means of points that can be taken
    max_iter: int  # assignments in the end
    least_fall: float  # from one of these to the next, as a share of the cost
    divides: bool  # whether clusters that are much too large give their points to other centers

    def run(self, found: Sequence[FloatArray]) -> Result:
        """Go on from the best of these centers, and return how that ended."""
        result, self.fit.learned.prices = self._run(found)
        self.fit.history.keep(result.centers)
        return result

    def _run(self, found: Sequence[FloatArray]) -> tuple[Result, FloatArray]:
        """Return how the descents ended, and the prices."""
        fit = self.fit
        fit.rules_apply = self.sample is None
        if self.divides:
            found = self._with_divided(found)
        points = self._nearby(self.points, found[0])
        fit.history.phase("comparing starts within the limits of size")
        end, prices = self._best_of_starts(found)
        if end.was_stopped:
            return end, prices
        is_mended = self.points.parts is None and self.has_means
        if not is_mended and (self.sample is not None or not self.has_means):
            fit.history.phase("learning prices of the centers")
            learner = self._learner(points, end.centers, prices)
            end = _go_on(points, fit, end.centers, learner, _MOST_SWEEPS)
            prices = learner.best_prices
        if end.was_stopped:
            return end, prices
        fit.history.phase("bringing clusters to their sizes")
        fit.rules_apply = True
        if not is_mended:
            learner = replace(self._learner(points, end.centers, prices), holds_centers=True)
            end = _go_on(points, fit, end.centers, learner, _MOST_SWEEPS)
            # `within_limits` warns of sizes outside the limits.
            return replace(end, has_converged=True), learner.best_prices
        is_rough = fit.learned.nearby is not None
        least_fall = max(self.least_fall, _ROUGH) if is_rough else self.least_fall
        labelled, exact = self._exact(points, prices, least_fall)
        return _go_on(labelled, fit, end.centers, exact, self.max_iter), exact.best_prices

    def _with_divided(self, found: Sequence[FloatArray]) -> Sequence[FloatArray]:
        """Divide the centers of too large clusters, and keep the first as they are too if quick."""
        rows = self.sample or self.points
        most = self.limits.of_part(rows.total_weight).most
        # Clusters that are far too large take long to reach their sizes.
        if rows.n_points * self.limits.n_centers > 3e7:
            return [divided(rows, centers, most) for centers in found]
        first = divided(rows, found[0], most)
        return found if first is found[0] else [first, *found]

    def _exact(
        self, points: Points, prices: FloatArray, least_fall: float
    ) -> tuple[LabelledPoints, ExactSizes]:
        """Return what descends with assignments nearly within the limits."""
        rows = LabelledPoints(points)
        limits = self.limits.of_part(rows.total_weight)
        return rows, ExactSizes(rows, limits, prices, least_fall)

    def _best_of_starts(self, found: Sequence[FloatArray]) -> tuple[Result, FloatArray]:
        """Return the end with the least cost in the sample, and its prices."""
        points, n_centers = self.sample or self.points, self.limits.n_centers
        if len(found) == 1 and (self.sample is None or self.has_means):
            return Result(found[0], "there is one start"), np.zeros(n_centers)
        best: tuple[float, Result, FloatArray] | None = None
        was_stopped = False
        for centers in found:
            tried = self._tried(points, centers)
            best = tried if best is None or tried[0] < best[0] else best
            _keep(self.fit, best[1].centers, best[2])
            if was_stopped := tried[1].was_stopped:
                break
        assert best is not None, "there is a start"
        return replace(best[1], was_stopped=was_stopped), best[2]

    def _tried(self, points: Points, centers: FloatArray) -> tuple[float, Result, FloatArray]:
        """Return the cost, the end and the prices of a rough descent."""
        none = np.zeros(len(centers))
        if not self.has_means:
            learner = self._learner(points, centers, none)
            end = anneal(points, centers, [Stage.of(learner, _MOST_SWEEPS)], self.fit)
            return learner.bound, end, learner.best_prices
        labelled, exact = self._exact(self._nearby(points, centers), none, _ROUGH)
        end = anneal(labelled, centers, [Stage.of(exact, 20)], self.fit)
        return exact.cost, end, exact.best_prices

    def _nearby(self, points: Points, centers: FloatArray) -> Points:
        """Return points that compare each only with the centers near its own, after a search."""
        nearby: NearbyPoints | None = self.fit.learned.nearby
        if nearby is None:
            return points
        if nearby.n_points != points.n_points:
            nearby = NearbyPoints(points, centers, points.assign(centers)[0])
        nearby.sweep(centers, Hard())
        return nearby

    def _learner(self, rows: Points, centers: FloatArray, prices: FloatArray) -> LearnPrices:
        spread = rows.spread(centers)
        mean = float(spread.error.sum() / rows.total_weight)
        with np.errstate(invalid="ignore", divide="ignore"):
            units = np.where(spread.weights > 0, spread.error / spread.weights, mean)
        limits = self.limits.of_part(rows.total_weight)
        return LearnPrices(limits, prices, np.maximum(units, 1e-3 * mean), _LEARNED, _LEARNED)


def _go_on(
    points: Points, fit: Fit, centers: FloatArray, learner: ExactSizes | LearnPrices, most: int
) -> Result:
    """Sweep at most so often; after an interrupt, the last complete sweep counts."""
    _keep(fit, centers, learner.best_prices)
    before = fit.history.last
    try:
        return anneal(points, centers, [Stage.of(learner, most)], fit)
    except BaseException:
        last = fit.history.last
        if last is not None and last is not before:
            _keep(fit, last.centers, learner.best_prices)
        raise


def _keep(fit: Fit, centers: FloatArray, prices: FloatArray) -> None:
    """Remember these as the best of the run."""
    fit.history.keep(centers)
    fit.learned.prices = prices


def keep_divided(points: Points, fit: Fit, limits: SizeLimits) -> None:
    """Divide too large clusters of a run that ended before centers moved within the limits."""
    fit.learned.nearby = None
    if points.parts is None:
        fit.history.keep(divided(points, fit.best_centers(), limits.most))


def _warn_of_missed(missed: float, limits: SizeLimits, why: str) -> None:
    warn_caller(
        f"sizes miss the limits by {missed:.6g} of {limits.total:.6g} in weight, since {why}",
        RuntimeWarning,
    )


def within_limits(
    points: Points, fit: Fit, result: Result, limits: SizeLimits, prices: FloatArray
) -> Result:
    """Return the result with the exact assignment to the centers as they are stored."""
    centers = stored_centers(points, fit)
    wide = centers.astype(np.float64)
    labels: Labels | None = None
    if points.parts is None:
        nearby = fit.learned.nearby
        # Near centers, the cost of the labels is the least but for this share.
        near = () if nearby is None else (nearby, 5e-4)
        found = assign_within(points, wide, prices, limits, *near)
        labels, sizes, prices, inertia = found.labels, found.sizes, found.prices, found.inertia
        gap = found.gap
        missed = found.missed
        if limits.tolerated is not None:
            missed = limits.missed_by_more_than_tolerated(sizes)
        if missed > 0:
            why = "single rows cannot be divided: widen the limits, or split heavy rows"
            _warn_of_missed(missed, limits, why)
    else:
        sums = points.sweep(wide, Priced(tuple(prices.tolist())))
        sizes = sums.weights
        inertia, missed = sums.objective - float(prices @ sizes), limits.missed_by(sizes)
        gap = inertia + limits.cost(sizes) - limits.bound(sums.objective, prices)
        if missed > 0.01 * limits.total:
            why = "points in parts follow prices alone: pass the rows in one array"
            if result.was_stopped:
                why = "the fit was stopped before it reached them: let it go on"
            _warn_of_missed(missed, limits, why)
    cost = inertia + limits.cost(sizes)
    return labelled(result, fit, centers, labels, inertia, loss=cost).with_attributes(
        sizes_=sizes,
        prices_=prices,
        assignment_gap_=max(0.0, gap) / cost if cost > 0 else 0.0,
    )


# Prices that bring clusters to wished sizes, learned while the centers move.


# Centers move once sizes miss the wish by no more than this share of all weight.
_MISSED_WHEN_MOVING = 0.02
# Sweeps without progress after which sizes do not come nearer to the limits.
_SWEEPS_IN_VAIN = 15


@dataclass(slots=True)
class LearnPrices(Learner):
    """Sweep with a price for each center, raised where a cluster is too large.

    The stage ends once the sizes hold up to a share of all weight and the cost hardly changes.
    """

    limits: SizeLimits
    prices: FloatArray
    units: FloatArray  # of the prices: the mean squared distance within each cluster
    least_missed: float  # of the total weight
    least_change: float  # of the cost
    holds_centers: bool = False  # until the end, else while sizes are far from the wish
    bound: float = -math.inf  # the dual value at the last sweep, before the prices moved
    missed: float = math.inf  # by how much weight the last sizes missed the limits
    best_prices: FloatArray = field(init=False)  # those whose sizes came nearest to the limits
    _gains: FloatArray = field(init=False)
    _n_turns: FloatArray = field(init=False)
    _before: tuple[FloatArray, FloatArray] = field(init=False)  # prices and excess
    _change: float = field(default=math.inf, init=False)
    _least_so_far: float = field(default=math.inf, init=False)
    _n_fruitless: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.best_prices = self.prices
        self._gains = np.full(len(self.prices), 0.5)
        self._n_turns = np.zeros(len(self.prices))
        self._before = self.prices, np.zeros(len(self.prices))

    def __iter__(self) -> Iterator[float | Rule]:
        """Yield the rule of the prices learned so far."""
        while True:
            yield Priced(tuple(self.prices.tolist()))

    def after(self, sweep: Sweep, sums: Sums) -> Sums:
        """Move the prices by the sizes; the sums stay as they are."""
        limits, sizes = self.limits, sums.weights
        before, self.bound = self.bound, limits.bound(sums.objective, self.prices)
        self._change = abs(self.bound - before) / max(abs(self.bound), np.finfo(float).tiny)
        self.missed = limits.far_from_wish(self.prices, sizes)
        self._n_fruitless += 1
        if self.missed < self._least_so_far:
            if self.missed < 0.95 * self._least_so_far:
                self._n_fruitless = 0
            self._least_so_far, self.best_prices = self.missed, self.prices
        self.prices = self.moved(sizes)
        # Centers that move before prices have taken effect run away: where a cluster loses points,
        # its center leaves, and it loses more.
        if not self.holds_centers and self.missed <= _MISSED_WHEN_MOVING * limits.total:
            self._least_so_far, self._n_fruitless = math.inf, 0
            return replace(sums, objective=self.bound)
        return replace(Reached.of(sums, sweep.centers), objective=self.bound)

    def reason(self, records: Sequence[SweepRecord]) -> str | None:
        """Report sizes that hold while the cost hardly changes, or that come no nearer."""
        if self.missed <= self.least_missed * self.limits.total:
            if self._change <= self.least_change:
                return f"sizes miss the limits by {self.missed}, and the cost hardly changes"
            return None
        if self._n_fruitless >= _SWEEPS_IN_VAIN:
            return f"sizes came no nearer to the limits than {self._least_so_far}"
        return None

    def moved(self, sizes: FloatArray) -> FloatArray:
        """Return the next prices, as a damped Newton step for each center alone would have them.

        A price first changes by half its unit for each natural logarithm of size over wish, and by
        more, up to eight units, while the size stays on one side of the wish. Each time it turns to
        the other side, the step is halved, and grows more slowly.

        Between two prices of which one makes a cluster too large and the other too small, the next
        price is in the middle as they miss.
        """
        prices, curvature = self.prices, self.limits.curvature
        wanted = self.limits.wanted(prices, sizes)
        excess = self._excess(sizes, wanted)
        former_prices, former = self._before
        turned, goes_on = excess * former < 0, excess * former > 0
        self._n_turns += turned
        growth = 1 + 0.5 / (1 + self._n_turns)
        grown = np.where(goes_on, np.minimum(growth * self._gains, 8.0), self._gains)
        self._gains = np.where(turned, 0.5 * self._gains, grown)
        self._before = prices, excess
        step = self._gains * self.units  # about how prices rise as sizes fall by the mean
        if curvature > 0:
            is_between = (wanted > self.limits.least) & (wanted < self.limits.most)
            step = step / np.where(is_between, 1 + step / (curvature * self.limits.mean), 1.0)
        share = former / np.where(turned, former - excess, 1.0)
        middle = former_prices + share * (prices - former_prices)
        moved: FloatArray = np.where(turned, middle, prices + excess * step)
        if curvature == 0:
            # Where the price is zero, all sizes within the limits are as good.
            moved = np.where(np.sign(moved) * np.sign(prices) < 0, 0.0, moved)
        return moved

    def _excess(self, sizes: FloatArray, wanted: FloatArray) -> FloatArray:
        """Return the logarithms of sizes over wishes, of one at most."""
        least = 0.02 * self.limits.mean  # empty clusters have logarithms too
        logarithms = np.log((sizes + least) / (wanted + least))
        excess: FloatArray = np.clip(logarithms, -1.0, 1.0)
        return excess
