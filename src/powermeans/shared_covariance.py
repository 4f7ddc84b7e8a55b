"""Learning the covariance that clusters share, for Mahalanobis distances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from powermeans.divergences.chunks import dense_chunks
from powermeans.divergences.mahalanobis import Mahalanobis
from powermeans.repairs import RelocateEmpty
from powermeans.rows.protocol import Rows
from powermeans.sums import Sums
from powermeans.types import FloatArray, Points, SparsePoints

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

    def within(self, sums: Sums) -> FloatArray:
        """That about the centers of a hard sweep."""
        has_points = sums.weights > 0
        weights = sums.weights[has_points, None]
        centers = sums.points[has_points] / weights - self.mean
        return np.asarray(self.total - (weights * centers).T @ centers)


def unit_covariance(scatter: FloatArray) -> FloatArray:
    """The covariance of this shape with the determinant one; never quite singular."""
    values, vectors = np.linalg.eigh((scatter + scatter.T) / 2)
    largest = max(float(values[-1]), float(np.finfo(np.float64).tiny))
    values = np.maximum(values / largest, _LEAST_EIGENVALUE)
    values /= np.exp(np.mean(np.log(values)))
    covariance = (vectors * values) @ vectors.T
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
    scatter : Scatter
    covariance : (n_features, n_features)
        That in use.
    """

    use: Callable[[Mahalanobis], None]
    scatter: Scatter
    covariance: FloatArray

    def before(self, centers: FloatArray, power: float) -> tuple[FloatArray, int]:
        """The same centers."""
        return centers, 0

    def after(self, rows: Rows, centers: FloatArray, sums: Sums) -> tuple[Sums, int]:
        """Sums without empty clusters; the rows have a new covariance."""
        sums, n_relocated = RelocateEmpty().after(rows, centers, sums)
        self.covariance = unit_covariance(self.scatter.within(sums))
        self.use(Mahalanobis(self.covariance))
        return sums, n_relocated
