"""
Lloyd's algorithm and power k-means from the same seeds
=======================================================

Lloyd's algorithm cannot correct badly placed seeds; power k-means corrects most. Both start from
the same seeds among sixteen clusters in the plane. The seeds are drawn in three ways, fifty times
each, and a table counts how often both methods find all the clusters. It also shows that better
seeds leave less to gain, and that slower annealing gains more.

Each fit is one descent (``effort="none"``): by default `PowerKMeans` searches afterwards, which
hides what the seeds and the annealing did. The picture shows a typical draw of random seeds, and
the path of each center from there.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from powermeans import KMeans, PowerKMeans, kmeans_plusplus
from powermeans.mathematics.schedules import Fixed

N_DRAWS = 50
SIDE, SPACING, N_POINTS_EACH = 4, 4.5, 100
N_CLUSTERS = SIDE**2

# %%
# The data are normal clouds on a grid. Lloyd's algorithm, started at their true centers, gives the
# optimum.

Array = NDArray[np.float64]


def sixteen_clouds() -> tuple[Array, Array]:
    """The points, and the centers of their clouds."""
    ticks = SPACING * np.arange(SIDE)
    centers = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    noise = np.random.default_rng(0).normal(size=(N_CLUSTERS * N_POINTS_EACH, 2))
    return np.repeat(centers, N_POINTS_EACH, axis=0) + noise, centers


points, true_centers = sixteen_clouds()
optimum = KMeans(N_CLUSTERS, init=true_centers, n_init=1).fit(points)

# %%
# Three ways to draw seeds, from the poorest to the best.


def random_seeds(draw: int) -> Array:
    """Sixteen of the points, each as likely as any other."""
    rows = np.random.default_rng(draw).choice(len(points), N_CLUSTERS, replace=False)
    return points[rows]


def plain_seeds(draw: int) -> Array:
    """k-means++ as published: one candidate for each seed."""
    return kmeans_plusplus(points, N_CLUSTERS, n_local_trials=1, random_state=draw)[0]


def greedy_seeds(draw: int) -> Array:
    """Greedy k-means++, scikit-learn's default: the best of several candidates each time."""
    return kmeans_plusplus(points, N_CLUSTERS, random_state=draw)[0]


SEEDINGS: dict[str, Callable[[int], Array]] = {
    "random points": random_seeds,
    "plain k-means++": plain_seeds,
    "greedy k-means++": greedy_seeds,
}

# %%
# Three algorithms. Lloyd's is power k-means at the power -inf throughout.

ALGORITHMS: dict[str, dict[str, object]] = {
    "Lloyd": {"schedule": Fixed(-math.inf)},
    "power k-means": {},
    "power k-means, slowly": {"power": -0.2, "schedule": 1.02, "max_iter": 1000},
}

# %%
# One fit, compared with the optimum. A fit misses a cluster if none of its centers lies there; then
# two share another cluster.


@dataclass(frozen=True)
class Outcome:
    """Where a fit ended, and its path."""

    path: list[Array]
    excess: float
    missed: NDArray[np.intp]

    @property
    def centers(self) -> Array:
        """The centers at the end."""
        return self.path[-1]


def fit_from(seeds: Array, algorithm: str) -> Outcome:
    """Fit from these seeds, and record the centers after each sweep."""
    path = [seeds]
    model = PowerKMeans(
        N_CLUSTERS,
        init=seeds,
        effort="none",
        callback=lambda state: path.append(state.centers),
        **ALGORITHMS[algorithm],
    ).fit(points)
    found = optimum.predict(model.cluster_centers_)
    missed = np.setdiff1d(np.arange(N_CLUSTERS), found)
    return Outcome(path, model.inertia_ / optimum.inertia_ - 1, missed)


# %%
# The table.

Outcomes = dict[tuple[str, str], list[Outcome]]


def compare() -> Outcomes:
    """The outcomes of all draws, for each way of seeding and each algorithm."""
    return {
        (seeding, algorithm): [fit_from(draw_seeds(draw), algorithm) for draw in range(N_DRAWS)]
        for seeding, draw_seeds in SEEDINGS.items()
        for algorithm in ALGORITHMS
    }


def print_table(outcomes: Outcomes) -> None:
    """How often all clusters were found, how many were missed, how far from the optimum."""
    print(f"{N_CLUSTERS} clusters, {len(points)} points, {N_DRAWS} draws of seeds\n")
    print(f"{'seeds':<18}{'algorithm':<23}{'all found':>10}{'missed':>9}{'excess':>9}")
    for (seeding, algorithm), runs in outcomes.items():
        found_all = np.mean([len(run.missed) == 0 for run in runs])
        missed = np.mean([len(run.missed) for run in runs])
        excess = np.mean([run.excess for run in runs])
        print(f"{seeding:<18}{algorithm:<23}{found_all:>10.0%}{missed:>9.2f}{excess:>9.1%}")
    print("\nall found: draws in which every cluster got a center of its own")
    print("missed:    clusters without one, in the mean")
    print("excess:    sum of squares above that of the optimum, in the mean")


# %%
# The picture, in colours that most people can tell apart (Okabe & Ito).

BLUE, ORANGE, VERMILION, GREY = "#0072B2", "#E69F00", "#D55E00", "#8793a0"


def typical_draw(*algorithms: list[Outcome]) -> int:
    """The first draw in which each algorithm misses as many clusters as it does in the median."""
    missed = np.array([[len(run.missed) for run in runs] for runs in algorithms])
    from_median = np.abs(missed - np.median(missed, axis=1, keepdims=True))
    return int(np.argmin(from_median.sum(axis=0)))


def verdict(outcome: Outcome) -> str:
    """What the picture says under the name of the algorithm."""
    missed = f"{len(outcome.missed) or 'none'} of {N_CLUSTERS} clusters missed"
    if outcome.excess < 0.0005:
        return f"{missed}, sum of squares at the optimum"
    return f"{missed}, sum of squares {outcome.excess:.0%} above the optimum"


def draw_outcome(axes: Axes, outcome: Outcome, title: str) -> None:
    """Points, the path of each center from its seed to its end, and where it should be."""
    in_missed = np.isin(optimum.labels_, outcome.missed)
    ideal = optimum.cluster_centers_
    axes.scatter(*points[~in_missed].T, s=4, color=GREY, alpha=0.5, linewidths=0)
    axes.scatter(*points[in_missed].T, s=4, color=VERMILION, alpha=0.5, linewidths=0)
    for way in np.stack(outcome.path, axis=1):
        axes.plot(*way.T, color=BLUE, alpha=0.6, linewidth=1.2)
    axes.scatter(*outcome.path[0].T, s=18, color="white", edgecolor=BLUE, zorder=3, label="seed")
    axes.scatter(
        *ideal.T,
        s=80,
        marker="^",
        color=ORANGE,
        edgecolor="white",
        zorder=4,
        label="optimal center",
    )
    axes.scatter(*outcome.centers.T, s=50, color=BLUE, edgecolor="white", zorder=5, label="center")
    axes.scatter(
        *ideal[outcome.missed].T, s=2600, facecolor="none", edgecolor=VERMILION, linewidths=2
    )
    axes.set_title(title, fontsize=14, fontweight="bold", pad=26)
    axes.annotate(verdict(outcome), (0.5, 1), (0, 8), "axes fraction", "offset points", ha="center")
    axes.set(aspect="equal", xticks=[], yticks=[])
    axes.margins(0.01)
    axes.spines[:].set_visible(False)


def picture(outcomes: Outcomes) -> Figure:
    """Lloyd's algorithm, and power k-means annealed slowly, from the same random seeds."""
    lloyd = outcomes["random points", "Lloyd"]
    power = outcomes["random points", "power k-means, slowly"]
    draw = typical_draw(lloyd, power)
    figure, panels = plt.subplots(1, 2, figsize=(10, 5.8))
    figure.subplots_adjust(left=0.01, right=0.99, bottom=0.06, top=0.87, wspace=0.03)
    draw_outcome(panels[0], lloyd[draw], "Lloyd's algorithm")
    draw_outcome(panels[1], power[draw], "Power k-means, annealed slowly")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=3, frameon=False)
    return figure


def main() -> None:
    """Print the table and draw the picture."""
    parser = argparse.ArgumentParser(description="Compare Lloyd and power k-means.")
    parser.add_argument("--output", type=Path, help="write the picture here")
    output = parser.parse_args().output
    outcomes = compare()
    print_table(outcomes)
    figure = picture(outcomes)
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(output, dpi=110)
        print(f"\npicture: {output}")


if __name__ == "__main__":
    main()
