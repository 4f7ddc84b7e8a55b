"""The protocol of points, the only thing that the loop knows about them.

A kind of points implements the abstract methods. The others have a default here, for squared
Euclidean distances without abilities, or are derived from these by `powermeans.points.base`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from powermeans.mathematics.rules import Priced, Rule
from powermeans.mathematics.sums import Spread, Sums
from powermeans.points.given import Given
from powermeans.types import AnyMatrix, FloatArray, IndexArray, Labels, Matrix

_BLOCK_ELEMENTS = 2**17


class Points(Protocol):
    """Weighted points, wherever they are; centers are float64, (n_centers, n_features).

    What only some kinds of points can do is an object, or None: `moves`, `priced`, `sampler`,
    `cells`, `parts` and `elsewhere`.
    """

    # What a user gave, behind points that the door opened.
    given: Given

    # Sizes.

    @property
    @abstractmethod
    def n_points(self) -> int: ...

    @property
    @abstractmethod
    def n_features(self) -> int: ...

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[np.floating]: ...

    @property
    @abstractmethod
    def total_weight(self) -> float:
        """Sum of the sample weights."""

    # What each kind computes.

    @abstractmethod
    def sweep(self, centers: FloatArray, rule: Rule) -> Sums:
        """Weigh every point by the rule and add up.

        With the rule `powermeans.mathematics.rules.Online`, points come one after another and each
        moves a center; rows without an order of their points raise a TypeError.
        """

    @abstractmethod
    def spread(self, centers: FloatArray) -> Spread:
        """Return error and utility of each center by the hard rule; a lone utility is infinite."""

    @abstractmethod
    def assign(self, centers: FloatArray) -> tuple[Labels, float]:
        """Return the label of the nearest center, the first of several, and the inertia."""

    @abstractmethod
    def sq_distances(self, centers: FloatArray) -> Matrix:
        """Return all squared distances, (n_points, n_centers), in the dtype of the points.

        A center that `take` returned for a point is at a distance of exactly zero from it, since
        draws and soft weights depend on that.
        """

    @abstractmethod
    def nearness(self, centers: FloatArray, order: IndexArray | None = None) -> Nearness:
        """Return nearness to these centers, or to none, (0, n_features).

        Draws walk along the points in this order, a permutation; by default in their own.
        """

    @abstractmethod
    def critical_power(self) -> float:
        """Return the power above which all centers collapse; see `powermeans.critical_power`."""

    @abstractmethod
    def mean_variance(self) -> float:
        """Return the mean unweighted variance of the features, scikit-learn's unit of `tol`."""

    @abstractmethod
    def take(self, indices: IndexArray) -> FloatArray:
        """Return these points, dense, (n_indices, n_features)."""

    @abstractmethod
    def sample(self, indices: IndexArray) -> AnyMatrix:
        """Return these points as they are held, dense or CSR."""

    @abstractmethod
    def sample_weight(self, indices: IndexArray) -> FloatArray:
        """Return the weights of these points."""

    # What only some kinds of points compute in another way.

    @property
    def holds_labels(self) -> bool:
        """Whether a hard sweep counts the points that change their label."""
        return False

    @property
    def n_columns(self) -> int:
        """How many features the points have with those left out, since they are always zero."""
        return self.n_features

    @property
    def n_distinct(self) -> int:
        """Number of distinct points of positive weight, or an upper bound of it.

        A search counts work by it, so that a weight acts as copies do, and zero as no point.
        """
        return self.n_points

    @property
    def n_stored(self) -> int:
        """How many values of the points are stored."""
        return self.n_points * self.n_features

    @property
    def n_observed(self) -> int | FloatArray:
        """How many features each point has: a number, or (n_points,) where entries are missing."""
        return self.n_features

    def mean(self) -> FloatArray:
        """Return the weighted mean of the points, (n_features,)."""

    def inertia_about_mean(self) -> float:
        """Return the weighted sum of the squared distances of the points from their mean."""

    def unit_steps(self) -> float | FloatArray:
        """Return the step along each feature that is a squared distance of one, near the mean.

        It is 1.0 for Euclidean distances, else (n_features,).
        """

    def spread_of_features(self) -> float | FloatArray:
        """Return the step along each feature that is as long as points are far from the mean."""

    def rounding(self) -> float:
        """Return the error of squared distances, as a share of the point's own from the mean.

        It is zero where distances come from differences.
        """

    def descends(self, rule: Rule) -> bool:
        """Return whether a sweep with this rule never raises its objective."""
        return rule.descends

    def farthest(self, centers: FloatArray, n_wanted: int) -> Iterator[FarPoint]:
        """Yield at most `n_wanted` points, each the one of largest weighted squared distance.

        Each point counts as a center for the next. There is at least one center.
        """

    # While a user's points are open.

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None:
        """Close what the points hold open."""
        return

    def stop_recording(self) -> None:
        """Write no more into a checkpoint."""
        return

    # Abilities.

    @property
    def moves(self) -> Moves | None:
        """Moves of single points, and swaps with them; if None, a search adds and removes centers.

        There are none for points in parts or in a tensor, of which a search brings some to one
        memory, with missing entries or seen in another way (`ViewedPoints`), nor by a divergence
        whose `moves` are None.
        """
        return None

    @property
    def elsewhere(self) -> Elsewhere | None:
        """How points come to one memory where they can move, or None where they are or cannot."""

    @property
    def priced(self) -> PricedPoints | None:
        """Assignments to centers that have a price, without which sizes cannot be limited."""

    @property
    def sampler(self) -> Sampler | None:
        """Samples of the points, and seeds chosen in samples.

        Where it is None, seeds are compared over all points, all of them are searched, and seeds by
        trees and Markov chains are refused.
        """
        return None

    @property
    def cells(self) -> Any | None:
        """Sweeps over the centers near each point, a `powermeans.points.cells.Cells`.

        Where it is None, thousands of centers are all compared.
        """
        return None

    @property
    def parts(self) -> Parts | None:
        """The parts in which the points come, or None where all are in one memory.

        Points in parts have no order, and draws take them as they come.
        """


class Parts(Protocol):
    """Points in an ordered sequence of parts."""

    def first_points(self) -> IndexArray:
        """Return the index of the first point of each part."""

    def total(self, call: Callable[[Points, int], Any]) -> Any:
        """Return the sum of what `call` returns for the rows and the number of each part."""


class Elsewhere(Protocol):
    """Points in parts or on a device, of which a search brings all or some to one memory."""

    def together(self) -> Points:
        """Return all points as rows in one memory."""

    def opened(self, points: AnyMatrix, weights: FloatArray) -> Points:
        """Return some of the points, which `sample` brought here, as rows in one memory."""


class PricedPoints(Protocol):
    """Points that go where squared distance and price of a center are least together."""

    def assign(self, centers: FloatArray, prices: FloatArray) -> PricedLabels:
        """Return labels and margins of all points, with the sums of a sweep."""

    def near(self, asked: AskedNear) -> NearCenters:
        """List for some points the center of its label, and others of least distance and price."""


class Sampler(Protocol):
    """Samples of points, and greedy k-means++ without a loop in Python."""

    def some(self, indices: IndexArray | slice, sample_weight: FloatArray | None = None) -> Points:
        """Return some of the points, with these weights or weights of one."""

    def greedy_seeds(
        self, order: IndexArray, first: float, others: FloatArray, *, seconds: float = math.inf
    ) -> IndexArray:
        """Return the points that greedy k-means++ chooses, (n_seeds,).

        Draw as `Nearness.draw` does, along the points in this order: the first seed by the number
        `first`, and the candidates for each other seed by a row of `others`, (n_seeds - 1,
        n_candidates). Keep the candidate that leaves the least inertia, the first of several. After
        so many seconds no further seed is chosen; the first always is.
        """

    def further_seeds(
        self,
        indices: IndexArray,
        nearest: FloatArray,
        others: FloatArray,
        least_share: float,
        *,
        seconds: float = math.inf,
    ) -> IndexArray:
        """Return points of a sample that greedy k-means++ chooses beside earlier seeds.

        The sample is drawn by weight times squared distance, and repeats may occur; `nearest` are
        its squared distances from the earlier seeds, none of them zero. So all its points stand for
        as much inertia. Each row of `others` draws the candidates for a seed; no more seeds follow
        once they leave `least_share` of the inertia or less, or after so many seconds.
        """


class Moves(Protocol):
    """Moves of points from cluster to cluster that lower the inertia."""

    def move_points(self, centers: FloatArray, n_passes: int) -> Moved:
        """Move single points from cluster to cluster where that lowers the inertia (Hartigan).

        Start with each point at the nearest of these centers, and end after a pass without a gain
        or `n_passes`.
        """

    def swap_centers(
        self,
        centers: FloatArray,
        n_in_vain: int,
        most_distances: float,
        least_gain: float,
        least_distances: float = 0.0,
    ) -> Moved:
        """Dissolve one cluster and split another where that lowers the inertia, with moves nearby.

        End after `n_in_vain` swaps in a row that gain less than this share of the inertia, or once
        `most_distances` are computed. Swaps without a gain end nothing before `least_distances`
        are.
        """


class Nearness(Protocol):
    """The squared distance of each point to the nearest of the centers chosen so far."""

    def draw(self, uniforms: FloatArray, exponent: float = 2.0) -> IndexArray:
        """Draw one point for each number in [0, 1).

        The probability is proportional to `sample_weight * distance ** exponent`, or to
        `sample_weight` if no center is chosen or all these products are zero. A number picks the
        point at which the cumulative probability, along the order given to `nearness`, exceeds it.
        """

    def potentials(self, candidates: IndexArray) -> FloatArray:
        """Return the inertia that each of these points would leave as one more center."""

    def add(self, center: FloatArray) -> None:
        """Add a center, (n_features,)."""

    def farthest(self) -> int:
        """Return the point of largest `sample_weight * squared distance`, the first of several."""

    def inertia(self) -> float:
        """Return the sum of `sample_weight * squared distance`, infinite without a center."""

    def sq_dist(self, indices: IndexArray | None = None) -> FloatArray:
        """Return the squared distances of these points, or of all."""


@dataclass(frozen=True, slots=True)
class FarPoint:
    """A point, and how far it is from the centers and the far points before it."""

    point: FloatArray
    weight: float
    sq_dist: float
    label: int  # of the nearest center, without the far points before it


@dataclass(frozen=True, slots=True)
class Moved:
    """The means of the clusters after moves of single points, or swaps."""

    centers: FloatArray
    n_moves: int  # of points, or swaps that gained
    n_distances: float = 0.0  # of a point to a center that swaps computed


class PricedLabels(NamedTuple):
    """The center of least distance and price of each point."""

    labels: Labels
    margins: FloatArray  # how much less it costs than the second
    sums: Sums  # of the sweep with these prices


@dataclass(frozen=True, slots=True)
class Labelling(Priced):
    """Tell labels and margins too, as `PricedLabels` has them."""

    labels: Labels  # out (n_points,)
    margins: FloatArray  # out (n_points,)


class AskedNear(NamedTuple):
    """Points that ask which centers they may go to."""

    indices: IndexArray
    labels: Labels  # of these points
    centers: FloatArray
    prices: FloatArray
    reach: float  # by how much more than that of the label a center may cost
    n_most: int  # centers for each point, 2 or more


class NearCenters(NamedTuple):
    """The centers that each of some points may go to, the one of its label first."""

    centers: Labels  # (n, n_most), -1 where fewer are near
    distances: FloatArray  # (n, n_most), infinite where fewer are near

    @classmethod
    def none(cls, n: int, n_most: int) -> NearCenters:
        """Return lists that are to be filled."""
        return cls(np.full((n, n_most), -1, dtype=np.int32), np.full((n, n_most), np.inf))


def priced_of(rows: Points) -> PricedPoints:
    """Return the assignments with prices of points that have them."""
    assert rows.priced is not None, f"{type(rows).__name__} take no prices"
    return rows.priced


def sampler_of(rows: Points) -> Sampler:
    """Return the sampler of points that have one."""
    assert rows.sampler is not None, f"{type(rows).__name__} take no samples"
    return rows.sampler


def distances_in_blocks(rows: Points, centers: Any) -> Iterator[tuple[slice, Matrix]]:
    """Yield some of the points, and their squared distances from all centers."""
    n_block = max(1, _BLOCK_ELEMENTS // len(centers))
    for start in range(0, rows.n_points, n_block):
        block = slice(start, min(start + n_block, rows.n_points))
        yield block, sampler_of(rows).some(block).sq_distances(centers)
