"""Bounds for points in few dimensions: a price for each point, and what one center earns at most.

A center at c that may serve any points, each for its price less what it costs, earns
f(c) = sum_i max(0, p_i - w_i |x_i - c|^2). If f(c) <= s for every c, then any k centers c_j cost
sum_i min_j w_i |x_i - c_j|^2 >= sum_i p_i - k s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from powermeans.divergences.chunks import as_float64
from powermeans.types import AnyMatrix, BoolArray, FloatArray, IndexArray, Labels, Matrix

_MOST_PAIRS = 2_000_000  # of a box and a point in reach, about 200 bytes each
_MOST_LEVELS = 50
_EPSILON = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True)
class Market:
    """Distinct points about their mean, with their weights."""

    points: FloatArray
    weights: FloatArray
    mean: FloatArray
    firsts: IndexArray  # the first of the given points at each place

    @classmethod
    def of(cls, points: Matrix, weights: FloatArray) -> Market:
        """Return the market of some points; equal ones count as one, as some best clusters have."""
        mean = np.average(points.astype(np.float64), axis=0, weights=weights)
        _, firsts, names = np.unique(points, axis=0, return_index=True, return_inverse=True)
        merged = np.bincount(names, weights).astype(np.float64)
        return cls(points[firsts] - mean, merged, mean, firsts)

    @property
    def width(self) -> float:
        """Return the longest side of the box around all points."""
        return float(np.ptp(self.points, axis=0).max())

    def inertia(self, labels: Labels) -> float:
        """Return the inertia of a clustering about its own means."""
        labels = labels[self.firsts]
        totals = np.maximum(np.bincount(labels, self.weights), _TINY)
        means = [np.bincount(labels, self.weights * x) / totals for x in self.points.T]
        return float(self.weights @ np.square(self.points - np.stack(means, 1)[labels]).sum(axis=1))

    def lower_bound(self, prices: FloatArray, highest: float, n_clusters: int) -> float:
        """Return what every clustering costs at least, if a center earns no more than the highest.

        Each term of a sum in `highest_profit` is at most four prices.
        """
        n_features = self.points.shape[1]
        return bound_by_prices(prices, self.weights, self.width, n_features, highest, n_clusters)


def bound_by_prices(
    prices: FloatArray,
    weights: FloatArray,
    width: float,
    n_features: int,
    highest: float,
    n_clusters: int,
) -> float:
    """Return the sum of the prices less what centers earn at most, and less what rounding may add.

    Coordinates are off by some units in the last place of the width e, which moves w d^2 by
    2 w d e, with w d^2 below p.
    """
    total, weight = math.fsum(prices), math.fsum(weights)
    apart = 8 * _EPSILON * width * math.sqrt(n_features)
    rounding = 8 * _EPSILON * (len(prices) + n_features + 64) * total
    rounding += 2 * apart * math.sqrt(total * weight) + apart**2 * weight
    return total - n_clusters * (highest + rounding)


def highest_profit(
    market: Market, prices: FloatArray, reached: float, tolerance: float
) -> tuple[float, FloatArray]:
    """Return what one center earns at most, and places where it may earn nearly as much.

    Boxes are halved along each side until none may hold more than what is reached somewhere, by a
    share of the tolerance. In a box, max(0, g) is at most the chord t (g - lowest), where t is the
    highest g over the highest less the lowest, or g itself where that is positive in all of it. So
    the sum is at most one concave square, whose highest value is known.
    """
    (n_points, n_features), width = market.points.shape, market.width
    # Centers of boxes are rounded once at each level.
    half, rounding = width / 2 * (1 + 1e-12), 2 * _MOST_LEVELS * _EPSILON * width
    centers = (market.points.min(axis=0) + market.points.max(axis=0))[None] / 2
    corners = np.stack(np.meshgrid(*[[-1.0, 1.0]] * n_features), -1).reshape(-1, n_features)
    pairs = np.zeros(n_points, dtype=np.intp), np.arange(n_points)
    places: list[FloatArray] = []
    for level in range(_MOST_LEVELS):
        most, best, pairs = _most_in_boxes(market, prices, centers, half + rounding, pairs)
        leading = best[np.argpartition(-most, min(4, len(most) - 1))[:4]]
        reached = max(reached, float(profits(market, prices, leading).max()))
        is_open = most > reached * (1 + tolerance)
        if not is_open.any():
            return reached * (1 + tolerance), np.concatenate([*places[-2:], leading])
        places.append(best[is_open] if level > 3 else leading)
        box, point = pairs
        is_left = is_open[box]
        if np.count_nonzero(is_left) * len(corners) > _MOST_PAIRS:
            break  # boxes that are done hold less than those still open
        box, point = (np.cumsum(is_open) - 1)[box[is_left]], point[is_left]
        centers = (centers[is_open][:, None] + corners * half / 2).reshape(-1, n_features)
        half /= 2
        parts = box[:, None] * len(corners) + np.arange(len(corners))
        pairs = parts.ravel(), np.repeat(point, len(corners))
    return float(most.max()), np.concatenate(places[-2:])


def _most_in_boxes(
    market: Market,
    prices: FloatArray,
    centers: FloatArray,
    half: float,
    pairs: tuple[IndexArray, IndexArray],
) -> tuple[FloatArray, FloatArray, tuple[IndexArray, IndexArray]]:
    """Return the most that a center in each box earns, where, and the points in reach of each."""
    box, point = pairs
    apart = market.points[point] - centers[box]
    lengths = np.abs(apart)
    price, weight = prices[point], market.weights[point]
    highest = price - weight * np.square(np.maximum(lengths - half, 0)).sum(axis=1)
    in_reach = highest > 0
    box, point, apart, lengths, price, weight, highest = (
        part[in_reach] for part in (box, point, apart, lengths, price, weight, highest)
    )
    here = price - weight * np.square(apart).sum(axis=1)
    falls = weight * (2 * half * lengths.sum(axis=1) + lengths.shape[1] * half**2)
    lowest = np.minimum(here - falls, 0)
    chord = highest / (highest - lowest)
    n_boxes = len(centers)
    at_center = np.bincount(box, chord * (here - lowest), n_boxes)
    pull = np.bincount(box, chord * weight, n_boxes)
    slope = np.stack([np.bincount(box, chord * weight * a, n_boxes) for a in apart.T], axis=1)
    moved = np.clip(slope / np.maximum(pull, _TINY)[:, None], -half, half)
    most = at_center + ((2 * slope - pull[:, None] * moved) * moved).sum(axis=1)
    return most, centers + moved, (box, point)


def profits(market: Market, prices: FloatArray, places: FloatArray) -> FloatArray:
    """Return what a center earns at each place, with all digits of the distances."""
    sq_dist = np.square(market.points - places[:, None]).sum(axis=2)
    found: FloatArray = np.maximum(prices - market.weights * sq_dist, 0).sum(axis=1)
    return found


@dataclass(frozen=True, slots=True)
class Offers:
    """Sets of points that one center may serve."""

    places: FloatArray  # (n_offers, n_features)
    members: sparse.csr_array  # (n_offers, n_points), 1 where a point is served
    costs: FloatArray  # (n_offers,)
    shares: FloatArray  # how much each is used, k in all
    n_idle: IndexArray  # rounds since it was used

    @classmethod
    def at(cls, market: Market, prices: FloatArray, places: FloatArray, n_steps: int) -> Offers:
        """Return the offers of centers that move some steps uphill from these places."""
        members, costs = _served(market, prices, places)
        for _ in range(n_steps):
            total = (members @ market.weights)[:, None]
            means = members @ (market.weights[:, None] * market.points) / np.maximum(total, _TINY)
            places = np.where(total > 0, means, places)
            members, costs = _served(market, prices, places)
        nothing = np.zeros(len(places))
        return cls(places, members, costs, nothing, nothing.astype(np.intp))

    def profits(self, prices: FloatArray) -> FloatArray:
        """Return what each earns."""
        return self.members @ prices - self.costs

    def chosen(self, which: IndexArray | BoolArray) -> Offers:
        """Return some of them."""
        return Offers(
            self.places[which],
            self.members[which],
            self.costs[which],
            self.shares[which],
            self.n_idle[which],
        )

    def joined(self, other: Offers) -> Offers:
        """Return these and others, each set of points once."""
        both = Offers(
            np.concatenate([self.places, other.places]),
            sparse.vstack([self.members, other.members], format="csr"),
            np.concatenate([self.costs, other.costs]),
            np.concatenate([self.shares, other.shares]),
            np.concatenate([self.n_idle, other.n_idle]),
        )
        signs = np.random.default_rng(0).random(self.members.shape[1])
        _, firsts = np.unique(both.members @ signs, return_index=True)
        return both.chosen(np.sort(firsts))


def _served(
    market: Market, prices: FloatArray, places: FloatArray
) -> tuple[sparse.csr_array, FloatArray]:
    """Return which points each center serves, since they pay more than they cost, and the cost."""
    paying = np.flatnonzero(prices > 0)
    reach = np.sqrt(prices / market.weights)
    # Points of a like reach share a tree, so that one that reaches far does not slow down all.
    bands = np.log2(reach[paying] / np.median(reach[paying])) if len(paying) else np.empty(0)
    bands = np.clip(bands, -1, 4).astype(np.intp)
    tree_of_places = cKDTree(places)
    found = [(paying[:0], paying[:0], prices[:0])]
    for band in np.unique(bands):
        points = paying[bands == band]
        tree = cKDTree(market.points[points])
        pairs = tree_of_places.sparse_distance_matrix(
            tree, float(reach[points].max()), output_type="ndarray"
        )
        point = points[pairs["j"]]
        costs = market.weights[point] * np.square(pairs["v"])
        is_served = costs < prices[point]
        found.append((pairs["i"][is_served], point[is_served], costs[is_served]))
    place, point, costs = (np.concatenate(parts) for parts in zip(*found, strict=True))
    shape = len(places), len(prices)
    members = sparse.csr_array((np.ones(len(place)), (place, point)), shape=shape)
    return members, np.bincount(place, costs, len(places)).astype(np.float64)


def rising_bounds_by_prices(
    market: Market, centers: FloatArray, is_over: Callable[[], bool]
) -> Iterator[float]:
    """Yield ever better lower bounds, until they hardly rise any more or time is over."""
    search = PriceSearch(market, centers - market.mean, is_over)
    n_stalled, former = 0, search.best
    while n_stalled < 60:
        yield search.best
        if search.cost == 0 or is_over():
            return
        search.step()
        is_better = search.best > former + 0.01 * (search.cost - former)
        n_stalled, former = (0, search.best) if is_better else (n_stalled + 1, former)


class PriceSearch:
    """A proximal bundle method: prices that maximize a model, near the best ones so far.

    The model knows some offers, and so takes a center to earn less than it can.
    """

    def __init__(self, market: Market, centers: FloatArray, is_over: Callable[[], bool]) -> None:
        self.market, self.n_clusters = market, len(centers)
        self.rng = np.random.default_rng(0)
        self.best, self.n_unproved = -math.inf, 0
        self.prices = np.zeros(len(market.weights))
        first = self._begin(centers, is_over)
        of_weight = self.prices / market.weights
        self.reach = 0.1 * float(np.median(of_weight[of_weight > 0])) if of_weight.any() else 1.0
        found, self.of_prices = self._prove(self.prices, first, 0.01)
        self.offers = first.joined(found)
        self.offers.shares[:] = self.n_clusters / len(self.offers.costs)

    def _begin(self, centers: FloatArray, is_over: Callable[[], bool]) -> Offers:
        """Choose the first prices, and return offers at them.

        Each center earns the same from its own points, the more of it by those that are far from
        all others: what a point pays beyond its second nearest center, others would earn too.
        """
        distances, order = cKDTree(centers).query(self.market.points, k=2)
        (nearest, second), labels = np.square(distances).T, np.asarray(order)[:, 0]
        spare = self.market.weights * (second - nearest)
        self.cost = float(self.market.weights @ nearest)
        earned = np.bincount(labels, spare, self.n_clusters)
        some = self.rng.permutation(len(labels))[: 3 * self.n_clusters]
        places = np.concatenate([centers, self.market.points[some]])
        self.of_prices = -math.inf  # the value of the prices, as far as offers are known
        for share in 0.5 ** np.arange(24):
            goal = max(share * float(np.median(earned)), _TINY)
            scale = goal / np.maximum(earned, goal)
            prices = self.market.weights * nearest + spare * scale[labels]
            tried = Offers.at(self.market, prices, places, 3)
            value = prices.sum() - self.n_clusters * float(tried.profits(prices).max(initial=0.0))
            if value > self.of_prices:
                self.prices, self.of_prices, found = prices, value, tried
            elif self.of_prices > 0:
                break
            if is_over():
                break
        return found

    def step(self) -> None:
        """Maximize the model, ask what centers earn at its prices, and prove what is promising."""
        prices, shares = self._prices_of_model()
        is_idle = shares == 0
        n_idle = np.where(is_idle, self.offers.n_idle + 1, 0)
        offers = Offers(self.offers.places, self.offers.members, self.offers.costs, shares, n_idle)
        earned = offers.profits(prices)
        of_model = prices.sum() - self.n_clusters * earned.max(initial=0.0)
        leading = np.argsort(-earned)[: 6 * self.n_clusters]
        found = self._found_from(offers.places[leading], prices, 2, 3 * self.n_clusters)
        value = prices.sum() - self.n_clusters * found.profits(prices).max(initial=0.0)
        self.n_unproved += 1
        lacking = max(self.cost - self.best, 0.0)
        if value > self.best + 0.15 * lacking or self.n_unproved == 8:
            # What the proof may lose is small beside what is lacking, and beside what it may gain.
            loss = 0.05 * max(self.cost - value, 0.0)
            loss = min(loss, 0.2 * (value - self.best)) if value > self.best else loss
            share = loss / max(loss + prices.sum() - value, _TINY)
            more, value = self._prove(prices, found, min(0.01, max(1e-12, share)))
            found = found.joined(more)
        # An offer found since may earn more at the former prices than was known.
        earned = np.append(offers.profits(self.prices), found.profits(self.prices))
        former = self.prices.sum() - self.n_clusters * earned.max(initial=0.0)
        self.of_prices = min(self.of_prices, former)
        if value > self.of_prices + 0.1 * max(of_model - self.of_prices, 0):
            self.prices, self.of_prices = prices, value
            self.reach *= 1.5
        else:
            self.reach *= 0.8
        self.offers = offers.chosen(n_idle < 8).joined(found)

    def _prove(self, prices: FloatArray, found: Offers, tolerance: float) -> tuple[Offers, float]:
        """Prove a bound; return offers that it came across, and the value at these prices."""
        reached = float(found.profits(prices).max(initial=0.0))
        highest, places = highest_profit(self.market, prices, reached * (1 - 1e-9), tolerance)
        self.best = max(self.best, self.market.lower_bound(prices, highest, self.n_clusters))
        self.n_unproved = 0
        drawn = self.rng.permutation(len(places))[: 2 * self.n_clusters]
        more = self._found_from(places[drawn], prices, 3, 3 * self.n_clusters)
        reached = max(reached, float(more.profits(prices).max(initial=0.0)))
        return more, prices.sum() - self.n_clusters * reached

    def _found_from(
        self, places: FloatArray, prices: FloatArray, n_steps: int, n_most: int
    ) -> Offers:
        """Return offers uphill from these places that earn most, each once."""
        found = Offers.at(self.market, prices, places, n_steps)
        found = found.chosen(np.arange(0)).joined(found)
        earned = found.profits(prices)
        order = np.argsort(-earned)[:n_most]
        return found.chosen(order[earned[order] > 0.6 * earned[order[0]]])

    def _prices_of_model(self) -> tuple[FloatArray, FloatArray]:
        """Maximize the model less |p - prices|^2 / (2 reach), in the dual, by 150 fast steps."""
        members, weights = self.offers.members, self.market.weights
        transposed = sparse.csr_array(members.T)
        above = self.offers.profits(self.prices)
        vector: FloatArray = np.ones(len(above))
        for _ in range(8):
            vector = members @ (weights * (transposed @ vector))
            norm = float(np.linalg.norm(vector))
            if norm == 0:  # no offer serves a point
                return self.prices, self.offers.shares
            vector /= norm
        step, momentum = 1 / (1.05 * self.reach * norm), 1.0
        shares = ahead = self.offers.shares * (self.n_clusters / self.offers.shares.sum())
        for _ in range(150):
            unserved = self.reach * weights * (1 - transposed @ ahead)
            new = on_simplex(ahead + step * (above + members @ unserved), self.n_clusters)
            if (ahead - new) @ (new - shares) > 0:
                momentum = 1.0
            following = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
            ahead = new + (momentum - 1) / following * (new - shares)
            shares, momentum = new, following
        prices = self.prices + self.reach * weights * (1 - transposed @ shares)
        return np.maximum(prices, 0), shares


def on_simplex(values: FloatArray, total: float) -> FloatArray:
    """Return the nearest numbers of at least zero with this total."""
    falling = np.sort(values - values.max())[::-1]
    shifts = (np.cumsum(falling) - total) / np.arange(1, len(values) + 1)
    shift = shifts[np.flatnonzero(falling > shifts)[-1]]
    found: FloatArray = np.maximum(values - values.max() - shift, 0)
    return found


# A bound for clusters far apart: points of two of them are too far from each other for one center.
#
# Let each point have a price p_i, and let W(S) = sum_(i in S) w_i |x_i - m_S|^2 be the cost of a
# set S about its mean m_S. If sum_(i in S) p_i <= W(S) + s for every S, then k clusters S_j cost
# sum_j W(S_j) >= sum_i p_i - k s. The prices here leave just s to each of the clusters given, and
# nothing to points that would share a center with those of others.

_MOST_VALUES = 2**26  # of one cluster, which is copied as float64
_MOST_EIGENVALUES = 1500  # beyond, the root of their sum of squares is near enough
_MOST_AT_ONCE = 2**22  # projections
_MOST_CLUSTERS = 3000  # each of which is compared with all others


def bound_of_clusters_apart(
    points: AnyMatrix,
    weights: FloatArray,
    labels: Labels,
    n_clusters: int,
    is_late: Callable[[], bool],
) -> float:
    """Return a bound on the inertia of so many clusters, zero where time is over before.

    It is the inertia of the clusters given where these lie far enough apart.
    """
    order = np.argsort(labels, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    n_features = points.shape[1]
    if max(map(len, members)) * n_features > _MOST_VALUES or len(members) > _MOST_CLUSTERS:
        return 0.0
    means = np.stack([_mean(points, weights, mine) for mine in members])
    lengths, most = cdist(means, means), 0.0
    sq_dist, reach = np.empty(len(labels)), np.zeros_like(lengths)
    for place, mine in enumerate(members):
        residuals = as_float64(points[mine]) - means[place]
        sq_dist[mine] = np.einsum("if,if->i", residuals, residuals)
        most = max(most, _most_between_halves(residuals, weights[mine]))
        ways = _on_the_way(residuals, means - means[place], lengths[place])
        reach[place] = np.max([some.max(axis=0) for some in ways], axis=0)
        if is_late():
            return 0.0
    width = float(lengths.max() + 2 * math.sqrt(sq_dist.max()))
    left = lengths - reach.T - 32 * _EPSILON * width * math.sqrt(n_features)
    np.fill_diagonal(left, np.inf)
    prices = np.empty(len(labels))
    for place, mine in enumerate(members):
        residuals = as_float64(points[mine]) - means[place]
        ways = _on_the_way(residuals, means - means[place], lengths[place])
        nearest = np.concatenate([(left[place] - some).min(axis=1) for some in ways])
        wanted = sq_dist[mine] + most / weights[mine].sum()
        affordable = np.square(np.maximum(nearest, 0.0)) / 2
        prices[mine] = weights[mine] * np.minimum(wanted, affordable)
        if is_late():
            return 0.0
    # Means far from the origin are rounded, and are not quite means any more.
    off = n_features * (4 * _EPSILON * float(np.abs(means).max())) ** 2 * float(weights.sum())
    return bound_by_prices(prices, weights, width, n_features, most + off, n_clusters)


def _mean(points: AnyMatrix, weights: FloatArray, rows: IndexArray) -> FloatArray:
    some = as_float64(points[rows])
    first = some[0].copy()
    return np.asarray(first + np.average(some - first, axis=0, weights=weights[rows]))


def _most_between_halves(residuals: FloatArray, weights: FloatArray) -> float:
    """Return what a cluster costs at most more than its two halves, however it is divided.

    That is the square of the weighted points along a vector of length one, and at most the largest
    eigenvalue of their products.
    """
    scaled = np.sqrt(weights)[:, None] * residuals
    products = scaled @ scaled.T if len(scaled) < scaled.shape[1] else scaled.T @ scaled
    rounding = 8 * _EPSILON * (sum(scaled.shape) + 16) * float(np.trace(products))
    if len(products) > _MOST_EIGENVALUES:
        return float(np.linalg.norm(products)) + rounding
    return float(linalg.eigvalsh(products, check_finite=False)[-1]) + rounding


def _on_the_way(
    residuals: FloatArray, lines: FloatArray, lengths: FloatArray
) -> Iterator[FloatArray]:
    """Yield how far some points at a time lie from their mean towards each of the other means."""
    units = np.divide(lines, lengths[:, None], out=np.zeros_like(lines), where=lengths[:, None] > 0)
    n_at_once = max(1, _MOST_AT_ONCE // len(lines))
    for start in range(0, len(residuals), n_at_once):
        yield residuals[start : start + n_at_once] @ units.T
