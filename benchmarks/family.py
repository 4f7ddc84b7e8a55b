"""What members of the family gain on the data that they are for, and what their sweeps cost.

Parts: `sweeps` of divergences and missing entries compared with squared Euclidean ones;
`divergences` by the simulation of Vellal, Chakraborty & Xu (2022), where each population has its
own; `features` with 5 of 20 that matter; `outliers`, a tenth of all points; `blocks` of points by
the median of their means; `shapes` that no center describes. Parts that are not asked for stay as
they were stored.
"""

from __future__ import annotations

import functools
import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from statistics import mean

import numpy as np
import sklearn.datasets
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

import powermeans
from benchmarks import parts
from benchmarks.apart import shortcuts_taken
from benchmarks.pages import Page
from benchmarks.parts import Part
from benchmarks.turns import in_turns, repeated
from powermeans.divergences import Binomial, Bregman, Cosine, Gamma, Mahalanobis, Poisson
from powermeans.mathematics.power_mean import power_mean, power_mean_weights
from powermeans.mathematics.rules import Hard, Power, Rule
from powermeans.methods import EntropyWeightedPowerKMeans, KernelPowerKMeans, SpectralClustering
from powermeans.metrics import adjusted_rand_index, variation_of_information
from powermeans.points.opening import open_rows
from powermeans.types import FloatArray

NAME = "family"
PAGE = Page("project/methods", "python -m benchmarks.family --page")
SWEEP_SIZES = ((100_000, 2, 100), (100_000, 10, 20), (100_000, 64, 100), (60_000, 784, 100))
N_TRIALS = 250
POINTS_PER_TRIAL, MIDDLES = 99, (10.0, 20.0, 40.0)
SEEDS = range(20)


def sweeps() -> Iterator[dict]:
    """Sweeps that take no shortcuts, as all of these have none but Euclidean ones."""
    with shortcuts_taken(False):
        for size in SWEEP_SIZES:
            for dtype in (np.float32, np.float64):
                for rule in (Hard(), Power(-3.0)):
                    yield _sweep_cell(*size, dtype, rule)


def _sweep_cell(n_points: int, n_features: int, n_centers: int, dtype: type, rule: Rule) -> dict:
    rng = np.random.default_rng(0)
    points = rng.gamma(3.0, 2.0, size=(n_points, n_features)).astype(dtype)
    centers = points[:n_centers].astype(np.float64)
    shares = (points / (1.01 * points.max())).astype(dtype)
    gaps = np.where(rng.uniform(size=points.shape) < 0.2, dtype(np.nan), points)
    kinds = {
        "squared_euclidean": open_rows(points),
        "poisson": open_rows(points, divergence=Poisson()),
        "gamma": open_rows(points, divergence=Gamma()),
        "binomial": open_rows(shares, divergence=Binomial(1.0)),
        "mahalanobis": open_rows(points, divergence=Mahalanobis(np.eye(n_features))),
        "cosine": open_rows(points, divergence=Cosine()),
        "missing": open_rows(gaps, has_missing=True),
    }
    by_shares = shares[:n_centers].astype(np.float64)
    contestants = {
        name: lambda rows=rows, at=by_shares if name == "binomial" else centers: repeated(
            lambda: rows.sweep(at, rule)
        )
        for name, rows in kinds.items()
    }
    timed = in_turns(contestants, rounds=3)["seconds"]
    euclidean = timed.pop("squared_euclidean")
    return {
        "points": f"{n_points} x {n_features}, k={n_centers}, {np.dtype(dtype).name}",
        "power": f"{rule.power:g}" if math.isfinite(rule.power) else "hard",
        "Euclidean, ms": f"{1e3 * euclidean:.3g}",
        **{name: f"{value / euclidean:.2f}" for name, value in timed.items()},
    }


Draw = Callable[[np.random.Generator, np.ndarray], np.ndarray]

# Each population with the name of its divergence.
POPULATIONS: dict[str, tuple[str, Draw]] = {
    "Gaussian": ("squared_euclidean", lambda rng, middles: rng.normal(middles, 4.0)),
    "binomial": ("binomial", lambda rng, middles: rng.binomial(50, middles / 50).astype(float)),
    "Poisson": ("poisson", lambda rng, middles: rng.poisson(middles).astype(float)),
    "gamma": ("gamma", lambda rng, middles: rng.gamma(3.0, middles / 3.0)),
}
# A hair above zero, and the largest number below that of the trials, are where domains end.
DIVERGENCES: dict[str, tuple[str | Bregman, float, float]] = {
    "squared_euclidean": ("squared_euclidean", -math.inf, math.inf),
    "binomial": (Binomial(200.0), 0.0, 200.0),
    "poisson": ("poisson", 0.0, math.inf),
    "gamma": ("gamma", 1e-2, math.inf),
}


def divergences() -> Iterator[dict]:
    """For each population the mean scores of each divergence over the trials."""
    for population, (matching, draw_points) in POPULATIONS.items():
        scores: dict[str, list[tuple[float, float]]] = {name: [] for name in DIVERGENCES}
        for trial in range(N_TRIALS):
            rng = np.random.default_rng(trial)
            truth = np.repeat(range(3), POINTS_PER_TRIAL // 3)
            points = draw_points(rng, np.array(MIDDLES)[truth][:, None].repeat(2, axis=1))
            for name in DIVERGENCES:
                labels = _labels_by(name, population, points, trial)
                scores[name].append(
                    (adjusted_rand_index(truth, labels), variation_of_information(truth, labels))
                )
        yield {"population": population} | {
            name: _score(of, scores[matching]) for name, of in scores.items()
        }


def _score(of: list[tuple[float, float]], matching: list[tuple[float, float]]) -> str:
    """Return the means of two indices, and by how much the first is above the matching one."""
    ari, vi = np.mean(of, axis=0)
    text = f"{ari:.3f}, {vi:.3f}"
    if of is matching:
        return text
    above = np.subtract(of, matching)[:, 0]
    error = above.std(ddof=1) / math.sqrt(len(above))
    return f"{text} ({above.mean():+.3f} ± {error:.3f})"


def _labels_by(name: str, population: str, points: np.ndarray, seed: int) -> np.ndarray:
    divergence, lowest, highest = DIVERGENCES[name]
    if name == "binomial" and population == "binomial":
        divergence, highest = Binomial(50.0), 50.0
    inside = np.clip(points, lowest, highest)
    return powermeans.PowerKMeans(3, divergence=divergence, random_state=seed).fit(inside).labels_


def features() -> Iterator[dict]:
    """1000 points, 20 features of which 5 tell four groups apart."""
    found: dict[str, list[float]] = {
        "with learned feature weights": [],
        "with all features alike": [],
        "weight of the 5 features": [],
    }
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        truth = rng.integers(4, size=1000)
        points = rng.normal(size=(1000, 20))
        points[:, :5] = 6 * rng.uniform(size=(4, 5))[truth] + 0.3 * rng.normal(size=(1000, 5))
        points = (points - points.mean(axis=0)) / points.std(axis=0)
        model = EntropyWeightedPowerKMeans(4, random_state=seed).fit(points)
        plain = powermeans.PowerKMeans(4, random_state=seed).fit(points)
        indices = (adjusted_rand_index(truth, of.labels_) for of in (model, plain))
        weight = float(model.feature_weights_[:5].sum())
        for column, value in zip(found.values(), (*indices, weight), strict=True):
            column.append(value)
    for name, values in found.items():
        yield {"": name, "mean, worst": mean_and_worst(values)}


def mean_and_worst(values: list[float]) -> str:
    return f"{mean(values):.3f}, {min(values):.3f}"


OUTLIERS: dict[str, Draw] = {
    "in a wide box": lambda rng, x: rng.uniform(-60, 60, size=x.shape),
    "in a far clump": lambda rng, x: 80 + rng.normal(size=x.shape),
    "of heavy tails": lambda rng, x: 12 * rng.standard_t(1.5, size=x.shape),
}


def outliers() -> Iterator[dict]:
    """Five groups, and a tenth of all points elsewhere; scores are those of the groups alone."""
    for kind, draw_outliers in OUTLIERS.items():
        for n_features in (2, 10, 50):
            robust, plain = [], []
            for seed in SEEDS:
                rng = np.random.default_rng(seed)
                truth = rng.integers(5, size=900)
                middles, _ = sklearn.datasets.make_blobs(
                    5, n_features, centers=5, cluster_std=0.0, random_state=seed
                )
                middles = 8 * middles / math.sqrt(n_features)
                inliers = middles[truth] + rng.normal(size=(900, n_features))
                points = np.vstack([inliers, draw_outliers(rng, np.empty((100, n_features)))])
                for found, estimator in (
                    (robust, powermeans.RobustPowerKMeans),
                    (plain, powermeans.PowerKMeans),
                ):
                    labels = estimator(5, random_state=seed).fit(points).labels_[:900]
                    found.append(adjusted_rand_index(truth, labels))
            yield {
                "outliers": kind,
                "features": n_features,
                "RobustPowerKMeans": mean_and_worst(robust),
                "PowerKMeans": mean_and_worst(plain),
            }


def blocks() -> Iterator[dict]:
    """Nine groups on a grid and 20 points far off, the example that the authors publish."""
    middles = np.array(list(itertools.product((0.0, 0.5, 1.0), repeat=2)))
    found: dict[str, list[float]] = {
        "median of means, their settings": [],
        "RobustPowerKMeans(9, trim=20 / 620)": [],
        "PowerKMeans(9)": [],
    }
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        truth = rng.integers(9, size=600)
        inliers = middles[truth] + 0.05 * rng.normal(size=(600, 2))
        points = np.vstack([inliers, rng.uniform(0, 50, size=(20, 2))])
        centers = median_of_means(points, 9, 41, rng, rate=1.0, max_iter=200)
        robust = powermeans.RobustPowerKMeans(9, trim=20 / 620, random_state=seed).fit(points)
        plain = powermeans.PowerKMeans(9, random_state=seed).fit(points)
        of_blocks = cdist(inliers, centers).argmin(axis=1)
        for column, labels in zip(
            found.values(), (of_blocks, robust.labels_[:600], plain.labels_[:600]), strict=True
        ):
            column.append(adjusted_rand_index(truth, labels))
    for name, values in found.items():
        yield {"": name, "mean, worst": mean_and_worst(values), "perfect": values.count(1.0)}


def median_of_means(
    points: FloatArray,
    n_clusters: int,
    n_blocks: int,
    rng: np.random.Generator,
    *,
    rate: float,
    max_iter: int,
    power: float = -1.0,
    growth: float = 1.02,
) -> FloatArray:
    """Return centers by the loop that Paul, Chakraborty, Das & Xu publish with their paper.

    Each step follows the gradient of the block of the median objective, by Adagrad with one rate
    for each center. What does not fill the last block is left out, as it is there.
    """
    size = len(points) // n_blocks
    used = points[: n_blocks * size]
    parts = used[rng.permutation(len(used))].reshape(n_blocks, size, -1)
    chosen = used[rng.choice(len(used), n_clusters, replace=False)]
    centers = chosen + 0.01 * rng.uniform(size=chosen.shape)
    squares, before = np.zeros((n_clusters, 1)), math.inf
    for step in range(1, max_iter + 1):
        totals = [power_mean(cdist(part, centers, "sqeuclidean"), power).sum() for part in parts]
        median = int(np.argsort(totals, kind="stable")[(n_blocks + 1) // 2 - 1])
        if step > 5 and abs(totals[median] / before - 1) < 1e-4:
            break
        before, part = totals[median], parts[median]
        sq_dist = cdist(part, centers, "sqeuclidean") + 1e-4
        weights = power_mean_weights(sq_dist, power)
        gradient = weights.sum(axis=0)[:, None] * centers - weights.T @ part
        squares += np.square(gradient).sum(axis=1, keepdims=True)
        centers = centers - rate / np.sqrt(squares) * gradient
        if step % 2 == 0:
            power *= growth
    return centers


def shapes() -> Iterator[dict]:
    """Two moons, and a ring in a ring."""
    moons = sklearn.datasets.make_moons(600, noise=0.05, random_state=0)
    rings = sklearn.datasets.make_circles(600, noise=0.05, factor=0.4, random_state=0)
    for name, (points, truth), gamma in (("moons", moons, 12.0), ("rings", rings, 5.0)):
        kernel = KernelPowerKMeans(2, gamma=gamma, random_state=0).fit(points)
        near = {"affinity": "nearest_neighbors", "random_state": 0}
        spectral = SpectralClustering(2, **near).fit(points)
        plain = powermeans.PowerKMeans(2, random_state=0).fit(points)
        models = {"KernelPowerKMeans": kernel, "SpectralClustering": spectral, "PowerKMeans": plain}
        yield {"shape": f"{name} (gamma = {gamma:g})"} | {
            kind: f"{adjusted_rand_index(truth, model.labels_):.3f}"
            for kind, model in models.items()
        }


PARTS = {
    "sweeps": Part(
        "Time of a sweep, as a multiple of that with squared Euclidean distances",
        "All shortcuts are off: every point is compared with every center. With up to 16 features, "
        "products are computed in float64 even for float32 points, to avoid cancellation; "
        "squared Euclidean distances are then sums of squared differences, which need no products. "
        "Points with missing entries are stored as pairs, which are twice as wide.",
        sweeps,
    ),
    "divergences": Part(
        "Divergences for different populations",
        "99 points in 2 features, in three groups around 10, 20 and 40, in 250 trials: mean "
        "adjusted Rand index and variation of information. In parentheses: the difference from "
        "the index of the matching divergence, with its standard error.",
        divergences,
    ),
    "features": Part("Five of 20 features matter", "Adjusted Rand index over 20 seeds.", features),
    "outliers": Part(
        "A tenth of the points are outliers",
        "Adjusted Rand index of the 900 points in five groups: mean and worst of 20 seeds.",
        outliers,
    ),
    "blocks": Part(
        "Median of means",
        "Nine groups of 600 points on a grid, and 20 points up to fifty times as far away: the "
        "example published with median-of-means power k-means, with its settings (41 blocks, "
        "200 steps). Adjusted Rand index of the 600 points. *Perfect* counts the seeds with an "
        "index of 1.",
        blocks,
    ),
    "shapes": Part("Shapes without centers", "600 points each; adjusted Rand index.", shapes),
}
as_page = functools.partial(parts.as_page, PARTS)

if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    parts.main(NAME, __doc__, PAGE, PARTS)
