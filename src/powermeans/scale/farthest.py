"""The points of parts that are farthest from all centers, each a center for the next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from powermeans.mathematics.sums import recorded
from powermeans.points.by_definition import weighted
from powermeans.points.compiled import CompiledRows
from powermeans.points.farthest import Farthest, farthest_in_passes, largest_first
from powermeans.points.observed import filled
from powermeans.points.opening import open_batch
from powermeans.points.protocol import FarPoint, Rows
from powermeans.scale.executors import Executor, PartCall
from powermeans.types import FloatArray, IndexArray

recorded(Farthest)


def farthest_of_parts(
    executor: Executor, filling: FloatArray | None, centers: FloatArray, n_wanted: int
) -> Iterator[FarPoint]:
    """Find points as `Rows.farthest` does. `filling` replaces missing entries."""
    opener = executor.opener

    def find(chosen: FloatArray, n_kept: int) -> tuple[Farthest, Rows]:
        arguments = chosen, len(centers), n_kept, opener.has_missing
        n_bytes = 8 * n_kept * (int(chosen.shape[1]) + 3)
        found: Farthest = executor.total(
            PartCall(_farthest_in_part, arguments, n_bytes_given=n_bytes)
        )
        rows = open_batch(
            found.points,
            n_threads=1,
            divergence=opener.divergence,
            has_missing=opener.has_missing,
        )
        return replace(found, points=np.asarray(filled(found.points, filling))), rows

    # Kernels for many points and for few round the same distance differently, by less than this.
    return farthest_in_passes(find, centers, n_wanted, rounding=1e-3)


def _farthest_in_part(
    rows: CompiledRows,
    number: int,
    centers: FloatArray,
    n_labels: int,
    n_kept: int,
    has_missing: bool,
) -> Farthest:
    """Find the farthest points of a part, labeled by the first centers."""
    sq_dist, weights = rows.nearness(centers).sq_dist(), all_weights(rows)
    first: IndexArray = largest_first(weighted(weights, sq_dist), n_kept)
    labels, _ = rows.assign(centers[:n_labels])
    # Keep missing entries: the means of all parts, which fill them, are not known here.
    points = np.asarray(rows.sample(first)) if has_missing else rows.take(first)
    return Farthest(n_kept, sq_dist[first], weights[first], labels[first], points)


def all_weights(rows: CompiledRows) -> FloatArray:
    """Return the weights of all points of a part."""
    return rows.sample_weight(np.arange(rows.n_points))
