"""Methods that begin at the same centers and stop by the same rule, and how well each did."""

import itertools
import math
import time
import warnings
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from powermeans import KMeans, PowerKMeans, kmeans_plusplus
from powermeans.datasets import DataSet
from powermeans.mathematics.schedules import Fixed
from powermeans.methods.base import CenterEstimator
from powermeans.metrics import (
    adjusted_rand_index,
    normalized_mutual_information,
    quality_ratio,
    variation_of_information,
)
from powermeans.types import FloatArray, Labels, Matrix
from reproduce.drawn_data import Sizes, make_gaussian_clusters
from reproduce.item import Claim, Row, Rows, Value
from reproduce.rows import Figure, groups, said, where
from reproduce.verdicts import all_above, counted, paired_gain

Seeding = Literal["uniform", "D", "D²", "greedy"]
Model = TypeVar("Model", bound=CenterEstimator)

LLOYD = "Lloyd"
KHM = "KHM"
SEARCH = "our default"
SCORES = ("ARI", "NMI", "VI")
LESS_IS_BETTER = ("VI", "excess", "sse")
MOST_SWEEPS = 1000
# A lead in a score that is clearly less than this is none.
NO_LEAD = 0.05


def power_from(start: float) -> str:
    """Return what power k-means as published is called that starts at this power."""
    return f"power, s0 = {start:g}"


class Method(NamedTuple):
    """A way to go on from given centers, or from its own; `params` are those of `PowerKMeans`."""

    name: str
    params: dict[str, Any]
    takes_seeds: bool = True

    def fit(self, points: Matrix, seeds: Matrix, seed: int) -> PowerKMeans:
        """Fit from these seeds; `seed` is where the method draws for itself."""
        init = seeds if self.takes_seeds else "k-means++"
        model = PowerKMeans(len(seeds), init=init, random_state=seed, **self.params)
        return fitted(model, points)


def bare(name: str, **params: Any) -> Method:
    """The published algorithm: it stops by the relative change that is stated, without a polish."""
    return Method(name, {"polish": False, "max_iter": MOST_SWEEPS, **params})


def published(start: float, growth: float = 1.05, **params: Any) -> Method:
    """Algorithm 1 of Xu & Lange (2019)."""
    return bare(power_from(start), power=start, schedule=growth, **params)


def lloyd() -> Method:
    """Lloyd's algorithm under the same rule of stopping."""
    return bare(LLOYD, schedule=Fixed(-math.inf))


def khm() -> Method:
    """k-harmonic means under the same rule of stopping."""
    return bare(KHM, schedule=Fixed(-1.0))


def search() -> Method:
    """What this package does by default, with seeds of its own."""
    return Method(SEARCH, {}, takes_seeds=False)


def fitted(model: Model, points: ArrayLike) -> Model:
    """Return the model after its fit, which may end at `max_iter` or with too few clusters.

    An experiment that records the error epoch by epoch, or counts the fits that go wrong, expects
    both.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(points)
    return model


def centers_of(model: CenterEstimator) -> FloatArray:
    """Return the centers of a fitted model in float64."""
    return np.asarray(model.cluster_centers_, dtype=np.float64)


def draw_seeds(points: Matrix, n_clusters: int, seeding: Seeding, seed: int) -> Matrix:
    """Draw points to begin at, (n_clusters, n_features).

    They are drawn in proportion to nothing, to the distance from the nearest seed so far, to its
    square (k-means++ as defined), or are the best of several of these.
    """
    if seeding == "uniform":
        chosen = np.random.default_rng(seed).choice(len(points), n_clusters, replace=False)
        return np.asarray(points[chosen])
    n_candidates = None if seeding == "greedy" else 1
    exponent = 1.0 if seeding == "D" else 2.0
    return kmeans_plusplus(
        points, n_clusters, n_local_trials=n_candidates, exponent=exponent, random_state=seed
    )[0]


# A contest: all methods on one data set.


def run_all(methods, points, seeds, truth, seed):
    """Return a row for each method, all from the same seeds; who comes first changes with `seed`.

    `truth` has the labels to agree with, where there are any.
    """
    turn = seed % len(methods)
    rows = []
    for method in [*methods[turn:], *methods[:turn]]:
        started = time.perf_counter()
        model = method.fit(points, seeds, seed)
        elapsed_seconds = time.perf_counter() - started
        rows.append(
            {"method": method.name, **figures_of(model), "seconds": elapsed_seconds}
            | ({} if truth is None else agreement(truth, model.labels_))
        )
    return rows


def figures_of(model: PowerKMeans) -> dict[str, Value]:
    """Return the sum of squares, the clusters with points, sweeps, and the distances left out."""
    seconds, skipped = model.history_.seconds, model.history_.skipped
    return {
        "sse": float(model.inertia_),
        "clusters": len(np.unique(model.labels_)),
        "iterations": int(model.n_iter_),
        "sweep_seconds": float(seconds.sum()),
        # If each sweep computed all distances, as the first one does.
        "full_seconds": float(len(seconds) * np.mean(seconds[skipped <= skipped.min()])),
        "skipped": float(model.spent_.skipped),
    }


def excesses(rows: Rows) -> list[Row]:
    """Return the rows with the sum of squares above the least of them, in percent.

    Examples
    --------
    >>> [row["excess"] for row in excesses([{"sse": 4.0}, {"sse": 5.0}])]
    [0.0, 25.0]
    """
    least = min(float(row["sse"]) for row in rows)
    return [{**row, "excess": 100 * (float(row["sse"]) / least - 1)} for row in rows]


def agreement(truth: Matrix, labels: Matrix) -> dict[str, Value]:
    """Return the three scores of the sources."""
    return {
        "VI": variation_of_information(truth, labels),
        "ARI": adjusted_rand_index(truth, labels),
        "NMI": normalized_mutual_information(truth, labels),
    }


# Trials on the Gaussian clusters of Xu & Lange 2019.

N_CLUSTERS = 50


def gaussians(n_features: int, number: int, sizes: Sizes = "equal") -> DataSet:
    """Draw the data set of this number, which is the same for all methods and seedings."""
    return make_gaussian_clusters(n_features=n_features, sizes=sizes, random_state=1000 + number)


def gaussian_trials(methods, n_features, seeding, numbers, sizes="equal"):
    """Return how each method did on each data set from the same seeds; see `against`."""
    rows: list[Row] = []
    for number in numbers:
        drawn = gaussians(n_features, number, sizes)
        with threadpool_limits(1):  # so few points are not worth a second thread
            seeds = draw_seeds(drawn.points, N_CLUSTERS, seeding, number)
            reference = reference_of(drawn)
            for method in methods:
                model = method.fit(drawn.points, seeds, number)
                figures = against(reference, drawn.points, model)
                rows.append({"data_set": number, "method": method.name, **figures})
    return rows


class Reference(NamedTuple):
    """What a solution is measured against: centers and three sets of labels.

    The paper's optimal centers are those of Lloyd's algorithm started at the true ones. Labels are
    the cluster that a point was drawn from, and that of the nearest true or optimal center.
    """

    optimal: FloatArray
    drawn_from: Labels
    nearest: Labels
    nearest_optimal: Labels


def reference_of(drawn: DataSet) -> Reference:
    """Return the optimal centers and the labels of a data set with known centers."""
    assert drawn.labels is not None
    assert drawn.centers is not None
    model = KMeans(N_CLUSTERS, init=drawn.centers, n_init=1, max_iter=1000, tol=0.0)
    fitted(model, drawn.points)
    nearest = KMeans.from_centers(drawn.centers).predict(drawn.points)
    return Reference(centers_of(model), drawn.labels, nearest, model.labels_)


def against(reference: Reference, points: Matrix, model: PowerKMeans) -> dict[str, Value]:
    """Return root ratios of both forms, agreement with the references, and sweeps."""
    centers, optimal = centers_of(model), reference.optimal
    return {
        "ratio": quality_ratio(points, centers, optimal, form="unsquared"),
        "ratio_squared": quality_ratio(points, centers, optimal, form="squared"),
        **agreement(reference.drawn_from, model.labels_),
        "VI_nearest": variation_of_information(reference.nearest, model.labels_),
        "VI_optimal": variation_of_information(reference.nearest_optimal, model.labels_),
        "sweeps": int(model.n_iter_),
    }


# Who is better.


def scores_of(rows: Rows, method: str, score: str) -> list[float]:
    """Return a score of a method for each start, the mean where a start has several rows.

    Rows of one data set or one seed belong together, as they share centers or seeds.
    """
    of_method = where(rows, method=method)
    start = "data_set" if "data_set" in of_method[0] else "seed"
    found = groups(of_method, start)
    return [
        math.fsum(float(row[score]) for row in found[key]) / len(found[key])
        for key in sorted(found)
    ]


def lead(rows: Rows, method: str, other: str, score: str) -> Figure:
    """Return by how much a method is better than another from the same starts, and its error."""
    ours, theirs = (scores_of(rows, name, score) for name in (method, other))
    return paired_gain(theirs, ours) if score in LESS_IS_BETTER else paired_gain(ours, theirs)


def ahead(cases, starts, other, text, source, on):
    """Return whether all starts beat another method in each case, by all scores."""
    of_case = itertools.product(cases.items(), starts)
    leads = {
        f"{case}, {start}": {score: lead(rows, start, other, score) for score in SCORES}
        for (case, rows), start in of_case
    }
    figures = [figure for by_score in leads.values() for figure in by_score.values()]
    means = {case: figure["ARI"] for case, figure in leads.items()}
    return Claim(
        f"{text} (than {other})",
        source,
        all_above(figures, none_below=NO_LEAD),
        f"increase of ARI from the same seeds: {said(means, comma='; ')}; by ARI, NMI "
        f"and VI better {counted(figures)}; a lead of less than {NO_LEAD:g} is none",
        on=on,
    )
