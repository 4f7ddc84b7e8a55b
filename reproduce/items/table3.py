"""Protein expression of control and trisomic mice: power k-means, k-means++ and a map."""

import itertools
import math
from collections.abc import Iterable, Sequence
from statistics import stdev
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_limits

from powermeans.datasets import load_data_set
from powermeans.types import FloatArray, Labels
from reproduce import trials
from reproduce.item import Cell, Claim, Comparison, Findings, Row, Rows, Table, Value, Verdict, grid
from reproduce.matlab_map import MatlabMap
from reproduce.rows import Figure, column, mean_and_error, published_rows, where
from reproduce.tables import mean
from reproduce.trials import LLOYD, SEARCH, Seeding, draw_seeds, power_from
from reproduce.verdicts import above, together, under_settings

TITLE = "Table 3: protein expression in control and trisomic mice"
SOURCE = "Xu & Lange 2019, Table 3; the map after Higuera, Gardiner & Cios 2015"
DATA = "real"

SHAPES = {"control": (7, 7), "trisomic": (6, 6)}
N_BEST = 10
SEEDINGS: tuple[Seeding, ...] = ("D²", "D", "greedy")
STARTS = (-1.0, -3.0, -9.0)
OWN_SEEDS = "its own"
METHODS = {
    method.name: method
    for method in (trials.lloyd(), *map(trials.published, STARTS), trials.search())
}
STARTED = [name for name in METHODS if name != SEARCH]
MAP = "SOM as in MATLAB"
COMPARED = {"power": power_from(-3.0), "k-means++": LLOYD, "SOM": MAP}
IN_ORDER = [COMPARED[name] for name in ("power", "SOM", "k-means++")]
MEASURES = {"error": "error", "mixed_nodes": "mixed", "total_mixed": "in mixed"}
COUNTS = ("mixed_nodes", "total_mixed")
PAPER = "Xu & Lange 2019, section 4.1"


def cells(quick: bool) -> Sequence[Cell]:
    n, mice = 2 if quick else 50, list(SHAPES)
    return [
        *grid(run_by_run, genotype=mice, seeding=SEEDINGS, method=STARTED, runs=n),
        *grid(run_by_run, genotype=mice, seeding=OWN_SEEDS, method=(SEARCH, MAP), runs=n),
    ]


def run_by_run(genotype: str, seeding: str, method: str, runs: int) -> list[Row]:
    """The three measures of the table, and the sum of squares, run by run."""
    points, classes = mice(genotype)
    rows = []
    with threadpool_limits(1):  # so few points are not worth a second thread
        for run in range(runs):
            centers = centers_of(method, seeding, points, SHAPES[genotype], run)
            rows.append({"run": run, **measured(points, classes, centers)})
    return rows


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


def centers_of(method, seeding, points, shape, run):
    """Centers of a method of clustering, or of a map by MATLAB's schedule."""
    if method in METHODS:
        drawn = "greedy" if seeding == OWN_SEEDS else seeding
        seeds = draw_seeds(points, math.prod(shape), drawn, run)  # type: ignore[arg-type]
        return np.asarray(METHODS[method].fit(points, seeds, run).cluster_centers_)
    return np.asarray(MatlabMap(shape, random_state=run).fit(points).cluster_centers_)


# What it shows.


def findings(rows: Rows) -> Findings:
    orders = orders_of(rows)
    comparisons = comparisons_of(rows)
    return Findings(
        tables=[
            _beside(rows),
        ],
        comparisons=comparisons,
        claims=[claim_of_errors(rows, orders), _claim_of_mixing(rows)],
        remarks=[
            "Neither the sizes of the maps, nor the scaling, nor what was done about missing "
            "values is in the paper: 7 x 7 and 6 x 6 nodes, each protein from 0 to 1 within a "
            "genotype and means of classes are the settings that give its numbers. Nor does it "
            "name the first power, here -3, or how seeds were drawn, here as k-means++ does (D²).",
            "The best of ten is the run with the least sum of squares of the first ten. What was "
            "published is one run of each method, or the best of some.",
            _remark_on_counts(comparisons),
        ],
    )


def runs_of(rows: Iterable[Row], genotype: object, method: str, seeding: str = "D²") -> list[Row]:
    """The runs of a method; one that takes seeds has those of k-means++."""
    own = where(rows, genotype=str(genotype), method=method)
    return where(own, seeding=seeding) or where(own, seeding=OWN_SEEDS)


def best_of(rows: Rows) -> Row:
    """The run with the least sum of squares of the first ten."""
    return min(rows[:N_BEST], key=lambda row: float(row["sse"]))


def comparisons_of(rows: Rows) -> list[Comparison]:
    """Counts as means; errors lie nearer to one another than any tolerance would tell.

    A published count is one run's, so that the error of the difference is that of our mean and the
    deviation of a single run together.
    """
    found = []
    for line, measure in itertools.product(published_rows("table3"), COUNTS):
        own = runs_of(rows, line["group"], COMPARED[str(line["method"])])
        values = column(own, measure)
        ours, error = mean_and_error(values)
        noise = math.hypot(error, stdev(values) if len(values) > 1 else math.inf)
        name = f"{measure.replace('_', ' ')}, mean; noise of one run"
        what = f"{line['method']}, {line['group']}"
        found.append(Comparison(what, name, float(line[measure]), ours, noise))
    return found


def _beside(rows: Rows) -> Table:
    lines = []
    for line in published_rows("table3"):
        method = COMPARED[str(line["method"])]
        own = runs_of(rows, line["group"], method)
        error, *counts = (mean(measure)(own) for measure in MEASURES)
        theirs, best = ([one[measure] for measure in MEASURES] for one in (line, best_of(own)))
        head = [line["group"], line["method"], method, len(own)]
        lines.append([*head, *theirs, *best, error, *(f"{count:.1f}" for count in counts)])
    heads = [f"{m}, {of}" for of in ("published", "best of 10", "mean") for m in MEASURES.values()]
    return Table(
        "Table 3, published and ours",
        ["mice", "published as", "method", "runs", *heads],
        lines,
        "Power k-means from s0 = -3 and Lloyd from the same k-means++ seeds (D²). Error: mean "
        "distance; mixed: nodes with more than one class; in mixed: the mice there.",
        is_published=True,
    )


class Order(NamedTuple):
    """How power k-means, the map and k-means++ lie by the mean error of runs.

    `steps` are the map less power k-means, and k-means++ less the map, with standard errors.
    """

    genotype: str
    seeding: str
    start: str
    means: Sequence[float]
    steps: Sequence[Figure]

    @property
    def is_published(self) -> Verdict:
        """Whether power k-means comes first, then the map."""
        return together(above(*step) for step in self.steps)


def orders_of(rows: Rows) -> list[Order]:
    """The order under each seeding and first power, none of which the paper names."""
    orders = []
    for genotype, seeding, start in itertools.product(SHAPES, SEEDINGS, map(power_from, STARTS)):
        found = [
            mean_and_error(column(runs_of(rows, genotype, method, seeding), "error"))
            for method in (start, MAP, LLOYD)
        ]
        orders.append(Order(genotype, seeding, start, [f for f, _ in found], steps_of(found)))
    return orders


def steps_of(found: Sequence[Figure]) -> list[Figure]:
    """The differences of means of runs that have nothing in common, and their errors."""
    return [
        (higher[0] - lower[0], math.hypot(lower[1], higher[1]))
        for lower, higher in itertools.pairwise(found)
    ]


def claim_of_errors(rows: Rows, orders: Sequence[Order]) -> Claim:
    """By means over runs from k-means++ seeds, for each first power, since the paper names none."""
    said, by_start = [], {}
    for order in orders:
        if (order.seeding, order.start) == ("D²", COMPARED["power"]):
            own = [runs_of(rows, order.genotype, method) for method in IN_ORDER]
            best = _listed(float(best_of(of)["error"]) for of in own)
            said.append(f"{order.genotype}: means {_listed(order.means)}, best of ten {best}")
        if order.seeding == "D²":
            by_start.setdefault(order.start, []).append(order.is_published)
    verdicts = {start: together(reached) for start, reached in by_start.items()}
    reached = [order.is_published for order in orders]
    words = ", ".join(
        f"{start.removeprefix('power, ')} {'is ' * (verdict == 'open')}{verdict}"
        for start, verdict in verdicts.items()
    )
    return Claim(
        "By quantization error power k-means is ahead of the map, and the map of k-means++",
        PAPER,
        under_settings(verdicts.values()),
        f"power from s0 = -3, map, k-means++ with D² seeds: {'; '.join(said)}; of all "
        f"{len(reached)} cases of mice, seeds and first power {reached.count('holds')} have "
        f"that order by more than two standard errors, {reached.count('does not hold')} another",
        on=f"the first power: {words}",
        in_short="the order of the errors in Table 3",
    )


def _listed(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.3f}" for value in values)


def _claim_of_mixing(rows: Rows) -> Claim:
    steps, said = [], []
    for genotype, measure in itertools.product(SHAPES, COUNTS):
        own = [runs_of(rows, genotype, method) for method in IN_ORDER]
        found = [mean_and_error(column(of, measure)) for of in own]
        steps += steps_of(found)
        listed = ", ".join(f"{mean:.1f} ± {error:.1f}" for mean, error in found)
        said.append(f"{genotype}, {measure.replace('_', ' ')}: {listed}")
    return Claim(
        "Power k-means mixes classes least, then the map, then k-means++",
        PAPER,
        together(above(*step) for step in steps),
        f"power, map, k-means++, means over runs: {'; '.join(said)}",
        until="the sizes of the maps and the treatment of missing entries, which the paper does "
        "not state",
    )


def _remark_on_counts(counts: Sequence[Comparison]) -> str:
    """On which side of the published counts ours lie, and how far."""
    n_above = sum(c.ours > c.published for c in counts)
    excess = [100 * (c.ours / c.published - 1) for c in counts]
    return (
        f"Of our {len(counts)} mean counts of mixed nodes and mice {n_above} lie above the "
        f"published ones, from {min(excess):+.0f} % to {max(excess):+.0f} %, "
        f"{math.fsum(excess) / len(excess):+.0f} % in the mean. Each for itself is compared with "
        "the noise of one run; typical runs would lie to either side."
    )
