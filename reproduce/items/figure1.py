"""Figure 1: cross-sections of the objective for four powers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from powermeans import Fixed, Geometric
from powermeans.mathematics.power_mean import memberships, objective, power_mean_weights
from reproduce.drawn_data import make_exponential_family
from reproduce.item import Cell, Claim, Findings, Row, Table, Value, mean_and_error
from reproduce.selecting import column, where
from reproduce.surface import draw_surface

TITLE = "Figure 1: cross-sections of the objective for four powers"
SOURCE = "The paper, Figure 1 and section 2.1; the presentation, “Objective surfaces”"
DATA = "as published"

Array = NDArray[np.float64]

POWERS = {"-inf": -math.inf, "-10": -10.0, "-1": -1.0, "-0.2": -0.2}
ANNEALED = "annealed from -1"
GROWTH, N_ANNEALED = 1.05, 100
N_POINTS = 100
TRUE_CENTERS, DEVIATION = (10.0, 20.0, 40.0), 4.0
N_SETS, N_QUICK_SETS, N_STARTS = 100, 4, 150
MOST_SWEEPS = 3000
# Sweeps end when no center of any start moves by more than this, in standard deviations of a
# cluster; ends nearer to each other than this are one.
SETTLED, SAME = 1e-7, 1e-2


def cells(quick: bool) -> Sequence[Cell]:
    """A cell for each drawn data set and power."""
    n_sets = N_QUICK_SETS if quick else N_SETS
    return [
        Cell({"data_set": number, "s": name, "n_starts": N_STARTS}, partial(valleys, number, name))
        for number in range(n_sets)
        for name in (*POWERS, ANNEALED)
    ]


def findings(rows: Sequence[Row]) -> Findings:
    """Valleys by power, and the paper's sentences about them."""
    claims = [rougher(rows), fewer(rows), alike(rows), guided(rows)]
    return Findings(tables=[valley_table(rows)], claims=claims)


def draw(rows: Sequence[Row], folder: Path) -> Sequence[Path]:
    """The four surfaces as the paper has them, and the same as contours for reading off."""
    from matplotlib.figure import Figure

    points, centers = clusters(typical(rows))
    paths = []
    for ending, projection, size in (("", "3d", (10, 8.6)), ("-contours", None, (10, 8.2))):
        figure = Figure(figsize=size, layout="constrained")
        panels = figure.subplots(2, 2, subplot_kw={"projection": projection})
        for axes, power in zip(panels.flat, POWERS.values(), strict=True):
            draw_surface(axes, points[:, 0], power, centers[2:, 0])
            if projection is None:
                mark_true_places(axes, centers)
        paths.append(folder / f"figure1{ending}.png")
        figure.savefig(paths[-1], dpi=130)
    return paths


def clusters(number: int) -> tuple[Array, Array]:
    """A hundred points on a line from three clusters, and the true centers."""
    drawn = make_exponential_family(
        "normal", N_POINTS, 1, centers=TRUE_CENTERS, random_state=number
    )
    return drawn.points.astype(np.float64), np.array(TRUE_CENTERS)[:, None]


def valleys(number: int, name: str) -> list[Row]:
    """Where sweeps with two of the centers end from random starts, the third in its true place."""
    points, centers = clusters(number)
    low, high = points.min(), points.max()
    starts = np.random.default_rng(number).uniform(low, high, size=(N_STARTS, 2))
    power = POWERS.get(name, -math.inf)
    ends = settle(points[:, 0], centers[2, 0], starts, powers_of(name))
    is_flat = weigh(points[:, 0], centers[2, 0], ends, power).sum(axis=1).min(axis=1) == 0
    bottoms, n_ending = grouped(np.sort(ends[~is_flat], axis=1))
    heights = [objective(points, stacked(bottom, centers), power) for bottom in bottoms]
    lowest = int(np.argmin(heights))
    return [
        {
            "valleys": len(bottoms),
            "share": n_ending[lowest] / N_STARTS,
            "height": heights[lowest],
            "first": bottoms[lowest][0],
            "second": bottoms[lowest][1],
        }
    ]


def powers_of(name: str) -> Iterable[float]:
    """The power of each sweep."""
    if name == ANNEALED:
        soft = itertools.islice(Geometric(-1.0, GROWTH), N_ANNEALED)
        return itertools.chain(soft, Fixed(-math.inf))
    return Fixed(POWERS[name])


def settle(line: Array, third: float, starts: Array, powers: Iterable[float]) -> Array:
    """Majorise and minimise over two centers on a line until nothing moves, for all starts."""
    centers = starts
    for sweep, power in enumerate(itertools.islice(powers, MOST_SWEEPS)):
        moved = swept(line, third, centers, power)
        shift, centers = float(np.abs(moved - centers).max()), moved
        if shift <= SETTLED * DEVIATION and sweep >= N_ANNEALED:
            break
    return centers


def swept(line: Array, third: float, centers: Array, power: float) -> Array:
    """A sweep; a center that gets no weight stays."""
    weights = weigh(line, third, centers, power)
    total = weights.sum(axis=1)
    moved = np.einsum("sij,i->sj", weights, line) / np.where(total > 0, total, 1.0)
    return np.where(total > 0, moved, centers)


def weigh(line: Array, third: float, centers: Array, power: float) -> Array:
    """What the points give to the two centers, (n_starts, n_points, 2)."""
    places = np.column_stack([centers, np.full(len(centers), third)])
    sq_dist = np.square(line[None, :, None] - places[:, None, :])
    weights = memberships if power == -math.inf else power_mean_weights
    return weights(sq_dist, power)[..., :2]


def grouped(ends: Array) -> tuple[list[Array], list[int]]:
    """The ends that differ, and how many starts end at each."""
    bottoms: list[Array] = []
    counts: list[int] = []
    for end in ends:
        near = [
            index
            for index, one in enumerate(bottoms)
            if np.abs(one - end).max() <= SAME * DEVIATION
        ]
        if near:
            counts[near[0]] += 1
        else:
            bottoms.append(end)
            counts.append(1)
    return bottoms, counts


def stacked(two: Array, centers: Array) -> Array:
    """All three centers."""
    return np.concatenate([two[:, None], centers[2:]])


def valley_table(rows: Sequence[Row]) -> Table:
    """How many ends there are, and how many starts lead to the lowest."""
    lines: list[list[Value]] = []
    for name in (*POWERS, ANNEALED):
        of_power = where(rows, s=name)
        mean, error = mean_and_error(column(of_power, "valleys"))
        share = mean_and_error(column(of_power, "share"))[0]
        lines.append([name, mean, error, max(column(of_power, "valleys")), share])
    n_sets = len(where(rows, s=ANNEALED))
    return Table(
        f"Valleys of the cross-section, {n_sets} data sets, {N_STARTS} starts each",
        ["s", "valleys", "standard error", "most", "share of starts that end in the lowest"],
        lines,
        "Sweeps with two centers, the third in its true place. Two centers that change places are "
        "one valley; where a center has no points it is level, which is none. The last line is "
        "judged by the k-means objective, as the first.",
    )


def by_power(rows: Sequence[Row], name: str) -> dict[str, float]:
    """The mean of a figure for each power."""
    return {s: mean_and_error(column(where(rows, s=s), name))[0] for s in (*POWERS, ANNEALED)}


def rougher(rows: Sequence[Row]) -> Claim:
    """More valleys the lower the power."""
    means = by_power(rows, "valleys")
    falls = all(means[one] > means[two] for one, two in itertools.pairwise(POWERS))
    return Claim(
        "More and more local valleys appear as s tends to −∞.",
        "the paper, section 2.1 and Figure 1",
        "holds" if falls else "does not hold",
        "Valleys in the mean: " + ", ".join(f"{means[s]:.2f} at s = {s}" for s in POWERS) + ".",
    )


def fewer(rows: Sequence[Row]) -> Claim:
    """k-harmonic means has fewer minima than k-means."""
    soft, hard = (np.array(column(where(rows, s=s), "valleys")) for s in ("-1", "-inf"))
    n_fewer, n_more = int((soft < hard).sum()), int((soft > hard).sum())
    return Claim(
        "f_−1 has fewer local minima than the k-means objective.",
        "the paper, section 2.1; the presentation, “k-harmonic means”",
        "holds" if n_fewer > n_more and soft.mean() < hard.mean() else "does not hold",
        f"Fewer in {n_fewer} of {len(soft)} data sets, more in {n_more}.",
    )


def alike(rows: Sequence[Row]) -> Claim:
    """The lowest valleys of both are near to each other."""
    places = {
        s: np.column_stack([column(where(rows, s=s), name) for name in ("first", "second")])
        for s in ("-1", "-inf")
    }
    apart = np.abs(places["-1"] - places["-inf"]).max(axis=1) / DEVIATION
    median = float(np.median(apart))
    return Claim(
        "The global minimisers of f_−1 and of the k-means objective are similar.",
        "the paper, section 2.1",
        "holds" if median < 0.5 else "does not hold",
        f"Centers are {median:.2f} standard deviations of a cluster apart in the median, more than "
        f"one in {int((apart > 1).sum())} of {len(apart)} data sets.",
    )


def guided(rows: Sequence[Row]) -> Claim:
    """Annealing leads to the global minimum."""
    shares = by_power(rows, "share")
    return Claim(
        "Moving along the smoothed objectives guides towards the global minimum.",
        "the paper, sections 1 and 2.1",
        "holds" if shares[ANNEALED] > shares["-inf"] else "does not hold",
        f"{shares[ANNEALED]:.0%} of starts end in the lowest valley of the k-means objective when "
        f"annealed from s = −1, {shares['-inf']:.0%} by Lloyd's sweeps.",
    )


def typical(rows: Sequence[Row]) -> int:
    """The first data set that has about the median number of valleys at each power."""
    counts = np.array([column(where(rows, s=s), "valleys") for s in POWERS])
    from_median = np.abs(counts - np.median(counts, axis=1, keepdims=True)).sum(axis=0)
    return int(where(rows, s="-inf")[int(np.argmin(from_median))]["data_set"])


def mark_true_places(axes: object, centers: Array) -> None:
    """The two true centers, either way round."""
    one, other = centers[:2, 0]
    axes.plot(  # type: ignore[attr-defined]
        [one, other], [other, one], "^", color="white", markeredgecolor="#222222", markersize=9
    )
