"""Points in memory compared by direction: spherical k-means and its soft kin."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from powermeans.divergences import cosine
from powermeans.rows.base import BaseRows
from powermeans.rows.native import Known, NativeRows, Team
from powermeans.rules import Rule
from powermeans.sums import Sums
from powermeans.types import FloatArray, IndexArray, Points, SparsePoints

# Squared Euclidean distances of unit vectors are twice one minus the cosine.
_HALF = math.sqrt(0.5)


class UnitSums(Sums):
    """Sums whose centers are directions: the means, brought to unit length."""

    __slots__ = ()

    def centers(self, fallback: FloatArray) -> FloatArray:
        """Weighted means of unit length; where points cancel out, the row of `fallback`."""
        means = super().centers(fallback)
        lengths = np.linalg.norm(means, axis=1, keepdims=True)
        is_lost = lengths < 1e-12
        return np.where(is_lost, fallback, means / np.where(is_lost, 1.0, lengths))


class CosineRows(NativeRows):
    """Rows whose distance is one minus the cosine of the angle. Holds a copy of the points.

    Parameters
    ----------
    points : ndarray or CSR of shape (n_points, n_features)
        No row of zeros, which has no direction.
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
        n_threads: int | None = None,
        team: Team | None = None,
        known: Known | None = None,
    ) -> None:
        halved = cosine.directions(points)
        halved *= points.dtype.type(_HALF)
        super().__init__(halved, sample_weight, n_threads=n_threads, team=team, known=known)

    def sweep(self, centers: FloatArray, rule: Rule) -> UnitSums:
        """Weigh every point by the rule and add up directions."""
        swept = super().sweep(centers, rule)
        return UnitSums(
            swept.points / _HALF, swept.weights, swept.objective, swept.inertia, swept.n_skipped
        )

    def seen(self, centers: FloatArray) -> FloatArray:
        """Centers of the length that points are held in."""
        return np.ascontiguousarray(cosine.directions(np.asarray(centers)) * _HALF)

    def take(self, indices: IndexArray) -> FloatArray:
        """The directions of these points."""
        return super().take(indices) / _HALF

    # Moments of the columns do not tell the mean direction.
    _find_mean = BaseRows._find_mean
    _find_inertia_about_mean = BaseRows._find_inertia_about_mean

    def _by_definition(self, centers: FloatArray) -> Iterable[tuple[slice, FloatArray]]:
        return cosine.cosine_in_chunks(self._points, centers)
