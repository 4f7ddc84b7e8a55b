"""K-means with pairs of points that belong together or apart, as a scikit-learn estimator."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from powermeans.engine.anneal import Result
from powermeans.engine.fit import Callback, Fit, random_numbers
from powermeans.engine.history import SweepRecord, SweepState
from powermeans.engine.stopping import StopRule
from powermeans.errors import ArgumentError
from powermeans.methods.base import CenterEstimator
from powermeans.methods.linked.coloring import (
    MOST_TRIED,
    ROUNDING,
    Graph,
    NoColoringError,
    any_coloring,
)
from powermeans.methods.linked.links import LinkedPoints, check_pairs, joined, sums_by_label
from powermeans.methods.power_kmeans import PowerKMeans, as_power_kmeans
from powermeans.points.compiled import CompiledPoints
from powermeans.points.needs import Needs
from powermeans.points.opening import MatrixLike, open_points, open_rows
from powermeans.points.protocol import Points, distances_in_blocks, sampler_of
from powermeans.system.attributes import forget
from powermeans.types import FloatArray, IndexArray, Matrix

# From how many centers points are divided, the first of which a search without cannot_link found.
_STARTS = {"none": 1, "fast": 2, "balanced": 8, "thorough": 20}


class LinkedKMeans(CenterEstimator):
    """K-means with pairs of points that must stay together or apart.

    Points that must stay together become one weighted point, and `PowerKMeans` finds centers of
    these. If other points must stay apart, Lloyd's sweeps follow, in which no label violates a
    link: a point that moves also moves the chain of points in its way. Once a sweep changes no
    label, points and chains move wherever that lowers the inertia. Pairs that cannot be satisfied
    raise an error. See :doc:`/how_do_i/links`.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of centers.
    init, effort, max_iter, tol, stop
        As in `PowerKMeans`. More effort divides the points from more starts.
    random_state, n_threads, callback, verbose
        As in `PowerKMeans`.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centers, in the dtype of the points.
    labels_ : ndarray of shape (n_samples,)
        The cluster of each point, which satisfies all links. `predict` returns the nearest center.
    inertia_ : float
        Weighted sum of squared distances to the center of the cluster.
    n_iter_, history_, n_relocated_
        As in `PowerKMeans`, of the search without `cannot_link`; then each descent with it is one
        record of `history_`.
    n_features_in_, feature_names_in_
        As in `PowerKMeans`.

    See Also
    --------
    join_linked : Joins points that belong together, for other methods.
    BalancedKMeans : Limits the sizes of clusters.

    References
    ----------
    K. Wagstaff, C. Cardie, S. Rogers, S. Schrödl: Constrained k-means clustering with background
    knowledge. International Conference on Machine Learning, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans import LinkedKMeans
    >>> X = np.array([[0.0], [1.0], [2.0], [8.0], [9.0]])
    >>> model = LinkedKMeans(2, random_state=0)
    >>> np.sort(model.fit(X, must_link=[[2, 3]]).cluster_centers_.ravel()).round(2)
    array([0.5 , 6.33])
    >>> labels = model.fit(X, cannot_link=[[0, 1], [3, 4]]).labels_
    >>> bool(labels[0] != labels[1] and labels[3] != labels[4])
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        name: PowerKMeans._parameter_constraints[name]
        for name in (
            *("init", "effort", "max_iter", "tol", "stop"),
            *("random_state", "n_threads", "callback", "verbose"),
        )
    } | {"n_clusters": CenterEstimator._parameter_constraints["n_clusters"]}

    _why_whole = "The mean of linked points is of all their entries"

    # Those of a fit while it goes on.
    _links: tuple[ArrayLike | None, ArrayLike | None] = None, None

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: str | ArrayLike | Callable[..., ArrayLike] = "k-means++",
        effort: Literal["none", "fast", "balanced", "thorough"] = "balanced",
        max_iter: int = 300,
        tol: float = 1e-6,
        stop: StopRule | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
        callback: Callback | Literal["progress"] | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.effort = effort
        self.max_iter = max_iter
        self.tol = tol
        self.stop = stop
        self.random_state = random_state
        self.n_threads = n_threads
        self.callback = callback
        self.verbose = verbose

    def fit(
        self,
        X: MatrixLike,
        y: object = None,
        sample_weight: ArrayLike | None = None,
        *,
        must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None,
    ) -> Self:
        """Find centers and clusters that satisfy the links.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The points.
        y : None
            Ignored; present for compatibility with scikit-learn.
        sample_weight : array-like of shape (n_samples,), optional
            Nonnegative. Links of points of weight zero count too.
        must_link : array-like of shape (n_pairs, 2), optional
            Pairs of rows of X that must stay together.
        cannot_link : array-like of shape (n_pairs, 2), optional
            Pairs of rows of X that must stay apart.

        Returns
        -------
        self
        """
        self._links = must_link, cannot_link
        try:
            return super().fit(X, y, sample_weight)
        finally:
            forget(self, "_links")

    def _fit(self, points: Points, fit: Fit) -> Result:
        given, (must_link, cannot_link) = points.given, self._links
        n_rows, is_used = points.n_points, getattr(given.source, "is_used", None)
        must = check_pairs(must_link, "must_link", n_rows, is_used)
        linked = joined(given.array, given.weights, must)
        apart = _graph(check_pairs(cannot_link, "cannot_link", n_rows, is_used), linked.groups)
        known = _division(apart, self.n_clusters, linked.groups)
        inner = as_power_kmeans(self)
        needs = inner._needs().of_a_fit(warns_of_scales=False)  # which all points have done
        groups = open_points(linked.points, linked.sample_weight, needs)
        search = _Search.among(linked, apart, known, self, fit) if len(apart.edges) else None
        fit.learned, fit.as_given = (linked, groups, search), groups.given.of_all_columns
        fit.stages = inner._stages(groups, fit)
        found = inner._fit(groups, fit)
        if search is None or any(end.was_stopped for end in (*found.former, found)):
            return found
        start, fit.as_given = fit.as_given(fit.best_centers()), None
        rng = random_numbers(self.random_state)
        why = search.run(start.astype(np.float64), _STARTS[self.effort], rng)
        return Result(start, why, was_stopped=True).after(found) if why else found

    def _attributes(self, points: Points, fit: Fit, result: Result) -> Result:
        linked, groups, search = fit.learned
        found = super()._attributes(groups, fit, result)
        labels, inertia = found.labels, found.inertia
        centers = groups.given.of_all_columns(found.centers)
        if search is not None:
            # What was cut short is only divided as it belongs apart.
            best, labels = search.best or search.divided(centers.astype(np.float64))
            centers = best.astype(centers.dtype)
            inertia = search.inertia(centers, labels)
        labels = labels[linked.groups].astype(np.int32)
        return replace(found, centers=centers, labels=labels, inertia=inertia + linked.inertia)

    def _needs(self) -> Needs:
        return super()._needs().of_a_fit(leaves_out_columns=False)


@dataclass(slots=True)
class _Search:
    """Divide groups of points among centers, some of them apart."""

    linked: LinkedPoints
    rows: CompiledPoints  # of the groups, in float64
    apart: Graph
    known: IndexArray  # labels that keep them apart
    fit: Fit
    max_iter: int
    least_shift: float  # squared, of all centers
    best: tuple[FloatArray, IndexArray] | None = None  # centers and labels so far

    @classmethod
    def among(
        cls, linked: LinkedPoints, apart: Graph, known: IndexArray, model: LinkedKMeans, fit: Fit
    ) -> Self:
        """Return a search among groups, whose points it takes in float64."""
        wide = linked._replace(points=linked.points.astype(np.float64))
        rows = open_rows(wide.points, wide.sample_weight, n_threads=model.n_threads)
        least_shift = model.tol * rows.mean_variance()
        return cls(wide, rows, apart, known, fit, model.max_iter, least_shift)

    def run(self, centers: FloatArray, n_starts: int, rng: np.random.RandomState) -> str:
        """Keep the best of several descents, and return why the fit is over; empty if it is not.

        Each further descent starts from the best so far, where one center has moved to a point.
        """
        labels, least, why = self.known, math.inf, ""
        for number in range(n_starts):
            if number:
                assert self.best is not None
                centers, labels = self.best[0].copy(), self.best[1]
                drawn = self.rows.nearness(centers).draw(rng.uniform(size=1))
                centers[rng.randint(len(centers))] = self.rows.take(drawn)[0]
            started = time.perf_counter()
            found = self.descend(centers, labels)
            if (inertia := self.inertia(*found)) < least:
                self.best, least = found, inertia
            shift = float(np.linalg.norm(found[0] - centers))
            if why := self._why_over(found[0], inertia, shift, time.perf_counter() - started):
                break
        return why

    def _why_over(self, centers: FloatArray, inertia: float, shift: float, seconds: float) -> str:
        """Tell of a descent as of a sweep, and return why the fit is over."""
        history, hard = self.fit.history, -math.inf
        centers.setflags(write=False)  # callbacks get this array
        history.records.append(SweepRecord(hard, inertia, inertia, shift, seconds))
        of_run = history.run, len(history.records)
        return self.fit.why_over(SweepState(*of_run, *history.records[-1][:5], centers))

    def divided(self, centers: FloatArray) -> tuple[FloatArray, IndexArray]:
        """Return the labels of these centers that keep links, and the means of the clusters."""
        labels = self.nearest(centers, self.known)
        return self.means(labels, centers)[0], labels

    def descend(self, centers: FloatArray, known: IndexArray) -> tuple[FloatArray, IndexArray]:
        """Sweep, and exchange where sweeps hardly move a center, until neither moves any.

        Far from the origin rounding may let the two undo each other: labels that come back end it.
        """
        labels, was_settled = self.nearest(centers, known), False
        seen = set[int]()
        for _ in range(self.max_iter):
            before, (centers, _) = centers, self.means(labels, centers)
            is_settled = bool(np.sum(np.square(centers - before)) <= self.least_shift)
            if is_settled and was_settled:
                break
            moved = self.nearest(centers, labels)
            if is_settled or np.array_equal(moved, labels):
                moved = self.exchanged(centers, moved)
            came_back = hash(moved.tobytes()) in seen
            if came_back or np.array_equal(moved, labels) or self.fit.is_late():
                break
            seen.add(hash(moved.tobytes()))
            labels, was_settled = moved, is_settled
        return self.means(labels, centers)[0], labels

    def nearest(self, centers: FloatArray, known: IndexArray) -> IndexArray:
        """Return allowed labels that cost no more than the known ones, which are allowed."""
        labels = self.rows.assign(centers)[0].astype(np.intp)
        if parts := self.apart.clashing(labels):
            nodes = np.concatenate(parts)
            sq_dist = sampler_of(self.rows).some(nodes).sq_distances(centers)
            cost = self.linked.sample_weight[nodes, None] * sq_dist
            labels[nodes] = self.apart.cheaper(parts, cost, known)[nodes]
        return labels

    def means(self, labels: IndexArray, fallback: FloatArray) -> tuple[FloatArray, FloatArray]:
        weight = self.linked.sample_weight
        sizes = np.bincount(labels, weight, minlength=len(fallback)).astype(np.float64)
        sums = sums_by_label(labels, weight, self.linked.points, len(fallback))
        has_points = sizes > 0
        centers = fallback.copy()
        centers[has_points] = sums[has_points] / sizes[has_points, None]
        return centers, sizes

    def inertia(self, centers: Matrix, labels: IndexArray) -> float:
        weight = self.linked.sample_weight
        return sum(
            float(np.sum(weight[at] * sq_dist[np.arange(len(sq_dist)), labels[at]]))
            for at, sq_dist in distances_in_blocks(self.rows, centers.astype(np.float64))
        )

    def exchanged(self, centers: FloatArray, labels: IndexArray) -> IndexArray:
        """Move points along Kempe chains where that lowers the inertia, each step exactly.

        If points leave a cluster and others come, its inertia about the old center changes by
        their squared distances from it, and then falls by the weight of the cluster times the
        squared shift of its mean (Hartigan 1975).
        """
        labels, (centers, sizes) = labels.copy(), self.means(labels, centers)
        least_gain = ROUNDING * self.inertia(centers, labels)
        wishes = self._wishes(centers, sizes, labels, least_gain)
        for pair, chain in self.apart.chains(wishes, labels):
            points = self.rows.take(chain)
            weights = self.linked.sample_weight[chain]
            change, after = 0.0, []
            for cluster in pair:
                comes = np.where(labels[chain] == cluster, -weights, weights)[:, None]
                from_center = points - centers[cluster]
                size = _left(sizes[cluster] + comes.sum(), sizes[cluster] + weights.sum())
                sums = (comes * from_center).sum(axis=0)
                shift = sums / size if size > 0 else np.zeros_like(sums)
                change += np.sum(comes * np.square(from_center)) - np.sum(sums * shift)
                after.append((size, centers[cluster] + shift))
            if change < -least_gain:
                labels[chain] = sum(pair) - labels[chain]
                for cluster, (size, center) in zip(pair, after, strict=True):
                    sizes[cluster], centers[cluster] = size, center
        return labels

    def _wishes(
        self, centers: FloatArray, sizes: FloatArray, labels: IndexArray, least_gain: float
    ) -> list[tuple[int, int]]:
        """Return points and clusters to which they alone would move, the largest gain first."""
        found: list[tuple[float, int, int]] = []
        for at, sq_dist in distances_in_blocks(self.rows, centers):
            weight, own = self.linked.sample_weight[at], labels[at]
            error, among = weight * sq_dist[np.arange(len(own)), own], sizes[own]
            left = _left(among - weight, among)
            saved = np.divide(error * among, left, out=np.zeros_like(error), where=left > 0)
            whole = sizes + weight[:, None]
            share = np.divide(sizes, whole, out=np.zeros_like(whole), where=whole > 0)
            change = weight[:, None] * sq_dist * share - saved[:, None]
            change[np.arange(len(own)), own] = 0.0
            places, clusters = np.nonzero(change < -least_gain)
            gains = change[places, clusters].tolist()
            found += zip(gains, (at.start + places).tolist(), clusters.tolist(), strict=True)
        return [(i, cluster) for _, i, cluster in sorted(found)]


def _left(weight: Any, whole: Any) -> Any:
    """Return a weight that is left of a whole, zero where it is rounding."""
    return np.where(weight > 1e-13 * whole, weight, 0.0)


def _graph(cannot_link: IndexArray, groups: IndexArray) -> Graph:
    """Return the graph of the groups that belong apart, or raise where one would be torn."""
    edges = np.sort(groups[cannot_link], axis=1)
    torn = np.flatnonzero(edges[:, 0] == edges[:, 1])
    if len(torn):
        start, end = cannot_link[torn[0]].tolist()
        why = "must_link joins them" if start != end else "that is one row"
        raise ArgumentError(
            f"cannot_link has [{start}, {end}] as pair {torn[0]}, and {why}", "drop the pair"
        )
    return Graph(np.unique(edges, axis=0), int(groups.max()) + 1)


def _division(apart: Graph, n_clusters: int, groups: IndexArray) -> IndexArray:
    """Return labels of the groups that keep them apart, or raise where there are none."""
    if apart.n_nodes < n_clusters:
        raise ArgumentError(
            f"is more than the {apart.n_nodes} groups into which must_link joins the rows",
            "ask for fewer clusters, or drop pairs",
            argument="n_clusters",
            value=n_clusters,
        )
    try:
        return any_coloring(apart, n_clusters)
    except NoColoringError as error:
        rows = np.unique(groups, return_index=True)[1][list(error.nodes)].tolist()
        listed = f"rows {', '.join(map(str, rows[:12]))}{', ...' if len(rows) > 12 else ''}"
        told = f"is too few: cannot_link keeps each of the {listed} apart from all others of them"
        if not error.is_clique:
            told = f"is too few for the pairs of cannot_link among {len(rows):,} rows: {listed}"
        if not error.is_certain:
            told = (
                f"may be too few: in {MOST_TRIED:,} steps no division was found that meets the "
                f"pairs of cannot_link among {len(rows):,} rows, though there may be one: {listed}"
            )
        raise ArgumentError(
            told,
            "ask for more clusters, or drop pairs",
            argument="n_clusters",
            value=n_clusters,
        ) from None
