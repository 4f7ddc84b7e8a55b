"""How long Ctrl-C and time limits take to end what runs: `make latency`.

Waits are those of the clock, so measure on a machine without other work: the row "a loop of Python"
shows what remains of it.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks import parts
from benchmarks.pages import Page
from benchmarks.parts import Part

NAME = "latency"
PAGE = Page("project/speed", "python -m benchmarks.latency --page")
# Seconds of a sweep, and of each wait.
Waits = tuple[float, list[float]]
N_TIMES, N_THREADS = 102, 2  # moments for each kind of work
LONGEST_WAIT = 1.5
SHORTEST_LIMIT, LONGEST_LIMIT = 0.02, 2.0

LARGE = (60_000, 256, 2000, "float32")
SHAPES = [LARGE, (400_000, 3, 500, "float64"), (5000, 1500, 1000, "float32")]
SMALL = (600, 5, 50, "float64")
FEW_LARGE = (60_000, 256, 1000, "float32")

# What is interrupted, again and again: statements over points X and centers C.
INTERRUPTED = {
    "a loop of Python": ("sum(range(1000))", [SMALL]),
    "fit": ("PowerKMeans(k, random_state=0).fit(X)", SHAPES),
    "Lloyd's": ("KMeans(k, n_init=1, random_state=0).fit(X)", SHAPES),
    "seeding": ("kmeans_plusplus(X, k, random_state=0)", SHAPES),
    "predict": ("model.predict(X)", SHAPES),
    "choose_k": ("choose_k(X, range(2, 9), random_state=0)", SHAPES),
    "one pass": ("OnlineKMeans(k, random_state=0).fit(X)", SHAPES),
}
# What ends by itself after `limit` seconds.
LIMITED = {
    "fit": ("PowerKMeans(k, stop=MaxSeconds(limit)).fit(X)", SHAPES),
    "seeding": ("PowerKMeans(k, stop=MaxSeconds(limit / 10)).fit(X)", SHAPES),
    "choose_k": ("choose_k(X, range(2, 9), stop=MaxSeconds(limit))", SHAPES),
    "learned covariance": (
        "PowerKMeans(k, divergence='mahalanobis', stop=MaxSeconds(limit)).fit(X)",
        [(20_000, 20, 20, "float64"), (1000, 300, 10, "float64")],
    ),
    "missing values": (
        "PowerKMeans(20, missing='observed', stop=MaxSeconds(limit)).fit(holed)",
        [(20_000, 20, 20, "float64")],
    ),
    "parts": ("PowerKMeans(50, stop=MaxSeconds(limit)).fit(parts)", [(200_000, 20, 50, "float64")]),
    "lower bound": ("model.optimality_gap(X, stop=MaxSeconds(limit))", [SMALL]),
}
PREPARED = """
import sys, time, warnings
import numpy as np
from powermeans import KMeans, PowerKMeans, choose_k, kmeans_plusplus
from powermeans.methods import OnlineKMeans
warnings.simplefilter("ignore")
n, d, k, dtype, work, given = eval(sys.argv[1])
X = np.random.default_rng(0).normal(size=(n, d)).astype(dtype)
holed = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
parts = [X[: n // 2], X[n // 2 :]]
model = KMeans(k, init=X[:k], n_init=1, max_iter=1).fit(X)
began = time.monotonic()
PowerKMeans(k, init=X[:k], effort="none", polish=False, max_iter=1, power=-9.0).fit(X)
print(time.monotonic() - began, flush=True)
work = compile(work, "work", "eval")
"""
INTERRUPTS = """
for _ in range(given):
    try:
        print("begin", flush=True)
        while True:
            eval(work)
    except KeyboardInterrupt:
        ended = time.monotonic()
    print(ended, flush=True)
"""
LIMITS = """
for limit in given:
    began = time.monotonic()
    eval(work)
    print(time.monotonic() - began, flush=True)
"""


def told(program: str, shape: tuple, work: str, given: object) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", PREPARED + program, repr((*shape, work, given))]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


def number_from(child: subprocess.Popen[str]) -> float:
    assert child.stdout is not None
    return float(child.stdout.readline())


def interrupts(
    work: str, shape: tuple, n_times: int, rng: np.random.Generator
) -> tuple[float, list[float]]:
    """Seconds from each signal until the error is raised."""
    with told(INTERRUPTS, shape, work, n_times) as child:
        sweep, found = number_from(child), []
        for _ in range(n_times):
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(rng.uniform(0.01, LONGEST_WAIT))
            sent = time.monotonic()
            child.send_signal(signal.SIGINT)
            found.append(number_from(child) - sent)
    return sweep, found


def limits(n_times: int, rng: np.random.Generator) -> list[float]:
    return list(np.exp(rng.uniform(np.log(SHORTEST_LIMIT), np.log(LONGEST_LIMIT), n_times)))


def overshoots(
    work: str, shape: tuple, n_times: int, rng: np.random.Generator
) -> tuple[float, list[float]]:
    """Seconds beyond each limit."""
    wanted = limits(n_times, rng)
    scale = 0.1 if "limit / 10" in work else 1.0
    with told(LIMITS, shape, work, [float(one) for one in wanted]) as child:
        sweep = number_from(child)
        found = [max(0.0, number_from(child) - scale * one) for one in wanted]
    return sweep, found


@contextmanager
def command() -> Iterator[list[str]]:
    """Write points, and yield the command that fits them."""
    n, d, k, dtype = FEW_LARGE
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "points.npy"
        np.save(path, np.random.default_rng(0).normal(size=(n, d)).astype(dtype))
        fit = [sys.executable, "-m", "powermeans", "fit", str(path), "--clusters", str(k)]
        yield [*fit, "--output", f"{folder}/labels.csv", "--json"]


def sweep_of_command() -> float:
    with told("", FEW_LARGE, "None", None) as child:
        return number_from(child)


def interrupted(command: list[str], seconds: float) -> float:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        time.sleep(seconds)
        sent = time.monotonic()
        child.send_signal(signal.SIGINT)
        child.wait()
    return time.monotonic() - sent


def seconds_of_fit(command: list[str]) -> float:
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(json.loads(ended.stdout)["seconds"]["fitting"])


def in_turn(what: str, works: dict, measure: Callable[..., Waits]) -> Iterator[dict[str, str]]:
    """Measure each work on its shapes, which divide the number of moments among them."""
    # What a shell starts in its background ignores Ctrl-C, and so does all that this starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["POWERMEANS_NUM_THREADS"] = str(N_THREADS)
    rng = np.random.default_rng()
    for name, (work, shapes) in works.items():
        for shape in shapes:
            found = measure(work, shape, -(-N_TIMES // len(shapes)), rng)
            yield line_of(what, name, shape, *found)


def line_of(what: str, name: str, shape: tuple, sweep: float, waits: list[float]) -> dict:
    n, d, k, dtype = shape
    milliseconds = {"median ms": np.median(waits), "worst ms": max(waits), "one sweep ms": sweep}
    return {
        what: f"{name}, {n} x {d}, k={k}, {dtype}",
        "times": str(len(waits)),
        **{column: f"{1e3 * value:.0f}" for column, value in milliseconds.items()},
    }


def interrupted_works() -> Iterator[dict[str, str]]:
    what, rng = "interrupted", np.random.default_rng()
    yield from in_turn(what, INTERRUPTED, interrupts)
    with command() as fit:
        waits = [interrupted(fit, rng.uniform(0.1, 4 * LONGEST_WAIT)) for _ in range(N_TIMES)]
    yield line_of(what, "command line", FEW_LARGE, sweep_of_command(), waits)


def limited_works() -> Iterator[dict[str, str]]:
    what, rng = "ended by a limit", np.random.default_rng()
    yield from in_turn(what, LIMITED, overshoots)
    with command() as fit:
        over = [
            max(0.0, seconds_of_fit([*fit, "--max-seconds", str(limit)]) - limit)
            for limit in limits(N_TIMES, rng)
        ]
    yield line_of(what, "command line", FEW_LARGE, sweep_of_command(), over)


PARTS = {
    "interrupts": Part(
        "Ctrl-C", f"Time from the signal to the error, with {N_THREADS} threads.", interrupted_works
    ),
    "limits": Part(
        "Time limits", f"Time beyond the limit, with {N_THREADS} threads.", limited_works
    ),
}
as_page = functools.partial(parts.as_page, PARTS)

if __name__ == "__main__":
    parts.main(NAME, __doc__, PAGE, PARTS)
