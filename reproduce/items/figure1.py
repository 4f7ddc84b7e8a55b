"""Figure 1: cross-sections of the objective for four powers."""

import itertools
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from powermeans.mathematics.power_mean import (
    memberships,
    objective,
    power_mean,
    power_mean_weights,
)
from powermeans.mathematics.schedules import Fixed, Geometric
from powermeans.types import FloatArray
from reproduce.drawn_data import make_exponential_family
from reproduce.item import Cell, Claim, Findings, Row, Rows, grid
from reproduce.pictures import picture
from reproduce.rows import column, where
from reproduce.tables import mean
from reproduce.verdicts import exact

TITLE = "Figure 1: cross-sections of the objective for four powers"
SOURCE = "The paper, Figure 1 and section 2.1; the presentation, “Objective surfaces”"
DATA = "as published"

POWERS = {"-inf": -math.inf, "-10": -10.0, "-1": -1.0, "-0.2": -0.2}
ANNEALED = "annealed from -1"
GROWTH, N_ANNEALED = 1.05, 100
N_POINTS, N_STARTS = 100, 150
TRUE_CENTERS, DEVIATION = (10.0, 20.0, 40.0), 4.0
MOST_SWEEPS = 3000
# Sweeps end when no center of any start moves by more than this, in standard deviations of a
# cluster; ends nearer to each other than this are one.
SETTLED, SAME = 1e-7, 1e-2


def cells(quick: bool) -> Sequence[Cell]:
    n_sets = 4 if quick else 100
    return grid(valleys, data_set=range(n_sets), s=(*POWERS, ANNEALED), n_starts=N_STARTS)


def clusters(number: int) -> tuple[FloatArray, FloatArray]:
    """A hundred points on a line from three clusters, and the true centers."""
    drawn = make_exponential_family(
        "normal", N_POINTS, 1, centers=TRUE_CENTERS, random_state=number
    )
    return drawn.points.astype(np.float64), np.array(TRUE_CENTERS)[:, None]


def valleys(data_set: int, s: str, n_starts: int) -> list[Row]:
    """Where sweeps with two of the centers end from random starts, the third in its true place."""
    points, centers = clusters(data_set)
    line, third = points[:, 0], centers[2, 0]
    starts = np.random.default_rng(data_set).uniform(line.min(), line.max(), size=(n_starts, 2))
    power = POWERS.get(s, -math.inf)
    ends = settle(line, third, starts, powers_of(s))
    is_flat = weigh(line, third, ends, power).sum(axis=1).min(axis=1) == 0
    bottoms, n_ending = grouped(np.sort(ends[~is_flat], axis=1))
    heights = [objective(points, stacked(bottom, centers), power) for bottom in bottoms]
    lowest = int(np.argmin(heights))
    return [
        {
            "valleys": len(bottoms),
            "share": n_ending[lowest] / n_starts,
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


def settle(line, third, starts, powers):
    """Majorise and minimise over two centers on a line until nothing moves, for all starts."""
    centers = starts
    for sweep, power in enumerate(itertools.islice(powers, MOST_SWEEPS)):
        moved = swept(line, third, centers, power)
        shift, centers = float(np.abs(moved - centers).max()), moved
        if shift <= SETTLED * DEVIATION and sweep >= N_ANNEALED:
            break
    return centers


def swept(line: FloatArray, third: float, centers: FloatArray, power: float) -> FloatArray:
    """A sweep; a center that gets no weight stays."""
    weights = weigh(line, third, centers, power)
    total = weights.sum(axis=1)
    moved = np.einsum("sij,i->sj", weights, line) / np.where(total > 0, total, 1.0)
    return np.where(total > 0, moved, centers)


def weigh(line: FloatArray, third: float, centers: FloatArray, power: float) -> FloatArray:
    """What the points give to the two centers, (n_starts, n_points, 2)."""
    places = np.column_stack([centers, np.full(len(centers), third)])
    sq_dist = np.square(line[None, :, None] - places[:, None, :])
    weights = memberships if power == -math.inf else power_mean_weights
    return weights(sq_dist, power)[..., :2]


def grouped(ends: FloatArray) -> tuple[list[FloatArray], list[int]]:
    """The ends that differ, and how many starts end at each."""
    bottoms: list[FloatArray] = []
    counts: list[int] = []
    for end in ends:
        gaps = [np.abs(one - end).max() for one in bottoms]
        near = next((i for i, gap in enumerate(gaps) if gap <= SAME * DEVIATION), None)
        if near is None:
            bottoms.append(end)
            counts.append(1)
        else:
            counts[near] += 1
    return bottoms, counts


def stacked(two: FloatArray, centers: FloatArray) -> FloatArray:
    """All three centers."""
    return np.concatenate([two[:, None], centers[2:]])


def findings(rows: Rows) -> Findings:
    by_power = {s: where(rows, s=s) for s in (*POWERS, ANNEALED)}
    return Findings(claims=_claims(by_power))


def _claims(by_power: dict[str, list[Row]]) -> list[Claim]:
    means = {s: float(mean("valleys")(of)) for s, of in by_power.items()}
    falls = all(means[one] > means[two] for one, two in itertools.pairwise(POWERS))
    soft, hard = (np.array(column(by_power[s], "valleys")) for s in ("-1", "-inf"))
    n_fewer, n_more = int((soft < hard).sum()), int((soft > hard).sum())
    places = [
        np.array([column(by_power[s], name) for name in ("first", "second")])
        for s in ("-1", "-inf")
    ]
    apart = np.abs(places[0] - places[1]).max(axis=0) / DEVIATION
    shares = {s: float(mean("share")(of)) for s, of in by_power.items()}
    return [
        Claim(
            "More and more local valleys appear as s tends to −∞.",
            "the paper, section 2.1 and Figure 1",
            exact(falls),
            f"Valleys in the mean: {', '.join(f'{means[s]:.2f} at s = {s}' for s in POWERS)}.",
        ),
        Claim(
            "f_−1 has fewer local minima than the k-means objective.",
            "the paper, section 2.1; the presentation, “k-harmonic means”",
            exact(n_fewer > n_more and soft.mean() < hard.mean()),
            f"Fewer in {n_fewer} of {len(soft)} data sets, more in {n_more}.",
        ),
        Claim(
            "The global minimisers of f_−1 and of the k-means objective are similar.",
            "the paper, section 2.1",
            exact(float(np.median(apart)) < 0.5),
            f"Centers are {np.median(apart):.2f} standard deviations of a cluster apart in the "
            f"median, more than one in {int((apart > 1).sum())} of {len(apart)} data sets.",
        ),
        Claim(
            "Moving along the smoothed objectives guides towards the global minimum.",
            "the paper, sections 1 and 2.1",
            exact(shares[ANNEALED] > shares["-inf"]),
            f"{shares[ANNEALED]:.0%} of starts end in the lowest valley of the k-means objective "
            f"when annealed from s = −1, {shares['-inf']:.0%} by Lloyd's sweeps.",
            in_short="annealing leads towards the global minimum",
        ),
    ]


# What it looks like.


def surface_heights(line, power, fixed, values):
    """Compute the objective (equation 8) for every pair of values of two centers on a line.

    The points are (n_points,), the fixed centers (n_fixed,).
    """
    n_values = len(values)
    heights = np.zeros((n_values, n_values))
    for x in line:
        from_value = np.square(x - values)
        sq_dist = np.empty((n_values, n_values, 2 + len(fixed)))
        sq_dist[..., 0] = from_value[:, None]
        sq_dist[..., 1] = from_value
        sq_dist[..., 2:] = np.square(x - fixed)
        heights += power_mean(sq_dist, power)
    return heights


def draw(rows: Rows, folder: Path) -> None:
    counts = np.array([column(where(rows, s=s), "valleys") for s in POWERS])
    from_median = np.abs(counts - np.median(counts, axis=1, keepdims=True)).sum(axis=0)
    points, centers = clusters(int(np.argmin(from_median)))
    line = points[:, 0]
    values = np.linspace(line.min(), line.max(), 80)
    kind = {"projection": "3d"}
    with picture(folder / "figure1.png", 2, 2, size=(10, 8.4), subplot_kw=kind) as panels:
        for ax, (name, power) in zip(panels.flat, POWERS.items(), strict=True):
            _draw_in_space(ax, values, surface_heights(line, power, centers[2:, 0], values))
            ax.set_title(f"s = {name.replace('-inf', '−∞').replace('-', '−')}")
            ax.set(xlabel="center 0", ylabel="center 1")


def _draw_in_space(ax: Any, values: FloatArray, heights: FloatArray) -> None:
    from matplotlib import colormaps

    first, second = np.meshgrid(values, values, indexing="ij")
    logs = _log(heights)
    colors = colormaps["viridis"]((logs - logs.min()) / (np.ptp(logs) or 1.0))
    n = len(values)
    ax.plot_surface(first, second, heights, facecolors=colors, shade=False, rcount=n, ccount=n,
                    linewidth=0, antialiased=False)  # fmt: skip
    floor = heights.min() - 0.45 * np.ptp(heights)
    ax.contour(first, second, heights, levels=_levels(heights), offset=floor, cmap="viridis",
               norm="log", linewidths=0.9)  # fmt: skip
    ax.set_zlim(floor, heights.max())
    ax.set_zticks([tick for tick in ax.get_zticks() if 0 <= tick <= heights.max()])
    ax.set_zlabel("objective")
    ax.view_init(elev=32, azim=-55)
    ax.tick_params(labelsize=8, pad=0)
    ax.set_box_aspect(None, zoom=0.85)


def _log(heights: FloatArray) -> FloatArray:
    """Take logarithms of heights above a thousandth, so that colours tell valleys apart."""
    logs: FloatArray = np.log(np.maximum(heights, 1e-3 * heights.max()))
    return logs


def _levels(heights: FloatArray) -> FloatArray:
    """Return levels in geometric progression, the first at the lowest point."""
    low, high = float(np.exp(_log(heights).min())), float(heights.max())
    return np.geomspace(low, high * (1 + 1e-9), 16)
