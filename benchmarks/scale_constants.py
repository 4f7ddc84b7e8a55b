"""The constants of the cost model, measured, and its sweeps beside measured ones."""

from __future__ import annotations

import pickle
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from benchmarks.cost_model import Job, Rates, cost_of_sweep
from benchmarks.sweeps import seconds
from powermeans.parts.executors import MemoryExecutor, PartOpener
from powermeans.parts.parted_rows import PartedRows
from powermeans.rows.native import NativeRows
from powermeans.rules import Hard, Power, Rule
from powermeans.sums import Sums

# Points, features, centers.
SHAPES = [(100_000, 16, 10), (50_000, 16, 100), (20_000, 128, 10), (10_000, 128, 100)]
SHAPES += [(2_000, 128, 1000)]
POWER = Power(-3.0)
RULES: dict[str, Rule] = {"hard": Hard(), "power": POWER}
# Few points, many parts: what is left is what a part costs.
TINY_PARTS, ROWS_OF_A_TINY_PART = 512, 8
LARGE_SUMS = (10_000, 128)
BYTES_TO_SEND = 2**25
# Points, features, centers, parts; the first two are for the kernels, the third has sums that the
# workers add, the fourth has more tasks than work.
JOBS = [(400_000, 16, 50, 8), (60_000, 128, 100, 8), (30_000, 128, 1000, 16), (40_000, 16, 10, 64)]


def points_of(n_points: int, n_features: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((n_points, n_features), dtype=np.float32)


def median_of(rounds: int, sweep: Callable[[NDArray[np.float64]], object], *shape: int) -> float:
    """Median seconds of sweeps at centers that have nothing to do with each other."""
    rng, taken = np.random.default_rng(1), []
    sweep(rng.standard_normal(shape))
    for _ in range(rounds):
        centers = rng.standard_normal(shape)
        taken.append(seconds(lambda centers=centers: sweep(centers)))
    return statistics.median(taken)


def kernel_rates(rule: Rule, times: int, rounds: int) -> tuple[dict[str, float], list[float]]:
    """Seconds of one multiply-add, distance and value on one core, and how well they fit."""
    terms, taken = [], []
    for n_points, n_features, n_centers in SHAPES:
        n_points *= times
        rows = NativeRows(points_of(n_points, n_features), n_threads=1)
        took = median_of(rounds, lambda at, rows=rows: rows.sweep(at, rule), n_centers, n_features)
        n_distances = n_points * n_centers
        terms.append([n_distances * n_features, n_distances, n_points * n_features])
        taken.append(took)
    found = np.array(taken)
    # Each shape counts by its share, not by its seconds.
    relative = np.array(terms) / found[:, None]
    scale = relative.max(axis=0)
    rates, _ = nnls(relative / scale, np.ones(len(found)))
    fitted = (relative / scale) @ rates
    names = ("multiply_add", "distance", "value")
    return dict(zip(names, map(float, rates / scale), strict=True)), list(map(float, fitted))


def seconds_of_a_part(rounds: int) -> float:
    """What each part of a sweep costs beside its points."""
    points = points_of(TINY_PARTS * ROWS_OF_A_TINY_PART, 4)
    cut = [(part, None) for part in np.split(points, TINY_PARTS)]
    many = PartedRows(MemoryExecutor(cut, PartOpener(), n_threads=1))
    one = PartedRows(MemoryExecutor([(points, None)], PartOpener(), n_threads=1))
    taken = [median_of(rounds, lambda at, of=of: of.sweep(at, Hard()), 3, 4) for of in (many, one)]
    return max(0.0, (taken[0] - taken[1]) / (TINY_PARTS - 1))


def sums_of(n_centers: int, n_features: int) -> Sums:
    rng = np.random.default_rng(0)
    return Sums(rng.random((n_centers, n_features)), rng.random(n_centers), 1.0, 1.0)


def addition(rounds: int) -> dict[str, float]:
    """Sums of many centers: their bytes when they are sent, and seconds of adding two."""
    one, other = sums_of(*LARGE_SUMS), sums_of(*LARGE_SUMS)
    n_bytes = len(pickle.dumps(one, protocol=pickle.HIGHEST_PROTOCOL))
    took = statistics.median(seconds(lambda: one + other) for _ in range(3 * rounds))
    return {"bytes": n_bytes, "seconds": took, "seconds of a byte": took / n_bytes}


@contextmanager
def workers(n_workers: int) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", memory_limit=0
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def on_dask(points: NDArray[np.float32], n_parts: int) -> PartedRows:
    """The points made by the workers, so that none are sent."""
    import dask.array as da

    from powermeans.parts.dask import DaskExecutor, DaskPoints

    n_rows, n_features = -(-len(points) // n_parts), points.shape[1]

    def make(block_id: Any = None) -> NDArray[np.float32]:
        rng = np.random.default_rng(block_id[0])
        return rng.standard_normal((n_rows, n_features), dtype=np.float32)

    chunks = ((n_rows,) * n_parts, (n_features,))
    array = da.map_blocks(make, chunks=chunks, dtype=np.float32, meta=np.empty((0, 0), np.float32))
    return PartedRows(DaskExecutor(DaskPoints(array), PartOpener()))


def dask_rates(client: Any, rounds: int) -> dict[str, float]:
    """Seconds of a task, of a turn, and of a byte between two processes."""
    taken = {}
    for n_parts in (4, 64):
        rows = on_dask(points_of(4 * n_parts, 4), n_parts)
        taken[n_parts] = median_of(rounds, lambda at, rows=rows: rows.sweep(at, Hard()), 3, 4)
    task = max(0.0, (taken[64] - taken[4]) / 60)
    made = client.submit(np.ones, BYTES_TO_SEND // 8, pure=False)
    client.gather(client.submit(len, made))
    send = statistics.median(seconds(made.result) for _ in range(rounds))
    return {
        "task": task,
        "turn": max(0.0, taken[4] - 4 * task),
        "byte_sent": max(0.0, send - 2 * task) / BYTES_TO_SEND,
    }


def checked(
    kernels: dict[str, dict[str, float]], other: Rates, n_workers: int, times: int, rounds: int
) -> Iterator[dict[str, Any]]:
    """Sweeps as the model has them and as they are; no workers is this process on one core."""
    for n_points, n_features, n_centers, n_parts in JOBS:
        points = points_of(n_points * times, n_features)
        n_rows = -(-len(points) // n_parts)
        if n_workers:
            rows = on_dask(points, n_parts)
        else:
            cut = [(points[i : i + n_rows], None) for i in range(0, len(points), n_rows)]
            rows = PartedRows(MemoryExecutor(cut, PartOpener(), n_threads=1))
        job = Job(
            len(points),
            n_features,
            n_centers,
            n_parts,
            n_workers=max(1, n_workers),
            on_dask=n_workers > 0,
        )
        for name, rule in RULES.items():
            took = median_of(
                rounds, lambda at, rows=rows, rule=rule: rows.sweep(at, rule), n_centers, n_features
            )
            cost = cost_of_sweep(job, replace(other, **kernels[name]))
            yield {
                "job": asdict(job),
                "workers": n_workers,
                "rule": name,
                "model": {**asdict(cost), "total": cost.total},
                "measured": took,
            }


def measured(times: int, rounds: int) -> dict[str, Any]:
    """All constants, and the check of the model."""
    fits = {name: kernel_rates(rule, times, rounds) for name, rule in RULES.items()}
    kernels = {name: rates for name, (rates, _) in fits.items()}
    added = addition(rounds)
    figures: dict[str, Any] = {
        "kernels": kernels,
        "model over measured of the kernels": {name: fitted for name, (_, fitted) in fits.items()},
        "part": seconds_of_a_part(rounds),
        "addition": added,
        "dask": {},
        "checked": [],
    }
    none = {"task": 0.0, "turn": 0.0, "byte_sent": 0.0}
    base = {"part": figures["part"], "byte_added": added["seconds of a byte"]}
    alone = Rates(**kernels["hard"], **base, **none)
    figures["checked"] += checked(kernels, alone, 0, times, rounds)
    for n_workers in (1, 2):
        with workers(n_workers) as client:
            rates = dask_rates(client, rounds)
            figures["dask"][str(n_workers)] = rates
            print(n_workers, rates, flush=True)
            there = replace(alone, **rates)
            figures["checked"] += checked(kernels, there, n_workers, times, rounds)
    return figures
