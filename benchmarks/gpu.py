"""Sweeps, seeding and fits on a GPU, beside flash-kmeans and beside what the card can do at most.

Contestants take turns in one process on the same tensors; figures are medians of several rounds,
after one that is not counted. The parts:

- ceilings: multiply-adds a second of products in each precision, and bytes a second of a copy
- sweeps: one hard sweep beside an iteration of flash-kmeans, and one sweep with a power
- seeding: k-means++ and greedy k-means++
- fits: PowerKMeans(effort="fast") beside 25 iterations of flash-kmeans from random points
- agreement: labels and inertia beside those of the compiled core on the CPU

`make bench-gpu` runs all of it. Without a GPU it refuses; `--small --device cpu` tries the
mechanism on a CPU, whose figures say nothing about GPUs.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from statistics import median
from typing import Any

import numpy as np
import torch

from benchmarks import machine
from benchmarks.pages import Page, Rows, as_markdown, as_text
from powermeans import PowerKMeans
from powermeans.rows.native import NativeRows
from powermeans.rows.torch import TorchRows
from powermeans.rules import Hard, Power, Rule
from powermeans.seeding import n_greedy_candidates
from powermeans.seeds import choose_seeds
from powermeans.sums import Sums

PAGE = Page("gpu", "python -m benchmarks.gpu --page")
DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32}
# Points, features, centers; and points and centers of the seeding.
SIZES = {"whole": (4_200_000, 128, 1024, 1_000_000, 1000), "small": (3_000, 24, 16, 1_000, 10)}
N_COMPARED = 200_000
FLASH_ITERATIONS = 25
NO_FLASH = "flash-kmeans is not installed"


class Bench:
    """What all parts need: the points, the device and how often to measure."""

    def __init__(self, device: torch.device, size: str, n_rounds: int) -> None:
        self.device, self.n_rounds = device, n_rounds
        self.n_points, self.n_features, self.n_centers, *self.seeding = SIZES[size]
        generator = torch.Generator(device).manual_seed(0)
        like = {"generator": generator, "device": device}
        middles = torch.randn((2 * self.n_centers, self.n_features), **like)
        groups = torch.randint(len(middles), (self.n_points,), **like)
        self.points = torch.randn((self.n_points, self.n_features), **like).add_(middles[groups])
        self.centers = self.points[torch.randperm(self.n_points, **like)[: self.n_centers]]

    def seconds(self, run: Callable[[], object]) -> float:
        """Median over the rounds; the first one compiles and is left out."""
        run()
        found = []
        for _ in range(self.n_rounds):
            self.wait()
            began = time.perf_counter()
            run()
            self.wait()
            found.append(time.perf_counter() - began)
        return median(found)

    def wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def host_centers(self) -> np.ndarray:
        return self.centers.double().cpu().numpy()


def flash() -> Callable[..., Any] | None:
    """Lloyd's algorithm of flash-kmeans, if it is installed."""
    try:
        from flash_kmeans import batch_kmeans_Euclid
    except ImportError:
        return None
    return batch_kmeans_Euclid


def set_precision(name: str) -> None:
    torch.set_float32_matmul_precision(name)


def ceilings(bench: Bench) -> Iterator[dict]:
    size = 8192 if bench.device.type == "cuda" else 512
    for name, dtype in DTYPES.items():
        for precision in ("highest", "high") if name == "float32" else ("high",):
            set_precision(precision)
            one = torch.randn((size, size), device=bench.device).to(dtype)
            seconds = bench.seconds(lambda one=one: one @ one)
            yield {"what": f"{name} {precision}", "per second": size**3 / seconds}
    copied = torch.empty_like(bench.points)
    seconds = bench.seconds(lambda: copied.copy_(bench.points))
    yield {"what": "bytes", "per second": 2 * copied.nbytes / seconds}


def sweeps(bench: Bench) -> Iterator[dict]:
    for name, precision in (("float16", "high"), ("bfloat16", "high"), ("float32", "highest")):
        set_precision(precision)
        points, centers = bench.points.to(DTYPES[name]), bench.host_centers()
        rows = TorchRows(points)

        def sweep(rule: Rule, rows: TorchRows = rows, centers: np.ndarray = centers) -> Sums:
            return rows.sweep(centers, rule)

        figures = {
            "dtype": name,
            "precision": precision,
            "kernel": rows.placement.kernel,
            "hard": bench.seconds(lambda sweep=sweep: sweep(Hard())),
            "power": bench.seconds(lambda sweep=sweep: sweep(Power(-3.0))),
        }
        yield figures | with_flash(bench, points)


def with_flash(bench: Bench, points: torch.Tensor) -> dict:
    """Seconds of an iteration: those of many less those of few."""
    run = flash()
    if run is None or bench.device.type != "cuda":
        return {"flash": None}
    batch, seeds = points[None], bench.centers.to(points.dtype)[None]
    few, many = (
        bench.seconds(
            lambda n=n: run(batch, bench.n_centers, max_iters=n, tol=0.0, init_centroids=seeds)
        )
        for n in (1, 11)
    )
    return {"flash": (many - few) / 10}


def seeding(bench: Bench) -> Iterator[dict]:
    set_precision("highest")
    n_points, n_centers = bench.seeding
    rows = TorchRows(bench.points[:n_points])
    for n_candidates in (1, n_greedy_candidates(n_centers)):
        seconds = bench.seconds(
            lambda n=n_candidates: choose_seeds(
                rows, n_centers, np.random.RandomState(0), n_candidates=n
            )
        )
        yield {"candidates": n_candidates, "seconds": seconds}


def fits(bench: Bench) -> Iterator[dict]:
    for name, precision in (("float16", "high"), ("float32", "highest")):
        set_precision(precision)
        points = bench.points.to(DTYPES[name])
        model = PowerKMeans(bench.n_centers, effort="fast", random_state=0)
        bench.wait()
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(points)
        bench.wait()
        seconds = time.perf_counter() - began
        yield {"dtype": name, "seconds": seconds, "inertia": float(model.inertia_)} | flash_fit(
            bench, points
        )


def flash_fit(bench: Bench, points: torch.Tensor) -> dict:
    run = flash()
    if run is None or bench.device.type != "cuda":
        return {"flash seconds": None, "flash inertia": None}
    bench.wait()
    began = time.perf_counter()
    seeds = bench.centers.to(points.dtype)[None]
    _, centers, *_ = run(
        points[None], bench.n_centers, max_iters=FLASH_ITERATIONS, tol=0.0, init_centroids=seeds
    )
    bench.wait()
    seconds = time.perf_counter() - began
    set_precision("highest")
    _, inertia = TorchRows(points).assign(centers[0].double().cpu().numpy())
    return {"flash seconds": seconds, "flash inertia": inertia}


def agreement(bench: Bench) -> Iterator[dict]:
    set_precision("highest")
    points, centers = bench.points[:N_COMPARED], bench.host_centers()
    labels, inertia = TorchRows(points).assign(centers)
    expected, expected_inertia = NativeRows(points.cpu().numpy()).assign(centers)
    yield {
        "labels that differ": int(np.count_nonzero(labels != expected)),
        "of": len(labels),
        "inertia, relative": abs(inertia / expected_inertia - 1),
    }


PARTS = {
    "ceilings": ceilings,
    "sweeps": sweeps,
    "seeding": seeding,
    "fits": fits,
    "agreement": agreement,
}


# What the figures say.


def fraction(figures: dict, cell: dict, n_products: int) -> float:
    """Of the limit: the larger of arithmetic and memory traffic over the time taken."""
    can = {line["what"]: line["per second"] for line in figures["parts"]["ceilings"]}
    n_points, n_features, n_centers, *_ = figures["sizes"]
    precision = "high" if cell["dtype"] != "float32" else cell["precision"]
    arithmetic = n_products * n_points * n_features * n_centers
    traffic = n_points * n_features * DTYPES[cell["dtype"]].itemsize
    limit = max(arithmetic / can[f"{cell['dtype']} {precision}"], traffic / can["bytes"])
    return limit / cell["hard" if n_products == 1 else "power"]


def shown(value: float | None, form: str = "{:.3g}") -> str:
    return "not measured" if value is None else form.format(value)


def sweep_table(figures: dict) -> Rows:
    rows = [
        [
            "points",
            "kernel",
            "hard sweep, ms",
            "flash-kmeans, ms",
            "ours : flash",
            "of the limit",
            "power sweep : hard",
            "of the limit",
        ]
    ]
    for cell in figures["parts"]["sweeps"]:
        hard, peer = cell["hard"], cell["flash"]
        rows.append(
            [
                f"{cell['dtype']}, {cell['precision']}",
                cell["kernel"],
                shown(1e3 * hard),
                shown(None if peer is None else 1e3 * peer),
                shown(None if peer is None else hard / peer),
                shown(100 * fraction(figures, cell, 1), "{:.0f} %"),
                shown(cell["power"] / hard),
                # Distances twice, and weights times points.
                shown(100 * fraction(figures, cell, 3), "{:.0f} %"),
            ]
        )
    return rows


def seeding_table(figures: dict) -> Rows:
    rows = [["candidates for each center", "seconds"]]
    cells = figures["parts"]["seeding"]
    return rows + [[str(cell["candidates"]), shown(cell["seconds"])] for cell in cells]


def fit_table(figures: dict) -> Rows:
    rows = [["points", "ours, s", "flash-kmeans, s", "inertia, ours : flash"]]
    for cell in figures["parts"]["fits"]:
        peer = cell["flash inertia"]
        ratio = None if peer is None else cell["inertia"] / peer
        rows.append(
            [
                cell["dtype"],
                shown(cell["seconds"]),
                shown(cell["flash seconds"]),
                shown(ratio, "{:.5f}"),
            ]
        )
    return rows


def agreement_table(figures: dict) -> Rows:
    (cell,) = figures["parts"]["agreement"]
    return [list(cell), [f"{value:.3g}" for value in cell.values()]]


TABLES = {
    "Sweeps": sweep_table,
    "Seeding": seeding_table,
    "Fits": fit_table,
    "Agreement with the CPU": agreement_table,
}


def report(stored: dict, as_table: Callable[[Rows], str]) -> str:
    figures = stored["figures"]
    n_points, n_features, n_centers, *of_seeding = figures["sizes"]
    head = (
        f"{figures['device']}, {stored['date']}, {figures['versions']}: {n_points} points of "
        f"{n_features} features and {n_centers} centers; for the seeding {of_seeding[0]} points "
        f"and {of_seeding[1]} centers. Written by `{stored['command']}`."
    )
    parts = [f"**{name}**\n\n{as_table(make(figures))}" for name, make in TABLES.items()]
    return "\n\n".join([head, *parts])


def versions() -> str:
    found = []
    for name in ("torch", "triton", "flash-kmeans", "powermeans"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"no {name}")
    return ", ".join(found)


def name_of(device: torch.device) -> str:
    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    return f"{machine.processor()} (a CPU, to try the mechanism)"


def measure(arguments: argparse.Namespace, device: torch.device) -> None:
    size = "small" if arguments.small else "whole"
    bench = Bench(device, size, arguments.rounds)
    figures: dict = {
        "device": name_of(device),
        "versions": versions(),
        "sizes": SIZES[size],
        "parts": {},
    }
    before = torch.get_float32_matmul_precision()
    try:
        for name, part in PARTS.items():
            began = time.perf_counter()
            figures["parts"][name] = list(part(bench))
            print(f"{time.perf_counter() - began:6.1f} s  {name}", flush=True)
    finally:
        set_precision(before)
    machine.store(arguments.name, figures)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true", help="small sizes, to try the mechanism")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--name", help="of the stored file (gpu; with --small gpu-small)")
    parser.add_argument("--report", action="store_true", help="only print what is stored")
    parser.add_argument("--page", action="store_true", help="write what is stored into the docs")
    arguments = parser.parse_args()
    arguments.name = arguments.name or ("gpu-small" if arguments.small else "gpu")
    return arguments


def main() -> None:
    arguments = parse()
    if not (arguments.report or arguments.page):
        device = torch.device(arguments.device)
        if device.type == "cuda" and not torch.cuda.is_available():
            raise SystemExit(
                "no GPU is at hand, so nothing was measured: run this where PyTorch finds a CUDA "
                "device, or try the mechanism with --small --device cpu"
            )
        measure(arguments, device)
    stored = machine.read(arguments.name, "gpu")
    print("\n" + report(stored, as_text))
    if arguments.page:
        PAGE.write(report(stored, as_markdown))
    print(f"\n{PAGE.path if arguments.page else machine.stored_at(arguments.name)}")


if __name__ == "__main__":
    main()
