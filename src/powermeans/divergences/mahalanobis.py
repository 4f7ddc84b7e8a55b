"""Squared distances in units of a covariance."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular

from powermeans.divergences.base import Phi
from powermeans.divergences.bregman import Bregman
from powermeans.divergences.chunks import as_float64
from powermeans.system.attributes import cached_property, remember
from powermeans.types import AnyMatrix, FloatArray


class _Factors:
    """What follows from a covariance C = L L^T, and is no field of its dataclass."""

    _root: FloatArray  # L
    _whitening: FloatArray  # L^-1
    _precision: FloatArray  # C^-1


@dataclass(frozen=True, eq=False, repr=False)
class Mahalanobis(_Factors, Bregman):
    """The divergence for correlated features, with a covariance C that all clusters share.

    It is (x - theta)^T C^-1 (x - theta): squared Euclidean distances after whitening by C.

    Parameters
    ----------
    covariance : array-like of shape (n_features, n_features), optional
        C, symmetric and positive definite. None, for which ``"mahalanobis"`` is another name, lets
        `powermeans.PowerKMeans` learn it.

    See Also
    --------
    SquaredEuclidean : Features in one unit, that are not correlated.

    Examples
    --------
    The first feature spreads ten times as far as the second, which separates the clusters:

    >>> import numpy as np
    >>> from powermeans import PowerKMeans
    >>> from powermeans.divergences import Mahalanobis
    >>> X = np.array([[-10.0, 0.0], [10.0, 0.0], [-10.0, 5.0], [10.0, 5.0]])
    >>> metric = Mahalanobis([[100.0, 0.0], [0.0, 1.0]])
    >>> model = PowerKMeans(2, divergence=metric, random_state=0).fit(X)
    >>> np.sort(model.cluster_centers_, axis=0)
    array([[0., 0.],
           [0., 5.]])
    """

    covariance: ArrayLike | None = None
    names = ("mahalanobis",)
    differences = "amounts that differ by column, or are correlated between columns"
    moves = Phi(square=1.0)  # of whitened points
    is_quadratic = True

    def __post_init__(self) -> None:
        if self.is_learned:
            return
        try:
            given = np.array(self.covariance, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"covariance={self.covariance!r}: pass a matrix of numbers") from None
        if given.ndim != 2 or given.shape[0] != given.shape[1] or given.size == 0:
            raise ValueError(f"covariance has the shape {given.shape}: pass a square matrix")
        if not np.isfinite(given).all():
            raise ValueError("covariance has entries that are not finite: pass finite numbers")
        given.setflags(write=False)
        object.__setattr__(self, "covariance", given)
        rounding = 1e-8 * np.abs(given).max(initial=0.0)
        if not np.allclose(given, given.T, rtol=0, atol=rounding):
            raise ValueError("covariance is not symmetric: pass (C + C.T) / 2")
        try:
            root = np.linalg.cholesky(given)
        except np.linalg.LinAlgError:
            least = float(np.linalg.eigvalsh(given)[0])
            raise ValueError(
                f"covariance has the eigenvalue {least:.3g} and is not positive definite: add a "
                "little to its diagonal, or leave out features that depend on others"
            ) from None
        whitening = solve_triangular(root, np.eye(len(root)), lower=True)
        object.__setattr__(self, "_root", root)
        object.__setattr__(self, "_whitening", whitening)
        object.__setattr__(self, "_precision", whitening.T @ whitening)

    @property
    def is_learned(self) -> bool:
        """Whether there is no covariance yet."""
        return self.covariance is None

    @property
    def needs_all_points(self) -> str | None:
        """Why parts of the points do not do for learning."""
        if not self.is_learned:
            return None
        return (
            "learns its covariance from all points at once (pass "
            "powermeans.divergences.Mahalanobis(covariance), which needs none of that)"
        )

    def __repr__(self) -> str:
        if self.is_learned:
            return "Mahalanobis()"
        n_features = len(self._whitening)
        digest = hashlib.sha256(np.asarray(self.covariance).tobytes()).hexdigest()[:8]
        return f"Mahalanobis({n_features} x {n_features}, {digest})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mahalanobis):
            return NotImplemented
        return np.array_equal(np.asarray(self.covariance), np.asarray(other.covariance))

    def __hash__(self) -> int:
        return hash(np.asarray(self.covariance).tobytes())

    def generator(self, points: FloatArray) -> FloatArray:
        """Return x^T C^-1 x."""
        return np.asarray(np.square(self.whitened(points)).sum(axis=1))

    def gradient(self, points: FloatArray) -> FloatArray:
        """Return 2 C^-1 x."""
        return np.asarray(2 * points @ self._precision)

    def between(self, points: FloatArray, centers: FloatArray) -> FloatArray:
        """Return the squared distances after whitening."""
        return self.generator(points - centers)

    def check_width(self, n_features: int) -> None:
        """Raise unless the covariance is of this many features."""
        n_known = len(self._whitening)
        if n_features != n_known:
            raise ValueError(
                f"covariance is of {n_known} features, but X has {n_features}: pass that of the "
                "features of X"
            )

    def planes(
        self, centers: FloatArray, tangent: FloatArray, origin: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return slopes and lifts from one product with C^-1."""
        slopes = self.gradient(centers - tangent)
        lifts = np.sum((centers - tangent) * slopes, axis=1) / 2
        return slopes, np.asarray(lifts + slopes @ (tangent - origin))

    def curvature(self, center: FloatArray) -> FloatArray:
        """Return twice the diagonal of C^-1."""
        return np.asarray(2 * np.diag(self._precision))

    @cached_property
    def condition(self) -> float:
        """Bound the condition number of C in units of the features' standard deviations."""
        scales = np.sqrt(np.diag(np.asarray(self.covariance)))
        products = scales[:, None] * scales
        correlations = np.asarray(self.covariance) / products
        inverse = self._precision * products
        return float(np.linalg.norm(correlations, np.inf) * np.linalg.norm(inverse, np.inf))

    def whitened(self, points: FloatArray) -> FloatArray:
        """Return L^-1 x with C = L L^T, among which distances are Euclidean."""
        return np.asarray(points @ self._whitening.T)

    def unwhitened(self, points: FloatArray) -> FloatArray:
        """Return L x, which undoes `whitened`."""
        return np.asarray(points @ self._root.T)

    def as_moved(self, points: AnyMatrix) -> FloatArray:
        """Return whitened points."""
        return np.ascontiguousarray(self.whitened(as_float64(points)))

    def from_moved(self, moved: FloatArray, before: FloatArray) -> FloatArray:
        """Return the centers before whitening."""
        return np.ascontiguousarray(self.unwhitened(moved))


class FewAxes(Mahalanobis):
    """Distances by the covariance D (V diag(v) V^T + least (1 - V V^T)) D with few columns V.

    D has the scales of the features on its diagonal. The covariance is formed when it is asked for.
    """

    _scales: FloatArray
    _vectors: FloatArray
    _ratios: FloatArray
    _least: float
    moves = Phi(square=1.0)
    is_learned = False

    def __init__(
        self, scales: FloatArray, vectors: FloatArray, values: FloatArray, least: float
    ) -> None:
        state = {"_scales": scales, "_vectors": vectors, "_ratios": values / least, "_least": least}
        remember(self, state)

    @cached_property
    def covariance(self) -> FloatArray:
        """Return the matrix."""
        along = np.sqrt(self._least * (self._ratios - 1))
        scaled = self._scales[:, None] * self._vectors * along
        covariance = np.asarray(scaled @ scaled.T)
        covariance.flat[:: len(covariance) + 1] += self._least * self._scales**2
        covariance.setflags(write=False)
        return covariance

    def __repr__(self) -> str:
        n_features, n_axes = self._vectors.shape
        return f"Mahalanobis({n_features} x {n_features}, along {n_axes} axes)"

    def gradient(self, points: FloatArray) -> FloatArray:
        """Return 2 C^-1 x."""
        return 2 * self._to_the_power(-1.0, points / self._scales) / self._scales

    def check_width(self, n_features: int) -> None:
        """Do nothing: the covariance was learned from the points."""

    def curvature(self, center: FloatArray) -> FloatArray:
        """Return twice the diagonal of C^-1."""
        along = np.square(self._vectors) @ (1 / self._ratios - 1)
        return np.asarray(2 * (1 + along) / self._least / self._scales**2)

    @property
    def condition(self) -> float:
        """Return the condition number of the matrix between the scales."""
        return float(self._ratios.max(initial=1.0))

    def whitened(self, points: FloatArray) -> FloatArray:
        """Return R^-1 D^-1 x with C = D R R D, among which distances are Euclidean."""
        return self._to_the_power(-0.5, points / self._scales)

    def unwhitened(self, points: FloatArray) -> FloatArray:
        """Return D R x."""
        return self._to_the_power(0.5, points) * self._scales

    def _to_the_power(self, exponent: float, points: FloatArray) -> FloatArray:
        """Return the product of points and a power of the matrix between the scales."""
        along = (points @ self._vectors) * (self._ratios**exponent - 1)
        return np.asarray((points + along @ self._vectors.T) * self._least**exponent)
