"""Points in the partitions of a Dask collection, which are worked on wherever Dask does so.

There is no code for a cluster here but Dask's own: each question is a graph of one task for each
partition, and of the additions that `powermeans.rows.places.added` asks for. A task that is lost
with its worker is run again by Dask, and gives the same bits.
"""

from __future__ import annotations

import math
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import dask
import dask.array
import dask.local
import dask.system
import numpy as np
from dask.base import get_scheduler
from numpy.typing import ArrayLike

from powermeans.input_checks import PartFacts, check_parts
from powermeans.rows.held import HeldPart, Report, hold, is_dask, report_on
from powermeans.rows.native import thread_limit
from powermeans.rows.places import Call, Opening, Result, added
from powermeans.threads import effective_n_threads

# A call of more bytes is sent once, and passed from worker to worker; a smaller one goes with each
# task, which saves a turn.
_BYTES_IN_A_TASK = 2**15
# Results are about as large as the call. If all of them together have no more bytes they come here
# to be added, which takes half the time of additions that are tasks of their own.
_BYTES_ADDED_HERE = 2**20
_SECONDS_TO_ANSWER = 10.0


class DaskPoints:
    """A Dask array or DataFrame, and weights for its rows.

    Parameters
    ----------
    data : dask.array.Array or dask.dataframe.DataFrame
        Not cut along its columns.
    sample_weight : Dask array or Series, or array-like, optional
        Cut where the data are, or of known lengths.
    """

    name = "X"

    def __init__(self, data: Any, sample_weight: ArrayLike | None = None) -> None:
        self.array = _as_array(data, "X")
        columns = getattr(data, "columns", None)
        self.feature_names = None if columns is None else tuple(map(str, columns))
        if self.array.ndim != 2:
            raise ValueError(
                f"X is a Dask array of {self.array.ndim} dimensions: pass one of rows and columns, "
                "for example X.reshape(-1, 1) or X.reshape(1, -1)"
            )
        if self.array.numblocks[1] != 1:
            raise ValueError(
                f"X is cut along its columns into {self.array.numblocks[1]} chunks, and a distance "
                "needs all columns of a row: pass X.rechunk({1: -1})"
            )
        self._weights = sample_weight

    @property
    def n_features(self) -> int | None:
        """Number of columns, where it is known before anything is computed."""
        n_features = self.array.shape[1]
        return None if math.isnan(n_features) else int(n_features)

    def blocks(self) -> list[tuple[Any, Any]]:
        """The points and weights of each partition, delayed."""
        points = list(self.array.to_delayed().ravel())
        if self._weights is None:
            return [(block, None) for block in points]
        weights = self._weights_like_the_points(self._weights)
        return list(zip(points, weights.to_delayed().ravel(), strict=True))

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


class DaskPlaces:
    """Partitions that Dask holds, each with its rows opened once by the process that has it.

    Parameters
    ----------
    data : DaskPoints
        Computed once, checked, and held until these places are forgotten. Empty partitions are
        left out.
    opening : Opening
    n_threads : int, optional
        For all that a process works on at a time. By default as many as a worker has, and without
        a cluster what `powermeans.threads.effective_n_threads` says.
    """

    def __init__(self, data: DaskPoints, opening: Opening, *, n_threads: int | None = None) -> None:
        self.opening = opening
        self._cluster = Cluster.of(data.array)
        n_workers = 1 if self._cluster is None else self._cluster.check()
        held = _held(data, opening)
        report = dask.delayed(report_on, pure=False)
        reports = self._computed([report(part) for part in held])
        facts = _facts_of(reports)
        self._facts, self.n_features = added(facts), reports[0].n_features
        self._parts = [part for part, fact in zip(held, facts, strict=True) if fact.n_points]
        if not self._parts:
            raise ValueError("X has no rows: pass some")
        per_worker = -(-len(self._parts) // max(1, n_workers))
        if self._cluster is None:
            n_threads = effective_n_threads(n_threads, thread_limit())
        self._threads = Threads(n_threads, per_worker, _tasks_at_once(self._cluster))

    def check(self, n_clusters: int = 1) -> None:
        """Raise where all rows together cannot be clustered."""
        check_parts(self._facts, n_features=self.n_features, n_clusters=n_clusters, name="X")

    def each(self, call: Call[Result], numbers: Sequence[int] | None = None) -> Iterator[Result]:
        """What a call gives for each part, all of them worked on at once."""
        chosen = range(len(self._parts)) if numbers is None else numbers
        return iter(self._computed(self._performed(_Sent(call), chosen)))

    def total(self, call: Call[Any]) -> Any:
        """What a call gives, added up here or, where that is much, by the workers."""
        sent = _Sent(call)
        performed = self._performed(sent, range(len(self._parts)))
        if sent.n_bytes * len(self._parts) <= _BYTES_ADDED_HERE:
            return added(self._computed(performed))
        return self._computed([added(performed)])[0]

    def _performed(self, sent: _Sent, numbers: Sequence[int]) -> list[Any]:
        is_passed_on = self._cluster is not None and sent.n_bytes > _BYTES_IN_A_TASK
        given: Any = dask.delayed(sent, pure=False) if is_passed_on else sent
        perform = dask.delayed(_perform, pure=False)
        return [perform(self._parts[number], given, number, self._threads) for number in numbers]

    def _computed(self, wanted: Sequence[Any]) -> Sequence[Any]:
        try:
            results: tuple[Any, ...] = dask.compute(*wanted, optimize_graph=False)
        except CancelledError as error:
            if self._cluster is None:
                raise
            raise self._cluster.lost(error) from error
        return results


@dataclass(frozen=True, slots=True)
class Cluster:
    """The scheduler that a client is connected to, and its workers."""

    client: Any

    @classmethod
    def of(cls, array: Any) -> Cluster | None:
        """The one that Dask would compute this with, if that is a cluster."""
        if "distributed" not in sys.modules:
            return None
        import distributed

        if any(future.client.status == "closed" for future in distributed.futures_of(array)):
            raise ConnectionError(
                "X is held by a cluster whose Client is closed: keep the Client open until the fit "
                "is done, or make X anew"
            )
        client = getattr(get_scheduler(collections=[array]), "__self__", None)
        return cls(client) if isinstance(client, distributed.Client) else None

    def check(self) -> int:
        """Raise where the scheduler does not answer, or a worker has another version of us.

        Returns
        -------
        int
            The number of workers.
        """
        if self.client.asynchronous:
            raise ValueError(
                "the Dask client is asynchronous, and a fit waits for what it asks for: make it "
                "with Client(..., asynchronous=False)"
            )
        ask = {"on_error": "return", "callback_timeout": _SECONDS_TO_ANSWER}
        try:
            found = self.client.sync(self.client.run, _version_finder(), **ask)
        except (OSError, RuntimeError, TimeoutError, CancelledError) as error:
            raise self.lost(error) from error
        others = {worker: there for worker, there in found.items() if there != _our_version()}
        if others:
            worker, there = next(iter(others.items()))
            has = "no powermeans" if there is None else f"powermeans {there}"
            raise RuntimeError(
                f"the worker at {worker} has {has} and this process has {_our_version()}, so its "
                f"sums may not be the same ({len(others)} of {len(found)} workers differ): install "
                f"powermeans=={_our_version()} there and start the workers anew"
            )
        return len(found)

    def lost(self, error: BaseException) -> ConnectionError:
        """What to tell where the scheduler is gone."""
        address = getattr(self.client.scheduler, "address", "an unknown address")
        return ConnectionError(
            f"the Dask scheduler at {address} does not answer ({type(error).__name__}: {error}): "
            "see whether it runs, and connect a new Client to it"
        )


@dataclass(frozen=True, slots=True)
class Threads:
    """How the threads of a process are shared by the tasks that it works on at a time.

    Attributes
    ----------
    budget : int, optional
        For all of them; None is what the worker has.
    n_parts : int
        How many parts a process has, on the average.
    n_tasks : int, optional
        How many tasks it can work on at a time; None is what the worker says.
    """

    budget: int | None
    n_parts: int
    n_tasks: int | None

    def of_a_task(self) -> int:
        """The share of one task, asked for where it runs."""
        n_tasks = self.n_tasks or _threads_of_this_worker()
        return max(1, (self.budget or n_tasks) // min(n_tasks, self.n_parts))


def mapped(
    data: Any, function: Callable[[Any], Any], *, dtype: Any, n_columns: int | None = None
) -> Any:
    """What a function gives of each partition, as a Dask array that is not computed yet.

    Parameters
    ----------
    data : Dask array or DataFrame
        Of rows and columns.
    function : callable
        From points, at least one, to an array with a row or a number for each of them. It can be
        pickled.
    dtype : dtype
        Of what it gives.
    n_columns : int, optional
        Of what it gives; None is one number for each point.

    Returns
    -------
    dask.array.Array
    """
    array = DaskPoints(data).array
    rows = array.chunks[0]
    nothing = np.empty((0,) if n_columns is None else (0, n_columns), dtype=dtype)
    shape: dict[str, Any] = {"chunks": (rows, (n_columns,))}
    if n_columns is None:
        shape = {"chunks": (rows,), "drop_axis": 1}
    return array.map_blocks(_of_block, function, nothing, dtype=dtype, meta=nothing, **shape)


def _of_block(block: Any, function: Any, nothing: Any, block_id: Any = None) -> Any:
    if not block.shape[0]:
        return nothing
    try:
        return np.asarray(function(block))
    except ValueError as error:
        number = 0 if block_id is None else block_id[0]
        raise ValueError(f"in partition {number}: {error}") from error


class _Sent:
    """What goes to the workers as it is, and is not searched for things to compute."""

    def __init__(self, content: Any) -> None:
        self.content = content
        self.n_bytes = len(pickle.dumps(content, protocol=pickle.HIGHEST_PROTOCOL))


def _perform(part: HeldPart, sent: _Sent, number: int, threads: Threads) -> Any:
    return part.perform(sent.content, number, threads.of_a_task())


def _hold(points: Any, weights: Any, sent: _Sent, name: str) -> HeldPart | Report:
    return hold(points, weights, sent.content, name)


def _held(data: DaskPoints, opening: Opening) -> Sequence[Any]:
    """The partitions, computed once and kept where Dask computed them."""
    holding, sent = dask.delayed(_hold, pure=False), _Sent(opening)
    parts: tuple[Any, ...] = dask.persist(
        *(
            holding(points, weights, sent, f"X in partition {number}")
            for number, (points, weights) in enumerate(data.blocks())
        )
    )
    return parts


def _facts_of(reports: Sequence[Report]) -> list[PartFacts]:
    """What was found in each partition, or the first of their faults."""
    first: tuple[int, Report] | None = None
    facts = []
    for number, report in enumerate(reports):
        if report.facts is None:
            assert report.fault is not None
            raise report.fault
        facts.append(report.facts)
        if not report.facts.n_points:
            continue
        first = first or (number, report)
        _check_alike(*first, number, report)
    return facts


def _check_alike(first_number: int, first: Report, number: int, report: Report) -> None:
    if report.n_features != first.n_features:
        raise ValueError(
            f"partition {number} of X has {report.n_features} columns and partition "
            f"{first_number} has {first.n_features}: make all partitions of the same columns"
        )
    if report.kind != first.kind:
        raise ValueError(
            f"partition {number} of X is {report.kind} and partition {first_number} is "
            f'{first.kind}: make all alike, for example with X.astype("float64")'
        )


def _tasks_at_once(cluster: Cluster | None) -> int | None:
    """How many tasks Dask works on at a time in this process, if it does so in this process."""
    if cluster is not None:
        return None
    if get_scheduler() is dask.local.get_sync:
        return 1
    return int(dask.config.get("num_workers", None) or dask.system.CPU_COUNT)


def _as_array(data: Any, name: str) -> Any:
    if isinstance(data, dask.array.Array):
        return data
    if type(data).__module__.startswith(("dask.dataframe", "dask_expr")):
        return data.to_dask_array()
    raise TypeError(
        f"{name} is a {type(data).__module__}.{type(data).__name__}: pass a Dask array or DataFrame"
    )


def _threads_of_this_worker() -> int:
    from distributed import get_worker

    return int(get_worker().state.nthreads)


def _version_finder() -> Callable[[], str | None]:
    """A function that travels whole, so that it runs where there is no powermeans."""

    def find() -> str | None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("powermeans")
        except PackageNotFoundError:
            return None

    return find


def _our_version() -> str:
    return version("powermeans")
