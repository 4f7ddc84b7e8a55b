"""Figure 2: Lloyd's algorithm against power k-means in the plane, with the clusters each missed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from powermeans import PowerKMeans
from powermeans.divergences import SquaredEuclidean
from powermeans.metrics import quality_ratio, variation_of_information
from powermeans.plots.canvas import BLUE, GREY, INK, ORANGE, VERMILION
from reproduce import trials
from reproduce.item import Cell, Claim, Findings, Row, Rows, grid
from reproduce.pictures import add_legend, picture
from reproduce.rows import column, where
from reproduce.trials import LLOYD, N_CLUSTERS, Method, power_from
from reproduce.verdicts import above, paired_gain

TITLE = "Figure 2: Lloyd's algorithm and power k-means in the plane"
SOURCE = "The paper, Figure 2: 50 clusters of 2500 points, optimal centers as triangles"
DATA = "as published"

Array = NDArray[Any]

METHODS = (trials.lloyd(), *map(trials.published, (-1.0, -3.0)))
SHOWN = (LLOYD, power_from(-1.0))
# A cluster is well separated if no other optimal center is nearer, in standard deviations.
WELL_SEPARATED = 4.0
SEVERAL = 2


def cells(quick: bool) -> Sequence[Cell]:
    return grid(trial, data_set=range(6 if quick else 300))


def trial(data_set: int) -> list[Row]:
    """What each method missed from the same seeds, and what that is beside Lloyd's algorithm."""
    rows: list[Row] = []
    missed_by_lloyd = None
    for method in METHODS:
        points, labels, optimal, model = solution(data_set, method)
        centers = trials.centers_of(model)
        missed = missed_clusters(optimal, centers)
        separated = missed[separations(optimal)[missed] > WELL_SEPARATED]
        if missed_by_lloyd is None:
            missed_by_lloyd = separated
        rows.append(
            {
                "method": method.name,
                "missed": len(missed),
                "separated": len(separated),
                "separated_gained": len(np.setdiff1d(missed_by_lloyd, separated)),
                "separated_lost": len(np.setdiff1d(separated, missed_by_lloyd)),
                "ratio": quality_ratio(points, centers, optimal, form="unsquared"),
                "VI": variation_of_information(labels, model.labels_),
            }
        )
    return rows


def solution(number: int, method: Method) -> tuple[Array, Array, Array, PowerKMeans]:
    """Points, labels and optimal centers of a data set, and what a method makes of it."""
    drawn = trials.gaussians(2, number)
    assert drawn.labels is not None
    with threadpool_limits(1):  # so few points are not worth a second thread
        seeds = trials.draw_seeds(drawn.points, N_CLUSTERS, "D", number)
        model = method.fit(drawn.points, seeds, number)
        optimal = trials.reference_of(drawn).optimal
    return drawn.points.astype(np.float64), drawn.labels, optimal, model


def missed_clusters(optimal: Array, centers: Array) -> Array:
    """The optimal centers that are nearest to none of those found.

    Examples
    --------
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


def findings(rows: Rows) -> Findings:
    return Findings(claims=[fails_in_the_plane(rows)])


def fails_in_the_plane(rows: Rows) -> Claim:
    """How many clusters power k-means finds that Lloyd misses, less those that it misses itself."""
    of_power = where(rows, method=SHOWN[1])
    gained, lost = (column(of_power, f"separated_{what}") for what in ("gained", "lost"))
    n_like_the_picture = sum(
        more >= SEVERAL and more > less for more, less in zip(gained, lost, strict=True)
    )
    net, error = paired_gain(gained, lost)
    return Claim(
        "Even in the plane Lloyd's algorithm fails on well separated clusters that power k-means "
        "identifies",
        "the paper, Figure 2",
        above(net, error),
        f"from s = -1, {sum(gained):.0f} such clusters are gained in {len(gained)} data sets and "
        f"{sum(lost):.0f} lost, {net:+.2f} ± {error:.2f} per data set; in {n_like_the_picture} of "
        f"the sets, at least {SEVERAL} are gained at once, as in the picture, and fewer lost",
    )


def typical(rows: Rows) -> int:
    """The first data set in which both miss about as many clusters as they do in the mean."""
    counts = np.array([column(where(rows, method=name), "missed") for name in SHOWN])
    from_mean = np.abs(counts - counts.mean(axis=1, keepdims=True)).sum(axis=0)
    return int(where(rows, method=LLOYD)[int(np.argmin(from_mean))]["data_set"])


def draw(rows: Rows, folder: Path) -> None:
    with picture(folder / "figure2.png", 1, 2, size=(12, 6.9)) as (panels,):
        for axes, name in zip(panels, SHOWN, strict=True):
            method = next(method for method in METHODS if method.name == name)
            _draw_solution(axes, typical(rows), method)
        add_legend(panels[0])


def _draw_solution(axes: Any, number: int, method: Method) -> None:
    """Points, optimal centers as triangles, centers found, and circles around what is missed."""
    points, _, optimal, model = solution(number, method)
    centers = trials.centers_of(model)
    missed = missed_clusters(optimal, centers)
    axes.scatter(*points.T, s=3, color=GREY, linewidths=0, label="points")
    axes.plot(*optimal.T, "^", color=ORANGE, mec=INK, mew=0.6, ms=7, label="optimal center")
    axes.plot(*centers.T, "o", color=BLUE, mec="white", mew=0.7, ms=5, label="center found")
    axes.scatter(*optimal[missed].T, s=900, fc="none", ec=VERMILION, linewidths=2.2, zorder=5)
    axes.scatter([], [], s=150, fc="none", ec=VERMILION, linewidths=2.2, label="cluster missed")
    ratio = quality_ratio(points, centers, optimal, form="unsquared")
    axes.set_title(f"{method.name}: {len(missed)} of {len(optimal)} missed, ratio {ratio:.3f}")
    axes.set(aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
