"""k-means as the first step of costlier models: its share of their gain and of their time."""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.special import log_softmax, logsumexp
from threadpoolctl import threadpool_limits

from powermeans.types import FloatArray, IndexArray
from reproduce.item import Cell, Claim, Findings, Row, Rows, grid
from reproduce.rows import column, kinds, mean_and_error, where
from reproduce.tables import median, table, with_error
from reproduce.verdicts import above, across, below, together

TITLE = "k-means as the first step of costlier models"
SOURCE = "L. Bottou, Y. Bengio, Convergence Properties of the K-Means Algorithms, NIPS 7 (1995)"
DATA = "random cases"

N_POINTS, N_CLUSTERS, N_FEATURES = 2000, 8, 4
N_DRAWS, N_QUICK_DRAWS = 20, 2
MOST, SMALL = 0.5, 0.25
"""More than this share of the gain is most of it; less than this one of the time is a fraction."""
TOLERANCE, MOST_SWEEPS, N_EPOCHS = 1e-6, 200, 30
LEAST_VARIANCE = 1e-3


class Drawn(NamedTuple):
    """Points in the order of a Markov chain of clusters, their clusters and the true means."""

    points: FloatArray
    classes: IndexArray
    rng: np.random.Generator


def cells(quick: bool) -> Sequence[Cell]:
    return grid(shares, model=list(MODELS), first=0, draws=N_QUICK_DRAWS if quick else N_DRAWS)


def drawn(number: int) -> Drawn:
    """Overlapping normal clusters with covariances of their own; a state lasts ten points."""
    rng = np.random.default_rng(number)
    stays = rng.uniform(size=N_POINTS) < 0.9
    chosen = rng.integers(N_CLUSTERS, size=N_POINTS)
    classes = chosen[np.maximum.accumulate(np.where(stays, 0, np.arange(N_POINTS)))]
    means = rng.uniform(0, 8, (N_CLUSTERS, N_FEATURES))
    shapes = rng.normal(size=(N_CLUSTERS, N_FEATURES, N_FEATURES)) / 2
    noise = rng.normal(size=(N_POINTS, N_FEATURES))
    points = means[classes] + np.einsum("nij,nj->ni", shapes[classes], noise)
    return Drawn(points, classes, rng)


def lloyd(points: FloatArray, centers: FloatArray) -> tuple[FloatArray, IndexArray]:
    """Lloyd's algorithm in NumPy, as the models are, so that seconds compare."""
    labels = cdist(points, centers, "sqeuclidean").argmin(axis=1)
    while True:
        own = [points[labels == j] for j in range(len(centers))]
        centers = np.array(
            [of.mean(axis=0) if len(of) else c for of, c in zip(own, centers, strict=True)]
        )
        moved = cdist(points, centers, "sqeuclidean").argmin(axis=1)
        if np.array_equal(moved, labels):
            return centers, labels
        labels = moved


# Each model is trained to lower a cost; it begins at centers, with labels where k-means gave some.

Trained = tuple[float, float]
"""The cost at the beginning, and at the end."""
Train = Callable[[Drawn, FloatArray, IndexArray | None], Trained]


def goes_on(costs: Sequence[float]) -> bool:
    """Whether the cost still changes; a least variance may lift it."""
    return len(costs) < 2 or (abs(costs[-2] - costs[-1]) > TOLERANCE and len(costs) < MOST_SWEEPS)


def mixture(is_full: bool) -> Train:
    """EM for a Gaussian mixture; the cost is the negative log-likelihood of a point."""

    def train(data: Drawn, centers: FloatArray, labels: IndexArray | None) -> Trained:
        points, k = data.points, len(centers)
        shares = np.full((len(points), k), 1 / k) if labels is None else np.eye(k)[labels]
        costs: list[float] = []
        while goes_on(costs):
            weights = shares.sum(axis=0) + 1e-9
            if costs or labels is not None:
                centers = shares.T @ points / weights[:, None]
            around = points[None] - centers[:, None]
            spread = np.einsum("nk,kni,knj->kij", shares, around, around) / weights[:, None, None]
            if not is_full:
                spread = np.trace(spread, axis1=1, axis2=2)[:, None, None] / points.shape[1]
                spread = spread * np.eye(points.shape[1])
            spread = spread + LEAST_VARIANCE * np.eye(points.shape[1])
            squares = np.einsum("kni,kij,knj->nk", around, np.linalg.inv(spread), around)
            logs = (
                np.log(weights / len(points))
                - (squares + np.linalg.slogdet(2 * np.pi * spread)[1]) / 2
            )
            costs.append(-float(logsumexp(logs, axis=1).mean()))
            shares = np.exp(log_softmax(logs, axis=1))
        return costs[0], costs[-1]

    return train


def markov(data: Drawn, centers: FloatArray, labels: IndexArray | None) -> Trained:
    """A hidden Markov model by Viterbi training; the cost is that of the best path, by point."""
    points, k = data.points, len(centers)
    variance = points.var(axis=0).mean()
    moves = np.full((k, k), -np.log(k))
    costs: list[float] = []
    while goes_on(costs):
        if labels is not None:
            own = [points[labels == j] for j in range(k)]
            centers = np.array(
                [of.mean(axis=0) if len(of) else c for of, c in zip(own, centers, strict=True)]
            )
            variance = ((points - centers[labels]) ** 2).mean()
            counts = np.full((k, k), 1e-3)
            np.add.at(counts, (labels[:-1], labels[1:]), 1)
            moves = np.log(counts / counts.sum(axis=1, keepdims=True))
        sq_dist = cdist(points, centers, "sqeuclidean")
        logs = -(sq_dist / variance + points.shape[1] * np.log(2 * np.pi * variance)) / 2
        labels, cost = best_path(logs, moves)
        costs.append(cost / len(points))
    return costs[0], costs[-1]


def best_path(logs: FloatArray, moves: FloatArray) -> tuple[IndexArray, float]:
    """The likeliest states of a chain, and minus its log-likelihood."""
    best, came_from = logs[0], np.zeros(logs.shape, dtype=np.intp)
    for i in range(1, len(logs)):
        through = best[:, None] + moves
        came_from[i] = through.argmax(axis=0)
        best = through.max(axis=0) + logs[i]
    path = np.empty(len(logs), dtype=np.intp)
    path[-1] = best.argmax()
    for i in range(len(logs) - 1, 0, -1):
        path[i - 1] = came_from[i, path[i]]
    return path, -float(best.max())


def radial(data: Drawn, centers: FloatArray, labels: IndexArray | None) -> Trained:
    """A net of radial functions by L-BFGS; the cost is its squared error on the classes."""
    points, shape, k = data.points, centers.shape, len(centers)
    target = np.eye(N_CLUSTERS)[data.classes]
    width = np.log(np.median(cdist(points, centers, "sqeuclidean").min(axis=1)))
    hidden = _radial(points, centers, width)
    outputs = np.linalg.lstsq(hidden, target, rcond=None)[0]

    def cost(flat: FloatArray) -> tuple[float, FloatArray]:
        c, w = flat[: centers.size].reshape(shape), flat[centers.size]
        v = flat[centers.size + 1 :].reshape(k, -1)
        h = _radial(points, c, w)
        off = (h @ v - target) / len(points)
        pull = (off @ v.T) * h * np.exp(-w)
        toward = 2 * (pull.T @ points - pull.sum(axis=0)[:, None] * c)
        wider = (pull * cdist(points, c, "sqeuclidean")).sum()
        value = len(points) * float((off**2).sum())
        return value, np.concatenate([toward.ravel(), [wider], (h.T @ off).ravel()]) * 2

    first = np.concatenate([centers.ravel(), [width], outputs.ravel()])
    found: Any = minimize(cost, first, jac=True, method="L-BFGS-B", options={"maxiter": 300})
    return cost(first)[0], float(found.fun)


def _radial(points: FloatArray, centers: FloatArray, log_width: float) -> FloatArray:
    """Values of the radial functions, (n_points, n_centers)."""
    return np.asarray(np.exp(-cdist(points, centers, "sqeuclidean") * np.exp(-log_width)))


def quantiser(data: Drawn, centers: FloatArray, labels: IndexArray | None) -> Trained:
    """Learning vector quantisation (LVQ1); the cost is the share of points in the wrong class."""
    points, classes, rng = data
    prototypes, of_class = centers.copy(), prototype_classes(data, centers, labels)

    def cost() -> float:
        return float((of_class[cdist(points, prototypes).argmin(axis=1)] != classes).mean())

    costs = [cost()]
    for epoch in range(N_EPOCHS):
        rate = 0.05 * (1 - epoch / N_EPOCHS)
        for i in rng.permutation(len(points)):
            around = points[i] - prototypes
            j = np.einsum("kf,kf->k", around, around).argmin()
            prototypes[j] += (rate if of_class[j] == classes[i] else -rate) * around[j]
        costs.append(cost())
    return costs[0], min(costs)


def prototype_classes(data: Drawn, centers: FloatArray, labels: IndexArray | None) -> IndexArray:
    """The class of most points of each cluster, or of the point that a prototype began at."""
    if labels is None:
        return np.asarray(data.classes[cdist(centers, data.points).argmin(axis=1)])
    own = [data.classes[labels == j] for j in range(len(centers))]
    return np.array([np.bincount(of, minlength=1).argmax() for of in own])


class Model(NamedTuple):
    """How a model is trained, and how many centers it has for each class."""

    train: Train
    centers_per_class: int = 1


MODELS = {
    "Gaussian mixture, spherical": Model(mixture(is_full=False)),
    "Gaussian mixture, full": Model(mixture(is_full=True)),
    "hidden Markov model": Model(markov),
    "radial functions": Model(radial, 3),
    "learning vector quantiser": Model(quantiser, 3),
}


def shares(model: str, first: int, draws: int) -> list[Row]:
    """The costs from random points and from k-means, and the seconds of k-means and of the rest."""
    rows: list[Row] = []
    chosen = MODELS[model]
    for number in range(first, first + draws):
        data = drawn(number)
        n_centers = N_CLUSTERS * chosen.centers_per_class
        seeds = data.points[data.rng.choice(N_POINTS, n_centers, replace=False)]
        with threadpool_limits(1):
            begin = time.process_time()
            centers, labels = lloyd(data.points, seeds)
            between = time.process_time()
            at_first, at_last = chosen.train(data, centers, labels)
            end = time.process_time()
            of_random, without = chosen.train(data, seeds, None)
        rows.append(
            {
                "draw": number,
                "random": of_random,
                "k_means": at_first,
                "trained": at_last,
                "without": without,
                "gain": (of_random - at_first) / (of_random - min(at_last, without)),
                "time": (between - begin) / (end - begin),
            }
        )
    return rows


# What it shows.


def findings(rows: Rows) -> Findings:
    columns = [
        ("from random points", median("random")),
        ("after k-means", median("k_means")),
        ("trained after it", median("trained")),
        ("trained without", median("without")),
        ("share of the gain", with_error("gain")),
        ("share of the time", with_error("time")),
    ]
    return Findings(
        tables=[
            table(
                "Costs of five models, with k-means first and without it",
                rows,
                {"model": "model"},
                columns,
                f"Medians over {len(kinds(rows, 'draw'))} draws of {N_POINTS} points; shares are "
                "means. Everything, k-means too, is NumPy on one core.",
            )._replace(is_published=True)
        ],
        claims=[_claim(rows)],
    )


def _claim(rows: Rows) -> Claim:
    """Most of the gain in a small share of the time, model by model."""
    verdicts, words = [], []
    for name in kinds(rows, "model"):
        gain, seconds = (
            mean_and_error(column(where(rows, model=name), c)) for c in ("gain", "time")
        )
        verdicts.append(together([above(*gain, MOST), below(*seconds, SMALL)]))
        words.append(
            f"{name} {gain[0]:.0%} ± {gain[1]:.0%} of the gain in {seconds[0]:.0%} of the time"
        )
    return Claim(
        "As the first step of costlier models, such as Gaussian mixtures, k-means performs most "
        "of the task in a small fraction of the overall time",
        "section 1",
        across(verdicts),
        f"most: over {MOST:.0%}; small: below {SMALL:.0%}. {'; '.join(words)}",
        on="the model",
        in_short="k-means does most of the work of a more expensive model",
    )
