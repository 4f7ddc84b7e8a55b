"""Points in the partitions of a Dask collection, wherever Dask keeps them.

Each call is a graph with one task for each partition, and additions by
`powermeans.mathematics.sums.added`.
If a worker is lost, Dask runs its tasks again, which gives the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from typing import Any

import dask
import numpy as np

from powermeans.mathematics.sums import added
from powermeans.points.checks.parts import PartFacts, check_parts
from powermeans.points.compiled import thread_limit
from powermeans.scale.dask_points import (
    DaskPoints,
    client_of,
    computed,
    delayed,
    n_tasks_here,
)
from powermeans.scale.executors import Call, PartOpener, Result
from powermeans.scale.worker_part import WorkerPart, make_worker_part
from powermeans.system.fingerprint import fingerprint
from powermeans.system.threads import effective_n_threads

# A larger call is a task of its own, whose result workers pass on; a smaller one is part of each
# task, which saves a round trip.
_BYTES_IN_A_TASK = 2**15
# Results of fewer bytes in all are added in this process, in half the time of additions that are
# tasks of their own.
_BYTES_ADDED_HERE = 2**20

Report = tuple[PartFacts, int, str]
"""The facts about a part, its number of columns and its kind."""


class DaskExecutor:
    """Works on partitions that Dask stores; the process that stores one opens its rows once.

    The partitions are computed once, checked, and stored as long as this exists; not empty ones.
    All tasks of a process share `n_threads`: by default those of the worker or, without a cluster,
    `powermeans.system.threads.effective_n_threads`.
    """

    reads_each_time = False

    def __init__(
        self, data: DaskPoints, opener: PartOpener, *, n_threads: int | None = None
    ) -> None:
        self.opener = opener
        client = client_of(data.array)
        self._is_on_cluster = client is not None
        made = dask.persist(*delayed(_make_part, self._given(data.blocks())))
        reports = computed(delayed(_report, [(part,) for part in made]))
        facts = _facts_of(reports)
        self.facts: PartFacts = added(facts)
        self.n_features = reports[0][1]
        self._parts = [part for part, fact in zip(made, facts, strict=True) if fact.n_points]
        if not self._parts:
            raise ValueError("X has no rows: pass some")
        if client is None:
            n_threads = effective_n_threads(n_threads, thread_limit())
        n_workers = 1 if client is None else max(1, len(client.nthreads()))
        self._threads = n_threads, -(-len(self._parts) // n_workers)

    def _given(self, blocks: Sequence[tuple[Any, Any]]) -> list[tuple[Any, ...]]:
        sent = _Sent((self.opener, version("powermeans")))
        return [
            (points, weights, sent, f"X in partition {number}")
            for number, (points, weights) in enumerate(blocks)
        ]

    def fingerprint(self) -> str:
        """Return the fingerprint of all points and weights, computed by the workers."""
        return " ".join(computed(delayed(_fingerprint, [(part,) for part in self._parts])))

    def check(self, n_clusters: int = 1) -> None:
        """Raise if all rows together cannot be clustered."""
        check_parts(self.facts, n_features=self.n_features, n_clusters=n_clusters, name="X")

    def each(self, call: Call[Result], numbers: Sequence[int] | None = None) -> Iterator[Result]:
        """Yield the result of a call on each part, once all of them are there."""
        return iter(computed(self._performed(_Sent(call), numbers)))

    def total(self, call: Call[Any]) -> Any:
        """Return the sum of the results of a call, which the workers add if they are large."""
        sent = _Sent(call)
        performed = self._performed(sent, None)
        # Unless the call tells the size of a result, it is about that of the centers in the call.
        n_bytes = getattr(call, "n_bytes_given", None) or sent.n_bytes
        if n_bytes * len(self._parts) <= _BYTES_ADDED_HERE:
            return added(computed(performed))
        return computed([added(performed)])[0]

    def _performed(self, sent: _Sent, numbers: Sequence[int] | None) -> list[Any]:
        is_passed_on = self._is_on_cluster and sent.n_bytes > _BYTES_IN_A_TASK
        given: Any = delayed(_itself, [(sent,)])[0] if is_passed_on else sent
        chosen = range(len(self._parts)) if numbers is None else numbers
        return delayed(_perform, [(self._parts[n], given, n, self._threads) for n in chosen])


def threads_of_a_task(n_tasks: int, budget: int | None, n_parts: int) -> int:
    """Return the share of a task in the budget of its process, None for one thread a task."""
    return max(1, (budget or n_tasks) // min(n_tasks, n_parts))


class _Sent:
    """Content that goes to the workers as it is: Dask does not search it for tasks."""

    def __init__(self, content: Any) -> None:
        self.content = content
        self.n_bytes = _n_bytes_in(content)


def _n_bytes_in(content: Any) -> int:
    """Return the bytes of the arrays in a call, without the time to pickle it."""
    if isinstance(content, np.ndarray):
        return int(content.nbytes)
    if isinstance(content, dict):
        return sum(map(_n_bytes_in, content.values()))
    if isinstance(content, list | tuple):
        return sum(map(_n_bytes_in, content))
    if is_dataclass(content):
        return sum(_n_bytes_in(getattr(content, field.name)) for field in fields(content))
    return 0


# Tasks, which run where a part is.


def _make_part(points: Any, weights: Any, sent: _Sent, name: str) -> WorkerPart | ValueError:
    opener, package_version = sent.content
    return make_worker_part(points, weights, opener, name, package_version)


def _report(part: WorkerPart | ValueError) -> Report | ValueError:
    return part if isinstance(part, ValueError) else (part.facts, part.n_features, part.kind)


def _fingerprint(part: WorkerPart) -> str:
    return fingerprint([part.points, part.weights])


def _itself(sent: _Sent) -> _Sent:
    return sent


def _perform(part: WorkerPart, sent: _Sent, number: int, threads: tuple[int | None, int]) -> Any:
    return part.perform(sent.content, number, threads_of_a_task(n_tasks_here(), *threads))


def _facts_of(reports: Sequence[Report | ValueError]) -> list[PartFacts]:
    """Return the facts about each partition, or raise the first fault."""
    facts, first = [], None
    for number, report in enumerate(reports):
        if isinstance(report, ValueError):
            raise report
        found, *kind = report
        facts.append(found)
        if not found.n_points:
            continue
        first = first or (number, kind)
        if kind != first[1]:
            raise ValueError(
                f"partition {number} of X has {kind[0]} columns of {kind[1]} and partition "
                f"{first[0]} has {first[1][0]} of {first[1][1]}: make all alike, for example with "
                'X.astype("float64")'
            )
    return facts
