"""Critical power and temperature of data: above them all centers collapse to the mean.

With r = x - mean, let F be the mean of r r^T / |r|^2 and lambda its largest eigenvalue. Centers
near the mean move apart by the factor 2 (1 - s) lambda in each sweep with power s, which is one at

    s_c = 1 - 1 / (2 lambda).

The trace of F is at most one, so lambda <= 1 and s_c <= 1/2; isotropic data has s_c = 1 - d/2.
Gaussians of the variance v = T / 2 have the critical temperature

    T_c = 2 sigma^2,

with sigma^2 the largest variance of the data along any direction (Rose 1998).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from powermeans.divergences.chunks import dense_chunks
from powermeans.mathematics.principal_axes import principal_axes
from powermeans.mathematics.sums import recorded
from powermeans.mathematics.weighted_draws import draw_indices
from powermeans.system.threads import blas_on_one_thread
from powermeans.types import FloatArray, Points, SparsePoints

_MOST_FEATURES_FORMED = 512
_BLOCK_ELEMENTS = 2**16

# All eigenvalues of a small matrix come at once; of a larger one iteration finds the last sooner.
_MOST_FEATURES_SOLVED = 48
# Products of more features are in float32, which misses lambda by about 1e-7 of itself.
_MOST_FEATURES_IN_DOUBLE = 32
# Neither a product with a vector nor one of 32 features is divided among threads below this.
_ELEMENTS_NEVER_DIVIDED = 2**13

# A sample of m rows moves lambda by about sqrt(d/m) of itself if no direction stands out.
_ROWS_SAMPLED_PER_FEATURE = 100
_FEWEST_ROWS_SAMPLED = 10_000
_MOST_ELEMENTS_SAMPLED = 2**22
_FEWEST_ROWS_AFFORDED = 64
_LEAST_REDUCTION = 4

# The mean is rounded, so a point that equals it may lie this far away, relative to all points.
_ROUNDING = 1e-13
# Squares of points below this would lose digits, and their inverses overflow.
_LEAST_MEAN_SQUARE = 1e-200
# Lanczos stops at this residual, relative to the eigenvalue. The error of the eigenvalue is the
# square of that if it stands out, and up to a percent if many are alike.
_LANCZOS_TOLERANCE = 2e-3
# The same for a matrix that is formed, which costs little to iterate.
_LANCZOS_TOLERANCE_FORMED = 1e-6
_STEPS_BETWEEN_CHECKS_FORMED = 4


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
    rng, n_features = np.random.default_rng(random_state), points.shape[1]
    # BLAS divides so little work badly, and rounds otherwise for each number of threads.
    is_small = points.size < _ELEMENTS_NEVER_DIVIDED and n_features <= _MOST_FEATURES_IN_DOUBLE
    with contextlib.nullcontext() if is_small else blas_on_one_thread():
        eigenvalue = _eigenvalue(points, sample_weight, rng)
    return _critical_power_at(eigenvalue)


def critical_temperature(
    points: Points | SparsePoints, sample_weight: FloatArray | None = None
) -> float:
    """Return T_c, above which centers near the mean collapse to it; zero for equal points."""
    return 2 * float(principal_axes(points, sample_weight, 1).deviations[0]) ** 2


def critical_power_of_sample(drawn: Points | SparsePoints, moments: Moments) -> float:
    """Return `critical_power` of points that are not in memory, from some of them.

    `strata_to_sample` draws them in proportion to their weights. The moments are of all points,
    with weights that add to one.
    """
    rng = np.random.default_rng(0)
    with blas_on_one_thread():
        eigenvalue = _eigenvalue_of_sample(lambda _: drawn, moments, drawn.shape[0], rng)
    return _critical_power_at(eigenvalue)


def n_rows_to_sample(n_points: int, n_features: int, elements_per_row: int) -> int | None:
    """Return the number of rows that is enough; None if all are not much more work."""
    wanted = max(_FEWEST_ROWS_SAMPLED, _ROWS_SAMPLED_PER_FEATURE * n_features)
    affordable = max(_FEWEST_ROWS_AFFORDED, _MOST_ELEMENTS_SAMPLED // elements_per_row)
    n_sampled = min(wanted, affordable)
    return None if n_points < _LEAST_REDUCTION * n_sampled else n_sampled


def strata_to_sample(n_sampled: int) -> FloatArray:
    """Return the rising numbers of [0, 1) that draw points for `critical_power_of_sample`."""
    return _strata(n_sampled, np.random.default_rng(0))


def moments_about_origin(points: Points | SparsePoints, shares: FloatArray) -> Moments:
    """Return the part of these points in the moments of all, whose shares add up to one."""
    mean, mean_square = np.zeros(points.shape[1]), 0.0
    for rows, block in _blocks(points):
        mean += block.T @ shares[rows]
        mean_square += float(shares[rows] @ _row_norms_squared(block))
    return Moments(mean, mean_square)


@recorded
@dataclass(frozen=True, slots=True)
class Moments:
    """Weighted means of points and of their squared norms; those of parts add up."""

    mean: FloatArray
    mean_square: float

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.mean + other.mean, self.mean_square + other.mean_square)


def _critical_power_at(eigenvalue: float) -> float:
    """Return s_c = 1 - 1 / (2 lambda), or 1/2 for equal points, as for points on a line."""
    return 1 - 1 / (2 * eigenvalue) if eigenvalue > 0 else 0.5


def _eigenvalue(
    points: Points | SparsePoints, sample_weight: FloatArray | None, rng: np.random.Generator
) -> float:
    """Return the largest eigenvalue of F."""
    shares = _shares(points.shape[0], sample_weight)
    moments = moments_about_origin(points, shares)
    n_sampled = n_rows_to_sample(points.shape[0], points.shape[1], _elements_per_row(points))
    if n_sampled is None:
        return _largest_eigenpair(_directions(points, shares, moments), rng)[0]

    def draw(strata: FloatArray) -> Points | SparsePoints:
        if sample_weight is None:
            return points[(strata * len(shares)).astype(np.intp)]
        return points[draw_indices(shares, strata)]

    return _eigenvalue_of_sample(draw, moments, n_sampled, rng)


def _eigenvalue_of_sample(
    draw: Callable[[FloatArray], Points | SparsePoints],
    moments: Moments,
    n_sampled: int,
    rng: np.random.Generator,
) -> float:
    """Estimate the largest eigenvalue from two halves of a sample.

    The largest eigenvalue of a half is too large, by about (1 + sqrt(d/m))^2 if nothing stands out;
    the mean square of the other half along its eigenvector is too small. In the spiked model of
    random matrices, where one eigenvalue stands out, one error is the inverse of the other, so
    the geometric mean is right.
    """
    drawn, places = draw(_strata(n_sampled, rng)), np.arange(n_sampled)
    halves = [
        _directions(drawn[half], _shares(len(half), None), moments)
        for half in (places[0::2], places[1::2])
    ]
    pairs = [_largest_eigenpair(half, rng) for half in halves]
    within = sum(eigenvalue for eigenvalue, _ in pairs)
    across = sum(
        float(np.sum(other.along(vector) ** 2))
        for other, (_, vector) in zip(reversed(halves), pairs, strict=True)
    )
    return math.sqrt(within * across) / 2


def _strata(n_sampled: int, rng: np.random.Generator) -> FloatArray:
    """Draw one number in each of `n_sampled` equal shares of [0, 1)."""
    return np.asarray((np.arange(n_sampled) + rng.random(n_sampled)) / n_sampled)


def _shares(n_points: int, sample_weight: FloatArray | None) -> FloatArray:
    """Return the sample weights, scaled to add up to one."""
    if sample_weight is None:
        return np.broadcast_to(1 / n_points, n_points)  # no memory for each point
    weights = np.asarray(sample_weight, dtype=np.float64)
    shares = np.asarray(weights / weights.max())
    shares /= shares.sum()
    return shares


def _largest_eigenpair(
    directions: _Directions, rng: np.random.Generator
) -> tuple[float, FloatArray]:
    """Return the largest eigenvalue of F and its eigenvector."""
    n_points, n_features = directions.points.shape
    if n_features <= _MOST_FEATURES_FORMED:
        return _last_eigenpair(directions.formed(), rng)
    if not directions.factors.any():
        return 0.0, np.zeros(n_features)
    start = rng.standard_normal((min(n_points, n_features),))
    if n_features < n_points:
        return _iterated(directions.there_and_back, start)
    # U U^T has the same eigenvalue, and is smaller.
    value, vector = _iterated(lambda vector: directions.along(directions.back(vector)), start)
    across = directions.back(vector)
    return value, np.asarray(across / np.linalg.norm(across))


def _last_eigenpair(matrix: FloatArray, rng: np.random.Generator) -> tuple[float, FloatArray]:
    if len(matrix) <= _MOST_FEATURES_SOLVED:
        values, vectors = np.linalg.eigh(matrix)
        return float(values[-1]), vectors[:, -1]
    if not matrix.any():
        return 0.0, np.zeros(len(matrix))
    start = rng.standard_normal(len(matrix))
    return _iterated(
        lambda vector: matrix @ vector,
        start,
        tolerance=_LANCZOS_TOLERANCE_FORMED,
        steps_between_checks=_STEPS_BETWEEN_CHECKS_FORMED,
    )


def _iterated(
    multiply: Callable[[FloatArray], FloatArray],
    start: FloatArray,
    *,
    tolerance: float = _LANCZOS_TOLERANCE,
    steps_between_checks: int = 1,
) -> tuple[float, FloatArray]:
    """Find the largest eigenpair by Lanczos iteration, with all vectors kept orthogonal."""
    size = len(start)
    basis, diagonal, beside = np.empty((size + 1, size)), np.empty(size), np.zeros(size)
    basis[0] = start / np.linalg.norm(start)
    for step in range(size):
        image = multiply(basis[step])
        diagonal[step] = image @ basis[step]
        known = basis[: step + 1]
        for _ in range(2):  # rounding of the first projection leaves a rest along known vectors
            image = image - (known @ image) @ known
        beside[step] = np.linalg.norm(image)
        is_whole = beside[step] <= _ROUNDING * diagonal[: step + 1].max() or step + 1 == size
        if is_whole or (step + 1) % steps_between_checks == 0:
            value, vector = _last_of_tridiagonal(diagonal[: step + 1], beside[:step])
            if is_whole or abs(beside[step] * vector[-1]) <= tolerance * value:
                break
        basis[step + 1] = image / beside[step]
    return value, vector @ known


def _last_of_tridiagonal(diagonal: FloatArray, beside: FloatArray) -> tuple[float, FloatArray]:
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, -1))
    return float(values[-1]), vectors[:, -1]


@dataclass(frozen=True)
class _Directions:
    """Multiply by the matrix U with the rows sqrt(share) r / |r|, so that F = U^T U.

    No method forms r for all points, which would lose sparsity and double the memory.
    """

    points: Points | SparsePoints
    shares: FloatArray
    moments: Moments

    @property
    def mean(self) -> FloatArray:
        """Weighted mean of all points, (n_features,)."""
        return self.moments.mean

    @cached_property
    def factors(self) -> FloatArray:
        """sqrt(share) / |r| of each point, zero for those at the mean."""
        norms_squared = _residual_norms_squared(self.points, self.mean)
        # In sparse rows |r|^2 is a difference of squares, and misses by their rounding.
        rounding = _ROUNDING if sparse.issparse(self.points) else _ROUNDING**2
        return _factors(self.shares, norms_squared, rounding * self.moments.mean_square)

    def along(self, vector: FloatArray) -> FloatArray:
        """Return U times a vector, (n_points,)."""
        along_points = [block @ vector for _, block in _blocks(self.points)]
        return np.asarray(self.factors * (np.concatenate(along_points) - self.mean @ vector))

    def back(self, vector: FloatArray) -> FloatArray:
        """Return U^T times a vector, (n_features,)."""
        scaled = self.factors * vector
        result = -scaled.sum() * self.mean
        for rows, block in _blocks(self.points):
            result += block.T @ scaled[rows]
        return np.asarray(result)

    def there_and_back(self, vector: FloatArray) -> FloatArray:
        """Return F times a vector, (n_features,); each block of points is read once."""
        offset, total = self.mean @ vector, 0.0
        result = np.zeros(len(self.mean))
        for rows, block in _blocks(self.points):
            scaled = self.factors[rows] ** 2 * (block @ vector - offset)
            total += scaled.sum()
            result += block.T @ scaled
        return np.asarray(result - total * self.mean)

    def formed(self) -> FloatArray:
        """Return F itself, (n_features, n_features), from one pass over the points."""
        n_features = len(self.mean)
        dtype = np.float64 if n_features <= _MOST_FEATURES_IN_DOUBLE else np.float32
        nearest = _ROUNDING**2 * self.moments.mean_square
        result = np.zeros((n_features, n_features))
        # A block, its residuals, their directions and a copy of these are in memory.
        for rows, block in dense_chunks(self.points, elements_per_point=4 * n_features):
            residuals = block - self.mean
            factors = _factors(self.shares[rows], _row_norms_squared(residuals), nearest)
            directions = np.empty(residuals.shape, dtype=dtype)
            np.multiply(residuals, factors[:, None], out=directions, casting="same_kind")
            # BLAS divides a matrix times itself among threads even if it is small; hence the copy.
            again = directions.copy() if n_features <= _MOST_FEATURES_IN_DOUBLE else directions
            result += directions.T @ again
        return result


def _directions(points: Points | SparsePoints, shares: FloatArray, moments: Moments) -> _Directions:
    """Return the directions of points, in a unit that leaves their squares all digits."""
    if moments.mean_square >= _LEAST_MEAN_SQUARE:
        return _Directions(points, shares, moments)
    in_unit: Any = points.astype(np.float64)
    entries = in_unit.data if sparse.issparse(points) else in_unit
    exponent = -math.frexp(np.abs(entries).max(initial=0.0))[1]
    np.ldexp(entries, exponent, out=entries)
    mean = np.ldexp(moments.mean, exponent)
    mean_square = math.ldexp(moments.mean_square, 2 * exponent)
    return _Directions(in_unit, shares, Moments(mean, mean_square))


def _factors(shares: FloatArray, norms_squared: FloatArray, nearest: float) -> FloatArray:
    """Return sqrt(share) / |r|, zero where the square of |r| is at most `nearest`."""
    factors = np.zeros(len(shares))
    np.divide(shares, norms_squared, out=factors, where=norms_squared > nearest)
    return np.sqrt(factors, out=factors)


def _residual_norms_squared(points: Points | SparsePoints, mean: FloatArray) -> FloatArray:
    if sparse.issparse(points):
        # |x - m|^2 is |m|^2 plus what the stored entries change.
        norms = [_changes(block, mean) + mean @ mean for _, block in _blocks(points)]
    else:
        norms = [_row_norms_squared(block - mean) for _, block in _blocks(points)]
    return np.concatenate(norms)


def _row_norms_squared(rows: FloatArray | SparsePoints) -> FloatArray:
    if sparse.issparse(rows):
        return _changes(rows, np.zeros(rows.shape[1]))
    return np.asarray(np.einsum("if,if->i", rows, rows))


def _changes(rows: SparsePoints, mean: FloatArray) -> FloatArray:
    """Return the sum over the stored entries of x^2 - 2 x m, for each row."""
    values = rows.data * (rows.data - 2 * mean[rows.indices])
    changes = sparse.csr_array((values, rows.indices, rows.indptr), shape=rows.shape)
    return np.asarray(changes @ np.ones(len(mean)))


def _elements_per_row(points: Points | SparsePoints) -> int:
    n_stored = points.nnz if sparse.issparse(points) else points.size
    return max(1, int(n_stored) // int(points.shape[0]))


def _blocks(points: Points | SparsePoints) -> Iterator[tuple[slice, Any]]:
    """Yield some rows at a time in float64, dense or CSR as they come."""
    n_rows = max(1, _BLOCK_ELEMENTS // _elements_per_row(points))
    for start in range(0, points.shape[0], n_rows):
        rows = slice(start, start + n_rows)
        yield rows, points[rows].astype(np.float64, copy=False)
