"""The code in the report makes the same model."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from powermeans import AuthorsSchedule, Fixed, KMeans, PathRecorder, PowerKMeans, SphericalMixture
from powermeans.divergences import Binomial
from powermeans.python_code import python_code

POINTS = np.random.default_rng(0).integers(0, 9, size=(60, 2)).astype(float)


@pytest.mark.parametrize(
    "model",
    [
        PowerKMeans(4, random_state=3),
        PowerKMeans(4, random_state=3, schedule=Fixed(-math.inf), refine=0),
        PowerKMeans(3, power=-math.inf, max_seconds=math.inf, random_state=np.int64(1)),
        PowerKMeans(3, schedule=AuthorsSchedule(-1.0), polish=False, random_state=0),
        PowerKMeans(3, divergence=Binomial(n_trials=9), random_state=0),
        PowerKMeans(3, divergence="poisson", random_state=0, callback=PathRecorder()),
        KMeans(5, n_init=2, random_state=0),
        SphericalMixture(2, random_state=0),
    ],
)
def test_running_the_code_gives_the_same_centers(
    model: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / 'it\'s "here".npy', POINTS)
    model.fit(POINTS)
    namespace: dict[str, Any] = {}
    exec(python_code(model, str(tmp_path / 'it\'s "here".npy')), namespace)
    np.testing.assert_array_equal(namespace["model"].cluster_centers_, model.cluster_centers_)
    assert capsys.readouterr().out


def test_what_cannot_be_written_out_is_left_to_the_reader() -> None:
    model = PowerKMeans(2, init=np.zeros((2, 2)), refine=0)
    code = python_code(model)
    assert "init = ...  # as it was given\n" in code
    assert "PowerKMeans(init=init, n_clusters=2, refine=0)" in code
    assert "X = ...  # the points, one a row" in code
    compile(code, "code", "exec")


@pytest.mark.parametrize(
    ("source", "reader"),
    [
        ("a.csv", 'pd.read_csv("a.csv")'),
        ("a.TSV", 'pd.read_csv("a.TSV", sep="\\t")'),
        ("a.parquet", 'pd.read_parquet("a.parquet")'),
        ("data", 'pd.read_csv("data")'),
    ],
)
def test_the_reader_follows_the_ending(source: str, reader: str) -> None:
    assert f"X = {reader}" in python_code(PowerKMeans(2), source)


def test_code_scales_as_the_points_were_scaled(tmp_path):
    points = np.random.default_rng(0).normal(size=(60, 2)) * [1.0, 100.0]
    np.save(tmp_path / "points.npy", points)
    model = PowerKMeans(3, random_state=0).fit(StandardScaler().fit_transform(points))
    namespace: dict = {}
    exec(python_code(model, str(tmp_path / "points.npy"), [StandardScaler()]), namespace)
    assert namespace["model"].inertia_ == model.inertia_
