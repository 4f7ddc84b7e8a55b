"""Kill fits at random moments, let them go on, and compare their bits; prints a line for each.

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
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from powermeans import PowerKMeans, open_data
from powermeans.scale import checkpoint as journal
from powermeans.scale import records
from powermeans.scale.checkpoint import Journal

N_CLUSTERS = 12
ROWS_PER_PART = 5_000
# A LocalCluster gives up for good a worker that is gone this long after it died, even if it came
# back in between and died again.
LOST_WORKER_TIMEOUT = {"distributed.deploy.lost-worker-timeout": "1 day"}
# A fit that is over before it is killed does not count, and so often is not by chance.
ATTEMPTS_PER_KILL = 10


class Kill(NamedTuple):
    """One kill, and what came of it."""

    what: str
    at: float
    n_noted: int
    n_used: int
    has_same_bits: bool

    def is_right(self) -> bool:
        """Whether the bits are the same, and no result that was written down was found anew."""
        return self.has_same_bits and self.n_used == self.n_noted

    def __str__(self) -> str:
        told = f"{self.what} killed at {self.at:.2f} s: {self.n_used} of {self.n_noted} used, "
        return told + ("the same bits" if self.has_same_bits else "OTHER BITS")


# What is fitted, and what of a fit is compared.


def problem(n_points: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    means = 2 * rng.normal(size=(N_CLUSTERS, 8))
    return means[rng.integers(N_CLUSTERS, size=n_points)] + rng.normal(size=(n_points, 8))


def model(*, is_on_dask: bool) -> PowerKMeans:
    """Some seconds of work; each question to Dask's workers takes its time."""
    effort: Any = "none" if is_on_dask else "balanced"
    return PowerKMeans(N_CLUSTERS, effort=effort, random_state=0, n_threads=1)


def bits_of(fitted: PowerKMeans) -> bytes:
    inertias = np.append(fitted.history_.inertia, fitted.inertia_)
    return fitted.cluster_centers_.tobytes() + inertias.tobytes()


def bits_without_risk(points: np.ndarray, *, is_on_dask: bool) -> bytes:
    """Those of the same fit in memory, with neither a checkpoint nor Dask."""
    data = open_data(points, rows_per_part=ROWS_PER_PART)
    return bits_of(model(is_on_dask=is_on_dask).fit(data))


def on_dask(points: np.ndarray) -> Any:
    import dask.array

    return dask.array.from_array(points, chunks=(ROWS_PER_PART, points.shape[1]))


def fitted_in(folder: Path, address: str | None) -> PowerKMeans:
    options: Any = {"checkpoint": folder / "state", "checkpoint_seconds": 0.1}
    if address is None:
        options["rows_per_part"] = ROWS_PER_PART
        return model(is_on_dask=False).fit(open_data(folder / "points.npy", **options))
    from distributed import Client

    with Client(address):
        points = on_dask(np.load(folder / "points.npy"))
        return model(is_on_dask=True).fit(open_data(points, **options))


# Processes that fit.


def be_the_process(folder: Path, address: str | None) -> None:
    """Fit, and write down the bits, and how many results the checkpoint had answered."""
    n_used, answer = 0, Journal.answer

    def counting(journal: Journal, question: str) -> tuple[bool, Any]:
        nonlocal n_used
        is_known, result = answer(journal, question)
        n_used += is_known
        return is_known, result

    Journal.answer = counting  # type: ignore[method-assign]
    print("fitting", flush=True)
    bits = bits_of(fitted_in(folder, address))
    (folder / "ended").write_bytes(pickle.dumps((bits, n_used)))


def start(folder: Path, address: str | None) -> subprocess.Popen[str]:
    """A process that has everything imported and begins to fit."""
    command = [sys.executable, __file__, "--fit", str(folder)]
    command += [] if address is None else ["--address", address]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "fitting\n"
    return process


def run_to_the_end(folder: Path, address: str | None) -> tuple[float, bytes, int]:
    """Seconds of a fit in a process of its own, its bits, and how many results it used."""
    with start(folder, address) as process:
        began = time.perf_counter()
    if process.returncode:
        raise SystemExit(f"a fit that nobody killed ended with {process.returncode}")
    return time.perf_counter() - began, *pickle.loads((folder / "ended").read_bytes())


def is_killed(folder: Path, address: str | None, moment: float) -> bool:
    """Kill a fit after so many seconds; False where it was over before."""
    with start(folder, address) as process:
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
    return process.returncode == -signal.SIGKILL and not (folder / "ended").exists()


def n_results_in(checkpoint: Path) -> int:
    """How many results are whole, after what tells of which fit they are."""
    contents = checkpoint.read_bytes() if checkpoint.exists() else b""
    start, n_records = len(journal._MAGIC), 0
    while start + records.HEAD.size <= len(contents):
        n_bytes, _ = records.HEAD.unpack_from(contents, start)
        start += records.HEAD.size + n_bytes
        n_records += start <= len(contents)
    return max(0, n_records - 1)  # a file that is held, and not yet written to, has not even that


def kills_of_a_process(
    times: int, rng: random.Random, n_points: int, address: str | None = None
) -> Iterator[Kill]:
    """Kill a fit with a checkpoint, and let another process go on."""
    with tempfile.TemporaryDirectory() as name:
        folder, points = Path(name), problem(n_points)
        np.save(folder / "points.npy", points)
        expected = bits_without_risk(points, is_on_dask=address is not None)
        undisturbed, *_ = run_to_the_end(folder, address)

        def attempt() -> Kill | None:
            for file in ("state", "ended"):
                (folder / file).unlink(missing_ok=True)
            moment = rng.uniform(0, undisturbed)
            if not is_killed(folder, address, moment):
                return None
            n_noted = n_results_in(folder / "state")
            _, bits, n_used = run_to_the_end(folder, address)
            what = "process" if address is None else "client"
            return Kill(what, moment, n_noted, n_used, bits == expected)

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
    """A cluster of two processes that come back if killed, and a client of it."""
    import dask
    from distributed import Client, LocalCluster

    how: Any = {"threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        dask.config.set(LOST_WORKER_TIMEOUT),
        LocalCluster(n_workers=2, silence_logs=logging.CRITICAL, **how) as cluster,
        Client(cluster),
    ):
        yield cluster


def kills_of_a_client(times: int, rng: random.Random, n_points: int) -> Iterator[Kill]:
    with workers() as cluster:
        yield from kills_of_a_process(times, rng, n_points, cluster.scheduler_address)


def kills_of_a_worker(times: int, rng: random.Random, n_points: int) -> Iterator[Kill]:
    """Kill one of the workers in the middle of a fit, which goes on by itself."""
    points = problem(n_points)
    expected = bits_without_risk(points, is_on_dask=True)

    def attempt() -> Kill | None:
        # Workers that are all new: one that has just died may still be counted.
        with workers() as cluster:
            for fitted in (points[:99], points):  # the first fit imports the package there
                began = time.perf_counter()
                model(is_on_dask=True).fit(on_dask(fitted))
            moment = rng.uniform(0, time.perf_counter() - began)
            victims = [nanny.pid for nanny in cluster.workers.values()]
            killer = Killer(moment, rng.choice(victims))
            bits = bits_of(model(is_on_dask=True).fit(on_dask(points)))
            if not killer.has_killed():
                return None
        return Kill("worker", moment, 0, 0, bits == expected)

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


KINDS: dict[str, Callable[[int, random.Random, int], Iterator[Kill]]] = {
    "process": kills_of_a_process,
    "client": kills_of_a_client,
    "worker": kills_of_a_worker,
}


def main() -> int:
    """Kill, print, and fail where a bit differs or a result was not used."""
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
    kills = []
    for what in args.what:
        for kill in KINDS[what](args.times, random.Random(args.seed), args.points):
            kills.append(kill)
            print(kill, flush=True)
    n_right = sum(map(Kill.is_right, kills))
    print(f"{len(kills)} killed, {n_right} of them went on to the same bits from what was noted")
    return int(n_right < len(kills))


if __name__ == "__main__":
    sys.exit(main())
