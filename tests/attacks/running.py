"""Run the tries of a class of attacks in forked processes, and gather what came of them."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import random
import selectors
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

MEGABYTE = 2**20
TIMES_TO_PREPARE = 10
SECONDS_TO_DIE, LONGEST_TAIL = 10.0, 8000
ENDS_WITH_STACKS = signal.SIGUSR1
RIGHT, REFUSED, KNOWN, FAILED = "right", "refused", "known", "failed"
VERDICTS = (RIGHT, REFUSED, KNOWN, FAILED)
TRIES_PER_RUN = 10**7

Try = Callable[[random.Random], str]


class Failure(Exception):
    """What an attack found."""


class Known(Failure):
    """A fault of a kind that is known, with the reason why it may stand for now."""


@dataclass(frozen=True)
class Attack:
    """A class of attacks, and what a try of it may use.

    Attributes
    ----------
    prepare : function
        From a folder to the function that makes a try.
    seconds : float
        Of the processor, for one try.
    megabytes : float
        That one try may add to the memory of the process.
    hangs_after : float
        Seconds of the clock until a try is killed.
    share : float
        Of the time, relative to the other classes.
    """

    prepare: Callable[[Path], Try]
    seconds: float = 20.0
    megabytes: float = 500.0
    hangs_after: float = 90.0
    share: float = 1.0


@dataclass(frozen=True)
class Outcome:
    """What came of one try."""

    seed: int
    verdict: str
    seconds: float = 0.0
    megabytes: float = 0.0
    words: str = ""


@dataclass
class Tally:
    """The outcomes of a class."""

    name: str
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(VERDICTS, 0))
    failures: list[Outcome] = field(default_factory=list)
    known: dict[str, int] = field(default_factory=dict)
    slowest: Outcome = Outcome(0, RIGHT)
    largest: Outcome = Outcome(0, RIGHT)

    def add(self, outcome: Outcome) -> None:
        self.counts[outcome.verdict] += 1
        if outcome.verdict == FAILED:
            self.failures.append(outcome)
        if outcome.verdict == KNOWN:
            reason = outcome.words.partition(":")[0]
            self.known[reason] = self.known.get(reason, 0) + 1
        self.slowest = max(self.slowest, outcome, key=lambda one: one.seconds)
        self.largest = max(self.largest, outcome, key=lambda one: one.megabytes)

    @property
    def n_tries(self) -> int:
        return sum(self.counts.values())


# One try.


def attempt(name: str, attack: Attack, one: Try, seed: int) -> Outcome:
    """Make the try of a seed, and judge what it used."""
    before, began = _reset_peak(), _processor_seconds()
    try:
        verdict, words = one(random.Random(f"{name}:{seed}")), ""
    except Known as known:
        verdict, words = KNOWN, str(known)
    except Exception as error:
        verdict, words = FAILED, words_of(error)
    seconds = _processor_seconds() - began
    megabytes = max(0.0, _peak() - before)
    if verdict != FAILED and seconds > attack.seconds:
        verdict, words = FAILED, f"takes {seconds:.1f} s, more than {attack.seconds:g}"
    if verdict != FAILED and megabytes > attack.megabytes:
        verdict, words = FAILED, f"takes {megabytes:.0f} MB, more than {attack.megabytes:g}"
    return Outcome(seed, verdict, seconds, megabytes, words)


def words_of(error: Exception) -> str:
    """Return what an error says, its type and its place."""
    if isinstance(error, Failure):
        return str(error)
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"


def _processor_seconds() -> float:
    """Return the seconds of all processors that this process and its children used."""
    return sum(os.times()[:4])


def status(name: str) -> float:
    """Return a size from what Linux tells of this process, in megabytes; 0 on other systems."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) / 1024
    return 0.0


def _reset_peak() -> float:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return status("VmRSS")


def _peak() -> float:
    return status("VmHWM")


# Processes that make tries.


@dataclass
class Worker:
    """A forked process that makes every `step`-th try, and tells of each before and after it.

    Its seconds begin once it is prepared.
    """

    name: str
    attack: Attack
    first: int
    step: int
    seconds: float
    last: int

    def __post_init__(self) -> None:
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by `end`
        self.current: int | None = None
        self.is_prepared = False
        self.born = self.since = time.monotonic()
        self._rest = b""
        self.reading, writing = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.reading)
            self._work(writing)
        os.close(writing)

    def _work(self, writing: int) -> None:
        code = 1
        try:
            for number in (1, 2):
                os.dup2(self.log.fileno(), number)
            sys.stdout = sys.stderr = self.log
            faulthandler.enable(self.log.fileno())
            faulthandler.register(ENDS_WITH_STACKS, self.log.fileno(), chain=True)
            with tempfile.TemporaryDirectory(prefix="attack-") as folder:
                one = self.attack.prepare(Path(folder))
                deadline = time.monotonic() + self.seconds
                for seed in range(self.first, self.last, self.step):
                    if time.monotonic() > deadline:
                        break
                    os.write(writing, f"{seed}\n".encode())
                    outcome = attempt(self.name, self.attack, one, seed)
                    os.write(writing, (json.dumps(asdict(outcome))[:60_000] + "\n").encode())
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            self.log.flush()
            os._exit(code)

    def hear(self) -> list[Outcome] | None:
        """Return the outcomes that are new; None where the process has ended."""
        if not (said := os.read(self.reading, MEGABYTE)):
            return None
        *lines, self._rest = (self._rest + said).split(b"\n")
        self.since, self.is_prepared = time.monotonic(), True
        outcomes = []
        for line in lines:
            if line.startswith(b"{"):
                outcomes.append(Outcome(**json.loads(line)))
                self.current = None
            else:
                self.current = int(line)
        return outcomes

    def hangs(self) -> bool:
        return time.monotonic() - self.since > self.most_seconds

    @property
    def most_seconds(self) -> float:
        """Seconds until it counts as hung; preparing takes as long as many tries."""
        return self.attack.hangs_after * (1 if self.is_prepared else TIMES_TO_PREPARE)

    def end(self, *, is_hung: bool = False) -> Outcome | None:
        """Reap the process; return the outcome of the try in which it died."""
        status = self._ended_by_force() if is_hung else os.waitpid(self.pid, 0)[1]
        os.close(self.reading)
        code = os.waitstatus_to_exitcode(status)
        self.log.seek(0)
        tail = self.log.read()[-LONGEST_TAIL:]
        self.log.close()
        if code == 0:
            return None
        how = f"hangs for {self.most_seconds:g} s" if is_hung else f"ends with {code}"
        return Outcome(-1 if self.current is None else self.current, FAILED, words=f"{how}: {tail}")

    def _ended_by_force(self) -> int:
        """End a process that hangs, and let it say where; return its status."""
        os.kill(self.pid, ENDS_WITH_STACKS)
        until = time.monotonic() + SECONDS_TO_DIE
        while time.monotonic() < until:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return status
            time.sleep(0.05)
        os.kill(self.pid, signal.SIGKILL)
        return os.waitpid(self.pid, 0)[1]


def run(
    name: str, attack: Attack, seed: int, seconds: float, jobs: int, most: int
) -> Iterator[Outcome]:
    """Make tries for so many seconds, at most so many; yield what came of each."""
    first = seed * TRIES_PER_RUN
    last = first + min(most, TRIES_PER_RUN)
    workers = [Worker(name, attack, first + job, jobs, seconds, last) for job in range(jobs)]
    with selectors.DefaultSelector() as selector:
        for worker in workers:
            selector.register(worker.reading, selectors.EVENT_READ, worker)
        while selector.get_map():
            for worker in [key.data for key, _ in selector.select(1.0)]:
                outcomes = worker.hear()
                yield from outcomes or []
                if outcomes is None:
                    yield from _replace(worker, selector)
            for worker in [key.data for key in list(selector.get_map().values())]:
                if worker.hangs():
                    yield from _replace(worker, selector, is_hung=True)


def _replace(
    worker: Worker, selector: selectors.BaseSelector, *, is_hung: bool = False
) -> Iterator[Outcome]:
    """Tell how a process ended; where a try killed it, start another at the next one."""
    selector.unregister(worker.reading)
    outcome = worker.end(is_hung=is_hung)
    if outcome is None:
        return
    yield outcome
    left = worker.seconds - (time.monotonic() - worker.born)
    if outcome.seed < 0 or left < 0:
        return
    heir = Worker(
        worker.name,
        worker.attack,
        outcome.seed + worker.step,
        worker.step,
        left,
        worker.last,
    )
    selector.register(heir.reading, selectors.EVENT_READ, heir)


# What several classes need.


@contextlib.contextmanager
def no_warning_of_numpy() -> Iterator[None]:
    """Turn warnings of NumPy and Python into errors; leave out those that speak to users."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", category=RuntimeWarning, message=NUMPY_WARNS)
        yield


NUMPY_WARNS = r"(overflow|invalid value|divide by zero|underflow|Mean of empty|All-NaN|Degrees of)"


def bits_of(model: Any) -> dict[str, bytes]:
    """Return the bits of what a fit found."""
    import numpy as np

    names = ("cluster_centers_", "labels_", "inertia_", "covariance_", "feature_weights_")
    return {
        name: np.asarray(getattr(model, name)).tobytes() for name in names if hasattr(model, name)
    }
