"""A warning of a fit is about the line that called the package, whichever method that is."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import powermeans as pm
from powermeans.errors import warn_caller

POINTS = np.random.default_rng(0).normal(size=(60, 3))
COPIES = np.repeat(POINTS[:2], 10, axis=0)
INDEFINITE = np.array([[0.0, 1.0], [1.0, 0.0]])
MANY_STEPS = {"n_clusters": 5, "max_iter": 1, "random_state": 0}

CASES: dict[str, tuple[Callable[[], Any], Any]] = {
    "KMeans, copies": (lambda: pm.KMeans(4), COPIES),
    "KMeans, one init": (lambda: pm.KMeans(2, init=POINTS[:2], n_init=3), POINTS),
    "KMeans, elkan": (lambda: pm.KMeans(1, algorithm="elkan"), POINTS),
    "PowerKMeans, copies": (lambda: pm.PowerKMeans(4), COPIES),
    "PowerKMeans, cut short": (lambda: pm.PowerKMeans(**MANY_STEPS, effort="none"), POINTS),
    "PowerKMeans, one init": (lambda: pm.PowerKMeans(2, init=POINTS[:2], n_init=3), POINTS),
    "RobustPowerKMeans": (lambda: pm.RobustPowerKMeans(**MANY_STEPS, effort="none"), POINTS),
    "KHarmonicMeans": (lambda: pm.KHarmonicMeans(**MANY_STEPS), POINTS),
    "FuzzyCMeans": (lambda: pm.FuzzyCMeans(**MANY_STEPS), POINTS),
    "GradientKMeans": (lambda: pm.GradientKMeans(**MANY_STEPS), POINTS),
    "EntropyWeightedPowerKMeans": (lambda: pm.EntropyWeightedPowerKMeans(4), COPIES),
    "SphericalMixture": (lambda: pm.SphericalMixture(**MANY_STEPS), POINTS),
    "DPMeans": (lambda: pm.DPMeans(n_clusters_wanted=5), COPIES),
    "OnlineKMeans": (lambda: pm.OnlineKMeans(4), COPIES),
    "MiniBatchPowerKMeans": (lambda: pm.MiniBatchPowerKMeans(4), COPIES),
    "KernelPowerKMeans": (lambda: pm.KernelPowerKMeans(2, kernel="precomputed"), INDEFINITE),
    "pipeline": (lambda: make_pipeline(StandardScaler(), pm.KMeans(4)), COPIES),
}


def warned(call: Callable[[Any], object], X: Any) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        call(X)
    return told


@pytest.mark.parametrize("method", ["fit", "fit_predict", "fit_transform"])
@pytest.mark.parametrize("name", CASES)
def test_a_warning_names_the_line_of_the_caller(name: str, method: str) -> None:
    make, points = CASES[name]
    told = warned(getattr(make(), method), points)
    assert told
    assert {warning.filename for warning in told} == {__file__}


def test_a_function_names_the_line_of_its_caller() -> None:
    told = warned(lambda X: pm.k_means(X, 4), COPIES)
    assert {warning.filename for warning in told} == {__file__}


def test_only_the_package_and_scikit_learn_are_passed_over() -> None:
    scope: dict[str, Any] = {"__name__": "powermeans_of_another", "warn_caller": warn_caller}
    exec(compile("def act(_): warn_caller('note', UserWarning)", "other.py", "exec"), scope)
    assert [warning.filename for warning in warned(scope["act"], None)] == ["other.py"]
