"""The shape of clusters: convex cells, and kernels where the true ones are not convex."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_circles, make_moons

from powermeans import KernelPowerKMeans, KMeans, PowerKMeans, SpectralClustering
from powermeans.metrics import adjusted_rand_index
from powermeans.plots.canvas import color_of, marker_of, tidy
from powermeans.types import FloatArray, IndexArray
from reproduce.checks import above, across, below, exact, together
from reproduce.drawn_data import make_gaussian_clusters, make_grid_gaussians
from reproduce.item import Cell, Claim, Findings, Row, Table, mean_and_error
from reproduce.selecting import column, kinds, where

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


# What is computed.


def cells(quick: bool) -> Sequence[Cell]:
    """Methods on shapes, and points between points of a cluster."""
    draws = 2 if quick else 15
    found = [
        Cell(
            {"part": "shapes", "shape": shape, "method": method, "draws": draws},
            functools.partial(scores, shape, method, draws),
        )
        for shape in SHAPES
        for method in METHODS
    ]
    found += [
        Cell(
            {"part": "gammas", "shape": shape, "gamma": gamma, "draws": n_draws},
            functools.partial(scores_at, shape, gamma, n_draws),
        )
        for shape in NOT_CONVEX
        for gamma in GAMMAS
        for n_draws in (4 if quick else 20,)
    ]
    found += [
        Cell({"part": "convex", "k": k, "d": d}, functools.partial(between_points, k, d))
        for k, d in (((10, 2), (20, 10)) if quick else ((10, 2), (20, 10), (50, 2), (50, 50)))
    ]
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


METHODS: dict[str, Callable[[int], Any]] = {
    "k-means": lambda k: PowerKMeans(k, effort="thorough", random_state=0),
    "kernel power k-means": lambda k: KernelPowerKMeans(
        k, kernel="rbf", gamma=GAMMA["kernel"], effort="thorough", random_state=0
    ),
    "spectral clustering": lambda k: SpectralClustering(k, gamma=GAMMA["spectral"], random_state=0),
}


def scores(shape: str, method: str, draws: int) -> list[Row]:
    """How well a method finds the true clusters."""
    rows: list[Row] = []
    for draw in range(draws):
        points, truth = shape_of(shape, draw)
        labels = METHODS[method](len(np.unique(truth))).fit(points).labels_
        rows.append({"draw": draw, "ari": adjusted_rand_index(truth, labels)})
    return rows


def scores_at(shape: str, gamma: float, draws: int) -> list[Row]:
    """The same of kernel power k-means with another gamma."""
    rows: list[Row] = []
    for draw in range(draws):
        points, truth = shape_of(shape, draw)
        model = KernelPowerKMeans(
            len(np.unique(truth)), kernel="rbf", gamma=gamma, effort="thorough", random_state=0
        ).fit(points)
        rows.append({"draw": draw, "ari": adjusted_rand_index(truth, model.labels_)})
    return rows


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


# What it shows.


def findings(rows: Sequence[Row]) -> Findings:
    """Who finds which shape, and whether cells are convex."""
    shapes, convex = where(rows, part="shapes"), where(rows, part="convex")
    gammas = where(rows, part="gammas")
    return Findings(
        tables=[_table(shapes), _table_of_gammas(gammas)],
        claims=[_claim_on_cells(convex), *_claims_on_shapes(shapes), _claim_on_kernels(gammas)],
        remarks=[
            "k-means and kernel power k-means make the thorough search, so that what they miss is "
            "the criterion's fault and not a local minimum's. Kernels are exp(-gamma y) with gamma "
            f"{GAMMA['kernel']:g}, and {GAMMA['spectral']:g} for spectral clustering, whose last "
            "step is k-means; the second table has other gammas.",
        ],
    )


def _mean(rows: Sequence[Row], shape: object, method: str) -> tuple[float, float]:
    return mean_and_error(column(where(rows, shape=str(shape), method=method), "ari"))


def _table(rows: Sequence[Row]) -> Table:
    lines: list[list[str | int | float]] = []
    for shape in kinds(rows, "shape"):
        pairs = [_mean(rows, shape, method) for method in METHODS]
        lines.append([str(shape), *(f"{mean:.3f} ({error:.3f})" for mean, error in pairs)])
    return Table(
        "Adjusted Rand index by shape and method",
        ["shape", *METHODS],
        lines,
        "Mean over the draws, and its standard error; one where the true clusters are found.",
    )


def _table_of_gammas(rows: Sequence[Row]) -> Table:
    lines: list[list[str | int | float]] = []
    for shape in NOT_CONVEX:
        pairs = [mean_and_error(column(where(rows, shape=shape, gamma=g), "ari")) for g in GAMMAS]
        lines.append([shape, *(f"{mean:.3f} ({error:.3f})" for mean, error in pairs)])
    return Table(
        "Adjusted Rand index of kernel power k-means by gamma",
        ["shape", *(f"gamma = {gamma:g}" for gamma in GAMMAS)],
        lines,
        "Mean over the draws, and its standard error.",
    )


def chosen_gamma(rows: Sequence[Row], shape: str) -> tuple[float, list[float]]:
    """The gamma that is best on every second draw of a shape, and its scores on the others."""
    by_gamma = {gamma: column(where(rows, shape=shape, gamma=gamma), "ari") for gamma in GAMMAS}
    best = max(GAMMAS, key=lambda gamma: sum(by_gamma[gamma][::2]))
    return best, by_gamma[best][1::2]


def _claim_on_kernels(rows: Sequence[Row]) -> Claim:
    chosen = {shape: chosen_gamma(rows, shape) for shape in NOT_CONVEX}
    means = {shape: mean_and_error(scores) for shape, (_, scores) in chosen.items()}
    words = ", ".join(
        f"{shape} {means[shape][0]:.3f} ± {means[shape][1]:.3f} with gamma {gamma:g}"
        for shape, (gamma, _) in chosen.items()
    )
    return Claim(
        "k-means can be kernelized to accommodate clusters that are not convex",
        "cluster geometry",
        together(above(*pair, FOUND) for pair in means.values()),
        f"holds if for each shape one gamma of {', '.join(f'{g:g}' for g in GAMMAS)} finds it, "
        f"chosen on every second draw and judged on the others (from {FOUND:g} on): {words}",
    )


def _claim_on_cells(rows: Sequence[Row]) -> Claim:
    n_pairs, n_elsewhere = (int(sum(column(rows, name))) for name in ("pairs", "elsewhere"))
    return Claim(
        "Clusters are cells of nearest centers, so they are convex",
        "cluster geometry",
        exact(n_elsewhere == 0),
        f"of {n_pairs} places between two points of a cluster {n_elsewhere} belong to another",
    )


def _claims_on_shapes(rows: Sequence[Row]) -> list[Claim]:
    k_means = {shape: _mean(rows, shape, "k-means") for shape in SHAPES[1:]}
    spectral = {shape: _mean(rows, shape, "spectral clustering") for shape in NOT_CONVEX}
    return [
        Claim(
            "k-means fails to identify the true clusters if at least one of them is not convex",
            "cluster geometry",
            across(below(*pair, FOUND) for pair in k_means.values()),
            f"adjusted Rand index: {_words(k_means)}; what it takes is that their convex hulls "
            "overlap, and those of crescents far apart do not",
            on="whether the convex hulls of the clusters overlap",
        ),
        Claim(
            "k-means serves as the last step of other algorithms, such as spectral clustering",
            "last remarks",
            together(above(*pair, FOUND) for pair in spectral.values()),
            f"adjusted Rand index of spectral clustering: {_words(spectral)}",
        ),
    ]


def _words(values: dict[str, tuple[float, float]]) -> str:
    return ", ".join(f"{name} {mean:.3f} ± {error:.3f}" for name, (mean, error) in values.items())


# What it looks like.


def draw(rows: Sequence[Row], folder: Path) -> Sequence[Path]:
    """What each method makes of each shape."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(len(METHODS), len(SHAPES), figsize=(11, 8), layout="constrained")
    for panels, shape in zip(axes.T, SHAPES, strict=True):
        points, truth = shape_of(shape, 0)
        for ax, (method, make) in zip(panels, METHODS.items(), strict=True):
            labels = make(len(np.unique(truth))).fit(points).labels_
            _draw_labels(ax, points, labels)
            score = adjusted_rand_index(truth, labels)
            ax.set_title(f"{shape}\n{method}, ARI {score:.2f}", fontsize=9)
    path = folder / "cluster-geometry.png"
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
    return [path]


def _draw_labels(ax: Any, points: FloatArray, labels: IndexArray) -> None:
    for label in np.unique(labels):
        chosen = points[labels == label]
        ax.scatter(
            *chosen.T, s=12, color=color_of(int(label)), marker=marker_of(int(label)), linewidths=0
        )
    ax.set(aspect="equal", xticks=[], yticks=[])
    tidy(ax)
    ax.spines[["left", "bottom"]].set_visible(False)
