"""W(C) computed both ways, and how hard its least value is to find."""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import threadpoolctl
from scipy.spatial.distance import pdist
from sklearn.datasets import load_digits, load_wine

from powermeans import KMeans
from powermeans.datasets import load_data_set
from powermeans.metrics import number_of_partitions
from powermeans.types import FloatArray, IndexArray
from reproduce.drawn_data import make_gaussian_clusters
from reproduce.item import Cell, Claim, Comparison, Findings, Row, Rows, grid
from reproduce.rows import column, groups, kinds, mean_and_error, published_rows, said, where
from reproduce.trials import draw_seeds, fitted
from reproduce.verdicts import all_above, below, exact, paired_gain, together

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
    sets, n_draws, n_starts, times = (2, 3, 50, (1, 4)) if quick else (4, 30, 500, (1, 2, 3, 4))
    return [
        *grid(both_sums, part="sums", data=SETS),
        *(cell for n, k in COUNTED for cell in grid(counts, part="count", n=n, k=k)),
        *grid(all_partitions, part="all partitions", draw=range(n_draws)),
        *grid(starts, part="starts", data=SETS[:sets], draws=n_starts),
        *grid(cost, part="cost", grows=list(BASE), times=times),
    ]


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
    clusters = [points[labels == label] for label in np.unique(labels)]
    return math.fsum(((own - own.mean(axis=0)) ** 2).sum() for own in clusters)


def between_the_points(points: FloatArray, labels: IndexArray) -> float:
    """The second form: half the squared distances of all pairs, over the size of their cluster.

    `pdist` takes each unordered pair once, which is the half.
    """
    clusters = [points[labels == label] for label in np.unique(labels)]
    return math.fsum(pdist(own, "sqeuclidean").sum() / len(own) for own in clusters)


def both_sums(data: str) -> list[Row]:
    """Both forms for labels by chance and for those of k-means, and the inertia of these."""
    points, n_clusters = points_of(data)
    model = KMeans(n_clusters, random_state=0).fit(points)
    by_chance = np.random.default_rng(0).integers(n_clusters, size=len(points))
    rows: list[Row] = []
    for kind, labels in (("by chance", by_chance), ("k-means", np.asarray(model.labels_, np.intp))):
        row = {"labels": kind, "about the means": about_the_means(points, labels)}
        row["between points"] = between_the_points(points, labels)
        rows.append({**row, "inertia": model.inertia_ if kind == "k-means" else math.nan})
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
        models = (KMeans(N_CLUSTERS, init=init, n_init=1, random_state=s) for s in range(N_STARTS))
        found = np.array([fitted(model, points).inertia_ for model in models]) / least
        figures = {"share_least": (found < 1 + 1e-9).mean(), "best": found.min()}
        figures |= {"mean": found.mean(), "worst": found.max()}
        rows.append({"init": init, "partitions": len(labels), "least": least, **figures})
    return rows


def starts(data: str, draws: int) -> list[Row]:
    """W and sweeps of k-means from random points and from points far apart."""
    points, n_clusters = points_of(data)
    rows: list[Row] = []
    for seed in range(draws):
        for init, seeding in (("random points", "uniform"), ("k-means++", "D²")):
            centers = draw_seeds(points, n_clusters, seeding, seed)  # type: ignore[arg-type]
            model = fitted(KMeans(n_clusters, init=centers, tol=0, max_iter=1000), points)
            rows.append({"draw": seed, "init": init, "W": model.inertia_, "sweeps": model.n_iter_})
    return rows


def cost(grows: str, times: int) -> list[Row]:
    """Seconds of a sweep of k-means, the least of several fits, as if it skipped no distance."""
    sizes = {**BASE, grows: BASE[grows] * times}
    points = np.random.default_rng(0).standard_normal((sizes["n_points"], sizes["d"]))
    model = KMeans(sizes["k"], init=points[: sizes["k"]], tol=0, max_iter=SWEEPS)
    with threadpoolctl.threadpool_limits(1):
        fits = [fitted(model, points).history_ for _ in range(N_FITS)]
    seconds = min(float((h.seconds / (1 - np.minimum(h.skipped, 0.99))).min()) for h in fits)
    return [{"seconds": seconds, "skipped": float(fits[0].skipped.mean())}]


# What it shows.


def findings(rows: Rows) -> Findings:
    by_part = {str(part): of for (part,), of in groups(rows, "part").items()}
    tried = over_the_least(by_part["starts"])
    return Findings(
        comparisons=comparisons_of(by_part["count"]),
        claims=[
            claim_on_sums(by_part["sums"]),
            *_claims_on_partitions(by_part["count"], by_part["all partitions"]),
            *claims_on_starts(tried),
            _claim_on_cost(by_part["cost"]),
        ],
        remarks=[
            "The cost of a sweep is that of the distances it computes: those that bounds let it "
            "skip are taken out.",
        ],
    )


FORMS = ("about the means", "between points")


def claim_on_sums(rows: Rows) -> Claim:
    forms = [[float(row[form]) for form in FORMS] for row in rows]
    largest = max(abs(means - pairs) / means for means, pairs in forms)
    fits = where(rows, labels="k-means")
    inertias = max(abs(float(row["inertia"]) / float(row["about the means"]) - 1) for row in fits)
    return Claim(
        "Distances from the mean of a cluster and distances between its points give the same W(C)",
        "the criterion",
        exact(largest < 1e-12),
        f"they differ by at most {largest:.1e} of W over {len(rows)} partitions, and the inertia "
        f"of k-means by {inertias:.1e}",
    )


def comparisons_of(rows: Rows) -> list[Comparison]:
    """The published numbers of partitions beside ours."""
    found = []
    for line in published_rows("two_sums"):
        n, k = int(line["n"]), int(line["k"])
        ours = float(where(rows, n=n, k=k)[0]["by formula"])
        name, tolerance = str(line["quantity"]), float(line["tolerance"])
        value = math.log10(ours) if name == "log10 of the partitions" else ours
        theirs = float(line["published"])
        found.append(Comparison(f"S({n}, {k})", name, theirs, value, tolerance=tolerance))
    return found


def _claims_on_partitions(counted: Rows, rows: Rows) -> list[Claim]:
    of_10, of_19 = number_of_partitions(10, 4), number_of_partitions(19, 4)
    checked = [row for row in counted if math.isfinite(float(row["one by one"]))]
    agree = all(row["by formula"] == row["one by one"] for row in checked)
    one = where(rows, init="random")
    shares, means = column(one, "share_least"), column(one, "mean")
    return [
        Claim(
            "The number of cluster maps is S(n, k), with S(10, 4) = 34105 and S(19, 4) near 10^10",
            "the algorithm",
            exact(agree and of_10 == 34105 and abs(of_19 / 1e10 - 1) < 0.2),
            f"S(10, 4) = {of_10} and S(19, 4) = {of_19}; counts one by one "
            f"agree for {len(checked)} of them",
        ),
        Claim(
            "k-means finds a good partition that need not be the best",
            "the algorithm",
            together([exact(min(shares) < 1), below(*mean_and_error(means), 2.0)]),
            f"of ten points into four, on {len(one)} sets, {np.mean(shares):.0%} of random starts "
            f"find the least W of all partitions; in the mean they end at {np.mean(means):.3f} "
            f"times it, at worst at {max(column(one, 'worst')):.2f}",
        ),
    ]


def over_the_least(rows: Rows) -> list[Row]:
    """The rows of starts with W over the least of all starts on the data."""
    least = {data: min(column(of, "W")) for (data,), of in groups(rows, "data").items()}
    return [{**row, "ratio": float(row["W"]) / least[row["data"]]} for row in rows]


def claims_on_starts(rows: Rows) -> list[Claim]:
    worst, gains = [], {}
    for data in kinds(rows, "data"):
        uniform, far = (
            column(where(rows, data=data, init=init), "ratio")
            for init in ("random points", "k-means++")
        )
        worst.append(max(uniform))
        gains[str(data)] = paired_gain(uniform, far)
    words = ", ".join(f"{data} {ratio:.2f}" for data, ratio in zip(gains, worst, strict=True))
    return [
        Claim(
            "The result is highly dependent on the initialisation, and W can be far from the least",
            "initialisation",
            exact(max(worst) > 1.1),
            f"the worst random start over the best of all: {words}",
        ),
        Claim(
            "Starting far apart, as k-means++ does, is better than random points",
            "initialisation",
            all_above(gains.values()),
            f"W of random points minus that of k-means++, over the least: {said(gains)}",
            on="the data",
        ),
    ]


def exponent(rows: Rows, grows: str) -> float:
    """The power of a size in proportion to which the seconds of a sweep grow."""
    chosen = where(rows, grows=grows)
    times, seconds = column(chosen, "times"), column(chosen, "seconds")
    return float(np.polyfit(np.log(times), np.log(seconds), 1)[0])


def _claim_on_cost(rows: Rows) -> Claim:
    exponents: Mapping[str, float] = {name: exponent(rows, name) for name in BASE}
    sizes = ", ".join(f"{name} = {size}" for name, size in BASE.items())
    words = ", ".join(f"{name}^{value:.2f}" for name, value in exponents.items())
    return Claim(
        "The complexity is O(iterations x clusters x instances x dimensions)",
        "the algorithm",
        exact(max(exponents.values()) < 1.25),
        f"from {sizes} on one thread, the seconds of a sweep grow as {words}",
    )
