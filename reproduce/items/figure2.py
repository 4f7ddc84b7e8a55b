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
from reproduce.item import Cell, Claim, Findings, Row, Rows, Table, grid
from reproduce.pictures import add_legend, picture
from reproduce.rows import column, where
from reproduce.tables import error, mean, table
from reproduce.trials import LLOYD, N_CLUSTERS, Method, power_from
from reproduce.verdicts import above, paired_gain, share_and_error

TITLE = "Figure 2: Lloyd's algorithm and power k-means in the plane"
SOURCE = "The paper, Figure 2: 50 clusters of 2500 points, optimal centers as triangles"
DATA = "as published"

Array = NDArray[Any]

METHODS = (
    trials.lloyd(),
    *map(trials.published, (-1.0, -3.0)),
    trials.one_descent(),
    trials.search(),
)
SHOWN = (LLOYD, power_from(-1.0))
# A cluster is well separated if no other optimal center is nearer, in standard deviations.
WELL_SEPARATED = 4.0
SEVERAL = 2
# In such a share of the data sets something is no exception.
NO_EXCEPTION = 0.05


def cells(quick: bool) -> Sequence[Cell]:
    return grid(trial, data_set=range(6 if quick else 100))


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
    return Findings(tables=[_table(rows)], claims=[fails_in_the_plane(rows)])


def _table(rows: Rows) -> Table:
    others = {
        "of them separated": "separated",
        "separated, found only here": "separated_gained",
        "found only by Lloyd": "separated_lost",
        "ratio": "ratio",
        "VI": "VI",
    }
    return table(
        f"Clusters missed, of {N_CLUSTERS}, in the mean over {len(where(rows, method=LLOYD))} "
        "data sets",
        rows,
        {"method": "method"},
        [
            ("missed", mean("missed")),
            ("standard error", error("missed")),
            *((head, mean(name)) for head, name in others.items()),
        ],
        "The same seeds, drawn in proportion to the distance, but for the last, which draws its "
        f"own. Separated: more than {WELL_SEPARATED:g} standard deviations from the next optimal "
        "center; the two columns after it compare each method with Lloyd's.",
    )


def fails_in_the_plane(rows: Rows) -> Claim:
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
