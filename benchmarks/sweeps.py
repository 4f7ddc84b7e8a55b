"""Speed of a sweep beside an iteration of scikit-learn's Lloyd, memory of a fit, import time.

Sweeps: seconds for a hard sweep and for power sweeps beside an iteration of scikit-learn's Lloyd,
from the same centers on the same data with the same threads, in turns, medians of several rounds.
An iteration of scikit-learn's is the difference between a long fit and a short one, divided by the
iterations between, so that its checks of the input and its last assignment do not count.

Memory: how far the peak resident memory of a process rises above that of the input it holds.

Import: seconds that `import powermeans` takes after `import sklearn`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping

import numpy as np
import threadpoolctl
from sklearn.cluster import KMeans

from benchmarks.machine import store
from powermeans.rows.native import NativeRows
from powermeans.rules import Hard, Power

SHAPES = [(100_000, 2, 100), (100_000, 64, 256), (60_000, 784, 10), (60_000, 784, 100)]
DTYPES = [np.float32, np.float64]
ITERATIONS = 6


def mixture(n_points: int, n_features: int, n_centers: int, dtype: type) -> tuple:
    """Points of an overlapping mixture, filled in place, and some of them as centers."""
    rng = np.random.default_rng(0)
    # As far apart in many dimensions as in two: Lloyd is not done after a few iterations.
    means = rng.standard_normal((n_centers, n_features)) * (2 * (2 / n_features) ** 0.5)
    points = np.empty((n_points, n_features), dtype)
    step = max(1, 2**17 // n_features)  # small, so that what it frees hides nothing later
    for start in range(0, n_points, step):
        block = points[start : start + step]
        labels = rng.integers(0, n_centers, len(block))
        block[:] = means[labels] + rng.standard_normal(block.shape)
    centers = points[rng.choice(n_points, n_centers, replace=False)]
    return points, centers


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def seconds_of_lloyd(points: np.ndarray, centers: np.ndarray) -> float:
    def fit(iterations: int) -> tuple[float, int]:
        model = KMeans(len(centers), init=centers, n_init=1, max_iter=iterations, tol=0)
        return seconds(lambda: model.fit(points)), model.n_iter_

    (long, n_long), (short, n_short) = fit(1 + ITERATIONS), fit(1)
    if n_long - n_short != ITERATIONS:
        raise RuntimeError("Lloyd converged too soon to be timed: make the mixture overlap more")
    return (long - short) / ITERATIONS


def measure_sweeps(shape: tuple, dtype: type, n_threads: int, rounds: int) -> dict:
    """Median seconds of each, measured in turns."""
    points, seeds = mixture(*shape, dtype)
    rows = NativeRows(points, n_threads=n_threads)
    centers = seeds.astype(np.float64)

    def repeated(rule: Hard | Power) -> float:
        return seconds(lambda: [rows.sweep(centers, rule) for _ in range(3)]) / 3

    contestants = {
        "sklearn": lambda: seconds_of_lloyd(points, seeds),
        "hard": lambda: repeated(Hard()),
        "power -3": lambda: repeated(Power(-3.0)),
        "power -30": lambda: repeated(Power(-30.0)),
    }
    times: dict[str, list[float]] = {name: [] for name in contestants}
    with threadpoolctl.threadpool_limits(n_threads), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's fits are cut short on purpose
        for _ in range(rounds):
            for name, measure in contestants.items():
                times[name].append(measure())
    medians = {name: statistics.median(values) for name, values in times.items()}
    ratios = {name: medians[name] / medians["sklearn"] for name in list(medians)[1:]}
    return {
        "shape": shape,
        "dtype": np.dtype(dtype).name,
        "threads": n_threads,
        "seconds": medians,
        "ratio to sklearn": ratios,
    }


MEMORY_PROGRAM = """
import sys
from pathlib import Path
from benchmarks.sweeps import mixture
from powermeans import KMeans, PowerKMeans

def kilobytes(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))

name, n, d, k, dtype = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5]
fits = {
    "KMeans": lambda points: KMeans(k, max_iter=5, random_state=0).fit(points),
    "PowerKMeans": lambda points: PowerKMeans(k, effort="fast", random_state=0).fit(points),
}
# So that modules loaded on the way do not count.
fits[name](mixture(max(500, 2 * k), d, k, dtype)[0])
points, _ = mixture(n, d, k, dtype)
Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
held = kilobytes("VmRSS")
fits[name](points)
print((kilobytes("VmHWM") - held) * 1024, points.nbytes)
"""


def measure_memory(
    name: str, shape: tuple, dtype: type, environment: Mapping[str, str] | None = None
) -> dict:
    arguments = [name, *map(str, shape), np.dtype(dtype).name]
    output = subprocess.run(
        [sys.executable, "-c", MEMORY_PROGRAM, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    risen, held = map(int, output.stdout.split())
    return {
        "estimator": name,
        "shape": shape,
        "dtype": np.dtype(dtype).name,
        "input MB": held / 1e6,
        "peak over input MB": risen / 1e6,
        "allowed MB": held / 10e6 + 50,
    }


def measure_import(rounds: int) -> float:
    program = (
        "import sklearn, time; start = time.perf_counter(); import powermeans; "
        "print(time.perf_counter() - start)"
    )
    runs = [
        float(
            subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout
        )
        for _ in range(rounds + 1)
    ]
    return statistics.median(runs[1:])


def limit_of(shape: tuple, name: str) -> float:
    """The ratio to scikit-learn's iteration that a sweep may have."""
    if name == "hard":
        return 1.3
    return 6.0 if shape[1] == 2 else 3.0


def report_sweeps(arguments: argparse.Namespace) -> tuple[list[dict], int]:
    print("sweeps: ratio to an iteration of scikit-learn's (limit)")
    rows, n_missed = [], 0
    for shape in SHAPES:
        for dtype in DTYPES:
            row = measure_sweeps(shape, dtype, arguments.threads, arguments.rounds)
            rows.append(row)
            ratios = row["ratio to sklearn"]
            n_missed += sum(ratio > limit_of(shape, name) for name, ratio in ratios.items())
            words = "  ".join(
                f"{name} {r:.2f} ({limit_of(shape, name)})" for name, r in ratios.items()
            )
            lloyd = row["seconds"]["sklearn"] * 1e3
            print(f"  {shape!s:20} {row['dtype']:8} sklearn {lloyd:7.1f} ms  {words}", flush=True)
    return rows, n_missed


def report_memory(arguments: argparse.Namespace) -> tuple[list[dict], int]:
    print("memory: peak over the input, MB (limit)")
    rows, n_missed = [], 0
    for shape in SHAPES:
        for dtype in DTYPES:
            for name in ("KMeans", "PowerKMeans"):
                row = measure_memory(name, shape, dtype)
                rows.append(row)
                n_missed += row["peak over input MB"] > row["allowed MB"]
                print(
                    f"  {name:12} {shape!s:20} {row['dtype']:8} input {row['input MB']:6.1f}  "
                    f"peak over it {row['peak over input MB']:6.1f} ({row['allowed MB']:.0f})",
                    flush=True,
                )
    return rows, n_missed


def report_import(arguments: argparse.Namespace) -> tuple[float, int]:
    elapsed = measure_import(arguments.rounds)
    print(f"import: {elapsed:.3f} s after sklearn (0.2)")
    return elapsed, elapsed > 0.2


PARTS = {"import": report_import, "memory": report_memory, "sweeps": report_sweeps}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    arguments = parser.parse_args()
    n_missed = 0
    for part in arguments.parts:
        figures, n_missed_here = PARTS[part](arguments)
        n_missed += n_missed_here
        print(f"stored in {store(part, json.loads(json.dumps(figures)))}")
    if n_missed:
        sys.exit(f"{n_missed} figures are above their limits")


if __name__ == "__main__":
    main()
