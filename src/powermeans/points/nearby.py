"""Rows that compare a point only with the centers near the one it has, for thousands of centers.

A sweep keeps the label of each point. The next one looks for its new center among the centers near
that one, which takes a small part of the time. Few points have a nearer center elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from powermeans.mathematics.rules import Hard, Power, Priced, Rule
from powermeans.mathematics.sums import Spread, Sums
from powermeans.points.base import ViewedPoints
from powermeans.points.by_definition import weighted
from powermeans.points.cells import Cells
from powermeans.points.farthest import Farthest, farthest_in_passes, largest_first
from powermeans.points.protocol import (
    AskedNear,
    FarPoint,
    Labelling,
    NearCenters,
    Nearness,
    Points,
    PricedLabels,
    priced_of,
    sampler_of,
)
from powermeans.types import FloatArray, IndexArray, Labels

# How many centers a point is compared with. More find nearer ones, and take longer.
_MOST_LISTED = 48
# Lists are made anew after so many sweeps, since centers move.
_SWEEPS_PER_LIST = 3


class NearbyPoints(ViewedPoints):
    """Sweep over the points of other rows, each among the centers near its own.

    `labels` tell which of `centers` each point belongs to at first. `assign`, and rules other than
    `Hard`, `Priced` and `Power`, compare with all centers. The other rows have `cells`.
    """

    def __init__(self, rows: Points, centers: FloatArray, labels: Labels) -> None:
        assert rows.cells is not None, f"{type(rows).__name__} have no cells"
        cells: Cells = rows.cells
        self._rows, self._cells, self._centers = rows, cells, centers
        self._labels = np.ascontiguousarray(labels, dtype=np.int32)
        self._nearby: Labels = np.empty((0, 0), dtype=np.int32)
        self._n_sweeps = 0  # since the lists were made
        self._n_hard = 0
        self._near_by_price, self._n_priced = self._nearby, 0  # sweeps since these lists were made

    def begin_with(self, labels: Labels) -> None:
        """Look for the next center of each point among those near the one of this label."""
        self._labels[:] = labels

    def descends(self, rule: Rule) -> bool:
        # Other lists may leave a point farther from its center.
        return False

    def sweep(self, centers: FloatArray, rule: Rule) -> Sums:
        if isinstance(rule, Priced):
            return self.priced.assign(centers, rule.prices_of(len(centers))).sums
        if not isinstance(rule, Hard | Power):
            return self._rows.sweep(centers, rule)
        self._follow(centers)
        lists = self._nearby
        if isinstance(rule, Hard):
            self._n_hard += 1
            # Some points have a nearer center outside the lists.
            if self._n_hard % 4 == 0:
                lists = self._lists_of(centers, 256)
        return self._cells.sweep(centers, rule, lists, self._labels)

    def lists(self, centers: FloatArray) -> Labels:
        """Return the centers that points of each are compared with, with itself first."""
        self._follow(centers)
        return self._nearby

    @property
    def priced(self) -> NearbyPrices:
        return NearbyPrices(self)

    def spread(self, centers: FloatArray) -> Spread:
        self._follow(centers)
        return self._cells.spread(centers, self._nearby, self._labels)

    def assign(self, centers: FloatArray) -> tuple[Labels, float]:
        return self._rows.assign(centers)

    def nearness(self, centers: FloatArray, order: IndexArray | None = None) -> Nearness:
        return self._rows.nearness(centers, order)

    def farthest(self, centers: FloatArray, n_wanted: int) -> Iterator[FarPoint]:
        """Yield the points farthest from the centers that the last sweep gave them."""
        everything = np.arange(self.n_points)
        sq_dist = self._cells.distances_to_own(centers, self._labels)
        weights = self._rows.sample_weight(everything)
        n_near = len(centers)

        def find(chosen: FloatArray, n_kept: int) -> tuple[Farthest, Points]:
            nonlocal n_near
            if len(chosen) > n_near:
                np.minimum(sq_dist, self.nearness(chosen[n_near:]).sq_dist(), out=sq_dist)
                n_near = len(chosen)
            first = np.sort(largest_first(weighted(weights, sq_dist), n_kept))
            points = self.take(first)
            found = Farthest(n_kept, sq_dist[first], weights[first], self._labels[first], points)
            return found, sampler_of(self._rows).some(first)

        return farthest_in_passes(find, centers, n_wanted)

    def _middle(self) -> FloatArray:
        return self._rows.mean()

    def _find_mean(self) -> FloatArray:
        return self._rows.mean()

    def _find_inertia_about_mean(self) -> float:
        return self._rows.inertia_about_mean()

    def _follow(self, centers: FloatArray) -> None:
        """Let labels refer to these centers, and list the centers near each."""
        is_same = self._centers is centers or np.array_equal(self._centers, centers)
        if not is_same:
            self._relabel(centers)
        is_known = len(self._nearby) == len(centers)
        if is_known and (is_same or self._n_sweeps < _SWEEPS_PER_LIST):
            self._n_sweeps += 1
            return
        self._nearby, self._n_sweeps = self._lists_of(centers, _MOST_LISTED), 1

    def _relabel(self, centers: FloatArray) -> None:
        """Give the points of each former center the nearest of the new ones."""
        former, self._centers = self._centers, centers
        new = np.arange(len(former))
        away = new
        if len(former) == len(centers):
            moved = np.square(centers - former).sum(axis=1)
            # A center that moved by less than a quarter of the way to another keeps its points.
            away = np.flatnonzero(moved > 0.25**2 * self._sq_gaps(centers))
        if len(away):
            new[away] = self._cells.nearest_of(centers, former[away])
            self._nearby = self._nearby[:0]
        self._labels = new[self._labels].astype(np.int32)

    def _sq_gaps(self, centers: FloatArray) -> FloatArray:
        """Return the squared distance of each center to the one listed first beside it."""
        if len(self._nearby) != len(centers) or self._nearby.shape[1] < 2:
            return np.full(len(centers), np.inf)
        return np.asarray(np.square(centers - centers[self._nearby[:, 1]]).sum(axis=1))

    def _lists_of(
        self, centers: FloatArray, n_listed: int, prices: FloatArray | None = None
    ) -> Labels:
        """Return the centers nearest to each, by distance and price, with itself first."""
        return _with_lone_centers(self._cells.nearest_to_each(centers, n_listed, prices))


class NearbyPrices:
    """Assign the same points by distance and price, each among the centers near by both."""

    def __init__(self, nearby: NearbyPoints) -> None:
        self._nearby = nearby

    def assign(self, centers: FloatArray, prices: FloatArray) -> PricedLabels:
        rows = self._nearby
        # A point stays with its center however far that moves, since its price moves with it.
        if rows._centers is not centers or rows._n_priced % _SWEEPS_PER_LIST == 0:
            rows._near_by_price, rows._n_priced = rows._lists_of(centers, _MOST_LISTED, prices), 0
        rows._n_priced += 1
        rows._centers, rows._nearby = centers, rows._nearby[:0]
        rule = Labelling(tuple(prices.tolist()), rows._labels, np.empty(rows.n_points))
        sums = rows._cells.sweep(centers, rule, rows._near_by_price, rows._labels)
        return PricedLabels(rows._labels.copy(), rule.margins, sums)

    def near(self, asked: AskedNear) -> NearCenters:
        """List among the centers of the last assignment, or among all where it had others."""
        rows, lists = self._nearby, self._nearby._near_by_price
        is_listed = asked.n_most <= lists.shape[1] < len(asked.centers)
        if rows._centers is asked.centers and is_listed:
            return rows._cells.near(asked, lists)
        return priced_of(rows._rows).near(asked)


def _with_lone_centers(lists: Labels) -> Labels:
    """List each center beside its nearest one too, in the place of the farthest there.

    A center far from all others is near none of them, and its points would not find it.
    """
    if lists.shape[1] < 3:
        return lists
    lone = np.flatnonzero(~(lists[lists[:, 1]] == np.arange(len(lists))[:, None]).any(axis=1))
    hosts = lists[lone, 1]
    order = np.argsort(hosts, kind="stable")
    lone, hosts = lone[order], hosts[order]
    # The first of a host's guests takes the last place, the second the one before.
    place = np.arange(len(hosts)) - np.searchsorted(hosts, hosts)
    fits = place < lists.shape[1] // 2
    lists[hosts[fits], lists.shape[1] - 1 - place[fits]] = lone[fits]
    return lists
