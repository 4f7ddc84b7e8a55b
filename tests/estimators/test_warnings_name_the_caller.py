"""A warning of a fit is about the line that called the package, whichever method that is."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import powermeans as pm
from powermeans.errors import warn_caller

POINTS = np.random.default_rng(0).normal(size=(60, 3))
COPIES = np.repeat(POINTS[:2], 10, axis=0)
INDEFINITE = np.array([[0.0, 1.0], [1.0, 0.0]])
MANY_STEPS = {"n_clusters": 5, "max_iter": 1, "random_state": 0}
CASES: list[tuple[Any, Any]] = [
    (pm.KMeans(4), COPIES),
    (pm.KMeans(2), pd.DataFrame(POINTS * [1.0, 1.0, 1e6])),
    (pm.KMeans(2, init=POINTS[:2], n_init=3), POINTS),
    (pm.KMeans(1, algorithm="elkan"), POINTS),
    (pm.PowerKMeans(4), COPIES),
    (pm.PowerKMeans(**MANY_STEPS, effort="none"), POINTS),
    (pm.PowerKMeans(2, init=POINTS[:2], n_init=3), POINTS),
    (pm.RobustPowerKMeans(**MANY_STEPS, effort="none"), POINTS),
    (pm.KHarmonicMeans(**MANY_STEPS), POINTS),
    (pm.FuzzyCMeans(**MANY_STEPS), POINTS),
    (pm.GradientKMeans(**MANY_STEPS), POINTS),
    (pm.EntropyWeightedPowerKMeans(4), COPIES),
    (pm.SphericalMixture(**MANY_STEPS), POINTS),
    (pm.DPMeans(n_clusters_wanted=5), COPIES),
    (pm.OnlineKMeans(4), COPIES),
    (pm.MiniBatchPowerKMeans(4), COPIES),
    (pm.KernelPowerKMeans(2, kernel="precomputed"), INDEFINITE),
    (make_pipeline(StandardScaler(), pm.KMeans(4)), COPIES),
]


def warned(call: Callable[[Any], object], X: Any) -> set[str]:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        call(X)
    return {warning.filename for warning in told}


@pytest.mark.parametrize("method", ["fit", "fit_predict", "fit_transform"])
@pytest.mark.parametrize(("model", "points"), CASES)
def test_a_warning_names_the_line_of_the_caller(model: Any, points: Any, method: str) -> None:
    assert warned(getattr(model, method), points) == {__file__}


def test_a_function_names_the_line_of_its_caller() -> None:
    assert warned(lambda X: pm.k_means(X, 4), COPIES) == {__file__}


def test_only_the_package_and_scikit_learn_are_passed_over() -> None:
    scope: dict[str, Any] = {"__name__": "powermeans_of_another", "warn_caller": warn_caller}
    exec(compile("def act(_): warn_caller('note', UserWarning)", "other.py", "exec"), scope)
    assert warned(scope["act"], None) == {"other.py"}
