"""A sample of rows in parts that stands for all of them, drawn in one pass.

The points run the race of `powermeans.seeds.parallel`: a point of weight w arrives after an
exponential time of rate w, and the first so many are kept. Given the time t at which the next one
would have arrived, each point had the chance 1 - exp(-w t) to be among them. So counted with the
weight w / (1 - exp(-w t)) the sample has no bias (Duffield, Lund and Thorup 2007, with exponential
ranks), and where there are no more points than are kept, each has its own weight.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from powermeans.parts.parted_rows import PartedRows, stacked
from powermeans.rows.protocol import PartRows
from powermeans.seeds.parallel import uniforms_of_rows
from powermeans.types import FloatArray, Points, SparsePoints


@dataclass(frozen=True, slots=True)
class WeightedSample:
    """Points that stand for all.

    Attributes
    ----------
    points : (n_points, n_features)
        In the kind they live in, in a random order.
    weights : (n_points,)
        For how much each stands, in a unit in which they add up to what as many points weigh on
        the average.
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

    Which ones they are does not depend on how the rows are cut into parts, and how likely it does
    not depend on their order.

    Parameters
    ----------
    n_drawn : int
        How many, if so many have a weight; at least `n_least`.
    n_least : int
        If fewer than that have a weight, others of no weight come with them.
    """
    starts = np.array([rows.first_of(number) for number in range(rows.n_parts)])
    race = _Race(n_drawn + 1, rng.randint(2**31 - 1), starts, rows.n_features)
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
    """The first points to arrive, in their order, and how many take part.

    Times are logarithms; they are infinite for points of no weight.
    """

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
    """The race in one part, in logarithms so that no weight is too small or too large."""

    n_kept: int
    key: int
    starts: NDArray[np.intp]
    n_features: int

    @property
    def n_bytes_given(self) -> int:
        """How large what comes of a part may be."""
        return 8 * self.n_kept * (self.n_features + 2)

    def __call__(self, rows: PartRows, number: int) -> _Arrived:
        weights = rows.sample_weight(np.arange(rows.n_points))
        uniforms = uniforms_of_rows(self.key, int(self.starts[number]), rows.n_points)
        with np.errstate(divide="ignore"):
            times = np.log(-np.log1p(-uniforms)) - np.log(weights)
        n_kept = min(self.n_kept, len(times))
        first = np.argpartition(times, n_kept - 1)[:n_kept]
        first = first[np.lexsort((first, times[first]))]
        return _Arrived(
            self.n_kept,
            times[first],
            rows.sample(first),
            weights[first],
            int(np.count_nonzero(weights)),
        )
