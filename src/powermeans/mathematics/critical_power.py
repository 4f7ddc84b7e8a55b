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

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from powermeans.divergences.chunks import dense_chunks
from powermeans.mathematics.principal_axes import principal_axes
from powermeans.mathematics.weighted_draws import draw_indices
from powermeans.system.attributes import cached_property
from powermeans.system.threads import blas_on_one_thread
from powermeans.types import AnyMatrix, FloatArray

_MOST_FEATURES_FORMED = 512
# All eigenvalues of a small matrix come at once; of a larger one iteration finds the last sooner.
_MOST_FEATURES_SOLVED = 48
# Products of more features are in float32, which misses lambda by about 1e-7 of itself.
_MOST_FEATURES_IN_DOUBLE = 32
# The mean is rounded, so a point that equals it may lie this far away, relative to all points.
_ROUNDING = 1e-13


def critical_power(
    points: AnyMatrix,
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
    rng, n_points = np.random.default_rng(random_state), points.shape[0]
    if sample_weight is None:
        shares = np.broadcast_to(1 / n_points, n_points)  # no memory for each point
    else:
        shares = np.asarray(sample_weight / np.max(sample_weight), dtype=np.float64)
        shares /= shares.sum()
    with blas_on_one_thread():  # which divides small products badly, and rounds by their number
        mean, mean_square = _moments(points, shares)
        n_sampled = n_rows_to_sample(n_points, points.shape[1], points.size)
        if n_sampled is not None:
            strata = strata_to_sample(n_sampled, rng)
            is_even = sample_weight is None
            drawn = (strata * n_points).astype(np.intp) if is_even else draw_indices(shares, strata)
            return critical_power_of_sample(points[drawn], mean, rng)
        if mean_square < 1e-200:  # squares would lose digits, and their inverses overflow
            points, mean = _in_unit(points, mean)
            _, mean_square = _moments(points, shares)
        eigenvalue, _ = _largest_eigenpair(_Directions(points, shares, mean, mean_square), rng)
    return 1 - 1 / (2 * eigenvalue) if eigenvalue > 0 else 0.5


def critical_temperature(points: AnyMatrix, sample_weight: FloatArray | None = None) -> float:
    """Return T_c, above which centers near the mean collapse to it; zero for equal points."""
    return 2 * float(principal_axes(points, sample_weight, 1).deviations[0]) ** 2


def n_rows_to_sample(n_points: int, n_features: int, n_stored: int) -> int | None:
    """Return the number of rows that is enough; None if all are not much more work.

    A sample of m rows moves lambda by about sqrt(d/m) of itself if no direction stands out.
    """
    enough = max(10_000, 100 * n_features)
    affordable = max(64, 2**22 // max(1, n_stored // n_points))
    n_sampled = min(enough, affordable)
    return None if n_points < 4 * n_sampled else n_sampled


def strata_to_sample(n_sampled: int, rng: np.random.Generator) -> FloatArray:
    """Draw one number in each of `n_sampled` equal shares of [0, 1), which draws a point."""
    return np.asarray((np.arange(n_sampled) + rng.random(n_sampled)) / n_sampled)


def critical_power_of_sample(drawn: AnyMatrix, mean: FloatArray, rng: np.random.Generator) -> float:
    """Estimate `critical_power` from points drawn in proportion to their weights.

    The mean is that of all points. The largest eigenvalue of half of the sample is too large, by
    about (1 + sqrt(d/m))^2 if nothing stands out; the mean square of the other half along its
    eigenvector is too small. In the spiked model of random matrices, where one eigenvalue stands
    out, one error is the inverse of the other, so the geometric mean is right.
    """
    places = np.arange(drawn.shape[0])
    shares = np.full(len(places), 1 / len(places))
    with blas_on_one_thread():
        _, mean_square = _moments(drawn, shares)
        if not 1e-200 <= mean_square <= 1e200:  # as above; a copy in float64 takes memory
            drawn, mean = _in_unit(drawn, mean)
            _, mean_square = _moments(drawn, shares)
        halves = [
            _Directions(drawn[half], np.full(len(half), 1 / len(half)), mean, mean_square)
            for half in (places[0::2], places[1::2])
        ]
        pairs = [_largest_eigenpair(half, rng) for half in halves]
        within = sum(eigenvalue for eigenvalue, _ in pairs)
        across = sum(
            float(np.sum(other.along(vector) ** 2))
            for other, (_, vector) in zip(reversed(halves), pairs, strict=True)
        )
    eigenvalue = math.sqrt(within * across) / 2
    return 1 - 1 / (2 * eigenvalue) if eigenvalue > 0 else 0.5


def _moments(points: AnyMatrix, shares: FloatArray) -> tuple[FloatArray, float]:
    """Return the weighted means of points and of their squared norms."""
    mean, mean_square = np.zeros(points.shape[1]), 0.0
    for rows, block in _blocks(points):
        mean += block.T @ shares[rows]
        mean_square += float(((block * block).T @ shares[rows]).sum())
    return mean, mean_square


def _blocks(points: AnyMatrix) -> Iterator[tuple[slice, Any]]:
    """Yield some rows at a time in float64, as arrays or CSR arrays."""
    rows_by_index = sparse.csr_array(points) if sparse.issparse(points) else points
    n_rows = max(1, 2**16 // max(1, points.size // points.shape[0]))
    for start in range(0, points.shape[0], n_rows):
        rows = slice(start, start + n_rows)
        yield rows, rows_by_index[rows].astype(np.float64, copy=False)


def _in_unit(points: AnyMatrix, mean: FloatArray) -> tuple[Any, FloatArray]:
    """Return points and their mean in a unit that leaves the squares of the points all digits."""
    in_unit: Any = points.astype(np.float64)
    entries = in_unit.data if sparse.issparse(points) else in_unit
    exponent = -math.frexp(np.abs(entries).max(initial=0.0))[1]
    np.ldexp(entries, exponent, out=entries)
    return in_unit, np.ldexp(mean, exponent)


def _largest_eigenpair(
    directions: _Directions, rng: np.random.Generator
) -> tuple[float, FloatArray]:
    """Return the largest eigenvalue of F and its eigenvector."""
    n_points, n_features = directions.points.shape
    if n_features > _MOST_FEATURES_FORMED:
        return _iterated_pair(directions, rng.standard_normal((min(n_points, n_features),)))
    matrix = directions.formed()
    if n_features <= _MOST_FEATURES_SOLVED:
        values, vectors = np.linalg.eigh(matrix)
        return float(values[-1]), vectors[:, -1]
    if not matrix.any():
        return 0.0, np.zeros(n_features)
    start = rng.standard_normal((n_features,))
    # A matrix that is formed costs little to iterate.
    return _iterated(lambda vector: matrix @ vector, start, tolerance=1e-6, steps_between_checks=4)


def _iterated_pair(directions: _Directions, start: FloatArray) -> tuple[float, FloatArray]:
    """Return the largest eigenvalue of F and its eigenvector without forming F.

    The error of an eigenvalue that stands out is the square of the tolerance; where many are alike,
    it is up to a percent.
    """
    n_points, n_features = directions.points.shape
    if not directions.factors.any():
        return 0.0, np.zeros(n_features)
    if n_features < n_points:
        return _iterated(directions.there_and_back, start, tolerance=2e-3, steps_between_checks=1)

    def back_and_there(vector: FloatArray) -> FloatArray:
        return directions.along(directions.back(vector))

    # U U^T has the same eigenvalue, and is smaller.
    value, vector = _iterated(back_and_there, start, tolerance=2e-3, steps_between_checks=1)
    across = directions.back(vector)
    return value, np.asarray(across / np.linalg.norm(across))


def _iterated(
    multiply: Callable[[FloatArray], FloatArray],
    start: FloatArray,
    *,
    tolerance: float,
    steps_between_checks: int,
) -> tuple[float, FloatArray]:
    """Find the largest eigenpair by Lanczos iteration, with all vectors kept orthogonal.

    It stops where the residual is at most the tolerance, relative to the eigenvalue.
    """
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
            tridiagonal = np.diag(diagonal[: step + 1]) + np.diag(beside[:step], -1)
            values, vectors = np.linalg.eigh(tridiagonal)
            value, vector = float(values[-1]), vectors[:, -1]
            if is_whole or abs(beside[step] * vector[-1]) <= tolerance * value:
                break
        basis[step + 1] = image / beside[step]
    return value, vector @ known


@dataclass(frozen=True)
class _Directions:
    """Multiply by the matrix U with the rows sqrt(share) r / |r|, so that F = U^T U.

    No method forms r for all points, which would lose sparsity and double the memory.
    """

    points: AnyMatrix
    shares: FloatArray
    mean: FloatArray  # of all points, (n_features,)
    mean_square: float  # of their lengths

    @cached_property
    def factors(self) -> FloatArray:
        """sqrt(share) / |r| of each point, zero for those at the mean."""
        # In sparse rows |r|^2 is a difference of squares, and misses by their rounding.
        rounding = _ROUNDING if sparse.issparse(self.points) else _ROUNDING**2
        norms = [_norms_squared(block, self.mean) for _, block in _blocks(self.points)]
        norms_squared = np.concatenate(norms)
        squares = np.zeros(len(norms_squared))
        is_apart = norms_squared > rounding * self.mean_square
        np.divide(self.shares, norms_squared, out=squares, where=is_apart)
        return np.sqrt(squares, out=squares)

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
        nearest, result = _ROUNDING**2 * self.mean_square, np.zeros((n_features, n_features))
        # A block, its residuals, their directions and a copy of these are in memory.
        for rows, block in dense_chunks(self.points, elements_per_point=4 * n_features):
            residuals = block - self.mean
            norms_squared = np.einsum("if,if->i", residuals, residuals)
            squares, is_apart = np.zeros(len(block)), norms_squared > nearest
            np.divide(self.shares[rows], norms_squared, out=squares, where=is_apart)
            directions = np.empty(residuals.shape, dtype=dtype)
            np.multiply(residuals, np.sqrt(squares)[:, None], out=directions, casting="same_kind")
            # BLAS rounds the product of a matrix with itself otherwise than with a copy.
            again = directions.copy() if dtype == np.float64 else directions
            result += directions.T @ again
        return result


def _norms_squared(block: FloatArray | sparse.csr_array, mean: FloatArray) -> FloatArray:
    """Return the squared length of each row less the mean."""
    if isinstance(block, np.ndarray):
        residuals = block - mean
        return np.asarray(np.einsum("if,if->i", residuals, residuals))
    # |x - m|^2 is |m|^2 plus what the stored entries change.
    values = block.data * (block.data - 2 * mean[block.indices])
    changes = sparse.csr_array((values, block.indices, block.indptr), shape=block.shape)
    return np.asarray(changes @ np.ones(len(mean)) + mean @ mean)
