"""Clusters within limits of size: beside k-means-constrained, and with a thousand centers.

Seconds are those of processors, since other work may share the machine.

    python -m benchmarks.size_limits constrained   # needs the environment of make peers
    python -m benchmarks.size_limits many
    python -m benchmarks.size_limits --page
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import machine
from benchmarks.pages import Page, Rows, as_markdown
from powermeans import PowerKMeans
from powermeans.datasets import load_data_set

NAME = "size_limits"
PAGE = Page("size_limits", "python -m benchmarks.size_limits --page")
PARTS = ["constrained", "many"]
N_POINTS, N_FEATURES, N_CENTERS = 23_000, 50, 10
SIZE_MIN, SIZE_MAX = 2000, 2600


def unequal_blobs() -> NDArray:
    from sklearn.datasets import make_blobs

    sizes = [11_000, 5000, 2500, 1500, 1000, 800, 600, 300, 200, 100]
    points, _ = make_blobs(sizes, N_FEATURES, cluster_std=4.0, random_state=0)
    return points


def many_blobs() -> NDArray:
    """Thirty overlapping groups, so that the limits cut across some of them."""
    from sklearn.datasets import make_blobs

    sizes = np.random.RandomState(1).dirichlet(np.full(30, 1.0))
    counts = np.diff(np.rint(np.append(0, np.cumsum(sizes)) * N_POINTS).astype(int))
    points, _ = make_blobs(counts.tolist(), N_FEATURES, cluster_std=6.0, random_state=1)
    return points


def digits() -> NDArray:
    """Images of digits by their first principal components."""
    from sklearn.decomposition import PCA

    images = np.asarray(load_data_set("mnist_train").points[:N_POINTS], dtype=np.float64)
    return PCA(N_FEATURES, random_state=0).fit_transform(images)


DATA: dict[str, Callable[[], NDArray]] = {
    "blobs of unequal sizes": unequal_blobs,
    "thirty overlapping blobs": many_blobs,
    "MNIST, 50 components": digits,
}


def timed(fit: Callable[[], Any]) -> tuple[Any, float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = fit()
    return fitted, time.process_time() - cpu, time.perf_counter() - wall


def outcome(points: NDArray, fitted: Any, cpu: float, wall: float) -> dict[str, float]:
    labels, centers = fitted.labels_, fitted.cluster_centers_
    sizes = np.bincount(labels, minlength=len(centers))
    means = np.array([points[labels == j].mean(axis=0) for j in range(len(centers))])
    squares = float(np.square(points - means[labels]).sum(dtype=np.float64))
    return {
        "processor seconds": round(cpu, 3),
        "seconds": round(wall, 3),
        "sum of squares": squares,
        "smallest": int(sizes.min()),
        "largest": int(sizes.max()),
    }


def beside_constrained(n_init: int, names: list[str], efforts: list[str]) -> dict[str, Any]:
    from k_means_constrained import KMeansConstrained

    limits = {"size_min": SIZE_MIN, "size_max": SIZE_MAX, "random_state": 0}
    found: dict[str, Any] = {}
    for name in names:
        points = np.ascontiguousarray(DATA[name]())
        figures = {}
        for effort in efforts:
            model = PowerKMeans(N_CENTERS, effort=effort, **limits)
            figures[f"powermeans, {effort}"] = outcome(
                points, *timed(lambda model=model, points=points: model.fit(points))
            )
        theirs = KMeansConstrained(N_CENTERS, n_init=n_init, **limits)
        label = f"k-means-constrained {version('k-means-constrained')}, n_init={n_init}"
        figures[label] = outcome(
            points, *timed(lambda theirs=theirs, points=points: theirs.fit(points))
        )
        found[name] = figures
        print(name, json.dumps(figures, indent=1), flush=True)
    return found


def heavy_tails(n_points: int, n_features: int, seed: int = 0) -> NDArray:
    """Draw groups of lognormal shares, each of points with gamma distances from its center."""
    rng = np.random.default_rng(seed)
    n_groups = 400
    centers = 1.5 * rng.normal(size=(n_groups, n_features))
    shares = rng.lognormal(0, 1, n_groups)
    group = rng.choice(n_groups, n_points, p=shares / shares.sum())
    radii = rng.gamma(2, 0.5, size=(n_points, 1))
    return (centers[group] + rng.normal(size=(n_points, n_features)) * radii).astype(np.float32)


def with_many_centers(n_points: int, n_centers: int, efforts: list[str]) -> dict[str, Any]:
    points = heavy_tails(n_points, 32)
    most = int(1.2 * n_points / n_centers)
    found = {}
    for effort in efforts:
        for limits in ({}, {"size_max": most}):
            model = PowerKMeans(n_centers, effort=effort, random_state=0, **limits)
            fitted, cpu, wall = timed(lambda model=model: model.fit(points))
            name = f"{effort}, {'at most ' + str(most) if limits else 'no limits'}"
            found[name] = outcome(points, fitted, cpu, wall)
            if limits:
                found[name]["assignment gap"] = fitted.assignment_gap_
            print(name, json.dumps(found[name]), flush=True)
    return found


def as_rows(figures: dict[str, dict[str, float]]) -> Rows:
    head = ["method", "CPU seconds", "sum of squares", "smallest cluster", "largest"]
    cells = [
        [
            name,
            f"{found['processor seconds']:.3g}",
            f"{found['sum of squares']:.6g}",
            f"{found['smallest']:,}",
            f"{found['largest']:,}",
        ]
        for name, found in figures.items()
    ]
    return [head, *cells]


def as_page(stored: dict) -> str:
    """What the docs say of the stored runs."""
    constrained, many = (stored["figures"][part] for part in PARTS)
    blocks = [f"{machine.measured(constrained)}."]
    for name, figures in constrained["cells"].items():
        title = f"{name}, {N_POINTS:,} × {N_FEATURES}, {SIZE_MIN:,} to {SIZE_MAX:,} rows each"
        blocks += [f"**{title[0].upper()}{title[1:]}**", as_markdown(as_rows(figures))]
    shape = f"{many['cells']['points']:,} × 32, {many['cells']['centers']:,} clusters"
    blocks += [
        f"**{shape}, with sizes of lognormal shares before limits**",
        f"{machine.measured(many)}.",
        as_markdown(as_rows(many["cells"]["fits"])),
    ]
    return "\n\n".join(blocks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", choices=PARTS, nargs="?")
    parser.add_argument("--page", action="store_true", help="write what is stored into the docs")
    parser.add_argument("--n-init", type=int, default=1, help="of k-means-constrained")
    parser.add_argument("--data", choices=DATA, action="append", help="all by default")
    parser.add_argument("--efforts", nargs="+", default=["fast", "balanced"])
    parser.add_argument("--points", type=int, default=10**6)
    parser.add_argument("--centers", type=int, default=1000)
    options = parser.parse_args()
    if options.page:
        PAGE.write(as_page(machine.read(NAME, NAME)))
    elif options.part == "constrained":
        known = machine.stored_figures(NAME).get("constrained", {"cells": {}})["cells"]
        found = beside_constrained(options.n_init, options.data or list(DATA), options.efforts)
        for data, figures in found.items():
            known.setdefault(data, {}).update(figures)
        print(machine.store_part(NAME, "constrained", known))
    elif options.part == "many":
        fits = with_many_centers(options.points, options.centers, options.efforts)
        found = {"points": options.points, "centers": options.centers, "fits": fits}
        print(machine.store_part(NAME, "many", found))
    else:
        parser.error(f"name a part, of {' and '.join(PARTS)}, or --page")


if __name__ == "__main__":
    main()
