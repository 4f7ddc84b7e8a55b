"""Power k-means with bounds that leave distances out, and without, in 2 to 100 dimensions."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.apart import shortcuts_taken
from powermeans import PowerKMeans
from powermeans.types import FloatArray
from reproduce.drawn_data import make_gaussian_clusters
from reproduce.item import Cell, Claim, Findings, Row, Rows, Table, Verdict, grid
from reproduce.rows import Figure, column, groups, kinds, mean_and_error, where
from reproduce.tables import median, table
from reproduce.trials import LLOYD, Method, draw_seeds, lloyd, power_from, published
from reproduce.verdicts import above, across, exact

TITLE = "Geometric acceleration: sweeps that leave distances out, d = 2 to 100"
SOURCE = "Xu & Lange 2019, section 5, as an open direction; the data sets of Tables 1 and 2"
DATA = "as published: and ten times as many points"

FEATURES = (2, 10, 20, 50, 100)
N_CLUSTERS = 50
STARTS = (-3.0, -18.0)
POWERS = tuple(map(power_from, STARTS))
METHODS = (lloyd(), *map(published, STARTS))
TURNS = (True, False, False, True)
"""Whether bounds are used: in this order, so that drift of the machine falls on both alike."""


def cells(quick: bool) -> Sequence[Cell]:
    if quick:
        return grid(both_ways, points=2_500, features=FEATURES[:2], data_set=range(2))
    return [
        *grid(both_ways, points=2_500, features=FEATURES, data_set=range(6)),
        *grid(both_ways, points=25_000, features=FEATURES, data_set=range(3)),
    ]


def both_ways(points: int, features: int, data_set: int) -> list[Row]:
    """Processor time of all methods from the same k-means++ seeds, on one thread."""
    drawn = make_gaussian_clusters(points, N_CLUSTERS, features, random_state=1000 + data_set)
    whole = np.asarray(drawn.points, dtype=np.float64)
    with threadpool_limits(1):
        seeds = draw_seeds(whole, N_CLUSTERS, "D²", data_set)
        return [row for each in METHODS for row in timed_both_ways(each, whole, seeds, data_set)]


def timed_both_ways(
    method: Method, points: FloatArray, seeds: FloatArray, number: int
) -> list[Row]:
    """A row for each pair of neighbouring turns, one with bounds and one without."""
    runs: dict[bool, list[tuple[float, PowerKMeans]]] = {True: [], False: []}
    for with_bounds in TURNS:
        with shortcuts_taken(with_bounds):
            started = time.process_time()
            model = method.fit(points, seeds, number)
            runs[with_bounds].append((time.process_time() - started, model))
    return [
        {
            "method": method.name,
            "seconds": seconds,
            "full_seconds": full_seconds,
            "skipped": float(model.spent_.skipped),
            "sweeps": int(model.n_iter_),
            "difference": abs(model.inertia_ / full.inertia_ - 1),
        }
        for (seconds, model), (full_seconds, full) in zip(runs[True], runs[False], strict=True)
    ]


def findings(rows: Rows) -> Findings:
    skipped = column(where(rows, method=LLOYD), "skipped")
    return Findings(
        tables=[_table(where(rows, points=n), n) for n in kinds(rows, "points")],
        claims=[_claim(rows)],
        remarks=[
            "Times are those of the processor, on one thread, and each fit is made with bounds "
            "and without in turns, since other work ran on the machine. Without bounds is with "
            "POWERMEANS_SHORTCUTS=0: every point is compared with every center.",
            "With bounds and without, the sums of squares differ by at most "
            f"{max(column(rows, 'difference')):.1e} of themselves. In Lloyd's algorithm the same "
            f"bounds leave out {min(skipped):.0%} to {max(skipped):.0%} of the distances: there a "
            "point needs only its nearest center, while at the first powers all centers have "
            "weight. Where annealed sweeps leave no distance out, what they still gain comes from "
            "weights below a rounding of the sums, which are left out.",
        ],
    )


def gain(rows: Rows) -> Figure:
    """The logarithm of how many times longer fits take without bounds, and its error over sets."""
    full, fast = median("full_seconds"), median("seconds")
    by_set = groups(rows, "data_set").values()
    return mean_and_error([math.log(full(of_set) / fast(of_set)) for of_set in by_set])


def verdict_of(rows: Rows) -> Verdict:
    """Whether bounds leave distances out, and time with them."""
    return above(*gain(rows)) if any(column(rows, "skipped")) else exact(False)


def _claim(rows: Rows) -> Claim:
    annealed = [row for row in rows if row["method"] in POWERS]
    words: dict[tuple[object, object], list[str]] = {}
    for (n_points, method, d), chosen in groups(annealed, "points", "method", "features").items():
        log, error = gain(chosen)
        low, high = math.exp(log - 2 * error), math.exp(log + 2 * error)
        words.setdefault((n_points, method), []).append(
            f"d = {d} {math.exp(log):.2f} ({low:.2f} to {high:.2f}; "
            f"{median('skipped')(chosen):.0%})"
        )
    said = [f"With {n} points and {m}: {', '.join(each)}." for (n, m), each in words.items()]
    with_some, with_none = [], []
    for d in kinds(annealed, "features"):
        leaves_out = any(column(where(annealed, features=d), "skipped"))
        (with_some if leaves_out else with_none).append(str(d))
    return Claim(
        "Geometric acceleration may further improve performance (Gaussian clusters).",
        "Xu & Lange 2019, section 5, as an open direction",
        across(map(verdict_of, groups(annealed, "points", "method", "features").values())),
        "How many times longer a fit without bounds takes, in parentheses the range of two "
        f"standard errors and the distances left out. {' '.join(said)}",
        on=f"the dimension: bounds leave distances out at d = {', '.join(with_some) or 'none'}, "
        f"and none at d = {', '.join(with_none)}",
        in_short="bounds make sweeps faster",
    )


def _table(rows: Rows, n_points: object) -> Table:
    return table(
        f"n = {n_points}, k = {N_CLUSTERS}: medians over {len(kinds(rows, 'data_set'))} data sets",
        rows,
        {"features": "d", "method": "method"},
        [
            ("sweeps", lambda of: f"{median('sweeps')(of):g}"),
            ("distances left out", median("skipped")),
            ("CPU s without bounds", median("full_seconds")),
            ("CPU s with", median("seconds")),
            ("times faster", lambda of: math.exp(gain(of)[0])),
            ("that bounds pay", verdict_of),
        ],
    )
