"""Samples without replacement, drawn by a race in one pass over the rows.

Each point arrives after an exponential time, with its weight in the draw as the rate; the first to
arrive are the sample. The first of all points are among the first of their parts, and the random
number of a point depends only on its row, so the sample does not depend on the cut into parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from powermeans.mathematics.sums import recorded
from powermeans.points.checks.csr import stacked
from powermeans.points.protocol import Points
from powermeans.types import AnyMatrix, FloatArray, IndexArray


@dataclass(frozen=True, slots=True)
class WeightedSample:
    """Points that stand for all, in a random order."""

    points: AnyMatrix  # in the kind they live in
    weights: FloatArray  # that each stands for; their mean is the mean weight of all points
    is_all: bool  # no point with a weight is missing


def weighted_sample(
    rows: Points, n_drawn: int, rng: np.random.RandomState, *, n_least: int = 1
) -> WeightedSample:
    """Draw points without replacement, the heavier the likelier.

    If fewer than `n_least` points have a weight, others without weight join them; `n_drawn` is at
    least `n_least`.
    """
    arrived = race(rows, n_drawn + 1, rng.randint(2**31 - 1), in_their_kind=True)
    if arrived.n_weighing <= n_drawn:
        everything = slice(0, max(arrived.n_weighing, n_least))
        return WeightedSample(arrived.points[everything], arrived.weights[everything], is_all=True)
    stands_for = arrived.stand_for(n_drawn)
    mean_weight = rows.total_weight / arrived.n_weighing
    unit = mean_weight / float(np.mean(stands_for))
    return WeightedSample(arrived.points[:n_drawn], stands_for * unit, is_all=False)


def raced_sample(
    rows: Points, n_drawn: int, rng: np.random.RandomState
) -> tuple[AnyMatrix, FloatArray]:
    """Draw points without replacement, and return them and the weight that each stands for.

    Half of the rate of a point is its share of the weight, and half that of the inertia about the
    mean, as the chances of `choose.drawn_sample`, which needs an order of all points.
    """
    mean_sq_dist = rows.inertia_about_mean() / rows.total_weight
    if mean_sq_dist == 0:  # all points are at the mean
        mean_sq_dist = 1.0
    arrived = race(
        rows,
        n_drawn + 1,
        rng.randint(2**31 - 1),
        centers=rows.mean()[None, :],
        offset=mean_sq_dist,
        in_their_kind=True,
    )
    if arrived.n_weighing <= n_drawn:
        return arrived.points[: arrived.n_weighing], arrived.weights[: arrived.n_weighing]
    return arrived.points[:n_drawn], arrived.stand_for(n_drawn)


def distinct_places(rows: Points, n_drawn: int, rng: np.random.RandomState) -> FloatArray:
    """Draw places by the weight of their points, without repeats unless there are too few places.

    It takes one pass, and holds `n_drawn` of them.
    """
    places = race(rows, n_drawn, rng.randint(2**31 - 1), of_places=True).with_a_chance()
    return np.resize(places, (n_drawn, rows.n_features))


@recorded
@dataclass(frozen=True, slots=True)
class Arrived:
    """The first points to arrive, in their order, at most `n_kept`; those of two parts add."""

    n_kept: int
    times: FloatArray  # logarithms, for extreme rates; infinite for points without a chance
    rates: FloatArray  # logarithms
    points: AnyMatrix
    weights: FloatArray
    n_weighing: int  # points with a weight, of all that ran
    of_places: bool

    def __add__(self, other: Arrived) -> Arrived:
        times = np.concatenate([self.times, other.times])
        first = np.argsort(times, kind="stable")
        points = stacked([self.points, other.points])
        if self.of_places:
            first = first[_first_at_places(points[first])]
        first = first[: self.n_kept]
        rates = np.concatenate([self.rates, other.rates])[first]
        weights = np.concatenate([self.weights, other.weights])[first]
        n_weighing = self.n_weighing + other.n_weighing
        return Arrived(
            self.n_kept, times[first], rates, points[first], weights, n_weighing, self.of_places
        )

    def with_a_chance(self) -> Any:
        """Return the points that had a chance."""
        return self.points[self.times < np.inf]

    def stand_for(self, n_drawn: int) -> FloatArray:
        """Return the weight that each of the first stands for.

        Given the time t of the first point that is not drawn, a point of rate r had the chance
        1 - exp(-r t). So sums are unbiased if its weight is divided by that (Duffield, Lund and
        Thorup 2007, with exponential ranks).
        """
        with np.errstate(under="ignore"):
            # `expm1` keeps the digits of small chances.
            chances = -np.expm1(-np.exp(self.rates[:n_drawn] + self.times[n_drawn]))
        stand_for: FloatArray = self.weights[:n_drawn] / chances
        return stand_for


def race(
    rows: Points,
    n_kept: int,
    key: int,
    *,
    centers: FloatArray | None = None,
    offset: float = 0.0,
    of_places: bool = False,
    in_their_kind: bool = False,
) -> Arrived:
    """Let points run at rates of weight, times squared distance to the nearest center, if any.

    `offset` is added to each squared distance.

    `key` seeds the random numbers. A race of places counts only the first point of each. Points
    arrive as whole float64 rows unless their own kind is asked for.
    """
    if centers is None:
        centers = np.empty((0, rows.n_features))
    parts = rows.parts
    starts = np.zeros(1, dtype=np.intp) if parts is None else parts.first_points()
    run = _Race(centers, offset, n_kept, key, starts, of_places, in_their_kind)
    arrived: Arrived = total_of_parts(rows, run)
    return arrived


def total_of_parts(rows: Any, call: Callable[[Any, int], Any]) -> Any:
    """Return the sum of what a call returns for each part, or for points in one memory."""
    return call(rows, 0) if rows.parts is None else rows.parts.total(call)


@dataclass(frozen=True, slots=True)
class _Race:
    """Run the race in one part."""

    centers: FloatArray
    offset: float
    n_kept: int
    key: int
    starts: IndexArray
    of_places: bool
    in_their_kind: bool

    @property
    def n_bytes_given(self) -> int:
        """The largest size of the result of a part."""
        return 8 * self.n_kept * (int(self.centers.shape[1]) + 3)

    def __call__(self, rows: Points, number: int) -> Arrived:
        weights = rows.sample_weight(np.arange(rows.n_points))
        rates = self._rates(rows, weights)
        uniforms = _uniforms_of_rows(self.key, int(self.starts[number]), len(weights))
        with np.errstate(divide="ignore"):
            # The logarithm of the exponential time -log(1 - u) / rate.
            first, times = self._first(rows, np.log(-np.log1p(-uniforms)) - rates)
        points = rows.sample(first) if self.in_their_kind else rows.take(first)
        n_weighing = int(np.count_nonzero(weights))
        return Arrived(
            self.n_kept, times, rates[first], points, weights[first], n_weighing, self.of_places
        )

    def _rates(self, rows: Points, weights: FloatArray) -> FloatArray:
        """Return logarithms of the rates."""
        with np.errstate(divide="ignore"):
            rates: FloatArray = np.log(weights)
            if len(self.centers):
                rates += np.log(self.offset + rows.nearness(self.centers).sq_dist())
        return rates

    def _first(self, rows: Points, times: FloatArray) -> tuple[IndexArray, FloatArray]:
        """Return the indices and times of the first to arrive, at most `n_kept`."""
        first, n_looked_at = _earliest(times, self.n_kept), self.n_kept
        if self.of_places:
            first = first[_first_at_places(rows.take(first))]
            # Copies of a place crowd out other places: look at twice as many.
            while len(first) < self.n_kept and n_looked_at < len(times):
                n_looked_at *= 2
                first = _earliest(times, n_looked_at)
                first = first[_first_at_places(rows.take(first))][: self.n_kept]
        return first, times[first]


def _earliest(times: FloatArray, n_kept: int) -> IndexArray:
    """Return the indices of the first to arrive, in their order; in a tie by row."""
    n_kept = min(n_kept, len(times))
    first = np.argpartition(times, n_kept - 1)[:n_kept]
    return first[np.lexsort((first, times[first]))]


def _first_at_places(points: Any) -> IndexArray:
    """Return the indices of the points that differ from all before them."""
    return np.sort(np.unique(points, axis=0, return_index=True)[1])


def _uniforms_of_rows(key: int, start: int, n_numbers: int) -> FloatArray:
    """Return numbers of one long random sequence, from the position `start` on."""
    bits = np.random.Philox(key=key)
    bits.advance(start // 4)  # it makes four numbers at a time, and advances by as many
    generator = np.random.Generator(bits)
    generator.random(start % 4)
    return generator.random(n_numbers)
