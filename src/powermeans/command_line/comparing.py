"""``powermeans compare``."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn.cluster

from powermeans.command_line import failures
from powermeans.command_line.fitting import Scale, scaled
from powermeans.command_line.screen import Screen, number, seconds
from powermeans.command_line.sources import Source
from powermeans.kmeans import KMeans
from powermeans.metrics import adjusted_rand_index
from powermeans.power_kmeans import PowerKMeans
from powermeans.rows import open_rows
from powermeans.types import FloatArray, Labels, Points

_ROWS_TO_WARM_UP = 2_000

Fit = Callable[[Points, FloatArray | None], Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one method found."""

    method: str
    labels: Labels
    inertia: float
    seconds: float


def compare(source: Source, n_clusters: int, *, seed: int, scale: Scale, screen: Screen) -> None:
    """Our methods and those of other packages that are installed, on the same data."""
    table, _ = source.read()
    points, _ = scaled(table, scale)
    outcomes = []
    for method, fit in _methods(n_clusters, seed):
        with failures.refusing(failures.DATA, ValueError):
            outcomes.append(_outcome(method, fit, points, table.weights))
    _tell(outcomes, source, n_clusters, points, screen)


def _methods(n_clusters: int, seed: int) -> Iterator[tuple[str, Fit]]:
    """Names, and functions that return centers."""
    for effort in ("fast", "balanced", "thorough"):
        yield f"powermeans {effort}", _centers_of(PowerKMeans, n_clusters, seed, effort=effort)
    yield "powermeans Lloyd", _centers_of(KMeans, n_clusters, seed)
    yield "powermeans Lloyd, best of 10", _centers_of(KMeans, n_clusters, seed, n_init=10)
    theirs = sklearn.cluster
    yield "scikit-learn KMeans", _centers_of(theirs.KMeans, n_clusters, seed, n_init=1)
    yield "scikit-learn KMeans, best of 10", _centers_of(theirs.KMeans, n_clusters, seed, n_init=10)
    yield (
        "scikit-learn MiniBatchKMeans",
        _centers_of(theirs.MiniBatchKMeans, n_clusters, seed, n_init=3),
    )
    if importlib.util.find_spec("faiss") is not None:
        yield "faiss Kmeans", _centers_of_faiss(n_clusters, seed)


def _centers_of(kind: Any, n_clusters: int, seed: int, **settings: Any) -> Fit:
    def fit(points: Points, weights: FloatArray | None) -> Any:
        model = kind(n_clusters=n_clusters, random_state=seed, **settings)
        return model.fit(points, sample_weight=weights).cluster_centers_

    return fit


def _centers_of_faiss(n_clusters: int, seed: int) -> Fit:
    def fit(points: Points, weights: FloatArray | None) -> Any:
        faiss = importlib.import_module("faiss")
        n_points, n_features = points.shape
        model = faiss.Kmeans(
            n_features, n_clusters, seed=seed, min_points_per_centroid=1,
            max_points_per_centroid=n_points,
        )  # fmt: skip
        single = None if weights is None else weights.astype(np.float32)
        model.train(points.astype(np.float32), weights=single)
        return model.centroids

    return fit


def _outcome(method: str, fit: Fit, points: Points, weights: FloatArray | None) -> Outcome:
    """Everybody's labels and inertia are taken in the same way.

    What is only imported or set up once is not timed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(ValueError):
            fit(points[:_ROWS_TO_WARM_UP], None)
        started = time.perf_counter()
        centers = np.asarray(fit(points, weights), dtype=np.float64)
        elapsed = time.perf_counter() - started
    labels, inertia = open_rows(points, weights).assign(centers)
    return Outcome(method, labels, inertia, elapsed)


def _tell(
    outcomes: list[Outcome], source: Source, n_clusters: int, points: Points, screen: Screen
) -> None:
    best = min(outcomes, key=lambda outcome: outcome.inertia)
    agreements = [adjusted_rand_index(best.labels, outcome.labels) for outcome in outcomes]
    n_rows, n_columns = points.shape
    screen.say(f"{n_clusters} clusters of {n_rows} rows and {n_columns} columns of {source.name}")
    screen.say()
    screen.show(
        ["method", "inertia", "above least", "time", "agreement"],
        [
            [
                outcome.method,
                number(outcome.inertia),
                f"{_excess(outcome, best):.2%}",
                seconds(outcome.seconds),
                f"{agreement:.3f}",
            ]
            for outcome, agreement in zip(outcomes, agreements, strict=True)
        ],
        left=[0],
    )
    screen.say("agreement: adjusted Rand index with the labels of least inertia")
    screen.tell_machines(
        {
            "data": source.data,
            "n_clusters": n_clusters,
            "n_rows": n_rows,
            "methods": [
                {
                    "method": outcome.method,
                    "inertia": outcome.inertia,
                    "excess": _excess(outcome, best),
                    "seconds": outcome.seconds,
                    "agreement": agreement,
                }
                for outcome, agreement in zip(outcomes, agreements, strict=True)
            ],
        }
    )


def _excess(outcome: Outcome, best: Outcome) -> float:
    return outcome.inertia / best.inertia - 1 if best.inertia > 0 else 0.0
