"""Rows in memory whose distances are a Bregman divergence."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from powermeans.critical import critical_power
from powermeans.divergences.binomial import Binomial
from powermeans.divergences.bregman import Bregman
from powermeans.divergences.gamma import Gamma
from powermeans.divergences.mahalanobis import Mahalanobis
from powermeans.divergences.poisson import Poisson
from powermeans.rows.affine import AffineRows
from powermeans.rows.native import FormOfMoves, NativeRows, Team
from powermeans.types import FloatArray, Points, SparsePoints

# The critical power scales at most this many values, since that copies them.
_MOST_VALUES_SCALED = 2**22


class BregmanRows(AffineRows):
    """Measure by a Bregman divergence of the point from the center; options as for `NativeRows`."""

    # A center is the mean of its points, whatever the divergence.
    _find_mean = NativeRows._find_mean

    def __init__(
        self,
        points: Points | SparsePoints,
        sample_weight: FloatArray | None = None,
        *,
        divergence: Bregman,
        **options: Any,
    ) -> None:
        super().__init__(points, sample_weight, **options)
        self.use(divergence)

    def use(self, divergence: Bregman) -> None:
        """Measure with this divergence from now on."""
        self._divergence = divergence
        self.__dict__.pop("_form_of_moves", None)
        self._tangent = divergence.inside(self._weighted_mean()[None, :])[0]
        heights = divergence.heights(self._points, self._tangent)
        check_heights(heights, divergence)
        self._native.use_heights(heights)

    def planes(self, centers: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self._divergence.planes(centers, self._tangent, self._native.origin())

    def unit_steps(self) -> float | FloatArray:
        return unit_steps_at(self._tangent, self._divergence)

    def critical_power(self) -> float:
        """Return the critical power of a sample, in the units of their features."""
        step = step_between_scaled(self.n_points, self.n_features)
        some = self._points[::step]
        weights = None if self._weights is None else self._weights[::step]
        if weights is not None and not weights.any():
            some, weights = self._points, self._weights
        return critical_power(in_units(some, self.unit_steps()), weights)

    @property
    def n_places(self) -> int:
        # More points breathe, which counts no work by places, and are not copied to be told apart.
        is_few = self.n_points * self.n_features <= _MOST_VALUES_SCALED
        return (
            self._form_of_moves.rows.n_places if self.moves_points and is_few else super().n_places
        )

    @property
    def moves_points(self) -> bool:
        return type(self._divergence) in _FORMS_OF_MOVES

    @cached_property
    def _form_of_moves(self) -> FormOfMoves:
        if not self.moves_points:
            raise TypeError(f"{self._divergence!r} knows no moves of single points")
        form, name = _FORMS_OF_MOVES[type(self._divergence)]
        return form(self._points, self._weights, self._divergence, name, self.team)

    def _forget_what_follows_from_weights(self) -> None:
        super()._forget_what_follows_from_weights()
        self.__dict__.pop("_form_of_moves", None)

    def _weighted_mean(self) -> FloatArray:
        """Return the mean without a sweep, which needs the heights that follow from it."""
        if self._weights is None or not self._weights.any():
            return self._column_mean
        mean = self._points.T @ (self._weights / np.sum(self._weights))
        return np.asarray(mean, dtype=np.float64)

    def _distances_between(self, rows: slice, centers: FloatArray) -> FloatArray:
        inner = self._divergence.inside(centers)
        return self._divergence.between(as_float64(self._points[rows]), inner)

    def _distances_in_chunks(self, centers: FloatArray) -> Iterable[tuple[slice, FloatArray]]:
        return self._divergence.in_chunks(self._points, centers)


class ValuesAsTheyAre(FormOfMoves):
    """Move by a divergence that the compiled moves know."""

    def __init__(
        self,
        points: Points | SparsePoints,
        weights: FloatArray | None,
        divergence: Any,
        name: str,
        team: Team,
    ) -> None:
        self._divergence = divergence
        super().__init__(NativeRows(self._formed(points), weights, team=team), name)

    def _formed(self, points: Points | SparsePoints) -> Points | SparsePoints:
        return points


class SuccessesAndFailures(ValuesAsTheyAre):
    """Move by the binomial divergence, which is that of Poisson for successes and for failures."""

    def _formed(self, points: Points | SparsePoints) -> FloatArray:
        successes = as_float64(points)
        return np.hstack([successes, self._divergence.highest - successes])

    def given(self, centers: FloatArray) -> FloatArray:
        return self._formed(centers)

    def taken(self, moved: FloatArray, before: FloatArray) -> FloatArray:
        return np.ascontiguousarray(moved[:, : before.shape[1]])


class Whitened(ValuesAsTheyAre):
    """Move by a covariance: by squared Euclidean distances after whitening."""

    def _formed(self, points: Points | SparsePoints) -> FloatArray:
        return np.ascontiguousarray(self._divergence.whitened(as_float64(points)))

    def given(self, centers: FloatArray) -> FloatArray:
        return self._formed(centers)

    def taken(self, moved: FloatArray, before: FloatArray) -> FloatArray:
        return np.ascontiguousarray(self._divergence.unwhitened(moved))


# Other divergences have no compiled moves, nor have those that a user derives from one of these.
_FORMS_OF_MOVES: dict[type[Bregman], tuple[type[ValuesAsTheyAre], str]] = {
    Poisson: (ValuesAsTheyAre, "poisson"),
    Gamma: (ValuesAsTheyAre, "gamma"),
    Binomial: (SuccessesAndFailures, "poisson"),
    Mahalanobis: (Whitened, "squared_euclidean"),
}


def as_float64(points: Points | SparsePoints) -> FloatArray:
    """Return dense float64 points."""
    dense = points.toarray() if sparse.issparse(points) else points
    return np.asarray(dense, dtype=np.float64)


def check_heights(heights: FloatArray, divergence: Bregman, first_row: int = 0) -> None:
    """Raise where a point is infinitely far from the mean; `first_row` is the row of the first."""
    if not np.isfinite(heights).all():
        row = first_row + int(np.argmin(np.isfinite(heights)))
        raise ValueError(
            f"row {row} of X is infinitely far from the mean by {divergence!r}: scale X, or the "
            "parameters of the divergence"
        )


def unit_steps_at(tangent: FloatArray, divergence: Bregman) -> FloatArray:
    """Return the step along each feature at which the divergence from the tangent point is one.

    Near that point a divergence is half of the curvature times the squared step.
    """
    curvature = divergence.curvature(tangent)
    is_convex = np.isfinite(curvature) & (curvature > 0)
    if not np.all(is_convex):
        raise ValueError(
            f"{divergence!r} is not strictly convex at the mean of X, feature "
            f"{int(np.argmin(is_convex))}: pass a convex function and its gradient"
        )
    return np.asarray(np.sqrt(2 / curvature))


def step_between_scaled(n_points: int, n_features: int) -> int:
    """Return the step between the points that are scaled to find the critical power."""
    return -(-n_points * n_features // _MOST_VALUES_SCALED)


def in_units(points: Points | SparsePoints, steps: float | FloatArray) -> Points | SparsePoints:
    """Return the points with each feature divided by its step."""
    if isinstance(points, np.ndarray):
        return points / steps
    return sparse.csr_array(points.multiply(1 / np.asarray(steps)))
