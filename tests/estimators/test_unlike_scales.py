"""A warning where one column decides nearly every distance."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from powermeans import KMeans, MiniBatchPowerKMeans, PowerKMeans, UnlikeScalesWarning, choose_k
from powermeans.points.checks.points import unlike_scales


def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"age": rng.uniform(20, 70, 200), "income": rng.uniform(2e4, 9e4, 200), "one": np.ones(200)}
    )


FITS = [
    KMeans(3, random_state=0),
    PowerKMeans(3, random_state=0),
    PowerKMeans(3, divergence="manhattan", random_state=0),
    MiniBatchPowerKMeans(3, random_state=0),
]


def choose(X: pd.DataFrame) -> None:
    choose_k(X, range(2, 4), random_state=0)


@pytest.mark.parametrize("fit", [*(model.fit for model in FITS), choose])
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
