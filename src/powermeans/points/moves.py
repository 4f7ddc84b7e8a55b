"""Moves of single points and swaps of centers, in the form in which compiled code knows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from powermeans.divergences import Divergence
from powermeans.points.protocol import Moved
from powermeans.types import FloatArray


@dataclass(frozen=True, slots=True)
class CompiledMoves:
    """Move points that are `measured` in the form of other rows, which their divergence tells."""

    _measured: Any  # `CompiledRows`, as is `rows`
    rows: Any
    _divergence: Divergence

    def move_points(self, centers: FloatArray, n_passes: int) -> Moved:
        """Move single points from cluster to cluster; see `powermeans.points.protocol.Moves`."""
        labels, moved = self._measured.labels_of(centers), self._given(centers)
        order = self.rows.order_by_place
        n_moves = self.rows.native.move_points(
            self._divergence.moves, order, n_passes, labels, moved
        )
        return Moved(self._divergence.from_moved(moved, centers), n_moves)

    def swap_centers(
        self,
        centers: FloatArray,
        n_in_vain: int,
        most_distances: float,
        least_gain: float,
        least_distances: float = 0.0,
    ) -> Moved:
        """Dissolve clusters and split others; see `powermeans.points.protocol.Moves`."""
        labels, moved = self._measured.labels_of(centers), self._given(centers)
        _, n_kept, n_distances = self.rows.native.swap_centers(
            self._divergence.moves,
            self.rows.order_by_place,
            n_in_vain,
            most_distances,
            least_distances,
            least_gain,
            labels,
            moved,
        )
        return Moved(self._divergence.from_moved(moved, centers), n_kept, n_distances)

    def _given(self, centers: FloatArray) -> FloatArray:
        """Return a copy of the centers in the form of the rows."""
        copied = centers.astype(np.float64, order="C")
        return np.ascontiguousarray(self._divergence.as_moved(copied))
