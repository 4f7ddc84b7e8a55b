"""The cluster that Dask works on, whether it is there, and waiting for what it computes."""

from __future__ import annotations

import itertools
import sys
import time
import uuid
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import dask
from dask.base import get_scheduler
from dask.callbacks import Callback

from powermeans.sources.pass_clock import Tell

_SECONDS_TO_ANSWER = 10.0
_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_TO_A_WARNING = 10.0
_TIMEOUT_OF_DASK = "distributed.scheduler.no-workers-timeout"
_TIMEOUT = "5 minutes"
# Errors of tasks, where the scheduler has that setting too; not each version of Dask has both.
_GIVEN_UP_BY_THE_SCHEDULER = ("NoValidWorkerError", "NoWorkerError")


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

    @property
    def address(self) -> str:
        """Where the scheduler is, or was."""
        scheduler = self.client.scheduler
        return str(getattr(scheduler, "address", None) or self.client._start_arg)

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
        for worker, there in found.items():
            if isinstance(there, BaseException):
                raise self.lost(there, worker) from there
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

    def computed(self, wanted: Sequence[Any], watch: Watch | None = None) -> Sequence[Any]:
        """What is wanted, computed while there are workers to do so.

        Without any a warning says so after some seconds, and an error once Dask's own
        ``distributed.scheduler.no-workers-timeout`` is over, or five minutes where it is not set.
        """
        self.check_connection()
        try:
            futures = self._begun(wanted)
            self._wait_for(futures, watch)
            results: Sequence[Any] = self.client.gather(futures)
        except CancelledError as error:
            raise self.lost(error) from error
        except Exception as error:
            if type(error).__name__ not in _GIVEN_UP_BY_THE_SCHEDULER:
                raise
            raise TimeoutError(
                f"the Dask scheduler at {self.address} has no worker for this: start some and fit "
                f"again ({error})"
            ) from error
        return results

    def _begun(self, wanted: Sequence[Any]) -> Sequence[Any]:
        with warnings.catch_warnings():
            # Centers go along with the graph, once. What is scattered instead, as Dask advises
            # for many, is gone with the worker that has it, and the fit along with it.
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            futures: Sequence[Any] = self.client.compute(list(wanted), optimize_graph=False)
        return futures

    def _wait_for(self, futures: Sequence[Any], watch: Watch | None) -> None:
        import distributed

        timeout = _WorkerTimeout(self)
        with self.client.as_current():
            while True:
                try:
                    distributed.wait(futures, timeout=_SECONDS_BETWEEN_LOOKS)
                    return
                except TimeoutError:
                    timeout.look()
                    if watch is not None:
                        watch.look()

    def check_connection(self) -> None:
        """Raise where the client has lost its scheduler: it would wait for what nobody does."""
        if self.client.status != "running":
            raise self.lost(ConnectionError(f"the client is {self.client.status}"))

    def n_workers(self) -> int | None:
        """How many there are now; None where the scheduler does not say."""
        try:
            ask = {"callback_timeout": _SECONDS_TO_ANSWER}
            return len(self.client.sync(self.client.scheduler.ncores, **ask))
        except (AttributeError, OSError, TimeoutError):
            return None

    def lost(self, error: BaseException, worker: str | None = None) -> ConnectionError:
        """What to tell where the scheduler is gone, or a worker of it."""
        if worker is None:
            who, way_out = f"scheduler at {self.address}", "connect a new Client to it"
        else:
            who, way_out = f"worker at {worker}", "start it anew if not"
        return ConnectionError(
            f"the Dask {who} does not answer ({type(error).__name__}: {error}): see whether it "
            f"runs, and {way_out}"
        )


class Watch:
    """Counts the tasks of a pass that are done, and tells of them now and then.

    Parameters
    ----------
    tell : callable
        See `powermeans.sources.pass_clock.Tell`.
    n_tasks : int
        How many there are.
    names : tuple of str
        What the keys of these tasks begin with.
    """

    def __init__(self, tell: Tell, n_tasks: int, names: tuple[str, ...]) -> None:
        self._tell, self._n_tasks, self._names = tell, n_tasks, names
        self._n_done = self._n_told = 0

    def hear(self) -> None:
        """A task is done; it may be told of by another thread, and twice if it was done twice."""
        self._n_done += 1

    def look(self) -> None:
        """Tell what is new."""
        if (n_done := min(self._n_done, self._n_tasks)) > self._n_told:
            self._n_told = n_done
            self._tell(n_done, self._n_tasks)

    def here(self) -> AbstractContextManager[Any]:
        """While Dask works in this process, it says itself what is done."""
        listening: AbstractContextManager[Any] = Callback(posttask=self._hear_and_look)
        return listening

    def _hear_and_look(self, key: Any, *more: Any) -> None:
        if str(key).startswith(self._names):
            self.hear()
            self.look()


Signal = tuple[str, int]
"""What workers say once they are done with a part: the topic of the client, and of which pass."""


class Listener:
    """Hears what the workers say of all passes of a client, each of which has a number.

    There is one for each client, and one topic: a client keeps whom it tells of a topic until it is
    closed, and the scheduler what was said, so that a topic for each fit would never go.
    """

    def __init__(self) -> None:
        self.topic = f"powermeans-passes-{uuid.uuid4()}"
        self._numbers = itertools.count()
        self._watches: WeakValueDictionary[int, Watch] = WeakValueDictionary()

    def expect(self, watch: Watch) -> Signal:
        """Return what the workers of a pass call to report, valid while its watch is kept."""
        number = next(self._numbers)
        self._watches[number] = watch
        return self.topic, number

    def hear(self, event: tuple[float, int]) -> None:
        """Called by the client with the time and what was said."""
        if (watch := self._watches.get(event[1])) is not None:
            watch.hear()


_LISTENERS: WeakKeyDictionary[Any, Listener] = WeakKeyDictionary()


def listener_of(cluster: Cluster) -> Listener:
    """The one of the client of a cluster, which is told what the workers say."""
    listener = _LISTENERS.setdefault(cluster.client, Listener())
    # Each time, since a scheduler that was lost in between has forgotten it.
    cluster.client.subscribe_topic(listener.topic, listener.hear)
    return listener


class _WorkerTimeout:
    """How long there has been no worker, seen from the outside now and then."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._since: float | None = None
        self._is_told = False
        given = dask.config.get(_TIMEOUT_OF_DASK, None)
        self._said = _TIMEOUT if given is None else given
        self._timeout = float(dask.utils.parse_timedelta(self._said, default="s"))

    def look(self) -> None:
        self._cluster.check_connection()
        if self._cluster.n_workers() != 0:
            self._since, self._is_told = None, False
            return
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        waited, where = now - self._since, self._cluster.address
        if waited >= self._timeout:
            raise TimeoutError(
                f"the Dask scheduler at {where} has had no worker for {waited:.0f} seconds: start "
                f"workers and fit again, or wait longer with dask.config.set({{"
                f"{_TIMEOUT_OF_DASK!r}: ...}}), which is {self._said!r} now"
            )
        if waited >= _SECONDS_TO_A_WARNING and not self._is_told:
            self._is_told = True
            warnings.warn(
                f"the Dask scheduler at {where} has no worker, so this waits for one, up to "
                f"{self._said}: start some, for example with `dask worker {where}`",
                RuntimeWarning,
                stacklevel=2,
            )


def computed(
    wanted: Sequence[Any], cluster: Cluster | None, watch: Watch | None = None
) -> Sequence[Any]:
    """What is wanted of Dask, by a cluster or, where there is none, in this process.

    Parameters
    ----------
    wanted : sequence
        Delayed, or other collections.
    """
    if cluster is not None:
        return cluster.computed(wanted, watch)
    with nullcontext() if watch is None else watch.here():
        results: tuple[Any, ...] = dask.compute(*wanted, optimize_graph=False)
    return results


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
