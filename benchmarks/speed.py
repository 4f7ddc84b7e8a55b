"""Speed compared with other packages and with a former commit.

Contestants take turns with the same number of threads; figures are medians of several rounds. The
other packages are called here; powermeans answers from a process of its own, and so does its former
code. The parts:

- lloyd: seconds of an iteration of Lloyd's algorithm, in fits of a fixed number of iterations
- power: sweeps at fixed powers, and a hard sweep that takes no shortcuts
- seeding: greedy k-means++
- fits: whole fits as users ask for them
- memory: how far a fit rises above its input

`make bench-speed` runs it in the environment of the peers. Nothing else should run meanwhile.

`make bench-speed FORMER=v0.1` builds that commit and measures it too; the default is the commit
whose figures are stored. Parts that are not asked for stay as they were stored.
"""

from __future__ import annotations

import argparse
import datetime
import math
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import threadpoolctl
from numpy.typing import NDArray
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.cluster import kmeans_plusplus as sklearn_kmeans_plusplus

from benchmarks import former, machine
from benchmarks.apart import Code
from benchmarks.lloyd_peers import ANY_DTYPE, OURS, Runner, runners
from benchmarks.problems import GridPoint, all_kinds, mixtures, seeds_among
from benchmarks.speed_report import FORMER, PAGE, RUNS_OF_SKLEARN, SKLEARN, as_page, as_report
from benchmarks.turns import Contestants, in_turns, seconds, several_in_turns

IN_MEMORY = "/dev/shm"
# The size of each fit of Lloyd's; a distance costs some multiply-adds besides its features.
MULTIPLY_ADDS_OF_A_FIT, MULTIPLY_ADDS_BESIDE = 2.5e10, 16
FEWEST_ITERATIONS, MOST_ITERATIONS, ITERATIONS_OF_A_TRIAL = 5, 20, 2
SEEDED_AT = (100, 1000)
# Power, and whether shortcuts are taken.
SWEEPS = {
    "hard, no shortcuts": (-math.inf, False),
    "-3": (-3.0, True),
    "-3.3": (-3.3, True),
    "-30": (-30.0, True),
}
# Of each method at most so many runs, and no further one after so many seconds.
SEEDINGS = (3, 10.0)
FITS = {
    "sklearn": (RUNS_OF_SKLEARN, 20.0),
    "KMeans": (3, 5.0),
    "fast": (3, 20.0),
    "balanced": (3, 5.0),
}
# Whole fits are made where all distances are at most so many multiply-adds.
MOST_WORK_OF_FITS, MOST_WORK_OF_QUICK_FITS = 5e9, 1e7
ROWS_IN_A_MILLION = GridPoint("overlapping", 1_000_000, 10, 10)
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
    """What all parts need."""

    n_threads: int
    rounds: int
    quick: bool
    codes: Mapping[str, Code]
    """By the prefix of the names of its figures, which is empty for the code of today."""

    def asked_of_each(
        self, name: str, question: str, *, n_threads: int | None = None, **options: object
    ) -> dict[str, Callable[..., dict]]:
        """Return functions that ask each code, and may be given more options."""
        return {
            prefix + name: lambda code=code, **more: code.ask(
                question, n_threads or self.n_threads, **options, **more
            )
            for prefix, code in self.codes.items()
        }

    def give(self, point: GridPoint, dtype: str) -> tuple[NDArray, NDArray]:
        """Return points and seeds, and let each code read them."""
        points = point.load(dtype)
        seeds = seeds_among(points, point.n_clusters)
        folder = IN_MEMORY if os.path.isdir(IN_MEMORY) else None
        with tempfile.NamedTemporaryFile(suffix=".npy", dir=folder) as file:
            np.save(file, points)
            file.flush()
            for code in self.codes.values():
                code.ask("take", path=file.name, seeds=seeds)
        return points, seeds


def cell(point: GridPoint, dtype: str, **figures: object) -> dict:
    return {"point": point.described(), "dtype": dtype, **figures}


def lloyd(settings: Settings) -> Iterator[dict]:
    peers = runners(settings.n_threads)
    for point in all_kinds(quick=settings.quick):
        for dtype in ANY_DTYPE:
            able = [runner for runner in peers if dtype in runner.dtypes]
            yield lloyd_of_all(point, dtype, able, settings)


def lloyd_of_all(point: GridPoint, dtype: str, peers: list[Runner], settings: Settings) -> dict:
    points, seeds = settings.give(point, dtype)

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


def iterations_worth_timing(point: GridPoint) -> int:
    n_distances = point.n_points * point.n_clusters
    n = MULTIPLY_ADDS_OF_A_FIT / (n_distances * (point.n_features + MULTIPLY_ADDS_BESIDE))
    return int(np.clip(n, FEWEST_ITERATIONS, MOST_ITERATIONS))


def seconds_of_iteration(
    runner: Runner, points: NDArray, seeds: NDArray, n_iterations: int
) -> float:
    began = time.perf_counter()
    n_made = runner.run(points, seeds, n_iterations)
    return (time.perf_counter() - began) / n_made


def power(settings: Settings) -> Iterator[dict]:
    for point in mixtures(quick=settings.quick):
        for dtype in ANY_DTYPE:
            settings.give(point, dtype)
            contestants: dict = {}
            for name, (exponent, shortcuts) in SWEEPS.items():
                contestants |= settings.asked_of_each(
                    name, "sweep", power=exponent, shortcuts=shortcuts
                )
            yield cell(point, dtype, **in_turns(contestants, settings.rounds))


def seeding(settings: Settings) -> Iterator[dict]:
    for point in mixtures(quick=settings.quick):
        if point.n_clusters not in SEEDED_AT:
            continue
        for dtype in ANY_DTYPE:
            points, _ = settings.give(point, dtype)
            theirs = seeded_by_sklearn(points, point.n_clusters, settings)
            choosers = {**settings.asked_of_each(OURS, "seed"), "sklearn": theirs}
            most = dict.fromkeys(choosers, SEEDINGS)
            yield cell(point, dtype, runs=several_in_turns(choosers, most))


def seeded_by_sklearn(points: NDArray, n_clusters: int, settings: Settings) -> Callable[..., dict]:
    """Return a function that measures seconds and potential for a random state."""

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
    points, _ = settings.give(point, "float64")

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


def memory(settings: Settings) -> Iterator[dict]:
    """Measure each fit in a process of its own, whose peak is that of this fit."""
    for shape in QUICK_MEMORY_SHAPES if settings.quick else MEMORY_SHAPES:
        for dtype in ANY_DTYPE:
            for name in ("KMeans", "PowerKMeans"):
                megabytes = {}
                for prefix, code in settings.codes.items():
                    fresh = Code(code.folder)
                    megabytes[prefix + name] = fresh.ask(
                        "memory", settings.n_threads, estimator=name, shape=shape, dtype=dtype
                    )
                    fresh.end()
                yield cell(GridPoint("mixture", *shape), dtype, megabytes=megabytes)


PARTS: dict[str, Callable[[Settings], Iterator[dict]]] = {
    "lloyd": lloyd,
    "power": power,
    "seeding": seeding,
    "fits": fits,
    "memory": memory,
}


# Running the parts.


def with_bystanders(cells: Iterator[dict], settings: Settings) -> Iterator[dict]:
    """Yield the cells, each with the processors that others used while it was measured."""
    while True:
        bystanders = machine.Bystanders(code.pid for code in settings.codes.values())
        figures = next(cells, None)
        if figures is None:
            return
        yield {**figures, "bystanders": bystanders.processors()}


def run_part(name: str, settings: Settings, figures: dict) -> None:
    """Measure a part anew, storing after each cell."""
    cells: list[dict] = []
    figures["parts"][name] = {
        "date": datetime.date.today().isoformat(),
        "command": machine.command(),
        "made with": figures["made with"],
        "cells": cells,
    }
    began = time.perf_counter()
    for measured in with_bystanders(PARTS[name](settings), settings):
        cells.append(measured)
        machine.store(figures["name"], figures)
        where = measured["point"]["name"]
        print(f"{time.perf_counter() - began:6.0f} s  {name:9} {where}", flush=True)


def begun(arguments: argparse.Namespace) -> dict:
    """Return the parts that are stored already, if they have the same machine and settings."""
    settings = {"threads": arguments.threads, "rounds": arguments.rounds}
    stored = None if arguments.anew else stored_figures(arguments.name)
    with_all = set(arguments.parts) == set(PARTS)
    fresh = {
        "name": arguments.name,
        "commit": former.commit_if_known("HEAD"),
        "settings": settings | {"former": former_commit(arguments, stored, with_all)},
        "parts": {},
    }
    if stored is None or with_all:
        return fresh
    then = {"former": None, **stored["settings"]}
    now = fresh["settings"] | {"processor": machine.processor()}
    if then != now:
        raise SystemExit(
            f"what is stored was measured with {then}, and not with {now}: run all parts, or "
            f"pass --anew or another --name than {arguments.name}"
        )
    return fresh | {"parts": stored["parts"]}


def stored_figures(name: str) -> dict | None:
    """Return what an earlier run stored, with the processor among its settings."""
    if not machine.stored_at(name).is_file():
        return None
    stored = machine.read(name, "speed")
    figures: dict = stored["figures"]
    return figures | {"settings": figures["settings"] | {"processor": stored["processor"]}}


def former_commit(arguments: argparse.Namespace, stored: dict | None, with_all: bool) -> str | None:
    """Return the commit asked for, or the one whose figures are replaced."""
    if arguments.former == "none":
        return None
    if arguments.former:
        return former.commit_of(arguments.former)
    if stored is None:
        return None
    return stored.get("commit") if with_all else stored["settings"].get("former")


def run(arguments: argparse.Namespace) -> None:
    figures = begun(arguments)
    commit = figures["settings"]["former"]
    codes = {"": Code()} | ({FORMER: Code(former.installed(commit))} if commit else {})
    settings = Settings(arguments.threads, arguments.rounds, arguments.quick, codes)
    figures["made with"] = codes[""].made_with
    figures["methods"] = methods(settings)
    with threadpoolctl.threadpool_limits(settings.n_threads), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits are cut short on purpose
        for name in arguments.parts:
            run_part(name, settings, figures)
    for code in codes.values():
        code.end()


def methods(settings: Settings) -> dict[str, dict]:
    ours = {
        prefix + OURS: {"label": f"{prefix}powermeans KMeans", "made with": code.made_with}
        for prefix, code in settings.codes.items()
    }
    return ours | {
        runner.name: {"label": runner.label, "made with": runner.made_with}
        for runner in runners(settings.n_threads)
    }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, in less than a minute")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, help="(3; with --quick 1)")
    parser.add_argument("--name", help="of the stored file (speed; with --quick speed-quick)")
    parser.add_argument("--former", help="a commit to compare with, or none")
    parser.add_argument("--anew", action="store_true", help="forget the parts that are stored")
    parser.add_argument("--report", action="store_true", help="only print what is stored")
    parser.add_argument("--page", action="store_true", help="write what is stored into the docs")
    arguments = parser.parse_args()
    arguments.rounds = arguments.rounds or (1 if arguments.quick else 3)
    arguments.name = arguments.name or "speed" + "-quick" * arguments.quick
    return arguments


def main() -> None:
    arguments = parse()
    if not (arguments.report or arguments.page):
        run(arguments)
    stored = machine.read(arguments.name, "speed")
    print("\n" + as_report(stored["figures"]))
    if arguments.page:
        PAGE.write(as_page(stored))
    print(f"\n{PAGE.path if arguments.page else machine.stored_at(arguments.name)}")


if __name__ == "__main__":
    main()
