"""Bregman divergences: the center that minimises their weighted sum is always the weighted mean.

With a convex function phi, D(x, theta) = phi(x) - phi(theta) - <grad phi(theta), x - theta>
(Banerjee et al. 2005). Up to a term that depends only on the point x, each is affine in x, so that
one compiled sweep serves them all: with any origin mu,

    D(x, theta) = D(x, mu) + D(mu, theta) - <x - mu, grad phi(theta) - grad phi(mu)>.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from powermeans.divergences.chunks import dense_chunks
from powermeans.divergences.domains import Bounded, ByEntries
from powermeans.types import AnyMatrix, FloatArray

_STEP_OF_CURVATURE = 1e-4
_FEATURES_AT_ONCE = 64


class Bregman(ByEntries):
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

    def heights(self, points: AnyMatrix, tangent: FloatArray) -> FloatArray:
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


class Separable(Bounded, Bregman):
    """A divergence that is a sum over the features: a subclass defines `deviance` and `slope`.

    Both work on arrays, entry by entry, with centers that broadcast against points. A domain that
    is bounded is given by `lowest`, `highest` and `excludes_lowest`, and in words by `wanted`. The
    slope must rise strictly with the center, and be finite inside the domain; it may be infinite on
    a bound, since centers on one move inside by a hair. Deviances have an infinite limit there at
    most for points elsewhere.

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
    ...         return np.exp(points) - np.exp(centers) * (1 + (points - centers))
    ...     def slope(self, centers):
    ...         return np.exp(centers)
    >>> X = np.array([[-1.0], [1.0], [4.0], [4.2]])
    >>> model = PowerKMeans(2, divergence=Exponential(), random_state=0).fit(X)
    >>> np.sort(model.cluster_centers_, axis=0)
    array([[0. ],
           [4.1]])
    """

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

    is_of_a_user = True

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
                f"{name} gave the shape {checked.shape} instead of {shape}: it takes points "
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
