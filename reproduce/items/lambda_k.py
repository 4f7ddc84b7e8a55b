"""W + lambda k: k-means that pays for its clusters."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from powermeans import DPMeans, PowerKMeans
from powermeans.datasets import load_data_set
from powermeans.plots.canvas import BLUE, INK, VERMILION, tidy
from powermeans.types import FloatArray
from reproduce.checks import exact
from reproduce.drawn_data import make_gaussian_clusters, make_grid_gaussians
from reproduce.item import Cell, Claim, Findings, Row, Table
from reproduce.selecting import column, kinds, where

TITLE = "W + lambda k: k-means that pays for its clusters"
SOURCE = (
    "K. Moon, k-Means Clustering (lecture slides): model selection by a price of lambda for each "
    "cluster, after B. Kulis and M. I. Jordan, ICML 2012"
)
DATA = "random cases: and iris and wine"

TRUE_K = {"grid of nine": 9, "20 Gaussians": 20, "iris": 3, "wine": 3}


# What is computed.


def cells(quick: bool) -> Sequence[Cell]:
    """The best W for each k, and DP-means for many prices."""
    names = list(TRUE_K)[:2] if quick else list(TRUE_K)
    n_prices, largest = (12, 14) if quick else (60, 40)
    found = []
    for name in names:
        k = max(largest, TRUE_K[name] + 4)
        key: dict[str, str | int] = {"data": name, "largest_k": k}
        found += [
            Cell({"part": "best", **key}, functools.partial(best_of_each_k, name, k)),
            Cell(
                {"part": "prices", "prices": n_prices, **key},
                functools.partial(by_price, name, k, n_prices),
            ),
        ]
    return found


def points_of(name: str) -> FloatArray:
    """The points of a data set."""
    if name == "grid of nine":
        return np.asarray(make_grid_gaussians(random_state=0).points, dtype=np.float64)
    if name == "20 Gaussians":
        return np.asarray(make_gaussian_clusters(1000, 20, 5, random_state=0).points, np.float64)
    if name == "iris":
        return np.asarray(load_data_set("iris").points, dtype=np.float64)
    wine: FloatArray = scale(load_wine(return_X_y=True)[0])
    return wine


def best_of_each_k(data: str, largest_k: int) -> list[Row]:
    """The least W that a search finds for each k."""
    points = points_of(data)
    return [
        {"k": k, "W": PowerKMeans(k, random_state=0).fit(points).inertia_}
        for k in range(1, largest_k + 1)
    ]


def by_price(data: str, largest_k: int, n_prices: int) -> list[Row]:
    """DP-means for prices from one that parts all points by far to one that parts none."""
    points = points_of(data)
    lowest, highest = (DPMeans.penalty_for(points, k) for k in (largest_k, 1))
    rows: list[Row] = []
    for price in np.geomspace(lowest, 2 * len(points) * highest, n_prices):
        model = DPMeans(float(price), tol=0, effort="none").fit(points)
        rises = np.diff(model.history_.objective).max(initial=-np.inf)
        rows.append(
            {
                "price": float(price),
                "k": model.n_clusters_,
                "W": model.inertia_,
                "objective": model.objective_,
                "sweeps": model.n_iter_,
                "rise": float(rises) / model.objective_ if np.isfinite(rises) else 0.0,
            }
        )
    return rows


# What it shows.


def findings(rows: Sequence[Row]) -> Findings:
    """Which k a price leads to, and how near DP-means comes to the least objective."""
    return Findings(
        tables=[_table(rows), *(_table_by_price(rows, name) for name in kinds(rows, "data"))],
        claims=[_claim_on_k(rows), _claim_on_algorithm(rows), _claim_on_truth(rows)],
        remarks=[
            "The least objective is that of the best W found for each k by the default search, "
            "over all k up to the largest tried; prices at which more would pay are left out of "
            "the comparison.",
            _remark_on_the_least(rows),
        ],
    )


def envelope(rows: Sequence[Row], data: str, price: float) -> tuple[int, float]:
    """The k of least W + price k, and that value."""
    best = where(rows, part="best", data=data)
    sizes, inertias = np.array(column(best, "k")), np.array(column(best, "W"))
    values = inertias + price * sizes
    place = int(values.argmin())
    return int(sizes[place]), float(values[place])


def compared(rows: Sequence[Row], data: str) -> list[tuple[Row, int, float]]:
    """The fits of DP-means with the best k at their price, and their excess over its objective."""
    largest = int(max(column(where(rows, part="best", data=data), "k")))
    found = []
    for row in where(rows, part="prices", data=data):
        k, least = envelope(rows, data, float(row["price"]))
        if k < largest:
            found.append((row, k, float(row["objective"]) / least - 1))
    return found


def span_of_prices(rows: Sequence[Row], data: str, k: int) -> tuple[float, float]:
    """Between which prices this k has the least objective; empty where it never has."""
    best = where(rows, part="best", data=data)
    inertias = {int(row["k"]): float(row["W"]) for row in best}
    falls = [(inertias[k] - w) / (j - k) for j, w in inertias.items() if j > k]
    rises = [(w - inertias[k]) / (k - j) for j, w in inertias.items() if j < k]
    return max(falls, default=0.0), min(rises, default=np.inf)


def _table(rows: Sequence[Row]) -> Table:
    lines: list[list[str | int | float]] = []
    for data in kinds(rows, "data"):
        pairs = compared(rows, str(data))
        excess = [value for _, _, value in pairs]
        same = [int(row["k"]) == k for row, k, _ in pairs]
        true_k = TRUE_K[str(data)]
        low, high = span_of_prices(rows, str(data), true_k)
        hits = sum(int(row["k"]) == true_k for row in where(rows, part="prices", data=data))
        lines.append(
            [
                data,
                true_k,
                low,
                high,
                max(high / low, 0.0) if low else np.inf,
                hits,
                float(np.mean(same)),
                float(np.mean(excess)),
                float(max(excess)),
            ]
        )
    return Table(
        "DP-means against the best k for each price",
        ["data", "k*", "k* is best from", "to", "their ratio", "prices that give k*",
         "share with the best k", "mean excess", "largest"],
        lines,
        "A ratio below one means that no price makes k* the best.",
    )  # fmt: skip


def _table_by_price(rows: Sequence[Row], data: object) -> Table:
    pairs = compared(rows, str(data))
    step = max(1, len(pairs) // 12)
    lines: list[list[str | int | float]] = [
        [float(row["price"]), int(row["k"]), k, float(row["objective"]), excess]
        for row, k, excess in pairs[::step]
    ]
    return Table(
        f"{data}: clusters by price",
        ["lambda", "k of DP-means", "best k", "W + lambda k", "excess"],
        lines,
    )


def _claim_on_k(rows: Sequence[Row]) -> Claim:
    ups, n_steps = 0, 0
    for data in kinds(rows, "data"):
        steps = np.diff(column(where(rows, part="prices", data=data), "k"))
        ups, n_steps = ups + int((steps > 0).sum()), n_steps + len(steps)
    return Claim(
        "lambda regularises k: a higher price leads to fewer clusters",
        "model selection",
        exact(ups <= 0.05 * n_steps),
        f"of {n_steps} steps to a higher price {ups} lead to more clusters",
    )


def _claim_on_algorithm(rows: Sequence[Row]) -> Claim:
    fits = where(rows, part="prices")
    rise = max(column(fits, "rise"))
    return Claim(
        "A variant of k-means optimises W + lambda k (lowers it in each step)",
        "model selection",
        exact(rise < 1e-9),
        f"no sweep of {len(fits)} fits raises it (largest rise {max(rise, 0.0):.1e} of it), "
        f"and they end after at most {max(column(fits, 'sweeps')):.0f} sweeps",
    )


def _remark_on_the_least(rows: Sequence[Row]) -> str:
    excess = [v for data in kinds(rows, "data") for _, _, v in compared(rows, str(data))]
    near = float(np.mean(np.less(excess, 0.05)))
    return (
        f"Lowering is not finding the least: DP-means ends within 5 % of the best known at "
        f"{near:.0%} of the prices, {np.mean(excess):.0%} above it in the mean and "
        f"{max(excess):.0%} at most. A cluster opens only where one point by itself is worth its "
        "price, not where many together are."
    )


def _claim_on_truth(rows: Sequence[Row]) -> Claim:
    spans = {str(data): span_of_prices(rows, str(data), TRUE_K[str(data)])
             for data in kinds(rows, "data")}  # fmt: skip
    words = ", ".join(
        f"{data} {low:.4g} to {high:.4g}" if low < high else f"{data} none"
        for data, (low, high) in spans.items()
    )
    return Claim(
        "The number of clusters can be chosen by a price for each",
        "model selection",
        exact(all(low < high for low, high in spans.values())),
        f"prices at which the true number is the best: {words}",
    )


# What it looks like.


def draw(rows: Sequence[Row], folder: Path) -> Sequence[Path]:
    """How many clusters a price leads to."""
    from matplotlib import pyplot

    names = kinds(rows, "data")
    figure, axes = pyplot.subplots(
        1, len(names), figsize=(3.4 * len(names), 3.8), layout="constrained", squeeze=False
    )
    for ax, name in zip(axes[0], names, strict=True):
        _draw_steps(ax, rows, str(name))
    axes[0, 0].set_ylabel("clusters")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    path = folder / "lambda-k.png"
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
    return [path]


def _draw_steps(ax: Any, rows: Sequence[Row], data: str) -> None:
    pairs = compared(rows, data)
    prices = [float(row["price"]) for row, _, _ in pairs]
    ax.step(prices, [k for _, k, _ in pairs], "-", color=BLUE, where="mid", label="best k")
    ax.plot(
        prices, [int(row["k"]) for row, _, _ in pairs], "o", color=VERMILION, markersize=4,
        label="DP-means",
    )  # fmt: skip
    ax.axhline(TRUE_K[data], color=INK, linestyle=":", label="true number")
    ax.set(xscale="log", yscale="log", xlabel="price lambda of a cluster", title=data)
    ax.set_yticks([1, 2, 5, 10, 20, 40], ["1", "2", "5", "10", "20", "40"])
    ax.minorticks_off()
    tidy(ax, grid="y")
