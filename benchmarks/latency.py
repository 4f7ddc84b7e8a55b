"""How long Ctrl-C and `max_seconds` take to end what runs: `make latency`."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.machine import read, store
from benchmarks.pages import Page, as_markdown, as_text

PAGE = Page("many_cores", "python -m benchmarks.latency --page")
LONGEST_WAIT = 3.0
LIMIT_MS = 200.0

# What is interrupted, again and again: statements over points X and centers C.
WORK = {
    "fit": "PowerKMeans(k, random_state=0).fit(X)",
    "Lloyd's": "KMeans(k, n_init=1, random_state=0).fit(X)",
    "seeding": "kmeans_plusplus(X, k, random_state=0)",
    "predict": "model.predict(X)",
    "choose_k": "choose_k(X, range(2, 9), random_state=0)",
    "one pass": "OnlineKMeans(k, random_state=0).fit(X)",
}
SHAPES = {
    "60000 x 256, k=2000, float32": (60_000, 256, 2000, "float32"),
    "400000 x 3, k=500, float64": (400_000, 3, 500, "float64"),
    "5000 x 1500, k=1000, float32": (5000, 1500, 1000, "float32"),
}
PROGRAM = """
import sys, time, warnings
import numpy as np
from powermeans import KMeans, OnlineKMeans, PowerKMeans, choose_k, kmeans_plusplus
warnings.simplefilter("ignore")
n, d, k, dtype, work, questions = eval(sys.argv[1])
X = np.random.default_rng(0).normal(size=(n, d)).astype(dtype)
model = KMeans(k, init=X[:k], n_init=1, max_iter=1).fit(X) if work == "model.predict(X)" else None
work = compile(work, "work", "eval")
for _ in range(questions):
    try:
        print("begin", flush=True)
        while True:
            eval(work)
    except KeyboardInterrupt:
        ended = time.monotonic()
    print(ended, flush=True)
"""
COMMAND = [sys.executable, "-m", "powermeans", "fit"]
LIMITED = """
import sys, time, warnings
import numpy as np
from powermeans import PowerKMeans
warnings.simplefilter("ignore")
n, d, k, dtype, limit = eval(sys.argv[1])
X = np.random.default_rng(0).normal(size=(n, d)).astype(dtype)
began = time.monotonic()
PowerKMeans(k, max_seconds=limit, random_state=0).fit(X)
print(time.monotonic() - began - limit)
"""


def latencies(work: str, shape: tuple, n_times: int, rng: np.random.Generator) -> list[float]:
    """Seconds from each signal until the error is raised."""
    told = repr((*shape, work, n_times))
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, told], stdout=subprocess.PIPE, text=True
    ) as child:
        found = []
        for _ in range(n_times):
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(rng.uniform(0.01, LONGEST_WAIT))
            sent = time.monotonic()
            child.send_signal(signal.SIGINT)
            found.append(float(child.stdout.readline()) - sent)
    return found


def latencies_of_command(n_times: int, rng: np.random.Generator) -> list[float]:
    """Seconds from each signal until the command has said so and ended."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "points.npy"
        np.save(path, np.random.default_rng(0).normal(size=(60_000, 256)))
        command = [*COMMAND, str(path), "--clusters", "1000", "--output", f"{folder}/labels.csv"]
        for _ in range(n_times):
            with subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            ) as child:
                time.sleep(rng.uniform(2, 2 + LONGEST_WAIT))
                sent = time.monotonic()
                child.send_signal(signal.SIGINT)
                child.wait()
            found.append(time.monotonic() - sent)
    return found


def overshoot(shape: tuple, limit: float) -> float:
    output = subprocess.run(
        [sys.executable, "-c", LIMITED, repr((*shape, limit))],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(output.stdout)


def measured(n_times: int, threads: int) -> dict:
    """About `n_times` latencies in all, and overshoots, in milliseconds."""
    os.environ["POWERMEANS_NUM_THREADS"] = str(threads)
    rng = np.random.default_rng()
    n_each = max(1, n_times // (len(WORK) * len(SHAPES) + 1))
    interrupts = {}
    for shape_name, shape in SHAPES.items():
        for name, work in WORK.items():
            found = latencies(work, shape, n_each, rng)
            interrupts[f"{name}, {shape_name}"] = [1e3 * one for one in found]
            print(as_text(row_of(f"{name}, {shape_name}", found)), flush=True)
    found = latencies_of_command(n_each, rng)
    interrupts["command line, 60000 x 256, k=1000"] = [1e3 * one for one in found]
    limits = {
        f"{shape_name}, {limit:g} s": 1e3 * overshoot(shape, limit)
        for shape_name, shape in SHAPES.items()
        for limit in (0.3, 2)
    }
    return {"threads": threads, "interrupts": interrupts, "over max_seconds": limits}


def row_of(name: str, seconds: list[float]) -> list[list[str]]:
    return [[name, *(f"{1e3 * one:.0f}" for one in seconds)]]


def tables(figures: dict) -> tuple[list[list[str]], list[list[str]]]:
    head = ["interrupted", "times", "median ms", "worst ms"]
    parts = figures["interrupts"]
    everything = [one for found in parts.values() for one in found]
    rows = [
        [name, str(len(found)), f"{np.median(found):.0f}", f"{max(found):.0f}"]
        for name, found in {**parts, "all": everything}.items()
    ]
    over = [[name, f"{one:.0f}"] for name, one in figures["over max_seconds"].items()]
    return [head, *rows], [["fit with max_seconds", "ms beyond"], *over]


def page() -> None:
    stored = read("latency", "latency")
    figures = stored["figures"]
    heading = (
        f"Measured on {stored['date']} by `{stored['command']}` on {stored['processor']}, "
        f"{figures['threads']} threads."
    )
    PAGE.write("\n\n".join([heading, *map(as_markdown, tables(figures))]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=100, help="signals in all")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--page", action="store_true", help="write docs/many_cores.md and end")
    arguments = parser.parse_args()
    if arguments.page:
        return page()
    figures = measured(arguments.times, arguments.threads)
    for table in tables(figures):
        print(as_text(table))
    print(f"stored in {store('latency', figures)}")
    worst = max(one for found in figures["interrupts"].values() for one in found)
    sys.exit(f"the worst is beyond {LIMIT_MS:g} ms" if worst > LIMIT_MS else 0)


if __name__ == "__main__":
    main()
