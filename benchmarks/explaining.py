"""What rules for clusters cost, compared with other trees.

`--exkmc` names the Python of an environment with ExKMC, which does not build on present ones.
"""

from __future__ import annotations

import argparse
import datetime
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from benchmarks import machine
from benchmarks.pages import Page, as_markdown
from powermeans import PowerKMeans, explain
from powermeans.datasets import load_data_set
from powermeans.types import FloatArray, Labels

PAGE = Page("project/measurements", "python -m benchmarks.explaining")
TABLES = {"iris": 3, "wine": 3, "glass": 6, "segmentation": 7, "pendigits": 10, "mice_protein": 8}
TABLES |= {"bridge": 16, "a3": 50, "mnist_test": 10, "skin": 8}
_EXKMC = """
import sys, numpy as np
from sklearn.cluster import KMeans
from ExKMC.Tree import Tree
given = np.load(sys.argv[1])
X, centers = given["X"], given["centers"]
model = KMeans(len(centers), init=centers, n_init=1, max_iter=1).fit(X)
model.cluster_centers_ = centers
tree = Tree(len(centers), max_leaves=int(sys.argv[2]))
tree.fit(X, model)
labels = tree.predict(X).astype(int)
print(((X - centers[labels]) ** 2).sum())
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


def exkmc_price(python: str, model: PowerKMeans, X: FloatArray, n_leaves: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "given.npz"
        np.savez(file, X=X, centers=model.cluster_centers_)
        command = [python, "-W", "ignore", "-c", _EXKMC, str(file), str(n_leaves)]
        ended = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(ended.stdout) / model.inertia_ - 1


def prices(exkmc: str | None) -> None:
    """Write the prices of three trees into the page."""
    heads = ["table (rows × columns, k)", "`explain`", "plain tree", "ExKMC", "labels unchanged"]
    rows = [heads]
    for name, k in TABLES.items():
        X = points_of(name)
        model = PowerKMeans(k, effort="fast", random_state=0).fit(X)
        cells: list[list[str]] = [[], [], [], []]
        for n_leaves in (k, 2 * k, 4 * k):
            found = explain(model, X, n_leaves=n_leaves)
            plain = plain_labels(model, X, n_leaves)
            paid = float(np.square(X - model.cluster_centers_[plain]).sum())
            price = exkmc_price(exkmc, model, X, n_leaves) if exkmc else np.nan
            figures = found.price, paid / model.inertia_ - 1, price
            for cell, figure in zip(cells, figures, strict=False):
                cell.append(f"{abs(100 * figure):.1f}" if figure == figure else "–")
            cells[3].append(f"{100 * found.kept:.0f}")
        shape = f"{name} ({len(X):,} × {X.shape[1]}, {k})"
        rows.append([shape, *(", ".join(cell) for cell in cells)])
        print(rows[-1], flush=True)
    where = f"Measured {datetime.date.today()} on one core of {machine.processor()}"
    others = ", with ExKMC 0.0.3 under Python 3.8" if exkmc else ""
    PAGE.write(f"{where}{others}.\n\n{as_markdown(rows)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--exkmc", metavar="PYTHON")
    prices(parser.parse_args().exkmc)


if __name__ == "__main__":
    main()
