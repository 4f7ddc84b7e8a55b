"""What every place where points can live must be able to do. The loop knows nothing else of it.

A kind of rows implements the abstract methods; `powermeans.rows.base` derives the others from them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from powermeans.rules import Rule
from powermeans.sums import ColumnMoments, Spread, Sums
from powermeans.types import FloatArray, IndexArray, Labels, Points, SparsePoints


class Rows(Protocol):
    """Weighted points, wherever they live. Centers are float64, (n_centers, n_features)."""

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

    @abstractmethod
    def sweep(self, centers: FloatArray, rule: Rule) -> Sums:
        """Weigh every point by the rule and add up.

        With the rule `powermeans.rules.Online` the points come one after another, and the centers
        move in between; rows that know no order of their points raise a TypeError.
        """

    @abstractmethod
    def spread(self, centers: FloatArray) -> Spread:
        """Error and utility of each center by the hard rule; a single one has infinite utility."""

    @abstractmethod
    def assign(self, centers: FloatArray) -> tuple[Labels, float]:
        """Label of the nearest center for each point (the first of several), and the inertia."""

    @abstractmethod
    def sq_distances(self, centers: FloatArray) -> Points:
        """All squared distances, (n_points, n_centers), in the points' dtype."""

    @abstractmethod
    def nearness(self, centers: FloatArray, order: IndexArray | None = None) -> Nearness:
        """Nearness to these centers, which may be none: shape (0, n_features).

        Draws walk along the points in this order, a permutation; by default as they come.
        """

    @abstractmethod
    def critical_power(self) -> float:
        """Above it all centers collapse to the mean; see `powermeans.critical_power`."""

    @abstractmethod
    def mean_variance(self) -> float:
        """Mean over the features of the unweighted variance, scikit-learn's unit of `tol`."""

    @abstractmethod
    def take(self, indices: IndexArray) -> FloatArray:
        """These points, dense, (n_indices, n_features)."""

    @abstractmethod
    def sample_weight(self, indices: IndexArray) -> FloatArray:
        """The weights of these points."""

    @abstractmethod
    def sample(self, indices: IndexArray) -> Points | SparsePoints:
        """These points in the kind they live in (dense or CSR)."""

    # What follows from the methods above.

    def descends(self, rule: Rule) -> bool:
        """Whether a sweep with this rule is sure not to raise its objective."""
        ...

    def mean(self) -> FloatArray:
        """Weighted mean of the points, (n_features,)."""
        ...

    def inertia_about_mean(self) -> float:
        """Weighted sum of the squared distances of the points from their mean."""
        ...

    def unit_steps(self) -> float | FloatArray:
        """How far along a feature a squared distance of one is, near the mean.

        One where distances are Euclidean; else (n_features,).
        """
        ...

    def rounding(self) -> float:
        """What a squared distance may be off, as a share of that of the point from the mean.

        Zero where distances come from differences.
        """
        ...

    def greedy_seeds(
        self, order: IndexArray, first: float, others: FloatArray, exponent: float = 2.0
    ) -> IndexArray:
        """Which points greedy k-means++ chooses, (n_seeds,); see `powermeans.rows.by_definition`.

        Draws as `Nearness.draw` does, along the points in this order: the first seed by the number
        `first`, and the candidates for each other seed by a row of `others`, (n_seeds - 1,
        n_candidates). The one that leaves the least inertia is kept, the first of several.
        """
        ...

    def farthest(self, centers: FloatArray, n_wanted: int) -> Iterator[FarPoint]:
        """The point with the largest weighted squared distance, and so on, at most so many.

        Each is one more center for those after it. There is at least one center.
        """
        ...

    # In one memory or in parts.

    @property
    def has_order(self) -> bool:
        """Whether an order of all points can be held; else draws take them as they come."""
        ...

    def first_points(self) -> IndexArray:
        """Which point is the first of each part."""
        ...

    def total(self, call: Callable[[PartRows, int], Any]) -> Any:
        """What a call gives for the rows of each part and its number, added up."""
        ...


class PartRows(Rows, Protocol):
    """Rows that can be a part of others."""

    @property
    def n_stored(self) -> int:
        """How many values of the points are stored."""
        ...

    @property
    def known(self) -> object | None:
        """What need not be found out again where the same points are opened anew."""
        ...

    @property
    def placement(self) -> Placement | None:
        """Where and how sweeps are computed; None by the compiled core."""
        ...

    def column_moments(self) -> ColumnMoments:
        """Mean and squared deviations of each column, every point counted once."""
        ...


class Nearness(Protocol):
    """Each point's squared distance to the nearest of the centers chosen so far."""

    def draw(self, uniforms: FloatArray, exponent: float = 2.0) -> IndexArray:
        """Draw one point for each number of [0, 1).

        The probability is proportional to `sample_weight * distance ** exponent`; while no center
        is chosen, or where all those are zero, to `sample_weight`. A number picks the point at
        which the cumulative probability passes it, walking along the order given to `nearness`.
        """
        ...

    def potentials(self, candidates: IndexArray) -> FloatArray:
        """The inertia that adding each of these points as a center would leave."""
        ...

    def add(self, center: FloatArray) -> None:
        """Take one more center, of shape (n_features,), into account."""
        ...

    def farthest(self) -> int:
        """The point with the largest `sample_weight * squared distance`, the first of several."""
        ...

    def inertia(self) -> float:
        """Sum of `sample_weight * squared distance`; infinite while no center is chosen."""
        ...

    def sq_dist(self, indices: IndexArray | None = None) -> FloatArray:
        """The squared distances of these points, or of all."""
        ...


@dataclass(frozen=True, slots=True)
class FarPoint:
    """A point, and how far it is.

    Attributes
    ----------
    point : (n_features,)
    sq_dist : float
        To the nearest center, also of those chosen before it.
    label : int
        Of the nearest center, without those.
    """

    point: FloatArray
    weight: float
    sq_dist: float
    label: int


class Placement(NamedTuple):
    """Where and how sweeps are computed at a device of PyTorch.

    Attributes
    ----------
    kernel : str
        "triton", "plain", or which does what.
    precision : str
        Of the points, and of the products.
    streamed : bool
        Whether each sweep brings the points to the device anew.
    """

    device: str
    kernel: str
    precision: str
    streamed: bool
