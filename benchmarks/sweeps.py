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
from collections.abc import Callable

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
    means = rng.standard_normal((n_centers, n_features)) * 2
    points = np.empty((n_points, n_features), dtype)
    for start in range(0, n_points, 4096):
        block = points[start : start + 4096]
        labels = rng.integers(0, n_centers, len(block))
        block[:] = means[labels] + rng.standard_normal(block.shape)
    centers = points[rng.choice(n_points, n_centers, replace=False)]
    return points, centers


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def seconds_of_lloyd(points: np.ndarray, centers: np.ndarray) -> float:
    def fit(iterations: int) -> float:
        model = KMeans(len(centers), init=centers, n_init=1, max_iter=iterations, tol=0)
        return seconds(lambda: model.fit(points))

    return (fit(1 + ITERATIONS) - fit(1)) / ITERATIONS


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
import resource, sys
import numpy as np
from benchmarks.sweeps import mixture
from powermeans import KMeans, PowerKMeans
name, n, d, k, dtype = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5]
small, _ = mixture(500, d, k, dtype)
fits = {
    "KMeans": lambda points: KMeans(k, max_iter=5, random_state=0).fit(points),
    "PowerKMeans": lambda points: PowerKMeans(k, max_iter=5, random_state=0).fit(points),
}
fits[name](small)  # so that modules loaded on the way do not count
points, _ = mixture(n, d, k, dtype)
held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
fits[name](points)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held) * 1024, points.nbytes)
"""


def measure_memory(name: str, shape: tuple, dtype: type) -> dict:
    arguments = [name, *map(str, shape), np.dtype(dtype).name]
    output = subprocess.run(
        [sys.executable, "-c", MEMORY_PROGRAM, *arguments],
        capture_output=True,
        text=True,
        check=True,
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()

    print("sweeps: seconds, and their ratio to scikit-learn's iteration")
    sweeps = []
    for shape in SHAPES:
        for dtype in DTYPES:
            row = measure_sweeps(shape, dtype, arguments.threads, arguments.rounds)
            sweeps.append(row)
            ratios = "  ".join(f"{name} {r:.2f}" for name, r in row["ratio to sklearn"].items())
            lloyd = row["seconds"]["sklearn"] * 1e3
            print(f"  {shape!s:20} {row['dtype']:8} sklearn {lloyd:7.1f} ms  {ratios}", flush=True)

    print("memory: peak over the input, MB (allowed)")
    memory = []
    for shape in SHAPES:
        for dtype in DTYPES:
            for name in ("KMeans", "PowerKMeans"):
                row = measure_memory(name, shape, dtype)
                memory.append(row)
                print(
                    f"  {name:12} {shape!s:20} {row['dtype']:8} input {row['input MB']:6.1f}  "
                    f"peak over it {row['peak over input MB']:6.1f} ({row['allowed MB']:.0f})",
                    flush=True,
                )

    import_seconds = measure_import(arguments.rounds)
    print(f"import powermeans after sklearn: {import_seconds:.3f} s")
    figures = {"sweeps": sweeps, "memory": memory, "import seconds": import_seconds}
    print(f"stored in {store('sweeps', json.loads(json.dumps(figures)))}")


if __name__ == "__main__":
    main()
