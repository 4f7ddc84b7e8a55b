"""Two later methods against outliers, beside the members of the family, on the same sets.

Neither is in the package. Median-of-means power k-means is written as its paper has it. Of the
possibilistic method only the memberships are compared, on points or on random Fourier features;
its kernels are not learned. Both take the better of two starts by their own objective: the centers
of `PowerKMeans`, and k-means++.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from statistics import mean
from typing import NamedTuple, TypedDict

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.datasets import load_wine, make_blobs, make_moons
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import StandardScaler

from benchmarks.pages import Rows
from powermeans import PowerKMeans, RobustPowerKMeans, kmeans_plusplus
from powermeans.metrics import adjusted_rand_index
from powermeans.power_mean import power_mean, power_mean_gradient

N_SETS = 12
"""Of each kind: those of even index to tune by, the others to judge by."""
N_POINTS, SHARE = 600, 0.1
FIRST_POWER, GROWTH, LAST_POWER, N_STEPS = -1.0, 1.05, -60.0, 120


class PointSet(NamedTuple):
    """Points with the clusters they were drawn from, -1 for outliers."""

    points: np.ndarray
    truth: np.ndarray

    @property
    def n_clusters(self) -> int:
        return int(self.truth.max()) + 1


class Cell(TypedDict):
    """A method with one setting on the sets of a kind, in their order.

    Scores are adjusted Rand indices of the points that are no outliers; seconds are processor time.
    """

    kind: str
    method: str
    setting: str
    ari: list[float]
    seconds: float


# ---- data -------------------------------------------------------------------------------------


def groups(seed: int, n_features: int) -> PointSet:
    """Five round groups of unit variance."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(5, size=N_POINTS)
    corners, _ = make_blobs(5, n_features, centers=5, cluster_std=0.0, random_state=seed)
    middles = 8 * corners / math.sqrt(n_features)
    return PointSet(middles[truth] + rng.normal(size=(N_POINTS, n_features)), truth)


def with_outliers(inliers: PointSet, outliers: np.ndarray) -> PointSet:
    """The set with outliers behind its points."""
    truth = np.concatenate([inliers.truth, np.full(len(outliers), -1)])
    return PointSet(np.vstack([inliers.points, outliers]), truth)


def in_box(inliers: PointSet, seed: int, half_width: float) -> PointSet:
    """A tenth more points, uniform in a box."""
    n_points, n_features = inliers.points.shape
    size = (round(SHARE * n_points), n_features)
    return with_outliers(
        inliers, np.random.default_rng([seed, 1]).uniform(-half_width, half_width, size)
    )


def in_clump(seed: int, n_features: int) -> PointSet:
    """A tenth more points, close together and far away."""
    size = (round(SHARE * N_POINTS), n_features)
    clump = 80 + np.random.default_rng([seed, 1]).normal(size=size)
    return with_outliers(groups(seed, n_features), clump)


def of_heavy_tails(seed: int, n_features: int) -> PointSet:
    """The groups with the radii of Student's t of two degrees of freedom."""
    clean = groups(seed, n_features)
    middles = np.array([clean.points[clean.truth == j].mean(axis=0) for j in range(5)])
    chi_squared = np.random.default_rng([seed, 1]).chisquare(2, size=(N_POINTS, 1))
    noise = (clean.points - middles[clean.truth]) / np.sqrt(chi_squared / 2)
    return PointSet(middles[clean.truth] + noise, clean.truth)


def off_in_one_feature(seed: int, n_features: int) -> PointSet:
    """The groups, where a tenth of the points have a wrong value in one feature."""
    clean, rng = groups(seed, n_features), np.random.default_rng([seed, 1])
    rows = rng.choice(N_POINTS, size=round(SHARE * N_POINTS), replace=False)
    clean.points[rows, rng.integers(n_features, size=len(rows))] = rng.uniform(-60, 60, len(rows))
    return clean


def wine_in_box(seed: int) -> PointSet:
    """Wine, scaled, and a tenth more points in a box."""
    points, labels = load_wine(return_X_y=True)
    return in_box(PointSet(StandardScaler().fit_transform(points), labels), seed, 10.0)


def moons_by_fourier_features(seed: int) -> PointSet:
    """Two moons and a tenth more points, by 200 random Fourier features of a Gaussian kernel."""
    noisy = in_box(PointSet(*make_moons(N_POINTS, noise=0.05, random_state=seed)), seed, 4.0)
    features = RBFSampler(gamma=12.0, n_components=200, random_state=seed)
    return PointSet(features.fit_transform(noisy.points), noisy.truth)


KINDS: dict[str, Callable[[int], PointSet]] = {
    "no outliers, d = 2": lambda seed: groups(seed, 2),
    "no outliers, d = 10": lambda seed: groups(seed, 10),
    "a tenth in a wide box, d = 2": lambda seed: in_box(groups(seed, 2), seed, 60.0),
    "a tenth in a wide box, d = 10": lambda seed: in_box(groups(seed, 10), seed, 60.0),
    "a tenth in a far clump, d = 2": lambda seed: in_clump(seed, 2),
    "a tenth in a far clump, d = 10": lambda seed: in_clump(seed, 10),
    "heavy tails, d = 2": lambda seed: of_heavy_tails(seed, 2),
    "heavy tails, d = 10": lambda seed: of_heavy_tails(seed, 10),
    "a tenth off in one feature, d = 10": lambda seed: off_in_one_feature(seed, 10),
    "wine, a tenth in a box": wine_in_box,
    "moons, a tenth in a box, Fourier features": moons_by_fourier_features,
}


# ---- the two methods --------------------------------------------------------------------------


def starts(given: PointSet, seed: int) -> list[np.ndarray]:
    """The centers of `PowerKMeans`, and k-means++."""
    k = given.n_clusters
    found = PowerKMeans(k, random_state=seed).fit(given.points).cluster_centers_
    return [found, kmeans_plusplus(given.points, k, random_state=seed)[0]]


def powers() -> Iterator[float]:
    """The published schedule, which stops where the mean is all but the least distance."""
    for step in range(N_STEPS):
        yield max(FIRST_POWER * GROWTH**step, LAST_POWER)


def median_of_means(given: PointSet, seed: int, n_blocks: int, rate: float) -> np.ndarray:
    """Return labels by Paul, Chakraborty, Das & Xu (2021): AdaGrad on the median block.

    The rate is in units of the range of the middle half of the coordinates.
    """
    order = np.random.default_rng(seed).permutation(len(given.points))
    blocks = np.array_split(order, n_blocks)
    spread = float(np.subtract(*np.quantile(given.points, (0.75, 0.25))))
    ends = [_descended(given.points, blocks, start, rate * spread) for start in starts(given, seed)]
    distances = [cdist(given.points, centers, "sqeuclidean") for centers in ends]
    best = min(
        distances, key=lambda of: np.sort(_block_means(of.min(axis=1), blocks))[n_blocks // 2]
    )
    return best.argmin(axis=1)


def _block_means(values: np.ndarray, blocks: list[np.ndarray]) -> np.ndarray:
    return np.array([values[block].mean() for block in blocks])


def _descended(
    points: np.ndarray, blocks: list[np.ndarray], centers: np.ndarray, rate: float
) -> np.ndarray:
    """Take AdaGrad's steps, each on the block whose objective is the median."""
    squares = np.full_like(centers, 1e-12)
    for power in powers():
        sq_dist = cdist(points, centers, "sqeuclidean")
        means = _block_means(power_mean(sq_dist, power), blocks)
        block = blocks[int(np.argsort(means)[len(blocks) // 2])]
        weights = power_mean_gradient(sq_dist[block], power)
        gradient = weights.sum(axis=0)[:, None] * centers - weights.T @ points[block]
        gradient *= 2 / len(block)
        squares += gradient**2
        centers = centers - rate * gradient / np.sqrt(squares)
    return centers


def possibilistic(given: PointSet, seed: int, share: float, width: float) -> np.ndarray:
    """Return labels by weights of power k-means mixed with possibilistic memberships.

    As in Pal, Pal, Keller & Bezdek (2005), but with the power mean for the fuzzy part: minimize
    (1 - share) sum_i M_s(d_i) + share sum_ij t_ij² d_ij + scale (1 - t_ij)². The scale is a
    multiple of the median squared distance from the centers of `PowerKMeans`.
    """
    begin = starts(given, seed)
    nearest = cdist(given.points, begin[0], "sqeuclidean").min(axis=1)
    scale = width * float(np.median(nearest))

    def cost(sq_dist: np.ndarray) -> float:
        typical = scale * sq_dist / (scale + sq_dist)  # the least over t
        return float((1 - share) * sq_dist.min(axis=1).sum() + share * typical.sum())

    ends = [_typical_centers(given.points, start, share, scale) for start in begin]
    distances = [cdist(given.points, centers, "sqeuclidean") for centers in ends]
    return min(distances, key=cost).argmin(axis=1)


def _typical_centers(
    points: np.ndarray, centers: np.ndarray, share: float, scale: float
) -> np.ndarray:
    """Return the means by both kinds of memberships, while the power falls."""
    for power in powers():
        sq_dist = cdist(points, centers, "sqeuclidean")
        weights = (1 - share) * power_mean_gradient(sq_dist, power)
        weights += share * (scale / (scale + sq_dist)) ** 2
        centers = weights.T @ points / weights.sum(axis=0)[:, None]
    return centers


# ---- the comparison ---------------------------------------------------------------------------


def by_power(given: PointSet, seed: int) -> np.ndarray:
    return PowerKMeans(given.n_clusters, random_state=seed).fit(given.points).labels_


def by_medians(given: PointSet, seed: int) -> np.ndarray:
    model = PowerKMeans(given.n_clusters, divergence="manhattan", random_state=seed)
    return model.fit(given.points).labels_


def by_trimming(given: PointSet, seed: int, trim: float) -> np.ndarray:
    """Return labels by the nearest center, of what is left out too."""
    model = RobustPowerKMeans(given.n_clusters, trim=trim, random_state=seed).fit(given.points)
    return cdist(given.points, model.cluster_centers_).argmin(axis=1)


OURS = ("PowerKMeans", "manhattan", "RobustPowerKMeans")
THEIRS = ("median of means", "possibilistic")
METHODS: dict[str, tuple[Callable[..., np.ndarray], list[dict[str, float]]]] = {
    "PowerKMeans": (by_power, [{}]),
    "manhattan": (by_medians, [{}]),
    "RobustPowerKMeans": (by_trimming, [{"trim": trim} for trim in (0.02, 0.05, 0.1, 0.2)]),
    "median of means": (
        median_of_means,
        [{"n_blocks": n, "rate": rate} for n in (50, 150) for rate in (0.02, 0.1)],
    ),
    "possibilistic": (
        possibilistic,
        [{"share": share, "width": width} for share in (0.5, 0.9) for width in (1.0, 4.0)],
    ),
}


def followups() -> Iterator[Cell]:
    """Every method with every setting on every set."""
    for kind, draw in KINDS.items():
        drawn = [draw(index) for index in range(N_SETS)]
        for method, (labels_of, settings) in METHODS.items():
            for setting in settings:
                began = time.process_time()
                labels = [labels_of(given, index, **setting) for index, given in enumerate(drawn)]
                yield {
                    "kind": kind,
                    "method": method,
                    "setting": ", ".join(f"{name} {value:g}" for name, value in setting.items()),
                    "ari": [_score(*each) for each in zip(drawn, labels, strict=True)],
                    "seconds": (time.process_time() - began) / N_SETS,
                }


def _score(given: PointSet, labels: np.ndarray) -> float:
    is_in = given.truth >= 0
    return round(adjusted_rand_index(given.truth[is_in], labels[is_in]), 4)


def kinds_of(cells: list[Cell]) -> list[str]:
    return list(dict.fromkeys(cell["kind"] for cell in cells))


def judged(cells: list[Cell], kinds: list[str], method: str) -> tuple[str, float, list[float]]:
    """Return the setting that is best on the sets to tune by, its mean there, and other scores.

    Where several settings are best, the scores are their means, as of one taken blindly.
    """
    tuned: dict[str, list[float]] = {}
    others: dict[str, list[float]] = {}
    for cell in cells:
        if cell["method"] == method and cell["kind"] in kinds:
            tuned.setdefault(cell["setting"], []).extend(cell["ari"][::2])
            others.setdefault(cell["setting"], []).extend(cell["ari"][1::2])
    most = max(map(mean, tuned.values()))
    best = [setting for setting, scores in tuned.items() if mean(scores) == most]
    scores = [mean(of_set) for of_set in zip(*(others[setting] for setting in best), strict=True)]
    return " or ".join(best), most, scores


def followup_rows(cells: list[Cell]) -> Rows:
    """Mean scores by kind, those of the best setting for each, and of one setting for all."""
    kinds = kinds_of(cells)
    rows = [["points", *METHODS]]
    for name, some in {
        **{kind: [kind] for kind in kinds},
        "all, one setting for all": kinds,
    }.items():
        scores = [judged(cells, some, method)[2] for method in METHODS]
        rows.append([name, *(f"{mean(of):.3f}" for of in scores)])
    settings = [judged(cells, kinds, method)[0] for method in METHODS]
    rows.append(["that setting", *(setting or "none to choose" for setting in settings)])
    seconds = [mean(c["seconds"] for c in cells if c["method"] == method) for method in METHODS]
    rows.append(["time, in fits of PowerKMeans", *(f"{of / seconds[0]:.1f}" for of in seconds)])
    return rows


def verdict(cells: list[Cell]) -> str:
    """Say of each later method how often it is clearly ahead of the best of ours, and behind."""
    said = []
    for theirs in THEIRS:
        leads = {kind: _lead(cells, kind, theirs) for kind in kinds_of(cells)}
        ahead = [kind for kind, (lead, error) in leads.items() if lead > 2 * error]
        behind = [kind for kind, (lead, error) in leads.items() if lead < -2 * error]
        said.append(
            f"- **{theirs[0].upper()}{theirs[1:]}** is clearly ahead of the best of ours on "
            f"{_counted(ahead)} of {len(leads)} kinds, and clearly behind on {_counted(behind)}."
        )
    return "\n".join(said)


def _counted(kinds: list[str]) -> str:
    return f"{len(kinds)} ({'; '.join(kinds)})" if kinds else "none"


def _lead(cells: list[Cell], kind: str, theirs: str) -> tuple[float, float]:
    """Return how far a method is ahead of ours with the best score to tune by, and the error."""
    *_, ours = max((judged(cells, [kind], method) for method in OURS), key=lambda found: found[1])
    gaps = np.subtract(judged(cells, [kind], theirs)[2], ours)
    return float(gaps.mean()), float(gaps.std(ddof=1) / math.sqrt(len(gaps)))
