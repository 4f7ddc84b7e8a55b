"""Moves of single points and swaps of centers, in the form in which compiled code knows them."""

from __future__ import annotations

import numpy as np

from powermeans.points.compiled import CompiledRows
from powermeans.points.protocol import Moved
from powermeans.types import FloatArray


class CompiledMoves:
    """Move points that are `measured` in one way in the form of other rows, by a named divergence.

    A subclass says what form the centers have there.
    """

    def __init__(self, measured: CompiledRows, rows: CompiledRows, divergence: str) -> None:
        self._measured, self.rows, self._divergence = measured, rows, divergence

    def move_points(self, centers: FloatArray, n_passes: int) -> Moved:
        """Move single points from cluster to cluster; see `powermeans.points.protocol.Moves`."""
        labels, moved = self._measured.labels_of(centers), self.given(centers)
        order = self.rows.order_by_place
        n_moves = self.rows.native.move_points(self._divergence, order, n_passes, labels, moved)
        return Moved(self.taken(moved, centers), n_moves)

    def swap_centers(
        self,
        centers: FloatArray,
        n_in_vain: int,
        most_distances: float,
        least_gain: float,
        least_distances: float = 0.0,
    ) -> Moved:
        """Dissolve clusters and split others; see `powermeans.points.protocol.Moves`."""
        labels, moved = self._measured.labels_of(centers), self.given(centers)
        _, n_kept, n_distances = self.rows.native.swap_centers(
            self._divergence,
            self.rows.order_by_place,
            n_in_vain,
            most_distances,
            least_distances,
            least_gain,
            labels,
            moved,
        )
        return Moved(self.taken(moved, centers), n_kept, n_distances)

    def given(self, centers: FloatArray) -> FloatArray:
        """Return a copy of the centers in this form."""
        return centers.astype(np.float64, order="C")

    def taken(self, moved: FloatArray, before: FloatArray) -> FloatArray:
        """Return the centers that have this form; `before` are those that were given."""
        return moved
