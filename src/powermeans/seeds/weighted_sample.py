"""A sample that stands for all rows in parts, drawn in one pass.

The points run the race of `powermeans.seeds.parallel`, and the first `n_drawn` are the sample.
Given the time t at which the next one arrived, a point of weight w had the chance 1 - exp(-w t) to
be among them. So the sample has no bias if each counts with the weight w / (1 - exp(-w t))
(Duffield, Lund and Thorup 2007, with exponential ranks).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from powermeans.parts.parted_rows import PartedRows, stacked
from powermeans.rows.protocol import PartRows
from powermeans.seeds.parallel import arrival_times, earliest, starts_of
from powermeans.types import FloatArray, IndexArray, Points, SparsePoints


@dataclass(frozen=True, slots=True)
class WeightedSample:
    """Points that stand for all.

    Attributes
    ----------
    points : (n_points, n_features)
        In the kind they live in, in a random order.
    weights : (n_points,)
        What each stands for, in a unit that keeps the mean weight of a point.
    is_all : bool
        Whether no point with a weight is missing.
    """

    points: Points | SparsePoints
    weights: FloatArray
    is_all: bool


def weighted_sample(
    rows: PartedRows, n_drawn: int, rng: np.random.RandomState, *, n_least: int = 1
) -> WeightedSample:
    """Draw points without replacement, the heavier the likelier.

    The sample does not depend on how the rows are cut into parts, nor its distribution on their
    order. If fewer than `n_least` points have a weight, others of no weight come with them;
    `n_drawn` is at least that.
    """
    race = _Race(n_drawn + 1, rng.randint(2**31 - 1), starts_of(rows), rows.n_features)
    arrived: _Arrived = rows.total(race)
    if arrived.n_running <= n_drawn:
        everything = slice(0, max(arrived.n_running, n_least))
        return WeightedSample(arrived.points[everything], arrived.weights[everything], is_all=True)
    points, weights = arrived.points[:n_drawn], arrived.weights[:n_drawn]
    with np.errstate(under="ignore"):
        chances = -np.expm1(-np.exp(np.log(weights) + arrived.times[n_drawn]))
    stands_for = weights / chances
    mean_weight = rows.total_weight / arrived.n_running
    unit = mean_weight / float(np.mean(stands_for))
    return WeightedSample(points, stands_for * unit, is_all=False)


@dataclass(frozen=True, slots=True)
class _Arrived:
    """The first points to arrive, in their order, and how many have a weight."""

    n_kept: int
    times: FloatArray
    points: Points | SparsePoints
    weights: FloatArray
    n_running: int

    def __add__(self, other: _Arrived) -> _Arrived:
        times = np.concatenate([self.times, other.times])
        first = np.argsort(times, kind="stable")[: self.n_kept]
        return _Arrived(
            self.n_kept,
            times[first],
            stacked([self.points, other.points])[first],
            np.concatenate([self.weights, other.weights])[first],
            self.n_running + other.n_running,
        )


@dataclass(frozen=True, slots=True)
class _Race:
    """The race in one part."""

    n_kept: int
    key: int
    starts: IndexArray
    n_features: int

    @property
    def n_bytes_given(self) -> int:
        """How large the result of a part may be."""
        return 8 * self.n_kept * (self.n_features + 2)

    def __call__(self, rows: PartRows, number: int) -> _Arrived:
        times, weights = arrival_times(rows, self.key, int(self.starts[number]))
        first = earliest(times, self.n_kept)
        n_running = int(np.count_nonzero(weights))
        return _Arrived(self.n_kept, times[first], rows.sample(first), weights[first], n_running)
