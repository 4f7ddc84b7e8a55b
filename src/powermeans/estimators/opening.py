"""How what users pass becomes rows: arrays, tensors, paths, chunks and Dask collections."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import version
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted, validate_data

from powermeans.divergences import Divergence
from powermeans.errors import NotInPartsError
from powermeans.inputs.checks import (
    Admitted,
    admit,
    check_domain,
    wanted_form,
)
from powermeans.parts.checkpoint import (
    Claim,
    Journal,
    JournaledExecutor,
)
from powermeans.parts.executors import Executor, MemoryExecutor, PartOpener, ReadingExecutor
from powermeans.parts.parted_rows import PartedRows
from powermeans.rows import open_rows
from powermeans.rows.native import NativeRows
from powermeans.rows.on_device import admit_tensor, check_tensor, is_tensor, open_on_device
from powermeans.rows.protocol import Rows
from powermeans.sources import PartedData, Scaling, is_dask, is_parted, open_data
from powermeans.sources.opening import Checkpoint
from powermeans.sources.partition import Admission, Partition
from powermeans.sources.pass_clock import PassLines, Tell
from powermeans.types import FloatArray, Points, SparsePoints

MatrixLike = ArrayLike | SparsePoints | PartedData | Iterable[Any] | Callable[[], Iterable[Any]]


@dataclass(frozen=True, slots=True)
class TrainingData:
    """What a fit works on, as it left the border. Rows in parts have no array of all points.

    Those of Dask have the collection that their labels are to be computed of.
    """

    points: Points | SparsePoints
    weights: FloatArray | None
    rows: Rows
    parted: PartedData | None = None
    collection: Any = None


class RowsOpener:
    """What estimators of centers know of the executor where  points can be.

    A subclass says what a distance is and what may be missing; everything else is here.
    """

    n_clusters: int
    n_features_in_: int
    init: Any
    random_state: Any
    verbose: Any
    scaling_: Scaling | None

    def _n_needed(self) -> int:
        """How many points a fit needs at least, and how many of its clusters are to have some."""
        return self.n_clusters

    def _wanted_threads(self) -> int | None:
        """How many threads the user asks for; None leaves it to limits and environment."""
        return None

    def _divergence(self) -> Divergence:
        """What a distance is."""
        return "squared_euclidean"

    def _has_missing(self) -> bool:
        """Whether NaN stands for an entry that is missing."""
        return False

    def _takes_sparse(self) -> bool:
        """Whether points may be sparse."""
        return not self._has_missing()

    def _is_plain(self) -> bool:
        """Whether whole points are compared by squared Euclidean distances."""
        return not self._has_missing() and self._divergence() == "squared_euclidean"

    def _why_not_in_parts(self) -> str | None:
        """Why points cannot be read part by part; None where they can."""
        return f"{type(self).__name__} looks at all points at once"

    def _training_data(self, X: MatrixLike, sample_weight: ArrayLike | None) -> TrainingData:
        if is_parted(X):
            return self._parted_training_data(opened(X), sample_weight)
        absent: Any = None
        if is_dask(X):
            # A DataFrame may have a column of that name.
            if isinstance(checkpoint := getattr(X, "checkpoint", None), Checkpoint):
                self._claim(checkpoint)
            points = self._dask_points(X, sample_weight, reset=True)
            tell = self._told_of_passes()
            rows = self._open_on_dask(points, self._n_needed(), points.checkpoint, tell)
            self._note_columns(points, rows.n_features)
            return TrainingData(absent, None, rows, collection=points.array)
        data = self._admit(
            X, sample_weight, reset=True, n_clusters=self._n_needed(), must_differ=True
        )
        self.__dict__.pop("scaling_", None)
        return TrainingData(data.points, data.weights, self._open(data))

    def _parted_training_data(
        self, parted: PartedData, sample_weight: ArrayLike | None
    ) -> TrainingData:
        self._check_parted(parted, sample_weight)
        if parted.checkpoint is not None:
            parted.checkpoint.refuse_rows(parted)
            self._claim(parted.checkpoint)
        partition = parted.partition(self._admission())
        rows = self._open_parts(parted, partition, parted.checkpoint, self._told_of_passes())
        _ = rows.n_points  # the first pass, in which every row is checked
        if isinstance(rows.executor, JournaledExecutor):
            partition.facts = rows.executor.once("facts", partition.found)
        partition.check(self._n_needed())
        self._note_columns(parted, parted.n_features)
        absent: Any = None
        return TrainingData(absent, None, rows, parted)

    def _note_columns(self, opened: Any, n_features: int) -> None:
        """Once the points are admitted: those of a fit that is refused are nobody's."""
        self.n_features_in_, self.scaling_ = n_features, opened.scaling
        self.__dict__.pop("feature_names_in_", None)
        if opened.feature_names is not None:
            self.feature_names_in_ = np.asarray(opened.feature_names, dtype=object)

    def _check_parted(self, parted: PartedData, sample_weight: ArrayLike | None) -> None:
        if (reason := self._obstacle_to_parts()) is not None:
            raise NotInPartsError(
                f"{parted.source.name} is read part by part, but {reason}",
                "read it into one array first, for example with powermeans.tables.read_table",
            )
        if sample_weight is not None:
            raise ValueError(
                "sample_weight is for arrays: weights of files are one of their columns, so pass "
                'open_data(..., weights="column"), and those of chunks come with them, as pairs'
            )

    def _obstacle_to_parts(self) -> str | None:
        """Why points cannot be worked on part by part where they are asked to be."""
        return self._why_not_in_parts() if self._device() is None else self._why_not_on_device()

    def _admission(self) -> Admission:
        return Admission(self._divergence(), self._has_missing())

    def _opening(self) -> PartOpener:
        return PartOpener(self._divergence(), self._has_missing(), self._device())

    def _told_of_passes(self) -> Tell | None:
        """Who is told how far passes over rows in parts are: a callback that asks, or lines."""
        tell: Tell | None = getattr(getattr(self, "callback", None), "pass_goes_on", None)
        return PassLines() if tell is None and self.verbose else tell

    def _open_parts(
        self,
        parted: PartedData,
        partition: Partition,
        checkpoint: Checkpoint | None = None,
        tell: Tell | None = None,
    ) -> PartedRows:
        executor = MemoryExecutor if parted.is_in_memory else ReadingExecutor
        chunks: Any = partition.read() if parted.is_in_memory else partition
        opened: Executor = executor(
            chunks, self._opening(), n_threads=self._wanted_threads(), tell=tell
        )
        if checkpoint is not None:
            opened = self._journaled(opened, checkpoint, parted.fingerprint)
        return PartedRows(opened)

    def _claim(self, checkpoint: Checkpoint) -> None:
        """Hold the file of the checkpoint, before there is anything to write into it."""
        self._check_repeatable()
        self._claimed = Claim(checkpoint.path)

    def _journaled(
        self, executor: Executor, checkpoint: Checkpoint, fingerprint: Callable[[], str]
    ) -> Executor:
        how = executor.opener.fingerprint()
        of_fit = repr([version("powermeans"), fingerprint(), how])
        self._journal = Journal(
            self._claimed, checkpoint.seconds, of_fit, when_used=checkpoint.when_used
        )
        return JournaledExecutor(executor, self._journal)

    def _close_journal(self) -> None:
        """Let go of the checkpoint. A result that there is already is not lost for its sake."""
        journal: Journal | None = self.__dict__.pop("_journal", None)
        claimed: Claim | None = self.__dict__.pop("_claimed", None)
        try:
            if journal is not None:
                journal.close()
        except OSError as error:
            warnings.warn(
                f"{error.filename}: {error.strerror}. The fit itself is not touched by that",
                RuntimeWarning,
                stacklevel=3,
            )
        finally:
            if claimed is not None:
                claimed.release()

    def _check_repeatable(self) -> None:
        if not isinstance(self.random_state, Integral):
            raise ValueError(
                f"random_state={self.random_state!r} differs from run to run, and a fit that goes "
                "on from a checkpoint is the same fit once more: pass an int"
            )

    def _leave_journal(self) -> None:
        if (journal := self.__dict__.get("_journal")) is not None:
            journal.leave()

    def _admit(
        self,
        X: MatrixLike,
        sample_weight: ArrayLike | None = None,
        *,
        reset: bool = False,
        **requirements: Any,
    ) -> Admitted:
        if is_parted(X):
            self._check_parted(opened(X), None)
            raise ValueError("X is read part by part: call fit, predict or score with it")
        if not reset and not is_dask(X):
            self._refuse_unscaled()
        if is_tensor(X):
            return self._admit_tensor(X, sample_weight, reset, requirements)
        if is_dask(X):
            self._check_on_dask()
            raise ValueError(
                "X is a Dask collection, which only fit, predict, transform and score take: call "
                "this with X.compute(), or map it over the blocks with X.map_blocks"
            )
        points = validate_data(self, X, reset=reset, **wanted_form(X))
        names = getattr(self, "feature_names_in_", None)
        admitted = admit(
            points,
            sample_weight,
            feature_names=names,
            **{"has_missing": self._has_missing(), **requirements},
        )
        check_domain(admitted.points, self._divergence(), name=requirements.get("name", "X"))
        return admitted

    def _admit_tensor(
        self, X: Any, sample_weight: ArrayLike | None, reset: bool, requirements: dict[str, Any]
    ) -> Admitted:
        if (reason := self._why_not_on_device()) is not None:
            raise ValueError(
                f"X is a tensor, but {reason}: pass X.cpu().numpy(), which runs on the CPU"
            )
        check_tensor(X, self._device())
        if not reset and X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has the shape {tuple(X.shape)}, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        admitted = admit_tensor(
            X,
            sample_weight,
            device=self._device(),
            init=self.init if reset else None,
            n_clusters=requirements.get("n_clusters", 1),
            divergence=self._divergence(),
            must_differ=requirements.get("must_differ", False),
        )
        if reset:
            self.__dict__.pop("feature_names_in_", None)
            self.n_features_in_ = int(X.shape[1])
        return admitted

    def _why_not_on_device(self) -> str | None:
        """Why points cannot be tensors; None where they can."""
        if self._has_missing():
            return 'missing="observed" has no rows for tensors'
        if type(self)._why_not_in_parts is RowsOpener._why_not_in_parts:
            return f"{type(self).__name__} works on arrays alone"
        return self._why_not_in_parts()

    def _device(self) -> str | None:
        """The device of PyTorch that the user asks for; None leaves it to the points."""
        return None

    def _open(self, data: Admitted | TrainingData) -> Rows:
        if self._device() is not None or is_tensor(data.points):
            if (reason := self._why_not_on_device()) is not None:
                raise ValueError(
                    f"device={self._device()!r} cannot be had, since {reason}: leave device out"
                )
            return open_on_device(
                data.points, data.weights, device=self._device(), divergence=self._divergence()
            )
        return open_rows(
            data.points,
            data.weights,
            n_threads=self._wanted_threads(),
            divergence=self._divergence(),
            has_missing=self._has_missing(),
        )

    def _rows(self, X: MatrixLike, sample_weight: ArrayLike | None = None) -> Rows:
        """New points, for a fitted estimator."""
        if is_parted(X):
            return self._parted_rows(X, sample_weight)
        if is_dask(X):
            return self._open_on_dask(self._dask_points(X, sample_weight))
        check_is_fitted(self)
        rows = self._open(self._admit(X, sample_weight))
        if isinstance(rows, NativeRows):
            rows.expect_few_sweeps()
        return rows

    def _parted_rows(self, X: MatrixLike, sample_weight: ArrayLike | None = None) -> PartedRows:
        """New points that are read part by part, for a fitted estimator."""
        check_is_fitted(self)
        parted = opened(X)
        self._check_parted(parted, sample_weight)
        self._check_like_those_of_fit(parted)
        return self._open_parts(parted, parted.partition(self._admission()))

    def _check_like_those_of_fit(self, parted: PartedData) -> None:
        names, known = parted.feature_names, getattr(self, "feature_names_in_", None)
        if parted.n_features != self.n_features_in_ or (
            names is not None and known is not None and list(names) != list(known)
        ):
            raise ValueError(
                f"X has {parted.n_features} columns, {list(names or [])[:20]}, and the estimator "
                f"was fitted with {self.n_features_in_}, "
                f"{[] if known is None else list(known)[:20]}: pass open_data(..., columns=...) "
                "with the same in the same order"
            )
        self._check_scaled_alike(parted)

    def _check_scaled_alike(self, opened: Any) -> None:
        scaling = getattr(self, "scaling_", None)
        if scaling is not None and not scaling.equals(opened.scaling):
            raise ValueError(
                "the estimator was fitted with scaled columns and X is not scaled in the same "
                "way: pass open_data(..., scale=model.scaling_)"
            )
        # Centers from elsewhere may be those of points that had been scaled.
        if scaling is None and hasattr(self, "inertia_") and opened.scaling is not None:
            raise ValueError(
                "the estimator was fitted without scaling and X is opened with it: leave scale "
                "out of open_data(...), or, where the points of the fit had been scaled like that, "
                "ask type(model).from_centers(model.cluster_centers_)"
            )

    def _refuse_unscaled(self) -> None:
        if getattr(self, "scaling_", None) is not None:
            raise ValueError(
                "the estimator was fitted with scaled columns, and X is an array that does not "
                "say how it is scaled: pass open_data(X, scale=model.scaling_), or ask "
                "type(model).from_centers(model.cluster_centers_) about model.scaling_.transform(X)"
            )

    def _check_on_dask(self) -> None:
        if (reason := self._obstacle_to_parts()) is not None:
            raise ValueError(
                f"X is a Dask collection, whose partitions are worked on one by one, but {reason}: "
                "pass X.compute(), if it fits into memory"
            )

    def _dask_points(self, X: Any, sample_weight: Any = None, *, reset: bool = False) -> Any:
        """Points in a Dask collection, with the columns of those of the fit, or for a fit."""
        self._check_on_dask()
        from powermeans.sources.dask import DaskPoints

        if isinstance(X, DaskPoints) and sample_weight is not None:
            raise ValueError(
                "sample_weight is for a Dask collection itself, and X is opened already: pass "
                "open_data(..., weights=sample_weight)"
            )
        points = X if isinstance(X, DaskPoints) else DaskPoints(X, sample_weight)
        if reset:
            return points
        check_is_fitted(self)
        names, known = points.feature_names, getattr(self, "feature_names_in_", None)
        if points.n_features not in (None, self.n_features_in_) or (
            names is not None and known is not None and list(names) != list(known)
        ):
            raise ValueError(
                f"X has {points.n_features} columns, {list(names or [])[:20]}, and the estimator "
                f"was fitted with {self.n_features_in_}, "
                f"{[] if known is None else list(known)[:20]}: pass the same in the same order"
            )
        self._check_scaled_alike(points)
        return points

    def _open_on_dask(
        self,
        points: Any,
        n_clusters: int = 1,
        checkpoint: Checkpoint | None = None,
        tell: Tell | None = None,
    ) -> PartedRows:
        from powermeans.parts.dask import DaskExecutor

        executor = DaskExecutor(
            points, self._opening(), n_threads=self._wanted_threads(), tell=tell
        )
        executor.check(n_clusters)
        if checkpoint is not None:
            return PartedRows(self._journaled(executor, checkpoint, executor.fingerprint))
        return PartedRows(executor)


def opened(X: MatrixLike) -> PartedData:
    """Rows in parts, opened if they are not."""
    return X if isinstance(X, PartedData) else open_data(X)
