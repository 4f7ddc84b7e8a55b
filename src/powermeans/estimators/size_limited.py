"""The part of a fit that brings clusters to wished sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from powermeans.errors import warn_caller
from powermeans.estimators.base import Run, Start
from powermeans.estimators.opening import InMemory
from powermeans.loop.anneal import Stage, StageEnd
from powermeans.loop.history import SweepRecord
from powermeans.loop.prices import LearnPrices
from powermeans.loop.updates import Learner, Sweep
from powermeans.rows.protocol import Rows
from powermeans.rows.transport import Assigned, assign_within
from powermeans.rules import Priced, Rule
from powermeans.size_limits import SizeLimits
from powermeans.sums import Sums
from powermeans.types import FloatArray, Labels

# While prices are learned, sizes may in the end miss the limits by this share of all weight, and
# the cost may still change by this share: exact assignments mend the rest.
_LEARNED, _LEARNED_BEFORE_EXACT = 5e-3, 2e-2
_MOST_SWEEPS, _MOST_SWEEPS_BEFORE_EXACT = 60, 8
# The relative fall of the cost from one exact assignment to the next that counts as none where
# starts are compared, with the most assignments, and in the end.
_ROUGH, _MOST_ROUGH_SWEEPS = 1e-3, 20
_FINE = 1e-5
_POINTS_AT_ONCE = 2**14
# Points in parts may miss the limits by this share of all weight without a warning.
_TOLD = 0.01
_LEAST_SAMPLED, _SAMPLED_FOR_EACH_CENTER, _VALUES_SAMPLED = 8192, 100, 2**20


@dataclass(slots=True)
class ExactSizes(Learner):
    """Assign all points at least cost within the limits, and move the centers to their means.

    Prices have nearly all points where they belong, and the sums are mended for the few others.
    """

    limits: SizeLimits
    prices: FloatArray
    least_fall: float  # relative fall of the cost that counts as none
    _costs: list[float] = field(default_factory=list)

    def __iter__(self) -> Iterator[float | Rule]:
        """Yield the rule of the prices of the assignment before."""
        while True:
            yield Priced(tuple(self.prices.tolist()))

    def after(self, sweep: Sweep, sums: Sums) -> Sums:
        """Return the sums of the exact assignment."""
        rows, centers = sweep.rows, sweep.centers
        found = assign_within(rows, centers, self.prices, self.limits)
        self.prices = found.prices
        self._costs.append(found.inertia + self.limits.cost(found.sizes))
        return replace(_mended(rows, sums, found), objective=self._costs[-1])

    def reason(self, records: Sequence[SweepRecord]) -> str | None:
        """Report that the cost hardly falls."""
        if records[-1].center_shift == 0:
            return "strict convergence"
        *before, now = self._costs[-2:]
        if before and before[0] - now <= self.least_fall * before[0]:
            return f"the cost fell from {before[0]} to {now}"
        return None

    @property
    def cost(self) -> float:
        """The cost of the last assignment."""
        return self._costs[-1]


def _mended(rows: Rows, sums: Sums, found: Assigned) -> Sums:
    """Return the sums with each point at its label, where prices have it elsewhere."""
    moved = np.flatnonzero(found.labels != found.by_prices)
    points, weights = sums.points.copy(), sums.weights.copy()
    for start in range(0, len(moved), _POINTS_AT_ONCE):
        some = moved[start : start + _POINTS_AT_ONCE]
        counts, n = rows.sample_weight(some), np.arange(len(some))
        shape = (len(weights), len(some))
        added = sparse.csr_array((counts, (found.labels[some], n)), shape=shape)
        taken = sparse.csr_array((counts, (found.by_prices[some], n)), shape=shape)
        change = added - taken
        points += np.asarray(change @ rows.take(some))
        weights += np.asarray(change.sum(axis=1))
    return replace(sums, points=points, weights=weights)


def sample_for_sizes(
    start: Start, n_centers: int, open_rows: Callable[[Any], Rows]
) -> Start | None:
    """Return points drawn by weight, which then count the same, or None where all points do.

    Unlike the sample of a search, it has no weights: points that are not alike cannot fill a size.
    """
    rows = start.data.rows
    n_drawn = max(
        _LEAST_SAMPLED,
        _SAMPLED_FOR_EACH_CENTER * n_centers,
        int(_VALUES_SAMPLED / rows.n_values_each),
    )
    if isinstance(start.data, InMemory) and rows.n_points <= 4 * n_drawn:
        return None
    n_drawn = min(n_drawn, rows.n_points)
    steps = (np.arange(n_drawn) + 0.5) / n_drawn
    drawn = rows.nearness(np.empty((0, rows.n_features))).draw(steps)
    points = rows.sample(np.sort(drawn))
    return replace(start, data=InMemory(points, None, open_rows(points)))


@dataclass(frozen=True, slots=True)
class LimitedFit:
    """Bring the clusters of a run to wished sizes."""

    start: Start
    limits: SizeLimits
    sample: Start | None  # of the points, in which starts are compared
    has_means: bool  # whether centers are means of points that can be taken
    max_iter: int  # exact assignments in the end

    def run(self, found: Sequence[FloatArray]) -> tuple[list[StageEnd], FloatArray]:
        """Go on from the best of these centers; return how that ended, and the prices."""
        start, is_in_memory = self.start, isinstance(self.start.data, InMemory)
        start.history.begin_phase("comparing starts within the limits of size")
        centers, prices = self._best_of_starts(found)
        ends: list[StageEnd] = []
        if self.sample is not None or not self.has_means:
            start.history.begin_phase("learning prices of the centers")
            learner = self._learner(start, centers, prices)
            is_mended = is_in_memory and self.has_means
            most = _MOST_SWEEPS_BEFORE_EXACT if is_mended else _MOST_SWEEPS
            ends = start.anneal(centers, [Stage.of(learner, most)])
            centers, prices = ends[-1].centers, learner.best_prices
        if ends and ends[-1].was_stopped:
            return ends, prices
        start.history.begin_phase("bringing clusters to their sizes")
        if not is_in_memory or not self.has_means:
            learner = replace(self._learner(start, centers, prices), holds_centers=True)
            ends = start.anneal(centers, [Stage.of(learner, _MOST_SWEEPS)])
            # Whether sizes hold is told when they are known.
            return [replace(end, has_converged=True) for end in ends], learner.best_prices
        exact = ExactSizes(self.limits, prices, _FINE)
        return start.anneal(centers, [Stage.of(exact, self.max_iter)]), exact.prices

    def _best_of_starts(self, found: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
        """Return the centers and prices of the start with the least cost in the sample."""
        start, n_centers = self.sample or self.start, self.limits.n_centers
        if len(found) == 1 and self.sample is None:
            return found[0], np.zeros(n_centers)
        best: tuple[float, FloatArray, FloatArray] | None = None
        for centers in found:
            cost, moved, prices, was_stopped = self._tried(start, centers)
            if best is None or cost < best[0]:
                best = cost, moved, prices
            if was_stopped:
                break
        assert best is not None, "there is a start"
        return best[1], best[2]

    def _tried(
        self, start: Start, centers: FloatArray
    ) -> tuple[float, FloatArray, FloatArray, bool]:
        """Return cost, centers and prices after a rough descent, and whether it was stopped."""
        if not self.has_means:
            learner = self._learner(start, centers, np.zeros(len(centers)))
            end = start.anneal(centers, [Stage.of(learner, _MOST_SWEEPS)])[-1]
            return learner.bound, end.centers, learner.best_prices, end.was_stopped
        limits = self.limits.of_part(start.data.rows.total_weight)
        exact = ExactSizes(limits, np.zeros(len(centers)), _ROUGH)
        end = start.anneal(centers, [Stage.of(exact, _MOST_ROUGH_SWEEPS)])[-1]
        return exact.cost, end.centers, exact.prices, end.was_stopped

    def _learner(self, start: Start, centers: FloatArray, prices: FloatArray) -> LearnPrices:
        rows = start.data.rows
        spread = rows.spread(centers)
        mean = float(spread.error.sum() / rows.total_weight)
        with np.errstate(invalid="ignore", divide="ignore"):
            units = np.where(spread.weights > 0, spread.error / spread.weights, mean)
        least_unit = max(1e-3 * mean, np.finfo(float).tiny)
        limits = self.limits.of_part(rows.total_weight)
        is_mended = self.has_means and isinstance(start.data, InMemory)
        least = _LEARNED_BEFORE_EXACT if is_mended else _LEARNED
        return LearnPrices(limits, prices, np.maximum(units, least_unit), least, _LEARNED)


def within_limits(
    start: Start, ends: Sequence[StageEnd], limits: SizeLimits, prices: FloatArray
) -> Run:
    """Return the outcome of a run with the exact assignment to the centers as they are stored."""
    data, history = start.data, start.history
    history.begin_phase("labelling the rows")
    assert history.centers is not None, "every run has a sweep"
    centers = np.array(history.centers, dtype=data.dtype)
    wide = centers.astype(np.float64)
    labels: Labels | None = None
    if isinstance(data, InMemory):
        found = assign_within(data.rows, wide, prices, limits)
        labels, sizes, prices, inertia = found.labels, found.sizes, found.prices, found.inertia
        missed = found.missed
    sums = data.rows.sweep(wide, Priced(tuple(prices.tolist())))
    if not isinstance(data, InMemory):
        sizes = sums.weights
        inertia, missed = sums.objective - float(prices @ sizes), limits.missed_by(sizes)
        if missed > _TOLD * limits.total:
            warn_caller(
                f"sizes miss the limits by {missed:.6g} of {limits.total:.6g} in weight, since "
                "points in parts follow prices alone: pass the rows in one array",
                RuntimeWarning,
            )
    elif missed > 0:
        warn_caller(
            f"sizes miss the limits by {missed:.6g} of {limits.total:.6g} in weight, since single "
            "rows cannot be divided: widen the limits, or split heavy rows",
            RuntimeWarning,
        )
    cost = inertia + limits.cost(sizes)
    gap = max(0.0, cost - limits.bound(sums.objective, prices))
    attributes: dict[str, Any] = {
        "sizes_": sizes,
        "prices_": prices,
        "assignment_gap_": gap / cost if cost > 0 else 0.0,
    }
    return Run(centers, labels, inertia, history, ends, loss=cost, attributes=attributes)
