"""What a cluster costs beside memory, and how a fit on it compares with dask-ml's.

    python -m benchmarks.clusters overhead
    python -m benchmarks.clusters peers

Needs dask[distributed], and for `peers` dask-ml. Two worker processes of one thread each;
`peers` on 10 million points needs some 12 GB.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait
from numpy.typing import NDArray

from benchmarks import machine
from powermeans import KMeans, ParallelSeeds, PowerKMeans
from powermeans.parts.dask import DaskExecutor, DaskPoints
from powermeans.parts.executors import MemoryExecutor, PartOpener
from powermeans.parts.parted_rows import PartedRows
from powermeans.rows.native import NativeRows
from powermeans.rules import Hard, Power, Rule

N_WORKERS = 2
N_MEANS = 50
BLOCK_ROWS = 2**17


def block_of(number: int, n_points: int, n_features: int) -> NDArray:
    """Points around means that all blocks share."""
    means = 4 * np.random.default_rng(0).normal(size=(N_MEANS, n_features))
    rng = np.random.default_rng([1, number])
    points = rng.standard_normal(size=(n_points, n_features), dtype=np.float32)
    points += means[rng.integers(N_MEANS, size=n_points)].astype(np.float32)
    return points


def blocks_of(n_parts: int, rows_per_part: int, n_features: int) -> Any:
    def make(block_id: Any = None) -> NDArray:
        return block_of(block_id[0], rows_per_part, n_features)

    chunks = ((rows_per_part,) * n_parts, (n_features,))
    return da.map_blocks(make, chunks=chunks, dtype=np.float32, meta=np.empty((0, 0), np.float32))


@contextmanager
def workers() -> Iterator[Client]:
    with (
        LocalCluster(
            n_workers=N_WORKERS, threads_per_worker=1, dashboard_address=":0", memory_limit=0
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def overhead(n_parts: int, megabytes: float, n_features: int, k: int, rounds: int) -> dict:
    """Seconds of a sweep, in turns, by each place where the same parts can be."""
    rows_per_part = int(megabytes * 1e6 / 4 / n_features)
    parts = [block_of(number, rows_per_part, n_features) for number in range(n_parts)]
    kept = PartedRows(
        MemoryExecutor([(part, None) for part in parts], PartOpener(), n_threads=N_WORKERS)
    )
    whole = NativeRows(np.concatenate(parts), n_threads=N_WORKERS)
    with workers():
        data = DaskPoints(blocks_of(n_parts, rows_per_part, n_features))
        on_dask = PartedRows(DaskExecutor(data, PartOpener()))
        places = {"one array": whole, "kept parts": kept, "dask": on_dask}
        by_rule = {
            name: of_sweeps(places, k, rule, rounds)
            for name, rule in {"hard": Hard(), "power": Power(-3.0)}.items()
        }
    shape = {"parts": n_parts, "megabytes": megabytes, "features": n_features, "centers": k}
    return {**shape, "points": n_parts * rows_per_part, "seconds of a sweep": by_rule}


def of_sweeps(places: dict[str, Any], k: int, rule: Rule, rounds: int) -> dict:
    centers = next(iter(places.values())).take(np.arange(k))
    taken: dict[str, list[float]] = {name: [] for name in places}
    sums = [rows.sweep(centers, rule) for rows in places.values()]
    assert np.array_equal(sums[1].points, sums[2].points)
    for number in range(rounds):
        # Other centers each time: rows remember what they saw at the ones before.
        at = centers * (1 + 1e-3 * (number + 1))
        for name, rows in places.items():
            taken[name].append(seconds(lambda rows=rows, at=at: rows.sweep(at, rule)))
    medians = {name: statistics.median(times) for name, times in taken.items()}
    return {**medians, "dask over kept parts": medians["dask"] / medians["kept parts"] - 1}


def independent_inertia(points: Any, centers: NDArray) -> float:
    """By differences in double precision, on the workers, with nothing of either package."""

    def of_block(block: NDArray) -> NDArray:
        total = 0.0
        for start in range(0, len(block), BLOCK_ROWS):
            some = block[start : start + BLOCK_ROWS].astype(np.float64)
            nearest = np.full(len(some), np.inf)
            for center in np.asarray(centers, dtype=np.float64):
                np.minimum(nearest, np.square(some - center).sum(axis=1), out=nearest)
            total += float(nearest.sum())
        return np.array([[total]])

    chunks = ((1,) * points.numblocks[0], (1,))
    return float(points.map_blocks(of_block, chunks=chunks, dtype=np.float64).sum().compute())


def dask_ml_model(k: int, seed: int) -> Any:
    from dask_ml.cluster import KMeans as DaskMLKMeans

    return DaskMLKMeans(n_clusters=k, random_state=seed)


CONTESTANTS: dict[str, Callable[[int, int], Any]] = {
    "dask-ml KMeans": dask_ml_model,
    "powermeans KMeans": lambda k, seed: KMeans(k, init=ParallelSeeds(), random_state=seed),
    "powermeans PowerKMeans(refine=0)": lambda k, seed: PowerKMeans(k, refine=0, random_state=seed),
}


def peers(n_points: int, n_features: int, k: int, n_parts: int, n_seeds: int) -> dict:
    """Seconds and true inertia of each fit."""
    runs = []
    with workers():
        points = blocks_of(n_parts, n_points // n_parts, n_features).persist()
        wait(points)
        for seed in range(n_seeds):
            for name, make in CONTESTANTS.items():
                model = make(k, seed)
                taken = seconds(lambda model=model: model.fit(points))
                inertia = independent_inertia(points, model.cluster_centers_)
                run = {"name": name, "seed": seed, "seconds": taken, "inertia": inertia}
                runs.append({**run, "own inertia": float(model.inertia_)})
                print(runs[-1], flush=True)
    made_with = {name: version(name) for name in ("dask", "distributed", "dask-ml")}
    shape = {"points": n_points, "features": n_features, "centers": k, "parts": n_parts}
    return {**shape, "made with": made_with, "runs": runs, "times to match": times_to_match(runs)}


def times_to_match(runs: list[dict]) -> dict[str, list[float | None]]:
    """For each seed of dask-ml's: its seconds over ours, fits added until one is as good."""
    theirs = [run for run in runs if run["name"].startswith("dask-ml")]
    found: dict[str, list[float | None]] = {}
    for name in CONTESTANTS:
        ours = [run for run in runs if run["name"] == name]
        if name.startswith("powermeans"):
            found[name] = [ratio(their, ours) for their in theirs]
    return found


def ratio(their: dict, ours: list[dict]) -> float | None:
    spent = 0.0
    for run in ours[their["seed"] :] + ours[: their["seed"]]:
        spent += run["seconds"]
        if run["inertia"] <= their["inertia"] * (1 + 1e-6):
            return float(their["seconds"] / spent)
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["overhead", "peers"])
    parser.add_argument("--parts", type=int, default=8)
    parser.add_argument("--megabytes", type=float, default=100.0, help="of a part, for overhead")
    parser.add_argument("--points", type=int, default=10_000_000, help="of all parts, for peers")
    parser.add_argument("--features", type=int, default=16)
    parser.add_argument("--centers", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--dry", action="store_true", help="print the figures, store nothing")
    asked = parser.parse_args()
    if asked.what == "overhead":
        figures = overhead(
            asked.parts, asked.megabytes, asked.features, asked.centers, asked.rounds
        )
    else:
        figures = peers(asked.points, asked.features, asked.centers, asked.parts, asked.seeds)
    print(figures)
    if not asked.dry:
        print(machine.store(f"clusters_{asked.what}", figures))


if __name__ == "__main__":
    main()
