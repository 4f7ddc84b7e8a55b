"""Equal clusters of normal and of binomial points over dimensions: ARI, NMI and VI."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from threadpoolctl import threadpool_limits

from powermeans.datasets import DataSet
from reproduce.checks import above, across, below
from reproduce.drawn_data import make_exponential_family
from reproduce.item import Cell, Claim, Findings, Row, Table, Value
from reproduce.marks import add_legend, draw_lines
from reproduce.matched_starts import (
    KHM,
    LLOYD,
    ONE_DESCENT,
    SEARCH,
    agreement,
    draw_seeds,
    khm,
    lead,
    leads,
    lloyd,
    one_descent,
    patient,
    patient_from,
    power_from,
    published,
    said_of_lead,
    search,
)
from reproduce.selecting import column, kinds, where

TITLE = "Equal clusters, normal and binomial, over dimensions: ARI, NMI and VI"
SOURCE = "The presentation, “Synthetic data”: 3 clusters, 600 points, as many in each"
DATA = "our layout: the slides name no means"

Family = Literal["normal", "binomial"]
FAMILIES: tuple[Family, ...] = ("normal", "binomial")
LAYOUTS = {"in a line": "at 10, 20 and 40 in each coordinate", "close": "anywhere from 20 to 24"}
FEATURES, QUICK_FEATURES = (1, 2, 5, 10, 20, 50, 100, 200), (2, 20, 100)
N_POINTS, N_CLUSTERS = 600, 3
N_SETS, N_QUICK_SETS = 30, 2
STARTS = (-1.0, -3.0, -9.0)
PUBLISHED = tuple(power_from(start) for start in STARTS)
PATIENT = tuple(patient_from(start) for start in STARTS[:2])
METHODS = (
    lloyd(),
    khm(),
    *(published(start) for start in STARTS),
    *(patient(start) for start in STARTS[:2]),
    one_descent(),
    search(),
)
SCORES = ("ARI", "NMI", "VI")
# From so many features on dimensions count as high.
HIGH = 100
# So much ARI a start may lose against Lloyd's algorithm where none needs tuning.
HARDLY = 0.01


def cells(quick: bool) -> Sequence[Cell]:
    """A cell for each family, layout and number of features."""
    n_sets = N_QUICK_SETS if quick else N_SETS
    return [
        Cell(
            {"family": family, "layout": layout, "features": n_features, "n_sets": n_sets},
            partial(trials, family, layout, n_features, n_sets),
        )
        for family in FAMILIES
        for layout in LAYOUTS
        for n_features in (QUICK_FEATURES if quick else FEATURES)
    ]


def findings(rows: Sequence[Row]) -> Findings:
    """A table for each family and layout, and the presentation's sentences."""
    tables = [
        table_of(rows, str(family), str(layout))
        for family in kinds(rows, "family")
        for layout in kinds(rows, "layout")
    ]
    return Findings(
        tables=tables,
        claims=[
            *(benefits_remain(rows, start) for start in PUBLISHED),
            khm_in_high_dimensions(rows),
            no_careful_tuning(rows),
        ],
        remarks=[
            "The slides say neither where the centers are nor how many dimensions there were. In "
            "a line the means are those of the work that the slides build on (Vellal, Chakraborty "
            "& Xu 2022); close centers are what makes high dimensions hard for k-harmonic means.",
            "The seeds are points drawn at random, as in the slides' algorithm.",
        ],
    )


def draw(rows: Sequence[Row], folder: Path) -> Sequence[Path]:
    """The three scores over the number of features."""
    from matplotlib.figure import Figure

    settings = [(family, layout) for family in FAMILIES for layout in LAYOUTS]
    figure = Figure(figsize=(12, 13), layout="constrained")
    panels = figure.subplots(len(settings), len(SCORES), sharex=True)
    for of_setting, (family, layout) in zip(panels, settings, strict=True):
        for axes, score in zip(of_setting, SCORES, strict=True):
            draw_lines(axes, where(rows, family=family, layout=layout), "features", score)
            label_panel(axes, f"{family}, {layout}", score)
    for axes in panels[-1]:
        axes.set_xlabel("features (methods a little beside each other)")
    add_legend(figure, panels[0, 0])
    path = folder / "equal-clusters.png"
    figure.savefig(path, dpi=110)
    return [path]


def label_panel(axes: Any, title: str, score: str) -> None:
    """Names and a logarithmic count of features in plain numbers."""
    axes.set(xscale="log", ylabel=score, title=title)
    axes.xaxis.set_major_formatter("{x:g}")


def drawn_set(family: Family, layout: str, n_features: int, number: int) -> DataSet:
    """The data set of this number."""
    rng = np.random.default_rng([number, n_features])
    centers: Any = (10.0, 20.0, 40.0)
    if layout == "close":
        centers = rng.uniform(20, 24, size=(N_CLUSTERS, n_features))
    return make_exponential_family(family, N_POINTS, n_features, centers=centers, random_state=rng)


def trials(family: Family, layout: str, n_features: int, n_sets: int) -> list[Row]:
    """All methods on each data set, from the same seeds."""
    rows: list[Row] = []
    for number in range(n_sets):
        drawn = drawn_set(family, layout, n_features, number)
        assert drawn.labels is not None
        with threadpool_limits(1):  # so few points are not worth a second thread
            seeds = draw_seeds(drawn.points, N_CLUSTERS, "uniform", number)
            for method in METHODS:
                model = method.fit(drawn.points, seeds, number)
                scores = agreement(drawn.labels, model.labels_)
                rows.append({"data_set": number, "method": method.name, **scores})
    return rows


def table_of(rows: Sequence[Row], family: str, layout: str) -> Table:
    """ARI for each number of features, and NMI and VI for the largest."""
    chosen = where(rows, family=family, layout=layout)
    features = sorted({int(row["features"]) for row in chosen})
    lines: list[list[Value]] = []
    for method in kinds(chosen, "method"):
        of_method = where(chosen, method=method)
        ari = [np.mean(column(where(of_method, features=d), "ARI")) for d in features]
        last = where(of_method, features=features[-1])
        others = [np.mean(column(last, score)) for score in ("NMI", "VI")]
        lines.append([str(method), *map(float, ari), *map(float, others)])
    n_sets = len({row["data_set"] for row in chosen})
    return Table(
        f"{family.capitalize()}, centers {LAYOUTS[layout]}: mean ARI by the number of features",
        ["method", *(f"d = {d}" for d in features), "NMI, last d", "VI, last d"],
        lines,
        f"{n_sets} data sets of {N_POINTS} points in {N_CLUSTERS} equal clusters.",
    )


def in_high(rows: Sequence[Row], layout: str) -> list[Row]:
    """The rows of a layout in high dimensions, of both families."""
    return [row for row in where(rows, layout=layout) if float(row["features"]) >= HIGH]


def said_of(rows: Sequence[Row], methods: Sequence[str]) -> str:
    """Mean ARI in high dimensions, in words."""
    by_layout = [
        f"{layout}: "
        + ", ".join(
            f"{method} {np.mean(column(where(of_layout, method=method), 'ARI')):.3f}"
            for method in methods
        )
        for layout in LAYOUTS
        for of_layout in [in_high(rows, layout)]
    ]
    return f"Mean ARI from d = {HIGH} on, centers " + "; ".join(by_layout) + "."


def benefits_remain(rows: Sequence[Row], start: str) -> Claim:
    """A start is better than both others in high dimensions, in each layout, by all scores."""
    by_layout = {layout: in_high(rows, layout) for layout in LAYOUTS}
    others = (LLOYD, KHM)
    return Claim(
        "Power k-means retains the benefits of annealing as the dimension increases, where KHM and "
        f"Lloyd's algorithm deteriorate ({start}).",
        "the presentation, “Annealing”; the paper, section 2.1",
        across(leads(of_one, start, others, SCORES) for of_one in by_layout.values()),
        "How much better, from the same seeds: "
        + ". ".join(
            f"{layout}, {said_of_lead(of_one, start, others, SCORES)}"
            for layout, of_one in by_layout.items()
        )
        + f". {said_of(rows, (LLOYD, KHM, start, SEARCH))}",
        on="the layout",
    )


def khm_in_high_dimensions(rows: Sequence[Row]) -> Claim:
    """KHM agrees less with the clusters than Lloyd's algorithm in high dimensions."""
    found = {layout: lead(in_high(rows, layout), KHM, LLOYD, "ARI") for layout in LAYOUTS}
    return Claim(
        "k-harmonic means suffers from the curse of dimensionality.",
        "the presentation, “k-harmonic means”; the paper, section 2.1",
        across(below(*pair) for pair in found.values()),
        "From the same seeds its ARI beside Lloyd's is "
        + ", ".join(
            f"{mean:+.3f} ± {error:.3f} ({layout})" for layout, (mean, error) in found.items()
        )
        + f". {said_of(rows, (LLOYD, KHM))}",
        on="the layout",
    )


def no_careful_tuning(rows: Sequence[Row]) -> Claim:
    """No start is worse than Lloyd's by more than a little."""
    found = {
        f"{start}, {layout}": lead(in_high(rows, layout), start, LLOYD, "ARI")
        for layout in LAYOUTS
        for start in PUBLISHED
    }
    return Claim(
        "The initial power affects performance, but does not require careful tuning (equal "
        "clusters, d ≥ 100).",
        "the presentation, “Performance guarantee”; the paper, section 2.1",
        across(above(mean, error, -HARDLY) for mean, error in found.values()),
        f"Holds if no start loses {HARDLY:g} of ARI against Lloyd's algorithm; from the same seeds "
        "they gain "
        + "; ".join(f"{name}: {mean:+.3f} ± {error:.3f}" for name, (mean, error) in found.items())
        + f". {said_of(rows, (LLOYD, *PUBLISHED, *PATIENT, ONE_DESCENT))}",
        on="the layout and the start",
    )
