"""Seeds by Markov chains: about those of k-means++, in the time of one pass over the points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from powermeans.engine.seeds.choose import PointsInOrder, random_places
from powermeans.points.opening import open_rows
from powermeans.points.protocol import Points, sampler_of
from powermeans.system.containers import check_count, check_number
from powermeans.system.saved_classes import saved
from powermeans.types import FloatArray


@saved
@dataclass(frozen=True, slots=True)
class MarkovChainSeeds:
    """AFK-MC²: seeds by Markov chains instead of passes (Bachem, Lucic, Hassani and Krause 2016).

    Pass it as `init`. k-means++ passes over all points for each seed. Here one pass measures the
    points from the first seed; for every other seed a chain then walks through a few points, and
    where it ends is the seed. The longer the chains, the nearer their draws are to those of plain
    k-means++.

    Parameters
    ----------
    chain_length : int, default=200
        How many points a chain looks at.
    exponent : float, default=2.0
        The chains draw points in proportion to this power of the distance to the nearest seed so
        far, times their weight. Two is k-means++; one gives the seeds of the power k-means paper.

    See Also
    --------
    kmeans_plusplus : Seeds by k-means++, with a pass for each.
    ParallelSeeds : Seeds of points that do not fit into memory.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans import KMeans
    >>> from powermeans.engine.seeds import MarkovChainSeeds
    >>> X = np.array([[1.0], [2.0], [10.0], [11.0]])
    >>> model = KMeans(2, init=MarkovChainSeeds(chain_length=50), random_state=0).fit(X)
    >>> np.sort(model.cluster_centers_, axis=0)
    array([[ 1.5],
           [10.5]])
    """

    chain_length: int = 200
    exponent: float = 2.0

    def __post_init__(self) -> None:
        check_count(self.chain_length, "chain_length", 1, "for example 200")
        check_number(self.exponent, "exponent", "[0, inf)", "for example 2.0")

    def __call__(
        self, X: FloatArray, n_clusters: int, random_state: np.random.RandomState
    ) -> FloatArray:
        """Return seeds among points of weight one."""
        return self.seeds(open_rows(np.ascontiguousarray(X)), n_clusters, random_state)

    def seeds(self, rows: Points, n_clusters: int, rng: np.random.RandomState) -> FloatArray:
        """Return seeds among rows that have an order."""
        points = PointsInOrder(rows, random_places(rows, rng, 2))
        chosen = points.draw(lambda _, weights: weights, rng.uniform(size=1))
        proposal = _Proposal.of(points, rows.take(chosen))
        shape = n_clusters - 1, self.chain_length
        proposed = points.draw(proposal, rng.uniform(size=shape).ravel()).reshape(shape)
        for candidates, uniforms in zip(proposed, rng.uniform(size=shape), strict=True):
            some = sampler_of(rows).some(candidates)
            sq_dist = some.nearness(rows.take(chosen)).sq_dist()
            # Only ratios count, and powers of at most one do not overflow.
            wanted = (sq_dist / (sq_dist.max() or 1.0)) ** (self.exponent / 2)
            end = _end_of_chain(wanted / proposal.chance(some), uniforms)
            chosen = np.append(chosen, candidates[end])
        return rows.take(chosen)


@dataclass(frozen=True, slots=True)
class _Proposal:
    """Half by weight, and half by weight times squared distance to the first seed."""

    first: FloatArray
    total_weight: float
    total: float

    @classmethod
    def of(cls, points: PointsInOrder, first: FloatArray) -> _Proposal:
        total = points.total(lambda rows, weights: weights * rows.nearness(first).sq_dist())
        return cls(first, points.rows.total_weight, total)

    def chance(self, rows: Points) -> FloatArray:
        """Return the chance of each point for each unit of its weight."""
        by_weight = np.full(rows.n_points, 0.5 / self.total_weight)
        if self.total <= 0:
            return by_weight
        return by_weight + 0.5 * rows.nearness(self.first).sq_dist() / self.total

    def __call__(self, rows: Points, weights: FloatArray) -> FloatArray:
        return weights * self.chance(rows)


def _end_of_chain(ratios: FloatArray, uniforms: FloatArray) -> int:
    """Return where a Metropolis-Hastings chain ends, by the ratio of target to proposal."""
    at = 0
    for candidate in range(1, len(ratios)):
        if ratios[candidate] > uniforms[candidate] * ratios[at]:
            at = candidate
    return at
