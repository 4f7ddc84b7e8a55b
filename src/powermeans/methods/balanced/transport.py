"""The assignment of least cost whose clusters have wished sizes: a transport problem."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import cg

from powermeans.mathematics.rules import Priced, Rule
from powermeans.mathematics.sums import Spread, Sums
from powermeans.methods.balanced.size_limits import SizeLimits, weight_of_each
from powermeans.points.base import ViewedPoints
from powermeans.points.compiled import transport
from powermeans.points.nearby import NearbyPoints
from powermeans.points.protocol import (
    AskedNear,
    NearCenters,
    Nearness,
    Points,
    PricedLabels,
    PricedPoints,
    priced_of,
)
from powermeans.types import FloatArray, IndexArray, Labels

# All points are listed with all centers where that makes no more pairs; else points near borders,
# with the nearest centers.
_MOST_PAIRS = 2**16
_CENTERS_FOR_EACH = 16
# So many times the points that have to move are listed, and more where they do not suffice.
_LISTED_FOR_EACH_MISSED, _GROWTH = 8, 4
_MOST_ROUNDS = 50
# A smaller difference is rounding, in units of the precision of the points.
_ROUNDING_UNITS = 8.0


@dataclass(frozen=True, slots=True)
class Assigned:
    """An assignment of all points, and what led to it."""

    labels: Labels
    sizes: FloatArray  # weight of each cluster
    prices: FloatArray
    inertia: float  # weighted sum of distances to the own centers
    missed: float  # by how much weight the sizes miss the limits
    gap: float = math.nan  # by no more than this could the cost be less; NaN where none asked


@dataclass(frozen=True, slots=True)
class _Lists:
    """Points near borders, with the centers that each may go to, its own among them."""

    points: IndexArray
    starts: NDArray[np.int64]
    centers: Labels
    distances: FloatArray

    @classmethod
    def of(cls, points: IndexArray, near: NearCenters, is_near: NDArray[np.bool_]) -> _Lists:
        """Return lists of these of the near centers, for each of the points."""
        starts = np.append(0, np.cumsum(np.count_nonzero(is_near, axis=1))).astype(np.int64)
        return cls(points, starts, near.centers[is_near], near.distances[is_near])

    @property
    def owners(self) -> IndexArray:
        """The point of each entry."""
        return np.repeat(self.points, np.diff(self.starts))

    def own(self, labels: Labels) -> IndexArray:
        """Return the places of the entries with these labels of the points."""
        return np.flatnonzero(self.centers == np.repeat(labels, np.diff(self.starts)))

    def least(self, costs: FloatArray) -> IndexArray:
        """Return the place of the entry of least cost of each point."""
        least = np.minimum.reduceat(costs, self.starts[:-1])
        places = np.flatnonzero(costs == np.repeat(least, np.diff(self.starts)))
        return places[np.searchsorted(places, self.starts[:-1])]

    def joined(self, others: _Lists) -> _Lists:
        owners = np.append(self.owners, others.owners)
        centers = np.append(self.centers, others.centers)
        keys = owners * (int(centers.max(initial=0)) + 1) + centers
        first = np.unique(keys, return_index=True)[1]
        points, starts = np.unique(owners[first], return_index=True)
        distances = np.append(self.distances, others.distances)[first]
        starts = np.append(starts, len(first)).astype(np.int64)
        return _Lists(points, starts, centers[first], distances)


class LabelledPoints(ViewedPoints):
    """Keep the labels of the last sweep with prices, which an assignment begins with."""

    def __init__(self, rows: Points) -> None:
        self._rows = rows
        self.last: PricedLabels | None = None

    def sweep(self, centers: FloatArray, rule: Rule) -> Sums:
        if not isinstance(rule, Priced):
            return self._rows.sweep(centers, rule)
        self.last = priced_of(self._rows).assign(centers, rule.prices_of(len(centers)))
        return self.last.sums

    def spread(self, centers: FloatArray) -> Spread:
        return self._rows.spread(centers)

    def assign(self, centers: FloatArray) -> tuple[Labels, float]:
        return self._rows.assign(centers)

    def nearness(self, centers: FloatArray, order: IndexArray | None = None) -> Nearness:
        return self._rows.nearness(centers, order)

    @property
    def priced(self) -> PricedPoints | None:
        return self._rows.priced

    def _middle(self) -> FloatArray:
        return self._rows.mean()


def assign_within(
    rows: Points,
    centers: FloatArray,
    prices: FloatArray,
    limits: SizeLimits,
    nearby: NearbyPoints | None = None,
    least_gap: float = 1e-10,
) -> Assigned:
    """Return the assignment of least cost to these centers, beginning with these prices.

    Points far from all borders stay where the prices have them. What the new prices prove tells
    which of them should move; then it begins again with these, and with where they should go. It
    ends where the cost is proved to be the least but for the share `least_gap`.

    The same points `nearby` list candidates, and tell which points should move until none do.
    """
    some = nearby or rows
    search = _Search(some, centers, limits)
    priced = priced_of(some).assign(centers, prices)
    if search.are_of_no_use(priced, prices):
        prices = np.zeros(len(centers))
        priced = priced_of(some).assign(centers, prices)
    # Prices are moved before an assignment while sizes miss the wish by more.
    enough = 0.02 * limits.total
    priced, prices = with_better_prices(some, centers, priced, prices, limits, enough=enough)
    allowed = max(least_gap, _ROUNDING_UNITS * float(np.finfo(rows.dtype).eps))
    found, judge = search.moved(priced, prices, 0.0), rows
    for rounds_left in reversed(range(_MOST_ROUNDS)):
        proof = priced_of(judge).assign(centers, found.prices)
        cost = found.inertia + limits.cost(found.sizes)
        gap = max(0.0, cost - limits.bound(proof.sums.objective, found.prices))
        elsewhere = np.flatnonzero(proof.labels != found.labels)
        ends = gap <= allowed * cost or not search.lists_better(judge, elsewhere, found)
        if judge is rows:
            if ends or not rounds_left:
                break
            if nearby is not None:
                nearby.begin_with(proof.labels)
        judge = rows if ends or rounds_left == 1 else some
        if not ends:
            found = search.moved_on(found)
            if found.missed > 0:
                found = search.moved(priced, prices, 0.0)
    return replace(found, gap=gap)


def assign_roughly(
    rows: Points, centers: FloatArray, priced: PricedLabels, prices: FloatArray, limits: SizeLimits
) -> Assigned:
    """Return an assignment within the limits but for half a percent of all weight."""
    allowed = 5e-3 * limits.total
    return _Search(rows, centers, limits).moved(priced, prices, allowed)


class _Search:
    """Look for the points that should move, among more and more of them."""

    def __init__(self, rows: Points, centers: FloatArray, limits: SizeLimits) -> None:
        self._rows, self._centers, self._limits = rows, centers, limits
        self._counts = rows.sample_weight(np.arange(rows.n_points))
        n_centers = len(centers)
        least = max(1 / 16, _MOST_PAIRS / n_centers / rows.n_points)
        self._shares = np.full(n_centers, least)  # of the points of each cluster that are listed
        self._n_each = min(_CENTERS_FOR_EACH, n_centers)
        self._n_widened = 0
        self._lists: _Lists | None = None  # of points near borders
        self._better: list[_Lists] = []  # of those that turned out to belong elsewhere

    def are_of_no_use(self, priced: PricedLabels, prices: FloatArray) -> bool:
        """Return whether prices are so wrong, for centers that moved far, that none are better.

        Without prices most clusters may grow, so that all paths are short.
        """
        far = self._limits.far_from_wish(prices, self._sizes(priced))
        return far > 0.1 * self._limits.total and bool(np.any(prices))

    def moved(self, priced: PricedLabels, prices: FloatArray, allowed: float) -> Assigned:
        """Move points at least cost, until sizes miss the limits by no more than is allowed."""
        limits, sizes = self._limits, self._sizes(priced)
        excess = np.maximum(sizes - limits.wanted(prices, sizes), 0.0)
        needed = _LISTED_FOR_EACH_MISSED * float(excess.sum()) / limits.total
        leaving = 4 * excess / np.maximum(sizes, np.finfo(float).tiny)
        self._shares = np.maximum(self._shares, np.maximum(needed, leaving))
        inertia = priced.sums.objective - float(prices @ sizes)
        begun = Assigned(priced.labels, sizes, prices, inertia, limits.missed_by(sizes))
        while True:
            self._lists = self._listed(priced, prices)
            found = _transported(begun, self._counts, self._lists, limits)
            has_all = bool(np.all(self._shares >= 1)) and self._n_each == len(self._centers)
            if found.missed <= allowed or has_all:
                return found
            self._widen(found, self._lists)

    def lists_better(self, rows: Points, points: IndexArray, found: Assigned) -> bool:
        """List the centers where these points cost less; return whether some were not listed."""
        points = points[self._counts[points] > 0]
        asked = AskedNear(
            points,
            found.labels[points],
            self._centers,
            found.prices,
            reach=0.0,
            n_most=min(9, len(self._centers)),
        )
        near = priced_of(rows).near(asked)
        assert self._lists is not None, "points were moved"
        before, better = self._lists, _Lists.of(points, near, near.centers >= 0)
        self._better.append(better)
        self._lists = before.joined(better)
        return len(self._lists.centers) > len(before.centers)

    def moved_on(self, found: Assigned) -> Assigned:
        """Move points that have a better center in the lists there, and then others for these."""
        lists, labels, sizes = self._lists, found.labels.copy(), found.sizes.copy()
        assert lists is not None, "points were moved"
        costs = lists.distances + found.prices[lists.centers]
        own, best = lists.own(labels[lists.points]), lists.least(costs)
        rounding = _ROUNDING_UNITS * float(np.finfo(self._rows.dtype).eps)
        better = np.flatnonzero(costs[own] - costs[best] > rounding * costs[own])
        own, best = own[better], best[better]
        points, counts = lists.points[better], self._counts[lists.points[better]]
        np.subtract.at(sizes, labels[points], counts)
        labels[points] = lists.centers[best]
        np.add.at(sizes, labels[points], counts)
        extra = counts @ (lists.distances[best] - lists.distances[own])
        begun = replace(found, labels=labels, sizes=sizes, inertia=found.inertia + float(extra))
        return _transported(begun, self._counts, lists, self._limits)

    def _widen(self, found: Assigned, lists: _Lists) -> None:
        """List more points of the clusters that weight cannot leave, or cannot reach."""
        stuck = self._stuck(found, lists)
        self._n_widened += 1
        if np.all(self._shares[stuck] >= 1) or self._n_widened > 8:
            if np.all(self._shares >= 1):
                self._n_each = min(_GROWTH * self._n_each, len(self._centers))
            stuck = np.arange(len(self._shares))
            self._shares = np.maximum(self._shares, 1.0)
        self._shares[stuck] *= _GROWTH

    def _stuck(self, found: Assigned, lists: _Lists) -> IndexArray:
        """Return the clusters that the listed points lead to from those that are too large.

        Where none is, those that lead to clusters that are too small.
        """
        n, limits = len(self._centers), self._limits
        begins = found.labels[lists.owners]
        arcs = sparse.csr_array((np.ones(len(begins)), (begins, lists.centers)), shape=(n, n))
        wrong = found.sizes > limits.most
        if not wrong.any():
            arcs, wrong = arcs.T.tocsr(), found.sizes < limits.least
        reached = wrong.copy()
        while True:
            more = reached | (arcs.T @ reached > 0)
            if np.array_equal(more, reached):
                return np.flatnonzero(reached)
            reached = more

    def _sizes(self, priced: PricedLabels) -> FloatArray:
        return np.bincount(priced.labels, self._counts, len(self._centers)).astype(np.float64)

    def _listed(self, priced: PricedLabels, prices: FloatArray) -> _Lists:
        """List the points of least margins, with the centers within these margins."""
        reach, n_centers = self._reach(priced), len(self._centers)
        is_listed = (priced.margins <= reach[priced.labels]) & (self._counts > 0)
        points = np.flatnonzero(is_listed)
        if len(points) * n_centers <= _MOST_PAIRS:
            self._n_each = n_centers
        labels = priced.labels[points]
        asked = AskedNear(
            points,
            labels,
            self._centers,
            prices,
            reach=float(reach.max()),
            n_most=max(2, self._n_each),
        )
        near = priced_of(self._rows).near(asked)
        costs = near.distances + prices[near.centers]
        costs -= costs[:, :1].copy()
        is_near = (near.centers >= 0) & (costs <= reach[labels, None])
        is_near[:, 0] = True
        return functools.reduce(_Lists.joined, self._better, _Lists.of(points, near, is_near))

    def _reach(self, priced: PricedLabels) -> FloatArray:
        """Return for each cluster up to which margin its points are listed.

        About this share of the points have a smaller margin than this share of the mean margin.
        """
        n_centers = len(self._centers)
        n_points = np.bincount(priced.labels, minlength=n_centers)
        means = np.bincount(priced.labels, priced.margins, n_centers) / np.maximum(n_points, 1)
        return np.where(self._shares >= 1, np.inf, means * self._shares)


def _transported(
    begun: Assigned, counts: FloatArray, lists: _Lists, limits: SizeLimits
) -> Assigned:
    """Move listed points at least cost until the sizes are as wished."""
    of_points, each = counts[lists.points], weight_of_each(counts)
    limits = limits.in_points(each) if each > 0 else limits
    former = begun.labels[lists.points]
    labels, prices = former.copy(), begun.prices.copy()
    sizes = np.rint(begun.sizes / each) if each > 0 else begun.sizes.copy()
    missed = transport(
        lists.starts,
        lists.centers,
        lists.distances,
        None if each > 0 else of_points,
        np.full(len(sizes), limits.least),
        np.full(len(sizes), limits.most),
        limits.mean,
        limits.curvature,
        labels,
        sizes,
        prices,
    )
    is_moved = labels != former
    extra = lists.distances[lists.own(labels)] - lists.distances[lists.own(former)]
    inertia = begun.inertia + float(of_points[is_moved] @ extra[is_moved])
    all_labels = begun.labels.copy()
    all_labels[lists.points] = labels
    unit = each or 1.0
    return Assigned(all_labels, unit * sizes, prices, inertia, unit * missed)


# Prices by Newton's method: points at borders tell how sizes follow the prices.


MOST_STEPS = 12


def with_better_prices(
    rows: Points,
    centers: FloatArray,
    priced: PricedLabels,
    prices: FloatArray,
    limits: SizeLimits,
    *,
    enough: float,
    n_most: int = MOST_STEPS,
) -> tuple[PricedLabels, FloatArray]:
    """Return better prices than these, with labels, where too much weight has to move for sizes.

    Each step proves that assignments within the limits cost more than was known. Steps end once no
    more than `enough` weight has to move.
    """
    bound, share, step = limits.bound(priced.sums.objective, prices), 1.0, None
    for _ in range(n_most):
        if _misplaced(priced, prices, limits) <= enough or share < 0.01:
            break
        if step is None:
            step = _step(rows, centers, priced, prices, limits)
            if not step.any():
                break
        moved = _without_needless(prices + share * step, prices, limits)
        tried = priced_of(rows).assign(centers, moved)
        proved = limits.bound(tried.sums.objective, moved)
        if proved > bound:
            priced, prices, bound, step, share = tried, moved, proved, None, min(1.0, 2 * share)
        else:
            share /= 4
    return priced, prices


def _misplaced(priced: PricedLabels, prices: FloatArray, limits: SizeLimits) -> float:
    """Return how much weight has to move for the sizes that are wanted at these prices."""
    excess = priced.sums.weights - limits.wanted(prices, priced.sums.weights)
    return float(max(np.maximum(excess, 0).sum(), np.maximum(-excess, 0).sum()))


def _without_needless(moved: FloatArray, before: FloatArray, limits: SizeLimits) -> FloatArray:
    """Return the prices with zero for those that changed sign.

    At a price of zero all sizes within the limits are as good.
    """
    if limits.curvature > 0:
        return moved
    needless = (np.sign(moved) * np.sign(before) < 0) | ((moved < 0) & (limits.least == 0))
    return np.where(needless, 0.0, moved)


def _step(
    rows: Points, centers: FloatArray, priced: PricedLabels, prices: FloatArray, limits: SizeLimits
) -> FloatArray:
    """Return the change of prices that gives the wished sizes if these follow in proportion."""
    sizes, mean, step = priced.sums.weights, limits.mean, np.zeros(len(prices))
    wanted = limits.wanted(prices, sizes)
    excess, flow = (sizes - wanted) / mean, _flow(rows, centers, priced, prices, mean)
    response: FloatArray = np.asarray(flow.sum(axis=1), dtype=np.float64)
    if not response.any():
        return step
    if limits.curvature > 0:
        response += ((wanted > limits.least) & (wanted < limits.most)) / (limits.curvature * mean)
    usual = float(np.median(response[response > 0]))
    # Prices of clusters far from all others, without a point at a border, stay near those that they
    # have. Nearly equal points at one border respond so much that rounding would lose the rest.
    response += np.maximum(1e-2 * usual, 1e-6 * response)
    changing = np.flatnonzero((excess != 0) | (prices != 0))
    matrix = sparse.csr_array(sparse.diags_array(response) - flow)[changing][:, changing]
    about = sparse.diags_array(1 / response[changing])
    step[changing], _ = cg(matrix, excess[changing], rtol=1e-3, maxiter=200, M=about)
    return step


def _flow(
    rows: Points, centers: FloatArray, priced: PricedLabels, prices: FloatArray, unit: float
) -> sparse.csr_array:
    """Return how many units of weight go from one cluster to another as its price rises by one."""
    n, labels = len(centers), priced.labels
    counts = rows.sample_weight(np.arange(rows.n_points))
    means = np.bincount(labels, priced.margins, n) / np.maximum(np.bincount(labels, minlength=n), 1)
    # A point is at the border where another center costs it hardly more.
    reach = 0.1 * means
    points = np.flatnonzero((priced.margins <= reach[labels]) & (reach[labels] > 0) & (counts > 0))
    own = labels[points]
    farthest = float(reach[own].max(initial=0.0))
    near = priced_of(rows).near(AskedNear(points, own, centers, prices, farthest, n_most=2))
    has_other = near.centers[:, 1] >= 0
    points, own, others = points[has_other], own[has_other], near.centers[has_other, 1]
    leaving = sparse.csr_array((counts[points] / unit / reach[own], (own, others)), shape=(n, n))
    # Points on both sides of a border tell how densely they lie there.
    return sparse.csr_array((leaving + leaving.T) / 2)
