"""Rows of a Dask array or DataFrame, in their partitions."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import dask
import dask.array
import dask.local
import dask.system
import numpy as np
from dask.base import get_scheduler
from numpy.typing import ArrayLike

from powermeans.points.checks.parts import check_part
from powermeans.scale.arrays import admitted, admitted_weights
from powermeans.scale.named_columns import places_of
from powermeans.system.containers import is_dask
from powermeans.system.extensions import extension
from powermeans.types import Part


class DaskPoints:
    """A Dask array or DataFrame, not cut along its columns, and weights for its rows.

    Weights are cut in the same places, or both have partitions of known lengths.
    """

    name = "X"

    def __init__(
        self,
        data: Any,
        sample_weight: ArrayLike | None = None,
        *,
        checkpoint: Any = None,
        preparation: Any = None,
        is_prepared: bool = False,
    ) -> None:
        self.checkpoint, self.preparation = checkpoint, preparation
        self.feature_names: tuple[str, ...] | None = None
        if _is_frame(data):
            self.feature_names = tuple(map(str, data.columns))
        if not is_prepared and (preparation is not None or _has_words(data)):
            data, self.preparation = prepared(data, preparation)
            self.feature_names = tuple(map(str, self.preparation.get_feature_names_out()))
        self.array = _as_array(data, "X")
        if self.array.ndim != 2:
            raise ValueError(
                f"X is a Dask array of {self.array.ndim} dimensions: pass one of rows and "
                "columns, for example X.reshape(-1, 1) or X.reshape(1, -1)"
            )
        if self.array.numblocks[1] != 1:
            raise ValueError(
                f"X is cut along its columns into {self.array.numblocks[1]} chunks, and a "
                "distance needs all columns of a row: pass X.rechunk({1: -1})"
            )
        self._weights = sample_weight

    @property
    def n_features(self) -> int | None:
        """Number of columns; None if it takes a computation."""
        n_features = self.array.shape[1]
        return None if math.isnan(n_features) else int(n_features)

    @property
    def dtype(self) -> np.dtype[np.floating[Any]]:
        """Float32 or float64."""
        is_narrow = self.array.dtype in (np.float16, np.float32)
        return np.dtype(np.float32 if is_narrow else np.float64)

    @property
    def n_rows(self) -> int | None:
        """Number of rows; None if it takes a computation."""
        n_rows = self.array.shape[0]
        return None if math.isnan(n_rows) else int(n_rows)

    def read(self) -> Iterator[Part]:
        """Compute the partitions one after the other, check them, and yield them here."""
        for number, (delayed_points, delayed_weights) in enumerate(self.blocks()):
            where = f"X in partition {number}"
            given, given_weights = computed([delayed_points, delayed_weights])
            points = admitted(given, where, None)
            weights = admitted_weights(given_weights, points.shape[0], where)
            check_part(points, weights, name=where)
            yield points, weights

    def blocks(self) -> list[tuple[Any, Any]]:
        """Return the delayed points and weights of each partition."""
        # Optimization would drop annotations, such as how often a failing task is tried again.
        points = list(self.array.to_delayed(optimize_graph=False).ravel())
        if self._weights is None:
            return [(block, None) for block in points]
        weights = self._weights_like_the_points(self._weights)
        return list(zip(points, weights.to_delayed().ravel(), strict=True))

    def weighing(self, unit: float) -> DaskPoints:
        """Return the same points with weights times `unit`."""
        assert self._weights is not None, "points without weights count as they are"
        weights = self._weights_like_the_points(self._weights) * unit
        how: dict[str, Any] = {"preparation": self.preparation, "is_prepared": True}
        found = DaskPoints(self.array, weights, **how)
        found.checkpoint, found.feature_names = self.checkpoint, self.feature_names
        return found

    def _weights_like_the_points(self, given: Any) -> Any:
        lengths = self.array.chunks[0]
        are_known = not any(math.isnan(length) for length in lengths)
        if not is_dask(given):
            given = self._weights_in_memory(given, are_known)
        weights = _as_array(given, "sample_weight")
        if weights.ndim != 1:
            raise ValueError(
                f"sample_weight has {weights.ndim} dimensions: pass one weight for each row of X"
            )
        of_weights = weights.chunks[0]
        if are_known and not any(math.isnan(length) for length in of_weights):
            if sum(of_weights) != sum(lengths):
                raise ValueError(
                    f"sample_weight has the shape ({sum(of_weights)},): pass one weight for each "
                    f"of the {sum(lengths)} rows of X"
                )
            return weights.rechunk((lengths,))
        if len(of_weights) != len(lengths):
            raise ValueError(
                f"X has {len(lengths)} partitions of unknown lengths and sample_weight has "
                f"{len(of_weights)}: cut both in the same places"
            )
        return weights

    def _weights_in_memory(self, given: Any, are_known: bool) -> Any:
        if not are_known:
            raise ValueError(
                "the lengths of the partitions of X are unknown, so an array of weights cannot be "
                "cut in the same places: pass a Dask array or Series with the partitions of X, or "
                "call X.compute_chunk_sizes() first"
            )
        n_points = int(self.array.shape[0])
        weights = np.full(n_points, given) if np.ndim(given) == 0 else np.asarray(given)
        return dask.array.from_array(weights, chunks=-1)


def open_dask(
    source: Any,
    columns: Sequence[str] | None,
    weights: Any,
    *,
    dtype: np.dtype[np.floating[Any]] | None,
    checkpoint: Any,
    prepare: Any = None,
) -> DaskPoints:
    """Return a Dask collection as `powermeans.open_data` opens it."""
    named = columns if columns is not None else weights if isinstance(weights, str) else None
    if named is not None and not hasattr(source, "columns"):
        raise ValueError(
            f"{'weights' if columns is None else 'columns'}={named!r} names columns, and a Dask "
            "array has none with names: pass a Dask DataFrame, or X[:, numbers] and an array of "
            "weights"
        )
    chosen = source
    if named is not None:
        of_weights = weights if isinstance(weights, str) else None
        places = places_of(columns, of_weights, [str(name) for name in source.columns], "X")
        labels = [source.columns[place] for place in places]
        if of_weights is not None:
            weights = source[labels.pop()]
        chosen = source[labels]
    if dtype is not None:
        chosen = chosen.astype(dtype)
    how: dict[str, Any] = {"checkpoint": checkpoint, "preparation": prepare}
    return DaskPoints(chosen, weights, **how)


def _is_frame(data: Any) -> bool:
    return type(data).__module__.startswith(("dask.dataframe", "dask_expr"))


def _has_words(data: Any) -> bool:
    """Return whether a DataFrame has columns of anything but numbers."""
    dtypes = data.dtypes if _is_frame(data) else ()
    return any(getattr(dtype, "kind", "O") not in "biuf" for dtype in dtypes)


def prepared(data: Any, prepare: Any) -> tuple[Any, Any]:
    """Return the points of a DataFrame as a Dask array, and what prepares each partition."""
    parts = list(np.ravel(data.to_delayed()))
    points_of, preparation = extension("partitions")(lambda: (p.compute() for p in parts), prepare)
    shape = (math.nan, len(preparation.get_feature_names_out()))
    blocks = [
        dask.array.from_delayed(block, shape, np.float64)
        for block in delayed(points_of, ((part,) for part in parts))
    ]
    return dask.array.concatenate(blocks), preparation


def _as_array(data: Any, name: str) -> Any:
    if isinstance(data, dask.array.Array):
        return data
    if _is_frame(data):
        return data.to_dask_array()
    raise TypeError(
        f"{name} is a {type(data).__module__}.{type(data).__name__}: pass a Dask array or DataFrame"
    )


# Tasks, which Dask runs in this process or on the workers of the current client.


def delayed(function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Return a task for each tuple of arguments, which may contain other tasks."""
    call = dask.delayed(function, pure=False)
    return [call(*of_one) for of_one in arguments]


def computed(tasks: Sequence[Any]) -> tuple[Any, ...]:
    """Return the results of tasks and collections."""
    with warnings.catch_warnings():
        # The graph carries the centers once. Dask advises to scatter large ones, but they would be
        # lost with the worker that holds them, and the fit with them.
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        results: tuple[Any, ...] = dask.compute(*tasks, optimize_graph=False)
    return results


def client_of(array: Any) -> Any | None:
    """Return the client that Dask uses for an array; None if tasks run in this process."""
    if "distributed" not in sys.modules:
        return None
    import distributed

    client = getattr(get_scheduler(collections=[array]), "__self__", None)
    if not isinstance(client, distributed.Client):
        return None
    if client.asynchronous:
        raise ValueError(
            "the Dask client is asynchronous, and a fit waits for what it asks for: make it with "
            "Client(..., asynchronous=False)"
        )
    return client


def n_tasks_here() -> int:
    """Return how many tasks the calling process, perhaps a worker, runs at a time."""
    if "distributed" in sys.modules:
        import distributed

        try:
            return int(distributed.get_worker().state.nthreads)
        except ValueError:  # this process is no worker
            pass
    if get_scheduler() is dask.local.get_sync:
        return 1
    return int(dask.config.get("num_workers", None) or dask.system.CPU_COUNT)
