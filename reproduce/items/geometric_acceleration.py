"""Power k-means with bounds that leave distances out, and without, in 2 to 100 dimensions."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.apart import shortcuts_taken
from powermeans import PowerKMeans
from powermeans.plots.canvas import BLUE, INK, VERMILION, tidy
from powermeans.types import FloatArray
from reproduce.checks import above, across, exact
from reproduce.drawn_data import make_gaussian_clusters
from reproduce.item import Cell, Claim, Findings, Row, Table, Verdict, mean_and_error
from reproduce.matched_starts import LLOYD, Method, draw_seeds, lloyd, power_from, published
from reproduce.selecting import column, kinds, where

TITLE = "Geometric acceleration: sweeps that leave distances out, d = 2 to 100"
SOURCE = "Xu & Lange 2019, section 5, as an open direction; the data sets of Tables 1 and 2"
DATA = "as published: and ten times as many points"

FEATURES = (2, 10, 20, 50, 100)
N_CLUSTERS = 50
SIZES = {2_500: 6, 25_000: 3}
"""Points, and how many data sets of that size."""
STARTS = (-3.0, -18.0)
POWERS = tuple(power_from(start) for start in STARTS)
METHODS = (lloyd(), *map(published, STARTS))
TURNS = (True, False, False, True)
"""Whether bounds are used: in this order, so that drift of the machine falls on both alike."""


def cells(quick: bool) -> Sequence[Cell]:
    """A cell for each data set, in which all methods run with bounds and without."""
    sizes = {2_500: 2} if quick else SIZES
    return [
        Cell(
            {"points": n_points, "features": n_features, "data_set": number},
            functools.partial(both_ways, n_points, n_features, number),
        )
        for n_points, n_sets in sizes.items()
        for n_features in (FEATURES[:2] if quick else FEATURES)
        for number in range(n_sets)
    ]


def both_ways(n_points: int, n_features: int, number: int) -> list[Row]:
    """Processor time of all methods from the same k-means++ seeds, on one thread."""
    drawn = make_gaussian_clusters(
        n_points, N_CLUSTERS, n_features, random_state=1000 + number
    ).points
    points = np.asarray(drawn, dtype=np.float64)
    with threadpool_limits(1):
        seeds = draw_seeds(points, N_CLUSTERS, "D²", number)
        return [row for method in METHODS for row in timed_both_ways(method, points, seeds, number)]


def timed_both_ways(
    method: Method, points: FloatArray, seeds: FloatArray, number: int
) -> list[Row]:
    """A row for each pair of neighbouring turns, one with bounds and one without."""
    runs: dict[bool, list[tuple[float, PowerKMeans]]] = {True: [], False: []}
    for with_bounds in TURNS:
        with shortcuts_taken(with_bounds):
            started = time.process_time()
            model = method.fit(points, seeds, number)
            runs[with_bounds].append((time.process_time() - started, model))
    return [
        {
            "method": method.name,
            "seconds": seconds,
            "full_seconds": full_seconds,
            "skipped": float(model.spent_.skipped),
            "sweeps": int(model.n_iter_),
            "difference": abs(model.inertia_ / full.inertia_ - 1),
        }
        for (seconds, model), (full_seconds, full) in zip(runs[True], runs[False], strict=True)
    ]


# What it shows.


def findings(rows: Sequence[Row]) -> Findings:
    """What bounds leave out and how many times faster fits are with them, by dimension."""
    return Findings(
        tables=[_table(rows, int(n)) for n in kinds(rows, "points")],
        claims=[_claim(rows)],
        remarks=[
            "Times are those of the processor, on one thread, and each fit is made with bounds "
            "and without in turns, since other work ran on the machine. Without bounds is with "
            "POWERMEANS_SHORTCUTS=0: every point is compared with every center.",
            _remark_on_results(rows),
        ],
    )


def gain(rows: Sequence[Row]) -> tuple[float, float]:
    """The logarithm of how many times longer fits take without bounds, and its error over sets."""
    logs = [
        math.log(np.median(column(of_set, "full_seconds")) / np.median(column(of_set, "seconds")))
        for of_set in (where(rows, data_set=number) for number in kinds(rows, "data_set"))
    ]
    return mean_and_error(logs)


def verdict_of(rows: Sequence[Row]) -> Verdict:
    """Whether bounds leave distances out, and time with them."""
    if not any(column(rows, "skipped")):
        return exact(False)
    return above(*gain(rows))


def _of(rows: Sequence[Row], n_points: int, n_features: int, method: str) -> list[Row]:
    return where(rows, points=n_points, features=n_features, method=method)


def _claim(rows: Sequence[Row]) -> Claim:
    verdicts, said = [], []
    for n_points in map(int, kinds(rows, "points")):
        for method in POWERS:
            words = []
            for n_features in map(int, kinds(rows, "features")):
                chosen = _of(rows, n_points, n_features, method)
                verdicts.append(verdict_of(chosen))
                log, error = gain(chosen)
                skipped = float(np.median(column(chosen, "skipped")))
                words.append(
                    f"d = {n_features} {math.exp(log):.2f} ({math.exp(log - 2 * error):.2f} to "
                    f"{math.exp(log + 2 * error):.2f}; {skipped:.0%})"
                )
            said.append(f"With {n_points} points and {method}: {', '.join(words)}.")
    return Claim(
        "Geometric acceleration may further improve performance (Gaussian clusters).",
        "Xu & Lange 2019, section 5, as an open direction",
        across(verdicts),
        "How many times longer a fit without bounds takes, in parentheses the range of two "
        f"standard errors and the distances left out. {' '.join(said)}",
        on=f"the dimension: {_said_of_dimensions(rows)}",
    )


def _said_of_dimensions(rows: Sequence[Row]) -> str:
    """Say in which dimensions bounds leave distances of annealed sweeps out."""
    annealed = [row for row in rows if row["method"] in POWERS]
    by_features = {
        int(d): any(column(where(annealed, features=d), "skipped"))
        for d in kinds(annealed, "features")
    }
    with_some, with_none = (
        ", ".join(str(d) for d, leaves_out in by_features.items() if leaves_out == wanted)
        for wanted in (True, False)
    )
    return f"bounds leave distances out at d = {with_some or 'none'}, and none at d = {with_none}"


def _remark_on_results(rows: Sequence[Row]) -> str:
    largest = max(column(rows, "difference"))
    skipped = column(where(rows, method=LLOYD), "skipped")
    return (
        f"With bounds and without, the sums of squares differ by at most {largest:.1e} of "
        "themselves. In Lloyd's algorithm the same bounds leave out "
        f"{min(skipped):.0%} to {max(skipped):.0%} of the distances: there a point needs only its "
        "nearest center, while at the first powers all centers have weight. Where annealed sweeps "
        "leave no distance out, what they still gain comes from weights below a rounding of the "
        "sums, which are left out."
    )


def _table(rows: Sequence[Row], n_points: int) -> Table:
    lines: list[list[str | int | float]] = []
    for n_features in map(int, kinds(rows, "features")):
        for method in map(str, kinds(rows, "method")):
            chosen = _of(rows, n_points, n_features, method)
            sweeps, *medians = (
                float(np.median(column(chosen, name)))
                for name in ("sweeps", "skipped", "full_seconds", "seconds")
            )
            times_faster = math.exp(gain(chosen)[0])
            lines.append(
                [n_features, method, f"{sweeps:g}", *medians, times_faster, verdict_of(chosen)]
            )
    n_sets = len(kinds(where(rows, points=n_points), "data_set"))
    return Table(
        f"n = {n_points}, k = {N_CLUSTERS}: medians over {n_sets} data sets",
        ["d", "method", "sweeps", "distances left out", "CPU s without bounds", "CPU s with",
         "times faster", "that bounds pay"],
        lines,
    )  # fmt: skip


def draw(rows: Sequence[Row], folder: Path) -> Sequence[Path]:
    """Times faster by dimension, a panel for each number of points."""
    from matplotlib import pyplot

    sizes = list(map(int, kinds(rows, "points")))
    figure, panels = pyplot.subplots(
        1, len(sizes), figsize=(4.6 * len(sizes), 3.6), layout="constrained", squeeze=False
    )
    for ax, n_points in zip(panels[0], sizes, strict=True):
        _draw_size(ax, where(rows, points=n_points))
        ax.set_title(f"{n_points} points")
    panels[0, 0].legend(frameon=False, fontsize=8)
    path = folder / "geometric-acceleration.png"
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
    return [path]


def _draw_size(ax: Any, rows: Sequence[Row]) -> None:
    styles = ((LLOYD, INK, "o"), (POWERS[0], BLUE, "s"), (POWERS[1], VERMILION, "D"))
    features = list(map(int, kinds(rows, "features")))
    for method, color, marker in styles:
        times = [math.exp(gain(where(rows, method=method, features=d))[0]) for d in features]
        ax.plot(features, times, color=color, marker=marker, label=method)
    ax.axhline(1, color=INK, linewidth=0.6, linestyle=":")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xticks(features, [str(d) for d in features])
    ax.set_yticks([1, 2, 5], ["1", "2", "5"])
    ax.minorticks_off()
    ax.set(xlabel="features", ylabel="times faster with bounds")
    tidy(ax, grid="y")
