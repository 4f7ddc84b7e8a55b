"""Each warning is said where it holds, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.preprocessing import StandardScaler

from powermeans import KMeans, PowerKMeans
from powermeans.app.report.summaries import summarize
from powermeans.app.report.warnings_on_data import count_copies, find_warnings

RNG = np.random.default_rng(0)
GOOD = np.repeat([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], 50, axis=0) + RNG.normal(size=(150, 2))


def said(points: np.ndarray, labels: np.ndarray, n_clusters: int) -> dict[str, str]:
    names = [f"c{i}" for i in range(points.shape[1])]
    labels = labels.astype(np.int32)
    return find_warnings(points, labels, *summarize(points, labels, n_clusters, names))


def kinds(points: np.ndarray, n_clusters: int) -> list[str]:
    model = PowerKMeans(n_clusters, random_state=0).fit(points)
    return list(said(points, model.labels_, n_clusters))


def test_of_clusters_that_are_apart_nothing_is_said() -> None:
    assert kinds(GOOD, 3) == []


@pytest.mark.parametrize(("ratio", "is_said"), [(90.0, False), (120.0, True)])
def test_columns_that_differ_more_than_hundredfold_are_named(ratio: float, is_said: bool) -> None:
    points = GOOD / GOOD.std(axis=0) * [ratio, 1.0]
    found = said(points, np.repeat([0, 1, 2], 50), 3).get("scales", "")
    assert ("“c0” varies 120 times as much as “c1”" in found) == bool(found) == is_said


@pytest.mark.parametrize("n_features", [1, 2, 10, 50])
@pytest.mark.parametrize("kind", ["gaussian", "uniform"])
def test_a_group_cut_in_two_has_no_gap_in_any_number_of_features(
    n_features: int, kind: str
) -> None:
    draw = RNG.normal if kind == "gaussian" else RNG.random
    points = draw(size=(600, n_features))
    labels = KMeans(2, random_state=0, n_init=1).fit_predict(points)
    assert "k too large" in said(points, labels, 2)


@pytest.mark.parametrize("n_features", [2, 10, 50])
def test_clusters_six_deviations_apart_have_a_gap(n_features: int) -> None:
    points = RNG.normal(size=(600, n_features))
    points[300:, 0] += 6.0
    assert "k too large" not in said(points, np.repeat([0, 1], 300), 2)


def test_more_centers_than_clouds_are_too_many() -> None:
    points, _ = make_blobs(600, centers=[[0, 0], [20, 0], [0, 20]], random_state=0)
    assert kinds(points, 3) == []
    assert "k too large" in kinds(points, 5)


def test_tiny_and_empty_clusters_are_named() -> None:
    points = np.vstack([GOOD, [[100.0, 100.0]]])
    labels = np.append(np.repeat([0, 1, 2], 50), 4)
    found = said(points, labels, 5)
    assert found["tiny"].startswith("Cluster 4 has very few points")
    assert found["empty"].startswith("Cluster 3 has no points")


def test_a_cluster_of_one_is_tiny_only_beside_large_ones() -> None:
    points = RNG.normal(size=(30, 2))
    assert "tiny" not in said(points[:9], np.repeat([0, 1, 2], [1, 4, 4]), 3)
    found = said(points, np.repeat([0, 1], [1, 29]), 2)
    assert found["tiny"].startswith("Cluster 0 has very few points (less than a tenth of the mean")


@pytest.mark.parametrize(
    ("value", "is_scaled"), [(0.1, False), (0.1, True), (1e60, False), (-1.7, False)]
)
def test_a_column_of_one_value_has_no_scale(value: float, is_scaled: bool) -> None:
    n = 800_000  # their sum is so far off that they seem to deviate from their mean
    points = np.column_stack([RNG.normal(size=(n, 1)), np.full(n, value)])
    if is_scaled:
        points = StandardScaler().fit_transform(points)
    found = said(points, np.repeat([0, 1], n // 2), 2)
    assert "scales" not in found
    assert "“c1”" in found["constant"]


def test_a_ratio_of_sixty_digits_is_said_in_few() -> None:
    points = GOOD * [1e60, 1.0]
    text = said(points, np.repeat([0, 1, 2], 50), 3)["scales"]
    assert text.split("times")[0].endswith("varies 1e+60 ")


def test_copies_and_constant_columns_are_counted_and_named() -> None:
    points = np.vstack([GOOD, GOOD[:30]])
    points = np.hstack([points, np.full((180, 1), 0.3)])
    labels = np.concatenate([np.repeat([0, 1, 2], 50), np.zeros(30)])
    found = said(points, labels, 3)
    assert found["duplicates"].startswith("30 of 180 rows (17%)")
    assert "“c2”" in found["constant"]


@given(seed=st.integers(0, 10_000))
def test_copies_are_counted_as_by_comparing_all_rows(seed: int) -> None:
    points = np.random.default_rng(seed).integers(-1, 2, size=(40, 3)).astype(float)
    points[points == 0] *= -1  # some zeros are negative, and equal all the same
    expected = len(points) - len(np.unique(points + 0.0, axis=0))
    assert count_copies(points) == expected
    thin = sparse.csr_matrix(points)
    thin.eliminate_zeros()
    assert count_copies(thin) == expected


def test_whole_numbers_that_differ_are_no_copies() -> None:
    grid = np.stack(np.meshgrid(np.arange(300.0), np.arange(300.0)), axis=-1).reshape(-1, 2)
    assert count_copies(grid) == 0
    assert count_copies(grid[:, ::-1].copy() * 1024) == 0
