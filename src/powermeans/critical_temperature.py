"""The critical temperature of the data: above it, all Gaussians of an annealed mixture coincide.

At the temperature T a point belongs to centers in proportion to exp(-y / T), as to Gaussians of the
variance T / 2. Centers near the mean move apart by the factor 2 lambda / T in each sweep, with the
largest eigenvalue lambda of the covariance of the points, which is one at

    T_c = 2 lambda

(Rose 1998, "Deterministic annealing for clustering, compression, classification, regression, and
related optimization problems", section II-C).
"""

from __future__ import annotations

from powermeans.principal_axes import principal_axes
from powermeans.types import FloatArray, Points, SparsePoints


def critical_temperature(
    points: Points | SparsePoints, sample_weight: FloatArray | None = None
) -> float:
    """Temperature T_c above which centers near the mean collapse to it.

    Parameters
    ----------
    points : (n_points, n_features)
        Dense or CSR, finite.
    sample_weight : (n_points,), optional
        Not negative, not all zero.

    Returns
    -------
    float
        Zero where all points are equal.
    """
    return 2 * float(principal_axes(points, sample_weight, 1).deviations[0]) ** 2
