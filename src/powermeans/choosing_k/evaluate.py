"""What each criterion says of centers for several k: the formulas of `criteria` at work."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from powermeans import criteria as formulas
from powermeans.choosing_k.centers_by_k import EFFORTS_FOR_EACH_K, EffortForEachK, centers_by_k
from powermeans.loop.anneal import Callback
from powermeans.loop.search import Solution
from powermeans.loop.spread import rounding_inertia
from powermeans.principal_axes import principal_axes
from powermeans.rows import open_rows
from powermeans.rows.protocol import Rows
from powermeans.seeds.choose import order_by_place
from powermeans.system.threads import blas_on_one_thread
from powermeans.types import FloatArray, IndexArray, Labels, Points, SparsePoints

_BLOCK_ELEMENTS = 2**20
# Reference sets have as many points as there are, with copies, and no more than this.
_MOST_REFERENCE_POINTS = 10_000
_MOST_RESAMPLED = 2_000
# Agreements that differ by no more count as equal.
_AS_STABLE = 0.02
# Of more features than this the principal axes of all of them are not formed.
MOST_AXES = 1024


@dataclass(frozen=True, slots=True)
class Settings:
    """How a study is made.

    Attributes
    ----------
    effort : EffortForEachK
        That of the centers, and of those of the reference sets of the gap.
    seeds : dict from str to int
        Of the random numbers of each criterion, so that none depends on which others are asked.
    callback : callable, optional
        Called after each sweep.
    """

    effort: EffortForEachK
    silhouette_size: int
    n_references: int
    n_resamples: int
    seeds: dict[str, int]
    n_threads: int | None = None
    callback: Callback | None = None

    def rng(self, name: str) -> np.random.RandomState:
        """The random numbers of one criterion."""
        return np.random.RandomState(self.seeds[name])


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a criterion says.

    Attributes
    ----------
    values : (n_sizes,)
        NaN where it is undefined.
    chosen : int or None
        The k, as an index.
    errors : (n_sizes,), optional
        Standard errors of the values.
    """

    values: FloatArray
    chosen: int | None
    errors: FloatArray | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """Some of the points, or all, with their counts."""

    points: Points | SparsePoints
    counts: FloatArray
    rows: Rows

    @classmethod
    def of(
        cls,
        points: Points | SparsePoints,
        counts: FloatArray,
        n_threads: int | None,
        *,
        has_missing: bool = False,
    ) -> Sample:
        """Given points."""
        rows = open_rows(points, counts, n_threads=n_threads, has_missing=has_missing)
        return cls(points, counts, rows)

    def distances(self) -> FloatArray:
        """Between all pairs, Euclidean, not squared; sparse points become dense in blocks."""
        n_points = self.rows.n_points
        between = np.empty((n_points, n_points))
        step = max(1, _BLOCK_ELEMENTS // self.rows.n_features)
        for start in range(0, n_points, step):
            block = np.arange(start, min(start + step, n_points))
            between[:, block] = self.rows.sq_distances(self.rows.take(block))
        np.fill_diagonal(between, 0.0)
        return np.sqrt(between, out=between)


@dataclass(frozen=True)
class Study:
    """All that criteria look at. Weights are counts of copies.

    Attributes
    ----------
    points : (n_points, n_features)
        Dense or CSR.
    counts : (n_points,)
    rows : Rows
        The points with the counts as weights.
    found : dict from int to Solution
        For each k, rising.
    has_missing : bool
        Whether NaN stands for an entry that is missing.
    """

    points: Points | SparsePoints
    counts: FloatArray
    rows: Rows
    found: dict[int, Solution]
    settings: Settings
    has_missing: bool = False

    @property
    def sizes(self) -> list[int]:
        """The values of k."""
        return list(self.found)

    @cached_property
    def n_counted(self) -> float:
        """How many points there are, with copies."""
        return float(self.counts.sum())

    @cached_property
    def inertias(self) -> FloatArray:
        """W(k), zero where it is rounding; it never rises, by rounding neither."""
        return inertias_of(self.found, self.rows)

    @cached_property
    def with_one(self) -> tuple[list[int], FloatArray]:
        """Sizes and inertias with k = 1 before k = 2: it is known without a search."""
        if self.sizes[0] != 2:
            return self.sizes, self.inertias
        one = max(self.rows.inertia_about_mean(), float(self.inertias[0]))
        return [1, *self.sizes], np.concatenate([[one], self.inertias])

    @cached_property
    def sample(self) -> Sample:
        """Points for what takes all pairs: all, or as many draws as are wanted."""
        size = self.settings.silhouette_size
        weighing = np.flatnonzero(self.counts > 0)
        if len(weighing) <= size:
            return self.sample_of(weighing, self.counts[weighing])
        return self.drawn(size, self.settings.rng("silhouette"))

    def drawn(self, n_drawn: int, rng: np.random.RandomState) -> Sample:
        """With replacement, in proportion to the counts; copies or a weight, it is the same."""
        nothing = np.empty((0, self.rows.n_features))
        drawn = self.rows.nearness(nothing, self._order).draw(rng.uniform(size=n_drawn))
        indices, counts = np.unique(drawn, return_counts=True)
        return self.sample_of(indices, counts.astype(np.float64))

    def sample_of(self, indices: IndexArray, counts: FloatArray) -> Sample:
        """These points, with these counts."""
        points, n_threads = self.rows.sample(indices), self.settings.n_threads
        return Sample.of(points, counts, n_threads, has_missing=self.has_missing)

    @cached_property
    def _order(self) -> IndexArray | None:
        """The points by where they lie."""
        return order_by_place(self.rows, np.random.RandomState(0))[0]

    @cached_property
    def widths(self) -> list[tuple[FloatArray, float]]:
        """For each k, mean distances from the centers, and the simplified silhouette."""
        return [self._widths(solution.centers) for solution in self.found.values()]

    def _widths(self, centers: FloatArray) -> tuple[FloatArray, float]:
        n_centers = len(centers)
        labels, nearest, second = self._two_nearest(centers)
        sums = np.bincount(labels, self.counts * nearest, minlength=n_centers)
        in_cluster = np.bincount(labels, self.counts, minlength=n_centers)
        means = sums / np.where(in_cluster > 0, in_cluster, 1.0)
        if n_centers == 1:
            return means, math.nan
        return means, formulas.simplified_silhouette(nearest, second, labels, self.counts)

    def _two_nearest(self, centers: FloatArray) -> tuple[Labels, FloatArray, FloatArray]:
        """Labels and distances of the nearest and the second nearest center, in blocks."""
        n_points = self.rows.n_points
        labels = np.empty(n_points, dtype=np.int32)
        two = np.empty((n_points, 2))
        step = max(1, _BLOCK_ELEMENTS // max(len(centers), self.rows.n_features))
        for start in range(0, n_points, step):
            block = slice(start, start + step)
            rows = open_rows(
                self.points[block],
                n_threads=self.settings.n_threads,
                has_missing=self.has_missing,
            )
            sq_dist = rows.sq_distances(centers)
            labels[block] = sq_dist.argmin(axis=1)
            two[block] = np.partition(sq_dist, min(1, len(centers) - 1), axis=1)[:, :2]
        np.sqrt(two, out=two)
        return labels, two[:, 0], two[:, 1]


def inertias_of(found: dict[int, Solution], rows: Rows) -> FloatArray:
    """W(k), zero where it is rounding, and never rising by rounding."""
    inertias = np.array([solution.inertia for solution in found.values()])
    inertias[inertias <= rounding_inertia(rows)] = 0.0
    return np.minimum.accumulate(inertias)


# The criteria, each by itself.


def by_knee(study: Study) -> Verdict:
    """Kneedle; see `criteria.knee`."""
    sizes, inertias = study.with_one
    n_before = len(sizes) - len(study.sizes)
    bend = formulas.knee(sizes, inertias)
    values = formulas.knee_differences(sizes, inertias)[n_before:]
    return Verdict(values, None if bend is None else bend - n_before)


def by_silhouette(study: Study) -> Verdict:
    """The largest, on a sample; see `criteria.silhouette`."""
    sample, distances = study.sample, study.sample.distances()
    values = [
        formulas.silhouette(distances, sample.rows.assign(solution.centers)[0], sample.counts)
        for solution in study.found.values()
    ]
    return _largest(np.array(values))


def by_simplified_silhouette(study: Study) -> Verdict:
    """The largest; see `criteria.simplified_silhouette`."""
    return _largest(np.array([simplified for _, simplified in study.widths]))


def by_calinski_harabasz(study: Study) -> Verdict:
    """The largest; see `criteria.calinski_harabasz`."""
    one, n_points = study.rows.inertia_about_mean(), study.n_counted
    values = [
        formulas.calinski_harabasz(float(inertia), one, n_points, k)
        for k, inertia in zip(study.sizes, study.inertias, strict=True)
    ]
    return _largest(np.array(values))


def by_davies_bouldin(study: Study) -> Verdict:
    """The smallest; see `criteria.davies_bouldin`."""
    values = [
        formulas.davies_bouldin(means, solution.centers)
        for (means, _), solution in zip(study.widths, study.found.values(), strict=True)
    ]
    smallest = _largest(-np.array(values))
    return Verdict(-smallest.values, smallest.chosen)


def by_bic(study: Study) -> Verdict:
    """The largest; see `criteria.bic`."""
    values = [
        formulas.bic(float(inertia), solution.spread.weights, study.rows.n_features)
        for inertia, solution in zip(study.inertias, study.found.values(), strict=True)
    ]
    return _largest(np.array(values))


def by_jump(study: Study) -> Verdict:
    """The largest; see `criteria.jumps`."""
    sizes, inertias = study.with_one
    if sizes[0] == 1:
        inertias = np.concatenate([[math.inf], inertias])
    values = formulas.jumps(inertias, study.rows.n_features)
    n_missing = max(0, len(study.sizes) - len(values))
    values = np.concatenate([np.full(n_missing, math.nan), values])
    return _largest(values[-len(study.sizes) :])


def by_dp_means(study: Study) -> Verdict:
    """The largest; see `criteria.persistence`."""
    sizes, inertias = study.with_one
    return _largest(formulas.persistence(sizes, inertias)[-len(study.sizes) :])


def by_gap(study: Study) -> Verdict:
    """The one-standard-error rule; see `criteria.gaps`."""
    rng, settings = study.settings.rng("gap"), study.settings
    low, high = bounding_box(study.points, study.counts)
    n_drawn = min(_MOST_REFERENCE_POINTS, round(study.n_counted))
    references = []
    for _ in range(settings.n_references):
        points = rng.uniform(low, high, size=(n_drawn, len(low)))
        rows = open_rows(points, n_threads=settings.n_threads)
        found = _centers(rows, study, settings.effort, rng)
        references.append(_log_means(inertias_of(found, rows), study.sizes, n_drawn))
    logs = _log_means(study.inertias, study.sizes, study.n_counted)
    values, errors = formulas.gaps(logs, references)
    return Verdict(values, formulas.first_within_one_error(values, errors), errors)


def bounding_box(
    points: Points | SparsePoints, counts: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Lowest and highest coordinates along the principal axes, (n_axes,) each.

    Tibshirani and others (2001), section 4, choice (b): a uniform box turned as the points are.
    Inertias of points in it do not depend on how it is turned, so it need not be turned back.
    """
    n_axes = min(points.shape[1], max(1, points.shape[0] - 1))
    axes = principal_axes(points, counts, n_axes)
    with blas_on_one_thread():
        along = np.asarray(points[counts > 0] @ axes.axes.T - axes.mean @ axes.axes.T)
    return along.min(axis=0), along.max(axis=0)


def by_stability(study: Study) -> Verdict:
    """The largest k at which resamples agree almost as well as at the best; see `agreements`.

    Where clusters lie in groups, the groups are as stable as the clusters: hence the largest.
    """
    pairs = agreements(study)
    values = pairs.mean(axis=0)
    errors = pairs.std(axis=0) / math.sqrt(study.settings.n_resamples)
    if study.sizes[0] == 1:
        values[0] = errors[0] = math.nan
    best = _largest(values)
    if best.chosen is None:
        return Verdict(values, None, errors)
    almost = np.flatnonzero(values >= values[best.chosen] - _AS_STABLE)
    return Verdict(values, int(almost[-1]), errors)


def agreements(study: Study) -> FloatArray:
    """How far centers found on two resamples put the same points together, (n_pairs, n_sizes).

    Resamples are drawn with replacement; every two of them (as by Fang & Wang 2012, "Selection of
    the number of clusters via the bootstrap method") are compared on points of the data by the
    adjusted Rand index, which unlike their measure does not grow with k by itself.
    """
    rng = study.settings.rng("stability")
    n_drawn = min(_MOST_RESAMPLED, round(study.n_counted))
    labels = []
    for _ in range(study.settings.n_resamples):
        rows = study.drawn(n_drawn, rng).rows
        found = _centers(rows, study, EFFORTS_FOR_EACH_K["fast"], rng)
        labels.append([study.sample.rows.assign(s.centers)[0] for s in found.values()])
    return np.array(
        [
            [
                formulas.weighted_rand_index(u, v, study.sample.counts)
                for u, v in zip(one, other, strict=True)
            ]
            for one, other in itertools.combinations(labels, 2)
        ]
    )


def _centers(
    rows: Rows, study: Study, effort: EffortForEachK, rng: np.random.RandomState
) -> dict[int, Solution]:
    *_, found = centers_by_k(rows, study.sizes, effort, rng, study.settings.callback)
    return found


def _log_means(inertias: FloatArray, sizes: list[int], n_points: float) -> FloatArray:
    """log(W / n), NaN where there are as many centers as points."""
    with np.errstate(divide="ignore"):
        logs = np.log(inertias / n_points)
    return np.asarray(np.where(np.array(sizes) < n_points, logs, math.nan))


def _largest(values: FloatArray) -> Verdict:
    """The first of the largest, if there is one."""
    known = np.where(np.isnan(values), -math.inf, values)
    best = int(np.argmax(known))
    return Verdict(values, best if known[best] > -math.inf else None)


CRITERIA: dict[str, Callable[[Study], Verdict]] = {
    "knee": by_knee,
    "silhouette": by_silhouette,
    "simplified_silhouette": by_simplified_silhouette,
    "calinski_harabasz": by_calinski_harabasz,
    "davies_bouldin": by_davies_bouldin,
    "bic": by_bic,
    "jump": by_jump,
    "dp_means": by_dp_means,
    "stability": by_stability,
    "gap": by_gap,
}
"""By name."""

# "silhouette" compares points with each other, "gap" draws whole ones, and "bic" and "jump" count
# the dimensions of each.
FOR_WHOLE_POINTS = ("silhouette", "bic", "jump", "gap")
