"""Evaluate each criterion for the centers of several k, by the formulas of `criteria`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from powermeans import criteria as formulas
from powermeans.choosing_k.centers_by_k import WITHOUT_IMPROVEMENT, EffortForEachK, centers_by_k
from powermeans.loop.anneal import Callback
from powermeans.loop.search import Solution
from powermeans.loop.spread import rounding_inertia
from powermeans.principal_axes import directions, principal_axes, scores_above_chance
from powermeans.rows import open_rows
from powermeans.rows.protocol import Rows
from powermeans.seeds.orders import order_by_place
from powermeans.system.threads import blas_on_one_thread
from powermeans.types import FloatArray, IndexArray, Labels, Points, SparsePoints

_BLOCK_ELEMENTS = 2**20
# Reference sets have as many points as X, copies counted, and no more than this.
_MOST_REFERENCE_POINTS = 10_000
_MOST_RESAMPLED = 2_000
# Separations are of all points, or of a random sample of this size, and of fewer for very many k.
_MOST_SEPARATED = 10_000
_MOST_PLACES = 2**22
# Beyond so many features, directions are separated along the axes above chance, of fewer points.
_MOST_FEATURES_AS_THEY_ARE = 10
_MOST_DIRECTIONS, _MOST_DIRECTED, _MOST_VALUES = 128, 3_000, 2**23
# Clusters are apart if their separation is one standard error above that of two halves of a uniform
# distribution, and a valley of so many standard errors lies between them: at a k that "dp_means"
# says too, and at any other.
_APART = math.sqrt(12)
_VALLEY_OF_TWO, _VALLEY = 1.0, 2.5
# More features than this are too many for their principal axes, in time and memory.
MOST_AXES = 1024


@dataclass(frozen=True, slots=True)
class Settings:
    """The parameters of `choose_k` that criteria use."""

    effort: EffortForEachK  # for the reference sets of the gap too
    silhouette_size: int
    n_references: int
    n_resamples: int
    # One for each criterion, so that none depends on which others are evaluated.
    seeds: dict[str, int]
    n_threads: int | None = None
    callback: Callback | None = None
    callback_elsewhere: Callback | None = None  # where centers are not among the points

    def rng(self, name: str) -> np.random.RandomState:
        """Return the random numbers of one criterion."""
        return np.random.RandomState(self.seeds[name])


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The values of a criterion for each k, and the k that it chooses."""

    values: FloatArray  # (n_sizes,), NaN where it is undefined
    chosen: int | None  # an index of the values
    errors: FloatArray | None = None  # (n_sizes,), standard errors
    guess: int | None = None  # an index, where it chooses none


@dataclass(frozen=True, slots=True)
class Sample:
    """Some or all of the points, with their counts."""

    counts: FloatArray
    rows: Rows

    def distances(self) -> FloatArray:
        """Return the Euclidean distances between all pairs."""
        n_points = self.rows.n_points
        between = np.empty((n_points, n_points))
        step = max(1, _BLOCK_ELEMENTS // self.rows.n_features)
        for start in range(0, n_points, step):  # `take` makes sparse points dense
            block = np.arange(start, min(start + step, n_points))
            between[:, block] = self.rows.sq_distances(self.rows.take(block))
        np.fill_diagonal(between, 0.0)
        return np.sqrt(between, out=between)


@dataclass(frozen=True)
class Study:
    """Points, the centers found for each k, and what several criteria compute from them."""

    points: Points | SparsePoints
    counts: FloatArray  # of copies of each point
    rows: Rows  # the points, weighted by the counts
    found: dict[int, Solution]  # by k, rising
    settings: Settings
    has_missing: bool = False

    @property
    def sizes(self) -> list[int]:
        """Return the values of k."""
        return list(self.found)

    @cached_property
    def n_counted(self) -> float:
        """Count the points, copies too."""
        return float(self.counts.sum())

    @cached_property
    def inertias(self) -> FloatArray:
        """Return W(k), which never rises; see `inertias_of`."""
        return inertias_of(self.found, self.rows)

    @cached_property
    def with_one(self) -> tuple[list[int], FloatArray]:
        """Return sizes and inertias, and put k = 1, which needs no search, before k = 2."""
        if self.sizes[0] != 2:
            return self.sizes, self.inertias
        # Rounding must not put the inertia about the mean below the inertia of two centers.
        one = max(self.rows.inertia_about_mean(), float(self.inertias[0]))
        return [1, *self.sizes], np.concatenate([[one], self.inertias])

    @cached_property
    def sample(self) -> Sample:
        """Return the points to compare in pairs: all, or a random sample."""
        return self.sample_for("silhouette", self.settings.silhouette_size)

    def sample_for(self, name: str, size: int) -> Sample:
        """Return all points that weigh, or a random sample of this size for a criterion."""
        weighing = np.flatnonzero(self.counts > 0)
        if len(weighing) <= size:
            return self.sample_of(weighing, self.counts[weighing])
        return self.drawn(size, self.settings.rng(name))

    def drawn(self, n_drawn: int, rng: np.random.RandomState) -> Sample:
        """Draw with replacement in proportion to the counts; copies count like a weight."""
        nothing = np.empty((0, self.rows.n_features))
        drawn = self.rows.nearness(nothing, self._order).draw(rng.uniform(size=n_drawn))
        indices, counts = np.unique(drawn, return_counts=True)
        return self.sample_of(indices, counts.astype(np.float64))

    def sample_of(self, indices: IndexArray, counts: FloatArray) -> Sample:
        """Return these points with these counts."""
        return Sample(counts, self._open(self.rows.sample(indices), counts))

    def _open(self, points: Points | SparsePoints, counts: FloatArray | None = None) -> Rows:
        return open_rows(
            points,
            counts,
            n_threads=self.settings.n_threads,
            has_missing=self.has_missing,
            n_columns=self.rows.n_columns,
        )

    @cached_property
    def _order(self) -> IndexArray | None:
        """Return an order of the points by where they lie."""
        return order_by_place(self.rows, np.random.RandomState(0))[0]

    @cached_property
    def widths(self) -> list[tuple[FloatArray, float]]:
        """Return the mean distances from the centers and the simplified silhouette, for each k."""
        return [self._widths(solution.centers) for solution in self.found.values()]

    def _widths(self, centers: FloatArray) -> tuple[FloatArray, float]:
        n_centers = len(centers)
        labels, nearest, second = two_nearest(self._distances(centers), self.rows.n_points)
        sums = np.bincount(labels, self.counts * nearest, minlength=n_centers)
        in_cluster = np.bincount(labels, self.counts, minlength=n_centers)
        means = sums / np.where(in_cluster > 0, in_cluster, 1.0)
        if n_centers == 1:
            return means, math.nan
        return means, formulas.simplified_silhouette(nearest, second, labels, self.counts)

    def _distances(self, centers: FloatArray) -> Iterator[tuple[slice, Points]]:
        """Yield the squared distances from the centers, block by block."""
        step = max(1, _BLOCK_ELEMENTS // max(len(centers), self.rows.n_features))
        for start in range(0, self.rows.n_points, step):
            block = slice(start, start + step)
            yield block, self._open(self.points[block]).sq_distances(centers)


def two_nearest(
    distances: Iterable[tuple[slice, Points]], n_points: int
) -> tuple[Labels, FloatArray, FloatArray]:
    """Return labels, and distances to the nearest and the second nearest center, from squares."""
    labels, two = np.empty(n_points, dtype=np.int32), np.empty((n_points, 2))
    for block, sq_dist in distances:
        labels[block] = sq_dist.argmin(axis=1)
        two[block] = np.partition(sq_dist, min(1, sq_dist.shape[1] - 1), axis=1)[:, :2]
    np.sqrt(two, out=two)
    return labels, two[:, 0], two[:, 1]


def inertias_of(found: dict[int, Solution], rows: Rows) -> FloatArray:
    """Return W(k), never rising, with zero for what is only rounding."""
    inertias = np.array([solution.inertia for solution in found.values()])
    inertias[inertias <= rounding_inertia(rows)] = 0.0
    return np.minimum.accumulate(inertias)


def by_knee(study: Study) -> Evaluation:
    """Choose where log W(k) bends most; see `criteria.knee`."""
    sizes, inertias = study.with_one
    n_before = len(sizes) - len(study.sizes)
    # A floor for what is zero: far below anything, so that the curve bends there.
    floor = rounding_inertia(study.rows) or np.finfo(np.float64).tiny
    logs = np.log(np.maximum(inertias, floor))
    bend = formulas.knee(sizes, logs)
    values = formulas.knee_differences(sizes, logs)[n_before:]
    return Evaluation(values, None if bend is None else bend - n_before)


def by_silhouette(study: Study) -> Evaluation:
    """Choose the largest silhouette of a sample; see `criteria.silhouette`."""
    sample, distances = study.sample, study.sample.distances()
    return _largest(
        formulas.silhouette(distances, sample.rows.assign(solution.centers)[0], sample.counts)
        for solution in study.found.values()
    )


def by_simplified_silhouette(study: Study) -> Evaluation:
    """Choose the largest; see `criteria.simplified_silhouette`."""
    return _largest(simplified for _, simplified in study.widths)


def by_calinski_harabasz(study: Study) -> Evaluation:
    """Choose the largest; see `criteria.calinski_harabasz`."""
    one, n_points = study.rows.inertia_about_mean(), study.n_counted
    pairs = zip(study.inertias.tolist(), study.sizes, strict=True)
    return _largest(formulas.calinski_harabasz(w, one, n_points, k) for w, k in pairs)


def by_davies_bouldin(study: Study) -> Evaluation:
    """Choose the smallest; see `criteria.davies_bouldin`."""
    negated = _largest(
        -formulas.davies_bouldin(means, solution.centers)
        for (means, _), solution in zip(study.widths, study.found.values(), strict=True)
    )
    return Evaluation(-negated.values, negated.chosen)


def by_bic(study: Study) -> Evaluation:
    """Choose the largest; see `criteria.bic`."""
    return _largest(
        formulas.bic(float(inertia), solution.spread.weights, study.rows.n_columns)
        for inertia, solution in zip(study.inertias, study.found.values(), strict=True)
    )


def by_jump(study: Study) -> Evaluation:
    """Choose the largest; see `criteria.jumps`."""
    sizes, inertias = study.with_one
    if sizes[0] == 1:
        # No center at all leaves an infinite distortion, whose power in `jumps` is zero.
        inertias = np.concatenate([[math.inf], inertias])
    values = formulas.jumps(inertias, study.rows.n_columns)
    n_missing = max(0, len(study.sizes) - len(values))
    values = np.concatenate([np.full(n_missing, math.nan), values])
    return _largest(values[-len(study.sizes) :])


def by_dp_means(study: Study) -> Evaluation:
    """Choose the largest; see `criteria.persistence`."""
    sizes, inertias = study.with_one
    return _largest(formulas.persistence(sizes, inertias)[-len(study.sizes) :])


def by_gap(study: Study) -> Evaluation:
    """Apply the rule of one standard error; see `criteria.gaps`."""
    rng, settings = study.settings.rng("gap"), study.settings
    low, high = bounding_box(study.points, study.counts)
    n_drawn = min(_MOST_REFERENCE_POINTS, round(study.n_counted))
    references = []
    for _ in range(settings.n_references):
        points = rng.uniform(low, high, size=(n_drawn, len(low)))
        rows = open_rows(points, n_threads=settings.n_threads)
        found = _centers(rows, study, settings.effort, rng, settings.callback_elsewhere)
        references.append(_log_means(inertias_of(found, rows), study.sizes, n_drawn))
    logs = _log_means(study.inertias, study.sizes, study.n_counted)
    values, errors = formulas.gaps(logs, references)
    return Evaluation(values, formulas.first_within_one_error(values, errors), errors)


def bounding_box(
    points: Points | SparsePoints, counts: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the lowest and highest coordinates along the principal axes, (n_axes,) each."""
    # Tibshirani and others (2001), section 4, choice (b): a uniform box along the principal axes.
    # Rotation does not change inertias, so nothing turns the box back.
    n_axes = min(points.shape[1], max(1, points.shape[0] - 1))
    axes = principal_axes(points, counts, n_axes)
    with blas_on_one_thread():
        along = np.asarray(points[counts > 0] @ axes.axes.T - axes.mean @ axes.axes.T)
    return along.min(axis=0), along.max(axis=0)


def by_separation(study: Study) -> Evaluation:
    """Choose the largest k whose clusters are all apart, or one cluster if there is no such k.

    W(k) is evidence besides the valleys, so that they need less depth where "dp_means" says k.
    """
    if study.rows.n_features > _MOST_FEATURES_AS_THEY_ARE:
        study = _study_of_directions(study)
    size = min(
        _MOST_SEPARATED, max(study.settings.silhouette_size, _MOST_PLACES // study.sizes[-1])
    )
    sample = study.sample_for("silhouette", size)
    valleys = np.full(len(study.sizes), _VALLEY)
    also_said = by_dp_means(study).chosen
    if also_said is not None:
        valleys[also_said] = _VALLEY_OF_TWO
    weakest = [
        _weakest_separation(sample, solution, valley)
        for solution, valley in zip(study.found.values(), valleys, strict=True)
    ]
    values, errors = np.array(weakest).T
    are_apart = np.flatnonzero(values - errors >= _APART)
    if len(are_apart):
        return Evaluation(values, int(are_apart[-1]), errors)
    one = 0 if study.sizes[0] == 1 else None
    return Evaluation(values, one, errors, guess=also_said)


def _study_of_directions(study: Study) -> Study:
    """Return a sample's directions from its middle along the axes above chance, with centers."""
    size = min(_MOST_DIRECTED, max(1, _MOST_VALUES // study.rows.n_features))
    sample = study.sample_for("silhouette", max(size, study.sizes[-1]))
    points = np.asarray(sample.rows.take(np.arange(sample.rows.n_points)), dtype=np.float64)
    with blas_on_one_thread():
        of_length_one = directions(points, sample.counts)
        scores = scores_above_chance(of_length_one, sample.counts, _MOST_DIRECTIONS)
    rows = open_rows(scores, sample.counts, n_threads=study.settings.n_threads)
    settings, rng = study.settings, study.settings.rng("silhouette")
    found = _centers(rows, study, settings.effort, rng, settings.callback_elsewhere)
    return Study(scores, sample.counts, rows, found, settings)


def _weakest_separation(
    sample: Sample, solution: Solution, valley_errors: float
) -> tuple[float, float]:
    """Return the separation of the two clusters that are least apart, and its error."""
    centers = solution.centers
    if len(centers) == 1:
        return math.nan, math.nan
    sq_dist = np.asarray(sample.rows.sq_distances(centers), dtype=np.float64)
    labels = sq_dist.argmin(axis=1)
    places = formulas.places_between(sq_dist, labels, solution.spread.weights, centers)
    values, errors = formulas.separations(
        places, labels, sample.counts, valley_errors=valley_errors
    )
    weakest = np.unravel_index(np.argmin(values - errors), values.shape)
    return float(values[weakest]), float(errors[weakest])


def by_stability(study: Study) -> Evaluation:
    """Choose the largest k at which resamples agree as well as at the best k, within one error."""
    # The largest k, since groups of clusters are as stable as the clusters themselves.
    pairs = _agreements(study)
    values = pairs.mean(axis=0)
    errors = pairs.std(axis=0) / math.sqrt(study.settings.n_resamples)
    if study.sizes[0] == 1:
        values[0] = errors[0] = math.nan
    best = _largest(values)
    if best.chosen is None:
        return Evaluation(values, None, errors)
    almost = np.flatnonzero(values + errors >= values[best.chosen])
    return Evaluation(values, int(almost[-1]), errors)


def _agreements(study: Study) -> FloatArray:
    """Compare the clusters of every two resamples by the Rand index, (n_pairs, n_sizes)."""
    # Fang & Wang (2012), "Selection of the number of clusters via the bootstrap method", but with
    # the adjusted Rand index, which does not grow with k by itself as their measure does.
    rng = study.settings.rng("stability")
    n_drawn = min(_MOST_RESAMPLED, round(study.n_counted))
    labels = []
    for _ in range(study.settings.n_resamples):
        rows = study.drawn(n_drawn, rng).rows
        found = _centers(rows, study, WITHOUT_IMPROVEMENT, rng, study.settings.callback)
        labels.append([study.sample.rows.assign(s.centers)[0] for s in found.values()])
    counts, pairs = study.sample.counts, itertools.combinations(labels, 2)
    return np.array(
        [
            [formulas.weighted_rand_index(u, v, counts) for u, v in zip(one, other, strict=True)]
            for one, other in pairs
        ]
    )


def _centers(
    rows: Rows,
    study: Study,
    effort: EffortForEachK,
    rng: np.random.RandomState,
    callback: Callback | None,
) -> dict[int, Solution]:
    *_, found = centers_by_k(rows, study.sizes, effort, rng, callback)
    return found


def _log_means(inertias: FloatArray, sizes: list[int], n_points: float) -> FloatArray:
    """Return log(W / n), NaN if there are as many centers as points."""
    with np.errstate(divide="ignore"):
        logs = np.log(inertias / n_points)
    return np.asarray(np.where(np.array(sizes) < n_points, logs, math.nan))


def _largest(found: Iterable[float]) -> Evaluation:
    """Choose the first of the largest values, if there is one."""
    values = np.fromiter(found, dtype=np.float64)
    known = np.where(np.isnan(values), -math.inf, values)
    best = int(np.argmax(known))
    return Evaluation(values, best if known[best] > -math.inf else None)


CRITERIA: dict[str, Callable[[Study], Evaluation]] = {
    "knee": by_knee,
    "silhouette": by_silhouette,
    "simplified_silhouette": by_simplified_silhouette,
    "calinski_harabasz": by_calinski_harabasz,
    "davies_bouldin": by_davies_bouldin,
    "bic": by_bic,
    "jump": by_jump,
    "dp_means": by_dp_means,
    "stability": by_stability,
    "separation": by_separation,
    "gap": by_gap,
}

# Criteria that follow from inertias and sizes, without another look at the points.
FROM_INERTIAS = ("knee", "calinski_harabasz", "bic", "jump", "dp_means")

# Criteria that take no missing entries: "silhouette" compares points with each other, "separation"
# needs their places between centers, "gap" draws whole points, and "bic" and "jump" count the
# features of each.
FOR_WHOLE_POINTS = ("silhouette", "bic", "jump", "separation", "gap")
