"""Seeds by a tree: a few coarse cells, and in each as many seeds as its error deserves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from powermeans.engine.seeds.choose import (
    choose_seeds,
    drawn_sample,
    n_greedy_candidates,
    uniform_seeds,
)
from powermeans.mathematics.rules import Hard
from powermeans.points.opening import open_rows
from powermeans.points.protocol import Points, sampler_of
from powermeans.system.containers import check_count
from powermeans.system.saved_classes import saved
from powermeans.types import FloatArray, IndexArray, Labels


@saved
@dataclass(frozen=True, slots=True)
class TreeSeeds:
    """Seeds for thousands of clusters, in a small part of the time of k-means++.

    Pass it as `init`. The points are first split into about half as many coarse cells as the root
    of the number of clusters. Each cell then gets seeds in proportion to its sum of squared
    distances, by greedy k-means++ and some sweeps of Lloyd's rule among its own points.

    Parameters
    ----------
    n_sweeps : int, default=2
        Number of sweeps of Lloyd's rule in each cell.

    See Also
    --------
    kmeans_plusplus : Seeds by k-means++, better where there are fewer clusters.
    MarkovChainSeeds : About those of plain k-means++, in the time of one pass.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans import KMeans
    >>> from powermeans.engine.seeds import TreeSeeds
    >>> X = np.random.default_rng(0).normal(size=(2000, 32)).astype(np.float32)
    >>> model = KMeans(200, init=TreeSeeds(), max_iter=5, random_state=0).fit(X)
    >>> model.cluster_centers_.shape
    (200, 32)
    """

    n_sweeps: int = 2

    def __post_init__(self) -> None:
        check_count(self.n_sweeps, "n_sweeps", 0, "2")

    def __call__(
        self, X: FloatArray, n_clusters: int, random_state: np.random.RandomState
    ) -> FloatArray:
        """Return seeds of points of weight one."""
        return self.seeds(open_rows(np.ascontiguousarray(X)), n_clusters, random_state)

    def seeds(self, rows: Points, n_clusters: int, rng: np.random.RandomState) -> FloatArray:
        """Return seeds of rows in memory."""
        return self.planted(rows, n_clusters, rng)[0]

    def planted(
        self,
        rows: Points,
        n_clusters: int,
        rng: np.random.RandomState,
        seconds_left: Callable[[], float] = lambda: math.inf,
    ) -> tuple[FloatArray, Labels]:
        """Return the seeds, and for each point one of its own cell that is near.

        Once no time is left, seeds are drawn at once and no longer improved by sweeps.
        """
        cells = _coarse_centers(rows, n_clusters, rng)
        of_cell, _ = rows.assign(cells)
        order = np.argsort(of_cell, kind="stable")
        members = np.split(order, np.cumsum(np.bincount(of_cell, minlength=len(cells)))[:-1])
        quotas = _quotas(np.array(list(map(len, members))), rows.spread(cells).error, n_clusters)
        centers, labels, n_before = [], np.empty(rows.n_points, dtype=np.int32), 0
        for of_one, quota in zip(members, quotas, strict=True):
            if quota == 0:
                continue
            # No name keeps the copy of a cell, or there would be two while the next is made.
            own, own_labels = self._in_cell(
                sampler_of(rows).some(of_one, rows.sample_weight(of_one)),
                int(quota),
                n_clusters,
                rng,
                seconds_left,
            )
            centers.append(own)
            labels[of_one] = own_labels + n_before
            n_before += int(quota)
        return np.concatenate(centers), labels

    def _in_cell(
        self,
        cell: Points,
        quota: int,
        n_all: int,
        rng: np.random.RandomState,
        seconds_left: Callable[[], float],
    ) -> tuple[FloatArray, Labels]:
        n_candidates, seconds = n_greedy_candidates(n_all), seconds_left()
        centers, _ = choose_seeds(cell, quota, rng, n_candidates=n_candidates, seconds=seconds)
        if seconds_left() > 0:
            centers = _descended(cell, centers, self.n_sweeps)
        return centers, cell.assign(centers)[0]


def _coarse_centers(rows: Points, n_clusters: int, rng: np.random.RandomState) -> FloatArray:
    """Return centers of a few cells, found in a sample."""
    # More cells take less time, fewer come nearer to k-means++ over all points.
    n_cells = max(1, round(0.5 * math.sqrt(n_clusters)))
    n_drawn = 256 * n_cells
    if n_drawn < rows.n_distinct:
        drawn, weights = drawn_sample(rows, n_drawn, rng)
        rows = sampler_of(rows).some(drawn, weights)
    return _descended(rows, uniform_seeds(rows, n_cells, rng), 4)


def _descended(rows: Points, centers: FloatArray, n_sweeps: int) -> FloatArray:
    for _ in range(n_sweeps):
        centers = rows.sweep(centers, Hard()).centers(fallback=centers)
    return centers


def _quotas(n_points: IndexArray, error: FloatArray, n_wanted: int) -> IndexArray:
    """Divide the seeds by the error of the cells.

    A cell with points has at least one, and no cell more seeds than points unless all have.
    """
    quotas = np.minimum(n_points, 1)
    most = np.where(
        n_points > 0, np.maximum(n_points, -(-n_wanted // np.count_nonzero(n_points))), 0
    )
    while (n_left := n_wanted - int(quotas.sum())) > 0:
        has_room = quotas < most
        wanted = np.where(has_room, error, 0.0)
        if not wanted.sum() > 0:
            wanted = (most - quotas).astype(np.float64)
        share = wanted / wanted.sum() * n_left
        whole = np.minimum(np.floor(share).astype(np.intp), most - quotas)
        if not whole.any():
            largest = np.argsort(-(share - whole) * has_room, kind="stable")[:n_left]
            whole[largest[has_room[largest]]] = 1
        quotas = quotas + whole
    return quotas
