"""The parts of the benchmark of speed, each a cell for every size and dtype."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import threadpoolctl
from numpy.typing import NDArray
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.cluster import kmeans_plusplus as sklearn_kmeans_plusplus

from benchmarks.grid import GridPoint, all_kinds, mixtures, seeds_among
from benchmarks.lloyd_peers import ANY_DTYPE, OURS, Runner, runners
from benchmarks.speed_targets import (
    HARD,
    HARDER,
    HARDER_IN_FULL,
    RUNS_OF_SKLEARN,
    SKLEARN,
    SOFT,
    has_many_near_centers,
)
from benchmarks.sweeps import measure_memory, seconds
from benchmarks.turns import Contestants, in_turns, repeated, several
from powermeans import KMeans, PowerKMeans, _native, kmeans_plusplus
from powermeans.rows import Rows, open_rows
from powermeans.rules import Hard, Power, Rule

CEILINGS = Path(__file__).parent.parent / "build" / "ceilings"
# So much each fit of Lloyd's does; a distance costs some multiply-adds besides its features.
MULTIPLY_ADDS_OF_A_FIT, MULTIPLY_ADDS_BESIDE = 2.5e10, 16
FEWEST_ITERATIONS, MOST_ITERATIONS, ITERATIONS_OF_A_TRIAL = 5, 20, 2
SEEDED_AT = (100, 1000)
# Whole fits are made where all distances are at most so many multiply-adds.
MOST_WORK_OF_FITS, MOST_WORK_OF_QUICK_FITS = 5e9, 1e7
FITS_IN_HASTE = 3
LONG_SWEEP_SECONDS = 0.05
MOST_WORK_OF_TINY = 1e6
MEMORY_SHAPES = [
    (10_000_000, 2, 10),
    (400_000, 3, 510),
    (200_000, 64, 100),
    (60_000, 784, 100),
    (100_000, 128, 1000),
]
QUICK_MEMORY_SHAPES = [(20_000, 64, 10)]


@dataclass(frozen=True)
class Settings:
    """What all parts are told."""

    n_threads: int
    rounds: int
    quick: bool


def cell(point: GridPoint, dtype: str, **figures: object) -> dict:
    return {"point": point.described(), "dtype": dtype, **figures}


def ceilings(settings: Settings) -> Iterator[dict]:
    if not CEILINGS.is_file():
        raise SystemExit(f"{CEILINGS} is not there: run make bench-speed, which compiles it")
    counts = sorted({1, settings.n_threads})
    output = subprocess.run(
        [str(CEILINGS), *map(str, counts)], capture_output=True, text=True, check=True
    )
    yield {"by threads": json.loads(output.stdout)}


def lloyd(settings: Settings) -> Iterator[dict]:
    all_runners = runners(settings.n_threads)
    for point in all_kinds(quick=settings.quick):
        for dtype in ANY_DTYPE:
            able = [runner for runner in all_runners if dtype in runner.dtypes]
            yield lloyd_beside_peers(point, dtype, able, settings.rounds)


def lloyd_beside_peers(point: GridPoint, dtype: str, able: list[Runner], rounds: int) -> dict:
    points = point.load(dtype)
    seeds = seeds_among(points, point.n_clusters)
    n_distances = point.n_points * point.n_clusters
    wanted = MULTIPLY_ADDS_OF_A_FIT / (n_distances * (point.n_features + MULTIPLY_ADDS_BESIDE))
    n_iterations = int(np.clip(wanted, FEWEST_ITERATIONS, MOST_ITERATIONS))

    def contestants(n: int) -> Contestants:
        return {
            runner.name: lambda runner=runner: seconds_of_iteration(runner, points, seeds, n)
            for runner in able
        }

    figures = in_turns(
        contestants(n_iterations),
        rounds,
        trials=contestants(ITERATIONS_OF_A_TRIAL),
        may_be_left_out={runner.name for runner in able} - {OURS, SKLEARN},
    )
    return cell(point, dtype, iterations=n_iterations, **figures)


def seconds_of_iteration(
    runner: Runner, points: NDArray, seeds: NDArray, n_iterations: int
) -> float:
    began = time.perf_counter()
    n_made = runner.run(points, seeds, n_iterations)
    return (time.perf_counter() - began) / n_made


def power(settings: Settings) -> Iterator[dict]:
    for point in mixtures(quick=settings.quick):
        for dtype in ANY_DTYPE:
            points = point.load(dtype)
            centers = seeds_among(points, point.n_clusters).astype(np.float64)
            rows = open_rows(points, n_threads=settings.n_threads)
            contestants = {
                HARD: sweeping(rows, centers, Hard(), shortcuts=False),
                SOFT: sweeping(rows, centers, Power(-3.0)),
            }
            if has_many_near_centers(point.described()):
                hard_power = Power(-30.0)
                contestants[HARDER] = sweeping(rows, centers, hard_power)
                contestants[HARDER_IN_FULL] = sweeping(rows, centers, hard_power, shortcuts=False)
            yield cell(point, dtype, **in_turns(contestants, settings.rounds))


def sweeping(
    rows: Rows, centers: NDArray, rule: Rule, *, shortcuts: bool = True
) -> Callable[[], float]:
    """To be called: seconds of a sweep."""

    def measure() -> float:
        _native.take_shortcuts(shortcuts)
        try:
            return repeated(lambda: rows.sweep(centers, rule))
        finally:
            _native.take_shortcuts(True)

    return measure


def seeding(settings: Settings) -> Iterator[dict]:
    for point in mixtures(quick=settings.quick):
        if point.n_clusters not in SEEDED_AT:
            continue
        for dtype in ANY_DTYPE:
            points = point.load(dtype)
            runs = {
                name: seeded(choose, points, point.n_clusters, settings)
                for name, choose in (
                    ("ours", kmeans_plusplus),
                    ("sklearn", sklearn_kmeans_plusplus),
                )
            }
            yield cell(point, dtype, **runs)


def seeded(choose: Callable, points: NDArray, n_clusters: int, settings: Settings) -> list[dict]:
    """Seconds and potential for some random states."""
    rows = open_rows(points, n_threads=settings.n_threads)

    def one(random_state: int) -> dict:
        began = time.perf_counter()
        centers, _ = choose(points, n_clusters, random_state=random_state)
        elapsed = time.perf_counter() - began
        return {"seconds": elapsed, "inertia": rows.assign(centers.astype(np.float64))[1]}

    return several(one, settings.rounds)


def fits(settings: Settings) -> Iterator[dict]:
    most_work = MOST_WORK_OF_QUICK_FITS if settings.quick else MOST_WORK_OF_FITS
    for point in mixtures(quick=settings.quick):
        if point.work <= most_work:
            yield whole_fits(point, settings.n_threads)


def whole_fits(point: GridPoint, n_threads: int) -> dict:
    points, k = point.load("float64"), point.n_clusters

    def power_k_means(effort: str) -> Callable[[int], PowerKMeans]:
        return lambda s: PowerKMeans(k, effort=effort, random_state=s, n_threads=n_threads)

    def fitted(model: SklearnKMeans | PowerKMeans) -> dict:
        elapsed = seconds(lambda: model.fit(points))
        return {"seconds": elapsed, "inertia": float(model.inertia_)}

    kinds = {
        "sklearn": (lambda s: SklearnKMeans(k, n_init=1, random_state=s), RUNS_OF_SKLEARN),
        "fast": (power_k_means("fast"), FITS_IN_HASTE),
        "balanced": (power_k_means("balanced"), 1),
    }
    runs = {
        name: several(lambda random_state, make=make: fitted(make(random_state)), most)
        for name, (make, most) in kinds.items()
    }
    return cell(point, "float64", runs=runs)


def threads(settings: Settings) -> Iterator[dict]:
    if settings.n_threads == 1:
        return
    for point in mixtures(quick=settings.quick):
        for dtype in ANY_DTYPE:
            points = point.load(dtype)
            seeds = seeds_among(points, point.n_clusters)
            contests = tiny_fit if point.work <= MOST_WORK_OF_TINY else long_sweeps
            for what, by_threads in contests(points, seeds, settings.n_threads).items():
                yield cell(point, dtype, what=what, **in_turns(by_threads, settings.rounds))


def tiny_fit(points: NDArray, seeds: NDArray, n_threads: int) -> dict[str, Contestants]:
    def fit() -> object:
        return KMeans(len(seeds), init=seeds, n_init=1).fit(points)

    def limited(n: int) -> float:
        with threadpoolctl.threadpool_limits(n):
            return repeated(fit)

    return {"tiny fit": {str(n): lambda n=n: limited(n) for n in (1, n_threads)}}


def long_sweeps(points: NDArray, seeds: NDArray, n_threads: int) -> dict[str, Contestants]:
    """Those that take one thread long enough."""
    centers = seeds.astype(np.float64)
    rows = {n: open_rows(points, n_threads=n) for n in (1, n_threads)}
    sweeps = {
        what: {str(n): sweeping(rows[n], centers, rule, shortcuts=False) for n in rows}
        for what, rule in {"hard": Hard(), "power -3": Power(-3.0)}.items()
    }
    return {
        what: by_threads
        for what, by_threads in sweeps.items()
        if by_threads["1"]() >= LONG_SWEEP_SECONDS
    }


def memory(settings: Settings) -> Iterator[dict]:
    for shape in QUICK_MEMORY_SHAPES if settings.quick else MEMORY_SHAPES:
        for dtype in (np.float32, np.float64):
            for name in ("KMeans", "PowerKMeans"):
                figures = measure_memory(name, shape, dtype)
                yield {"point": GridPoint("mixture", *shape).described(), **figures}


PARTS: dict[str, Callable[[Settings], Iterator[dict]]] = {
    "ceilings": ceilings,
    "lloyd": lloyd,
    "power": power,
    "seeding": seeding,
    "fits": fits,
    "threads": threads,
    "memory": memory,
}
