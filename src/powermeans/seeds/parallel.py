"""Seeds in a few passes, for points too many to walk along: k-means||, and draws at random.

Each point runs a race: its time is exponential, with a rate in proportion to its chance. The first
of all to arrive are a sample without replacement, and the first of parts contain the first of all.
The random number of a point depends on its row alone, so a sample does not depend on how the rows
are cut into parts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powermeans.divergences import Divergence
from powermeans.parts.checkpoint import recorded
from powermeans.parts.parted_rows import PartedRows
from powermeans.rows import open_rows
from powermeans.rows.protocol import Rows
from powermeans.seeds.choose import choose_seeds
from powermeans.types import FloatArray

# How many random numbers Philox makes at a time.
_NUMBERS_AT_A_TIME = 4


@dataclass(frozen=True, slots=True)
class ParallelSeeds:
    """k-means||: seeds from candidates that are found in a few passes (Bahmani and others 2012).

    To be passed as `init`. In each round every point may become a candidate, with a chance in
    proportion to its weight and its squared distance to the candidates so far. A candidate weighs
    as much as the points nearest to it, and greedy k-means++ chooses the seeds among them. This
    is also what ``init="k-means++"`` does with rows in parts.

    Parameters
    ----------
    n_rounds : int, default=5
        How many rounds there are, each of which is a pass over the rows.
    oversampling : float, default=2.0
        How many candidates a round finds, for each seed.

    See Also
    --------
    open_data : Rows that need not fit into memory, for which this is made.
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
        """Seeds among points in memory."""
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
        """What the rounds find.

        Parameters
        ----------
        rows : Rows
        n_clusters : int
            How many seeds are to be chosen of them.
        rng : RandomState
        divergence : Bregman or str
            That of the rows.

        Returns
        -------
        Candidates
        """
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
        return Candidates(found, _asked(rows, _WeightsNearest(found)), rows, divergence)


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
        """Seeds by k-means++ among them; see `powermeans.seeds.choose.choose_seeds`."""
        rows = open_rows(self.points, self.weights, n_threads=1, divergence=self.divergence)
        centers, _ = choose_seeds(rows, n_clusters, rng, n_candidates=n_candidates)
        return centers


def first_of_race(rows: Rows, centers: FloatArray, n_drawn: int, key: int) -> FloatArray:
    """Points drawn without replacement by weight times squared distance to the nearest center.

    Parameters
    ----------
    centers : (n_centers, n_features)
        Where there are none, points are drawn by their weights.
    n_drawn : int
        How many, if so many are at no center.
    key : int
        Of the random numbers.

    Returns
    -------
    (n_points, n_features)
        The first to arrive comes first.
    """
    first: _Arrived = _asked(rows, _Race(centers, n_drawn, key, _starts_of(rows)))
    return first.points


def distinct_places(rows: Rows, n_drawn: int, rng: np.random.RandomState) -> FloatArray:
    """Places drawn by the weight of the points there, none twice unless there are too few.

    One pass over the rows, of which none but so many are held at a time.
    """
    nowhere, key = np.empty((0, rows.n_features)), rng.randint(2**31 - 1)
    race = _Race(nowhere, n_drawn, key, _starts_of(rows), is_of_places=True)
    first: _Arrived = _asked(rows, race)
    return np.resize(first.points, (n_drawn, rows.n_features))


def _asked(rows: Rows, call: Any) -> Any:
    """What a call gives for all rows, whether they are in parts or not."""
    return rows.total(call) if isinstance(rows, PartedRows) else call(rows, 0)


def _starts_of(rows: Rows) -> NDArray[np.intp]:
    """Which row is the first of each part."""
    if not isinstance(rows, PartedRows):
        return np.zeros(1, dtype=np.intp)
    return np.array([rows.first_of(number) for number in range(rows.n_parts)])


@recorded
@dataclass(frozen=True, slots=True)
class _Arrived:
    """The first points to arrive, in their order, and no more than are kept.

    Of places, each that has several points has arrived with the first of them.
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


def _first_at_places(points: FloatArray) -> NDArray[np.intp]:
    """The points that none before is equal to."""
    return np.sort(np.unique(points, axis=0, return_index=True)[1])


@dataclass(frozen=True, slots=True)
class _Race:
    """The race in one part, in logarithms so that no rate is too small or too large."""

    centers: FloatArray
    n_drawn: int
    key: int
    starts: NDArray[np.intp]
    is_of_places: bool = False

    @property
    def n_bytes_given(self) -> int:
        """How large what comes of a part may be."""
        return 8 * self.n_drawn * (int(self.centers.shape[1]) + 1)

    def __call__(self, rows: Rows, number: int) -> _Arrived:
        uniforms = uniforms_of_rows(self.key, int(self.starts[number]), rows.n_points)
        rates = rows.sample_weight(np.arange(rows.n_points))
        with np.errstate(divide="ignore"):
            times = np.log(-np.log1p(-uniforms)) - np.log(rates)
            if len(self.centers):
                times -= np.log(rows.nearness(self.centers).sq_dist())
        n_kept = self.n_drawn
        arrived = self._first(rows, times, n_kept)
        while self.is_of_places and len(arrived.times) < self.n_drawn and n_kept < len(times):
            n_kept *= 2
            arrived = self._first(rows, times, n_kept)
        return arrived

    def _first(self, rows: Rows, times: FloatArray, n_kept: int) -> _Arrived:
        """Those of the first so many in which there are no two of the same place, if asked."""
        n_kept = min(n_kept, len(times))
        first = np.argpartition(times, n_kept - 1)[:n_kept]
        first = first[np.lexsort((first, times[first]))]
        first = first[times[first] < np.inf]
        points = rows.take(first)
        if self.is_of_places:
            chosen = _first_at_places(points)[: self.n_drawn]
            first, points = first[chosen], points[chosen]
        return _Arrived(self.n_drawn, times[first], points, self.is_of_places)


@dataclass(frozen=True, slots=True)
class _WeightsNearest:
    """How much the points weigh that are nearest to each center: no sums of points are needed."""

    centers: FloatArray

    @property
    def n_bytes_given(self) -> int:
        """How large what comes of a part is."""
        return 8 * len(self.centers)

    def __call__(self, rows: Rows, number: int) -> FloatArray:
        labels, _ = rows.assign(self.centers)
        weights = rows.sample_weight(np.arange(rows.n_points))
        return np.asarray(np.bincount(labels, weights, minlength=len(self.centers)))


def uniforms_of_rows(key: int, start: int, n_numbers: int) -> FloatArray:
    """Of one long sequence of random numbers those from a place on."""
    bits = np.random.Philox(key=key)
    bits.advance(start // _NUMBERS_AT_A_TIME)
    generator = np.random.Generator(bits)
    generator.random(start % _NUMBERS_AT_A_TIME)
    return generator.random(n_numbers)
