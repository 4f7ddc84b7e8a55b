"""Sweeps, seeding and fits on a GPU, beside flash-kmeans and beside what the card can do at most.

Contestants take turns in one process on the same tensors; all figures, those of fits too, are
medians of several rounds, after one that is not counted. The parts:

- ceilings: multiply-adds a second of products in each precision, and bytes a second of a copy
- sweeps: one hard sweep beside an iteration of flash-kmeans, and one sweep with a power
- seeding: k-means++ and greedy k-means++
- fits: PowerKMeans(effort="fast") beside 25 iterations of flash-kmeans and, where it is installed,
  of cuML, both from random points
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

import numpy as np
import torch
from sklearn.base import clone

from benchmarks import machine
from benchmarks.gpu_peers import CUML_PRECISION, FLASH_PRECISION, cuml_kmeans, flash
from benchmarks.gpu_report import report
from benchmarks.pages import Page, as_markdown, as_text
from powermeans import KMeans, PowerKMeans
from powermeans.rows.native import NativeRows
from powermeans.rows.protocol import Placement
from powermeans.rows.torch import TorchRows
from powermeans.rules import Hard, Power, Rule
from powermeans.seeds.choose import choose_seeds, n_greedy_candidates
from powermeans.sums import Sums

PAGE = Page("gpu", "python -m benchmarks.gpu --page")
# Labels and inertia.
Assigned = tuple[np.ndarray, float]

DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32}
# Points, features, centers; and points and centers of the seeding.
SIZES = {"whole": (4_200_000, 128, 1024, 1_000_000, 1000), "small": (3_000, 24, 16, 1_000, 10)}
PRECISIONS = (
    ("float16", "high"),
    ("bfloat16", "high"),
    ("float32", "high"),
    ("float32", "highest"),
)
PRECISIONS_OF_FITS = (("float16", "high"), ("float32", "high"), ("float32", "highest"))
N_COMPARED = 200_000
SWEEPS_COMPARED = 10
ITERATIONS_OF_PEERS = 25
MOST_ROUNDS_OF_FITS = 3
# Distances that agree to this are a tie, which rounding may decide either way.
TIE = 1e-5


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

    def seconds(self, run: Callable[[], object], most_rounds: int | None = None) -> float:
        """Median over the rounds; the first one compiles and is left out."""
        run()
        found = []
        for _ in range(min(self.n_rounds, most_rounds or self.n_rounds)):
            self.wait()
            began = time.perf_counter()
            run()
            self.wait()
            found.append(time.perf_counter() - began)
        return median(found)

    def wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def check(self, placement: Placement) -> None:
        """Raise where a card would be measured by anything but its kernels."""
        if self.device.type == "cuda" and not placement.kernel.startswith("triton"):
            raise SystemExit(
                f"the kernel is {placement.kernel!r} and not Triton's: install triton, or use a "
                "card that it has kernels for"
            )

    def host_centers(self) -> np.ndarray:
        return self.centers.double().cpu().numpy()


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
    for name, precision in PRECISIONS:
        set_precision(precision)
        points, centers = bench.points.to(DTYPES[name]), bench.host_centers()
        rows = TorchRows(points)
        bench.check(rows.placement)

        def sweep(rule: Rule, rows: TorchRows = rows, centers: np.ndarray = centers) -> Sums:
            return rows.sweep(centers, rule)

        yield {
            "dtype": name,
            "precision": precision,
            "kernel": rows.placement.kernel,
            "hard": bench.seconds(lambda sweep=sweep: sweep(Hard())),
            "power": bench.seconds(lambda sweep=sweep: sweep(Power(-3.0))),
            "flash": flash_iteration(bench, points, precision),
        }


def flash_iteration(bench: Bench, points: torch.Tensor, precision: str) -> float | None:
    """Seconds of an iteration: those of many less those of few."""
    run = flash()
    if run is None or bench.device.type != "cuda" or precision != FLASH_PRECISION:
        return None
    batch, seeds = points[None], bench.centers.to(points.dtype)[None]
    few, many = (
        bench.seconds(
            lambda n=n: run(
                batch, bench.n_centers, max_iters=n, tol=0.0, init_centroids=seeds.clone()
            )
        )
        for n in (1, 11)
    )
    return (many - few) / 10


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
    for name, precision in PRECISIONS_OF_FITS:
        set_precision(precision)
        points = bench.points.to(DTYPES[name])
        model = PowerKMeans(bench.n_centers, effort="fast", random_state=0)
        seconds = timed_fit(bench, lambda model=model, points=points: model.fit(points))
        bench.check(model.placement_)
        n_hard = int(np.count_nonzero(np.isneginf(model.history_.power)))
        peers = flash_fit(bench, points, precision) | cuml_fit(bench, points, precision)
        yield {
            "dtype": name,
            "precision": precision,
            "seconds": seconds,
            "inertia": inertia_of(points, model.cluster_centers_),
            "hard sweeps": n_hard,
            "power sweeps": len(model.history_) - n_hard,
            **peers,
        }


def timed_fit(bench: Bench, fit: Callable[[], object]) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bench.seconds(fit, MOST_ROUNDS_OF_FITS)


def inertia_of(points: torch.Tensor, centers: torch.Tensor) -> float:
    """Of anybody's centers, by the same rule."""
    _, inertia = TorchRows(points, precision="highest").assign(centers.double().cpu().numpy())
    return inertia


def flash_fit(bench: Bench, points: torch.Tensor, precision: str) -> dict:
    run = flash()
    if run is None or bench.device.type != "cuda" or precision != FLASH_PRECISION:
        return {"flash seconds": None, "flash inertia": None}
    seeds, found = bench.centers.to(points.dtype)[None], []

    def fit() -> None:
        found[:] = run(
            points[None],
            bench.n_centers,
            max_iters=ITERATIONS_OF_PEERS,
            tol=0.0,
            init_centroids=seeds.clone(),
        )

    seconds = timed_fit(bench, fit)
    return {"flash seconds": seconds, "flash inertia": inertia_of(points, found[1][0])}


def cuml_fit(bench: Bench, points: torch.Tensor, precision: str) -> dict:
    estimator = cuml_kmeans()
    is_equal = points.dtype == torch.float32 and precision == CUML_PRECISION
    if estimator is None or bench.device.type != "cuda" or not is_equal:
        return {"cuml seconds": None, "cuml inertia": None}
    model = estimator(
        n_clusters=bench.n_centers,
        init=bench.centers,
        n_init=1,
        max_iter=ITERATIONS_OF_PEERS,
        tol=1e-16,
        output_type="numpy",
    )
    seconds = timed_fit(bench, lambda: model.fit(points))
    centers = torch.as_tensor(model.cluster_centers_)
    return {"cuml seconds": seconds, "cuml inertia": inertia_of(points, centers)}


def agreement(bench: Bench) -> Iterator[dict]:
    set_precision("highest")
    points, centers = bench.points[:N_COMPARED], bench.host_centers()
    host = points.cpu().numpy()
    of_core = NativeRows(host).assign(centers)
    yield {
        "what": "the same centers",
        **compared(host, centers, TorchRows(points).assign(centers), of_core),
    }
    model = KMeans(bench.n_centers, init=centers, n_init=1, max_iter=SWEEPS_COMPARED, tol=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, core = clone(model).fit(points), clone(model).fit(host)
    yield {
        "what": f"{SWEEPS_COMPARED} sweeps from the same centers",
        **compared(
            host,
            core.cluster_centers_.astype(np.float64),
            (ours.labels_.cpu().numpy(), ours.inertia_),
            (core.labels_, core.inertia_),
        ),
    }


def compared(
    points: np.ndarray, centers: np.ndarray, ours: Assigned, expected: Assigned
) -> dict[str, float]:
    differ = np.flatnonzero(ours[0] != expected[0])
    one, other = (
        np.square(points[differ] - centers[labels[differ]]).sum(axis=1)
        for labels, _ in (ours, expected)
    )
    return {
        "labels": len(points),
        "differ": len(differ),
        "of these, ties": int(
            np.count_nonzero(np.abs(one - other) <= TIE * np.maximum(one, other))
        ),
        "inertia, relative": abs(ours[1] / expected[1] - 1),
    }


PARTS = {
    "ceilings": ceilings,
    "sweeps": sweeps,
    "seeding": seeding,
    "fits": fits,
    "agreement": agreement,
}


def versions() -> str:
    found = []
    for name in ("torch", "triton", "flash-kmeans", "cuml-cu12", "powermeans"):
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
