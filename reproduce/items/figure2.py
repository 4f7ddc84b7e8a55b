"""Figure 2: Lloyd's algorithm against power k-means in the plane, with the clusters each missed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from powermeans import PowerKMeans
from powermeans.divergences import SquaredEuclidean
from powermeans.metrics import quality_ratio, variation_of_information
from powermeans.plots.canvas import BLUE, GREY, INK, ORANGE, VERMILION
from reproduce.checks import above, paired_gain, share_and_error
from reproduce.gaussian_trials import N_CLUSTERS, gaussians, reference_of
from reproduce.item import Cell, Claim, Findings, Row, Table, Value, mean_and_error
from reproduce.matched_starts import (
    LLOYD,
    Method,
    draw_seeds,
    lloyd,
    one_descent,
    power_from,
    published,
    search,
)
from reproduce.selecting import column, where

TITLE = "Figure 2: Lloyd's algorithm and power k-means in the plane"
SOURCE = "The paper, Figure 2: 50 clusters of 2500 points, optimal centers as triangles"
DATA = "as published"

Array = NDArray[Any]

METHODS = (lloyd(), published(-1.0), published(-3.0), one_descent(), search())
SHOWN = (LLOYD, power_from(-1.0))
N_SETS, N_QUICK_SETS = 100, 6
# A cluster is well separated if no other optimal center is nearer, in standard deviations.
WELL_SEPARATED = 4.0
SEVERAL = 2
# In such a share of the data sets something is no exception.
NO_EXCEPTION = 0.05


def cells(quick: bool) -> Sequence[Cell]:
    """A cell for each drawn data set."""
    n_sets = N_QUICK_SETS if quick else N_SETS
    return [Cell({"data_set": number}, partial(trial, number)) for number in range(n_sets)]


def findings(rows: Sequence[Row]) -> Findings:
    """How many clusters each method missed, and the sentence under the figure."""
    return Findings(tables=[missed_table(rows)], claims=[fails_in_the_plane(rows)])


def draw(rows: Sequence[Row], folder: Path) -> Sequence[Path]:
    """Two methods from the same seeds, and the clusters they missed in circles."""
    from matplotlib.figure import Figure

    number = typical(rows)
    figure = Figure(figsize=(12, 6.9), layout="constrained")
    panels = figure.subplots(1, 2)
    for axes, name in zip(panels, SHOWN, strict=True):
        draw_solution(axes, number, next(method for method in METHODS if method.name == name))
    handles, labels = panels[0].get_legend_handles_labels()
    legend = figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    for handle, size in zip(legend.legend_handles, (12, 55, 35, 150), strict=True):
        handle.set(sizes=[size])  # type: ignore[union-attr]
    path = folder / "figure2.png"
    figure.savefig(path, dpi=130)
    return [path]


def trial(number: int) -> list[Row]:
    """What each method missed from the same seeds, and what that is beside Lloyd's algorithm."""
    rows: list[Row] = []
    missed_by_lloyd = None
    for method in METHODS:
        points, labels, optimal, model = solution(number, method)
        centers = model.cluster_centers_.astype(np.float64)
        missed = missed_clusters(optimal, centers)
        separated = missed[separations(optimal)[missed] > WELL_SEPARATED]
        if missed_by_lloyd is None:
            missed_by_lloyd = separated
        figures: dict[str, Value] = {
            "missed": len(missed),
            "separated": len(separated),
            "separated_gained": len(np.setdiff1d(missed_by_lloyd, separated)),
            "separated_lost": len(np.setdiff1d(separated, missed_by_lloyd)),
            "ratio": quality_ratio(points, centers, optimal, form="unsquared"),
            "VI": variation_of_information(labels, model.labels_),
        }
        rows.append({"method": method.name, **figures})
    return rows


def solution(number: int, method: Method) -> tuple[Array, Array, Array, PowerKMeans]:
    """Points, labels and optimal centers of a data set, and what a method makes of it."""
    drawn = gaussians(2, number)
    assert drawn.labels is not None
    with threadpool_limits(1):  # so few points are not worth a second thread
        seeds = draw_seeds(drawn.points, N_CLUSTERS, "D", number)
        model = method.fit(drawn.points, seeds, number)
        return drawn.points.astype(np.float64), drawn.labels, reference_of(drawn).optimal, model


def missed_clusters(optimal: Array, centers: Array) -> Array:
    """The optimal centers that are nearest to none of those found.

    Examples
    --------
    >>> import numpy as np
    >>> missed_clusters(np.array([[0.0], [5.0], [9.0]]), np.array([[0.1], [0.2], [8.0]]))
    array([1])
    """
    nearest = np.argmin(SquaredEuclidean().pairwise(centers, optimal), axis=1)
    return np.setdiff1d(np.arange(len(optimal)), nearest)


def separations(optimal: Array) -> Array:
    """How far each optimal center is from the nearest other one."""
    sq_dist = SquaredEuclidean().pairwise(optimal, optimal)
    np.fill_diagonal(sq_dist, np.inf)
    return np.asarray(np.sqrt(sq_dist.min(axis=1)))


def missed_table(rows: Sequence[Row]) -> Table:
    """Means over the data sets."""
    names = ("separated", "separated_gained", "separated_lost", "ratio", "VI")
    lines: list[list[Value]] = []
    for method in METHODS:
        of_method = where(rows, method=method.name)
        missed, error = mean_and_error(column(of_method, "missed"))
        others = [mean_and_error(column(of_method, name))[0] for name in names]
        lines.append([method.name, missed, error, *others])
    heads = [
        "of them separated",
        "separated, found only here",
        "found only by Lloyd",
        "ratio",
        "VI",
    ]
    return Table(
        f"Clusters missed, of {N_CLUSTERS}, in the mean over {len(where(rows, method=LLOYD))} "
        "data sets",
        ["method", "missed", "standard error", *heads],
        lines,
        "The same seeds, drawn in proportion to the distance, but for the last, which draws its "
        f"own. Separated: more than {WELL_SEPARATED:g} standard deviations from the next optimal "
        "center; the two columns after it compare each method with Lloyd's.",
    )


def fails_in_the_plane(rows: Sequence[Row]) -> Claim:
    """In how many data sets power k-means finds several that Lloyd misses, and misses fewer."""
    of_power = where(rows, method=SHOWN[1])
    gained, lost = (column(of_power, f"separated_{what}") for what in ("gained", "lost"))
    is_like_the_picture = [
        float(more >= SEVERAL and more > less) for more, less in zip(gained, lost, strict=True)
    ]
    rate, error = share_and_error(is_like_the_picture)
    net, net_error = paired_gain(gained, lost)
    return Claim(
        "(Of the picture, read as what is no exception: more than one data set in twenty.) Even in "
        "the plane Lloyd's algorithm fails on several well separated clusters that power k-means "
        "identifies.",
        "the paper, Figure 2",
        above(rate, error, NO_EXCEPTION),
        f"From s = −1 at least {SEVERAL} are gained, and fewer lost, in "
        f"{sum(is_like_the_picture):.0f} of {len(gained)} data sets (a rate of {rate:.3f} ± "
        f"{error:.3f}, with two hits and two misses added). In all {sum(gained):.0f} separated "
        f"clusters are gained and {sum(lost):.0f} lost, {net:+.2f} ± {net_error:.2f} a data set.",
    )


def typical(rows: Sequence[Row]) -> int:
    """The first data set in which both miss about as many clusters as they do in the mean."""
    counts = np.array([column(where(rows, method=name), "missed") for name in SHOWN])
    from_mean = np.abs(counts - counts.mean(axis=1, keepdims=True)).sum(axis=0)
    return int(where(rows, method=LLOYD)[int(np.argmin(from_mean))]["data_set"])


def draw_solution(axes: Any, number: int, method: Method) -> None:
    """Points, optimal centers as triangles, centers found, and circles around what is missed."""
    points, _, optimal, model = solution(number, method)
    centers = model.cluster_centers_.astype(np.float64)
    missed = missed_clusters(optimal, centers)
    axes.scatter(*points.T, s=3, color=GREY, linewidths=0, label="points")
    axes.scatter(
        *optimal.T, s=55, marker="^", color=ORANGE, edgecolor=INK, linewidths=0.6, zorder=3,
        label="optimal center",
    )  # fmt: skip
    axes.scatter(
        *centers.T, s=28, color=BLUE, edgecolor="white", linewidths=0.7, zorder=4,
        label="center found",
    )  # fmt: skip
    axes.scatter(
        *optimal[missed].T, s=900, facecolor="none", edgecolor=VERMILION, linewidths=2.2, zorder=5,
        label="cluster missed",
    )  # fmt: skip
    ratio = quality_ratio(points, centers, optimal, form="unsquared")
    axes.set_title(f"{method.name}: {len(missed)} of {len(optimal)} missed, ratio {ratio:.3f}")
    axes.set(aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
