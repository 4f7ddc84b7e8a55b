"""The parts of the benchmark of speed, each a cell for every size and dtype."""

from __future__ import annotations

import json
import math
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.cluster import kmeans_plusplus as sklearn_kmeans_plusplus

from benchmarks.apart import Code, environment
from benchmarks.grid import GridPoint, all_kinds, mixtures, seeds_among
from benchmarks.lloyd_peers import ANY_DTYPE, OURS, Runner, runners
from benchmarks.speed_targets import (
    FRACTIONAL,
    HARD,
    HARDER,
    HARDER_IN_FULL,
    RUNS_OF_SKLEARN,
    SKLEARN,
    SOFT,
    has_many_near_centers,
)
from benchmarks.sweeps import measure_memory, seconds
from benchmarks.turns import Contestants, in_turns, several_in_turns

IN_MEMORY = "/dev/shm"
CEILINGS = Path(__file__).parent.parent / "build" / "ceilings"
# So much each fit of Lloyd's does; a distance costs some multiply-adds besides its features.
MULTIPLY_ADDS_OF_A_FIT, MULTIPLY_ADDS_BESIDE = 2.5e10, 16
FEWEST_ITERATIONS, MOST_ITERATIONS, ITERATIONS_OF_A_TRIAL = 5, 20, 2
SEEDED_AT = (100, 1000)
RANDOM_STATES, PATIENCE_WITH_SEEDS = 3, 10.0
# Whole fits are made where all distances are at most so many multiply-adds.
MOST_WORK_OF_FITS, MOST_WORK_OF_QUICK_FITS = 5e9, 1e7
ROWS_IN_A_MILLION = GridPoint("overlapping", 1_000_000, 10, 10)
# Of each method at most so many fits, and no further one after so many seconds.
FITS = {
    "sklearn": (RUNS_OF_SKLEARN, 20.0),
    "KMeans": (3, 5.0),
    "fast": (3, 20.0),
    "balanced": (3, 5.0),
}
POWERS_OF_SHARES = {"hard": -math.inf, "-3": -3.0, "-3.3": -3.3, "-10": -10.0, "-30": -30.0}
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
    codes: Mapping[str, Code]
    """By what is put before the names of its figures: nothing for the code of today."""

    def asked_of_each(
        self, name: str, question: str, *, n_threads: int | None = None, **options: object
    ) -> dict[str, Callable[..., dict]]:
        """To be called, perhaps with more options: the answer of each code."""
        return {
            before + name: lambda code=code, **more: code.ask(
                question, n_threads or self.n_threads, **options, **more
            )
            for before, code in self.codes.items()
        }

    def give(self, points: NDArray, seeds: NDArray) -> None:
        """Let each code read the points."""
        folder = IN_MEMORY if os.path.isdir(IN_MEMORY) else None
        with tempfile.NamedTemporaryFile(suffix=".npy", dir=folder) as file:
            np.save(file, points)
            file.flush()
            for code in self.codes.values():
                code.ask("take", path=file.name, seeds=seeds)


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
    peers = runners(settings.n_threads)
    for point in all_kinds(quick=settings.quick):
        for dtype in ANY_DTYPE:
            able = [runner for runner in peers if dtype in runner.dtypes]
            yield lloyd_beside_peers(point, dtype, able, settings)


def lloyd_beside_peers(
    point: GridPoint, dtype: str, peers: list[Runner], settings: Settings
) -> dict:
    points, seeds = given(point, dtype, settings)

    def contestants(n: int) -> Contestants:
        theirs = {
            peer.name: lambda peer=peer: seconds_of_iteration(peer, points, seeds, n)
            for peer in peers
        }
        return {**settings.asked_of_each(OURS, "iteration", n_iterations=n), **theirs}

    n_iterations = iterations_worth_timing(point)
    figures = in_turns(
        contestants(n_iterations),
        settings.rounds,
        trials=contestants(ITERATIONS_OF_A_TRIAL),
        may_be_left_out={peer.name for peer in peers} - {SKLEARN},
    )
    return cell(point, dtype, iterations=n_iterations, **figures)


def given(point: GridPoint, dtype: str, settings: Settings) -> tuple[NDArray, NDArray]:
    """Points and seeds, which each code has too from now on."""
    points = point.load(dtype)
    seeds = seeds_among(points, point.n_clusters)
    settings.give(points, seeds)
    return points, seeds


def iterations_worth_timing(point: GridPoint) -> int:
    n_distances = point.n_points * point.n_clusters
    wanted = MULTIPLY_ADDS_OF_A_FIT / (n_distances * (point.n_features + MULTIPLY_ADDS_BESIDE))
    return int(np.clip(wanted, FEWEST_ITERATIONS, MOST_ITERATIONS))


def seconds_of_iteration(
    runner: Runner, points: NDArray, seeds: NDArray, n_iterations: int
) -> float:
    began = time.perf_counter()
    n_made = runner.run(points, seeds, n_iterations)
    return (time.perf_counter() - began) / n_made


def power(settings: Settings) -> Iterator[dict]:
    for point in mixtures(quick=settings.quick):
        for dtype in ANY_DTYPE:
            given(point, dtype, settings)
            sweeps = {
                HARD: (-math.inf, False),
                SOFT: (-3.0, True),
                FRACTIONAL: (-3.3, True),
                HARDER: (-30.0, True),
            }
            if has_many_near_centers(point.described()):
                sweeps[HARDER_IN_FULL] = (-30.0, False)
            contestants: dict = {}
            for name, (exponent, shortcuts) in sweeps.items():
                contestants |= settings.asked_of_each(
                    name, "sweep", power=exponent, shortcuts=shortcuts
                )
            yield cell(point, dtype, **in_turns(contestants, settings.rounds))


def shares(settings: Settings) -> Iterator[dict]:
    for point in mixtures(quick=settings.quick):
        for dtype in ANY_DTYPE:
            given(point, dtype, settings)
            n_sweeps = iterations_worth_timing(point)
            computed = {
                name: settings.codes[""].ask(
                    "shares", settings.n_threads, power=exponent, n_sweeps=n_sweeps
                )
                for name, exponent in POWERS_OF_SHARES.items()
            }
            yield cell(point, dtype, shares=computed)


def seeding(settings: Settings) -> Iterator[dict]:
    for point in mixtures(quick=settings.quick):
        if point.n_clusters not in SEEDED_AT:
            continue
        for dtype in ANY_DTYPE:
            points, _ = given(point, dtype, settings)
            theirs = seeded_by_sklearn(points, point.n_clusters, settings)
            choosers = {**settings.asked_of_each("ours", "seed"), "sklearn": theirs}
            most = dict.fromkeys(choosers, (RANDOM_STATES, PATIENCE_WITH_SEEDS))
            yield cell(point, dtype, **several_in_turns(choosers, most))


def seeded_by_sklearn(points: NDArray, n_clusters: int, settings: Settings) -> Callable[..., dict]:
    """To be called: seconds and potential for a random state."""

    def choose(*, random_state: int) -> dict:
        began = time.perf_counter()
        centers, _ = sklearn_kmeans_plusplus(points, n_clusters, random_state=random_state)
        elapsed = time.perf_counter() - began
        inertia = settings.codes[""].ask("inertia", settings.n_threads, centers=centers)
        return {"seconds": elapsed, "inertia": inertia}

    return choose


def fits(settings: Settings) -> Iterator[dict]:
    most_work = MOST_WORK_OF_QUICK_FITS if settings.quick else MOST_WORK_OF_FITS
    points = mixtures(quick=settings.quick) + ([] if settings.quick else [ROWS_IN_A_MILLION])
    for point in points:
        if point.work <= most_work:
            yield whole_fits(point, settings)


def whole_fits(point: GridPoint, settings: Settings) -> dict:
    points, _ = given(point, "float64", settings)

    def by_sklearn(*, random_state: int) -> dict:
        model = SklearnKMeans(point.n_clusters, n_init=1, random_state=random_state)
        elapsed = seconds(lambda: model.fit(points))
        return {"seconds": elapsed, "inertia": float(model.inertia_)}

    fitted: dict[str, Callable[..., dict]] = {}
    most: dict[str, tuple[int, float]] = {}
    for name, limits in FITS.items():
        of = settings.asked_of_each(name, "fit", method=name)
        fitted |= {name: by_sklearn} if name == "sklearn" else of
        most |= dict.fromkeys(of, limits)
    return cell(point, "float64", runs=several_in_turns(fitted, most))


def threads(settings: Settings) -> Iterator[dict]:
    if settings.n_threads == 1:
        return
    for point in mixtures(quick=settings.quick):
        for dtype in ANY_DTYPE:
            given(point, dtype, settings)
            contests = tiny_fit if point.work <= MOST_WORK_OF_TINY else long_sweeps
            for what, by_threads in contests(settings).items():
                yield cell(point, dtype, what=what, **in_turns(by_threads, settings.rounds))


def by_threads(settings: Settings, question: str, **options: object) -> Contestants:
    one, several = (
        settings.asked_of_each(str(n), question, n_threads=n, **options)
        for n in (1, settings.n_threads)
    )
    return {**one, **several}


def tiny_fit(settings: Settings) -> dict[str, Contestants]:
    return {"tiny fit": by_threads(settings, "tiny_fit")}


def long_sweeps(settings: Settings) -> dict[str, Contestants]:
    """Those that take one thread long enough."""
    sweeps = {
        what: by_threads(settings, "sweep", power=exponent, shortcuts=False)
        for what, exponent in {"hard": -math.inf, "power -3": -3.0}.items()
    }
    return {
        what: contestants
        for what, contestants in sweeps.items()
        if contestants["1"]() >= LONG_SWEEP_SECONDS
    }


def memory(settings: Settings) -> Iterator[dict]:
    for shape in QUICK_MEMORY_SHAPES if settings.quick else MEMORY_SHAPES:
        for dtype in (np.float32, np.float64):
            for name in ("KMeans", "PowerKMeans"):
                figures: dict = {}
                for before, code in settings.codes.items():
                    measured = measure_memory(name, shape, dtype, environment(code.folder))
                    figures |= {before + field: value for field, value in measured.items()}
                yield {"point": GridPoint("mixture", *shape).described(), **figures}


PARTS: dict[str, Callable[[Settings], Iterator[dict]]] = {
    "ceilings": ceilings,
    "lloyd": lloyd,
    "power": power,
    "shares": shares,
    "seeding": seeding,
    "fits": fits,
    "threads": threads,
    "memory": memory,
}
