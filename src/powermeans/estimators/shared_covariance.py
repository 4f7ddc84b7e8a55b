"""Learning the covariance that clusters share, for Mahalanobis distances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from powermeans.divergences.chunks import dense_chunks
from powermeans.divergences.mahalanobis import Mahalanobis
from powermeans.loop.updates import RelocateEmpty
from powermeans.rows.protocol import Rows
from powermeans.sums import Sums
from powermeans.types import FloatArray, Points, SparsePoints

# A scatter this small a share of the total is summed about the centers, not taken as a difference.
_LEAST_LEFT = 1e-6
# The least eigenvalue of a covariance, as a share of the largest.
_LEAST_EIGENVALUE = 1e-6


@dataclass(frozen=True, slots=True)
class Scatter:
    """Weighted products of deviations from the mean, summed over all points.

    Attributes
    ----------
    total : (n_features, n_features)
    mean : (n_features,)
    """

    total: FloatArray
    mean: FloatArray

    @classmethod
    def of(
        cls, points: Points | SparsePoints, sample_weight: FloatArray | None, mean: FloatArray
    ) -> Scatter:
        """That of these points about their weighted mean."""
        total = np.zeros((len(mean), len(mean)))
        for rows, chunk in dense_chunks(points):
            deviations = chunk - mean
            weighted = (
                deviations if sample_weight is None else (deviations * sample_weight[rows, None])
            )
            total += weighted.T @ deviations
        return cls(total, mean)

    @property
    def scales(self) -> FloatArray:
        """Of each feature; one where it is constant."""
        squares = np.diag(self.total)
        return np.sqrt(np.where(squares > 0, squares, 1.0))

    def within(self, sums: Sums) -> FloatArray:
        """That about the centers of a hard sweep."""
        has_points = sums.weights > 0
        weights = sums.weights[has_points, None]
        centers = sums.points[has_points] / weights - self.mean
        return np.asarray(self.total - (weights * centers).T @ centers)

    def is_lost_in(self, within: FloatArray) -> bool:
        """Whether what is left of the total is so little that digits are lost."""
        left = np.diag(within) / self.scales**2
        return bool(np.any((left < _LEAST_LEFT) & (np.diag(self.total) > 0)))


def unit_covariance(scatter: FloatArray, scales: FloatArray) -> FloatArray:
    """The covariance of this shape with the determinant one; never quite singular.

    Parameters
    ----------
    scatter : (n_features, n_features)
    scales : (n_features,)
        Units of the features: what is too small is so in these.
    """
    correlation = scatter / np.outer(scales, scales)
    values, vectors = np.linalg.eigh((correlation + correlation.T) / 2)
    largest = max(float(values[-1]), float(np.finfo(np.float64).tiny))
    values = np.maximum(values / largest, _LEAST_EIGENVALUE)
    values /= np.exp(np.mean(np.log(values)))
    relative = scales / np.exp(np.mean(np.log(scales)))
    covariance = (vectors * values) @ vectors.T * np.outer(relative, relative)
    return np.asarray((covariance + covariance.T) / 2)


@dataclass(slots=True)
class LearnCovariance:
    """After each hard sweep distances are measured by the scatter within the clusters.

    With the determinant held at one, this scatter is the best covariance for these clusters, so
    that sweeps lower its determinant (Friedman & Rubin 1967).

    Attributes
    ----------
    use : callable
        Tells the rows of a new divergence.
    covariance : (n_features, n_features)
        That in use.
    """

    use: Callable[[Mahalanobis], None]
    points: Points | SparsePoints
    sample_weight: FloatArray | None
    scatter: Scatter
    covariance: FloatArray

    def before(self, centers: FloatArray, power: float) -> tuple[FloatArray, int]:
        """The same centers."""
        return centers, 0

    def after(self, rows: Rows, centers: FloatArray, sums: Sums) -> tuple[Sums, int]:
        """Sums without empty clusters; the rows have a new covariance."""
        sums, n_relocated = RelocateEmpty().after(rows, centers, sums)
        within = self.scatter.within(sums)
        if self.scatter.is_lost_in(within):
            within = self._within_directly(rows, sums.centers(fallback=centers), centers)
        self.covariance = unit_covariance(within, self.scatter.scales)
        self.use(Mahalanobis(self.covariance))
        return sums, n_relocated

    def _within_directly(
        self, rows: Rows, centers: FloatArray, assigned_to: FloatArray
    ) -> FloatArray:
        labels, _ = rows.assign(assigned_to)
        within = np.zeros_like(self.covariance)
        for part, chunk in dense_chunks(self.points):
            deviations = chunk - centers[labels[part]]
            weight = 1.0 if self.sample_weight is None else self.sample_weight[part, None]
            within += (weight * deviations).T @ deviations
        return within
