"""Rows in parts, one part in memory after the other, for what learns from each in its turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from powermeans.inputs.checks import check_part
from powermeans.parts.executors import read_ahead
from powermeans.parts.parted_rows import PartedRows
from powermeans.rows.protocol import PartRows
from powermeans.sources import PartedData, is_dask, open_data
from powermeans.sources.arrays import admitted, admitted_weights
from powermeans.types import FloatArray, Points, SparsePoints

Part = tuple[Points | SparsePoints, FloatArray | None]


def opened_in_turn(data: Any, sample_weight: ArrayLike | None) -> Any:
    """Rows in parts that are open, whatever the user has passed.

    Parameters
    ----------
    sample_weight : array-like, optional
        For a Dask collection.
    """
    if isinstance(data, Iterator):
        raise ValueError(
            f"X is {data!r}, which can be iterated only once: pass its chunks one by one, with "
            "for chunk in X: model.partial_fit(chunk)"
        )
    is_open = isinstance(data, PartedData)
    if is_dask(data):
        # Not to be imported before there is something of Dask's.
        from powermeans.sources.dask import DaskPoints

        is_open = isinstance(data, DaskPoints)
    if sample_weight is None:
        return data if is_open else open_data(data)
    if is_open or not is_dask(data):
        raise ValueError(
            "sample_weight is for arrays and Dask collections, and X is a path, chunks or opened "
            'already: pass open_data(..., weights="column"), or pairs of a chunk and its weights'
        )
    return open_data(data, weights=sample_weight)


def parts_in_turn(data: Any) -> Iterator[Part]:
    """The parts of opened rows that have rows with a weight, each read once and checked.

    Parameters
    ----------
    data : PartedData or DaskPoints
        While one part of a file is worked on the next one is read. A partition of Dask is computed
        once it is its turn, and brought here.
    """
    in_files = isinstance(data, PartedData)
    yield from _with_weight(read_ahead(data.partition().read()) if in_files else _partitions(data))


def contents_in_turn(rows: PartedRows) -> Iterator[Part]:
    """What is in each part that has rows with a weight, brought here one after the other."""
    bring = _Contents()
    if rows.executor.reads_each_time:
        yield from _with_weight(rows.each(bring))
        return
    # Where the parts are held elsewhere they would all come at once.
    for number in range(rows.n_parts):
        yield from _with_weight(rows.executor.each(bring, [number]))


@dataclass(frozen=True, slots=True)
class _Contents:
    """The points of a part and their weights."""

    is_long: ClassVar[bool] = True

    def __call__(self, rows: PartRows, number: int) -> Part:
        everything = np.arange(rows.n_points)
        return rows.sample(everything), rows.sample_weight(everything)


def _with_weight(parts: Iterator[Part]) -> Iterator[Part]:
    for part in parts:
        if part[0].shape[0] and (part[1] is None or part[1].any()):
            yield part
        del part  # so that the memory of what is done with can be used again


def _partitions(data: Any) -> Iterator[Part]:
    # Not to be imported before there is something of Dask's.
    from powermeans.sources.cluster import Cluster, computed

    cluster = Cluster.of(data.array)
    for number, (points, weights) in enumerate(data.blocks()):
        where = f"X in partition {number}"
        found = computed([points] if weights is None else [points, weights], cluster)
        yield _admitted(found[0], found[1] if len(found) > 1 else None, where)


def _admitted(given: Any, given_weights: Any, where: str) -> Part:
    points = admitted(given, where, None)
    weights = admitted_weights(given_weights, points.shape[0], where)
    check_part(points, weights, name=where)
    return points, weights
