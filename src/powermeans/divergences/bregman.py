"""Bregman divergences: the center that minimises their weighted sum is always the weighted mean.

With a convex function phi, D(x, theta) = phi(x) - phi(theta) - <grad phi(theta), x - theta>
(Banerjee et al. 2005). Each is affine in a point x but for what depends on the point alone, so that
one compiled sweep serves them all: with any place mu that both are told from,

    D(x, theta) = D(x, mu) + D(mu, theta) - <x - mu, grad phi(theta) - grad phi(mu)>.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from powermeans.divergences.chunks import dense_chunks, in_chunks
from powermeans.types import FloatArray, Points, SparsePoints

# A center on the border of the domain is taken inside by this share of its size.
_FROM_BORDER = 1e-30
_STEP_OF_CURVATURE = 1e-4
_FEATURES_AT_ONCE = 64


class Bregman(abc.ABC):
    """A divergence given by its convex function. A new one says `generator` and `gradient`.

    Arrays of points and centers have one of them in each row. A divergence whose features add up is
    shorter as a `Separable`.

    See Also
    --------
    Separable : Where features add up.
    Generated : From two functions, without a class.

    Examples
    --------
    Squared Euclidean distances, as a class:

    >>> import numpy as np
    >>> from powermeans import PowerKMeans
    >>> from powermeans.divergences import Bregman
    >>> class Squared(Bregman):
    ...     def generator(self, points):
    ...         return (points**2).sum(axis=1)
    ...     def gradient(self, points):
    ...         return 2 * points
    >>> X = np.array([[0.0], [2.0], [10.0], [12.0]])
    >>> PowerKMeans(2, divergence=Squared(), random_state=0).fit(X).inertia_
    4.0
    """

    wanted: ClassVar[str] = "finite numbers"
    """What entries must be."""

    @abc.abstractmethod
    def generator(self, points: FloatArray) -> FloatArray:
        """The convex function phi of each point, (n_points,)."""

    @abc.abstractmethod
    def gradient(self, points: FloatArray) -> FloatArray:
        """Its gradient at each point, of the shape of the points."""

    def between(self, points: FloatArray, centers: FloatArray) -> FloatArray:
        """D(x, theta) of each point and its center, row by row; one row stands for all of them."""
        along = np.sum(self.gradient(centers) * (points - centers), axis=1)
        return np.asarray(np.maximum(self.generator(points) - self.generator(centers) - along, 0.0))

    def check_width(self, n_features: int) -> None:
        """Raise where the divergence is of another number of features."""
        return

    def is_fault(self, values: FloatArray) -> FloatArray:
        """Which entries lie outside of the domain, of the shape of the values."""
        return np.zeros(values.shape, dtype=bool)

    def inside(self, centers: FloatArray) -> FloatArray:
        """The centers, each a little off the border of the domain where it lies on or beyond it."""
        return centers

    def pairwise(self, points: Points | SparsePoints, centers: FloatArray) -> FloatArray:
        """Divergence of every point from every center, (n_points, n_centers), by the definition."""
        return np.concatenate([distances for _, distances in self.in_chunks(points, centers)])

    def in_chunks(
        self, points: Points | SparsePoints, centers: FloatArray
    ) -> Iterator[tuple[slice, FloatArray]]:
        """The rows of `pairwise`, some points at a time, each with the slice of points."""
        inner = self.inside(np.asarray(centers, dtype=np.float64))

        def distances(chunk: FloatArray, _: FloatArray) -> FloatArray:
            return np.stack([self.between(chunk, center[None, :]) for center in inner], axis=1)

        return in_chunks(points, inner, distances)

    def heights(self, points: Points | SparsePoints, tangent: FloatArray) -> FloatArray:
        """D(x, tangent) of each point: what of its divergences does not depend on the center."""
        chunks = [self.between(chunk, tangent[None, :]) for _, chunk in dense_chunks(points)]
        return np.ascontiguousarray(np.concatenate(chunks), dtype=np.float64)

    def planes(
        self, centers: FloatArray, tangent: FloatArray, origin: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Slopes and lifts: D(x, theta) = height(x) + lift - <x - origin, slope>.

        Parameters
        ----------
        centers : (n_centers, n_features)
        tangent, origin : (n_features,)
            The place of the heights, and where points are told from.

        Returns
        -------
        slopes : (n_centers, n_features)
        lifts : (n_centers,)
        """
        inner = self.inside(centers)
        slopes = self.gradient(inner) - self.gradient(tangent[None, :])
        return slopes, self.between(tangent[None, :], inner) + slopes @ (tangent - origin)

    def curvature(self, center: FloatArray) -> FloatArray:
        """The second derivative of phi along each feature, (n_features,)."""
        steps = _STEP_OF_CURVATURE * np.where(center == 0, 1.0, np.abs(center))
        result = np.empty(len(center))
        for first in range(0, len(center), _FEATURES_AT_ONCE):
            features = np.arange(first, min(first + _FEATURES_AT_ONCE, len(center)))
            offsets = np.zeros((len(features), len(center)))
            offsets[np.arange(len(features)), features] = steps[features]
            rise = self.gradient(self.inside(center + offsets)) - self.gradient(center[None, :])
            result[features] = rise[np.arange(len(features)), features] / steps[features]
        return result


class Separable(Bregman):
    """A Bregman divergence that adds up over the features. A new one says `deviance` and `slope`.

    Both work on arrays, entry by entry, with centers that broadcast against points.

    See Also
    --------
    Bregman : Where features do not add up.
    Poisson : One of them.

    Examples
    --------
    That of phi(x) = exp(x), for numbers of any sign of which large ones matter more:

    >>> import numpy as np
    >>> from powermeans import PowerKMeans
    >>> from powermeans.divergences import Separable
    >>> class Exponential(Separable):
    ...     def deviance(self, points, centers):
    ...         return np.exp(points) - np.exp(centers) * (1 + points - centers)
    ...     def slope(self, centers):
    ...         return np.exp(centers)
    >>> X = np.array([[-1.0], [1.0], [4.0], [4.2]])
    >>> model = PowerKMeans(2, divergence=Exponential(), random_state=0).fit(X)
    >>> np.sort(model.cluster_centers_, axis=0)
    array([[0. ],
           [4.1]])
    """

    lowest: float | FloatArray = -math.inf
    highest: float | FloatArray = math.inf
    excludes_lowest: ClassVar[bool] = False

    @abc.abstractmethod
    def deviance(self, points: FloatArray, centers: FloatArray) -> FloatArray:
        """What each feature adds to D(x, theta)."""

    @abc.abstractmethod
    def slope(self, centers: FloatArray) -> FloatArray:
        """The derivative of phi."""

    def generator(self, points: FloatArray) -> FloatArray:
        """D(x, 1/2), which is phi but for an affine function."""
        return self.between(points, self.inside(np.full((1, points.shape[1]), 0.5)))

    def gradient(self, points: FloatArray) -> FloatArray:
        """The derivatives."""
        return self.slope(points)

    def between(self, points: FloatArray, centers: FloatArray) -> FloatArray:
        """The sums of the deviances."""
        return np.asarray(self.deviance(points, centers).sum(axis=1))

    def is_fault(self, values: FloatArray) -> FloatArray:
        """Which entries lie beyond the bounds."""
        is_low = values <= self.lowest if self.excludes_lowest else values < self.lowest
        return np.asarray(is_low | (values > self.highest))

    def inside(self, centers: FloatArray) -> FloatArray:
        """Centers off the bounds by a hair, in proportion to the other entries of the center."""
        inner = centers
        if np.any(np.isfinite(self.lowest)):
            sizes = np.mean(np.abs(centers - self.lowest), axis=-1, keepdims=True)
            hair = _FROM_BORDER * np.where(sizes > 0, sizes, 1.0)
            inner = np.where(centers <= self.lowest, self.lowest + hair, inner)
        if np.any(np.isfinite(self.highest)):
            # Unlike zero, other bounds have a last number before them.
            before = np.nextafter(np.asarray(self.highest, dtype=np.float64), self.lowest)
            inner = np.where(centers >= self.highest, before, inner)
        return inner

    def curvature(self, center: FloatArray) -> FloatArray:
        """The derivative of the slope."""
        step = _STEP_OF_CURVATURE * np.where(center == 0, 1.0, np.abs(center))
        above = self.inside((center + step)[None, :])[0]
        return np.asarray((self.slope(above) - self.slope(center)) / step)


@dataclass(frozen=True)
class Generated(Bregman):
    """The Bregman divergence of any convex function.

    Parameters
    ----------
    phi : callable
        From points, (n_points, n_features), to the convex function of each, (n_points,).
    grad_phi : callable
        From points to its gradients, of the same shape.

    See Also
    --------
    Separable : Adds up over the features, and checks its domain.
    Mahalanobis : Squared distances in units of a covariance.

    Examples
    --------
    Squared Euclidean distances, the long way round:

    >>> import numpy as np
    >>> from powermeans import PowerKMeans
    >>> from powermeans.divergences import Generated
    >>> squared = Generated(lambda x: (x * x).sum(axis=1), lambda x: 2 * x)
    >>> X = np.array([[0.0], [2.0], [10.0], [12.0]])
    >>> model = PowerKMeans(2, divergence=squared, random_state=0).fit(X)
    >>> np.sort(model.cluster_centers_, axis=0)
    array([[ 1.],
           [11.]])
    """

    phi: Any
    grad_phi: Any

    def __post_init__(self) -> None:
        for name in ("phi", "grad_phi"):
            if not callable(function := getattr(self, name)):
                raise ValueError(f"{name}={function!r} is not callable: pass a function of points")

    def generator(self, points: FloatArray) -> FloatArray:
        """`phi`, which must be finite."""
        return self._checked(self.phi(_protected(points)), points.shape[:1], "phi")

    def gradient(self, points: FloatArray) -> FloatArray:
        """`grad_phi`, which must be finite."""
        return self._checked(self.grad_phi(_protected(points)), points.shape, "grad_phi")

    @staticmethod
    def _checked(values: Any, shape: tuple[int, ...], name: str) -> FloatArray:
        given = np.asarray(values)
        if given.dtype.kind not in "biuf":
            raise ValueError(f"{name} gave the dtype {given.dtype}: return real numbers")
        checked = given.astype(np.float64, copy=False)
        if checked.shape != shape:
            raise ValueError(
                f"{name} gave the shape {checked.shape} for points of which {shape} was wanted: "
                "it takes points of shape (n_points, n_features), phi gives one number for each "
                "and grad_phi one for each entry"
            )
        if not np.isfinite(checked).all():
            raise ValueError(
                f"{name} is not finite everywhere on the points or their means: pass points of "
                "its domain, or define it where it is wanted"
            )
        return checked


def _protected(points: FloatArray) -> FloatArray:
    """The points, which a function of the user's may read."""
    view = points.view()
    view.flags.writeable = False
    return view


def first_fault(divergence: Bregman, points: Points | SparsePoints) -> tuple[int, int] | None:
    """Row and column of the first entry outside of the domain, or None."""
    for rows, chunk in dense_chunks(points):
        is_fault = divergence.is_fault(chunk)
        if is_fault.any():
            row, column = divmod(int(np.argmax(is_fault)), chunk.shape[1])
            return rows.start + row, column
    return None
