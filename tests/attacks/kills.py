"""Fits that are killed at random moments end with the same bits: `make kill-test`.

What SIGKILL hits is a process that fits a file, the client of a fit on Dask, or a worker of Dask.
The first two are started again with their checkpoint, all of whose results they must use; Dask
sees to its workers itself. A fit that is over before it is killed does not count.
"""

import logging
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from powermeans import PowerKMeans, open_data
from powermeans.scale import checkpoint
from powermeans.scale.checkpoint import HEAD, Journal
from tests.attacks.running import RIGHT, Attack, Failure, Try

N_CLUSTERS, N_POINTS, ROWS_PER_PART = 12, 100_000, 5_000
ATTEMPTS = 10
# A LocalCluster gives up for good a worker that is gone this long after it died, even if it came
# back in between and died again.
LOST_WORKER_TIMEOUT = {"distributed.deploy.lost-worker-timeout": "1 day"}


def records_of(content: bytes) -> list[bytes]:
    """Return the whole records of a checkpoint, with their heads."""
    at, records = len(checkpoint._MAGIC), []
    while at + HEAD.size <= len(content):
        end = at + HEAD.size + HEAD.unpack_from(content, at)[0]
        if end > len(content):
            break
        records.append(content[at:end])
        at = end
    return records


def problem(n_points: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    means = 2 * rng.normal(size=(N_CLUSTERS, 8))
    return means[rng.integers(N_CLUSTERS, size=n_points)] + rng.normal(size=(n_points, 8))


def on_dask(points: np.ndarray) -> Any:
    import dask.array

    return dask.array.from_array(points, chunks=(ROWS_PER_PART, points.shape[1]))


def bits_of_fit(X: Any, *, is_on_dask: bool) -> bytes:
    """Some seconds of work; each question to Dask's workers takes its time."""
    effort = "none" if is_on_dask else "balanced"
    model = PowerKMeans(N_CLUSTERS, effort=effort, random_state=0, n_threads=1).fit(X)
    inertias = np.append(model.history_.inertia, model.inertia_)
    return model.cluster_centers_.tobytes() + inertias.tobytes()


def be_the_process(folder: Path, address: str | None = None) -> None:
    """Fit, and write down the bits, and how many results the checkpoint had answered."""
    n_used, answer = 0, Journal.answer

    def counting(journal: Journal, question: str) -> tuple[bool, Any]:
        nonlocal n_used
        is_known, result = answer(journal, question)
        n_used += is_known
        return is_known, result

    Journal.answer = counting  # type: ignore[method-assign]
    print("fitting", flush=True)
    options: Any = {"checkpoint": folder / "state", "checkpoint_seconds": 0.1}
    if address is None:
        data = open_data(folder / "points.npy", rows_per_part=ROWS_PER_PART, **options)
        bits = bits_of_fit(data, is_on_dask=False)
    else:
        from distributed import Client

        with Client(address):
            points = on_dask(np.load(folder / "points.npy"))
            bits = bits_of_fit(open_data(points, **options), is_on_dask=True)
    (folder / "ended").write_bytes(pickle.dumps((bits, n_used)))


def seconds_of_process(folder: Path, address: list[str], most: float | None = None) -> float:
    """Return how long a fit takes in a process of its own, which is killed after so long."""
    command = [sys.executable, "-m", "tests.attacks.kills", str(folder), *address]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout
        process.stdout.readline()  # everything is imported
        began = time.perf_counter()
        with suppress(subprocess.TimeoutExpired):
            process.wait(most)
        process.kill()
    if process.returncode not in (0, -signal.SIGKILL):
        raise Failure(f"a fit that nobody killed ends with {process.returncode}")
    return time.perf_counter() - began


def of_a_process(folder: Path, n_points: int, *address: str) -> Try:
    """Kill a fit with a checkpoint, and let another process go on."""
    points, state, ended = problem(n_points), folder / "state", folder / "ended"
    np.save(folder / "points.npy", points)
    data = open_data(points, rows_per_part=ROWS_PER_PART)
    expected = bits_of_fit(data, is_on_dask=bool(address))
    undisturbed = seconds_of_process(folder, [*address])

    def one(rng: random.Random) -> str:
        for _ in range(ATTEMPTS):
            state.unlink(missing_ok=True)
            ended.unlink(missing_ok=True)
            seconds_of_process(folder, [*address], rng.uniform(0, undisturbed))
            if not ended.exists():
                break
        else:
            raise Failure("fits are over before they are killed")
        # The first record says which fit it is of; a file that is only held has not even that.
        n_noted = max(0, len(records_of(state.read_bytes())) - 1) if state.exists() else 0
        seconds_of_process(folder, [*address])
        bits, n_used = pickle.loads(ended.read_bytes())
        if n_used != n_noted:
            raise Failure(f"{n_used} of {n_noted} results are used")
        if bits != expected:
            raise Failure("a fit goes on to other bits")
        return RIGHT

    return one


@contextmanager
def workers() -> Iterator[Any]:
    """Yield a cluster of two processes that come back if killed, with a client here."""
    import dask
    from distributed import Client, LocalCluster

    how: Any = {"threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        dask.config.set(LOST_WORKER_TIMEOUT),
        LocalCluster(n_workers=2, silence_logs=logging.CRITICAL, **how) as cluster,
        Client(cluster),
    ):
        yield cluster


def of_a_client(folder: Path, n_points: int) -> Try:
    stack = ExitStack()
    cluster = stack.enter_context(workers())
    one = of_a_process(folder, n_points, cluster.scheduler_address)
    return lambda rng, keeps=stack: one(rng)  # the workers live as long as the tries


@contextmanager
def killer(cluster: Any, rng: random.Random, seconds: float) -> Iterator[threading.Event]:
    """Kill one of the workers after so many seconds, unless the block has ended; say if it has."""
    pid = rng.choice([nanny.pid for nanny in cluster.workers.values() if nanny.pid])
    has_killed = threading.Event()

    def kill() -> None:
        with suppress(ProcessLookupError):  # it was killed before, and another has its place
            os.kill(pid, signal.SIGKILL)
            has_killed.set()

    timer = threading.Timer(seconds, kill)
    timer.start()
    try:
        yield has_killed
    finally:
        timer.cancel()
        timer.join()


def of_a_worker(folder: Path, n_points: int) -> Try:
    """Kill one of the workers in the middle of a fit, which goes on by itself."""
    points = problem(n_points)
    expected = bits_of_fit(open_data(points, rows_per_part=ROWS_PER_PART), is_on_dask=True)

    def one(rng: random.Random) -> str:
        with workers() as cluster:  # all new: one that has just died may still be counted
            bits_of_fit(on_dask(points[:99]), is_on_dask=True)  # imports the package there
            for _ in range(ATTEMPTS):
                began = time.perf_counter()
                bits_of_fit(on_dask(points), is_on_dask=True)
                moment = rng.uniform(0, time.perf_counter() - began)
                with killer(cluster, rng, moment) as has_killed:
                    bits = bits_of_fit(on_dask(points), is_on_dask=True)
                if bits != expected:
                    raise Failure("a fit that lost a worker has other bits")
                if has_killed.is_set():
                    return RIGHT
        raise Failure("fits are over before a worker is killed")

    return one


def attack(prepare: Callable[[Path, int], Try]) -> Attack:
    given = partial(prepare, n_points=N_POINTS)
    return Attack(given, seconds=900.0, megabytes=2000.0, hangs_after=900.0)


ATTACKS = {
    "kill-process": attack(of_a_process),
    "kill-client": attack(of_a_client),
    "kill-worker": attack(of_a_worker),
}

if __name__ == "__main__":
    be_the_process(Path(sys.argv[1]), *sys.argv[2:])
