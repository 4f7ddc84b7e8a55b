"""Points in an ordered sequence of parts, wherever these are.

Each quantity takes one call on every part, and a tree that depends only on the number of parts adds
the results. So no bit depends on the place of the parts, or on the number of threads or workers. No
array is as long as the points, unless the caller asks for one, or a search for few points together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from powermeans.divergences.base import Divergence
from powermeans.divergences.bregman import Bregman
from powermeans.mathematics.critical_power import (
    critical_power,
    critical_power_of_sample,
    n_rows_to_sample,
    strata_to_sample,
)
from powermeans.mathematics.rules import Hard, Online, Rule
from powermeans.mathematics.sums import ColumnMoments, Spread, Sums, added, recorded
from powermeans.points.base import BasePoints
from powermeans.points.bregman import in_units, step_between_scaled, unit_steps_at
from powermeans.points.by_definition import weighted
from powermeans.points.checks.csr import stacked
from powermeans.points.checks.points import largest_magnitude
from powermeans.points.compiled import CompiledPoints
from powermeans.points.farthest import Farthest, farthest_in_passes, largest_first
from powermeans.points.observed import filled
from powermeans.points.opening import open_batch, open_rows, wide_if_far
from powermeans.points.protocol import FarPoint, Points
from powermeans.scale.checkpoint import once
from powermeans.scale.executors import Call, Executor, PartCall, Result
from powermeans.system.attributes import cached_property
from powermeans.types import AnyMatrix, FloatArray, IndexArray, Labels, Matrix, Part


class PartedPoints(BasePoints):
    """Rows whose points are in the parts of an executor.

    Points that are brought from them to one memory have `n_threads`.
    """

    def __init__(self, executor: Executor, n_threads: int | None = None) -> None:
        self.executor, self.n_threads = executor, n_threads
        self._last: tuple[bytes, Assignment] | None = None

    @cached_property
    def _by_part(self) -> list[Overview]:
        """What the first pass finds in each part."""
        return list(self.executor.each(PartCall(_overview)))

    @cached_property
    def _overview(self) -> Overview:
        whole: Overview = added(self._by_part)
        return whole

    @cached_property
    def _ends(self) -> NDArray[np.intp]:
        return np.cumsum([part.n_points for part in self._by_part])

    @property
    def n_parts(self) -> int:
        return len(self._by_part)

    @property
    def n_points(self) -> int:
        return self._overview.n_points

    @property
    def n_features(self) -> int:
        return len(self._overview.moments.means)

    @property
    def dtype(self) -> np.dtype[np.floating[Any]]:
        return self._overview.dtype

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
        divergence = self.divergence
        if not isinstance(divergence, Bregman):
            return 1.0
        return unit_steps_at(divergence.inside(self.mean()[None, :])[0], divergence)

    def rounding(self) -> float:
        return self._overview.rounding

    def critical_power(self) -> float:
        return self._critical_power

    @cached_property
    def _critical_power(self) -> float:
        if isinstance(self.divergence, Bregman):
            every = step_between_scaled(self.n_points, self.n_features)
            return self._critical_power_of(np.arange(0, self.n_points, every))
        n_sampled = n_rows_to_sample(self.n_points, self.n_features, self._overview.n_stored)
        if n_sampled is None:
            return self._critical_power_of(np.arange(self.n_points))
        rng = np.random.default_rng(0)
        nowhere = self.nearness(np.empty((0, self.n_features)))
        drawn = nowhere.draw(strata_to_sample(n_sampled, rng))

        def find() -> float:
            return critical_power_of_sample(self._sample_filled(drawn), self.mean(), rng)

        return once(self.executor, "critical power", find)

    def _critical_power_of(self, some: IndexArray) -> float:
        weights = self.sample_weight(some)

        def find() -> float:
            points = self._sample_filled(some)
            if isinstance(self.divergence, Bregman):
                points = in_units(points, self.unit_steps())
            return critical_power(points, None if np.all(weights == 1) else weights)

        return once(self.executor, "critical power", find)

    def sweep(self, centers: FloatArray, rule: Rule) -> Sums:
        if isinstance(rule, Online):
            raise TypeError(
                "points in parts have no order: call MiniBatchPowerKMeans.partial_fit or "
                "OnlineKMeans.partial_fit on one chunk after the other"
            )
        sums: Sums = self.executor.total(PartCall(_sweep, (centers, rule)))
        return sums

    def spread(self, centers: FloatArray) -> Spread:
        spread: Spread = self.executor.total(PartCall(_asked, ("spread", centers)))
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
        return self.executor.each(PartCall(_asked, ("assign", centers), is_long=True))

    def assignment(self, centers: FloatArray) -> Assignment:
        """Return the result of `assign` without an array of all labels; the last one is stored."""
        key = centers.tobytes()
        if self._last is None or self._last[0] != key:
            self._last = key, self.executor.total(PartCall(_assignment, (centers,)))
        return self._last[1]

    def sq_distances(self, centers: FloatArray) -> Matrix:
        """Raise, since the distances of all points may not fit into memory."""
        raise TypeError(
            "the distances of all points in parts may not fit into memory: ask for one part after "
            "the other, with each"
        )

    def nearness(self, centers: FloatArray, order: IndexArray | None = None) -> PartedNearness:
        if order is not None:
            raise TypeError(
                "points in parts are drawn as they come, since an order of all points is too long "
                "for memory: leave order out, and choose seeds with "
                "powermeans.engine.seeds.parallel.ParallelSeeds"
            )
        return PartedNearness(self, centers)

    def farthest(self, centers: FloatArray, n_wanted: int) -> Iterator[FarPoint]:
        """Find several of the points in each pass over the parts."""
        return farthest_of_parts(self.executor, self.filling, centers, n_wanted)

    def take(self, indices: IndexArray) -> FloatArray:
        if not self.has_missing:
            return np.asarray(self.gathered(indices, "take"))
        return np.ascontiguousarray(self._sample_filled(indices), dtype=np.float64)

    def sample_weight(self, indices: IndexArray) -> FloatArray:
        return np.asarray(self.gathered(indices, "sample_weight"))

    def sample(self, indices: IndexArray) -> AnyMatrix:
        found: AnyMatrix = self.gathered(indices, "sample")
        return found

    def _sample_filled(self, indices: IndexArray) -> AnyMatrix:
        return filled(self.sample(indices), self.filling)

    def contents(self) -> Iterator[Part]:
        """Yield points and weights of one part after the other, brought to this process."""
        bring = PartCall(_contents, is_long=True)
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
    def elsewhere(self) -> Self | None:
        """These rows themselves, if points can move where they are opened in one memory."""
        return None if self.divergence.moves is None else self

    def together(self) -> Points:
        """Return all points as rows in one memory."""

        def find() -> tuple[Any, FloatArray]:
            points, weights = zip(*self.contents(), strict=True)
            return stacked(points), np.concatenate(weights)

        return self.opened(*once(self.executor, "all points", find))

    def opened(self, points: AnyMatrix, weights: FloatArray) -> Points:
        """Return some of the points, which were brought here, as rows in one memory."""
        options: dict[str, Any] = {
            "divergence": self.divergence,
            "has_missing": self.has_missing and bool(np.isnan(np.asarray(points)).any()),
            "n_threads": self.n_threads,
        }
        if np.all(weights == 1):
            return open_rows(points, **options)
        return open_rows(wide_if_far(points, largest_magnitude(points)), weights, **options)

    @property
    def priced(self) -> None:
        """None: the distances of all points may not fit into memory."""

    @property
    def n_stored(self) -> int:
        return self._overview.n_stored

    def first_points(self) -> IndexArray:
        """Return the index of the first point of each part."""
        return np.concatenate([[0], self._ends[:-1]]).astype(np.intp)

    def first_of(self, number: int) -> int:
        """Return the index of the first point of this part."""
        return int(self._ends[number - 1]) if number else 0

    @property
    def divergence(self) -> Divergence:
        """What the distances are."""
        return self.executor.opener.divergence

    @property
    def has_missing(self) -> bool:
        """True if NaN stands for missing entries."""
        return self.executor.opener.has_missing

    @property
    def filling(self) -> FloatArray | None:
        """The means of the columns, which replace missing entries; None if none may be missing."""
        return self.mean() if self.has_missing else None

    def gathered(self, indices: IndexArray, method: str, centers: FloatArray | None = None) -> Any:
        """Return what a method of rows, or of nearness to centers, returns for some points."""
        indices = np.asarray(indices)
        if not len(indices):
            return next(self._some(method, {0: indices.astype(np.intp)}, centers))
        numbers = np.searchsorted(self._ends, indices, side="right")
        order = np.argsort(numbers, kind="stable")
        chosen, firsts = np.unique(numbers[order], return_index=True)
        groups = np.split(order, firsts[1:])
        wanted = {
            int(number): indices[group] - self.first_of(int(number))
            for number, group in zip(chosen, groups, strict=True)
        }
        found = stacked(list(self._some(method, wanted, centers)))
        return found if np.all(order[:-1] < order[1:]) else found[np.argsort(order)]

    def _some(
        self, method: str, wanted: dict[int, IndexArray], centers: FloatArray | None
    ) -> Iterator[Any]:
        # Samples may be sparse, and large for the critical power.
        call = PartCall(_of_some, (wanted, method, centers), is_long=method == "sample")
        return self.executor.each(call, sorted(wanted))


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

    def __init__(self, rows: PartedPoints, centers: FloatArray) -> None:
        self._rows, self._centers = rows, np.array(centers, dtype=np.float64)

    def draw(self, uniforms: FloatArray, exponent: float = 2.0) -> IndexArray:
        mass, each = self._mass(exponent), self._rows.each
        ends = np.cumsum(list(each(PartCall(_total_mass, mass))))
        if len(mass[0]) and not 0 < ends[-1] < np.inf:
            # All points are at a center, so draw by weights only.
            mass = self._centers[:0], 2.0, 1.0
            ends = np.cumsum(list(each(PartCall(_total_mass, mass))))
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
        found = self._rows.executor.each(PartCall(_drawn, (wanted, *mass)), sorted(wanted))
        for number, indices in zip(sorted(wanted), found, strict=True):
            drawn[numbers == number] = self._rows.first_of(number) + indices
        return drawn

    def _mass(self, exponent: float) -> tuple[FloatArray, float, float]:
        """Return the arguments of `_mass_of_points`."""
        if exponent == 2.0 or not len(self._centers):
            return self._centers, 2.0, 1.0
        farthest = max(self._rows.each(PartCall(_farthest_sq_dist, (self._centers,))))
        return self._centers, exponent, farthest or 1.0

    def potentials(self, candidates: IndexArray) -> FloatArray:
        points = self._rows.take(candidates)
        return np.asarray(self._rows.total(PartCall(_potentials, (self._centers, points))))

    def add(self, center: FloatArray) -> None:
        added_center = np.asarray(center, dtype=np.float64)[None, :]
        self._centers = np.concatenate([self._centers, added_center])

    def farthest(self) -> int:
        found = list(self._rows.each(PartCall(_farthest, (self._centers,))))
        number = int(np.argmax([value for value, _ in found]))
        return self._rows.first_of(number) + int(found[number][1])

    def inertia(self) -> float:
        return float(self._rows.total(PartCall(_inertia, (self._centers,))))

    def sq_dist(self, indices: IndexArray | None = None) -> FloatArray:
        if indices is None:
            raise TypeError(
                "the distances of all points in parts may not fit into memory: pass indices"
            )
        return np.asarray(self._rows.gathered(indices, "sq_dist", self._centers))


@recorded
@dataclass(frozen=True, slots=True)
class Overview:
    """Facts about the points of a part from its first call; those of parts add."""

    n_points: int
    dtype: np.dtype[np.floating[Any]]
    rounding: float
    total_weight: float
    moments: ColumnMoments
    at_a_center: Sums
    n_stored: int

    def __add__(self, other: Overview) -> Overview:
        return Overview(
            self.n_points + other.n_points,
            self.dtype,
            self.rounding,
            self.total_weight + other.total_weight,
            self.moments + other.moments,
            self.at_a_center + other.at_a_center,
            self.n_stored + other.n_stored,
        )


# Functions of the points of a part and its number, called by way of `PartCall`.


def _overview(rows: CompiledPoints, number: int) -> Overview:
    moments = rows.column_moments()
    return Overview(
        rows.n_points,
        rows.dtype,
        rows.rounding(),
        rows.total_weight,
        moments,
        rows.sweep(moments.means[None, :], Hard()),
        rows.n_stored,
    )


def _sweep(rows: CompiledPoints, number: int, centers: FloatArray, rule: Rule) -> Sums:
    # A part that is read again has no labels of the last sweep.
    return replace(rows.sweep(centers, rule), n_changed=None)


def _asked(rows: CompiledPoints, number: int, method: str, centers: FloatArray) -> Any:
    return getattr(rows, method)(centers)


def _assignment(rows: CompiledPoints, number: int, centers: FloatArray) -> Assignment:
    labels, inertia = rows.assign(centers)
    is_used = np.zeros(len(centers), dtype=bool)
    is_used[labels] = True
    return Assignment(inertia, is_used)


def _contents(rows: CompiledPoints, number: int) -> Part:
    return rows.sample(np.arange(rows.n_points)), all_weights(rows)


def _of_some(
    rows: CompiledPoints,
    number: int,
    wanted: dict[int, IndexArray],
    method: str,
    centers: FloatArray | None,
) -> Any:
    asked = rows if centers is None else rows.nearness(centers)
    return getattr(asked, method)(wanted[number])


def _farthest_sq_dist(rows: CompiledPoints, number: int, centers: FloatArray) -> float:
    """Return the largest squared distance of a point with positive weight, zero if none has it."""
    has_weight = all_weights(rows) > 0
    return float(np.max(rows.nearness(centers).sq_dist()[has_weight], initial=0.0))


def _mass_of_points(
    rows: CompiledPoints, centers: FloatArray, exponent: float, farthest: float
) -> FloatArray:
    """Return the weight of each point times a power of its distance; without centers the weight."""
    weights = all_weights(rows)
    if not len(centers):
        return weights
    sq_dist = rows.nearness(centers).sq_dist()
    if exponent != 2.0:
        # Relative to the farthest point, so that no power overflows.
        sq_dist = (sq_dist / farthest) ** (exponent / 2)
    return weighted(weights, sq_dist)


def _total_mass(rows: CompiledPoints, number: int, *mass: Any) -> float:
    return float(np.cumsum(_mass_of_points(rows, *mass))[-1])


def _drawn(
    rows: CompiledPoints, number: int, targets: dict[int, FloatArray], *mass: Any
) -> IndexArray:
    """Return the points of a part at which the cumulative mass passes its targets."""
    cumulative = np.cumsum(_mass_of_points(rows, *mass))
    drawn = np.searchsorted(cumulative, targets[number], side="right")
    last_with_mass = np.searchsorted(cumulative, cumulative[-1], side="left")
    return np.asarray(np.minimum(drawn, last_with_mass), dtype=np.intp)


def _potentials(
    rows: CompiledPoints, number: int, centers: FloatArray, points: FloatArray
) -> FloatArray:
    nearest, weights = rows.nearness(centers).sq_dist(), all_weights(rows)
    left = [
        np.sum(weights * np.minimum(nearest, rows.nearness(point[None, :]).sq_dist()))
        for point in points
    ]
    return np.array(left)


def _farthest(rows: CompiledPoints, number: int, centers: FloatArray) -> tuple[float, int]:
    nearness = rows.nearness(centers)
    index = nearness.farthest()
    at = np.array([index])
    weight = float(rows.sample_weight(at)[0])
    return (weight * float(nearness.sq_dist(at)[0]) if weight else 0.0), index


def _inertia(rows: CompiledPoints, number: int, centers: FloatArray) -> float:
    return rows.nearness(centers).inertia()


# The points farthest from all centers, each a center for the next.


recorded(Farthest)


def farthest_of_parts(
    executor: Executor, filling: FloatArray | None, centers: FloatArray, n_wanted: int
) -> Iterator[FarPoint]:
    """Find points as `Points.farthest` does. `filling` replaces missing entries."""
    opener = executor.opener

    def find(chosen: FloatArray, n_kept: int) -> tuple[Farthest, Points]:
        arguments = chosen, len(centers), n_kept, opener.has_missing
        n_bytes = 8 * n_kept * (int(chosen.shape[1]) + 3)
        found: Farthest = executor.total(
            PartCall(_farthest_in_part, arguments, n_bytes_given=n_bytes)
        )
        rows = open_batch(
            found.points,
            n_threads=1,
            divergence=opener.divergence,
            has_missing=opener.has_missing,
        )
        return replace(found, points=np.asarray(filled(found.points, filling))), rows

    # Kernels for many points and for few round the same distance differently, by less than this.
    return farthest_in_passes(find, centers, n_wanted, rounding=1e-3)


def _farthest_in_part(
    rows: CompiledPoints,
    number: int,
    centers: FloatArray,
    n_labels: int,
    n_kept: int,
    has_missing: bool,
) -> Farthest:
    """Find the farthest points of a part, labeled by the first centers."""
    sq_dist, weights = rows.nearness(centers).sq_dist(), all_weights(rows)
    first: IndexArray = largest_first(weighted(weights, sq_dist), n_kept)
    labels, _ = rows.assign(centers[:n_labels])
    # Keep missing entries: the means of all parts, which fill them, are not known here.
    points = np.asarray(rows.sample(first)) if has_missing else rows.take(first)
    return Farthest(n_kept, sq_dist[first], weights[first], labels[first], points)


def all_weights(rows: CompiledPoints) -> FloatArray:
    """Return the weights of all points of a part."""
    return rows.sample_weight(np.arange(rows.n_points))
