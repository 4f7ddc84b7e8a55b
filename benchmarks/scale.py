"""Rows on disk and on Dask: memory within a limit, throughput, and a comparison with dask-ml.

Parts: `memory`, fits of a file of 4 times the memory limit, in a process whose address space is
limited, with the bits of a fit without a limit; `throughput`, seconds of a sweep from a file, of
one in memory and of reading alone; `peers`, fits on Dask compared with dask-ml, which needs some
12 GB. Parts that are not asked for stay as
they were stored.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from benchmarks import machine, parts
from benchmarks.pages import Page
from benchmarks.parts import Part
from benchmarks.turns import in_turns, seconds
from powermeans import KMeans, PowerKMeans, Prepare, open_data
from powermeans.engine.seeds import ParallelSeeds
from powermeans.mathematics.rules import Hard
from powermeans.scale.executors import MemoryExecutor, PartOpener, ReadingExecutor
from powermeans.scale.parted_rows import PartedPoints

NAME = "scale"
PAGE = Page("project/scale", "python -m benchmarks.scale --page")
N_FEATURES, N_MEANS, ROWS_OF_A_BLOCK = 32, 50, 2**16
TIMES_THE_LIMIT = 4
TASK = "--task"
N_THREADS = 2
SPREAD_ON_DASK = 4.0
OUTCOMES = ("inertia", "centers", "sweeps")
# glibc reserves 64 MiB of address space for each thread, and Arrow a gigabyte, used or not.
ENVIRONMENT = {"MALLOC_ARENA_MAX": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
# Memory is the same in every sweep, so a few are enough.
N_SWEEPS = 10
MODELS: dict[str, Callable[[int], Any]] = {
    "KMeans": lambda k: KMeans(k, n_init=1, max_iter=N_SWEEPS, random_state=0),
    "PowerKMeans": lambda k: PowerKMeans(k, effort="none", max_iter=N_SWEEPS, random_state=0),
}


N_BLOCKS, ROUNDS = 257, 7
CLUSTERS_OF_FITS, CLUSTERS_OF_SWEEPS = 50, (10, 50, 200)
PEERS = {"n_points": 10_000_000, "n_features": 16, "n_parts": 8, "k": 50, "n_seeds": 2}


# The data.


def block_of(
    number: int, n_rows: int, n_features: int = N_FEATURES, spread: float = 1.0
) -> NDArray[np.float32]:
    """Return points around means that all blocks share, whose standard deviation is `spread`."""
    means = spread * np.random.default_rng(0).standard_normal((N_MEANS, n_features))
    rng = np.random.default_rng([1, number])
    points = rng.standard_normal((n_rows, n_features), dtype=np.float32)
    points += means[rng.integers(N_MEANS, size=n_rows)].astype(np.float32)
    return points


def write_npy(path: Path, blocks: Iterator[NDArray[np.float32]], n_rows: int) -> None:
    shape = {"shape": (n_rows, N_FEATURES), "fortran_order": False, "descr": "<f4"}
    with open(path, "wb") as file:
        npy.write_array_header_1_0(file, shape)
        for block in blocks:
            block.tofile(file)


def write_parquet(path: Path, blocks: Iterator[NDArray[np.float32]]) -> None:
    """Write columns c0, c1, ..., and a group of rows for each block."""
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema([(f"c{f}", pa.float32()) for f in range(N_FEATURES)])
    with parquet.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for block in blocks:
            columns = [np.ascontiguousarray(column) for column in block.T]
            writer.write_table(pa.table(columns, schema))


@contextmanager
def files(n_blocks: int, rows: int = ROWS_OF_A_BLOCK) -> Iterator[list[Path]]:
    """Write the same points as NPY and as Parquet."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, "points.npy"), Path(folder, "points.parquet")]
        write_npy(paths[0], (block_of(i, rows) for i in range(n_blocks)), n_blocks * rows)
        write_parquet(paths[1], (block_of(i, rows) for i in range(n_blocks)))
        yield paths


def opened(source: Any, **options: Any) -> Any:
    """Open an array, or a file whose columns stay as they are."""
    is_table = isinstance(source, str | Path) and Path(source).suffix != ".npy"
    return open_data(source, prepare=Prepare(scale="none") if is_table else None, **options)


def whole(path: Path) -> NDArray[np.float32]:
    """Return all of a file at once."""
    if path.suffix == ".npy":
        return np.load(path)
    return np.concatenate([points for points, _ in opened(path).partition().read()])


# Memory. Fits run in processes that may map so much more than the program itself.


@dataclass(frozen=True)
class Task:
    """What is fitted, and within which limit in bytes."""

    file: str
    model: str
    clusters: int
    limit: int | None = None
    rows_per_part: int | None = None
    in_memory: bool = False


def in_a_process(task: Task) -> dict[str, Any]:
    """Return what a fit in a process of its own says."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.scale", TASK, json.dumps(asdict(task))],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent.parent,
        env={**os.environ, **ENVIRONMENT},
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{task} ended with {done.returncode}: {done.stderr[-2000:]}")
    return dict(json.loads(done.stdout))


def fitted_here(task: Task) -> dict[str, Any]:
    """Fit, and return what was found and how much memory it took."""
    with files(1, 2000) as small:  # loads what the fit will load
        MODELS[task.model](3).fit(opened(small[task.file.endswith("t")], rows_per_part=500))
    machine.begin_peak()
    before, mapped = machine.held("VmRSS"), machine.held("VmSize")
    if task.limit is not None:
        resource.setrlimit(resource.RLIMIT_AS, (mapped + task.limit,) * 2)
    try:
        source = whole(Path(task.file)) if task.in_memory else task.file
        data = opened(source, memory_limit=task.limit, rows_per_part=task.rows_per_part)
        model = MODELS[task.model](task.clusters).fit(data)
    except MemoryError as error:
        return {**asdict(task), "refused": f"MemoryError: {error}"}
    return {
        **asdict(task),
        "rows per part": data.rows_per_part,
        "sweeps": int(model.n_iter_),
        "inertia": float(model.inertia_).hex(),
        "centers": hashlib.sha256(model.cluster_centers_.tobytes()).hexdigest(),
        "held before": before,
        "peak": machine.held("VmHWM"),
    }


def memory() -> Iterator[dict[str, Any]]:
    """Fit within the limit and without one, and try to read all at once within it."""
    with files(N_BLOCKS) as paths:
        limit = paths[0].stat().st_size // TIMES_THE_LIMIT
        for model in MODELS:
            task = Task(str(paths[0]), model, CLUSTERS_OF_FITS, limit)
            within = [in_a_process(replace(task, file=str(path))) for path in paths]
            rows = within[0].get("rows per part")
            free = in_a_process(replace(task, limit=None, rows_per_part=rows, in_memory=True))
            for path, run in zip(paths, within, strict=True):
                same = all(run.get(name) == free[name] for name in OUTCOMES)
                yield line_of(f"{model}, `{path.suffix}`", limit, run, "yes" if same else "no")
        at_once = in_a_process(replace(task, in_memory=True))
        yield line_of("NPY read at once", limit, at_once, "")


def line_of(name: str, limit: int, run: Mapping[str, Any], same: str) -> dict[str, str]:
    line = {"fit": name, "limit, MB": f"{limit / 1e6:.0f}"}
    if "refused" in run:
        refused = run["refused"].partition(":")[0]
        both = dict.fromkeys(("rise, MB", "peak with the program, MB"), refused)
        return line | both | {"sweeps": "", "same bits": ""}
    return line | {
        "rise, MB": f"{(run['peak'] - run['held before']) / 1e6:.0f}",
        "peak with the program, MB": f"{run['peak'] / 1e6:.0f}",
        "sweeps": str(run["sweeps"]),
        "same bits": same,
    }


# Throughput.


def forget(path: Path) -> None:
    """Make the next reading one from the disk."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def throughput() -> Iterator[dict[str, Any]]:
    with files(N_BLOCKS) as paths:
        for path in paths:
            for n_clusters in CLUSTERS_OF_SWEEPS:
                for is_cold in (False, True):
                    yield throughput_of(path, n_clusters, is_cold)


def throughput_of(path: Path, n_clusters: int, is_cold: bool) -> dict[str, Any]:
    """Measure reading, sweeping in memory and sweeping from the file, in turns."""
    data = opened(path)
    partition = data.partition()
    from_file = PartedPoints(ReadingExecutor(partition, PartOpener(), n_threads=N_THREADS))
    assert from_file.n_points  # the first pass checks every row
    kept = open_data(whole(path), rows_per_part=data.rows_per_part).partition().read()
    in_memory = PartedPoints(MemoryExecutor(kept, PartOpener(), n_threads=N_THREADS))
    rng = np.random.default_rng(0)
    works: dict[str, Callable[[], object]] = {
        "reading": lambda: sum(len(points) for points, _ in partition.read()),
        # Other centers each time, because rows remember the last ones.
        "in memory": lambda: in_memory.sweep(rng.standard_normal((n_clusters, N_FEATURES)), Hard()),
        "from the file": lambda: from_file.sweep(
            rng.standard_normal((n_clusters, N_FEATURES)), Hard()
        ),
    }

    def timed(work: Callable[[], object]) -> float:
        if is_cold:
            forget(path)
        return seconds(work)

    contestants = {name: lambda work=work: timed(work) for name, work in works.items()}
    taken = in_turns(contestants, ROUNDS)["seconds"]
    return {
        "file": f"`{path.suffix}` from the {'disk' if is_cold else 'cache'}",
        "k": n_clusters,
        **{f"{name}, s": f"{value:.2f}" for name, value in taken.items()},
    }


# Dask.


@contextmanager
def workers() -> Iterator[Any]:
    """Start two worker processes of one thread each."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=0
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def blocks_of(n_parts: int, rows: int, n_features: int) -> Any:
    import dask.array as da

    def make(block_id: Any = None) -> NDArray:
        return block_of(block_id[0], rows, n_features, SPREAD_ON_DASK)

    chunks = ((rows,) * n_parts, (n_features,))
    return da.map_blocks(make, chunks=chunks, dtype=np.float32, meta=np.empty((0, 0), np.float32))


def dask_ml_model(k: int, seed: int) -> Any:
    from dask_ml.cluster import KMeans as DaskMLKMeans

    return DaskMLKMeans(n_clusters=k, random_state=seed)


CONTESTANTS: dict[str, Callable[[int, int], Any]] = {
    "dask-ml KMeans": dask_ml_model,
    "powermeans KMeans": lambda k, seed: KMeans(k, init=ParallelSeeds(), random_state=seed),
    'powermeans PowerKMeans(effort="none")': lambda k, seed: PowerKMeans(
        k, effort="none", random_state=seed
    ),
}


def peers() -> Iterator[dict[str, Any]]:
    """Measure seconds and the true inertia of each fit."""
    from distributed import wait

    rows = PEERS["n_points"] // PEERS["n_parts"]
    with workers():
        points = blocks_of(PEERS["n_parts"], rows, PEERS["n_features"]).persist()
        wait(points)
        for seed in range(PEERS["n_seeds"]):
            for name, make in CONTESTANTS.items():
                model = make(PEERS["k"], seed)
                taken = seconds(lambda model=model: model.fit(points))
                inertia = true_inertia(points, np.asarray(model.cluster_centers_, np.float64))
                yield {
                    "fit": name,
                    "version": version(name.partition(" ")[0]),
                    "seed": seed,
                    "seconds": f"{taken:.0f}",
                    "inertia": f"{inertia / 1e6:.1f} M",
                    "reported inertia": f"{model.inertia_ / 1e6:.1f} M",
                }


def true_inertia(points: Any, centers: NDArray) -> float:
    """Return the inertia by differences in double precision, with nothing of either package."""

    def of_block(block: NDArray) -> NDArray:
        nearest = np.full(len(block), np.inf)
        for center in centers:
            np.minimum(nearest, np.square(block - center).sum(axis=1), out=nearest)
        return nearest.sum(keepdims=True)[:, None]

    chunks = ((1,) * points.numblocks[0], (1,))
    return float(points.map_blocks(of_block, chunks=chunks, dtype=np.float64).sum().compute())


PARTS = {
    "memory": Part(
        "Memory of fits of a file",
        f"A file of 2156 MB and $k = {CLUSTERS_OF_FITS}$. The limit is on the memory that the "
        "process may map in addition to the program itself.",
        memory,
    ),
    "throughput": Part(
        "Sweeps from a file",
        "One hard sweep of the same file. Reading from the system's cache occupies the processors, "
        "as the sweep does, so a sweep from the cache takes nearly the sum of both times.",
        throughput,
    ),
    "peers": Part(
        "Compared with dask-ml",
        "10,000,000 points with 16 features around random means, in 8 partitions on two worker "
        "processes, $k = 50$. The inertia is recomputed in double precision from the returned "
        "centers; the last column is the value that the estimator reports.",
        peers,
    ),
}
as_page = functools.partial(parts.as_page, PARTS)

if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == TASK:
        print(json.dumps(fitted_here(Task(**json.loads(sys.argv[2])))))
    else:
        parts.main(NAME, __doc__, PAGE, PARTS)
