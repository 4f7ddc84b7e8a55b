"""Run the tries of a class of attacks in forked processes, and gather what came of them."""

import contextlib
import faulthandler
import os
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from multiprocessing import connection, get_context
from pathlib import Path
from typing import Any

import numpy as np

# Attacks need Linux. Elsewhere, tests only read which models they fit.
FORK: Any = get_context("fork" if sys.platform == "linux" else None)
MEGABYTE = 2**20
TIMES_TO_PREPARE = 10
SECONDS_TO_DIE, LONGEST_TAIL = 10.0, 8000
ENDS_WITH_STACKS = getattr(signal, "SIGUSR1", signal.SIGTERM)
VERDICTS = RIGHT, REFUSED, KNOWN, FAILED = "right", "refused", "known", "failed"
TRIES_PER_RUN = 10**7

Try = Callable[[random.Random], str]


class Failure(Exception):
    """What an attack found."""


class Known(Failure):
    """A fault of a kind that is known, with the reason why it may stand for now."""


@dataclass(frozen=True)
class Attack:
    """A class of attacks, and what a try of it may use."""

    prepare: Callable[[Path], Try]  # from a folder
    seconds: float = 20.0  # of the processor
    megabytes: float = 500.0  # added to the memory of the process
    hangs_after: float = 90.0  # seconds of the clock
    share: float = 1.0  # of the time, relative to the other classes

    def prepared(self, folder: Path) -> Try:
        """Return the tries; whatever they write without a path is in the folder."""
        os.chdir(folder)
        return self.prepare(folder)


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
    known: Counter[str] = field(default_factory=Counter)
    slowest: Outcome = Outcome(0, RIGHT)
    largest: Outcome = Outcome(0, RIGHT)

    def add(self, outcome: Outcome) -> None:
        self.counts[outcome.verdict] += 1
        if outcome.verdict == FAILED:
            self.failures.append(outcome)
        if outcome.verdict == KNOWN:
            self.known[outcome.words.partition(":")[0]] += 1
        self.slowest = max(self.slowest, outcome, key=lambda one: one.seconds)
        self.largest = max(self.largest, outcome, key=lambda one: one.megabytes)


def attempt(name: str, attack: Attack, one: Try, seed: int) -> Outcome:
    """Make the try of a seed, and judge what it used of all processors and of memory."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before, began = status("VmRSS"), sum(os.times()[:4])
    try:
        verdict, words = one(random.Random(f"{name}:{seed}")), ""
    except Known as known:
        verdict, words = KNOWN, str(known)
    except Exception as error:
        verdict, words = FAILED, words_of(error)
    seconds, megabytes = sum(os.times()[:4]) - began, max(0.0, status("VmHWM") - before)
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


def status(name: str) -> float:
    """Return a size from what Linux tells of this process, in megabytes; 0 on other systems."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) / 1024
    return 0.0


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
        self.current, self.is_prepared = -1, False
        self.born = self.since = time.monotonic()
        self.reading, writing = FORK.Pipe(duplex=False)
        sys.stdout.flush()
        self.process = FORK.Process(target=self._work, args=(writing,))
        self.process.start()
        writing.close()

    def _work(self, writing: Any) -> None:
        code = 1
        try:
            for number in (1, 2):
                os.dup2(self.log.fileno(), number)
            sys.stdout = sys.stderr = self.log
            faulthandler.enable(self.log.fileno())
            faulthandler.register(ENDS_WITH_STACKS, self.log.fileno(), chain=True)
            warnings.simplefilter("ignore")
            with tempfile.TemporaryDirectory(prefix="attack-") as folder:
                one = self.attack.prepared(Path(folder))
                deadline = time.monotonic() + self.seconds
                for seed in range(self.first, self.last, self.step):
                    if time.monotonic() > deadline:
                        break
                    writing.send(seed)
                    writing.send(attempt(self.name, self.attack, one, seed))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            self.log.flush()
            os._exit(code)  # joins no process that a try may have left

    def hear(self) -> Outcome | None:
        """Note the try that begins, or return what came of one; raise EOFError at the end."""
        said = self.reading.recv()
        self.since, self.is_prepared = time.monotonic(), True
        self.current = said if isinstance(said, int) else -1
        return None if isinstance(said, int) else said

    @property
    def most_seconds(self) -> float:
        """Seconds until it counts as hung; preparing takes as long as many tries."""
        return self.attack.hangs_after * (1 if self.is_prepared else TIMES_TO_PREPARE)

    def hangs(self) -> bool:
        return time.monotonic() - self.since > self.most_seconds

    def end(self) -> Outcome | None:
        """Reap the process; return the outcome of the try in which it died, or hangs."""
        how = f"hangs for {self.most_seconds:g} s" if self.hangs() else ""
        if how:
            os.kill(self.process.pid, ENDS_WITH_STACKS)
            self.process.join(SECONDS_TO_DIE)
            self.process.kill()
        self.process.join()
        self.reading.close()
        self.log.seek(0)
        tail = self.log.read()[-LONGEST_TAIL:]
        self.log.close()
        if self.process.exitcode == 0:
            return None
        how = how or f"ends with {self.process.exitcode}"
        return Outcome(self.current, FAILED, words=f"{how}: {tail}")


def run(
    name: str, attack: Attack, seed: int, seconds: float, jobs: int, most: int
) -> Iterator[Outcome]:
    """Make tries for so many seconds, at most so many; yield what came of each."""
    first = seed * TRIES_PER_RUN
    last = first + min(most, TRIES_PER_RUN)
    workers = [Worker(name, attack, first + job, jobs, seconds, last) for job in range(jobs)]
    while workers:
        ready = connection.wait([worker.reading for worker in workers], 1.0)
        for worker in [*workers]:
            with contextlib.suppress(EOFError):
                if worker.reading in ready and (outcome := worker.hear()) is not None:
                    yield outcome
                if not worker.hangs():
                    continue
            workers.remove(worker)
            if (outcome := worker.end()) is None:
                continue
            yield outcome
            left = worker.seconds - (time.monotonic() - worker.born)
            if outcome.seed >= 0 and left > 0:  # a try ended it: go on with the next one
                workers.append(replace(worker, first=outcome.seed + worker.step, seconds=left))


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
    names = ("cluster_centers_", "labels_", "inertia_", "covariance_", "feature_weights_")
    return {
        name: np.asarray(getattr(model, name)).tobytes() for name in names if hasattr(model, name)
    }
