"""The shape of clusters: convex cells, and kernels where the true ones are not convex."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.datasets import make_circles, make_moons

from powermeans import KMeans, PowerKMeans
from powermeans.methods import KernelPowerKMeans, SpectralClustering
from powermeans.metrics import adjusted_rand_index
from powermeans.types import FloatArray, IndexArray
from reproduce.drawn_data import make_gaussian_clusters, make_grid_gaussians
from reproduce.item import Cell, Claim, Findings, Row, Rows, grid
from reproduce.rows import Figure, column, mean_and_error, said, where
from reproduce.verdicts import above, across, below, exact, together

TITLE = "The shape of clusters: convex cells, and kernels"
SOURCE = "K. Moon, k-Means Clustering (lecture slides): cluster geometry, and the last remarks"
DATA = "random cases: shapes of our own"

N_POINTS, NOISE = 300, 0.05
FAR = 4.0
"""How far the second crescent is moved where two lie far apart; they are two wide."""
GAMMAS = (2.0, 4.0, 6.0, 10.0)
"""Of exp(-gamma y), those that are tried; which of them suits a shape is for its user to find."""
GAMMA = {"kernel": 6.0, "spectral": 30.0}
"""For all shapes; they have about this size, and neighbours in them are near 0.1 apart."""
N_PAIRS = 100_000
SHAPES = ("grid of nine", "two crescents", "two rings", "crescents far apart")
NOT_CONVEX = SHAPES[1:3]
FOUND = 0.95
"""The adjusted Rand index from which on the true clusters count as found."""


def cells(quick: bool) -> Sequence[Cell]:
    n, n_more, large = (2, 2, []) if quick else (15, 20, [(50, 2), (50, 50)])
    found = grid(scores, part="shapes", shape=SHAPES, method=list(METHODS), draws=n)
    found += grid(scores_at, part="gammas", shape=NOT_CONVEX, gamma=GAMMAS, draws=n_more)
    for k, d in [(10, 2), (20, 10), *large]:
        found += grid(between_points, part="convex", k=k, d=d)
    return found


def shape_of(name: str, draw: int) -> tuple[FloatArray, IndexArray]:
    """Points and their true clusters."""
    if name == "grid of nine":
        drawn = make_grid_gaussians(N_POINTS, random_state=draw)
        assert drawn.labels is not None
        return np.asarray(drawn.points, dtype=np.float64) / 4, drawn.labels.astype(np.intp)
    if name == "two rings":
        points, labels = make_circles(N_POINTS, noise=NOISE, factor=0.4, random_state=draw)
        return points, labels
    points, labels = make_moons(N_POINTS, noise=NOISE, random_state=draw)
    shift = FAR if name == "crescents far apart" else 0.0
    return points + shift * labels[:, None] * [[0.0, -1.0]], labels


def kernel(k: int, gamma: float = GAMMA["kernel"]) -> KernelPowerKMeans:
    """The thorough search of kernel power k-means."""
    return KernelPowerKMeans(k, kernel="rbf", gamma=gamma, effort="thorough", random_state=0)


METHODS: dict[str, Callable[[int], Any]] = {
    "k-means": lambda k: PowerKMeans(k, effort="thorough", random_state=0),
    "kernel power k-means": kernel,
    "spectral clustering": lambda k: SpectralClustering(k, gamma=GAMMA["spectral"], random_state=0),
}


def of_draws(make: Callable[[int], Any], shape: str, draws: int) -> list[Row]:
    """How well a method finds the true clusters."""
    rows: list[Row] = []
    for draw in range(draws):
        points, truth = shape_of(shape, draw)
        labels = make(len(np.unique(truth))).fit(points).labels_
        rows.append({"draw": draw, "ari": adjusted_rand_index(truth, labels)})
    return rows


def scores(shape: str, method: str, draws: int) -> list[Row]:
    """How well each method finds the true clusters."""
    return of_draws(METHODS[method], shape, draws)


def scores_at(shape: str, gamma: float, draws: int) -> list[Row]:
    """The same of kernel power k-means with another gamma."""
    return of_draws(lambda k: kernel(k, gamma), shape, draws)


def between_points(k: int, d: int) -> list[Row]:
    """Places between two points of a cluster that belong to another, of many tried."""
    points = make_gaussian_clusters(2500, k, d, random_state=0).points
    model = KMeans(k, random_state=0).fit(points)
    rng = np.random.default_rng(1)
    first, second = rng.integers(len(points), size=(2, N_PAIRS))
    is_same = model.labels_[first] == model.labels_[second]
    first, second = first[is_same], second[is_same]
    shares = rng.uniform(size=(len(first), 1))
    between = shares * points[first] + (1 - shares) * points[second]
    n_elsewhere = int((model.predict(between) != model.labels_[first]).sum())
    return [{"pairs": len(first), "elsewhere": n_elsewhere}]


def findings(rows: Rows) -> Findings:
    shapes, gammas = where(rows, part="shapes"), where(rows, part="gammas")
    return Findings(
        claims=[
            claim_on_cells(where(rows, part="convex")),
            *_claims_on_shapes(shapes),
            claim_on_kernels(gammas),
        ],
        remarks=[
            "k-means and kernel power k-means make the thorough search, so that what they miss is "
            "the criterion's fault and not a local minimum's. Kernels are exp(-gamma y) with gamma "
            f"{GAMMA['kernel']:g}, and {GAMMA['spectral']:g} for spectral clustering, whose last "
            "step is k-means.",
        ],
    )


def chosen_gamma(rows: Rows, shape: str) -> tuple[float, Figure]:
    """The gamma that is best on every second draw of a shape, and its mean score on the others."""
    by_gamma = {gamma: column(where(rows, shape=shape, gamma=gamma), "ari") for gamma in GAMMAS}
    best = max(GAMMAS, key=lambda gamma: sum(by_gamma[gamma][::2]))
    return best, mean_and_error(by_gamma[best][1::2])


def claim_on_kernels(rows: Rows) -> Claim:
    chosen = {shape: chosen_gamma(rows, shape) for shape in NOT_CONVEX}
    words = ", ".join(
        f"{shape} {mean:.3f} ± {error:.3f} with gamma {gamma:g}"
        for shape, (gamma, (mean, error)) in chosen.items()
    )
    return Claim(
        "k-means can be kernelized to accommodate clusters that are not convex",
        "cluster geometry",
        together(above(*figure, FOUND) for _, figure in chosen.values()),
        f"holds if for each shape one gamma of {', '.join(f'{g:g}' for g in GAMMAS)} finds it, "
        f"chosen on every second draw and judged on the others (from {FOUND:g} on): {words}",
    )


def claim_on_cells(rows: Rows) -> Claim:
    n_pairs, n_elsewhere = (int(sum(column(rows, name))) for name in ("pairs", "elsewhere"))
    return Claim(
        "Clusters are cells of nearest centers, so they are convex",
        "cluster geometry",
        exact(n_elsewhere == 0),
        f"of {n_pairs} places between two points of a cluster {n_elsewhere} belong to another",
    )


def _claims_on_shapes(rows: Rows) -> list[Claim]:
    def of(method: str, shapes: Sequence[str]) -> Mapping[str, Figure]:
        chosen = where(rows, method=method)
        return {name: mean_and_error(column(where(chosen, shape=name), "ari")) for name in shapes}

    k_means, spectral = of("k-means", SHAPES[1:]), of("spectral clustering", NOT_CONVEX)
    form = "{} {:.3f} ± {:.3f}"
    return [
        Claim(
            "k-means fails to identify the true clusters if at least one of them is not convex",
            "cluster geometry",
            across(below(*pair, FOUND) for pair in k_means.values()),
            f"adjusted Rand index: {said(k_means, form)}; what it takes is that their convex hulls "
            "overlap, and those of crescents far apart do not",
            on="whether the convex hulls of the clusters overlap",
        ),
        Claim(
            "k-means serves as the last step of other algorithms, such as spectral clustering",
            "last remarks",
            together(above(*pair, FOUND) for pair in spectral.values()),
            f"adjusted Rand index of spectral clustering: {said(spectral, form)}",
        ),
    ]
