"""Kill fits at random moments, let them go on, and compare their bits; prints a table.

What SIGKILL hits is a process that fits a file, the client of a fit on Dask, or a worker of Dask.
The first two are started again with their checkpoint, all of whose results they must use; Dask
sees to its workers itself.
"""

from __future__ import annotations

import argparse
import logging
import os
import pickle
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powermeans import PowerKMeans, open_data
from powermeans.scale import checkpoint as journal
from powermeans.scale import records
from powermeans.scale.checkpoint import Journal

N_CLUSTERS = 12
ROWS_PER_PART = 10_000
SECONDS_BETWEEN_WRITES = 0.1
TITLES = ("killed", "at second", "of", "noted", "used", "went on for", "as it should")
N_WORKERS = 2
# A LocalCluster gives up for good a worker that is gone this long after it died, even if it came
# back in between and died again.
LOST_WORKER_TIMEOUT = {"distributed.deploy.lost-worker-timeout": "1 day"}
# A fit that is over before it is killed does not count, and so often is not by chance.
ATTEMPTS_PER_KILL = 10


@dataclass(frozen=True)
class Kill:
    """One kill, and what came of it."""

    what: str
    at: float
    undisturbed: float
    n_noted: int
    n_used: int
    resumed: float
    has_same_bits: bool

    @property
    def is_right(self) -> bool:
        """Whether the bits are the same, and no result that was written down was found anew."""
        return self.has_same_bits and self.n_used == self.n_noted


@dataclass(frozen=True)
class Ended:
    """A fit that nobody killed: its bits, and how many results it took from its checkpoint."""

    bits: dict[str, bytes]
    n_used: int


# What is fitted, and what of a fit is compared.


def problem(n_points: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(0)
    means = 2 * rng.normal(size=(N_CLUSTERS, 8))
    points: NDArray[np.float64] = means[rng.integers(N_CLUSTERS, size=n_points)]
    return points + rng.normal(size=points.shape)


def model(*, is_on_dask: bool) -> PowerKMeans:
    """Some seconds of work; each question to Dask's workers takes its time."""
    effort: Any = "none" if is_on_dask else "balanced"
    return PowerKMeans(N_CLUSTERS, effort=effort, random_state=0, n_threads=1)


def bits_of(fitted: PowerKMeans) -> dict[str, bytes]:
    """All that is to be the same."""
    parts = {
        "centers": fitted.cluster_centers_,
        "inertia": np.float64(fitted.inertia_),
        "inertias on the way": fitted.history_.inertia,
    }
    return {name: part.tobytes() for name, part in parts.items()}


def bits_without_risk(points: NDArray[np.float64], *, is_on_dask: bool) -> dict[str, bytes]:
    """Those of the same fit in memory, with neither a checkpoint nor Dask."""
    data = open_data(points, rows_per_part=ROWS_PER_PART)
    return bits_of(model(is_on_dask=is_on_dask).fit(data))


def noting_in(folder: Path) -> dict[str, Any]:
    return {"checkpoint": folder / "state", "checkpoint_seconds": SECONDS_BETWEEN_WRITES}


def fit_file(folder: Path) -> PowerKMeans:
    data = open_data(folder / "points.npy", rows_per_part=ROWS_PER_PART, **noting_in(folder))
    return model(is_on_dask=False).fit(data)


def on_dask(points: NDArray[np.float64]) -> Any:
    import dask.array

    return dask.array.from_array(points, chunks=(ROWS_PER_PART, points.shape[1]))


def fit_as_client(folder: Path, address: str) -> PowerKMeans:
    from distributed import Client

    with Client(address):
        points = on_dask(np.load(folder / "points.npy"))
        return model(is_on_dask=True).fit(open_data(points, **noting_in(folder)))


# Processes that fit.


def be_the_process(folder: Path, address: str | None) -> None:
    """Fit, and write down how it ended."""
    used = counting_answers()
    print("fitting", flush=True)
    fitted = fit_file(folder) if address is None else fit_as_client(folder, address)
    (folder / "ended").write_bytes(pickle.dumps((bits_of(fitted), len(used))))


def counting_answers() -> list[str]:
    """The questions that the journals of this process will have answered."""
    answered: list[str] = []
    answer = Journal.answer

    def counting(journal: Journal, question: str) -> tuple[bool, Any]:
        is_known, result = answer(journal, question)
        answered.extend([question] * is_known)
        return is_known, result

    Journal.answer = counting  # type: ignore[method-assign]
    return answered


def start(folder: Path, address: str | None) -> subprocess.Popen[str]:
    """A process that has everything imported and begins to fit."""
    command = [sys.executable, __file__, "--fit", str(folder)]
    command += [] if address is None else ["--address", address]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "fitting\n"
    return process


def run_to_the_end(folder: Path, address: str | None) -> tuple[float, Ended]:
    """Seconds of a fit in a process of its own, and how it ended."""
    with start(folder, address) as process:
        began = time.perf_counter()
    if process.returncode:
        raise SystemExit(f"a fit that nobody killed ended with {process.returncode}")
    return time.perf_counter() - began, Ended(*pickle.loads((folder / "ended").read_bytes()))


def killed(folder: Path, address: str | None, moment: float) -> bool:
    """Kill a fit after so many seconds; False where it was over before."""
    with start(folder, address) as process:
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
    return process.returncode == -signal.SIGKILL and not (folder / "ended").exists()


def forget(folder: Path) -> None:
    for name in ("state", "ended"):
        (folder / name).unlink(missing_ok=True)


def n_results_in(checkpoint: Path) -> int:
    """How many results are whole, after what tells of which fit they are."""
    if not checkpoint.exists():
        return 0
    contents, start, n_records = checkpoint.read_bytes(), len(journal._MAGIC), 0
    while start + records.HEAD.size <= len(contents):
        n_bytes, _ = records.HEAD.unpack_from(contents, start)
        start += records.HEAD.size + n_bytes
        n_records += start <= len(contents)
    return max(0, n_records - 1)  # a file that is held, and not yet written to, has not even that


def kills_of_a_process(
    what: str, times: int, rng: random.Random, n_points: int, address: str | None = None
) -> Iterator[Kill]:
    """Kill a fit with a checkpoint, and let another process go on."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        points = problem(n_points)
        np.save(folder / "points.npy", points)
        bits = bits_without_risk(points, is_on_dask=address is not None)
        undisturbed, _ = run_to_the_end(folder, address)

        def attempt() -> Kill | None:
            forget(folder)
            moment = rng.uniform(0, undisturbed)
            if not killed(folder, address, moment):
                return None
            n_noted = n_results_in(folder / "state")
            resumed, ended = run_to_the_end(folder, address)
            is_same = ended.bits == bits
            return Kill(what, moment, undisturbed, n_noted, ended.n_used, resumed, is_same)

        yield from repeated(attempt, times)


def repeated(attempt: Callable[[], Kill | None], times: int) -> Iterator[Kill]:
    """So many kills, however often a fit is over before."""
    for _ in range(ATTEMPTS_PER_KILL * times):
        if not times:
            return
        if (kill := attempt()) is not None:
            yield kill
            times -= 1
    if times:
        raise SystemExit("fits are over before they are killed: pass more --points")


# Workers of Dask.


@contextmanager
def workers() -> Iterator[Any]:
    """A cluster of processes on this machine that all come back if killed, and a client of it."""
    import dask
    from distributed import Client, LocalCluster

    with (
        dask.config.set(LOST_WORKER_TIMEOUT),
        LocalCluster(
            n_workers=N_WORKERS,
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster),
    ):
        yield cluster


def kills_of_a_client(times: int, rng: random.Random, n_points: int) -> Iterator[Kill]:
    with workers() as cluster:
        address = cluster.scheduler_address
        yield from kills_of_a_process("client", times, rng, n_points, address)


def kills_of_a_worker(times: int, rng: random.Random, n_points: int) -> Iterator[Kill]:
    """Kill one of the workers in the middle of a fit, which goes on by itself."""
    points = problem(n_points)
    bits = bits_without_risk(points, is_on_dask=True)
    with workers():
        undisturbed, _ = seconds_and_bits(points)

    def attempt() -> Kill | None:
        moment = rng.uniform(0, undisturbed)
        # Workers that are all new: one that has just died may still be counted.
        with workers() as cluster:
            victims = [nanny.pid for nanny in cluster.workers.values()]
            killer = Killer(moment, rng.choice(victims))
            resumed, found = seconds_and_bits(points)
            if not killer.has_killed():
                return None
        return Kill("worker", moment, undisturbed, 0, 0, resumed - moment, found == bits)

    yield from repeated(attempt, times)


class Killer:
    """Kills a process after so many seconds, unless it is called off before."""

    def __init__(self, seconds: float, pid: int) -> None:
        self._pid, self._is_done = pid, False
        self._timer = threading.Timer(seconds, self._kill)
        self._timer.start()

    def _kill(self) -> None:
        with suppress(ProcessLookupError):  # it was killed before, and another has its place
            os.kill(self._pid, signal.SIGKILL)
            self._is_done = True

    def has_killed(self) -> bool:
        """Whether it has; from now on it does not."""
        self._timer.cancel()
        self._timer.join()
        return self._is_done


def seconds_and_bits(points: NDArray[np.float64]) -> tuple[float, dict[str, bytes]]:
    began = time.perf_counter()
    fitted = model(is_on_dask=True).fit(on_dask(points))
    return time.perf_counter() - began, bits_of(fitted)


# The table.


def kills_of_a_file(times: int, rng: random.Random, n_points: int) -> Iterator[Kill]:
    yield from kills_of_a_process("process", times, rng, n_points)


KINDS: dict[str, Callable[[int, random.Random, int], Iterator[Kill]]] = {
    "process": kills_of_a_file,
    "client": kills_of_a_client,
    "worker": kills_of_a_worker,
}


def line_of(kill: Kill) -> str:
    noted, used = str(kill.n_noted), str(kill.n_used)
    cells = [f"{kill.at:.2f}", f"{kill.undisturbed:.2f}", noted, used, f"{kill.resumed:.2f}"]
    shown = [cell.rjust(max(5, len(head))) for cell, head in zip(cells, TITLES[1:6], strict=True)]
    return "  ".join([kill.what.ljust(8), *shown, "yes" if kill.is_right else "NO"])


def main() -> int:
    """Kill, print, and fail where a bit differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20, help="of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--what", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--fit", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.fit is not None:
        be_the_process(args.fit, args.address)
        return 0
    print("  ".join([TITLES[0].ljust(8), *(head.rjust(5) for head in TITLES[1:])]))
    kills = []
    for what in args.what:
        for kill in KINDS[what](args.times, random.Random(args.seed), args.points):
            kills.append(kill)
            print(line_of(kill), flush=True)
    n_same = sum(kill.has_same_bits for kill in kills)
    n_used = sum(kill.n_used == kill.n_noted for kill in kills)
    print(f"{len(kills)} killed, {n_same} of them ended with the same bits")
    print(f"{n_used} of them used every result that was written down")
    return int(not all(kill.is_right for kill in kills))


if __name__ == "__main__":
    sys.exit(main())
