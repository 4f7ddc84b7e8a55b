"""Protein expression of control and trisomic mice: power k-means, k-means++ and a map."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import stdev
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_limits

from powermeans import SelfOrganizingMap
from powermeans.datasets import load_data_set
from powermeans.plots.canvas import BLUE, INK, VERMILION, tidy
from powermeans.types import FloatArray, Labels
from reproduce.checks import above, together, under_settings
from reproduce.item import (
    Cell,
    Claim,
    Comparison,
    Findings,
    Row,
    Table,
    Value,
    Verdict,
    mean_and_error,
)
from reproduce.matched_starts import (
    LLOYD,
    SEARCH,
    Method,
    Seeding,
    draw_seeds,
    lloyd,
    power_from,
    published,
    search,
)
from reproduce.matlab_map import MatlabMap
from reproduce.published import published_rows
from reproduce.selecting import column, where

TITLE = "Table 3: protein expression in control and trisomic mice"
SOURCE = "Xu & Lange 2019, Table 3; the map after Higuera, Gardiner & Cios 2015"
DATA = "real"

SHAPES = {"control": (7, 7), "trisomic": (6, 6)}
N_RUNS, N_QUICK_RUNS, N_BEST = 50, 2, 10
SEEDINGS: tuple[Seeding, ...] = ("D²", "D", "greedy")
STARTS = (-1.0, -3.0, -9.0)
OWN_SEEDS = "its own"
MAP, OUR_MAP = "SOM as in MATLAB", "SOM by our default"
COMPARED = {"power": power_from(-3.0), "k-means++": LLOYD, "SOM": MAP}
MEASURES = ("error", "mixed_nodes", "total_mixed")
ERROR_TOLERANCE = 0.01

N_EPOCHS = 200
"""Of both maps."""


def cells(quick: bool) -> Sequence[Cell]:
    """All runs of one method from one kind of seeds, for one genotype."""
    n_runs = N_QUICK_RUNS if quick else N_RUNS
    started = [
        _cell(genotype, method.name, seeding, n_runs, partial(centers_of, method, seeding))
        for genotype in SHAPES
        for seeding in SEEDINGS
        for method in (lloyd(), *map(published, STARTS))
    ]
    others: list[tuple[str, Callable[..., FloatArray], int]] = [
        (SEARCH, partial(centers_of, search(), "greedy"), n_runs),
        (MAP, matlab_map, n_runs),
        (OUR_MAP, our_map, 1),
    ]
    return started + [
        _cell(genotype, name, OWN_SEEDS, n, centers)
        for genotype in SHAPES
        for name, centers, n in others
    ]


def _cell(
    genotype: str, method: str, seeding: str, n_runs: int, centers: Callable[..., FloatArray]
) -> Cell:
    key: dict[str, Value] = {
        "genotype": genotype,
        "method": method,
        "seeding": seeding,
        "runs": n_runs,
    }
    return Cell(key, partial(runs, genotype, n_runs, centers))


def runs(genotype: str, n_runs: int, centers: Callable[..., FloatArray]) -> list[Row]:
    """The three measures of the table, and the sum of squares, run by run."""
    points, classes = mice(genotype)
    # So few points are not worth a second thread.
    with threadpool_limits(1):
        return [
            {"run": run, **measured(points, classes, centers(points, SHAPES[genotype], run))}
            for run in range(n_runs)
        ]


def mice(genotype: str) -> tuple[FloatArray, Labels]:
    """The rows of one genotype: gaps filled by the mean of the class, each protein in [0, 1]."""
    data = load_data_set("mice_protein")
    assert data.labels is not None
    is_chosen = (data.labels < 4) == (genotype == "control")
    points, classes = np.array(data.points[is_chosen], np.float64), data.labels[is_chosen]
    for label in np.unique(classes):
        own = points[classes == label]
        points[classes == label] = np.where(np.isnan(own), np.nanmean(own, axis=0), own)
    lowest = points.min(axis=0)
    return (points - lowest) / (points.max(axis=0) - lowest), classes


def measured(points: FloatArray, classes: Labels, centers: FloatArray) -> dict[str, Value]:
    """Mean distance to the nearest center, and nodes and points where classes are mixed."""
    distances = cdist(points, centers)
    labels, nearest = distances.argmin(axis=1), distances.min(axis=1)
    mixed = [node for node in np.unique(labels) if len(np.unique(classes[labels == node])) > 1]
    return {
        "error": float(nearest.mean()),
        "mixed_nodes": len(mixed),
        "total_mixed": int(np.isin(labels, mixed).sum()),
        "sse": float(nearest @ nearest),
    }


def centers_of(
    method: Method, seeding: Seeding, points: FloatArray, shape: tuple[int, int], run: int
) -> FloatArray:
    """Centers of a method of clustering."""
    seeds = draw_seeds(points, math.prod(shape), seeding, run)
    return np.asarray(method.fit(points, seeds, run).cluster_centers_)


def our_map(points: FloatArray, shape: tuple[int, int], run: int) -> FloatArray:
    """The map by our own schedule, with a small radius in the end."""
    model = SelfOrganizingMap(
        shape, topology="hexagonal", final_radius=0.3, n_epochs=N_EPOCHS, random_state=run
    )
    return np.asarray(model.fit(points).cluster_centers_)


def matlab_map(points: FloatArray, shape: tuple[int, int], run: int) -> FloatArray:
    """The map as the Neural Network Toolbox of MATLAB trains it, which Higuera et al. used."""
    model = MatlabMap(shape, n_epochs=N_EPOCHS, random_state=run)
    return np.asarray(model.fit(points).cluster_centers_)


def findings(rows: Sequence[Row]) -> Findings:
    """The table from the best of ten runs and from the mean of all, beside the published one."""
    orders = orders_of(rows)
    comparisons = comparisons_of(rows)
    return Findings(
        tables=[
            _beside(rows),
            _table_of_orders(orders),
            *(_all_methods(rows, genotype) for genotype in SHAPES),
        ],
        comparisons=comparisons,
        claims=[_claim_of_errors(rows, orders), _claim_of_mixing(rows)],
        remarks=[
            "Neither the sizes of the maps, nor the scaling, nor what was done about missing "
            "values is in the paper: 7 x 7 and 6 x 6 nodes, each protein from 0 to 1 within a "
            "genotype and means of classes are the settings that give its numbers. Nor does it "
            "name the first power, here -3, or how seeds were drawn, here as k-means++ does (D²).",
            "The best of ten is the run with the least sum of squares of the first ten. What was "
            "published is one run of each method, or the best of some.",
            _remark_on_counts(rows, comparisons),
            _remark_on_our_map(rows),
        ],
    )


def comparisons_of(rows: Sequence[Row]) -> list[Comparison]:
    """Errors of the best of ten, and counts as means.

    A published count is one run's, so that the error of the difference is that of our mean and the
    deviation of a single run together.
    """
    found = []
    for line in published_rows("table3"):
        genotype, method = str(line["group"]), str(line["method"])
        own = _runs_of(rows, genotype, COMPARED[method])
        what = f"{method}, {genotype}"
        best = float(_best(own)["error"])
        found.append(
            Comparison(
                what,
                f"error, best of {min(N_BEST, len(own))}",
                float(line["error"]),
                best,
                tolerance=ERROR_TOLERANCE,
            )
        )
        for measure in MEASURES[1:]:
            values = column(own, measure)
            mean, error = mean_and_error(values)
            noise = math.hypot(error, _deviation(values))
            name = f"{measure.replace('_', ' ')}, mean; noise of one run"
            found.append(Comparison(what, name, float(line[measure]), mean, noise))
    return found


def _runs_of(rows: Iterable[Row], genotype: str, method: str, seeding: str = "D²") -> list[Row]:
    """The runs of a method; one that takes seeds has those of k-means++."""
    own = where(rows, genotype=genotype, method=method)
    return where(own, seeding=seeding) or where(own, seeding=OWN_SEEDS)


def _deviation(values: Sequence[float]) -> float:
    return stdev(values) if len(values) > 1 else math.inf


def _best(rows: Sequence[Row]) -> Row:
    return min(rows[:N_BEST], key=lambda row: float(row["sse"]))


def _beside(rows: Sequence[Row]) -> Table:
    """The three published methods, and the map by our own schedule beside the published one."""
    body = []
    for line in published_rows("table3"):
        genotype, name = str(line["group"]), str(line["method"])
        body.append(_line(line, COMPARED[name], _runs_of(rows, genotype, COMPARED[name])))
        if name == "SOM":
            body.append(_line(line, OUR_MAP, _runs_of(rows, genotype, OUR_MAP)))
    names = ("error", "mixed", "in mixed")
    heads = [f"{name}, {of}" for of in ("published", "best of 10", "mean") for name in names]
    return Table(
        "Table 3, published and ours",
        ["mice", "published as", "method", "runs", *heads],
        body,
        "Power k-means from s0 = -3 and Lloyd from the same k-means++ seeds (D²); the maps are "
        "SelfOrganizingMap as MATLAB trains it and with its own schedule. Error: "
        "mean distance; mixed: nodes with more than one class; in mixed: the mice there.",
    )


def _line(line: Row, method: str, own: Sequence[Row]) -> list[Value]:
    best = _best(own)
    means = [mean_and_error(column(own, measure))[0] for measure in MEASURES]
    return [
        line["group"],
        line["method"],
        method,
        len(own),
        *(line[measure] for measure in MEASURES),
        *(best[measure] for measure in MEASURES),
        means[0],
        *(f"{mean:.1f}" for mean in means[1:]),
    ]


@dataclass(frozen=True, slots=True)
class Order:
    """How power k-means, the map and k-means++ lie by the mean error of runs.

    `steps` are the map less power k-means, and k-means++ less the map, with standard errors.
    """

    genotype: str
    seeding: str
    start: str
    means: tuple[float, float, float]
    steps: tuple[tuple[float, float], tuple[float, float]]

    @property
    def is_published(self) -> Verdict:
        """Whether power k-means comes first, then the map."""
        return together(above(*step) for step in self.steps)


def orders_of(rows: Sequence[Row]) -> list[Order]:
    """The order under each seeding and first power, none of which the paper names."""
    cases = itertools.product(SHAPES, SEEDINGS, map(power_from, STARTS))
    return [_order_of(rows, genotype, seeding, power) for genotype, seeding, power in cases]


def _order_of(rows: Sequence[Row], genotype: str, seeding: str, power: str) -> Order:
    found = [
        mean_and_error(column(_runs_of(rows, genotype, method, seeding), "error"))
        for method in (power, MAP, LLOYD)
    ]
    means = (found[0][0], found[1][0], found[2][0])
    return Order(genotype, seeding, power, means, (_step(*found[:2]), _step(*found[1:])))


def _step(lower: tuple[float, float], higher: tuple[float, float]) -> tuple[float, float]:
    """The difference of two means of runs that have nothing in common, and its error."""
    return higher[0] - lower[0], math.hypot(lower[1], higher[1])


def _table_of_orders(orders: Sequence[Order]) -> Table:
    words = {"holds": "yes", "does not hold": "no"}
    body: list[list[Value]] = [
        [
            order.genotype,
            order.seeding,
            order.start,
            *order.means,
            *(f"{step:+.4f} ± {error:.4f}" for step, error in order.steps),
            words.get(order.is_published, "too near"),
        ]
        for order in orders
    ]
    return Table(
        "Order by error, means over runs, by seeds and first power",
        ["mice", "seeds", "power k-means", "its error", "map", "k-means++",
         "map less power", "k-means++ less map", "as published"],
        body,
        "Power k-means and k-means++ (Lloyd) have the same seeds; the map has none.",
    )  # fmt: skip


def _all_methods(rows: Sequence[Row], genotype: str) -> Table:
    own = where(rows, genotype=genotype)
    kinds = dict.fromkeys((str(row["seeding"]), str(row["method"])) for row in own)
    body: list[list[Value]] = []
    for seeding, method in kinds:
        found = where(own, seeding=seeding, method=method)
        errors = column(found, "error")
        best = _best(found)
        means = [mean_and_error(column(found, measure))[0] for measure in MEASURES]
        spread = stdev(errors) if len(errors) > 1 else math.nan
        body.append([seeding, method, len(found), means[0], spread, *means[1:], best["error"]])
    return Table(
        f"All methods, {genotype} mice",
        ["seeds", "method", "runs", "error", "its spread", "mixed", "in mixed", "best of 10"],
        body,
    )


def _claim_of_errors(rows: Sequence[Row], orders: Sequence[Order]) -> Claim:
    """By means over runs from k-means++ seeds, for each first power, since the paper names none."""
    compared = [
        order for order in orders if (order.seeding, order.start) == ("D²", COMPARED["power"])
    ]
    said = []
    for order in compared:
        best = [
            float(_best(_runs_of(rows, order.genotype, COMPARED[name]))["error"])
            for name in ("power", "SOM", "k-means++")
        ]
        said.append(f"{order.genotype}: means {_listed(order.means)}, best of ten {_listed(best)}")
    reached = [order.is_published for order in orders]
    by_start = {
        start: together(
            order.is_published
            for order in orders
            if (order.seeding, order.start) == ("D²", power_from(start))
        )
        for start in STARTS
    }
    verdicts = ", ".join(f"s0 = {start:g} {verdict}" for start, verdict in by_start.items())
    return Claim(
        "By quantization error power k-means is ahead of the map, and the map of k-means++",
        "Xu & Lange 2019, section 4.1",
        under_settings(by_start.values()),
        f"power from s0 = -3, map, k-means++ with D² seeds: {'; '.join(said)}; of all "
        f"{len(reached)} cases of mice, seeds and first power {reached.count('holds')} have "
        f"that order by more than two standard errors, {reached.count('does not hold')} another",
        on=f"the first power: {verdicts}",
    )


def _listed(values: Iterable[float], digits: int = 3) -> str:
    return ", ".join(f"{value:.{digits}f}" for value in values)


def _claim_of_mixing(rows: Sequence[Row]) -> Claim:
    steps, said = [], []
    for genotype, measure in itertools.product(SHAPES, MEASURES[1:]):
        found = [
            mean_and_error(column(_runs_of(rows, genotype, COMPARED[name]), measure))
            for name in ("power", "SOM", "k-means++")
        ]
        steps += [_step(*pair) for pair in itertools.pairwise(found)]
        listed = ", ".join(f"{mean:.1f} ± {error:.1f}" for mean, error in found)
        said.append(f"{genotype}, {measure.replace('_', ' ')}: {listed}")
    return Claim(
        "Power k-means mixes classes least, then the map, then k-means++",
        "Xu & Lange 2019, section 4.1",
        together(above(*step) for step in steps),
        f"power, map, k-means++, means over runs: {'; '.join(said)}",
    )


# Remarks.


def _remark_on_counts(rows: Sequence[Row], comparisons: Sequence[Comparison]) -> str:
    """On which side of the published counts ours lie, and how far."""
    counts = [c for c in comparisons if not c.quantity.startswith("error")]
    above_theirs = sum(c.ours > c.published for c in counts)
    excess = [100 * (c.ours / c.published - 1) for c in counts]
    best_above, n_equal = 0, 0
    for line, measure in itertools.product(published_rows("table3"), MEASURES[1:]):
        own = _runs_of(rows, str(line["group"]), COMPARED[str(line["method"])])
        ours = float(_best(own)[measure])
        best_above += ours > float(line[measure])
        n_equal += ours == float(line[measure])
    return (
        f"Of our {len(counts)} mean counts of mixed nodes and mice {above_theirs} lie above the "
        f"published ones, from {min(excess):+.0f} % to {max(excess):+.0f} %, "
        f"{math.fsum(excess) / len(excess):+.0f} % in the mean; those of the best of ten lie above "
        f"in {best_above} and are equal in {n_equal}. Each for itself is compared with the noise "
        "of one run; typical runs would lie to either side."
    )


def _remark_on_our_map(rows: Sequence[Row]) -> str:
    said, n_far = [], 0
    for line in where(published_rows("table3"), method="SOM"):
        genotype = str(line["group"])
        errors = [
            float(_best(_runs_of(rows, genotype, method))["error"])
            for method in (OUR_MAP, MAP, LLOYD)
        ]
        n_far += abs(errors[0] - float(line["error"])) > ERROR_TOLERANCE
        said.append(
            f"{genotype} mice {errors[0]:.3f} where {line['error']:.3f} is published, and the map "
            f"as in MATLAB has {errors[1]:.3f} and k-means++ {errors[2]:.3f}"
        )
    return (
        "The map by our default schedule, which leaves out no points, has an error farther than "
        f"{ERROR_TOLERANCE} from the published one in {n_far} of {len(said)} cases: "
        f"{'; '.join(said)} (best of ten, or the only run)."
    )


def draw(rows: Sequence[Row], folder: Path) -> Sequence[Path]:
    """The error of every run, and the published ones."""
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    for ax, genotype in zip(panels, SHAPES, strict=True):
        _draw_runs(ax, rows, genotype)
    panels[0].legend(frameon=False, fontsize=8)
    path = folder / "table3.png"
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
    return [path]


def _draw_runs(ax: Any, rows: Sequence[Row], genotype: str) -> None:
    shown = {**COMPARED, "our default": SEARCH}
    theirs = {
        line["method"]: line["error"] for line in where(published_rows("table3"), group=genotype)
    }
    for height, (name, method) in enumerate(shown.items()):
        errors = column(_runs_of(rows, genotype, method), "error")
        is_first = height == 0
        ax.plot(
            errors,
            np.full(len(errors), height),
            "|",
            color=BLUE,
            markersize=14,
            alpha=0.5,
            label="our runs" if is_first else None,
        )
        if name in theirs:
            label = "published" if is_first else None
            ax.plot(theirs[name], height, "D", color=VERMILION, mec=INK, label=label)
    ax.set_yticks(range(len(shown)), shown)
    ax.set(title=f"{genotype} mice", xlabel="mean distance to the nearest center")
    ax.set_ylim(-0.6, len(shown) - 0.4)
    tidy(ax, grid="x")
