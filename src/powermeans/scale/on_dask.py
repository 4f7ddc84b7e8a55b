"""Open Dask collections, which are worked on where Dask has them."""

import abc
import functools
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from powermeans.points.needs import Needs
from powermeans.points.opening import open_points
from powermeans.points.predictions import assigned, distances, predicted, shares
from powermeans.scale.checkpoint import close_journal, journaled, open_journal
from powermeans.scale.dask_executor import DaskExecutor
from powermeans.scale.dask_points import DaskPoints
from powermeans.scale.executors import Executor, PartOpener
from powermeans.scale.opening import OpenedParts
from powermeans.scale.parted_data import refuse_opened, source_of
from powermeans.system.attributes import cached_property
from powermeans.system.containers import is_dask
from powermeans.types import FloatArray, Matrix, Part


class DaskCollection(abc.ABC):  # noqa: B024 - no class derives from it
    """An array or a DataFrame of Dask, known by the package that defines it."""

    @classmethod
    def __subclasshook__(cls, kind: type) -> Any:
        """Tell without an import of the DataFrames of Dask, which are slow to import."""
        return is_dask(kind) or NotImplemented


class PointsOnDask(OpenedParts):
    """Points in a Dask collection, which are checked and kept where Dask has them."""

    _way_out = "pass the same in the same order"

    @cached_property
    def executor(self) -> Executor:  # type: ignore[override]
        measure = self.needs.measure
        opener = PartOpener(measure.divergence, measure.has_missing)
        executor = DaskExecutor(self.source, opener, n_threads=measure.n_threads)
        executor.check(self.needs.fit.n_points)
        return executor

    def _look(self) -> None:
        with ExitStack() as on_error:
            journal = open_journal(self.source.checkpoint, self.needs.fit.random_state)
            on_error.callback(close_journal, journal)
            executor: Any = self.executor
            self.executor = journaled(executor, journal, executor.fingerprint)
            self._journal, self._largest = journal, executor.facts.largest
            on_error.pop_all()

    def read(self) -> Iterator[Part]:
        return self.source.read()  # type: ignore[no-any-return]

    def mapped(
        self,
        function: Callable[..., Any],
        centers: Matrix,
        *,
        dtype: Any,
        n_columns: int | None = None,
    ) -> Any:
        """Return what a function of opened points returns for each partition, not computed yet.

        That is a row of `n_columns` for each point or, for None, a number.
        """
        array = self.source.array
        rows = array.chunks[0]
        nothing = np.empty((0,) if n_columns is None else (0, n_columns), dtype=dtype)
        shape: dict[str, Any] = {"chunks": (rows, (n_columns,))}
        if n_columns is None:
            shape = {"chunks": (rows,), "drop_axis": 1}
        call = functools.partial(_of_block, function, centers, self.needs.for_blocks(), nothing)
        return array.map_blocks(call, dtype=dtype, meta=nothing, **shape)


@assigned.register
def _assigned(
    points: PointsOnDask, centers: FloatArray, known_inertia: float | None = None
) -> tuple[Any, float]:
    if known_inertia is None:
        known_inertia = points.assignment(centers).inertia
    return predicted(points, centers), known_inertia


@predicted.register
def _predicted(
    points: PointsOnDask, centers: Matrix, output: str | os.PathLike[str] | None = None
) -> Any:
    """Return the labels as a Dask array that is not computed yet."""
    if output is not None:
        raise ValueError(
            f"output={output!r} is for rows that are read part by part, and X is a Dask "
            "collection: leave it out, and store the Dask array that predict returns, for "
            "example with to_zarr"
        )
    return points.mapped(predicted, centers, dtype=np.int32)


@distances.register
def _distances(points: PointsOnDask, centers: Matrix) -> Any:
    """Return the distances as a Dask array that is not computed yet."""
    is_plain, dtype = points.needs.measure.is_plain, points.source.array.dtype
    is_narrow = is_plain and dtype in (np.float16, np.float32)
    plain = np.float32 if is_narrow else np.float64
    kind = plain if is_plain else centers.dtype
    return points.mapped(distances, centers, dtype=kind, n_columns=len(centers))


@shares.register
def _shares(points: PointsOnDask, *others: Any) -> Any:
    raise ValueError(
        "X is a Dask collection, which only fit, predict, transform and score take: call "
        "this with X.compute(), or map it over the blocks with X.map_blocks"
    )


def _of_block(
    function: Callable[..., Any],
    centers: Any,
    needs: Needs,
    nothing: Any,
    block: Any,
    block_id: Any = None,
) -> Any:
    if not block.shape[0]:
        return nothing
    try:
        return np.asarray(function(open_points(block, None, needs), centers))
    except ValueError as error:
        number = 0 if block_id is None else block_id[0]
        raise ValueError(f"in partition {number}: {error}") from error


source_of.register(DaskPoints, refuse_opened)


@open_points.register(DaskCollection)
@open_points.register(DaskPoints)
def _open_on_dask(X: Any, sample_weight: ArrayLike | None, needs: Needs) -> PointsOnDask:
    if (reason := needs.refusals.parts) is not None:
        raise ValueError(
            f"X is a Dask collection, whose partitions are worked on one by one, but {reason}: "
            "pass X.compute(), if it fits into memory"
        )
    if isinstance(X, DaskPoints) and sample_weight is not None:
        raise ValueError(
            "sample_weight is for a Dask collection itself, and X is opened already: pass "
            "open_data(..., weights=sample_weight)"
        )
    known = None if needs.known is None else needs.known.preparation
    told_by = "preparation" if isinstance(X, DaskPoints) else "columns"
    if known is not None and getattr(X, told_by, None) is None:
        needs.known.refuse_points()  # type: ignore[union-attr]
    if not isinstance(X, DaskPoints):
        X = DaskPoints(X, sample_weight, preparation=known)
    return PointsOnDask(X, needs)
