"""Evaluate each criterion for the centers of several k, by the formulas of `criteria`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import RandomState
from scipy.special import ndtr, ndtri

from powermeans.choosing_k.centers_by_k import EffortForEachK, FindCenters, centers_by_k
from powermeans.engine.fit import Callback
from powermeans.engine.search.state import Solution
from powermeans.engine.seeds.choose import order_by_place
from powermeans.engine.spread import rounding_inertia
from powermeans.mathematics import criteria as formulas
from powermeans.mathematics.criteria import lower_hull
from powermeans.mathematics.principal_axes import (
    PrincipalAxes,
    axes_above_chance,
    principal_axes,
    without_long_points,
)
from powermeans.points.opening import open_rows
from powermeans.points.protocol import Points
from powermeans.system.attributes import cached_property
from powermeans.system.threads import blas_on_one_thread
from powermeans.types import FloatArray, IndexArray, Labels

# Up to this many features points are compared as they are.
_MOST_FEATURES_AS_THEY_ARE = 4
# Single clusters of each kind of shape: by chance one of 20 sets exceeds the 19 others.
_N_DRAWS = 19
# The largest of 19 varies by much, so that clusters exceed their mean by three deviations, too: the
# largest alone called uniform cubes clear, and three errors more lost clusters of 100 points.
_DEVIATIONS_BEYOND_DRAWS = 3
# Two clusters that touch are further apart than halves of single clusters by as many deviations:
# where more were planted mostly 3.6 to 7, and where not -1.7 to 0.9. The parts of a ring have 1 to
# 3.3, so that a k that one criterion says alone needs more.
_TWO_THAT_TOUCH, _SAID_BY_ONE, _MAY_BE_TWO = 2.3, 3.5, 1.0
_OF_HALVES = math.sqrt(12)  # the separation of halves of a uniform distribution
# Of clusters that are twice as far apart as all of so many, no further draw says anything else.
_N_DRAWS_OF_DOUBT = 5
_MOST_AXES = 128


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The values of a criterion for each k, and the k that it chooses."""

    values: FloatArray  # (n_sizes,), NaN where it is undefined
    chosen: int | None  # an index of the values
    errors: FloatArray | None = None  # (n_sizes,), standard errors
    guess: int | None = None  # an index, where it chooses none
    is_said: bool = False  # whether W(k) along the same axes chooses the same
    is_least: bool = False  # whether there may be more clusters, which touch


@dataclass(frozen=True, slots=True)
class Sample:
    """Some or all of the points, with their counts."""

    counts: FloatArray
    rows: Points
    is_observed: FloatArray | None = None  # (n_points, n_features), None if all entries are

    def points(self) -> FloatArray:
        """Return the coordinates of the points."""
        everywhere = np.arange(self.rows.n_points)
        return np.asarray(self.rows.take(everywhere), dtype=np.float64)

    def one_clusters(self, rng: RandomState) -> list[Iterator[FloatArray]]:
        """Return draws of one cluster of this shape, of both kinds."""
        given = self.points(), self.counts, rng
        return [draws_by_feature(*given), draws_by_distance(*given)]

    def without_copies(self, n_threads: int | None) -> Sample:
        """Count copies with the first of them, so that one cluster is drawn with as many copies."""
        _, first, place = np.unique(self.points(), axis=0, return_index=True, return_inverse=True)
        if len(first) == len(self.counts):
            return self
        counts = np.bincount(place.ravel(), weights=self.counts).astype(np.float64)
        points, n_columns = self.rows.sample(first), self.rows.n_columns
        return Sample(counts, open_rows(points, counts, n_columns=n_columns, n_threads=n_threads))

    def distances(self) -> FloatArray:
        """Return the Euclidean distances between all pairs."""
        n_points = self.rows.n_points
        between = np.empty((n_points, n_points))
        step = max(1, 2**20 // self.rows.n_features)
        for start in range(0, n_points, step):  # `take` makes sparse points dense
            block = np.arange(start, min(start + step, n_points))
            between[:, block] = self.rows.sq_distances(self.rows.take(block))
        np.fill_diagonal(between, 0.0)
        return np.sqrt(between, out=between)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of points."""

    sizes: list[int]  # the values of k, rising
    criteria: list[str]
    effort: EffortForEachK
    silhouette_size: int = 2_000
    n_threads: int | None = None
    has_missing: bool = False
    n_bootstraps: int = 20  # to tell how stable the clusters are
    find: FindCenters = centers_by_k  # or within limits of size


@dataclass(frozen=True)
class Study:
    """Points, the centers found for each k, and what several criteria compute from them."""

    rows: Points  # weighted by counts of copies
    n_weighing: int  # points with a weight, or all
    found: dict[int, Solution]  # by k, rising
    question: Question
    seed: int  # of samples, so that no criterion depends on which others are evaluated
    callback: Callback | None = None  # for centers that are not among the points

    @property
    def sizes(self) -> list[int]:
        """Return the values of k."""
        return list(self.found)

    @cached_property
    def inertias(self) -> FloatArray:
        """Return W(k), never rising, with zero for what is only rounding."""
        inertias = np.array([solution.inertia for solution in self.found.values()])
        inertias[inertias <= rounding_inertia(self.rows)] = 0.0
        return np.minimum.accumulate(inertias)

    @cached_property
    def silhouette_sample(self) -> Sample:
        """Return the points to compare in pairs: all, or a random sample."""
        return self.sample(self.question.silhouette_size)

    def sample(self, size: int) -> Sample:
        """Return all points that weigh, or a random sample of this size with replacement."""
        if self.n_weighing <= size:
            counts = self.rows.sample_weight(np.arange(self.rows.n_points))
            weighing = np.flatnonzero(counts > 0)
            return self._sample_of(weighing, counts[weighing])
        nothing = np.empty((0, self.rows.n_features))
        uniforms = np.random.RandomState(self.seed).uniform(size=size)
        # Points are drawn in proportion to their counts; copies count like a weight.
        drawn = self.rows.nearness(nothing, self._order).draw(uniforms)
        indices, n_drawn = np.unique(drawn, return_counts=True)
        return self._sample_of(indices, n_drawn.astype(np.float64))

    @cached_property
    def _order(self) -> IndexArray | None:
        """Return an order of the points by where they lie; rows in parts are too many to sort."""
        return (
            order_by_place(self.rows, np.random.RandomState(0))[0]
            if self.rows.parts is None
            else None
        )

    def _sample_of(self, indices: IndexArray, counts: FloatArray) -> Sample:
        points, n_columns = self.rows.sample(indices), self.rows.n_columns
        n_threads, has_missing = self.question.n_threads, self.question.has_missing
        rows = open_rows(
            points, counts, n_columns=n_columns, n_threads=n_threads, has_missing=has_missing
        )
        if not has_missing:
            return Sample(counts, rows)
        return Sample(counts, rows, (~np.isnan(np.asarray(points))).astype(np.float64))


def by_silhouette(study: Study) -> Evaluation:
    """Choose the largest silhouette of a sample; see `criteria.silhouette`."""
    sample, distances = study.silhouette_sample, study.silhouette_sample.distances()
    return _largest(
        formulas.silhouette(distances, solution.labels(sample.rows), sample.counts)
        for solution in study.found.values()
    )


def by_calinski_harabasz(study: Study) -> Evaluation:
    """Choose the largest; see `criteria.calinski_harabasz`."""
    one, n_points = study.rows.inertia_about_mean(), study.rows.total_weight
    pairs = zip(study.inertias.tolist(), study.sizes, strict=True)
    return _largest(formulas.calinski_harabasz(w, one, n_points, k) for w, k in pairs)


def by_bic(study: Study) -> Evaluation:
    """Choose the largest; see `criteria.bic`."""
    return _largest(
        formulas.bic(float(inertia), solution.spread.weights, study.rows.n_columns)
        for inertia, solution in zip(study.inertias, study.found.values(), strict=True)
    )


def by_dp_means(study: Study) -> Evaluation:
    """Choose the largest; see `criteria.persistence`."""
    sizes, inertias = study.sizes, study.inertias
    if sizes[0] == 2:  # k = 1 needs no search
        # Rounding must not put the inertia about the mean below the inertia of two centers.
        one = max(study.rows.inertia_about_mean(), float(inertias[0]))
        sizes, inertias = [1, *sizes], np.concatenate([[one], inertias])
    return _largest(formulas.persistence(sizes, inertias)[-len(study.sizes) :])


def by_separation(study: Study) -> Evaluation:
    """Choose the largest k whose clusters are all apart, or one cluster if there is no such k.

    Two clusters are apart if their separation is that of two halves of a uniform distribution, √12,
    and a valley lies between them. W(k) is evidence besides the valleys, so that they need less
    depth where "dp_means" says k. Then single clusters of the same shape are cut into k, and none
    may have parts that are as far apart.

    Of many features it looks along the axes above chance. Where W(k) says another k, it looks along
    all axes too, unless they are very many or more than the points: no axis stands out if clusters
    spread along nearly all.
    """
    said = tuple(by(study).chosen for by in (by_dp_means, by_bic, by_calinski_harabasz))
    if study.rows.n_features <= _MOST_FEATURES_AS_THEY_ARE or study.question.has_missing:
        return _by_separation(_as_they_are(study), said)
    size = max(min(3_000, 2**23 // study.rows.n_features), study.sizes[-1])
    sample = study.sample(size).without_copies(study.question.n_threads)
    points, counts = sample.points(), sample.counts
    with blas_on_one_thread():
        near = without_long_points(points, counts)
        axes = axes_above_chance(near, counts, _MOST_AXES)
    found = _by_separation(_along(study, points, counts, axes), said)
    n_features = points.shape[1]
    if found.is_said or not len(axes.axes) < n_features <= min(_MOST_AXES, len(points)):
        return found
    axes = principal_axes(near, counts, n_features)
    other = _by_separation(_along(study, points, counts, axes), said)
    return max(found, other, key=lambda said: -1 if said.chosen is None else said.chosen)


@dataclass(frozen=True, slots=True)
class _Look:
    """Points along some axes, with centers for each k, and how to draw one cluster like them."""

    study: Study
    sample: Sample
    one_clusters: Callable[[RandomState], list[Iterator[FloatArray]]]  # by column first


def _as_they_are(study: Study) -> _Look:
    size = max(study.question.silhouette_size, 2**22 // study.sizes[-1])  # fewer for very many k
    sample = study.sample(min(10_000, size))
    if not study.question.has_missing:
        sample = sample.without_copies(study.question.n_threads)
    return _Look(study, sample, sample.one_clusters)


def _along(study: Study, points: FloatArray, counts: FloatArray, axes: PrincipalAxes) -> _Look:
    """Look at a sample along axes, where one cluster keeps its shape along them or the columns.

    Very many columns would take longer to draw than all else.
    """

    def scores_of(points: FloatArray) -> FloatArray:
        with blas_on_one_thread():
            return axes.scores(without_long_points(points, counts))

    def one_clusters(rng: RandomState) -> list[Iterator[FloatArray]]:
        if points.shape[1] > _MOST_AXES:
            by_feature = draws_by_feature(scores, counts, rng)
        else:
            by_feature = map(scores_of, draws_by_feature(points, counts, rng))
        return [by_feature, draws_by_distance(scores, counts, rng)]

    scores = scores_of(points)
    rows = open_rows(scores, counts, n_threads=study.question.n_threads)
    rng = np.random.RandomState(study.seed)
    *_, found = study.question.find(rows, study.sizes, study.question.effort, rng, study.callback)
    study = replace(study, rows=rows, n_weighing=rows.n_points, found=found)
    return _Look(study, Sample(counts, rows), one_clusters)


def _by_separation(look: _Look, also_said: Sequence[int | None]) -> Evaluation:
    study = look.study
    valleys = np.full(len(study.sizes), 2.5)  # in standard errors
    said = [k for k in (also_said[0], by_dp_means(study).chosen) if k is not None]
    valleys[said] = 1.0
    weakest = [
        _weakest_separation(look.sample, solution, valley)
        for solution, valley in zip(study.found.values(), valleys, strict=True)
    ]
    values, errors = np.array(weakest).T
    # Where entries are missing no single clusters are drawn, and errors count.
    surely = values - errors if study.question.has_missing else values
    for apart in np.flatnonzero(surely >= _OF_HALVES)[::-1].tolist():
        if _exceeds_one_cluster(look, study.sizes[apart], float(values[apart])):
            found, is_least = _with_touching(look, apart, also_said)
            return Evaluation(values, found, errors, is_said=found in said, is_least=is_least)
    if len(study.found) == 1:  # such as one that other rows are to confirm
        (only,) = study.found.values()
        if _least_beyond_one_cluster(look, only) >= _TWO_THAT_TOUCH:
            return Evaluation(values, 0, errors)
    one = 0 if study.sizes[0] == 1 else None
    return Evaluation(values, one, errors, guess=also_said[0])


def _exceeds_one_cluster(look: _Look, n_centers: int, least: float) -> bool:
    """Return whether no one cluster of the same shape, cut into as many, has parts as far apart.

    Parts of one cluster count without a valley, since by chance any of them has one.
    """
    study = look.study
    if study.question.has_missing:
        return True  # the shape of whole points only is known
    rng = np.random.RandomState(study.seed)
    for draws in look.one_clusters(rng):
        apart: list[float] = []
        for drawn in itertools.islice(draws, _N_DRAWS):
            apart.append(_nearest_parts(look, drawn, n_centers, rng))
            if apart[-1] >= least:
                return False
            if len(apart) == _N_DRAWS_OF_DOUBT and least > 2 * max(apart):
                break
        if least < np.mean(apart) + _DEVIATIONS_BEYOND_DRAWS * np.std(apart, ddof=1):
            return False
    return True


def _with_touching(look: _Look, apart: int, said: Sequence[int | None]) -> tuple[int, bool]:
    """Return the largest k at which those that touch are two clusters, and whether more may be.

    Only a k that "dp_means" or "bic" says is looked at, and of its clusters the nearest two, and
    all others without a valley between them or closer than halves of a uniform distribution: halves
    of one cluster of their shape are never so far apart. "calinski_harabasz" alone cuts crescents.
    """
    study, is_least = look.study, False
    for k in sorted({k for k in said[:2] if k is not None and k > apart}, reverse=True):
        beyond = _least_beyond_one_cluster(look, study.found[study.sizes[k]])
        if beyond >= (_TWO_THAT_TOUCH if said.count(k) > 1 else _SAID_BY_ONE):
            return k, is_least
        is_least |= beyond >= _MAY_BE_TWO
    return apart, is_least


def _least_beyond_one_cluster(look: _Look, solution: Solution) -> float:
    """Return by how many deviations of single clusters all pairs that touch are further apart."""
    study, n_centers = look.study, len(solution.centers)
    # The shape of whole points only is known, and limits of size are those of all.
    is_limited = study.question.find is not centers_by_k
    if n_centers == 1 or study.question.has_missing or is_limited:
        return -math.inf
    points, least = look.sample.points(), math.inf
    labels, sq_dist, places = _places(look.sample, solution)
    apart, _ = formulas.separations(places, labels, look.sample.counts, None)
    centers = np.asarray(solution.centers, dtype=np.float64)
    touching = {*formulas.pairs_without_valley(sq_dist, labels, centers, look.sample.counts)}
    touching |= {*zip(*np.nonzero(np.triu(apart <= max(_OF_HALVES, apart.min()))), strict=True)}
    for i, j in sorted(touching):
        both = np.flatnonzero((labels == i) | (labels == j))
        counts, rng = look.sample.counts[both], np.random.RandomState(study.seed)
        rows = open_rows(points[both], counts, n_threads=study.question.n_threads)
        pair = _Look(study, sample := Sample(counts, rows), sample.one_clusters)
        for draws in pair.one_clusters(rng):
            some = itertools.islice(draws, _N_DRAWS)
            halves = [_nearest_parts(pair, drawn, 2, rng) for drawn in some]
            deviation = max(np.std(halves, ddof=1), 1e-9)  # all are at no distance in few points
            beyond = (apart[i, j] - np.mean(halves)) / deviation
            least = min(least, float(beyond))
            if least < _MAY_BE_TWO:
                return least
    return least


def _nearest_parts(look: _Look, drawn: FloatArray, n_centers: int, rng: RandomState) -> float:
    """Return how far the two nearest parts of one cluster are apart."""
    study, counts = look.study, look.sample.counts
    rows = open_rows(drawn, counts, n_threads=study.question.n_threads)
    *_, found = study.question.find(rows, [n_centers], study.question.effort, rng, study.callback)
    return _weakest_separation(Sample(counts, rows), found[n_centers], None)[0]


def _weakest_separation(
    sample: Sample, solution: Solution, valley_errors: float | None
) -> tuple[float, float]:
    """Return the separation of the two clusters that are least apart, and its error."""
    if len(solution.centers) == 1:
        return math.nan, math.nan
    labels, sq_dist, places = _places(sample, solution)
    values, errors = formulas.separations(places, labels, sample.counts, valley_errors)
    weakest = np.unravel_index(np.argmin(values - errors), values.shape)
    if values[weakest] > 0 and valley_errors is not None and sample.is_observed is None:
        whole = np.asarray(solution.centers, dtype=np.float64)
        if any(formulas.pairs_without_valley(sq_dist, labels, whole, sample.counts)):
            return 0.0, 0.0
    return float(values[weakest]), float(errors[weakest])


def _places(sample: Sample, solution: Solution) -> tuple[Labels, FloatArray, FloatArray]:
    """Return labels, squared distances to the centers, and places on the lines between these."""
    centers, counts = solution.centers, solution.spread.weights
    sq_dist = np.asarray(sample.rows.sq_distances(centers), dtype=np.float64)
    labels = (sq_dist + solution.prices).argmin(axis=1)
    places = formulas.places_between(sq_dist, labels, counts, centers, sample.is_observed)
    return labels, sq_dist, places


def _largest(found: Iterable[float]) -> Evaluation:
    """Choose the first of the largest values, if there is one."""
    values = np.fromiter(found, dtype=np.float64)
    known = np.where(np.isnan(values), -math.inf, values)
    best = int(np.argmax(known))
    return Evaluation(values, best if known[best] > -math.inf else None)


@dataclass(frozen=True, slots=True)
class Criterion:
    """How a criterion is evaluated, and what it needs."""

    evaluate: Callable[[Study], Evaluation]
    looks_at_points: bool = True  # or follows from inertias and sizes, which a stopped search has
    takes_missing: bool = True


# "separation" decides, since it can say that no k is clear. The others follow by how often each was
# right in benchmarks/choosing_k.py; the first that was asked decides where "separation" was not. A
# new one is evaluated by default, and stands at the end until it is measured. The silhouette
# compares points with each other, and "bic" counts the features of each.
CRITERIA = {
    "separation": Criterion(by_separation),
    "dp_means": Criterion(by_dp_means, looks_at_points=False),
    "bic": Criterion(by_bic, looks_at_points=False, takes_missing=False),
    "calinski_harabasz": Criterion(by_calinski_harabasz, looks_at_points=False),
    "silhouette": Criterion(by_silhouette, takes_missing=False),
}


# One cluster of the same shape as given points, as the null hypothesis of choosing k. Either each
# feature keeps the nearest distribution with one peak, and features stay as correlated as they are
# (a Gaussian copula), or the density falls from the mean in all directions alike. Clusters that are
# apart fill their valleys, and one cluster stays as it is.


# Of the distribution of a feature, so that a hull of 10 000 values need not be walked along.
_N_QUANTILES = 64


def draws_by_feature(
    points: FloatArray, counts: FloatArray, rng: RandomState
) -> Iterator[FloatArray]:
    """Yield as many points, again and again, whose features each have one peak."""
    shares = np.column_stack([_shares_up_to(column, counts) for column in points.T])
    with blas_on_one_thread():
        root = _root_of_correlation(ndtri(shares), counts)
    features = [
        _feature(column, share, counts) for column, share in zip(points.T, shares.T, strict=True)
    ]
    while True:
        with blas_on_one_thread():
            uniform = ndtr(rng.standard_normal(points.shape) @ root)
        drawn = [draw(u) for u, draw in zip(uniform.T, features, strict=True)]
        yield np.ascontiguousarray(np.column_stack(drawn))


def _feature(
    values: FloatArray, shares: FloatArray, counts: FloatArray
) -> Callable[[FloatArray], FloatArray]:
    """Return the quantile function of the nearest distribution with one peak."""
    x, place = np.unique(values, return_inverse=True)
    if not 1 < len(x) <= min(_N_QUANTILES, len(values) // 2):
        x, known = with_one_peak(*_quantiles(values, shares))
        return lambda uniform: np.interp(uniform, known, x)
    # Few values, such as counts, stay multiples of a step, each for its half of the way around.
    step = np.diff(x).min()
    edges = np.column_stack([x - step / 2, x + step / 2])
    up_to = np.cumsum(np.bincount(place, weights=counts)) / counts.sum()
    known = with_one_peak(edges.ravel(), np.column_stack([[0.0, *up_to[:-1]], up_to]).ravel())[1]
    return lambda uniform: (
        x[0] + step * np.rint((np.interp(uniform, known, edges.ravel()) - x[0]) / step)
    )


def draws_by_distance(
    points: FloatArray, counts: FloatArray, rng: RandomState
) -> Iterator[FloatArray]:
    """Yield as many points whose density falls with the distance from the mean.

    A disk that is cut has parts further apart than a square whose features are distributed alike.
    """
    mean = np.average(points, axis=0, weights=counts)
    with blas_on_one_thread():
        values, axes = np.linalg.eigh(np.atleast_2d(np.cov(points, rowvar=False, aweights=counts)))
        scales = np.sqrt(values[is_axis := values > values.max() * 1e-12])
        axes, n_axes = axes[:, is_axis], int(np.count_nonzero(is_axis))
        lengths = np.linalg.norm((points - mean) @ axes / scales, axis=1)
    longest = lengths.max()
    # The density falls where the share of the points is a concave function of the volume.
    volumes = (lengths / longest) ** n_axes
    x, shares = _quantiles(volumes, _shares_up_to(volumes, counts))
    x, shares = np.append(0.0, x), np.append(0.0, shares)
    shares = -_lower(x, -shares)
    while True:
        directions = rng.standard_normal((len(points), n_axes))
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        drawn = np.interp(rng.uniform(size=len(points)), shares, x) ** (1 / n_axes)
        with blas_on_one_thread():
            found = mean + longest * drawn[:, None] * (directions * scales) @ axes.T
        yield found


def with_one_peak(x: FloatArray, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the nearest distribution function whose density rises to a peak and falls after it.

    On each side of the peak it is the estimator of Grenander (1956): the greatest convex minorant
    before it, the least concave majorant after it. The peak is where the largest distance from the
    function is least, as in the dip of Hartigan & Hartigan (1985).

    >>> with_one_peak(np.arange(5.0), np.array([0.0, 0.4, 0.5, 0.6, 1.0]))[1].round(2)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    fits = [_with_peak_at(x, shares, peak) for peak in range(0, len(x), 2)]
    return x, min(fits, key=lambda fit: float(np.abs(fit - shares).max()))


def _with_peak_at(x: FloatArray, shares: FloatArray, peak: int) -> FloatArray:
    rising, falling = slice(None, peak + 1), slice(peak, None)
    return np.append(_lower(x[rising], shares[rising])[:-1], -_lower(x[falling], -shares[falling]))


def _lower(x: FloatArray, y: FloatArray) -> FloatArray:
    corners = lower_hull(x, y)
    return np.asarray(np.interp(x, x[corners], y[corners]))


def _shares_up_to(values: FloatArray, counts: FloatArray) -> FloatArray:
    """Return for each value the share of the values below it and of half of those at it."""
    _, place, n_at = np.unique(values, return_inverse=True, return_counts=True)
    at = np.bincount(place, weights=counts, minlength=len(n_at))
    return np.asarray((np.cumsum(at) - at / 2)[place] / counts.sum())


def _quantiles(values: FloatArray, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return some rising values, from the least to the largest, with the shares up to them."""
    x, place = np.unique(values, return_index=True)
    ends = np.interp(np.linspace(0, 1, _N_QUANTILES), np.linspace(0, 1, len(x)), np.arange(len(x)))
    some = np.unique(np.round(ends).astype(np.intp))
    known = shares[place[some]]
    known[[0, -1]] = 0.0, 1.0
    return x[some], known


def _root_of_correlation(scores: FloatArray, counts: FloatArray) -> FloatArray:
    """Return R with R.T @ R the correlation of the scores, also where it is singular."""
    correlation = np.atleast_2d(np.cov(scores, rowvar=False, aweights=counts))
    deviations = np.sqrt(np.maximum(np.diag(correlation), np.finfo(np.float64).tiny))
    correlation = _without_noise(correlation / deviations / deviations[:, None], counts)
    values, axes = np.linalg.eigh(correlation)
    return np.asarray(np.sqrt(np.maximum(values, 0.0))[:, None] * axes.T)


def _without_noise(correlation: FloatArray, counts: FloatArray) -> FloatArray:
    """Return correlations shrunk by the share of them that is noise (Schäfer & Strimmer 2005).

    Else those of the draws would have that noise twice, and clusters would be cut along it.
    """
    between = correlation[~np.eye(len(correlation), dtype=bool)]
    noise = float(np.sum(np.square(1 - np.square(between)))) / counts.sum()
    share = min(1.0, noise / max(float(between @ between), np.finfo(np.float64).tiny))
    return np.asarray((1 - share) * correlation + share * np.eye(len(correlation)))
