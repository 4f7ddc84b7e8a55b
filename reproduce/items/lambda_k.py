"""W + lambda k: k-means that pays for its clusters."""

import itertools
from collections.abc import Sequence

import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from powermeans import PowerKMeans
from powermeans.datasets import load_data_set
from powermeans.methods import DPMeans
from powermeans.types import FloatArray
from reproduce.drawn_data import make_gaussian_clusters, make_grid_gaussians
from reproduce.item import Cell, Claim, Findings, Row, Rows, Table, grid
from reproduce.rows import Figure, column, kinds, where
from reproduce.verdicts import exact

TITLE = "W + lambda k: k-means that pays for its clusters"
SOURCE = (
    "K. Moon, k-Means Clustering (lecture slides): model selection by a price of lambda for each "
    "cluster, after B. Kulis and M. I. Jordan, ICML 2012"
)
DATA = "random cases: and iris and wine"

LOOP, SEARCH = EFFORTS = ("none", "balanced")
"""The sweeps of the sources alone, and with the search of this package."""
TRUE_K = {"grid of nine": 9, "20 Gaussians": 20, "iris": 3, "wine": 3}


def cells(quick: bool) -> Sequence[Cell]:
    names, prices, largest = (list(TRUE_K)[:2], 12, 14) if quick else (list(TRUE_K), 60, 40)
    found = []
    for name in names:
        k = max(largest, TRUE_K[name] + 4)
        found += grid(best_of_each_k, part="best", data=name, largest_k=k)
        found += grid(
            by_price, part="prices", data=name, largest_k=k, prices=prices, effort=EFFORTS
        )
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


def by_price(data: str, largest_k: int, prices: int, effort: str) -> list[Row]:
    """DP-means for prices from one that parts all points by far to one that parts none."""
    points = points_of(data)
    lowest, highest = (DPMeans.penalty_for(points, k) for k in (largest_k, 1))
    rows: list[Row] = []
    for price in np.geomspace(lowest, 2 * len(points) * highest, prices):
        model = DPMeans(float(price), tol=0, effort=effort, random_state=0).fit(points)
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


def findings(rows: Rows) -> Findings:
    names = [str(data) for data in kinds(rows, "data")]
    return Findings(
        tables=[_table(rows, names)],
        claims=_claims(rows, names),
        remarks=[
            "The least objective is that of the best W found for each k by the default search, "
            "over all k up to the largest tried; prices at which more would pay are left out of "
            "the comparison.",
            "In the sweeps of DP-means alone a cluster opens only where one point by itself is "
            "worth its price, not where many together are.",
        ],
    )


def _excess_in_words(rows: Rows, names: Sequence[str], effort: str) -> str:
    of = [excess for data in names for _, _, excess in compared(rows, data, effort)]
    near = np.mean(np.array(of) < 0.05)
    return f"at {near:.0%} of the prices, {np.mean(of):.3%} above it in the mean"


def envelope(rows: Rows, data: str, price: float) -> tuple[int, float]:
    """The k of least W + price k, and that value."""
    best = where(rows, part="best", data=data)
    sizes, inertias = np.array(column(best, "k")), np.array(column(best, "W"))
    values = inertias + price * sizes
    place = int(values.argmin())
    return int(sizes[place]), float(values[place])


def compared(rows: Rows, data: str, effort: str) -> list[tuple[Row, int, float]]:
    """The fits of DP-means with the best k at their price, and their excess over its objective."""
    largest = int(max(column(where(rows, part="best", data=data), "k")))
    found = []
    for row in where(rows, part="prices", data=data, effort=effort):
        k, least = envelope(rows, data, float(row["price"]))
        if k < largest:
            found.append((row, k, float(row["objective"]) / least - 1))
    return found


def span_of_prices(rows: Rows, data: str, k: int) -> Figure:
    """Between which prices this k has the least objective; empty where it never has."""
    best = where(rows, part="best", data=data)
    inertias = {int(row["k"]): float(row["W"]) for row in best}
    falls = [(inertias[k] - w) / (j - k) for j, w in inertias.items() if j > k]
    rises = [(w - inertias[k]) / (k - j) for j, w in inertias.items() if j < k]
    return max(falls, default=0.0), min(rises, default=np.inf)


def _table(rows: Rows, names: Sequence[str]) -> Table:
    lines = []
    for data, effort in itertools.product(names, EFFORTS):
        fits, best, excess = zip(*compared(rows, data, effort), strict=True)
        true_k = TRUE_K[data]
        low, high = span_of_prices(rows, data, true_k)
        ratio = max(high / low, 0.0) if low else np.inf
        fits_of = where(rows, part="prices", data=data, effort=effort)
        hits = column(fits_of, "k").count(true_k)
        same = float(np.mean(np.equal(column(fits, "k"), best)))
        mean = float(np.mean(excess))
        lines.append([data, effort, true_k, low, high, ratio, hits, same, mean, max(excess)])
    return Table(
        "DP-means against the best k for each price",
        ["data", "effort", "k*", "k* is best from", "to", "their ratio", "prices that give k*",
         "share with the best k", "mean excess", "largest"],
        lines,
        "A ratio below one means that no price makes k* the best.",
    )  # fmt: skip


def _claims(rows: Rows, names: Sequence[str]) -> list[Claim]:
    fits = where(rows, part="prices", effort=LOOP)
    steps = np.concatenate([np.diff(column(where(fits, data=data), "k")) for data in names])
    n_ups = int((steps > 0).sum())
    rise = max(column(fits, "rise"))
    spans = {data: span_of_prices(rows, data, TRUE_K[data]) for data in names}
    words = ", ".join(
        f"{data} {low:.4g} to {high:.4g}" if low < high else f"{data} none"
        for data, (low, high) in spans.items()
    )
    return [
        Claim(
            "lambda regularises k: a higher price leads to fewer clusters",
            "model selection",
            exact(n_ups <= 0.05 * len(steps)),
            f"of {len(steps)} steps to a higher price {n_ups} lead to more clusters",
        ),
        Claim(
            "A variant of k-means optimises W + lambda k (lowers it in each step)",
            "model selection",
            exact(rise < 1e-9),
            f"no sweep of {len(fits)} fits raises it (largest rise {max(rise, 0.0):.1e} of it), "
            f"and they end after at most {max(column(fits, 'sweeps')):.0f} sweeps; the sweeps "
            f"alone end within 5 % of the best known {_excess_in_words(rows, names, LOOP)}, and "
            f"the search of DPMeans {_excess_in_words(rows, names, SEARCH)}",
        ),
        Claim(
            "The number of clusters can be chosen by a price for each",
            "model selection",
            exact(all(low < high for low, high in spans.values())),
            f"prices at which the true number is the best: {words}",
        ),
    ]
