"""Mini-batches beside scikit-learn's: inertia and time of a fit, memory of a stream.

Fits: after one pass over the points, is the inertia no higher than that of MiniBatchKMeans with the
same batch size, and the time no more than half? Theirs is taken as it comes, which ends early, and
with max_iter=1, one pass at most. All run in turns with the same threads; inertia is the mean and
seconds the median over random states.

Memory: how far the peak resident memory of a process rises while chunks of a stream come, for a
short stream and one of many times its length.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import threadpoolctl
from sklearn.cluster import MiniBatchKMeans

from benchmarks.families import draw
from benchmarks.machine import store
from benchmarks.sweeps import seconds
from powermeans import MiniBatchPowerKMeans

# Family, features, clusters, points.
FITS = [
    ("overlapping", 2, 10, 100_000),
    ("overlapping", 2, 100, 100_000),
    ("noise", 4, 50, 100_000),
    ("heavy-tails", 8, 20, 100_000),
    ("separated", 16, 50, 100_000),
    ("unbalanced", 16, 30, 300_000),
    ("unequal-spread", 32, 100, 100_000),
    ("overlapping", 128, 100, 100_000),
    ("overlapping", 2, 10, 1_000_000),
    ("noise", 2, 100, 1_000_000),
    ("unbalanced", 16, 50, 1_000_000),
    ("overlapping", 64, 100, 500_000),
]
QUICK_POINTS = 100_000
STREAMS = [("MiniBatchPowerKMeans", 50, 1000), ("OnlineKMeans", 50, 1000)]

Estimator = Callable[[int, int], Any]
ESTIMATORS: dict[str, Estimator] = {
    "powermeans": lambda k, seed: MiniBatchPowerKMeans(k, random_state=seed),
    "scikit-learn": lambda k, seed: MiniBatchKMeans(k, random_state=seed),
    "scikit-learn, one pass": lambda k, seed: MiniBatchKMeans(k, random_state=seed, max_iter=1),
}

MEMORY_PROGRAM = """
import sys
from pathlib import Path
import numpy as np
import powermeans

def kilobytes(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))

name, n_chunks = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(0)
means = 4 * rng.standard_normal((50, 32))
stream = getattr(powermeans, name)(50, random_state=0)

def learn(n):
    for _ in range(n):
        stream.partial_fit(means[rng.integers(50, size=2000)] + rng.standard_normal((2000, 32)))

learn(40)  # so that modules and the first sample do not count
Path("/proc/self/clear_refs").write_text("5")
held = kilobytes("VmRSS")
learn(n_chunks)
print((kilobytes("VmHWM") - held) * 1024)
"""


def measure_fits(problem: tuple[str, int, int, int], n_seeds: int, n_threads: int) -> dict:
    family, n_features, n_clusters, n_points = problem
    points = draw(family, n_features, n_clusters, n_points=n_points)
    elapsed: dict[str, list[float]] = {name: [] for name in ESTIMATORS}
    inertia: dict[str, list[float]] = {name: [] for name in ESTIMATORS}
    with threadpoolctl.threadpool_limits(n_threads), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(n_seeds):
            for name, make in ESTIMATORS.items():
                model = make(n_clusters, seed)
                elapsed[name].append(seconds(lambda model=model: model.fit(points)))
                inertia[name].append(model.inertia_)
    ours, *theirs = ESTIMATORS
    medians = {name: statistics.median(values) for name, values in elapsed.items()}
    means = {name: statistics.mean(values) for name, values in inertia.items()}
    return {
        "problem": problem,
        "threads": n_threads,
        "seconds": medians,
        "inertia": means,
        "share of time": {name: medians[ours] / medians[name] for name in theirs},
        "excess of theirs": {name: means[name] / means[ours] - 1 for name in theirs},
    }


def measure_memory(name: str, n_chunks: int) -> float:
    """Bytes by which the peak rises above what was held before."""
    output = subprocess.run(
        [sys.executable, "-c", MEMORY_PROGRAM, name, str(n_chunks)],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(output.stdout)


def report_fits(arguments: argparse.Namespace) -> tuple[list[dict], int]:
    print("fits: our seconds, of theirs (0.5), and by how much their inertia is higher (0)")
    rows, n_missed = [], 0
    for problem in FITS:
        if arguments.quick and problem[3] > QUICK_POINTS:
            continue
        row = measure_fits(problem, arguments.seeds, arguments.threads)
        rows.append(row)
        words = []
        for name, share in row["share of time"].items():
            excess = row["excess of theirs"][name]
            n_missed += (share > 0.5) + (excess < 0)
            words.append(f"{name} {share:.2f} {100 * excess:+.2f} %")
        ours = row["seconds"]["powermeans"]
        print(f"  {problem!s:40} {ours:7.3f} s  {'  '.join(words)}", flush=True)
    return rows, n_missed


def report_memory(arguments: argparse.Namespace) -> tuple[list[dict], int]:
    print("memory: MB by which streams of 2000 x 32 points a chunk raise the peak")
    rows, n_missed = [], 0
    for name, few, many in STREAMS:
        short, long = (measure_memory(name, n_chunks) / 1e6 for n_chunks in (few, many))
        rows.append({"estimator": name, "chunks": [few, many], "MB": [short, long]})
        n_missed += long > short + 5
        print(f"  {name:22} {few} chunks {short:.1f}, {many} chunks {long:.1f}", flush=True)
    return rows, n_missed


PARTS = {"fits": report_fits, "memory": report_memory}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--quick", action="store_true", help="no more than 100 000 points")
    arguments = parser.parse_args()
    figures, n_missed = {}, 0
    for part in arguments.parts:
        figures[part], n_missed_here = PARTS[part](arguments)
        n_missed += n_missed_here
    print(f"stored in {store('streams', json.loads(json.dumps(figures)))}")
    if n_missed:
        sys.exit(f"{n_missed} figures are beyond their limits")


if __name__ == "__main__":
    main()
