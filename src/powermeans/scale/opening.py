"""Open points that are read part by part: paths, chunks and `PartedData`."""

import math
import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powermeans.errors import EntryError
from powermeans.points.checks.centers import check_centers
from powermeans.points.columns import Columns
from powermeans.points.given import Given
from powermeans.points.needs import Needs
from powermeans.points.opening import not_in_parts, open_points
from powermeans.points.predictions import assigned, distances, n_found, predicted, shares
from powermeans.points.protocol import Points
from powermeans.points.streams import Stream
from powermeans.scale.checkpoint import Journal, close_journal, journaled, once, open_journal
from powermeans.scale.executors import (
    Executor,
    MemoryExecutor,
    PartOpener,
    ReadingExecutor,
    read_ahead,
)
from powermeans.scale.parted_data import PartedData, open_data
from powermeans.scale.parted_rows import PartedPoints
from powermeans.scale.partition import Partition
from powermeans.system.attributes import cached_property
from powermeans.system.label_files import write_labels
from powermeans.types import FloatArray, Labels, Matrix, Part


class OpenedParts(PartedPoints):
    """The points of a source. Those of a fit are checked in a first pass; others wait to be read.

    As a context manager it closes the checkpoint.
    """

    _way_out = "pass open_data(..., columns=...) with the same in the same order"

    def __init__(self, source: Any, needs: Needs) -> None:
        self.source, self.needs = source, needs
        self.n_threads, self._last = needs.measure.n_threads, None
        self._journal: Journal | None = None
        self._largest = math.nan
        if needs.known is not None:
            needs.known.check(self.columns, self._way_out)
        elif not needs.fit.is_read_once:
            self._look()

    @property
    def columns(self) -> Columns:
        """The columns of the source."""
        given = self.source
        return Columns(given.n_features, given.feature_names, given.preparation)

    @cached_property
    def given(self) -> Given:  # type: ignore[override]
        known = (self.needs.known or self.columns).n_features
        n_features = self.n_features if known is None else known
        return Given(
            None,
            None,
            self.needs.measure,
            dtype=self.source.dtype,
            n_features=n_features,
            largest=self._largest,
            noted={**self.columns.noted(), "n_features_in_": n_features},
            source=self.source,
        )

    @cached_property
    def executor(self) -> Executor:  # type: ignore[override]
        return self._executor(self.source.partition(self.needs))

    def _look(self) -> None:
        """Check all points of a fit in a first pass, beside a checkpoint if one is wanted."""
        checkpoint = self.source.checkpoint
        if checkpoint is not None:
            checkpoint.refuse_rows(self.source)
        with ExitStack() as on_error:
            # Before a row is read, so that a file that cannot be written costs nothing.
            journal = open_journal(checkpoint, self.needs.fit.random_state)
            on_error.callback(close_journal, journal)
            partition = self.source.partition(self.needs)
            executor = self._executor(partition)
            self.executor = journaled(executor, journal, self.source.fingerprint)
            _ = self.n_points  # the first pass, in which every row is checked
            partition.facts = once(self.executor, "facts", partition.found)
            partition.check(self.needs.fit.n_points)
            self._journal, self._largest = journal, partition.facts.largest
            on_error.pop_all()

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

    def weighing(self, unit: float) -> Self:
        """Return the same points with weights times `unit`."""
        return type(self)(self.source.weighing(unit), self.needs)

    def stop_recording(self) -> None:
        if self._journal is not None:
            self._journal.leave()

    def __exit__(self, *error: object) -> None:
        close_journal(self._journal)


@assigned.register
def _assigned(
    points: OpenedParts, centers: FloatArray, known_inertia: float | None = None
) -> tuple[None, float]:
    return None, points.assignment(centers).inertia if known_inertia is None else known_inertia


@n_found.register
def _n_found(points: OpenedParts, centers: FloatArray, labels: Any) -> int:
    return int(np.count_nonzero(points.assignment(centers).is_used))


@predicted.register
def _predicted(
    points: OpenedParts, centers: Matrix, output: str | os.PathLike[str] | None = None
) -> Any:
    if output is None:
        raise ValueError(
            "the labels of rows that are read part by part may not fit into memory: pass "
            'predict(X, output="labels.npy"), and numpy.load what is written'
        )
    points.source.refuse_output(output)
    checked = check_centers(centers, points.given.n_features)
    labels: Iterator[Labels] = (found for found, _ in points.assigned(checked))
    if (is_used := points.source.is_used) is not None:
        labels = _of_every_row(labels, is_used)
    return write_labels(output, labels)


@distances.register
def _distances(points: OpenedParts, *others: Any) -> Any:
    raise _no_array("transform")


@shares.register
def _shares(points: OpenedParts, *others: Any) -> Any:
    raise _no_array("memberships")


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


def _no_array(method: str) -> ValueError:
    return ValueError(
        f"{method} returns an array with a row for each point, and none is made of points that are "
        "read part by part, as those of paths and chunks are: call it with some of the rows at a "
        "time, as an array"
    )


@open_points.register(Stream)
def _open_stream(X: Any, sample_weight: ArrayLike | None, needs: Needs) -> Points:
    data = X if isinstance(X, PartedData) else open_data(X)
    if sample_weight is not None:
        raise ValueError(
            "sample_weight is for arrays: weights of files are one of their columns, so pass "
            'open_data(..., weights="column"), and those of chunks come with them, as pairs'
        )
    data = data.read_for(needs)
    if (whole := data.whole()) is not None:
        points, weights = whole
        return _open_whole(data, points, weights, needs)
    if needs.refusals.parts is not None:
        raise not_in_parts(data.source.name, needs)
    return OpenedParts(data, needs)


def _open_whole(data: PartedData, points: Any, weights: Any, needs: Needs) -> Points:
    """Open the points of files as an array, with the columns that these have."""
    columns = Columns(points.shape[1], data.feature_names, data.preparation)
    fit, known = needs.fit, needs.known
    if data.preparation is not None:
        fit = replace(fit, warns_of_scales=False)
    if known is not None:
        known.check(columns, OpenedParts._way_out)
        known = replace(known, preparation=None)
    needs = replace(needs, estimator=None, fit=fit, known=known)
    try:
        rows = open_points(points, weights, needs)
    except ValueError as error:
        if isinstance(error, EntryError):
            data.explain(error)
        data.partition(needs).check(fit.n_points)  # says the same of the file and its rows
        raise
    rows.given = replace(rows.given, noted=columns.noted(), source=data)
    return rows
