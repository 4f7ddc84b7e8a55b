"""Opening: from what users pass as points to data that a fit works on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from powermeans.divergences import Divergence
from powermeans.engine.anneal import Callback
from powermeans.errors import NotInPartsError
from powermeans.points.checks.centers import check_centers
from powermeans.points.checks.narrow import dtype_of_centers
from powermeans.points.checks.points import (
    Admitted,
    admit,
    check_domain,
    explained,
    exponent_to_square,
    wanted_form,
)
from powermeans.points.checks.scales import warn_of_unlike_scales
from powermeans.points.compiled import NativeRows
from powermeans.points.kinds import open_rows
from powermeans.points.protocol import Rows
from powermeans.points.used_columns import UsedColumns
from powermeans.scale import PartedData, Scaling, open_data
from powermeans.scale.checkpoint import Recording
from powermeans.scale.executors import Executor, MemoryExecutor, PartOpener, ReadingExecutor, Tell
from powermeans.scale.kinds import Kind, kind_of
from powermeans.scale.parted_rows import PartedRows
from powermeans.scale.partition import Admission, Partition
from powermeans.system.host_memory import is_tensor
from powermeans.types import FloatArray, Points, SparsePoints

MatrixLike = ArrayLike | SparsePoints | PartedData | Iterable[Any] | Callable[[], Iterable[Any]]


# What is asked of points.


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of some points.

    Attributes
    ----------
    scaling : Scaling or None
        What is done to them.
    is_scaling_known : bool
        Whether None says that nothing is done to them.
    """

    n_features: int | None
    names: tuple[str, ...] | None
    scaling: Scaling | None
    is_scaling_known: bool = True

    def check(self, new: Columns, way_out: str) -> None:
        """Raise where new points have other columns, or are scaled in another way."""
        are_other = None not in (self.n_features, new.n_features) and (
            new.n_features != self.n_features
        )
        if are_other or (None not in (self.names, new.names) and new.names != self.names):
            raise ValueError(
                f"X has {new.n_features} columns, {list(new.names or [])[:20]}, and the estimator "
                f"was fitted with {self.n_features}, {list(self.names or [])[:20]}: {way_out}"
            )
        if self.scaling is not None and not self.scaling.equals(new.scaling):
            raise ValueError(
                "the estimator was fitted with scaled columns and X is not scaled in the same "
                "way: pass open_data(..., scale=model.scaling_)"
            )
        if self.scaling is None and self.is_scaling_known and new.scaling is not None:
            raise ValueError(
                "the estimator was fitted without scaling and X is opened with it: leave scale "
                "out of open_data(...), or, where the points of the fit had been scaled like that, "
                "ask type(model).from_centers(model.cluster_centers_)"
            )

    def refuse_unscaled(self) -> None:
        """Raise where new points in an array cannot say that they are scaled."""
        if self.scaling is not None:
            raise ValueError(
                "the estimator was fitted with scaled columns, and X is an array that does not "
                "say how it is scaled: pass open_data(X, scale=model.scaling_), or ask "
                "type(model).from_centers(model.cluster_centers_) about model.scaling_.transform(X)"
            )

    def check_width(self, n_features: int, name: str) -> None:
        """Raise where new points have another number of features, as scikit-learn does."""
        if self.n_features is not None and n_features != self.n_features:
            raise ValueError(
                f"X has {n_features} features, but {name} is expecting {self.n_features} features "
                "as input"
            )


def open_array(
    points: Points | SparsePoints, weights: FloatArray | None, spec: OpeningSpec
) -> Rows:
    """Return the rows of an array or a tensor that has been admitted."""
    if is_tensor(points):
        from powermeans.tensors import open_tensor

        return open_tensor(points, weights, divergence=spec.divergence)
    return open_rows(
        points,
        weights,
        n_threads=spec.n_threads,
        divergence=spec.divergence,
        has_missing=spec.has_missing,
        n_columns=spec.n_columns,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OpeningSpec:
    """What an estimator or a function asks of points, and how they become rows."""

    name: str  # of the estimator or function, for errors
    estimator: Any = None  # where scikit-learn keeps names and number of the features of arrays
    divergence: Divergence = "squared_euclidean"
    has_missing: bool = False
    weighs_features: bool = False
    takes_narrow: bool = False  # points of whole bytes or half floats as they are, if plain
    n_threads: int | None = None
    n_needed: int = 1  # the least number of points
    must_differ: bool = False  # whether squared distances among points must not vanish
    warns_of_scales: bool = False  # whether columns in unlike units deserve a warning
    leaves_out_columns: bool = False  # of a sparse fit, where they have no entry
    n_columns: int | None = None  # of the points, where some are left out
    why_whole: str | None = None  # why entries may not be missing
    why_not_in_parts: str | None = None
    why_no_tensor: str | None = None
    known: Columns | None = None  # of the fit, for new points; None for a fit
    as_wide_as: Points | None = None  # centers to compare with, which may take float64
    input_name: str = "X"
    init: Any = None  # a tensor must be where the points are
    random_state: Any = None  # an int where a checkpoint is wanted
    tell: Tell | None = None  # is told how far each pass over parts is
    open_array: Callable[[Any, FloatArray | None, OpeningSpec], Rows] = open_array

    @property
    def is_plain(self) -> bool:
        """Whether whole points are compared by squared Euclidean distances."""
        is_squared = self.divergence == "squared_euclidean"
        return is_squared and not self.has_missing and not self.weighs_features

    @property
    def keeps_narrow(self) -> bool:
        """Whether narrow points stay as they are."""
        return self.takes_narrow and self.is_plain

    def for_new(self, known: Columns) -> OpeningSpec:
        """Return what is asked of new points, given the columns of those of the fit."""
        return replace(
            self, known=known, n_needed=1, must_differ=False, warns_of_scales=False, tell=None
        )

    def for_blocks(self) -> OpeningSpec:
        """Return what is asked of blocks of points that were opened here; it can be pickled."""
        known = Columns(None if self.known is None else self.known.n_features, None, None)
        return replace(self.for_new(known), estimator=None, init=None, random_state=None)


# What there is to work on.


class _WithAllColumns:
    """Data whose rows have all columns of the points of the user."""

    __slots__ = ()

    def of_used_columns(self, centers: FloatArray) -> FloatArray:
        """Return centers with the columns that the rows have."""
        return centers

    def of_all_columns(self, centers: Any) -> Any:
        """Return centers of these rows with the columns of the points of the user."""
        return centers

    def showing_all_columns(self, watch: Callback) -> Callback:
        """Return the same callback, told of centers with the columns of the points of the user."""
        return watch


@dataclass(frozen=True, slots=True)
class InMemory(_WithAllColumns):
    """Points in one array or tensor."""

    points: Points | SparsePoints
    weights: FloatArray | None
    rows: Rows

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype for centers."""
        return self.rows.dtype if is_tensor(self.points) else dtype_of_centers(self.points.dtype)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.points.shape[1])

    def labels(self, centers: FloatArray) -> Any:
        """Return the label of the nearest center of each point."""
        return self.assign(centers)[0]

    def inertia(self, centers: FloatArray) -> float:
        """Return the inertia of the centers."""
        return self.assign(centers)[1]

    def assign(self, centers: FloatArray, known_inertia: float | None = None) -> tuple[Any, float]:
        """Return labels and inertia."""
        return self.rows.assign(centers)

    def n_found(self, centers: FloatArray, labels: Any) -> int:
        """Return how many clusters have points, given the labels of all points."""
        is_found = np.zeros(len(centers), dtype=bool)
        is_found[labels] = True  # unlike bincount without a copy of the labels
        return int(np.count_nonzero(is_found))

    def stop_recording(self) -> None:
        """Do nothing: only passes over parts are recorded."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return


@dataclass(frozen=True, slots=True)
class InUsedColumns(InMemory):
    """Sparse points of a fit without the columns that have no entry."""

    columns: UsedColumns
    opened_whole: Callable[[], Rows]

    @property
    def n_features(self) -> int:
        """Number of columns, with those that are left out."""
        return self.columns.n_columns

    def assign(self, centers: FloatArray, known_inertia: float | None = None) -> tuple[Any, float]:
        """Return labels and inertia from all columns, with the bits of predictions."""
        return self.opened_whole().assign(self.columns.all_of(centers))

    def of_used_columns(self, centers: FloatArray) -> FloatArray:
        """Return centers with the columns that the rows have."""
        return self.columns.of_centers(centers)

    def of_all_columns(self, centers: Any) -> Any:
        """Return centers of these rows with the columns of the points of the user."""
        return self.columns.all_of(centers)

    def showing_all_columns(self, watch: Callback) -> Callback:
        """Return the same callback, told of centers with the columns of the points of the user."""
        return self.columns.shown_to(watch)


@dataclass(frozen=True, slots=True)
class InParts(_WithAllColumns):
    """Points that are read part by part. As a context manager it closes the checkpoint."""

    rows: PartedRows
    source: Any  # PartedData or DaskPoints
    columns: Columns
    largest: float  # the largest magnitude; NaN where no point has been looked at
    recording: Recording

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype for centers."""
        found: np.dtype[Any] = self.source.dtype
        return found

    @property
    def n_features(self) -> int:
        """Number of columns."""
        known = self.columns.n_features
        return self.rows.n_features if known is None else known

    def labels(self, centers: FloatArray) -> Any:
        """Return None: the labels may not fit into memory."""
        return None

    def inertia(self, centers: FloatArray) -> float:
        """Return the inertia of the centers."""
        return self.rows.assignment(centers).inertia

    def assign(self, centers: FloatArray, known_inertia: float | None = None) -> tuple[Any, float]:
        """Return labels and inertia; an inertia that is known saves a pass."""
        inertia = self.inertia(centers) if known_inertia is None else known_inertia
        return self.labels(centers), inertia

    def n_found(self, centers: FloatArray, labels: Any) -> int:
        """Return how many centers are nearest to some point."""
        return int(np.count_nonzero(self.rows.assignment(centers).is_used))

    def stop_recording(self) -> None:
        """Write no more into the checkpoint."""
        self.recording.leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.recording.close()


@dataclass(frozen=True, slots=True)
class OnDask(InParts):
    """Points in a Dask collection."""

    spec: OpeningSpec

    def labels(self, centers: FloatArray) -> Any:
        """Return the labels as a Dask array that is not computed yet."""
        return lazy_labels(self.source.array, centers, self.spec)


Data = InMemory | InParts
"""The points of a fit, wherever they are."""


def in_memory(data: Data) -> InMemory:
    """Return the same data, of an estimator that takes no others."""
    assert isinstance(data, InMemory), "points in parts are refused when they are opened"
    return data


def lazy_labels(array: Any, centers: ArrayLike, spec: OpeningSpec) -> Any:
    """Return the labels of the points in a Dask array, not computed yet."""
    from powermeans.scale.dask_executor import mapped

    return mapped(array, _BlockLabels(centers, spec.for_blocks()), dtype=np.int32)


@dataclass(frozen=True, slots=True)
class _BlockLabels:
    centers: Any
    spec: OpeningSpec

    def __call__(self, block: Any) -> Any:
        data = open_points(block, None, self.spec)
        return data.labels(check_centers(self.centers, data.n_features))


# Opening.


def open_points(X: MatrixLike, sample_weight: ArrayLike | None, spec: OpeningSpec) -> Data:
    """Return points as data to work on, or raise where they are not as specified."""
    match kind_of(X):
        case Kind.PARTS:
            return _open_parts(opened(X, sample_weight, spec), spec)
        case Kind.DASK:
            return _open_on_dask(opened(X, sample_weight, spec), spec)
        case _:
            return _open_in_memory(admit_points(X, sample_weight, spec), spec)


def opened(X: Any, sample_weight: ArrayLike | None, spec: OpeningSpec) -> Any:
    """Return the `PartedData` or `DaskPoints` of points that are worked on part by part."""
    if kind_of(X) is Kind.DASK:
        return _opened_dask(X, sample_weight, spec)
    source = X if isinstance(X, PartedData) else open_data(X)
    if (reason := spec.why_not_in_parts) is not None:
        raise NotInPartsError(
            f"{source.source.name} is read part by part, but {reason}",
            "read the rows into one array first, for example with powermeans.read_table",
        )
    if sample_weight is not None:
        raise ValueError(
            "sample_weight is for arrays: weights of files are one of their columns, so pass "
            'open_data(..., weights="column"), and those of chunks come with them, as pairs'
        )
    if spec.known is not None:
        way_out = "pass open_data(..., columns=...) with the same in the same order"
        spec.known.check(columns_of(source), way_out)
    return source


def _opened_dask(X: Any, sample_weight: ArrayLike | None, spec: OpeningSpec) -> Any:
    if (reason := spec.why_not_in_parts) is not None:
        raise ValueError(
            f"X is a Dask collection, whose partitions are worked on one by one, but {reason}: "
            "pass X.compute(), if it fits into memory"
        )
    from powermeans.scale.dask_points import DaskPoints  # which imports Dask

    if isinstance(X, DaskPoints) and sample_weight is not None:
        raise ValueError(
            "sample_weight is for a Dask collection itself, and X is opened already: pass "
            "open_data(..., weights=sample_weight)"
        )
    source = X if isinstance(X, DaskPoints) else DaskPoints(X, sample_weight)
    if spec.known is not None:
        spec.known.check(columns_of(source), "pass the same in the same order")
    return source


def columns_of(source: Any) -> Columns:
    """Return the columns of a `PartedData` or `DaskPoints`."""
    return Columns(source.n_features, source.feature_names, source.scaling)


def _open_parts(source: PartedData, spec: OpeningSpec) -> InParts:
    if spec.known is not None:
        rows = PartedRows(_executor(source, _partition(source, spec), spec))
        return InParts(rows, source, spec.known, math.nan, Recording(None))
    if source.checkpoint is not None:
        source.checkpoint.refuse_rows(source)
    with ExitStack() as on_error:
        # Before a row is read, so that a file that cannot be written costs nothing.
        recording = on_error.enter_context(Recording(source.checkpoint, spec.random_state))
        partition = _partition(source, spec)
        executor = recording.journaled(_executor(source, partition, spec), source.fingerprint)
        rows = PartedRows(executor)
        _ = rows.n_points  # the first pass, in which every row is checked
        facts = partition.facts = recording.once("facts", partition.found)
        partition.check(spec.n_needed)
        on_error.pop_all()
    return InParts(rows, source, columns_of(source), facts.largest, recording)


def _partition(source: PartedData, spec: OpeningSpec) -> Partition:
    return source.partition(Admission(spec.divergence, spec.has_missing, spec.keeps_narrow))


def _executor(source: PartedData, partition: Partition, spec: OpeningSpec) -> Executor:
    opener = PartOpener(spec.divergence, spec.has_missing)
    how: dict[str, Any] = {"n_threads": spec.n_threads, "tell": spec.tell}
    if source.is_in_memory:
        return MemoryExecutor(partition.read(), opener, **how)
    return ReadingExecutor(partition, opener, **how)


def _open_on_dask(source: Any, spec: OpeningSpec) -> OnDask:
    from powermeans.scale.dask_executor import DaskExecutor

    checkpoint = source.checkpoint if spec.known is None else None
    with ExitStack() as on_error:
        recording = on_error.enter_context(Recording(checkpoint, spec.random_state))
        opener = PartOpener(spec.divergence, spec.has_missing)
        executor = DaskExecutor(source, opener, n_threads=spec.n_threads)
        executor.check(spec.n_needed)
        rows = PartedRows(recording.journaled(executor, executor.fingerprint))
        columns = spec.known or replace(columns_of(source), n_features=rows.n_features)
        on_error.pop_all()
    return OnDask(rows, source, columns, executor.facts.largest, recording, spec)


def _open_in_memory(admitted: Admitted, spec: OpeningSpec) -> InMemory:
    if spec.known is None and spec.leaves_out_columns:
        columns = UsedColumns.of(admitted.points, spec.divergence, spec.init)
        if columns is not None:
            return _open_used_columns(admitted, columns, spec)
    rows = spec.open_array(admitted.points, admitted.weights, spec)
    if spec.known is not None and isinstance(rows, NativeRows):
        rows.expect_few_sweeps()
    return InMemory(admitted.points, admitted.weights, rows)


def _open_used_columns(
    admitted: Admitted, columns: UsedColumns, spec: OpeningSpec
) -> InUsedColumns:
    points, weights = columns.of_points(admitted.points), admitted.weights
    rows = spec.open_array(points, weights, replace(spec, n_columns=columns.n_columns))

    def opened_whole() -> Rows:
        whole = spec.open_array(admitted.points, weights, spec)
        if isinstance(whole, NativeRows):
            whole.expect_few_sweeps()
        return whole

    return InUsedColumns(points, weights, rows, columns, opened_whole)


def admit_points(X: MatrixLike, sample_weight: ArrayLike | None, spec: OpeningSpec) -> Admitted:
    """Return the points of an array or a tensor and their weights, checked."""
    kind = kind_of(X)
    if kind is Kind.PARTS:
        opened(X, None, replace(spec, known=None))
        raise ValueError("X is read part by part: call fit, predict or score with it")
    if kind is Kind.DASK:
        opened(X, None, replace(spec, known=None))
        raise ValueError(
            "X is a Dask collection, which only fit, predict, transform and score take: call "
            "this with X.compute(), or map it over the blocks with X.map_blocks"
        )
    if spec.known is not None:
        spec.known.refuse_unscaled()
    return (_admit_tensor if kind is Kind.TENSOR else admit_array)(X, sample_weight, spec)


def admit_array(
    X: Any, sample_weight: ArrayLike | None, spec: OpeningSpec, **form: Any
) -> Admitted:
    """Return the points of an array and their weights, checked.

    Parameters
    ----------
    **form
        For scikit-learn, beside `wanted_form`.
    """
    wanted, names = {**wanted_form(X, keeps_narrow=spec.keeps_narrow), **form}, None
    with explained(X, spec.input_name):
        if spec.estimator is None:
            points = check_array(X, input_name=spec.input_name, **wanted)
            if spec.known is not None:
                spec.known.check_width(points.shape[1], spec.name)
        else:
            points = validate_data(spec.estimator, X, reset=spec.known is None, **wanted)
            names = getattr(spec.estimator, "feature_names_in_", None)
    admitted = admit(
        points,
        sample_weight,
        n_clusters=spec.n_needed,
        name=spec.input_name,
        feature_names=names,
        must_differ=spec.must_differ,
        has_missing=spec.has_missing,
        offers_missing=hasattr(spec.estimator, "missing"),
        why_whole=spec.why_whole,
    )
    has_units = spec.divergence in ("squared_euclidean", "manhattan") and not spec.weighs_features
    if spec.warns_of_scales and has_units:
        warn_of_unlike_scales(admitted.points, names)
    check_domain(admitted.points, spec.divergence, name=spec.input_name)
    return admitted if spec.as_wide_as is None else wide_enough(admitted, spec.as_wide_as)


def _admit_tensor(X: Any, sample_weight: ArrayLike | None, spec: OpeningSpec) -> Admitted:
    reason = spec.why_no_tensor
    if spec.has_missing:
        reason = 'missing="observed" has no rows for tensors'
    if reason is not None:
        raise ValueError(
            f"X is a tensor, but {reason}: pass X.cpu().numpy(), which runs on the CPU"
        )
    from powermeans.tensors import admit_tensor, check_tensor

    check_tensor(X)
    if spec.known is not None:
        spec.known.check_width(int(X.shape[1]), spec.name)
    admitted = admit_tensor(
        X,
        sample_weight,
        init=spec.init if spec.known is None else None,
        n_clusters=spec.n_needed,
        divergence=spec.divergence,
        must_differ=spec.must_differ,
    )
    if spec.known is None and spec.estimator is not None:  # as scikit-learn does for arrays
        spec.estimator.__dict__.pop("feature_names_in_", None)
        spec.estimator.n_features_in_ = int(X.shape[1])
    return admitted


def wide_enough(admitted: Admitted, centers: Points) -> Admitted:
    """Return the points in float64 where they cannot be compared with the centers in float32."""
    dtype = admitted.points.dtype
    if dtype == np.float64 or np.asarray(centers).dtype == dtype:
        return admitted
    largest = float(np.abs(check_centers(centers, admitted.points.shape[1])).max())
    if exponent_to_square(largest, dtype) == 0:
        return admitted
    return replace(admitted, points=admitted.points.astype(np.float64))
