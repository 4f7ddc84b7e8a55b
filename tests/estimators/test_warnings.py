"""A warning is about the line that called the package, and one of scales names the columns."""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import powermeans as pm
from powermeans import KMeans, PowerKMeans, UnlikeScalesWarning
from powermeans.errors import warn_caller
from powermeans.points.checks.points import unlike_scales

POINTS = np.random.default_rng(0).normal(size=(60, 3))
COPIES = np.repeat(POINTS[:2], 10, axis=0)
INDEFINITE = np.array([[0.0, 1.0], [1.0, 0.0]])
MANY_STEPS = {"n_clusters": 5, "max_iter": 1, "random_state": 0}
CASES: list[tuple[Any, Any]] = [
    (pm.KMeans(4), COPIES),
    (pm.KMeans(2), POINTS * [1.0, 1.0, 1e6]),
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


def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"age": rng.uniform(20, 70, 200), "income": rng.uniform(2e4, 9e4, 200), "one": np.ones(200)}
    )


FITS = [
    KMeans(3, random_state=0).fit,
    PowerKMeans(3, random_state=0).fit,
    PowerKMeans(3, divergence="manhattan", random_state=0).fit,
    pm.MiniBatchPowerKMeans(3, random_state=0).fit,
    partial(pm.choose_k, k_range=range(2, 4), random_state=0),
]


@pytest.mark.parametrize("fit", FITS)
def test_a_fit_warns_once_and_names_the_columns(fit) -> None:
    with pytest.warns(UnlikeScalesWarning) as told:
        fit(people())
    assert len(told) == 1
    text = str(told[0].message)
    ratio = people()["income"].std() / people()["age"].std()
    assert f"varies {ratio:,.0f} times as much as" in text
    assert "'income'" in text or "column 1" in text


def scaled_apart(times: float) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(100, 3)) * [1.0, 1.0, times]


QUIET = {
    "scales a little apart": scaled_apart(50.0),
    "pixels": load_digits().data,
    "rare marks in the same unit": np.eye(300)[:, :2] + np.arange(300)[:, None] % 2 * [0, 1],
    "heavy tails": np.random.default_rng(5).standard_cauchy((300, 4)) ** 3,
    "one column varies": np.column_stack([np.arange(50.0), np.full(50, 7.0)]),
}


@pytest.mark.parametrize("points", QUIET.values(), ids=QUIET)
def test_columns_in_one_unit_get_no_warning(points: np.ndarray) -> None:
    PowerKMeans(2, effort="fast", random_state=0).fit(points)  # warnings are errors here


def test_missing_and_enormous_entries_do_not_hide_the_scales() -> None:
    X = scaled_apart(1e150)
    X[::7, 0] = np.nan
    with pytest.warns(UnlikeScalesWarning, match="column 2 varies .*e\\+150 times"):
        KMeans(2, missing="observed", random_state=0).fit(X)


def test_other_divergences_and_new_points_get_no_warning() -> None:
    X = np.abs(scaled_apart(1e4)) + 1
    PowerKMeans(2, divergence="mahalanobis", random_state=0).fit(X)
    model = PowerKMeans(2, divergence="gamma", random_state=0).fit(X)
    model.predict(X)
    with pytest.warns(UnlikeScalesWarning):
        KMeans(2, random_state=0).fit(X).predict(X)


@pytest.mark.parametrize("value", [5e-324, 1e-310])
def test_constant_columns_of_subnormal_size_do_not_vary(value):
    points = np.full((6, 3), value)
    assert unlike_scales(points) is None
    points[:, 0] = np.arange(6.0)
    assert unlike_scales(points) is None
