"""What estimators share that learn from a stream as well as from all points at once."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from powermeans.center_estimator import CenterEstimator, MatrixLike, TrainingData
from powermeans.input_checks import Admitted
from powermeans.rows import open_rows
from powermeans.types import FloatArray

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
    n_points : int
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
    def _describe(self, learned: Learned) -> None:
        """Put what a stream has taught on the estimator, but for the centers."""

    def partial_fit(
        self, X: MatrixLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from the next chunk of a stream.

        Memory does not grow with the stream. The first points are held back until there are
        `init_size` of them, from which the centers begin; before that the centers are those of the
        points so far, brought up to date now and then, and there are none while there are fewer
        than `n_clusters` points. After `fit`, the chunk continues what that has learned. If this is
        interrupted, or raises, the chunk has taught nothing.

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
            `labels_` and `inertia_` are those of this chunk.
        """
        self._validate_params()
        stream = self._stream_so_far()
        admitted = self._admit(X, sample_weight, reset=stream is None)
        here = self._opened(admitted)
        learned: Learned | None
        if stream is None or isinstance(stream, _Waiting):
            stream = self._joined_by(stream or _Waiting(), admitted)
            learned = stream.learned if isinstance(stream, _Waiting) else stream
        else:
            stream = learned = self._learn(stream, here)
        self._stream = stream
        if learned is not None:
            self._publish(learned, here)
        return self

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

    def _publish(self, learned: Learned, data: TrainingData) -> None:
        centers = learned.centers.astype(data.points.dtype)
        self.labels_, self.inertia_ = data.rows.assign(centers.astype(np.float64))
        self.cluster_centers_ = centers
        self._describe(learned)

    def _training_data(self, X: MatrixLike, sample_weight: ArrayLike | None) -> TrainingData:
        self.__dict__.pop("_stream", None)
        return super()._training_data(X, sample_weight)

    def _opened(self, points: Admitted | TrainingData) -> TrainingData:
        """Points to be looked at once or twice."""
        rows = open_rows(points.points, points.weights, n_threads=self.n_threads, swept_often=False)
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
