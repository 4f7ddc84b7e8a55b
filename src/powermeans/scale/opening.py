"""Open points that are read part by part: paths, chunks and `PartedData`."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powermeans.errors import EntryError
from powermeans.points.checks.centers import check_centers
from powermeans.points.columns import Columns
from powermeans.points.needs import Needs
from powermeans.points.opening import InMemory, Opened, not_in_parts, open_points
from powermeans.points.streams import Stream
from powermeans.scale.checkpoint import Journal, close_journal, journaled, once, open_journal
from powermeans.scale.executors import MemoryExecutor, PartOpener, ReadingExecutor, read_ahead
from powermeans.scale.parted_data import PartedData, open_data
from powermeans.scale.parted_rows import PartedRows
from powermeans.scale.partition import Partition
from powermeans.system.label_files import write_labels
from powermeans.types import FloatArray, Labels, Part, Points


class InParts(Opened):
    """Points that are read part by part, for the first time when their rows are asked for.

    As a context manager it closes the checkpoint.
    """

    def __init__(self, source: Any, needs: Needs) -> None:
        self.source, self.needs = source, needs
        self._journal: Journal | None = None
        if needs.known is not None:
            needs.known.check(self.columns, self._way_out)

    _way_out = "pass open_data(..., columns=...) with the same in the same order"

    @property
    def columns(self) -> Columns:
        """The columns of the source."""
        given = self.source
        return Columns(given.n_features, given.feature_names, given.preparation)

    @cached_property
    def rows(self) -> PartedRows:
        """The rows; those of a fit are checked in a first pass."""
        if self.needs.known is not None:
            return PartedRows(self._executor(self._partition()), self.needs.measure.n_threads)
        checkpoint = self.source.checkpoint
        if checkpoint is not None:
            checkpoint.refuse_rows(self.source)
        with ExitStack() as on_error:
            # Before a row is read, so that a file that cannot be written costs nothing.
            journal = open_journal(checkpoint, self.needs.fit.random_state)
            on_error.callback(close_journal, journal)
            partition = self._partition()
            executor = journaled(self._executor(partition), journal, self.source.fingerprint)
            rows = PartedRows(executor, self.needs.measure.n_threads)
            _ = rows.n_points  # the first pass, in which every row is checked
            partition.facts = once(executor, "facts", partition.found)
            partition.check(self.needs.fit.n_points)
            self._journal, self._largest = journal, partition.facts.largest
            on_error.pop_all()
        return rows

    @property
    def largest(self) -> float:
        """The largest magnitude, NaN where no point has been looked at."""
        _ = self.rows
        return self._largest

    _largest = math.nan

    def _partition(self) -> Partition:
        return self.source.partition(self.needs)  # type: ignore[no-any-return]

    def _executor(self, partition: Partition) -> MemoryExecutor | ReadingExecutor:
        measure = self.needs.measure
        opener = PartOpener(measure.divergence, measure.has_missing)
        how: dict[str, Any] = {"n_threads": measure.n_threads, "tell": self.needs.fit.tell}
        if self.source.is_in_memory:
            return MemoryExecutor(partition.read(), opener, **how)
        return ReadingExecutor(partition, opener, **how)

    def read(self) -> Iterator[Part]:
        """Yield points and weights of one part after the other, without a pass before."""
        return read_ahead(self.source.read())

    def weighing(self, unit: float) -> InParts:
        """Return the same points with weights times `unit`."""
        return type(self)(self.source.weighing(unit), self.needs)

    @property
    def dtype(self) -> np.dtype[Any]:
        found: np.dtype[Any] = self.source.dtype
        return found

    @property
    def n_features(self) -> int:
        known = (self.needs.known or self.columns).n_features
        return self.rows.n_features if known is None else known

    @property
    def noted(self) -> dict[str, Any] | None:
        return {**self.columns.noted(), "n_features_in_": self.n_features}

    def assign(self, centers: FloatArray, known_inertia: float | None = None) -> tuple[Any, float]:
        return None, self.inertia(centers) if known_inertia is None else known_inertia

    def inertia(self, centers: FloatArray) -> float:
        return self.rows.assignment(centers).inertia

    def n_found(self, centers: FloatArray, labels: Any) -> int:
        return int(np.count_nonzero(self.rows.assignment(centers).is_used))

    def predicted(self, centers: Points, output: str | os.PathLike[str] | None = None) -> Any:
        if output is None:
            raise ValueError(
                "the labels of rows that are read part by part may not fit into memory: pass "
                'predict(X, output="labels.npy"), and numpy.load what is written'
            )
        _refuse_output(self.source, output)
        checked = check_centers(centers, self.n_features)
        labels: Iterator[Labels] = (found for found, _ in self.rows.assigned(checked))
        if (is_used := self.source.is_used) is not None:
            labels = _of_every_row(labels, is_used)
        return write_labels(output, labels)

    def distances(self, centers: Points) -> Any:
        raise _no_array("transform")

    def shares(
        self, centers: Points, memberships: Callable[[FloatArray], FloatArray], exponent: float
    ) -> Any:
        raise _no_array("memberships")

    def stop_recording(self) -> None:
        if self._journal is not None:
            self._journal.leave()

    def __exit__(self, *error: object) -> None:
        close_journal(self._journal)


@dataclass(frozen=True, slots=True)
class OfFiles(InMemory):
    """Points of files in memory; rows of a table that have none, such as totals, are left out."""

    noted: Any = None
    data: Any = None  # the files

    def predicted(self, centers: Points, output: str | os.PathLike[str] | None = None) -> Any:
        if output is not None:
            _refuse_output(self.data, output)
        return InMemory.predicted(self, centers, output)  # slots leave super() without a class

    def of_all_rows(self, values: Any) -> Any:
        is_used = self.data.is_used
        if is_used is None:
            return values
        nothing = -1 if values.dtype.kind == "i" else np.nan
        every = np.full((len(is_used), *values.shape[1:]), nothing, values.dtype)
        every[is_used] = values
        return every


def _of_every_row(parts: Iterator[Labels], is_used: NDArray[np.bool_]) -> Iterator[Labels]:
    """Yield the labels of all rows in parts, with -1 for rows without points."""
    places, n_given, start = np.flatnonzero(is_used), 0, 0
    for labels in parts:
        given = places[n_given : n_given + len(labels)]
        n_given += len(labels)
        end = int(places[n_given]) if n_given < len(places) else len(is_used)
        every = np.full(end - start, -1, np.int32)
        every[given - start] = labels
        yield every
        start = end


def _refuse_output(data: Any, output: str | os.PathLike[str]) -> None:
    if data.is_read_from(output):
        raise ValueError(
            f"output={os.fspath(output)!r} is a file that X is read from and that would be "
            "lost, or in a folder that is read, so that the next fit would take labels for "
            "rows: write them elsewhere"
        )


def _no_array(method: str) -> ValueError:
    return ValueError(
        f"{method} returns an array with a row for each point, and none is made of points that are "
        "read part by part, as those of paths and chunks are: call it with some of the rows at a "
        "time, as an array"
    )


@open_points.register(Stream)
def _open_stream(X: Any, sample_weight: ArrayLike | None, needs: Needs) -> Opened:
    data = X if isinstance(X, PartedData) else open_data(X)
    if sample_weight is not None:
        raise ValueError(
            "sample_weight is for arrays: weights of files are one of their columns, so pass "
            'open_data(..., weights="column"), and those of chunks come with them, as pairs'
        )
    data = data.read_for(needs)
    if (whole := data.whole()) is not None:
        points, weights = whole
        return _opened_whole(data, points, weights, needs)
    if needs.refusals.parts is not None:
        raise not_in_parts(data.source.name, needs)
    return InParts(data, needs)


def _opened_whole(data: PartedData, points: Any, weights: Any, needs: Needs) -> Opened:
    """Open the points of files as an array, with the columns that these have."""
    columns = Columns(points.shape[1], data.feature_names, data.preparation)
    fit, known = needs.fit, needs.known
    if data.preparation is not None:
        fit = replace(fit, warns_of_scales=False)
    if known is not None:
        known.check(columns, InParts._way_out)
        known = replace(known, preparation=None)
    needs = replace(needs, estimator=None, fit=fit, known=known)
    try:
        opened = open_points(points, weights, needs)
    except EntryError as error:
        data.explain(error)
        raise
    held = {field.name: getattr(opened, field.name) for field in fields(InMemory)}
    return OfFiles(**held, noted=columns.noted(), data=data)
