"""Trials on the Gaussian clusters of Xu & Lange 2019: matched starts, ratios and agreement."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from powermeans import KMeans
from powermeans.datasets import DataSet
from powermeans.metrics import quality_ratio, variation_of_information
from powermeans.types import FloatArray, Labels, Points
from reproduce.drawn_data import make_gaussian_clusters
from reproduce.item import Row, Value
from reproduce.matched_starts import Method, Seeding, agreement, draw_seeds

Sizes = Literal["equal", "drawn"]
N_CLUSTERS = 50


def gaussians(n_features: int, number: int, sizes: Sizes = "equal") -> DataSet:
    """The data set of this number, which is the same for all methods and seedings."""
    return make_gaussian_clusters(n_features=n_features, sizes=sizes, random_state=1000 + number)


def trials(
    methods: Sequence[Method],
    n_features: int,
    seeding: Seeding,
    numbers: range,
    sizes: Sizes = "equal",
) -> list[Row]:
    """Each method on each data set from the same seeds; see `scores`."""
    rows: list[Row] = []
    for number in numbers:
        drawn = gaussians(n_features, number, sizes)
        # So few points are not worth a second thread.
        with threadpool_limits(1):
            seeds = draw_seeds(drawn.points, N_CLUSTERS, seeding, number)
            reference = reference_of(drawn)
            for method in methods:
                figures = scores(method, drawn.points, reference, seeds, number)
                rows.append({"data_set": number, "method": method.name, **figures})
    return rows


@dataclass(frozen=True, slots=True)
class Reference:
    """What a solution is measured against.

    Attributes
    ----------
    optimal : (n_clusters, n_features)
        The paper's optimal centers: Lloyd's algorithm started at the true ones.
    drawn_from, nearest, nearest_optimal : (n_points,)
        Three sets of labels: the cluster that a point was drawn from, that of the nearest true
        center, and that of the nearest optimal one.
    """

    optimal: FloatArray
    drawn_from: Labels
    nearest: Labels
    nearest_optimal: Labels


def reference_of(drawn: DataSet) -> Reference:
    """The optimal centers and the labels of a data set with known centers."""
    assert drawn.labels is not None
    assert drawn.centers is not None
    model = KMeans(N_CLUSTERS, init=drawn.centers, n_init=1, max_iter=1000, tol=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(drawn.points)
    nearest = KMeans.from_centers(drawn.centers).predict(drawn.points)
    optimal = np.asarray(model.cluster_centers_, np.float64)
    return Reference(optimal, drawn.labels, nearest, model.labels_)


def scores(
    method: Method, points: Points, reference: Reference, seeds: Points, seed: int
) -> dict[str, Value]:
    """How a method did: root ratios of both forms, agreement with the references, and sweeps."""
    model = method.fit(points, seeds, seed)
    centers = np.asarray(model.cluster_centers_, np.float64)
    return {
        "ratio": quality_ratio(points, centers, reference.optimal, form="unsquared"),
        "ratio_squared": quality_ratio(points, centers, reference.optimal, form="squared"),
        **agreement(reference.drawn_from, model.labels_),
        "VI_nearest": variation_of_information(reference.nearest, model.labels_),
        "VI_optimal": variation_of_information(reference.nearest_optimal, model.labels_),
        "sweeps": int(model.n_iter_),
    }
