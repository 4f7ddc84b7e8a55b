"""What holds for estimators of every kind before a fit: errors name the parameter."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from powermeans import (
    DPMeans,
    EntropyWeightedPowerKMeans,
    FuzzyCMeans,
    GradientKMeans,
    KernelPowerKMeans,
    KHarmonicMeans,
    KMeans,
    MaxSeconds,
    MiniBatchPowerKMeans,
    OnlineKMeans,
    PowerKMeans,
    RobustPowerKMeans,
    SelfOrganizingMap,
    SphericalMixture,
)

POINTS = np.random.default_rng(0).normal(size=(200, 2))
NAN, INF = math.nan, math.inf
OF_CENTERS = [
    ("n_clusters", [0, -1, 3.0]),
    ("init", ["k-means", np.ones((2, 2)), np.ones((3, 5)), np.full((3, 2), NAN)]),
    ("init", [lambda X, n_clusters, random_state: X[:2]]),
    ("n_init", [0]),
    ("max_iter", [0]),
    ("tol", [-1e-3, NAN]),
    ("random_state", ["a"]),
]
# An estimator, its parameter, values; then what the error says where that is more than the name.
REFUSED: list[tuple[Any, ...]] = [
    *((kind(3, random_state=0), *of) for kind in (KMeans, PowerKMeans) for of in OF_CENTERS),
    (PowerKMeans(3), "power", [0, 0.0, 0.5, 1, 2, NAN, INF, "automatic", None]),
    (PowerKMeans(3), "schedule", [1, 1.0, 0.9, -2, NAN, INF, "fast", None]),
    (PowerKMeans(3), "schedule", [[], [1.0], [-1, -2, 3.0], [NAN], iter([-1.0])]),
    (PowerKMeans(3), "n_threads", [0, 1.5, "all", True]),
    (PowerKMeans(3), "divergence", ["chebyshev"], r"'mahalanobis'.*Got 'chebyshev'"),
    (PowerKMeans(3), "polish", ["yes"]),
    (PowerKMeans(3), "callback", ["print"]),
    (PowerKMeans(3), "stop", [0.1, "LabelsSettled", MaxSeconds], "'stop' parameter"),
    (FuzzyCMeans(2), "fuzzifier", [1.0, 0.5, NAN, 100.0]),
    (KHarmonicMeans(2), "p", [0, -1.0, "two", 50.1, 1000.0, INF], "'p' parameter"),
    (SphericalMixture(2), "variance", [0.0, -1.0, INF, "fixed", 1.7e308], "'variance' parameter"),
    (SphericalMixture(2), "shares", [[0.5, 0.5]], "'shares' parameter"),
    (SphericalMixture(2), "temperature", [0, "hot"], "'temperature' parameter"),
    (SphericalMixture(2), "init", ["kmeans"], "'init' parameter"),
    (SphericalMixture(2), "init", [[[1.0, 2.0]]], "init has 1 rows but n_clusters=2"),
    (SphericalMixture(), "n_clusters", [0], "'n_clusters' parameter"),
    (SphericalMixture(2), "tol", [-1], "'tol' parameter"),
    (DPMeans(), "penalty", [0, 0.0, -1.0, NAN, INF, "from k", None], "'penalty' parameter of"),
    (DPMeans(), "n_clusters_wanted", [0, 2.5, "three"], "'n_clusters_wanted' parameter of"),
    (EntropyWeightedPowerKMeans(2), "penalty", [0, -1.0]),
    (GradientKMeans(4), "learning_rate", [-0.1, NAN, INF, "fast", lambda t: -1.0]),
    (KernelPowerKMeans(2), "kernel", ["no such", 3]),
    (KernelPowerKMeans(2), "gamma", [-1.0, "auto"]),
    (KernelPowerKMeans(2), "n_landmarks", [0]),
    (KernelPowerKMeans(2), "degree", [-1]),
    (KernelPowerKMeans(2), "init", [np.zeros((2, 2))]),
    (RobustPowerKMeans(2), "trim", [-0.1, 1.0, 1.5, NAN, "some", None], "'trim' parameter"),
    (RobustPowerKMeans(2), "divergence", ["manhattan", "mahalanobis"], "divergence='ma"),
    (SelfOrganizingMap(), "shape", [(0, 3)], r"shape=\(0, 3\) must be two whole numbers"),
    (SelfOrganizingMap(), "shape", [(2.5, 3), (2, 3, 4)], "must be two whole numbers"),
    (SelfOrganizingMap(), "shape", [7], "'shape' parameter"),
    (SelfOrganizingMap(), "topology", ["torus"], "'topology' parameter"),
    (SelfOrganizingMap(), "radius", [0.0], "'radius' parameter"),
    (SelfOrganizingMap(), "radius", [0.2], r"radius=0.2 is less than final_radius=0.5"),
    (SelfOrganizingMap(), "final_radius", [-1.0], "'final_radius' parameter"),
    (SelfOrganizingMap(), "n_epochs", [0], "'n_epochs' parameter"),
    (SelfOrganizingMap(), "init", [np.zeros((3, 2))], "init has 3 rows"),
    (SelfOrganizingMap(), "init", ["linear"], "'init' parameter"),
    (MiniBatchPowerKMeans(12), "batch_size", [0]),
    (MiniBatchPowerKMeans(12), "max_iter", [0]),
    (MiniBatchPowerKMeans(12), "power", [1.0, "soft"]),
    (MiniBatchPowerKMeans(12), "growth", [1.0]),
    (MiniBatchPowerKMeans(12), "memory", [0.0]),
    (MiniBatchPowerKMeans(12), "reassignment_ratio", [-1.0]),
    (MiniBatchPowerKMeans(12), "init_size", [3], "init_size=3 is less than n_clusters=12"),
    (MiniBatchPowerKMeans(12), "init", [np.zeros((3, 2))], "n_clusters=12"),
    (OnlineKMeans(4), "learning_rate", [-0.1, 1.1, NAN, "slow"]),
    (OnlineKMeans(4), "learning_rate", [lambda t: 2.0], "2.0 at step 1"),
    (OnlineKMeans(4), "learning_rate", [True], "learning_rate=True is unknown"),
    (OnlineKMeans(4), "learning_rate", [lambda t: "a"], "learning_rate is 'a' at step 1:"),
    (OnlineKMeans(4), "learning_rate", [[0.5] * 200], "'learning_rate' parameter"),
    (OnlineKMeans(4), "learning_rate", [lambda t: np.ones(2)], r"is array\(\[1., 1.\]\) at step 1"),
    (OnlineKMeans(4), "n_epochs", [0]),
    (OnlineKMeans(4), "batch", ["yes"]),
    (OnlineKMeans(4), "init", [np.zeros((3, 2))], "n_clusters=4"),
    (OnlineKMeans(4), "init_size", [0]),
]  # fmt: skip


def refused() -> Iterator[Any]:
    for estimator, parameter, values, *message in REFUSED:
        name = f"{type(estimator).__name__} {parameter}"
        for value in values:
            yield pytest.param(estimator, parameter, value, *(message or [parameter]), id=name)


@pytest.mark.parametrize(("estimator", "parameter", "value", "message"), list(refused()))
def test_a_parameter_that_cannot_be_used_is_named(estimator, parameter, value, message):
    with pytest.raises(ValueError, match=message):
        clone(estimator).set_params(**{parameter: value}).fit(POINTS)
