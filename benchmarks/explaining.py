"""What rules cost, how fast queries label rows, and whether clusters keep their numbers.

`--exkmc` names the Python of an environment with ExKMC, which does not build on present ones.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.tree import DecisionTreeClassifier

from benchmarks import machine
from benchmarks.pages import Page, as_markdown, as_text
from powermeans import KMeans, PowerKMeans, explain, match_labels, refit, to_sql
from powermeans.datasets import load_data_set
from powermeans.types import FloatArray, Labels

PAGE = Page("project/measurements", "python -m benchmarks.explaining prices")
TABLES = {"iris": 3, "wine": 3, "glass": 6, "segmentation": 7, "pendigits": 10, "mice_protein": 8}
TABLES |= {"bridge": 16, "a3": 50, "mnist_test": 10, "skin": 8}
_EXKMC = """
import sys, time, numpy as np
from sklearn.cluster import KMeans
from ExKMC.Tree import Tree
given = np.load(sys.argv[1])
X, centers = given["X"], given["centers"]
model = KMeans(len(centers), init=centers, n_init=1, max_iter=1).fit(X)
model.cluster_centers_ = centers
start = time.process_time()
tree = Tree(len(centers), max_leaves=int(sys.argv[2]))
tree.fit(X, model)
labels = tree.predict(X).astype(int)
print(((X - centers[labels]) ** 2).sum(), time.process_time() - start)
"""


def points_of(name: str) -> FloatArray:
    X = np.asarray(load_data_set(name).points, dtype=np.float64)
    X = X[~np.isnan(X).any(axis=1)]
    apart = X[:, X.std(axis=0) > 0]
    return X if name in ("a3", "mnist_test", "bridge") else apart / apart.std(axis=0)


def plain_labels(model: PowerKMeans, X: FloatArray, n_leaves: int) -> Labels:
    """A plain tree on the labels of all rows, with its own labels of the leaves."""
    tree = DecisionTreeClassifier(max_leaf_nodes=n_leaves, random_state=0)
    return np.asarray(tree.fit(X, model.labels_).predict(X))


def exkmc_price(
    python: str, model: PowerKMeans, X: FloatArray, n_leaves: int
) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "given.npz"
        np.savez(file, X=X, centers=model.cluster_centers_)
        command = [python, "-W", "ignore", "-c", _EXKMC, str(file), str(n_leaves)]
        ended = subprocess.run(command, capture_output=True, text=True, check=True)
    cost, seconds = map(float, ended.stdout.split())
    return cost / model.inertia_ - 1, seconds


def prices(exkmc: str | None) -> None:
    """Write the prices of three trees into the page."""
    heads = ["table (rows × columns, k)", "`explain`", "plain tree", "ExKMC", "labels unchanged"]
    rows, spent, theirs_spent = [heads], 0.0, 0.0
    for name, k in TABLES.items():
        X = points_of(name)
        model = PowerKMeans(k, effort="fast", random_state=0).fit(X)
        cells: list[list[str]] = [[], [], [], []]
        for n_leaves in (k, 2 * k, 4 * k):
            start = time.process_time()
            found = explain(model, X, n_leaves=n_leaves)
            spent += time.process_time() - start
            plain = plain_labels(model, X, n_leaves)
            paid = float(np.square(X - model.cluster_centers_[plain]).sum())
            price, seconds = exkmc_price(exkmc, model, X, n_leaves) if exkmc else (np.nan, 0.0)
            theirs_spent += seconds
            figures = found.price, paid / model.inertia_ - 1, price
            for cell, figure in zip(cells, figures, strict=False):
                cell.append(f"{abs(100 * figure):.1f}" if figure == figure else "–")
            cells[3].append(f"{100 * found.kept:.0f}")
        shape = f"{name} ({len(X):,} × {X.shape[1]}, {k})"
        rows.append([shape, *(", ".join(cell) for cell in cells)])
        print(rows[-1], f"{spent:.1f} s, ExKMC {theirs_spent:.1f} s", flush=True)
    where = f"Measured {datetime.date.today()} on one core of {machine.processor()}"
    others = ", with ExKMC 0.0.3 under Python 3.8" if exkmc else ""
    PAGE.write(f"{where}{others}.\n\n{as_markdown(rows)}")


def million() -> tuple[KMeans, FloatArray]:
    X, _, centers = make_blobs(
        1_000_000, 20, centers=10, cluster_std=4.0, random_state=0, return_centers=True
    )
    return KMeans.from_centers(centers), X


def seconds() -> None:
    model, X = million()
    for n_leaves in (10, 20, 40, "auto"):
        start = time.process_time()
        found = explain(model, X, n_leaves=n_leaves)  # type: ignore[arg-type]
        print(f"n_leaves={n_leaves}: {time.process_time() - start:.2f} s; {found.sentence}")


def queries() -> None:
    import duckdb
    import pyarrow as pa

    model, X = million()
    names = [f"x{i}" for i in range(X.shape[1])]
    start = time.process_time()
    labels = model.predict(X)
    print(f"predict: {time.process_time() - start:.2f} s")
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        table = pa.table(
            {name: np.ascontiguousarray(column) for name, column in zip(names, X.T, strict=True)}
        )
        connection.register("given", table)
        connection.execute("CREATE TABLE points AS SELECT * FROM given")
        rules = explain(model, X)
        asked = {
            "to_sql": (to_sql(model, names), labels),
            "rules": (rules.to_sql("points", columns=names), rules.predict(X)),
        }
        for name, (query, expected) in asked.items():
            start = time.process_time()
            found = connection.execute(f"SELECT cluster FROM ({query})").fetchnumpy()["cluster"]
            took = time.process_time() - start
            print(f"DuckDB, {name}: {took:.2f} s, {int(np.sum(found != expected))} labels differ")


def month_after_month(seed: int, drift: float, k: int = 8) -> list[tuple[FloatArray, Labels]]:
    """Twelve months of groups that drift, grow and shrink; one dies in June and one is born."""
    rng = np.random.default_rng(seed)
    centers, months = rng.normal(0, 4, (k + 1, 4)), []
    sizes = rng.integers(100, 600, k + 1)
    for month in range(12):
        alive = np.arange(k + 1) != (k if month < 6 else 0)
        counts = np.where(alive, sizes * rng.uniform(0.8, 1.25, k + 1), 0).astype(int)
        truth = np.repeat(np.arange(k + 1), counts)
        months.append((centers[truth] + rng.normal(0, 1, (len(truth), 4)), truth))
        centers = centers + drift * rng.normal(0, 1, centers.shape) / 2
    return months


def kept_numbers() -> None:
    """Count rows of a group whose number is that of the group in the month before."""
    rows = [["drift", "plain refit", "match_labels", "refit", "inertia of refit"]]
    for drift in (0.0, 0.2, 0.5, 1.0):
        shares: dict[str, list[float]] = {"plain": [], "matched": [], "refit": []}
        excess = []
        for seed in range(10):
            months = month_after_month(seed, drift)
            first = PowerKMeans(8, random_state=0).fit(months[0][0])
            models = dict.fromkeys(shares, first)
            for (X_before, truth_before), (X, truth) in itertools.pairwise(months):
                # As in practice, nobody sets the same seed and order of rows each month.
                fresh = clone(first).set_params(random_state=seed + len(excess)).fit(X)
                after = {
                    "plain": fresh,
                    "matched": match_labels(fresh, models["matched"]),
                    "refit": refit(models["refit"], X),
                }
                for name, model in after.items():
                    shares[name].append(
                        _same_number(
                            models[name].predict(X_before), truth_before, model.predict(X), truth
                        )
                    )
                excess.append(after["refit"].inertia_ / fresh.inertia_ - 1)
                models = after
        figures = [f"{100 * np.mean(each):.1f} %" for each in shares.values()]
        rows.append([f"{drift}", *figures, f"{100 * np.mean(excess):+.2f} %"])
    print(as_text(rows))


def _same_number(before: Labels, truth_before: Labels, now: Labels, truth: Labels) -> float:
    """Return the share of rows whose number is the main one of their group a month ago.

    Groups that are there in both months count.
    """
    groups = np.intersect1d(truth_before, truth)
    main = {group: np.bincount(before[truth_before == group]).argmax() for group in groups}
    counted = np.isin(truth, groups)
    return float(
        np.mean([main[g] == label for g, label in zip(truth[counted], now[counted], strict=True)])
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("prices", "seconds", "queries", "months"))
    parser.add_argument("--exkmc", metavar="PYTHON")
    arguments = parser.parse_args()
    match arguments.what:
        case "prices":
            prices(arguments.exkmc)
        case "seconds":
            seconds()
        case "queries":
            queries()
        case "months":
            kept_numbers()


if __name__ == "__main__":
    main()
