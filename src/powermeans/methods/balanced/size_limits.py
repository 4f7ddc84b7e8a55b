"""Wished sizes of clusters: limits, and a cost that grows with the distance from the mean size.

With a price for each center that is added to the distances, clusters get these sizes at the least
sum of distances: the prices are the dual variables of a transport problem.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from powermeans.types import FloatArray

# Of products of shares with counts.
_ROUNDING = 1e-6


def weight_of_each(weights: FloatArray) -> float:
    """Return the weight of every point that has any, or zero where these weights differ."""
    heaviest = float(weights.max())
    return heaviest if np.all((weights == heaviest) | (weights == 0)) else 0.0


def whole(size: float, each: float, *, up: bool) -> float:
    """Return a size as that of whole points of this weight; as it is where points differ."""
    if each == 0:
        return size
    n_points = size / each
    return each * (math.ceil(n_points - _ROUNDING) if up else math.floor(n_points + _ROUNDING))


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """The least and the largest weight of a cluster, and what the size between them costs.

    A cluster of weight n costs ``curvature / 2 * (n - mean)**2`` beside the distances.
    """

    n_centers: int
    least: float
    most: float
    total: float
    curvature: float = 0.0
    # The least and the largest weight of which no warning tells, since points cannot be divided.
    tolerated: tuple[float, float] | None = None

    @property
    def mean(self) -> float:
        """The mean weight of a cluster."""
        return self.total / self.n_centers

    def of_part(self, total: float) -> SizeLimits:
        """Return the same shares of another total, at the same cost of each point."""
        share = total / self.total
        curvature = self.curvature / share
        return SizeLimits(self.n_centers, self.least * share, self.most * share, total, curvature)

    def in_points(self, each: float) -> SizeLimits:
        """Return the limits as numbers of points of this weight, at the same prices."""
        least = whole(self.least, each, up=True) / each
        most = whole(min(self.most, self.total), each, up=False) / each
        curvature = self.curvature * each
        return SizeLimits(self.n_centers, least, most, self.total / each, curvature)

    def wanted(self, prices: FloatArray, sizes: FloatArray) -> FloatArray:
        """Return the sizes that cost least at these prices, of several those nearest to `sizes`."""
        if self.curvature > 0:
            by_price = self.mean + prices / self.curvature
        else:
            by_price = np.where(prices == 0, sizes, np.copysign(math.inf, prices))
        wanted: FloatArray = np.clip(by_price, self.least, self.most)
        return wanted

    def cost(self, sizes: FloatArray) -> float:
        """Return what these sizes cost beside the distances."""
        if self.curvature == 0:
            return 0.0
        # Squares of huge or tiny weights leave the range of float64.
        shares = np.square((sizes - self.mean) / self.mean)
        return float(self.curvature * self.mean / 2 * self.mean * np.sum(shares))

    def missed_by(self, sizes: FloatArray) -> float:
        """Return by how much weight sizes miss the limits."""
        return float(np.sum(np.maximum(0.0, np.maximum(sizes - self.most, self.least - sizes))))

    def missed_by_more_than_tolerated(self, sizes: FloatArray) -> float:
        """Return by how much weight sizes miss what is tolerated."""
        least, most = self.tolerated or (self.least, self.most)
        rounding = 1e-12 * self.total
        return replace(self, least=least - rounding, most=most + rounding).missed_by(sizes)

    def far_from_wish(self, prices: FloatArray, sizes: FloatArray) -> float:
        """Return how much weight has to move for the sizes that are best at these prices."""
        if self.curvature == 0:
            return self.missed_by(sizes)
        return float(np.sum(np.maximum(0.0, sizes - self.wanted(prices, sizes))))

    def bound(self, objective: float, prices: FloatArray) -> float:
        """Return the dual value: no assignment to the same centers costs less.

        `objective` is the sum over the points of the least distance and price.
        """
        sizes = self.wanted(prices, np.full(self.n_centers, self.mean))
        return objective + self.cost(sizes) - float(prices @ sizes)
