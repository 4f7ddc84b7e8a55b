"""Points in an ordered sequence of parts, wherever these are.

Each quantity takes one call on every part, and a tree that depends only on the number of parts adds
the results. So no bit depends on the place of the parts, or on the number of threads or workers. No
array is as long as the points, unless the caller asks for one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from powermeans.divergences.bregman import Bregman
from powermeans.mathematics.critical_power import (
    Moments,
    critical_power,
    critical_power_of_sample,
    moments_about_origin,
    n_rows_to_sample,
    strata_to_sample,
)
from powermeans.mathematics.rules import Hard, Online, Rule
from powermeans.mathematics.sums import ColumnMoments, Spread, Sums, added, recorded
from powermeans.points.base import BaseRows
from powermeans.points.bregman import in_units, step_between_scaled, unit_steps_at
from powermeans.points.by_definition import weighted
from powermeans.points.checks.csr import stacked
from powermeans.points.compiled import CompiledRows
from powermeans.points.observed import filled
from powermeans.points.protocol import FarPoint
from powermeans.scale.checkpoint import JournaledExecutor
from powermeans.scale.executors import Call, Executor, Result
from powermeans.scale.farthest import all_weights, farthest_of_parts
from powermeans.types import FloatArray, IndexArray, Labels, Part, Points, SparsePoints

_NO_ORDER = (
    "points in parts are drawn as they come, since an order of all points is too long for memory: "
    "leave order out, and choose seeds with powermeans.engine.seeds.parallel.ParallelSeeds"
)


class PartedRows(BaseRows):
    """Rows whose points are in the parts of an executor."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self._last: tuple[bytes, Assignment] | None = None

    @cached_property
    def _overview(self) -> _Overview:
        """The results of the first pass over all parts."""
        looks = list(self.executor.each(_look))
        return _Overview(
            np.cumsum([look.n_points for look in looks]),
            looks[0],
            added(look.moments for look in looks),
            float(added(look.total_weight for look in looks)),
            added(look.at_a_center for look in looks),
            sum(look.n_stored for look in looks),
        )

    @property
    def n_parts(self) -> int:
        return len(self._overview.ends)

    @property
    def n_points(self) -> int:
        return int(self._overview.ends[-1])

    @property
    def n_features(self) -> int:
        return len(self._overview.moments.means)

    @property
    def dtype(self) -> np.dtype[np.floating[Any]]:
        return self._overview.first.dtype

    @property
    def total_weight(self) -> float:
        return self._overview.total_weight

    def _middle(self) -> FloatArray:
        return self._overview.moments.means

    def _find_mean(self) -> FloatArray:
        mean: FloatArray = self._overview.at_a_center.centers(fallback=self._middle()[None, :])[0]
        return mean

    def mean_variance(self) -> float:
        return float(np.mean(self._overview.moments.squares / self.n_points))

    def unit_steps(self) -> float | FloatArray:
        divergence = self.executor.opener.divergence
        if not isinstance(divergence, Bregman):
            return 1.0
        return unit_steps_at(divergence.inside(self._mean[None, :])[0], divergence)

    def rounding(self) -> float:
        return self._overview.first.rounding

    def critical_power(self) -> float:
        return self._critical_power

    @cached_property
    def _critical_power(self) -> float:
        if isinstance(self.executor.opener.divergence, Bregman):
            every = step_between_scaled(self.n_points, self.n_features)
            return self._critical_power_of(np.arange(0, self.n_points, every))
        per_row = max(1, self._overview.n_stored // self.n_points)
        n_sampled = n_rows_to_sample(self.n_points, self.n_features, per_row)
        if n_sampled is None:
            return self._critical_power_of(np.arange(self.n_points))
        weigh = _ShareOfMoments(self.filling, self._overview.total_weight)
        moments: Moments = self.executor.total(weigh)
        nowhere = self.nearness(np.empty((0, self.n_features)))
        drawn = nowhere.draw(strata_to_sample(n_sampled))
        return self._known_or_found(
            lambda: critical_power_of_sample(self._sample_filled(drawn), moments)
        )

    def _critical_power_of(self, some: IndexArray) -> float:
        weights = self.sample_weight(some)

        def find() -> float:
            points = self._sample_filled(some)
            if isinstance(self.executor.opener.divergence, Bregman):
                points = in_units(points, self.unit_steps())
            return critical_power(points, None if np.all(weights == 1) else weights)

        return self._known_or_found(find)

    def _known_or_found(self, find: Callable[[], float]) -> float:
        """Return the critical power; a journal keeps it, but not its sample."""
        if isinstance(self.executor, JournaledExecutor):
            return self.executor.once("critical power", find)
        return find()

    def sweep(self, centers: FloatArray, rule: Rule) -> Sums:
        if isinstance(rule, Online):
            raise TypeError(
                "points in parts have no order: call MiniBatchPowerKMeans.partial_fit or "
                "OnlineKMeans.partial_fit on one chunk after the other"
            )
        sums: Sums = self.executor.total(_Sweep(centers, rule))
        return sums

    def spread(self, centers: FloatArray) -> Spread:
        spread: Spread = self.executor.total(_SpreadOf(centers))
        return spread

    def assign(self, centers: FloatArray) -> tuple[Labels, float]:
        labels, inertias, start = np.empty(self.n_points, dtype=np.int32), [], 0
        for of_part, inertia in self.assigned(centers):
            labels[start : start + len(of_part)] = of_part
            start += len(of_part)
            inertias.append(inertia)
        return labels, float(added(inertias))

    def assigned(self, centers: FloatArray) -> Iterator[tuple[Labels, float]]:
        """Yield labels and inertia of one part after the other."""
        return self.executor.each(_Assign(centers))

    def assignment(self, centers: FloatArray) -> Assignment:
        """Return the result of `assign` without an array of all labels; the last one is kept."""
        key = centers.tobytes()
        if self._last is None or self._last[0] != key:
            self._last = key, self.executor.total(_Summarize(centers))
        return self._last[1]

    def sq_distances(self, centers: FloatArray) -> Points:
        """Raise, since the distances of all points may not fit into memory."""
        raise TypeError(
            "the distances of all points in parts may not fit into memory: ask for one part after "
            "the other, with each"
        )

    def nearness(self, centers: FloatArray, order: IndexArray | None = None) -> PartedNearness:
        if order is not None:
            raise TypeError(_NO_ORDER)
        return PartedNearness(self, centers)

    def farthest(self, centers: FloatArray, n_wanted: int) -> Iterator[FarPoint]:
        """Find several of the points in each pass over the parts."""
        return farthest_of_parts(self.executor, self.filling, centers, n_wanted)

    def take(self, indices: IndexArray) -> FloatArray:
        if not self.has_missing:
            return np.asarray(self._gathered(_take, indices))
        return np.ascontiguousarray(self._sample_filled(indices), dtype=np.float64)

    def sample_weight(self, indices: IndexArray) -> FloatArray:
        return np.asarray(self._gathered(_weights, indices))

    def sample(self, indices: IndexArray) -> Points | SparsePoints:
        found: Points | SparsePoints = self._gathered(_sample, indices)
        return found

    def _sample_filled(self, indices: IndexArray) -> Points | SparsePoints:
        return filled(self.sample(indices), self.filling)

    def contents(self) -> Iterator[Part]:
        """Yield points and weights of one part after the other, brought to this process."""
        bring = _Contents()
        if self.executor.reads_each_time:
            yield from self.each(bring)
            return
        # From workers all parts would come at once.
        for number in range(self.n_parts):
            yield from self.executor.each(bring, [number])

    def each(self, call: Call[Result]) -> Iterator[Result]:
        """Yield the result of a call on each part, in order."""
        return self.executor.each(call)

    def total(self, call: Call[Any]) -> Any:
        """Return the sum of the results of a call on all parts."""
        return self.executor.total(call)

    @property
    def parts(self) -> Self:
        """These rows themselves."""
        return self

    @property
    def priced(self) -> None:
        """None: the distances of all points may not fit into memory."""

    @property
    def n_stored(self) -> int:
        return self._overview.n_stored

    def first_points(self) -> IndexArray:
        """Return the index of the first point of each part."""
        return np.concatenate([[0], self._overview.ends[:-1]]).astype(np.intp)

    def first_of(self, number: int) -> int:
        """Return the index of the first point of this part."""
        return int(self._overview.ends[number - 1]) if number else 0

    @property
    def has_missing(self) -> bool:
        """True if NaN stands for missing entries."""
        return self.executor.opener.has_missing

    @property
    def filling(self) -> FloatArray | None:
        """The means of the columns, which replace missing entries; None if none may be missing."""
        return self._mean if self.has_missing else None

    def _gathered(self, get: _Getter, indices: IndexArray) -> Any:
        """Return the results of a function on some points, in the order of the indices."""
        indices = np.asarray(indices)
        if not len(indices):
            return next(self.executor.each(_Some(get, {0: indices.astype(np.intp)}), [0]))
        numbers = np.searchsorted(self._overview.ends, indices, side="right")
        order = np.argsort(numbers, kind="stable")
        chosen, firsts = np.unique(numbers[order], return_index=True)
        groups = np.split(order, firsts[1:])
        wanted = {
            int(number): indices[group] - self.first_of(int(number))
            for number, group in zip(chosen, groups, strict=True)
        }
        found = stacked(list(self.executor.each(_Some(get, wanted), sorted(wanted))))
        return found if np.all(order[:-1] < order[1:]) else found[np.argsort(order)]


@recorded
@dataclass(frozen=True, slots=True)
class Assignment:
    """The hard rule at some centers, without labels; assignments of parts add."""

    inertia: float
    is_used: NDArray[np.bool_]  # for each center, whether it is the nearest of some point

    def __add__(self, other: Assignment) -> Assignment:
        return Assignment(self.inertia + other.inertia, self.is_used | other.is_used)


class PartedNearness:
    """Nearness that computes the distances anew for each call."""

    def __init__(self, rows: PartedRows, centers: FloatArray) -> None:
        self._rows, self._centers = rows, np.array(centers, dtype=np.float64)

    def draw(self, uniforms: FloatArray, exponent: float = 2.0) -> IndexArray:
        mass = self._mass(exponent)
        ends = np.cumsum(list(self._rows.executor.each(_TotalOf(mass))))
        if len(mass.centers) and not 0 < ends[-1] < np.inf:
            # All points are at a center, so draw by weights only.
            mass = _Mass(self._centers[:0])
            ends = np.cumsum(list(self._rows.executor.each(_TotalOf(mass))))
        # No draw may fall into later parts, which have no mass.
        last = int(np.searchsorted(ends, ends[-1], side="left"))
        targets = np.asarray(uniforms) * ends[-1]
        numbers = np.minimum(np.searchsorted(ends, targets, side="right"), last)
        starts = np.concatenate([[0.0], ends])[numbers]
        wanted = {
            int(number): targets[numbers == number] - starts[numbers == number]
            for number in np.unique(numbers)
        }
        drawn = np.empty(len(targets), dtype=np.intp)
        found = self._rows.executor.each(_DrawIn(mass, wanted), sorted(wanted))
        for number, indices in zip(sorted(wanted), found, strict=True):
            drawn[numbers == number] = self._rows.first_of(number) + indices
        return drawn

    def _mass(self, exponent: float) -> _Mass:
        if exponent == 2.0 or not len(self._centers):
            return _Mass(self._centers)
        farthest = max(self._rows.executor.each(_FarthestSqDist(self._centers)))
        return _Mass(self._centers, exponent, farthest or 1.0)

    def potentials(self, candidates: IndexArray) -> FloatArray:
        points = self._rows.take(candidates)
        return np.asarray(self._rows.executor.total(_Potentials(self._centers, points)))

    def add(self, center: FloatArray) -> None:
        added_center = np.asarray(center, dtype=np.float64)[None, :]
        self._centers = np.concatenate([self._centers, added_center])

    def farthest(self) -> int:
        found = list(self._rows.executor.each(_Farthest(self._centers)))
        number = int(np.argmax([value for value, _ in found]))
        return self._rows.first_of(number) + found[number][1]

    def inertia(self) -> float:
        return float(self._rows.executor.total(_InertiaOf(self._centers)))

    def sq_dist(self, indices: IndexArray | None = None) -> FloatArray:
        if indices is None:
            raise TypeError(
                "the distances of all points in parts may not fit into memory: pass indices"
            )
        return np.asarray(self._rows._gathered(_SqDistOf(self._centers), indices))


# Calls on a part, which can be pickled, and their results.


@dataclass(frozen=True, slots=True)
class _Overview:
    """Facts about all parts."""

    ends: NDArray[np.intp]
    first: _Look
    moments: ColumnMoments
    total_weight: float
    at_a_center: Sums
    n_stored: int


@recorded
@dataclass(frozen=True, slots=True)
class _Look:
    """Facts about a part from its first call."""

    n_points: int
    dtype: np.dtype[np.floating[Any]]
    rounding: float
    total_weight: float
    moments: ColumnMoments
    at_a_center: Sums
    n_stored: int


def _look(rows: CompiledRows, number: int) -> _Look:
    moments = rows.column_moments()
    somewhere = moments.means[None, :]
    return _Look(
        rows.n_points,
        rows.dtype,
        rows.rounding(),
        rows.total_weight,
        moments,
        rows.sweep(somewhere, Hard()),
        rows.n_stored,
    )


@dataclass(frozen=True, slots=True)
class _Sweep:
    tells_of_faults: ClassVar[bool] = True
    centers: FloatArray
    rule: Rule

    def __call__(self, rows: CompiledRows, number: int) -> Sums:
        return rows.sweep(self.centers, self.rule)


@dataclass(frozen=True, slots=True)
class _SpreadOf:
    centers: FloatArray

    def __call__(self, rows: CompiledRows, number: int) -> Spread:
        return rows.spread(self.centers)


@dataclass(frozen=True, slots=True)
class _Assign:
    is_long: ClassVar[bool] = True
    centers: FloatArray

    def __call__(self, rows: CompiledRows, number: int) -> tuple[Labels, float]:
        return rows.assign(self.centers)


@dataclass(frozen=True, slots=True)
class _Summarize:
    centers: FloatArray

    def __call__(self, rows: CompiledRows, number: int) -> Assignment:
        labels, inertia = rows.assign(self.centers)
        is_used = np.zeros(len(self.centers), dtype=bool)
        is_used[labels] = True
        return Assignment(inertia, is_used)


class _Getter(Protocol):
    def __call__(self, rows: CompiledRows, indices: IndexArray) -> Any: ...


def _take(rows: CompiledRows, indices: IndexArray) -> FloatArray:
    return rows.take(indices)


def _sample(rows: CompiledRows, indices: IndexArray) -> Points | SparsePoints:
    return rows.sample(indices)


def _weights(rows: CompiledRows, indices: IndexArray) -> FloatArray:
    return rows.sample_weight(indices)


@dataclass(frozen=True, slots=True)
class _SqDistOf:
    centers: FloatArray

    def __call__(self, rows: CompiledRows, indices: IndexArray) -> FloatArray:
        return rows.nearness(self.centers).sq_dist(indices)


@dataclass(frozen=True, slots=True)
class _Some:
    """A function of some points of each part."""

    get: _Getter
    wanted: dict[int, IndexArray]

    @property
    def is_long(self) -> bool:
        """True for samples, which may be sparse, and large for the critical power."""
        return self.get is _sample

    def __call__(self, rows: CompiledRows, number: int) -> Any:
        return self.get(rows, self.wanted[number])


@dataclass(frozen=True, slots=True)
class _FarthestSqDist:
    """Largest squared distance of a point with positive weight, zero without such a point."""

    centers: FloatArray

    def __call__(self, rows: CompiledRows, number: int) -> float:
        has_weight = all_weights(rows) > 0
        return float(np.max(rows.nearness(self.centers).sq_dist()[has_weight], initial=0.0))


@dataclass(frozen=True, slots=True)
class _Mass:
    """The weight of each point times a power of its distance; without centers only the weight."""

    centers: FloatArray
    exponent: float = 2.0
    farthest: float = 1.0

    def __call__(self, rows: CompiledRows, number: int) -> FloatArray:
        weights = all_weights(rows)
        if not len(self.centers):
            return weights
        sq_dist = rows.nearness(self.centers).sq_dist()
        if self.exponent != 2.0:
            # Relative to the farthest point, so that no power overflows.
            sq_dist = (sq_dist / self.farthest) ** (self.exponent / 2)
        return weighted(weights, sq_dist)


@dataclass(frozen=True, slots=True)
class _TotalOf:
    mass: _Mass

    def __call__(self, rows: CompiledRows, number: int) -> float:
        return float(np.cumsum(self.mass(rows, number))[-1])


@dataclass(frozen=True, slots=True)
class _DrawIn:
    """Finds the points of a part at which the cumulative mass passes its targets."""

    mass: _Mass
    targets: dict[int, FloatArray]

    def __call__(self, rows: CompiledRows, number: int) -> IndexArray:
        cumulative = np.cumsum(self.mass(rows, number))
        drawn = np.searchsorted(cumulative, self.targets[number], side="right")
        last_with_mass = np.searchsorted(cumulative, cumulative[-1], side="left")
        return np.asarray(np.minimum(drawn, last_with_mass), dtype=np.intp)


@dataclass(frozen=True, slots=True)
class _Contents:
    is_long: ClassVar[bool] = True

    def __call__(self, rows: CompiledRows, number: int) -> Part:
        return rows.sample(np.arange(rows.n_points)), all_weights(rows)


@dataclass(frozen=True, slots=True)
class _Potentials:
    centers: FloatArray
    points: FloatArray

    def __call__(self, rows: CompiledRows, number: int) -> FloatArray:
        nearest, weights = rows.nearness(self.centers).sq_dist(), all_weights(rows)
        left = [
            np.sum(weights * np.minimum(nearest, rows.nearness(point[None, :]).sq_dist()))
            for point in self.points
        ]
        return np.array(left)


@dataclass(frozen=True, slots=True)
class _Farthest:
    centers: FloatArray

    def __call__(self, rows: CompiledRows, number: int) -> tuple[float, int]:
        nearness = rows.nearness(self.centers)
        index = nearness.farthest()
        at = np.array([index])
        weight = float(rows.sample_weight(at)[0])
        return (weight * float(nearness.sq_dist(at)[0]) if weight else 0.0), index


@dataclass(frozen=True, slots=True)
class _InertiaOf:
    centers: FloatArray

    def __call__(self, rows: CompiledRows, number: int) -> float:
        return rows.nearness(self.centers).inertia()


@dataclass(frozen=True, slots=True)
class _ShareOfMoments:
    filling: FloatArray | None
    total_weight: float

    def __call__(self, rows: CompiledRows, number: int) -> Moments:
        points = filled(rows.sample(np.arange(rows.n_points)), self.filling)
        return moments_about_origin(points, all_weights(rows) / self.total_weight)
