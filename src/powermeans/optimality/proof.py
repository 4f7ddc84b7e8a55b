"""How far a clustering is from the optimum at most: bounds of all points, or of subsets."""

import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from powermeans.divergences.chunks import as_float64
from powermeans.errors import ArgumentError
from powermeans.optimality.gap import CLOSED, Method, OptimalityGap
from powermeans.optimality.line import Line, line_through
from powermeans.optimality.prices import Market, bound_of_clusters_apart, rising_bounds_by_prices
from powermeans.optimality.relaxation import Relaxation, principal_bound, rising_bounds
from powermeans.system.threads import blas_on_one_thread
from powermeans.types import AnyMatrix, Chunks, FloatArray, IndexArray, Labels

_MOST_CLUSTERS = 500
_MOST_AT_ONCE = 600  # points with a matrix for all pairs, if there are few clusters
_ROUNDING = 2.0**-48  # of sums over pieces
_ROUNDING_OF_LINE = 1e-8  # compiled code takes twice the digits where it might be more

Tell = Callable[[OptimalityGap], object]


@dataclass(frozen=True, slots=True)
class Clustering:
    """Points of positive weight with their centers."""

    points: AnyMatrix
    weights: FloatArray
    centers: FloatArray
    labels: Labels


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to search, and for what."""

    max_seconds: float
    confidence: float | None
    seed: int
    n_threads: int
    tell: Tell | None = None


def prove(clustering: Clustering, effort: Effort) -> OptimalityGap:
    """Return the best bound found in time; Ctrl-C ends the search early."""
    started = time.monotonic()
    (n_points, n_features), n_clusters = clustering.points.shape, len(clustering.centers)
    line = line_through(clustering.points, clustering.weights)
    if line is not None:
        return _exact_gap(clustering, line, started)
    with blas_on_one_thread():
        apart = _apart(clustering, effort, started)
        if apart.gap <= CLOSED or apart.was_interrupted:
            return apart
        _refuse_many(n_clusters)
        rng = np.random.default_rng(effort.seed)
        n_subsets = _number_of_subsets(n_points, n_features, n_clusters)
        members, inertias, inertia = _divided(clustering, n_subsets, rng)
        order = rng.permutation(n_subsets)
        search = _Search(clustering, members, inertias, inertia, effort, started, order, apart)
        return search.run()


def _apart(clustering: Clustering, effort: Effort, started: float) -> OptimalityGap:
    """Return what follows from how far the clusters lie apart."""
    points, weights, labels = clustering.points, clustering.weights, clustering.labels
    n_clusters, ends = len(clustering.centers), started + effort.max_seconds
    terms = (
        math.fsum(weights[rows] * np.einsum("if,if->i", residuals, residuals))
        for rows, residuals in residuals_in_blocks(points, clustering.centers, labels)
    )
    inertia = math.fsum(terms)
    found, was_interrupted = 0.0, False
    try:
        found = bound_of_clusters_apart(
            points, weights, labels, n_clusters, lambda: time.monotonic() >= ends
        )
    except KeyboardInterrupt:
        was_interrupted = True
    bound, seconds = min(max(found, 0.0), inertia), time.monotonic() - started
    return OptimalityGap(
        inertia=inertia,
        bound=bound,
        method="clusters apart",
        confidence=None,
        n_subsets=1,
        n_searched=1,
        seconds=seconds,
        was_interrupted=was_interrupted,
        history=((seconds, bound),),
    )


def _exact_gap(clustering: Clustering, line: Line, started: float) -> OptimalityGap:
    """Return how far the centers are from the optimum of points on a line."""
    _, _, inertia = _divided(clustering, 1, np.random.default_rng(0))
    optimum = line.least_inertia(line.division(len(clustering.centers)))
    return OptimalityGap(
        inertia=inertia,
        bound=min(optimum * (1 - _ROUNDING_OF_LINE), inertia),
        method="line",
        confidence=None,
        n_subsets=1,
        n_searched=1,
        seconds=time.monotonic() - started,
    )


def _number_of_subsets(n_points: int, n_features: int, n_clusters: int) -> int:
    """Return how many there are: the smaller, the faster, and the less alike all points."""
    if _has_prices(n_points, n_features, n_clusters):
        return max(1, n_points // 10_000)
    size = max(200, min(20 * n_clusters, 400), 4 * n_clusters)
    return 1 if n_points <= max(_MOST_AT_ONCE, min(2 * size, 1000), size) else n_points // size


def _has_prices(n_points: int, n_features: int, n_clusters: int) -> bool:
    """Return whether a price for each point is better than what is said of pairs of points."""
    is_narrow = n_features <= 2 or (n_features <= 4 and n_points <= _MOST_AT_ONCE)
    return is_narrow and n_clusters > 1


def _refuse_many(n_clusters: int) -> None:
    if n_clusters > _MOST_CLUSTERS:
        raise ArgumentError(
            f"centers are more than the {_MOST_CLUSTERS} for which a bound is searched for, since "
            "subsets of some points for each would have matrices of thousands of rows",
            "judge fewer centers, or compare the inertia with that of other methods",
            argument="n_clusters",
            value=n_clusters,
        )


def _divided(
    clustering: Clustering, n_subsets: int, rng: np.random.Generator
) -> tuple[list[IndexArray], FloatArray, float]:
    """Return the points of each subset, their inertia about the given centers, and that of all."""
    points, weights, labels = clustering.points, clustering.weights, clustering.labels
    turned = directions(points.shape[1], rng)
    sq_dist, seen = np.empty(len(labels)), []
    for rows, residuals in residuals_in_blocks(points, clustering.centers, labels):
        sq_dist[rows] = np.einsum("if,if->i", residuals, residuals)
        seen.append(weights[rows, None] * (residuals if turned is None else residuals @ turned))
    terms = weights * sq_dist
    members = [np.arange(len(labels))]
    if n_subsets > 1:
        members = deal(np.concatenate(seen), terms, labels, n_subsets, rng)
    return members, np.array([math.fsum(terms[mine]) for mine in members]), math.fsum(terms)


@dataclass(slots=True)
class _Search:
    """The bounds of all pieces, raised one after the other on several threads."""

    clustering: Clustering
    members: list[IndexArray]  # of each piece
    inertias: FloatArray  # of each piece, about the given centers
    inertia: float
    effort: Effort
    started: float  # on the monotonic clock
    order: IndexArray  # of the pieces, drawn at random
    apart: OptimalityGap  # what is known before
    bounds: FloatArray = field(init=False)  # of each piece, certain at any time
    most_above: float = field(default=0.0, init=False)  # of inertia over bound, before the search
    n_searched: int = field(default=0, init=False)  # the first of the order, whose search has ended
    by_sample: float = field(default=0.0, init=False)
    is_over: threading.Event = field(default_factory=threading.Event, init=False)
    history: list[tuple[float, float]] = field(default_factory=list, init=False)
    searches: list[Future[Any]] = field(default_factory=list, init=False)  # that may be under way

    def __post_init__(self) -> None:
        self.bounds = np.zeros(len(self.order))

    def run(self) -> OptimalityGap:
        """Search until nothing is left to gain, or time is over."""
        was_interrupted = False
        with ThreadPoolExecutor(min(self.effort.n_threads, len(self.order))) as executor:
            try:
                self._search_on(executor)
            except KeyboardInterrupt:
                was_interrupted = True
            finally:
                was_interrupted |= self._end()
        return replace(self._so_far(), was_interrupted=was_interrupted)

    def _end(self) -> bool:
        """Wait for the step that each thread is in, and return whether Ctrl-C was pressed."""
        self.is_over.set()  # also for what has not begun
        was_interrupted = False
        while True:
            # Not by joining threads: a join that Ctrl-C interrupts may take a thread for dead.
            try:
                wait(self.searches)
            except KeyboardInterrupt:
                was_interrupted = True
            else:
                return was_interrupted

    def _seconds(self) -> float:
        return time.monotonic() - self.started

    def _is_late(self) -> bool:
        return self.is_over.is_set() or self._seconds() >= self.effort.max_seconds

    def _points_in(self, piece: int) -> tuple[AnyMatrix, FloatArray, int]:
        mine, clustering = self.members[piece], self.clustering
        return clustering.points[mine], clustering.weights[mine], len(clustering.centers)

    def _search_on(self, executor: ThreadPoolExecutor) -> None:
        for piece in self.order:
            self.searches.append(executor.submit(self._begin_in, piece))
        for beginning in self.searches:
            beginning.result()
        self.most_above = float((self.inertias - self.bounds).max())
        self.searches = []
        for place in range(len(self.order)):
            self.searches.append(executor.submit(self._search_in, place))
        for search in self.searches:
            self._wait_for(search)
            if not search.result():
                break
            self.n_searched += 1
            if self._tell():
                break

    def _begin_in(self, piece: int) -> None:
        """Bound one piece by its principal components."""
        if not self._is_late():
            self.bounds[piece] = max(0.0, principal_bound(*self._points_in(piece)))

    def _wait_for(self, search: Future[bool]) -> None:
        while True:
            try:
                search.result(timeout=0.2)
            except NotYet:
                if self._tell():
                    self.is_over.set()
            else:
                return

    def _tell(self) -> bool:
        so_far = self._so_far()
        answer = None if self.effort.tell is None else self.effort.tell(so_far)
        return so_far.gap <= CLOSED or (isinstance(answer, bool | np.bool_) and bool(answer))

    def _search_in(self, place: int) -> bool:
        """Raise the bound of one piece, and return whether there was time to begin."""
        if self._is_late():
            return False
        piece = int(self.order[place])
        closed = CLOSED if len(self.order) == 1 else 1e-3
        asked = self._seconds()
        ends, longest = asked + self._seconds_for(place), 0.0

        def is_over() -> bool:
            """Return whether another step as long as the longest so far would end too late."""
            nonlocal asked, longest
            before, asked = asked, self._seconds()
            longest = max(longest, asked - before)
            is_late = asked >= ends or asked + longest > self.effort.max_seconds
            return is_late or self.is_over.is_set()

        for bound, least in self._rising_bounds(piece, is_over):
            self.bounds[piece] = max(self.bounds[piece], bound)
            if self.bounds[piece] >= (1 - closed) * min(least, self.inertias[piece]):
                break
        return True

    def _rising_bounds(
        self, piece: int, is_over: Callable[[], bool]
    ) -> Iterator[tuple[float, float]]:
        """Yield bounds of one piece, each with what the clustering costs about its own means."""
        points, weights, n_clusters = self._points_in(piece)
        labels = self.clustering.labels[self.members[piece]]
        # Of all points, since the pieces of more must not differ in kind.
        n_points, n_features = self.clustering.points.shape
        has_prices = _has_prices(n_points, n_features, n_clusters)
        if has_prices:
            market = Market.of(points.toarray() if sparse.issparse(points) else points, weights)
            least = market.inertia(labels)
            for bound in rising_bounds_by_prices(market, self.clustering.centers, is_over):
                yield bound, least
        if not has_prices or (len(weights) <= _MOST_AT_ONCE and not is_over()):
            relaxation = Relaxation.of(points, weights, n_clusters)
            least = relaxation.inertia(labels)
            for bound in rising_bounds(relaxation, labels, is_over):
                yield bound, least

    def _seconds_for(self, place: int) -> float:
        """Share out the time that is left."""
        n_left = len(self.order) - place
        if self.effort.confidence is not None:
            n_left = min(n_left, max(1, 200 - place))  # a sample of 200 is enough
        left = self.effort.max_seconds - self._seconds()
        return left * min(1.0, self.effort.n_threads / n_left)

    def _so_far(self) -> OptimalityGap:
        """Return what is proved by now; bounds of pieces add up to a bound."""
        n_pieces, inertia = len(self.order), self.inertia
        certain = math.fsum(self.bounds) * (1 - _ROUNDING)
        if self.effort.confidence is not None and 0 < self.n_searched < n_pieces:
            self.by_sample = max(self.by_sample, self._bound_by_sample(self.effort.confidence))
        is_sampled = self.by_sample > certain
        bound = min(self.by_sample if is_sampled else certain, inertia)
        if self.apart.bound > bound:
            return replace(self.apart, seconds=self._seconds())
        if not self.history or bound > self.history[-1][1]:
            self.history.append((self._seconds(), bound))
        method: Method = "all points" if n_pieces == 1 else "subsets"
        return OptimalityGap(
            inertia=inertia,
            bound=bound,
            method="sample of subsets" if is_sampled else method,
            confidence=self.effort.confidence if is_sampled else None,
            n_subsets=n_pieces,
            n_searched=self.n_searched,
            seconds=self._seconds(),
            history=tuple(self.history),
        )

    def _bound_by_sample(self, confidence: float) -> float:
        """Return a bound from those pieces whose search has ended.

        Only their final bounds count, each once: what is bet on the next piece must not change
        after it was drawn.
        """
        drawn = self.order[: self.n_searched]
        above = self.inertias[drawn] - self.bounds[drawn]
        shares = np.clip(above / self.most_above, 0, 1) if self.most_above > 0 else 0 * above
        most = highest_mean(shares, len(self.order), confidence) * len(self.order)
        return self.inertia * (1 - _ROUNDING) - self.most_above * most * (1 + _ROUNDING)


# Subsets that resemble all points, so that the sum of their bounds loses little.


# Residuals in more dimensions than this are balanced along random directions.
_MOST_DIRECTIONS = 32


def residuals_in_blocks(points: AnyMatrix, centers: FloatArray, labels: Labels) -> Chunks:
    """Yield what remains of some points at a time without the center of their label, in float64."""
    n_at_once = max(1, 2**18 // max(16, points.shape[1]))
    for start in range(0, points.shape[0], n_at_once):
        rows = slice(start, start + n_at_once)
        yield rows, as_float64(points[rows]) - centers[labels[rows]]


def deal(
    residuals: FloatArray,  # (n_points, n_directions), weighted
    sq_dist: FloatArray,  # to the center, (n_points,)
    labels: Labels,
    n_subsets: int,
    rng: np.random.Generator,
) -> list[IndexArray]:
    """Return the points of each subset, each of which has its share of every cluster.

    Points are dealt out from the farthest to the nearest, one to each subset in a round, so that
    the sum of the residuals of each subset and cluster stays near zero. Then the mean of the
    cluster in the subset is near its center, which is what the bound of a subset would lose.
    """
    # The work to balance subsets against each other grows with the square of their number.
    n_groups = -(-n_subsets // 64)
    group_of = np.empty(len(labels), dtype=np.intp)
    subset_of = np.empty(len(labels), dtype=np.intp)
    firsts = np.linspace(0, n_subsets, n_groups + 1).astype(np.intp)
    by_cluster = np.lexsort((-sq_dist, labels))
    # In proportion to the number of subsets in each group.
    places = np.repeat(np.arange(n_groups), np.diff(firsts))
    for members in np.split(by_cluster, np.flatnonzero(np.diff(labels[by_cluster])) + 1):
        turns = np.concatenate(
            [rng.permutation(places) for _ in range(-(-len(members) // n_subsets))]
        )
        group_of[members] = turns[: len(members)]
        for group in range(n_groups):
            mine = members[group_of[members] == group]
            n_here = int(firsts[group + 1] - firsts[group])
            subset_of[mine] = firsts[group] + _dealt(residuals[mine], n_here, rng)
    order = np.argsort(subset_of, kind="stable")
    return np.split(order, np.searchsorted(subset_of[order], np.arange(1, n_subsets)))


def _dealt(residuals: FloatArray, n_subsets: int, rng: np.random.Generator) -> IndexArray:
    """Return the subset of each point of one cluster, given from the farthest to the nearest."""
    sums = np.zeros((n_subsets, residuals.shape[1]))
    found = np.empty(len(residuals), dtype=np.intp)
    for start in range(0, len(residuals), n_subsets):
        block = residuals[start : start + n_subsets]
        # |sum + x|^2 less what does not depend on who gets x.
        costs = 2 * block @ sums.T + np.square(block).sum(axis=1)[:, None]
        if start == 0:
            costs = rng.random(costs.shape)
        _, chosen = linear_sum_assignment(costs)
        sums[chosen] += block
        found[start : start + n_subsets] = chosen
    return found


def directions(n_features: int, rng: np.random.Generator) -> FloatArray | None:
    """Return directions to balance residuals along; None for those of the features."""
    if n_features <= _MOST_DIRECTIONS:
        return None
    return rng.standard_normal((n_features, _MOST_DIRECTIONS))


def highest_mean(shares: FloatArray, n_all: int, confidence: float) -> float:
    """Return what the mean of n_all numbers in [0, 1] is at most, at a confidence.

    The shares were drawn without replacement, in this order. If the mean were m, a gambler who bets
    on small shares would not multiply the capital by 1 / (1 - confidence) but with that
    probability, whenever the draws stop (Waudby-Smith & Ramdas 2024, section 5).
    """
    bets = _bets(shares, confidence)
    seen = np.concatenate([[0.0], np.cumsum(shares)[:-1]])
    left = n_all - np.arange(len(shares))

    def is_refuted(mean: float) -> bool:
        gains = 1 + bets * ((n_all * mean - seen) / left - shares)
        with np.errstate(divide="ignore", invalid="ignore"):
            # A capital that is lost once stays lost.
            capital = np.cumsum(np.where(np.minimum.accumulate(gains) > 0, np.log(gains), -np.inf))
        return bool(capital.max(initial=-np.inf) >= -np.log1p(-confidence))

    # What is seen already is certain, and the rest is at most 1 each.
    low, high = 0.0, min(1.0, float(shares.sum() + n_all - len(shares)) / n_all)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if is_refuted(middle) else (middle, high)
    return high


def _bets(shares: FloatArray, confidence: float) -> FloatArray:
    """Return the bet on each draw, from the draws before it."""
    n_before = np.arange(len(shares))
    sums = np.concatenate([[0.0], np.cumsum(shares)[:-1]])
    means = (0.5 + sums) / (n_before + 1)
    squares = np.concatenate([[0.0], np.cumsum(np.square(shares - means))[:-1]])
    variances = (0.25 + squares) / (n_before + 1)
    growth = -2 * np.log1p(-confidence) / (variances * (n_before + 1) * np.log(n_before + 2))
    # Above 1 a share of 1 could cost more than the whole capital.
    bets: FloatArray = np.minimum(np.sqrt(growth), 1.0)
    return bets
