"""Rows on disk and on a cluster: memory under a limit, throughput, and what a sweep costs.

    python -m benchmarks.scale [--quick] [--page]

Memory: fits of a file of 4 times the memory limit, in a process whose address space is limited,
with the bits of a fit without a limit. Throughput: seconds of a sweep from a file beside one in
memory and beside reading alone. Costs: the constants of `benchmarks.cost_model`, and its sweeps
beside measured ones, in this process and on 1 and 2 worker processes of Dask.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from benchmarks import machine, scale_constants, scale_report
from benchmarks.limited import MODELS, Task, whole, write_parquet
from benchmarks.sweeps import seconds
from powermeans import open_data
from powermeans.parts.executors import MemoryExecutor, PartOpener, ReadingExecutor
from powermeans.parts.parted_rows import PartedRows
from powermeans.rules import Hard

N_FEATURES, N_MEANS, ROWS_OF_A_GROUP = 32, 50, 2**16
TIMES_THE_LIMIT = 4
OUTCOMES = ("inertia", "centers", "sweeps")
SUFFIXES = (".npy", ".parquet")
# glibc reserves 64 MiB of address space for each thread, and Arrow a gigabyte, used or not.
ENVIRONMENT = {"MALLOC_ARENA_MAX": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}


@dataclass(frozen=True)
class Size:
    """How large and how often."""

    megabytes: int
    clusters_of_fits: int
    clusters: tuple[int, ...]
    rounds: int
    times: int


SIZES = {"quick": Size(256, 10, (10,), 3, 1), "full": Size(2150, 50, (10, 50, 200), 7, 10)}


# The files.


def blocks(n_bytes: int) -> Iterator[NDArray[np.float32]]:
    """Points around means that lie close enough to need some sweeps."""
    rng = np.random.default_rng(0)
    means = rng.standard_normal((N_MEANS, N_FEATURES)).astype(np.float32)
    for _ in range(-(-n_bytes // (4 * N_FEATURES * ROWS_OF_A_GROUP))):
        points = rng.standard_normal((ROWS_OF_A_GROUP, N_FEATURES), dtype=np.float32)
        points += means[rng.integers(N_MEANS, size=ROWS_OF_A_GROUP)]
        yield points


def write_npy(path: Path, of: Iterator[NDArray[np.float32]], n_bytes: int) -> None:
    n_rows = -(-n_bytes // (4 * N_FEATURES * ROWS_OF_A_GROUP)) * ROWS_OF_A_GROUP
    shape = {"shape": (n_rows, N_FEATURES), "fortran_order": False, "descr": "<f4"}
    with open(path, "wb") as file:
        npy.write_array_header_1_0(file, shape)
        for block in of:
            block.tofile(file)


@contextmanager
def files(megabytes: int) -> Iterator[list[Path]]:
    """The same points as NPY and as Parquet."""
    n_bytes = megabytes * 10**6
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"points{suffix}") for suffix in SUFFIXES]
        write_npy(paths[0], blocks(n_bytes), n_bytes)
        write_parquet(paths[1], blocks(n_bytes))
        yield paths


# Memory.


def limited(task: Task) -> dict[str, Any]:
    """What a fit in a process of its own says."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.limited", json.dumps(asdict(task))],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent.parent,
        env={**os.environ, **ENVIRONMENT},
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{task} ended with {done.returncode}: {done.stderr[-2000:]}")
    return dict(json.loads(done.stdout))


def memory(paths: list[Path], n_clusters: int) -> dict[str, Any]:
    """Fits within the limit, one without, and what happens to who reads all at once."""
    limit = paths[0].stat().st_size // TIMES_THE_LIMIT
    found = []
    for model in MODELS:
        within = [limited(Task(str(path), model, n_clusters, limit)) for path in paths]
        rows_per_part = within[0].get("rows per part")
        free = Task(str(paths[0]), model, n_clusters, None, rows_per_part, in_memory=True)
        unlimited = limited(free)
        for run in within:
            same = all(run.get(name) == unlimited[name] for name in OUTCOMES)
            found.append({**run, "file": Path(run["file"]).suffix, "same bits": same})
            print(scale_report.memory_line(found[-1]), flush=True)
    at_once = limited(Task(str(paths[0]), "KMeans", n_clusters, limit, in_memory=True))
    return {
        "bytes of the file": {path.suffix: path.stat().st_size for path in paths},
        "limit": limit,
        "clusters": n_clusters,
        "environment": ENVIRONMENT,
        "fits": found,
        "all at once": at_once.get("refused", "was not refused"),
    }


# Throughput.


def forget(path: Path) -> None:
    """Let the next reading be from the disk."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def throughput(paths: list[Path], size: Size, n_threads: int) -> list[dict[str, Any]]:
    found = []
    for path in paths:
        data = open_data(path)
        partition = data.partition()
        from_file = PartedRows(ReadingExecutor(partition, PartOpener(), n_threads=n_threads))
        assert from_file.n_points  # the first pass checks every row
        points = whole(path)
        parts = open_data(points, rows_per_part=data.rows_per_part).partition().read()
        kept = PartedRows(MemoryExecutor(parts, PartOpener(), n_threads=n_threads))
        for n_clusters in size.clusters:
            for is_cold in (False, True):
                taken = in_turns(path, partition, from_file, kept, n_clusters, size.rounds, is_cold)
                medians = {name: statistics.median(times) for name, times in taken.items()}
                slower = max(medians["reading"], medians["in memory"])
                found.append(
                    {
                        "file": path.suffix,
                        "from": "disk" if is_cold else "cache",
                        "clusters": n_clusters,
                        "threads": n_threads,
                        "seconds": medians,
                        "of the smaller speed": slower / medians["from the file"],
                    }
                )
                print(found[-1], flush=True)
    return found


def in_turns(
    path: Path,
    partition: Any,
    from_file: PartedRows,
    kept: PartedRows,
    n_clusters: int,
    rounds: int,
    is_cold: bool,
) -> dict[str, list[float]]:
    """Seconds of each, by turns. Centers are others each time: rows remember what they saw."""
    rng = np.random.default_rng(0)
    taken: dict[str, list[float]] = {"reading": [], "in memory": [], "from the file": []}
    for _ in range(rounds):
        centers = rng.standard_normal((n_clusters, N_FEATURES))
        actions: dict[str, Callable[[], object]] = {
            "reading": lambda: sum(len(points) for points, _ in partition.read()),
            "in memory": lambda centers=centers: kept.sweep(centers, Hard()),
            "from the file": lambda centers=centers: from_file.sweep(centers, Hard()),
        }
        for name, action in actions.items():
            if is_cold:
                forget(path)
            taken[name].append(seconds(action))
    return taken


PARTS = ("memory", "throughput", "costs")


def measured(size: Size, parts: list[str], n_threads: int) -> dict[str, Any]:
    figures: dict[str, Any] = {"megabytes": size.megabytes, "features": N_FEATURES}
    if set(parts) & {"memory", "throughput"}:
        with files(size.megabytes) as paths:
            if "memory" in parts:
                figures["memory"] = memory(paths, size.clusters_of_fits)
            if "throughput" in parts:
                figures["throughput"] = throughput(paths, size, n_threads)
    if "costs" in parts:
        figures["costs"] = scale_constants.measured(size.times, size.rounds)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="256 MB instead of 2.15 GB")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--page", action="store_true", help="write docs/scale.md of what is stored")
    asked = parser.parse_args()
    if asked.page:
        clusters = (
            machine.read(f"clusters_{what}", f"clusters {what}") for what in ("overhead", "peers")
        )
        scale_report.PAGE.write(scale_report.as_page(machine.read("scale", "scale"), *clusters))
        return
    start = time.perf_counter()
    figures = measured(SIZES["quick" if asked.quick else "full"], asked.parts, asked.threads)
    figures["seconds in all"] = time.perf_counter() - start
    print(f"stored in {machine.store('scale', figures)}")


if __name__ == "__main__":
    main()
