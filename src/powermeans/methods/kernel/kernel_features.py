"""Kernels of points, and power k-means in the coordinates that they give."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, sparse
from sklearn.metrics.pairwise import pairwise_kernels

from powermeans.engine.anneal import Result
from powermeans.engine.fit import Fit
from powermeans.engine.seeds.choose import choose_seeds, order_by_place
from powermeans.errors import IndefiniteKernelWarning, warn_caller
from powermeans.methods.power_kmeans import PowerKMeans, searched
from powermeans.points.given import Given
from powermeans.points.needs import Needs
from powermeans.points.opening import open_rows
from powermeans.points.protocol import Points
from powermeans.system.threads import blas_on_one_thread
from powermeans.types import AnyMatrix, FloatArray, IndexArray, Labels, Matrix

# As a share of the largest eigenvalue.
ROUNDING = 100 * float(np.finfo(np.float64).eps)


def is_named(kernel: Any, name: str) -> bool:
    """Return whether a kernel has this name; a callable may define == in its own way."""
    return isinstance(kernel, str) and kernel == name


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel by its name or its function, and its parameters."""

    kernel: str | Callable[..., Any]
    gamma: float | None
    degree: float
    coef0: float
    n_threads: int | None

    def of(self, points: AnyMatrix, others: AnyMatrix) -> FloatArray:
        """Return K(x, z) of all pairs; raise unless they are finite."""
        with np.errstate(over="ignore", invalid="ignore"):
            if is_named(self.kernel, "rbf") and not (
                sparse.issparse(points) or sparse.issparse(others)
            ):
                values = self._gaussian(points, others)
            else:
                values = pairwise_kernels(
                    points, others, metric=self.kernel, filter_params=True, **self._arguments()
                )
        if not np.isfinite(values).all():
            raise ValueError(
                f"kernel={self.kernel!r} is not finite for all pairs of points: "
                f"{self.way_to_finite()}"
            )
        return np.asarray(values, dtype=np.float64)

    def diagonal(self, points: AnyMatrix) -> FloatArray:
        """Return K(x, x) of each point."""
        if is_named(self.kernel, "rbf"):
            return np.ones(points.shape[0])
        # K(x, x) is read off the diagonal of the kernel of a few points at a time.
        blocks = (block.astype(np.float64) for _, block in blocks_of(points, 16))
        return np.concatenate([np.diagonal(self.of(block, block)) for block in blocks])

    def way_to_finite(self) -> str:
        """Return what a user may do where values are not finite."""
        if is_named(self.kernel, "poly") and self.degree % 1:
            return (
                f"below zero there are no powers of degree={self.degree!r}, so pass a whole "
                "degree, or points and coef0 whose products are not negative"
            )
        return "scale X, for example by StandardScaler, or lower degree, gamma or coef0"

    def _gaussian(self, points: Matrix, others: Matrix) -> FloatArray:
        """Return the kernel from distances that do not cancel for points far from the origin."""
        rows = open_rows(points, n_threads=self.n_threads)
        sq_dist = rows.sq_distances(np.asarray(others, dtype=np.float64))
        return np.exp(-(self.gamma or 0.0) * sq_dist.astype(np.float64, copy=False))

    def _arguments(self) -> dict[str, Any]:
        if callable(self.kernel):
            return {}
        named = {"degree": self.degree, "coef0": self.coef0}
        return named if self.gamma is None else {"gamma": self.gamma, **named}


def choose_landmarks(
    rows: Points, n_landmarks: int | None, rng: np.random.RandomState
) -> tuple[IndexArray, bool]:
    """Return landmarks in an order independent of the rows, and whether they are all points."""
    distinct = _distinct_points(rows, rng)
    if n_landmarks is None:
        n_landmarks = len(distinct) if len(distinct) <= 2000 else 500
    if len(distinct) <= n_landmarks:
        return distinct, True
    _, chosen = choose_seeds(rows, n_landmarks, rng)
    _, first = np.unique(chosen, return_index=True)
    return chosen[np.sort(first)], False


def check_gram(gram: Matrix) -> None:
    """Raise unless the matrix is square and symmetric."""
    if gram.shape[0] != gram.shape[1]:
        raise ValueError(
            f"X has the shape {gram.shape}, but kernel='precomputed' takes a square matrix: pass "
            "K(X, X), that of all pairs of points, or choose a kernel of the points"
        )
    asymmetry = np.abs(gram - gram.T)
    allowed = np.sqrt(np.finfo(gram.dtype).eps) * np.abs(gram).max()
    if asymmetry.max() > allowed:
        i, j = np.unravel_index(np.argmax(asymmetry), gram.shape)
        raise ValueError(
            f"X is not a kernel, since it is not symmetric: X[{i}, {j}] is {gram[i, j]} and "
            f"X[{j}, {i}] is {gram[j, i]}. Pass (X + X.T) / 2 if that is what you mean"
        )


def _distinct_points(rows: Points, rng: np.random.RandomState) -> IndexArray:
    """Return the first of equal points with a weight, ordered by where they lie."""
    order, key = order_by_place(rows, rng)
    has_weight = rows.sample_weight(order) > 0
    order, key = order[has_weight], key[has_weight]
    return order[np.diff(key, prepend=-1.0) > 0]


def embedding_of(gram: FloatArray) -> tuple[FloatArray, float]:
    """Return U / sqrt(l) for the positive eigenvalues l of a kernel matrix, and the largest l."""
    # The rows of the matrix times this, U sqrt(l), have the matrix as inner products.
    values, vectors = linalg.eigh(gram, driver="evd", overwrite_a=True)
    largest = max(float(values[-1]), 0.0)
    if values[0] < -1e-8 * max(largest, -values[0]):  # more than rounding
        warn_caller(
            f"the kernel is not positive semi-definite: its eigenvalues go from {values[0]:.3g} to "
            f"{values[-1]:.3g}. Those below zero are taken as zero, so distances are not quite "
            "those of this kernel; choose other parameters or another kernel to avoid it",
            IndefiniteKernelWarning,
        )
    is_beyond_rounding = values > ROUNDING * largest
    if not is_beyond_rounding.any():
        return np.zeros((len(gram), 1)), largest
    return vectors[:, is_beyond_rounding] / np.sqrt(values[is_beyond_rounding]), largest


def blocks_of(points: AnyMatrix, n_rows: int) -> Iterator[tuple[slice, AnyMatrix]]:
    """Yield slices of some rows at a time, and these rows."""
    for start in range(0, points.shape[0], max(1, n_rows)):
        rows = slice(start, start + n_rows)
        yield rows, points[rows]


class LeadingPowerKMeans(PowerKMeans):
    """Search from clusters of the leading coordinates too, which are the last columns."""

    def _needs(self) -> Needs:
        # Coordinates by eigenvectors have the scales of the eigenvalues.
        return super()._needs().of_a_fit(warns_of_scales=False)

    def _fit(self, points: Points, fit: Fit) -> Result:
        fit.seeds.after_first = self._centers_of_leading(points.given, fit)
        return super()._fit(points, fit)

    def _centers_of_leading(self, given: Given, fit: Fit) -> Iterator[FloatArray]:
        """Yield centers of the clusters that a search finds in the leading coordinates."""
        k, points, weights = self.n_clusters, np.asarray(given.array), given.weights
        for coordinates in _leading(points, weights, k):
            model = searched(
                coordinates,
                weights,
                k,
                effort="fast",
                rng=fit.rng,
                n_threads=self.n_threads,
                seconds_left=fit.seconds_left(),
            )
            yield _means(points, weights, model.labels_, k)


def _leading(points: Matrix, weights: FloatArray | None, k: int) -> Iterator[FloatArray]:
    """Yield few coordinates, in which clusters may differ more than in all of them."""
    wide = points.astype(np.float64)
    yield wide[:, -k:]
    counts = np.ones(len(wide)) if weights is None else weights
    degrees = wide @ (counts @ wide)
    # Those of normalized cuts (Ng, Jordan & Weiss 2001), if similarities are positive in the mean.
    if (least := degrees[counts > 0].min()) > 0:
        normal = wide / np.sqrt(np.maximum(degrees, least))[:, None]
        yield _on_sphere(normal @ _main_axes(normal.T @ (counts[:, None] * normal), k))
    white = wide[:, -2 * k :]
    centered = white - np.average(white, axis=0, weights=counts)
    spreads = np.sqrt(np.average(np.square(centered), axis=0, weights=counts))
    yield white / np.maximum(spreads, np.finfo(np.float64).tiny)
    yield wide[:, -1:]


def _main_axes(gram: FloatArray, n_axes: int) -> FloatArray:
    """Return the eigenvectors of the largest eigenvalues, as columns."""
    size = len(gram)
    with blas_on_one_thread():
        _, axes = linalg.eigh(gram, subset_by_index=(max(0, size - n_axes), size - 1))
    return np.asarray(axes)


def _on_sphere(points: FloatArray) -> FloatArray:
    norms = np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray(points / np.maximum(norms, np.finfo(np.float64).tiny))


def _means(points: Matrix, weights: FloatArray | None, labels: Labels, k: int) -> FloatArray:
    """Return the weighted mean of each cluster, that of all points if it has no weight."""
    counts = np.ones(len(points)) if weights is None else weights
    means = np.tile(np.average(points, axis=0, weights=counts), (k, 1)).astype(np.float64)
    for cluster in np.unique(labels[counts > 0]):
        members = labels == cluster
        means[cluster] = np.average(points[members], axis=0, weights=counts[members])
    return means
