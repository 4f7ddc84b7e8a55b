"""How long Ctrl-C and time limits take to end what runs: `make latency`.

Waits are those of the clock, so measure on a machine without other work: the row "a loop of Python"
shows what remains of it, and the load is stored.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks import machine
from benchmarks.pages import Page, as_markdown, as_text

NAME = "latency"
PAGE = Page("speed", "python -m benchmarks.latency --page")
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
    "fit": ("PowerKMeans(k, max_seconds=limit).fit(X)", SHAPES),
    "seeding": ("PowerKMeans(k, max_seconds=limit / 10).fit(X)", SHAPES),
    "choose_k": ("choose_k(X, range(2, 9), max_seconds=limit)", SHAPES),
    "learned covariance": (
        "PowerKMeans(k, divergence='mahalanobis', max_seconds=limit).fit(X)",
        [(20_000, 20, 20, "float64"), (1000, 300, 10, "float64")],
    ),
    "missing values": (
        "PowerKMeans(20, missing='observed', max_seconds=limit).fit(holed)",
        [(20_000, 20, 20, "float64")],
    ),
    "parts": ("PowerKMeans(50, max_seconds=limit).fit(parts)", [(200_000, 20, 50, "float64")]),
    "lower bound": ("model.optimality_gap(X, max_seconds=limit)", [SMALL]),
}
PREPARED = """
import sys, time, warnings
import numpy as np
from powermeans import KMeans, OnlineKMeans, PowerKMeans, choose_k, kmeans_plusplus
warnings.simplefilter("ignore")
n, d, k, dtype, work, given = eval(sys.argv[1])
X = np.random.default_rng(0).normal(size=(n, d)).astype(dtype)
holed = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
parts = [X[: n // 2], X[n // 2 :]]
model = KMeans(k, init=X[:k], n_init=1, max_iter=1).fit(X)
began = time.monotonic()
PowerKMeans(k, init=X[:k], refine=0, polish=False, max_iter=1, power=-9.0).fit(X)
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


def interrupts(work: str, shape: tuple, n_times: int, rng: np.random.Generator) -> dict:
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
    return {"sweep": sweep, "seconds": found}


def limits(n_times: int, rng: np.random.Generator) -> list[float]:
    return list(np.exp(rng.uniform(np.log(SHORTEST_LIMIT), np.log(LONGEST_LIMIT), n_times)))


def overshoots(work: str, shape: tuple, n_times: int, rng: np.random.Generator) -> dict:
    """Seconds beyond each limit."""
    wanted = limits(n_times, rng)
    scale = 0.1 if "limit / 10" in work else 1.0
    with told(LIMITS, shape, work, [float(one) for one in wanted]) as child:
        sweep = number_from(child)
        found = [max(0.0, number_from(child) - scale * one) for one in wanted]
    return {"sweep": sweep, "seconds": found}


def of_command(n_times: int, rng: np.random.Generator) -> Iterator[tuple[str, dict]]:
    """Seconds from each signal until the command has ended, and beyond each of its limits."""
    n, d, k, dtype = FEW_LARGE
    with told("", FEW_LARGE, "None", None) as child:
        sweep = number_from(child)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "points.npy"
        np.save(path, np.random.default_rng(0).normal(size=(n, d)).astype(dtype))
        command = [sys.executable, "-m", "powermeans", "fit", str(path), "--clusters", str(k)]
        command += ["--output", f"{folder}/labels.csv", "--json"]
        waits = [interrupted(command, rng.uniform(0.1, 4 * LONGEST_WAIT)) for _ in range(n_times)]
        yield "interrupts", {"sweep": sweep, "seconds": waits}
        wanted = limits(n_times, rng)
        over = [seconds_of_fit([*command, "--max-seconds", str(one)]) - one for one in wanted]
        yield "limits", {"sweep": sweep, "seconds": [max(0.0, one) for one in over]}


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


def measured(n_times: int, threads: int, wanted: list[str]) -> dict:
    """Waits of `n_times` random moments for each kind of work, divided among its shapes."""
    # What a shell starts in its background ignores Ctrl-C, and so does all that this starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["POWERMEANS_NUM_THREADS"] = str(threads)
    rng, load = np.random.default_rng(), [os.getloadavg()]
    found: dict[str, dict[str, dict]] = {"interrupts": {}, "limits": {}}
    for kind, works, measure in (
        ("interrupts", INTERRUPTED, interrupts),
        ("limits", LIMITED, overshoots),
    ):
        for name, (work, shapes) in works.items():
            for shape in shapes if name in wanted else []:
                title = f"{name}, {words_of(shape)}"
                found[kind][title] = measure(work, shape, -(-n_times // len(shapes)), rng)
                print(kind, *row_of(title, found[kind][title]), sep="  ", flush=True)
    if "command line" in wanted:
        for kind, one in of_command(n_times, rng):
            title = f"command line, {words_of(FEW_LARGE)}"
            found[kind][title] = one
            print(kind, *row_of(title, one), sep="  ", flush=True)
    return {"threads": threads, "load": [*load, os.getloadavg()], **found}


def words_of(shape: tuple) -> str:
    n, d, k, dtype = shape
    return f"{n} x {d}, k={k}, {dtype}"


def row_of(name: str, one: dict) -> list[str]:
    waits = one["seconds"]
    milliseconds = (np.median(waits), max(waits), one["sweep"])
    return [name, str(len(waits)), *(f"{1e3 * wait:.0f}" for wait in milliseconds)]


def tables(figures: dict) -> list[list[list[str]]]:
    titles = {"interrupts": "interrupted", "limits": "ended by a limit"}
    more = ["times", "median ms", "worst ms", "one sweep ms"]
    return [
        [[title, *more], *(row_of(name, one) for name, one in figures[kind].items())]
        for kind, title in titles.items()
    ]


def as_page(stored: dict) -> str:
    figures = stored["figures"]
    begun, ended = (round(load[0], 1) for load in figures["load"])
    heading = (
        f"{machine.measured(stored)}, {figures['threads']} threads; {begun} processes were running "
        f"as it began and {ended} as it ended."
    )
    return "\n\n".join([heading, *map(as_markdown, tables(figures))])


def main() -> None:
    works = list(dict.fromkeys([*INTERRUPTED, *LIMITED, "command line"]))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=100, help="moments for each kind of work")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=works, help="print these, and store nothing")
    parser.add_argument("--page", action="store_true", help="write what is stored into the docs")
    arguments = parser.parse_args()
    if arguments.page:
        PAGE.write(as_page(machine.read(NAME, NAME)))
        return
    figures = measured(arguments.times, arguments.threads, arguments.only or works)
    for table in tables(figures):
        print(as_text(table))
    if arguments.only is None:
        print(f"stored in {machine.store(NAME, figures)}")


if __name__ == "__main__":
    main()
