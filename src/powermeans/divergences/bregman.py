"""Bregman divergences: the center that minimises their weighted sum is always the weighted mean.

With a convex function phi, D(x, theta) = phi(x) - phi(theta) - <grad phi(theta), x - theta>
(Banerjee et al. 2005). Up to a term that depends only on the point x, each is affine in x, so that
one compiled sweep serves them all: with any origin mu,

    D(x, theta) = D(x, mu) + D(mu, theta) - <x - mu, grad phi(theta) - grad phi(mu)>.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from powermeans.divergences.base import Divergence
from powermeans.divergences.chunks import dense_chunks, in_chunks
from powermeans.errors import EntryError
from powermeans.types import FloatArray, Points, SparsePoints

# Centers on the border of the domain move inside by this share of their size.
_FROM_BORDER = 1e-30
_LEAST_NORMAL = float(np.finfo(np.float64).tiny)
_STEP_OF_CURVATURE = 1e-4
_FEATURES_AT_ONCE = 64


class Bregman(Divergence):
    """A divergence given by its convex function: a subclass defines `generator` and `gradient`.

    Arrays of points and centers have one of them in each row. A divergence that is a sum over the
    features is shorter as a `Separable`.

    See Also
    --------
    Separable : A sum over the features.
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

    is_quadratic: ClassVar[bool] = False
    """Whether phi is, so that distances depend on differences of points only."""
    loses_small_centers: ClassVar[bool] = False
    """Whether centers much smaller than others matter, which sums about one origin round off."""

    @property
    def condition(self) -> float:
        """How many times the terms of a distance may exceed what is left of them."""
        return 1.0

    @abc.abstractmethod
    def generator(self, points: FloatArray) -> FloatArray:
        """Return the convex function phi of each point, (n_points,)."""

    @abc.abstractmethod
    def gradient(self, points: FloatArray) -> FloatArray:
        """Return its gradient at each point, of the shape of the points."""

    def gradient_from(self, tangent: FloatArray, centers: FloatArray) -> FloatArray:
        """Return the gradient at each center less that at the tangent point."""
        return self.gradient(centers) - self.gradient(tangent[None, :])

    def between(self, points: FloatArray, centers: FloatArray) -> FloatArray:
        """Return D(x, theta) of each point and its center, row by row; one row may serve all."""
        along = np.sum(self.gradient(centers) * (points - centers), axis=1)
        return np.asarray(np.maximum(self.generator(points) - self.generator(centers) - along, 0.0))

    def check_width(self, n_features: int) -> None:
        """Raise if the divergence is for another number of features."""
        return

    def is_fault(self, values: FloatArray) -> FloatArray:
        """Return for each entry whether it is outside the domain."""
        return np.zeros(values.shape, dtype=bool)

    def check_domain(self, points: Points | SparsePoints, *, name: str, first_row: int = 0) -> None:
        """Raise on the first entry outside the domain."""
        self.check_width(points.shape[1])
        if (fault := self._first_fault(points)) is None:
            return
        row, column = fault
        way_out = f"{type(self).__name__} is for {self.wanted}"
        raise EntryError(name, first_row + row, column, points[row, column], way_out)

    def _first_fault(self, points: Points | SparsePoints) -> tuple[int, int] | None:
        if sparse.issparse(points) and self._takes_entries_of(points):
            return None
        for rows, chunk in dense_chunks(points):
            is_fault = self.is_fault(chunk)
            if is_fault.any():
                row, column = divmod(int(np.argmax(is_fault)), chunk.shape[1])
                return rows.start + row, column
        return None

    def _takes_entries_of(self, points: SparsePoints) -> bool:
        """Return whether zeros and entries are known to be inside, whatever their features."""
        return False

    def inside(self, centers: FloatArray) -> FloatArray:
        """Return the centers, moved inside the domain if they are on its border or beyond."""
        return centers

    def in_chunks(
        self, points: Points | SparsePoints, centers: FloatArray
    ) -> Iterator[tuple[slice, FloatArray]]:
        """Yield the rows of `pairwise`, some points at a time, each with its slice of points."""
        inner = self.inside(np.asarray(centers, dtype=np.float64))

        def distances(chunk: FloatArray, _: FloatArray) -> FloatArray:
            return np.stack([self.between(chunk, center[None, :]) for center in inner], axis=1)

        return in_chunks(points, inner, distances)

    def heights(self, points: Points | SparsePoints, tangent: FloatArray) -> FloatArray:
        """Return D(x, tangent) of each point: the part of D that no center changes."""
        chunks = [self.between(chunk, tangent[None, :]) for _, chunk in dense_chunks(points)]
        return np.ascontiguousarray(np.concatenate(chunks), dtype=np.float64)

    def planes(
        self, centers: FloatArray, tangent: FloatArray, origin: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return slopes and lifts: D(x, theta) = height(x) + lift - <x - origin, slope>."""
        inner = self.inside(centers)
        slopes = self.gradient_from(tangent, inner)
        return slopes, self.between(tangent[None, :], inner) + slopes @ (tangent - origin)

    def curvature(self, center: FloatArray) -> FloatArray:
        """Return the second derivative of phi along each feature, (n_features,)."""
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
    """A divergence that is a sum over the features: a subclass defines `deviance` and `slope`.

    Both work on arrays, entry by entry, with centers that broadcast against points. A domain that
    is bounded is given by `lowest`, `highest` and `excludes_lowest`, and in words by `wanted`.

    See Also
    --------
    Bregman : Any other convex function.
    Poisson : One of them.

    Examples
    --------
    The divergence of phi(x) = exp(x), to which large numbers matter more:

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
        """Return what each feature adds to D(x, theta)."""

    @abc.abstractmethod
    def slope(self, centers: FloatArray) -> FloatArray:
        """Return the derivative of phi."""

    def slope_from(self, tangent: FloatArray, centers: FloatArray) -> FloatArray:
        """Return the slope at the centers less that at the tangent point.

        Override it where the two are nearly equal and their difference has few digits.
        """
        return self.slope(centers) - self.slope(tangent)

    def gradient_from(self, tangent: FloatArray, centers: FloatArray) -> FloatArray:
        """Return the differences of the slopes."""
        return self.slope_from(tangent[None, :], centers)

    def generator(self, points: FloatArray) -> FloatArray:
        """Return D(x, 1/2), which is phi up to an affine function."""
        return self.between(points, self.inside(np.full((1, points.shape[1]), 0.5)))

    def gradient(self, points: FloatArray) -> FloatArray:
        """Return the derivatives."""
        return self.slope(points)

    def between(self, points: FloatArray, centers: FloatArray) -> FloatArray:
        """Add up the deviances."""
        return np.asarray(self.deviance(points, centers).sum(axis=1))

    def is_fault(self, values: FloatArray) -> FloatArray:
        """Tell which entries lie beyond the bounds."""
        is_low = values <= self.lowest if self.excludes_lowest else values < self.lowest
        return np.asarray(is_low | (values > self.highest))

    def _takes_entries_of(self, points: SparsePoints) -> bool:
        if type(self).is_fault is not Separable.is_fault:
            return False
        if np.ndim(self.lowest) or np.ndim(self.highest):
            return False
        return not self.is_fault(np.append(points.data, 0.0)).any()

    def inside(self, centers: FloatArray) -> FloatArray:
        """Move centers off the bounds by a tiny share of their other entries."""
        is_low, is_high = centers <= self.lowest, centers >= self.highest
        if not (is_low.any() or is_high.any()):
            return centers
        lowest, highest = (np.asarray(b, dtype=np.float64) for b in (self.lowest, self.highest))
        above_bound = np.abs(centers - np.where(np.isfinite(lowest), lowest, 0.0))
        sizes = np.mean(above_bound, axis=-1, keepdims=True)
        shift = np.maximum(_FROM_BORDER * np.where(sizes > 0, sizes, 1.0), _LEAST_NORMAL)
        # A bound other than zero swallows the shift, but has a nearest number beside it.
        above = np.maximum(lowest + shift, np.nextafter(lowest, highest))
        below = np.minimum(highest - shift, np.nextafter(highest, lowest))
        return np.where(is_low, above, np.where(is_high, below, centers))

    def within(self, centers: FloatArray) -> FloatArray:
        """Move centers beyond a bound onto it, or beside it where it is not of the domain."""
        inside = self.inside(centers) if self.excludes_lowest else centers
        return np.clip(np.where(self.is_fault(centers), inside, centers), self.lowest, self.highest)

    def curvature(self, center: FloatArray) -> FloatArray:
        """Return the derivative of the slope, from a step that stays off the upper bound."""
        below_bound = self.highest - center
        is_high = below_bound < np.abs(center)
        size = np.where(is_high, below_bound, np.where(center == 0, 1.0, np.abs(center)))
        step = np.maximum(_STEP_OF_CURVATURE * size, np.spacing(np.abs(center)))
        signed = np.where(is_high, -step, step)
        beside = self.inside((center + signed)[None, :])[0]
        return np.asarray(self.slope_from(center, beside) / signed)


@dataclass(frozen=True)
class Generated(Bregman):
    """The Bregman divergence of any convex function, given as two functions.

    Parameters
    ----------
    phi : callable
        Takes points of shape (n_points, n_features), and returns the convex function of each.
    grad_phi : callable
        Takes points, and returns the gradients, of the same shape.

    See Also
    --------
    Separable : A sum over the features, with a domain that is checked.
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
        """Return `phi`, which must be finite."""
        return self._checked(self.phi(_protected(points)), points.shape[:1], "phi")

    def gradient(self, points: FloatArray) -> FloatArray:
        """Return `grad_phi`, which must be finite."""
        return self._checked(self.grad_phi(_protected(points)), points.shape, "grad_phi")

    @staticmethod
    def _checked(values: Any, shape: tuple[int, ...], name: str) -> FloatArray:
        given = np.asarray(values)
        if given.dtype.kind not in "biuf":
            raise ValueError(f"{name} gave the dtype {given.dtype}: return real numbers")
        checked = given.astype(np.float64, copy=False)
        if checked.shape != shape:
            raise ValueError(
                f"{name} gave the shape {checked.shape} where {shape} was wanted: it takes points "
                "of shape (n_points, n_features), phi gives one number for each and grad_phi one "
                "for each entry"
            )
        if not np.isfinite(checked).all():
            raise ValueError(
                f"{name} is not finite everywhere on the points or their means: pass points of "
                "its domain, or define it there"
            )
        return checked


def _protected(points: FloatArray) -> FloatArray:
    """Return a read-only view, to pass to a function of the user."""
    view = points.view()
    view.flags.writeable = False
    return view
