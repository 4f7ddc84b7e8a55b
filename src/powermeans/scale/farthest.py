"""The points of parts that are farthest from all centers, each a center for the next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from powermeans.mathematics.sums import recorded
from powermeans.points.by_definition import weighted
from powermeans.points.compiled import CompiledRows
from powermeans.points.farthest import Farthest, farthest_in_passes, largest_first
from powermeans.points.kinds import open_batch
from powermeans.points.observed import filled
from powermeans.points.protocol import FarPoint, Rows
from powermeans.scale.executors import Executor
from powermeans.types import FloatArray, IndexArray, Points

recorded(Farthest)

# Kernels for many points and for few round the same distance differently, by less than this share.
_ROUNDING = 1e-3


def farthest_of_parts(
    executor: Executor, filling: FloatArray | None, centers: FloatArray, n_wanted: int
) -> Iterator[FarPoint]:
    """Find points as `Rows.farthest` does. `filling` replaces missing entries."""
    opener = executor.opener

    def find(chosen: FloatArray, n_kept: int) -> tuple[Farthest, Rows]:
        found: Farthest = executor.total(
            _FindFarthest(chosen, len(centers), n_kept, opener.has_missing)
        )
        rows = open_batch(
            found.points,
            n_threads=1,
            divergence=opener.divergence,
            has_missing=opener.has_missing,
        )
        return replace(found, points=np.asarray(filled(found.points, filling))), rows

    return farthest_in_passes(find, centers, n_wanted, rounding=_ROUNDING)


@dataclass(frozen=True, slots=True)
class _FindFarthest:
    """Finds the farthest points of a part, labeled by the first centers."""

    centers: FloatArray
    n_labels: int
    n_kept: int
    has_missing: bool

    @property
    def n_bytes_given(self) -> int:
        """Size of the result of a part."""
        return 8 * self.n_kept * (int(self.centers.shape[1]) + 3)

    def __call__(self, rows: CompiledRows, number: int) -> Farthest:
        sq_dist, weights = rows.nearness(self.centers).sq_dist(), all_weights(rows)
        first = largest_first(weighted(weights, sq_dist), self.n_kept)
        labels, _ = rows.assign(self.centers[: self.n_labels])
        return Farthest(
            self.n_kept, sq_dist[first], weights[first], labels[first], self._points(rows, first)
        )

    def _points(self, rows: CompiledRows, first: IndexArray) -> Points:
        # Keep missing entries: the means of all parts, which fill them, are not known here.
        return np.asarray(rows.sample(first)) if self.has_missing else rows.take(first)


def all_weights(rows: CompiledRows) -> FloatArray:
    """Return the weights of all points of a part."""
    return rows.sample_weight(np.arange(rows.n_points))
