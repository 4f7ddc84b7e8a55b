"""A large CSV: how long reading takes and how much memory, beside pandas and a fit of scikit-learn.

Each reader runs in a process of its own, in turns; seconds are medians, and memory is by how much
the peak of the process rises while it reads, as a multiple of the array that comes out. The fit is
scikit-learn's KMeans with its defaults, 8 clusters, in the process that read with pandas.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.families import draw
from benchmarks.machine import store

N_FEATURES, N_CLUSTERS = 10, 8

PREAMBLE = """
import json, sys, time
from pathlib import Path

def kilobytes(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))

def measured(read):
    Path("/proc/self/clear_refs").write_text("5")
    held, started = kilobytes("VmRSS"), time.perf_counter()
    points = read(sys.argv[1])
    seconds = time.perf_counter() - started
    risen = (kilobytes("VmHWM") - held) * 1024
    return points, {"seconds": seconds, "memory": risen / points.nbytes}
"""

POWERMEANS = """
from powermeans.tables import read_table
import pyarrow.csv
_, figures = measured(lambda path: read_table(path).points)
print(json.dumps(figures))
"""

PANDAS = """
import pandas
from sklearn.cluster import KMeans
points, figures = measured(lambda path: pandas.read_csv(path).to_numpy())
started = time.perf_counter()
KMeans(int(sys.argv[2]), random_state=0).fit(points)
figures["seconds of the fit"] = time.perf_counter() - started
print(json.dumps(figures))
"""


def run(program: str, path: Path) -> dict[str, float]:
    output = subprocess.run(
        [sys.executable, "-c", PREAMBLE + program, str(path), str(N_CLUSTERS)],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(output.stdout)


def write_csv(path: Path, n_points: int) -> None:
    points = draw("overlapping", N_FEATURES, N_CLUSTERS, n_points=n_points)
    header = ",".join(f"column_{number}" for number in range(1, N_FEATURES + 1))
    np.savetxt(path, points, fmt="%.15g", delimiter=",", header=header, comments="")


def medians(runs: list[dict[str, float]]) -> dict[str, float]:
    return {field: statistics.median(one[field] for one in runs) for field in runs[0]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.csv"
        write_csv(path, arguments.rows)
        turns = [(run(POWERMEANS, path), run(PANDAS, path)) for _ in range(arguments.turns)]
        size = path.stat().st_size
    ours, theirs = (medians(list(runs)) for runs in zip(*turns, strict=True))
    print(f"{arguments.rows} x {N_FEATURES}, {size / 1e6:.0f} MB, medians of {arguments.turns}")
    for reader, figures in (("powermeans", ours), ("pandas", theirs)):
        seconds, memory = figures["seconds"], figures["memory"]
        print(f"{reader:10} reads in {seconds:.2f} s, memory {memory:.2f} x the array")
    print(f"scikit-learn fits in {theirs['seconds of the fit']:.2f} s")
    figures = {"rows": arguments.rows, "bytes": size, "powermeans": ours, "pandas": theirs}
    print(f"written: {store('tables', figures)}")
    return int(ours["seconds"] > theirs["seconds of the fit"] or ours["memory"] > 3)


if __name__ == "__main__":
    sys.exit(main())
