"""The critical power of the data: above it, all centers of power k-means collapse to the mean.

With r = x - mean, let F be the mean of r r^T / |r|^2 and lambda its largest eigenvalue. Centers
near the mean move apart by the factor 2 (1 - s) lambda in each sweep with power s, which is one at

    s_c = 1 - 1 / (2 lambda).

The trace of F is at most one, so lambda <= 1 and s_c <= 1/2; isotropic data has s_c = 1 - d/2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from powermeans.seeding import draw_indices
from powermeans.types import FloatArray, Points, SparsePoints

_MOST_FEATURES_FORMED = 512
_CHUNK_ELEMENTS = 2**18

# A sample of m rows moves lambda by about sqrt(d/m) of itself where no direction stands out.
_ROWS_SAMPLED_PER_FEATURE = 100
_FEWEST_ROWS_SAMPLED = 10_000
_MOST_ELEMENTS_SAMPLED = 2**22
_FEWEST_ROWS_AFFORDED = 64
_LEAST_REDUCTION = 4

# The mean is rounded, so a point that equals it may lie this far away, relative to all points.
_ROUNDING = 1e-13
# Lanczos stops at this residual, relative to the eigenvalue. That bounds the eigenvalue's error,
# which goes with the square of the residual where the eigenvalue stands out.
_LANCZOS_TOLERANCE = 1e-2


@dataclass(frozen=True, slots=True)
class _Moments:
    mean: FloatArray
    mean_square: float


def critical_power(
    points: Points | SparsePoints,
    sample_weight: FloatArray | None = None,
    *,
    random_state: int | np.random.Generator | None = 0,
) -> float:
    """Power s_c above which centers near the mean collapse to it.

    All rows are used, unless that would take many times the work of a sample that is large enough.
    Translation, rotation and scaling of the points do not change the result.

    A point at the mean adds nothing to F but still counts in the mean that F is: it holds the
    centers back. Where all points are equal there is nothing to move apart, any power does, and
    the result is 1/2, the value of points on a line.

    Parameters
    ----------
    points : (n_points, n_features)
        Dense or CSR, finite.
    sample_weight : (n_points,), optional
        Not negative, not all zero.
    random_state : int, Generator or None, default 0
        For the sample, and the start of the iteration where there are many features.

    Returns
    -------
    float
        s_c, at most 1/2.
    """
    rng = np.random.default_rng(random_state)
    shares = _shares(points.shape[0], sample_weight)
    moments = _moments(points, shares)
    n_sampled = _n_rows_to_sample(points)
    if points.shape[0] < _LEAST_REDUCTION * n_sampled:
        eigenvalue, _ = _largest_eigenpair(_directions(points, shares, moments), rng)
    else:
        eigenvalue = _eigenvalue_of_sample(points, shares, moments, n_sampled, rng)
    return 1 - 1 / (2 * eigenvalue) if eigenvalue > 0 else 0.5


def _shares(n_points: int, sample_weight: FloatArray | None) -> FloatArray:
    """The sample weights, made to add to one."""
    if sample_weight is None:
        return np.full(n_points, 1 / n_points)
    weights = np.asarray(sample_weight, dtype=np.float64)
    scaled = weights / weights.max()
    return np.asarray(scaled / scaled.sum())


def _moments(points: Points | SparsePoints, shares: FloatArray) -> _Moments:
    mean, mean_square = np.zeros(points.shape[1]), 0.0
    for rows, block in _blocks(points):
        mean += block.T @ shares[rows]
        mean_square += float(shares[rows] @ _row_norms_squared(block))
    return _Moments(mean, mean_square)


def _n_rows_to_sample(points: Points | SparsePoints) -> int:
    n_points, n_features = points.shape
    wanted = max(_FEWEST_ROWS_SAMPLED, _ROWS_SAMPLED_PER_FEATURE * int(n_features))
    n_stored = int(points.nnz if sparse.issparse(points) else points.size)
    elements_per_row = max(1, n_stored // int(n_points))
    return min(wanted, max(_FEWEST_ROWS_AFFORDED, _MOST_ELEMENTS_SAMPLED // elements_per_row))


def _eigenvalue_of_sample(
    points: Points | SparsePoints,
    shares: FloatArray,
    moments: _Moments,
    n_sampled: int,
    rng: np.random.Generator,
) -> float:
    """Estimate the largest eigenvalue from two halves of a sample.

    The largest eigenvalue of a sample is too large, by about (1 + sqrt(d/m))^2 if nothing stands
    out; the mean square of the other half along its eigenvector is too small. In the spiked model
    of random matrices, where one eigenvalue stands out, the errors of the two are each other's
    inverse, so their geometric mean is right.
    """
    strata = (np.arange(n_sampled) + rng.random(n_sampled)) / n_sampled
    drawn = draw_indices(shares, strata)
    halves = [
        _directions(points[half], _shares(len(half), None), moments)
        for half in (drawn[0::2], drawn[1::2])
    ]
    pairs = [_largest_eigenpair(half, rng) for half in halves]
    within = sum(eigenvalue for eigenvalue, _ in pairs)
    across = sum(
        float(vector @ (other @ vector))
        for other, (_, vector) in zip(reversed(halves), pairs, strict=True)
    )
    return math.sqrt(within * across) / 2


def _directions(
    points: Points | SparsePoints, shares: FloatArray, moments: _Moments
) -> FloatArray | LinearOperator:
    """F, the weighted mean of r r^T / |r|^2, as an operator if there are many features."""
    if points.shape[1] <= _MOST_FEATURES_FORMED:
        return _formed(points, shares, moments)
    return _operator(points, shares, moments)


def _formed(points: Points | SparsePoints, shares: FloatArray, moments: _Moments) -> FloatArray:
    directions = np.zeros((points.shape[1], points.shape[1]))
    for rows, block in _dense_blocks(points):
        residuals = block - moments.mean
        inverses = _inverse(_row_norms_squared(residuals), _ROUNDING**2 * moments.mean_square)
        residuals *= np.sqrt(inverses * shares[rows])[:, None]
        directions += residuals.T @ residuals
    return directions


def _operator(
    points: Points | SparsePoints, shares: FloatArray, moments: _Moments
) -> FloatArray | LinearOperator:
    """Multiply by F without subtracting the mean from anything as large as the points."""
    mean = moments.mean
    factors = shares * _inverse_residuals(points, moments)

    def multiply(vector: FloatArray) -> FloatArray:
        vector = vector.ravel()
        result = np.zeros(len(mean))
        along_mean, total = mean @ vector, 0.0
        for rows, block in _blocks(points):
            along = factors[rows] * (block @ vector - along_mean)
            result += block.T @ along
            total += along.sum()
        return np.asarray(result - total * mean)

    if not factors.any():
        return np.zeros((1, 1))
    return LinearOperator((len(mean), len(mean)), matvec=multiply, dtype=np.float64)


def _inverse_residuals(points: Points | SparsePoints, moments: _Moments) -> FloatArray:
    """1 / |r|^2 of each point, zero for points at the mean."""
    mean = moments.mean
    if not sparse.issparse(points):
        norms = [_row_norms_squared(block - mean) for _, block in _dense_blocks(points)]
        return _inverse(np.concatenate(norms), _ROUNDING**2 * moments.mean_square)
    # Stored entries change the square of the mean. What cancels leaves an error in |r|^2 itself.
    values = points.data.astype(np.float64)
    values *= values - 2 * mean[points.indices]
    changes = sparse.csr_array((values, points.indices, points.indptr), shape=points.shape)
    norms_squared = changes @ np.ones(len(mean)) + mean @ mean
    return _inverse(norms_squared, _ROUNDING * moments.mean_square)


def _inverse(norms_squared: FloatArray, least: float) -> FloatArray:
    result = np.zeros_like(norms_squared)
    return np.divide(1.0, norms_squared, out=result, where=norms_squared > least)


def _largest_eigenpair(
    directions: FloatArray | LinearOperator, rng: np.random.Generator
) -> tuple[float, FloatArray]:
    last = directions.shape[0] - 1
    if isinstance(directions, LinearOperator):
        start = rng.standard_normal(last + 1)
        values, vectors = eigsh(directions, k=1, v0=start, tol=_LANCZOS_TOLERANCE)
    else:
        values, vectors = eigh(directions, subset_by_index=[last, last], check_finite=False)
    return float(values[0]), vectors[:, 0]


def _row_norms_squared(rows: FloatArray | SparsePoints) -> FloatArray:
    if sparse.issparse(rows):
        squares = rows.data.astype(np.float64) ** 2
        squared = sparse.csr_array((squares, rows.indices, rows.indptr), shape=rows.shape)
        return np.asarray(squared @ np.ones(rows.shape[1]))
    return np.asarray(np.einsum("if,if->i", rows, rows))


def _blocks(points: Points | SparsePoints) -> Iterator[tuple[slice, Any]]:
    """Some rows at a time in float64; a sparse matrix whole, since slices of it are copies."""
    if sparse.issparse(points):
        yield slice(None), points
    else:
        yield from _dense_blocks(points)


def _dense_blocks(points: Points | SparsePoints) -> Iterator[tuple[slice, FloatArray]]:
    n_rows = max(1, _CHUNK_ELEMENTS // points.shape[1])
    for start in range(0, points.shape[0], n_rows):
        rows = slice(start, start + n_rows)
        block = points[rows].toarray() if sparse.issparse(points) else points[rows]
        yield rows, np.asarray(block, dtype=np.float64)
