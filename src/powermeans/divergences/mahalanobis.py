"""Squared distances in units of a covariance."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular

from powermeans.divergences.bregman import Bregman
from powermeans.types import FloatArray


@dataclass(frozen=True)
class Mahalanobis(Bregman):
    """(x - theta)^T C^-1 (x - theta) with a covariance C.

    The same as squared Euclidean distances after C is whitened.

    Parameters
    ----------
    covariance : array-like of shape (n_features, n_features)
        C, symmetric and positive definite.
    """

    covariance: ArrayLike = field(repr=False)

    def __post_init__(self) -> None:
        given = np.asarray(self.covariance, dtype=np.float64)
        if given.ndim != 2 or given.shape[0] != given.shape[1]:
            raise ValueError(f"covariance has the shape {given.shape}: pass a square matrix")
        rounding = 1e-8 * np.abs(given).max(initial=0.0)
        if not np.isfinite(given).all() or not np.allclose(given, given.T, rtol=0, atol=rounding):
            raise ValueError("covariance is not symmetric and finite: pass (C + C.T) / 2")
        try:
            root = np.linalg.cholesky(given)
        except np.linalg.LinAlgError:
            least = float(np.linalg.eigvalsh(given)[0])
            raise ValueError(
                f"covariance has the eigenvalue {least:.3g} and is not positive definite: add a "
                "little to its diagonal, or leave out features that depend on others"
            ) from None
        whitening = solve_triangular(root, np.eye(len(root)), lower=True)
        object.__setattr__(self, "_whitening", whitening)

    def generator(self, points: FloatArray) -> FloatArray:
        """x^T C^-1 x."""
        return np.asarray(np.square(self.whitened(points)).sum(axis=1))

    def gradient(self, points: FloatArray) -> FloatArray:
        """2 C^-1 x."""
        return np.asarray(2 * self.whitened(points) @ self.__dict__["_whitening"])

    def divergence(self, points: FloatArray, center: FloatArray) -> FloatArray:
        """The squared distances after whitening."""
        return self.generator(points - center)

    def from_centers(self, point: FloatArray, centers: FloatArray) -> FloatArray:
        """The squared distances after whitening."""
        return self.generator(point - centers)

    def curvature(self, center: FloatArray) -> FloatArray:
        """Twice the diagonal of C^-1."""
        return np.diag(self.gradient(np.eye(len(center)))).copy()

    def whitened(self, points: FloatArray) -> FloatArray:
        """Points among which distances are Euclidean, L^-1 x with C = L L^T."""
        whitening: FloatArray = self.__dict__["_whitening"]
        if points.shape[-1] != len(whitening):
            raise ValueError(
                f"covariance is of {len(whitening)} features, but X has {points.shape[-1]}: pass "
                "that of the features of X"
            )
        return np.asarray(points @ whitening.T)
