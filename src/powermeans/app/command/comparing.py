"""``powermeans compare``."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import sklearn.cluster

from powermeans.app.command import failures
from powermeans.app.command.data_files import (
    DataFiles,
    FitData,
    Scale,
    notes_on,
    read_scaled,
    tell_notes,
)
from powermeans.app.command.screen import Screen, counted, number, seconds, waiting_for
from powermeans.estimators.kmeans import KMeans
from powermeans.estimators.power_kmeans import PowerKMeans
from powermeans.metrics import adjusted_rand_index
from powermeans.points.opening import open_rows
from powermeans.types import FloatArray, Labels, Points

Fit = Callable[[Points, FloatArray | None], Any]


def compare(
    files: DataFiles,
    n_clusters: int,
    *,
    seed: int,
    scale: Scale,
    is_quiet: bool,
    screen: Screen,
) -> None:
    """Compare our methods, and those of other installed packages, on the same data."""
    with waiting_for(f"reading {files.name}", is_quiet=is_quiet):
        data = read_scaled(files, scale, n_clusters, "--clusters")
    has_missing = bool(np.isnan(data.points).any())
    methods = list(_ours(n_clusters, seed, missing="observed" if has_missing else "error"))
    if not has_missing:
        methods.extend(_theirs(n_clusters, seed))
    found, labels = list[dict[str, Any]](), list[Labels]()
    for place, (method, fit) in enumerate(methods, start=1):
        what = f"{place} of {len(methods)}: {method}"
        with waiting_for(what, is_quiet=is_quiet), failures.refusing():
            own_labels, inertia, elapsed = _timed(fit, data, has_missing=has_missing)
        labels.append(own_labels)
        found.append({"method": method, "inertia": inertia, "seconds": elapsed})
    best = min(range(len(found)), key=lambda place: found[place]["inertia"])
    for one, own_labels in zip(found, labels, strict=True):
        least = found[best]["inertia"]
        one["excess"] = one["inertia"] / least - 1 if least > 0 else 0.0
        one["agreement"] = adjusted_rand_index(labels[best], own_labels)
    _tell(found, files, data, n_clusters, screen)
    if has_missing:
        screen.say("scikit-learn and faiss are left out: they take no missing values")


def _ours(n_clusters: int, seed: int, missing: str) -> Iterator[tuple[str, Fit]]:
    """Yield our methods, as names and functions that return centers."""
    centers = partial(_centers_of, n_clusters=n_clusters, seed=seed, missing=missing)
    for effort in ("fast", "balanced", "thorough"):
        yield f"powermeans {effort}", centers(PowerKMeans, effort=effort)
    yield "powermeans Lloyd", centers(KMeans)
    yield "powermeans Lloyd, best of 10", centers(KMeans, n_init=10)


def _theirs(n_clusters: int, seed: int) -> Iterator[tuple[str, Fit]]:
    """Yield the methods of other packages, which take no missing values."""
    centers, theirs = partial(_centers_of, n_clusters=n_clusters, seed=seed), sklearn.cluster
    yield "scikit-learn KMeans", centers(theirs.KMeans, n_init=1)
    yield "scikit-learn KMeans, best of 10", centers(theirs.KMeans, n_init=10)
    yield "scikit-learn MiniBatchKMeans", centers(theirs.MiniBatchKMeans, n_init=3)
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


def _timed(fit: Fit, data: FitData, *, has_missing: bool) -> tuple[Labels, float, float]:
    """Time a fit after a warm-up, and compute labels and inertia from its centers.

    All methods are thus judged by the same float64 distances.
    """
    points, weights = data.points, data.weights
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(ValueError):
            fit(points[:2_000], None)
        started = time.perf_counter()
        centers = np.asarray(fit(points, weights), dtype=np.float64)
        elapsed = time.perf_counter() - started
    labels, inertia = open_rows(points, weights, has_missing=has_missing).assign(centers)
    return labels, inertia, elapsed


def _tell(
    methods: list[dict[str, Any]],
    files: DataFiles,
    data: FitData,
    n_clusters: int,
    screen: Screen,
) -> None:
    n_rows, n_columns = data.points.shape
    screen.say(
        f"{counted(n_clusters, 'cluster')} of {counted(n_rows, 'row')} and "
        f"{counted(n_columns, 'column')} of {files.name}"
    )
    tell_notes(screen, [*notes_on(data)], data, is_verbose=False)
    screen.say()
    rows = [
        [
            found["method"],
            number(found["inertia"]),
            f"{found['excess']:.2%}",
            seconds(found["seconds"]),
            f"{found['agreement']:.3f}",
        ]
        for found in methods
    ]
    screen.show(["method", "inertia", "above least", "time", "agreement"], rows, left=[0])
    screen.say("agreement: adjusted Rand index with the labels of least inertia")
    screen.tell_machines(
        {"data": files.first, "n_clusters": n_clusters, "n_rows": n_rows, "methods": methods}
    )
