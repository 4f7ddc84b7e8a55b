"""Runs that learn the covariance that clusters share, for Mahalanobis distances."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from powermeans.divergences.chunks import dense_chunks
from powermeans.divergences.mahalanobis import Mahalanobis
from powermeans.estimators.base import Start
from powermeans.estimators.opening import InMemory, in_memory
from powermeans.loop.anneal import StageEnd
from powermeans.loop.updates import RelocateEmpty, Sweep, Update
from powermeans.rows.bregman import BregmanRows
from powermeans.sums import Sums
from powermeans.types import FloatArray

# The scatter within clusters is summed anew if it is less than this share of the total, since a
# difference loses digits.
_LEAST_LEFT = 1e-6
# The least eigenvalue of a covariance, as a share of the largest.
_LEAST_EIGENVALUE = 1e-6
# A covariance is learned anew while that lowers the inertia by more than this share.
_LEAST_GAIN = 1e-6


def with_covariance_of_all(data: InMemory, n_threads: int | None) -> InMemory:
    """Return the data with distances by the covariance of all points."""
    of_all = Scatter.of(data).divergence_of_all()
    rows = BregmanRows(data.points, data.weights, divergence=of_all, n_threads=n_threads)
    return replace(data, rows=rows)


def run_with_covariance(
    start: Start, run_in_space: Callable[[Start], list[StageEnd]], most_learned: int
) -> list[StageEnd]:
    """Run with the covariance of all points, then with that within the clusters while it helps.

    Covariances have determinant one, which makes their inertias comparable.
    """
    data = in_memory(start.data)
    scatter, rows = Scatter.of(data), data.rows
    assert isinstance(rows, BregmanRows)

    def use(divergence: Mahalanobis) -> None:
        if divergence is not rows.divergence:
            rows.use(divergence)
        start.learned["covariance_"] = np.asarray(divergence.covariance)

    of_all = cast("Mahalanobis", rows.opened_with)
    use(of_all)
    if most_learned == 0:
        return run_in_space(start)
    learning = replace(start.stages[-1], update=LearnCovariance(use, data, scatter))
    best, least, best_divergence = list[StageEnd](), math.inf, of_all
    for _ in range(most_learned):
        ends = run_in_space(start)
        if not ends[-1].was_stopped:
            ends = [*ends, *start.anneal(ends[-1].centers, [learning])]
        _, inertia = rows.assign(ends[-1].centers)
        is_better, was_stopped = inertia < least * (1 - _LEAST_GAIN), ends[-1].was_stopped
        if is_better:
            best, least = ends, inertia
            best_divergence = cast("Mahalanobis", rows.divergence)
        if was_stopped or not is_better:
            break
    use(best_divergence)
    start.history.keep(best[-1].centers)
    return [*best[:-1], replace(best[-1], was_stopped=was_stopped)]


@dataclass(frozen=True, slots=True)
class Scatter:
    """Weighted products of deviations from the mean, summed over all points, and the mean."""

    total: FloatArray
    mean: FloatArray

    @classmethod
    def of(cls, data: InMemory) -> Scatter:
        """Return the scatter of the points about their weighted mean."""
        mean = data.rows.mean()
        total = np.zeros((len(mean), len(mean)))
        for rows, chunk in dense_chunks(data.points):
            deviations = chunk - mean
            weighted = (
                deviations if data.weights is None else (deviations * data.weights[rows, None])
            )
            total += weighted.T @ deviations
        return cls(total, mean)

    @property
    def scales(self) -> FloatArray:
        """Return the root of the total along each feature; one where a feature is constant."""
        squares = np.diag(self.total)
        return np.sqrt(np.where(squares > 0, squares, 1.0))

    def divergence_of_all(self) -> Mahalanobis:
        """Return the divergence of the total."""
        return Mahalanobis(unit_covariance(self.total, self.scales))

    def within(self, sums: Sums) -> FloatArray:
        """Return the scatter about the centers of a hard sweep."""
        has_points = sums.weights > 0
        weights = sums.weights[has_points, None]
        centers = sums.points[has_points] / weights - self.mean
        return np.asarray(self.total - (weights * centers).T @ centers)

    def is_lost_in(self, within: FloatArray) -> bool:
        """Return whether so little of the total is left that digits are lost."""
        left = np.diag(within) / self.scales**2
        return bool(np.any((left < _LEAST_LEFT) & (np.diag(self.total) > 0)))


def unit_covariance(scatter: FloatArray, scales: FloatArray) -> FloatArray:
    """Return the covariance of this shape with determinant one, kept from being singular.

    Eigenvalues are compared in units of these scales of the features.
    """
    correlation = scatter / np.outer(scales, scales)
    values, vectors = np.linalg.eigh((correlation + correlation.T) / 2)
    largest = max(float(values[-1]), float(np.finfo(np.float64).tiny))
    values = np.maximum(values / largest, _LEAST_EIGENVALUE)
    values /= np.exp(np.mean(np.log(values)))
    relative = scales / np.exp(np.mean(np.log(scales)))
    covariance = (vectors * values) @ vectors.T * np.outer(relative, relative)
    return np.asarray((covariance + covariance.T) / 2)


@dataclass(frozen=True, slots=True)
class LearnCovariance(Update):
    """After each hard sweep, measure distances by the scatter within the clusters.

    With its determinant held at one, this scatter is the best covariance for these clusters, so
    sweeps lower its determinant (Friedman & Rubin 1967).
    """

    use: Callable[[Mahalanobis], None]  # gives the rows a divergence
    data: InMemory
    scatter: Scatter

    def after(self, sweep: Sweep, sums: Sums) -> Sums:
        """Return sums without empty clusters, and give the rows a new covariance."""
        sums = RelocateEmpty().after(sweep, sums)
        within = self.scatter.within(sums)
        if self.scatter.is_lost_in(within):
            within = self._within_directly(sweep, sums.centers(fallback=sweep.centers))
        self.use(Mahalanobis(unit_covariance(within, self.scatter.scales)))
        return sums

    def _within_directly(self, sweep: Sweep, centers: FloatArray) -> FloatArray:
        """Return the scatter of the points about the new centers of their clusters."""
        labels, _ = sweep.rows.assign(sweep.centers)
        within, weights = np.zeros_like(self.scatter.total), self.data.weights
        for part, chunk in dense_chunks(self.data.points):
            deviations = chunk - centers[labels[part]]
            weight = 1.0 if weights is None else weights[part, None]
            within += (weight * deviations).T @ deviations
        return within
