"""What estimators share that learn from a stream as well as from all points at once."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from powermeans.center_estimator import CenterEstimator, MatrixLike, TrainingData
from powermeans.input_checks import Admitted, check_centers, exponent_to_square
from powermeans.rows import open_batch
from powermeans.rows.protocol import Rows
from powermeans.types import FloatArray, Points

# While points are awaited, the centers follow when there are so many times as many as last time.
_WORTH_ANOTHER_LOOK = 1.25


class HasCenters(Protocol):
    """What a stream has taught so far."""

    @property
    def centers(self) -> FloatArray:
        """In float64, (n_centers, n_features)."""
        ...


Learned = TypeVar("Learned", bound=HasCenters)


@dataclass(frozen=True, slots=True)
class _Waiting(Generic[Learned]):
    """The first chunks of a stream, while there are too few points to begin with.

    Attributes
    ----------
    chunks : tuple of Admitted
        Without the points that have no weight.
    n_points : int
        How many these are.
    learned : Learned or None
        For the time being, what the first `n_seen` points teach.
    n_seen : int
    """

    chunks: tuple[Admitted, ...] = ()
    n_points: int = 0
    learned: Learned | None = None
    n_seen: int = 0


class StreamEstimator(CenterEstimator, Generic[Learned]):
    """Base of estimators with `partial_fit`. A subclass says how to begin and how to go on."""

    init_size: int | None
    n_threads: int | None
    _stream: Learned | _Waiting[Learned]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CenterEstimator._parameter_constraints,
        "init_size": [Interval(Integral, 1, None, closed="left"), None],
        "n_threads": [Integral, None],
    }

    @abc.abstractmethod
    def _n_awaited(self) -> int:
        """How many points to begin with, unless there are fewer."""

    @abc.abstractmethod
    def _from(self, centers: FloatArray) -> Learned:
        """What is known before the first point, where there are centers."""

    @abc.abstractmethod
    def _begin(self, data: TrainingData, rng: np.random.RandomState) -> Learned:
        """What the first points teach."""

    @abc.abstractmethod
    def _learn(self, learned: Learned, data: TrainingData) -> Learned:
        """What further points teach."""

    @abc.abstractmethod
    def _described(self, learned: Learned) -> dict[str, Any]:
        """The attributes that say what a stream has taught, but for the centers."""

    def partial_fit(
        self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from the next chunk of a stream.

        Memory does not grow with the stream. The first points are held back until there are
        `init_size` of them, from which the centers begin; before that the centers are those of the
        points so far, brought up to date now and then, and there are none while there are fewer
        than `n_clusters` points. Points without weight do not count. After `fit`, the chunk
        continues what that has learned. If this is interrupted, or raises, the chunk has taught
        nothing.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The points of the chunk, one or more, as many features as in the first.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            As in `fit`.

        Returns
        -------
        self
            `labels_` and `inertia_` are those of this chunk. What tells of a fit stays as the last
            `fit` left it: `n_iter_`, `n_relocated_` and `history_`.
        """
        self._validate_params()
        self._refuse_another_number()
        stream = self._stream_so_far()
        admitted = self._admit(X, sample_weight, reset=stream is None)
        here, dtype = self._opened(admitted), self._widest(stream, admitted)
        if stream is None or isinstance(stream, _Waiting):
            stream = self._joined_by(stream or _Waiting(), admitted)
        else:
            stream = self._learn(stream, here)
        learned = stream.learned if isinstance(stream, _Waiting) else stream
        public = {} if learned is None else self._public(learned, here, dtype)
        if self.verbose:
            how = f"inertia {public['inertia_']}" if public else "held back"
            print(f"Chunk of {here.rows.n_points} points, {how}.")
        # In one step, which no interrupt divides.
        self.__dict__.update(public, _stream=stream)
        return self

    def _refuse_another_number(self) -> None:
        if not hasattr(self, "cluster_centers_"):
            return
        n_centers = len(self.cluster_centers_)
        if n_centers != self.n_clusters:
            raise ValueError(
                f"n_clusters={self.n_clusters}, but the stream goes on from {n_centers} centers: "
                f"set n_clusters={n_centers}, or begin anew with fit or sklearn.base.clone"
            )

    def _widest(self, stream: Learned | _Waiting[Learned] | None, chunk: Admitted) -> np.dtype[Any]:
        """The dtype that holds the points of all chunks so far."""
        before = stream.chunks if isinstance(stream, _Waiting) else ()
        dtypes = [chunk.points.dtype for chunk in (*before, chunk)]
        if hasattr(self, "cluster_centers_"):
            dtypes.append(np.asarray(self.cluster_centers_).dtype)
        return np.result_type(*dtypes)

    def _stream_so_far(self) -> Learned | _Waiting[Learned] | None:
        if hasattr(self, "_stream"):
            return self._stream
        if hasattr(self, "cluster_centers_"):
            return self._from(self._centers(self.n_features_in_))
        return None

    def _joined_by(
        self, waiting: _Waiting[Learned], chunk: Admitted
    ) -> Learned | _Waiting[Learned]:
        """Begin if there are enough points now; else begin for the time being, or wait."""
        chunk = _with_weight(chunk)
        chunks = (*waiting.chunks, chunk)
        n_points = waiting.n_points + chunk.points.shape[0]
        if n_points >= self._n_awaited():
            return self._beginning(chunks)
        # The user may use the memory again.
        kept = (*waiting.chunks, _copy(chunk))
        if n_points < max(self.n_clusters, _WORTH_ANOTHER_LOOK * waiting.n_seen):
            return _Waiting(kept, n_points, waiting.learned, waiting.n_seen)
        return _Waiting(kept, n_points, self._beginning(chunks), n_points)

    def _beginning(self, chunks: Sequence[Admitted]) -> Learned:
        return self._begin(self._opened(_joined(chunks)), check_random_state(self.random_state))

    def _public(self, learned: Learned, data: TrainingData, dtype: np.dtype[Any]) -> dict[str, Any]:
        """All that users see of what was learned, and of the chunk."""
        centers = learned.centers.astype(dtype)
        wide = _wide_enough(Admitted(data.points, data.weights, 0.0), centers)
        rows = data.rows if wide.points is data.points else self._opened(wide).rows
        labels, inertia = rows.assign(centers.astype(np.float64))
        return {
            "cluster_centers_": centers,
            "labels_": labels,
            "inertia_": inertia,
            **self._described(learned),
        }

    def _admit(
        self,
        X: MatrixLike,
        sample_weight: ArrayLike | None = None,
        *,
        reset: bool = False,
        **requirements: Any,
    ) -> Admitted:
        admitted = super()._admit(X, sample_weight, reset=reset, **requirements)
        if reset or not hasattr(self, "cluster_centers_"):
            return admitted
        return _wide_enough(admitted, self.cluster_centers_)

    def _training_data(self, X: MatrixLike, sample_weight: ArrayLike | None) -> TrainingData:
        self.__dict__.pop("_stream", None)
        return super()._training_data(X, sample_weight)

    def _opened(self, points: Admitted | TrainingData, beside: Rows | None = None) -> TrainingData:
        """Points to be looked at once or twice, by the threads of others if there are any."""
        rows = open_batch(points.points, points.weights, n_threads=self.n_threads, beside=beside)
        return TrainingData(points.points, points.weights, rows)

    def _size_of_first(self, default: int) -> int:
        if self.init_size is not None and self.init_size < self.n_clusters:
            raise ValueError(
                f"init_size={self.init_size} is less than n_clusters={self.n_clusters}: pass at "
                "least that many, or None"
            )
        return self.init_size or default

    def _wanted_runs(self) -> int:
        return 1

    def _wanted_threads(self) -> int | None:
        return self.n_threads


def _wide_enough(chunk: Admitted, centers: Points) -> Admitted:
    """In float64 where the centers, from other chunks, cannot be compared in float32."""
    dtype = chunk.points.dtype
    if dtype == np.float64 or np.asarray(centers).dtype == dtype:
        return chunk
    largest = float(np.abs(check_centers(centers, chunk.points.shape[1])).max())
    if exponent_to_square(largest, dtype) == 0:
        return chunk
    return replace(chunk, points=chunk.points.astype(np.float64))


def _with_weight(chunk: Admitted) -> Admitted:
    """Without the points that count for nothing."""
    if chunk.weights is None or chunk.weights.all():
        return chunk
    indices = np.flatnonzero(chunk.weights)
    return Admitted(chunk.points[indices], chunk.weights[indices], chunk.largest)


def _copy(chunk: Admitted) -> Admitted:
    weights = None if chunk.weights is None else chunk.weights.copy()
    return Admitted(chunk.points.copy(), weights, chunk.largest)


def _joined(chunks: Sequence[Admitted]) -> Admitted:
    """All points of some chunks; sparse where one of them is."""
    if len(chunks) == 1:
        return chunks[0]
    parts: list[Any] = [chunk.points for chunk in chunks]
    points: Any
    if any(sparse.issparse(part) for part in parts):
        points = sparse.vstack([sparse.csr_array(part) for part in parts], format="csr")
    else:
        points = np.concatenate(parts)
    weights = None
    if any(chunk.weights is not None for chunk in chunks):
        weights = np.concatenate([_weights(chunk) for chunk in chunks])
    return Admitted(points, weights, max(chunk.largest for chunk in chunks))


def _weights(chunk: Admitted) -> FloatArray:
    return np.ones(chunk.points.shape[0]) if chunk.weights is None else chunk.weights
