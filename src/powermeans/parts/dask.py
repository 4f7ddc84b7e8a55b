"""Points in the partitions of a Dask collection, which are worked on wherever Dask does so.

There is no code for a cluster here but Dask's own: each question is a graph of one task for each
partition, and of the additions that `powermeans.sums.added` asks for. A task that is lost
with its worker is run again by Dask, and gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, is_dataclass
from importlib.metadata import version
from typing import Any

import dask
import dask.local
import dask.system
import numpy as np
from dask.base import get_scheduler

from powermeans.inputs.checks import PartFacts, check_parts
from powermeans.parts.executors import Call, PartOpener, Result
from powermeans.parts.worker_part import Report, WorkerPart, fingerprint_of_part, hold, report_on
from powermeans.rows.native import thread_limit
from powermeans.sources.cluster import Cluster, Signal, Watch, computed, listener_of
from powermeans.sources.dask import DaskPoints
from powermeans.sources.pass_clock import Tell
from powermeans.sums import added
from powermeans.system.threads import effective_n_threads

# A call of more bytes is sent once, and passed from worker to worker; a smaller one goes with each
# task, which saves a turn.
_BYTES_IN_A_TASK = 2**15
# Results are about as large as the call. If all of them together have no more bytes they come here
# to be added, which takes half the time of additions that are tasks of their own.
_BYTES_ADDED_HERE = 2**20
# The names of the tasks of which there is one for each partition begin like that.
_SAYS_WHEN_DONE = ("_hold", "_perform", "_report")


class DaskExecutor:
    """Partitions that Dask holds, each with its rows opened once by the process that has it.

    Parameters
    ----------
    data : DaskPoints
        Computed once, checked, and held as long as this exists. Empty partitions are
        left out.
    n_threads : int, optional
        For all that a process works on at a time. By default as many as a worker has, and without
        a cluster what `powermeans.system.threads.effective_n_threads` says.
    tell : callable, optional
        Told how far each pass over all partitions is, every second or so.

    Attributes
    ----------
    facts : PartFacts
        What was found when all partitions were checked.
    """

    reads_each_time = False

    def __init__(
        self,
        data: DaskPoints,
        opener: PartOpener,
        *,
        n_threads: int | None = None,
        tell: Tell | None = None,
    ) -> None:
        self.opener = opener
        self._cluster = Cluster.of(data.array)
        n_workers = 1 if self._cluster is None else self._cluster.check()
        self._passes = None if tell is None else _Passes(tell, self._cluster)
        held = self._held(data)
        report, signal = dask.delayed(_report, pure=False), self._begin_pass(len(held))
        reports = self._computed([report(part, signal) for part in held])
        facts = _facts_of(reports)
        self.facts: PartFacts = added(facts)
        self.n_features = reports[0].n_features
        self._parts = [part for part, fact in zip(held, facts, strict=True) if fact.n_points]
        if not self._parts:
            raise ValueError("X has no rows: pass some")
        per_worker = -(-len(self._parts) // max(1, n_workers))
        if self._cluster is None:
            n_threads = effective_n_threads(n_threads, thread_limit())
        self._threads = Threads(n_threads, per_worker, _tasks_at_once(self._cluster))

    def _held(self, data: DaskPoints) -> Sequence[Any]:
        """The partitions, computed once and kept where Dask computed them."""
        blocks = data.blocks()
        self._begin_pass(len(blocks))
        with nullcontext() if self._passes is None else self._passes.heard_here():
            return _persisted(blocks, self.opener)

    def fingerprint(self) -> str:
        """Of all points and weights, where the workers have them, and of where they are cut."""
        digest = dask.delayed(fingerprint_of_part, pure=False)
        return " ".join(self._computed([digest(part) for part in self._parts]))

    def check(self, n_clusters: int = 1) -> None:
        """Raise where all rows together cannot be clustered."""
        check_parts(self.facts, n_features=self.n_features, n_clusters=n_clusters, name="X")

    def each(self, call: Call[Result], numbers: Sequence[int] | None = None) -> Iterator[Result]:
        """What a call gives for each part, all of them worked on at once."""
        return iter(self._computed(self._performed(_Sent(call), numbers)))

    def total(self, call: Call[Any]) -> Any:
        """What a call gives, added up here or, where that is much, by the workers."""
        sent = _Sent(call)
        performed = self._performed(sent, None)
        # What comes is about as large as what went, the centers, or as the call says.
        n_bytes = getattr(call, "n_bytes_given", sent.n_bytes)
        if n_bytes * len(self._parts) <= _BYTES_ADDED_HERE:
            return added(self._computed(performed))
        return self._computed([added(performed)])[0]

    def _performed(self, sent: _Sent, numbers: Sequence[int] | None) -> list[Any]:
        is_passed_on = self._cluster is not None and sent.n_bytes > _BYTES_IN_A_TASK
        given: Any = dask.delayed(sent, pure=False) if is_passed_on else sent
        perform = dask.delayed(_perform, pure=False)
        signal = self._begin_pass(len(self._parts)) if numbers is None else None
        return [
            perform(self._parts[number], given, number, self._threads, signal)
            for number in (range(len(self._parts)) if numbers is None else numbers)
        ]

    def _begin_pass(self, n_parts: int) -> Signal | None:
        return None if self._passes is None else self._passes.begin(n_parts)

    def _computed(self, wanted: Sequence[Any]) -> Sequence[Any]:
        watch = None if self._passes is None else self._passes.current
        return computed(wanted, self._cluster, watch)


class _Passes:
    """Passes over all partitions, of which one is on at a time, and who wants to know of them."""

    def __init__(self, tell: Tell, cluster: Cluster | None) -> None:
        self._tell = tell
        self._listener = None if cluster is None else listener_of(cluster)
        self.current: Watch | None = None

    def begin(self, n_parts: int) -> Signal | None:
        """What the workers of the next pass are to say; in this process they need not."""
        self.current = Watch(self._tell, n_parts, _SAYS_WHEN_DONE)
        return None if self._listener is None else self._listener.expect(self.current)

    def heard_here(self) -> AbstractContextManager[Any]:
        """While Dask works in this process."""
        if self._listener is not None or self.current is None:
            return nullcontext()
        return self.current.here()


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
        self.n_bytes = _n_bytes_in(content)


def _n_bytes_in(content: Any) -> int:
    """Of its arrays, which are all that makes a call large: nothing is pickled to find out."""
    if isinstance(content, np.ndarray):
        return int(content.nbytes)
    if isinstance(content, dict):
        return sum(map(_n_bytes_in, content.values()))
    if isinstance(content, list | tuple):
        return sum(map(_n_bytes_in, content))
    if is_dataclass(content):
        return sum(_n_bytes_in(getattr(content, field.name)) for field in fields(content))
    return 0


def _perform(
    part: WorkerPart, sent: _Sent, number: int, threads: Threads, signal: Signal | None
) -> Any:
    result = part.perform(sent.content, number, threads.of_a_task())
    _say(signal)
    return result


def _report(held: WorkerPart | Report, signal: Signal | None) -> Report:
    _say(signal)
    return report_on(held)


def _say(signal: Signal | None) -> None:
    if signal is not None:
        from distributed import get_worker

        get_worker().log_event(*signal)


def _hold(points: Any, weights: Any, sent: _Sent, name: str) -> WorkerPart | Report:
    opener, package_version = sent.content
    return hold(points, weights, opener, name, package_version)


def _persisted(blocks: Sequence[tuple[Any, Any]], opener: PartOpener) -> Sequence[Any]:
    holding = dask.delayed(_hold, pure=False)
    sent = _Sent((opener, version("powermeans")))
    parts: tuple[Any, ...] = dask.persist(
        *(
            holding(points, weights, sent, f"X in partition {number}")
            for number, (points, weights) in enumerate(blocks)
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


def _threads_of_this_worker() -> int:
    from distributed import get_worker

    return int(get_worker().state.nthreads)
