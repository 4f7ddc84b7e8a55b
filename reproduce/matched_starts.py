"""Methods that begin at the same centers and stop by the same rule, and how well each did."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from powermeans import AuthorsSchedule, Fixed, PowerKMeans, kmeans_plusplus
from powermeans.metrics import (
    adjusted_rand_index,
    normalized_mutual_information,
    variation_of_information,
)
from reproduce.checks import above, paired_gain, together
from reproduce.item import Row, Value, Verdict
from reproduce.quiet_fits import fitted
from reproduce.selecting import where

Points = NDArray[Any]
Seeding = Literal["uniform", "D", "D²", "greedy"]

LLOYD = "Lloyd"
KHM = "KHM"
ONE_DESCENT = "one descent of ours"
SEARCH = "our default"
MOST_SWEEPS = 1000
# The loop of the authors' code goes on while the relative fall over √d is above this.
LEAST_FALL = 1e-7
# Of these scores, and of the excess of the sum of squares, the lower one is the better.
LESS_IS_BETTER = ("VI", "excess", "sse")
# Sweeps count as needed until the sum of squares is this near to where it ends;
NEAR_THE_END = 1e-3
# and it has settled once a sweep changes it by no more than this share of itself.
SETTLED = 1e-4


def power_from(start: float) -> str:
    """What power k-means as published is called that starts at this power."""
    return f"power, s0 = {start:g}"


def patient_from(start: float) -> str:
    """What the same is called with our rules of stopping."""
    return f"{power_from(start)}, our stop"


def authors_from(start: float) -> str:
    """What the same is called with the schedule and the loop of the authors' later code."""
    return f"{power_from(start)}, authors' code"


@dataclass(frozen=True, slots=True)
class Method:
    """A way to go on from given centers.

    Attributes
    ----------
    name : str
    params : dict
        Of `PowerKMeans`.
    takes_seeds : bool
        Whether it begins at the matched centers, or chooses its own.
    """

    name: str
    params: dict[str, Any]
    takes_seeds: bool = True

    def fit(self, points: Points, seeds: Points, seed: int) -> PowerKMeans:
        """Fit from these seeds.

        Parameters
        ----------
        points : (n_points, n_features)
        seeds : (n_clusters, n_features)
        seed : int
            Where the method draws for itself.

        Returns
        -------
        PowerKMeans
        """
        init = seeds if self.takes_seeds else "k-means++"
        model = PowerKMeans(len(seeds), init=init, random_state=seed, **self.params)
        return fitted(model, points)


def published(start: float, growth: float = 1.05) -> Method:
    """Algorithm 1 of Xu & Lange (2019), stopped by the relative change they state."""
    params = {"power": start, "schedule": growth, "polish": False, "max_iter": MOST_SWEEPS}
    return Method(power_from(start), params)


def by_authors(start: float) -> Method:
    """The schedule and the loop of the code behind the authors' later papers, without a polish."""
    params = {"schedule": AuthorsSchedule(start), "polish": False, "tol": LEAST_FALL}
    return Method(authors_from(start), {**params, "max_iter": MOST_SWEEPS})


def patient(start: float, growth: float = 1.05) -> Method:
    """The same powers with our rules of stopping: not before centers that coincided have parted."""
    params = {"power": start, "schedule": growth, "effort": "none", "max_iter": MOST_SWEEPS}
    return Method(patient_from(start), params)


def held_at(name: str, power: float) -> Method:
    """The same with a power that does not change."""
    params = {"schedule": Fixed(power), "polish": False, "max_iter": MOST_SWEEPS}
    return Method(name, params)


def lloyd() -> Method:
    """Lloyd's algorithm under the same rule of stopping."""
    return held_at(LLOYD, -math.inf)


def khm() -> Method:
    """k-harmonic means under the same rule of stopping."""
    return held_at(KHM, -1.0)


def one_descent() -> Method:
    """What this package does from given seeds without a search: annealed, then Lloyd's."""
    return Method(ONE_DESCENT, {"effort": "none", "max_iter": MOST_SWEEPS})


def search(**params: Any) -> Method:
    """What this package does by default, with seeds of its own."""
    return Method(SEARCH, params, takes_seeds=False)


def draw_seeds(points: Points, n_clusters: int, seeding: Seeding, seed: int) -> Points:
    """Points to begin at.

    Parameters
    ----------
    points : (n_points, n_features)
    n_clusters : int
    seeding : {"uniform", "D", "D²", "greedy"}
        In proportion to nothing, to the distance from the nearest seed so far, to its square
        (k-means++ as defined), or the best of several such candidates.
    seed : int

    Returns
    -------
    (n_clusters, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> from reproduce.matched_starts import draw_seeds
    >>> draw_seeds(np.arange(12.0).reshape(6, 2), 3, "D", 0).shape
    (3, 2)
    """
    if seeding == "uniform":
        chosen = np.random.default_rng(seed).choice(len(points), n_clusters, replace=False)
        return np.asarray(points[chosen])
    n_candidates = None if seeding == "greedy" else 1
    exponent = 1.0 if seeding == "D" else 2.0
    return kmeans_plusplus(
        points, n_clusters, n_local_trials=n_candidates, exponent=exponent, random_state=seed
    )[0]


def run_all(
    methods: Sequence[Method],
    points: Points,
    seeds: Points,
    truth: Points | None,
    seed: int,
) -> list[dict[str, Value]]:
    """A row for each method, all from the same seeds; who comes first changes with `seed`.

    Parameters
    ----------
    methods : sequence of Method
    points : (n_points, n_features)
    seeds : (n_clusters, n_features)
    truth : (n_points,) or None
        The labels to agree with, where there are any.
    seed : int

    Returns
    -------
    list of dict
        With `method`, `sse`, `clusters`, `iterations`, `needed`, `needed_seconds`,
        `full_seconds`, `sweep_seconds`, `settled`, `skipped` and `seconds`, and with a truth `VI`,
        `ARI` and `NMI`.
    """
    turn = seed % len(methods)
    rows = []
    for method in [*methods[turn:], *methods[:turn]]:
        started = time.perf_counter()
        model = method.fit(points, seeds, seed)
        elapsed_seconds = time.perf_counter() - started
        rows.append(
            {"method": method.name, **figures_of(model), "seconds": elapsed_seconds}
            | ({} if truth is None else agreement(truth, model.labels_))
        )
    return rows


def figures_of(model: PowerKMeans) -> dict[str, Value]:
    """The sum of squares, the clusters with points, sweeps, and the distances left out."""
    inertias = model.history_.inertia
    needed = sweeps_needed(inertias, model.inertia_)
    return {
        "sse": float(model.inertia_),
        "clusters": len(np.unique(model.labels_)),
        "iterations": int(model.n_iter_),
        "needed": needed,
        "needed_seconds": float(model.history_.seconds[:needed].sum()),
        "sweep_seconds": float(model.history_.seconds.sum()),
        "full_seconds": full_seconds(model),
        "settled": sweeps_to_settle(inertias),
        "skipped": float(model.spent_.skipped),
    }


def full_seconds(model: PowerKMeans) -> float:
    """What the sweeps would take if each computed all distances, as the first one does."""
    seconds, skipped = model.history_.seconds, model.history_.skipped
    return float(len(seconds) * np.mean(seconds[skipped <= skipped.min()]))


def sweeps_needed(inertias: Sequence[float], end: float) -> int:
    """After how many sweeps the sum of squares comes, for good, near to where it ends.

    Examples
    --------
    >>> from reproduce.matched_starts import sweeps_needed
    >>> sweeps_needed([30.0, 10.0, 20.0, 10.0001, 10.0], 10.0)
    3
    """
    is_far = np.abs(np.asarray(inertias) - end) > NEAR_THE_END * end
    return int(np.flatnonzero(is_far)[-1]) + 1 if is_far.any() else 0


def sweeps_to_settle(inertias: Sequence[float]) -> int:
    """After how many sweeps the sum of squares for the first time hardly changes in one more.

    Examples
    --------
    >>> from reproduce.matched_starts import sweeps_to_settle
    >>> sweeps_to_settle([30.0, 20.0, 10.0, 9.9999, 9.9998])
    2
    """
    before = np.asarray(inertias)
    is_small = np.abs(np.diff(before)) <= SETTLED * before[:-1]
    return int(np.argmax(is_small)) if is_small.any() else len(before)


def excesses(rows: Sequence[Row]) -> list[Row]:
    """The rows with the sum of squares above the least of them, in percent.

    Examples
    --------
    >>> from reproduce.matched_starts import excesses
    >>> [row["excess"] for row in excesses([{"sse": 4.0}, {"sse": 5.0}])]
    [0.0, 25.0]
    """
    least = min(float(row["sse"]) for row in rows)
    return [{**row, "excess": 100 * (float(row["sse"]) / least - 1)} for row in rows]


def agreement(truth: Points, labels: Points) -> dict[str, Value]:
    """The three scores of the sources."""
    return {
        "VI": variation_of_information(truth, labels),
        "ARI": adjusted_rand_index(truth, labels),
        "NMI": normalized_mutual_information(truth, labels),
    }


def scores_of(rows: Sequence[Row], method: str, score: str) -> list[float]:
    """A score of a method for each start, the mean where a start has several rows.

    Rows of one data set or one seed belong together, as they share centers or seeds.
    """
    by_start: dict[Value, list[float]] = {}
    for row in where(rows, method=method):
        start = row["data_set"] if "data_set" in row else row["seed"]
        by_start.setdefault(start, []).append(float(row[score]))
    return [math.fsum(values) / len(values) for _, values in sorted(by_start.items())]


def lead(rows: Sequence[Row], method: str, other: str, score: str) -> tuple[float, float]:
    """By how much a method is better than another from the same starts, and the error of it."""
    ours, theirs = (scores_of(rows, name, score) for name in (method, other))
    return paired_gain(theirs, ours) if score in LESS_IS_BETTER else paired_gain(ours, theirs)


def leads(
    rows: Sequence[Row], method: str, others: Sequence[str], scores: Sequence[str]
) -> Verdict:
    """Whether a method is better than all others by all scores, beyond the noise."""
    return together(
        above(*lead(rows, method, other, score)) for other in others for score in scores
    )


def said_of_lead(
    rows: Sequence[Row], method: str, others: Sequence[str], scores: Sequence[str]
) -> str:
    """The same in words."""
    return "; ".join(
        f"over {other}: "
        + ", ".join(
            "{} {:+.3f} ± {:.3f}".format(score, *lead(rows, method, other, score))
            for score in scores
        )
        for other in others
    )
