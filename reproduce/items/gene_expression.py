"""Gene expression of five kinds of tumour: ARI, NMI and VI from matched random starts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from powermeans import critical_power
from powermeans.datasets import load_data_set
from reproduce.checks import across, below
from reproduce.item import Cell, Claim, Findings, Row, Table, Value, mean_and_error
from reproduce.marks import draw_spread
from reproduce.matched_starts import (
    KHM,
    LLOYD,
    SEARCH,
    draw_seeds,
    khm,
    lead,
    leads,
    lloyd,
    one_descent,
    power_from,
    published,
    run_all,
    said_of_lead,
    search,
)
from reproduce.selecting import column, kinds, where

TITLE = "Gene expression: five kinds of tumour found again"
SOURCE = "The presentation, “Real data”: over 20 000 dimensions, 5 clusters"
DATA = "stand-in: two other sets of tumours"

Which = Literal["platform", "types"]
SETS: dict[Which, str] = {
    "platform": "other kinds of tumour, all genes of the platform, log2(x + 1)",
    "types": "the kinds of the slides, fewer genes, without the samples that have gaps, "
    "logarithms as they are stored",
}
N_CLUSTERS = 5
N_SEEDS: dict[Which, int] = {"platform": 10, "types": 20}
N_QUICK_SEEDS, N_QUICK_GENES = 2, 1000
ALL_GENES = 10**6
STARTS = (-1.0, -3.0, -9.0, -18.0)
PUBLISHED = tuple(power_from(start) for start in STARTS)
METHODS = (lloyd(), khm(), *(published(start) for start in STARTS), one_descent(), search())
SCORES = ("ARI", "NMI", "VI")


def cells(quick: bool) -> Sequence[Cell]:
    """A cell for each set and seed."""
    n_most = N_QUICK_GENES if quick else ALL_GENES
    return [
        Cell({"set": which, "seed": seed, "n_most": n_most}, partial(contest, which, seed, n_most))
        for which in SETS
        for seed in range(N_QUICK_SEEDS if quick else N_SEEDS[which])
    ]


def findings(rows: Sequence[Row]) -> Findings:
    """A table for each set, and what it says about high dimensions."""
    return Findings(
        tables=[table_of(rows, which) for which in SETS],
        claims=[*(best_in_high_dimensions(rows, start) for start in PUBLISHED), khm_fails(rows)],
        remarks=[
            "The set of the slides (801 samples) is not at hand: one stand-in has all its genes "
            "and other kinds of tumour, the other the same kinds and fewer genes. Their bar charts "
            "have no numbers to compare with.",
            *(f"Critical power of {which}: {critical(rows, which):.1f}." for which in SETS),
        ],
    )


def draw(rows: Sequence[Row], folder: Path) -> Sequence[Path]:
    """The three scores of every run."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 7.5), layout="constrained")
    panels = figure.subplots(len(SETS), len(SCORES), sharey=True)
    for of_set, which in zip(panels, SETS, strict=True):
        for axes, score in zip(of_set, SCORES, strict=True):
            draw_spread(axes, where(rows, set=which), score)
            axes.set(xlabel=score, title=which)
    path = folder / "gene-expression.png"
    figure.savefig(path, dpi=130)
    return [path]


@lru_cache(maxsize=1)
def expression(which: Which) -> tuple[Any, Any]:
    """Logarithms of expression in single precision, and the kinds of tumour."""
    files = {"platform": "tcga_rnaseq5", "types": "tcga_uci5classes_3700genes"}
    read = load_data_set(files[which])
    assert read.labels is not None
    is_whole = np.isfinite(read.points).all(axis=1)
    points = np.log2(read.points + 1) if which == "platform" else read.points
    return points[is_whole].astype(np.float32), read.labels[is_whole]


def contest(which: Which, seed: int, n_most: int) -> list[Row]:
    """All methods from the same samples, on no more genes than this."""
    points, labels = expression(which)
    points = np.ascontiguousarray(points[:, :n_most])
    seeds = draw_seeds(points, N_CLUSTERS, "uniform", seed)
    threshold = critical_power(points)
    rows = run_all(METHODS, points, seeds, labels, seed)
    shape = {"samples": points.shape[0], "genes": points.shape[1]}
    return [{**shape, "critical_power": threshold, **row} for row in rows]


def critical(rows: Sequence[Row], which: str) -> float:
    """The critical power of a set."""
    return float(where(rows, set=which)[0]["critical_power"])


def table_of(rows: Sequence[Row], which: Which) -> Table:
    """Means over the seeds."""
    of_set = where(rows, set=which)
    lines: list[list[Value]] = []
    for method in kinds(of_set, "method"):
        of_method = where(of_set, method=method)
        line: list[Value] = [str(method)]
        for score in SCORES:
            line += mean_and_error(column(of_method, score))
        line.append(float(np.mean(column(of_method, "clusters"))))
        lines.append([*line, float(np.median(column(of_method, "seconds")))])
    heads = [head for score in SCORES for head in (score, "±")]
    n_seeds = len({row["seed"] for row in of_set})
    return Table(
        f"{which}: {of_set[0]['samples']} samples, {of_set[0]['genes']} genes; {SETS[which]}",
        ["method", *heads, "clusters", "seconds"],
        lines,
        f"Means and standard errors over {n_seeds} random starts; seconds are medians.",
    )


def mean_ari(rows: Sequence[Row], which: str, method: str) -> tuple[float, float]:
    """Mean ARI and its standard error."""
    return mean_and_error(column(where(rows, set=which, method=method), "ARI"))


def said_of(rows: Sequence[Row], methods: Sequence[str]) -> str:
    """Mean ARI in words."""
    return "; ".join(
        f"{which}: "
        + ", ".join(f"{method} {mean_ari(rows, which, method)[0]:.3f}" for method in methods)
        for which in SETS
    )


def best_in_high_dimensions(rows: Sequence[Row], start: str) -> Claim:
    """Power k-means from a start is better than Lloyd and KHM on both sets, by all three scores."""
    by_set = {which: where(rows, set=which) for which in SETS}
    others = (LLOYD, KHM)
    return Claim(
        "On gene expression, in thousands of dimensions, power k-means agrees better with the "
        f"kinds of tumour than Lloyd's algorithm and k-harmonic means ({start}).",
        "the presentation, “ARI, NMI, VI of the real datasets”; its bars are not in the text",
        across(leads(of_set, start, others, SCORES) for of_set in by_set.values()),
        "How much better, from the same seeds: "
        + ". ".join(
            f"{which}, {said_of_lead(of_set, start, others, SCORES)}"
            for which, of_set in by_set.items()
        )
        + f". Mean ARI, {said_of(rows, (LLOYD, KHM, start, SEARCH))}.",
        on="the set and the score",
    )


def khm_fails(rows: Sequence[Row]) -> Claim:
    """KHM agrees less with the kinds than Lloyd's algorithm on both sets."""
    leads_of_khm = [lead(where(rows, set=which), KHM, LLOYD, "ARI") for which in SETS]
    return Claim(
        "As the dimension grows k-harmonic means breaks down (gene expression).",
        "the paper, section 2.1; the presentation, “k-harmonic means”",
        across(below(*pair) for pair in leads_of_khm),
        f"Mean ARI, {said_of(rows, (LLOYD, KHM))}; from the same seeds its lead over Lloyd's is "
        + " and ".join(f"{mean:+.3f} ± {error:.3f}" for mean, error in leads_of_khm)
        + "; it ends with "
        + " and ".join(
            f"{np.mean(column(where(rows, set=which, method=KHM), 'clusters')):.1f}"
            for which in SETS
        )
        + f" of {N_CLUSTERS} clusters. The critical powers are "
        + " and ".join(f"{critical(rows, which):.1f}" for which in SETS)
        + "; it stays at −1.",
    )
