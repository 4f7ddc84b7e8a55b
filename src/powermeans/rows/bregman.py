"""Points in memory with a Bregman divergence."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy import sparse

from powermeans.critical import critical_power
from powermeans.divergences.bregman import Bregman
from powermeans.rows.affine import AffineRows
from powermeans.rows.native import Known, NativeRows, Team
from powermeans.types import FloatArray, Points, SparsePoints

# The critical power is that of points in the units of their features, of so many values at most.
_MOST_VALUES_SCALED = 2**22


class BregmanRows(AffineRows):
    """Rows whose distances are a Bregman divergence of the point from the center.

    Parameters
    ----------
    points : ndarray or CSR of shape (n_points, n_features)
        In the domain of the divergence.
    n_threads : int, optional
        See `powermeans.system.threads.effective_n_threads`.
    team : Team, optional
        Of other rows, to be shared with them.
    known : Known, optional
        See `powermeans.rows.native.NativeRows`.
    """

    def __init__(
        self,
        points: Points | SparsePoints,
        sample_weight: FloatArray | None = None,
        *,
        divergence: Bregman,
        n_threads: int | None = None,
        team: Team | None = None,
        known: Known | None = None,
    ) -> None:
        super().__init__(points, sample_weight, n_threads=n_threads, team=team, known=known)
        self.use(divergence)

    def use(self, divergence: Bregman) -> None:
        """From now on distances are this divergence."""
        self._divergence = divergence
        self._tangent = divergence.inside(self._weighted_mean()[None, :])[0]
        heights = divergence.heights(self._points, self._tangent)
        if not np.isfinite(heights).all():
            row = int(np.argmin(np.isfinite(heights)))
            raise ValueError(
                f"X is in row {row} infinitely far from the mean by {divergence!r}: scale X, or "
                "what the divergence is given"
            )
        self._native.use_heights(heights)

    # A center is a mean, whatever the divergence.
    _find_mean = NativeRows._find_mean

    def planes(self, centers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Those of the divergence."""
        return self._divergence.planes(centers, self._tangent, self._native.origin())

    def unit_steps(self) -> float | FloatArray:
        """From the curvature at the mean: a divergence is half of it times the square, nearby."""
        return unit_steps_at(self._tangent, self._divergence)

    def _weighted_mean(self) -> FloatArray:
        if self._weights is None or not self._weights.any():
            return self._column_mean
        mean = self._points.T @ (self._weights / np.sum(self._weights))
        return np.asarray(mean, dtype=np.float64)

    def _distances_between(self, rows: slice, centers: FloatArray) -> FloatArray:
        points = self._points[rows]
        dense = points.toarray() if sparse.issparse(points) else points
        inner = self._divergence.inside(centers)
        return self._divergence.between(dense.astype(np.float64, copy=False), inner)

    def critical_power(self) -> float:
        """That of the points, or of some of them, in the units of their features."""
        n_points = self.n_points
        step = step_between_scaled(n_points, self.n_features)
        some = self._points[::step]
        weights = None if self._weights is None else self._weights[::step]
        if weights is not None and not weights.any():
            some, weights = self._points, self._weights
        return critical_power(in_units(some, self.unit_steps()), weights)

    def _by_definition(self, centers: FloatArray) -> Iterable[tuple[slice, FloatArray]]:
        return self._divergence.in_chunks(self._points, centers)


def unit_steps_at(tangent: FloatArray, divergence: Bregman) -> FloatArray:
    """How far along each feature a divergence of one is, next to a place inside the domain."""
    curvature = divergence.curvature(tangent)
    is_convex = np.isfinite(curvature) & (curvature > 0)
    if not np.all(is_convex):
        raise ValueError(
            f"{divergence!r} is not strictly convex at the mean of X, feature "
            f"{int(np.argmin(is_convex))}: pass a convex function and its gradient"
        )
    return np.asarray(np.sqrt(2 / curvature))


def step_between_scaled(n_points: int, n_features: int) -> int:
    """Of every so many points one is scaled to find the critical power."""
    return -(-n_points * n_features // _MOST_VALUES_SCALED)


def in_units(points: Points | SparsePoints, steps: float | FloatArray) -> Points | SparsePoints:
    """The points with each feature in units of its own."""
    if isinstance(points, np.ndarray):
        return points / steps
    return sparse.csr_array(points.multiply(1 / np.asarray(steps)))
