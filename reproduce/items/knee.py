"""The knee of W(k)."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.spatial.distance import pdist

from powermeans import choose_k
from powermeans.types import FloatArray
from reproduce.item import Cell, Claim, Findings, Row, Rows, grid
from reproduce.rows import column, groups, kinds, mean_and_error, where
from reproduce.verdicts import above, share_and_error

TITLE = "The knee of W(k)"
SOURCE = "K. Moon, k-Means Clustering (lecture slides): model selection by the knee"
DATA = "random cases"

N_EACH = 60
SEPARATIONS = {"well apart": 12.0, "near": 6.0, "overlapping": 3.0}
"""Least distance of two centers in standard deviations of a cluster."""
CLOSE = 0.9
"""In what part of the sets the knee must be off by no more than one to be called close."""


def cells(quick: bool) -> Sequence[Cell]:
    numbers, dimensions, draws = ((3, 5), 2, 3) if quick else ((3, 5, 8, 12), (2, 8), 20)
    names = list(SEPARATIONS)
    return grid(curves, separation=names, true_k=numbers, d=dimensions, draws=draws)


def curves(separation: str, true_k: int, d: int, draws: int) -> list[Row]:
    """W for each k from one to twice the true number and a few more."""
    rows: list[Row] = []
    for draw in range(draws):
        points = clusters(true_k, d, SEPARATIONS[separation], draw)
        choice = choose_k(
            points, range(1, 2 * true_k + 4), criteria="dp_means", effort="fast", random_state=draw
        )
        sizes, inertias = choice.table["k"], choice.table["inertia"]
        rows += [
            {"draw": draw, "k": int(k), "W": float(w)} for k, w in zip(sizes, inertias, strict=True)
        ]
    return rows


def clusters(true_k: int, d: int, separation: float, draw: int) -> FloatArray:
    """Standard normal clusters whose nearest centers are this far apart."""
    rng = np.random.default_rng([draw, true_k, d])
    candidates = (rng.uniform(size=(true_k, d)) for _ in range(200))
    places = max(candidates, key=lambda centers: pdist(centers).min())
    centers = places * (separation / pdist(places).min())
    points: FloatArray = np.repeat(centers, N_EACH, axis=0)
    return points + rng.standard_normal(points.shape)


def findings(rows: Rows) -> Findings:
    return Findings(
        claims=[_claim_on_drops(rows), *(claim_on_knee(rows, name) for name in SEPARATIONS)],
        remarks=[
            f"{N_EACH} points of each cluster, standard normal; the distance of the nearest two "
            f"centers is {', '.join(f'{v:g} ({name})' for name, v in SEPARATIONS.items())}. "
            "The drop of one k is set against the next: at the true number the last one that "
            "parts two clusters is over the first that cuts one.",
        ],
    )


def drops(rows: Rows) -> FloatArray:
    """W_k - W_{k+1} over W_1 of each draw of one cell, (n_draws, n_sizes - 1)."""
    values = np.reshape(column(rows, "W"), (-1, len(kinds(rows, "k"))))
    found: FloatArray = -np.diff(values, axis=1) / values[:, :1]
    return found


def contrasts(rows: Rows, true_k: int) -> FloatArray:
    """The last drop to the true number over the first beyond it, of each draw of one cell."""
    falls = drops(rows)
    ratio: FloatArray = falls[:, true_k - 2] / falls[:, true_k - 1]
    return ratio


def by_drops(rows: Rows) -> list[float]:
    """In each draw of one cell the k after which the drops of W shrink most: as the slides say."""
    falls = np.maximum(drops(rows), 1e-9)
    return [float(k) for k in (falls[:, :-1] / falls[:, 1:]).argmax(axis=1) + 2]


def _claim_on_drops(rows: Rows) -> Claim:
    by_name: dict[str, list[float]] = {name: [] for name in SEPARATIONS}
    for (name, _, true_k), chosen in groups(rows, "separation", "d", "true_k").items():
        by_name[str(name)] += contrasts(chosen, int(true_k)).tolist()
    words = ", ".join(f"{name} {np.median(values):.1f}" for name, values in by_name.items())
    apart = by_name["well apart"]
    return Claim(
        "Below the ideal k, W falls by much with one more center, and above it by little "
        "(clusters well apart, much: twice as much)",
        "model selection",
        above(*mean_and_error(np.log(apart).tolist()), math.log(2)),
        f"median ratio of the last drop to k* to the first after it: {words}; for clusters well "
        f"apart never below {min(apart):.1f}",
    )


def claim_on_knee(rows: Rows, name: str) -> Claim:
    misses = [
        abs(k - int(true_k))
        for (true_k, _), of in groups(where(rows, separation=name), "true_k", "d").items()
        for k in by_drops(of)
    ]
    share, error = share_and_error([float(miss <= 1) for miss in misses])
    return Claim(
        f"The ideal k is close to the knee of W (clusters {name})",
        "model selection",
        above(share, error, CLOSE),
        f"Close means off by at most one in {CLOSE:.0%} of the sets. The slides name no rule; we "
        "take the k after which the drops of W shrink most. It is close in "
        f"{share:.0%} ± {error:.0%} of the sets.",
        until="several thousand draws",
    )
