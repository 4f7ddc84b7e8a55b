"""The directions along which points vary most, and by how much."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from powermeans.divergences.chunks import dense_chunks
from powermeans.system.threads import blas_on_one_thread
from powermeans.types import AnyMatrix, FloatArray

# Up to this many features the covariance is formed; beyond, products with it are taken.
_MOST_FEATURES_FORMED = 1024
# Points with more features are multiplied with each other, if a copy of all is no larger.
_MOST_VALUES_COPIED = 2**25

Blocks = Callable[[], Iterator[tuple[FloatArray, FloatArray]]]
"""Yields some points at a time, dense, with their shares of the weight."""


@dataclass(frozen=True, slots=True)
class PrincipalAxes:
    """Directions of length one, the widest first, each with its largest coordinate positive."""

    mean: FloatArray  # of the points, (n_features,)
    axes: FloatArray  # (n_axes, n_features)
    deviations: FloatArray  # standard deviations along each, (n_axes,)
    total_deviation: float  # root of the mean squared distance from the mean

    def scores(self, points: FloatArray) -> FloatArray:
        """Return the coordinates of points along the axes, (n_points, n_axes)."""
        return np.ascontiguousarray((points - self.mean) @ self.axes.T)


def principal_axes(
    points: AnyMatrix, sample_weight: FloatArray | None, n_axes: int
) -> PrincipalAxes:
    """Find the mean and the leading eigenvectors of the weighted covariance of finite points.

    Other arrays than the points hold at most a block of them, or n_features squared. There are at
    most n_features axes.
    """
    weights = np.ones(points.shape[0]) if sample_weight is None else sample_weight
    shares = weights / weights.max()
    shares = shares / shares.sum()
    entries = points.data if sparse.issparse(points) else points
    largest = max(float(entries.max(initial=0.0)), -float(entries.min(initial=0.0)))
    exponent = math.frexp(largest)[1]  # in this unit squares stay in range

    def blocks() -> Iterator[tuple[FloatArray, FloatArray]]:
        # Its scaled copy, residuals and their squares are as large as a block.
        for rows, block in dense_chunks(points, elements_per_point=4 * points.shape[1]):
            yield np.ldexp(block, -exponent), shares[rows]

    with blas_on_one_thread():
        mean = np.zeros(points.shape[1])
        for block, of_block in blocks():
            mean += of_block @ block
        total = sum(float(of @ np.square(block - mean).sum(axis=1)) for block, of in blocks())
        n_points, n_features = points.shape
        is_few = n_points < n_features and n_points * n_features <= _MOST_VALUES_COPIED
        leading = _leading_of_few if is_few else _leading
        variances, axes = leading(blocks, mean, n_axes)
    unit = 2.0**exponent
    return PrincipalAxes(
        mean=mean * unit,
        axes=axes,
        deviations=np.sqrt(np.maximum(variances, 0.0)) * unit,
        total_deviation=math.sqrt(total) * unit,
    )


def without_long_points(points: FloatArray, sample_weight: FloatArray) -> FloatArray:
    """Return points less their mean, none of them longer than twice the median length.

    In many features the longest points of heavy tails tell their noise and not their place.
    """
    centered = points - np.average(points, axis=0, weights=sample_weight)
    lengths = np.linalg.norm(centered, axis=1)
    most = 2 * np.median(lengths)
    return np.asarray(centered * np.minimum(1.0, most / np.maximum(lengths, most or 1.0))[:, None])


def axes_above_chance(
    points: FloatArray, sample_weight: FloatArray, most_axes: int
) -> PrincipalAxes:
    """Return the axes along which points vary more than noise would by chance, or one.

    Deflated parallel analysis (Dobriban & Owen 2019). The most that noise varies along an axis is
    the edge of the law of Marchenko & Pastur, with the mean variance that the axes found leave.
    """
    found = principal_axes(points, sample_weight, min(most_axes, *points.shape))
    variances, n_features = found.deviations**2, points.shape[1]
    stretch = (1.0 + math.sqrt(n_features / float(sample_weight.sum()))) ** 2
    n_axes, n_before = 0, -1
    while n_axes > n_before:
        left = found.total_deviation**2 - float(variances[:n_axes].sum())
        by_chance = stretch * left / max(1, n_features - n_axes)
        n_before, n_axes = n_axes, n_axes + int((variances[n_axes:] > by_chance).sum())
    some = slice(max(1, n_axes))
    return replace(found, axes=found.axes[some], deviations=found.deviations[some])


def _covariance(blocks: Blocks, mean: FloatArray) -> FloatArray:
    covariance = np.zeros((len(mean), len(mean)))
    for block, shares in blocks():
        residuals = np.sqrt(shares)[:, None] * (block - mean)
        covariance += residuals.T @ residuals
    return covariance


def _covariance_times(blocks: Blocks, mean: FloatArray, vector: FloatArray) -> FloatArray:
    product = np.zeros(len(mean))
    for block, shares in blocks():
        residuals = block - mean
        product += residuals.T @ (shares * (residuals @ vector))
    return product


def _leading(blocks: Blocks, mean: FloatArray, n_axes: int) -> tuple[FloatArray, FloatArray]:
    """Return the largest eigenvalues of the covariance, falling, and eigenvectors as rows."""
    n_features = len(mean)
    if n_axes == 0:
        return np.empty(0), np.empty((0, n_features))
    if n_features <= _MOST_FEATURES_FORMED or n_axes >= n_features:
        among = [n_features - n_axes, n_features - 1]
        values, vectors = linalg.eigh(_covariance(blocks, mean), subset_by_index=among)
    else:
        multiply = LinearOperator(
            (n_features, n_features),
            matvec=lambda vector: _covariance_times(blocks, mean, np.ravel(vector)),
            dtype=np.float64,
        )
        # Without a start of our own ARPACK draws one, and results differ from call to call.
        start = np.random.default_rng(0).standard_normal(n_features)
        values, vectors = eigsh(multiply, k=n_axes, which="LA", v0=start)
    order = np.argsort(-values, kind="stable")
    return values[order], _with_signs(vectors.T[order])


def _leading_of_few(blocks: Blocks, mean: FloatArray, n_axes: int) -> tuple[FloatArray, FloatArray]:
    """Return the same from the products of the points, fewer than features, with each other."""
    residuals = np.vstack([np.sqrt(shares)[:, None] * (block - mean) for block, shares in blocks()])
    values, vectors = linalg.eigh(residuals @ residuals.T)
    order = np.argsort(-values, kind="stable")[:n_axes]
    # Where an eigenvalue is zero, any direction across the others will do.
    axes, _ = np.linalg.qr(residuals.T @ vectors[:, order])
    return values[order], _with_signs(axes.T)


def _with_signs(axes: FloatArray) -> FloatArray:
    """Turn each axis so that its largest coordinate is positive, since solvers choose any sign."""
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)
    return np.where(largest < 0, -axes, axes)
