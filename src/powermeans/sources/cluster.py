"""Run Dask tasks in this process or on a cluster, wait for them, and follow their progress."""

from __future__ import annotations

import itertools
import sys
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import dask
import dask.local
import dask.system
from dask.base import get_scheduler
from dask.callbacks import Callback

from powermeans.system.timer import Tell

_SECONDS_TO_ANSWER = 10.0
_SECONDS_BETWEEN_QUESTIONS = 0.1
_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_TO_A_WARNING = 10.0
_TIMEOUT_OF_DASK = "distributed.scheduler.no-workers-timeout"
_TIMEOUT = "5 minutes"
# Names of the errors of that timeout in the versions of Dask.
_NO_WORKER_IN_TIME = ("NoValidWorkerError", "NoWorkerError")
_KILLED_TOO_MANY = "KilledWorker"


@dataclass(frozen=True, slots=True)
class Cluster:
    """The scheduler that a client is connected to, and its workers."""

    client: Any

    @classmethod
    def of(cls, array: Any) -> Cluster | None:
        """Return the cluster that Dask would use for this array, or None."""
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

    @property
    def address(self) -> str:
        """The address of the scheduler."""
        scheduler = self.client.scheduler
        return str(getattr(scheduler, "address", None) or self.client._start_arg)

    def check(self) -> int:
        """Return the number of workers; raise unless all answer and have this version."""
        if self.client.asynchronous:
            raise ValueError(
                "the Dask client is asynchronous, and a fit waits for what it asks for: make it "
                "with Client(..., asynchronous=False)"
            )
        found = self._versions()
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

    def _versions(self) -> dict[str, str | None]:
        """Return the versions that the workers have; raise unless all of them answer in time."""
        until = time.monotonic() + _SECONDS_TO_ANSWER
        while True:
            found = self._asked()
            silent = {
                worker: one for worker, one in found.items() if isinstance(one, BaseException)
            }
            if not silent:
                return found
            worker, error = next(iter(silent.items()))
            if not isinstance(error, OSError) or time.monotonic() > until:
                raise self.lost(error, worker) from error
            # A worker that has just died is asked until the scheduler forgets it.
            time.sleep(_SECONDS_BETWEEN_QUESTIONS)

    def _asked(self) -> dict[str, Any]:
        """Return the version that each worker has, or the error with which it does not answer."""
        ask = {"on_error": "return", "callback_timeout": _SECONDS_TO_ANSWER}
        try:
            found: dict[str, Any] = self.client.sync(self.client.run, _version_finder(), **ask)
        except (OSError, RuntimeError, TimeoutError, CancelledError) as error:
            raise self.lost(error) from error
        return found

    def computed(self, wanted: Sequence[Any], watch: Watch | None = None) -> Sequence[Any]:
        """Return the results of tasks, and wait as long as there are workers.

        Without workers, warn after some seconds, and raise after the time that
        ``distributed.scheduler.no-workers-timeout`` sets, or else after five minutes.
        """
        self.check_connection()
        try:
            with warnings.catch_warnings():
                # The graph carries the centers once. Dask advises to scatter large ones, but they
                # would be lost with the worker that holds them, and the fit with them.
                warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
                futures = self.client.compute(list(wanted), optimize_graph=False)
            results = self._gathered(futures, watch)
        except CancelledError as error:
            raise self.lost(error) from error
        except Exception as error:
            if (given_up := self._given_up(error)) is None:
                raise
            raise given_up from error
        return results

    def _given_up(self, error: Exception) -> Exception | None:
        """Return the error to raise where the scheduler gave a task up; None for other errors."""
        if type(error).__name__ == _KILLED_TOO_MANY:
            return RuntimeError(
                f"Dask workers died of the same partition again and again ({error}): mostly their "
                "memory is too small, so make partitions smaller, for example with X.rechunk or "
                "X.repartition, or give the workers more memory"
            )
        if type(error).__name__ in _NO_WORKER_IN_TIME:
            return TimeoutError(
                f"the Dask scheduler at {self.address} has no worker for this: start some and fit "
                f"again ({error})"
            )
        return None

    def _gathered(self, futures: Sequence[Any], watch: Watch | None) -> Sequence[Any]:
        """Return the results; ask again if they do not come, since their worker may have died."""
        seconds = _SECONDS_TO_ANSWER
        while True:
            self._wait_for(futures, watch)
            try:
                results: Sequence[Any] = self.client.sync(
                    self.client.gather, futures, callback_timeout=seconds
                )
                return results
            except TimeoutError:
                if any(future.status == "error" for future in futures):  # a task raised it
                    raise
                self.check_connection()
                seconds *= 2  # large results may take long

    def _wait_for(self, futures: Sequence[Any], watch: Watch | None) -> None:
        import distributed

        timeout = _WorkerTimeout(self)
        with self.client.as_current():
            while True:
                try:
                    distributed.wait(futures, timeout=_SECONDS_BETWEEN_LOOKS)
                    return
                except TimeoutError:
                    timeout.check()
                    if watch is not None:
                        watch.tell()

    def check_connection(self) -> None:
        """Raise if the client has lost its scheduler, which would never answer."""
        if self.client.status != "running":
            raise self.lost(ConnectionError(f"the client is {self.client.status}"))

    def n_workers(self) -> int | None:
        """Return the current number of workers; None if the scheduler does not answer."""
        try:
            ask = {"callback_timeout": _SECONDS_TO_ANSWER}
            return len(self.client.sync(self.client.scheduler.ncores, **ask))
        except (AttributeError, OSError, TimeoutError):
            return None

    def lost(self, error: BaseException, worker: str | None = None) -> ConnectionError:
        """Return the error for a scheduler, or a worker, that does not answer."""
        if worker is None:
            who, way_out = f"scheduler at {self.address}", "connect a new Client to it"
        else:
            who, way_out = f"worker at {worker}", "start it anew if not"
        return ConnectionError(
            f"the Dask {who} does not answer ({type(error).__name__}: {error}): see whether it "
            f"runs, and {way_out}"
        )


class _WorkerTimeout:
    """Measures how long a cluster has had no worker."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._since: float | None = None
        self._has_warned = False
        given = dask.config.get(_TIMEOUT_OF_DASK, None)
        self._setting = _TIMEOUT if given is None else given
        self._seconds = float(dask.utils.parse_timedelta(self._setting, default="s"))

    def check(self) -> None:
        """Warn after some seconds without workers, and raise after the timeout."""
        self._cluster.check_connection()
        if self._cluster.n_workers() != 0:
            self._since, self._has_warned = None, False
            return
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        waited, where = now - self._since, self._cluster.address
        if waited >= self._seconds:
            raise TimeoutError(
                f"the Dask scheduler at {where} has had no worker for {waited:.0f} seconds: start "
                f"workers and fit again, or wait longer with dask.config.set({{"
                f"{_TIMEOUT_OF_DASK!r}: ...}}), which is {self._setting!r} now"
            )
        if waited >= _SECONDS_TO_A_WARNING and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"the Dask scheduler at {where} has no worker, so this waits for one, up to "
                f"{self._setting}: start some, for example with `dask worker {where}`",
                RuntimeWarning,
                stacklevel=2,
            )


# Progress of a pass. In this process Dask calls back after each task. On a cluster each task logs
# an event, which the client receives.

Signal = tuple[str, int]
"""What workers log after each part: the topic of the client, and the number of the pass."""


class Watch:
    """Counts the completed tasks of a pass whose keys begin with one of these names."""

    def __init__(
        self, tell: Tell, n_tasks: int, names: tuple[str, ...], cluster: Cluster | None
    ) -> None:
        self._tell, self._n_tasks, self._names = tell, n_tasks, names
        self._n_done = self._n_reported = 0
        self.signal = None if cluster is None else _listener_of(cluster).expect(self)

    def count(self) -> None:
        """Count a task, which may run twice; any thread may call this."""
        self._n_done += 1

    def tell(self) -> None:
        """Report the number of completed tasks if it has grown."""
        if (n_done := min(self._n_done, self._n_tasks)) > self._n_reported:
            self._n_reported = n_done
            self._tell(n_done, self._n_tasks)

    def here(self) -> AbstractContextManager[Any]:
        """Return a context that counts the tasks of Dask in this process."""
        listening: AbstractContextManager[Any] = Callback(posttask=self._count_and_tell)
        return listening if self.signal is None else nullcontext()

    def _count_and_tell(self, key: Any, *more: Any) -> None:
        if str(key).startswith(self._names):
            self.count()
            self.tell()


class _Listener:
    """Receives the events of all passes of a client, by the number of the pass.

    Each client has one topic, since it keeps handlers, and the scheduler events, until it closes.
    """

    def __init__(self) -> None:
        self.topic = f"powermeans-passes-{uuid.uuid4()}"
        self._numbers = itertools.count()
        self._watches: WeakValueDictionary[int, Watch] = WeakValueDictionary()

    def expect(self, watch: Watch) -> Signal:
        """Return the signal for the workers of a pass; it counts as long as its watch exists."""
        number = next(self._numbers)
        self._watches[number] = watch
        return self.topic, number

    def hear(self, event: tuple[float, int]) -> None:
        """Count a task; the client calls this with the time and the number of the pass."""
        if (watch := self._watches.get(event[1])) is not None:
            watch.count()


_LISTENERS: WeakKeyDictionary[Any, _Listener] = WeakKeyDictionary()


def _listener_of(cluster: Cluster) -> _Listener:
    listener = _LISTENERS.setdefault(cluster.client, _Listener())
    # Subscribe each time, since a scheduler that was restarted has forgotten it.
    cluster.client.subscribe_topic(listener.topic, listener.hear)
    return listener


def send(signal: Signal | None) -> None:
    """Log on a worker that a task is done."""
    if signal is not None:
        from distributed import get_worker

        get_worker().log_event(*signal)


# Tasks.


def delayed(function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Return a task for each tuple of arguments, which may contain other tasks."""
    call = dask.delayed(function, pure=False)
    return [call(*of_one) for of_one in arguments]


def computed(
    wanted: Sequence[Any], cluster: Cluster | None, watch: Watch | None = None
) -> Sequence[Any]:
    """Return the results of tasks and collections from a cluster or, without one, this process."""
    if cluster is not None:
        return cluster.computed(wanted, watch)
    with nullcontext() if watch is None else watch.here():
        results: tuple[Any, ...] = dask.compute(*wanted, optimize_graph=False)
    return results


def persisted(tasks: Sequence[Any], watch: Watch | None = None) -> Sequence[Any]:
    """Return tasks whose results stay where Dask computes them."""
    with nullcontext() if watch is None else watch.here():
        kept: tuple[Any, ...] = dask.persist(*tasks)
    return kept


def n_tasks_at_once(cluster: Cluster | None) -> int | None:
    """Return how many tasks Dask runs at a time in this process; None for a cluster."""
    if cluster is not None:
        return None
    if get_scheduler() is dask.local.get_sync:
        return 1
    return int(dask.config.get("num_workers", None) or dask.system.CPU_COUNT)


def n_threads_of_this_worker() -> int:
    """Return how many tasks the calling worker runs at a time."""
    from distributed import get_worker

    return int(get_worker().state.nthreads)


def _version_finder() -> Callable[[], str | None]:
    """Return a function that Dask pickles by value, so that it runs without powermeans."""

    def find() -> str | None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("powermeans")
        except PackageNotFoundError:
            return None

    return find


def _our_version() -> str:
    return version("powermeans")
