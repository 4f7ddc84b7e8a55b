"""Seeds in a few passes over many points: k-means||, and draws at random."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from powermeans.divergences import Divergence, SquaredEuclidean
from powermeans.engine.seeds.choose import choose_seeds
from powermeans.engine.seeds.samples import race, total_of_parts
from powermeans.points.opening import open_rows
from powermeans.points.protocol import Points
from powermeans.system.containers import check_count, check_number
from powermeans.system.saved_classes import saved
from powermeans.types import FloatArray


@saved
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
    >>> from powermeans import KMeans
    >>> from powermeans.engine.seeds import ParallelSeeds
    >>> X = np.array([[1.0], [2.0], [10.0], [11.0]])
    >>> model = KMeans(2, init=ParallelSeeds(n_rounds=3), random_state=0).fit(X)
    >>> np.sort(model.cluster_centers_, axis=0)
    array([[ 1.5],
           [10.5]])
    """

    n_rounds: int = 5
    oversampling: float = 2.0

    def __post_init__(self) -> None:
        check_count(self.n_rounds, "n_rounds", 1, "5")
        check_number(self.oversampling, "oversampling", "(0, inf)", "for example 2.0")
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
        rows: Points,
        n_clusters: int,
        rng: np.random.RandomState,
        *,
        divergence: Divergence = SquaredEuclidean(),
        is_late: Callable[[], bool] = lambda: False,
    ) -> Candidates:
        """Return the candidates of all rounds, or of those until it is late and they suffice.

        The rows have this divergence. All weigh the same where it is late.
        """
        n_drawn = math.ceil(self.oversampling * n_clusters)
        if rows.n_points <= self.n_rounds * n_drawn:
            everything = np.arange(rows.n_points)
            weights = rows.sample_weight(everything)
            return Candidates(rows.take(everything), weights, rows, divergence)
        found = np.empty((0, rows.n_features))
        for _ in range(self.n_rounds):
            # Fewer if all others are at a candidate.
            drawn = race(rows, n_drawn, rng.randint(2**31 - 1), centers=found).with_a_chance()
            found = np.concatenate([found, drawn])
            if not len(drawn):
                break  # every point is at a candidate
            if is_late() and len(found) >= n_clusters:
                break
        # To weigh them takes a pass longer than a sweep, and seeds that come late do not use it.
        weights = np.ones(len(found)) if is_late() else total_of_parts(rows, _WeightsNearest(found))
        return Candidates(found, weights, rows, divergence)


@dataclass(frozen=True, slots=True)
class Candidates:
    """Candidates for seeds, each with the weight of the points nearest to it."""

    points: FloatArray
    weights: FloatArray
    origin: Points  # the rows that they are from
    divergence: Divergence = SquaredEuclidean()

    def seeds(
        self,
        n_clusters: int,
        rng: np.random.RandomState,
        n_candidates: int,
        exponent: float = 2.0,
        seconds: float = math.inf,
    ) -> FloatArray:
        """Choose seeds among them by k-means++; see `choose_seeds`.

        Without time they are taken at even steps: draws at once would repeat some, and the empty
        clusters of these take passes to relocate.
        """
        if seconds <= 0:
            return self.points[np.arange(n_clusters) * len(self.points) // n_clusters]
        rows = open_rows(self.points, self.weights, n_threads=1, divergence=self.divergence)
        centers, _ = choose_seeds(
            rows, n_clusters, rng, n_candidates=n_candidates, exponent=exponent, seconds=seconds
        )
        return centers


@dataclass(frozen=True, slots=True)
class _WeightsNearest:
    """Add up the weights of the points nearest to each center, without sums of points."""

    centers: FloatArray

    @property
    def n_bytes_given(self) -> int:
        """The size of the result of a part."""
        return 8 * len(self.centers)

    def __call__(self, rows: Points, number: int) -> FloatArray:
        labels, _ = rows.assign(self.centers)
        weights = rows.sample_weight(np.arange(rows.n_points))
        return np.asarray(np.bincount(labels, weights, minlength=len(self.centers)))
