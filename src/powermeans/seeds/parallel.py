"""Seeds in a few passes over many points: k-means||, and draws at random.

All points run a race. The time of each is exponential, with a rate in proportion to its chance, so
that the first to arrive are a sample without replacement. The first of all are among the first of
the parts. The random number of a point depends only on its row, so that the sample does not depend
on how the rows are cut into parts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from powermeans.divergences import Divergence
from powermeans.parts.checkpoint import recorded
from powermeans.parts.parted_rows import PartedRows
from powermeans.rows import open_rows
from powermeans.rows.protocol import Rows
from powermeans.seeds.choose import choose_seeds
from powermeans.types import FloatArray, IndexArray

# Philox makes this many random numbers at a time, and advances by as many.
_NUMBERS_AT_A_TIME = 4


@dataclass(frozen=True, slots=True)
class ParallelSeeds:
    """k-means||: seeds from candidates that are found in a few passes (Bahmani and others 2012).

    Pass it as `init`. In each round every point may become a candidate, with a chance in
    proportion to its weight and its squared distance to the candidates so far. A candidate weighs
    as much as the points nearest to it, and greedy k-means++ chooses the seeds among them. With
    rows in parts ``init="k-means++"`` does the same.

    Parameters
    ----------
    n_rounds : int, default=5
        How many rounds there are. Each is a pass over the rows.
    oversampling : float, default=2.0
        How many candidates a round finds for each seed.

    See Also
    --------
    open_data : Rows that need not fit into memory, which these seeds are for.
    kmeans_plusplus : Seeds of points in memory.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans import KMeans, ParallelSeeds
    >>> X = np.array([[1.0], [2.0], [10.0], [11.0]])
    >>> model = KMeans(2, init=ParallelSeeds(n_rounds=3), random_state=0).fit(X)
    >>> np.sort(model.cluster_centers_, axis=0)
    array([[ 1.5],
           [10.5]])
    """

    n_rounds: int = 5
    oversampling: float = 2.0

    def __post_init__(self) -> None:
        if self.n_rounds < 1:
            raise ValueError(f"n_rounds={self.n_rounds!r} must be at least 1: pass for example 5")
        if not 0 < self.oversampling < math.inf:
            raise ValueError(
                f"oversampling={self.oversampling!r} must be positive and finite: pass for "
                "example 2.0"
            )
        if self.n_rounds * self.oversampling < 1:
            raise ValueError(
                f"n_rounds={self.n_rounds!r} times oversampling={self.oversampling!r} is less "
                "than one candidate for each seed: raise one of them"
            )

    def __call__(
        self, X: FloatArray, n_clusters: int, random_state: np.random.RandomState
    ) -> FloatArray:
        """Return seeds among points in memory."""
        rows = open_rows(np.ascontiguousarray(X))
        return self.candidates(rows, n_clusters, random_state).seeds(n_clusters, random_state, 1)

    def candidates(
        self,
        rows: Rows,
        n_clusters: int,
        rng: np.random.RandomState,
        *,
        divergence: Divergence = "squared_euclidean",
    ) -> Candidates:
        """Return the candidates of all rounds; the divergence is that of the rows."""
        n_drawn = math.ceil(self.oversampling * n_clusters)
        if rows.n_points <= self.n_rounds * n_drawn:
            everything = np.arange(rows.n_points)
            weights = rows.sample_weight(everything)
            return Candidates(rows.take(everything), weights, rows, divergence)
        found = np.empty((0, rows.n_features))
        for _ in range(self.n_rounds):
            drawn = first_of_race(rows, found, n_drawn, rng.randint(2**31 - 1))
            found = np.concatenate([found, drawn])
            if not len(drawn):
                break  # every point is at a candidate
        return Candidates(found, _total(rows, _WeightsNearest(found)), rows, divergence)


@dataclass(frozen=True, slots=True)
class Candidates:
    """Points that stand for all, with the weights of those nearest to them.

    Attributes
    ----------
    origin : Rows
        Whose points they are.
    """

    points: FloatArray
    weights: FloatArray
    origin: Rows
    divergence: Divergence = "squared_euclidean"

    def seeds(self, n_clusters: int, rng: np.random.RandomState, n_candidates: int) -> FloatArray:
        """Return seeds by k-means++ among them; see `powermeans.seeds.choose.choose_seeds`."""
        rows = open_rows(self.points, self.weights, n_threads=1, divergence=self.divergence)
        centers, _ = choose_seeds(rows, n_clusters, rng, n_candidates=n_candidates)
        return centers


def first_of_race(rows: Rows, centers: FloatArray, n_drawn: int, key: int) -> FloatArray:
    """Draw points without replacement by weight times squared distance to the nearest center.

    Without centers the weight decides. There are fewer than `n_drawn` where all others are at a
    center. The key is that of the random numbers.
    """
    return _arrived(rows, _Race(centers, n_drawn, key, starts_of(rows)))


def distinct_places(rows: Rows, n_drawn: int, rng: np.random.RandomState) -> FloatArray:
    """Draw places by the weight of the points there, in one pass that holds `n_drawn` of them.

    No place is drawn twice unless there are too few.
    """
    nowhere, key = np.empty((0, rows.n_features)), rng.randint(2**31 - 1)
    places = _arrived(rows, _Race(nowhere, n_drawn, key, starts_of(rows), is_of_places=True))
    return np.resize(places, (n_drawn, rows.n_features))


def _arrived(rows: Rows, race: _Race) -> FloatArray:
    first: _Arrived = _total(rows, race)
    return first.points


def _total(rows: Rows, call: Any) -> Any:
    """Return what a call gives for all rows, whether they are in parts or not."""
    return rows.total(call) if isinstance(rows, PartedRows) else call(rows, 0)


def starts_of(rows: Rows) -> IndexArray:
    """Return which row is the first of each part."""
    if not isinstance(rows, PartedRows):
        return np.zeros(1, dtype=np.intp)
    return np.array([rows.first_of(number) for number in range(rows.n_parts)])


@recorded
@dataclass(frozen=True, slots=True)
class _Arrived:
    """The first points to arrive, in their order, at most `n_kept`.

    In a race of places only the first point of each place counts.
    """

    n_kept: int
    times: FloatArray
    points: FloatArray
    is_of_places: bool = False

    def __add__(self, other: _Arrived) -> _Arrived:
        times = np.concatenate([self.times, other.times])
        order = np.argsort(times, kind="stable")
        points = np.concatenate([self.points, other.points])[order]
        first = _first_at_places(points) if self.is_of_places else np.arange(len(order))
        first = first[: self.n_kept]
        return _Arrived(self.n_kept, times[order][first], points[first], self.is_of_places)


def _first_at_places(points: FloatArray) -> IndexArray:
    """Return the points that differ from all before them."""
    return np.sort(np.unique(points, axis=0, return_index=True)[1])


@dataclass(frozen=True, slots=True)
class _Race:
    """The race in one part."""

    centers: FloatArray
    n_drawn: int
    key: int
    starts: IndexArray
    is_of_places: bool = False

    @property
    def n_bytes_given(self) -> int:
        """How large the result of a part may be."""
        return 8 * self.n_drawn * (int(self.centers.shape[1]) + 1)

    def __call__(self, rows: Rows, number: int) -> _Arrived:
        times, _ = arrival_times(rows, self.key, int(self.starts[number]))
        if len(self.centers):
            with np.errstate(divide="ignore"):
                times -= np.log(rows.nearness(self.centers).sq_dist())
        n_kept = self.n_drawn
        arrived = self._first(rows, times, n_kept)
        while self.is_of_places and len(arrived.times) < self.n_drawn and n_kept < len(times):
            n_kept *= 2
            arrived = self._first(rows, times, n_kept)
        return arrived

    def _first(self, rows: Rows, times: FloatArray, n_kept: int) -> _Arrived:
        """Return those of the first `n_kept` that count."""
        first = earliest(times, n_kept)
        first = first[times[first] < np.inf]
        points = rows.take(first)
        if self.is_of_places:
            chosen = _first_at_places(points)[: self.n_drawn]
            first, points = first[chosen], points[chosen]
        return _Arrived(self.n_drawn, times[first], points, self.is_of_places)


@dataclass(frozen=True, slots=True)
class _WeightsNearest:
    """The weight of the points nearest to each center, which needs no sums of points."""

    centers: FloatArray

    @property
    def n_bytes_given(self) -> int:
        """How large the result of a part is."""
        return 8 * len(self.centers)

    def __call__(self, rows: Rows, number: int) -> FloatArray:
        labels, _ = rows.assign(self.centers)
        weights = rows.sample_weight(np.arange(rows.n_points))
        return np.asarray(np.bincount(labels, weights, minlength=len(self.centers)))


def arrival_times(rows: Rows, key: int, first_row: int) -> tuple[FloatArray, FloatArray]:
    """Return the times at which points arrive whose rates are their weights, and the weights.

    The times are logarithms, so that no weight is too small or too large. Points of no weight
    never arrive.
    """
    weights = rows.sample_weight(np.arange(rows.n_points))
    uniforms = _uniforms_of_rows(key, first_row, rows.n_points)
    with np.errstate(divide="ignore"):
        return np.log(-np.log1p(-uniforms)) - np.log(weights), weights


def earliest(times: FloatArray, n_kept: int) -> IndexArray:
    """Return which points arrive first, in their order; the first row comes first in a tie."""
    n_kept = min(n_kept, len(times))
    first = np.argpartition(times, n_kept - 1)[:n_kept]
    return first[np.lexsort((first, times[first]))]


def _uniforms_of_rows(key: int, start: int, n_numbers: int) -> FloatArray:
    """Return the numbers of one long random sequence from a place on."""
    bits = np.random.Philox(key=key)
    bits.advance(start // _NUMBERS_AT_A_TIME)
    generator = np.random.Generator(bits)
    generator.random(start % _NUMBERS_AT_A_TIME)
    return generator.random(n_numbers)
