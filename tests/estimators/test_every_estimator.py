"""What holds for estimators of every kind before a fit: errors name the parameter."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import powermeans as pm

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
    *((kind(3, random_state=0), *of) for kind in (pm.KMeans, pm.PowerKMeans) for of in OF_CENTERS),
    (pm.PowerKMeans(3), "power", [0, 0.0, 0.5, 1, 2, NAN, INF, "automatic", None]),
    (pm.PowerKMeans(3), "schedule", [1, 1.0, 0.9, -2, NAN, INF, "fast", None]),
    (pm.PowerKMeans(3), "schedule", [[], [1.0], [-1, -2, 3.0], [NAN], iter([-1.0])]),
    (pm.PowerKMeans(3), "n_threads", [0, 1.5, "all", True]),
    (pm.PowerKMeans(3), "divergence", ["chebyshev"], r"'mahalanobis'.*Got 'chebyshev'"),
    (pm.PowerKMeans(3), "polish", ["yes"]),
    (pm.PowerKMeans(3), "callback", ["print"]),
    (pm.PowerKMeans(3), "stop", [0.1, "LabelsSettled", pm.MaxSeconds]),
    (pm.FuzzyCMeans(2), "fuzzifier", [1.0, 0.5, NAN, 100.0]),
    (pm.KHarmonicMeans(2), "p", [0, -1.0, "two", 50.1, 1000.0, INF]),
    (pm.SphericalMixture(2), "variance", [0.0, -1.0, INF, "fixed", 1.7e308]),
    (pm.SphericalMixture(2), "shares", [[0.5, 0.5]]),
    (pm.SphericalMixture(2), "temperature", [0, "hot"]),
    (pm.SphericalMixture(2), "init", ["kmeans", [[1.0, 2.0]]]),
    (pm.SphericalMixture(2), "n_clusters", [0]),
    (pm.SphericalMixture(2), "tol", [-1]),
    (pm.DPMeans(), "penalty", [0, 0.0, -1.0, NAN, INF, "from k", None]),
    (pm.DPMeans(), "n_clusters_wanted", [0, 2.5, "three"]),
    (pm.EntropyWeightedPowerKMeans(2), "penalty", [0, -1.0]),
    (pm.GradientKMeans(4), "learning_rate", [-0.1, NAN, INF, "fast", lambda t: -1.0]),
    (pm.KernelPowerKMeans(2), "kernel", ["no such", 3]),
    (pm.KernelPowerKMeans(2), "gamma", [-1.0, "auto"]),
    (pm.KernelPowerKMeans(2), "n_landmarks", [0]),
    (pm.KernelPowerKMeans(2), "degree", [-1]),
    (pm.KernelPowerKMeans(2), "init", [np.zeros((2, 2))]),
    (pm.RobustPowerKMeans(2), "trim", [-0.1, 1.0, 1.5, NAN, "some", None]),
    (pm.RobustPowerKMeans(2), "divergence", ["manhattan", "mahalanobis"], "divergence='ma"),
    (pm.SelfOrganizingMap(), "shape", [(0, 3), (2.5, 3), (2, 3, 4), 7]),
    (pm.SelfOrganizingMap(), "topology", ["torus"]),
    (pm.SelfOrganizingMap(), "radius", [0.0, 0.2]),
    (pm.SelfOrganizingMap(), "final_radius", [-1.0]),
    (pm.SelfOrganizingMap(), "n_epochs", [0]),
    (pm.SelfOrganizingMap(), "init", [np.zeros((3, 2)), "linear"]),
    (pm.MiniBatchPowerKMeans(12), "batch_size", [0]),
    (pm.MiniBatchPowerKMeans(12), "max_iter", [0]),
    (pm.MiniBatchPowerKMeans(12), "power", [1.0, "soft"]),
    (pm.MiniBatchPowerKMeans(12), "growth", [1.0]),
    (pm.MiniBatchPowerKMeans(12), "memory", [0.0]),
    (pm.MiniBatchPowerKMeans(12), "reassignment_ratio", [-1.0]),
    (pm.MiniBatchPowerKMeans(12), "init_size", [3], "init_size=3 is less than n_clusters=12"),
    (pm.MiniBatchPowerKMeans(12), "init", [np.zeros((3, 2))], "n_clusters=12"),
    (pm.OnlineKMeans(4), "learning_rate", [-0.1, 1.1, NAN, "slow", True, [0.5] * 200]),
    (pm.OnlineKMeans(4), "learning_rate", [lambda t: 2.0], "2.0 at step 1"),
    (pm.OnlineKMeans(4), "learning_rate", [lambda t: "a"], "learning_rate is 'a' at step 1:"),
    (pm.OnlineKMeans(4), "learning_rate", [lambda t: np.ones(2)], "at step 1"),
    (pm.OnlineKMeans(4), "n_epochs", [0]),
    (pm.OnlineKMeans(4), "batch", ["yes"]),
    (pm.OnlineKMeans(4), "init", [np.zeros((3, 2))], "n_clusters=4"),
    (pm.OnlineKMeans(4), "init_size", [0]),
]  # fmt: skip


def refused() -> Iterator[Any]:
    for estimator, parameter, values, *message in REFUSED:
        name = f"{type(estimator).__name__} {parameter}"
        for value in values:
            yield pytest.param(
                estimator, parameter, value, *(message or [rf"\b{parameter}\b"]), id=name
            )


@pytest.mark.parametrize(("estimator", "parameter", "value", "message"), list(refused()))
def test_a_parameter_that_cannot_be_used_is_named(estimator, parameter, value, message):
    with pytest.raises(ValueError, match=message):
        clone(estimator).set_params(**{parameter: value}).fit(POINTS)
