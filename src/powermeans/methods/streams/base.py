"""The base of estimators that learn from a stream or from all points at once."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils._param_validation import Interval

from powermeans.engine.anneal import Result
from powermeans.engine.fit import Fit, random_numbers
from powermeans.engine.seeds.initial import Seeds
from powermeans.methods.base import CenterEstimator
from powermeans.points.checks.points import Admitted, admit
from powermeans.points.needs import Measure, Needs
from powermeans.points.opening import (
    MatrixLike,
    given_by,
    open_batch,
    open_points,
    wide_enough,
    wide_if_far,
)
from powermeans.points.protocol import Points
from powermeans.system.attributes import forget, remember
from powermeans.system.containers import to_array
from powermeans.system.saved_classes import saved
from powermeans.types import FloatArray, Part


class HasCenters(Protocol):
    """What a stream has taught so far."""

    @property
    def centers(self) -> FloatArray:
        """Return the centers in float64, (n_centers, n_features)."""


Learned = TypeVar("Learned", bound=HasCenters)


@saved
@dataclass(frozen=True, slots=True)
class Waiting(Generic[Learned]):
    """The first chunks of a stream, held back until there are enough points to begin."""

    _state = "chunks: any n_points: count learned: _Counted|_Remembered? n_seen: count"

    chunks: tuple[Admitted, ...] = ()  # without the points that have no weight
    n_points: int = 0
    learned: Learned | None = None  # provisionally, from the first `n_seen` points
    n_seen: int = 0

    def as_one_chunk(self) -> Waiting[Learned]:
        """Join the chunks; the stream then continues bit-identically."""
        return replace(self, chunks=(Admitted.joined(self.chunks),)) if self.chunks else self

    def checked(self, attributes: Mapping[str, Any]) -> Waiting[Learned]:
        """Return the same with its one chunk admitted as inputs are; raise if it contradicts."""
        (chunk,), learned = self.chunks, self.learned
        kind = "_Counted" if "counts_" in attributes else "_Remembered"
        is_consistent = (
            chunk.points.shape == (self.n_points, attributes["n_features_in_"])
            and self.n_points >= self.n_seen
            and (learned is None) == ("cluster_centers_" not in attributes)
            and type(learned).__name__ in ("NoneType", kind)
            and chunk.points.dtype in (np.float32, np.float64)
        )
        if not is_consistent:
            raise ValueError("its stream contradicts itself")
        is_sparse = sparse.issparse(chunk.points)
        points = chunk.points if is_sparse else np.ascontiguousarray(chunk.points)
        return replace(self, chunks=(admit(points, chunk.weights),))


class StreamEstimator(CenterEstimator, Generic[Learned]):
    """Base of estimators with `partial_fit`. A subclass defines how to begin and to go on."""

    _state = "n_steps_: count"

    _why_whole = "A center keeps one running weight, and would need another in each column"

    init_size: int | None
    n_threads: int | None
    _stream: Learned | Waiting[Learned]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CenterEstimator._parameter_constraints,
        "init_size": [Interval(Integral, 1, None, closed="left"), None],
    }

    @abc.abstractmethod
    def _n_awaited(self) -> int:
        """Return the number of points to wait for."""

    @abc.abstractmethod
    def _from(self, centers: FloatArray) -> Learned:
        """Return the state before the first point, given centers."""

    @abc.abstractmethod
    def _begin(self, points: Points, fit: Fit) -> Learned:
        """Learn from the first points."""

    @abc.abstractmethod
    def _learn(self, learned: Learned, points: Points) -> Learned:
        """Learn from further points."""

    @abc.abstractmethod
    def _described(self, learned: Learned) -> dict[str, Any]:
        """Return the attributes that describe the state, except the centers."""

    def _chunks_of(self, part: Admitted) -> Iterator[Admitted]:
        """Split a part into the chunks of `partial_fit`."""
        yield part

    def partial_fit(
        self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from the next chunk of a stream.

        Memory does not grow with the stream. The first points are collected until there are
        `init_size` of them, and the centers begin there. Until then the centers are provisional,
        updated now and then, and there are none while there are fewer than `n_clusters` points.
        Points without weight do not count. After `fit`, the chunk continues from what `fit` has
        learned. If a call is interrupted or raises, the chunk has taught nothing.

        `powermeans.save` saves a stream at any moment. If `random_state` is an int, the loaded
        stream then continues bit-identically.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), path or PartedData
            The points of the chunk. Rows that are read in parts need not fit into memory: each
            part is one chunk or several. Chunks before an error have taught.
        y, sample_weight
            As in `fit`.

        Returns
        -------
        self
            `labels_` and `inertia_` are those of this chunk. If X is read in parts, there is no
            `labels_`, and `inertia_` is the sum over the parts, each at the centers after it.
            `n_iter_`, `n_relocated_` and `history_` stay as the last `fit` left them.
        """
        self._validate_params()
        self._refuse_another_number()
        self._refuse_checkpoint(X)
        opened = open_points(X, sample_weight, self._chunk_needs())
        if opened.parts is not None:
            self._learn_from_parts(opened)
            return self
        given = opened.given
        noted = given.noted if self._stream_so_far() is None else None  # of files
        found = self._advanced(Admitted(given.array, given.weights, given.largest))
        if "cluster_centers_" in found:
            found |= self._at_home(found, X, opened)
        remember(self, {**found, **(noted or {})})
        return self

    def _learn_from_parts(self, opened: Any) -> None:
        """Learn from one part after the other, and keep what they taught if a later one fails."""
        stream, of_data = self._stream_so_far(), opened.columns.noted()
        if stream is None:
            forget(self, "feature_names_in_")
        else:
            of_data.pop("feature_names_in_", None)
        inertia, n_chunks = 0.0, 0
        for part in that_weigh(opened.read()):
            of_data["n_features_in_"] = int(part[0].shape[1])
            for chunk in self._chunks_of(self._admitted_part(part)):
                found = self._advanced(chunk)
                n_chunks += 1
                if "inertia_" in found:
                    inertia = found["inertia_"] = inertia + found["inertia_"]
                # The labels of one part are not those of X.
                found.pop("labels_", None)
                forget(self, "labels_")
                remember(self, {**found, **of_data})
        if not n_chunks:
            raise ValueError("all rows of X weigh nothing: give some row a positive weight")

    def _admitted_part(self, part: Part) -> Admitted:
        points, weights = part
        if self._stream_so_far() is not None:
            self._columns().check_width(points.shape[1], type(self).__name__)
        admitted = admit(points, weights)
        centers = getattr(self, "cluster_centers_", None)
        return admitted if centers is None else wide_enough(admitted, centers)

    def _refuse_checkpoint(self, given: Any) -> None:
        if getattr(given, "checkpoint", None) is not None:
            raise ValueError(
                f"{type(self).__name__} writes no checkpoint of its own: leave checkpoint out of "
                "open_data(...), and powermeans.save the model between calls of partial_fit, from "
                "which it goes on with the same bits"
            )

    def _advanced(self, admitted: Admitted) -> dict[str, Any]:
        stream = self._stream_so_far()
        here, dtype = self._opened(admitted), self._widest(stream, admitted)
        if stream is None or isinstance(stream, Waiting):
            stream = self._joined_by(stream or Waiting(), admitted)
        else:
            stream = self._learn(stream, here)
        learned = stream.learned if isinstance(stream, Waiting) else stream
        public = {} if learned is None else self._public(learned, here, dtype)
        if self.verbose:
            how = f"inertia {public['inertia_']}" if public else "not used yet"
            print(f"Chunk of {here.n_points} points, {how}.")
        return {**public, "_stream": stream}

    def _refuse_another_number(self) -> None:
        n_centers = len(to_array(getattr(self, "cluster_centers_", ())))
        if n_centers not in (0, self.n_clusters):
            raise ValueError(
                f"n_clusters={self.n_clusters}, but the stream goes on from {n_centers} centers: "
                f"set n_clusters={n_centers}, or begin anew with fit or sklearn.base.clone"
            )

    def _widest(self, stream: Learned | Waiting[Learned] | None, chunk: Admitted) -> np.dtype[Any]:
        """Return the dtype that holds the points of all chunks so far."""
        before = stream.chunks if isinstance(stream, Waiting) else ()
        dtypes = [chunk.points.dtype for chunk in (*before, chunk)]
        if hasattr(self, "cluster_centers_"):
            dtypes.append(np.asarray(to_array(self.cluster_centers_)).dtype)
        return np.result_type(*dtypes)

    def _stream_so_far(self) -> Learned | Waiting[Learned] | None:
        if hasattr(self, "_stream"):
            return self._stream
        if hasattr(self, "cluster_centers_"):
            return self._from(self._centers(self.n_features_in_))
        return None

    def _joined_by(self, waiting: Waiting[Learned], chunk: Admitted) -> Learned | Waiting[Learned]:
        """Begin if there are enough points; otherwise begin provisionally, or wait."""
        if chunk.weights is not None and not chunk.weights.all():
            chunk = chunk.at(np.flatnonzero(chunk.weights))
        chunks = (*waiting.chunks, chunk)
        n_points = waiting.n_points + chunk.points.shape[0]
        if n_points >= self._n_awaited():
            return self._beginning(chunks)
        kept = (*waiting.chunks, chunk.copied())
        # The centers of a waiting stream are worth another look once there are 5 points for 4.
        if n_points < max(self.n_clusters, 1.25 * waiting.n_seen):
            return Waiting(kept, n_points, waiting.learned, waiting.n_seen)
        return Waiting(kept, n_points, self._beginning(chunks), n_points)

    def _beginning(self, chunks: Sequence[Admitted]) -> Learned:
        fit = Fit(random_numbers(self.random_state))
        fit.seeds = Seeds(self.init, self.n_clusters)
        return self._begin(self._opened(Admitted.joined(chunks)), fit)

    def _public(self, learned: Learned, points: Points, dtype: np.dtype[Any]) -> dict[str, Any]:
        """Return the attributes that users see of the stream and of the chunk."""
        centers = learned.centers.astype(dtype)
        given = points.given
        wide = wide_enough(Admitted(given.array, given.weights, 0.0), centers)
        if wide.points is not given.array:
            points = self._opened(wide)
        labels, inertia = points.assign(centers.astype(np.float64))
        found = {"cluster_centers_": centers, "labels_": labels, "inertia_": inertia}
        return found | self._described(learned)

    def _needs(self) -> Needs:
        # Later chunks may have entries in other columns.
        needs = super()._needs().of_a_fit(leaves_out_columns=False)
        reason = f"{type(self).__name__} learns from batches with the compiled core"
        return needs.refusing(parts=None, tensors=reason)

    def _fitted_needs(self) -> Needs:
        return replace(super()._fitted_needs(), as_wide_as=getattr(self, "cluster_centers_", None))

    def _chunk_needs(self) -> Needs:
        if self._stream_so_far() is None:
            return self._needs().of_a_fit(n_points=1, must_differ=False, is_read_once=True)
        return self._fitted_needs()

    def _open(self, X: MatrixLike, sample_weight: ArrayLike | None, fit: Fit) -> Points:
        self._refuse_checkpoint(X)
        points = super()._open(X, sample_weight, fit)
        forget(self, "_stream")  # kept if the points are refused
        return points

    def _opened(self, admitted: Admitted, beside: Points | None = None) -> Points:
        """Open points for one sweep or two, with the threads of other rows if given."""
        wide = wide_if_far(admitted.points, admitted.largest)
        rows = open_batch(wide, admitted.weights, n_threads=self.n_threads, beside=beside)
        rows.given = given_by(admitted, Measure(n_threads=self.n_threads))
        return rows

    def _size_of_first(self, default: int) -> int:
        if self.init_size is not None and self.init_size < self.n_clusters:
            raise ValueError(
                f"init_size={self.init_size} is less than n_clusters={self.n_clusters}: pass at "
                "least that many, or None"
            )
        return self.init_size or default

    def _n_runs(self) -> int:
        return 1

    def _taught(self, result: Result, learned: Learned) -> Result:
        """Return the result with the attributes from which a stream goes on."""
        return result.with_attributes(**self._described(learned), _stream=learned)


def is_waiting(model: object) -> bool:
    """Return whether an estimator holds points back until it can begin."""
    return isinstance(getattr(model, "_stream", None), Waiting)


def that_weigh(parts: Iterator[Part]) -> Iterator[Part]:
    """Yield the parts that have rows with a weight."""
    for part in parts:
        if part[0].shape[0] and (part[1] is None or part[1].any()):
            yield part
        del part  # frees its memory before the next part is read
