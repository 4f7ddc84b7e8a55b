"""W(C) computed both ways, and how hard its least value is to find."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl
from scipy.spatial.distance import pdist
from sklearn.datasets import load_digits, load_wine

from powermeans import KMeans, kmeans_plusplus
from powermeans.datasets import load_data_set
from powermeans.metrics import number_of_partitions
from powermeans.plots.canvas import BLUE, INK, VERMILION, tidy
from powermeans.types import FloatArray, IndexArray
from reproduce.checks import above, across, below, exact, paired_gain, together
from reproduce.drawn_data import make_gaussian_clusters
from reproduce.item import Aside, Cell, Claim, Comparison, Findings, Row, Table, mean_and_error
from reproduce.published import published_rows
from reproduce.quiet_fits import fitted
from reproduce.selecting import column, kinds, where

TITLE = "W(C) computed both ways, the number of partitions, and the search among them"
SOURCE = (
    "K. Moon, k-Means Clustering (lecture slides): the criterion, the algorithm, initialisation"
)
DATA = "random cases: and iris, wine and digits"

SETS = ("iris", "wine", "digits", "Gaussian clusters")
N_POINTS, N_CLUSTERS = 10, 4
"""The example of the slides, small enough to try all partitions."""
N_STARTS = 200
COUNTED = ((10, 4), (19, 4), (10, 2), (12, 3))
SWEEPS, N_FITS = 10, 20
BASE = {"n_points": 5_000, "k": 32, "d": 16}


# What is computed.


def cells(quick: bool) -> Sequence[Cell]:
    """Both sums, all partitions of ten points, starts of several kinds, and the cost of a sweep."""
    found = [
        Cell({"part": "sums", "data": data}, functools.partial(both_sums, data)) for data in SETS
    ]
    found += [
        Cell({"part": "count", "n": n, "k": k}, functools.partial(counts, n, k)) for n, k in COUNTED
    ]
    found += [
        Cell({"part": "all partitions", "draw": draw}, functools.partial(all_partitions, draw))
        for draw in range(3 if quick else 30)
    ]
    found += [
        Cell(
            {"part": "starts", "data": data, "draws": n},
            functools.partial(starts, data, n),
        )
        for data in (SETS[:2] if quick else SETS)
        for n in (50 if quick else 500,)
    ]
    sizes = (1, 4) if quick else (1, 2, 3, 4)
    found += [
        Cell(
            {"part": "cost", "grows": name, "times": times},
            functools.partial(cost, name, times),
        )
        for name in BASE
        for times in sizes
    ]
    return found


def points_of(data: str) -> tuple[FloatArray, int]:
    """Points and a number of clusters."""
    if data == "iris":
        return np.asarray(load_data_set("iris").points, dtype=np.float64), 3
    if data == "wine":
        return load_wine(return_X_y=True)[0], 3
    if data == "digits":
        return load_digits(return_X_y=True)[0], 10
    drawn = make_gaussian_clusters(1000, 20, 5, random_state=0)
    return np.asarray(drawn.points, dtype=np.float64), 20


def about_the_means(points: FloatArray, labels: IndexArray) -> float:
    """The first form: squared distances of the points from the means of their clusters."""
    groups = [points[labels == label] for label in np.unique(labels)]
    return math.fsum(((group - group.mean(axis=0)) ** 2).sum() for group in groups)


def between_the_points(points: FloatArray, labels: IndexArray) -> float:
    """The second form: half the squared distances of all pairs, over the size of their cluster.

    `pdist` takes each unordered pair once, which is the half.
    """
    groups = [points[labels == label] for label in np.unique(labels)]
    return math.fsum(pdist(group, "sqeuclidean").sum() / len(group) for group in groups)


def both_sums(data: str) -> list[Row]:
    """Both forms for labels by chance and for those of k-means, and the inertia of these."""
    points, n_clusters = points_of(data)
    model = KMeans(n_clusters, random_state=0).fit(points)
    by_chance = np.random.default_rng(0).integers(n_clusters, size=len(points))
    rows: list[Row] = []
    found = np.asarray(model.labels_, dtype=np.intp)
    for kind, labels in (("by chance", by_chance), ("k-means", found)):
        means, pairs = about_the_means(points, labels), between_the_points(points, labels)
        inertia = model.inertia_ if kind == "k-means" else math.nan
        rows.append(
            {"labels": kind, "about the means": means, "between points": pairs, "inertia": inertia}
        )
    return rows


def partitions(n_points: int, n_clusters: int) -> Iterator[list[int]]:
    """The labels of all partitions; a label comes only after all lower ones have come."""
    labels = [0] * n_points

    def fill(place: int, n_used: int) -> Iterator[list[int]]:
        if n_points - place < n_clusters - n_used:
            return
        if place == n_points:
            yield labels
            return
        for label in range(min(n_used + 1, n_clusters)):
            labels[place] = label
            yield from fill(place + 1, max(n_used, label + 1))

    return fill(0, 0)


def counts(n: int, k: int) -> list[Row]:
    """The number by the formula, and by counting them one by one where they are few."""
    by_formula = number_of_partitions(n, k)
    one_by_one = sum(1 for _ in partitions(n, k)) if by_formula < 1e6 else math.nan
    return [{"by formula": by_formula, "one by one": one_by_one}]


def all_partitions(draw: int) -> list[Row]:
    """The least W of all partitions of ten points, and how often k-means finds it."""
    points = np.random.default_rng(draw).standard_normal((N_POINTS, 2))
    labels = np.array([list(each) for each in partitions(N_POINTS, N_CLUSTERS)])
    members = np.stack([labels == label for label in range(N_CLUSTERS)], axis=1).astype(float)
    sums = members @ points
    within = (points**2).sum() - ((sums**2).sum(axis=2) / members.sum(axis=2)).sum(axis=1)
    least = float(within.min())
    rows: list[Row] = []
    for init in ("random", "k-means++"):
        found = [
            fitted(KMeans(N_CLUSTERS, init=init, n_init=1, random_state=seed), points).inertia_
            for seed in range(N_STARTS)
        ]
        rows.append(
            {
                "init": init,
                "partitions": len(labels),
                "least": least,
                "share_least": float(np.mean(np.less(found, least * (1 + 1e-9)))),
                "best": min(found) / least,
                "mean": float(np.mean(found)) / least,
                "worst": max(found) / least,
            }
        )
    return rows


def starts(data: str, draws: int) -> list[Row]:
    """W and sweeps of k-means from random points and from points far apart."""
    points, n_clusters = points_of(data)
    rows: list[Row] = []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        uniform = points[rng.choice(len(points), n_clusters, replace=False)]
        seeds, _ = kmeans_plusplus(points, n_clusters, n_local_trials=1, random_state=seed)
        for init, centers in (("random points", uniform), ("k-means++", seeds)):
            model = fitted(KMeans(n_clusters, init=centers, tol=0, max_iter=1000), points)
            rows.append({"draw": seed, "init": init, "W": model.inertia_, "sweeps": model.n_iter_})
    return rows


def cost(grows: str, times: int) -> list[Row]:
    """Seconds of a sweep of k-means, the least of several fits, as if it skipped no distance."""
    sizes = {**BASE, grows: BASE[grows] * times}
    rng = np.random.default_rng(0)
    points = rng.standard_normal((sizes["n_points"], sizes["d"]))
    centers = points[: sizes["k"]]
    model = KMeans(sizes["k"], init=centers, tol=0, max_iter=SWEEPS)
    with threadpoolctl.threadpool_limits(1):
        fits = [fitted(model, points).history_ for _ in range(N_FITS)]
    seconds = min(float((h.seconds / (1 - np.minimum(h.skipped, 0.99))).min()) for h in fits)
    skipped = float(fits[0].skipped.mean())
    return [{"seconds": seconds, "skipped": skipped}]


# What it shows.


def findings(rows: Sequence[Row]) -> Findings:
    """Whether the forms agree, how many partitions there are, and what k-means finds of them."""
    by_part = {
        part: where(rows, part=part)
        for part in ("sums", "count", "all partitions", "starts", "cost")
    }
    return Findings(
        tables=[
            _table_of_sums(by_part["sums"]),
            _table_of_partitions(by_part["all partitions"]),
            _table_of_starts(by_part["starts"]),
            _table_of_costs(by_part["cost"]),
        ],
        comparisons=_comparisons(by_part["count"]),
        claims=[
            _claim_on_sums(by_part["sums"]),
            *_claims_on_partitions(by_part["count"], by_part["all partitions"]),
            *_claims_on_starts(by_part["starts"]),
            _claim_on_cost(by_part["cost"]),
        ],
        asides=[_on_the_worst_case(by_part["starts"])],
        remarks=[
            "The cost of a sweep is that of the distances it computes: those that bounds let it "
            "skip are taken out.",
        ],
    )


def _table_of_sums(rows: Sequence[Row]) -> Table:
    lines: list[list[str | int | float]] = []
    for row in rows:
        means, pairs = float(row["about the means"]), float(row["between points"])
        lines.append([row["data"], row["labels"], means, pairs, f"{_gap(row):.1e}"])
    columns = ["data", "labels", "about the means", "between points", "relative difference"]
    return Table("W(C) by its two forms", columns, lines)


def _gap(row: Row) -> float:
    means, pairs = float(row["about the means"]), float(row["between points"])
    return abs(means - pairs) / means


def _claim_on_sums(rows: Sequence[Row]) -> Claim:
    largest = max(map(_gap, rows))
    fits = [row for row in rows if row["labels"] == "k-means"]
    inertias = max(abs(float(row["inertia"]) / float(row["about the means"]) - 1) for row in fits)
    return Claim(
        "Distances from the mean of a cluster and distances between its points give the same W(C)",
        "the criterion",
        exact(largest < 1e-12),
        f"they differ by at most {largest:.1e} of W over {len(rows)} partitions, and the inertia "
        f"of k-means by {inertias:.1e}",
    )


def _comparisons(rows: Sequence[Row]) -> list[Comparison]:
    found = []
    for line in published_rows("two_sums"):
        n, k = int(line["n"]), int(line["k"])
        ours = float(where(rows, n=n, k=k)[0]["by formula"])
        name, tolerance = str(line["quantity"]), float(line["tolerance"])
        value = math.log10(ours) if name == "log10 of the partitions" else ours
        found.append(
            Comparison(f"S({n}, {k})", name, float(line["published"]), value, tolerance=tolerance)
        )
    return found


def _table_of_partitions(rows: Sequence[Row]) -> Table:
    lines: list[list[str | int | float]] = []
    for init in kinds(rows, "init"):
        chosen = where(rows, init=init)
        parts = [mean_and_error(column(chosen, name))[0] for name in ("share_least", "mean")]
        lines.append([init, len(chosen), *parts, max(column(chosen, "worst"))])
    return Table(
        f"k-means against the least W of all {number_of_partitions(N_POINTS, N_CLUSTERS)} "
        "partitions of ten points into four",
        ["starts", "sets", "share that finds it", "mean W / least", "worst W / least"],
        lines,
        f"{N_STARTS} starts on each set.",
    )


def _claims_on_partitions(counted: Sequence[Row], rows: Sequence[Row]) -> list[Claim]:
    of_10, of_19 = number_of_partitions(10, 4), number_of_partitions(19, 4)
    checked = [row for row in counted if math.isfinite(float(row["one by one"]))]
    agree = all(row["by formula"] == row["one by one"] for row in checked)
    one = where(rows, init="random")
    shares = column(one, "share_least")
    return [
        Claim(
            "The number of cluster maps is S(n, k), with S(10, 4) = 34105 and S(19, 4) near 10^10",
            "the algorithm",
            exact(agree and of_10 == 34105 and abs(of_19 / 1e10 - 1) < 0.2),
            f"S(10, 4) = {of_10} and S(19, 4) = {of_19}; counted one by one "
            f"{len(checked)} of them agree",
        ),
        Claim(
            "k-means finds a good partition that need not be the best",
            "the algorithm",
            together([exact(min(shares) < 1), below(*mean_and_error(column(one, "mean")), 2.0)]),
            f"of ten points into four, {np.mean(shares):.0%} of random starts find the least W of "
            f"all partitions; in the mean they end at {np.mean(column(one, 'mean')):.3f} times it, "
            f"at worst at {max(column(one, 'worst')):.2f}",
        ),
    ]


def _table_of_starts(rows: Sequence[Row]) -> Table:
    lines: list[list[str | int | float]] = []
    for data in kinds(rows, "data"):
        least = min(column(where(rows, data=data), "W"))
        for init in kinds(rows, "init"):
            chosen = where(rows, data=data, init=init)
            ratios = np.array(column(chosen, "W")) / least
            mean, error = mean_and_error(ratios.tolist())
            sweeps = column(chosen, "sweeps")
            lines.append(
                [data, init, mean, error, float(ratios.max()), float(np.mean(sweeps)), max(sweeps)]
            )
    return Table(
        "From which points k-means starts",
        ["data", "starts", "mean W / least", "error", "worst", "mean sweeps", "most sweeps"],
        lines,
        "The least of all these starts.",
    )


def _claims_on_starts(rows: Sequence[Row]) -> list[Claim]:
    worst, gains = {}, {}
    for data in kinds(rows, "data"):
        uniform = where(rows, data=data, init="random points")
        far = where(rows, data=data, init="k-means++")
        least = min(column(where(rows, data=data), "W"))
        worst[data] = max(column(uniform, "W")) / least
        mean, error = paired_gain(column(uniform, "W"), column(far, "W"))
        gains[data] = mean / least, error / least
    return [
        Claim(
            "The result is highly dependent on the initialisation, and W can be far from the least",
            "initialisation",
            exact(max(worst.values()) > 1.1),
            "the worst random start over the best of all: "
            + ", ".join(f"{data} {value:.2f}" for data, value in worst.items()),
        ),
        Claim(
            "Starting far apart, as k-means++ does, is better than random points",
            "initialisation",
            across(above(*gain) for gain in gains.values()),
            "W of random points less that of k-means++, over the least: "
            + ", ".join(
                f"{data} {gain:+.3f} ± {error:.3f}" for data, (gain, error) in gains.items()
            ),
            on="the data",
        ),
    ]


def _on_the_worst_case(rows: Sequence[Row]) -> Aside:
    most = {data: max(column(where(rows, data=data), "sweeps")) for data in kinds(rows, "data")}
    return Aside(
        "not judged",
        "The number of iterations can be quite large in the worst case",
        "initialisation",
        "The worst case is a construction; here the most sweeps are "
        + ", ".join(f"{data} {value:.0f}" for data, value in most.items())
        + ".",
    )


def exponent(rows: Sequence[Row], grows: str) -> float:
    """The power of a size in proportion to which the seconds of a sweep grow."""
    chosen = where(rows, grows=grows)
    times, seconds = column(chosen, "times"), column(chosen, "seconds")
    return float(np.polyfit(np.log(times), np.log(seconds), 1)[0])


def _table_of_costs(rows: Sequence[Row]) -> Table:
    lines: list[list[str | int | float]] = [
        [row["grows"], BASE[str(row["grows"])] * int(row["times"]), 1e3 * float(row["seconds"]),
         float(row["skipped"])]
        for row in rows
    ]  # fmt: skip
    return Table(
        "Least milliseconds of a sweep of k-means",
        ["what grows", "to", "ms", "share of distances skipped"],
        lines,
        f"On one thread; the others stay at {BASE}.",
    )


def _claim_on_cost(rows: Sequence[Row]) -> Claim:
    exponents = {name: exponent(rows, name) for name in BASE}
    words = ", ".join(f"{name}^{value:.2f}" for name, value in exponents.items())
    return Claim(
        "The complexity is O(iterations x clusters x instances x dimensions)",
        "the algorithm",
        exact(max(exponents.values()) < 1.25),
        f"the seconds of a sweep grow as {words}",
    )


# What it looks like.


def draw(rows: Sequence[Row], folder: Path) -> Sequence[Path]:
    """Where random starts and k-means++ end, over the least W."""
    from matplotlib import pyplot

    chosen = where(rows, part="starts")
    names = kinds(chosen, "data")
    figure, axes = pyplot.subplots(
        1, len(names), figsize=(3 * len(names), 3.4), layout="constrained", squeeze=False
    )
    for ax, name in zip(axes[0], names, strict=True):
        _draw_ends(ax, where(chosen, data=name))
        ax.set_title(name)
    axes[0, 0].set_ylabel("share of the starts")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    path = folder / "two-sums.png"
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
    return [path]


def _draw_ends(ax: Any, rows: Sequence[Row]) -> None:
    least = min(column(rows, "W"))
    for init, color, line in (("random points", VERMILION, "-"), ("k-means++", BLUE, "--")):
        ratios = np.sort(np.array(column(where(rows, init=init), "W")) / least)
        shares = np.arange(1, len(ratios) + 1) / len(ratios)
        ax.step(ratios, shares, line, color=color, where="post", label=f"from {init}")
    ax.axvline(1.0, color=INK, linewidth=0.8, linestyle=":")
    ax.set(xlabel="W / least W found", ylim=(0, 1.02))
    tidy(ax, grid="y")
