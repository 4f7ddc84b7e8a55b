"""The knee of W(k)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from benchmarks.rules_for_k import knee
from powermeans import choose_k
from powermeans.plots.canvas import BLUE, INK, VERMILION, logarithmic, tidy
from powermeans.types import FloatArray
from reproduce.checks import above, share_and_error
from reproduce.item import Cell, Claim, Findings, Row, Table, mean_and_error
from reproduce.selecting import column, kinds, where

TITLE = "The knee of W(k)"
SOURCE = "K. Moon, k-Means Clustering (lecture slides): model selection by the knee"
DATA = "random cases"

N_EACH = 60
SEPARATIONS = {"well apart": 12.0, "near": 6.0, "overlapping": 3.0}
"""Least distance of two centers in standard deviations of a cluster."""
CLOSE = 0.9
"""In what part of the sets the knee must be off by no more than one to be called close."""


# What is computed.


def cells(quick: bool) -> Sequence[Cell]:
    """W(k) of clusters of a known number, by that number, their dimension and their distance."""
    numbers, dimensions, draws = ((3, 5), (2,), 3) if quick else ((3, 5, 8, 12), (2, 8), 20)
    return [
        Cell(
            {"true_k": true_k, "d": d, "separation": name, "draws": draws},
            functools.partial(curves, true_k, d, name, draws),
        )
        for name in SEPARATIONS
        for true_k in numbers
        for d in dimensions
    ]


def curves(true_k: int, d: int, separation: str, draws: int) -> list[Row]:
    """W for each k from one to twice the true number and a few more, and the knee."""
    rows: list[Row] = []
    for draw in range(draws):
        points = clusters(true_k, d, SEPARATIONS[separation], draw)
        choice = choose_k(
            points, range(1, 2 * true_k + 4), criteria="dp_means", effort="fast", random_state=draw
        )
        sizes, inertias = choice.table["k"], choice.table["inertia"]
        bend = int(sizes[knee(sizes, inertias) or 0])
        rows += [
            {"draw": draw, "k": int(k), "W": float(w), "knee": bend}
            for k, w in zip(sizes, inertias, strict=True)
        ]
    return rows


def clusters(true_k: int, d: int, separation: float, draw: int) -> FloatArray:
    """Standard normal clusters whose nearest centers are this far apart."""
    rng = np.random.default_rng([draw, true_k, d])
    candidates = (rng.uniform(size=(true_k, d)) for _ in range(200))
    places = max(candidates, key=lambda centers: pdist(centers).min())
    centers = places * (separation / pdist(places).min())
    points: FloatArray = np.repeat(centers, N_EACH, axis=0)
    return points + rng.standard_normal(points.shape)


# What it shows.


def findings(rows: Sequence[Row]) -> Findings:
    """How W falls before and after the true number, and how often the knee is there."""
    return Findings(
        tables=[_table(rows)],
        claims=[_claim_on_drops(rows), *_claims_on_knees(rows)],
        remarks=[
            f"{N_EACH} points of each cluster, standard normal; the distance of the nearest two "
            f"centers is {', '.join(f'{v:g} ({name})' for name, v in SEPARATIONS.items())}. "
            "The knee of W is where the curve lies farthest below the straight line from its first "
            "to its last point, both axes scaled to one.",
            "The drop of one k is set against the next: at the true number the last one that "
            "parts two clusters is over the first that cuts one.",
        ],
    )


def drops(rows: Sequence[Row]) -> FloatArray:
    """W_k - W_{k+1} over W_1 of each draw, (n_draws, n_sizes - 1), of one cell."""
    n_sizes = len(kinds(rows, "k"))
    values = np.reshape(column(rows, "W"), (-1, n_sizes))
    found: FloatArray = -np.diff(values, axis=1) / values[:, :1]
    return found


def contrasts(rows: Sequence[Row], true_k: int) -> FloatArray:
    """The last drop to the true number over the first beyond it, of each draw of one cell."""
    falls = drops(rows)
    ratio: FloatArray = falls[:, true_k - 2] / falls[:, true_k - 1]
    return ratio


def _knees(rows: Sequence[Row]) -> list[float]:
    return column(where(rows, k=1), "knee")


def by_drops(rows: Sequence[Row]) -> list[float]:
    """In each draw of one cell the k after which the drops of W shrink most: as the slides say."""
    falls = np.maximum(drops(rows), 1e-9)
    return [float(k) for k in (falls[:, :-1] / falls[:, 1:]).argmax(axis=1) + 2]


def by_logarithm(rows: Sequence[Row]) -> list[float]:
    """The knee of log W in each draw of one cell, by the same rule as that of W; else one."""
    sizes = [int(k) for k in kinds(rows, "k")]
    logs = np.log(np.reshape(column(rows, "W"), (-1, len(sizes))))
    return [float(sizes[knee(sizes, each) or 0]) for each in logs]


RULES: dict[str, Callable[[Sequence[Row]], list[float]]] = {
    "the largest ratio of two drops": by_drops,
    "of W": _knees,
    "of log W": by_logarithm,
}


def _cells_of(rows: Sequence[Row]) -> list[tuple[str, int, int, list[Row]]]:
    keys = dict.fromkeys((str(r["separation"]), int(r["d"]), int(r["true_k"])) for r in rows)
    return [
        (name, d, true_k, where(rows, separation=name, d=d, true_k=true_k))
        for name, d, true_k in keys
    ]


def _table(rows: Sequence[Row]) -> Table:
    lines: list[list[str | int | float]] = []
    for name, d, true_k, chosen in _cells_of(rows):
        falls = drops(chosen)
        lines.append(
            [
                name,
                d,
                true_k,
                float(falls[:, true_k - 2].mean()),
                float(falls[:, true_k - 1].mean()),
                float(np.median(contrasts(chosen, true_k))),
                *(float(np.mean(np.equal(rule(chosen), true_k))) for rule in RULES.values()),
                float(np.mean(_knees(chosen))),
            ]
        )
    return Table(
        "How W falls at the true number of clusters",
        ["clusters", "d", "k*", "last drop to k*", "first drop after", "their ratio",
         *(f"knee at k*: {name}" for name in RULES), "mean knee of W"],
        lines,
        "Drops are shares of W(1). Knees are found by three rules; the share of the sets in which "
        "they are at the true number.",
    )  # fmt: skip


def _claim_on_drops(rows: Sequence[Row]) -> Claim:
    by_name: dict[str, list[float]] = {name: [] for name in SEPARATIONS}
    for name, _, true_k, chosen in _cells_of(rows):
        by_name[name] += contrasts(chosen, true_k).tolist()
    words = ", ".join(f"{name} {np.median(values):.1f}" for name, values in by_name.items())
    least = min(by_name["well apart"])
    return Claim(
        "Below the ideal k, W falls by much with one more center, and above it by little "
        "(clusters well apart, much: twice as much)",
        "model selection",
        above(*mean_and_error(np.log(by_name["well apart"]).tolist()), math.log(2)),
        f"the last drop to k* over the first after it, median: {words}; for clusters well apart "
        f"never below {least:.1f}",
    )


def _claims_on_knees(rows: Sequence[Row]) -> list[Claim]:
    return [_claim_on_knee(where(rows, separation=name), name) for name in SEPARATIONS]


def _claim_on_knee(rows: Sequence[Row], name: str) -> Claim:
    near: dict[str, tuple[float, float]] = {}
    for rule, find in RULES.items():
        misses = [
            abs(found - true_k)
            for _, _, true_k, chosen in _cells_of(rows)
            for found in find(chosen)
        ]
        near[rule] = share_and_error([float(miss <= 1) for miss in misses])
    words = "; ".join(f"{rule} {share:.0%} ± {error:.0%}" for rule, (share, error) in near.items())
    return Claim(
        f"The ideal k is close to the knee of W (clusters {name})",
        "model selection",
        above(*near["the largest ratio of two drops"], CLOSE),
        f"Close: off by at most one in {CLOSE:.0%} of the sets. The slides name no rule; theirs is "
        "read as the k after which the drops of W shrink most. How often knees are close, by that "
        f"rule and two others: {words}.",
    )


# What it looks like.


def draw(rows: Sequence[Row], folder: Path) -> Sequence[Path]:
    """W(k) of the first draw of five clusters, by how far they are apart."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 3, figsize=(10.5, 3.8), layout="constrained")
    for ax, name in zip(axes, SEPARATIONS, strict=True):
        _draw_curve(ax, where(rows, separation=name, true_k=5, d=2, draw=0))
        ax.set_title(f"five clusters, {name}")
    axes[0].set_ylabel("W(k) / W(1)")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    path = folder / "knee.png"
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
    return [path]


def _draw_curve(ax: Any, rows: Sequence[Row]) -> None:
    sizes, inertias = np.array(column(rows, "k")), np.array(column(rows, "W"))
    shares = inertias / inertias[0]
    knee = int(rows[0]["knee"])
    ax.plot(sizes, shares, "-o", color=BLUE, markersize=4, label="W(k)")
    ax.plot(
        knee, shares[knee - 1], "s", color=VERMILION, markersize=10, markerfacecolor="none",
        mew=2, label="knee",
    )  # fmt: skip
    ax.axvline(5, color=INK, linestyle=":", label="true number")
    logarithmic(ax)
    ax.set(xlabel="k")
    tidy(ax, grid="y")
